//! A small part of JSON Schema, applied with the repairs that models need (rules A2, A3): type, properties,
//! required, items, enum. Whatever else a schema says is the host's to check.

use serde_json::{Map, Value, json};

use crate::domain::refusal::Refusal;

const MAX_DEPTH: u32 = 32;

/// Repairs and checks a whole argument object.
pub fn conform(schema: &Value, arguments: &Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
    match check(schema, Value::Object(arguments.clone()), "", MAX_DEPTH) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Ok(arguments.clone()),
        Err(wrong) => Err(wrong.refusal(schema)),
    }
}

/// One place where a value does not fit.
pub struct Wrong {
    path: String,
    expected: String,
    got: String,
    missing: bool,
}

impl Wrong {
    fn refusal(self, schema: &Value) -> Refusal {
        let key = if self.missing { "tools.argument_missing" } else { "tools.argument_wrong" };
        let example = serde_json::to_string(&example(schema)).unwrap_or_default();
        Refusal::new("tool.invalid_arguments", key).arg("path", self.path).arg("expected", self.expected).arg("got", self.got).arg("example", example)
    }
}

fn check(schema: &Value, value: Value, path: &str, depth: u32) -> Result<Value, Wrong> {
    let Some(rules) = schema.as_object().filter(|_| depth > 0) else { return Ok(value) };
    let value = repair(rules, value);
    let wrong = |expected: String, value: &Value| Wrong { path: path.to_owned(), expected, got: describe(value), missing: false };
    let types = types_of(rules);
    if !types.is_empty() && !types.iter().any(|name| is_type(name, &value)) {
        return Err(wrong(types.join(" or "), &value));
    }
    if let Some(choices) = rules.get("enum").and_then(Value::as_array).filter(|choices| !choices.contains(&value)) {
        let listed: Vec<String> = choices.iter().map(Value::to_string).collect();
        return Err(wrong(format!("one of {}", listed.join(", ")), &value));
    }
    match value {
        Value::Object(map) => object(rules, map, path, depth).map(Value::Object),
        Value::Array(list) => {
            let items = rules.get("items").cloned().unwrap_or(Value::Null);
            let checked = list.into_iter().enumerate().map(|(index, item)| check(&items, item, &format!("{path}[{index}]"), depth - 1));
            checked.collect::<Result<Vec<_>, _>>().map(Value::Array)
        }
        other => Ok(other),
    }
}

fn object(rules: &Map<String, Value>, mut map: Map<String, Value>, path: &str, depth: u32) -> Result<Map<String, Value>, Wrong> {
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let required: Vec<&str> = rules.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let empty = Map::new();
    let properties = rules.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    for name in &required {
        if map.get(*name).is_none_or(Value::is_null) {
            let types = properties.get(*name).and_then(Value::as_object).map(types_of).unwrap_or_default();
            return Err(Wrong { path: at(name), expected: types.join(" or "), got: "nothing".to_owned(), missing: true });
        }
    }
    for (name, schema) in properties {
        let Some(value) = map.get(name).cloned() else { continue };
        if value.is_null() && !required.contains(&name.as_str()) {
            map.shift_remove(name);
            continue;
        }
        let checked = check(schema, value, &at(name), depth - 1)?;
        map.insert(name.clone(), checked);
    }
    Ok(map)
}

/// Rule A2: one layer of JSON text where a list or object belongs; one text where a list of texts belongs.
fn repair(rules: &Map<String, Value>, value: Value) -> Value {
    let types = types_of(rules);
    let wants = |name: &str| types.contains(&name);
    let Value::String(text) = &value else { return value };
    if types.is_empty() || wants("string") {
        return value;
    }
    if wants("array") || wants("object") {
        if let Ok(parsed) = serde_json::from_str::<Value>(text)
            && types.iter().any(|name| is_type(name, &parsed))
        {
            return parsed;
        }
        let of_texts = rules.get("items").and_then(|items| items.get("type")).is_some_and(|kind| kind == "string");
        return if wants("array") && of_texts { json!([text]) } else { value };
    }
    match serde_json::from_str::<Value>(text.trim()) {
        Ok(parsed) if (wants("integer") || wants("number") || wants("boolean")) && types.iter().any(|name| is_type(name, &parsed)) => parsed,
        _ => value,
    }
}

fn types_of(rules: &Map<String, Value>) -> Vec<&str> {
    match rules.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// What came, in a few words.
pub fn describe(value: &Value) -> String {
    let (kind, shown) = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => ("boolean", value.to_string()),
        Value::Number(_) => ("number", value.to_string()),
        Value::String(_) => ("string", value.to_string()),
        Value::Array(_) => ("array", value.to_string()),
        Value::Object(_) => ("object", value.to_string()),
    };
    let short: String = shown.chars().take(60).collect();
    let dots = if shown.chars().count() > 60 { "…" } else { "" };
    format!("{kind} {short}{dots}")
}

/// The smallest value that fits.
pub fn example(schema: &Value) -> Value {
    if let Some(first) = schema.get("enum").and_then(Value::as_array).and_then(|choices| choices.first()) {
        return first.clone();
    }
    match schema.as_object().map(types_of).unwrap_or_default().first().copied() {
        Some("object") => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            let field = |name: &str| (name.to_owned(), example(schema.get("properties").and_then(|all| all.get(name)).unwrap_or(&Value::Null)));
            Value::Object(required.map(field).collect())
        }
        Some("array") => json!([]),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        _ => json!("…"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(schema: Value, value: Value) -> Result<Value, Refusal> {
        conform(&schema, value.as_object().expect("an object")).map(Value::Object)
    }

    #[test]
    fn one_layer_is_decoded_and_one_text_becomes_a_list() {
        let schema = json!({ "type": "object", "properties": {
            "list": { "type": "array", "items": { "type": "string" } }, "text": { "type": "string" }, "n": { "type": "integer" } } });
        assert_eq!(run(schema.clone(), json!({ "list": "[\"a\"]", "text": "[1]", "n": "3" })), Ok(json!({ "list": ["a"], "text": "[1]", "n": 3 })));
        assert_eq!(run(schema.clone(), json!({ "list": "Keep the tone" })), Ok(json!({ "list": ["Keep the tone"] })));
        assert_eq!(run(schema.clone(), json!({ "list": null })), Ok(json!({})));
        let refusal = run(schema, json!({ "text": { "type": "string" } })).expect_err("an object is no text");
        assert!(refusal.args.contains(&("path", "text".to_owned())) && refusal.args.contains(&("expected", "string".to_owned())));
    }

    #[test]
    fn what_is_missing_is_shown_by_example() {
        let schema = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string", "enum": ["editor"] } } });
        let refusal = run(schema, json!({})).expect_err("missing");
        assert_eq!(refusal.key, "tools.argument_missing");
        assert!(refusal.args.contains(&("example", "{\"id\":\"editor\"}".to_owned())));
    }
}
