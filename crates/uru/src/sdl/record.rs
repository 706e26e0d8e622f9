//! Records: the variables of an object, or of one element of a nested variable.

use worldwire_core::{Error, Field, Place, Reader, Result, Trace, Value, Writer, wire_flags};

use super::elements::{Elements, MAX_ELEMENTS};
use crate::schema::{Shape, Variable};
use crate::types::{SafeString, UnifiedTime};

/// The maximum nesting depth of records.
pub const MAX_DEPTH: u32 = 16;
/// The version number that follows the flags of every record.
pub(super) const RECORD_VERSION: u8 = 6;

wire_flags! {
    /// Flags of a record.
    pub struct RecordFlags(u16) {
        /// The state is discarded when the server stops.
        Volatile = 1,
    }
}

wire_flags! {
    /// Flags of a simple variable.
    pub struct SimpleFlags(u8) {
        /// A time follows.
        HasTimeStamp = 4,
        /// No value follows; the variable has the descriptor's default.
        SameAsDefault = 8,
        /// The sender changed the variable.
        Dirty = 0x10,
        /// The sender asks for a timestamp.
        WantTimeStamp = 0x20,
    }
}

/// A record of a blob: the variables present, in the order of the blob.
///
/// Layout: `u16` [`RecordFlags`], `u8` 6, a count of simple variables and the variables, each
/// preceded by its index unless all are present; then the same for nested variables. Counts and
/// indices take one byte if the descriptor has fewer than 256 variables in total, two bytes for
/// fewer than 65,536, and otherwise four. Simple and nested variables are indexed separately.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StateRecord<'d> {
    /// The flags.
    pub flags: RecordFlags,
    /// The simple variables.
    pub simple: Vec<SimpleVariable<'d>>,
    /// The nested variables.
    pub nested: Vec<NestedVariable<'d>>,
}

/// The beginning of every variable. Layout: `u8` flags; if bit 1 is set: `u8` 0 and a
/// [`SafeString`]. Clients always set bit 1, usually with an empty string; dirtsand sets it only if
/// there is a hint.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ValueHeader<'d> {
    /// The flags except bit 1, which [`Self::hint`] represents; always 0.
    pub flags: u8,
    /// The byte before the hint; always 0.
    pub notification: u8,
    /// A word for scripts that listen to the variable; present if bit 1 is set.
    pub hint: Option<SafeString<'d>>,
}

/// A simple variable of a record. Layout after the header: `u8` [`SimpleFlags`], time, value.
#[derive(Clone, Debug, PartialEq)]
pub struct SimpleVariable<'d> {
    /// The index among the descriptor's simple variables.
    pub index: u32,
    /// The header.
    pub head: ValueHeader<'d>,
    /// The flags.
    pub flags: SimpleFlags,
    /// The time of the last change; present if and only if its flag is set.
    pub time: Option<UnifiedTime>,
    /// The value, absent if and only if the flags mark it as the default.
    pub value: Option<Elements<'d>>,
}

/// A nested variable of a record. Layout after the header: `u8` 0; `u32` length if the descriptor
/// declares a variable length; a count of elements and the elements, each preceded by its index
/// unless all are present. The count and each index take one byte if the length is variable;
/// otherwise they take as many bytes as the declared length requires.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedVariable<'d> {
    /// The index among the descriptor's nested variables.
    pub index: u32,
    /// The header.
    pub head: ValueHeader<'d>,
    /// Always 0.
    pub flags: u8,
    /// The number of elements, whether present in the record or not; at most [`MAX_ELEMENTS`], a
    /// bound that clients are only known to check for simple lists.
    pub length: u32,
    /// The elements present in the record.
    pub elements: Vec<NestedElement<'d>>,
}

/// One element of a nested variable.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedElement<'d> {
    /// The index of the element.
    pub index: u32,
    /// The element's variables.
    pub record: StateRecord<'d>,
}

/// The size of counts and indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    One,
    Two,
    Four,
}

impl Width {
    pub(super) const fn of(max: usize) -> Self {
        match max {
            0..0x100 => Self::One,
            0x100..0x1_0000 => Self::Two,
            _ => Self::Four,
        }
    }

    /// The size for the elements of a nested variable.
    pub(super) fn of_elements(variable: &Variable) -> Self {
        variable.count().map_or(Self::One, |count| Self::of(count as usize))
    }

    pub(super) fn read<T>(self, reader: &mut Reader<'_, T>) -> Result<u32> {
        Ok(match self {
            Self::One => u32::from(u8::from_le_bytes(reader.take_array()?)),
            Self::Two => u32::from(u16::from_le_bytes(reader.take_array()?)),
            Self::Four => u32::from_le_bytes(reader.take_array()?),
        })
    }

    fn write(self, number: usize, writer: &mut Writer) -> Result<()> {
        let wrong = |max: u32| {
            move |_| Error::limit("elements that an index can address", max.into(), number as u64)
        };
        match self {
            Self::One => writer.u8(u8::try_from(number).map_err(wrong(0xff))?),
            Self::Two => writer.u16(u16::try_from(number).map_err(wrong(0xffff))?),
            Self::Four => writer.u32(u32::try_from(number).map_err(wrong(u32::MAX))?),
        }
        Ok(())
    }
}

/// An entry of a counted list.
trait Entry {
    fn index(&self) -> u32;
}

impl Entry for SimpleVariable<'_> {
    fn index(&self) -> u32 {
        self.index
    }
}

impl Entry for NestedVariable<'_> {
    fn index(&self) -> u32 {
        self.index
    }
}

impl Entry for NestedElement<'_> {
    fn index(&self) -> u32 {
        self.index
    }
}

impl<'d> StateRecord<'d> {
    /// Reads the record into the current scope: `recordFlags` (unless 0), `variables`, and the
    /// order of the indices if it is not ascending.
    pub(super) fn decode_fields<'n, T: Trace<'n>>(
        shape: Shape<'n>,
        reader: &mut Reader<'d, T>,
        depth: u32,
    ) -> Result<Self> {
        if depth > MAX_DEPTH {
            let limit = u64::from(MAX_DEPTH);
            return Err(reader.place_error(Error::limit("nested records", limit, limit + 1)));
        }
        let flags = record_head(reader)?;
        let width = Width::of(shape.count());
        let (simple, nested) = reader.record("variables", |reader| {
            let simple =
                entries(reader, width, shape.simple_count(), 2, |reader, index, start| {
                    let variable = shape.simple(index as usize);
                    let variable = variable.ok_or_else(|| unknown(index, reader))?;
                    reader.scope_from(variable.label(), Value::Record, start, |reader| {
                        SimpleVariable::decode(variable, index, reader)
                    })
                })?;
            let nested =
                entries(reader, width, shape.nested_count(), 3, |reader, index, start| {
                    let nested = shape.nested(index as usize);
                    let (variable, inner) = nested.ok_or_else(|| unknown(index, reader))?;
                    reader.scope_from(variable.label(), Value::Record, start, |reader| {
                        NestedVariable::decode(variable, inner, index, reader, depth)
                    })
                })?;
            Ok((simple, nested))
        })?;
        if T::ON {
            show_order(&simple, "simpleOrder", reader)?;
            show_order(&nested, "nestedOrder", reader)?;
        }
        Ok(Self { flags, simple, nested })
    }

    /// Encodes the record with its descriptor's layout.
    pub(super) fn encode(&self, shape: Shape<'_>, writer: &mut Writer) -> Result<()> {
        writer.u16(self.flags.0);
        writer.u8(RECORD_VERSION);
        let width = Width::of(shape.count());
        write_entries(&self.simple, width, shape.simple_count(), writer, |entry, writer| {
            let variable = shape.simple(entry.index as usize);
            let variable = variable.ok_or_else(|| no_variable(entry.index))?;
            entry.encode(variable, writer).map_err(|error| error.inside(variable.label()))
        })?;
        write_entries(&self.nested, width, shape.nested_count(), writer, |entry, writer| {
            let nested = shape.nested(entry.index as usize);
            let (variable, inner) = nested.ok_or_else(|| no_variable(entry.index))?;
            entry.encode(variable, inner, writer).map_err(|error| error.inside(variable.label()))
        })
    }

    /// Copies borrowed parts.
    #[must_use]
    pub fn into_owned(self) -> StateRecord<'static> {
        StateRecord {
            flags: self.flags,
            simple: self.simple.into_iter().map(SimpleVariable::into_owned).collect(),
            nested: self.nested.into_iter().map(NestedVariable::into_owned).collect(),
        }
    }
}

/// Reads the flags and version of a record.
pub(super) fn record_head<'n, T: Trace<'n>>(reader: &mut Reader<'_, T>) -> Result<RecordFlags> {
    let start = reader.place_if_on();
    let flags = reader.take_array().map(u16::from_le_bytes).map(RecordFlags);
    let flags = flags.map_err(|error| error.inside("recordFlags"))?;
    if flags.0 != 0 {
        let shown = Value::Flags(u64::from(flags.0), RecordFlags::NAMES);
        reader.leaf_from("recordFlags", start, shown);
    }
    let at = reader.position() as u64;
    let version = reader.take_array().map_err(|error| error.inside("recordVersion"))?;
    if version != [RECORD_VERSION] {
        let [found] = version;
        let error = Error::malformed(RECORD_VERSION.to_string(), found.to_string());
        return Err(error.at(at).inside("recordVersion"));
    }
    Ok(flags)
}

/// Reads a count and that many entries of a list with `total` of them.
fn entries<'d, 'n, T: Trace<'n>, E: Entry>(
    reader: &mut Reader<'d, T>,
    width: Width,
    total: usize,
    least: usize,
    mut read: impl FnMut(&mut Reader<'d, T>, u32, Place) -> Result<E>,
) -> Result<Vec<E>> {
    let at = reader.position() as u64;
    let count = width.read(reader)?;
    if count as usize > total {
        let wanted = format!("at most {total} variables or elements");
        return Err(Error::malformed(wanted, count.to_string()).at(at));
    }
    let all = count as usize == total;
    let mut list: Vec<E> = Vec::with_capacity(reader.capacity(count.into(), u64::MAX, least)?);
    let mut ascending = true;
    for number in 0..count {
        let start = reader.place_if_on();
        let at = reader.position() as u64;
        let index = if all { number } else { width.read(reader)? };
        if index as usize >= total {
            let wanted = format!("an index below {total}");
            return Err(Error::malformed(wanted, index.to_string()).at(at));
        }
        ascending &= list.last().is_none_or(|last| last.index() < index);
        list.push(read(reader, index, start)?);
    }
    if !ascending && let Some(index) = repeated(&list) {
        let found = format!("index {index} twice");
        return Err(Error::malformed("every index at most once", found).at(at));
    }
    Ok(list)
}

/// An index that occurs more than once, if there is one.
fn repeated<E: Entry>(list: &[E]) -> Option<u32> {
    let mut indices: Vec<u32> = list.iter().map(Entry::index).collect();
    indices.sort_unstable();
    let twice = indices.windows(2).find(|pair| pair.first() == pair.last())?;
    twice.first().copied()
}

fn write_entries<E: Entry>(
    list: &[E],
    width: Width,
    total: usize,
    writer: &mut Writer,
    mut write: impl FnMut(&E, &mut Writer) -> Result<()>,
) -> Result<()> {
    if list.len() > total {
        let wanted = format!("at most {total} variables or elements");
        return Err(Error::value(wanted, list.len().to_string()));
    }
    if let Some(beyond) = list.iter().map(Entry::index).find(|index| *index as usize >= total) {
        return Err(Error::value(format!("an index below {total}"), beyond.to_string()));
    }
    if let Some(index) = repeated(list) {
        return Err(Error::value("every index at most once", format!("index {index} twice")));
    }
    width.write(list.len(), writer)?;
    for (number, entry) in list.iter().enumerate() {
        let index = entry.index() as usize;
        if list.len() < total {
            width.write(index, writer)?;
        } else if index != number {
            let found = index.to_string();
            return Err(Error::value(format!("index {number}, because all are present"), found));
        }
        write(entry, writer)?;
    }
    Ok(())
}

/// Traces the order of the indices, unless it is ascending.
fn show_order<'n, T: Trace<'n>, E: Entry>(
    list: &[E],
    name: &'n str,
    reader: &mut Reader<'_, T>,
) -> Result<()> {
    if list.is_sorted_by_key(Entry::index) {
        return Ok(());
    }
    let at = reader.place();
    reader.list(name, |reader| {
        for entry in list {
            reader.leaf_from("", at, Value::Unsigned(u64::from(entry.index())));
        }
        Ok(())
    })
}

fn unknown<T>(index: u32, reader: &Reader<'_, T>) -> Error {
    no_variable(index).at(reader.position() as u64)
}

#[cold]
fn no_variable(index: u32) -> Error {
    Error::value("a variable of the descriptor", format!("index {index}"))
}

const HAS_NOTIFICATION: u8 = 2;

impl<'d> ValueHeader<'d> {
    /// The header that clients write: with an empty hint.
    #[must_use]
    pub fn client() -> Self {
        Self { hint: Some(SafeString::from("")), ..Self::default() }
    }

    /// Whether there is a non-empty hint.
    #[must_use]
    pub(super) fn has_hint(&self) -> bool {
        self.hint.as_ref().is_some_and(|hint| !hint.to_bytes().is_empty())
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let start = reader.place_if_on();
        let [flags] = reader.take_array().map_err(|error| error.inside("head"))?;
        let others = flags & !HAS_NOTIFICATION;
        if others != 0 {
            reader.leaf_from("head", start, Value::Hex(u64::from(others)));
        }
        if flags & HAS_NOTIFICATION == 0 {
            return Ok(Self { flags: others, notification: 0, hint: None });
        }
        let start = reader.place_if_on();
        let [notification] = reader.take_array().map_err(|error| error.inside("notification"))?;
        if notification != 0 {
            reader.leaf_from("notification", start, Value::Unsigned(u64::from(notification)));
        }
        let hint = SafeString::decode(reader, "hint")?;
        Ok(Self { flags: others, notification, hint: Some(hint) })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        if self.flags & HAS_NOTIFICATION != 0 {
            let found = format!("0x{:02x}", self.flags);
            return Err(Error::value("flags without bit 1", found).inside("head"));
        }
        let Some(hint) = &self.hint else {
            writer.u8(self.flags);
            return Ok(());
        };
        writer.u8(self.flags | HAS_NOTIFICATION);
        writer.u8(self.notification);
        hint.encode(writer).map_err(|error| error.inside("hint"))
    }

    pub(super) fn into_owned(self) -> ValueHeader<'static> {
        let Self { flags, notification, hint } = self;
        ValueHeader { flags, notification, hint: hint.map(Field::into_owned) }
    }
}

impl<'d> SimpleVariable<'d> {
    pub(super) fn decode<'n, T: Trace<'n>>(
        variable: &'n Variable,
        index: u32,
        reader: &mut Reader<'d, T>,
    ) -> Result<Self> {
        let Some(simple) = variable.simple_type() else { return Err(unknown(index, reader)) };
        let head = ValueHeader::decode(reader)?;
        let flags = SimpleFlags::decode(reader, "flags")?;
        let time = match flags.contains(SimpleFlags::HasTimeStamp) {
            true => Some(UnifiedTime::decode(reader, "time")?),
            false => None,
        };
        let value = match flags.contains(SimpleFlags::SameAsDefault) {
            true => None,
            false => Some(Elements::decode(variable, simple, reader)?),
        };
        Ok(Self { index, head, flags, time, value })
    }

    fn encode(&self, variable: &Variable, writer: &mut Writer) -> Result<()> {
        let agrees = |flag: SimpleFlags, there: bool, what: &'static str| {
            if self.flags.contains(flag) == there {
                return Ok(());
            }
            let found = format!("{:?}", self.flags);
            Err(Error::value(format!("flags that agree with the {what}"), found).inside("flags"))
        };
        agrees(SimpleFlags::HasTimeStamp, self.time.is_some(), "time")?;
        agrees(SimpleFlags::SameAsDefault, self.value.is_none(), "value")?;
        self.head.encode(writer)?;
        writer.u8(self.flags.0);
        if let Some(time) = &self.time {
            time.encode(writer)?;
        }
        match &self.value {
            Some(value) => value.encode(variable, writer).map_err(|error| error.inside("value")),
            None => Ok(()),
        }
    }

    pub(super) fn into_owned(self) -> SimpleVariable<'static> {
        SimpleVariable {
            index: self.index,
            head: self.head.into_owned(),
            flags: self.flags,
            time: self.time,
            value: self.value.map(Elements::into_owned),
        }
    }
}

impl<'d> NestedVariable<'d> {
    fn decode<'n, T: Trace<'n>>(
        variable: &'n Variable,
        inner: Shape<'n>,
        index: u32,
        reader: &mut Reader<'d, T>,
        depth: u32,
    ) -> Result<Self> {
        let (head, flags, length) = Self::decode_head(variable, reader)?;
        let start = reader.place_if_on();
        let width = Width::of_elements(variable);
        let total = length as usize;
        let elements = reader.scope_from("elements", Value::List, start, |reader| {
            let mut number = 0;
            entries(reader, width, total, 4, |reader, index, start| {
                let record = reader.item(number, |reader| {
                    reader.scope_from("", Value::Record, start, |reader| {
                        // Without indices, the position in the list identifies the element.
                        if reader.place_if_on() != start {
                            let shown = Value::Unsigned(u64::from(index));
                            reader.leaf_from("index", start, shown);
                        }
                        StateRecord::decode_fields(inner, reader, depth + 1)
                    })
                })?;
                number += 1;
                Ok(NestedElement { index, record })
            })
        })?;
        Ok(Self { index, head, flags, length, elements })
    }

    /// Reads everything before the count of elements.
    pub(super) fn decode_head<'n, T: Trace<'n>>(
        variable: &Variable,
        reader: &mut Reader<'d, T>,
    ) -> Result<(ValueHeader<'d>, u8, u32)> {
        let head = ValueHeader::decode(reader)?;
        let start = reader.place_if_on();
        let [flags] = reader.take_array().map_err(|error| error.inside("flags"))?;
        if flags != 0 {
            reader.leaf_from("flags", start, Value::Hex(u64::from(flags)));
        }
        let length = match variable.count() {
            Some(count) => count,
            None => {
                let at = reader.position() as u64;
                let length = reader.u32("length")?;
                if length > MAX_ELEMENTS {
                    let (max, asked) = (MAX_ELEMENTS.into(), length.into());
                    let error = Error::limit("elements of a list", max, asked);
                    return Err(error.at(at).inside("length"));
                }
                length
            }
        };
        Ok((head, flags, length))
    }

    fn encode(&self, variable: &Variable, inner: Shape<'_>, writer: &mut Writer) -> Result<()> {
        self.head.encode(writer)?;
        writer.u8(self.flags);
        match variable.count() {
            Some(count) if count != self.length => {
                let found = self.length.to_string();
                return Err(Error::value(count.to_string(), found).inside("length"));
            }
            Some(_) => {}
            None if self.length > MAX_ELEMENTS => {
                let (max, asked) = (MAX_ELEMENTS.into(), self.length.into());
                return Err(Error::limit("elements of a list", max, asked).inside("length"));
            }
            None => writer.u32(self.length),
        }
        let width = Width::of_elements(variable);
        let mut number = 0;
        let total = self.length as usize;
        write_entries(&self.elements, width, total, writer, |element, writer| {
            let outcome = element.record.encode(inner, writer);
            number += 1;
            outcome.map_err(|error| error.inside_item(number - 1))
        })
        .map_err(|error| error.inside("elements"))
    }

    pub(super) fn into_owned(self) -> NestedVariable<'static> {
        let own = |element: NestedElement<'d>| NestedElement {
            index: element.index,
            record: element.record.into_owned(),
        };
        NestedVariable {
            index: self.index,
            head: self.head.into_owned(),
            flags: self.flags,
            length: self.length,
            elements: self.elements.into_iter().map(own).collect(),
        }
    }
}
