//! The journal: the only truth about a run. Facts, their lines, and the chain that holds them together.

pub mod event;
pub mod line;
pub mod text;

pub use event::{Event, Id, Level, Placement, WriteMode};
pub use line::{Head, JOURNAL_VERSION, Journal, Record, read_journal, write_batch};
pub use text::{Doc, Text};
