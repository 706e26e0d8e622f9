//! An age with scripted clients: every scenario in the vectors, every decision in the specification
//! that concerns servers, as well as races, crashes and slow readers, all in virtual time.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod attack;
mod clones;
mod decisions;
mod forwarding;
mod locks;
mod meetings;
mod memory;
mod merging;
mod messages;
mod remarks;
mod scenarios;
mod siege;
mod states;
mod world;
