//! Encoding objects, the inverse of decoding.

use worldwire_core::{Error, Limits, Result, Writer};

use super::core_table::CoreClass;
use super::decode::max_values;
use super::pack::{deflate, seal_envelope};
use super::value::{Object, ValueRef, foreign};
use super::visitor::{Bits, CoreId, Leaf, Slot};
use super::{
    COMPACT, FORBID_DELTA, HUMAN_READABLE, Header, MAGIC, ObjectCodec, ObjectOptions, ZLIB,
};
use crate::schema::classes::{Class, Classes, Property, PropertyKind};

/// The initial capacity in bytes.
const INITIAL_CAPACITY: usize = 256;

pub(super) fn encode(
    codec: &ObjectCodec<'_>,
    object: &Object,
    header: Header,
    limits: &Limits,
) -> Result<Vec<u8>> {
    let ObjectCodec { classes, options } = codec;
    let root = object.known_root(classes)?;
    let mut out = Writer::append_to(Vec::with_capacity(INITIAL_CAPACITY));
    let is_stateful = options.is_stateful();
    // A stream without its own flags must have the flags that its reader assumes.
    let flags = if is_stateful { header.flags } else { options.flags };
    let may_pack = flags & ZLIB != 0;
    if is_stateful && !may_pack {
        out.u32(flags);
    }
    let mut encoder = Encoder { classes, options, flags, depth: 0, limits, out };
    encoder.value(None, root)?;
    let mut bytes = encoder.out.into_bytes();
    // An object that compresses so well that decoding would refuse it is not compressed.
    let values = object.len() as u64;
    let may_take = |length: usize| values <= max_values(length, limits);
    if may_pack {
        let packed = if header.is_compressed { deflate(&bytes) } else { None };
        let packed = packed.filter(|packed| may_take(packed.len()));
        let mut stream = Writer::new();
        if is_stateful {
            stream.u32(flags);
        }
        stream.u8(u8::from(packed.is_some()));
        if packed.is_some() {
            stream.u32(word(bytes.len())?);
        }
        stream.bytes(packed.as_ref().unwrap_or(&bytes));
        bytes = stream.into_bytes();
    }
    if options.envelope {
        let sealed = seal_envelope(&bytes, header.is_packed)?;
        bytes = match header.is_packed && !may_take(sealed.len()) {
            true => seal_envelope(&bytes, false)?,
            false => sealed,
        };
    }
    if options.magic {
        bytes.splice(0..0, *MAGIC);
    }
    Ok(bytes)
}

fn word(length: usize) -> Result<u32> {
    u32::try_from(length).map_err(|_| Error::limit("bytes", u64::from(u32::MAX), length as u64))
}

struct Encoder<'o> {
    classes: &'o Classes,
    options: &'o ObjectOptions,
    flags: u32,
    depth: u32,
    limits: &'o Limits,
    out: Writer,
}

impl Encoder<'_> {
    /// Encodes a value: the outermost object, or the value of a property or element.
    fn value(&mut self, property: Option<&Property>, value: ValueRef<'_, '_>) -> Result<()> {
        if let Some(class) = value.class() {
            return match property {
                Some(property) if property.kind() != PropertyKind::Object => {
                    Err(misfit(property, "an object"))
                }
                _ => self.nested(|this| this.object(class, value)),
            };
        }
        let Some(leaf) = value.leaf() else { return Err(foreign()) };
        match (property, leaf) {
            (None, Leaf::Null) if !self.options.null_root => {
                Err(Error::invalid("the outermost object is null"))
            }
            (None, Leaf::Null | Leaf::Object { .. }) => self.no_object(leaf),
            (None, _) => Err(Error::value("an object", "a value")),
            (Some(property), _) => self.leaf(property, leaf),
        }
    }

    fn nested(&mut self, write: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.depth == self.limits.depth {
            let limit = u64::from(self.limits.depth);
            return Err(Error::limit("depth", limit, limit + 1));
        }
        self.depth += 1;
        let outcome = write(self);
        self.depth -= 1;
        outcome
    }

    fn tag(&mut self, tag: u32, id: CoreId) -> Result<()> {
        let classes = self.classes;
        self.tag_if(tag, id, |class| class.tag(classes) == Some(tag))
    }

    /// Encodes a tag, or the pair in its place if it fits the class.
    fn tag_if(&mut self, tag: u32, id: CoreId, may: impl Fn(&CoreClass) -> bool) -> Result<()> {
        let CoreId { block, kind, template } = id;
        let Some(table) = &self.options.core else {
            if id != CoreId::default() {
                let found = format!("block {block} type {kind}");
                let error = Error::value("an object without an ID", found);
                return Err(error.hint("only streams in the CoreObject form have IDs"));
            }
            self.out.u32(tag);
            return Ok(());
        };
        let is_ordinary = (block, kind) == (0, 0);
        if !is_ordinary && !table.get(block, kind).is_some_and(may) {
            let found = format!("block {block} type {kind}");
            return Err(Error::value("the block and type of this class", found));
        }
        self.out.u8(block);
        self.out.u8(kind);
        self.out.u32(if is_ordinary { tag } else { template });
        Ok(())
    }

    /// Encodes null, or an object of an unknown class.
    fn no_object(&mut self, leaf: Leaf<'_>) -> Result<()> {
        let Leaf::Object { tag, block, kind, template, count, bytes } = leaf else {
            return self.tag(0, CoreId::default());
        };
        if !self.options.deep {
            return Err(Error::value("an object of a known class", format!("class {tag:#010x}")));
        }
        // The pair is as decoded; the current table may map it to another tag.
        self.tag_if(tag, CoreId { block, kind, template }, |_| true)?;
        self.out.u32(count.checked_add(32).ok_or_else(|| too_long(u64::from(count)))?);
        self.raw(Bits { count, bytes });
        Ok(())
    }

    fn object(&mut self, class: &Class, value: ValueRef<'_, '_>) -> Result<()> {
        if class.hash == 0 {
            return Err(Error::invalid(format!("{} cannot be encoded: its tag is 0", class.name)));
        }
        self.tag(class.hash, value.core_id())?;
        if !self.options.deep {
            return self.shallow(class, value);
        }
        self.out.align();
        let begin = self.out.bit_len();
        let size = self.out.reserve::<4>();
        let mut rest = None;
        for child in value.children() {
            let slot = child.slot();
            if let Slot::Property(property) = slot
                && self.options.masked
                && !self.options.writes_deep(property)
            {
                continue;
            }
            if rest.is_some() {
                let why = "must be the last member, but more properties follow";
                return Err(Error::invalid(why).inside(Slot::REST));
            }
            let hash = match slot {
                Slot::Property(property) => property.hash,
                Slot::Unknown(hash) => hash,
                Slot::Rest => {
                    rest = Some(child);
                    continue;
                }
                Slot::Root | Slot::Element(_) => return Err(foreign()),
            };
            let before = self.out.bit_len();
            let size = self.out.reserve::<4>();
            self.out.u32(hash);
            match (slot, child.leaf()) {
                (Slot::Property(property), _) => self.property(property, child)?,
                (_, Some(Leaf::Raw(raw))) => self.raw(raw),
                _ => return Err(foreign()),
            }
            self.out.patch(size, bits(self.out.bit_len() - before)?.to_le_bytes());
        }
        if let Some(rest) = rest {
            let outcome = self.rest(rest).map_err(|error| error.inside(Slot::REST));
            outcome.map_err(|error| error.about(class.name.to_string()))?;
        }
        self.out.patch(size, bits(self.out.bit_len() - begin)?.to_le_bytes());
        Ok(())
    }

    /// Encodes the leftovers of an object, which are not a property.
    #[cold]
    fn rest(&mut self, value: ValueRef<'_, '_>) -> Result<()> {
        let Some(Leaf::Raw(bits)) = value.leaf() else { return Err(foreign()) };
        let at = self.out.bit_len();
        let padding = at.next_multiple_of(8) - at;
        // The size that the leftovers would have if they were read as a property.
        let size =
            bits.bytes.iter().take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let size = (size >> padding) & u64::from(u32::MAX);
        if (padding + 64..=u64::from(bits.count)).contains(&size) {
            let found = format!("a property of {size} bits");
            return Err(Error::value("bits that are not a property", found));
        }
        let mut left = bits.count;
        for byte in bits.bytes {
            let step = left.min(8);
            self.out.bits(u64::from(*byte), u8::try_from(step).unwrap_or(8));
            left -= step;
        }
        Ok(())
    }

    fn shallow(&mut self, class: &Class, value: ValueRef<'_, '_>) -> Result<()> {
        // Values without a property come last and are refused there.
        let index =
            |child: &ValueRef<'_, '_>| child.slot().property().map_or(u32::MAX, Property::index);
        if value.children().map(|child| index(&child)).is_sorted() {
            return self.in_order(class, value.children());
        }
        let mut children: Vec<_> = value.children().collect();
        children.sort_by_key(index);
        self.in_order(class, children.into_iter())
    }

    /// Encodes the values of a shallow object from children in class order.
    fn in_order<'a, 'c>(
        &mut self,
        class: &Class,
        children: impl Iterator<Item = ValueRef<'a, 'c>>,
    ) -> Result<()> {
        let mut children = children.peekable();
        let wanted = self.options.shallow();
        for property in class.properties() {
            let mut child = None;
            while let Some(next) = children.peek() {
                match next.slot() {
                    Slot::Property(other) if other.index() == property.index() => {
                        if child.is_some() {
                            return Err(wrong_count(class, property, "has two values"));
                        }
                        child = children.next();
                    }
                    _ => break,
                }
            }
            if !wanted.has(property) {
                continue;
            }
            if property.has(Property::DELTA_ENCODE) {
                if child.is_none() && self.flags & FORBID_DELTA == 0 {
                    self.out.bit(false);
                    continue;
                }
                self.out.bit(true);
            }
            let Some(child) = child else {
                let error = wrong_count(class, property, "is missing");
                return Err(error.hint(
                    "add it, or fill in missing properties with defaults: `ki op encode --complete`",
                ));
            };
            self.property(property, child)?;
        }
        children.next().map_or(Ok(()), |child| Err(left_over(child)))
    }

    fn property(&mut self, property: &Property, value: ValueRef<'_, '_>) -> Result<()> {
        let outcome = match (property.is_list(), value.is_list(), value.leaf()) {
            (_, false, Some(Leaf::Raw(bits))) => {
                if self.options.deep {
                    self.raw(bits);
                    Ok(())
                } else {
                    Err(misfit(property, "undecoded bits"))
                }
            }
            (true, true, _) => self.nested(|this| {
                let count = value.children().count();
                if count as u64 > this.limits.elements {
                    return Err(Error::limit("elements", this.limits.elements, count as u64));
                }
                this.length(count, true)?;
                for (index, child) in value.children().enumerate() {
                    let outcome = this.value(Some(property), child);
                    outcome.map_err(|error| error.inside_item(index))?;
                }
                Ok(())
            }),
            (false, false, _) => self.value(Some(property), value),
            (true, false, _) => Err(Error::value("a list", "one value")),
            (false, true, _) => Err(Error::value("one value", "a list")),
        };
        outcome.map_err(|error| error.inside(&property.name))
    }

    fn length(&mut self, length: usize, container: bool) -> Result<()> {
        let max = match (self.flags & COMPACT != 0, container) {
            (true, _) => (1 << 31) - 1,
            (false, true) => u64::from(u32::MAX),
            (false, false) => u64::from(u16::MAX),
        };
        let length = length as u64;
        if length > max {
            return Err(Error::limit("length", max, length));
        }
        if self.flags & COMPACT != 0 {
            let is_long = length >= 0x80;
            self.out.bit(is_long);
            self.out.bits(length, if is_long { 31 } else { 7 });
        } else {
            // Long lengths start at a whole byte.
            self.out.align();
            let bytes = length.to_le_bytes();
            self.out.bytes(bytes.get(..if container { 4 } else { 2 }).unwrap_or(&bytes));
        }
        Ok(())
    }

    fn string(&mut self, bytes: &[u8], unit: usize) -> Result<()> {
        if !bytes.len().is_multiple_of(unit) {
            return Err(Error::value("an even number of bytes", bytes.len().to_string()));
        }
        self.length(bytes.len() / unit, false)?;
        // An empty string does not align to the next byte.
        if !bytes.is_empty() {
            self.out.bytes(bytes);
        }
        Ok(())
    }

    fn raw(&mut self, bits: Bits<'_>) {
        self.out.align();
        let count = bits.count;
        let (whole, rest) = bits.bytes.split_at_checked(count as usize / 8).unwrap_or_default();
        self.out.bytes(whole);
        if let Some(last) = rest.first() {
            self.out.bits(u64::from(*last), u8::try_from(count % 8).unwrap_or(0));
        }
    }

    fn leaf(&mut self, property: &Property, leaf: Leaf<'_>) -> Result<()> {
        let out = &mut self.out;
        let kind = property.kind();
        match (kind, leaf) {
            (PropertyKind::Bool, Leaf::Bool(value)) => out.bit(value),
            (PropertyKind::F32, Leaf::F32(value)) => out.f32(value),
            (PropertyKind::F64, Leaf::F64(value)) => out.f64(value),
            (PropertyKind::String, Leaf::Text(bytes)) => return self.string(bytes, 1),
            (PropertyKind::WideString, Leaf::WideText(bytes)) => return self.string(bytes, 2),
            (PropertyKind::Tuple(tuple), Leaf::Tuple(other, bytes)) if tuple == other => {
                out.bytes(bytes)
            }
            (PropertyKind::Object, Leaf::Null | Leaf::Object { .. }) => {
                return self.no_object(leaf);
            }
            (PropertyKind::Enum, Leaf::Enum(number))
            | (PropertyKind::Flags, Leaf::Flags(number)) => {
                return self.choice(property, number);
            }
            (PropertyKind::Enum | PropertyKind::Flags, Leaf::Text(name)) => {
                if self.flags & HUMAN_READABLE != 0 {
                    return self.string(name, 1);
                }
                return Err(misfit(property, "a name with an unknown number"));
            }
            (_, Leaf::Signed(value)) => match kind {
                PropertyKind::I8 => out.i8(fit(property, value)?),
                PropertyKind::I16 => out.i16(fit(property, value)?),
                PropertyKind::I32 => out.i32(fit(property, value)?),
                PropertyKind::I64 => out.i64(value),
                PropertyKind::SignedBits(count) if value >> (count - 1) == value >> 63 => {
                    out.bits(value.cast_unsigned(), count);
                }
                _ => return Err(misfit(property, value)),
            },
            (_, Leaf::Unsigned(value)) => match kind {
                PropertyKind::U8 => out.u8(fit(property, value)?),
                PropertyKind::U16 => out.u16(fit(property, value)?),
                PropertyKind::U32 => out.u32(fit(property, value)?),
                PropertyKind::U64 => out.u64(value),
                PropertyKind::UnsignedBits(count) if value >> count == 0 => out.bits(value, count),
                _ => return Err(misfit(property, value)),
            },
            _ => return Err(misfit(property, format_args!("{leaf:?}"))),
        }
        Ok(())
    }

    fn choice(&mut self, property: &Property, number: u32) -> Result<()> {
        if self.flags & HUMAN_READABLE == 0 {
            self.out.u32(number);
            return Ok(());
        }
        let mut text = String::new();
        push_choice(property, number, &mut text);
        self.string(text.as_bytes(), 1)
    }
}

/// Appends the text of an enumeration or a set of flags; writes digits where there is no name.
pub(super) fn push_choice(property: &Property, number: u32, out: &mut String) {
    match (&property.choices, property.kind()) {
        (Some(choices), PropertyKind::Flags) => choices.push_flags(number, out),
        (Some(choices), _) => choices.push_name(number, out),
        (None, PropertyKind::Flags) if number == 0 => {}
        (None, _) => out.push_str(&number.to_string()),
    }
}

fn fit<V: Copy + core::fmt::Display, N: TryFrom<V>>(property: &Property, value: V) -> Result<N> {
    N::try_from(value).map_err(|_| misfit(property, value))
}

#[cold]
fn wrong_count(class: &Class, property: &Property, problem: &'static str) -> Error {
    Error::invalid(problem).inside(&property.name).about(class.name.to_string())
}

/// The error for a value that shallow objects cannot hold.
#[cold]
fn left_over(value: ValueRef<'_, '_>) -> Error {
    match value.slot() {
        Slot::Unknown(hash) => Error::value("a known property", format!("property {hash:#010x}")),
        _ => Error::value("nothing after the properties", Slot::REST),
    }
}

#[cold]
fn misfit(property: &Property, found: impl core::fmt::Display) -> Error {
    Error::value(format!("a value of type {}", property.type_name), found.to_string())
}

fn bits(count: u64) -> Result<u32> {
    u32::try_from(count).map_err(|_| too_long(count))
}

#[cold]
fn too_long(count: u64) -> Error {
    Error::limit("bits of an object", u64::from(u32::MAX), count)
}
