//! A view of a file by lines or by characters, with its place said in a header.

use super::count;
use super::knowledge::Covered;
use crate::domain::refusal::Refusal;

pub const MAX_LINES: u32 = 1200;
pub const MAX_CHARS: u32 = 80_000;
const MAX_BYTES: usize = 262_144;

/// The part asked for; lines and characters count from 1 and 0 as the tool says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    Whole,
    Lines { start: u32, count: Option<u32> },
    Chars { start: u32, count: Option<u32> },
}

#[derive(Debug)]
pub struct View {
    pub content: String,
    pub covered: Covered,
}

pub fn view(path: &str, text: &str, range: &Range) -> Result<View, Refusal> {
    match *range {
        Range::Whole => whole(path, text),
        Range::Lines { start, count } => lines(path, text, start, count.unwrap_or(MAX_LINES).min(MAX_LINES)),
        Range::Chars { start, count } => chars(path, text, start, count.unwrap_or(MAX_CHARS).min(MAX_CHARS)),
    }
}

fn whole(path: &str, text: &str) -> Result<View, Refusal> {
    let total = text.lines().count() as u32;
    if text.len() > MAX_BYTES || total > MAX_LINES || count::chars(text) > MAX_CHARS {
        return Err(Refusal::new("workspace.read_too_large", "workspace.read_too_large").arg("path", path).arg("lines", total.to_string()).arg("chars", count::chars(text).to_string()));
    }
    lines(path, text, 1, MAX_LINES)
}

fn lines(path: &str, text: &str, start: u32, count: u32) -> Result<View, Refusal> {
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let total = all.len() as u32;
    if start == 0 || (start > total && start > 1) || count == 0 {
        return Err(Refusal::new("workspace.invalid_line_range", "workspace.invalid_line_range").arg("path", path).arg("lines", total.to_string()));
    }
    let end = (start - 1).saturating_add(count).min(total);
    let mut content = format!("{path} lines {}-{end} of {total}", if total == 0 { 0 } else { start });
    for (number, line) in (start..=end).zip(all.iter().skip(start as usize - 1)) {
        content.push_str(&format!("\n{number}\t{}", line.trim_end_matches(['\n', '\r'])));
    }
    let from: usize = all.iter().take(start as usize - 1).map(|line| line.len()).sum();
    let to: usize = all.iter().take(end as usize).map(|line| line.len()).sum();
    let covered = if from == 0 && to == text.len() { Covered::All } else { Covered::Range(from as u32, to as u32) };
    Ok(View { content, covered })
}

fn chars(path: &str, text: &str, start: u32, count: u32) -> Result<View, Refusal> {
    let total = count::chars(text);
    if start > total || count == 0 {
        return Err(Refusal::new("workspace.invalid_char_range", "workspace.invalid_char_range").arg("path", path).arg("chars", total.to_string()));
    }
    let end = start.saturating_add(count).min(total);
    let byte = |nth: u32| text.char_indices().nth(nth as usize).map_or(text.len(), |(at, _)| at);
    let (from, to) = (byte(start), byte(end));
    let content = format!("{path} chars {start}-{end} of {total}\n{}", text.get(from..to).unwrap_or_default());
    let covered = if start == 0 && end == total { Covered::All } else { Covered::Range(from as u32, to as u32) };
    Ok(View { content, covered })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_characters() {
        let text = "一\n二\n三\n";
        let view = view("output/a.md", text, &Range::Lines { start: 2, count: Some(1) }).expect("in range");
        assert_eq!(view.content, "output/a.md lines 2-2 of 3\n2\t二");
        assert_eq!(view.covered, Covered::Range(4, 8));
        let view = super::view("a", text, &Range::Chars { start: 0, count: Some(3) }).expect("in range");
        assert!(view.content.ends_with("一\n二"));
        assert_eq!(super::view("a", text, &Range::Whole).expect("small").covered, Covered::All);
        assert_eq!(super::view("a", "", &Range::Whole).expect("empty").covered, Covered::All);
        assert!(super::view("a", text, &Range::Lines { start: 9, count: None }).is_err());
    }
}
