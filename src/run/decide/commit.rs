//! Writing into the chat: the one effect that a reader sees (rules W2, W4).

use std::rc::Rc;

use serde_json::json;

use crate::domain::failure::Failure;
use crate::domain::fault::Fault;
use crate::domain::ids::IdKind;
use crate::domain::refusal::Refusal;
use crate::journal::Event;
use crate::journal::event::*;
use crate::run::batch::{Batch, Outcome};
use crate::run::effect::{CallPlace, EffectKey};
use crate::run::state::*;
use crate::tools::args;
use crate::tools::validate::Checked;
use crate::workspace::paths;

use super::{files, turn};

const MAX_RETRIES: u32 = 3;
const RETRY_PAUSE_MS: f64 = 1000.0;

/// Checks a commit and asks the host for it.
pub fn request(batch: &mut Batch, place: CallPlace, checked: &Checked) {
    match prepare(batch, place, checked) {
        Ok(event) => batch.emit(event),
        Err(refusal) => batch.refuse(place, &refusal),
    }
}

fn prepare(batch: &Batch, place: CallPlace, checked: &Checked) -> Result<Event, Refusal> {
    let args = args::Commit::of(checked)?;
    let body = batch.work(place.invocation).map(|work| work.profile.message_body_path().to_owned()).unwrap_or_default();
    let path = paths::normalise(args.path.as_deref().unwrap_or(&body))?;
    files::access(batch, place.invocation).check_visible(&path)?;
    let file = batch.state.files.get(path.as_str()).ok_or_else(|| files::missing(batch, &path))?;
    if file.text.trim().is_empty() {
        return Err(Refusal::new("workspace.required_artifact_empty", "workspace.required_artifact_empty").arg("path", path));
    }
    let call = batch.turn_call(place).cloned();
    let base = (args.mode == WriteMode::Append).then(|| batch.state.ledger.text.clone().unwrap_or_default());
    Ok(Event::CommitRequested(CommitRequested {
        // Its own seq: decided again after a crash, it is the same.
        commit_id: batch.id(IdKind::Commit, batch.state.head.seq + 1),
        invocation_id: batch.invocation_id(place.invocation),
        round: place.round,
        index: place.index,
        call_id: call.map_or_else(|| "".into(), |call| call.id.clone()),
        path: path.into(),
        mode: args.mode,
        reason: args.reason.map(Into::into),
        attempt: 1,
        text: file.text.clone().into_text(),
        base_text: base.map(IntoText::into_text),
        persist_state_id: batch.state.frozen.as_ref().and_then(|frozen| frozen.stable_chat_id.as_ref().map(|_| frozen.run_id.clone())),
    }))
}

trait IntoText {
    fn into_text(self) -> crate::journal::Text;
}
impl IntoText for Rc<str> {
    fn into_text(self) -> crate::journal::Text {
        crate::journal::Text::new(self)
    }
}

fn committing(batch: &Batch, place: CallPlace) -> Option<(Rc<TurnCall>, Rc<Commit>, u32)> {
    let call = batch.turn_call(place)?.clone();
    match &call.state {
        CallState::Committing { commit, attempt, .. } => Some((call.clone(), commit.clone(), *attempt)),
        _ => None,
    }
}

pub fn completed(batch: &mut Batch, key: EffectKey, message_id: Option<String>) -> Result<(), Fault> {
    let EffectKey::Commit(place) = key else { return Ok(()) };
    let Some((call, commit, _)) = committing(batch, place) else { return Ok(()) };
    let profile_id = batch.state.invocation(place.invocation).map_or_else(|| "".into(), |invocation| invocation.profile_id.clone());
    let message_id = message_id.map(Id::from).or_else(|| batch.state.ledger.message_id.clone());
    batch.emit(Event::CommitCompleted(CommitCompleted {
        commit_id: commit.commit_id.clone(),
        invocation_id: batch.invocation_id(place.invocation),
        round: place.round,
        index: place.index,
        call_id: call.id.clone(),
        path: commit.path.clone(),
        mode: commit.mode,
        profile_id,
        message_id,
    }));
    if !finishes(&call) {
        let outcome = committed(batch, place, &commit.path);
        batch.settle(place, outcome);
    }
    turn::advance(batch, place.invocation);
    Ok(())
}

/// Whether the call asked to finish as well (rule W4).
pub fn finishes(call: &TurnCall) -> bool {
    call.arguments.parse::<serde_json::Value>().get("finish").is_some_and(|value| value == true || value == "true")
}

/// What the agent is told once its commit stands; only the ways to end that it has are named.
pub fn committed(batch: &Batch, place: CallPlace, path: &str) -> Outcome {
    let has = |name: &str| batch.work(place.invocation).is_some_and(|work| work.tool_names.iter().any(|tool| &*tool.canonical_name == name));
    let key = if has("workspace.finish") {
        "workspace.committed_finish"
    } else if has("agent.handoff") {
        "workspace.committed_handoff"
    } else {
        "workspace.committed"
    };
    let content = batch.say(key, &[("path", path)]);
    Outcome::ok(content, json!({ "path": path, "commits": batch.state.ledger.commits.len() })).with_refs(vec![path.to_owned()])
}

/// The host could not commit: tried again if it says that this may help, else a tool error.
pub fn failed(batch: &mut Batch, place: CallPlace, failure: &Failure) {
    let Some((call, commit, attempt)) = committing(batch, place) else { return };
    let will_retry = failure.retryable && attempt <= MAX_RETRIES;
    let pause = failure.retry_after_ms.filter(|ms| ms.is_finite() && *ms >= 0.0).unwrap_or(RETRY_PAUSE_MS * f64::from(attempt));
    batch.emit(Event::CommitFailed(CommitFailed {
        commit_id: commit.commit_id.clone(),
        invocation_id: batch.invocation_id(place.invocation),
        round: place.round,
        index: place.index,
        call_id: call.id.clone(),
        code: failure.code.as_str().into(),
        message: failure.message.as_str().into(),
        will_retry,
        retry_at_ms: will_retry.then_some(batch.now + pause),
    }));
    if !will_retry {
        let content = batch.say("workspace.commit_failed", &[("message", &failure.message), ("path", &commit.path)]);
        batch.settle(place, Outcome::failed("agent.chat_commit_failed", content));
        turn::advance(batch, place.invocation);
    }
}

pub fn retry(batch: &mut Batch, place: CallPlace, attempt: u32) {
    let Some((call, commit, _)) = committing(batch, place) else { return };
    batch.emit(Event::CommitRequested(CommitRequested {
        commit_id: commit.commit_id.clone(),
        invocation_id: batch.invocation_id(place.invocation),
        round: place.round,
        index: place.index,
        call_id: call.id.clone(),
        path: commit.path.clone(),
        mode: commit.mode,
        reason: commit.reason.clone(),
        attempt,
        text: commit.text.clone(),
        base_text: commit.base_text.clone(),
        persist_state_id: commit.persist_state_id.clone(),
    }));
}
