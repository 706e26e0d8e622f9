//! Definitions, generated Rust and messages: properties, limits, and real data.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod codegen;
#[path = "../definitions/mod.rs"]
mod definitions;
mod hostile;
mod properties;
mod real_definitions;
mod real_values;
mod synthetic;

use worldwire_tera::schema::{Definition, Patch, Set};

/// The patches at which some field begins or ceases to exist, in ascending order.
fn boundaries(set: &Set) -> Vec<Patch> {
    let ranges = set.definitions().flat_map(Definition::lines).filter_map(|line| line.range);
    let mut patches: Vec<Patch> =
        ranges.flat_map(|range| [Some(range.from), range.to]).flatten().collect();
    patches.sort_unstable();
    patches.dedup();
    patches
}
