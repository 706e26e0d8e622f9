//! Definitions, files and objects: properties, limits, and what is tolerated.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod amplification;
mod benchmarks;
mod dml_definitions;
mod dml_properties;
mod file_properties;
mod object_errors;
mod object_lenient;
mod object_limits;
mod object_properties;
mod wad_properties;
