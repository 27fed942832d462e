//! The beginning of a run: everything that comes in is checked before the first fact is recorded.

use serde_json::{Map, Value, json};

use crate::domain::authority::Authority;
use crate::domain::fault::Fault;
use crate::domain::ids;
use crate::domain::kinds::{ExitPolicy, InvocationKind};
use crate::domain::limits::RunLimits;
use crate::domain::profile::{Profile, parse_profiles};
use crate::journal::event::{InvocationCreated, RunCreated};
use crate::journal::{Doc, Event, Id};
use crate::run::batch::Batch;
use crate::run::command::Start;
use crate::tools::alias;
use crate::workspace::paths;

use super::prompt;

const GENERATION_TYPES: [&str; 6] = ["normal", "regenerate", "swipe", "continue", "quiet", "impersonate"];

pub fn start(batch: &mut Batch, options: Start) -> Result<(), Fault> {
    if batch.state.frozen.is_some() {
        return Err(Fault::new("run.already_started", "This machine holds a run already; use one machine for each run."));
    }
    let run_id = options.run_id.clone().filter(|id| ids::is_run_id(id)).ok_or_else(|| invalid("runId", "run_ and 32 lower-case hex digits"))?;
    let profiles = parse_profiles(&options.profiles)?;
    let root = root_profile(&profiles, &options.profile_id)?;
    let (root_id, root_name, presentation) = (Id::from(root.id.as_str()), Id::from(root.display_name()), root.presentation().to_owned());
    let limits = RunLimits::parse(options.limits.as_ref())?;
    if let Some(fallback) = &limits.fallback_profile_id
        && !profiles.iter().any(|profile| profile.id == *fallback)
    {
        return Err(Fault::new("config.unknown_fallback", format!("limits.fallbackProfileId names {fallback:?}, which is not among the profiles.")).detail("path", "$.limits.fallbackProfileId"));
    }
    let authority = options.authority.as_ref().filter(|value| !value.is_null()).map(Authority::parse).transpose()?;
    let host_tools = options.host_tools.as_ref().map(|tools| host_tools(tools)).transpose()?;
    batch.state.begin(&run_id);
    let created = RunCreated {
        profile_id: root_id.clone(),
        profiles: Doc::of(&profiles),
        host_tools: host_tools.unwrap_or_default(),
        input: options.input.as_ref().map_or_else(Doc::null, |json| Doc::from_json(json.get())),
        generation_type: one_of("generationType", options.generation_type.as_deref().unwrap_or("normal"), &GENERATION_TYPES)?,
        presentation: one_of("presentation", options.presentation.as_deref().unwrap_or(&presentation), &["foreground", "background"])?,
        chat: Doc::of(&chat(options.chat)?),
        persist_base_state_id: options.persist_base_state_id.map(Into::into),
        locale: batch.locale.tag().into(),
        limits: Doc::of(&limits),
        authority: authority.as_ref().map_or_else(Doc::null, Doc::of),
        files: Doc::of(&files("files", options.files, &limits)?),
        persist_files: Doc::of(&files("persistFiles", options.persist_files, &limits)?),
        forked_from: Doc::null(),
    };
    batch.emit(Event::RunCreated(created));
    batch.emit(Event::InvocationCreated(InvocationCreated {
        invocation_id: "inv_root".into(),
        parent_invocation_id: None,
        profile_id: root_id,
        display_name: root_name,
        kind: InvocationKind::Root,
        exit_policy: ExitPolicy::RunFinishAllowed,
        task_id: None,
        workspace_key: None,
        depth: 0,
    }));
    prompt::begin(batch, 0);
    Ok(())
}

fn invalid(field: &str, allowed: &str) -> Fault {
    Fault::new("start.invalid", format!("{field} must be {allowed}.")).detail("path", format!("$.{field}"))
}

fn one_of(field: &str, value: &str, allowed: &[&str]) -> Result<Id, Fault> {
    if allowed.contains(&value) { Ok(value.into()) } else { Err(invalid(field, &format!("one of {}; {value:?} came", allowed.join(", ")))) }
}

fn root_profile<'a>(profiles: &'a [Profile], id: &str) -> Result<&'a Profile, Fault> {
    let root = profiles.iter().find(|profile| profile.id == id.trim()).ok_or_else(|| {
        let known: Vec<&str> = profiles.iter().map(|profile| profile.id.as_str()).collect();
        Fault::new("profile.not_found", format!("No profile is called {id:?}; there are {}.", known.join(", "))).detail("path", "$.profileId")
    })?;
    if root.requires_configuration() {
        return Err(Fault::new("profile.model_requires_configuration", format!("The profile {id:?} has no model yet: bind one before it can start.")).detail("path", "$.profileId"));
    }
    Ok(root)
}

fn chat(chat: Option<Value>) -> Result<Value, Fault> {
    let Some(chat) = chat.filter(|chat| !chat.is_null()) else { return Ok(Value::Null) };
    let id = chat.get("stableChatId").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    if id.is_empty() || id.len() > 512 {
        return Err(invalid("chat.stableChatId", "a text of 1 to 512 bytes"));
    }
    Ok(json!({ "stableChatId": id, "chatRef": chat.get("chatRef").cloned().unwrap_or(Value::Null) }))
}

fn files(field: &str, files: Option<Map<String, Value>>, limits: &RunLimits) -> Result<Map<String, Value>, Fault> {
    let mut checked = Map::new();
    let mut bytes = 0;
    for (path, text) in files.unwrap_or_default() {
        let place = format!("{field}[{path:?}]");
        let normal = paths::normalise(&path).ok().filter(|normal| paths::root_of(normal).is_some_and(|root| root.len() < normal.len()));
        let normal = normal.ok_or_else(|| invalid(&place, &format!("under one of {}", paths::ROOTS.join(", "))))?;
        let text = text.as_str().ok_or_else(|| invalid(&place, "a text"))?;
        bytes += text.len() as u64;
        if text.len() as u64 > limits.max_file_bytes || bytes > limits.max_workspace_bytes {
            return Err(invalid(&place, &format!("at most {} bytes, and all files at most {}", limits.max_file_bytes, limits.max_workspace_bytes)));
        }
        checked.insert(normal, Value::from(text));
    }
    Ok(checked)
}

/// Checks the host's tools and the names that models will know them by.
pub fn host_tools(tools: &[Value]) -> Result<Doc, Fault> {
    let mut names: Vec<String> = Vec::new();
    let mut checked = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let wrong = |field: &str, allowed: &str| {
            Fault::new("host.tool_invalid", format!("hostTools[{index}].{field} must be {allowed}.")).detail("path", format!("$.hostTools[{index}].{field}"))
        };
        let name = tool.get("name").and_then(Value::as_str).map(str::trim).filter(|name| !name.is_empty()).ok_or_else(|| wrong("name", "a name"))?;
        if name.starts_with("agent.") || name.starts_with("task.") || name.starts_with("workspace.") {
            return Err(wrong("name", "outside agent., task. and workspace., which are built in"));
        }
        let schema = tool.get("inputSchema").cloned().unwrap_or(Value::Null);
        if !schema.is_object() || schema.get("type").is_some_and(|kind| kind != "object") {
            return Err(wrong("inputSchema", "a JSON Schema of type \"object\""));
        }
        names.push(name.to_owned());
        checked.push(json!({
            "name": name,
            "title": tool.get("title").and_then(Value::as_str),
            "description": tool.get("description").and_then(Value::as_str).unwrap_or_default(),
            "inputSchema": schema,
            "readOnly": tool.get("readOnly").and_then(Value::as_bool).unwrap_or(false),
            "requiresApproval": tool.get("requiresApproval").and_then(Value::as_bool).unwrap_or(false),
            "timeoutMs": tool.get("timeoutMs").and_then(Value::as_f64),
        }));
    }
    alias::table(names.iter().map(String::as_str))
        .map_err(|clash| Fault::new("host.tool_name_collision", format!("Models would know both {:?} and {:?} by one name; rename one.", clash.0, clash.1)))?;
    Ok(Doc::of(&checked))
}
