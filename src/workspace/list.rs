//! A folder's files to a depth, folders first named by what lies in them.

use std::collections::BTreeMap;

use super::count;
use crate::domain::refusal::Refusal;
use crate::domain::say::Say;

pub const MAX_DEPTH: u32 = 4;
const MAX_ENTRIES: usize = 200;

#[derive(Debug)]
pub struct Listing {
    entries: BTreeMap<String, Option<u32>>,
    more: bool,
}

pub fn list<'a>(files: impl Iterator<Item = (&'a str, &'a str)>, folder: Option<&str>, depth: u32) -> Result<Listing, Refusal> {
    if depth > MAX_DEPTH {
        return Err(Refusal::new("workspace.list_depth_too_large", "workspace.list_depth_too_large").arg("limit", MAX_DEPTH.to_string()));
    }
    let prefix = folder.map(|folder| format!("{folder}/")).unwrap_or_default();
    let mut listing = Listing { entries: BTreeMap::new(), more: false };
    for (path, text) in files {
        let Some(rest) = path.strip_prefix(&prefix) else { continue };
        let parts: Vec<&str> = rest.split('/').collect();
        for level in 1..=parts.len().min(depth.max(1) as usize) {
            let entry = format!("{prefix}{}", parts.get(..level).unwrap_or_default().join("/"));
            let file = level == parts.len();
            if listing.entries.len() >= MAX_ENTRIES && !listing.entries.contains_key(&entry) {
                listing.more = true;
                continue;
            }
            listing.entries.insert(if file { entry } else { format!("{entry}/") }, file.then(|| count::chars(text)));
        }
    }
    Ok(listing)
}

impl Listing {
    pub fn paths(&self) -> Vec<&str> {
        self.entries.keys().map(String::as_str).collect()
    }

    pub fn render(&self, say: &dyn Say) -> String {
        if self.entries.is_empty() {
            return say.say("workspace.list_none", &[]);
        }
        let mut rows: Vec<String> = self
            .entries
            .iter()
            .map(|(path, chars)| match chars {
                Some(chars) => say.say("workspace.list_file", &[("path", path), ("chars", &chars.to_string())]),
                None => path.clone(),
            })
            .collect();
        if self.more {
            rows.push(say.say("workspace.list_more", &[]));
        }
        rows.join("\n")
    }
}
