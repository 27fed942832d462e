//! Closing calls: handoff, finish, return. They are settled after all other calls of their turn, and the first
//! accepted one wins (rules T2, T3, T4).

use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::domain::kinds::{InvocationKind, TaskStatus};
use crate::domain::refusal::Refusal;
use crate::journal::event::*;
use crate::journal::{Doc, Event};
use crate::render::results;
use crate::run::batch::{Batch, Outcome};
use crate::run::effect::CallPlace;
use crate::run::state::*;
use crate::tools::validate::{self, Checked};
use crate::tools::{CoreTool, args};
use crate::workspace::paths;

use super::{commit, delegation, ending, files, handoff, turn};

/// What an accepted closing call does to its invocation.
pub enum Closed {
    Transferred(handoff::Successor),
    Finished,
    Returned { task: Ordinal, result_ref: String },
}

/// Settles the closing calls of a turn; true when one was accepted and the invocation is over.
pub fn settle(batch: &mut Batch, invocation: Ordinal) -> bool {
    let round = batch.round(invocation);
    let count = batch.work(invocation).and_then(Work::turn).map_or(0, |turn| turn.calls.len() as u32);
    let mut closed: Option<Closed> = None;
    for index in 0..count {
        let place = CallPlace { invocation, round, index };
        let Some(call) = batch.turn_call(place).cloned() else { continue };
        match &call.state {
            CallState::Settled(_) => {}
            CallState::CommittedToFinish(path) => commit_and_finish(batch, place, path, &mut closed),
            _ => one(batch, place, &call, &mut closed),
        }
    }
    let Some(closed) = closed else { return false };
    turn::report(batch, invocation);
    conclude(batch, invocation, closed);
    true
}

fn one(batch: &mut Batch, place: CallPlace, call: &TurnCall, closed: &mut Option<Closed>) {
    if closed.is_some() {
        return batch.refuse(place, &Refusal::new("agent.already_closed", "turns.already_closed"));
    }
    let Some(tool) = CoreTool::from_canonical(&call.canonical) else { return };
    let arguments: Map<String, Value> = call.arguments.parse();
    let checked = match validate::core_arguments(tool, &arguments, &batch.state.limits()) {
        Ok(checked) => checked,
        Err(refusal) => return batch.refuse(place, &refusal),
    };
    let done = match tool {
        CoreTool::Handoff => handoff::attempt(batch, place, &checked),
        CoreTool::Return => task_return(batch, place, &checked),
        _ => finish(batch, place),
    };
    match done {
        Ok((outcome, how)) => {
            let outcome = turn::noting_ignored(batch, outcome, &checked.ignored);
            batch.settle(place, outcome);
            *closed = Some(how);
        }
        Err(refusal) => batch.refuse(place, &refusal),
    }
}

/// Rule W4: the commit stands whatever becomes of the finish.
fn commit_and_finish(batch: &mut Batch, place: CallPlace, path: &str, closed: &mut Option<Closed>) {
    let mut outcome = commit::committed(batch, place, path);
    let tried = if closed.is_some() { Err(Refusal::new("agent.already_closed", "turns.already_closed")) } else { finish(batch, place) };
    let note = match tried {
        Ok((finished, how)) => {
            *closed = Some(how);
            outcome.content = batch.say("workspace.committed", &[("path", path)]);
            finished.content
        }
        Err(refusal) => batch.say("workspace.not_finished", &[("why", &batch.refused(&refusal).content)]),
    };
    outcome.content = format!("{}\n{note}", outcome.content);
    batch.settle(place, outcome);
}

/// Rule T3: a changing call of the turn that failed and was not made good later holds a closing call back.
pub fn after_failed_call(batch: &Batch, invocation: Ordinal) -> Result<(), Refusal> {
    let Some(turn) = batch.work(invocation).and_then(Work::turn) else { return Ok(()) };
    let round = batch.round(invocation);
    let subject = |call: &TurnCall| {
        let path = call.arguments.parse::<Value>().get("path").and_then(Value::as_str).map(|path| paths::normalise(path).unwrap_or_else(|_| path.to_owned()));
        (call.canonical.clone(), path)
    };
    for (index, call) in turn.calls.iter().enumerate() {
        let CallState::Settled(result) = &call.state else { continue };
        let changing = match CoreTool::from_canonical(&call.canonical) {
            Some(tool) => tool.is_changing() && !tool.is_closing(),
            None => turn::host_tool(batch, CallPlace { invocation, round, index: index as u32 }).is_some_and(|tool| !tool.read_only),
        };
        if !result.is_error || !changing || result.error_code.as_deref() == Some("tool.approval_refused") {
            continue;
        }
        let later = turn.calls.iter().skip(index + 1).filter(|later| subject(later) == subject(call));
        let made_good = later.into_iter().any(|later| match &later.state {
            CallState::Settled(result) => !result.is_error,
            state => matches!(state, CallState::CommittedToFinish(_)),
        });
        if !made_good {
            return Err(Refusal::new("agent.closing_after_failed_call", "turns.closing_after_failed_call").arg("tool", call.name.to_string()));
        }
    }
    Ok(())
}

fn finish(batch: &mut Batch, place: CallPlace) -> Result<(Outcome, Closed), Refusal> {
    after_failed_call(batch, place.invocation)?;
    let invocation = batch.state.invocation(place.invocation).cloned();
    if invocation.is_none_or(|invocation| invocation.kind == InvocationKind::Subagent) {
        return Err(Refusal::new("agent.child_finish_denied", "turns.child_finish_denied"));
    }
    let background = batch.state.frozen.as_ref().is_some_and(|frozen| frozen.background);
    if !background && batch.state.ledger.commits.is_empty() {
        let has_commit = has(batch, place.invocation, "workspace.commit");
        let key = if has_commit { "turns.commit_required" } else { "turns.commit_required_elsewhere" };
        return Err(Refusal::new("agent.foreground_commit_required", key));
    }
    let stopped: Vec<String> = batch.state.open_children(place.invocation).map(|task| task.key.to_string()).collect();
    let content = results::finished(batch.locale, &stopped);
    Ok((Outcome::ok(content, json!({ "cancelled": stopped })), Closed::Finished))
}

/// Rule D6: everything is checked before anything is written.
fn task_return(batch: &mut Batch, place: CallPlace, checked: &Checked) -> Result<(Outcome, Closed), Refusal> {
    after_failed_call(batch, place.invocation)?;
    let args = args::Return::of(checked)?;
    let task = batch.state.invocation(place.invocation).and_then(|invocation| invocation.task).and_then(|task| batch.state.task(task)).cloned();
    let task = task.filter(|task| task.returns()).ok_or_else(|| Refusal::new("agent.task_return_denied", "turns.task_return_denied"))?;
    let mut output = args.output;
    normalise_artifacts(batch, place.invocation, &mut output)?;
    let summary_ref = format!("summaries/{}-result.md", task.key);
    let (result_ref, capsule) = delegation::capsule(batch, &task, &summary_ref, &output);
    let status = if args.failed { TaskStatus::Failed } else { TaskStatus::Completed };
    let summary_text = results::result_file(batch.locale, status, &args.summary, &output);
    files::write(batch, None, &result_ref, &capsule, WriteMode::Replace)?;
    files::write(batch, None, &summary_ref, &summary_text, WriteMode::Replace)?;
    output.shift_remove("summary");
    output.shift_remove("status");
    batch.emit(Event::TaskReturned(TaskReturned {
        task_id: task.id.clone(),
        parent_invocation_id: batch.invocation_id(task.parent),
        child_invocation_id: batch.invocation_id(task.child),
        status,
        result_ref: result_ref.as_str().into(),
        summary_ref: summary_ref.as_str().into(),
        summary: args.summary.as_str().into(),
        output: Doc::of(&output),
    }));
    let content = batch.say("turns.returned", &[("path", &summary_ref)]);
    let outcome = Outcome::ok(content, json!({ "status": status, "summaryRef": summary_ref })).with_refs(vec![summary_ref]);
    Ok((outcome, Closed::Returned { task: task.ordinal, result_ref }))
}

fn normalise_artifacts(batch: &Batch, invocation: Ordinal, output: &mut Map<String, Value>) -> Result<(), Refusal> {
    let access = files::access(batch, invocation);
    for artifact in output.get_mut("artifacts").and_then(Value::as_array_mut).into_iter().flatten() {
        let raw = artifact.get("path").and_then(Value::as_str).unwrap_or_default();
        let path = paths::normalise(raw)?;
        access.check_visible(&path)?;
        artifact["path"] = path.into();
    }
    Ok(())
}

fn conclude(batch: &mut Batch, invocation: Ordinal, closed: Closed) {
    match closed {
        Closed::Transferred(successor) => handoff::transfer(batch, invocation, successor),
        Closed::Finished => {
            loop_finished(batch, invocation);
            ending::complete(batch, invocation, None);
            ending::finish_run(batch);
        }
        Closed::Returned { task, result_ref } => {
            loop_finished(batch, invocation);
            let failed = batch.state.task(task).and_then(|task| task.result.clone()).is_some_and(|result: Rc<TaskResult>| result.status == TaskStatus::Failed);
            let status = if failed { TaskStatus::Failed } else { TaskStatus::Completed };
            delegation::task_changed(batch, task, status, Some(result_ref.as_str().into()), None);
            ending::complete(batch, invocation, Some(task));
            delegation::tasks_moved(batch);
        }
    }
}

pub fn loop_finished(batch: &mut Batch, invocation: Ordinal) {
    let (invocation_id, round) = (batch.invocation_id(invocation), batch.round(invocation));
    let commit_count = batch.state.ledger.commits.len() as u32;
    batch.emit(Event::LoopFinished(LoopFinished { invocation_id, round, commit_count }));
}

/// Whether the invocation was given the tool.
pub fn has(batch: &Batch, invocation: Ordinal, canonical: &str) -> bool {
    batch.work(invocation).is_some_and(|work| work.tool_names.iter().any(|tool| &*tool.canonical_name == canonical))
}

/// Whether its profile lists the tool, and its kind and authority leave it.
pub fn profile_lists(batch: &Batch, invocation: Ordinal, canonical: &str) -> bool {
    let (Some(found), Some(work)) = (batch.state.invocation(invocation), batch.work(invocation)) else { return false };
    let nests = found.depth < batch.state.limits().max_delegation_depth;
    let authority = batch.state.frozen.as_ref().and_then(|frozen| frozen.authority.clone());
    crate::domain::profile::effective_tools(&work.profile, authority.as_ref(), found.kind, nests).iter().any(|name| name == canonical)
}

/// Rule T9: too many refused calls in a row; true when the invocation is over.
pub fn stuck(batch: &mut Batch, invocation: Ordinal) -> bool {
    let Some(work) = batch.work(invocation).cloned() else { return true };
    let limit = batch.state.limits().max_invalid_calls;
    if work.human || work.invalid_streak < limit.max(1) {
        return false;
    }
    let invocation_id = batch.invocation_id(invocation);
    batch.emit(Event::Stuck(Stuck { invocation_id, count: work.invalid_streak }));
    ending::stuck(batch, invocation, work.invalid_streak);
    true
}
