//! The fuzz targets of this family: every kind of input, with the guarantees that must hold.

mod connection;
mod login;
mod login_machines;
mod login_relay;
mod replicator;
mod section;
mod tables;
mod wire;

use worldwire_core::testing::Target;

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    let objects = replicator::TARGETS.iter().chain(section::TARGETS).chain(tables::TARGETS);
    wire::TARGETS
        .iter()
        .chain(login::TARGETS)
        .chain(login_machines::TARGETS)
        .chain(login_relay::TARGETS)
        .chain(connection::TARGETS)
        .chain(objects)
}
