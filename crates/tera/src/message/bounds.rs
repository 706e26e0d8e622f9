//! Words, offsets and links of a message: the one place that says which ones are good, and how much
//! may be read by them.

use worldwire_core::Result;

use super::fault::Fault;

/// How many times the length of a message may be read of it.
///
/// Nothing keeps a message from using bytes twice: two offsets may lead to one text, and elements of
/// two lists to one list, which multiplies with every list around. Messages of known servers use no
/// byte twice; those that share all their empty texts stay below two.
pub const MAX_READINGS: usize = 4;

/// What may still be read of a message: the fixed part of each element (or what its steps count
/// as, should a definition have many that take no bytes), each text and all bytes, as often as
/// something leads to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    left: usize,
    most: usize,
}

impl Budget {
    #[inline]
    pub(super) const fn of(length: usize) -> Self {
        let most = length.saturating_mul(MAX_READINGS);
        Self { left: most, most }
    }

    /// How many bytes may still be read.
    #[inline]
    pub(super) const fn left(&self) -> usize {
        self.left
    }

    /// Reads so many bytes, if they may still be read.
    #[inline]
    pub(super) const fn take(&mut self, bytes: usize) -> bool {
        let enough = bytes <= self.left;
        if enough {
            self.left -= bytes;
        }
        enough
    }

    /// Something of that many bytes is read at a place.
    #[inline]
    pub(super) fn spend(&mut self, bytes: usize, at: usize) -> Result<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Fault::too_much(self.most, self.most - self.left + bytes, at)),
        }
    }
}

/// The links of one list: none may lead back to an element of it. One that leads to itself is found
/// at once, a longer way round before it was gone three times.
///
/// Only links that lead back are looked at, which those of known servers never do: every way round
/// has one, and where it leads to decides which is the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    /// Where a link led back to, and in how many of them another is chosen.
    met: usize,
    steps: u32,
    until: u32,
}

impl Chain {
    #[inline]
    pub(super) const fn new() -> Self {
        // No element is at 0.
        Self { met: 0, steps: 0, until: 1 }
    }

    /// Goes on to the element at `next`; the link to it stands at `link`, behind the word that is
    /// the first of its own element.
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
