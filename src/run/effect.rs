//! What does the host still owe? Derived from the state, never queued. The id of an effect is a function of
//! recorded facts and says what it is; it is the host's idempotency key.

use crate::domain::kinds::RunStatus;

use super::state::*;

/// One owed effect, by place. `Display` and `parse` are inverse; the run id goes before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectKey {
    ResolveTools(Ordinal),
    Assemble(Ordinal),
    Model { invocation: Ordinal, round: u32, attempt: u32 },
    Human { invocation: Ordinal, round: u32 },
    Tool(CallPlace),
    Approval(CallPlace),
    Commit(CallPlace),
    Promote,
    WakeDeadline(u64),
    WakeRetry { invocation: Ordinal, round: u32, attempt: u32 },
    WakeCommit { place: CallPlace, attempt: u32 },
    WakeAwait(CallPlace),
    /// Stop another effect; it holds that effect's path.
    Abort(String),
    End,
}

/// A tool call by its place in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPlace {
    pub invocation: Ordinal,
    pub round: u32,
    pub index: u32,
}

impl EffectKey {
    /// The id without the run: `model/2/1/1`.
    pub fn path(&self) -> String {
        let place = |kind: &str, place: &CallPlace| format!("{kind}/{}/{}/{}", place.invocation, place.round, place.index);
        match self {
            Self::ResolveTools(invocation) => format!("tools/{invocation}"),
            Self::Assemble(invocation) => format!("prompt/{invocation}"),
            Self::Model { invocation, round, attempt } => format!("model/{invocation}/{round}/{attempt}"),
            Self::Human { invocation, round } => format!("human/{invocation}/{round}"),
            Self::Tool(call) => place("tool", call),
            Self::Approval(call) => place("approval", call),
            Self::Commit(call) => place("commit", call),
            Self::Promote => "persist".to_owned(),
            Self::WakeDeadline(at_ms) => format!("wake-deadline/{at_ms}"),
            Self::WakeRetry { invocation, round, attempt } => format!("wake-retry/{invocation}/{round}/{attempt}"),
            Self::WakeCommit { place: call, attempt } => format!("{}/{attempt}", place("wake-commit", call)),
            Self::WakeAwait(call) => place("wake-await", call),
            Self::Abort(target) => format!("abort/{target}"),
            Self::End => "end".to_owned(),
        }
    }

    pub fn id(&self, run_id: &str) -> String {
        format!("{run_id}/{}", self.path())
    }

    pub fn parse(run_id: &str, id: &str) -> Option<Self> {
        Self::parse_path(id.strip_prefix(run_id)?.strip_prefix('/')?)
    }

    fn parse_path(path: &str) -> Option<Self> {
        let (kind, rest) = path.split_once('/').unwrap_or((path, ""));
        if kind == "abort" {
            return Self::parse_path(rest).map(|_| Self::Abort(rest.to_owned()));
        }
        let numbers: Vec<u64> = if rest.is_empty() { Vec::new() } else { rest.split('/').map(|part| part.parse().ok()).collect::<Option<_>>()? };
        let small: Vec<u32> = numbers.iter().map(|number| u32::try_from(*number).unwrap_or(u32::MAX)).collect();
        let place = |at: &[u32]| match at {
            [invocation, round, index] => Some(CallPlace { invocation: *invocation, round: *round, index: *index }),
            _ => None,
        };
        match (kind, small.as_slice()) {
            ("tools", [invocation]) => Some(Self::ResolveTools(*invocation)),
            ("prompt", [invocation]) => Some(Self::Assemble(*invocation)),
            ("model", [invocation, round, attempt]) => Some(Self::Model { invocation: *invocation, round: *round, attempt: *attempt }),
            ("human", [invocation, round]) => Some(Self::Human { invocation: *invocation, round: *round }),
            ("tool", at) => place(at).map(Self::Tool),
            ("approval", at) => place(at).map(Self::Approval),
            ("commit", at) => place(at).map(Self::Commit),
            ("persist", []) => Some(Self::Promote),
            ("wake-deadline", [_]) => numbers.first().copied().map(Self::WakeDeadline),
            ("wake-retry", [invocation, round, attempt]) => Some(Self::WakeRetry { invocation: *invocation, round: *round, attempt: *attempt }),
            ("wake-commit", [at @ .., attempt]) => place(at).map(|place| Self::WakeCommit { place, attempt: *attempt }),
            ("wake-await", at) => place(at).map(Self::WakeAwait),
            ("end", []) => Some(Self::End),
            _ => None,
        }
    }

    /// The invocation that the effect serves.
    pub fn invocation(&self) -> Option<Ordinal> {
        match self {
            Self::ResolveTools(invocation) | Self::Assemble(invocation) => Some(*invocation),
            Self::Model { invocation, .. } | Self::Human { invocation, .. } | Self::WakeRetry { invocation, .. } => Some(*invocation),
            Self::Tool(place) | Self::Approval(place) | Self::Commit(place) | Self::WakeAwait(place) => Some(place.invocation),
            Self::WakeCommit { place, .. } => Some(place.invocation),
            Self::Promote | Self::WakeDeadline(_) | Self::Abort(_) | Self::End => None,
        }
    }

    pub fn is_wake(&self) -> bool {
        matches!(self, Self::WakeDeadline(_) | Self::WakeRetry { .. } | Self::WakeCommit { .. } | Self::WakeAwait(_))
    }
}

impl State {
    /// All that is owed now, in a stable order.
    pub fn outstanding(&self) -> Vec<EffectKey> {
        let mut owed = Vec::new();
        if self.frozen.is_none() {
            return owed;
        }
        for ordinal in &self.live {
            self.owed_by(*ordinal, &mut owed);
        }
        match &self.course {
            Course::Ended { .. } => owed.push(EffectKey::End),
            Course::Finishing if self.live.is_empty() && !self.promoted => owed.push(EffectKey::Promote),
            Course::Open => owed.extend(self.deadline_ms().map(|at_ms| EffectKey::WakeDeadline(at_ms as u64))),
            _ => {}
        }
        owed
    }

    pub(super) fn owed_by(&self, ordinal: Ordinal, owed: &mut Vec<EffectKey>) {
        let Some(invocation) = self.invocation(ordinal) else { return };
        let Some(work) = invocation.work.as_deref() else { return };
        let mut own = Vec::new();
        work.owed(invocation, &mut own);
        if self.is_stopping(ordinal) {
            owed.extend(own.into_iter().filter(|key| !key.is_wake()).map(|key| key.path()).filter(|path| !self.aborted.contains(path.as_str())).map(EffectKey::Abort));
        } else {
            owed.extend(own);
        }
    }

    /// Whether an invocation has been asked to stop and has not ended yet (rule D7).
    pub fn is_stopping(&self, ordinal: Ordinal) -> bool {
        if !self.is_open() {
            return true;
        }
        let task = self.invocation(ordinal).and_then(|invocation| invocation.task).and_then(|task| self.task(task));
        task.is_some_and(|task| task.cancel_requested.is_some())
    }

    pub fn is_owed(&self, key: &EffectKey) -> bool {
        self.outstanding().contains(key)
    }

    /// Whether an effect of this run was owed at some time (rule V3).
    pub fn was_issued(&self, key: &EffectKey) -> bool {
        let round_of = |invocation: Ordinal| self.invocation(invocation).map_or(0, |found| found.round());
        match key {
            EffectKey::ResolveTools(invocation) | EffectKey::Assemble(invocation) => {
                self.invocation(*invocation).is_some_and(|found| found.marks.len() > 1)
            }
            EffectKey::Model { invocation, round, attempt } | EffectKey::WakeRetry { invocation, round, attempt } => {
                (1..=round_of(*invocation)).contains(round) && *attempt >= 1 && *attempt <= self.counters.model_calls
            }
            EffectKey::Human { invocation, round } => (1..=round_of(*invocation)).contains(round),
            EffectKey::Tool(place) | EffectKey::Approval(place) | EffectKey::Commit(place) | EffectKey::WakeAwait(place) => {
                (1..=round_of(place.invocation)).contains(&place.round) && place.index < self.call_ids.len() as u32
            }
            EffectKey::WakeCommit { place, .. } => (1..=round_of(place.invocation)).contains(&place.round),
            EffectKey::Promote => matches!(self.course, Course::Finishing | Course::Ended { .. }),
            EffectKey::WakeDeadline(at_ms) => (*at_ms as f64) >= self.created_ms,
            EffectKey::Abort(path) => EffectKey::parse_path(path).is_some_and(|target| self.was_issued(&target)),
            EffectKey::End => matches!(self.course, Course::Ended { .. }),
        }
    }

    pub fn final_status(&self) -> Option<RunStatus> {
        match &self.course {
            Course::Ended { status, .. } => Some(*status),
            _ => None,
        }
    }
}

impl Work {
    fn owed(&self, invocation: &Invocation, owed: &mut Vec<EffectKey>) {
        let (ordinal, round) = (invocation.ordinal, invocation.round());
        match &self.step {
            Step::ResolvingTools => owed.push(EffectKey::ResolveTools(ordinal)),
            Step::Preparing | Step::Between => {}
            Step::Assembling => owed.push(EffectKey::Assemble(ordinal)),
            Step::Calling(Call { attempt, retry_at_ms: None }) => owed.push(EffectKey::Model { invocation: ordinal, round, attempt: *attempt }),
            Step::Calling(Call { attempt, retry_at_ms: Some(_) }) => {
                owed.push(EffectKey::WakeRetry { invocation: ordinal, round, attempt: attempt + 1 });
            }
            Step::Human => owed.push(EffectKey::Human { invocation: ordinal, round }),
            Step::Turn(turn) => {
                for (index, call) in turn.calls.iter().enumerate() {
                    let place = CallPlace { invocation: ordinal, round, index: index as u32 };
                    match &call.state {
                        CallState::Running => owed.push(EffectKey::Tool(place)),
                        CallState::AwaitingApproval => owed.push(EffectKey::Approval(place)),
                        CallState::Committing { retry_at_ms: None, .. } => owed.push(EffectKey::Commit(place)),
                        CallState::Committing { attempt, .. } => owed.push(EffectKey::WakeCommit { place, attempt: attempt + 1 }),
                        CallState::Awaiting(_) => owed.push(EffectKey::WakeAwait(place)),
                        CallState::Pending | CallState::CommittedToFinish(_) | CallState::Settled(_) => {}
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_id_can_be_read_back() {
        let place = CallPlace { invocation: 3, round: 2, index: 1 };
        let keys = [
            EffectKey::ResolveTools(1),
            EffectKey::Assemble(0),
            EffectKey::Model { invocation: 1, round: 2, attempt: 3 },
            EffectKey::Human { invocation: 1, round: 2 },
            EffectKey::Tool(place),
            EffectKey::Approval(place),
            EffectKey::Commit(place),
            EffectKey::Promote,
            EffectKey::WakeDeadline(1_893_456_000_000),
            EffectKey::WakeRetry { invocation: 1, round: 2, attempt: 3 },
            EffectKey::WakeCommit { place, attempt: 2 },
            EffectKey::WakeAwait(place),
            EffectKey::Abort("tool/3/2/1".to_owned()),
            EffectKey::End,
        ];
        for key in keys {
            assert_eq!(EffectKey::parse("run_1", &key.id("run_1")), Some(key));
        }
        for wrong in ["run_1/model/1/2", "run_2/end", "run_1/tool/a/b/c", "run_1", "run_1/abort/x"] {
            assert_eq!(EffectKey::parse("run_1", wrong), None, "{wrong}");
        }
    }
}
