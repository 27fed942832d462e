//! The brief that the next agent reads: Markdown in fixed sections, never bare JSON (rules B1 to B7, H2).

use serde_json::{Map, Value};

use super::results::ResultView;
use super::{markdown, value};
use crate::domain::say::Say;

/// What a path named in a brief is to its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefState {
    /// As sent.
    pub raw: String,
    /// In normal form, where it has one.
    pub path: String,
    pub exists: bool,
    pub visible: bool,
    pub usable: bool,
}

/// What is nearly used up; nothing where all is plentiful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitsNote {
    pub handoffs: Option<u32>,
    pub minutes: Option<u32>,
    pub model_calls: Option<u32>,
}

pub struct BriefFacts<'a> {
    pub refs: &'a [RefState],
    pub delegated_results: &'a [ResultView],
    pub limits: LimitsNote,
    pub data_scopes: &'a [String],
}

pub struct TaskBriefFacts<'a> {
    pub refs: &'a [RefState],
    pub data_scopes: &'a [String],
}

const HANDOFF_SECTIONS: [&str; 9] =
    ["title", "reason", "objective", "userIntent", "contextSummary", "workspaceRefs", "mustPreserve", "completionCriteria", "openQuestions"];
const TASK_SECTIONS: [&str; 5] = ["title", "objective", "context", "expectedOutput", "workspaceRefs"];

/// The paths that a brief names, as sent and in order.
pub fn brief_refs(brief: &Map<String, Value>) -> Vec<String> {
    match brief.get("workspaceRefs") {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(one)) => vec![one.clone()],
        _ => Vec::new(),
    }
}

struct Document<'a> {
    say: &'a dyn Say,
    parts: Vec<String>,
}

impl Document<'_> {
    fn heading(&mut self, key: &str, intro: &str) {
        self.parts.push(format!("# {}\n\n{}", self.say.say(key, &[]), self.say.say(intro, &[])));
    }

    fn section(&mut self, key: &str, body: String) {
        if !body.trim().is_empty() {
            self.parts.push(format!("## {}\n{body}", self.say.say(key, &[])));
        }
    }

    fn known(&mut self, brief: &Map<String, Value>, sections: &[&str], refs: &[RefState]) {
        for name in sections {
            let Some(found) = brief.get(*name).filter(|found| !value::is_empty(Some(found))) else { continue };
            let body = if *name == "workspaceRefs" { self.refs(found, refs) } else { value::section(found) };
            self.section(&format!("brief.{name}"), body);
        }
    }

    fn refs(&self, found: &Value, refs: &[RefState]) -> String {
        let items = match found {
            Value::Array(items) if items.iter().all(Value::is_string) => items.clone(),
            Value::String(_) => vec![found.clone()],
            other => return value::section(other),
        };
        let rows = items.iter().filter_map(Value::as_str).filter(|raw| !raw.trim().is_empty()).map(|raw| {
            let state = refs.iter().find(|state| state.raw == raw);
            let path = markdown::inline(state.map_or(raw, |state| &state.path));
            let key = match state {
                Some(state) if !state.usable => "brief.ref_unusable",
                Some(state) if !state.visible => "brief.ref_hidden",
                Some(state) if !state.exists => "brief.ref_missing",
                _ => return format!("- {path}"),
            };
            format!("- {}", self.say.say(key, &[("path", &path)]))
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    fn others(&mut self, brief: &Map<String, Value>, known: &[&str]) {
        let body = value::entries(brief.iter().filter(|(key, _)| !known.contains(&key.as_str())), 0);
        self.section("brief.additional", body);
    }

    fn data(&mut self, scopes: &[String]) {
        let rows: Vec<String> = scopes.iter().map(|scope| format!("- {}", markdown::inline(scope))).collect();
        self.section("brief.permittedData", rows.join("\n"));
    }

    fn limits(&mut self, note: &LimitsNote) {
        let row = |key: &str, count: Option<u32>| count.map(|count| format!("- {}", self.say.say(key, &[("count", &count.to_string())])));
        let rows = [row("brief.limit_handoffs", note.handoffs), row("brief.limit_minutes", note.minutes), row("brief.limit_calls", note.model_calls)];
        let rows: Vec<String> = rows.into_iter().flatten().collect();
        self.section("brief.limits", rows.join("\n"));
    }

    fn end(mut self, notes: &str) -> String {
        self.section("brief.notes", self.say.say(notes, &[]));
        self.parts.join("\n\n")
    }
}

pub fn render_handoff_brief(say: &dyn Say, brief: &Map<String, Value>, facts: &BriefFacts) -> String {
    let mut document = Document { say, parts: Vec::new() };
    document.heading("brief.handoff", "brief.handoff_intro");
    document.known(brief, &HANDOFF_SECTIONS, facts.refs);
    let results: Vec<String> = facts.delegated_results.iter().map(|view| view.render(say)).collect();
    document.section("brief.delegatedResults", results.join("\n\n"));
    document.others(brief, &HANDOFF_SECTIONS);
    document.limits(&facts.limits);
    document.data(facts.data_scopes);
    document.end("brief.handoff_notes")
}

pub fn render_task_brief(say: &dyn Say, brief: &Map<String, Value>, facts: &TaskBriefFacts) -> String {
    let mut document = Document { say, parts: Vec::new() };
    document.heading("brief.task", "brief.task_intro");
    document.known(brief, &TASK_SECTIONS, facts.refs);
    document.others(brief, &TASK_SECTIONS);
    document.data(facts.data_scopes);
    document.end("brief.task_notes")
}
