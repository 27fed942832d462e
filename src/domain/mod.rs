//! Plain data and its own small laws. It knows no journal, no policy and no host.

pub mod authority;
pub mod failure;
pub mod fault;
pub mod ids;
pub mod kinds;
pub mod limits;
pub mod nearest;
pub mod pmap;
pub mod profile;
pub mod refusal;
pub mod say;
pub mod time;
pub mod tool_names;
