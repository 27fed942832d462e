//! What one agent has seen of a file, and which writes that allows: nobody overwrites what they have not read.

use serde::{Deserialize, Serialize};

use crate::domain::refusal::Refusal;

/// The version last seen, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Knowledge {
    pub version: u32,
    /// The whole text is known.
    pub full: bool,
    /// Byte ranges that were read, where not all of it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<(u32, u32)>,
}

/// What a reading showed: all of the text, or a byte range of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covered {
    All,
    Range(u32, u32),
}

impl Knowledge {
    pub fn after_read(before: Option<&Self>, version: u32, covered: &Covered) -> Self {
        let same = before.filter(|before| before.version == version);
        match covered {
            Covered::All => Self { version, full: true, ranges: Vec::new() },
            Covered::Range(_, _) if same.is_some_and(|before| before.full) => Self { version, full: true, ranges: Vec::new() },
            Covered::Range(from, to) => {
                let mut ranges = same.map(|before| before.ranges.clone()).unwrap_or_default();
                ranges.push((*from, *to));
                Self { version, full: false, ranges }
            }
        }
    }

    /// A replaced or new file is known; an appended one only if it was known before.
    pub fn after_write(before: Option<&Self>, version: u32, append: bool) -> Self {
        let known = !append || version == 1 || before.is_some_and(|before| before.full && before.version + 1 == version);
        Self { version, full: known, ranges: Vec::new() }
    }

    /// One's own patch leaves what was known known.
    pub fn after_patch(before: Option<&Self>, version: u32) -> Self {
        Self { version, full: before.is_some_and(|before| before.full), ranges: Vec::new() }
    }
}

pub fn check_overwrite(knowledge: Option<&Knowledge>, version: u32, path: &str) -> Result<(), Refusal> {
    match knowledge {
        Some(known) if known.version == version && known.full => Ok(()),
        Some(known) if known.version != version => Err(Refusal::new("workspace.write_stale_file", "workspace.write_stale_file").arg("path", path)),
        _ => Err(Refusal::new("workspace.write_requires_read", "workspace.write_requires_read").arg("path", path)),
    }
}

pub fn check_patch(knowledge: Option<&Knowledge>, version: u32, path: &str, replace_all: bool) -> Result<(), Refusal> {
    match knowledge {
        None => Err(Refusal::new("workspace.patch_requires_read", "workspace.patch_requires_read").arg("path", path)),
        Some(known) if known.version != version => Err(Refusal::new("workspace.patch_stale_file", "workspace.patch_stale_file").arg("path", path)),
        Some(known) if replace_all && !known.full => Err(Refusal::new("workspace.patch_requires_full_read", "workspace.patch_requires_full_read").arg("path", path)),
        Some(_) => Ok(()),
    }
}

/// The text to be replaced lies within what was read.
pub fn check_patch_seen(knowledge: Option<&Knowledge>, path: &str, text: &str, old: &str) -> Result<(), Refusal> {
    let Some(known) = knowledge.filter(|known| !known.full) else { return Ok(()) };
    let at = text.find(old).unwrap_or(0);
    let (from, to) = (at as u64, (at + old.len()) as u64);
    let seen = known.ranges.iter().any(|(start, end)| u64::from(*start) <= from && to <= u64::from(*end));
    if seen { Ok(()) } else { Err(Refusal::new("workspace.patch_requires_read", "workspace.patch_requires_read").arg("path", path)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_overwrites_what_they_have_not_read() {
        let code = |result: Result<(), Refusal>| result.err().map(|refusal| refusal.code);
        let read = Knowledge::after_read(None, 3, &Covered::All);
        assert_eq!(code(check_overwrite(None, 1, "a")), Some("workspace.write_requires_read"));
        assert_eq!(code(check_overwrite(Some(&read), 3, "a")), None);
        assert_eq!(code(check_overwrite(Some(&read), 4, "a")), Some("workspace.write_stale_file"));
        let part = Knowledge::after_read(None, 3, &Covered::Range(0, 5));
        assert_eq!(code(check_overwrite(Some(&part), 3, "a")), Some("workspace.write_requires_read"));
        assert_eq!(code(check_patch(Some(&part), 3, "a", true)), Some("workspace.patch_requires_full_read"));
        assert_eq!(code(check_patch_seen(Some(&part), "a", "hello world", "world")), Some("workspace.patch_requires_read"));
        assert_eq!(code(check_patch_seen(Some(&part), "a", "hello world", "hell")), None);
        assert!(Knowledge::after_write(None, 1, true).full && !Knowledge::after_write(None, 2, true).full);
        assert!(Knowledge::after_write(Some(&read), 4, true).full);
    }
}
