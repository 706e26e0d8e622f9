//! Runs every fuzz target on its seeds and several thousand mutations of them, in bounded memory.
//! `WORLDWIRE_FUZZ_RUNS` sets the number of mutations.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::alloc::System;

use worldwire_core::testing::{each_alone, fuzz, fuzz_runs};
use worldwire_ki::fuzzing::targets;

/// The memory that one call may take, in bytes. The call's input has at most 64 KiB.
const MAX_BYTES: usize = 64 << 20;
/// The memory that a target's seeds and their mutations may take, in bytes.
const MAX_SEED_BYTES: usize = 4 << 20;

#[global_allocator]
static MEMORY: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

#[test]
fn every_target_keeps_its_promises() {
    each_alone("every_target_keeps_its_promises", targets(), |target| {
        let before = MEMORY.allocated();
        // Allocating more aborts the program.
        MEMORY.set_limit(before + MAX_BYTES + MAX_SEED_BYTES).unwrap();
        fuzz(target, fuzz_runs());
        let left = MEMORY.allocated().saturating_sub(before);
        assert!(left < MAX_SEED_BYTES, "{} leaves {left} bytes behind", target.name);
    });
}
