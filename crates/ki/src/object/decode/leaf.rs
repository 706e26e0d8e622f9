//! Decoding values that are neither objects nor containers, and all lengths.

use worldwire_core::{Error, Reader, Result, Trace};

use super::{Decoder, MAX_NOTES, ObjectNote, position};
use crate::object::parse::{self, UnknownOption};
use crate::object::visitor::{Leaf, Visitor};
use crate::object::{COMPACT, HUMAN_READABLE};
use crate::schema::classes::{Property, PropertyKind};

impl<'c, V: Visitor<'c>> Decoder<'_, 'c, V> {
    /// Refuses a count that the remaining bits cannot hold, before allocating for it.
    pub(super) fn check_count<T: Trace<'c>>(
        &self,
        reader: &Reader<'_, T>,
        property: &Property,
        count: usize,
    ) -> Result<()> {
        let least = match property.kind() {
            PropertyKind::Object if self.options.core.is_some() => 48,
            PropertyKind::Object => 32,
            PropertyKind::Enum | PropertyKind::Flags if self.flags & HUMAN_READABLE == 0 => 32,
            PropertyKind::Enum
            | PropertyKind::Flags
            | PropertyKind::String
            | PropertyKind::WideString => match self.flags & COMPACT {
                0 => 16,
                _ => 8,
            },
            kind => kind.bits().unwrap_or(1).max(1),
        };
        let bit = reader.place().bit;
        let rest = reader.remaining() as u64 * 8 + if bit == 0 { 0 } else { 8 - u64::from(bit) };
        let count = count as u64;
        if count > rest / least {
            let wanted =
                format!("a count of at most {} for the remaining {rest} bits", rest / least);
            return Err(reader.place_error(Error::malformed(wanted, count.to_string())));
        }
        let max = reader.limits().elements;
        if count > max {
            return Err(reader.place_error(Error::limit("elements", max, count)));
        }
        Ok(())
    }

    /// Decodes the length of a container or string.
    #[inline]
    pub(super) fn length<T: Trace<'c>>(
        &self,
        reader: &mut Reader<'_, T>,
        container: bool,
    ) -> Result<usize> {
        let length = if self.flags & COMPACT != 0 {
            let is_long = reader.take_bits(1)? != 0;
            reader.take_bits(if is_long { 31 } else { 7 })?
        } else if container {
            u64::from(u32::from_le_bytes(reader.take_array()?))
        } else {
            u64::from(u16::from_le_bytes(reader.take_array()?))
        };
        Ok(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// Decodes the bytes of a string whose units have this many bytes.
    #[inline]
    fn string<'d, T: Trace<'c>>(
        &self,
        reader: &mut Reader<'d, T>,
        unit: usize,
    ) -> Result<&'d [u8]> {
        let length = self.length(reader, false)?.saturating_mul(unit);
        if length == 0 {
            return Ok(&[]);
        }
        let max = reader.limits().string_bytes;
        // A deep stream is complete, so a length beyond its end is a mistake and not a limit.
        if length as u64 > max && (!self.options.deep || length <= reader.remaining()) {
            return Err(reader.place_error(Error::limit("string bytes", max, length as u64)));
        }
        reader.take(length)
    }

    /// Decodes a value that is neither an object nor a container.
    #[inline]
    pub(super) fn leaf<'d, T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'d, T>,
        property: &'c Property,
    ) -> Result<Leaf<'d>> {
        macro_rules! number {
            ($type:ty, $leaf:ident) => {
                Leaf::$leaf(<$type>::from_le_bytes(reader.take_array()?).into())
            };
        }
        Ok(match property.kind() {
            PropertyKind::Bool => Leaf::Bool(reader.take_bits(1)? != 0),
            PropertyKind::I8 => number!(i8, Signed),
            PropertyKind::U8 => number!(u8, Unsigned),
            PropertyKind::I16 => number!(i16, Signed),
            PropertyKind::U16 => number!(u16, Unsigned),
            PropertyKind::I32 => number!(i32, Signed),
            PropertyKind::U32 => number!(u32, Unsigned),
            PropertyKind::I64 => number!(i64, Signed),
            PropertyKind::U64 => number!(u64, Unsigned),
            PropertyKind::F32 => number!(f32, F32),
            PropertyKind::F64 => number!(f64, F64),
            PropertyKind::SignedBits(count) => {
                let unused = 64 - u32::from(count.clamp(1, 64));
                Leaf::Signed((reader.take_bits(count)? << unused).cast_signed() >> unused)
            }
            PropertyKind::UnsignedBits(count) => Leaf::Unsigned(reader.take_bits(count)?),
            PropertyKind::String => Leaf::Text(self.string(reader, 1)?),
            PropertyKind::WideString => Leaf::WideText(self.string(reader, 2)?),
            PropertyKind::Tuple(tuple) => Leaf::Tuple(tuple, reader.take(tuple.size())?),
            kind @ (PropertyKind::Enum | PropertyKind::Flags) => {
                return self.choice(reader, property, kind);
            }
            // Objects are handled by the callers.
            PropertyKind::Object => {
                return Err(reader.place_error(Error::malformed("a value", "an object")));
            }
        })
    }

    /// Decodes an enumeration or a set of flags.
    fn choice<'d, T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'d, T>,
        property: &'c Property,
        kind: PropertyKind,
    ) -> Result<Leaf<'d>> {
        let make = |number| {
            if kind == PropertyKind::Flags { Leaf::Flags(number) } else { Leaf::Enum(number) }
        };
        if self.flags & HUMAN_READABLE == 0 {
            return Ok(make(u32::from_le_bytes(reader.take_array()?)));
        }
        let bytes = self.string(reader, 1)?;
        match parse::choice(property, kind, bytes) {
            Ok(number) => Ok(make(number)),
            Err(UnknownOption(name)) => {
                let choices = property.choices.as_deref();
                // The search is slow, so a stream may trigger it only a limited number of times.
                let near = choices.filter(|_| self.notes.len() < MAX_NOTES);
                let near = near.and_then(|choices| choices.names().nearest(&name));
                let error = Error::malformed(
                    format!("an option of {}", property.type_name),
                    format!("\"{}\"", name.escape_debug()),
                );
                let error = crate::suggest(error, near);
                if !self.options.lenient {
                    return Err(reader.place_error(error));
                }
                // The list adds the name and index of its elements.
                let note = match property.is_list() {
                    true => ObjectNote::of_value(position(reader), error, 0),
                    false => {
                        ObjectNote::of_value(position(reader), error.inside(&property.name), 1)
                    }
                };
                self.keep_note(note);
                Ok(Leaf::Text(bytes))
            }
        }
    }
}
