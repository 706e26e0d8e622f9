//! The client against the login server, over sockets and in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod attacks;
mod chaos;
mod characters;
#[path = "../../../server/tests/data/support/child.rs"]
mod child;
#[path = "../../../server/tests/data/support/database.rs"]
mod database;
#[path = "../../../server/tests/data/support/gate.rs"]
mod gate;
mod load;
#[path = "../support/log.rs"]
mod log;
#[path = "../support/memory.rs"]
mod memory;
#[path = "../../../server/tests/data/support/positions.rs"]
mod positions;
#[path = "../../../server/tests/data/support/processes.rs"]
mod processes;
mod refusals;
mod rules;
mod sockets;
mod stage;
mod standby;
mod virtual_time;
