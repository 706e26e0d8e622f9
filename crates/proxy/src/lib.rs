//! A proxy between clients and servers that reads their conversations and can change, drop, delay
//! and add messages.
//!
//! A [`Proxy`] accepts clients and connects each to the server that a [`World`] chooses. The
//! connection passes through a relay for the client's family, which decrypts and re-encrypts both
//! directions. A [`Handler`] sees every message and decides what happens to it. Unchanged messages
//! are forwarded byte for byte wherever the family allows it.
//!
//! ```
//! use worldwire_proxy::{Effects, Handler, Next, Passing};
//!
//! /// Delays chat.
//! #[derive(Debug)]
//! struct Slow;
//!
//! impl Handler for Slow {
//!     fn message(&mut self, passing: &Passing<'_>, effects: &mut Effects) -> Next {
//!         if passing.name == "tera.S_CHAT" {
//!             effects.delay_until(passing.now + std::time::Duration::from_millis(200));
//!         }
//!         Next::Done
//!     }
//! }
//! ```
//!
//! | type | what it is |
//! | --- | --- |
//! | [`Proxy`], [`Setup`] | listeners, and what their conversations share |
//! | [`Handler`], [`Passing`], [`Effects`] | see messages and decide what happens to them |
//! | [`World`]: [`OneServer`], [`UruWorld`], [`KiWorld`] | how connections find their servers |
//! | [`ServerList`] | the servers that TERA's launchers offer |
//! | [`Recorder`] | writes the traffic on both sides to a capture |
//! | [`replay`] | plays one side of a recorded conversation to a live peer |
//! | [`Exchange`] | one conversation without I/O, for tests and other drivers |

mod coder;
mod command;
mod control;
mod conversation;
mod desk;
mod exchange;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gate;
mod handler;
mod held;
mod hook;
mod kept;
mod ki;
mod log_text;
mod ports;
mod problem_rate;
mod proxy;
mod record;
pub mod replay;
mod rules;
mod tera;
mod uru;
mod world;

pub use control::{Choice, Control, ControlError, Figures, Listing};
pub use exchange::{Counts, Exchange, Known};
pub use gate::MakeHandlers;
pub use handler::{Effects, Handler, Next, Passing, Report};
pub use held::HeldMessage;
pub use hook::{ConversationHooks, HookCommand, HookEvent, HookOptions, HookSocket, Hooks};
pub use ki::KiWorld;
pub use ports::{Ports, Transport};
pub use proxy::{Proxy, Setup};
pub use record::Recorder;
pub use rules::{RuleFile, Rules};
pub use tera::{ServerList, ServerListError};
pub use uru::UruWorld;
pub use world::{OneServer, World};

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
