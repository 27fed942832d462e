//! The model erred: a refusal is a tool result that a model can act on. It carries a key into the locale's
//! texts and what fills them; it is rendered once, by the run.

/// A code for machines, a reason where several checks share a code, and a text for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: &'static str,
    pub reason: Option<&'static str>,
    pub key: &'static str,
    pub args: Vec<(&'static str, String)>,
}

impl Refusal {
    pub fn new(code: &'static str, key: &'static str) -> Self {
        Self { code, reason: None, key, args: Vec::new() }
    }

    pub fn reason(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason);
        self
    }

    pub fn arg(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.args.push((name, value.into()));
        self
    }
}
