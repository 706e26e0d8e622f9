//! An age with scripted clients: every scenario of the vectors, every decision of the specification
//! that concerns a server, races, crashes and slow readers, all in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attack;
mod clones;
mod decisions;
mod forwarding;
mod meetings;
mod memory;
mod merging;
mod messages;
mod scenarios;
mod siege;
mod states;
mod world;
