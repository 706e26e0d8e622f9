//! What stands in front of the fields: length, opcode, and of some messages counter and checksum.

use worldwire_core::{Error, Result};

use crate::message::fault::Fault;
use crate::message::{HeaderForm, Integrity};

/// What stands in front of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Front {
    pub(crate) opcode: u16,
    pub(crate) integrity: Option<Integrity>,
}

/// Reads the header of a message that is all there, and nothing behind it.
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

/// Checks that a message has a header and is as long as that says.
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

/// A message is too short for a header, or as long as its header does not say.
#[cold]
fn wrong_front(data: &[u8]) -> Error {
    match data {
        [a, b, _, _, ..] if usize::from(u16::from_le_bytes([*a, *b])) != data.len() => {
            let found = format!("{} for {} bytes", u16::from_le_bytes([*a, *b]), data.len());
            Fault::LengthMismatch.malformed(0, found).inside("length")
        }
        _ => Fault::Truncated.malformed(0, format!("{} bytes in all", data.len())),
    }
}
