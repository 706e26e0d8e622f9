//! Every fuzz target over its seeds and some thousand mutations of them, in bounded memory.
//! `WORLDWIRE_FUZZ_RUNS` says how many.

use std::alloc::System;

use worldwire_core::testing::{each_alone, fuzz, fuzz_runs};
use worldwire_uru::fuzzing::targets;

/// What one call may take beyond what is there already; its input has at most 64 KiB.
const MAX_BYTES: usize = 64 << 20;
/// What the seeds of a target and the mutations of them may take.
const MAX_SEED_BYTES: usize = 4 << 20;

#[global_allocator]
static MEMORY: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

#[test]
fn every_target_keeps_its_promises() {
    each_alone("every_target_keeps_its_promises", targets(), |target| {
        let before = MEMORY.allocated();
        // More than this and the program ends.
        MEMORY.set_limit(before + MAX_BYTES + MAX_SEED_BYTES).unwrap();
        fuzz(target, fuzz_runs() / cost(target.name));
        let left = MEMORY.allocated().saturating_sub(before);
        assert!(left < MAX_SEED_BYTES, "{} leaves {left} bytes behind", target.name);
    });
}

/// How much longer a call takes than one of the others: a key exchange is no small matter,
/// and neither is a list of operations.
fn cost(target: &str) -> u64 {
    match target {
        "uru_connection_encrypted" => 10,
        "uru_age" => 10,
        _ if target.starts_with("uru_connection_") => 4,
        _ => 1,
    }
}
