//! One line of the journal: written with its place in the chain, read with every check of rule F5.
//! It knows the order and the hashes of lines, not what the events mean.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::Event;
use crate::domain::fault::Fault;
use crate::domain::ids::{self, IdKind};
use crate::domain::time::{parse_rfc3339, rfc3339};

/// The format of the lines that this build writes.
pub const JOURNAL_VERSION: u32 = 1;
/// `prev` of the first line.
pub const NO_LINE: &str = "00000000000000000000000000000000";

/// Where the chain stands: the last seq, and the hash of the last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub seq: u32,
    pub prev: Rc<str>,
}

impl Default for Head {
    fn default() -> Self {
        Self { seq: 0, prev: NO_LINE.into() }
    }
}

pub fn hash_of_line(line: &str) -> String {
    ids::hex(&ids::sha256(line.as_bytes())[..16])
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

/// Writes one batch and moves the head behind it.
pub fn write_batch(head: &mut Head, run_id: &str, at_ms: f64, events: &[Event]) -> Result<Vec<String>, Fault> {
    let batch = head.seq + 1;
    let at = rfc3339(at_ms);
    let mut lines = Vec::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        let payload = event.payload_json().map_err(|error| Fault::new("core.internal", error.to_string()))?;
        let seq = head.seq + 1;
        let mut line = format!(
            "{{\"v\":{JOURNAL_VERSION},\"batch\":{batch},\"last\":{},\"prev\":\"{}\",\"seq\":{seq},\"id\":\"{}\",\"runId\":{},\"at\":\"{at}\",\"level\":\"{}\",\"type\":\"{}\",\"scope\":",
            index + 1 == events.len(),
            head.prev,
            ids::derive(run_id, IdKind::Event, seq),
            quote(run_id),
            event.level().word(),
            event.type_name(),
        );
        push_scope(&mut line, &event.scope());
        line.push_str(",\"payload\":");
        line.push_str(&payload);
        let mut hashes = Vec::new();
        event.each_blob(&mut |hash, _| hashes.push(quote(hash)));
        if !hashes.is_empty() {
            line.push_str(",\"blobs\":[");
            line.push_str(&hashes.join(","));
            line.push(']');
        }
        line.push('}');
        *head = Head { seq, prev: hash_of_line(&line).into() };
        lines.push(line);
    }
    Ok(lines)
}

fn push_scope(line: &mut String, ids: &[&str]) {
    let Some((primary, others)) = ids.split_first() else {
        line.push_str("null");
        return;
    };
    line.push_str("{\"invocationId\":");
    line.push_str(&quote(primary));
    line.push_str(",\"relatedInvocationIds\":[");
    let mut first = true;
    for id in others.iter().filter(|id| *id != primary) {
        if !first {
            line.push(',');
        }
        first = false;
        line.push_str(&quote(id));
    }
    line.push_str("]}");
}

#[derive(Deserialize)]
struct Envelope<'a> {
    v: u32,
    batch: u32,
    last: bool,
    prev: String,
    seq: u32,
    #[serde(rename = "runId")]
    run_id: String,
    at: String,
    #[serde(rename = "type")]
    type_name: String,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize)]
struct BlobLine {
    blob: String,
    text: String,
}

/// A recorded fact with its place and time.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub seq: u32,
    pub at_ms: f64,
    pub event: Event,
}

/// What reading a journal gave: whole batches only.
#[derive(Debug, Default)]
pub struct Journal {
    pub run_id: String,
    pub head: Head,
    pub records: Vec<Record>,
}

/// Reads JSON Lines; blob lines may stand anywhere before the line that needs them. All or nothing:
/// the fault names the first seq that is wrong and the end of the readable prefix.
pub fn read_journal(text: &str) -> Result<Journal, Fault> {
    let mut reader = Reader::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with("{\"blob\":") {
            reader.blob(line)?;
        } else {
            reader.event(line)?;
        }
    }
    if reader.open {
        return Err(reader.corrupt("the last batch is not whole"));
    }
    Ok(reader.journal)
}

#[derive(Default)]
struct Reader {
    journal: Journal,
    blobs: BTreeMap<String, Rc<str>>,
    /// Within a batch whose last line has not come.
    open: bool,
    batch: u32,
    whole: u32,
}

impl Reader {
    fn corrupt(&self, why: impl Into<String>) -> Fault {
        let seq = self.journal.head.seq + 1;
        let why = why.into();
        let message = format!(
            "The journal is damaged at seq {seq}: {why}. The events up to seq {} are whole: open the run read-only with follow(), export it, or fork it there.",
            self.whole
        );
        Fault::new("journal.corrupt", message).detail("seq", seq).detail("wholeSeq", self.whole).detail("why", why)
    }

    fn blob(&mut self, line: &str) -> Result<(), Fault> {
        let blob: BlobLine = serde_json::from_str(line).map_err(|error| self.corrupt(format!("a blob cannot be read ({error})")))?;
        if ids::sha256_hex(blob.text.as_bytes()) != blob.blob {
            return Err(self.corrupt("a blob does not have the text that its hash names"));
        }
        self.blobs.insert(blob.blob, blob.text.into());
        Ok(())
    }

    fn event(&mut self, line: &str) -> Result<(), Fault> {
        let envelope: Envelope = serde_json::from_str(line).map_err(|error| match version_of(line) {
            Some(version) if version > JOURNAL_VERSION => newer(version),
            _ => self.corrupt(format!("the line cannot be read ({error})")),
        })?;
        if envelope.v > JOURNAL_VERSION {
            return Err(newer(envelope.v));
        }
        self.place(&envelope)?;
        let at_ms = parse_rfc3339(&envelope.at).ok_or_else(|| self.corrupt("its time cannot be read"))?;
        let mut event = match Event::parse(&envelope.type_name, envelope.payload.get()) {
            None => return Err(self.corrupt(format!("the event type {} is unknown", envelope.type_name))),
            Some(Err(error)) => return Err(self.corrupt(format!("the payload of {} cannot be read ({error})", envelope.type_name))),
            Some(Ok(event)) => event,
        };
        let blobs = &self.blobs;
        if !event.resolve(&|hash| blobs.get(hash).cloned()) {
            return Err(self.corrupt(format!("a text that {} refers to is missing", envelope.type_name)));
        }
        if self.journal.records.is_empty() {
            if !matches!(event, Event::RunCreated(_)) {
                return Err(self.corrupt("the first event is not run_created"));
            }
            self.journal.run_id.clone_from(&envelope.run_id);
        }
        self.journal.records.push(Record { seq: envelope.seq, at_ms, event });
        self.journal.head = Head { seq: envelope.seq, prev: hash_of_line(line).into() };
        self.open = !envelope.last;
        if envelope.last {
            self.whole = envelope.seq;
        }
        Ok(())
    }

    fn place(&mut self, envelope: &Envelope) -> Result<(), Fault> {
        let head = &self.journal.head;
        if envelope.seq != head.seq + 1 {
            return Err(self.corrupt(format!("seq {} comes after seq {}", envelope.seq, head.seq)));
        }
        if *envelope.prev != *head.prev {
            return Err(self.corrupt("the line before it is not the one that was written"));
        }
        if !self.journal.run_id.is_empty() && self.journal.run_id != envelope.run_id {
            return Err(self.corrupt("the line belongs to another run"));
        }
        let batch = if self.open { self.batch } else { envelope.seq };
        if envelope.batch != batch {
            return Err(self.corrupt(format!("batch {} stands where batch {batch} belongs", envelope.batch)));
        }
        self.batch = batch;
        Ok(())
    }
}

fn version_of(line: &str) -> Option<u32> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    serde_json::from_str::<Version>(line).ok().map(|version| version.v)
}

fn newer(version: u32) -> Fault {
    Fault::new(
        "journal.newer_version",
        format!("The journal was written in format {version}; this build reads up to {JOURNAL_VERSION}. Update tasuki to open it."),
    )
    .detail("version", version)
}
