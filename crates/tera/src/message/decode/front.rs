//! The message header: length, opcode, and in some messages counter and checksum.

use worldwire_core::{Error, Result};

use crate::message::fault::Fault;
use crate::message::{HeaderForm, Integrity};

/// The header without its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Front {
    pub(crate) opcode: u16,
    pub(crate) integrity: Option<Integrity>,
}

/// Reads the header of a complete message.
pub(crate) fn front(data: &[u8], form: HeaderForm) -> Result<Front> {
    check_front(data, form)?;
    let [_, _, c, d, rest @ ..] = data else { return Err(wrong_front(data)) };
    let integrity = match (form, rest.first_chunk::<8>()) {
        (HeaderForm::Integrity, Some(&[a, b, c, d, e, f, g, h])) => Some(Integrity {
            counter: u32::from_le_bytes([a, b, c, d]),
            checksum: u32::from_le_bytes([e, f, g, h]),
        }),
        _ => None,
    };
    Ok(Front { opcode: u16::from_le_bytes([*c, *d]), integrity })
}

/// Checks that a message has a header, and that its length is correct.
#[inline]
pub(crate) fn check_front(data: &[u8], form: HeaderForm) -> Result<()> {
    match data {
        [a, b, ..]
            if data.len() >= form.bytes()
                && usize::from(u16::from_le_bytes([*a, *b])) == data.len() =>
        {
            Ok(())
        }
        _ => Err(wrong_front(data)),
    }
}

/// The error for a message that is too short for its header or has the wrong length.
#[cold]
fn wrong_front(data: &[u8]) -> Error {
    match data {
        [a, b, _, _, ..] if usize::from(u16::from_le_bytes([*a, *b])) != data.len() => {
            let found = format!("{} for {} bytes", u16::from_le_bytes([*a, *b]), data.len());
            Fault::LengthMismatch.malformed(0, found).inside("length")
        }
        _ => Fault::Truncated.malformed(0, format!("{} bytes", data.len())),
    }
}
