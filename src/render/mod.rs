//! Every text that a model reads, written from that model's point of view. It knows no policy and no run.

pub mod brief;
pub mod locale;
pub mod markdown;
pub mod prompt;
pub mod results;
pub mod value;
