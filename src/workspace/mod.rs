//! Files of a run: paths, reading, patching, searching, listing, comparing, and what an agent has seen of them.
//! Pure functions over texts; it knows no run.

pub mod count;
pub mod diff;
pub mod knowledge;
pub mod list;
pub mod patch;
pub mod paths;
pub mod read;
pub mod search;

pub use knowledge::{Knowledge, check_overwrite, check_patch, check_patch_seen};
pub use patch::{Edit, apply_edits};
pub use paths::Access;
