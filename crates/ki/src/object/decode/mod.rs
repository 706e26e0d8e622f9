//! Decoding objects and reporting them to a visitor.

mod deep;
mod leaf;
mod misfits;

use worldwire_core::{Error, Limits, Place, Reader, Result, Step, Trace, Value};

use super::core_table::{CoreClass, CoreTable};
use super::pack::{inflate, stored};
use super::show::{show_leaf, show_tag};
use super::visitor::{Bits, CoreId, Leaf, Slot, Visitor};
use super::{
    Decoded, FLAG_NAMES, FORBID_DELTA, Header, MAGIC, ObjectCodec, ObjectNote, ObjectOptions, ZLIB,
};
use crate::schema::classes::{Class, Classes, Property, PropertyKind};
use misfits::Misfits;

/// Notes beyond this number are dropped.
const MAX_NOTES: usize = 200;
/// An object may have this many values, whatever its size: a short list of equal values compresses
/// to almost nothing.
const FREE_VALUES: u64 = 4_096;

/// The maximum number of values in an object that has this size on the wire.
pub(super) fn max_values(bytes: usize, limits: &Limits) -> u64 {
    FREE_VALUES.saturating_add(limits.values_per_byte.saturating_mul(bytes as u64))
}

pub(super) fn decode<'d, 'c, T: Trace<'c>, V: Visitor<'c>>(
    codec: &ObjectCodec<'c>,
    reader: &mut Reader<'d, T>,
    visitor: &mut V,
    name: &'c str,
) -> Result<Decoded> {
    let options = &codec.options;
    let mut decoder = Decoder {
        name,
        classes: codec.classes,
        options,
        flags: options.flags,
        objects: 0,
        values: 0,
        // Inflated bytes do not count, because they are cheap to send.
        max_values: max_values(reader.remaining(), reader.limits()),
        last: None,
        related: None,
        misfits: None,
        notes: Vec::new(),
        visitor,
    };
    let mut header = Header { flags: options.flags, is_compressed: false, is_packed: false };
    if options.magic {
        let magic = reader.bytes("magic", MAGIC.len())?;
        if magic != MAGIC {
            let found = magic.escape_ascii().to_string();
            return Err(Error::malformed("BINd", found).at(0).inside("magic"));
        }
    }
    if options.envelope {
        decoder.envelope(reader, &mut header)?;
    } else {
        decoder.stream(reader, &mut header)?;
    }
    Ok(Decoded { header, notes: decoder.notes })
}

struct Decoder<'o, 'c, V> {
    /// The name of the outermost object.
    name: &'c str,
    classes: &'c Classes,
    options: &'o ObjectOptions,
    /// The flags of the stream.
    flags: u32,
    /// The number of objects so far.
    objects: u64,
    /// The number of values so far, including objects, lists and their contents.
    values: u64,
    /// The maximum number of values.
    max_values: u64,
    /// The class of the last object: neighbours usually share it.
    last: Option<&'c Class>,
    /// The class of a property, and a class known to be derived from it.
    related: Option<(u32, u32)>,
    /// The properties that cannot be decoded, if they are kept.
    misfits: Option<Box<Misfits>>,
    notes: Vec<ObjectNote>,
    visitor: &'o mut V,
}

impl<'c, V: Visitor<'c>> Decoder<'_, 'c, V> {
    /// Decodes the envelope and the stream in it.
    fn envelope<'d, T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'d, T>,
        header: &mut Header,
    ) -> Result<()> {
        let read = |r: &mut Reader<'d, T>| r.take_array().map(u32::from_le_bytes);
        let size = reader.shown("envelope", read, |size| Value::Hex(u64::from(*size)))?;
        let start = reader.place();
        let stored = stored(size, reader.rest());
        if stored.map_err(|error| reader.place_error(error).inside("envelope"))?.is_some() {
            return self.stream(reader, header);
        }
        header.is_packed = true;
        let packed = reader.take(reader.remaining())?;
        let plain = inflate(packed, size, reader.limits());
        let plain = plain.map_err(|error| error.at(u64::from(start.byte)).inside("envelope"))?;
        reader.layer("unpacked", start, plain, |reader| {
            self.stream(reader, header)?;
            reader.end()
        })
    }

    /// Decodes flags, compression and object.
    fn stream<'d, T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'d, T>,
        header: &mut Header,
    ) -> Result<()> {
        if self.options.is_stateful() {
            let read = |r: &mut Reader<'d, T>| r.take_array().map(u32::from_le_bytes);
            let show = |flags: &u32| Value::Flags(u64::from(*flags), &FLAG_NAMES);
            self.flags = reader.shown("flags", read, show)?;
            header.flags = self.flags;
        }
        if self.flags & ZLIB == 0 {
            return self.root(reader);
        }
        let compressed = reader.u8("compressed")?;
        if compressed == 0 {
            return self.root(reader);
        }
        header.is_compressed = true;
        let size = reader.u32("size")?;
        let start = reader.place();
        let packed = reader.take(reader.remaining())?;
        let plain = inflate(packed, size, reader.limits());
        let plain = plain.map_err(|error| error.at(u64::from(start.byte)).inside("size"))?;
        reader.layer("inflated", start, plain, |reader| {
            self.root(reader)?;
            reader.end()
        })
    }

    fn root<T: Trace<'c>>(&mut self, reader: &mut Reader<'_, T>) -> Result<()> {
        self.first_pass(reader);
        let start = reader.place();
        let is_null = self.object(reader, Slot::Root, self.name, start)?;
        if is_null && !self.options.null_root {
            let error = Error::malformed("an object", "null");
            return Err(error.at_bit(u64::from(start.byte), start.bit).inside(self.name));
        }
        Ok(())
    }

    /// Decodes an object, starting at its tag; returns whether it is null.
    fn object<T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'_, T>,
        slot: Slot<'c>,
        name: &'c str,
        start: Place,
    ) -> Result<bool> {
        let outcome = self.tag(reader);
        let (tag, id, at) = outcome.map_err(|error| error.inside(name))?;
        self.count_values(reader, 1).map_err(|error| error.inside(name))?;
        if tag == 0 {
            reader.leaf_from(name, start, Value::Null);
            self.visitor.value(slot, Leaf::Null)?;
            return Ok(true);
        }
        self.objects += 1;
        if self.objects > self.options.max_objects {
            let error = Error::limit("objects", self.options.max_objects, self.objects);
            return Err(reader.place_error(error).inside(name));
        }
        let class = match self.last.filter(|class| class.hash == tag) {
            Some(class) => class,
            None => match self.classes.by_hash(tag) {
                Some(class) => class,
                None => {
                    let outcome = self.unknown_object(reader, slot, name, start, (tag, id));
                    return outcome.map(|()| false).map_err(|error| error.inside(name));
                }
            },
        };
        self.last = Some(class);
        if let Some(wanted) = slot.property().and_then(Property::base)
            && wanted != class.index()
            && self.related != Some((wanted, class.index()))
        {
            self.check_base(reader, wanted, class);
        }
        reader.scope_from(name, Value::Record, start, |reader| {
            let size = if self.options.deep { Some(self.object_size(reader)?) } else { None };
            if T::ON {
                show_tag(reader, self.classes, class, id, at);
            }
            self.visitor.begin_object(slot, class, id)?;
            let outcome = match size {
                None => self.shallow(reader, class),
                Some(bits) => reader.part_bits(bits, |reader| self.deep(reader, class, bits)),
            };
            let ended = self.visitor.end_object();
            outcome.and(ended)
        })?;
        Ok(false)
    }

    /// Decodes the tag of the class; returns it with its position.
    #[inline]
    fn tag<T: Trace<'c>>(&self, reader: &mut Reader<'_, T>) -> Result<(u32, CoreId, Place)> {
        reader.align();
        let at = reader.place_if_on();
        let Some(table) = &self.options.core else {
            let tag = reader.take_array().map(u32::from_le_bytes);
            return tag.map(|tag| (tag, CoreId::default(), at));
        };
        let (tag, id) = self.core_tag(reader, table)?;
        Ok((tag, id, at))
    }

    /// Decodes a tag in the CoreObject form.
    #[inline(never)]
    fn core_tag<T>(&self, reader: &mut Reader<'_, T>, table: &CoreTable) -> Result<(u32, CoreId)> {
        let [block, kind, template @ ..] = reader.take_array::<6>()?;
        let template = u32::from_le_bytes(template);
        if (block, kind) == (0, 0) {
            return Ok((template, CoreId::default()));
        }
        let id = CoreId { block, kind, template };
        match self.core_class(table.get(block, kind), id) {
            Ok(tag) => Ok((tag, id)),
            Err(error) => Err(error.at(bytes_before(reader, 6))),
        }
    }

    /// The class tag for a pair of block and type.
    fn core_class(&self, class: Option<&CoreClass>, id: CoreId) -> Result<u32> {
        match class.map(|class| (class, class.tag(self.classes))) {
            Some((_, Some(tag))) if tag != 0 => Ok(tag),
            Some((CoreClass::Name(name), _)) => {
                // The object is encoded with its pair, so the tag is only a label.
                let tag = crate::string_id(name.as_bytes());
                if self.keeps() && tag != 0 {
                    return Ok(tag);
                }
                let found = format!("{name} (block {}, type {})", id.block, id.kind);
                let error = Error::malformed("a known class", found);
                Err(error.hint("check the name, and whether the type list is from this revision"))
            }
            _ => {
                let found = format!("block {} type {}", id.block, id.kind);
                let error = Error::malformed("a known pair of block and type", found);
                Err(error.hint("add the pair to the table of core objects"))
            }
        }
    }

    /// Whether values that cannot be decoded are kept.
    fn keeps(&self) -> bool {
        self.options.deep && self.options.lenient
    }

    /// The size of a tag in bytes.
    fn tag_size(&self) -> usize {
        if self.options.core.is_some() { 6 } else { 4 }
    }

    /// Adds a note if an object's class is unrelated to its property's class.
    #[cold]
    fn check_base<T>(&mut self, reader: &Reader<'_, T>, wanted: u32, class: &Class) {
        let Some(wanted) = self.classes.get(wanted) else { return };
        if self.classes.is_a(class, wanted) {
            self.related = Some((wanted.index(), class.index()));
        } else {
            let text = format!("{} where {} belongs", class.name, wanted.name);
            self.note(bytes_before(reader, self.tag_size()) * 8, text);
        }
    }

    /// Decodes the size of a deep object, without the size field itself.
    fn object_size<T: Trace<'c>>(&self, reader: &mut Reader<'_, T>) -> Result<u64> {
        let size = u32::from_le_bytes(reader.take_array()?);
        match size.checked_sub(32) {
            Some(bits) => Ok(u64::from(bits)),
            None => {
                let found = format!("{size} bits");
                Err(reader
                    .place_error(Error::malformed("an object size of at least 32 bits", found)))
            }
        }
    }

    /// Handles an object of an unknown class. Lenient decoding keeps it.
    #[cold]
    fn unknown_object<T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'_, T>,
        slot: Slot<'c>,
        name: &'c str,
        start: Place,
        (tag, id): (u32, CoreId),
    ) -> Result<()> {
        let at = bytes_before(reader, self.tag_size());
        if !self.keeps() {
            let found = format!("{tag} ({tag:#010x})");
            let error = Error::malformed("the tag of a known class", found);
            return Err(error.at(at).hint("is the type list from this revision?"));
        }
        self.note(at * 8, format!("no type list has class {tag} ({tag:#010x})"));
        let count = self.object_size(reader)?;
        let bits = raw(reader, count)?;
        self.report(reader, slot, name, start, Leaf::object(tag, id, bits))
    }

    /// Decodes the values of a shallow object, in class order.
    fn shallow<T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'_, T>,
        class: &'c Class,
    ) -> Result<()> {
        let wanted = self.options.shallow();
        for property in class.properties() {
            if !wanted.has(property) {
                continue;
            }
            let start = reader.place_if_on();
            if property.has(Property::DELTA_ENCODE) {
                let outcome = reader.take_bits(1);
                if outcome.map_err(|error| error.inside(&property.name))? == 0 {
                    if self.flags & FORBID_DELTA != 0 {
                        let error = Error::malformed(
                            "",
                            "is omitted, although delta encoding is forbidden",
                        );
                        return Err(reader.place_error(error).inside(&property.name));
                    }
                    continue;
                }
            }
            self.property(reader, property, start)?;
        }
        Ok(())
    }

    /// Decodes the value of a property.
    #[inline]
    fn property<T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'_, T>,
        property: &'c Property,
        start: Place,
    ) -> Result<()> {
        if property.is_list() {
            return self.list(reader, property, start);
        }
        let slot = Slot::Property(property);
        if property.kind() == PropertyKind::Object {
            let before = self.notes.len();
            self.object(reader, slot, &property.name, start)?;
            self.place_notes(before, || Step::Field(property.name.as_ref().into()));
            return Ok(());
        }
        let leaf = self.count_values(reader, 1).and_then(|()| self.leaf(reader, property));
        let leaf = leaf.map_err(|error| error.inside(&property.name))?;
        self.report(reader, slot, &property.name, start, leaf)
    }

    /// Counts values before anything is allocated for them.
    #[inline]
    fn count_values<T>(&mut self, reader: &Reader<'_, T>, count: u64) -> Result<()> {
        self.values += count;
        if self.values <= self.max_values {
            return Ok(());
        }
        self.too_many(reader)
    }

    #[cold]
    fn too_many<T>(&self, reader: &Reader<'_, T>) -> Result<()> {
        let error = Error::limit("object values", self.max_values, self.values);
        Err(reader.place_error(error))
    }

    fn list<T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'_, T>,
        property: &'c Property,
        start: Place,
    ) -> Result<()> {
        let count = self.length(reader, true).and_then(|count| {
            self.check_count(reader, property, count)?;
            // Elements that are objects are counted separately.
            let elements = if property.kind() == PropertyKind::Object { 0 } else { count as u64 };
            self.count_values(reader, 1 + elements)?;
            Ok(count)
        });
        let count = count.map_err(|error| error.inside(&property.name))?;
        let before = self.notes.len();
        reader.scope_from(&property.name, Value::List, start, |reader| {
            self.visitor.begin_list(Slot::Property(property))?;
            let outcome = self.elements(reader, property, count);
            let ended = self.visitor.end_list();
            outcome.and(ended)
        })?;
        self.place_notes(before, || Step::Field(property.name.as_ref().into()));
        Ok(())
    }

    #[inline]
    fn elements<T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'_, T>,
        property: &'c Property,
        count: usize,
    ) -> Result<()> {
        let slot = Slot::Element(property);
        let mut before = self.notes.len();
        for index in 0..count {
            reader.item(index, |reader| {
                let start = reader.place_if_on();
                if property.kind() == PropertyKind::Object {
                    if self.skips::<T>() && !self.visitor.wants(slot) {
                        return self.skip_object(reader);
                    }
                    return self.object(reader, slot, "", start).map(drop);
                }
                let leaf = self.leaf(reader, property)?;
                self.report(reader, slot, "", start, leaf)
            })?;
            if self.notes.len() != before {
                self.place_notes(before, || Step::Item(index));
                before = self.notes.len();
            }
        }
        Ok(())
    }

    /// Reports a value to the visitor and the trace.
    #[inline]
    fn report<T: Trace<'c>>(
        &mut self,
        reader: &mut Reader<'_, T>,
        slot: Slot<'c>,
        name: &'c str,
        start: Place,
        leaf: Leaf<'_>,
    ) -> Result<()> {
        if T::ON {
            show_leaf(reader, slot.property(), name, start, leaf);
        }
        self.visitor.value(slot, leaf)
    }

    /// Adds a note about the current object.
    #[cold]
    fn note(&mut self, bit: u64, text: String) {
        self.keep_note(ObjectNote::of_object(bit, text));
    }

    #[cold]
    fn keep_note(&mut self, note: ObjectNote) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(note);
        }
    }

    /// Completes the paths of the notes after the first `before` ones.
    #[inline]
    fn place_notes(&mut self, before: usize, step: impl FnOnce() -> Step) {
        if self.notes.len() > before {
            self.put_notes_inside(before, &step());
        }
    }

    #[cold]
    fn put_notes_inside(&mut self, before: usize, step: &Step) {
        let inner = self.notes.split_off(before);
        self.notes.extend(inner.into_iter().map(|note| note.inside(step)));
    }
}

/// Takes this many bits, starting at the next whole byte.
fn raw<'d, 'c, T: Trace<'c>>(reader: &mut Reader<'d, T>, bits: u64) -> Result<Bits<'d>> {
    let bytes = reader.part_bits(bits, |reader| Ok(reader.rest()))?;
    // Sizes are 32-bit numbers.
    Ok(Bits { count: u32::try_from(bits).unwrap_or(u32::MAX), bytes })
}

/// The position of the cursor in bits.
#[inline]
fn position<T>(reader: &Reader<'_, T>) -> u64 {
    let bits = reader.position() as u64 * 8;
    match reader.place().bit {
        0 => bits,
        bit => bits - 8 + u64::from(bit),
    }
}

/// The position this many bytes before the cursor.
fn bytes_before<T>(reader: &Reader<'_, T>, bytes: usize) -> u64 {
    reader.position().saturating_sub(bytes) as u64
}

#[cfg(test)]
mod tests {
    use worldwire_core::{ErrorKind, Tree};

    use super::super::{Object, ObjectOptions};
    use super::*;

    const LIST: &str = r#"{"class A": {"hash": 7, "properties": {
        "m_n": {"type": "unsigned int", "id": 0, "flags": 24, "hash": 1},
        "m_l": {"type": "class SharedPointer<class A>", "id": 1, "flags": 24,
            "container": "List", "hash": 2},
        "m_f": {"type": "bui5", "id": 2, "flags": 24, "hash": 3}}}}"#;

    fn classes() -> Classes {
        Classes::of_json(LIST)
    }

    fn decode(options: ObjectOptions, bytes: &[u8]) -> Result<(String, Vec<ObjectNote>)> {
        let classes = classes();
        let mut object = Object::new();
        let decoded = ObjectCodec::new(&classes, options).decode_all(bytes, &mut object)?;
        Ok((object.to_json(&classes)?, decoded.notes))
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn errors_have_path_and_offset() {
        let error = |bytes: &[u8]| decode(ObjectOptions::default(), bytes).unwrap_err().to_string();
        let bytes = words(&[7, 1, 1, 7, 2, 0]);
        assert_eq!(error(&bytes), "object.m_l[0].m_f at byte 24: wanted 1 byte, found 0");
        let bytes = words(&[7, 1, 0x7fff_ffff, 0]);
        assert_eq!(
            error(&bytes),
            "object.m_l at byte 12: wanted a count of at most 1 for the remaining 32 bits, \
             found 2147483647"
        );
        assert_eq!(
            error(&words(&[0x0102_0304])),
            "object at byte 0: wanted the tag of a known class, found 16909060 (0x01020304); is \
             the type list from this revision?"
        );
        let bytes_before = [&words(&[7, 1, 0])[..], &[3, 9]].concat();
        assert_eq!(error(&bytes_before), "at byte 12 bit 5: wanted the end, found 1 more byte");
    }

    #[test]
    fn depth_and_objects_are_bounded() {
        // Each object contains one element, the next object.
        let mut bytes = words(&[7, 1, 1].repeat(200));
        bytes.extend([0; 64]);
        let error = decode(ObjectOptions::default(), &bytes).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Limit { name: "depth", limit: 128, .. }));
        let classes = classes();
        let codec = ObjectCodec::new(&classes, ObjectOptions::default());
        let mut reader = Reader::traced("stream", &bytes, Tree::new());
        let outcome = codec.decode(&mut reader, &mut Object::new());
        let (tree, outcome) = reader.conclude(outcome);
        assert_eq!(outcome.unwrap_err(), error);
        assert!(tree.find("object.m_l[0].m_l[0].m_n").is_some());
        let options = ObjectOptions { max_objects: 10, ..ObjectOptions::default() };
        let error = decode(options, &bytes).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Limit { name: "objects", limit: 10, .. }));
    }

    #[test]
    fn forbidden_delta_is_enforced() {
        let list = r#"{"class D": {"hash": 7, "properties":
            {"m_d": {"type": "unsigned char", "id": 0, "flags": 280, "hash": 1}}}}"#;
        let classes = Classes::of_json(list);
        let free = ObjectCodec::new(&classes, ObjectOptions::default());
        let bytes = [7, 0, 0, 0, 0];
        let mut object = Object::new();
        free.decode_all(&bytes, &mut object).unwrap();
        assert_eq!(object.to_json(&classes).as_deref(), Ok(r#"{"$class":"class D"}"#));
        let bound = ObjectCodec::new(
            &classes,
            ObjectOptions { flags: FORBID_DELTA, ..ObjectOptions::default() },
        );
        let error = bound.decode_all(&bytes, &mut Object::new()).unwrap_err();
        assert!(error.to_string().contains("object.m_d"), "{error}");
        assert!(bound.encode(&object, bound.header()).is_err());
    }
}
