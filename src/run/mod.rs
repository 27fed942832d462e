//! The run: state, commands, decisions, effects, and the session that stores before it performs.

mod apply;
mod apply_turn;
pub mod batch;
pub mod command;
pub mod command_json;
pub mod decide;
pub mod effect;
pub mod effect_json;
pub mod fork;
pub mod machine;
pub mod query;
pub mod state;

pub use machine::{Machine, Proposal};
pub use state::State;
