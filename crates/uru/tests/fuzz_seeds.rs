//! Runs every fuzz target over its seeds and thousands of mutations, in bounded memory.
//! `WORLDWIRE_FUZZ_RUNS` sets the number of mutations.

use std::alloc::System;

use worldwire_core::testing::{each_alone, fuzz, fuzz_runs};
use worldwire_uru::fuzzing::targets;

/// The additional memory one call may use for an input of at most 64 KiB.
const MAX_BYTES: usize = 64 << 20;
/// The memory that a target's seeds and their mutations may use.
const MAX_SEED_BYTES: usize = 4 << 20;

#[global_allocator]
static MEMORY: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

#[test]
fn every_target_holds() {
    each_alone("every_target_holds", targets(), |target| {
        let before = MEMORY.allocated();
        // Exceeding this limit aborts the program.
        MEMORY.set_limit(before + MAX_BYTES + MAX_SEED_BYTES).unwrap();
        fuzz(target, fuzz_runs() / cost(target.name));
        let left = MEMORY.allocated().saturating_sub(before);
        assert!(left < MAX_SEED_BYTES, "{} leaves {left} bytes behind", target.name);
    });
}

/// The time that one call takes, relative to other targets: key exchanges and lists of operations
/// are slow.
fn cost(target: &str) -> u64 {
    match target {
        "uru_connection_encrypted" => 10,
        "uru_age" | "uru_games" => 10,
        _ if target.starts_with("uru_connection_") => 4,
        _ => 1,
    }
}
