//! Every fact that a run can record, in the past tense. Fields, levels and scopes stand here and nowhere else.
//! It knows no rules: whether a fact may come about is for `run::decide`.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::text::{Blob, Doc, Text};
use crate::domain::kinds::{Continuation, ExitPolicy, InvocationKind, InvocationStatus, TaskStatus};

pub type Id = Rc<str>;

/// An id that may be part of an event's scope.
trait Scoped {
    fn scoped(&self) -> Option<&str>;
}
impl Scoped for Id {
    fn scoped(&self) -> Option<&str> {
        Some(self)
    }
}
impl Scoped for Option<Id> {
    fn scoped(&self) -> Option<&str> {
        self.as_deref()
    }
}

macro_rules! payloads {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? } scope [$($scope:ident),*] blobs [$($blob:ident),*])*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $name { $(pub $field: $type),* }
            impl $name {
                #[allow(unused_variables, clippy::ptr_arg)]
                fn scope<'a>(&'a self, ids: &mut Vec<&'a str>) { $(ids.extend(self.$scope.scoped());)* }
                #[allow(unused_variables)]
                fn each_blob(&self, found: &mut dyn FnMut(&Rc<str>, &Rc<str>)) {
                    $(if let Some((hash, text)) = self.$blob.blob() { found(hash, text); })*
                }
                #[allow(unused_variables)]
                fn resolve(&mut self, find: &dyn Fn(&str) -> Option<Rc<str>>) -> bool { true $(&& self.$blob.resolve(find))* }
            }
        )*
    };
}

payloads! {
    RunCreated {
        profile_id: Id, profiles: Doc, host_tools: Doc, input: Doc, generation_type: Id, presentation: Id, chat: Doc,
        persist_base_state_id: Option<Id>, locale: Id, limits: Doc, authority: Doc, files: Doc, persist_files: Doc,
        forked_from: Doc,
    } scope [] blobs [profiles, host_tools, input, chat, limits, authority, files, persist_files, forked_from]
    ProfilesSet { profiles: Doc } scope [] blobs [profiles]
    GuidanceSubmitted { guidance_id: Id, text: Text, chars: u32 } scope [] blobs [text]
    GuidanceApplied { guidance_ids: Vec<Id>, invocation_id: Id, round: u32, text: Text, placement: Placement } scope [invocation_id] blobs [text]
    InvocationCreated {
        invocation_id: Id, parent_invocation_id: Option<Id>, profile_id: Id, display_name: Id, kind: InvocationKind,
        exit_policy: ExitPolicy, task_id: Option<Id>, workspace_key: Option<Id>, depth: u32,
    } scope [invocation_id, parent_invocation_id] blobs []
    /// `profile` is the profile as resolved for this invocation, whole.
    InvocationStarted { invocation_id: Id, profile_id: Id, kind: InvocationKind, profile: Doc } scope [invocation_id] blobs [profile]
    InvocationEnded { invocation_id: Id, profile_id: Id, kind: InvocationKind, status: InvocationStatus, error: Doc } scope [invocation_id] blobs [error]
    /// What the agent is told and given, as rendered: its prompt, its brief, its tools.
    PromptPrepared {
        invocation_id: Id, agent_system_prompt: Text, agent_task_prompt: Option<Text>, tools: Doc, host_tools: Doc,
    } scope [invocation_id] blobs [agent_system_prompt, agent_task_prompt, tools, host_tools]
    AssemblyRequested { invocation_id: Id, assembly_id: Id, preset_ref: Doc } scope [invocation_id] blobs [preset_ref]
    AssemblyEnded { invocation_id: Id, assembly_id: Id, message: Option<Text> } scope [invocation_id] blobs [message]
    ContextAssembled { invocation_id: Id, messages: Doc, parameters: Doc, message_count: u32, tool_count: u32, appended: Vec<Id> } scope [invocation_id] blobs [messages, parameters]
    SkillScopesResolved { invocation_id: Id, visible: Vec<String>, deny: Vec<String> } scope [invocation_id] blobs []
    ModelRequestCreated { invocation_id: Id, round: u32 } scope [invocation_id] blobs []
    AttemptStarted { invocation_id: Id, round: u32, attempt: u32 } scope [invocation_id] blobs []
    AttemptFailed { invocation_id: Id, round: u32, attempt: u32, code: Id, message: Text, retryable: bool, will_retry: bool } scope [invocation_id] blobs [message]
    RetryScheduled { invocation_id: Id, round: u32, next_attempt: u32, at_ms: f64 } scope [invocation_id] blobs []
    ModelCallInterrupted { invocation_id: Id, round: u32, reason: Option<Text> } scope [invocation_id] blobs [reason]
    /// `tool_calls`: a list of {id, name, canonicalName, arguments} in normal form (rule A1).
    ModelCompleted {
        invocation_id: Id, round: u32, attempt: u32, text: Text, tool_calls: Doc, provider_data: Doc,
        finish_reason: Option<Id>, usage: Doc, human: bool,
    } scope [invocation_id] blobs [text, tool_calls, provider_data, usage]
    HumanRequested { invocation_id: Id, round: u32 } scope [invocation_id] blobs []
    ToolCallStarted { invocation_id: Id, round: u32, index: u32, call_id: Id, name: Id } scope [invocation_id] blobs []
    ApprovalRequested { invocation_id: Id, round: u32, index: u32, call_id: Id, name: Id, arguments: Doc } scope [invocation_id] blobs [arguments]
    ApprovalDecided { invocation_id: Id, round: u32, index: u32, call_id: Id, approved: bool, reason: Option<Text> } scope [invocation_id] blobs [reason]
    /// The one result of one call; `refused` tells a refusal from a failing tool.
    CallResult {
        round: u32, index: u32, invocation_id: Id, call_id: Id, name: Id, is_error: bool, error_code: Option<Id>,
        refused: bool, content: Text, structured: Doc, resource_refs: Vec<String>,
    } scope [invocation_id] blobs [content, structured]
    /// What an agent has seen of a file after reading it.
    FileRead { invocation_id: Id, path: Id, knowledge: Doc } scope [invocation_id] blobs [knowledge]
    FileWritten {
        invocation_id: Option<Id>, path: Id, mode: WriteMode, content: Text, version: u32, chars: u32, words: u32, sha256: Id,
    } scope [invocation_id] blobs [content]
    PatchApplied {
        invocation_id: Id, path: Id, edits: Doc, version: u32, replacements: u32, chars: u32, words: u32, sha256: Id,
    } scope [invocation_id] blobs [edits]
    CommitRequested {
        commit_id: Id, invocation_id: Id, round: u32, index: u32, call_id: Id, path: Id, mode: WriteMode, reason: Option<Text>,
        attempt: u32, text: Text, base_text: Option<Text>, persist_state_id: Option<Id>,
    } scope [invocation_id] blobs [text, base_text, reason]
    CommitCompleted { commit_id: Id, invocation_id: Id, round: u32, index: u32, call_id: Id, path: Id, mode: WriteMode, profile_id: Id, message_id: Option<Id> } scope [invocation_id] blobs []
    CommitFailed { commit_id: Id, invocation_id: Id, round: u32, index: u32, call_id: Id, code: Id, message: Text, will_retry: bool, retry_at_ms: Option<f64> } scope [invocation_id] blobs [message]
    HandoffRequested { source_invocation_id: Id, target_profile_id: Text, pending_task_policy: Id } scope [source_invocation_id] blobs [target_profile_id]
    /// `record` is the contract's HandoffRecord; its fields are the payload.
    HandoffAccepted {
        task_id: Id, owner_version_before: u32, owner_version_after: u32, effective_seq: u32, from_profile_id: Id, to_profile_id: Id,
        source_invocation_id: Id, new_invocation_id: Id, target_profile_id: Id, workspace_key: Id, reason: Option<Text>,
        artifact_refs: Doc, remaining: Doc, on_failure: Doc, authority: Doc, source_may_write: bool,
    } scope [source_invocation_id, new_invocation_id] blobs [reason, artifact_refs, remaining, on_failure, authority]
    LoopFinished { invocation_id: Id, round: u32, commit_count: u32 } scope [invocation_id] blobs []
    TaskRegistered {
        task_id: Id, parent_invocation_id: Id, child_invocation_id: Id, target_profile_id: Id, workspace_key: Id,
        continuation: Continuation, status: TaskStatus, task: Doc, title: Option<Text>, brief: Text, created_by_tool_call_id: Option<Id>,
    } scope [parent_invocation_id, child_invocation_id] blobs [task, brief, title]
    TaskChanged {
        task_id: Id, parent_invocation_id: Id, child_invocation_id: Id, target_profile_id: Id, status: TaskStatus,
        result_ref: Option<Id>, error: Option<Text>,
    } scope [parent_invocation_id, child_invocation_id] blobs [error]
    TaskCancelRequested { task_id: Id, parent_invocation_id: Id, child_invocation_id: Id, reason: Option<Text> } scope [parent_invocation_id, child_invocation_id] blobs [reason]
    DelegateStarted { task_id: Id, parent_invocation_id: Id, child_invocation_id: Id, target_profile_id: Id, workspace_key: Id } scope [parent_invocation_id, child_invocation_id] blobs []
    AwaitStarted { parent_invocation_id: Id, round: u32, index: u32, call_id: Id, mode: Id, handles: Vec<Id>, timeout_ms: f64, until_ms: f64 } scope [parent_invocation_id] blobs []
    AwaitCompleted { parent_invocation_id: Id, call_id: Id, mode: Id, timed_out: bool, interrupted: bool } scope [parent_invocation_id] blobs []
    TaskReturned {
        task_id: Id, parent_invocation_id: Id, child_invocation_id: Id, status: TaskStatus, result_ref: Id, summary_ref: Id,
        summary: Text, output: Doc,
    } scope [child_invocation_id, parent_invocation_id] blobs [summary, output]
    /// Results of delegated tasks told to their parent: by await (placement null), or before its next model call.
    ResultsDelivered { invocation_id: Id, task_ids: Vec<Id>, text: Option<Text>, placement: Option<Placement> } scope [invocation_id] blobs [text]
    OutputCaptured { invocation_id: Id, round: u32, path: Id, chars: u32 } scope [invocation_id] blobs []
    DriftRecoveryAttempted { invocation_id: Id, round: u32, attempt: u32, text: Text } scope [invocation_id] blobs [text]
    Stuck { invocation_id: Id, count: u32 } scope [invocation_id] blobs []
    FallbackUsed { cause: Id, source_invocation_id: Id, profile_id: Id } scope [source_invocation_id] blobs []
    LateResult { effect_id: Id, kind: Id } scope [] blobs []
    CancelRequested { reason: Option<Text> } scope [] blobs [reason]
    AbortCompleted { effect_id: Id } scope [] blobs []
    PersistCommitted { state_id: Id, base_state_id: Option<Id>, paths: Vec<String> } scope [] blobs []
    PersistFailed { code: Id, message: Text } scope [] blobs [message]
    RunFinishing { } scope [] blobs []
    RunFailing { error: Doc } scope [] blobs [error]
    RunEnded { error: Doc, reason: Option<Text> } scope [] blobs [error, reason]
}

/// Where a text for the agent went: at the end of its last tool result, or as a user message (rule D5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    ToolResult,
    User,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteMode {
    Replace,
    Append,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

macro_rules! events {
    ($($variant:ident($payload:ident) = $name:literal $level:ident),* $(,)?) => {
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event { $($variant($payload)),* }

        impl Event {
            /// All types that a journal may hold.
            pub const TYPES: &[&str] = &[$($name),*];

            pub fn type_name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name),* }
            }
            pub fn level(&self) -> Level {
                match self { $(Self::$variant(_) => Level::$level),* }
            }
            /// The ids of the event's scope: the primary one first.
            pub fn scope(&self) -> Vec<&str> {
                let mut ids = Vec::new();
                match self { $(Self::$variant(payload) => payload.scope(&mut ids)),* }
                ids
            }
            pub fn payload_json(&self) -> serde_json::Result<String> {
                match self { $(Self::$variant(payload) => serde_json::to_string(payload)),* }
            }
            pub fn each_blob(&self, found: &mut dyn FnMut(&Rc<str>, &Rc<str>)) {
                match self { $(Self::$variant(payload) => payload.each_blob(found)),* }
            }
            pub fn resolve(&mut self, find: &dyn Fn(&str) -> Option<Rc<str>>) -> bool {
                match self { $(Self::$variant(payload) => payload.resolve(find)),* }
            }
            /// None where the type is unknown.
            pub fn parse(type_name: &str, payload: &str) -> Option<serde_json::Result<Self>> {
                match type_name {
                    $($name => Some(serde_json::from_str(payload).map(Self::$variant)),)*
                    _ => None,
                }
            }
        }
    };
}

events! {
    RunCreated(RunCreated) = "run_created" Info,
    ProfilesSet(ProfilesSet) = "profiles_set" Info,
    GuidanceSubmitted(GuidanceSubmitted) = "user_guidance_submitted" Info,
    GuidanceApplied(GuidanceApplied) = "user_guidance_applied" Info,
    InvocationCreated(InvocationCreated) = "agent_invocation_created" Info,
    InvocationStarted(InvocationStarted) = "agent_invocation_started" Info,
    InvocationCompleted(InvocationEnded) = "agent_invocation_completed" Info,
    InvocationFailed(InvocationEnded) = "agent_invocation_failed" Error,
    InvocationCancelled(InvocationEnded) = "agent_invocation_cancelled" Warn,
    InvocationTransferred(InvocationEnded) = "agent_invocation_transferred" Info,
    PromptPrepared(PromptPrepared) = "agent_prompt_prepared" Debug,
    AssemblyRequested(AssemblyRequested) = "prompt_assembly_requested" Info,
    AssemblyCompleted(AssemblyEnded) = "prompt_assembly_completed" Info,
    AssemblyFailed(AssemblyEnded) = "prompt_assembly_failed" Error,
    ContextAssembled(ContextAssembled) = "context_assembled" Info,
    SkillScopesResolved(SkillScopesResolved) = "skill_scopes_resolved" Info,
    ModelRequestCreated(ModelRequestCreated) = "model_request_created" Info,
    AttemptStarted(AttemptStarted) = "model_call_attempt_started" Debug,
    AttemptFailed(AttemptFailed) = "model_call_attempt_failed" Warn,
    RetryScheduled(RetryScheduled) = "model_call_retry_scheduled" Warn,
    ModelCallInterrupted(ModelCallInterrupted) = "model_call_interrupted" Warn,
    ModelCompleted(ModelCompleted) = "model_completed" Info,
    HumanRequested(HumanRequested) = "human_requested" Info,
    ToolCallStarted(ToolCallStarted) = "tool_call_started" Info,
    ApprovalRequested(ApprovalRequested) = "tool_call_approval_requested" Info,
    ApprovalDecided(ApprovalDecided) = "tool_call_approval_decided" Info,
    ToolResultStored(CallResult) = "tool_result_stored" Debug,
    ToolCallCompleted(CallResult) = "tool_call_completed" Info,
    ToolCallFailed(CallResult) = "tool_call_failed" Warn,
    FileRead(FileRead) = "workspace_file_read" Debug,
    FileWritten(FileWritten) = "workspace_file_written" Info,
    PatchApplied(PatchApplied) = "workspace_patch_applied" Info,
    CommitRequested(CommitRequested) = "chat_commit_requested" Info,
    CommitCompleted(CommitCompleted) = "chat_commit_completed" Info,
    CommitFailed(CommitFailed) = "chat_commit_failed" Error,
    HandoffRequested(HandoffRequested) = "agent_handoff_requested" Info,
    HandoffAccepted(HandoffAccepted) = "agent_handoff_accepted" Info,
    LoopFinished(LoopFinished) = "agent_loop_finished" Info,
    TaskRegistered(TaskRegistered) = "agent_task_registered" Info,
    TaskStarted(TaskChanged) = "agent_task_started" Info,
    TaskCompleted(TaskChanged) = "agent_task_completed" Info,
    TaskFailed(TaskChanged) = "agent_task_failed" Warn,
    TaskCancelled(TaskChanged) = "agent_task_cancelled" Warn,
    TaskCancelRequested(TaskCancelRequested) = "agent_task_cancel_requested" Warn,
    DelegateStarted(DelegateStarted) = "agent_delegate_started" Info,
    AwaitStarted(AwaitStarted) = "agent_await_started" Info,
    AwaitCompleted(AwaitCompleted) = "agent_await_completed" Info,
    TaskReturned(TaskReturned) = "task_return_completed" Info,
    ResultsDelivered(ResultsDelivered) = "agent_results_delivered" Info,
    OutputCaptured(OutputCaptured) = "direct_output_captured" Info,
    DriftRecoveryAttempted(DriftRecoveryAttempted) = "drift_recovery_attempted" Warn,
    Stuck(Stuck) = "agent_stuck" Warn,
    FallbackUsed(FallbackUsed) = "agent_fallback_used" Warn,
    LateResult(LateResult) = "late_result" Warn,
    CancelRequested(CancelRequested) = "run_cancel_requested" Warn,
    AbortCompleted(AbortCompleted) = "effect_aborted" Debug,
    PersistCommitted(PersistCommitted) = "persistent_changes_committed" Info,
    PersistFailed(PersistFailed) = "persistent_changes_commit_failed" Error,
    RunFinishing(RunFinishing) = "run_finishing" Info,
    RunFailing(RunFailing) = "run_failing" Error,
    RunCompleted(RunEnded) = "run_completed" Info,
    RunPartialSuccess(RunEnded) = "run_partial_success" Warn,
    RunFailed(RunEnded) = "run_failed" Error,
    RunCancelled(RunEnded) = "run_cancelled" Warn,
}
