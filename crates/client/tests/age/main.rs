//! An age of a shard, over sockets, in the same scenes as one in virtual time: the tests are those of
//! `worldwire-uru`, with clients of a real shard in the place of scripted ones.
//!
//! | decisions | test |
//! | --- | --- |
//! | 1, 2, 3, 5, 7, 8, 10, 11, 12, 14, 15, 18, 24, 25 | `scenarios`, and those of `decisions` and `merging` by number |
//! | 4, 6, 9, 13, 17, 30, 31, 36, 37, 38, 40 to 42 | `decisions` |
//! | 16, 20, 21, 22, 23, 27, 28 | `merging` |
//! | 19 | `the_owner_leaves_and_the_next_one_is_told` of `decisions` |
//! | 26, 32, 39 | `lasting` |
//! | 29, 33, 34, 35 | `ages` and `siege` of `worldwire-server` |
//!
//! Of two of them a part cannot be seen over sockets. That a member who was silent for two minutes
//! does not become the owner (19): a shard closes connections that are silent for 45 seconds. That
//! payloads of unknown classes stay where all have to be known (6): shards have no option for it.

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
