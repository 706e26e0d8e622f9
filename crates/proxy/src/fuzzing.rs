//! Fuzz targets of the proxy.

use worldwire_core::testing::Target;

use crate::hook::fuzzing as hook;

/// All targets of this crate.
pub static TARGETS: &[Target] =
    &[Target { name: "proxy_hook", run: hook::lines, seeds: hook::seeds }];
