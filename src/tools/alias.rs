//! Names that every provider takes: `^[a-zA-Z][a-zA-Z0-9_]{0,62}$`, mapped back by a table.

use crate::domain::ids;

const MAX: usize = 63;

/// canonical ↔ model-facing names, each unique.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    pairs: Vec<(String, String)>,
}

/// Two canonical names that would share one alias.
#[derive(Debug, PartialEq, Eq)]
pub struct Clash(pub String, pub String);

pub fn table<'a>(names: impl Iterator<Item = &'a str>) -> Result<Aliases, Clash> {
    let mut aliases = Aliases::default();
    for name in names {
        let alias = alias(name);
        match aliases.pairs.iter().find(|(_, taken)| *taken == alias) {
            Some((first, _)) if first != name => return Err(Clash(first.clone(), name.to_owned())),
            Some(_) => {}
            None => aliases.pairs.push((name.to_owned(), alias)),
        }
    }
    Ok(aliases)
}

impl Aliases {
    pub fn alias_of(&self, canonical: &str) -> Option<&str> {
        self.pairs.iter().find(|(name, _)| name == canonical).map(|(_, alias)| alias.as_str())
    }
}

/// Dots and dashes become `_`; where that would lose more than that, or be too long, a short hash makes it unique.
pub fn alias(name: &str) -> String {
    let mut safe: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let lossy = name.chars().any(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')));
    if !safe.starts_with(|c: char| c.is_ascii_alphabetic()) {
        safe = format!("tool_{}", safe.trim_start_matches('_'));
    }
    if lossy || safe.len() > MAX {
        let hash: String = ids::sha256_hex(name.as_bytes()).chars().take(8).collect();
        safe.truncate(MAX - 9);
        safe = format!("{}_{hash}", safe.trim_end_matches('_'));
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_safe_and_never_ambiguous() {
        assert_eq!(alias("agent.handoff"), "agent_handoff");
        for name in ["润色", "校对", "9lives", "...", "_x", &"a".repeat(100)] {
            let alias = alias(name);
            assert!(alias.len() <= MAX && alias.starts_with(|c: char| c.is_ascii_alphabetic()), "{alias}");
            assert!(alias.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{alias}");
        }
        assert_ne!(alias("润色"), alias("校对"));
        assert_eq!(table(["a.b", "a_b"].into_iter()).err(), Some(Clash("a.b".into(), "a_b".into())));
    }
}
