//! Exact-match patches: planned as edits, which are facts, and applied without judgement.

use serde::{Deserialize, Serialize};

use crate::domain::refusal::Refusal;

/// One replacement; `at` is a byte offset in the text before the patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub at: usize,
    pub delete: usize,
    pub insert: String,
}

#[derive(Debug)]
pub struct Plan {
    pub edits: Vec<Edit>,
    pub replacements: u32,
}

pub fn plan(path: &str, text: &str, old: &str, new: &str, all: bool) -> Result<Plan, Refusal> {
    let refuse = |code: &'static str| Refusal::new(code, code).arg("path", path);
    if old.is_empty() {
        return Err(refuse("workspace.patch_empty_old_string"));
    }
    if old == new {
        return Err(refuse("workspace.patch_no_change"));
    }
    let found: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
    match found.len() {
        0 => Err(match nearest_line(text, old) {
            Some(line) => Refusal::new("workspace.patch_old_string_not_found", "workspace.patch_old_string_not_found_near").arg("path", path).arg("line", line),
            None => refuse("workspace.patch_old_string_not_found"),
        }),
        n if n > 1 && !all => Err(refuse("workspace.patch_old_string_not_unique").arg("count", n.to_string())),
        n => Ok(Plan { edits: found.into_iter().map(|at| Edit { at, delete: old.len(), insert: new.to_owned() }).collect(), replacements: n as u32 }),
    }
}

/// The line that begins most like the text looked for.
fn nearest_line(text: &str, old: &str) -> Option<String> {
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty())?;
    let common = |line: &str| line.trim().chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
    let best = text.lines().filter(|line| !line.trim().is_empty()).max_by_key(|line| common(line))?;
    let long = common(best);
    (long >= 4 && long * 2 >= wanted.chars().count()).then(|| best.trim().chars().take(200).collect())
}

/// Cannot fail: offsets beyond the text or within a character are moved to the next boundary.
pub fn apply_edits(text: &str, edits: &[Edit]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for edit in edits {
        let from = boundary(text, edit.at.max(done));
        let to = boundary(text, edit.at.saturating_add(edit.delete).max(from));
        result.push_str(text.get(done..from).unwrap_or_default());
        result.push_str(&edit.insert);
        done = to;
    }
    result.push_str(text.get(done..).unwrap_or_default());
    result
}

fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_match_or_all_of_them() {
        let code = |old: &str, all| plan("a", "aa aa", old, "b", all).map(|plan| plan.replacements).map_err(|refusal| refusal.code);
        assert_eq!(code("zz", false), Err("workspace.patch_old_string_not_found"));
        assert_eq!(code("aa", false), Err("workspace.patch_old_string_not_unique"));
        assert_eq!(code("aa", true), Ok(2));
        assert_eq!(code("", false), Err("workspace.patch_empty_old_string"));
        let plan = plan("a", "她推开门。雨停了。", "雨停了", "雨刚停", false).expect("one match");
        assert_eq!(apply_edits("她推开门。雨停了。", &plan.edits), "她推开门。雨刚停。");
    }

    #[test]
    fn wild_edits_are_harmless() {
        let wild = [Edit { at: 1, delete: 1, insert: "x".into() }, Edit { at: usize::MAX, delete: usize::MAX, insert: "y".into() }];
        assert_eq!(apply_edits("字字", &wild), "字x字y");
    }
}
