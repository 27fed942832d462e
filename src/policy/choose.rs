//! Choosing an agent: the catalogue of an operation, and what a model meant by the id it sent (rules C1, C2).

use crate::domain::nearest::nearest;
use crate::domain::profile::Profile;
use crate::domain::refusal::Refusal;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Delegate,
    Handoff,
}

impl Operation {
    pub fn word(self) -> &'static str {
        match self {
            Self::Delegate => "delegate",
            Self::Handoff => "handoff",
        }
    }

    pub fn denied_code(self) -> &'static str {
        match self {
            Self::Delegate => "agent.delegation_policy_denied",
            Self::Handoff => "agent.handoff_policy_denied",
        }
    }

    /// Whether a profile has the right to the operation.
    pub fn allowed_to(self, profile: &Profile) -> bool {
        match self {
            Self::Delegate => profile.delegation().can_delegate,
            Self::Handoff => profile.delegation().can_handoff,
        }
    }

    pub fn taken_by(self, target: &Profile) -> bool {
        match self {
            Self::Delegate => target.delegation().allow_as_subagent,
            Self::Handoff => target.delegation().allow_as_handoff_target,
        }
    }
}

pub fn admits(target: &Profile, source: &Profile) -> bool {
    target.delegation().allowed_callers.iter().any(|caller| caller.trim() == "*" || caller.trim() == source.id)
}

/// The targets that pass the standing checks, by id.
pub fn catalogue<'a>(source: &Profile, team: &[&'a Profile], operation: Operation) -> Vec<&'a Profile> {
    let stands = |target: &&&Profile| {
        target.delegation().callable && operation.taken_by(target) && admits(target, source) && !target.requires_configuration() && target.id != source.id
    };
    let mut listed: Vec<&Profile> = team.iter().filter(stands).copied().collect();
    listed.sort_by(|a, b| a.id.cmp(&b.id));
    listed
}

/// What was sent, without blanks and one layer of quotes, backticks or `@`.
pub fn stripped(sent: &str) -> &str {
    let text = sent.trim();
    let text = text.strip_prefix('@').unwrap_or(text);
    for quote in ["`", "\"", "'", "“", "「"] {
        let close = match quote {
            "“" => "”",
            "「" => "」",
            other => other,
        };
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(close)) {
            return inner.trim();
        }
    }
    text
}

/// The profile that an id names: exactly, else by the one id or display name that is alike but for capitals.
/// An agent that does not admit the caller is found by its exact id only.
pub fn find<'a>(source: &Profile, team: &[&'a Profile], sent: &str) -> Option<&'a Profile> {
    let name = stripped(sent);
    if let Some(exact) = team.iter().find(|profile| profile.id == name) {
        return Some(exact);
    }
    let lower = name.to_lowercase();
    let mut alike = team.iter().filter(|profile| admits(profile, source) && (profile.id.to_lowercase() == lower || profile.display_name().to_lowercase() == lower));
    match (alike.next(), alike.next()) {
        (Some(one), None) => Some(one),
        _ => None,
    }
}

/// A refusal about the target names the candidates of the operation, and the nearest one.
pub fn with_candidates(refusal: Refusal, candidates: &[&Profile], sent: &str) -> Refusal {
    let ids: Vec<&str> = candidates.iter().map(|profile| profile.id.as_str()).collect();
    let near = nearest(stripped(sent), &ids).unwrap_or_default();
    let listed = if ids.is_empty() { "-".to_owned() } else { ids.join(", ") };
    let shown: String = stripped(sent).chars().take(128).collect();
    refusal.arg("agent", shown).arg("agents", listed).arg("nearest", near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_blanks_are_no_part_of_an_id() {
        for sent in [" Reviewer\n", "\"Reviewer\"", "`Reviewer`", "@Reviewer", "“Reviewer”"] {
            assert_eq!(stripped(sent), "Reviewer", "{sent:?}");
        }
    }
}
