//! Definitions, files and objects: properties, limits, and lenient decoding.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

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
