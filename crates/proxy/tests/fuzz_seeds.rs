//! Runs every fuzz target over its seeds and thousands of mutations of them, with a bound on
//! memory. `WORLDWIRE_FUZZ_RUNS` sets the number of runs.

use std::alloc::System;

use worldwire_core::testing::{each_alone, fuzz, fuzz_runs};
use worldwire_proxy::fuzzing::TARGETS;

/// The program ends if it uses more memory than this.
const MAX_BYTES: usize = 256 << 20;

#[global_allocator]
static MEMORY: cap::Cap<System> = cap::Cap::new(System, MAX_BYTES);

#[test]
fn every_target_keeps_its_promises() {
    each_alone("every_target_keeps_its_promises", TARGETS, |target| {
        fuzz(target, fuzz_runs());
        assert!(MEMORY.allocated() < MAX_BYTES);
    });
}
