//! The message header: length, opcode, and in some messages a counter and checksum.

use worldwire_core::{Error, Result};

use super::fault::Fault;
use crate::integrity;

/// The kind of header that a message has. All offsets in the message count from the header's first
/// byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HeaderForm {
    /// Length and opcode, 4 bytes.
    #[default]
    Plain,
    /// Length, opcode, counter and checksum, 12 bytes: for client messages on the integrity list of
    /// their patch.
    Integrity,
}

impl HeaderForm {
    /// The length of the header in bytes.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Plain => crate::frame::HEADER_BYTES,
            Self::Integrity => integrity::HEADER_BYTES,
        }
    }
}

/// The counter and checksum of an integrity header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Integrity {
    /// Incremented by one before each message with the same opcode.
    pub counter: u32,
    /// See [`integrity`](crate::integrity).
    pub checksum: u32,
}

/// The header without its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Head {
    /// The message's number in this build.
    pub opcode: u16,
    /// Counter and checksum, if the message has them.
    pub integrity: Option<Integrity>,
}

impl Head {
    /// A 4-byte header.
    #[must_use]
    pub const fn plain(opcode: u16) -> Self {
        Self { opcode, integrity: None }
    }

    /// The form of this header.
    #[must_use]
    pub const fn form(&self) -> HeaderForm {
        match self.integrity {
            None => HeaderForm::Plain,
            Some(_) => HeaderForm::Integrity,
        }
    }

    /// Reads the header of a complete message.
    pub(crate) fn read(data: &[u8], form: HeaderForm) -> Result<Self> {
        Self::check(data, form)?;
        let [_, _, low, high, ..] = *data else { return Err(wrong_head(data)) };
        let integrity = integrity::header(data).filter(|_| form == HeaderForm::Integrity);
        let integrity = integrity.map(|(counter, checksum)| Integrity { counter, checksum });
        Ok(Self { opcode: u16::from_le_bytes([low, high]), integrity })
    }

    /// Checks that a message has a header, and that its length is correct.
    #[inline]
    pub(super) fn check(data: &[u8], form: HeaderForm) -> Result<()> {
        match data {
            [a, b, ..]
                if data.len() >= form.bytes()
                    && usize::from(u16::from_le_bytes([*a, *b])) == data.len() =>
            {
                Ok(())
            }
            _ => Err(wrong_head(data)),
        }
    }

    /// Appends the space for it to a buffer.
    #[inline]
    pub(super) fn reserve(self, out: &mut Vec<u8>) {
        // Each length is constant, so this needs no loop.
        match self.form() {
            HeaderForm::Plain => out.extend_from_slice(&[0; HeaderForm::Plain.bytes()]),
            HeaderForm::Integrity => out.extend_from_slice(&[0; HeaderForm::Integrity.bytes()]),
        }
    }

    /// Writes it into the space reserved at the start of a message.
    #[inline]
    pub(super) fn put(self, message: &mut [u8]) {
        // Longer messages have been rejected.
        let [low, high] = u16::try_from(message.len()).unwrap_or(u16::MAX).to_le_bytes();
        let [opcode, further] = self.opcode.to_le_bytes();
        let Some((plain, rest)) = message.split_first_chunk_mut() else { return };
        *plain = [low, high, opcode, further];
        if let Some(Integrity { counter, checksum }) = self.integrity
            && let Some(room) = rest.first_chunk_mut()
        {
            *room = (u64::from(checksum) << 32 | u64::from(counter)).to_le_bytes();
        }
    }
}

/// The error for a message that is too short for its header or has the wrong length.
#[cold]
fn wrong_head(data: &[u8]) -> Error {
    match data {
        [a, b, _, _, ..] if usize::from(u16::from_le_bytes([*a, *b])) != data.len() => {
            let found = format!("{} for {} bytes", u16::from_le_bytes([*a, *b]), data.len());
            Fault::LengthMismatch.malformed(0, found).inside("length")
        }
        _ => Fault::Truncated.malformed(0, format!("{} bytes", data.len())),
    }
}
