//! What a model is told of delegated tasks, of the user's notes, and of how its part can end.

use serde_json::{Map, Value, json};

use super::{markdown, value};
use crate::domain::kinds::TaskStatus;
use crate::domain::say::Say;

/// One task as its caller may see it: by its handle, never by an id.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultView {
    pub handle: String,
    pub agent_id: String,
    pub status: TaskStatus,
    pub cancelling: bool,
    pub error: Option<String>,
    pub summary: Option<String>,
    pub summary_ref: Option<String>,
    /// The result's other fields.
    pub output: Map<String, Value>,
}

impl ResultView {
    fn status_word(&self, say: &dyn Say) -> String {
        let word = if self.cancelling { "cancelling" } else { self.status.word() };
        say.say(&format!("results.{word}"), &[])
    }

    pub fn render(&self, say: &dyn Say) -> String {
        let mut parts = vec![say.say("results.line", &[("handle", &self.handle), ("agent", &self.agent_id), ("status", &self.status_word(say))])];
        if let Some(error) = &self.error {
            parts.push(say.say("results.error", &[("message", &markdown::inline(error))]));
        }
        if let Some(summary) = &self.summary {
            parts.push(markdown::block(summary.trim()));
        }
        let others = value::entries(self.output.iter(), 0);
        if !others.is_empty() {
            parts.push(others);
        }
        if let Some(path) = &self.summary_ref {
            parts.push(say.say("results.file", &[("path", path)]));
        }
        parts.join("\n")
    }

    pub fn structured(&self) -> Value {
        let mut fields = json!({ "taskId": self.handle, "agentId": self.agent_id, "status": if self.cancelling { "cancelling" } else { self.status.word() } });
        if let Some(map) = fields.as_object_mut() {
            map.extend(self.summary.iter().map(|summary| ("summary".to_owned(), json!(summary))));
            map.extend(self.error.iter().map(|error| ("error".to_owned(), json!(error))));
            map.extend(self.output.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        fields
    }
}

/// How a wait ended, where it was not by what was waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitNote {
    None,
    TimedOut,
    Interrupted,
}

pub fn awaited(say: &dyn Say, views: &[ResultView], note: WaitNote) -> String {
    let mut parts = vec![format!("## {}", say.say("results.head", &[]))];
    match note {
        WaitNote::None => {}
        WaitNote::TimedOut => parts.push(say.say("results.timed_out", &[])),
        WaitNote::Interrupted => parts.push(say.say("results.interrupted", &[])),
    }
    parts.extend(views.iter().map(|view| view.render(say)));
    parts.push(say.say("results.next", &[]));
    parts.join("\n\n")
}

/// Results told unasked, before the next answer (rule D5).
pub fn delivered(say: &dyn Say, views: &[ResultView]) -> String {
    let mut parts = vec![say.say("results.delivered", &[])];
    parts.extend(views.iter().map(|view| view.render(say)));
    parts.push(say.say("results.next", &[]));
    parts.join("\n\n")
}

pub fn delegated(say: &dyn Say, agent: &str, handle: &str, queued: bool, can_await: bool) -> String {
    let key = match (queued, can_await) {
        (true, _) => "results.delegated_queued",
        (false, true) => "results.delegated_await",
        (false, false) => "results.delegated",
    };
    say.say(key, &[("agent", agent), ("handle", handle)])
}

pub fn cancelled(say: &dyn Say, handle: &str, done: bool) -> String {
    say.say(if done { "results.cancel_done" } else { "results.cancel_asked" }, &[("handle", handle)])
}

pub fn finished(say: &dyn Say, cancelled: &[String]) -> String {
    let key = if cancelled.is_empty() { "results.finished" } else { "results.finished_cancelled" };
    if cancelled.is_empty() { say.say(key, &[]) } else { say.say(key, &[("handles", &cancelled.join(", "))]) }
}

/// `summaries/<handle>-result.md`.
pub fn result_file(say: &dyn Say, status: TaskStatus, summary: &str, output: &Map<String, Value>) -> String {
    let word = say.say(&format!("results.{}", status.word()), &[]);
    let others = value::entries(output.iter().filter(|(key, _)| !matches!(key.as_str(), "summary" | "status")), 0);
    let mut text = format!("# {}\n\n{}\n\n{}\n", say.say("results.file_head", &[]), say.say("results.file_status", &[("status", &word)]), markdown::block(summary));
    if !others.is_empty() {
        text.push_str(&format!("\n{others}\n"));
    }
    text
}

pub fn agents(say: &dyn Say, entries: &[(String, Vec<&'static str>, String)]) -> String {
    if entries.is_empty() {
        return say.say("results.no_agents", &[]);
    }
    let rows = entries.iter().map(|(id, operations, description)| super::prompt::catalogue_line(id, operations, description));
    rows.collect::<Vec<_>>().join("\n")
}

pub fn guidance(say: &dyn Say, notes: &[String]) -> String {
    match notes {
        [one] => format!("{}\n\n{}", say.say("results.guidance", &[]), markdown::block(one)),
        many => {
            let items: Vec<Value> = many.iter().map(|note| Value::from(note.as_str())).collect();
            format!("{}\n\n{}", say.say("results.guidance_many", &[]), value::section(&Value::Array(items)))
        }
    }
}

/// The ways that an agent has to end its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exits {
    pub finish: bool,
    pub handoff: bool,
    pub task_return: bool,
    pub commit: bool,
    pub committed: bool,
}

/// Rule T6: what happened, where the text is, and how this stage can end.
pub fn drift_reminder(say: &dyn Say, exits: &Exits, kept: Option<&str>) -> String {
    let mut lines = vec![match kept {
        Some(path) => say.say("results.drift_kept", &[("path", path)]),
        None => say.say("results.drift", &[]),
    }];
    if exits.finish && exits.commit && !exits.committed {
        lines.push(say.say("results.drift_commit", &[]));
    } else if exits.finish {
        lines.push(say.say("results.drift_finish", &[]));
    }
    if exits.handoff {
        lines.push(say.say("results.drift_handoff", &[]));
    }
    if exits.task_return {
        lines.push(say.say("results.drift_return", &[]));
    }
    if lines.len() == 1 {
        lines.push(say.say("results.drift_none", &[]));
    }
    lines.join(" ")
}
