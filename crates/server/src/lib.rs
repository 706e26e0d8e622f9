//! Servers of the worlds.
//!
//! * [`uru`]: a shard of Uru; [`ki`]: a login server of Wizard101 and Pirate101; [`mxo`]: a world of The
//!   Matrix Online;
//! * [`store`]: databases; [`operators`]: the local socket of a server that runs.

pub mod admin;
mod config;
mod ending;
mod folder;
pub mod ki;
mod metrics;
pub mod mxo;
pub mod operators;
mod page;
mod start;
pub mod store;
mod unseen;
pub mod uru;

pub use config::{ConfigError, SettingError};
pub use ending::ServeError;
pub use start::StartError;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
