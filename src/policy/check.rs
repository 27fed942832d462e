//! The checks of a handoff and of a delegation, each list in its order (rules C3, C4). The first that fails is the
//! refusal; `explain` walks the same lists to the end.

use super::choose::{self, Operation};
use crate::domain::profile::Profile;
use crate::domain::refusal::Refusal;

pub struct HandoffFacts<'a> {
    pub source: &'a Profile,
    pub team: &'a [&'a Profile],
    pub target: &'a str,
    /// Handles of unfinished delegated tasks.
    pub pending: &'a [String],
    pub hops: u32,
    pub max_handoffs: u32,
    /// Times the edge to a profile was accepted.
    pub edge: &'a dyn Fn(&str) -> u32,
    pub max_per_edge: u32,
    pub confidence: Option<f64>,
    pub min_confidence: Option<f64>,
}

pub struct DelegateFacts<'a> {
    pub source: &'a Profile,
    pub team: &'a [&'a Profile],
    pub target: &'a str,
    pub used_by_caller: u32,
    pub used_in_run: u32,
    pub max_in_run: u32,
    pub depth: u32,
    pub max_depth: u32,
}

/// A check by name, with what it refuses if it fails.
pub type Check = (&'static str, Option<Refusal>);

fn check(name: &'static str, failed: bool, refusal: impl FnOnce() -> Refusal) -> Check {
    (name, failed.then(refusal))
}

fn first<'a>(checks: Vec<Check>, target: Option<&'a Profile>, missing: impl FnOnce() -> Refusal) -> Result<&'a Profile, Refusal> {
    if let Some(refusal) = checks.into_iter().find_map(|(_, refusal)| refusal) {
        return Err(refusal);
    }
    target.ok_or_else(missing)
}

pub fn check_handoff<'a>(facts: &HandoffFacts<'a>) -> Result<&'a Profile, Refusal> {
    let target = choose::find(facts.source, facts.team, facts.target);
    first(handoff_checks(facts, target), target, || not_found(facts.source, facts.team, facts.target, Operation::Handoff))
}

pub fn check_delegate<'a>(facts: &DelegateFacts<'a>) -> Result<&'a Profile, Refusal> {
    let target = choose::find(facts.source, facts.team, facts.target);
    first(delegate_checks(facts, target), target, || not_found(facts.source, facts.team, facts.target, Operation::Delegate))
}

fn not_found(source: &Profile, team: &[&Profile], sent: &str, operation: Operation) -> Refusal {
    let candidates = choose::catalogue(source, team, operation);
    let near = crate::domain::nearest::nearest(choose::stripped(sent), &candidates.iter().map(|profile| profile.id.as_str()).collect::<Vec<_>>()).is_some();
    let key = match (candidates.is_empty(), near) {
        (true, _) => "agents.none_available",
        (false, true) => "agents.not_found_near",
        (false, false) => "agents.not_found",
    };
    choose::with_candidates(Refusal::new("agent.target_profile_not_found", key), &candidates, sent)
}

/// All checks of C3 after the arguments, in order. `target` is None where the id names nobody.
pub fn handoff_checks<'a>(facts: &HandoffFacts<'a>, target: Option<&'a Profile>) -> Vec<Check> {
    let depth = facts.source.delegation().max_handoff_depth;
    let mut checks = vec![
        check("cannot_handoff", !facts.source.delegation().can_handoff, || denied(Operation::Handoff, "cannot_handoff", "agents.cannot_handoff")),
        check("handoff_pending_tasks", !facts.pending.is_empty(), || {
            Refusal::new("agent.handoff_pending_tasks", "agents.pending_tasks").reason("pending_tasks").arg("handles", facts.pending.join(", "))
        }),
        check("handoff_depth_exhausted", facts.hops >= depth, || {
            Refusal::new("agent.handoff_depth_exhausted", "agents.depth_exhausted").reason("depth").arg("limit", depth.to_string())
        }),
        check("handoff_limit_exhausted", facts.hops >= facts.max_handoffs, || {
            Refusal::new("agent.handoff_depth_exhausted", "agents.hops_exhausted").reason("hops").arg("limit", facts.max_handoffs.to_string())
        }),
    ];
    let candidates = choose::catalogue(facts.source, facts.team, Operation::Handoff);
    checks.push(check("target_profile_not_found", target.is_none(), || not_found(facts.source, facts.team, facts.target, Operation::Handoff)));
    let Some(target) = target else { return checks };
    checks.push(check("self_handoff", target.id == facts.source.id, || denied(Operation::Handoff, "self_handoff", "agents.self_handoff")));
    checks.extend(standing(facts.source, target, Operation::Handoff, &candidates, facts.target));
    let times = (facts.edge)(&target.id);
    checks.push(check("edge_repeats", times >= facts.max_per_edge, || {
        Refusal::new("agent.handoff_loop", "agents.edge_repeats").reason("edge_repeats").arg("agent", target.id.as_str()).arg("limit", facts.max_per_edge.to_string())
    }));
    let (given, least) = (facts.confidence.unwrap_or(1.0), facts.min_confidence.unwrap_or(0.0));
    checks.push(check("low_confidence", given < least, || {
        denied(Operation::Handoff, "low_confidence", "agents.low_confidence").arg("confidence", given.to_string()).arg("limit", least.to_string())
    }));
    checks
}

/// All checks of C4 after the arguments, in order.
pub fn delegate_checks<'a>(facts: &DelegateFacts<'a>, target: Option<&'a Profile>) -> Vec<Check> {
    let mut checks = vec![check("cannot_delegate", !facts.source.delegation().can_delegate, || denied(Operation::Delegate, "cannot_delegate", "agents.cannot_delegate"))];
    let candidates = choose::catalogue(facts.source, facts.team, Operation::Delegate);
    checks.push(check("target_profile_not_found", target.is_none(), || not_found(facts.source, facts.team, facts.target, Operation::Delegate)));
    let Some(target) = target else { return checks };
    checks.push(check("self_delegation", target.id == facts.source.id, || denied(Operation::Delegate, "self_delegation", "agents.self_delegation")));
    checks.extend(standing(facts.source, target, Operation::Delegate, &candidates, facts.target));
    let exhausted = |reason, key, limit: u32| Refusal::new("agent.delegation_budget_exhausted", key).reason(reason).arg("limit", limit.to_string());
    let own = facts.source.delegation().max_invocations_per_run;
    checks.push(check("caller_budget_exhausted", facts.used_by_caller >= own, || exhausted("caller", "agents.caller_budget_exhausted", own)));
    checks.push(check("run_budget_exhausted", facts.used_in_run >= facts.max_in_run, || exhausted("run", "agents.run_budget_exhausted", facts.max_in_run)));
    checks.push(check("depth_exhausted", facts.depth >= facts.max_depth, || exhausted("depth", "agents.delegation_depth_exhausted", facts.max_depth)));
    checks
}

fn denied(operation: Operation, reason: &'static str, key: &'static str) -> Refusal {
    Refusal::new(operation.denied_code(), key).reason(reason)
}

/// The checks that stand while an agent works (rule C1): callable, flag, caller, model.
fn standing(source: &Profile, target: &Profile, operation: Operation, candidates: &[&Profile], sent: &str) -> Vec<Check> {
    let refuse = |reason, key| choose::with_candidates(denied(operation, reason, key), candidates, sent);
    let (flag, flag_key) = match operation {
        Operation::Handoff => ("target_not_handoff", "agents.target_not_handoff"),
        Operation::Delegate => ("target_not_subagent", "agents.target_not_subagent"),
    };
    vec![
        check("target_not_callable", !target.delegation().callable, || refuse("target_not_callable", "agents.target_not_callable")),
        check(flag, !operation.taken_by(target), || refuse(flag, flag_key)),
        check("caller_denied", !choose::admits(target, source), || refuse("caller_denied", "agents.caller_denied")),
        check("model_requires_configuration", target.requires_configuration(), || refuse("model_requires_configuration", "agents.model_requires_configuration")),
    ]
}

/// Why the fallback profile may take over (rules H7, H8, T9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FallbackCause {
    Hops,
    Edge,
    LowConfidence,
    Stuck,
    StartFailed,
}

impl FallbackCause {
    pub fn of(refusal: &Refusal) -> Option<Self> {
        match (refusal.code, refusal.reason) {
            ("agent.handoff_depth_exhausted", _) => Some(Self::Hops),
            ("agent.handoff_loop", _) => Some(Self::Edge),
            (_, Some("low_confidence")) => Some(Self::LowConfidence),
            _ => None,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Hops => "hops",
            Self::Edge => "edge",
            Self::LowConfidence => "low_confidence",
            Self::Stuck => "stuck",
            Self::StartFailed => "start_failed",
        }
    }
}
