//! Validity of words, offsets and links, and a bound on the total work of reading a message.

use worldwire_core::Result;

use super::fault::Fault;

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

    /// How many bytes may still be read.
    #[inline]
    pub(super) const fn left(&self) -> usize {
        self.left
    }

    /// Counts bytes as read, and returns whether that was allowed.
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
    /// The target of an earlier backward link, and after how many more it is replaced.
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

    /// Follows a link, stored at offset `link`, to the element at `next`. An element begins with
    /// its own offset, so its link is at 2.
    #[inline]
    pub(super) fn follow(&mut self, next: usize, link: usize) -> Result<()> {
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
