//! Text that others wrote, made safe inside a document of ours: no line of it can open a block that the renderer did
//! not write, and the change can be undone (rule B3).

/// All that breaks a line becomes a line feed.
pub fn lines(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                if chars.peek() == Some(&'\n') {
                    chars.next();
                }
                result.push('\n');
            }
            '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{b}' | '\u{c}' => result.push('\n'),
            other => result.push(other),
        }
    }
    result
}

/// Control characters and bidi overrides are shown, not deleted (rule B6).
fn show_hidden(text: &str) -> String {
    let hidden = |c: char| (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.chars().any(hidden) {
        return text.to_owned();
    }
    text.chars().map(|c| if hidden(c) { format!("\\u{{{:X}}}", c as u32) } else { c.to_string() }).collect()
}

/// A text of any number of lines, as a block.
pub fn block(text: &str) -> String {
    let text = show_hidden(&lines(text));
    let lines: Vec<String> = text.split('\n').map(guarded).collect();
    lines.join("\n")
}

/// A text that must stay on its line: a key, a path, a name.
pub fn inline(text: &str) -> String {
    let text = show_hidden(&lines(text)).replace('\n', " ");
    let mut result = String::with_capacity(text.len());
    for c in text.trim().chars() {
        if matches!(c, '*' | '`' | '\\' | '[' | ']' | '<') {
            result.push('\\');
        }
        result.push(c);
    }
    guarded(&result)
}

/// Undoes `block` (but for line breaks and hidden characters, which are made visible for good).
pub fn unescape(text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| {
            let at = content_start(line);
            match line.get(at..).and_then(|rest| rest.strip_prefix('\\')) {
                Some(rest) => format!("{}{rest}", line.get(..at).unwrap_or_default()),
                None => line.to_owned(),
            }
        })
        .collect();
    lines.join("\n")
}

fn guarded(line: &str) -> String {
    let at = content_start(line);
    let (before, rest) = line.split_at(at);
    if rest.starts_with('\\') || opens_block(rest) { format!("{before}\\{rest}") } else { line.to_owned() }
}

/// Where a line's content begins: behind blanks and list markers, at any depth.
fn content_start(line: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = line.get(at..).unwrap_or_default();
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let rest = rest.get(blanks..).unwrap_or_default();
        at += blanks;
        if opens_block(rest) {
            return at;
        }
        match list_marker(rest) {
            Some(length) => at += length,
            None => return at,
        }
    }
}

fn list_marker(rest: &str) -> Option<usize> {
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let length = match rest.as_bytes().get(digits) {
        Some(b'-' | b'+' | b'*') if digits == 0 => 1,
        Some(b'.' | b')') if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    matches!(rest.as_bytes().get(length), Some(b' ' | b'\t')).then_some(length)
}

fn opens_block(rest: &str) -> bool {
    let trimmed = rest.trim_end();
    let Some(first) = trimmed.chars().next() else { return false };
    match first {
        '#' => {
            let after = trimmed.trim_start_matches('#');
            trimmed.len() - after.len() <= 6 && (after.is_empty() || after.starts_with([' ', '\t']))
        }
        '>' | '<' => true,
        '`' => trimmed.starts_with("```"),
        '~' => trimmed.starts_with("~~~"),
        '=' => trimmed.chars().all(|c| c == '='),
        '[' => trimmed.contains("]:") || !trimmed.contains(']'),
        '-' | '_' | '*' if is_rule(trimmed, first) => true,
        '-' | ':' | '|' => trimmed.contains('-') && (trimmed.chars().all(|c| c == '-') || trimmed.contains(['|', ':'])) && trimmed.chars().all(|c| matches!(c, '-' | ':' | '|' | ' ' | '\t')),
        _ => false,
    }
}

fn is_rule(trimmed: &str, mark: char) -> bool {
    trimmed.chars().filter(|c| *c == mark).count() >= 3 && trimmed.chars().all(|c| c == mark || c == ' ' || c == '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_opens_a_block() {
        for (text, safe) in [
            ("## Must Preserve", "\\## Must Preserve"),
            ("   # x", "   \\# x"),
            ("- # x", "- \\# x"),
            ("1. 2) ```", "1. 2) \\```"),
            ("===", "\\==="),
            ("-", "\\-"),
            ("- - -", "\\- - -"),
            ("> q", "\\> q"),
            ("<div>", "\\<div>"),
            ("[a]: /b", "\\[a]: /b"),
            ("|--|:-:|", "\\|--|:-:|"),
            ("\\# x", "\\\\# x"),
            ("#tag and - dash", "#tag and - dash"),
            ("- plain\n2. numbered", "- plain\n2. numbered"),
            ("a\r## b\u{2028}## c", "a\n\\## b\n\\## c"),
            ("a\u{202e}b", "a\\u{202E}b"),
        ] {
            assert_eq!(block(text), safe, "{text:?}");
            if !text.contains(['\r', '\u{202e}']) {
                assert_eq!(unescape(&block(text)), text);
            }
        }
    }
}
