//! An agent's profile: who it is, what it may do, and how it is run. A superset of TauriTavern's files of
//! schemaVersion 1 to 4, which load unchanged. It knows no run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::authority::Authority;
use super::fault::Fault;
use super::kinds::InvocationKind;
use super::tool_names;
use crate::workspace::{Access, paths};

/// The newest schemaVersion of a profile file that is understood.
pub const SCHEMA_VERSION: u64 = 4;

/// A checked profile. Kept as its own JSON, in normal form: tool names canonical, defaults left out.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Profile {
    pub id: String,
    json: Map<String, Value>,
    pub warnings: Vec<String>,
    delegation: Delegation,
    tools: Tools,
    visible: Vec<String>,
    writable: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Delegation {
    pub can_delegate: bool,
    pub can_handoff: bool,
    pub callable: bool,
    pub allow_as_subagent: bool,
    pub allow_as_handoff_target: bool,
    pub allow_nested_delegation: bool,
    pub allowed_callers: Vec<String>,
    pub description_for_agents: Option<String>,
    pub max_concurrent_invocations: u32,
    pub max_invocations_per_run: u32,
    pub result_budget_tokens: u32,
    pub max_handoff_depth: u32,
}

impl Default for Delegation {
    fn default() -> Self {
        Self {
            can_delegate: false,
            can_handoff: false,
            callable: false,
            allow_as_subagent: false,
            allow_as_handoff_target: false,
            allow_nested_delegation: false,
            allowed_callers: vec!["*".to_owned()],
            description_for_agents: None,
            max_concurrent_invocations: 3,
            max_invocations_per_run: 8,
            result_budget_tokens: 8000,
            max_handoff_depth: 8,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tools {
    allow: Vec<String>,
    deny: Vec<String>,
    max_rounds: u32,
    max_calls_per_run: u32,
    max_calls_per_tool: Map<String, Value>,
}

impl Default for Tools {
    fn default() -> Self {
        Self { allow: Vec::new(), deny: Vec::new(), max_rounds: 80, max_calls_per_run: 80, max_calls_per_tool: Map::new() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelRetry {
    pub max_retries: u32,
    pub interval_ms: f64,
}

impl Serialize for Profile {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

/// All profiles of a team; duplicates and malformed ones are faults with their place.
pub fn parse_profiles(value: &Value) -> Result<Vec<Profile>, Fault> {
    let list = value.as_array().ok_or_else(|| Fault::new("profile.invalid", "profiles must be a list.").detail("path", "$.profiles"))?;
    let mut profiles: Vec<Profile> = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        let profile = Reader { path: format!("$.profiles[{index}]") }.profile(value)?;
        if let Some(first) = profiles.iter().position(|other| other.id == profile.id) {
            let message = format!("profiles[{first}] and profiles[{index}] are both called {:?}.", profile.id);
            return Err(Fault::new("profile.duplicate_id", message).detail("path", format!("$.profiles[{index}].id")).detail("id", profile.id));
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

struct Reader {
    path: String,
}

/// (field, what it must be) within each section.
const SHAPES: [(&str, &[(&str, &str)]); 9] = [
    ("", &[("displayName", "text"), ("description", "text"), ("kind", "text")]),
    ("preset", &[("mode", "text"), ("required", "flag")]),
    ("model", &[("mode", "text"), ("connectionRef", "text"), ("modelId", "text")]),
    ("run", &[("presentation", "text"), ("directRunnable", "flag")]),
    ("context", &[("initialChatHistoryMessages", "number"), ("includeActivatedWorldInfo", "flag")]),
    (
        "delegation",
        &[
            ("canDelegate", "flag"), ("canHandoff", "flag"), ("callable", "flag"), ("allowAsSubagent", "flag"), ("allowAsHandoffTarget", "flag"),
            ("allowNestedDelegation", "flag"), ("allowedCallers", "texts"), ("descriptionForAgents", "text"), ("maxConcurrentInvocations", "count"),
            ("maxInvocationsPerRun", "count"), ("resultBudgetTokens", "count"), ("maxHandoffDepth", "count"),
        ],
    ),
    ("instructions", &[("agentSystemPrompt", "text")]),
    ("tools", &[("allow", "texts"), ("deny", "texts"), ("maxRounds", "count"), ("maxCallsPerRun", "count"), ("maxCallsPerTool", "counts")]),
    ("skills", &[("visible", "texts"), ("deny", "texts"), ("maxReadCharsPerCall", "count"), ("maxReadCharsPerRun", "count")]),
];

impl Reader {
    fn wrong(&self, code: &'static str, field: &str, message: String) -> Fault {
        let dot = if field.is_empty() { "" } else { "." };
        Fault::new(code, message).detail("path", format!("{}{dot}{field}", self.path))
    }

    fn profile(&self, value: &Value) -> Result<Profile, Fault> {
        let map = value.as_object().ok_or_else(|| self.wrong("profile.invalid", "", format!("{} must be an object; {value} came.", self.path)))?;
        let mut json = map.clone();
        let id = self.id(json.get("id"))?;
        self.schema(&json)?;
        for (section, fields) in SHAPES {
            self.section(&json, section, fields)?;
        }
        self.plan(&json)?;
        self.words(&json)?;
        let mut warnings = Vec::new();
        self.tools(&mut json, &mut warnings)?;
        let roots = self.roots(&json)?;
        json.insert("id".to_owned(), Value::from(id.as_str()));
        Ok(Profile::assemble(id, json, warnings, roots))
    }

    fn id(&self, value: Option<&Value>) -> Result<String, Fault> {
        let Some(id) = value.and_then(Value::as_str).map(str::trim) else {
            return Err(self.wrong("profile.id_invalid", "id", format!("{}.id must be a text of a-z, 0-9, _ and -.", self.path)));
        };
        let bad = id.chars().enumerate().find(|(_, c)| !(c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '_' || *c == '-'));
        if let Some((at, c)) = bad {
            let message = format!("{}.id {id:?} has {c:?} at character {}; only a-z, 0-9, _ and - may be in an id.", self.path, at + 1);
            return Err(self.wrong("profile.id_invalid", "id", message).detail("character", c.to_string()).detail("position", at as u64 + 1));
        }
        if id.is_empty() || id.len() > 128 {
            return Err(self.wrong("profile.id_invalid", "id", format!("{}.id must have 1 to 128 characters; it has {}.", self.path, id.len())));
        }
        Ok(id.to_owned())
    }

    fn schema(&self, json: &Map<String, Value>) -> Result<(), Fault> {
        match json.get("schemaVersion") {
            None | Some(Value::Null) => Ok(()),
            Some(version) if version.as_u64().is_some_and(|n| (1..=SCHEMA_VERSION).contains(&n)) => Ok(()),
            Some(version) => {
                let message = format!("{}.schemaVersion is {version}; this build reads 1 to {SCHEMA_VERSION}. Update tasuki to load the file.", self.path);
                Err(self.wrong("profile.schema_unsupported", "schemaVersion", message))
            }
        }
    }

    fn section(&self, json: &Map<String, Value>, section: &str, fields: &[(&str, &str)]) -> Result<(), Fault> {
        let empty = Map::new();
        let map = match (section, json.get(section)) {
            ("", _) => json,
            (_, None | Some(Value::Null)) => &empty,
            (_, Some(Value::Object(map))) => map,
            (_, Some(other)) => return Err(self.wrong("profile.invalid", section, format!("{}.{section} must be an object; {other} came.", self.path))),
        };
        for (field, shape) in fields {
            let place = if section.is_empty() { (*field).to_owned() } else { format!("{section}.{field}") };
            let Some(value) = map.get(*field).filter(|value| !value.is_null()) else { continue };
            let texts = |list: &Value| list.as_array().is_some_and(|list| list.iter().all(Value::is_string));
            let count = |value: &Value| value.as_u64().is_some_and(|n| n <= u64::from(u32::MAX));
            let (fits, allowed) = match *shape {
                "text" => (value.is_string(), "a text"),
                "flag" => (value.is_boolean(), "true or false"),
                "number" => (value.as_f64().is_some_and(f64::is_finite), "a number"),
                "texts" => (texts(value), "a list of texts"),
                "counts" => (value.as_object().is_some_and(|map| map.values().all(count)), "an object of whole numbers"),
                _ => (count(value), "a whole number from 0 on"),
            };
            if !fits {
                return Err(self.wrong("profile.invalid", &place, format!("{}.{place} must be {allowed}; {value} came.", self.path)));
            }
        }
        Ok(())
    }

    fn plan(&self, json: &Map<String, Value>) -> Result<(), Fault> {
        let mode = json.get("plan").and_then(|plan| plan.get("mode")).filter(|mode| !mode.is_null());
        match mode {
            None => Ok(()),
            Some(mode) if mode == "none" => Ok(()),
            Some(mode) => Err(self.wrong("profile.plan_unsupported", "plan.mode", format!("{}.plan.mode is {mode}; only \"none\" is supported.", self.path))),
        }
    }

    fn words(&self, json: &Map<String, Value>) -> Result<(), Fault> {
        let allowed: [(&str, &str, &[&str]); 3] = [
            ("model", "mode", &["currentPromptSnapshot", "connectionRef", "requiresConfiguration", "human"]),
            ("preset", "mode", &["currentPromptSnapshot", "ref", "none"]),
            ("run", "presentation", &["foreground", "background"]),
        ];
        for (section, field, words) in allowed {
            let value = json.get(section).and_then(|section| section.get(field)).and_then(Value::as_str);
            if let Some(value) = value.filter(|value| !words.contains(value)) {
                let message = format!("{}.{section}.{field} is {value:?}; it must be one of {}.", self.path, words.join(", "));
                return Err(self.wrong("profile.invalid", &format!("{section}.{field}"), message));
            }
        }
        Ok(())
    }

    fn tools(&self, json: &mut Map<String, Value>, warnings: &mut Vec<String>) -> Result<(), Fault> {
        let Some(tools) = json.get_mut("tools").and_then(Value::as_object_mut).filter(|tools| tools.get("allow").is_some_and(Value::is_array)) else {
            return Err(self.wrong("profile.invalid", "tools.allow", format!("{}.tools.allow must be a list of tool names.", self.path)));
        };
        for list in ["allow", "deny"] {
            let Some(names) = tools.get(list).and_then(Value::as_array).cloned() else { continue };
            let mut kept: Vec<Value> = Vec::new();
            for (index, written) in names.iter().filter_map(Value::as_str).enumerate() {
                let name = tool_names::canonical(written);
                if tool_names::RETIRED.contains(&name) {
                    warnings.push(format!("tools.{list}: {written} is retired and was left out."));
                } else if name == "task.return" {
                    warnings.push(format!("tools.{list}: {written} is given to delegated agents by itself and was left out."));
                } else if tool_names::is_reserved(name) && !tool_names::CORE_TOOLS.contains(&name) {
                    let near = super::nearest::nearest(name, &tool_names::CORE_TOOLS).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
                    let message = format!("{}.tools.{list}[{index}] names {written:?}, which is no tool of tasuki.{near}", self.path);
                    return Err(self.wrong("profile.unknown_tool", &format!("tools.{list}[{index}]"), message).detail("tool", written));
                } else if !kept.iter().any(|other| other == name) {
                    kept.push(Value::from(name));
                }
            }
            tools.insert(list.to_owned(), Value::Array(kept));
        }
        for table in ["toolDescriptions", "maxCallsPerTool"] {
            if let Some(map) = tools.get(table).and_then(Value::as_object) {
                let renamed: Map<String, Value> = map.iter().map(|(name, value)| (tool_names::canonical(name).to_owned(), value.clone())).collect();
                tools.insert(table.to_owned(), Value::Object(renamed));
            }
        }
        Ok(())
    }

    fn roots(&self, json: &Map<String, Value>) -> Result<(Vec<String>, Vec<String>), Fault> {
        let list = |field: &str| -> Result<Option<Vec<String>>, Fault> {
            let Some(value) = json.get("workspace").and_then(|workspace| workspace.get(field)).filter(|value| !value.is_null()) else { return Ok(None) };
            let roots: Option<Vec<String>> = value.as_array().and_then(|list| list.iter().map(|root| root.as_str().map(|root| root.trim_end_matches('/').to_owned())).collect());
            let place = format!("workspace.{field}");
            let message = format!("{}.{place} must be a list out of {}; {value} came.", self.path, paths::ROOTS.join(", "));
            match roots {
                Some(roots) if roots.iter().all(|root| paths::ROOTS.contains(&root.as_str())) => Ok(Some(roots)),
                _ => Err(self.wrong("profile.invalid", &place, message)),
            }
        };
        let all = || paths::ROOTS.map(str::to_owned).to_vec();
        let visible = list("visibleRoots")?.unwrap_or_else(all);
        let writable = list("writableRoots")?.unwrap_or_else(|| visible.clone());
        if let Some(root) = writable.iter().find(|root| !visible.contains(root)) {
            return Err(self.wrong("profile.invalid", "workspace.writableRoots", format!("{}.workspace.writableRoots has {root:?}, which is not among its visibleRoots.", self.path)));
        }
        Ok((visible, writable))
    }
}

impl Profile {
    fn assemble(id: String, json: Map<String, Value>, warnings: Vec<String>, (visible, writable): (Vec<String>, Vec<String>)) -> Self {
        fn section<T: Default + serde::de::DeserializeOwned>(json: &Map<String, Value>, name: &str) -> T {
            let map = json.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
            let map: Map<String, Value> = map.into_iter().filter(|(_, value)| !value.is_null()).collect();
            serde_json::from_value(Value::Object(map)).unwrap_or_default()
        }
        let (delegation, tools) = (section(&json, "delegation"), section(&json, "tools"));
        Self { id, json, warnings, delegation, tools, visible, writable }
    }

    /// A profile as the journal recorded it; it was checked when it was recorded.
    pub fn from_journal(json: &str) -> Self {
        let value: Value = serde_json::from_str(json).unwrap_or_default();
        Reader { path: "$".to_owned() }.profile(&value).unwrap_or_default()
    }

    fn get(&self, section: &str, field: &str) -> Option<&Value> {
        self.json.get(section)?.get(field).filter(|value| !value.is_null())
    }

    fn text(&self, section: &str, field: &str) -> Option<&str> {
        self.get(section, field).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    }

    pub fn delegation(&self) -> &Delegation {
        &self.delegation
    }

    pub fn display_name(&self) -> &str {
        self.json.get("displayName").and_then(Value::as_str).filter(|name| !name.trim().is_empty()).unwrap_or(&self.id)
    }

    pub fn description_for_agents(&self) -> &str {
        let own = self.delegation.description_for_agents.as_deref().filter(|text| !text.trim().is_empty());
        own.or_else(|| self.json.get("description").and_then(Value::as_str)).unwrap_or_default().trim()
    }

    pub fn model_mode(&self) -> &str {
        self.text("model", "mode").unwrap_or("currentPromptSnapshot")
    }

    /// The model binding as the host gets it.
    pub fn model(&self) -> Value {
        serde_json::json!({ "mode": self.model_mode(), "connectionRef": self.text("model", "connectionRef"), "modelId": self.text("model", "modelId") })
    }

    pub fn is_human(&self) -> bool {
        self.model_mode() == "human"
    }

    pub fn requires_configuration(&self) -> bool {
        self.model_mode() == "requiresConfiguration"
    }

    pub fn presentation(&self) -> &str {
        self.text("run", "presentation").unwrap_or("foreground")
    }

    pub fn preset_ref(&self) -> Option<Value> {
        (self.text("preset", "mode") == Some("ref")).then(|| self.get("preset", "ref").cloned()).flatten()
    }

    pub fn agent_system_prompt(&self) -> Option<&str> {
        self.text("instructions", "agentSystemPrompt")
    }

    pub fn context_policy(&self) -> Value {
        let messages = self.get("context", "initialChatHistoryMessages").and_then(Value::as_f64).map_or(-1.0, |n| if n < 0.0 { -1.0 } else { n });
        let world = self.get("context", "includeActivatedWorldInfo").and_then(Value::as_bool).unwrap_or(true);
        serde_json::json!({ "initialChatHistoryMessages": messages as i64, "includeActivatedWorldInfo": world })
    }

    pub fn skills(&self) -> (Vec<String>, Vec<String>) {
        let list = |field: &str| self.get("skills", field).and_then(Value::as_array).map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        (list("visible").unwrap_or_else(|| vec!["*".to_owned()]), list("deny").unwrap_or_default())
    }

    pub fn max_rounds(&self) -> u32 {
        self.tools.max_rounds
    }

    pub fn max_calls_per_run(&self) -> u32 {
        self.tools.max_calls_per_run
    }

    pub fn max_calls_of(&self, tool: &str) -> Option<u32> {
        self.tools.max_calls_per_tool.get(tool).and_then(Value::as_u64).map(|n| n.min(u64::from(u32::MAX)) as u32)
    }

    pub fn max_concurrent_invocations(&self) -> u32 {
        self.delegation.max_concurrent_invocations
    }

    pub fn model_retry(&self) -> ModelRetry {
        let retry = self.get("run", "modelRetry");
        let number = |field: &str| retry.and_then(|retry| retry.get(field)).and_then(Value::as_f64).filter(|n| *n >= 0.0 && n.is_finite());
        ModelRetry { max_retries: number("maxRetries").map_or(3, |n| n as u32), interval_ms: number("intervalMs").unwrap_or(3000.0) }
    }

    pub fn visible_roots(&self) -> &[String] {
        &self.visible
    }

    pub fn writable_roots(&self) -> &[String] {
        &self.writable
    }

    pub fn access(&self) -> Access {
        Access { visible: self.visible.clone(), writable: self.writable.clone() }
    }

    pub fn message_body_path(&self) -> &str {
        let artifacts = self.get("output", "artifacts").and_then(Value::as_array);
        let body = artifacts.and_then(|list| list.iter().find(|artifact| artifact.get("target").is_none_or(|target| target == "messageBody")));
        body.and_then(|artifact| artifact.get("path")).and_then(Value::as_str).filter(|path| paths::normalise(path).is_ok()).unwrap_or("output/main.md")
    }

    /// {tool: {description?, properties?}} that this profile words otherwise.
    pub fn tool_descriptions(&self) -> Option<&Map<String, Value>> {
        self.get("tools", "toolDescriptions").and_then(Value::as_object)
    }

    pub fn lists_tool(&self, canonical: &str) -> bool {
        self.tools.allow.iter().any(|name| name == canonical)
    }

    pub fn listed_tools(&self) -> &[String] {
        &self.tools.allow
    }

    fn may_use(&self, canonical: &str, authority: Option<&Authority>) -> bool {
        !self.tools.deny.iter().any(|name| name == canonical) && authority.is_none_or(|authority| authority.permits(canonical))
    }
}

/// What an invocation may use: allow − deny, within the authority (rule H4); a delegated agent returns instead of
/// committing, finishing or handing off (rule D3). Canonical names in the order of the profile.
pub fn effective_tools(profile: &Profile, authority: Option<&Authority>, kind: InvocationKind, may_nest: bool) -> Vec<String> {
    let delegated = kind == InvocationKind::Subagent;
    let nests = may_nest && profile.delegation.allow_nested_delegation;
    let kept = |name: &str| match name {
        "workspace.commit" | "workspace.finish" | "agent.handoff" => !delegated,
        "agent.delegate" | "agent.await" | "agent.cancel" | "agent.list" => !delegated || nests,
        _ => true,
    };
    let mut names: Vec<String> = profile.tools.allow.iter().filter(|name| kept(name) && profile.may_use(name, authority)).cloned().collect();
    if delegated {
        names.push("task.return".to_owned());
    }
    names
}
