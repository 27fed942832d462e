//! # Tasuki
//!
//! Several agents, one run, in one browser tab: an agent *delegates* a task and gets a result back, or *hands off*
//! and another agent takes over the next stage. (A tasuki is the sash that one relay runner hands to the next.)
//!
//! This crate is the core: synchronous, without I/O, clock or randomness. **The journal is the only truth**; a run is
//! the fold of its journal, and three functions carry it:
//!
//! | function | question | where |
//! |---|---|---|
//! | `decide` | what should happen? | [`run::decide`] |
//! | `apply` | what did happen? | `run::apply` |
//! | `outstanding` | what does the host still owe? | [`run::effect`] |
//!
//! A host proposes a command, stores the lines, commits, and performs what is then owed:
//!
//! ```
//! use tasuki::run::Machine;
//!
//! let mut machine = Machine::default();
//! let start = r#"{
//!     "type": "start", "runId": "run_00000000000040008000000000000001", "profileId": "writer", "hostTools": [],
//!     "profiles": [{ "id": "writer", "tools": { "allow": ["workspace.write_file", "workspace.commit", "workspace.finish"] } }]
//! }"#;
//! let proposal = machine.propose(start, 0.0)?;
//! assert_eq!(proposal.expected_seq, 0);
//! // … the host stores proposal.blobs and proposal.lines here …
//! let owed = machine.commit()?;
//! assert!(owed.iter().any(|effect| effect.contains("\"type\":\"assemble_prompt\"")));
//! # Ok::<(), tasuki::domain::fault::Fault>(())
//! ```
//!
//! # Glossary
//!
//! | word | meaning |
//! |---|---|
//! | run | one piece of work, from its start to its one end |
//! | profile | what an agent is: prompt, model, tools, rights |
//! | invocation | one execution of one profile, with its own prompt and history |
//! | owner | the one foreground invocation that may act for the run now |
//! | task | a delegation or a handoff, on record |
//! | handle | the name of a delegated task that models use, such as `reviewer-002` |
//! | turn | one answer of a model with its tool calls; a *round* counts them |
//! | closing call | handoff, finish, return: ends its invocation |
//! | brief | what the next agent is told, as Markdown |
//! | effect | something that the host owes: a model call, a tool, a commit, a timer |
//! | batch | what one append writes; whole or not at all |
//! | refusal, fault, failure | the model erred; the host erred; the world erred |

#![cfg_attr(not(target_arch = "wasm32"), forbid(unsafe_code))]
#![cfg_attr(target_arch = "wasm32", deny(unsafe_code))]

pub mod domain;
pub mod journal;
pub mod policy;
pub mod render;
pub mod run;
pub mod timeline;
pub mod tools;
pub mod workspace;

#[cfg(target_arch = "wasm32")]
mod wasm;
