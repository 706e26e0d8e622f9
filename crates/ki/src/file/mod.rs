//! File formats.

pub mod bcd;
pub mod csv;
pub mod lang;
pub mod nav;
pub mod poi;
pub mod primitive;
pub mod revision;
mod svg;
pub mod table;
pub mod wad;
pub mod xml;
