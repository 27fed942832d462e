//! The words that records use, each with its table of legal moves. It knows no events.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationKind {
    Root,
    Subagent,
    Handoff,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitPolicy {
    RunFinishAllowed,
    TaskReturnRequired,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Continuation {
    ReturnToParent,
    TransferControl,
}

/// ```text
/// created ─► running ─► completed | failed | cancelled | transferred
///    └───────────────────────────► failed | cancelled
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationStatus {
    Created,
    Running,
    Completed,
    Failed,
    Cancelled,
    Transferred,
}

impl InvocationStatus {
    pub const ALL: [Self; 6] =
        [Self::Created, Self::Running, Self::Completed, Self::Failed, Self::Cancelled, Self::Transferred];
    pub const MOVES: &[(Self, Self)] = &[
        (Self::Created, Self::Running),
        (Self::Created, Self::Failed),
        (Self::Created, Self::Cancelled),
        (Self::Running, Self::Completed),
        (Self::Running, Self::Failed),
        (Self::Running, Self::Cancelled),
        (Self::Running, Self::Transferred),
    ];

    pub fn may_become(self, next: Self) -> bool {
        Self::MOVES.contains(&(self, next))
    }

    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Created | Self::Running)
    }
}

/// ```text
/// queued ─► running ─► completed | failed | cancelled        (rule V1)
///    └───────────────► failed | cancelled
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Queued,
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl TaskStatus {
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Completed, Self::Failed, Self::Cancelled];
    pub const MOVES: &[(Self, Self)] = &[
        (Self::Queued, Self::Running),
        (Self::Queued, Self::Cancelled),
        (Self::Queued, Self::Failed),
        (Self::Running, Self::Completed),
        (Self::Running, Self::Failed),
        (Self::Running, Self::Cancelled),
    ];

    pub fn may_become(self, next: Self) -> bool {
        Self::MOVES.contains(&(self, next))
    }

    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Created,
    AssemblingContext,
    CallingModel,
    DispatchingTool,
    AwaitingTasks,
    AwaitingApproval,
    AwaitingHuman,
    AwaitingHostCommit,
    Finishing,
    Cancelling,
    Completed,
    PartialSuccess,
    Cancelled,
    Failed,
}

impl RunStatus {
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::PartialSuccess | Self::Cancelled | Self::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_statuses_is_judged_by_the_table() {
        // rule V1: terminal is final, nothing goes back, nothing stays itself
        for from in TaskStatus::ALL {
            for to in TaskStatus::ALL {
                let legal = matches!(
                    (from, to),
                    (TaskStatus::Queued, TaskStatus::Running | TaskStatus::Cancelled | TaskStatus::Failed)
                        | (TaskStatus::Running, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
                );
                assert_eq!(from.may_become(to), legal, "{from:?} -> {to:?}");
                assert!(!(from.is_terminal() && legal));
            }
        }
        for from in InvocationStatus::ALL {
            for to in InvocationStatus::ALL {
                assert!(!(from.is_terminal() && from.may_become(to)), "{from:?} -> {to:?}");
                assert!(!(to == InvocationStatus::Created && from.may_become(to)));
            }
        }
    }
}
