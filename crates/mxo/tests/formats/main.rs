//! Every format of the family: properties, vectors, and what is shown.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod properties;
mod reading;
mod real_tables;
mod replica;
mod shown;
mod tables;
mod vectors_transport;
mod wire_properties;
