//! Definitions, what is made of them, and messages: properties, limits, and real ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod codegen;
#[path = "../definitions/mod.rs"]
mod definitions;
mod hostile;
mod properties;
mod real_definitions;
mod real_values;
mod synthetic;
