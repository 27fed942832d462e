//! Effects as the host gets them: plain JSON, built out of recorded texts only; nothing is rendered here.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::effect::{CallPlace, EffectKey};
use super::query;
use super::state::*;
use crate::domain::ids::{self, IdKind};
use crate::journal::text::raw;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModelRequest<'a> {
    run_id: &'a str,
    invocation_id: &'a str,
    profile_id: &'a str,
    round: u32,
    attempt: u32,
    session_id: String,
    messages: Box<RawValue>,
    tools: Box<RawValue>,
    model: Value,
    parameters: Box<RawValue>,
}

#[derive(Serialize)]
struct Requesting<'a, T: Serialize> {
    r#type: &'static str,
    id: &'a str,
    request: T,
}

fn text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// A value inside, spliced as the JSON text that it is.
fn spliced(mut fields: Value, name: &str, json: &str) -> String {
    fields[name] = Value::Null;
    let whole = text(&fields);
    whole.replacen(&format!("\"{name}\":null"), &format!("\"{name}\":{json}"), 1)
}

impl State {
    pub fn effect_json(&self, key: &EffectKey) -> String {
        let id = key.id(self.run_id());
        self.described(key, &id).unwrap_or_else(|| text(&json!({ "type": "abort", "id": id, "targetId": id })))
    }

    fn described(&self, key: &EffectKey, id: &str) -> Option<String> {
        Some(match key {
            EffectKey::ResolveTools(ordinal) => {
                let (invocation, work) = self.at(*ordinal)?;
                text(&json!({ "type": "resolve_tools", "id": id, "runId": self.run_id(), "invocationId": &*invocation.id, "profile": &*work.profile }))
            }
            EffectKey::Assemble(ordinal) => self.assemble(*ordinal, id)?,
            EffectKey::Model { invocation, attempt, .. } => self.call_model(*invocation, *attempt, id)?,
            EffectKey::Human { invocation, round } => self.ask_human(*invocation, *round, id)?,
            EffectKey::Tool(place) => self.call_tool(*place, id)?,
            EffectKey::Approval(place) => {
                let (invocation, call) = self.call_at(*place)?;
                let fields = json!({ "runId": self.run_id(), "invocationId": &*invocation.id, "profileId": &*invocation.profile_id, "callId": &*call.id, "name": &*call.canonical, "authority": self.authority() });
                text(&Requesting { r#type: "request_approval", id, request: raw(&spliced(fields, "arguments", call.arguments.json())) })
            }
            EffectKey::Commit(place) => self.commit_request(*place, id)?,
            EffectKey::Promote => {
                let frozen = self.frozen.as_ref()?;
                let files: serde_json::Map<String, Value> = self.files.iter().filter(|(path, _)| path.starts_with("persist/")).map(|(path, file)| (path.to_string(), Value::from(&*file.text))).collect();
                text(&json!({ "type": "promote_persist", "id": id, "stableChatId": frozen.stable_chat_id, "expectedStateId": frozen.persist_base_state_id, "stateId": self.run_id(), "files": files }))
            }
            EffectKey::WakeDeadline(at_ms) => text(&json!({ "type": "wake_at", "id": id, "atMs": at_ms })),
            EffectKey::WakeRetry { invocation, .. } => match self.work(*invocation)?.step {
                Step::Calling(Call { retry_at_ms: Some(at_ms), .. }) => text(&json!({ "type": "wake_at", "id": id, "atMs": at_ms })),
                _ => return None,
            },
            EffectKey::WakeCommit { place, .. } => match &self.call_at(*place)?.1.state {
                CallState::Committing { retry_at_ms: Some(at_ms), .. } => text(&json!({ "type": "wake_at", "id": id, "atMs": at_ms })),
                _ => return None,
            },
            EffectKey::WakeAwait(place) => match &self.call_at(*place)?.1.state {
                CallState::Awaiting(waiting) => text(&json!({ "type": "wake_at", "id": id, "atMs": waiting.until_ms })),
                _ => return None,
            },
            EffectKey::Abort(path) => text(&json!({ "type": "abort", "id": id, "targetId": format!("{}/{path}", self.run_id()) })),
            EffectKey::End => text(&json!({ "type": "end", "id": id, "outcome": query::outcome(self) })),
        })
    }

    fn at(&self, ordinal: Ordinal) -> Option<(&Invocation, &Work)> {
        let invocation = self.invocation(ordinal)?;
        Some((invocation, invocation.work.as_deref()?))
    }

    fn call_at(&self, place: CallPlace) -> Option<(&Invocation, &TurnCall)> {
        let (invocation, work) = self.at(place.invocation)?;
        Some((invocation, work.turn()?.calls.get(place.index as usize)?))
    }

    fn authority(&self) -> Value {
        self.frozen.as_ref().map(|frozen| frozen.authority_doc.parse()).unwrap_or_default()
    }

    fn assemble(&self, ordinal: Ordinal, id: &str) -> Option<String> {
        let (invocation, work) = self.at(ordinal)?;
        let frozen = self.frozen.as_ref()?;
        let parent = invocation.parent.and_then(|parent| self.invocation(parent)).map(|parent| parent.id.clone());
        let request = json!({
            "assemblyId": ids::derive(self.run_id(), IdKind::Assembly, ordinal),
            "scope": {
                "runId": self.run_id(), "invocationId": &*invocation.id, "invocationKind": invocation.kind, "parentInvocationId": parent,
                "taskId": invocation.task.and_then(|task| self.task(task)).map(|task| task.id.clone()), "exitPolicy": invocation.exit_policy,
            },
            "profile": &*work.profile,
            "generationType": &*frozen.generation_type,
            "presetRef": work.profile.preset_ref(),
            "contextPolicy": work.profile.context_policy(),
            "agentSystemPrompt": work.system_prompt.as_str(),
            "agentTaskPrompt": work.task_prompt.as_ref().map(|prompt| prompt.as_str()),
            "authority": self.authority(),
        });
        let request = text(&request);
        let rest = request.strip_prefix('{')?;
        // First, so that no text of the request can be taken for its place.
        let request = format!("{{\"input\":{},{rest}", frozen.input.json());
        Some(text(&Requesting { r#type: "assemble_prompt", id, request: raw(&request) }))
    }

    /// The assembled prompt and the history, as one JSON list.
    fn messages(work: &Work) -> String {
        let mut list = work.prompt.json().trim().trim_end_matches(']').trim_end().to_owned();
        if list.is_empty() || list == "null" {
            list = "[".to_owned();
        }
        for message in &work.history {
            if !list.ends_with('[') {
                list.push(',');
            }
            list.push_str(&text(&**message));
        }
        list.push(']');
        list
    }

    fn call_model(&self, ordinal: Ordinal, attempt: u32, id: &str) -> Option<String> {
        let (invocation, work) = self.at(ordinal)?;
        let request = ModelRequest {
            run_id: self.run_id(),
            invocation_id: &invocation.id,
            profile_id: &invocation.profile_id,
            round: invocation.round(),
            attempt,
            session_id: format!("{}:{}", self.run_id(), invocation.id),
            messages: raw(&Self::messages(work)),
            tools: raw(work.tools.json()),
            model: work.profile.model(),
            parameters: raw(work.parameters.json()),
        };
        Some(text(&Requesting { r#type: "call_model", id, request }))
    }

    fn ask_human(&self, ordinal: Ordinal, round: u32, id: &str) -> Option<String> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct HumanRequest<'a> {
            run_id: &'a str,
            invocation_id: &'a str,
            profile_id: &'a str,
            round: u32,
            brief: Option<&'a str>,
            messages: Box<RawValue>,
            tools: Box<RawValue>,
        }
        let (invocation, work) = self.at(ordinal)?;
        let request = HumanRequest {
            run_id: self.run_id(),
            invocation_id: &invocation.id,
            profile_id: &invocation.profile_id,
            round,
            brief: work.task_prompt.as_ref().map(|prompt| prompt.as_str()),
            messages: raw(&Self::messages(work)),
            tools: raw(work.tools.json()),
        };
        Some(text(&Requesting { r#type: "ask_human", id, request }))
    }

    fn call_tool(&self, place: CallPlace, id: &str) -> Option<String> {
        let (invocation, call) = self.call_at(place)?;
        let tool = invocation.work.as_ref()?.host_tools.iter().find(|tool| tool.name == call.canonical)?;
        let arguments: serde_json::Map<String, Value> = call.arguments.parse();
        let repaired = crate::tools::validate::host_arguments(&tool.input_schema, &arguments).unwrap_or(arguments);
        Some(text(&json!({
            "type": "call_tool", "id": id, "name": &*call.canonical, "arguments": repaired, "readOnly": tool.read_only, "timeoutMs": tool.timeout_ms,
            "scope": { "runId": self.run_id(), "invocationId": &*invocation.id, "profileId": &*invocation.profile_id, "callId": &*call.id, "authority": self.authority() },
        })))
    }

    fn commit_request(&self, place: CallPlace, id: &str) -> Option<String> {
        let (invocation, call) = self.call_at(place)?;
        let CallState::Committing { commit, attempt, .. } = &call.state else { return None };
        let frozen = self.frozen.as_ref()?;
        let request = json!({
            "runId": self.run_id(), "commitId": &*commit.commit_id, "invocationId": &*invocation.id, "profileId": &*invocation.profile_id,
            "path": &*commit.path, "mode": commit.mode, "text": commit.text.as_str(), "reason": commit.reason.as_ref().map(|reason| reason.as_str()),
            "messageId": self.ledger.message_id, "chat": frozen.chat.parse::<Value>(), "generationType": &*frozen.generation_type,
            "baseText": commit.base_text.as_ref().map(|base| base.as_str()), "persistStateId": commit.persist_state_id, "authority": self.authority(),
        });
        Some(text(&json!({ "type": "commit", "id": id, "attempt": attempt, "request": request })))
    }

    /// Aborts that are still owed for one invocation.
    pub fn aborts_owed(&self, ordinal: Ordinal) -> Vec<EffectKey> {
        let mut owed = Vec::new();
        self.owed_by(ordinal, &mut owed);
        owed.retain(|key| matches!(key, EffectKey::Abort(_)));
        owed
    }

    /// Names the run before its first fact: the id stands in every line, not in a payload.
    pub fn begin(&mut self, run_id: &str) {
        self.run_id = run_id.into();
    }
}
