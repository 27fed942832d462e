//! Model calls: when the next one is made, how a failed one is retried, and what an answer becomes.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::domain::failure::Failure;
use crate::domain::fault::Fault;
use crate::domain::refusal::Refusal;
use crate::journal::event::*;
use crate::journal::{Doc, Event};
use crate::render::results;
use crate::run::batch::Batch;
use crate::run::command::{CallInput, TurnInput};
use crate::run::effect::{CallPlace, EffectKey};
use crate::run::state::*;
use crate::tools::{CoreTool, arguments};

use super::{delegation, ending, turn};

/// Asks the model (or the person) for the next round, or ends the invocation where it may not go on.
pub fn next_round(batch: &mut Batch, ordinal: Ordinal) {
    if batch.state.is_stopping(ordinal) {
        return ending::stopped(batch, ordinal);
    }
    let Some(work) = batch.work(ordinal).cloned() else { return };
    let round = batch.round(ordinal) + 1;
    if !work.human {
        if round > work.profile.max_rounds() {
            return rounds_used_up(batch, ordinal, &work);
        }
        if batch.state.counters.model_calls >= batch.state.limits().max_model_calls {
            let limit = batch.state.limits().max_model_calls;
            let failure = Failure::new("agent.model_call_budget_exhausted", format!("All {limit} model calls of the run (limits.maxModelCalls) are used."));
            return ending::invocation_failed(batch, ordinal, failure.user_retryable());
        }
    }
    tell_news(batch, ordinal);
    let invocation_id = batch.invocation_id(ordinal);
    if work.human {
        batch.emit(Event::HumanRequested(HumanRequested { invocation_id, round }));
    } else {
        batch.emit(Event::ModelRequestCreated(ModelRequestCreated { invocation_id: invocation_id.clone(), round }));
        batch.emit(Event::AttemptStarted(AttemptStarted { invocation_id, round, attempt: 1 }));
    }
}

fn rounds_used_up(batch: &mut Batch, ordinal: Ordinal, work: &Work) {
    let rounds = work.profile.max_rounds();
    let drifted = work.history.last().is_some_and(|message| &*message.role == "assistant" && message.tool_calls.is_none());
    let failure = if drifted {
        Failure::new("model.tool_call_required", format!("The agent {} answered with plain text until its {rounds} rounds were used up.", work.profile.id))
    } else {
        Failure::new("agent.max_tool_rounds_exceeded", format!("The agent {} used up its {rounds} rounds (tools.maxRounds).", work.profile.id))
    };
    ending::invocation_failed(batch, ordinal, failure.user_retryable());
}

/// Results that came and what the user said, told once, before the next model call (rules D5, F7).
fn tell_news(batch: &mut Batch, ordinal: Ordinal) {
    let untold: Vec<_> = batch.state.untold_of(ordinal).map(|task| task.ordinal).collect();
    if !untold.is_empty() {
        let views = delegation::views(batch, &untold);
        let text = results::delivered(batch.locale, &views).into();
        let task_ids = untold.iter().filter_map(|task| batch.state.task(*task)).map(|task| task.id.clone()).collect();
        let placement = Some(placement(batch, ordinal));
        batch.emit(Event::ResultsDelivered(ResultsDelivered { invocation_id: batch.invocation_id(ordinal), task_ids, text: Some(text), placement }));
    }
    if ordinal == batch.state.owner && !batch.state.guidance.is_empty() {
        let notes: Vec<String> = batch.state.guidance.iter().map(|item| item.text.as_str().to_owned()).collect();
        let guidance_ids = batch.state.guidance.iter().map(|item| item.id.clone()).collect();
        let text = results::guidance(batch.locale, &notes).into();
        let (invocation_id, round, placement) = (batch.invocation_id(ordinal), batch.round(ordinal) + 1, placement(batch, ordinal));
        batch.emit(Event::GuidanceApplied(GuidanceApplied { guidance_ids, invocation_id, round, text, placement }));
    }
}

/// No provider may see a user turn after tool results.
fn placement(batch: &Batch, ordinal: Ordinal) -> Placement {
    let last = batch.work(ordinal).and_then(|work| work.history.last().map(|message| &*message.role == "tool"));
    if last.unwrap_or(false) { Placement::ToolResult } else { Placement::User }
}

/// A model call failed: retried under the profile's policy, or the end of the invocation (rule F1).
pub fn failed(batch: &mut Batch, key: &EffectKey, failure: Failure) {
    let EffectKey::Model { invocation, round, attempt } = *key else { return };
    let Some(profile) = batch.work(invocation).map(|work| work.profile.clone()) else { return };
    let retry = profile.model_retry();
    let budget_left = batch.state.counters.model_calls < batch.state.limits().max_model_calls;
    let will_retry = failure.retryable && attempt <= retry.max_retries && budget_left;
    let invocation_id = batch.invocation_id(invocation);
    batch.emit(Event::AttemptFailed(AttemptFailed {
        invocation_id: invocation_id.clone(),
        round,
        attempt,
        code: failure.code.as_str().into(),
        message: failure.message.as_str().into(),
        retryable: failure.retryable,
        will_retry,
    }));
    if will_retry {
        let pause = failure.retry_after_ms.filter(|ms| ms.is_finite() && *ms >= 0.0).unwrap_or(retry.interval_ms);
        let at_ms = batch.now + pause;
        batch.emit(Event::RetryScheduled(RetryScheduled { invocation_id, round, next_attempt: attempt + 1, at_ms }));
    } else {
        let user_retryable = failure.user_retryable || failure.retryable;
        ending::invocation_failed(batch, invocation, Failure { user_retryable, ..failure });
    }
}

pub fn retry(batch: &mut Batch, invocation: Ordinal, round: u32, attempt: u32) {
    let invocation_id = batch.invocation_id(invocation);
    batch.emit(Event::AttemptStarted(AttemptStarted { invocation_id, round, attempt }));
}

pub fn completed(batch: &mut Batch, key: EffectKey, turn: TurnInput) -> Result<(), Fault> {
    if let EffectKey::Model { invocation, attempt, .. } = key {
        take_turn(batch, invocation, attempt, turn);
    }
    Ok(())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    id: Id,
    name: String,
    canonical_name: String,
    arguments: Map<String, Value>,
}

/// Normalises a turn once, records it, and sets out on its calls. Attempt 0 is a person's turn.
pub fn take_turn(batch: &mut Batch, ordinal: Ordinal, attempt: u32, turn: TurnInput) {
    let cut_off = turn.finish_reason.as_deref() == Some("length");
    let mut taken = BTreeSet::new();
    let mut malformed = Vec::new();
    let mut listed = Vec::new();
    for call in turn.tool_calls.unwrap_or_default().into_iter().flatten() {
        let id = call_id(batch, &mut taken, ordinal, &call, listed.len());
        let sent = call.name.as_ref().and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        let canonical = canonical_name(batch, ordinal, &sent);
        let arguments = arguments::normalise(&call.arguments, cut_off).unwrap_or_else(|refusal| {
            malformed.push((listed.len() as u32, refusal));
            Map::new()
        });
        listed.push(Listed { id, name: shown_name(&sent), canonical_name: canonical, arguments });
    }
    let round = batch.round(ordinal);
    batch.emit(Event::ModelCompleted(ModelCompleted {
        invocation_id: batch.invocation_id(ordinal),
        round,
        attempt,
        text: turn.text.unwrap_or_default().into(),
        tool_calls: Doc::of(&listed),
        provider_data: turn.provider_data.map_or_else(Doc::null, |json| Doc::from_json(json.get())),
        finish_reason: turn.finish_reason.map(Into::into),
        usage: turn.usage.map_or_else(Doc::null, |json| Doc::from_json(json.get())),
        human: attempt == 0,
    }));
    if listed.is_empty() {
        return turn::without_calls(batch, ordinal);
    }
    settle_malformed(batch, ordinal, round, malformed);
    turn::advance(batch, ordinal);
}

/// What could not be read is refused at once: only its normal form is kept (rule A1). An unknown tool comes first.
fn settle_malformed(batch: &mut Batch, invocation: Ordinal, round: u32, malformed: Vec<(u32, Refusal)>) {
    for (index, refusal) in malformed {
        let place = CallPlace { invocation, round, index };
        let unusable = turn::unusable(batch, place);
        batch.refuse(place, &unusable.unwrap_or(refusal));
    }
}

fn call_id(batch: &Batch, taken: &mut BTreeSet<String>, ordinal: Ordinal, call: &CallInput, index: usize) -> Id {
    let sent = call.id.as_ref().and_then(Value::as_str).map(str::trim).filter(|id| !id.is_empty() && id.len() <= 256 && !id.contains('\u{FFFD}'));
    let free = |id: &str, taken: &BTreeSet<String>| !taken.contains(id) && !batch.state.call_ids.contains(id);
    let mut id = sent.unwrap_or_default().to_owned();
    let mut n = 0;
    while id.is_empty() || !free(&id, taken) {
        id = format!("call_{}_{}_{}", ordinal, batch.round(ordinal), index + 1);
        if n > 0 {
            id = format!("{id}_{n}");
        }
        n += 1;
    }
    taken.insert(id.clone());
    id.into()
}

/// A name that any provider takes back in a history.
fn shown_name(sent: &str) -> String {
    let safe: String = sent.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).take(64).collect();
    if safe.is_empty() { "unnamed".to_owned() } else { safe }
}

fn canonical_name(batch: &Batch, ordinal: Ordinal, sent: &str) -> String {
    let given = batch.work(ordinal).and_then(|work| work.tool_names.iter().find(|tool| *tool.name == *sent || *tool.canonical_name == *sent));
    match (given, CoreTool::from_name(sent)) {
        (Some(tool), _) => tool.canonical_name.as_ref().to_owned(),
        (None, Some(core)) => core.canonical().to_owned(),
        (None, None) => sent.to_owned(),
    }
}
