//! The fuzz targets of this family: every kind of input, with the promises that must hold.

mod connection;
mod replicator;
mod section;
mod tables;
mod wire;

use worldwire_core::testing::Target;

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    wire::TARGETS.iter().chain(connection::TARGETS).chain(OBJECTS)
}

/// The targets for object sections, tables and the replicator.
const OBJECTS: &[Target] = &[
    replicator::REPLICATOR,
    section::CLIENT,
    section::GUESSED,
    section::KNOWN,
    section::PRESENCE,
    section::REPLICA,
    section::LATE_REPLICA,
    section::UNKNOWN,
    tables::CLASSES,
    tables::DUMP,
    tables::JSON,
    tables::MAP,
    tables::NAMES,
    tables::TABLE,
];
