//! Checked arguments as typed values, one struct a tool.

use serde_json::{Map, Value};

use super::validate::{Checked, check_size};
use crate::domain::refusal::Refusal;
use crate::journal::WriteMode;
use crate::workspace::{count, read, search};

impl Checked {
    fn text(&self, name: &str) -> Option<String> {
        self.map.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    fn filled(&self, name: &str) -> Option<String> {
        self.text(name).filter(|text| !text.trim().is_empty())
    }

    fn flag(&self, name: &str) -> bool {
        self.map.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn object(&self, name: &str) -> Map<String, Value> {
        self.map.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// A whole number within bounds.
    fn number(&self, name: &'static str, (least, most): (u32, u32)) -> Result<Option<u32>, Refusal> {
        let Some(value) = self.map.get(name) else { return Ok(None) };
        let whole = value.as_f64().filter(|n| n.fract() == 0.0 && *n >= f64::from(least) && *n <= f64::from(most));
        whole.map(|n| Some(n as u32)).ok_or_else(|| {
            Refusal::new("tool.invalid_arguments", "tools.number_out_of_range").arg("path", name).arg("least", least.to_string()).arg("most", most.to_string()).arg("got", value.to_string())
        })
    }
}

pub struct Delegate {
    pub agent_id: String,
    pub task: Map<String, Value>,
}

impl Delegate {
    pub fn of(checked: &Checked) -> Result<Self, Refusal> {
        Ok(Self { agent_id: checked.text("agentId").unwrap_or_default(), task: checked.object("task") })
    }
}

pub struct Handoff {
    pub agent_id: String,
    pub brief: Map<String, Value>,
    pub confidence: Option<f64>,
}

impl Handoff {
    pub fn of(checked: &Checked) -> Result<Self, Refusal> {
        let brief = checked.object("handoff");
        let confidence = brief.get("confidence").and_then(|value| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()));
        Ok(Self { agent_id: checked.text("agentId").unwrap_or_default(), brief, confidence })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AwaitMode {
    NextCompleted,
    AllCompleted,
    StatusOnly,
}

impl AwaitMode {
    pub fn word(self) -> &'static str {
        match self {
            Self::NextCompleted => "nextCompleted",
            Self::AllCompleted => "allCompleted",
            Self::StatusOnly => "statusOnly",
        }
    }
}

pub struct Await {
    /// None: all of one's own.
    pub handles: Option<Vec<String>>,
    pub mode: AwaitMode,
    pub timeout_ms: f64,
}

impl Await {
    pub fn of(checked: &Checked) -> Result<Self, Refusal> {
        let handles = checked.map.get("taskIds").and_then(Value::as_array).map(|list| list.iter().filter_map(Value::as_str).map(|handle| handle.trim().to_owned()).collect::<Vec<_>>());
        for (index, handle) in handles.iter().flatten().enumerate() {
            let path = format!("taskIds[{index}]");
            if handle.is_empty() {
                return Err(Refusal::new("tool.invalid_arguments", "tools.text_blank").arg("path", path));
            }
            if handles.iter().flatten().take(index).any(|earlier| earlier == handle) {
                return Err(Refusal::new("tool.invalid_arguments", "tools.named_twice").arg("path", path).arg("value", handle));
            }
        }
        let mode = match checked.text("mode").as_deref() {
            Some("allCompleted") => AwaitMode::AllCompleted,
            Some("statusOnly") => AwaitMode::StatusOnly,
            _ => AwaitMode::NextCompleted,
        };
        let timeout_ms = checked.number("timeoutMs", (0, 300_000))?.unwrap_or(120_000);
        Ok(Self { handles, mode, timeout_ms: f64::from(timeout_ms) })
    }
}

pub struct Cancel {
    pub handle: String,
    pub reason: Option<String>,
}

impl Cancel {
    pub fn of(checked: &Checked) -> Result<Self, Refusal> {
        Ok(Self { handle: checked.text("taskId").unwrap_or_default(), reason: checked.filled("reason") })
    }
}

pub struct AgentList {
    purpose: String,
    query: String,
    pub limit: u32,
}

impl AgentList {
    pub fn of(checked: &Checked) -> Result<Self, Refusal> {
        let query = checked.text("query").unwrap_or_default().trim().to_lowercase();
        Ok(Self { purpose: checked.text("purpose").unwrap_or_else(|| "any".to_owned()), query, limit: checked.number("limit", (1, 20))?.unwrap_or(8) })
    }

    pub fn wants(&self, operation: &str) -> bool {
        self.purpose == "any" || self.purpose == operation
    }

    pub fn matches(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.query)
    }
}

pub struct Return {
    pub summary: String,
    pub failed: bool,
    /// All that was sent.
    pub output: Map<String, Value>,
}

impl Return {
    pub fn of(checked: &Checked) -> Result<Self, Refusal> {
        let summary = checked.filled("summary").ok_or_else(|| Refusal::new("tool.invalid_arguments", "tools.text_blank").arg("path", "summary"))?;
        let size = u64::from(count::chars(&Value::Object(checked.map.clone()).to_string()));
        check_size("summary", u64::from(count::chars(&summary)), checked.limits.max_result_chars)?;
        check_size("result", size, checked.limits.max_result_chars.saturating_mul(2))?;
        Ok(Self { summary: summary.trim().to_owned(), failed: checked.text("status").as_deref() == Some("failed"), output: checked.map.clone() })
    }
}

pub struct Read {
    pub path: String,
    pub range: read::Range,
}

impl Read {
    pub fn of(checked: &Checked) -> Result<Self, Refusal> {
        let start_line = checked.number("start_line", (1, u32::MAX))?;
        let line_count = checked.number("line_count", (1, read::MAX_LINES))?;
        let start_char = checked.number("start_char", (0, u32::MAX))?;
        let max_chars = checked.number("max_chars", (1, read::MAX_CHARS))?;
        let (by_line, by_char) = (start_line.is_some() || line_count.is_some(), start_char.is_some() || max_chars.is_some());
        let range = match (by_line, by_char) {
            (true, true) => return Err(Refusal::new("workspace.mixed_read_range", "workspace.mixed_read_range")),
            (true, false) => read::Range::Lines { start: start_line.unwrap_or(1), count: line_count },
            (false, true) => read::Range::Chars { start: start_char.unwrap_or(0), count: max_chars },
            (false, false) => read::Range::Whole,
        };
        Ok(Self { path: checked.text("path").unwrap_or_default(), range })
    }
}

pub struct Write {
    pub path: String,
    pub content: String,
    pub mode: WriteMode,
}

fn mode(checked: &Checked) -> WriteMode {
    if checked.text("mode").as_deref() == Some("append") { WriteMode::Append } else { WriteMode::Replace }
}

impl Write {
    pub fn of(checked: &Checked) -> Result<Self, Refusal> {
        Ok(Self { path: checked.text("path").unwrap_or_default(), content: checked.text("content").unwrap_or_default(), mode: mode(checked) })
    }
}

pub struct Patch {
    pub path: String,
    pub old_string: String,
    pub new_string: String,
    pub replace_all: bool,
}

impl Patch {
    pub fn of(checked: &Checked) -> Result<Self, Refusal> {
        let text = |name: &str| checked.text(name).unwrap_or_default();
        Ok(Self { path: text("path"), old_string: text("old_string"), new_string: text("new_string"), replace_all: checked.flag("replace_all") })
    }
}

pub struct List {
    pub path: Option<String>,
    pub depth: u32,
}

impl List {
    pub fn of(checked: &Checked) -> Result<Self, Refusal> {
        let path = checked.filled("path").filter(|path| !matches!(path.trim(), "." | "./"));
        Ok(Self { path, depth: checked.number("depth", (1, u32::MAX))?.unwrap_or(2) })
    }
}

pub struct Search {
    pub query: String,
    pub path: Option<String>,
    pub limits: search::Limits,
}

impl Search {
    pub fn of(checked: &Checked) -> Result<Self, Refusal> {
        let limits = search::Limits { hits: checked.number("limit", (1, 50))?.unwrap_or(20), context_lines: checked.number("context_lines", (0, 5))?.unwrap_or(2) };
        let path = checked.filled("path").filter(|path| !matches!(path.trim(), "." | "./"));
        Ok(Self { query: checked.text("query").unwrap_or_default(), path, limits })
    }
}

pub struct Commit {
    pub path: Option<String>,
    pub mode: WriteMode,
    pub reason: Option<String>,
}

impl Commit {
    pub fn of(checked: &Checked) -> Result<Self, Refusal> {
        Ok(Self { path: checked.filled("path"), mode: mode(checked), reason: checked.filled("reason") })
    }
}
