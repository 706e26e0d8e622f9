//! The units of text: bytes, or the 16-bit units of UTF-16LE.

use worldwire_core::{Error, Result};

/// Encodes text as UTF-16LE.
#[must_use]
pub fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Decodes UTF-16LE; unpaired surrogates become U+FFFD, and an odd last byte is ignored.
#[must_use]
pub fn wide_text(bytes: &[u8]) -> String {
    let units = char::decode_utf16(units(bytes));
    units.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// The size of a unit in bytes.
#[inline]
pub(super) const fn unit(wide: bool) -> usize {
    if wide { 2 } else { 1 }
}

/// The offset of the first zero unit.
#[inline]
pub(super) fn zero_unit(stored: &[u8], wide: bool) -> Option<usize> {
    if !wide {
        return stored.iter().position(|byte| *byte == 0);
    }
    stored.as_chunks::<2>().0.iter().position(|unit| *unit == [0, 0]).map(|at| at * 2)
}

/// The error for text of more than `max` units.
#[cold]
pub(super) fn too_long(max: usize, bytes: usize, wide: bool) -> Error {
    let what = if wide { "UTF-16 units of this string" } else { "bytes of this string" };
    Error::limit(what, max as u64, (bytes / unit(wide)) as u64)
}

/// The error for text with a zero unit.
#[cold]
pub(super) fn inner_zero(wide: bool) -> Error {
    match wide {
        true => Error::value("text without NUL characters", "a NUL character"),
        false => Error::value("text without NUL bytes", "a NUL byte"),
    }
}

/// Refuses text that ends with half a unit.
pub(super) fn whole_units(stored: Vec<u8>, wide: bool) -> Result<Vec<u8>> {
    if stored.len().is_multiple_of(unit(wide)) {
        return Ok(stored);
    }
    Err(Error::value("an even number of bytes", stored.len().to_string()))
}

/// The units of UTF-16LE.
pub(super) fn units(stored: &[u8]) -> impl Iterator<Item = u16> {
    stored.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit))
}
