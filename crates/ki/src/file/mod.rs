//! File formats.

pub mod csv;
pub mod table;
pub mod wad;
pub mod xml;
