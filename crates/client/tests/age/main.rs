//! Runs the age tests of `worldwire-uru` over sockets: the same scenes, but with clients of a real
//! shard instead of scripted clients.
//!
//! | decisions | test |
//! | --- | --- |
//! | 1, 2, 3, 5, 7, 8, 10, 11, 12, 14, 15, 18, 24, 25 | `scenarios`, and those of `decisions`, `locks` and `merging` by number |
//! | 4, 6, 9, 17, 30, 31, 36, 37, 38, 40 to 42 | `decisions` |
//! | 13 | `locks` |
//! | 16, 20, 21, 22, 23, 27, 28 | `merging` |
//! | 19 | `when_the_owner_leaves_the_next_one_is_notified` of `decisions` |
//! | 26, 32, 39 | `lasting` |
//! | 29, 33, 34, 35 | `ages` and `siege` of `worldwire-server` |
//!
//! Parts of two decisions are not visible over sockets. Decision 19 says that a member who has been
//! silent for two minutes does not become the owner, but a shard closes connections that are silent
//! for 45 seconds. Decision 6 says that payloads of unknown classes are dropped if all classes must
//! be known, but shards have no such option.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

#[path = "../../../uru/tests/age/decisions.rs"]
mod decisions;
mod lasting;
#[path = "../../../uru/tests/age/locks.rs"]
mod locks;
#[path = "../../../uru/tests/age/merging.rs"]
mod merging;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../../../uru/tests/age/messages.rs"]
mod messages;
#[path = "../../../uru/tests/age/scenarios.rs"]
mod scenarios;
mod world;
