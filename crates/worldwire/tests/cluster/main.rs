//! An Uru shard of several real processes, under random faults and under load.
//!
//! `WORLDWIRE_FAULT_ROUNDS=N` causes N faults, chosen by `WORLDWIRE_FAULT_SEED=N`; a plain
//! `cargo test` causes four. `WORLDWIRE_LOAD_FLOODS=N` measures the effect of N floods in one age
//! on other ages.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod bus;
mod checker;
mod client;
mod clock;
mod cluster;
mod crowd;
#[path = "../../../server/tests/data/support/database.rs"]
mod database;
mod faults;
mod flood;
#[path = "../../../server/tests/data/support/gate.rs"]
mod gate;
mod history;
mod late_commit;
mod load;
#[path = "../../../server/tests/data/support/nats.rs"]
mod nats;
#[path = "../../../server/tests/data/support/positions.rs"]
mod positions;
mod rounds;
mod walker;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test runs processes, because they would disturb each other's timing.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
