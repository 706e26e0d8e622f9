//! Replay: plays one side of a recorded conversation to a live peer.
//!
//! ```text
//!  recording ──► Script ──► Replay ── own machine ── relay ── socket ── live peer
//!                              ▲                       │
//!                              └──── live messages ────┘
//! ```
//!
//! A [`Recording`] collects the items of a dissection and turns a conversation into a [`Script`].
//! A [`Replay`] contains the family's connection machine, which agrees on new keys with the peer.
//! It sends the recorded messages of its side in order, each after the peer has sent everything
//! that was recorded before it. Between the machine and the peer is a relay, as in a proxy. It
//! decodes the live messages and applies [rules](crate::Rules) to them.
//!
//! Values that the live peer chooses differently replace the recorded ones in later messages, if
//! the family defines which fields mean the same thing. The modules `uru`, `ki`, `tera` and `mxo`
//! list these fields and adapt logins.
//!
//! The replay stops at the first [`Divergence`].

mod actor;
mod connect;
mod divergence;
mod event;
mod ki;
mod learnt;
mod mxo;
mod progress;
mod recording;
mod run;
mod script;
mod setup;
mod tera;
mod uru;
mod watcher;

pub use actor::Account;
pub use connect::{ReplayListener, ReplaySocket};
pub use divergence::{Cause, Divergence};
pub use event::{Place, ReplayEvent, ReplaySummary};
pub use progress::Pace;
pub use recording::{NoScript, ReadRecording, RecordedItem, Recording};
pub use run::{Outcome, Replay};
pub use script::Script;
pub use setup::{Carried, ReplaySetup};
