//! The world erred: a failure is recorded, with what the host can do about it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The error of a host call, as the host reports it and as a run ends with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Failure {
    pub code: String,
    pub message: String,
    /// The same call may succeed if it is made again.
    pub retryable: bool,
    /// A person may try again from here.
    pub user_retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<f64>,
    pub details: Map<String, Value>,
}

impl Default for Failure {
    fn default() -> Self {
        Self::new("host.failed", "The host gave no reason.")
    }
}

impl Failure {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            retryable: false,
            user_retryable: false,
            retry_after_ms: None,
            details: Map::new(),
        }
    }

    pub fn user_retryable(mut self) -> Self {
        self.user_retryable = true;
        self
    }
}
