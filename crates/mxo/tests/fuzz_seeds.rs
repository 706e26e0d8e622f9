//! Runs every fuzz target over its seeds and a few thousand mutations, in bounded memory.
//! `WORLDWIRE_FUZZ_RUNS` sets the number of mutations.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::alloc::System;

use worldwire_core::testing::{each_alone, fuzz, fuzz_runs};
use worldwire_mxo::fuzzing::targets;

/// The maximum additional memory per call; inputs are at most 64 KiB.
const MAX_BYTES: usize = 64 << 20;
/// The maximum memory for a target's seeds and their mutations.
const MAX_SEED_BYTES: usize = 4 << 20;

#[global_allocator]
static MEMORY: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

#[test]
fn every_target_keeps_its_promises() {
    each_alone("every_target_keeps_its_promises", targets(), |target| {
        let before = MEMORY.allocated();
        // Beyond this limit the program aborts.
        MEMORY.set_limit(before + MAX_BYTES + MAX_SEED_BYTES).unwrap();
        fuzz(target, fuzz_runs());
        let left = MEMORY.allocated().saturating_sub(before);
        assert!(left < MAX_SEED_BYTES, "{} leaves {left} bytes behind", target.name);
    });
}
