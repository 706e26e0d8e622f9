//! Words and offsets of a message: the one place that says which ones are good.

use worldwire_core::Result;

use super::fault::Fault;

/// The word at a place.
#[inline]
pub(super) fn word(data: &[u8], at: usize) -> Result<usize> {
    match data.get(at..).and_then(|rest| rest.first_chunk::<2>()) {
        Some(word) => Ok(usize::from(u16::from_le_bytes(*word))),
        None => Err(Fault::Truncated.malformed(at, "its end")),
    }
}

/// Whether an offset leads behind the header and its counts and offsets, and into the message;
/// `place` is where it stands.
#[inline]
pub(super) fn check_offset(data: &[u8], floor: usize, at: usize, place: usize) -> Result<()> {
    if at >= floor && at < data.len() {
        return Ok(());
    }
    Err(if at < floor {
        Fault::OffsetInHeader.malformed(place, format!("{at}, before {floor}"))
    } else {
        Fault::OffsetOutOfRange.malformed(place, format!("{at} of {}", data.len()))
    })
}
