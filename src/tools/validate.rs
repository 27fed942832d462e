//! Checks the arguments of one call: repaired, known keys only, and within the limits of texts (rules A2 to A6).

use serde_json::{Map, Value, json};

use super::schema;
use super::spec::{CoreTool, FREE_LISTS, input_schema};
use crate::domain::limits::RunLimits;
use crate::domain::refusal::Refusal;
use crate::domain::say::Say;
use crate::workspace::count;

/// Arguments that fit, and the keys that were dropped.
#[derive(Debug, Clone)]
pub struct Checked {
    pub map: Map<String, Value>,
    pub ignored: Vec<String>,
    pub limits: RunLimits,
}

struct Mute;
impl Say for Mute {
    fn say(&self, _: &str, _: &[(&str, &str)]) -> String {
        String::new()
    }
}

/// Names that other tools give to the same thing.
const SYNONYMS: [(CoreTool, &str, &str); 8] = [
    (CoreTool::ReadFile, "file_path", "path"),
    (CoreTool::ReadFile, "offset", "start_line"),
    (CoreTool::ReadFile, "limit", "line_count"),
    (CoreTool::WriteFile, "file_path", "path"),
    (CoreTool::ApplyPatch, "file_path", "path"),
    (CoreTool::SearchFiles, "pattern", "query"),
    (CoreTool::Cancel, "handle", "taskId"),
    (CoreTool::Commit, "file_path", "path"),
];

pub fn core_arguments(tool: CoreTool, arguments: &Map<String, Value>, limits: &RunLimits) -> Result<Checked, Refusal> {
    let mut arguments = arguments.clone();
    for (of, other, name) in SYNONYMS {
        if of == tool && !arguments.contains_key(name)
            && let Some(value) = arguments.shift_remove(other)
        {
            arguments.insert(name.to_owned(), value);
        }
    }
    let mut schema = input_schema(tool, &Mute);
    let known = schema["properties"].as_object().cloned().unwrap_or_default();
    // A result may carry fields of its own; they are part of it.
    let open = tool == CoreTool::Return;
    let ignored: Vec<String> = if open { Vec::new() } else { arguments.keys().filter(|key| !known.contains_key(*key)).cloned().collect() };
    arguments.retain(|key, _| open || known.contains_key(key));
    let free = brief_key(tool).map(|brief| free_lists(&mut schema, &mut arguments, brief));
    let mut map = schema::conform(&schema, &arguments)?;
    if let (Some(brief), Some(lists)) = (brief_key(tool), free) {
        restore(&mut map, brief, lists);
        check_brief(&map, brief, limits)?;
    }
    Ok(Checked { map, ignored, limits: limits.clone() })
}

fn brief_key(tool: CoreTool) -> Option<&'static str> {
    match tool {
        CoreTool::Handoff => Some("handoff"),
        CoreTool::Delegate => Some("task"),
        _ => None,
    }
}

/// Lists of a brief are rendered whatever they are, so they are repaired here and never refused.
fn free_lists(schema: &mut Value, arguments: &mut Map<String, Value>, brief: &str) -> Vec<(String, Value)> {
    for name in FREE_LISTS {
        if let Some(properties) = schema["properties"][brief]["properties"].as_object_mut() {
            properties.shift_remove(name);
        }
    }
    if let Some(Value::String(text)) = arguments.get(brief)
        && let Ok(parsed @ Value::Object(_)) = serde_json::from_str::<Value>(text)
    {
        arguments.insert(brief.to_owned(), parsed);
    }
    let Some(map) = arguments.get(brief).and_then(Value::as_object) else { return Vec::new() };
    let lists = map.iter().filter(|(name, _)| FREE_LISTS.contains(&name.as_str()));
    lists.map(|(name, value)| (name.clone(), listed(name, value))).collect()
}

fn listed(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if name != "userIntent" && !text.trim().is_empty() => match serde_json::from_str::<Value>(text) {
            Ok(list @ Value::Array(_)) => list,
            _ => json!([text]),
        },
        other => other.clone(),
    }
}

fn restore(map: &mut Map<String, Value>, brief: &str, lists: Vec<(String, Value)>) {
    if let Some(inner) = map.get_mut(brief).and_then(Value::as_object_mut) {
        for (name, value) in lists {
            inner.insert(name, value);
        }
    }
}

fn check_brief(map: &Map<String, Value>, brief: &str, limits: &RunLimits) -> Result<(), Refusal> {
    let Some(inner) = map.get(brief).and_then(Value::as_object) else { return Ok(()) };
    let objective = inner.get("objective").and_then(Value::as_str).unwrap_or_default();
    if objective.trim().is_empty() {
        return Err(Refusal::new("tool.invalid_arguments", "tools.text_blank").arg("path", format!("{brief}.objective")));
    }
    let mut total = 0;
    for (name, value) in inner {
        let chars = match value {
            Value::String(text) => u64::from(count::chars(text)),
            other => u64::from(count::chars(&other.to_string())),
        };
        total += chars;
        check_size(&format!("{brief}.{}", name.chars().take(60).collect::<String>()), chars, limits.max_brief_chars)?;
    }
    check_size(brief, total, limits.max_brief_total_chars)
}

pub fn check_size(field: &str, chars: u64, limit: u64) -> Result<(), Refusal> {
    if chars <= limit {
        return Ok(());
    }
    Err(Refusal::new("tool.invalid_arguments", "tools.too_long").arg("path", field).arg("chars", chars.to_string()).arg("limit", limit.to_string()))
}

/// A host tool's arguments against the host's own schema; keys that it does not name are passed on.
pub fn host_arguments(schema: &Value, arguments: &Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
    schema::conform(schema, arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handoff(value: Value) -> Result<Checked, Refusal> {
        core_arguments(CoreTool::Handoff, value.as_object().expect("an object"), &RunLimits::default())
    }

    #[test]
    fn a_brief_is_checked_where_the_rules_say_so() {
        let field = |result: Result<Checked, Refusal>| result.err().map(|refusal| (refusal.code, refusal.args.first().map(|(_, path)| path.clone()).unwrap_or_default()));
        let wrong = |path: &str| Some(("tool.invalid_arguments", path.to_owned()));
        assert_eq!(field(handoff(json!({}))), wrong("agentId"));
        assert_eq!(field(handoff(json!({ "agentId": "e", "handoff": ["do it"] }))), wrong("handoff"));
        assert_eq!(field(handoff(json!({ "agentId": "e", "handoff": { "objective": "  " } }))), wrong("handoff.objective"));
        assert_eq!(field(handoff(json!({ "agentId": "e", "handoff": { "objective": "字".repeat(8001) } }))), wrong("handoff.objective"));
        assert_eq!(field(handoff(json!({ "agentId": "e", "handoff": { "objective": "x" }, "pendingTaskPolicy": "cancel" }))), wrong("pendingTaskPolicy"));
        let checked = handoff(json!({ "agentId": "e", "handoff": { "objective": "字".repeat(8000), "mustPreserve": "Keep the tone", "workspaceRefs": 7 }, "prompt": "p", "invocationId": "i" })).expect("fits");
        assert_eq!(checked.ignored, ["prompt", "invocationId"]);
        assert_eq!(checked.map["handoff"]["mustPreserve"], json!(["Keep the tone"]));
        assert_eq!(checked.map["handoff"]["workspaceRefs"], json!(7));
    }
}
