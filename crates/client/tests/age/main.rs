//! An age of a shard, over sockets, in the same scenes as one in virtual time: the tests are those of
//! `worldwire-uru`, with clients of a real shard in the place of scripted ones.
//!
//! | decisions | test |
//! | --- | --- |
//! | 1, 2, 3, 5, 7, 8, 10, 11, 12, 14, 15, 18, 24, 25 | `scenarios`, and those of `decisions` and `merging` by number |
//! | 4, 9, 13, 30, 31, 37, 38, 40 to 42 | `decisions` |
//! | 16, 20, 21, 23, 27 | `merging` |
//! | 26, 32, 39 | `lasting` |
//! | 29, 33, 34, 35 | `ages` and `siege` of `worldwire-server` |
//!
//! The others cannot be seen from outside, or no client makes them visible: how long a silent member
//! is a candidate (19; a shard closes it before), when a variable was changed (22), what is noted of
//! pages (17), a list of classes that shards have no option for (6), which object is that of the age
//! (28), forms of a text that are the same whoever reads them (36).

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../uru/tests/age/decisions.rs"]
mod decisions;
mod lasting;
#[path = "../../../uru/tests/age/merging.rs"]
mod merging;
#[allow(dead_code, reason = "others send them, too")]
#[path = "../../../uru/tests/age/messages.rs"]
mod messages;
#[path = "../../../uru/tests/age/scenarios.rs"]
mod scenarios;
mod world;
