//! The boundary: the only room that knows JavaScript. Plain data in, plain data out; nothing is ever called back.

mod codec;

use js_sys::{Array, Object, Reflect};
use serde_json::{Value, json};
use wasm_bindgen::prelude::*;

use crate::domain::fault::Fault;
use crate::domain::ids;
use crate::domain::limits::RunLimits;
use crate::domain::profile::parse_profiles;
use crate::journal::JOURNAL_VERSION;
use crate::render::locale::Locale;
use crate::run::{fork, machine, query};
use crate::{policy, timeline, workspace};

use codec::{from_js, thrown, to_js};

/// One run, driven by its host: propose, store, commit.
#[wasm_bindgen]
pub struct Machine {
    inner: machine::Machine,
}

#[wasm_bindgen]
impl Machine {
    /// `options` is JSON text: `{"locale"?: tag, "localePack"?: {key: text}}`.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &str) -> Result<Machine, JsValue> {
        let options: Value = serde_json::from_str(options).unwrap_or_default();
        Ok(Self { inner: machine::Machine::new(locale(&options).map_err(thrown)?) })
    }

    pub fn load(&mut self, lines: &str) -> Result<u32, JsValue> {
        self.inner.load(lines).map_err(thrown)
    }

    pub fn propose(&mut self, command: &JsValue, now_ms: f64) -> Result<JsValue, JsValue> {
        let command = from_js(command).map_err(thrown)?;
        trap_on_demand(&command);
        let proposal = self.inner.propose(&command, now_ms).map_err(thrown)?;
        let lines = Array::new();
        for line in &proposal.lines {
            lines.push(&JsValue::from_str(line));
        }
        let blobs = Object::new();
        for (hash, text) in &proposal.blobs {
            set(&blobs, hash, &JsValue::from_str(text));
        }
        let result = Object::new();
        set(&result, "expectedSeq", &JsValue::from(proposal.expected_seq));
        set(&result, "lines", &lines);
        set(&result, "blobs", &blobs);
        set(&result, "summary", &to_js(&proposal.summary.to_string()));
        Ok(result.into())
    }

    pub fn commit(&mut self) -> Result<JsValue, JsValue> {
        let effects = self.inner.commit().map_err(thrown)?;
        Ok(to_js(&format!("[{}]", effects.join(","))))
    }

    pub fn abandon(&mut self) {
        self.inner.abandon();
    }

    pub fn outstanding(&self) -> JsValue {
        to_js(&format!("[{}]", self.inner.outstanding().join(",")))
    }

    /// The Timeline now, or at a seq.
    pub fn timeline(&self, at_seq: Option<f64>) -> JsValue {
        let at = at_seq.filter(|seq| seq.is_finite()).map(|seq| seq.clamp(0.0, f64::from(u32::MAX)) as u32);
        to_js(&timeline::timeline(self.inner.state(), at).to_string())
    }

    pub fn query(&self, request: &JsValue) -> Result<JsValue, JsValue> {
        let request: Value = serde_json::from_str(&from_js(request).map_err(thrown)?).unwrap_or_default();
        query::query(self.inner.state(), &request).map(|answer| to_js(&answer.to_string())).map_err(thrown)
    }
}

/// Pure helpers, by `type`; plain data in and out.
#[wasm_bindgen]
pub fn helper(request: &JsValue) -> Result<JsValue, JsValue> {
    let request: Value = serde_json::from_str(&from_js(request).map_err(thrown)?).unwrap_or_default();
    help(&request).map(|answer| to_js(&answer.to_string())).map_err(thrown)
}

/// A new run id, out of the browser's randomness.
#[wasm_bindgen(js_name = newRunId)]
pub fn new_run_id() -> Result<String, JsValue> {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random).map_err(|error| thrown(Fault::new("core.no_randomness", error.to_string())))?;
    Ok(ids::run_id(random))
}

fn help(request: &Value) -> Result<Value, Fault> {
    let text = |name: &str| request.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "build_info" => Ok(json!({ "version": env!("CARGO_PKG_VERSION"), "journalVersion": JOURNAL_VERSION })),
        "validate_profiles" => {
            let profiles = parse_profiles(request.get("profiles").unwrap_or(&Value::Null))?;
            RunLimits::parse(request.get("limits"))?;
            Ok(json!({ "warnings": profiles.iter().flat_map(|profile| profile.warnings.iter().map(|warning| json!({ "profileId": profile.id, "message": warning }))).collect::<Vec<_>>() }))
        }
        "explain" => explain(request),
        "fork" => {
            let options = fork::ForkOptions {
                run_id: text("runId"),
                at_seq: request.get("atSeq").and_then(Value::as_f64).filter(|seq| *seq >= 0.0).map_or(0, |seq| seq as u32),
                adopt_message: request.get("adoptMessage").and_then(Value::as_bool).unwrap_or(false),
            };
            fork::fork(text("lines"), &options).map(|lines| json!({ "lines": lines }))
        }
        "seeded_run_id" => {
            let seed = request.get("seed").and_then(Value::as_f64).unwrap_or(0.0);
            let mut random = [0u8; 16];
            random.copy_from_slice(&ids::sha256(seed.to_string().as_bytes())[..16]);
            Ok(json!(ids::run_id(random)))
        }
        "diff" => Ok(json!(workspace::diff::workspaces(&texts(request.get("before")), &texts(request.get("after")), request.get("path").and_then(Value::as_str)))),
        "sha256" => Ok(json!(ids::sha256_hex(text("text").as_bytes()))),
        other => Err(Fault::new("query.unknown", format!("There is no helper {other:?}.")).detail("type", other)),
    }
}

fn explain(request: &Value) -> Result<Value, Fault> {
    let profiles = parse_profiles(request.get("profiles").unwrap_or(&Value::Null))?;
    let limits = RunLimits::parse(request.get("limits"))?;
    let text = |name: &str| request.get(name).and_then(Value::as_str).unwrap_or_default();
    let source = profiles.iter().find(|profile| profile.id == text("source").trim());
    let source = source.ok_or_else(|| Fault::new("profile.not_found", format!("No profile is called {:?}.", text("source"))).detail("path", "$.source"))?;
    let operation = match text("operation") {
        "handoff" => policy::Operation::Handoff,
        "delegate" => policy::Operation::Delegate,
        other => return Err(Fault::new("query.invalid", format!("operation is {other:?}; it must be handoff or delegate.")).detail("path", "$.operation")),
    };
    let team: Vec<_> = profiles.iter().collect();
    let question = policy::explain::Question { source, target: text("target"), operation, team: &team, limits: &limits };
    Ok(serde_json::to_value(policy::explain(&locale(request)?, &question)).unwrap_or_default())
}

fn texts(value: Option<&Value>) -> std::collections::BTreeMap<String, String> {
    let map = value.and_then(Value::as_object).into_iter().flatten();
    map.filter_map(|(path, text)| Some((path.clone(), text.as_str()?.to_owned()))).collect()
}

fn locale(options: &Value) -> Result<Locale, Fault> {
    let tag = options.get("locale").and_then(Value::as_str).unwrap_or("en");
    let pack = options.get("localePack").filter(|pack| pack.is_object());
    match (tag, pack) {
        ("en", _) => Ok(Locale::english()),
        (tag, Some(pack)) => Locale::from_pack(tag, &pack.to_string()).map_err(|why| Fault::new("config.invalid_locale", format!("The locale {tag}: {why}."))),
        (tag, None) => Err(Fault::new("config.invalid_locale", format!("The locale {tag:?} needs its texts (localePack); only \"en\" is built in."))),
    }
}

fn set(object: &Object, name: &str, value: &JsValue) {
    // Setting an own property of a fresh object cannot fail.
    let _ = Reflect::set(object, &JsValue::from_str(name), value);
}

#[cfg(feature = "trap-on-demand")]
fn trap_on_demand(command: &str) {
    if command.contains("__trap__") {
        panic!("a trap was asked for");
    }
}

#[cfg(not(feature = "trap-on-demand"))]
fn trap_on_demand(_: &str) {}
