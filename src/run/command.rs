//! What the host may say to a run: one variant a sentence. Unknown fields are ignored; a wrong type is the fault
//! `command.invalid`, which names the field.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::domain::failure::Failure;

pub type Json = Box<RawValue>;

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Start {
    #[serde(default)]
    pub run_id: Option<String>,
    pub profiles: Value,
    #[serde(default)]
    pub host_tools: Option<Vec<Value>>,
    pub profile_id: String,
    #[serde(default)]
    pub input: Option<Json>,
    #[serde(default)]
    pub generation_type: Option<String>,
    #[serde(default)]
    pub presentation: Option<String>,
    #[serde(default)]
    pub chat: Option<Value>,
    #[serde(default)]
    pub persist_base_state_id: Option<String>,
    #[serde(default)]
    pub persist_files: Option<serde_json::Map<String, Value>>,
    #[serde(default)]
    pub locale: Option<String>,
    #[serde(default)]
    pub limits: Option<Value>,
    #[serde(default)]
    pub authority: Option<Value>,
    #[serde(default)]
    pub files: Option<serde_json::Map<String, Value>>,
}

/// A model's turn as it came.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnInput {
    pub text: Option<String>,
    pub tool_calls: Option<Vec<Option<CallInput>>>,
    pub provider_data: Option<Json>,
    pub finish_reason: Option<String>,
    pub usage: Option<Json>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub struct CallInput {
    pub id: Option<Value>,
    pub name: Option<Value>,
    pub arguments: Value,
}

/// What a host tool gave: a text, or a ToolOutput.
#[derive(Deserialize, Debug)]
#[serde(untagged)]
pub enum ToolOutput {
    Text(String),
    Full(FullOutput),
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct FullOutput {
    pub content: String,
    pub structured: Option<Value>,
    pub is_error: bool,
    pub error_code: Option<String>,
    pub resource_refs: Vec<String>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Placed {
    pub agent_system_prompt: Option<u32>,
    pub agent_task_prompt: Option<u32>,
}

#[derive(Debug)]
pub enum Command {
    Start(Box<Start>),
    SetProfiles { profiles: Value },
    ToolsResolved { id: String, tools: Vec<Value> },
    PromptAssembled { id: String, messages: Json, parameters: Option<Json>, placed: Placed },
    /// A host call failed; the effect's id says which.
    Failed { id: String, error: Failure },
    ModelCompleted { id: String, turn: TurnInput },
    ToolCompleted { id: String, output: ToolOutput },
    ApprovalDecided { id: Option<String>, call_id: Option<String>, approved: bool, reason: Option<String> },
    HumanReplied { id: Option<String>, invocation_id: Option<String>, turn: TurnInput },
    CommitCompleted { id: String, message_id: Option<String> },
    PersistPromoted { id: String },
    Woke { id: String },
    Aborted { id: String },
    Guide { text: String },
    Interrupt { reason: Option<String> },
    CancelRun { reason: Option<String> },
    CancelTask { task_id: String, expected_version: Option<u32>, reason: Option<String> },
    TakeOver { profile_id: String, reason: Option<String>, expected_version: Option<u32> },
    FailRun { code: String, message: String },
}
