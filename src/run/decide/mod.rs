//! What should happen? Given the run as it is and one command, the facts that follow. All logic, every refusal;
//! the state itself is never touched: facts are tried on the batch's copy.
//!
//! ```text
//! start ─► prompt ─► model ─► turn ─► (files | commit | delegation) ─► closing ─► handoff | ending
//! ```

mod closing;
mod commit;
mod delegation;
mod ending;
mod files;
mod handoff;
mod host;
mod model;
mod people;
mod prompt;
mod start;
mod turn;

use crate::domain::fault::Fault;

use super::batch::Batch;
use super::command::Command;
use super::effect::EffectKey;

/// Decides one command. A fault leaves nothing behind: the caller drops the batch.
pub fn decide(batch: &mut Batch, command: Command) -> Result<(), Fault> {
    match command {
        Command::Start(options) => start::start(batch, *options),
        _ if batch.state.frozen.is_none() => Err(Fault::new("run.not_started", "Nothing has been started or loaded yet: send start, or load a journal.")),
        Command::SetProfiles { profiles } => host::set_profiles(batch, &profiles),
        Command::ToolsResolved { id, tools } => answer(batch, &id, |batch, key| prompt::tools_resolved(batch, key, &tools)),
        Command::PromptAssembled { id, messages, parameters, placed } => {
            answer(batch, &id, |batch, key| prompt::assembled(batch, key, messages.get(), parameters.as_deref().map(|json| json.get()), &placed))
        }
        Command::ModelCompleted { id, turn } => answer(batch, &id, |batch, key| model::completed(batch, key, turn)),
        Command::Failed { id, error } => answer(batch, &id, |batch, key| host::failed(batch, key, error)),
        Command::ToolCompleted { id, output } => answer(batch, &id, |batch, key| turn::tool_completed(batch, key, output)),
        Command::ApprovalDecided { id, call_id, approved, reason } => people::approval_decided(batch, people::Decision { id, call_id, approved, reason }),
        Command::HumanReplied { id, invocation_id, turn } => people::replied(batch, id, invocation_id, turn),
        Command::CommitCompleted { id, message_id } => answer(batch, &id, |batch, key| commit::completed(batch, key, message_id)),
        Command::PersistPromoted { id } => answer(batch, &id, |batch, _| ending::promoted(batch)),
        Command::Woke { id } => host::woke(batch, &id),
        Command::Aborted { id } => ending::aborted(batch, &id),
        Command::Guide { text } => host::guide(batch, &text),
        Command::Interrupt { reason } => host::interrupt(batch, reason),
        Command::CancelRun { reason } => ending::cancel_run(batch, reason),
        Command::CancelTask { task_id, expected_version, reason } => host::cancel_task(batch, &task_id, expected_version, reason),
        Command::TakeOver { profile_id, reason, expected_version } => people::take_over(batch, &profile_id, reason, expected_version),
        Command::FailRun { code, message } => host::fail_run(batch, code, message),
    }
}

/// An answer to an effect: taken if it is owed, journalled once as late if it was, else a fault (rule V3).
fn answer(batch: &mut Batch, id: &str, take: impl FnOnce(&mut Batch, EffectKey) -> Result<(), Fault>) -> Result<(), Fault> {
    match owed(batch, id)? {
        Some(key) => take(batch, key),
        None => Ok(()),
    }
}

/// The effect that an answer names; None where the answer came late and is now recorded as such.
pub(super) fn owed(batch: &mut Batch, id: &str) -> Result<Option<EffectKey>, Fault> {
    let key = EffectKey::parse(batch.state.run_id(), id);
    match key {
        Some(key) if batch.state.is_owed(&key) => Ok(Some(key)),
        Some(key) if batch.state.was_issued(&key) || batch.state.is_owed(&EffectKey::Abort(key.path())) => {
            host::late(batch, id, &key);
            Ok(None)
        }
        _ => Err(Fault::new("host.stale_token", format!("This run never asked for the effect {id:?}; its answer was dropped.")).detail("id", id)),
    }
}
