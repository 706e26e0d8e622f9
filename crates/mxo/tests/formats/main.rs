//! Tests of every format: property tests, vectors and output.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod guessing;
mod properties;
mod reading;
mod real_tables;
mod refused;
mod replica;
mod shown;
mod tables;
mod vectors_login;
mod vectors_transport;
mod wire_properties;
