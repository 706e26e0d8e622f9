//! The counterpart of the reader.

use crate::{Error, Result};

/// Collects encoded bytes: little-endian numbers, bits from the least significant up, and lengths
/// that become known later.
///
/// A byte write after bit writes starts at the next whole byte; the bits between are zero.
///
/// ```
/// use worldwire_core::Writer;
/// let mut writer = Writer::new();
/// let length = writer.reserve::<4>();
/// writer.bytes(b"hello");
/// writer.patch(length, u32::try_from(writer.since(length)).unwrap().to_le_bytes());
/// assert_eq!(writer.into_bytes(), b"\x05\0\0\0hello");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
    /// The number of bits written to the last byte; 0 if it is complete.
    bits: u8,
}

/// Space reserved for a value that becomes known later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch<const N: usize>(usize);

macro_rules! numbers {
    ($($name:ident: $type:ty;)*) => {$(
        #[doc = concat!("Writes a little-endian `", stringify!($type), "`.")]
        #[inline]
        pub fn $name(&mut self, value: $type) {
            self.bytes(&value.to_le_bytes());
        }
    )*};
}

impl Writer {
    /// Starts empty.
    #[must_use]
    pub const fn new() -> Self {
        Self { out: Vec::new(), bits: 0 }
    }

    /// Appends to a buffer and reuses its memory.
    #[must_use]
    pub const fn append_to(out: Vec<u8>) -> Self {
        Self { out, bits: 0 }
    }

    numbers! {
        u8: u8; u16: u16; u32: u32; u64: u64;
        i8: i8; i16: i16; i32: i32; i64: i64;
        f32: f32; f64: f64;
    }

    /// Writes bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bits = 0;
        self.out.extend_from_slice(bytes);
    }

    /// Writes `count` zero bytes.
    pub fn zeros(&mut self, count: usize) {
        self.bits = 0;
        self.out.resize(self.out.len() + count, 0);
    }

    /// Writes the lowest `count` bits (at most 64), least significant first.
    pub fn bits(&mut self, value: u64, count: u8) {
        let count = count.min(64);
        let mut done = 0;
        while done < count {
            if self.bits == 0 {
                self.out.push(0);
            }
            let step = (8 - self.bits).min(count - done);
            let piece = (value >> done) & (0xff >> (8 - step));
            if let Some(last) = self.out.last_mut() {
                // At most `step` bits, which fit above the ones already written.
                *last |= u8::try_from(piece << self.bits).unwrap_or(0);
            }
            self.bits = (self.bits + step) % 8;
            done += step;
        }
    }

    /// Writes one bit.
    pub fn bit(&mut self, value: bool) {
        self.bits(u64::from(value), 1);
    }

    /// Completes a partly written byte.
    pub fn align(&mut self) {
        self.bits = 0;
    }

    /// Reserves `N` bytes for a value that becomes known later.
    pub fn reserve<const N: usize>(&mut self) -> Patch<N> {
        let patch = Patch(self.out.len());
        self.zeros(N);
        patch
    }

    /// Fills reserved bytes.
    pub fn patch<const N: usize>(&mut self, patch: Patch<N>, bytes: [u8; N]) {
        if let Some(room) = self.out.get_mut(patch.0..patch.0 + N) {
            room.copy_from_slice(&bytes);
        }
    }

    /// Fills reserved bytes with the number of bytes written since.
    ///
    /// # Errors
    /// `Value` if the number needs more than 32 bits.
    pub fn patch_length(&mut self, patch: Patch<4>) -> Result<()> {
        let length = u32::try_from(self.since(patch))
            .map_err(|_| Error::value("at most 4294967295 bytes", self.since(patch).to_string()))?;
        self.patch(patch, length.to_le_bytes());
        Ok(())
    }

    /// The number of bytes written after the reserved ones.
    #[must_use]
    pub fn since<const N: usize>(&self, patch: Patch<N>) -> usize {
        self.out.len() - patch.0 - N
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The number of bits.
    #[must_use]
    pub fn bit_len(&self) -> u64 {
        let whole = self.out.len() as u64 * 8;
        if self.bits == 0 { whole } else { whole - 8 + u64::from(self.bits) }
    }

    /// The bytes so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }

    /// The bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;

    #[test]
    fn bits_read_back() {
        let mut w = Writer::new();
        w.bits(0b1, 1);
        w.bits(0x1234_5678_9abc_def0, 64);
        w.bits(0b101, 3);
        assert_eq!(w.bit_len(), 68);
        w.u16(0xbeef);
        let bytes = w.into_bytes();
        let mut r = Reader::new(&bytes);
        assert_eq!(r.take_bits(1).unwrap(), 1);
        assert_eq!(r.take_bits(64).unwrap(), 0x1234_5678_9abc_def0);
        assert_eq!(r.take_bits(3).unwrap(), 0b101);
        assert_eq!(r.u16("x").unwrap(), 0xbeef);
        r.end().unwrap();
    }

    #[test]
    fn lengths_are_patched() {
        let mut w = Writer::append_to(vec![9]);
        let length = w.reserve::<4>();
        w.zeros(3);
        w.patch_length(length).unwrap();
        assert_eq!(w.as_bytes(), [9, 3, 0, 0, 0, 0, 0, 0]);
    }
}
