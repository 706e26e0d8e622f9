//! Runs every fuzz target over its seeds and a few thousand mutations of them, in bounded memory.
//! `WORLDWIRE_FUZZ_RUNS` sets the number of mutations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::System;

use worldwire_core::testing::{each_alone, fuzz, fuzz_runs};
use worldwire_tera::fuzzing::targets;

/// Memory that one call may use; its input has at most 64 KiB.
const MAX_BYTES: usize = 64 << 20;
/// Memory that a target's seeds and mutations may use.
const MAX_SEED_BYTES: usize = 4 << 20;

#[global_allocator]
static MEMORY: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

#[test]
fn every_fuzz_target_passes_on_its_seeds() {
    each_alone("every_fuzz_target_passes_on_its_seeds", targets(), |target| {
        let before = MEMORY.allocated();
        // Exceeding this limit ends the process.
        MEMORY.set_limit(before + MAX_BYTES + MAX_SEED_BYTES).unwrap();
        fuzz(target, fuzz_runs());
        let left = MEMORY.allocated().saturating_sub(before);
        assert!(left < MAX_SEED_BYTES, "{} leaks {left} bytes", target.name);
    });
}
