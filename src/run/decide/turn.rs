//! One turn's calls: each gets exactly one result, in the order of rule T2: all others first, then waiting,
//! then the closing calls.

use serde_json::{Map, Value};

use crate::domain::fault::Fault;
use crate::domain::failure::Failure;
use crate::domain::nearest::nearest;
use crate::domain::refusal::Refusal;
use crate::journal::event::*;
use crate::journal::{Doc, Event};
use crate::render::results::{self, Exits};
use crate::run::batch::{Batch, Outcome};
use crate::run::command::ToolOutput;
use crate::run::effect::{CallPlace, EffectKey};
use crate::run::state::*;
use crate::tools::{CoreTool, validate};

use super::{closing, commit, delegation, ending, files, host, model};

/// Goes on with a turn as far as it can: runs what the core itself can do, starts what the host must do.
pub fn advance(batch: &mut Batch, invocation: Ordinal) {
    if batch.state.is_stopping(invocation) {
        return ending::stopped(batch, invocation);
    }
    if !others(batch, invocation) || !waits(batch, invocation) {
        return;
    }
    if closing::settle(batch, invocation) {
        return;
    }
    report(batch, invocation);
    if !closing::stuck(batch, invocation) {
        model::next_round(batch, invocation);
    }
}

fn places(batch: &Batch, invocation: Ordinal) -> Vec<CallPlace> {
    let round = batch.round(invocation);
    let count = batch.work(invocation).and_then(Work::turn).map_or(0, |turn| turn.calls.len() as u32);
    (0..count).map(|index| CallPlace { invocation, round, index }).collect()
}

pub fn tool_of(batch: &Batch, place: CallPlace) -> Option<CoreTool> {
    CoreTool::from_canonical(&batch.turn_call(place)?.canonical)
}

/// The tool of a call, where the agent has it.
fn core_tool(batch: &Batch, place: CallPlace) -> Option<CoreTool> {
    tool_of(batch, place).filter(|_| unusable(batch, place).is_none())
}

/// Everything but awaits and closing calls, in call order; true when all of it is settled.
fn others(batch: &mut Batch, invocation: Ordinal) -> bool {
    let mut all_read_only = true;
    let mut running = false;
    for place in places(batch, invocation) {
        let Some(call) = batch.turn_call(place).cloned() else { continue };
        let tool = core_tool(batch, place);
        if tool.is_some_and(|tool| tool.is_closing() || tool == CoreTool::Await) {
            continue;
        }
        let read_only = tool.map_or_else(|| host_tool(batch, place).is_some_and(|tool| tool.read_only), |tool| tool.is_read_only());
        match &call.state {
            CallState::Settled(_) | CallState::CommittedToFinish(_) => continue,
            CallState::Pending => {
                // Neighbouring read-only host calls run together; everything else waits its turn.
                if running && !(all_read_only && read_only && tool.is_none()) {
                    return false;
                }
                dispatch(batch, place, tool);
            }
            _ => {}
        }
        let settled = batch.turn_call(place).is_none_or(|call| matches!(call.state, CallState::Settled(_) | CallState::CommittedToFinish(_)));
        if !settled {
            running = true;
            all_read_only &= read_only;
        }
    }
    !running
}

fn waits(batch: &mut Batch, invocation: Ordinal) -> bool {
    for place in places(batch, invocation) {
        let Some(call) = batch.turn_call(place).cloned() else { continue };
        if core_tool(batch, place) == Some(CoreTool::Await) && matches!(call.state, CallState::Pending) {
            dispatch(batch, place, Some(CoreTool::Await));
        }
    }
    places(batch, invocation).into_iter().all(|place| batch.turn_call(place).is_none_or(|call| !matches!(call.state, CallState::Awaiting(_))))
}

/// The host's tool of a call, where the agent has it.
pub fn host_tool(batch: &Batch, place: CallPlace) -> Option<HostTool> {
    let name = batch.turn_call(place)?.canonical.clone();
    batch.work(place.invocation)?.host_tools.iter().find(|tool| tool.name == name).cloned()
}

/// Why a call cannot be made at all: unknown tool, or not this agent's (rule T5).
pub fn unusable(batch: &Batch, place: CallPlace) -> Option<Refusal> {
    let work = batch.work(place.invocation)?;
    let call = batch.turn_call(place)?;
    let names: Vec<&str> = work.tool_names.iter().map(|tool| &*tool.name).collect();
    if work.tool_names.iter().any(|tool| tool.canonical_name == call.canonical) {
        return None;
    }
    let (list, sent) = (names.join(", "), call.name.to_string());
    if CoreTool::from_canonical(&call.canonical).is_some() {
        // Left out for want of candidates: judged by the checks of the operation (rule T5).
        let allowed = closing::profile_lists(batch, place.invocation, &call.canonical);
        let denied = Refusal::new("agent.tool_policy_denied", "turns.tool_not_yours").arg("tool", sent).arg("tools", list);
        return (!allowed).then_some(denied);
    }
    if closing::profile_lists(batch, place.invocation, &call.canonical) || host::exists_in_team(batch, &call.canonical) {
        return Some(Refusal::new("agent.tool_policy_denied", "turns.tool_not_yours").arg("tool", sent).arg("tools", list));
    }
    let near = nearest(&call.name, &names).unwrap_or_default().to_owned();
    let key = match (call.name.as_ref(), near.is_empty()) {
        ("unnamed", _) => "turns.tool_unnamed",
        (_, true) => "turns.tool_unknown",
        (_, false) => "turns.tool_unknown_near",
    };
    Some(Refusal::new("tool.unknown", key).arg("tool", sent).arg("tools", list).arg("nearest", near))
}

fn dispatch(batch: &mut Batch, place: CallPlace, tool: Option<CoreTool>) {
    if let Some(refusal) = unusable(batch, place).or_else(|| over_budget(batch, place)) {
        return batch.refuse(place, &refusal);
    }
    let Some(call) = batch.turn_call(place).cloned() else { return };
    let arguments: Map<String, Value> = call.arguments.parse();
    match tool {
        None => start_host_tool(batch, place, &arguments),
        Some(tool) => match validate::core_arguments(tool, &arguments, &batch.state.limits()) {
            Err(refusal) => batch.refuse(place, &refusal),
            Ok(checked) => {
                started(batch, place);
                run_core(batch, place, tool, checked);
            }
        },
    }
}

pub fn started(batch: &mut Batch, place: CallPlace) {
    let Some(call) = batch.turn_call(place).cloned() else { return };
    let invocation_id = batch.invocation_id(place.invocation);
    batch.emit(Event::ToolCallStarted(ToolCallStarted { invocation_id, round: place.round, index: place.index, call_id: call.id.clone(), name: call.canonical.clone() }));
}

fn run_core(batch: &mut Batch, place: CallPlace, tool: CoreTool, checked: validate::Checked) {
    let done = match tool {
        CoreTool::Commit => return commit::request(batch, place, &checked),
        CoreTool::Await => return delegation::await_tasks(batch, place, &checked),
        CoreTool::Delegate => delegation::delegate(batch, place, &checked),
        CoreTool::Cancel => delegation::cancel(batch, place, &checked),
        CoreTool::List => delegation::list(batch, place, &checked),
        _ => files::run(batch, place, tool, &checked),
    };
    match done {
        Ok(outcome) => batch.settle(place, noting_ignored(batch, outcome, &checked.ignored)),
        Err(refusal) => batch.refuse(place, &refusal),
    }
}

/// Rule A4: keys that were dropped are named in the result.
pub fn noting_ignored(batch: &Batch, mut outcome: Outcome, ignored: &[String]) -> Outcome {
    if !ignored.is_empty() {
        let note = batch.say("turns.ignored", &[("keys", &ignored.join(", "))]);
        outcome.content = format!("{}\n{note}", outcome.content);
    }
    outcome
}

/// Rule D2 and the profile's own budgets.
fn over_budget(batch: &Batch, place: CallPlace) -> Option<Refusal> {
    let work = batch.work(place.invocation)?;
    let name = &batch.turn_call(place)?.canonical;
    let limits = batch.state.limits();
    let exhausted = |key, limit: u32| Some(Refusal::new("agent.tool_budget_exhausted", key).arg("limit", limit.to_string()).arg("tool", name.to_string()));
    if batch.state.counters.tool_calls >= limits.max_tool_calls {
        return exhausted("turns.run_budget_exhausted", limits.max_tool_calls);
    }
    if work.calls_used >= work.profile.max_calls_per_run() {
        return exhausted("turns.budget_exhausted", work.profile.max_calls_per_run());
    }
    let of_tool = work.profile.max_calls_of(name)?;
    (work.calls_per_tool.get(name).copied().unwrap_or(0) >= of_tool).then(|| exhausted("turns.tool_budget_exhausted", of_tool)).flatten()
}

fn start_host_tool(batch: &mut Batch, place: CallPlace, arguments: &Map<String, Value>) {
    let Some(tool) = host_tool(batch, place) else { return };
    let Some(call) = batch.turn_call(place).cloned() else { return };
    let repaired = match validate::host_arguments(&tool.input_schema, arguments) {
        Ok(repaired) => repaired,
        Err(refusal) => return batch.refuse(place, &refusal),
    };
    if tool.requires_approval && !call.approved {
        batch.emit(Event::ApprovalRequested(ApprovalRequested {
            invocation_id: batch.invocation_id(place.invocation),
            round: place.round,
            index: place.index,
            call_id: call.id.clone(),
            name: call.canonical.clone(),
            arguments: Doc::of(&repaired),
        }));
    } else {
        started(batch, place);
    }
}

pub fn tool_completed(batch: &mut Batch, key: EffectKey, output: ToolOutput) -> Result<(), Fault> {
    let EffectKey::Tool(place) = key else { return Ok(()) };
    let outcome = match output {
        ToolOutput::Text(text) => Outcome::ok(text, Value::Null),
        ToolOutput::Full(full) => {
            let mut outcome = Outcome::ok(full.content, full.structured.unwrap_or(Value::Null)).with_refs(full.resource_refs);
            if full.is_error {
                outcome.error_code = Some(full.error_code.as_deref().unwrap_or("tool.failed").into());
            }
            outcome
        }
    };
    let outcome = files::keep_large(batch, place, outcome);
    batch.settle(place, outcome);
    advance(batch, place.invocation);
    Ok(())
}

/// A host tool threw or took too long: a tool error, not a failed run (rule T7).
pub fn tool_failed(batch: &mut Batch, place: CallPlace, failure: &Failure) {
    let code = if failure.code.is_empty() { "tool.failed" } else { &failure.code };
    let content = batch.say("turns.tool_failed", &[("message", &failure.message)]);
    batch.settle(place, Outcome::failed(code, content));
    advance(batch, place.invocation);
}

/// All results of the turn, in call order, in this batch (rule T1).
pub fn report(batch: &mut Batch, invocation: Ordinal) {
    for place in places(batch, invocation) {
        let Some(CallState::Settled(result)) = batch.turn_call(place).map(|call| call.state.clone()) else { continue };
        let result = (*result).clone();
        batch.emit(if result.is_error { Event::ToolCallFailed(result) } else { Event::ToolCallCompleted(result) });
    }
}

/// Every call without a result gets one that says why, so that the history stays whole (rule F7).
pub fn interrupt_open_calls(batch: &mut Batch, invocation: Ordinal, key: &str) {
    for place in places(batch, invocation) {
        if batch.turn_call(place).is_some_and(|call| !matches!(call.state, CallState::Settled(_))) {
            let content = batch.say(key, &[]);
            batch.settle(place, Outcome::failed("interrupted", content));
        }
    }
}

/// A turn of text alone: kept as a file, and the agent is told how its part can end (rules T6, H9).
pub fn without_calls(batch: &mut Batch, ordinal: Ordinal) {
    let Some(work) = batch.work(ordinal).cloned() else { return };
    let text = work.history.last().map(|message| message.content.clone()).unwrap_or_default();
    let path = files::capture(batch, ordinal, &text);
    let round = batch.round(ordinal);
    if work.human || round >= work.profile.max_rounds() {
        return model::next_round(batch, ordinal);
    }
    let has = |tool: CoreTool| work.tool_names.iter().any(|name| *name.canonical_name == *tool.canonical());
    let exits = Exits {
        finish: has(CoreTool::Finish),
        handoff: has(CoreTool::Handoff),
        task_return: has(CoreTool::Return),
        commit: has(CoreTool::Commit),
        committed: !batch.state.ledger.commits.is_empty(),
    };
    let text = results::drift_reminder(batch.locale, &exits, path.as_deref()).into();
    let (invocation_id, attempt) = (batch.invocation_id(ordinal), work.drift + 1);
    batch.emit(Event::DriftRecoveryAttempted(DriftRecoveryAttempted { invocation_id, round, attempt, text }));
    model::next_round(batch, ordinal);
}
