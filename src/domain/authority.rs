//! The caller's own rights: a ceiling that is carried unchanged along every path and never widened (rule H4).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::Fault;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Authority {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub principal: Option<String>,
    /// The tools that anyone in the run may use; absent means no ceiling.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub data_scopes: Option<Vec<String>>,
}

impl Authority {
    pub fn parse(value: &Value) -> Result<Self, Fault> {
        serde_json::from_value(value.clone()).map_err(|error| {
            Fault::new("start.invalid", format!("authority must be {{principal?: text, tools?: texts, dataScopes?: texts}}: {error}.")).detail("path", "$.authority")
        })
    }

    pub fn permits(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|allowed| allowed == tool || super::tool_names::canonical(allowed) == tool))
    }
}
