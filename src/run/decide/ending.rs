//! How invocations and the run end. Whoever ends, its children end with it; a run ends when nobody is left.

use serde_json::{Map, Value, json};

use crate::domain::failure::Failure;
use crate::domain::fault::Fault;
use crate::domain::kinds::{InvocationKind, InvocationStatus, TaskStatus};
use crate::journal::event::*;
use crate::journal::{Doc, Event};
use crate::policy::FallbackCause;
use crate::run::batch::Batch;
use crate::run::effect::EffectKey;
use crate::run::state::*;

use super::{delegation, files, handoff, host, turn};

/// An invocation's part is done. `returned` is the return-mode task that it has just closed, if that is what it did.
pub fn complete(batch: &mut Batch, ordinal: Ordinal, returned: Option<Ordinal>) {
    let task = batch.state.invocation(ordinal).and_then(|invocation| invocation.task);
    if let (Some(task), None) = (task, returned) {
        delegation::task_changed(batch, task, TaskStatus::Completed, None, None);
    }
    ended(batch, ordinal, InvocationStatus::Completed, Doc::null());
    stop_children(batch, ordinal);
}

fn ended(batch: &mut Batch, ordinal: Ordinal, status: InvocationStatus, error: Doc) {
    let Some(invocation) = batch.state.invocation(ordinal).cloned() else { return };
    if !invocation.status().may_become(status) {
        return;
    }
    let end = InvocationEnded { invocation_id: invocation.id.clone(), profile_id: invocation.profile_id.clone(), kind: invocation.kind, status, error };
    batch.emit(match status {
        InvocationStatus::Completed => Event::InvocationCompleted(end),
        InvocationStatus::Failed => Event::InvocationFailed(end),
        InvocationStatus::Transferred => Event::InvocationTransferred(end),
        _ => Event::InvocationCancelled(end),
    });
}

/// Rule D8: unfinished children are asked to stop; queued ones end at once.
pub fn stop_children(batch: &mut Batch, ordinal: Ordinal) {
    let children: Vec<Ordinal> = batch.state.open_children(ordinal).map(|task| task.ordinal).collect();
    for child in children {
        let reason = batch.say("turns.caller_ended", &[]);
        delegation::request_cancel(batch, child, Some(&reason));
    }
}

/// An invocation failed for good: a child fails its task only, an owner fails the run (rules D3, F1).
pub fn invocation_failed(batch: &mut Batch, ordinal: Ordinal, failure: Failure) {
    let Some(invocation) = batch.state.invocation(ordinal).cloned() else { return };
    turn::interrupt_open_calls(batch, ordinal, "turns.interrupted");
    if batch.work(ordinal).and_then(Work::turn).is_some() {
        turn::report(batch, ordinal);
    }
    if let Some(task) = invocation.task {
        delegation::task_changed(batch, task, TaskStatus::Failed, None, Some(format!("{}: {}", failure.code, failure.message)));
    }
    let error = Doc::of(&failure);
    ended(batch, ordinal, InvocationStatus::Failed, error.clone());
    stop_children(batch, ordinal);
    if invocation.kind == InvocationKind::Subagent {
        delegation::tasks_moved(batch);
        settle_run(batch);
    } else {
        fail(batch, error);
    }
}

/// The successor could not be started: the fallback takes over where it may (rule H7).
pub fn start_failed(batch: &mut Batch, ordinal: Ordinal, failure: Failure) {
    let foreground = batch.state.invocation(ordinal).is_some_and(|invocation| invocation.kind == InvocationKind::Handoff);
    let target = if foreground && batch.state.is_open() { handoff::fallback(batch, ordinal, FallbackCause::StartFailed) } else { None };
    let Some(target) = target else { return invocation_failed(batch, ordinal, failure) };
    let incoming = batch.state.invocation(ordinal).and_then(|invocation| invocation.task);
    let brief: Map<String, Value> = incoming.and_then(|task| batch.state.task(task)).map(|task| task.task.parse()).unwrap_or_default();
    handoff::fallback_used(batch, ordinal, FallbackCause::StartFailed, &target);
    let successor = handoff::accept(batch, &handoff::Handover { source: ordinal, target: &target, brief: &brief, call_id: None });
    if let Some(task) = incoming {
        delegation::task_changed(batch, task, TaskStatus::Failed, None, Some(format!("{}: {}", failure.code, failure.message)));
    }
    ended(batch, ordinal, InvocationStatus::Failed, Doc::of(&failure));
    handoff::start(batch, &successor);
}

/// Rule T9: the fallback takes over from an agent that is stuck, else it fails.
pub fn stuck(batch: &mut Batch, ordinal: Ordinal, count: u32) {
    let foreground = batch.state.invocation(ordinal).is_some_and(|invocation| invocation.kind != InvocationKind::Subagent);
    let target = if foreground { handoff::fallback(batch, ordinal, FallbackCause::Stuck) } else { None };
    let Some(target) = target else {
        let failure = Failure::new("agent.stuck", format!("{count} calls in a row were refused (limits.maxInvalidCalls)."));
        return invocation_failed(batch, ordinal, failure.user_retryable());
    };
    let name = batch.state.invocation(ordinal).map(|invocation| invocation.display_name.to_string()).unwrap_or_default();
    let brief = json!({ "objective": batch.say("turns.stuck_objective", &[]), "reason": batch.say("turns.stuck_reason", &[("agent", &name), ("count", &count.to_string())]) });
    let brief = brief.as_object().cloned().unwrap_or_default();
    handoff::fallback_used(batch, ordinal, FallbackCause::Stuck, &target);
    hand_on(batch, ordinal, &target, &brief);
}

/// Takes the run from an owner and gives it to another, not asked for by the owner (fallback, takeover).
pub fn hand_on(batch: &mut Batch, ordinal: Ordinal, target: &crate::domain::profile::Profile, brief: &Map<String, Value>) {
    let successor = handoff::accept(batch, &handoff::Handover { source: ordinal, target, brief, call_id: None });
    stop_children(batch, ordinal);
    handoff::transfer(batch, ordinal, successor);
}

/// The run fails: everyone else is stopped first.
pub fn fail(batch: &mut Batch, error: Doc) {
    if batch.state.is_open() {
        batch.emit(Event::RunFailing(RunFailing { error }));
    }
    stop_everyone(batch);
}

pub fn finish_run(batch: &mut Batch) {
    batch.emit(Event::RunFinishing(RunFinishing {}));
    stop_everyone(batch);
}

pub fn cancel_run(batch: &mut Batch, reason: Option<String>) -> Result<(), Fault> {
    if matches!(batch.state.course, Course::Open | Course::Failing { .. }) {
        batch.emit(Event::CancelRequested(CancelRequested { reason: reason.map(Into::into) }));
        stop_everyone(batch);
    }
    Ok(())
}

/// Children first, the owner last; whoever has nothing under way ends at once.
fn stop_everyone(batch: &mut Batch) {
    let mut live = batch.state.live.clone();
    live.sort_by_key(|ordinal| (*ordinal == batch.state.owner, std::cmp::Reverse(*ordinal)));
    for ordinal in live {
        stop_if_idle(batch, ordinal);
    }
    settle_run(batch);
}

/// Ends an invocation that was asked to stop, once nothing of it is under way.
pub fn stop_if_idle(batch: &mut Batch, ordinal: Ordinal) {
    let live = batch.state.invocation(ordinal).is_some_and(|invocation| invocation.is_live());
    if live && batch.state.is_stopping(ordinal) && batch.state.aborts_owed(ordinal).is_empty() {
        stopped(batch, ordinal);
    }
}

/// The end of an invocation that was asked to stop.
pub fn stopped(batch: &mut Batch, ordinal: Ordinal) {
    if !batch.state.aborts_owed(ordinal).is_empty() {
        return;
    }
    match (&batch.state.course, ordinal == batch.state.owner) {
        (Course::Failing { error }, true) => {
            let error = error.clone();
            close_turn(batch, ordinal);
            if let Some(task) = batch.state.invocation(ordinal).and_then(|invocation| invocation.task) {
                let failure: Failure = error.parse();
                delegation::task_changed(batch, task, TaskStatus::Failed, None, Some(format!("{}: {}", failure.code, failure.message)));
            }
            ended(batch, ordinal, InvocationStatus::Failed, error);
            stop_children(batch, ordinal);
        }
        _ => {
            let reason = match &batch.state.course {
                Course::Cancelling { reason } => reason.as_ref().map(|text| text.as_str().to_owned()),
                _ => None,
            };
            cancel_invocation(batch, ordinal, reason.as_deref());
        }
    }
    settle_run(batch);
}

fn close_turn(batch: &mut Batch, ordinal: Ordinal) {
    turn::interrupt_open_calls(batch, ordinal, "turns.interrupted");
    if batch.work(ordinal).and_then(Work::turn).is_some() {
        turn::report(batch, ordinal);
    }
}

/// Cancels one invocation and its task; each is reported once (rule D8).
pub fn cancel_invocation(batch: &mut Batch, ordinal: Ordinal, reason: Option<&str>) {
    close_turn(batch, ordinal);
    let task = batch.state.invocation(ordinal).and_then(|invocation| invocation.task);
    if let Some(task) = task {
        delegation::task_changed(batch, task, TaskStatus::Cancelled, None, reason.map(str::to_owned));
    }
    ended(batch, ordinal, InvocationStatus::Cancelled, Doc::null());
    stop_children(batch, ordinal);
    if batch.state.is_open() {
        delegation::tasks_moved(batch);
    }
}

/// The host has stopped an effect, or never had it.
pub fn aborted(batch: &mut Batch, id: &str) -> Result<(), Fault> {
    let key = EffectKey::parse(batch.state.run_id(), id);
    let Some(EffectKey::Abort(path)) = &key else {
        return Err(Fault::new("host.stale_token", format!("{id:?} is not the id of an abort of this run.")).detail("id", id));
    };
    let owed = key.as_ref().is_some_and(|key| batch.state.is_owed(key));
    if owed {
        batch.emit(Event::AbortCompleted(AbortCompleted { effect_id: path.as_str().into() }));
        if let Some(ordinal) = EffectKey::parse(batch.state.run_id(), &format!("{}/{path}", batch.state.run_id())).and_then(|target| target.invocation()) {
            stop_if_idle(batch, ordinal);
        }
    }
    Ok(())
}

/// Ends the run when nobody is left (rules F2, D7).
pub fn settle_run(batch: &mut Batch) {
    if !batch.state.live.is_empty() {
        return;
    }
    match batch.state.course.clone() {
        Course::Open | Course::Ended { .. } => {}
        Course::Finishing => {
            if batch.state.promoted || !needs_promotion(batch) {
                finished(batch);
            }
        }
        Course::Cancelling { reason } => batch.emit(Event::RunCancelled(RunEnded { error: Doc::null(), reason })),
        Course::Failing { error } => failed_end(batch, error),
    }
}

fn failed_end(batch: &mut Batch, error: Doc) {
    let end = RunEnded { error, reason: None };
    let preserved = !batch.state.ledger.commits.is_empty();
    batch.emit(if preserved { Event::RunPartialSuccess(end) } else { Event::RunFailed(end) });
}

fn finished(batch: &mut Batch) {
    match batch.state.persist_error.clone() {
        None => batch.emit(Event::RunCompleted(RunEnded { error: Doc::null(), reason: None })),
        Some(error) => {
            let detail: Value = error.parse();
            let text = |name: &str| detail.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            failed_end(batch, Doc::of(&Failure::new(text("code"), text("message")).user_retryable()));
        }
    }
}

/// Whether `persist/` differs from what the run began with, and there is a chat to keep it for (rule W3).
fn needs_promotion(batch: &Batch) -> bool {
    let Some(frozen) = batch.state.frozen.as_ref().filter(|frozen| frozen.stable_chat_id.is_some()) else { return false };
    let now = files::under(batch, "persist");
    now.len() != frozen.persist_files.len() || now.iter().any(|(path, text)| frozen.persist_files.get(path.as_str()).map(|text| &**text) != text.as_str())
}

pub fn promoted(batch: &mut Batch) -> Result<(), Fault> {
    let Some(frozen) = batch.state.frozen.clone() else { return Ok(()) };
    let paths = files::under(batch, "persist").keys().cloned().collect();
    batch.emit(Event::PersistCommitted(PersistCommitted { state_id: frozen.run_id.clone(), base_state_id: frozen.persist_base_state_id.clone(), paths }));
    settle_run(batch);
    Ok(())
}

pub fn promotion_failed(batch: &mut Batch, failure: &Failure) {
    batch.emit(Event::PersistFailed(PersistFailed { code: failure.code.as_str().into(), message: failure.message.as_str().into() }));
    settle_run(batch);
}

/// The run's time is over.
pub fn deadline(batch: &mut Batch) {
    let ms = batch.state.limits().deadline_ms;
    let failure = Failure::new("run.deadline_exceeded", format!("The run took longer than its {ms} ms (limits.deadlineMs)."));
    host::give_up(batch, failure.user_retryable());
}
