//! Objects to bytes: the inverse of the decoder.

use worldwire_core::{Error, Result, Writer};

use super::pack::{deflate, seal_envelope};
use super::value::{Object, ValueRef, foreign};
use super::visitor::{Bits, CoreId, Leaf, Slot};
use super::{COMPACT, Codec, FORBID_DELTA, HUMAN_READABLE, Header, MAGIC, Options, ZLIB};
use crate::schema::classes::{Class, Kind, Property, parse_number};

/// How deep objects and containers may stand in each other.
const MOST_DEPTH: u32 = 128;
/// Room for bytes to begin with.
const FIRST_ROOM: usize = 256;

pub(super) fn encode(codec: &Codec<'_>, object: &Object, header: Header) -> Result<Vec<u8>> {
    let options = &codec.options;
    let root = object.root(codec.classes).ok_or_else(foreign)?;
    let mut out = Writer::append_to(Vec::with_capacity(FIRST_ROOM));
    let is_stateful = options.is_stateful();
    // A stream that does not state its flags has those that everybody expects.
    let flags = if is_stateful { header.flags } else { options.flags };
    let may_pack = flags & ZLIB != 0;
    if is_stateful && !may_pack {
        out.u32(flags);
    }
    let mut encoder = Encoder { options, flags, depth: 0, out };
    encoder.value(None, root)?;
    let mut bytes = encoder.out.into_bytes();
    if may_pack {
        let packed = if header.is_compressed { deflate(&bytes) } else { None };
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
        bytes = seal_envelope(&bytes, header.is_packed)?;
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
    options: &'o Options,
    flags: u32,
    depth: u32,
    out: Writer,
}

impl Encoder<'_> {
    /// A value: the outermost object, or that of a property or an element of its container.
    fn value(&mut self, property: Option<&Property>, value: ValueRef<'_, '_>) -> Result<()> {
        if let Some(class) = value.class() {
            return match property {
                Some(property) if property.kind() != Kind::Object => {
                    Err(misfit(property, "an object"))
                }
                _ => self.nested(|this| this.object(class, value)),
            };
        }
        let Some(leaf) = value.leaf() else { return Err(foreign()) };
        match (property, leaf) {
            (None, Leaf::Null) if !self.options.null_root => Err(Error::value("an object", "none")),
            (None, Leaf::Null | Leaf::Object(..)) => self.no_object(leaf),
            (None, _) => Err(Error::value("an object", "a value")),
            (Some(property), _) => self.leaf(property, leaf),
        }
    }

    fn nested(&mut self, write: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.depth == MOST_DEPTH {
            let limit = u64::from(MOST_DEPTH);
            return Err(Error::limit("depth", limit, limit + 1));
        }
        self.depth += 1;
        let outcome = write(self);
        self.depth -= 1;
        outcome
    }

    fn tag(&mut self, tag: u32, id: CoreId) -> Result<()> {
        let Some(table) = &self.options.core else {
            self.out.u32(tag);
            return Ok(());
        };
        self.out.u8(id.block);
        self.out.u8(id.kind);
        if (id.block, id.kind) == (0, 0) {
            self.out.u32(tag);
        } else if table.hash(id.block, id.kind) == Some(tag) {
            self.out.u32(id.template);
        } else {
            let found = format!("block {} type {}", id.block, id.kind);
            return Err(Error::value("a pair of block and type that stands for the class", found));
        }
        Ok(())
    }

    /// Null, or an object of a class that no list knows.
    fn no_object(&mut self, leaf: Leaf<'_>) -> Result<()> {
        let Leaf::Object(tag, bits) = leaf else { return self.tag(0, CoreId::default()) };
        if !self.options.deep {
            return Err(Error::value("an object of a known class", format!("class {tag:#010x}")));
        }
        self.tag(tag, CoreId::default())?;
        self.out.u32(bits.count.checked_add(32).ok_or_else(|| too_long(u64::from(bits.count)))?);
        self.raw(bits);
        Ok(())
    }

    fn object(&mut self, class: &Class, value: ValueRef<'_, '_>) -> Result<()> {
        if class.hash == 0 {
            return Err(Error::value("a class with a tag", format!("{} with 0", class.name)));
        }
        self.tag(class.hash, value.core_id())?;
        if !self.options.deep {
            return self.shallow(class, value);
        }
        self.out.align();
        let begin = self.out.bit_len();
        let size = self.out.reserve::<4>();
        for child in value.children() {
            let property = match child.slot() {
                Slot::Property(property) => Some(property),
                _ => None,
            };
            let is_out = |property: &Property| {
                property.has(Property::DEPRECATED) || !property.has(self.options.mask)
            };
            if self.options.masked && property.is_some_and(is_out) {
                continue;
            }
            let before = self.out.bit_len();
            let size = self.out.reserve::<4>();
            match (child.slot(), child.leaf()) {
                (Slot::Property(property), _) => {
                    self.out.u32(property.hash);
                    self.property(property, child)?;
                }
                (Slot::Unknown(hash), Some(Leaf::Raw(bits))) => {
                    self.out.u32(hash);
                    self.raw(bits);
                }
                _ => return Err(foreign()),
            }
            self.out.patch(size, bits(self.out.bit_len() - before)?.to_le_bytes());
        }
        self.out.patch(size, bits(self.out.bit_len() - begin)?.to_le_bytes());
        Ok(())
    }

    fn shallow(&mut self, class: &Class, value: ValueRef<'_, '_>) -> Result<()> {
        let index = |child: &ValueRef<'_, '_>| child.slot().property().map(Property::index);
        if value.children().map(|child| index(&child)).is_sorted() {
            return self.in_order(class, value.children());
        }
        let mut children: Vec<_> = value.children().collect();
        children.sort_by_key(index);
        self.in_order(class, children.into_iter())
    }

    /// The values of a shallow object; children come in the order of the class.
    fn in_order<'a, 'c>(
        &mut self,
        class: &Class,
        children: impl Iterator<Item = ValueRef<'a, 'c>>,
    ) -> Result<()> {
        let Options { mask, skip_deprecated, .. } = *self.options;
        let mut children = children.peekable();
        for property in class.properties() {
            let mut child = None;
            while let Some(next) = children.peek() {
                match next.slot() {
                    Slot::Property(other) if other.index() > property.index() => break,
                    Slot::Property(other)
                        if other.index() == property.index() && child.is_none() =>
                    {
                        child = children.next();
                    }
                    Slot::Unknown(hash) => {
                        let found = format!("property {hash:#010x}");
                        return Err(Error::value("a known property", found));
                    }
                    _ => drop(children.next()),
                }
            }
            if !property.has(mask) || (skip_deprecated && property.has(Property::DEPRECATED)) {
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
                let error = Error::value("a value", "none").inside(&property.name);
                return Err(error.about(class.name.to_string()));
            };
            self.property(property, child)?;
        }
        Ok(())
    }

    fn property(&mut self, property: &Property, value: ValueRef<'_, '_>) -> Result<()> {
        let outcome = match (property.is_list(), value.is_list(), value.leaf()) {
            (_, false, Some(Leaf::Raw(bits))) if self.options.deep => {
                self.raw(bits);
                Ok(())
            }
            (true, true, _) => self.nested(|this| {
                let count = value.children().count();
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
        let most = match (self.flags & COMPACT != 0, container) {
            (true, _) => (1 << 31) - 1,
            (false, true) => u64::from(u32::MAX),
            (false, false) => u64::from(u16::MAX),
        };
        let length = length as u64;
        if length > most {
            return Err(Error::limit("length", most, length));
        }
        if self.flags & COMPACT != 0 {
            let is_long = length >= 0x80;
            self.out.bit(is_long);
            self.out.bits(length, if is_long { 31 } else { 7 });
        } else {
            // Whole bytes again.
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
        // An empty one does not go on to the next byte.
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
            (Kind::Bool, Leaf::Bool(value)) => out.bit(value),
            (Kind::F32, Leaf::F32(value)) => out.f32(value),
            (Kind::F64, Leaf::F64(value)) => out.f64(value),
            (Kind::U64, Leaf::Unsigned(value)) => out.u64(value),
            (Kind::I64, Leaf::Signed(value)) => out.i64(value),
            (Kind::String, Leaf::Text(bytes)) => return self.string(bytes, 1),
            (Kind::WideString, Leaf::WideText(bytes)) => return self.string(bytes, 2),
            (Kind::Tuple(tuple), Leaf::Tuple(other, bytes)) if tuple == other => out.bytes(bytes),
            (Kind::Object, Leaf::Null | Leaf::Object(..)) => return self.no_object(leaf),
            (Kind::Enum, Leaf::Enum(number)) | (Kind::Flags, Leaf::Flags(number)) => {
                return self.choice(property, number);
            }
            (Kind::Enum | Kind::Flags, Leaf::Text(name)) => {
                if self.flags & HUMAN_READABLE != 0 {
                    return self.string(name, 1);
                }
                return Err(misfit(property, "a name that no number is known for"));
            }
            (Kind::SignedBits(count), Leaf::Signed(value)) => {
                let most = 1_i64 << (count - 1);
                if !(-most..most).contains(&value) {
                    return Err(misfit(property, value));
                }
                out.bits(value.cast_unsigned(), count);
            }
            (Kind::UnsignedBits(count), Leaf::Unsigned(value)) => {
                if value >> count != 0 {
                    return Err(misfit(property, value));
                }
                out.bits(value, count);
            }
            (Kind::I8 | Kind::I16 | Kind::I32, Leaf::Signed(value)) => match kind {
                Kind::I8 => out.i8(fit(property, value)?),
                Kind::I16 => out.i16(fit(property, value)?),
                _ => out.i32(fit(property, value)?),
            },
            (Kind::U8 | Kind::U16 | Kind::U32, Leaf::Unsigned(value)) => match kind {
                Kind::U8 => out.u8(fit(property, value)?),
                Kind::U16 => out.u16(fit(property, value)?),
                _ => out.u32(fit(property, value)?),
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

/// The text of an enumeration or a set of flags; digits where there is no name.
pub(super) fn push_choice(property: &Property, number: u32, out: &mut String) {
    match (&property.choices, property.kind()) {
        (Some(choices), Kind::Flags) => choices.push_flags(number, out),
        (Some(choices), _) => choices.push_name(number, out),
        (None, Kind::Flags) if number == 0 => {}
        (None, _) => out.push_str(&number.to_string()),
    }
}

/// The inverse of [`push_choice`], or the name that is unknown.
pub(super) fn parse_choice(property: &Property, kind: Kind, bytes: &[u8]) -> Result<u32, String> {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return Err(String::from_utf8_lossy(bytes).into_owned());
    };
    match (&property.choices, kind) {
        (Some(choices), Kind::Flags) => choices.parse_flags(text).map_err(str::to_owned),
        (Some(choices), _) => choices.parse(text).ok_or_else(|| text.to_owned()),
        (None, Kind::Flags) if text.trim().is_empty() => Ok(0),
        (None, _) => parse_number(text.trim()).ok_or_else(|| text.to_owned()),
    }
}

fn fit<V: Copy + core::fmt::Display, N: TryFrom<V>>(property: &Property, value: V) -> Result<N> {
    N::try_from(value).map_err(|_| misfit(property, value))
}

#[cold]
fn misfit(property: &Property, found: impl core::fmt::Display) -> Error {
    Error::value(format!("a value of the type {}", property.type_name), found.to_string())
}

fn bits(count: u64) -> Result<u32> {
    u32::try_from(count).map_err(|_| too_long(count))
}

#[cold]
fn too_long(count: u64) -> Error {
    Error::limit("bits of an object", u64::from(u32::MAX), count)
}
