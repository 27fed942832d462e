//! A batch in the making: a copy of the run on which each decided fact is folded at once, so that the next
//! decision sees it. Nothing of it counts before it is stored and committed.

use std::rc::Rc;

use crate::domain::ids::{self, IdKind};
use crate::domain::refusal::Refusal;
use crate::journal::event::CallResult;
use crate::journal::{Doc, Event, Id, Record, Text};
use crate::domain::say::Say;
use crate::render::locale::Locale;

use super::effect::CallPlace;
use super::state::*;

pub struct Batch<'a> {
    pub state: State,
    pub events: Vec<Event>,
    pub now: f64,
    pub locale: &'a Locale,
}

impl<'a> Batch<'a> {
    pub fn new(state: &State, now: f64, locale: &'a Locale) -> Self {
        Self { state: state.clone(), events: Vec::new(), now: now.max(state.at_ms), locale }
    }

    /// Records a fact.
    pub fn emit(&mut self, event: Event) {
        let record = Record { seq: self.state.head.seq + 1, at_ms: self.now, event };
        self.state.apply(&record);
        self.events.push(record.event);
    }

    pub fn id(&self, kind: IdKind, ordinal: u32) -> Id {
        ids::derive(self.state.run_id(), kind, ordinal).into()
    }

    pub fn say(&self, key: &str, args: &[(&str, &str)]) -> String {
        self.locale.say(key, args)
    }

    pub fn invocation_id(&self, ordinal: Ordinal) -> Id {
        self.state.invocation(ordinal).map_or_else(|| "".into(), |invocation| invocation.id.clone())
    }

    pub fn round(&self, ordinal: Ordinal) -> u32 {
        self.state.invocation(ordinal).map_or(0, |invocation| invocation.round())
    }

    pub fn work(&self, ordinal: Ordinal) -> Option<&Work> {
        self.state.work(ordinal)
    }

    pub fn turn_call(&self, place: CallPlace) -> Option<&Rc<TurnCall>> {
        self.work(place.invocation)?.turn()?.calls.get(place.index as usize)
    }

    /// Records the one result of a call (rule T1).
    pub fn settle(&mut self, place: CallPlace, outcome: Outcome) {
        let Some(call) = self.turn_call(place).cloned() else { return };
        self.emit(Event::ToolResultStored(CallResult {
            round: place.round,
            index: place.index,
            invocation_id: self.invocation_id(place.invocation),
            call_id: call.id.clone(),
            name: call.canonical.clone(),
            is_error: outcome.error_code.is_some(),
            error_code: outcome.error_code,
            refused: outcome.refused,
            content: Text::new(outcome.content),
            structured: outcome.structured,
            resource_refs: outcome.resource_refs,
        }));
    }

    pub fn refuse(&mut self, place: CallPlace, refusal: &Refusal) {
        let outcome = self.refused(refusal);
        self.settle(place, outcome);
    }

    pub fn refused(&self, refusal: &Refusal) -> Outcome {
        let args: Vec<(&str, &str)> = refusal.args.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let message = self.locale.say(refusal.key, &args);
        let mut error = serde_json::json!({ "code": refusal.code });
        if let Some(reason) = refusal.reason {
            error["reason"] = reason.into();
        }
        error["message"] = message.as_str().into();
        Outcome {
            error_code: Some(refusal.code.into()),
            refused: true,
            content: message,
            structured: Doc::of(&serde_json::json!({ "error": error })),
            resource_refs: Vec::new(),
        }
    }
}

/// How a call ended, before it has its place in the journal.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub error_code: Option<Id>,
    pub refused: bool,
    pub content: String,
    pub structured: Doc,
    pub resource_refs: Vec<String>,
}

impl Outcome {
    pub fn ok(content: String, structured: serde_json::Value) -> Self {
        Self { error_code: None, refused: false, content, structured: Doc::of(&structured), resource_refs: Vec::new() }
    }

    /// The tool was run and did not do it: an error, but no mistake of the model.
    pub fn failed(code: &str, content: String) -> Self {
        let structured = Doc::of(&serde_json::json!({ "error": { "code": code, "message": content } }));
        Self { error_code: Some(code.into()), refused: false, content, structured, resource_refs: Vec::new() }
    }

    pub fn with_refs(mut self, refs: Vec<String>) -> Self {
        self.resource_refs = refs;
        self
    }
}
