//! The start of an invocation: its tools, its prompt, and what the host made of them. From its source it gets
//! nothing but the brief (rule H3).

use serde::Serialize;
use serde_json::{Value, json};

use crate::domain::fault::Fault;
use crate::domain::failure::Failure;
use crate::domain::ids::IdKind;
use crate::domain::kinds::InvocationKind;
use crate::domain::profile::{Profile, effective_tools};
use crate::journal::event::*;
use crate::journal::{Doc, Event};
use crate::policy::{Operation, catalogue};
use crate::render::prompt::{CatalogueEntry, PromptFacts, system_prompt};
use crate::run::batch::Batch;
use crate::run::command::Placed;
use crate::run::effect::EffectKey;
use crate::run::state::*;
use crate::tools::{CoreTool, SpecFacts, alias, spec};

use super::{ending, model, start};

/// Starts an invocation that exists; its task, if any, is running by then.
pub fn begin(batch: &mut Batch, ordinal: Ordinal) {
    let Some(invocation) = batch.state.invocation(ordinal).cloned() else { return };
    let Some(profile) = batch.state.team.find(&invocation.profile_id).cloned() else {
        let failure = Failure::new("agent.target_profile_not_found", format!("The profile {} is gone.", invocation.profile_id));
        ending::invocation_failed(batch, ordinal, failure);
        return;
    };
    batch.emit(Event::InvocationStarted(InvocationStarted {
        invocation_id: invocation.id.clone(),
        profile_id: invocation.profile_id.clone(),
        kind: invocation.kind,
        profile: Doc::of(&*profile),
    }));
    let shared = batch.state.frozen.as_ref().and_then(|frozen| frozen.host_tools.clone());
    if let Some(tools) = shared {
        prepare(batch, ordinal, &tools);
    }
}

pub fn tools_resolved(batch: &mut Batch, key: EffectKey, tools: &[Value]) -> Result<(), Fault> {
    let tools = start::host_tools(tools)?;
    if let Some(ordinal) = key.invocation() {
        prepare(batch, ordinal, &tools);
    }
    Ok(())
}

/// Renders what the agent is told and given, and asks the host to assemble.
fn prepare(batch: &mut Batch, ordinal: Ordinal, host_tools: &Doc) {
    let Some(invocation) = batch.state.invocation(ordinal).cloned() else { return };
    let Some(work) = invocation.work.as_deref() else { return };
    let profile = work.profile.clone();
    let kit = Kit::of(batch, &invocation, host_tools);
    let prompt = system_prompt(batch.locale, &kit.prompt_facts(&invocation, &profile, batch.state.frozen.as_deref().is_some_and(|frozen| frozen.background)));
    let brief = invocation.task.and_then(|task| batch.state.task(task)).map(|task| task.brief.clone());
    batch.emit(Event::PromptPrepared(PromptPrepared {
        invocation_id: invocation.id.clone(),
        agent_system_prompt: prompt.into(),
        agent_task_prompt: brief,
        tools: Doc::of(&kit.specs),
        host_tools: Doc::of(&kit.host),
    }));
    if let Some(reference) = profile.preset_ref() {
        batch.emit(Event::AssemblyRequested(AssemblyRequested {
            invocation_id: invocation.id.clone(),
            assembly_id: batch.id(IdKind::Assembly, ordinal),
            preset_ref: Doc::of(&reference),
        }));
    }
}

/// The tools of one invocation: specs for the model, the host's own entries, and whom it may choose.
struct Kit {
    specs: Vec<Value>,
    host: Vec<HostTool>,
    core: Vec<CoreTool>,
    host_names: Vec<String>,
    handoff: Vec<CatalogueEntry>,
    delegate: Vec<CatalogueEntry>,
}

impl Kit {
    fn of(batch: &Batch, invocation: &Invocation, host_tools: &Doc) -> Self {
        let work_profile = batch.work(invocation.ordinal).map(|work| work.profile.clone()).unwrap_or_default();
        let profile: &Profile = &work_profile;
        let state = &batch.state;
        let authority = state.frozen.as_ref().and_then(|frozen| frozen.authority.clone());
        let nests = invocation.depth < state.limits().max_delegation_depth;
        let names = effective_tools(profile, authority.as_ref(), invocation.kind, nests);
        let available: Vec<HostTool> = host_tools.parse();
        let team: Vec<&Profile> = state.team.profiles.iter().map(|profile| &**profile).collect();
        let entries = |operation: Operation, tool: CoreTool| -> Vec<CatalogueEntry> {
            if !names.iter().any(|name| name == tool.canonical()) || !operation.allowed_to(profile) {
                return Vec::new();
            }
            let listed = catalogue(profile, &team, operation);
            listed.iter().map(|target| CatalogueEntry { id: target.id.clone(), description: target.description_for_agents().to_owned() }).collect()
        };
        let (handoff, delegate) = (entries(Operation::Handoff, CoreTool::Handoff), entries(Operation::Delegate, CoreTool::Delegate));
        let mut kit = Self { specs: Vec::new(), host: Vec::new(), core: Vec::new(), host_names: Vec::new(), handoff, delegate };
        let ids = |entries: &[CatalogueEntry]| entries.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>();
        let (handoff_ids, delegate_ids) = (ids(&kit.handoff), ids(&kit.delegate));
        let facts = SpecFacts {
            handoff_targets: &handoff_ids,
            delegate_targets: &delegate_ids,
            visible_roots: profile.visible_roots(),
            writable_roots: profile.writable_roots(),
            message_body_path: profile.message_body_path(),
            overrides: profile.tool_descriptions(),
        };
        let aliases = alias::table(names.iter().map(String::as_str)).unwrap_or_default();
        for name in &names {
            if let Some(tool) = CoreTool::from_canonical(name) {
                if let Some(built) = spec(tool, batch.locale, &facts) {
                    kit.core.push(tool);
                    kit.specs.push(built);
                }
            } else if let Some(tool) = available.iter().find(|tool| *tool.name == **name) {
                let alias = aliases.alias_of(name).unwrap_or(name).to_owned();
                kit.specs.push(json!({
                    "name": alias, "canonicalName": name, "title": tool.title.as_deref().unwrap_or(name), "description": tool.description,
                    "inputSchema": tool.input_schema, "readOnly": tool.read_only,
                }));
                kit.host_names.push(alias);
                kit.host.push(tool.clone());
            }
        }
        kit
    }

    fn prompt_facts<'a>(&'a self, invocation: &Invocation, profile: &'a Profile, background: bool) -> PromptFacts<'a> {
        PromptFacts {
            core: &self.core,
            host_tools: &self.host_names,
            visible_roots: profile.visible_roots(),
            writable_roots: profile.writable_roots(),
            message_body_path: profile.message_body_path(),
            own_prompt: profile.agent_system_prompt(),
            background,
            delegated: invocation.kind == InvocationKind::Subagent,
            handoff: &self.handoff,
            delegate: &self.delegate,
        }
    }
}

#[derive(Serialize)]
struct Plain<'a> {
    role: &'a str,
    content: &'a str,
}

/// The host's assembly. What it did not place is looked for, and what is not found is appended.
pub fn assembled(batch: &mut Batch, key: EffectKey, messages: &str, parameters: Option<&str>, placed: &Placed) -> Result<(), Fault> {
    let Some(ordinal) = key.invocation() else { return Ok(()) };
    let Some(work) = batch.work(ordinal).cloned() else { return Ok(()) };
    let mut list: Vec<Value> = serde_json::from_str(messages).map_err(|_| Fault::new("host.assembly_invalid", "messages must be a list of {role, content}.").detail("path", "$.messages"))?;
    check_messages(&list)?;
    let appended = append_missing(&mut list, &work, placed);
    let messages = if appended.is_empty() { Doc::from_json(messages) } else { Doc::of(&list) };
    let invocation_id = batch.invocation_id(ordinal);
    if work.profile.preset_ref().is_some() {
        let assembly_id = batch.id(IdKind::Assembly, ordinal);
        batch.emit(Event::AssemblyCompleted(AssemblyEnded { invocation_id: invocation_id.clone(), assembly_id, message: None }));
    }
    batch.emit(Event::ContextAssembled(ContextAssembled {
        invocation_id: invocation_id.clone(),
        messages,
        parameters: parameters.map_or_else(Doc::null, Doc::from_json),
        message_count: list.len() as u32,
        tool_count: work.tool_names.len() as u32,
        appended,
    }));
    let (visible, deny) = work.profile.skills();
    batch.emit(Event::SkillScopesResolved(SkillScopesResolved { invocation_id, visible, deny }));
    model::next_round(batch, ordinal);
    Ok(())
}

fn check_messages(list: &[Value]) -> Result<(), Fault> {
    for (index, message) in list.iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if !["system", "user", "assistant", "tool"].contains(&role) || !message.get("content").is_some_and(Value::is_string) {
            let text = format!("messages[{index}] must be {{role: system | user | assistant | tool, content: text}}.");
            return Err(Fault::new("host.assembly_invalid", text).detail("path", format!("$.messages[{index}]")));
        }
    }
    Ok(())
}

fn append_missing(list: &mut Vec<Value>, work: &Work, placed: &Placed) -> Vec<Id> {
    let mut appended = Vec::new();
    let found = |list: &[Value], text: &str| list.iter().any(|message| message["content"].as_str().is_some_and(|content| content.contains(text)));
    let system = work.system_prompt.as_str();
    if placed.agent_system_prompt.is_none() && !system.is_empty() && !found(list, system) {
        list.insert(0, json!(Plain { role: "system", content: system }));
        appended.push("agentSystemPrompt".into());
    }
    if let Some(brief) = &work.task_prompt
        && placed.agent_task_prompt.is_none()
        && !found(list, brief.as_str())
    {
        list.push(json!(Plain { role: "user", content: brief.as_str() }));
        appended.push("agentTaskPrompt".into());
    }
    appended
}

/// The host could not give tools or a prompt: the invocation fails (rule H7).
pub fn failed(batch: &mut Batch, ordinal: Ordinal, failure: Failure) {
    if batch.work(ordinal).is_some_and(|work| work.profile.preset_ref().is_some() && matches!(work.step, Step::Assembling)) {
        let message = Some(failure.message.as_str().into());
        let (invocation_id, assembly_id) = (batch.invocation_id(ordinal), batch.id(IdKind::Assembly, ordinal));
        batch.emit(Event::AssemblyFailed(AssemblyEnded { invocation_id, assembly_id, message }));
    }
    ending::start_failed(batch, ordinal, failure);
}
