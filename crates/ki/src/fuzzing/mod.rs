//! Fuzz targets: every kind of input, with the invariants that must hold.

mod connection;
mod dml;
mod files;
pub mod object;
mod paths;
mod wad;
mod wire;

use worldwire_core::testing::Target;

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    wire::TARGETS
        .iter()
        .chain(connection::STREAMS)
        .chain(connection::OPERATIONS)
        .chain(dml::TARGETS)
        .chain(object::TARGETS)
        .chain(paths::TARGETS)
        .chain(wad::TARGETS)
        .chain(files::TARGETS)
}
