//! One run between its host and its journal: propose, store, commit. Nothing can be performed before it is stored.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::batch::Batch;
use super::command_json::parse_command;
use super::decide::decide;
use super::effect::EffectKey;
use super::query;
use super::state::State;
use crate::domain::fault::Fault;
use crate::journal::{Journal, read_journal, write_batch};
use crate::render::locale::Locale;

/// A staged batch: what to store before `commit`.
#[derive(Debug)]
pub struct Proposal {
    /// The number of events that the journal must hold now.
    pub expected_seq: u32,
    pub lines: Vec<String>,
    /// Texts by SHA-256 that the lines refer to and that were not proposed before.
    pub blobs: BTreeMap<String, Rc<str>>,
    /// The contract's RunSummary.
    pub summary: Value,
}

struct Staged {
    state: State,
    answered: Option<EffectKey>,
}

pub struct Machine {
    state: State,
    locale: Locale,
    staged: Option<Staged>,
}

impl Default for Machine {
    fn default() -> Self {
        Self::new(Locale::english())
    }
}

impl Machine {
    pub fn new(locale: Locale) -> Self {
        Self { state: State::default(), locale, staged: None }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// Folds JSON Lines into the state; all or nothing. Gives the last seq.
    pub fn load(&mut self, lines: &str) -> Result<u32, Fault> {
        if self.state.frozen.is_some() || self.staged.is_some() {
            return Err(Fault::new("run.already_started", "This machine holds a run already; use one machine for each run."));
        }
        let journal = read_journal(lines)?;
        if journal.records.is_empty() {
            return Err(Fault::new("journal.corrupt", "The journal is empty.").detail("seq", 1).detail("wholeSeq", 0));
        }
        self.state = fold(&journal);
        Ok(journal.head.seq)
    }

    /// Decides a command and stages what follows; the state stays as it is until `commit`.
    pub fn propose(&mut self, command: &str, now_ms: f64) -> Result<Proposal, Fault> {
        if self.staged.is_some() {
            return Err(Fault::new("core.proposal_open", "A proposal is open: commit or abandon it first."));
        }
        if !now_ms.is_finite() || now_ms < 0.0 {
            return Err(Fault::new("command.invalid", format!("nowMs is {now_ms}; it must be a finite number of milliseconds since 1970.")).detail("field", "nowMs"));
        }
        let command_value = parse_command(command)?;
        let mut batch = Batch::new(&self.state, now_ms, &self.locale);
        decide(&mut batch, command_value)?;
        let Batch { mut state, events, now, .. } = batch;
        let mut head = self.state.head.clone();
        let lines = write_batch(&mut head, state.run_id(), now, &events)?;
        let mut blobs = BTreeMap::new();
        for event in &events {
            event.each_blob(&mut |hash, text| {
                if !state.blobs.contains(&**hash) {
                    state.blobs.insert(hash.clone(), ());
                    blobs.insert(hash.to_string(), text.clone());
                }
            });
        }
        let expected_seq = self.state.head.seq;
        state.head = head;
        let summary = query::summary(&state);
        self.staged = Some(Staged { state, answered: answered(command, self.state.run_id()) });
        Ok(Proposal { expected_seq, lines, blobs, summary })
    }

    /// Applies the staged batch. Gives the effects newly owed, as JSON; among them an `abort` (which needs no answer)
    /// for each effect that is no longer wanted.
    pub fn commit(&mut self) -> Result<Vec<String>, Fault> {
        let Some(staged) = self.staged.take() else {
            return Err(Fault::new("core.no_proposal", "There is nothing to commit: propose a command first."));
        };
        let before = self.state.outstanding();
        let after = staged.state.outstanding();
        let fresh: Vec<&EffectKey> = after.iter().filter(|key| !before.contains(key)).collect();
        let wanted = |key: &EffectKey| after.contains(key) || after.contains(&EffectKey::Abort(key.path()));
        let dropped = before.iter().filter(|key| !matches!(key, EffectKey::Abort(_)) && staged.answered.as_ref() != Some(*key) && !wanted(key));
        let aborts: Vec<EffectKey> = dropped.map(|key| EffectKey::Abort(key.path())).collect();
        let owed = aborts.iter().chain(fresh).map(|key| staged.state.effect_json(key)).collect();
        self.state = staged.state;
        Ok(owed)
    }

    /// Drops the staged batch, where there is one.
    pub fn abandon(&mut self) {
        self.staged = None;
    }

    /// All that is owed now, as JSON.
    pub fn outstanding(&self) -> Vec<String> {
        self.state.outstanding().iter().map(|key| self.state.effect_json(key)).collect()
    }
}

/// The state that a journal amounts to.
pub fn fold(journal: &Journal) -> State {
    let mut state = State::default();
    state.begin(&journal.run_id);
    for record in &journal.records {
        state.apply(record);
        let blobs = &mut state.blobs;
        record.event.each_blob(&mut |hash, _| blobs.insert(hash.clone(), ()));
    }
    state.head = journal.head.clone();
    state
}

/// The effect that a command answers, so that it is not told to stop.
fn answered(command: &str, run_id: &str) -> Option<EffectKey> {
    #[derive(serde::Deserialize)]
    struct Named {
        id: Option<String>,
    }
    EffectKey::parse(run_id, &serde_json::from_str::<Named>(command).ok()?.id?)
}
