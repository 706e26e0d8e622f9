//! An Uru shard of several real processes under random faults.
//!
//! `WORLDWIRE_FAULT_ROUNDS=N` lets N things fail, drawn by `WORLDWIRE_FAULT_SEED=N`; a plain
//! `cargo test` lets three fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod checker;
mod client;
mod cluster;
#[path = "../../../server/tests/data/support/database.rs"]
mod database;
mod faults;
#[path = "../../../server/tests/data/support/gate.rs"]
mod gate;
mod history;
#[path = "../../../server/tests/data/support/nats.rs"]
mod nats;
#[path = "../../../server/tests/data/support/positions.rs"]
mod positions;
mod rounds;
mod walker;
