//! What the fuzz targets of this family call: every kind of input, with the promises that must
//! hold.

mod replicator;
mod section;
mod tables;

use worldwire_core::testing::Target;

/// All targets.
pub const TARGETS: &[Target] = &[
    replicator::REPLICATOR,
    section::CLIENT,
    section::GUESSED,
    section::KNOWN,
    section::PRESENCE,
    section::REPLICA,
    section::UNKNOWN,
    tables::CLASSES,
    tables::DUMP,
    tables::JSON,
    tables::MAP,
    tables::NAMES,
    tables::TABLE,
];
