//! Arguments as models really send them, brought to one normal form on entry (rule A1).

use serde_json::{Map, Value};

use crate::domain::refusal::Refusal;

/// An object as it is; JSON text parsed; nothing, blanks and null as `{}`; a whole object encoded twice unwrapped once.
pub fn normalise(sent: &Value, cut_off: bool) -> Result<Map<String, Value>, Refusal> {
    match sent {
        Value::Null => Ok(Map::new()),
        Value::Object(map) => Ok(map.clone()),
        Value::String(text) => from_text(text, cut_off, true),
        other => Err(not_an_object(other)),
    }
}

fn from_text(text: &str, cut_off: bool, may_unwrap: bool) -> Result<Map<String, Value>, Refusal> {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed == "null" {
        return Ok(Map::new());
    }
    match serde_json::from_str::<Value>(trimmed) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::String(inner)) if may_unwrap => from_text(&inner, cut_off, false),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(other) => Err(not_an_object(&other)),
        Err(_) if cut_off => Err(Refusal::new("tool.call_cut_off", "tools.call_cut_off")),
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
            let position = position(trimmed, error.line(), error.column());
            Err(Refusal::new("tool.invalid_arguments", "tools.broken_json").arg("position", position.to_string()).arg("why", reason))
        }
    }
}

/// Line and byte column to characters from the beginning, the first being 1.
fn position(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(|line| line.chars().count()).sum();
    let row = text.split_inclusive('\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let within = row.char_indices().take_while(|(at, _)| *at < column).count();
    before + within.max(1)
}

fn not_an_object(value: &Value) -> Refusal {
    Refusal::new("tool.invalid_arguments", "tools.not_an_object").arg("got", super::schema::describe(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_models_send_becomes_an_object() {
        for empty in [json!(null), json!(""), json!("  "), json!("null"), json!("\"\"")] {
            assert_eq!(normalise(&empty, false), Ok(Map::new()), "{empty}");
        }
        let object = json!({ "a": 1 });
        for same in [object.clone(), json!("{\"a\": 1}"), json!("\"{\\\"a\\\": 1}\"")] {
            assert_eq!(normalise(&same, false).map(Value::Object), Ok(object.clone()), "{same}");
        }
        assert_eq!(normalise(&json!([1]), false).map_err(|refusal| refusal.code), Err("tool.invalid_arguments"));
        let broken = json!("{\"字\": }");
        let refusal = normalise(&broken, false).expect_err("broken");
        assert!(refusal.args.contains(&("position", "7".to_owned())), "{refusal:?}");
        assert_eq!(normalise(&broken, true).map_err(|refusal| refusal.code), Err("tool.call_cut_off"));
        let prototype = normalise(&json!("{\"__proto__\": {\"a\": 1}}"), false).expect("data");
        assert!(prototype.contains_key("__proto__"));
    }
}
