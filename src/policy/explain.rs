//! Why one agent may or may not turn to another: every check of the deciding list with its outcome, on a fresh run.

use serde::Serialize;

use super::check::{Check, DelegateFacts, HandoffFacts, delegate_checks, handoff_checks};
use super::choose::{self, Operation};
use crate::domain::limits::RunLimits;
use crate::domain::profile::Profile;
use crate::domain::say::Say;

#[derive(Serialize, Debug, PartialEq)]
pub struct Explained {
    pub allowed: bool,
    pub checks: Vec<Outcome>,
}

#[derive(Serialize, Debug, PartialEq)]
pub struct Outcome {
    pub code: &'static str,
    pub passed: bool,
    pub message: String,
}

/// The pair to be explained.
pub struct Question<'a> {
    pub source: &'a Profile,
    pub target: &'a str,
    pub operation: Operation,
    pub team: &'a [&'a Profile],
    pub limits: &'a RunLimits,
}

pub fn explain(say: &dyn Say, question: &Question) -> Explained {
    let target = choose::find(question.source, question.team, question.target);
    let checks: Vec<Check> = match question.operation {
        Operation::Handoff => handoff_checks(
            &HandoffFacts {
                source: question.source,
                team: question.team,
                target: question.target,
                pending: &[],
                hops: 0,
                max_handoffs: question.limits.max_handoffs,
                edge: &|_| 0,
                max_per_edge: question.limits.max_handoffs_per_edge,
                confidence: None,
                min_confidence: None,
            },
            target,
        ),
        Operation::Delegate => delegate_checks(
            &DelegateFacts {
                source: question.source,
                team: question.team,
                target: question.target,
                used_by_caller: 0,
                used_in_run: 0,
                max_in_run: question.limits.max_tasks,
                depth: 0,
                max_depth: question.limits.max_delegation_depth,
            },
            target,
        ),
    };
    let outcome = |(code, refusal): Check| {
        let message = match &refusal {
            None => say.say("agents.check_passed", &[]),
            Some(refusal) => {
                let args: Vec<(&str, &str)> = refusal.args.iter().map(|(name, value)| (*name, value.as_str())).collect();
                say.say(refusal.key, &args)
            }
        };
        Outcome { code, passed: refusal.is_none(), message }
    };
    let checks: Vec<Outcome> = checks.into_iter().map(outcome).collect();
    Explained { allowed: checks.iter().all(|check| check.passed), checks }
}
