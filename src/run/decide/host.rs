//! What the host says of its own accord: notes, interruptions, timers, new profiles, and that a call failed.

use serde_json::Value;

use crate::domain::failure::Failure;
use crate::domain::fault::Fault;
use crate::domain::ids::IdKind;
use crate::domain::profile::parse_profiles;
use crate::journal::event::*;
use crate::journal::{Doc, Event};
use crate::run::batch::Batch;
use crate::run::effect::EffectKey;
use crate::run::state::*;
use crate::workspace::count;

use super::{commit, delegation, ending, model, owed, people, prompt, turn};

const MAX_GUIDANCE_CHARS: u32 = 16_000;
const MAX_GUIDANCE_PENDING: usize = 8;

fn ended(batch: &Batch) -> Result<(), Fault> {
    if batch.state.is_open() { Ok(()) } else { Err(Fault::new("run.not_open", "The run is ending or has ended; nothing more can be asked of it.")) }
}

pub fn set_profiles(batch: &mut Batch, profiles: &Value) -> Result<(), Fault> {
    let profiles = Doc::of(&parse_profiles(profiles)?);
    if batch.state.is_open() && profiles.json() != batch.state.team.doc.json() {
        batch.emit(Event::ProfilesSet(ProfilesSet { profiles }));
    }
    Ok(())
}

/// A host call failed: recorded where it belongs.
pub fn failed(batch: &mut Batch, key: EffectKey, failure: Failure) -> Result<(), Fault> {
    match &key {
        EffectKey::ResolveTools(invocation) | EffectKey::Assemble(invocation) => prompt::failed(batch, *invocation, failure),
        EffectKey::Model { .. } => model::failed(batch, &key, failure),
        EffectKey::Human { invocation, .. } => ending::invocation_failed(batch, *invocation, failure.user_retryable()),
        EffectKey::Tool(place) => turn::tool_failed(batch, *place, &failure),
        EffectKey::Approval(_) => people::approval_failed(batch, &key, &failure),
        EffectKey::Commit(place) => commit::failed(batch, *place, &failure),
        EffectKey::Promote => ending::promotion_failed(batch, &failure),
        _ => return Err(Fault::new("host.stale_token", "A timer, an abort and the end cannot fail.")),
    }
    Ok(())
}

pub fn woke(batch: &mut Batch, id: &str) -> Result<(), Fault> {
    // A timer that is no longer owed is no news: what it was for has happened.
    let key = EffectKey::parse(batch.state.run_id(), id).filter(|key| key.is_wake());
    let Some(key) = key else {
        return owed(batch, id).map(|_| ());
    };
    if !batch.state.is_owed(&key) {
        return Ok(());
    }
    match key {
        EffectKey::WakeDeadline(at_ms) if batch.now >= at_ms as f64 => ending::deadline(batch),
        EffectKey::WakeRetry { invocation, round, attempt } => model::retry(batch, invocation, round, attempt),
        EffectKey::WakeCommit { place, attempt } => commit::retry(batch, place, attempt),
        EffectKey::WakeAwait(place) => delegation::wake_waits(batch, place.invocation, delegation::WaitEnd::TimedOut),
        _ => {}
    }
    Ok(())
}

pub fn late(batch: &mut Batch, id: &str, key: &EffectKey) {
    if !batch.state.late.contains(id) && !batch.state.is_ended() {
        let kind = key.path();
        let kind = kind.split('/').next().unwrap_or_default();
        batch.emit(Event::LateResult(LateResult { effect_id: id.into(), kind: kind.into() }));
    }
}

pub fn guide(batch: &mut Batch, text: &str) -> Result<(), Fault> {
    ended(batch)?;
    let text = text.trim();
    let chars = count::chars(text);
    if text.is_empty() {
        return Err(Fault::new("guidance.empty", "The note is empty."));
    }
    if chars > MAX_GUIDANCE_CHARS {
        return Err(Fault::new("guidance.too_large", format!("The note has {chars} characters; the limit is {MAX_GUIDANCE_CHARS}.")));
    }
    if batch.state.guidance.len() >= MAX_GUIDANCE_PENDING {
        return Err(Fault::new("guidance.full", format!("{MAX_GUIDANCE_PENDING} notes wait already; they are told before the next model call.")));
    }
    let guidance_id = batch.id(IdKind::Guidance, batch.state.counters.guidance);
    batch.emit(Event::GuidanceSubmitted(GuidanceSubmitted { guidance_id, text: text.into(), chars }));
    let owner = batch.state.owner;
    delegation::wake_waits(batch, owner, delegation::WaitEnd::Condition);
    Ok(())
}

/// Rule F7: the owner's current turn is broken off; its children go on and it is asked again.
pub fn interrupt(batch: &mut Batch, reason: Option<String>) -> Result<(), Fault> {
    ended(batch)?;
    let owner = batch.state.owner;
    match batch.work(owner).map(|work| work.step.clone()) {
        Some(Step::Calling(_)) => {
            let (invocation_id, round) = (batch.invocation_id(owner), batch.round(owner));
            batch.emit(Event::ModelCallInterrupted(ModelCallInterrupted { invocation_id, round, reason: reason.map(Into::into) }));
            model::next_round(batch, owner);
        }
        Some(Step::Turn(turn)) if !turn.calls.iter().any(|call| matches!(call.state, CallState::Committing { .. })) => {
            turn::interrupt_open_calls(batch, owner, "turns.interrupted");
            turn::advance(batch, owner);
        }
        _ => {}
    }
    Ok(())
}

pub fn cancel_task(batch: &mut Batch, task_id: &str, expected_version: Option<u32>, reason: Option<String>) -> Result<(), Fault> {
    let Some(task) = batch.state.task_by_id(task_id).cloned() else {
        return Err(Fault::new("task.not_found", format!("This run has no task {task_id:?}.")).detail("taskId", task_id));
    };
    if expected_version.is_some_and(|version| version != task.version) {
        return Err(Fault::new("task.version_conflict", format!("The task is at version {}; {} was expected.", task.version, expected_version.unwrap_or(0))).detail("version", task.version));
    }
    if !task.is_open() {
        return Err(Fault::new("task.already_finished", format!("The task is {} already.", task.status().word())).detail("status", task.status().word()));
    }
    if !task.returns() {
        return Err(Fault::new("task.not_delegated", "A handoff cannot be cancelled as a task: cancel the run, or take it over."));
    }
    ended(batch)?;
    delegation::request_cancel(batch, task.ordinal, reason.as_deref());
    delegation::tasks_moved(batch);
    Ok(())
}

pub fn fail_run(batch: &mut Batch, code: String, message: String) -> Result<(), Fault> {
    give_up(batch, Failure::new(code, message).user_retryable());
    Ok(())
}

/// Fails the run from outside its agents: what is under way is stopped first.
pub fn give_up(batch: &mut Batch, failure: Failure) {
    if batch.state.is_open() {
        ending::fail(batch, Doc::of(&failure));
    }
}

/// Whether any profile of the team lists a host tool of this name.
pub fn exists_in_team(batch: &Batch, canonical: &str) -> bool {
    batch.state.team.profiles.iter().any(|profile| profile.lists_tool(canonical))
}
