//! The fuzz targets of the proxy, with the properties that must hold.

pub mod relayed;

use worldwire_core::testing::Target;

use crate::hook::fuzzing as hook;
use crate::rules::fuzzing as rules;

/// All targets of this crate.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().chain(relayed::TARGETS)
}

static TARGETS: &[Target] = &[
    Target { name: "proxy_hook", run: hook::lines, seeds: hook::seeds },
    Target { name: "proxy_rules", run: rules::rules, seeds: rules::seeds },
];
