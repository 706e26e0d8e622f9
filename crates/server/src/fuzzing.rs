//! The fuzz targets of this crate.

use worldwire_core::testing::Target;

use crate::uru::cluster::fuzzing as cluster;
use crate::uru::vault::ask::fuzzing as vault;

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    vault::TARGETS.iter().chain(cluster::TARGETS)
}
