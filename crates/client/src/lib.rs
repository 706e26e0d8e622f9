//! Headless clients of preserved online worlds: for tests, tools and load.
//!
//! A client speaks the same protocol as the game's own program, over sockets of
//! [`worldwire_net`], and knows nothing of graphics or game files.
//!
//! * [`ki`]: login servers of Wizard101 and Pirate101;
//! * [`mxo`]: The Matrix Online;
//! * [`uru`]: Myst Online: Uru Live.

pub mod ki;
pub mod mxo;
pub mod uru;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
