//! Validity of words, offsets and links, and a bound on the total work of reading a message.

use worldwire_core::{Error, Result};

use super::fault::Fault;
use crate::types::text::text_length;

/// A message may be read at most this many times its length in total.
///
/// Nothing prevents a message from using bytes twice: two offsets may point to one text, and
/// elements of two lists to one list, which multiplies with each level of nesting. Messages from
/// known servers use no byte twice, and those in which all empty texts share their bytes stay below
/// a factor of two.
pub const MAX_READINGS: usize = 4;

/// The remaining work for a message in bytes. Each fixed part of an element (or the cost of its
/// steps, if a definition has many that take no bytes), each text and each byte string counts
/// whenever something points to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    left: usize,
    max: usize,
}

impl Budget {
    #[inline]
    pub(super) const fn of(length: usize) -> Self {
        let max = length.saturating_mul(MAX_READINGS);
        Self { left: max, max }
    }

    /// The number of bytes that may still be read.
    #[inline]
    pub(super) const fn left(&self) -> usize {
        self.left
    }

    /// Counts bytes as read and returns whether that was allowed.
    #[inline]
    pub(super) const fn take(&mut self, bytes: usize) -> bool {
        let enough = bytes <= self.left;
        if enough {
            self.left -= bytes;
        }
        enough
    }

    /// Counts bytes read at an offset.
    #[inline]
    pub(super) fn spend(&mut self, bytes: usize, at: usize) -> Result<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Fault::too_much(self.max, self.max - self.left + bytes, at)),
        }
    }
}

/// Detects loops in the links of one list. A link to its own element is found immediately, a longer
/// loop within three rounds.
///
/// Only links that point backwards are examined: every loop contains one, and messages from known
/// servers contain none. This is Brent's algorithm on the targets of those links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    /// The target of an earlier backward link, and the number of further ones after which it is
    /// replaced.
    met: usize,
    steps: u32,
    until: u32,
}

impl Chain {
    #[inline]
    pub(super) const fn new() -> Self {
        // No element is at offset 0.
        Self { met: 0, steps: 0, until: 1 }
    }

    /// Validates the position and links of element `index` of `count`; its offset is stored at
    /// `link`. Returns the offset of the next element.
    #[inline(always)]
    pub(super) fn element(
        &mut self,
        (data, floor): (&[u8], usize),
        (at, link): (usize, usize),
        (index, count): (usize, usize),
    ) -> Result<usize> {
        // Nothing is at offset 0, which is before every floor.
        if at >= floor
            && let Some([a, b, low, high]) = data.get(at..).and_then(|rest| rest.first_chunk())
            && usize::from(u16::from_le_bytes([*a, *b])) == at
        {
            if index > 0 {
                self.follow(at, link)?;
            }
            return Ok(u16::from_le_bytes([*low, *high]).into());
        }
        self.invalid((data, floor), (at, link), (index, count))
    }

    /// The error for an element that is not at its offset.
    #[cold]
    fn invalid(
        &mut self,
        (data, floor): (&[u8], usize),
        (at, link): (usize, usize),
        (index, count): (usize, usize),
    ) -> Result<usize> {
        if at == 0 {
            return Err(Fault::ArrayChainShort.malformed(link, format!("{index} of {count}")));
        }
        if index > 0 {
            self.follow(at, link)?;
        }
        check_offset(data, floor, at, link)?;
        let here = word(data, at)?;
        if here != at {
            return Err(Fault::HereMismatch.malformed(at, format!("{here} at {at}")));
        }
        word(data, at + 2)
    }

    /// Follows a link, stored at offset `link`, to the element at `next`. An element begins with
    /// its own offset, so its link is at 2.
    #[inline]
    fn follow(&mut self, next: usize, link: usize) -> Result<()> {
        if next + 2 > link { Ok(()) } else { self.back(next, link) }
    }

    #[cold]
    fn back(&mut self, next: usize, link: usize) -> Result<()> {
        if next == self.met || next + 2 == link {
            return Err(Fault::endless(link, next));
        }
        self.steps += 1;
        if self.steps == self.until {
            *self = Self { met: next, steps: 0, until: self.until.saturating_mul(2) };
        }
        Ok(())
    }
}

/// The word at an offset.
#[inline]
pub(super) fn word(data: &[u8], at: usize) -> Result<usize> {
    match data.get(at..).and_then(|rest| rest.first_chunk::<2>()) {
        Some(word) => Ok(usize::from(u16::from_le_bytes(*word))),
        None => Err(Fault::Truncated.malformed(at, "its end")),
    }
}

/// Checks that an offset points after the header's counts and offsets and into the message; `place`
/// is where the offset itself is stored.
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

/// The text at an offset, without its terminator.
#[inline]
pub(super) fn text(data: &[u8], at: usize) -> Result<&[u8]> {
    let rest = data.get(at..).unwrap_or_default();
    match text_length(rest) {
        Some(length) => Ok(rest.get(..length).unwrap_or_default()),
        None => Err(Fault::UnterminatedString.malformed(at, format!("{} bytes", rest.len()))),
    }
}

/// The byte string with a count and an offset, each with the place where it is stored. It may be
/// empty only at the end of the message.
#[inline]
pub(super) fn bytes(
    data: &[u8],
    floor: usize,
    (count, count_at): (usize, usize),
    (at, place): (usize, usize),
) -> Result<&[u8]> {
    if at != data.len() {
        check_offset(data, floor, at, place)?;
    }
    data.get(at..at + count).ok_or_else(|| {
        let found = format!("{count} bytes at {at} of {}", data.len());
        Fault::BytesOutOfRange.malformed(count_at, found)
    })
}

/// The error for a list that continues after its last counted element.
#[cold]
pub(super) fn too_long(next: usize, count: usize, link: usize) -> Error {
    Fault::ArrayChainLong.malformed(link, format!("a link to {next} after {count} elements"))
}
