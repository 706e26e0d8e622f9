//! The fuzz targets of the proxy, with the properties that must hold.

use worldwire_core::testing::Target;

use crate::rules::fuzzing::{rules, seeds};

/// All targets of this crate.
pub static TARGETS: &[Target] = &[Target { name: "proxy_rules", run: rules, seeds }];
