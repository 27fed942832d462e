//! The projection for people: who worked when, who owned the run, what was delegated, now or at any seq.

use serde_json::{Value, json};

use crate::domain::kinds::{InvocationKind, InvocationStatus, RunStatus, TaskStatus};
use crate::domain::time::rfc3339;
use crate::run::state::{Invocation, Mark, State, Task};

/// The contract's Timeline at a seq; None is now.
pub fn timeline(state: &State, at_seq: Option<u32>) -> Value {
    let at = at_seq.unwrap_or(u32::MAX);
    let invocations: Vec<&Invocation> = state.invocations.values().map(|invocation| &**invocation).filter(|invocation| began(&invocation.marks, at)).collect();
    let tasks = state.tasks.values().filter(|task| began(&task.marks, at));
    let foreground: Vec<&str> = invocations.iter().filter(|invocation| invocation.kind != InvocationKind::Subagent).map(|invocation| &*invocation.id).collect();
    json!({
        "runId": state.run_id(),
        "status": state.statuses.values().filter(|mark| mark.seq <= at).last().map_or(RunStatus::Created, |mark| mark.what),
        "owner": owner(state, at),
        "foregroundInvocationIds": foreground,
        "invocations": invocations.iter().map(|invocation| invocation_row(state, invocation, at)).collect::<Vec<_>>(),
        "delegationEdges": tasks.map(|task| edge(state, task, at)).collect::<Vec<_>>(),
    })
}

fn began<S>(marks: &[Mark<S>], at: u32) -> bool {
    marks.first().is_some_and(|mark| mark.seq <= at)
}

fn then<S: Copy>(marks: &[Mark<S>], at: u32) -> Option<Mark<S>> {
    marks.iter().rev().find(|mark| mark.seq <= at).copied()
}

fn owner(state: &State, at: u32) -> Value {
    let ended = state.is_ended() && state.head.seq <= at;
    let found = state.owners.iter().filter(|(_, mark)| mark.seq <= at).last();
    match found.and_then(|(version, mark)| Some((version, state.invocation(mark.what)?))) {
        Some((version, invocation)) if !ended => json!({ "invocationId": &*invocation.id, "profileId": &*invocation.profile_id, "version": version }),
        _ => Value::Null,
    }
}

fn invocation_row(state: &State, invocation: &Invocation, at: u32) -> Value {
    let now = then(&invocation.marks, at);
    json!({
        "invocationId": &*invocation.id,
        "parentInvocationId": invocation.parent.and_then(|parent| state.invocation(parent)).map(|parent| parent.id.clone()),
        "profileId": &*invocation.profile_id,
        "displayName": &*invocation.display_name,
        "kind": invocation.kind,
        "status": now.map_or(InvocationStatus::Created, |mark| mark.what),
        "exitPolicy": invocation.exit_policy,
        "rounds": invocation.rounds.iter().filter(|seq| **seq <= at).count(),
        "createdAt": invocation.marks.first().map(|mark| rfc3339(mark.at_ms)),
        "updatedAt": now.map(|mark| rfc3339(mark.at_ms)),
    })
}

fn edge(state: &State, task: &Task, at: u32) -> Value {
    let now = then(&task.marks, at);
    let status = now.map_or(TaskStatus::Queued, |mark| mark.what);
    let cancel = task.cancel_requested.filter(|mark| mark.seq <= at);
    let changes = task.marks.iter().filter(|mark| mark.seq <= at).count() + usize::from(cancel.is_some());
    let id = |ordinal| state.invocation(ordinal).map(|invocation| invocation.id.clone());
    let ended = status.is_terminal();
    json!({
        "taskId": &*task.id,
        "sourceInvocationId": id(task.parent),
        "targetInvocationId": id(task.child),
        "targetProfileId": &*task.target,
        "workspaceKey": &*task.key,
        "continuation": task.continuation,
        "status": status,
        "title": task.title.as_ref().map(|title| title.as_str()),
        "version": changes,
        "cancelRequestedAt": cancel.map(|mark| rfc3339(mark.at_ms)),
        "resultRef": task.result_ref.as_ref().filter(|_| ended),
        "error": task.error.as_ref().filter(|_| ended).map(|error| error.as_str()),
        "createdAt": task.marks.first().map(|mark| rfc3339(mark.at_ms)),
        "updatedAt": now.map(|mark| rfc3339(mark.at_ms)),
    })
}
