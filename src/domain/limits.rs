//! Every limit of a run, its unit last in its name, each with a finite default (rule C6).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fault::Fault;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunLimits {
    pub max_handoffs: u32,
    pub max_handoffs_per_edge: u32,
    pub deadline_ms: f64,
    pub max_model_calls: u32,
    pub max_tool_calls: u32,
    pub max_tasks: u32,
    pub max_concurrent_tasks: u32,
    pub max_delegation_depth: u32,
    pub max_invalid_calls: u32,
    pub max_brief_chars: u64,
    pub max_brief_total_chars: u64,
    pub max_tool_result_chars: u64,
    pub max_result_chars: u64,
    pub callback_timeout_ms: f64,
    pub max_file_bytes: u64,
    pub max_workspace_bytes: u64,
    pub min_confidence: Option<f64>,
    pub fallback_profile_id: Option<String>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            max_handoffs: 8,
            max_handoffs_per_edge: 2,
            deadline_ms: 1_800_000.0,
            max_model_calls: 200,
            max_tool_calls: 400,
            max_tasks: 32,
            max_concurrent_tasks: 6,
            max_delegation_depth: 1,
            max_invalid_calls: 8,
            max_brief_chars: 8_000,
            max_brief_total_chars: 32_000,
            max_tool_result_chars: 60_000,
            max_result_chars: 16_000,
            callback_timeout_ms: 300_000.0,
            max_file_bytes: 1_048_576,
            max_workspace_bytes: 16_777_216,
            min_confidence: None,
            fallback_profile_id: None,
        }
    }
}

const NUMBERS: [&str; 16] = [
    "maxHandoffs", "maxHandoffsPerEdge", "deadlineMs", "maxModelCalls", "maxToolCalls", "maxTasks", "maxConcurrentTasks",
    "maxDelegationDepth", "maxInvalidCalls", "maxBriefChars", "maxBriefTotalChars", "maxToolResultChars", "maxResultChars",
    "callbackTimeoutMs", "maxFileBytes", "maxWorkspaceBytes",
];

impl RunLimits {
    /// Absent and null limits have their defaults; 0 means none allowed.
    pub fn parse(value: Option<&Value>) -> Result<Self, Fault> {
        let given = match value {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(Value::Object(map)) => map,
            Some(other) => return Err(invalid("limits", other, "an object")),
        };
        let mut checked = Map::new();
        for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
            let allowed = match name.as_str() {
                "minConfidence" => value.as_f64().is_some_and(|n| (0.0..=1.0).contains(&n)).then_some(value.clone()).ok_or("a number from 0 to 1"),
                "fallbackProfileId" => value.as_str().map(|id| Value::from(id.trim())).ok_or("the id of a profile"),
                _ if NUMBERS.contains(&name.as_str()) => whole(name, value),
                _ => Err("the name of a limit of the contract"),
            };
            checked.insert(name.clone(), allowed.map_err(|allowed| invalid(&format!("limits.{name}"), value, allowed))?);
        }
        serde_json::from_value(Value::Object(checked)).map_err(|error| Fault::new("config.invalid_limit", error.to_string()))
    }
}

fn whole(name: &str, value: &Value) -> Result<Value, &'static str> {
    let most = if name.ends_with("Ms") || name.ends_with("Bytes") || name.ends_with("Chars") { 9_007_199_254_740_991.0 } else { f64::from(u32::MAX) };
    match value.as_f64() {
        Some(n) if n >= 0.0 && n.fract() == 0.0 && n <= most => Ok(if name.ends_with("Ms") { Value::from(n) } else { Value::from(n as u64) }),
        _ => Err("a whole number from 0 on; 0 means none allowed"),
    }
}

fn invalid(field: &str, value: &Value, allowed: &str) -> Fault {
    Fault::new("config.invalid_limit", format!("{field} is {value}; it must be {allowed}.")).detail("path", format!("$.{field}"))
}
