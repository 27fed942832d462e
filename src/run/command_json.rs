//! Reads a command from JSON text. One job: to say which field is wrong, what came and what is allowed.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::domain::failure::Failure;
use crate::domain::fault::Fault;

use super::command::*;

/// The types of commands, as the fault for an unknown one lists them.
pub const COMMANDS: &[&str] = &[
    "start", "set_profiles", "tools_resolved", "tools_failed", "prompt_assembled", "assembly_failed", "model_completed",
    "model_failed", "tool_completed", "tool_failed", "approval_decided", "human_replied", "human_failed", "commit_completed",
    "commit_failed", "persist_promoted", "persist_failed", "woke", "aborted", "guide", "interrupt", "cancel_run", "cancel_task",
    "take_over", "fail_run",
];

#[derive(Deserialize)]
struct Type {
    #[serde(rename = "type")]
    name: String,
}

/// Every field that a command other than `start` may have.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    id: Option<String>,
    tools: Option<Vec<serde_json::Value>>,
    messages: Option<Box<RawValue>>,
    parameters: Option<Box<RawValue>>,
    placed: Option<Placed>,
    error: Option<Failure>,
    turn: Option<TurnInput>,
    output: Option<ToolOutput>,
    call_id: Option<String>,
    approved: Option<bool>,
    reason: Option<String>,
    invocation_id: Option<String>,
    message_id: Option<String>,
    text: Option<String>,
    task_id: Option<String>,
    expected_version: Option<u32>,
    profile_id: Option<String>,
    profiles: Option<serde_json::Value>,
    code: Option<String>,
    message: Option<String>,
}

fn read<T: DeserializeOwned>(name: &str, json: &str) -> Result<T, Fault> {
    serde_json::from_str(json).map_err(|error| Fault::new("command.invalid", format!("The command {name} cannot be read: {error}.")).detail("command", name))
}

pub fn parse_command(json: &str) -> Result<Command, Fault> {
    let Type { name } = read("?", json)?;
    if name == "start" {
        return Ok(Command::Start(read(&name, json)?));
    }
    if !COMMANDS.contains(&name.as_str()) {
        let message = format!("There is no command {name:?}. Commands are {}.", COMMANDS.join(", "));
        return Err(Fault::new("command.unknown", message).detail("type", name));
    }
    let fields: Fields = read(&name, json)?;
    let missing = |field: &str| {
        Fault::new("command.invalid", format!("The command {name} needs the field {field}.")).detail("command", name.as_str()).detail("field", field)
    };
    let need = |value: Option<String>, field: &str| value.ok_or_else(|| missing(field));
    Ok(match name.as_str() {
        "set_profiles" => Command::SetProfiles { profiles: fields.profiles.ok_or_else(|| missing("profiles"))? },
        "tools_resolved" => Command::ToolsResolved { id: need(fields.id, "id")?, tools: fields.tools.ok_or_else(|| missing("tools"))? },
        "prompt_assembled" => Command::PromptAssembled {
            id: need(fields.id, "id")?,
            messages: fields.messages.ok_or_else(|| missing("messages"))?,
            parameters: fields.parameters,
            placed: fields.placed.unwrap_or_default(),
        },
        "model_completed" => Command::ModelCompleted { id: need(fields.id, "id")?, turn: fields.turn.ok_or_else(|| missing("turn"))? },
        "tool_completed" => Command::ToolCompleted { id: need(fields.id, "id")?, output: fields.output.ok_or_else(|| missing("output"))? },
        "approval_decided" => Command::ApprovalDecided {
            id: fields.id,
            call_id: fields.call_id,
            approved: fields.approved.ok_or_else(|| missing("approved"))?,
            reason: fields.reason,
        },
        "human_replied" => Command::HumanReplied {
            id: fields.id,
            invocation_id: fields.invocation_id,
            turn: fields.turn.ok_or_else(|| missing("turn"))?,
        },
        "commit_completed" => Command::CommitCompleted { id: need(fields.id, "id")?, message_id: fields.message_id },
        "persist_promoted" => Command::PersistPromoted { id: need(fields.id, "id")? },
        "woke" => Command::Woke { id: need(fields.id, "id")? },
        "aborted" => Command::Aborted { id: need(fields.id, "id")? },
        "guide" => Command::Guide { text: need(fields.text, "text")? },
        "interrupt" => Command::Interrupt { reason: fields.reason },
        "cancel_run" => Command::CancelRun { reason: fields.reason },
        "cancel_task" => Command::CancelTask { task_id: need(fields.task_id, "taskId")?, expected_version: fields.expected_version, reason: fields.reason },
        "take_over" => Command::TakeOver { profile_id: need(fields.profile_id, "profileId")?, reason: fields.reason, expected_version: fields.expected_version },
        "fail_run" => Command::FailRun { code: need(fields.code, "code")?, message: fields.message.unwrap_or_default() },
        _ => Command::Failed { id: need(fields.id, "id")?, error: fields.error.unwrap_or_default() },
    })
}
