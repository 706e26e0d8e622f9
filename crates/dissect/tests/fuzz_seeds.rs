//! Every fuzz target over its seeds and some thousand mutations of them, in bounded memory.
//! `WORLDWIRE_FUZZ_RUNS` says how many.

use std::alloc::System;

use worldwire_core::testing::{each_alone, fuzz, fuzz_runs};
use worldwire_dissect::fuzzing::TARGETS;

/// More memory than this and the program ends.
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
