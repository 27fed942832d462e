//! A run as it stands: the fold of its journal. Data and plain questions; every change is made by `apply`.
//! A clone costs next to nothing, so that a batch can be tried on a copy.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::domain::authority::Authority;
use crate::domain::ids;
use crate::domain::kinds::{Continuation, ExitPolicy, InvocationKind, InvocationStatus, RunStatus, TaskStatus};
use crate::domain::limits::RunLimits;
use crate::domain::pmap::Pmap;
use crate::domain::profile::Profile;
use crate::journal::event::{CallResult, HandoffAccepted};
use crate::journal::{Doc, Head, Id, Text, WriteMode};
use crate::workspace::Knowledge;

/// The n-th invocation or task of a run, from 0 on.
pub type Ordinal = u32;

/// What was settled when the run was created.
#[derive(Debug)]
pub struct Frozen {
    pub run_id: Id,
    pub profile_id: Id,
    pub input: Doc,
    pub generation_type: Id,
    pub background: bool,
    pub chat: Doc,
    pub stable_chat_id: Option<Id>,
    pub persist_base_state_id: Option<Id>,
    pub persist_files: Pmap<Id, Rc<str>>,
    pub locale: Id,
    pub limits: RunLimits,
    pub authority: Option<Authority>,
    pub authority_doc: Doc,
    /// The host's own tools, where they are the same for every agent.
    pub host_tools: Option<Doc>,
    /// Until this seq the facts are another run's; its message is ours only if it was adopted.
    pub fork_cut: u32,
    pub adopt_message: bool,
}

/// The agents that this run may involve, as last set.
#[derive(Debug, Default)]
pub struct Team {
    pub profiles: Vec<Rc<Profile>>,
    pub doc: Doc,
}

impl Team {
    pub fn find(&self, id: &str) -> Option<&Rc<Profile>> {
        self.profiles.iter().find(|profile| profile.id == id)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark<S> {
    pub seq: u32,
    pub at_ms: f64,
    pub what: S,
}

#[derive(Clone, Debug)]
pub struct Invocation {
    pub ordinal: Ordinal,
    pub id: Id,
    pub parent: Option<Ordinal>,
    pub profile_id: Id,
    pub display_name: Id,
    pub kind: InvocationKind,
    pub exit_policy: ExitPolicy,
    pub task: Option<Ordinal>,
    pub depth: u32,
    /// Each status with the seq and time at which it began; never empty.
    pub marks: Vec<Mark<InvocationStatus>>,
    /// The seq at which each round began.
    pub rounds: Vec<u32>,
    /// Present from the start of work until its end.
    pub work: Option<Box<Work>>,
    pub delegated: u32,
}

impl Invocation {
    pub fn status(&self) -> InvocationStatus {
        self.marks.last().map_or(InvocationStatus::Created, |mark| mark.what)
    }

    pub fn is_live(&self) -> bool {
        !self.status().is_terminal()
    }

    pub fn round(&self) -> u32 {
        self.rounds.len() as u32
    }
}

/// What an invocation needs while it works, dropped at its end.
#[derive(Clone, Debug)]
pub struct Work {
    pub profile: Rc<Profile>,
    pub step: Step,
    pub system_prompt: Text,
    pub task_prompt: Option<Text>,
    /// The model's tools (JSON list of ToolSpec) and the host's own among them.
    pub tools: Doc,
    pub tool_names: Rc<Vec<ToolName>>,
    pub host_tools: Rc<Vec<HostTool>>,
    pub prompt: Doc,
    pub parameters: Doc,
    pub history: Vec<Rc<Message>>,
    pub knowledge: Pmap<Id, Rc<Knowledge>>,
    pub calls_used: u32,
    pub calls_per_tool: Pmap<Id, u32>,
    pub invalid_streak: u32,
    pub drift: u32,
    pub captured: u32,
    pub stuck: bool,
    pub human: bool,
}

/// canonical and model-facing name of a tool, as given to one invocation.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ToolName {
    pub canonical_name: Id,
    pub name: Id,
}

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HostTool {
    pub name: Id,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub input_schema: serde_json::Value,
    #[serde(default)]
    pub read_only: bool,
    #[serde(default)]
    pub requires_approval: bool,
    #[serde(default)]
    pub timeout_ms: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub role: Id,
    pub content: Rc<str>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_calls: Option<Doc>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_call_id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub provider_data: Option<Doc>,
}

/// ```text
/// ResolvingTools ─► Assembling ─► Between ─► Calling ─► Turn ─► Between …
///                                    └─────► Human ───────┘
/// ```
#[derive(Clone, Debug)]
pub enum Step {
    ResolvingTools,
    /// The prompt is rendered; the host is asked to assemble.
    Preparing,
    Assembling,
    /// Nothing is owed; the next thing is a model call, or the end.
    Between,
    Calling(Call),
    Human,
    Turn(Turn),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    pub attempt: u32,
    /// Set while the next attempt waits for its time.
    pub retry_at_ms: Option<f64>,
}

#[derive(Clone, Debug, Default)]
pub struct Turn {
    pub calls: Vec<Rc<TurnCall>>,
}

impl Turn {
    pub fn is_settled(&self) -> bool {
        self.calls.iter().all(|call| matches!(call.state, CallState::Settled(_)))
    }
}

#[derive(Clone, Debug)]
pub struct TurnCall {
    pub id: Id,
    pub canonical: Id,
    pub name: Id,
    pub arguments: Doc,
    pub state: CallState,
    /// A person has let this call through.
    pub approved: bool,
}

#[derive(Clone, Debug)]
pub enum CallState {
    Pending,
    /// A host tool runs.
    Running,
    AwaitingApproval,
    Committing { commit: Rc<Commit>, attempt: u32, retry_at_ms: Option<f64> },
    /// Committed with `finish: true`: the closing part is still to come.
    CommittedToFinish(Id),
    Awaiting(Rc<Await>),
    Settled(Rc<CallResult>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    pub commit_id: Id,
    pub path: Id,
    pub mode: WriteMode,
    pub reason: Option<Text>,
    pub text: Text,
    pub base_text: Option<Text>,
    pub persist_state_id: Option<Id>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Await {
    pub mode: Id,
    /// The tasks waited for, by ordinal.
    pub tasks: Vec<Ordinal>,
    pub until_ms: f64,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub ordinal: Ordinal,
    pub id: Id,
    pub parent: Ordinal,
    pub child: Ordinal,
    pub target: Id,
    pub key: Id,
    pub continuation: Continuation,
    pub version: u32,
    pub marks: Vec<Mark<TaskStatus>>,
    pub cancel_requested: Option<Mark<()>>,
    pub created_by: Option<Id>,
    pub title: Option<Text>,
    pub task: Doc,
    pub brief: Text,
    pub result: Option<Rc<TaskResult>>,
    pub result_ref: Option<Id>,
    pub error: Option<Text>,
    /// Its parent has been told how it ended (rule D5).
    pub told: bool,
}

impl Task {
    pub fn status(&self) -> TaskStatus {
        self.marks.last().map_or(TaskStatus::Queued, |mark| mark.what)
    }

    pub fn is_open(&self) -> bool {
        !self.status().is_terminal()
    }

    pub fn returns(&self) -> bool {
        self.continuation == Continuation::ReturnToParent
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TaskResult {
    pub status: TaskStatus,
    pub summary: Text,
    pub summary_ref: Id,
    pub output: Doc,
}

#[derive(Clone, Debug, PartialEq)]
pub struct File {
    pub text: Rc<str>,
    pub version: u32,
    pub sha256: Id,
}

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub commits: Pmap<u32, Rc<CommitRecord>>,
    pub message_id: Option<Id>,
    /// What the message holds, as last committed.
    pub text: Option<Rc<str>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitRecord {
    pub commit_id: Id,
    pub path: Id,
    pub mode: WriteMode,
    pub message_id: Option<Id>,
    pub profile_id: Id,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Guidance {
    pub id: Id,
    pub text: Text,
}

/// What the run is on its way to.
#[derive(Clone, Debug, PartialEq)]
pub enum Course {
    Open,
    /// Finished by its owner; children are being stopped, `persist/` is being promoted.
    Finishing,
    Cancelling { reason: Option<Text> },
    /// Something failed for good; children are being stopped.
    Failing { error: Doc },
    Ended { status: RunStatus, error: Doc },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    pub model_calls: u32,
    pub tool_calls: u32,
    /// Return-mode tasks.
    pub tasks: u32,
    pub handoffs: u32,
    pub fallbacks: u32,
    pub guidance: u32,
}

/// The part of the run's time in which nothing but people was waited for (rule H9).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeopleClock {
    pub waiting_since: Option<f64>,
    pub paused_ms: f64,
}

#[derive(Clone)]
pub struct State {
    pub run_id: Id,
    pub frozen: Option<Rc<Frozen>>,
    pub head: Head,
    pub created_ms: f64,
    pub at_ms: f64,
    pub team: Rc<Team>,
    pub course: Course,
    pub owner: Ordinal,
    /// Each owner with the seq and time of the transfer; the version is the place in the list.
    pub owners: Pmap<u32, Mark<Ordinal>>,
    pub statuses: Pmap<u32, Mark<RunStatus>>,
    pub invocations: Pmap<Ordinal, Rc<Invocation>>,
    /// Invocations that have not ended, in order of creation.
    pub live: Vec<Ordinal>,
    pub tasks: Pmap<Ordinal, Rc<Task>>,
    pub open_tasks: Vec<Ordinal>,
    /// Finished return-mode tasks that their parents have not been told of.
    pub untold: Vec<Ordinal>,
    pub keys: Pmap<Id, Ordinal>,
    pub call_ids: Pmap<Id, Ordinal>,
    pub files: Pmap<Id, Rc<File>>,
    pub file_bytes: u64,
    pub ledger: Ledger,
    pub handoffs: Pmap<u32, Rc<HandoffAccepted>>,
    pub edges: Pmap<(Id, Id), u32>,
    /// (cause, source) pairs for which the fallback was used.
    pub fallback_causes: Pmap<(Id, Ordinal), ()>,
    pub counters: Counters,
    pub guidance: Vec<Rc<Guidance>>,
    pub people: PeopleClock,
    pub late: Pmap<Id, ()>,
    pub aborted: Pmap<Id, ()>,
    pub blobs: Pmap<Id, ()>,
    pub promoted: bool,
    pub persist_error: Option<Doc>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            run_id: "".into(),
            frozen: None,
            head: Head::default(),
            created_ms: 0.0,
            at_ms: 0.0,
            team: Rc::default(),
            course: Course::Open,
            owner: 0,
            owners: Pmap::new(),
            statuses: Pmap::new(),
            invocations: Pmap::new(),
            live: Vec::new(),
            tasks: Pmap::new(),
            open_tasks: Vec::new(),
            untold: Vec::new(),
            keys: Pmap::new(),
            call_ids: Pmap::new(),
            files: Pmap::new(),
            file_bytes: 0,
            ledger: Ledger::default(),
            handoffs: Pmap::new(),
            edges: Pmap::new(),
            fallback_causes: Pmap::new(),
            counters: Counters::default(),
            guidance: Vec::new(),
            people: PeopleClock::default(),
            late: Pmap::new(),
            aborted: Pmap::new(),
            blobs: Pmap::new(),
            promoted: false,
            persist_error: None,
        }
    }
}

impl State {
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    pub fn limits(&self) -> RunLimits {
        self.frozen.as_ref().map(|frozen| frozen.limits.clone()).unwrap_or_default()
    }

    pub fn invocation(&self, ordinal: Ordinal) -> Option<&Rc<Invocation>> {
        self.invocations.get(&ordinal)
    }

    pub fn task(&self, ordinal: Ordinal) -> Option<&Rc<Task>> {
        self.tasks.get(&ordinal)
    }

    pub fn work(&self, ordinal: Ordinal) -> Option<&Work> {
        self.invocation(ordinal)?.work.as_deref()
    }

    pub fn invocation_by_id(&self, id: &str) -> Option<&Rc<Invocation>> {
        let root = self.invocations.get(&0).filter(|invocation| &*invocation.id == id);
        root.or_else(|| self.invocation(ids::ordinal(id)?).filter(|invocation| &*invocation.id == id))
    }

    pub fn task_by_id(&self, id: &str) -> Option<&Rc<Task>> {
        self.task(ids::ordinal(id)?).filter(|task| &*task.id == id)
    }

    pub fn owner(&self) -> Option<&Rc<Invocation>> {
        self.invocation(self.owner)
    }

    pub fn owner_version(&self) -> u32 {
        self.owners.len() as u32
    }

    pub fn is_open(&self) -> bool {
        self.course == Course::Open
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.course, Course::Ended { .. })
    }

    /// The unfinished return-mode tasks of one caller, in order of creation.
    pub fn open_children(&self, caller: Ordinal) -> impl Iterator<Item = &Rc<Task>> {
        self.open_tasks.iter().filter_map(|ordinal| self.task(*ordinal)).filter(move |task| task.parent == caller && task.returns())
    }

    pub fn untold_of(&self, caller: Ordinal) -> impl Iterator<Item = &Rc<Task>> {
        self.untold.iter().filter_map(|ordinal| self.task(*ordinal)).filter(move |task| task.parent == caller)
    }

    /// When the run must be over, in host time; None while only people are waited for.
    pub fn deadline_ms(&self) -> Option<f64> {
        let deadline = self.created_ms + self.limits().deadline_ms + self.people.paused_ms;
        self.people.waiting_since.is_none().then_some(deadline)
    }

    pub fn remaining_ms(&self, now_ms: f64) -> f64 {
        let paused = self.people.paused_ms + self.people.waiting_since.map_or(0.0, |since| now_ms - since);
        (self.created_ms + self.limits().deadline_ms + paused - now_ms).max(0.0)
    }

    /// Derived, never stored by decision: what the run is doing now.
    pub fn status(&self) -> RunStatus {
        match &self.course {
            Course::Ended { status, .. } => *status,
            Course::Finishing => RunStatus::Finishing,
            Course::Cancelling { .. } | Course::Failing { .. } => RunStatus::Cancelling,
            Course::Open => self.owner().and_then(|owner| owner.work.as_deref()).map_or(RunStatus::Created, Work::status),
        }
    }

    /// Whether something is waited for, and it is nothing but people.
    pub fn waits_for_people_only(&self) -> bool {
        let mut people = false;
        for work in self.live.iter().filter_map(|ordinal| self.work(*ordinal)) {
            match work.waits_for() {
                Waiting::People => people = true,
                Waiting::Children => {}
                Waiting::Machines => return false,
            }
        }
        people && self.is_open()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    People,
    Children,
    Machines,
}

impl Work {
    pub fn turn(&self) -> Option<&Turn> {
        match &self.step {
            Step::Turn(turn) => Some(turn),
            _ => None,
        }
    }

    fn waits_for(&self) -> Waiting {
        match &self.step {
            Step::Human => Waiting::People,
            Step::Turn(turn) => {
                let mut waiting = Waiting::Machines;
                for call in &turn.calls {
                    match call.state {
                        CallState::Running | CallState::Committing { .. } => return Waiting::Machines,
                        CallState::AwaitingApproval => waiting = Waiting::People,
                        CallState::Awaiting(_) if waiting == Waiting::Machines => waiting = Waiting::Children,
                        _ => {}
                    }
                }
                waiting
            }
            _ => Waiting::Machines,
        }
    }

    fn status(&self) -> RunStatus {
        match &self.step {
            Step::ResolvingTools | Step::Preparing | Step::Assembling => RunStatus::AssemblingContext,
            Step::Between | Step::Calling(_) => RunStatus::CallingModel,
            Step::Human => RunStatus::AwaitingHuman,
            Step::Turn(turn) => {
                let is = |wanted: fn(&CallState) -> bool| turn.calls.iter().any(|call| wanted(&call.state));
                if is(|state| matches!(state, CallState::AwaitingApproval)) {
                    RunStatus::AwaitingApproval
                } else if is(|state| matches!(state, CallState::Committing { .. })) {
                    RunStatus::AwaitingHostCommit
                } else if is(|state| matches!(state, CallState::Awaiting(_))) {
                    RunStatus::AwaitingTasks
                } else {
                    RunStatus::DispatchingTool
                }
            }
        }
    }
}
