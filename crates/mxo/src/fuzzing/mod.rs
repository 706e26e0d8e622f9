//! What the fuzz targets of this family call: every kind of input, with the promises that must
//! hold.

mod connection;
mod wire;

use worldwire_core::testing::Target;

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    wire::TARGETS.iter().chain(connection::TARGETS)
}
