//! Runs every fuzz target over its seeds and a few thousand mutations of them, in bounded memory.
//! `WORLDWIRE_FUZZ_RUNS` sets the number of mutations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::System;

use worldwire_core::testing::{each_alone, fuzz, fuzz_runs};
use worldwire_server::fuzzing::targets;

/// The test program is ended if it uses more memory than this.
const MAX_BYTES: usize = 64 << 20;

#[global_allocator]
static MEMORY: cap::Cap<System> = cap::Cap::new(System, MAX_BYTES);

#[test]
fn every_target_keeps_its_promises() {
    each_alone("every_target_keeps_its_promises", targets(), |target| {
        fuzz(target, fuzz_runs());
        assert!(MEMORY.allocated() < MAX_BYTES);
    });
}
