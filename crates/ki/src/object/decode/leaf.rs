//! Values that are neither objects nor containers, and the lengths of those that are.

use worldwire_core::{Error, Reader, Result, Trace};

use super::{Decoder, MAX_NOTES, position};
use crate::object::encode::parse_choice;
use crate::object::visitor::{Leaf, Visitor};
use crate::object::{COMPACT, HUMAN_READABLE};
use crate::schema::classes::{Kind, Property};

impl<'c, V: Visitor<'c>> Decoder<'_, 'c, V> {
    /// A count that the rest cannot hold is refused before anything is made of it.
    pub(super) fn check_count<T: Trace<'c>>(
        &self,
        reader: &Reader<'_, T>,
        property: &Property,
        count: usize,
    ) -> Result<()> {
        let least = match property.kind() {
            Kind::Object if self.options.core.is_some() => 48,
            Kind::Object => 32,
            Kind::Enum | Kind::Flags if self.flags & HUMAN_READABLE == 0 => 32,
            Kind::Enum | Kind::Flags | Kind::String | Kind::WideString => {
                if self.flags & COMPACT == 0 { 16 } else { 8 }
            }
            kind => kind.bits().unwrap_or(1).max(1),
        };
        let bit = reader.place().bit;
        let rest = reader.remaining() as u64 * 8 + if bit == 0 { 0 } else { 8 - u64::from(bit) };
        let count = count as u64;
        if count > rest / least {
            let wanted = format!("at most {} elements in the {rest} bits left", rest / least);
            return Err(reader.place_error(Error::malformed(wanted, count.to_string())));
        }
        if count > reader.limits().elements {
            return Err(reader.place_error(Error::limit(
                "elements",
                reader.limits().elements,
                count,
            )));
        }
        Ok(())
    }

    /// A length: of a container, or of a string.
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

    /// The bytes of a string of units of so many bytes.
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
        let most = reader.limits().string_bytes;
        // In a deep stream more than there is now will not come: that is a mistake, not a limit.
        if length as u64 > most && (!self.options.deep || length <= reader.remaining()) {
            return Err(reader.place_error(Error::limit("string bytes", most, length as u64)));
        }
        reader.take(length)
    }

    /// A value that is neither an object nor a container.
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
            Kind::Bool => Leaf::Bool(reader.take_bits(1)? != 0),
            Kind::I8 => number!(i8, Signed),
            Kind::U8 => number!(u8, Unsigned),
            Kind::I16 => number!(i16, Signed),
            Kind::U16 => number!(u16, Unsigned),
            Kind::I32 => number!(i32, Signed),
            Kind::U32 => number!(u32, Unsigned),
            Kind::I64 => number!(i64, Signed),
            Kind::U64 => number!(u64, Unsigned),
            Kind::F32 => number!(f32, F32),
            Kind::F64 => number!(f64, F64),
            Kind::SignedBits(count) => {
                let unused = 64 - u32::from(count.clamp(1, 64));
                Leaf::Signed((reader.take_bits(count)? << unused).cast_signed() >> unused)
            }
            Kind::UnsignedBits(count) => Leaf::Unsigned(reader.take_bits(count)?),
            Kind::String => Leaf::Text(self.string(reader, 1)?),
            Kind::WideString => Leaf::WideText(self.string(reader, 2)?),
            Kind::Tuple(tuple) => Leaf::Tuple(tuple, reader.take(tuple.size())?),
            kind @ (Kind::Enum | Kind::Flags) => return self.choice(reader, property, kind),
            // Callers know better.
            Kind::Object => {
                return Err(reader.place_error(Error::malformed("a value", "an object")));
            }
        })
    }

    /// An enumeration or a set of flags.
    fn choice<'d, T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'d, T>,
        property: &'c Property,
        kind: Kind,
    ) -> Result<Leaf<'d>> {
        let make =
            |number| if kind == Kind::Flags { Leaf::Flags(number) } else { Leaf::Enum(number) };
        if self.flags & HUMAN_READABLE == 0 {
            return Ok(make(u32::from_le_bytes(reader.take_array()?)));
        }
        let bytes = self.string(reader, 1)?;
        match parse_choice(property, kind, bytes) {
            Ok(number) => Ok(make(number)),
            Err(unknown) => {
                let choices = property.choices.as_deref();
                // Looking for it takes time that hostile streams do not get again and again.
                let near = choices.filter(|_| self.notes.len() < MAX_NOTES);
                let near = near.and_then(|choices| choices.names().nearest(&unknown));
                let error = Error::malformed(
                    format!("an option of {}", property.type_name),
                    format!("\"{}\"", unknown.escape_debug()),
                );
                let error = match near {
                    Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                    None => error,
                };
                if !self.options.lenient {
                    return Err(reader.place_error(error));
                }
                self.note(position(reader), error.inside(&property.name).to_string());
                Ok(Leaf::Text(bytes))
            }
        }
    }
}
