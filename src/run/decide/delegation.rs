//! Asking another agent for a task and getting its result back (rules D1 to D7).

use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::domain::ids::IdKind;
use crate::domain::kinds::{Continuation, ExitPolicy, InvocationKind, TaskStatus};
use crate::domain::nearest::nearest;
use crate::domain::profile::Profile;
use crate::domain::refusal::Refusal;
use crate::journal::event::*;
use crate::journal::{Doc, Event};
use crate::policy::{DelegateFacts, Operation, catalogue, check_delegate};
use crate::render::brief::{TaskBriefFacts, render_task_brief};
use crate::render::results::{self, ResultView};
use crate::run::batch::{Batch, Outcome};
use crate::run::effect::CallPlace;
use crate::run::state::*;
use crate::tools::args;
use crate::tools::validate::Checked;

use super::{closing, ending, handoff, prompt, turn};

type Done = Result<Outcome, Refusal>;

/// A free handle: the profile's id, then `-002`, `-003`, … (rule D1).
pub fn free_key(state: &State, profile_id: &str) -> Id {
    let mut key = profile_id.to_owned();
    let mut n = 1;
    while state.keys.contains(key.as_str()) {
        n += 1;
        key = format!("{profile_id}-{n:03}");
    }
    key.into()
}

pub fn delegate(batch: &mut Batch, place: CallPlace, checked: &Checked) -> Done {
    let args = args::Delegate::of(checked)?;
    let caller = batch.state.invocation(place.invocation).cloned().ok_or_else(|| Refusal::new("agent.delegation_policy_denied", "agents.cannot_delegate"))?;
    let profile = batch.work(place.invocation).map(|work| work.profile.clone()).unwrap_or_default();
    let target = {
        let limits = batch.state.limits();
        let team: Vec<&Profile> = batch.state.team.profiles.iter().map(|profile| &**profile).collect();
        let facts = DelegateFacts {
            source: &profile,
            team: &team,
            target: &args.agent_id,
            used_by_caller: caller.delegated,
            used_in_run: batch.state.counters.tasks,
            max_in_run: limits.max_tasks,
            depth: caller.depth,
            max_depth: limits.max_delegation_depth,
        };
        check_delegate(&facts)?.clone()
    };
    let key = register(batch, &caller, &target, &args, batch.turn_call(place).map(|call| call.id.clone()));
    start_queued(batch);
    let queued = batch.state.keys.get(&*key).and_then(|task| batch.state.task(*task)).is_some_and(|task| task.status() == TaskStatus::Queued);
    let content = results::delegated(batch.locale, &target.id, &key, queued, closing::has(batch, place.invocation, "agent.await"));
    Ok(Outcome::ok(content, json!({ "taskId": &*key, "agentId": target.id, "status": if queued { "queued" } else { "running" } })))
}

fn register(batch: &mut Batch, caller: &Invocation, target: &Profile, args: &args::Delegate, call_id: Option<Id>) -> Id {
    let key = free_key(&batch.state, &target.id);
    let ordinal = batch.state.tasks.len() as u32;
    let task_id = batch.id(IdKind::Task, ordinal);
    let child_id = batch.id(IdKind::Invocation, batch.state.invocations.len() as u32);
    let refs = handoff::ref_states(batch, &args.task, target);
    let brief = render_task_brief(batch.locale, &args.task, &TaskBriefFacts { refs: &refs, data_scopes: &handoff::data_scopes(batch) });
    batch.emit(Event::InvocationCreated(InvocationCreated {
        invocation_id: child_id.clone(),
        parent_invocation_id: Some(caller.id.clone()),
        profile_id: target.id.as_str().into(),
        display_name: target.display_name().into(),
        kind: InvocationKind::Subagent,
        exit_policy: ExitPolicy::TaskReturnRequired,
        task_id: Some(task_id.clone()),
        workspace_key: Some(key.clone()),
        depth: caller.depth + 1,
    }));
    batch.emit(Event::TaskRegistered(TaskRegistered {
        task_id: task_id.clone(),
        parent_invocation_id: caller.id.clone(),
        child_invocation_id: child_id.clone(),
        target_profile_id: target.id.as_str().into(),
        workspace_key: key.clone(),
        continuation: Continuation::ReturnToParent,
        status: TaskStatus::Queued,
        task: Doc::of(&args.task),
        title: args.task.get("title").and_then(Value::as_str).map(Into::into),
        brief: brief.into(),
        created_by_tool_call_id: call_id,
    }));
    batch.emit(Event::DelegateStarted(DelegateStarted {
        task_id,
        parent_invocation_id: caller.id.clone(),
        child_invocation_id: child_id,
        target_profile_id: target.id.as_str().into(),
        workspace_key: key.clone(),
    }));
    key
}

/// Starts queued tasks while there is room, first come first served (rule D2).
pub fn start_queued(batch: &mut Batch) {
    if !batch.state.is_open() {
        return;
    }
    let queued: Vec<Rc<Task>> = batch.state.open_tasks.iter().filter_map(|task| batch.state.task(*task)).filter(|task| task.returns() && task.status() == TaskStatus::Queued).cloned().collect();
    for task in queued {
        let running = |of: Option<Ordinal>| {
            let tasks = batch.state.open_tasks.iter().filter_map(|ordinal| batch.state.task(*ordinal));
            tasks.filter(|other| other.returns() && other.status() == TaskStatus::Running && of.is_none_or(|parent| other.parent == parent)).count() as u32
        };
        if running(None) >= batch.state.limits().max_concurrent_tasks {
            return;
        }
        let own = batch.work(task.parent).map_or(u32::MAX, |work| work.profile.max_concurrent_invocations());
        if running(Some(task.parent)) >= own {
            continue;
        }
        task_changed(batch, task.ordinal, TaskStatus::Running, None, None);
        prompt::begin(batch, task.child);
    }
}

/// Records a task's next status, where the table allows it (rule V1).
pub fn task_changed(batch: &mut Batch, ordinal: Ordinal, status: TaskStatus, result_ref: Option<Id>, error: Option<String>) {
    let Some(task) = batch.state.task(ordinal).cloned() else { return };
    if !task.status().may_become(status) {
        return;
    }
    let change = TaskChanged {
        task_id: task.id.clone(),
        parent_invocation_id: batch.invocation_id(task.parent),
        child_invocation_id: batch.invocation_id(task.child),
        target_profile_id: task.target.clone(),
        status,
        result_ref,
        error: error.map(Into::into),
    };
    batch.emit(match status {
        TaskStatus::Completed => Event::TaskCompleted(change),
        TaskStatus::Failed => Event::TaskFailed(change),
        TaskStatus::Cancelled => Event::TaskCancelled(change),
        TaskStatus::Running | TaskStatus::Queued => Event::TaskStarted(change),
    });
}

/// How tasks stand, as a model is told.
pub fn views(batch: &Batch, tasks: &[Ordinal]) -> Vec<ResultView> {
    tasks.iter().filter_map(|ordinal| batch.state.task(*ordinal)).map(|task| view(task)).collect()
}

fn view(task: &Task) -> ResultView {
    ResultView {
        handle: task.key.to_string(),
        agent_id: task.target.to_string(),
        status: task.status(),
        cancelling: task.is_open() && task.cancel_requested.is_some(),
        error: task.error.as_ref().map(|error| error.as_str().to_owned()),
        summary: task.result.as_ref().map(|result| result.summary.as_str().to_owned()),
        summary_ref: task.result.as_ref().map(|result| result.summary_ref.to_string()),
        output: task.result.as_ref().map(|result| result.output.parse::<Map<String, Value>>()).unwrap_or_default(),
    }
}

fn own_tasks(batch: &Batch, caller: Ordinal) -> Vec<Rc<Task>> {
    batch.state.tasks.values().filter(|task| task.parent == caller && task.returns()).cloned().collect()
}

fn by_handle(own: &[Rc<Task>], handle: &str, code: &'static str) -> Result<Rc<Task>, Refusal> {
    let keys: Vec<&str> = own.iter().map(|task| &*task.key).collect();
    let found = own.iter().find(|task| *task.key == *handle.trim());
    found.cloned().ok_or_else(|| {
        let near = nearest(handle, &keys).unwrap_or_default();
        let key = if near.is_empty() { "agents.task_not_found" } else { "agents.task_not_found_near" };
        Refusal::new(code, key).arg("handle", handle).arg("handles", keys.join(", ")).arg("nearest", near)
    })
}

pub fn await_tasks(batch: &mut Batch, place: CallPlace, checked: &Checked) {
    if let Err(refusal) = begin_await(batch, place, checked) {
        return batch.refuse(place, &refusal);
    }
    check_await(batch, place, WaitEnd::Condition);
}

fn begin_await(batch: &mut Batch, place: CallPlace, checked: &Checked) -> Result<(), Refusal> {
    let args = args::Await::of(checked)?;
    let own = own_tasks(batch, place.invocation);
    let mut chosen = Vec::new();
    match &args.handles {
        None => chosen.extend(own.iter().map(|task| task.key.clone())),
        Some(handles) => {
            for handle in handles {
                chosen.push(by_handle(&own, handle, "agent.await_task_not_found")?.key.clone());
            }
        }
    }
    if chosen.is_empty() {
        return Err(Refusal::new("agent.no_child_tasks", "agents.no_child_tasks"));
    }
    let Some(call) = batch.turn_call(place).cloned() else { return Ok(()) };
    batch.emit(Event::AwaitStarted(AwaitStarted {
        parent_invocation_id: batch.invocation_id(place.invocation),
        round: place.round,
        index: place.index,
        call_id: call.id.clone(),
        mode: args.mode.word().into(),
        handles: chosen,
        timeout_ms: args.timeout_ms,
        until_ms: batch.now + args.timeout_ms,
    }));
    Ok(())
}

/// Why a wait is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    Condition,
    TimedOut,
    Interrupted,
}

/// Ends a wait whose condition holds, whose time is up, or which the user interrupted (rule D4).
pub fn check_await(batch: &mut Batch, place: CallPlace, end: WaitEnd) -> bool {
    let Some(call) = batch.turn_call(place).cloned() else { return false };
    let CallState::Awaiting(waiting) = &call.state else { return false };
    let tasks: Vec<Rc<Task>> = waiting.tasks.iter().filter_map(|task| batch.state.task(*task)).cloned().collect();
    let status_only = &*waiting.mode == "statusOnly";
    let met = match &*waiting.mode {
        "allCompleted" => tasks.iter().all(|task| !task.is_open()),
        "statusOnly" => true,
        _ => tasks.iter().any(|task| !task.is_open() && !task.told) || tasks.iter().all(|task| !task.is_open()),
    };
    let user_waits = !batch.state.guidance.is_empty() && place.invocation == batch.state.owner;
    let interrupted = end == WaitEnd::Interrupted || (!met && user_waits);
    let timed_out = end == WaitEnd::TimedOut || batch.now >= waiting.until_ms;
    if !met && !interrupted && !timed_out {
        return false;
    }
    let views: Vec<ResultView> = tasks.iter().map(|task| view(task)).collect();
    let note = if met { results::WaitNote::None } else if interrupted { results::WaitNote::Interrupted } else { results::WaitNote::TimedOut };
    let content = results::awaited(batch.locale, &views, note);
    batch.emit(Event::AwaitCompleted(AwaitCompleted {
        parent_invocation_id: batch.invocation_id(place.invocation),
        call_id: call.id.clone(),
        mode: waiting.mode.clone(),
        timed_out: !met && !interrupted,
        interrupted: !met && interrupted,
    }));
    if !status_only {
        tell(batch, place.invocation, &tasks);
    }
    let structured = json!({ "mode": &*waiting.mode, "timedOut": !met && !interrupted, "tasks": views.iter().map(ResultView::structured).collect::<Vec<_>>() });
    let outcome = Outcome::ok(content, structured);
    batch.settle(place, outcome);
    true
}

/// Finished tasks among these count as told from now on (rule D5).
fn tell(batch: &mut Batch, caller: Ordinal, tasks: &[Rc<Task>]) {
    let task_ids: Vec<Id> = tasks.iter().filter(|task| !task.is_open() && !task.told).map(|task| task.id.clone()).collect();
    if !task_ids.is_empty() {
        let invocation_id = batch.invocation_id(caller);
        batch.emit(Event::ResultsDelivered(ResultsDelivered { invocation_id, task_ids, text: None, placement: None }));
    }
}

/// After tasks changed: whoever waits is looked at again, and queued tasks get their room.
pub fn tasks_moved(batch: &mut Batch) {
    start_queued(batch);
    for ordinal in batch.state.live.clone() {
        wake_waits(batch, ordinal, WaitEnd::Condition);
    }
}

/// Looks at all waits of one agent; goes on with its turn where one ended.
pub fn wake_waits(batch: &mut Batch, ordinal: Ordinal, end: WaitEnd) {
    let round = batch.round(ordinal);
    let Some(turn) = batch.work(ordinal).and_then(Work::turn) else { return };
    let waiting: Vec<u32> = turn.calls.iter().enumerate().filter(|(_, call)| matches!(call.state, CallState::Awaiting(_))).map(|(index, _)| index as u32).collect();
    let mut ended = false;
    for index in waiting {
        ended |= check_await(batch, CallPlace { invocation: ordinal, round, index }, end);
    }
    if ended {
        turn::advance(batch, ordinal);
    }
}

pub fn cancel(batch: &mut Batch, place: CallPlace, checked: &Checked) -> Done {
    let args = args::Cancel::of(checked)?;
    let own = own_tasks(batch, place.invocation);
    if own.is_empty() {
        return Err(Refusal::new("agent.no_child_tasks", "agents.no_child_tasks"));
    }
    let task = by_handle(&own, &args.handle, "agent.cancel_task_not_found")?;
    if !task.is_open() {
        return Err(Refusal::new("agent.task_already_finished", "agents.task_already_finished").arg("handle", &*task.key).arg("status", task.status().word()));
    }
    request_cancel(batch, task.ordinal, args.reason.as_deref());
    let ended = batch.state.task(task.ordinal).is_some_and(|task| !task.is_open());
    let content = results::cancelled(batch.locale, &task.key, ended);
    Ok(Outcome::ok(content, json!({ "taskId": &*task.key, "status": if ended { "cancelled" } else { "cancelling" } })))
}

/// Queued tasks end at once; running ones are asked to stop and end when they have (rules D7, D8).
pub fn request_cancel(batch: &mut Batch, ordinal: Ordinal, reason: Option<&str>) {
    let Some(task) = batch.state.task(ordinal).cloned() else { return };
    if task.status() == TaskStatus::Queued {
        ending::cancel_invocation(batch, task.child, reason);
    } else if task.is_open() && task.cancel_requested.is_none() {
        batch.emit(Event::TaskCancelRequested(TaskCancelRequested {
            task_id: task.id.clone(),
            parent_invocation_id: batch.invocation_id(task.parent),
            child_invocation_id: batch.invocation_id(task.child),
            reason: reason.map(Into::into),
        }));
        let nested: Vec<Ordinal> = batch.state.open_children(task.child).map(|task| task.ordinal).collect();
        for child in nested {
            request_cancel(batch, child, reason);
        }
        ending::stop_if_idle(batch, task.child);
    }
}

pub fn list(batch: &mut Batch, place: CallPlace, checked: &Checked) -> Done {
    let args = args::AgentList::of(checked)?;
    let profile = batch.work(place.invocation).map(|work| work.profile.clone()).unwrap_or_default();
    let team: Vec<&Profile> = batch.state.team.profiles.iter().map(|profile| &**profile).collect();
    let mut entries: Vec<(String, Vec<&'static str>, String)> = Vec::new();
    for operation in [Operation::Delegate, Operation::Handoff] {
        if !args.wants(operation.word()) || !operation.allowed_to(&profile) {
            continue;
        }
        for target in catalogue(&profile, &team, operation) {
            match entries.iter_mut().find(|(id, _, _)| *id == target.id) {
                Some((_, operations, _)) => operations.push(operation.word()),
                None => entries.push((target.id.clone(), vec![operation.word()], target.description_for_agents().to_owned())),
            }
        }
    }
    entries.retain(|(id, _, description)| args.matches(id) || args.matches(description));
    entries.sort();
    entries.truncate(args.limit as usize);
    let content = results::agents(batch.locale, &entries);
    let agents: Vec<Value> = entries.iter().map(|(id, operations, description)| json!({ "agentId": id, "operations": operations, "description": description })).collect();
    Ok(Outcome::ok(content, json!({ "agents": agents })))
}

/// The result document beside the files, hidden from models (rule D6).
pub fn capsule(batch: &Batch, task: &Task, summary_ref: &str, output: &Map<String, Value>) -> (String, String) {
    let path = format!("agent-results/{}.json", batch.invocation_id(task.child));
    let document = json!({
        "schemaVersion": 1,
        "kind": "tauritavern.agentTaskResult",
        "status": output.get("status").and_then(Value::as_str).unwrap_or("completed"),
        "summary": output.get("summary").and_then(Value::as_str).unwrap_or_default().trim(),
        "summaryRef": summary_ref,
        "result": output,
        "runtime": {
            "taskId": &*task.id, "runId": batch.state.run_id(), "parentInvocationId": &*batch.invocation_id(task.parent),
            "childInvocationId": &*batch.invocation_id(task.child), "targetProfileId": &*task.target, "workspaceKey": &*task.key,
        },
    });
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    (path, text)
}
