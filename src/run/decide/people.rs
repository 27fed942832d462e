//! People: whose turn it is, what they let through, and taking the run over (rules H9, V5, T7).

use serde_json::json;

use crate::domain::failure::Failure;
use crate::domain::fault::Fault;
use crate::journal::Event;
use crate::journal::event::*;
use crate::run::batch::{Batch, Outcome};
use crate::run::command::TurnInput;
use crate::run::effect::{CallPlace, EffectKey};
use crate::run::state::*;

use super::{ending, model, owed, turn};

pub struct Decision {
    pub id: Option<String>,
    pub call_id: Option<String>,
    pub approved: bool,
    pub reason: Option<String>,
}

pub fn approval_decided(batch: &mut Batch, decision: Decision) -> Result<(), Fault> {
    let key = match (&decision.id, &decision.call_id) {
        (Some(id), _) => owed(batch, id)?,
        (None, Some(call_id)) => Some(waiting_call(batch, call_id)?),
        (None, None) => return Err(Fault::new("command.invalid", "approval_decided needs the field id or callId.").detail("field", "callId")),
    };
    if let Some(EffectKey::Approval(place)) = key {
        decide(batch, place, decision.approved, decision.reason);
    }
    Ok(())
}

fn waiting_call(batch: &Batch, call_id: &str) -> Result<EffectKey, Fault> {
    let owed = batch.state.outstanding();
    let found = owed.into_iter().find(|key| match key {
        EffectKey::Approval(place) => batch.turn_call(*place).is_some_and(|call| *call.id == *call_id),
        _ => false,
    });
    found.ok_or_else(|| Fault::new("approval.not_waiting", format!("No call {call_id:?} waits for approval.")).detail("callId", call_id))
}

fn decide(batch: &mut Batch, place: CallPlace, approved: bool, reason: Option<String>) {
    let Some(call) = batch.turn_call(place).cloned() else { return };
    let invocation_id = batch.invocation_id(place.invocation);
    let text = reason.clone().map(Into::into);
    batch.emit(Event::ApprovalDecided(ApprovalDecided { invocation_id, round: place.round, index: place.index, call_id: call.id.clone(), approved, reason: text }));
    if !approved {
        let content = match reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty()) {
            Some(reason) => batch.say("turns.approval_refused_because", &[("reason", reason)]),
            None => batch.say("turns.approval_refused", &[]),
        };
        batch.settle(place, Outcome::failed("tool.approval_refused", content));
    }
    turn::advance(batch, place.invocation);
}

/// Nobody could be asked: as if refused, with the reason.
pub fn approval_failed(batch: &mut Batch, key: &EffectKey, failure: &Failure) {
    if let EffectKey::Approval(place) = *key {
        decide(batch, place, false, Some(failure.message.clone()));
    }
}

pub fn replied(batch: &mut Batch, id: Option<String>, invocation_id: Option<String>, turn: TurnInput) -> Result<(), Fault> {
    let key = match (id, invocation_id) {
        (Some(id), _) => owed(batch, &id)?,
        (None, Some(invocation_id)) => Some(waiting_person(batch, &invocation_id)?),
        (None, None) => return Err(Fault::new("command.invalid", "human_replied needs the field id or invocationId.").detail("field", "invocationId")),
    };
    if let Some(EffectKey::Human { invocation, .. }) = key {
        model::take_turn(batch, invocation, 0, turn);
    }
    Ok(())
}

fn waiting_person(batch: &Batch, invocation_id: &str) -> Result<EffectKey, Fault> {
    let waiting = batch.state.invocation_by_id(invocation_id).filter(|invocation| invocation.work.as_ref().is_some_and(|work| matches!(work.step, Step::Human)));
    let key = waiting.map(|invocation| EffectKey::Human { invocation: invocation.ordinal, round: invocation.round() }).filter(|key| batch.state.is_owed(key));
    key.ok_or_else(|| Fault::new("human.not_waiting", format!("Nobody is waited for at {invocation_id:?}.")).detail("invocationId", invocation_id))
}

/// A person takes the run from whoever owns it: a handoff with the host as author (rule V5).
pub fn take_over(batch: &mut Batch, profile_id: &str, reason: Option<String>, expected_version: Option<u32>) -> Result<(), Fault> {
    let version = batch.state.owner_version();
    if expected_version.is_some_and(|expected| expected != version) {
        return Err(Fault::new("run.version_conflict", format!("The run's owner is at version {version}; {} was expected.", expected_version.unwrap_or(0))).detail("version", version));
    }
    if !batch.state.is_open() {
        return Err(Fault::new("run.not_open", "The run is ending or has ended; it cannot be taken over."));
    }
    let Some(target) = batch.state.team.find(profile_id).cloned() else {
        return Err(Fault::new("profile.not_found", format!("No profile is called {profile_id:?}.")).detail("path", "$.profileId"));
    };
    if target.requires_configuration() {
        return Err(Fault::new("profile.model_requires_configuration", format!("The profile {profile_id:?} has no model yet.")).detail("path", "$.profileId"));
    }
    let owner = batch.state.owner;
    if batch.work(owner).and_then(Work::turn).is_some_and(|turn| turn.calls.iter().any(|call| matches!(call.state, CallState::Committing { .. }))) {
        return Err(Fault::new("run.busy", "A commit into the chat is under way; try again when it is done."));
    }
    turn::interrupt_open_calls(batch, owner, "turns.interrupted");
    if batch.work(owner).and_then(Work::turn).is_some() {
        turn::report(batch, owner);
    }
    let stopped: Vec<String> = batch.state.open_children(owner).map(|task| task.key.to_string()).collect();
    let name = batch.state.owner().map(|invocation| invocation.display_name.to_string()).unwrap_or_default();
    let mut brief = json!({ "objective": batch.say("turns.takeover_objective", &[("agent", &name)]) });
    if let Some(reason) = reason.filter(|reason| !reason.trim().is_empty()) {
        brief["reason"] = reason.into();
    }
    if !stopped.is_empty() {
        brief["stopped"] = stopped.into();
    }
    let brief = brief.as_object().cloned().unwrap_or_default();
    ending::hand_on(batch, owner, &target, &brief);
    Ok(())
}
