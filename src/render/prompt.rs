//! The system prompt of an agent: follows its effective tools, names no tool that it lacks (rules B8, C5).

use super::markdown;
use crate::domain::say::Say;
use crate::tools::CoreTool;

/// An agent that can be chosen, and what is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueEntry {
    pub id: String,
    pub description: String,
}

pub struct PromptFacts<'a> {
    pub core: &'a [CoreTool],
    /// Model-facing names of the host's tools.
    pub host_tools: &'a [String],
    pub visible_roots: &'a [String],
    pub writable_roots: &'a [String],
    pub message_body_path: &'a str,
    /// The profile's own prompt, which replaces all but ending and catalogue.
    pub own_prompt: Option<&'a str>,
    pub background: bool,
    pub delegated: bool,
    pub handoff: &'a [CatalogueEntry],
    pub delegate: &'a [CatalogueEntry],
}

impl PromptFacts<'_> {
    fn has(&self, tool: CoreTool) -> bool {
        self.core.contains(&tool)
    }
}

pub fn system_prompt(say: &dyn Say, facts: &PromptFacts) -> String {
    let mut parts = vec![match facts.own_prompt {
        Some(own) => own.to_owned(),
        None => default_prompt(say, facts),
    }];
    parts.push(ending(say, facts));
    parts.extend(catalogue(say, facts));
    parts.join("\n\n")
}

fn default_prompt(say: &dyn Say, facts: &PromptFacts) -> String {
    let mut lines = vec![say.say("prompt.head", &[])];
    if facts.delegated {
        lines.push(say.say("prompt.delegated", &[]));
    }
    let names: Vec<String> = facts.core.iter().map(|tool| tool.alias().to_owned()).chain(facts.host_tools.iter().cloned()).collect();
    if !names.is_empty() {
        lines.push(format!("{} {}.", say.say("prompt.tools", &[]), names.join(", ")));
    }
    let folders = |roots: &[String]| if roots.is_empty() { "-".to_owned() } else { roots.iter().map(|root| format!("{root}/")).collect::<Vec<_>>().join(", ") };
    lines.push(say.say("prompt.roots", &[("visible", &folders(facts.visible_roots)), ("writable", &folders(facts.writable_roots))]));
    let persist = |roots: &[String]| roots.iter().any(|root| root == "persist");
    let hints: [(&str, bool); 8] = [
        ("prompt.list", facts.has(CoreTool::ListFiles)),
        ("prompt.read", facts.has(CoreTool::ReadFile)),
        ("prompt.write", facts.has(CoreTool::WriteFile)),
        ("prompt.commit", facts.has(CoreTool::Commit)),
        ("prompt.persist", persist(facts.writable_roots) && facts.has(CoreTool::WriteFile)),
        ("prompt.delegate", facts.has(CoreTool::Delegate)),
        ("prompt.await", facts.has(CoreTool::Await)),
        ("prompt.handoff", facts.has(CoreTool::Handoff)),
    ];
    if facts.has(CoreTool::Commit) || facts.has(CoreTool::WriteFile) {
        lines.push(say.say("prompt.body", &[("body", facts.message_body_path)]));
    }
    lines.extend(hints.iter().filter(|(_, applies)| *applies).map(|(key, _)| say.say(key, &[])));
    lines.join("\n")
}

fn ending(say: &dyn Say, facts: &PromptFacts) -> String {
    let (finish, handoff) = (facts.has(CoreTool::Finish), facts.has(CoreTool::Handoff));
    let mut lines = vec![say.say("prompt.ending", &[])];
    let key = match (facts.delegated, finish, handoff) {
        (true, _, _) => "prompt.end_return",
        (_, true, _) if facts.background => "prompt.end_finish_background",
        (_, true, _) if facts.has(CoreTool::Commit) => "prompt.end_finish_commit",
        (_, true, _) => "prompt.end_finish",
        (_, false, true) => "prompt.end_handoff",
        _ => "prompt.end_none",
    };
    lines.push(say.say(key, &[]));
    if finish && handoff && !facts.delegated {
        lines.push(say.say("prompt.end_handoff_too", &[]));
    }
    lines.join("\n")
}

/// `- editor [handoff]: description`, one line an agent; nothing where there is nobody.
fn catalogue(say: &dyn Say, facts: &PromptFacts) -> Option<String> {
    let mut entries: Vec<(&str, Vec<&'static str>, &str)> = Vec::new();
    for (operation, list) in [("delegate", facts.delegate), ("handoff", facts.handoff)] {
        for entry in list {
            match entries.iter_mut().find(|(id, _, _)| *id == entry.id) {
                Some((_, operations, _)) => operations.push(operation),
                None => entries.push((&entry.id, vec![operation], &entry.description)),
            }
        }
    }
    if entries.is_empty() {
        return None;
    }
    entries.sort();
    let mut lines = vec![say.say("prompt.agents", &[])];
    lines.extend(entries.iter().map(|(id, operations, description)| catalogue_line(id, operations, description)));
    lines.push(say.say("prompt.agents_note", &[]));
    Some(lines.join("\n"))
}

pub fn catalogue_line(id: &str, operations: &[&str], description: &str) -> String {
    let head = format!("- {id} [{}]", operations.join(", "));
    let description = markdown::inline(description);
    if description.is_empty() { head } else { format!("{head}: {description}") }
}
