//! The fuzz targets of the proxy, with the properties that must hold.

pub mod relayed;

use std::sync::{Arc, LazyLock};

use worldwire_core::testing::Target;
use worldwire_dissect::{Definitions, Families};

use crate::hook::fuzzing as hook;
use crate::rules::fuzzing as rules;

/// Uru's definitions, for hooks and rules. Collecting the names in all families' definitions would
/// take longer than everything else in a run.
pub(crate) static DEFINITIONS: LazyLock<Arc<Definitions>> = LazyLock::new(|| {
    let uru = Families::standard().named("uru").expect("Uru is built in");
    Arc::new(Definitions::built_in_for(Families::new(Vec::leak(vec![uru]))))
});

/// All targets of this crate.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().chain(relayed::TARGETS)
}

static TARGETS: &[Target] = &[
    Target { name: "proxy_hook", run: hook::lines, seeds: hook::seeds },
    Target { name: "proxy_rules", run: rules::rules, seeds: rules::seeds },
];
