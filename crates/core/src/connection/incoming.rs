//! The received bytes of one side.

use core::ops::Range;

use crate::{Error, Result};

/// Buffers the bytes of one direction until the machine has read and reported them.
///
/// Units that were read stay in the buffer until [`forget`](Self::forget), because events borrow
/// them. A machine calls it when no event is pending.
#[derive(Clone, Debug)]
pub struct Incoming {
    buffer: Vec<u8>,
    /// Bytes before this index have been read.
    read: usize,
    /// The stream offset of the buffer's first byte, counting missing bytes too.
    base: u64,
    /// The number of unread bytes that the next attempt needs.
    needed: usize,
    /// Whether the side has ended its stream.
    pub is_ended: bool,
}

/// The position of a unit in the buffer and in its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Its bytes in the buffer.
    pub range: Range<usize>,
    /// The offset of its first byte, counted from the start of the stream.
    pub offset: u64,
}

impl Default for Incoming {
    fn default() -> Self {
        Self { buffer: Vec::new(), read: 0, base: 0, needed: 1, is_ended: false }
    }
}

impl Incoming {
    /// Appends bytes and returns them in the buffer, so that a cipher can decrypt them in place.
    pub fn push(&mut self, bytes: &[u8]) -> &mut [u8] {
        let from = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        self.buffer.get_mut(from..).unwrap_or_default()
    }

    /// The buffer, for ciphers whose plaintext is shorter than the bytes on the wire. Callers may
    /// only append to it.
    pub fn buffer_mut(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Reads one unit with `read`, which returns a value and the number of bytes it took. Returns
    /// `None` while the unit is incomplete, without another attempt until the number of bytes that
    /// the last attempt asked for has arrived.
    ///
    /// # Errors
    /// The errors of `read` other than `Incomplete`, with their offset in the stream.
    #[inline]
    pub fn attempt<R>(
        &mut self,
        read: impl FnOnce(&[u8]) -> Result<(R, usize)>,
    ) -> Result<Option<(R, Located)>> {
        let unread = self.unread();
        let have = unread.len();
        if have < self.needed {
            return Ok(None);
        }
        match read(unread) {
            Ok((value, length)) => Ok(Some((value, self.advance(length)))),
            Err(error) => match error.needed() {
                Some(needed) => {
                    self.needed = have.saturating_add(needed);
                    Ok(None)
                }
                None => {
                    let offset = self.offset();
                    Err(error.based(offset))
                }
            },
        }
    }

    /// Marks the next `length` bytes as read and returns them as a unit.
    #[inline]
    pub fn advance(&mut self, length: usize) -> Located {
        let end = self.read.saturating_add(length).min(self.buffer.len());
        let unit = Located { range: self.read..end, offset: self.offset() };
        self.read = end;
        self.needed = 1;
        unit
    }

    /// Allows another attempt with the bytes already received, for a caller that now reads them
    /// differently.
    pub fn retry(&mut self) {
        self.needed = 1;
    }

    /// Prevents attempts until this many bytes are unread.
    pub fn need(&mut self, unread: usize) {
        self.needed = unread;
    }

    /// The number of unread bytes that the next attempt needs.
    #[must_use]
    pub fn needed(&self) -> usize {
        self.needed
    }

    /// Drops bytes that were read, to make room.
    #[inline]
    pub fn forget(&mut self) {
        if self.read == self.buffer.len() {
            self.buffer.clear();
        } else if self.read > self.buffer.len() / 2 {
            self.buffer.drain(..self.read);
        } else {
            return;
        }
        self.base = self.base.saturating_add(self.read as u64);
        self.read = 0;
    }

    /// Replaces the unread bytes, which turned out to be encrypted, with their plaintext.
    pub fn replace_unread(&mut self, plain: &[u8]) {
        self.buffer.truncate(self.read);
        self.buffer.extend_from_slice(plain);
        self.needed = 1;
    }

    /// Drops all unread bytes.
    pub fn drop_unread(&mut self) {
        self.base = self.base.saturating_add(self.unread().len() as u64);
        self.buffer.truncate(self.read);
        self.needed = 1;
    }

    /// Drops all unread bytes and skips this many missing ones.
    pub fn skip(&mut self, length: u64) {
        self.drop_unread();
        self.base = self.base.saturating_add(length);
    }

    /// The bytes at a buffer position, such as [`Located::range`].
    #[inline]
    #[must_use]
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or_default()
    }

    /// The unread bytes.
    #[inline]
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        self.buffer.get(self.read..).unwrap_or_default()
    }

    /// The unread bytes, for a cipher that starts here.
    pub fn unread_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.read..).unwrap_or_default()
    }

    /// The offset of the first unread byte, counted from the start of the stream.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.base.saturating_add(self.read as u64)
    }

    /// The stream offset of an index in the buffer.
    #[must_use]
    pub fn offset_of(&self, at: usize) -> u64 {
        self.base.saturating_add(at as u64)
    }

    /// The offset of the next byte to arrive.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset_of(self.buffer.len())
    }

    /// The error for a stream that ends within a unit; `None` if it ends between two.
    #[must_use]
    pub fn torn(&self, wanted: &'static str) -> Option<Error> {
        let left = self.unread().len();
        let found = || format!("{left} byte{} of one", if left == 1 { "" } else { "s" });
        (left > 0).then(|| Error::malformed(wanted, found()).at(self.offset()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;

    fn number(bytes: &[u8]) -> Result<(u32, usize)> {
        let mut reader = Reader::new(bytes);
        Ok((reader.u32("number")?, reader.position()))
    }

    #[test]
    fn units_stay_until_forgotten() {
        let mut stream = Incoming::default();
        assert_eq!(stream.push(&[1, 0, 0, 0, 2, 0]), [1, 0, 0, 0, 2, 0]);
        let (value, unit) = stream.attempt(number).unwrap().unwrap();
        assert_eq!(
            (value, unit.offset, stream.bytes(unit.range.clone())),
            (1, 0, &[1, 0, 0, 0][..])
        );
        assert_eq!(stream.attempt(number).unwrap(), None);
        assert_eq!((stream.needed(), stream.offset(), stream.end()), (4, 4, 6));
        stream.forget();
        assert_eq!((stream.unread(), stream.offset()), (&[2, 0][..], 4));
        stream.push(&[0]);
        assert_eq!(stream.attempt(|_| -> Result<((), usize)> { unreachable!() }), Ok(None));
        stream.push(&[0]);
        assert_eq!(stream.attempt(number).unwrap().unwrap().0, 2);
    }

    #[test]
    fn missing_bytes_count_in_offsets() {
        let mut stream = Incoming::default();
        stream.push(&[1, 0, 0, 0, 2]);
        stream.attempt(number).unwrap().unwrap();
        assert_eq!(
            stream.torn("a number").unwrap().to_string(),
            "at byte 4: wanted a number, found 1 byte of one"
        );
        stream.skip(10);
        assert_eq!((stream.offset(), stream.torn("a number")), (15, None));
        stream.skip(u64::MAX);
        stream.push(&[9]);
        assert_eq!(stream.offset(), u64::MAX);
        stream.replace_unread(&[7, 0, 0, 0]);
        assert_eq!(stream.attempt(number).unwrap().unwrap().0, 7);
        stream.forget();
        stream.push(&[9]);
        stream.drop_unread();
        assert_eq!((stream.offset(), stream.unread()), (u64::MAX, &[][..]));
    }
}
