//! An invented family, which proves that the recipe in CONTRIBUTING.md works and shows how to
//! follow it. It is part of a test rather than a crate; the rest is done as for a real family.
//!
//! | file | place in a real family |
//! | --- | --- |
//! | `message.rs` | `crates/FAMILY/src/types`, `crates/FAMILY/src/message` |
//! | `frame.rs` | `crates/FAMILY/src/frame.rs` |
//! | `connection.rs`, `event.rs`, `sender.rs` | `crates/FAMILY/src/connection` |
//! | `family.rs` | `crates/dissect/src/FAMILY` and the line in `registry.rs` |
//! | `talk.rs` | `crates/worldwire/examples/samples`: a synthetic capture |
//! | `dissects.rs`, `machines.rs`, `relays.rs`, `encodes.rs` | tests, which the standard families share |

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(missing_docs, unreachable_pub, reason = "a test is not a library")]

mod connection;
mod dissects;
mod encodes;
mod event;
mod family;
mod frame;
mod machines;
mod message;
mod paths;
mod relays;
mod sender;
mod talk;
