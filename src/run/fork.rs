//! A new run out of the first facts of another (rule F8): the same facts under a new id, in a chain of their own.

use serde_json::json;

use crate::domain::fault::Fault;
use crate::domain::ids;
use crate::journal::{Doc, Event, Head, read_journal, write_batch};

pub struct ForkOptions<'a> {
    pub run_id: &'a str,
    /// Rounded down to the end of a batch.
    pub at_seq: u32,
    pub adopt_message: bool,
}

/// The lines of the new journal; its blobs are those of the old one.
pub fn fork(lines: &str, options: &ForkOptions) -> Result<Vec<String>, Fault> {
    if !ids::is_run_id(options.run_id) {
        return Err(Fault::new("fork.invalid", "runId must be run_ and 32 lower-case hex digits.").detail("path", "$.runId"));
    }
    let source = read_journal(lines)?;
    let ends = batch_ends(lines);
    let cut = ends.iter().copied().filter(|end| *end <= options.at_seq).max();
    let Some(cut) = cut else {
        let first = ends.first().copied().unwrap_or(0);
        return Err(Fault::new("fork.invalid", format!("atSeq is {}; the first place to fork at is {first}.", options.at_seq)).detail("path", "$.atSeq"));
    };
    let hash = event_lines(lines).nth(cut as usize - 1).map(crate::journal::line::hash_of_line).unwrap_or_default();
    let mut head = Head::default();
    let mut written = Vec::new();
    let mut batch = Vec::new();
    for record in source.records.into_iter().take_while(|record| record.seq <= cut) {
        let (seq, at_ms) = (record.seq, record.at_ms);
        batch.push(match record.event {
            Event::RunCreated(mut created) => {
                created.forked_from = Doc::of(&json!({ "runId": source.run_id, "atSeq": cut, "hash": hash, "adoptMessage": options.adopt_message }));
                Event::RunCreated(created)
            }
            other => other,
        });
        if ends.contains(&seq) {
            written.extend(write_batch(&mut head, options.run_id, at_ms, &std::mem::take(&mut batch))?);
        }
    }
    Ok(written)
}

fn event_lines(lines: &str) -> impl Iterator<Item = &str> {
    lines.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("{\"blob\":"))
}

fn batch_ends(lines: &str) -> Vec<u32> {
    #[derive(serde::Deserialize)]
    struct Place {
        seq: u32,
        last: bool,
    }
    event_lines(lines).filter_map(|line| serde_json::from_str::<Place>(line).ok()).filter(|place| place.last).map(|place| place.seq).collect()
}
