//! Text in a fixed number of units, which senders pad with uninitialised memory.

use std::borrow::Cow;

use worldwire_core::json::{self, Given};
use worldwire_core::{Error, Form, Reader, Result, Sampler, Shape, Trace, Writer};

use crate::types::{Text, TextFormat, wide};

/// Text in exactly `N` UTF-16LE units that ends at the first zero unit.
///
/// The units after that are the sender's uninitialised memory. Decoding discards them, so they are
/// neither shown nor kept, and encoding writes zeros. Text that fills all units without a zero unit
/// is decoded and encoded, but is [not sound](text_fault): clients read past its end.
pub type GameText<'d, const N: usize> = Text<'d, GameUnits<N>>;

/// The format of [`GameText`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GameUnits<const N: usize>;

/// Why text must not be sent to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFault {
    /// It has no zero unit at its end: clients read past the message.
    Unterminated,
    /// It has an unpaired surrogate: clients throw an exception and crash.
    Surrogate {
        /// The offset of the surrogate in units.
        unit: usize,
    },
}

/// Why text must not be sent to clients; `None` if it can be sent.
#[must_use]
pub fn text_fault<const N: usize>(text: &GameText<'_, N>) -> Option<TextFault> {
    if text.units() >= N {
        return Some(TextFault::Unterminated);
    }
    let units = text.as_bytes().as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
    let mut unit = 0;
    for character in char::decode_utf16(units) {
        match character {
            Ok(character) => unit += character.len_utf16(),
            Err(_) => return Some(TextFault::Surrogate { unit }),
        }
    }
    None
}

impl<const N: usize> TextFormat for GameUnits<N> {
    const LEAST: usize = N * 2;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("wfix({N}), terminated"))
    }

    fn shape() -> Shape {
        Shape::Opaque
    }

    fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<&'d [u8]> {
        let start = reader.place_if_on();
        let Some(all) = reader.rest().get(..N * 2) else {
            let error = Error::incomplete(N * 2, reader.remaining());
            return Err(error.at(reader.position() as u64).inside(name));
        };
        let end = zero_unit(all).unwrap_or(all.len());
        let text = reader.take(end)?;
        let span = reader.span_behind(Form::Utf16, end);
        reader.take(all.len() - end)?;
        reader.leaf_from(name, start, span);
        Ok(text)
    }

    fn encode(stored: &[u8], writer: &mut Writer) -> Result<()> {
        let Some(rest) = (N * 2).checked_sub(stored.len()) else {
            return Err(too_long::<N>(stored));
        };
        if zero_unit(stored).is_some() {
            return Err(inner_zero());
        }
        writer.bytes(stored);
        writer.zeros(rest);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Vec<u8>> {
        let stored = json::text(&json, wide)?;
        if !stored.len().is_multiple_of(2) {
            return Err(Error::value("an even number of bytes", stored.len().to_string()));
        }
        if zero_unit(&stored).is_some() {
            return Err(inner_zero());
        }
        if stored.len() > N * 2 { Err(too_long::<N>(&stored)) } else { Ok(stored) }
    }

    fn sample(sampler: &mut Sampler) -> Vec<u8> {
        // A character takes up to two units.
        let text = sampler.text((N as u64 - 1) / 2);
        wide(text.split('\0').next().unwrap_or_default())
    }
}

#[cold]
fn too_long<const N: usize>(stored: &[u8]) -> Error {
    Error::limit("UTF-16 units of this string", N as u64, stored.len() as u64 / 2)
}

#[cold]
fn inner_zero() -> Error {
    Error::value("text without NUL characters", "a NUL character")
}

/// The offset of the first zero unit in bytes.
fn zero_unit(stored: &[u8]) -> Option<usize> {
    stored.as_chunks::<2>().0.iter().position(|unit| *unit == [0, 0]).map(|at| at * 2)
}

#[cfg(test)]
mod tests {
    use worldwire_core::{Field, Tree};

    use super::*;

    #[test]
    fn memory_after_the_terminator_is_forgotten() {
        let bytes = [b'a', 0, 0, 0, 0xcd, 0xcd, 0xcd, 0xcd];
        let mut reader = Reader::traced("text", &bytes, Tree::new());
        let text = GameText::<4>::decode(&mut reader, "name").unwrap();
        assert_eq!((text.as_bytes(), text_fault(&text)), (&[b'a', 0][..], None));
        assert_eq!(reader.finish().find("name").unwrap().raw().len(), bytes.len());
        let mut writer = Writer::new();
        text.encode(&mut writer).unwrap();
        assert_eq!(writer.as_bytes(), [b'a', 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn texts_that_harm_clients_are_detected() {
        let of = |units: &[u16]| {
            let stored: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
            text_fault(&GameText::<4>::from(stored))
        };
        assert_eq!(of(&[1, 2, 3]), None);
        assert_eq!(of(&[1, 2, 3, 4]), Some(TextFault::Unterminated));
        assert_eq!(of(&[0xd83d, 0xde00, 3]), None);
        assert_eq!(of(&[7, 0xd83d]), Some(TextFault::Surrogate { unit: 1 }));
        assert_eq!(of(&[0xde00, 0xd83d]), Some(TextFault::Surrogate { unit: 0 }));
    }

    #[test]
    fn texts_that_do_not_fit_are_refused() {
        let encode = |text: &str| GameText::<4>::from(text).encode(&mut Writer::new());
        assert!(encode("abcd").is_ok());
        let error = encode("abcde").unwrap_err().to_string();
        assert_eq!(error, "wanted at most 4 (UTF-16 units of this string), found 5");
        assert!(encode("a\0b").unwrap_err().to_string().contains("a NUL character"));
        let json = worldwire_core::json::json!("a\0b");
        assert!(GameText::<4>::from_json((&json).into()).is_err());
    }
}
