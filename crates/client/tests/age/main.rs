//! An age of a shard, over sockets, in the same scenes as one in virtual time: the tests are those of
//! `worldwire-uru`, with clients of a real shard in the place of scripted ones.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../uru/tests/age/decisions.rs"]
mod decisions;
#[allow(dead_code, reason = "others send them, too")]
#[path = "../../../uru/tests/age/messages.rs"]
mod messages;
#[path = "../../../uru/tests/age/scenarios.rs"]
mod scenarios;
mod world;
