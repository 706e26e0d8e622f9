//! Formats at rest.

pub mod csv;
pub mod table;
pub mod xml;
