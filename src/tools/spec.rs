//! The model's tools as providers take them: name, description, schema. Descriptions come from the locale and are
//! written from the model's point of view; schemas use only what strict providers accept.

use serde_json::{Map, Value, json};

use crate::domain::say::Say;

macro_rules! core_tools {
    ($($variant:ident = $canonical:literal $alias:literal),* $(,)?) => {
        /// What the core itself provides.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum CoreTool { $($variant),* }

        impl CoreTool {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub fn canonical(self) -> &'static str {
                match self { $(Self::$variant => $canonical),* }
            }
            /// The name that models know it by.
            pub fn alias(self) -> &'static str {
                match self { $(Self::$variant => $alias),* }
            }
        }
    };
}

core_tools! {
    List = "agent.list" "agent_list",
    Delegate = "agent.delegate" "agent_delegate",
    Handoff = "agent.handoff" "agent_handoff",
    Await = "agent.await" "agent_await",
    Cancel = "agent.cancel" "agent_cancel",
    Return = "task.return" "task_return",
    ListFiles = "workspace.list_files" "workspace_list_files",
    SearchFiles = "workspace.search_files" "workspace_search_files",
    ReadFile = "workspace.read_file" "workspace_read_file",
    WriteFile = "workspace.write_file" "workspace_write_file",
    ApplyPatch = "workspace.apply_patch" "workspace_apply_patch",
    Commit = "workspace.commit" "workspace_commit",
    Finish = "workspace.finish" "workspace_finish",
}

impl CoreTool {
    pub fn from_canonical(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.canonical() == name)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.canonical() == name || tool.alias() == name)
    }

    pub fn is_closing(self) -> bool {
        matches!(self, Self::Handoff | Self::Return | Self::Finish)
    }

    pub fn is_changing(self) -> bool {
        matches!(self, Self::WriteFile | Self::ApplyPatch | Self::Commit | Self::Delegate | Self::Handoff | Self::Return | Self::Finish)
    }

    pub fn is_read_only(self) -> bool {
        !self.is_changing() && self != Self::Cancel
    }
}

/// What the specs of one agent depend on.
pub struct SpecFacts<'a> {
    pub handoff_targets: &'a [String],
    pub delegate_targets: &'a [String],
    pub visible_roots: &'a [String],
    pub writable_roots: &'a [String],
    pub message_body_path: &'a str,
    pub overrides: Option<&'a Map<String, Value>>,
}

/// None where the tool would have nobody to choose from (rule C1).
pub fn spec(tool: CoreTool, say: &dyn Say, facts: &SpecFacts) -> Option<Value> {
    let targets = match tool {
        CoreTool::Handoff => facts.handoff_targets,
        CoreTool::Delegate => facts.delegate_targets,
        _ => &[],
    };
    if targets.is_empty() && matches!(tool, CoreTool::Handoff | CoreTool::Delegate) {
        return None;
    }
    let mut schema = input_schema(tool, say);
    if !targets.is_empty() {
        schema["properties"]["agentId"]["enum"] = json!(targets);
    }
    let roots = |roots: &[String]| roots.iter().map(|root| format!("{root}/")).collect::<Vec<_>>().join(", ");
    let key = format!("tools.{}", tool.alias());
    let args = [("visible", roots(facts.visible_roots)), ("writable", roots(facts.writable_roots)), ("body", facts.message_body_path.to_owned())];
    let args: Vec<(&str, &str)> = args.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut description = say.say(&key, &args);
    if let Some(own) = facts.overrides.and_then(|all| all.get(tool.canonical())) {
        if let Some(text) = own.get("description").and_then(Value::as_str).filter(|text| !text.trim().is_empty()) {
            description = text.trim().to_owned();
        }
        for (name, text) in own.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let Some(property) = schema["properties"].get_mut(name).filter(|_| text.is_string()) {
                property["description"] = text.clone();
            }
        }
    }
    Some(json!({
        "name": tool.alias(), "canonicalName": tool.canonical(), "title": say.say(&format!("{key}.title"), &[]),
        "description": description, "inputSchema": schema, "readOnly": tool.is_read_only(),
    }))
}

/// (name, type, required, key of its description)
type Field = (&'static str, &'static str, bool);

fn fields(tool: CoreTool) -> &'static [Field] {
    match tool {
        CoreTool::List => &[("purpose", "purpose", false), ("query", "string", false), ("limit", "integer", false)],
        CoreTool::Delegate => &[("agentId", "string", true), ("task", "task", true)],
        CoreTool::Handoff => &[("agentId", "string", true), ("handoff", "handoff", true), ("pendingTaskPolicy", "policy", false)],
        CoreTool::Await => &[("taskIds", "texts", false), ("mode", "await", false), ("timeoutMs", "integer", false)],
        CoreTool::Cancel => &[("taskId", "string", true), ("reason", "string", false)],
        CoreTool::Return => &[
            ("summary", "string", true), ("status", "status", false), ("confidence", "confidence", false), ("artifacts", "artifacts", false),
            ("findings", "objects", false), ("warnings", "texts", false), ("suggestedNextActions", "texts", false), ("questionsForCaller", "texts", false),
        ],
        CoreTool::ListFiles => &[("path", "string", false), ("depth", "integer", false)],
        CoreTool::SearchFiles => &[("query", "string", true), ("path", "string", false), ("limit", "integer", false), ("context_lines", "integer", false)],
        CoreTool::ReadFile => &[
            ("path", "string", true), ("start_line", "integer", false), ("line_count", "integer", false), ("start_char", "integer", false), ("max_chars", "integer", false),
        ],
        CoreTool::WriteFile => &[("path", "string", true), ("content", "string", true), ("mode", "mode", false)],
        CoreTool::ApplyPatch => &[("path", "string", true), ("old_string", "string", true), ("new_string", "string", true), ("replace_all", "boolean", false)],
        CoreTool::Commit => &[("path", "string", false), ("mode", "mode", false), ("reason", "string", false), ("finish", "boolean", false)],
        CoreTool::Finish => &[("reason", "string", false)],
    }
}

/// The schema without the choice of agents: what arguments are checked against.
pub fn input_schema(tool: CoreTool, say: &dyn Say) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, kind, needed) in fields(tool) {
        let mut property = shape(kind, say);
        property["description"] = say.say(&format!("tools.{}.{name}", tool.alias()), &[]).into();
        properties.insert((*name).to_owned(), property);
        if *needed {
            required.push(*name);
        }
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

fn shape(kind: &str, say: &dyn Say) -> Value {
    let words = |words: &[&str]| json!({ "type": "string", "enum": words });
    match kind {
        "texts" => json!({ "type": "array", "items": { "type": "string" } }),
        "objects" => json!({ "type": "array", "items": { "type": "object" } }),
        "purpose" => words(&["any", "delegate", "handoff"]),
        "policy" => words(&["denyIfPending"]),
        "await" => words(&["nextCompleted", "allCompleted", "statusOnly"]),
        "status" => words(&["completed", "failed"]),
        "confidence" => words(&["low", "medium", "high"]),
        "mode" => words(&["replace", "append"]),
        "artifacts" => {
            let text = json!({ "type": "string" });
            json!({ "type": "array", "items": { "type": "object", "properties": { "path": text, "kind": text, "role": text }, "required": ["path"] } })
        }
        "task" => brief(say, "task", &["title"], &[]),
        "handoff" => brief(say, "handoff", &["title", "reason", "contextSummary"], &["workspaceRefs", "mustPreserve", "completionCriteria"]),
        plain => json!({ "type": plain }),
    }
}

/// A brief: its objective, the texts that are known, and lists that are asked for and never refused.
fn brief(say: &dyn Say, of: &str, texts: &[&str], lists: &[&str]) -> Value {
    let mut properties = Map::new();
    let mut add = |name: &str, mut property: Value| {
        property["description"] = say.say(&format!("tools.{of}.{name}"), &[]).into();
        properties.insert(name.to_owned(), property);
    };
    add("objective", json!({ "type": "string" }));
    for name in texts {
        add(name, json!({ "type": "string" }));
    }
    for name in lists {
        add(name, json!({ "type": "array", "items": { "type": "string" } }));
    }
    json!({ "type": "object", "properties": properties, "required": ["objective"] })
}

/// The list fields of briefs, which take any JSON (rule A3).
pub const FREE_LISTS: [&str; 5] = ["workspaceRefs", "mustPreserve", "completionCriteria", "openQuestions", "userIntent"];
