//! The model's tools: what they are called, what they take, and how what models really send becomes that.
//! It knows no run: every check here can be made from the call alone.

pub mod alias;
pub mod args;
pub mod arguments;
pub mod schema;
pub mod spec;
pub mod validate;

pub use spec::{CoreTool, SpecFacts, spec};
