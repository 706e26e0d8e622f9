//! The client against the login server, over sockets and in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod attacks;
mod chaos;
mod characters;
#[path = "../../../server/tests/data/support/database.rs"]
mod database;
mod load;
#[path = "../support/log.rs"]
mod log;
#[path = "../support/memory.rs"]
mod memory;
mod refusals;
mod rules;
mod sockets;
mod stage;
mod virtual_time;
