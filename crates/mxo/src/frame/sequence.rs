//! Numbers of packets and the word that carries them.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Error, Field, Place, Reader, Result, Sampler, Trace, Value, Writer, scalar};

/// The number of sequence numbers, which have 12 bits.
pub const SEQUENCE_NUMBERS: u16 = 4096;
/// A number is newer than another if it is at most this far ahead of it.
pub const MAX_NEWER: u16 = 2048;
/// The number of packets that one word can acknowledge.
pub const ACK_BITS: u16 = 7;

/// The number of a packet, modulo 4096. Each side counts its own from 1.
///
/// ```
/// use worldwire_mxo::frame::SequenceNumber;
/// let last = SequenceNumber::new(4095);
/// assert!(last.next().is_newer_than(last));
/// assert_eq!(last.next().get(), 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SequenceNumber(u16);

impl SequenceNumber {
    /// The number modulo 4096.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number % SEQUENCE_NUMBERS)
    }

    /// The number of the packet with this running count.
    #[must_use]
    pub fn of(count: u64) -> Self {
        Self(u16::try_from(count % u64::from(SEQUENCE_NUMBERS)).unwrap_or(0))
    }

    /// The number, below 4096.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The next number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self::new(self.0 + 1)
    }

    /// The number this far before it.
    #[must_use]
    pub const fn back(self, by: u16) -> Self {
        Self::new(self.0 + SEQUENCE_NUMBERS - by % SEQUENCE_NUMBERS)
    }

    /// How far it is ahead of another number, modulo 4096.
    #[must_use]
    pub const fn ahead_of(self, other: Self) -> u16 {
        (self.0 + SEQUENCE_NUMBERS - other.0) % SEQUENCE_NUMBERS
    }

    /// Whether it is 1 to 2048 ahead of another number.
    #[must_use]
    pub const fn is_newer_than(self, other: Self) -> bool {
        matches!(self.ahead_of(other), 1..=MAX_NEWER)
    }
}

impl core::fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

scalar! {
    /// Which of the peer's packets were received: bit i, from 0 to 6, is set if packet
    /// `remote - i` was. Bit 7 asks for more packets or acknowledgements.
    ///
    /// Unverified: the meaning of bit 7. Worldwire never sets it, and ignores it when received.
    pub struct AckBits(u8) as Hex;
}

impl AckBits {
    /// Bit 7, which asks for more packets or acknowledgements.
    pub const REQUEST_MORE: u8 = 0x80;

    /// The packets it acknowledges, newest first.
    pub fn acked(self, remote: SequenceNumber) -> impl Iterator<Item = SequenceNumber> {
        (0..ACK_BITS).filter(move |bit| self.0 >> bit & 1 != 0).map(move |bit| remote.back(bit))
    }
}

/// The first four bytes of every encrypted packet's payload, big-endian.
///
/// | bits | field | |
/// | --- | --- | --- |
/// | 31..24 | `acks` | see [`AckBits`] |
/// | 23..12 | `remote` | the peer's packet that bit 0 of `acks` refers to; 0 before the first one |
/// | 11..0 | `local` | the number of this packet |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SequenceWord {
    /// The acknowledgements.
    pub acks: AckBits,
    /// The packet that bit 0 refers to.
    pub remote: SequenceNumber,
    /// The number of this packet.
    pub local: SequenceNumber,
}

impl SequenceWord {
    /// Reads the word from its bytes.
    #[must_use]
    pub const fn from_bytes([acks, remote, both, local]: [u8; 4]) -> Self {
        Self {
            acks: AckBits(acks),
            remote: SequenceNumber((remote as u16) << 4 | (both as u16) >> 4),
            local: SequenceNumber((both as u16 & 15) << 8 | local as u16),
        }
    }

    /// The bytes of the word.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 4] {
        let numbers = u32::from(self.remote.0) << 12 | u32::from(self.local.0);
        (u32::from(self.acks.0) << 24 | numbers).to_be_bytes()
    }

    /// The packets it acknowledges, newest first.
    pub fn acked(self) -> impl Iterator<Item = SequenceNumber> {
        self.acks.acked(self.remote)
    }
}

impl<'d> Field<'d> for SequenceWord {
    type Owned = Self;
    const LEAST: usize = 4;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u32 SequenceWord, big-endian")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.record(name, |reader| {
            let start = reader.place_if_on();
            let word = Self::from_bytes(reader.take_array()?);
            if T::ON {
                // The numbers share the middle byte.
                let at = |byte: u32| Place { byte: start.byte + byte, bit: 0 };
                let trace = reader.trace_mut();
                trace.leaf("acks", Value::Hex(word.acks.0.into()), at(0), at(1));
                trace.leaf("remote", Value::Unsigned(word.remote.0.into()), at(1), at(3));
                trace.leaf("local", Value::Unsigned(word.local.0.into()), at(2), at(4));
            }
            Ok(word)
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes(&self.to_bytes());
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let mut number = |name| {
            let number: u16 = fields.value(name)?;
            if number < SEQUENCE_NUMBERS {
                return Ok(SequenceNumber(number));
            }
            Err(Error::value("a number from 0 to 4095", number.to_string()).inside(name))
        };
        let (remote, local) = (number("remote")?, number("local")?);
        let acks = fields.value("acks")?;
        fields.end()?;
        Ok(Self { acks, remote, local })
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self::from_bytes(Field::sample(sampler))
    }

    fn into_owned(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_newer_up_to_half_the_range_ahead() {
        for base in [0, 1, 2047, 2048, 4095] {
            let old = SequenceNumber::new(base);
            let newer = |by: u16| SequenceNumber::new(base + by).is_newer_than(old);
            assert_eq!([0, 1, 2048, 2049, 4095].map(newer), [false, true, true, false, false]);
            assert_eq!(SequenceNumber::new(base + 9).back(9), old);
        }
        assert_eq!(SequenceNumber::of(4096 * 7 + 3).get(), 3);
    }

    #[test]
    fn every_word_reads_back() {
        let mut sampler = Sampler::new(1);
        for _ in 0..1000 {
            let bytes: [u8; 4] = Field::sample(&mut sampler);
            assert_eq!(SequenceWord::from_bytes(bytes).to_bytes(), bytes);
        }
    }
}
