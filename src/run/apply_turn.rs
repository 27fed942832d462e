//! The part of `apply` that folds what happens within one agent's work: prompt, model calls, tool calls, files.

use std::rc::Rc;

use serde::Deserialize;

use crate::journal::event::*;
use crate::journal::{Doc, WriteMode};
use crate::workspace::{Edit, Knowledge, apply_edits};

use super::apply::At;
use super::state::*;

pub(super) fn apply(state: &mut State, event: &Event, at: At) {
    match event {
        Event::PromptPrepared(fact) => state.with_work(&fact.invocation_id, |work| prepared(work, fact)),
        Event::ContextAssembled(fact) => state.with_work(&fact.invocation_id, |work| {
            work.prompt = fact.messages.clone();
            work.parameters = fact.parameters.clone();
            work.step = Step::Between;
        }),
        Event::ModelRequestCreated(fact) => state.with_invocation(&fact.invocation_id, |invocation| invocation.rounds.push(at.seq)),
        Event::HumanRequested(fact) => state.with_invocation(&fact.invocation_id, |invocation| {
            invocation.rounds.push(at.seq);
            if let Some(work) = invocation.work.as_deref_mut() {
                work.step = Step::Human;
            }
        }),
        Event::AttemptStarted(fact) => {
            state.counters.model_calls += 1;
            state.with_work(&fact.invocation_id, |work| work.step = Step::Calling(Call { attempt: fact.attempt, retry_at_ms: None }));
        }
        Event::RetryScheduled(fact) => state.with_work(&fact.invocation_id, |work| {
            work.step = Step::Calling(Call { attempt: fact.next_attempt - 1, retry_at_ms: Some(fact.at_ms) });
        }),
        Event::ModelCallInterrupted(fact) => state.with_work(&fact.invocation_id, |work| work.step = Step::Between),
        Event::ModelCompleted(fact) => model_completed(state, fact),
        Event::ToolCallStarted(fact) => {
            state.with_call(&fact.invocation_id, fact.index, |call| call.state = CallState::Running);
            charge(state, &fact.invocation_id, &fact.name);
        }
        Event::ApprovalRequested(fact) => state.with_call(&fact.invocation_id, fact.index, |call| call.state = CallState::AwaitingApproval),
        Event::ApprovalDecided(fact) => state.with_call(&fact.invocation_id, fact.index, |call| {
            call.approved = fact.approved;
            call.state = CallState::Pending;
        }),
        Event::AwaitStarted(fact) => await_started(state, fact),
        Event::CommitRequested(fact) => commit_requested(state, fact),
        Event::CommitFailed(fact) => state.with_call(&fact.invocation_id, fact.index, |call| {
            if let CallState::Committing { retry_at_ms, .. } = &mut call.state {
                *retry_at_ms = fact.retry_at_ms;
            }
        }),
        Event::ToolResultStored(fact) => state.with_call(&fact.invocation_id, fact.index, |call| call.state = CallState::Settled(Rc::new(fact.clone()))),
        Event::ToolCallCompleted(fact) | Event::ToolCallFailed(fact) => state.with_work(&fact.invocation_id, |work| told_result(work, fact)),
        Event::DriftRecoveryAttempted(fact) => state.with_work(&fact.invocation_id, |work| {
            work.drift += 1;
            work.history.push(Rc::new(Message::new("user", fact.text.shared())));
        }),
        Event::OutputCaptured(fact) => state.with_work(&fact.invocation_id, |work| work.captured += 1),
        Event::Stuck(fact) => state.with_work(&fact.invocation_id, |work| work.stuck = true),
        Event::FileRead(fact) => state.with_work(&fact.invocation_id, |work| work.know(&fact.path, fact.knowledge.parse())),
        _ => {}
    }
}

fn prepared(work: &mut Work, fact: &PromptPrepared) {
    work.system_prompt = fact.agent_system_prompt.clone();
    work.task_prompt.clone_from(&fact.agent_task_prompt);
    work.tools = fact.tools.clone();
    work.tool_names = Rc::new(fact.tools.parse());
    work.host_tools = Rc::new(fact.host_tools.parse());
    work.step = Step::Assembling;
}

/// A call as `model_completed` lists it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Listed {
    id: Id,
    name: Id,
    canonical_name: Id,
    arguments: Doc,
}

#[derive(serde::Serialize)]
struct Shown<'a> {
    id: &'a Id,
    name: &'a Id,
    arguments: &'a Doc,
}

fn model_completed(state: &mut State, fact: &ModelCompleted) {
    let listed: Vec<Listed> = fact.tool_calls.parse();
    let ordinal = state.invocation_by_id(&fact.invocation_id).map_or(0, |invocation| invocation.ordinal);
    for call in &listed {
        state.call_ids.insert(call.id.clone(), ordinal);
    }
    state.with_work(&fact.invocation_id, |work| {
        let mut message = Message::new("assistant", fact.text.shared());
        if !listed.is_empty() {
            let shown: Vec<Shown> = listed.iter().map(|call| Shown { id: &call.id, name: &call.name, arguments: &call.arguments }).collect();
            message.tool_calls = Some(Doc::of_inline(&shown));
        }
        message.provider_data = (!fact.provider_data.is_null()).then(|| fact.provider_data.inline());
        work.history.push(Rc::new(message));
        let calls = listed.into_iter().map(|call| {
            Rc::new(TurnCall { id: call.id, canonical: call.canonical_name, name: call.name, arguments: call.arguments, state: CallState::Pending, approved: false })
        });
        work.step = Step::Turn(Turn { calls: calls.collect() });
    });
}

fn charge(state: &mut State, invocation_id: &str, name: &Id) {
    state.counters.tool_calls += 1;
    state.with_work(invocation_id, |work| {
        work.calls_used += 1;
        let used = work.calls_per_tool.get(name).copied().unwrap_or(0);
        work.calls_per_tool.insert(name.clone(), used + 1);
    });
}

fn await_started(state: &mut State, fact: &AwaitStarted) {
    let tasks = fact.handles.iter().filter_map(|handle| state.keys.get(handle).copied()).collect();
    let waiting = Rc::new(Await { mode: fact.mode.clone(), tasks, until_ms: fact.until_ms });
    state.with_call(&fact.parent_invocation_id, fact.index, |call| call.state = CallState::Awaiting(waiting));
}

fn commit_requested(state: &mut State, fact: &CommitRequested) {
    let commit = Rc::new(Commit {
        commit_id: fact.commit_id.clone(),
        path: fact.path.clone(),
        mode: fact.mode,
        reason: fact.reason.clone(),
        text: fact.text.clone(),
        base_text: fact.base_text.clone(),
        persist_state_id: fact.persist_state_id.clone(),
    });
    state.with_call(&fact.invocation_id, fact.index, |call| {
        call.state = CallState::Committing { commit, attempt: fact.attempt, retry_at_ms: None };
    });
}

pub(super) fn commit_completed(state: &mut State, fact: &CommitCompleted, seq: u32) {
    let committing = state.call(&fact.invocation_id, fact.index).and_then(|call| match &call.state {
        CallState::Committing { commit, .. } => Some(commit.clone()),
        _ => None,
    });
    let (cut, adopt) = state.frozen.as_ref().map_or((0, true), |frozen| (frozen.fork_cut, frozen.adopt_message));
    if seq > cut || adopt {
        state.ledger.message_id.clone_from(&fact.message_id);
    }
    if let Some(commit) = committing {
        let piece = commit.text.as_str();
        state.ledger.text = Some(match (&commit.base_text, commit.mode) {
            (Some(base), WriteMode::Append) => format!("{}{piece}", base.as_str()).into(),
            _ => commit.text.shared(),
        });
    }
    let record = CommitRecord {
        commit_id: fact.commit_id.clone(),
        path: fact.path.clone(),
        mode: fact.mode,
        message_id: fact.message_id.clone(),
        profile_id: fact.profile_id.clone(),
    };
    let count = state.ledger.commits.len() as u32;
    state.ledger.commits.insert(count, Rc::new(record));
    state.with_call(&fact.invocation_id, fact.index, |call| call.state = CallState::CommittedToFinish(fact.path.clone()));
}

/// The result as the model reads it; the last one of a turn ends the turn.
fn told_result(work: &mut Work, fact: &CallResult) {
    let mut message = Message::new("tool", fact.content.shared());
    message.tool_call_id = Some(fact.call_id.clone());
    message.is_error = fact.is_error.then_some(true);
    work.history.push(Rc::new(message));
    work.invalid_streak = if fact.refused { work.invalid_streak + 1 } else { 0 };
    let last = work.turn().is_none_or(|turn| fact.index as usize + 1 >= turn.calls.len());
    if last {
        work.step = Step::Between;
    }
}

pub(super) fn file_written(state: &mut State, fact: &FileWritten) {
    let text = match (fact.mode, state.files.get(&*fact.path)) {
        (WriteMode::Append, Some(file)) => format!("{}{}", file.text, fact.content.as_str()).into(),
        _ => fact.content.shared(),
    };
    put(state, &fact.path, text, fact.version, &fact.sha256);
    if let Some(id) = &fact.invocation_id {
        let version = fact.version;
        state.with_work(id, |work| {
            let before = work.knowledge.get(&*fact.path).cloned();
            let append = fact.mode == WriteMode::Append;
            work.know(&fact.path, Knowledge::after_write(before.as_deref(), version, append));
        });
    }
}

pub(super) fn patch_applied(state: &mut State, fact: &PatchApplied) {
    let edits: Vec<Edit> = fact.edits.parse();
    let Some(text) = state.files.get(&*fact.path).map(|file| apply_edits(&file.text, &edits)) else { return };
    put(state, &fact.path, text.into(), fact.version, &fact.sha256);
    state.with_work(&fact.invocation_id, |work| {
        let before = work.knowledge.get(&*fact.path).cloned();
        work.know(&fact.path, Knowledge::after_patch(before.as_deref(), fact.version));
    });
}

fn put(state: &mut State, path: &Id, text: Rc<str>, version: u32, sha256: &Id) {
    let before = state.files.get(&**path).map_or(0, |file| file.text.len() as u64);
    state.file_bytes = state.file_bytes + text.len() as u64 - before;
    state.files.insert(path.clone(), Rc::new(File { text, version, sha256: sha256.clone() }));
}

impl Work {
    fn know(&mut self, path: &Id, knowledge: Knowledge) {
        self.knowledge.insert(path.clone(), Rc::new(knowledge));
    }
}

impl State {
    pub(super) fn call(&self, invocation_id: &str, index: u32) -> Option<&Rc<TurnCall>> {
        self.invocation_by_id(invocation_id)?.work.as_deref()?.turn()?.calls.get(index as usize)
    }

    fn with_call(&mut self, invocation_id: &str, index: u32, change: impl FnOnce(&mut TurnCall)) {
        self.with_work(invocation_id, |work| {
            if let Step::Turn(turn) = &mut work.step
                && let Some(call) = turn.calls.get_mut(index as usize)
            {
                change(Rc::make_mut(call));
            }
        });
    }
}
