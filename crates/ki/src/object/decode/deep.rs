//! Decoding deep objects, whose properties are preceded by their sizes and hashes.

use worldwire_core::{Error, Form, Place, Reader, Result, Trace};

use super::{Decoder, ObjectNote, position, raw};
use crate::object::show::show_leaf;
use crate::object::visitor::{Bits, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Property};

impl<'c, V: Visitor<'c>> Decoder<'_, 'c, V> {
    /// Decodes the values of a deep object, each with its size and hash, from `bits` bits.
    pub(super) fn deep<T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'_, T>,
        class: &'c Class,
        bits: u64,
    ) -> Result<()> {
        let end = position(reader) + bits;
        let mut next = 0;
        loop {
            let before = position(reader);
            if before >= end {
                return Ok(());
            }
            let head = before.next_multiple_of(8) - before + 64;
            let left = end - before;
            // Only peek, because leftovers may begin in the middle of a byte.
            let size = reader.rest().first_chunk().map_or(0, |size| u32::from_le_bytes(*size));
            let size = u64::from(size);
            if left < head || size < head || size > left {
                return self.rest(reader, class, left, head, size);
            }
            reader.align();
            let start = reader.place_if_on();
            let [_, _, _, _, hash @ ..] = reader.take_array::<8>()?;
            let hash = u32::from_le_bytes(hash);
            let bits = size - head;
            let Some(property) = class.by_hash_near(hash, next) else {
                self.unknown_property(reader, class, hash, bits, start)?;
                continue;
            };
            next = property.index() as usize + 1;
            if self.skips::<T>() && !self.visitor.wants(Slot::Property(property)) {
                raw(reader, bits)?;
                continue;
            }
            self.deep_value(reader, property, bits, start)?;
        }
    }

    /// Whether values that the visitor does not need are skipped. A trace shows all of them, and
    /// lenient decoding needs the positions of all values that cannot be decoded.
    #[inline]
    pub(super) fn skips<T: Trace<'c>>(&self) -> bool {
        !T::ON && self.options.deep && !self.options.lenient
    }

    /// Skips an object in a list.
    pub(super) fn skip_object<T: Trace<'c>>(&mut self, reader: &mut Reader<'_, T>) -> Result<()> {
        let (tag, ..) = self.tag(reader)?;
        self.count_values(reader, 1)?;
        if tag != 0 {
            let size = self.object_size(reader)?;
            raw(reader, size)?;
        }
        Ok(())
    }

    /// Handles bits after the last property: too few for another one, or with an impossible size.
    #[cold]
    fn rest<T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'_, T>,
        class: &'c Class,
        left: u64,
        head: u64,
        size: u64,
    ) -> Result<()> {
        if !self.options.lenient {
            reader.align();
            let error = if left < head {
                Error::malformed("a property or the end", format!("{left} bits"))
            } else {
                let wanted = format!("a property size from {head} to {left}");
                Error::malformed(wanted, size.to_string())
            };
            return Err(reader.place_error(error));
        }
        self.count_values(reader, 1)?;
        let text = format!("the last {left} bits of {} are not a property", class.name);
        self.note(position(reader), text);
        let start = reader.place();
        let mut bytes = Vec::new();
        let mut more = left;
        while more > 0 {
            let step = more.min(8);
            let taken = reader.take_bits(u8::try_from(step).unwrap_or(8))?;
            bytes.push(u8::try_from(taken).unwrap_or(0));
            more -= step;
        }
        // Sizes have 32 bits.
        let bits = Bits { count: u32::try_from(left).unwrap_or(u32::MAX), bytes: &bytes };
        if T::ON {
            let length = reader.position().saturating_sub(start.byte as usize);
            let shown = reader.span_behind(Form::Bytes, length);
            reader.leaf_from(Slot::REST, start, shown);
        }
        self.visitor.value(Slot::Rest, Leaf::Raw(bits))
    }

    #[cold]
    fn unknown_property<T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'_, T>,
        class: &'c Class,
        hash: u32,
        bits: u64,
        start: Place,
    ) -> Result<()> {
        if !self.options.lenient {
            let wanted = format!("the hash of a property of {}", class.name);
            let error = Error::malformed(wanted, format!("{hash} ({hash:#010x})"));
            return Err(reader.place_error(error).hint("is the type list from this revision?"));
        }
        self.count_values(reader, 1)?;
        let text = format!("property {hash} ({hash:#010x}) is not in {}", class.name);
        self.note(position(reader), text);
        let bits = raw(reader, bits)?;
        if T::ON {
            show_leaf(reader, None, "$unknown", start, Leaf::Raw(bits));
        }
        self.visitor.value(Slot::Unknown(hash), Leaf::Raw(bits))
    }

    /// Decodes the value of a property in a deep object. It must take exactly this many bits.
    fn deep_value<T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'_, T>,
        property: &'c Property,
        bits: u64,
        start: Place,
    ) -> Result<()> {
        let begin = position(reader);
        if self.misfits.as_ref().is_some_and(|misfits| misfits.is_at(begin)) {
            return self.misfit(reader, property, bits, start);
        }
        let (objects, values) = (self.objects, self.values);
        let outcome = reader.part_bits(bits, |reader| {
            self.property(reader, property, start)?;
            let used = position(reader) - begin;
            if used == bits {
                return Ok(());
            }
            let error = Error::malformed(format!("a value of {bits} bits"), used.to_string());
            Err(reader.place_error(error).inside(&property.name))
        });
        let Err(error) = outcome else { return Ok(()) };
        let Some(misfits) = &mut self.misfits else { return Err(error) };
        misfits.add(begin, error)?;
        (self.objects, self.values) = (objects, values);
        Ok(())
    }

    /// Keeps the value of a property that cannot be decoded.
    #[cold]
    fn misfit<T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'_, T>,
        property: &'c Property,
        bits: u64,
        start: Place,
    ) -> Result<()> {
        self.count_values(reader, 1)?;
        if let Some(error) = self.misfits.as_mut().and_then(|misfits| misfits.take()) {
            self.keep_note(ObjectNote::of_value(position(reader), error, 1));
        }
        let bits = raw(reader, bits)?;
        self.report(reader, Slot::Property(property), &property.name, start, Leaf::Raw(bits))
    }
}
