//! The small games of a shard: the tests of `worldwire-uru` again, but with clients over sockets
//! instead of scripted clients, and with marker games in a database.
//!
//! The clock stands still while nothing waits for it.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod announced;
#[path = "../data/support/child.rs"]
mod child;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../uru/client.rs"]
mod client;
mod crowd;
#[path = "../data/support/database.rs"]
mod database;
mod lasting;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../../../uru/tests/games/mailbox.rs"]
mod mailbox;
#[path = "../../../uru/tests/games/model/mod.rs"]
mod model;
#[allow(dead_code, unused_imports, unused_macros, reason = "shared with other tests")]
#[path = "../uru/player.rs"]
mod player;
mod process;
#[path = "../../../uru/tests/games/said.rs"]
mod said;
#[path = "../../../uru/tests/games/scenarios.rs"]
mod scenarios;
#[path = "../../../uru/tests/games/spelling.rs"]
mod spelling;
mod world;
