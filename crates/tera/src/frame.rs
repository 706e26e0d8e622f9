//! Framing: messages on the wire, after decryption.
//!
//! | offset | field | type | |
//! | --- | --- | --- | --- |
//! | 0 | `length` | `u16` | the length of the whole message, 4 to 65535 |
//! | 2 | `opcode` | `u16` | identifies the message; changes with every build of the client |
//!
//! Messages follow each other without separators, and TCP may split them anywhere.

use worldwire_core::{Error, Reader, Result, Trace};

/// Length of the header that every message has.
pub const HEADER_BYTES: usize = 4;
/// The opcode of `C_CHECK_VERSION`, a client's first message. It is the same in every build.
pub const CHECK_VERSION: u16 = 19_900;
/// The opcode of the server's answer, `S_CHECK_VERSION`. It is the same in every build.
pub const CHECK_VERSION_ANSWER: u16 = 19_901;

/// The opcodes that are the same in every build, and their names.
pub(crate) const FIXED: [(u16, &str); 2] =
    [(CHECK_VERSION, "C_CHECK_VERSION"), (CHECK_VERSION_ANSWER, "S_CHECK_VERSION")];

/// The header of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the message in bytes, including the header.
    pub length: u16,
    /// The opcode.
    pub opcode: u16,
}

impl Header {
    /// Reads a header. The length is checked as soon as it is available.
    ///
    /// # Errors
    /// `Incomplete`; or `Malformed` for a length below 4, after which the stream cannot be read.
    #[inline]
    pub fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let at = reader.position() as u64;
        let length = reader.u16("length")?;
        if usize::from(length) < HEADER_BYTES {
            let error = Error::malformed("a length of at least 4", length.to_string());
            return Err(error.at(at).inside("length"));
        }
        Ok(Self { length, opcode: reader.u16("opcode")? })
    }

    /// The header at the start of the bytes; `None` if they are too few for a header.
    #[inline]
    pub fn peek(bytes: &[u8]) -> Result<Option<Self>> {
        match Self::decode(&mut Reader::new(bytes)) {
            Ok(header) => Ok(Some(header)),
            Err(error) if error.needed().is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The header of exactly one message.
    ///
    /// # Errors
    /// `Value` if the length in the header differs from the number of bytes; `Malformed` for a
    /// length below 4.
    pub fn whole(message: &[u8]) -> Result<Self> {
        let header = Self::peek(message)?;
        let length = header.map_or(HEADER_BYTES, |header| header.length.into());
        header.filter(|_| length == message.len()).ok_or_else(|| {
            let found = format!("{} bytes", message.len());
            Error::value(format!("a message of {length} bytes"), found)
        })
    }
}
