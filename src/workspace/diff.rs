//! Unified diffs, by lines: of two texts and of two workspaces.

use std::collections::BTreeMap;

const CONTEXT: usize = 3;
/// Beyond this many cells the middle is shown as replaced whole, so that no input can be made slow.
const MAX_CELLS: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Keep,
    Delete,
    Insert,
}

/// The diff of two texts with `--- a/path` and `+++ b/path`; empty where they are equal.
pub fn unified(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    if before == after {
        return String::new();
    }
    let old: Vec<&str> = before.unwrap_or_default().split_inclusive('\n').collect();
    let new: Vec<&str> = after.unwrap_or_default().split_inclusive('\n').collect();
    let from = before.map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{path}"));
    let to = after.map_or_else(|| "/dev/null".to_owned(), |_| format!("b/{path}"));
    format!("--- {from}\n+++ {to}\n{}", hunks(&old, &new, &script(&old, &new)))
}

/// All files that differ, in order of their paths.
pub fn workspaces(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>, only: Option<&str>) -> String {
    let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    let chosen = paths.into_iter().filter(|path| only.is_none_or(|only| *path == only));
    chosen.map(|path| unified(path, before.get(path).map(String::as_str), after.get(path).map(String::as_str))).collect()
}

fn script(old: &[&str], new: &[&str]) -> Vec<Op> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old.iter().skip(head).rev().zip(new.iter().skip(head).rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (old.get(head..old.len() - tail).unwrap_or_default(), new.get(head..new.len() - tail).unwrap_or_default());
    let mut ops = vec![Op::Keep; head];
    if a.len().saturating_mul(b.len()) > MAX_CELLS {
        ops.extend(vec![Op::Delete; a.len()]);
        ops.extend(vec![Op::Insert; b.len()]);
    } else {
        middle(a, b, &mut ops);
    }
    ops.extend(vec![Op::Keep; tail]);
    ops
}

/// Longest common subsequence by dynamic programming from the end.
fn middle(a: &[&str], b: &[&str], ops: &mut Vec<Op>) {
    let width = b.len() + 1;
    let mut table = vec![0u32; (a.len() + 1) * width];
    let at = |table: &[u32], i: usize, j: usize| table.get(i * width + j).copied().unwrap_or(0);
    for (i, x) in a.iter().enumerate().rev() {
        for (j, y) in b.iter().enumerate().rev() {
            let best = if x == y { at(&table, i + 1, j + 1) + 1 } else { at(&table, i + 1, j).max(at(&table, i, j + 1)) };
            if let Some(cell) = table.get_mut(i * width + j) {
                *cell = best;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a.get(i) == b.get(j) {
            ops.push(Op::Keep);
            (i, j) = (i + 1, j + 1);
        } else if i < a.len() && (j >= b.len() || at(&table, i + 1, j) >= at(&table, i, j + 1)) {
            ops.push(Op::Delete);
            i += 1;
        } else {
            ops.push(Op::Insert);
            j += 1;
        }
    }
}

fn hunks(old: &[&str], new: &[&str], ops: &[Op]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while let Some(first) = ops.iter().skip(at).position(|op| *op != Op::Keep).map(|ahead| at + ahead) {
        let mut end = first;
        let mut quiet = 0;
        for (index, op) in ops.iter().enumerate().skip(first) {
            if *op == Op::Keep {
                quiet += 1;
                if quiet > 2 * CONTEXT {
                    break;
                }
            } else {
                quiet = 0;
                end = index;
            }
        }
        let (from, to) = (first.saturating_sub(CONTEXT).max(at), (end + 1 + CONTEXT).min(ops.len()));
        text.push_str(&hunk(old, new, ops, (from, to)));
        at = to;
    }
    text
}

fn hunk(old: &[&str], new: &[&str], ops: &[Op], (from, to): (usize, usize)) -> String {
    let before = |wanted: Op| ops.iter().take(from).filter(|op| **op == Op::Keep || **op == wanted).count();
    let (mut i, mut j) = (before(Op::Delete), before(Op::Insert));
    let (start_old, start_new) = (i, j);
    let mut body = String::new();
    for op in ops.iter().take(to).skip(from) {
        let (sign, line) = match op {
            Op::Keep => (' ', old.get(i)),
            Op::Delete => ('-', old.get(i)),
            Op::Insert => ('+', new.get(j)),
        };
        i += usize::from(*op != Op::Insert);
        j += usize::from(*op != Op::Delete);
        let line = line.copied().unwrap_or_default();
        body.push(sign);
        body.push_str(line);
        if !line.ends_with('\n') {
            body.push_str("\n\\ No newline at end of file\n");
        }
    }
    let range = |start: usize, count: usize| if count == 0 { format!("{start},0") } else { format!("{},{count}", start + 1) };
    format!("@@ -{} +{} @@\n{body}", range(start_old, i - start_old), range(start_new, j - start_new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_reads_as_patch_would_write_it() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let after = "a\nb\nc\nd\nE\nf\ng\nh\n";
        assert_eq!(unified("x", Some(before), Some(after)), "--- a/x\n+++ b/x\n@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n");
        assert_eq!(unified("x", None, Some("new")), "--- /dev/null\n+++ b/x\n@@ -0,0 +1,1 @@\n+new\n\\ No newline at end of file\n");
        assert_eq!(unified("x", Some("s"), Some("s")), "");
    }
}
