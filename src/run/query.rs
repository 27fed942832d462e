//! Questions of the host about a run: its summary, its outcome, a task, a file. Read only.

use serde_json::{Map, Value, json};

use super::state::*;
use crate::domain::fault::Fault;
use crate::domain::time::rfc3339;
use crate::journal::event::HandoffAccepted;
use crate::workspace::count;

/// The contract's RunSummary.
pub fn summary(state: &State) -> Value {
    let frozen = state.frozen.as_deref();
    json!({
        "runId": state.run_id(),
        "profileId": frozen.map(|frozen| &*frozen.profile_id),
        "ownerProfileId": state.owner().map(|owner| owner.profile_id.clone()),
        "status": state.status(),
        "generationType": frozen.map(|frozen| &*frozen.generation_type),
        "stableChatId": frozen.and_then(|frozen| frozen.stable_chat_id.as_deref()),
        "commitCount": state.ledger.commits.len(),
        "eventCount": state.head.seq,
        "resumable": !state.is_ended(),
        "createdAt": rfc3339(state.created_ms),
        "updatedAt": rfc3339(state.at_ms),
    })
}

/// The contract's RunOutcome; null fields before the end.
pub fn outcome(state: &State) -> Value {
    let error: Value = match &state.course {
        Course::Ended { error, .. } => error.parse(),
        _ => Value::Null,
    };
    let error = match error {
        Value::Object(mut map) => {
            map.insert("kind".to_owned(), "failure".into());
            map.shift_remove("retryAfterMs");
            Value::Object(map)
        }
        _ => Value::Null,
    };
    json!({
        "runId": state.run_id(),
        "status": state.status(),
        "text": state.ledger.text.as_deref(),
        "commits": state.ledger.commits.values().map(|commit| &**commit).collect::<Vec<_>>(),
        "handoffs": state.handoffs.values().map(|handoff| record(handoff)).collect::<Vec<_>>(),
        "error": error,
    })
}

fn record(handoff: &HandoffAccepted) -> Value {
    let mut record = serde_json::to_value(handoff).unwrap_or_default();
    // Documents that stand apart in the line are whole here.
    for (name, doc) in [("artifactRefs", &handoff.artifact_refs), ("remaining", &handoff.remaining), ("onFailure", &handoff.on_failure), ("authority", &handoff.authority)] {
        record[name] = doc.parse();
    }
    record["reason"] = handoff.reason.as_ref().map_or(Value::Null, |reason| reason.as_str().into());
    record
}

pub fn task(state: &State, task: &Task) -> Value {
    let invocation = |ordinal| state.invocation(ordinal).map(|invocation| invocation.id.clone());
    json!({
        "id": &*task.id,
        "runId": state.run_id(),
        "parentInvocationId": invocation(task.parent),
        "childInvocationId": invocation(task.child),
        "targetProfileId": &*task.target,
        "workspaceKey": &*task.key,
        "continuation": task.continuation,
        "status": task.status(),
        "version": task.version,
        "cancelRequestedAt": task.cancel_requested.map(|mark| rfc3339(mark.at_ms)),
        "task": task.task.parse::<Value>(),
        "createdByToolCallId": task.created_by,
        "resultRef": task.result_ref,
        "error": task.error.as_ref().map(|error| error.as_str()),
        "createdAt": task.marks.first().map(|mark| rfc3339(mark.at_ms)),
        "updatedAt": task.marks.last().map(|mark| rfc3339(mark.at_ms)),
        "brief": task.brief.as_str(),
    })
}

/// `{type: 'task_detail' | 'file' | 'files' | 'outcome' | 'limits' | 'pending'}`.
pub fn query(state: &State, request: &Value) -> Result<Value, Fault> {
    let text = |name: &str| request.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "task_detail" => task_detail(state, text("taskId"), request.get("includeResult").and_then(Value::as_bool).unwrap_or(false)),
        "file" => file(state, text("path")),
        "files" => Ok(Value::Object(state.files.iter().map(|(path, file)| (path.to_string(), Value::from(&*file.text))).collect::<Map<_, _>>())),
        "outcome" => Ok(outcome(state)),
        "summary" => Ok(summary(state)),
        "callback_timeout" => Ok(json!(state.limits().callback_timeout_ms)),
        "pending_guidance" => Ok(json!(state.guidance.len())),
        "owner" => Ok(json!(state.owner().map(|owner| json!({ "invocationId": &*owner.id, "profileId": &*owner.profile_id, "version": state.owner_version() })))),
        other => Err(Fault::new("query.unknown", format!("There is no query {other:?}.")).detail("type", other)),
    }
}

fn task_detail(state: &State, task_id: &str, include_result: bool) -> Result<Value, Fault> {
    let found = state.task_by_id(task_id).ok_or_else(|| Fault::new("task.not_found", format!("This run has no task {task_id:?}.")).detail("taskId", task_id))?;
    let mut detail = task(state, found);
    detail["result"] = match (&found.result, include_result) {
        (Some(result), true) => {
            json!({ "status": result.status, "summary": result.summary.as_str(), "summaryRef": &*result.summary_ref, "output": result.output.parse::<Value>() })
        }
        _ => Value::Null,
    };
    Ok(detail)
}

fn file(state: &State, path: &str) -> Result<Value, Fault> {
    let normal = crate::workspace::paths::normalise(path).unwrap_or_default();
    let file = state.files.get(normal.as_str()).ok_or_else(|| Fault::new("workspace.file_not_found", format!("There is no file {path:?}.")).detail("path", path))?;
    Ok(json!({ "path": normal, "text": &*file.text, "chars": count::chars(&file.text), "words": count::words(&file.text), "sha256": &*file.sha256, "version": file.version }))
}
