//! Any JSON value as Markdown lists (rule B5): plain to a depth, fenced JSON beyond.

use serde_json::{Map, Value};

use super::markdown;

const MAX_DEPTH: usize = 4;

/// A value as the body of a section.
pub fn section(value: &Value) -> String {
    match value {
        Value::Array(items) => list(items, 0),
        Value::Object(map) => entries(map.iter(), 0),
        scalar => text(scalar),
    }
}

/// Whether there is nothing to show: absent, null, blank, empty.
pub fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Array(items)) => items.iter().all(|item| is_empty(Some(item))),
        Some(Value::Object(map)) => map.values().all(|item| is_empty(Some(item))),
        Some(_) => false,
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => markdown::block(text.trim()),
        other => other.to_string(),
    }
}

fn list(items: &[Value], depth: usize) -> String {
    let shown = items.iter().filter(|item| !is_empty(Some(item)));
    shown.map(|item| format!("{}- {}", "  ".repeat(depth), item_body(item, depth))).collect::<Vec<_>>().join("\n")
}

/// `- **key**: value` for each entry that has something to show, in the order given.
pub fn entries<'a>(entries: impl Iterator<Item = (&'a String, &'a Value)>, depth: usize) -> String {
    let shown = entries.filter(|(_, value)| !is_empty(Some(value)));
    let rows = shown.map(|(key, value)| {
        let label = format!("{}- **{}**:", "  ".repeat(depth), markdown::inline(key));
        match value {
            Value::Array(_) | Value::Object(_) => format!("{label}\n{}", nested(value, depth + 1)),
            Value::String(text) if markdown::lines(text.trim()).contains('\n') => format!("{label}\n{}", indent(&markdown::block(text.trim()), depth + 1)),
            scalar => format!("{label} {}", text(scalar)),
        }
    });
    rows.collect::<Vec<_>>().join("\n")
}

fn item_body(item: &Value, depth: usize) -> String {
    match item {
        Value::Object(map) if depth + 1 < MAX_DEPTH => entries(only_filled(map).iter(), depth + 1).trim_start().to_owned(),
        Value::Array(items) if depth + 1 < MAX_DEPTH => list(items, depth + 1).trim_start().to_owned(),
        Value::Object(_) | Value::Array(_) => fenced(item, depth + 1).trim_start().to_owned(),
        scalar => indent(&text(scalar), depth + 1).trim_start().to_owned(),
    }
}

fn only_filled(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter().filter(|(_, value)| !is_empty(Some(value))).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn nested(value: &Value, depth: usize) -> String {
    match value {
        Value::Array(items) if depth < MAX_DEPTH => list(items, depth),
        Value::Object(map) if depth < MAX_DEPTH => entries(map.iter(), depth),
        deep => fenced(deep, depth),
    }
}

/// JSON in a fence longer than any run of backticks inside.
fn fenced(value: &Value, depth: usize) -> String {
    let json = markdown::lines(&serde_json::to_string_pretty(value).unwrap_or_default());
    let longest = json.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    indent(&format!("{fence}json\n{json}\n{fence}"), depth)
}

fn indent(text: &str, depth: usize) -> String {
    let pad = "  ".repeat(depth);
    let lines: Vec<String> = text.split('\n').map(|line| if line.is_empty() { String::new() } else { format!("{pad}{line}") }).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_values_are_lists() {
        let value = json!({ "acts": ["one", { "two": ["a", "b"] }], "done": true, "none": null });
        assert_eq!(section(&value), "- **acts**:\n  - one\n  - - **two**:\n      - a\n      - b\n- **done**: true".replace("  - - **two**:\n      - a\n      - b", "  - - **two**:\n        - a\n        - b").as_str());
    }

    #[test]
    fn what_is_too_deep_is_fenced() {
        let deep = json!({ "a": { "b": { "c": { "d": { "e": "```` inside" } } } } });
        let text = section(&deep);
        assert!(text.contains("`````json"), "{text}");
    }
}
