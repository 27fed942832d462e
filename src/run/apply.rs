//! What did happen? Folds one recorded fact into the state. It decides nothing and cannot fail: a fact that
//! does not fit the state (which `decide` never records) changes nothing.

use std::rc::Rc;

use crate::domain::kinds::{InvocationStatus, RunStatus, TaskStatus};
use crate::domain::pmap::Pmap;
use crate::domain::profile::Profile;
use crate::journal::event::*;
use crate::journal::{Doc, Record, Text};

use super::apply_turn;
use super::state::*;

impl State {
    pub fn apply(&mut self, record: &Record) {
        let at = At { seq: record.seq, ms: record.at_ms };
        self.at_ms = record.at_ms;
        self.head.seq = record.seq;
        self.fold(&record.event, at);
        self.note_status(at);
        self.note_people(at);
    }

    fn fold(&mut self, event: &Event, at: At) {
        match event {
            Event::RunCreated(fact) => self.created(fact, at),
            Event::ProfilesSet(fact) => self.team = team(&fact.profiles),
            Event::GuidanceSubmitted(fact) => {
                self.counters.guidance += 1;
                self.guidance.push(Rc::new(Guidance { id: fact.guidance_id.clone(), text: fact.text.clone() }));
            }
            Event::GuidanceApplied(fact) => {
                self.guidance.retain(|item| !fact.guidance_ids.contains(&item.id));
                self.with_work(&fact.invocation_id, |work| work.tell(&fact.text, fact.placement));
            }
            Event::ResultsDelivered(fact) => self.delivered(fact),
            Event::InvocationCreated(fact) => self.invocation_created(fact, at),
            Event::InvocationStarted(fact) => self.invocation_started(fact, at),
            Event::InvocationCompleted(fact)
            | Event::InvocationFailed(fact)
            | Event::InvocationCancelled(fact)
            | Event::InvocationTransferred(fact) => self.invocation_ended(fact, at),
            Event::HandoffAccepted(fact) => self.handoff_accepted(fact, at),
            Event::TaskRegistered(fact) => self.task_registered(fact, at),
            Event::TaskStarted(fact) | Event::TaskCompleted(fact) | Event::TaskFailed(fact) | Event::TaskCancelled(fact) => {
                self.task_changed(fact, at)
            }
            Event::TaskCancelRequested(fact) => self.with_task(&fact.task_id, |task| {
                task.cancel_requested = Some(at.mark(()));
                task.version += 1;
            }),
            Event::TaskReturned(fact) => self.with_task(&fact.task_id, |task| {
                task.result = Some(Rc::new(TaskResult {
                    status: fact.status,
                    summary: fact.summary.clone(),
                    summary_ref: fact.summary_ref.clone(),
                    output: fact.output.clone(),
                }));
            }),
            Event::FallbackUsed(fact) => self.fallback_used(fact),
            Event::FileWritten(fact) => apply_turn::file_written(self, fact),
            Event::PatchApplied(fact) => apply_turn::patch_applied(self, fact),
            Event::CommitCompleted(fact) => apply_turn::commit_completed(self, fact, at.seq),
            Event::LateResult(fact) => self.late.insert(fact.effect_id.clone(), ()),
            Event::AbortCompleted(fact) => self.aborted.insert(fact.effect_id.clone(), ()),
            Event::CancelRequested(fact) => self.course = Course::Cancelling { reason: fact.reason.clone() },
            Event::RunFinishing(_) => self.course = Course::Finishing,
            Event::RunFailing(fact) => self.course = Course::Failing { error: fact.error.clone() },
            Event::PersistCommitted(_) => self.promoted = true,
            Event::PersistFailed(fact) => {
                self.promoted = true;
                self.persist_error = Some(Doc::of(&serde_json::json!({ "code": fact.code, "message": fact.message.as_str() })));
            }
            Event::RunCompleted(fact) => self.ended(RunStatus::Completed, fact),
            Event::RunPartialSuccess(fact) => self.ended(RunStatus::PartialSuccess, fact),
            Event::RunFailed(fact) => self.ended(RunStatus::Failed, fact),
            Event::RunCancelled(fact) => self.ended(RunStatus::Cancelled, fact),
            other => apply_turn::apply(self, other, at),
        }
    }

    fn created(&mut self, fact: &RunCreated, at: At) {
        self.created_ms = at.ms;
        self.team = team(&fact.profiles);
        let chat: serde_json::Value = fact.chat.parse();
        let origin: serde_json::Value = fact.forked_from.parse();
        let mut persist = Pmap::new();
        for (path, text) in text_map(&fact.persist_files) {
            persist.insert(Id::from(path.as_str()), Rc::from(text.as_str()));
            self.put_file(&path, &text);
        }
        for (path, text) in text_map(&fact.files) {
            self.put_file(&path, &text);
        }
        self.frozen = Some(Rc::new(Frozen {
            run_id: self.run_id.clone(),
            profile_id: fact.profile_id.clone(),
            input: fact.input.clone(),
            generation_type: fact.generation_type.clone(),
            background: &*fact.presentation == "background",
            stable_chat_id: chat.get("stableChatId").and_then(|id| id.as_str()).map(Into::into),
            chat: fact.chat.clone(),
            persist_base_state_id: fact.persist_base_state_id.clone(),
            persist_files: persist,
            locale: fact.locale.clone(),
            limits: fact.limits.parse(),
            authority: fact.authority.parse(),
            authority_doc: fact.authority.clone(),
            host_tools: (!fact.host_tools.is_null()).then(|| fact.host_tools.clone()),
            fork_cut: origin.get("atSeq").and_then(serde_json::Value::as_u64).unwrap_or(0) as u32,
            adopt_message: origin.get("adoptMessage").and_then(serde_json::Value::as_bool).unwrap_or(false),
        }));
    }

    fn put_file(&mut self, path: &str, text: &str) {
        let sha256 = crate::domain::ids::sha256_hex(text.as_bytes()).into();
        self.file_bytes += text.len() as u64;
        self.files.insert(path.into(), Rc::new(File { text: text.into(), version: 1, sha256 }));
    }

    fn delivered(&mut self, fact: &ResultsDelivered) {
        let told: Vec<Ordinal> = fact.task_ids.iter().filter_map(|id| self.task_by_id(id)).map(|task| task.ordinal).collect();
        for ordinal in &told {
            if let Some(task) = self.tasks.get_mut(ordinal) {
                Rc::make_mut(task).told = true;
            }
        }
        self.untold.retain(|ordinal| !told.contains(ordinal));
        if let (Some(text), Some(placement)) = (&fact.text, fact.placement) {
            self.with_work(&fact.invocation_id, |work| work.tell(text, placement));
        }
    }

    fn invocation_created(&mut self, fact: &InvocationCreated, at: At) {
        let ordinal = self.invocations.len() as Ordinal;
        let parent = fact.parent_invocation_id.as_deref().and_then(|id| self.invocation_by_id(id)).map(|invocation| invocation.ordinal);
        if fact.kind == crate::domain::kinds::InvocationKind::Root {
            self.owner = ordinal;
            self.owners.insert(1, at.mark(ordinal));
        }
        self.live.push(ordinal);
        let invocation = Invocation {
            ordinal,
            id: fact.invocation_id.clone(),
            parent,
            profile_id: fact.profile_id.clone(),
            display_name: fact.display_name.clone(),
            kind: fact.kind,
            exit_policy: fact.exit_policy,
            task: fact.task_id.as_deref().and_then(crate::domain::ids::ordinal),
            depth: fact.depth,
            marks: vec![at.mark(InvocationStatus::Created)],
            rounds: Vec::new(),
            work: None,
            delegated: 0,
        };
        self.invocations.insert(ordinal, Rc::new(invocation));
    }

    fn invocation_started(&mut self, fact: &InvocationStarted, at: At) {
        let profile: Rc<Profile> = Rc::new(Profile::from_journal(fact.profile.json()));
        let dynamic = self.frozen.as_ref().is_some_and(|frozen| frozen.host_tools.is_none());
        self.with_invocation(&fact.invocation_id, |invocation| {
            invocation.marks.push(at.mark(InvocationStatus::Running));
            let step = if dynamic { Step::ResolvingTools } else { Step::Preparing };
            invocation.work = Some(Box::new(Work::new(profile, step)));
        });
    }

    fn invocation_ended(&mut self, fact: &InvocationEnded, at: At) {
        self.with_invocation(&fact.invocation_id, |invocation| {
            invocation.marks.push(at.mark(fact.status));
            invocation.work = None;
        });
        let ended = self.invocation_by_id(&fact.invocation_id).map(|invocation| invocation.ordinal);
        self.live.retain(|ordinal| Some(*ordinal) != ended);
    }

    fn handoff_accepted(&mut self, fact: &HandoffAccepted, at: At) {
        let edge = (fact.from_profile_id.clone(), fact.to_profile_id.clone());
        let times = self.edges.get(&edge).copied().unwrap_or(0);
        self.edges.insert(edge, times + 1);
        self.counters.handoffs += 1;
        self.handoffs.insert(self.counters.handoffs, Rc::new(fact.clone()));
        if let Some(successor) = self.invocation_by_id(&fact.new_invocation_id) {
            self.owner = successor.ordinal;
            self.owners.insert(fact.owner_version_after, at.mark(self.owner));
        }
    }

    fn task_registered(&mut self, fact: &TaskRegistered, at: At) {
        let ordinal = self.tasks.len() as Ordinal;
        let find = |id: &str| self.invocation_by_id(id).map_or(0, |invocation| invocation.ordinal);
        let (parent, child) = (find(&fact.parent_invocation_id), find(&fact.child_invocation_id));
        let task = Task {
            ordinal,
            id: fact.task_id.clone(),
            parent,
            child,
            target: fact.target_profile_id.clone(),
            key: fact.workspace_key.clone(),
            continuation: fact.continuation,
            version: 1,
            marks: vec![at.mark(TaskStatus::Queued)],
            cancel_requested: None,
            created_by: fact.created_by_tool_call_id.clone(),
            title: fact.title.clone(),
            task: fact.task.clone(),
            brief: fact.brief.clone(),
            result: None,
            result_ref: None,
            error: None,
            told: false,
        };
        if task.returns() {
            self.counters.tasks += 1;
            if let Some(caller) = self.invocations.get_mut(&parent) {
                Rc::make_mut(caller).delegated += 1;
            }
        }
        self.open_tasks.push(ordinal);
        self.keys.insert(task.key.clone(), ordinal);
        self.tasks.insert(ordinal, Rc::new(task));
    }

    fn task_changed(&mut self, fact: &TaskChanged, at: At) {
        self.with_task(&fact.task_id, |task| {
            task.marks.push(at.mark(fact.status));
            task.version += 1;
            task.result_ref.clone_from(&fact.result_ref);
            task.error.clone_from(&fact.error);
        });
        let Some(task) = self.task_by_id(&fact.task_id).cloned() else { return };
        if fact.status.is_terminal() {
            self.open_tasks.retain(|ordinal| *ordinal != task.ordinal);
            if task.returns() {
                self.untold.push(task.ordinal);
            }
        }
    }

    fn fallback_used(&mut self, fact: &FallbackUsed) {
        self.counters.fallbacks += 1;
        if let Some(source) = self.invocation_by_id(&fact.source_invocation_id) {
            let key = (fact.cause.clone(), source.ordinal);
            self.fallback_causes.insert(key, ());
        }
    }

    fn ended(&mut self, status: RunStatus, fact: &RunEnded) {
        self.course = Course::Ended { status, error: fact.error.clone() };
        self.guidance.clear();
    }

    pub(super) fn with_invocation(&mut self, id: &str, change: impl FnOnce(&mut Invocation)) {
        let Some(ordinal) = self.invocation_by_id(id).map(|invocation| invocation.ordinal) else { return };
        if let Some(invocation) = self.invocations.get_mut(&ordinal) {
            change(Rc::make_mut(invocation));
        }
    }

    pub(super) fn with_work(&mut self, id: &str, change: impl FnOnce(&mut Work)) {
        self.with_invocation(id, |invocation| {
            if let Some(work) = invocation.work.as_deref_mut() {
                change(work);
            }
        });
    }

    fn with_task(&mut self, id: &str, change: impl FnOnce(&mut Task)) {
        let Some(ordinal) = self.task_by_id(id).map(|task| task.ordinal) else { return };
        if let Some(task) = self.tasks.get_mut(&ordinal) {
            change(Rc::make_mut(task));
        }
    }

    fn note_status(&mut self, at: At) {
        let status = self.status();
        if self.statuses.last().is_none_or(|mark| mark.what != status) {
            self.statuses.insert(at.seq, at.mark(status));
        }
    }

    fn note_people(&mut self, at: At) {
        match (self.people.waiting_since, self.waits_for_people_only()) {
            (None, true) => self.people.waiting_since = Some(at.ms),
            (Some(since), false) => {
                self.people.waiting_since = None;
                self.people.paused_ms += (at.ms - since).max(0.0);
            }
            _ => {}
        }
    }
}

/// The seq and time of the fact being folded.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub seq: u32,
    pub ms: f64,
}

impl At {
    pub fn mark<S>(self, what: S) -> Mark<S> {
        Mark { seq: self.seq, at_ms: self.ms, what }
    }
}

impl Work {
    fn new(profile: Rc<Profile>, step: Step) -> Self {
        Self {
            human: profile.is_human(),
            profile,
            step,
            system_prompt: Text::default(),
            task_prompt: None,
            tools: Doc::null(),
            tool_names: Rc::default(),
            host_tools: Rc::default(),
            prompt: Doc::null(),
            parameters: Doc::null(),
            history: Vec::new(),
            knowledge: Pmap::new(),
            calls_used: 0,
            calls_per_tool: Pmap::new(),
            invalid_streak: 0,
            drift: 0,
            captured: 0,
            stuck: false,
        }
    }

    /// Adds a text where the agent will read it next (rule D5).
    fn tell(&mut self, text: &Text, placement: Placement) {
        match (placement, self.history.last_mut()) {
            (Placement::ToolResult, Some(last)) => {
                let last = Rc::make_mut(last);
                last.content = format!("{}\n\n{}", last.content, text.as_str()).into();
            }
            _ => self.history.push(Rc::new(Message::new("user", text.shared()))),
        }
    }
}

impl Message {
    pub fn new(role: &str, content: Rc<str>) -> Self {
        Self { role: role.into(), content, tool_calls: None, tool_call_id: None, is_error: None, provider_data: None }
    }
}

fn team(profiles: &Doc) -> Rc<Team> {
    let list: Vec<Box<serde_json::value::RawValue>> = serde_json::from_str(profiles.json()).unwrap_or_default();
    Rc::new(Team {
        profiles: list.iter().map(|json| Rc::new(Profile::from_journal(json.get()))).collect(),
        doc: profiles.clone(),
    })
}

/// `{path: text}` in the order written.
pub(super) fn text_map(doc: &Doc) -> Vec<(String, String)> {
    let map: serde_json::Map<String, serde_json::Value> = doc.parse();
    map.into_iter().filter_map(|(path, text)| Some((path, text.as_str()?.to_owned()))).collect()
}
