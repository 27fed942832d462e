//! Handing the run on: every check of rule C3, one batch of acceptance (rule H1), and the start of the successor.

use serde_json::{Map, Value, json};

use crate::domain::ids::IdKind;
use crate::domain::kinds::{Continuation, ExitPolicy, InvocationKind, InvocationStatus, TaskStatus};
use crate::domain::profile::Profile;
use crate::domain::refusal::Refusal;
use crate::journal::event::*;
use crate::journal::{Doc, Event, Text};
use crate::policy::{FallbackCause, HandoffFacts, check_handoff};
use crate::render::brief::{BriefFacts, LimitsNote, RefState, brief_refs, render_handoff_brief};
use crate::run::batch::{Batch, Outcome};
use crate::run::effect::CallPlace;
use crate::run::state::*;
use crate::tools::args;
use crate::tools::validate::Checked;
use crate::workspace::paths;

use super::{closing, delegation, prompt};

/// Rule H8: the fallback takes over at most this often in a run.
const MAX_FALLBACKS: u32 = 3;

/// A successor that has been accepted and not yet started.
pub struct Successor {
    pub invocation: Ordinal,
    pub task: Ordinal,
}

/// What is handed on, by whom, to whom.
pub struct Handover<'a> {
    pub source: Ordinal,
    pub target: &'a Profile,
    pub brief: &'a Map<String, Value>,
    pub call_id: Option<Id>,
}

pub fn attempt(batch: &mut Batch, place: CallPlace, checked: &Checked) -> Result<(Outcome, closing::Closed), Refusal> {
    let args = args::Handoff::of(checked)?;
    batch.emit(Event::HandoffRequested(HandoffRequested {
        source_invocation_id: batch.invocation_id(place.invocation),
        target_profile_id: args.agent_id.as_str().into(),
        pending_task_policy: "denyIfPending".into(),
    }));
    closing::after_failed_call(batch, place.invocation)?;
    let call_id = batch.turn_call(place).map(|call| call.id.clone());
    let (target, cause) = choose(batch, place.invocation, &args)?;
    if let Some(cause) = cause {
        fallback_used(batch, place.invocation, cause, &target);
    }
    let successor = accept(batch, &Handover { source: place.invocation, target: &target, brief: &args.brief, call_id });
    let key = if cause.is_some() { "turns.handoff_to_fallback" } else { "turns.handoff_accepted" };
    let content = batch.say(key, &[("agent", &target.id), ("asked", args.agent_id.trim())]);
    let structured = json!({ "status": "accepted", "agentId": target.id });
    Ok((Outcome::ok(content, structured), closing::Closed::Transferred(successor)))
}

/// The target by the checks of C3, or the fallback where a limit forbids it.
fn choose(batch: &Batch, source: Ordinal, args: &args::Handoff) -> Result<(Profile, Option<FallbackCause>), Refusal> {
    let profile = batch.work(source).map(|work| work.profile.clone()).unwrap_or_default();
    let limits = batch.state.limits();
    let pending: Vec<String> = batch.state.open_children(source).map(|task| task.key.to_string()).collect();
    let team: Vec<&Profile> = batch.state.team.profiles.iter().map(|profile| &**profile).collect();
    let edges = |target: &str| batch.state.edges.get(&(Id::from(profile.id.as_str()), Id::from(target))).copied().unwrap_or(0);
    let facts = HandoffFacts {
        source: &profile,
        team: &team,
        target: &args.agent_id,
        pending: &pending,
        hops: batch.state.counters.handoffs,
        max_handoffs: limits.max_handoffs,
        edge: &edges,
        max_per_edge: limits.max_handoffs_per_edge,
        confidence: args.confidence,
        min_confidence: limits.min_confidence,
    };
    let refusal = match check_handoff(&facts) {
        Ok(target) => return Ok((target.clone(), None)),
        Err(refusal) => refusal,
    };
    let fallback = FallbackCause::of(&refusal).and_then(|cause| Some((fallback(batch, source, cause)?, Some(cause))));
    fallback.ok_or(refusal)
}

/// The fallback profile, where it may take over for this cause from this source (rule H8).
pub fn fallback(batch: &Batch, source: Ordinal, cause: FallbackCause) -> Option<Profile> {
    let id = batch.state.limits().fallback_profile_id?;
    let profile = batch.state.team.find(&id)?;
    let used = batch.state.fallback_causes.contains(&(Id::from(cause.word()), source));
    let own = batch.state.invocation(source).is_some_and(|invocation| *invocation.profile_id == *id);
    let free = !used && !own && batch.state.counters.fallbacks < MAX_FALLBACKS && !profile.requires_configuration();
    free.then(|| (**profile).clone())
}

pub fn fallback_used(batch: &mut Batch, source: Ordinal, cause: FallbackCause, target: &Profile) {
    let source_invocation_id = batch.invocation_id(source);
    batch.emit(Event::FallbackUsed(FallbackUsed { cause: cause.word().into(), source_invocation_id, profile_id: target.id.as_str().into() }));
}

/// Records the acceptance: the successor, its task, and the transfer of ownership.
pub fn accept(batch: &mut Batch, handover: &Handover) -> Successor {
    let (source, target) = (handover.source, handover.target);
    let key = delegation::free_key(&batch.state, &target.id);
    let (invocation, task) = (batch.state.invocations.len() as Ordinal, batch.state.tasks.len() as Ordinal);
    let (new_id, task_id) = (batch.id(IdKind::Invocation, invocation), batch.id(IdKind::Handoff, task));
    let refs = ref_states(batch, handover.brief, target);
    let remaining = Remaining::after(batch, source, target);
    let brief = brief(batch, handover, &refs, &remaining);
    let from = batch.state.invocation(source).map_or_else(|| "".into(), |invocation| invocation.profile_id.clone());
    let depth = batch.state.invocation(source).map_or(0, |invocation| invocation.depth);
    let source_id = batch.invocation_id(source);
    batch.emit(Event::InvocationCreated(InvocationCreated {
        invocation_id: new_id.clone(),
        parent_invocation_id: Some(source_id.clone()),
        profile_id: target.id.as_str().into(),
        display_name: target.display_name().into(),
        kind: InvocationKind::Handoff,
        exit_policy: ExitPolicy::RunFinishAllowed,
        task_id: Some(task_id.clone()),
        workspace_key: Some(key.clone()),
        depth,
    }));
    let text_of = |name: &str| handover.brief.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(Text::from);
    batch.emit(Event::TaskRegistered(TaskRegistered {
        task_id: task_id.clone(),
        parent_invocation_id: source_id.clone(),
        child_invocation_id: new_id.clone(),
        target_profile_id: target.id.as_str().into(),
        workspace_key: key.clone(),
        continuation: Continuation::TransferControl,
        status: TaskStatus::Queued,
        task: Doc::of(handover.brief),
        title: text_of("title"),
        brief: brief.into(),
        created_by_tool_call_id: handover.call_id.clone(),
    }));
    let version = batch.state.owner_version();
    let fallback = batch.state.limits().fallback_profile_id.filter(|id| *id != target.id && batch.state.team.find(id).is_some());
    batch.emit(Event::HandoffAccepted(HandoffAccepted {
        task_id,
        owner_version_before: version,
        owner_version_after: version + 1,
        effective_seq: batch.state.head.seq + 1,
        from_profile_id: from,
        to_profile_id: target.id.as_str().into(),
        source_invocation_id: source_id.clone(),
        new_invocation_id: new_id,
        target_profile_id: target.id.as_str().into(),
        workspace_key: key,
        reason: text_of("reason"),
        artifact_refs: Doc::of(&refs.iter().map(|state| json!({ "path": state.path, "exists": state.exists, "visibleToTarget": state.visible })).collect::<Vec<_>>()),
        remaining: Doc::of(&remaining.json()),
        on_failure: Doc::of(&fallback.map_or_else(|| json!("fail"), |id| json!({ "profileId": id }))),
        authority: batch.state.frozen.as_ref().map(|frozen| frozen.authority_doc.clone()).unwrap_or_default(),
        source_may_write: false,
    }));
    carry_results(batch, source);
    Successor { invocation, task }
}

/// Results that travelled in the brief have been told (rule H2).
fn carry_results(batch: &mut Batch, source: Ordinal) {
    let task_ids: Vec<Id> = batch.state.untold_of(source).map(|task| task.id.clone()).collect();
    if !task_ids.is_empty() {
        let invocation_id = batch.invocation_id(source);
        batch.emit(Event::ResultsDelivered(ResultsDelivered { invocation_id, task_ids, text: None, placement: None }));
    }
}

fn brief(batch: &Batch, handover: &Handover, refs: &[RefState], remaining: &Remaining) -> String {
    let untold: Vec<Ordinal> = batch.state.untold_of(handover.source).map(|task| task.ordinal).collect();
    let views = delegation::views(batch, &untold);
    let facts = BriefFacts { refs, delegated_results: &views, limits: remaining.note(), data_scopes: &data_scopes(batch) };
    render_handoff_brief(batch.locale, handover.brief, &facts)
}

/// The source ends as transferred; the successor starts, in the same batch.
pub fn transfer(batch: &mut Batch, source: Ordinal, successor: Successor) {
    let Some(invocation) = batch.state.invocation(source).cloned() else { return };
    batch.emit(Event::InvocationTransferred(InvocationEnded {
        invocation_id: invocation.id.clone(),
        profile_id: invocation.profile_id.clone(),
        kind: invocation.kind,
        status: InvocationStatus::Transferred,
        error: Doc::null(),
    }));
    closing::loop_finished(batch, source);
    if let Some(incoming) = invocation.task {
        delegation::task_changed(batch, incoming, TaskStatus::Completed, None, None);
    }
    start(batch, &successor);
}

pub fn start(batch: &mut Batch, successor: &Successor) {
    delegation::task_changed(batch, successor.task, TaskStatus::Running, None, None);
    prompt::begin(batch, successor.invocation);
}

/// What each path of a brief is to its reader (rule B4).
pub fn ref_states(batch: &Batch, brief: &Map<String, Value>, target: &Profile) -> Vec<RefState> {
    let access = target.access();
    brief_refs(brief)
        .into_iter()
        .map(|raw| match paths::normalise(&raw) {
            Ok(path) => {
                let folder = format!("{path}/");
                let exists = batch.state.files.contains(path.as_str()) || batch.state.files.iter().any(|(known, _)| known.starts_with(&folder));
                let visible = access.check_visible(&path).is_ok();
                RefState { raw, path, exists, visible, usable: true }
            }
            Err(_) => RefState { path: raw.clone(), raw, exists: false, visible: false, usable: false },
        })
        .collect()
}

pub fn data_scopes(batch: &Batch) -> Vec<String> {
    batch.state.frozen.as_ref().and_then(|frozen| frozen.authority.as_ref()).map(|authority| authority.data_scopes.clone().unwrap_or_default()).unwrap_or_default()
}

/// What is left of every limit once this handoff counts (rule H5).
struct Remaining {
    handoffs: u32,
    on_edge: u32,
    ms: f64,
    model_calls: u32,
    tool_calls: u32,
    tasks: u32,
    time_is_short: bool,
    calls_are_short: bool,
}

impl Remaining {
    fn after(batch: &Batch, source: Ordinal, target: &Profile) -> Self {
        let (limits, used) = (batch.state.limits(), &batch.state.counters);
        let from = batch.state.invocation(source).map_or_else(|| "".into(), |invocation| invocation.profile_id.clone());
        let on_edge = batch.state.edges.get(&(from, Id::from(target.id.as_str()))).copied().unwrap_or(0);
        let ms = batch.state.remaining_ms(batch.now);
        let model_calls = limits.max_model_calls.saturating_sub(used.model_calls);
        let tool_calls = limits.max_tool_calls.saturating_sub(used.tool_calls);
        Self {
            handoffs: limits.max_handoffs.saturating_sub(used.handoffs + 1),
            on_edge: limits.max_handoffs_per_edge.saturating_sub(on_edge + 1),
            ms,
            model_calls,
            tool_calls,
            tasks: limits.max_tasks.saturating_sub(used.tasks),
            time_is_short: ms < limits.deadline_ms * 0.2,
            calls_are_short: f64::from(model_calls) < f64::from(limits.max_model_calls) * 0.2,
        }
    }

    fn json(&self) -> Value {
        json!({
            "handoffs": self.handoffs, "handoffsOnEdge": self.on_edge, "ms": self.ms,
            "modelCalls": self.model_calls, "toolCalls": self.tool_calls, "tasks": self.tasks,
        })
    }

    fn note(&self) -> LimitsNote {
        LimitsNote {
            handoffs: (self.handoffs < 3).then_some(self.handoffs),
            minutes: self.time_is_short.then_some((self.ms / 60_000.0).floor() as u32),
            model_calls: self.calls_are_short.then_some(self.model_calls),
        }
    }
}
