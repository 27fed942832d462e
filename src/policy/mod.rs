//! May they? Who may hand the run or a task to whom: facts in, a grant or a refusal out. It knows no events and
//! no run.

mod check;
mod choose;
pub mod explain;

pub use check::{DelegateFacts, FallbackCause, HandoffFacts, check_delegate, check_handoff};
pub use choose::{Operation, catalogue};
pub use explain::{Explained, explain};
