//! Presence vectors with interleaved values.
//!
//! Each byte has seven presence bits, low bit first; bit 7 states whether another byte follows. The
//! values of a byte's properties directly follow it. Bit `b` of byte `k` is property `7 * k + b` of
//! an [`Order`].

use std::borrow::Cow;

use worldwire_core::json::{self, Given, Json};
use worldwire_core::{Error, Reader, Result, Trace, Value, Writer, nearest};

use super::fault::Fault;
use crate::schema::{Order, Slot};
use crate::types::PropertyType;

/// The presence bits per byte; the highest bit states whether another byte follows.
const BITS: usize = 7;
const MORE: u8 = 0x80;

/// A property that is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property<'d> {
    index: u16,
    bytes: Cow<'d, [u8]>,
}

impl Property<'_> {
    /// Its index in the vector's order.
    #[inline]
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index as usize
    }

    /// Its value, as [`PropertyType::read`] expects it. Length-prefixed text is stored without its
    /// length.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The properties in a create or update: ascending indices, and the values' bytes.
///
/// ```
/// use worldwire_mxo::message::Properties;
/// use worldwire_mxo::schema::Objects;
/// let objects = Objects::built_in();
/// let (_, door) = objects.class_named("door364").unwrap();
/// let mut properties = Properties::new();
/// properties.set(13, vec![0x34, 8, 0, 0]);
/// let mut writer = worldwire_core::Writer::new();
/// properties.encode(door.create(), &mut writer)?;
/// assert_eq!(writer.as_bytes(), [0x80, 0x40, 0x34, 8, 0, 0]);
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties<'d> {
    list: Vec<Property<'d>>,
    padding: u8,
}

impl<'d> Properties<'d> {
    /// No properties.
    #[must_use]
    pub const fn new() -> Self {
        Self { list: Vec::new(), padding: 0 }
    }

    /// Adds or replaces a value. Encoding checks whether it fits the property.
    pub fn set(&mut self, index: u16, bytes: impl Into<Cow<'d, [u8]>>) {
        let property = Property { index, bytes: bytes.into() };
        if self.list.last().is_none_or(|last| last.index < index) {
            self.list.push(property);
            return;
        }
        match self.list.binary_search_by_key(&index, |other| other.index) {
            Ok(at) => {
                if let Some(room) = self.list.get_mut(at) {
                    *room = property;
                }
            }
            Err(at) => self.list.insert(at, property),
        }
    }

    /// Removes a value.
    pub fn remove(&mut self, index: u16) {
        self.list.retain(|property| property.index != index);
    }

    /// A property's value.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let at = self.list.binary_search_by_key(&index, Property::index).ok()?;
        self.list.get(at).map(Property::bytes)
    }

    /// All properties, ascending.
    #[must_use]
    pub fn list(&self) -> &[Property<'d>] {
        &self.list
    }

    /// The number of properties.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The number of empty presence bytes at the end. They are valid but unnecessary, and are
    /// preserved.
    #[must_use]
    pub const fn padding(&self) -> u8 {
        self.padding
    }

    /// Converts to an owned value.
    #[must_use]
    pub fn into_owned(self) -> Properties<'static> {
        let owned = |property: Property<'d>| Property {
            index: property.index,
            bytes: Cow::Owned(property.bytes.into_owned()),
        };
        Properties { list: self.list.into_iter().map(owned).collect(), padding: self.padding }
    }

    /// Reads presence bytes and values and reports them to the trace as the record `properties`,
    /// followed by `padding` if there is any.
    ///
    /// # Errors
    /// Incomplete; [`Fault::IndexOutOfRange`] for a bit, or a whole byte, that is beyond the order.
    #[inline]
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, order: &'n Order) -> Result<Self> {
        Self::decode_with_room(reader, order, 0)
    }

    /// Like [`decode`](Self::decode), with capacity for this many properties.
    #[inline]
    pub(super) fn decode_with_room<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        order: &'n Order,
        room: usize,
    ) -> Result<Self> {
        let mut list = Vec::with_capacity(room.min(order.len()));
        let groups = reader.record("properties", |reader| values(reader, order, &mut list))?;
        let needed = list.last().map_or(0, |last| last.index() / BITS) + 1;
        // Orders are short, so the number of presence bytes is small.
        let padding = u8::try_from(groups.saturating_sub(needed)).unwrap_or(u8::MAX);
        if T::ON && padding > 0 {
            let here = reader.place();
            reader.leaf_from("padding", here, Value::Unsigned(padding.into()));
        }
        Ok(Self { list, padding })
    }

    /// Writes presence bytes and values.
    ///
    /// # Errors
    /// A value error for a property that the order does not have, or bytes that do not fit it.
    pub fn encode(&self, order: &Order, writer: &mut Writer) -> Result<()> {
        let mut rest = self.list.as_slice();
        let mut group = 0;
        loop {
            let in_group = |property: &Property<'_>| property.index() / BITS == group;
            let count = rest.iter().take_while(|property| in_group(property)).count();
            let (present, tail) = rest.split_at(count);
            let bits = present.iter().fold(0, |bits, one| bits | 1 << (one.index() % BITS));
            let more = !tail.is_empty() || self.padding > 0;
            writer.u8(if more { bits | MORE } else { bits });
            for property in present {
                let Some(slot) = order.slot(property.index()) else {
                    return Err(no_slot(property, order));
                };
                write_value(slot, property.bytes(), writer)
                    .map_err(|error| error.inside(slot.name()))?;
            }
            rest = tail;
            if rest.is_empty() {
                break;
            }
            group += 1;
            if group > order.len() / BITS {
                return Err(rest.first().map_or_else(
                    || Fault::IndexOutOfRange.value("none"),
                    |property| no_slot(property, order),
                ));
            }
        }
        for left in (0..self.padding).rev() {
            writer.u8(if left > 0 { MORE } else { 0 });
        }
        Ok(())
    }

    /// The number of bytes that [`Self::encode`] writes.
    #[must_use]
    pub fn encoded_len(&self, order: &Order) -> usize {
        let groups = self.list.last().map_or(0, |last| last.index() / BITS) + 1;
        let value = |property: &Property<'_>| {
            let slot = order.slot(property.index());
            let count = usize::from(slot.is_some_and(|slot| slot.fixed_size().is_none()));
            property.bytes.len() + count
        };
        groups + usize::from(self.padding) + self.list.iter().map(value).sum::<usize>()
    }

    /// Reads properties by name from the record's JSON; `padding` is the JSON next to it.
    ///
    /// # Errors
    /// A value error for names that the order does not have and values that do not fit.
    pub fn from_json(
        json: Given<'_>,
        padding: Option<&Json>,
        order: &Order,
    ) -> Result<Properties<'static>> {
        let Json::Object(fields) = json.json() else {
            return Err(json::expected("an object", &json));
        };
        let mut properties = Properties::new();
        for (name, value) in fields {
            let found = order
                .index_of(name)
                .and_then(|index| Some((u16::try_from(index).ok()?, order.slot(index)?)));
            let Some((index, slot)) = found else {
                let error = Error::value("a property of the class", format!("\"{name}\""));
                let names = order.slots().iter().map(Slot::name);
                return Err(match nearest(name, names) {
                    Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                    None => error,
                });
            };
            let bytes = match slot.fixed_size() {
                Some(_) => slot.kind().bytes_from_json(value),
                None => PropertyType::counted_from_json(value),
            };
            properties.set(index, bytes.map_err(|error| error.inside(name))?);
        }
        if let Some(padding) = padding {
            properties.padding = json::integer(padding, "a whole number from 0 to 255")
                .map_err(|error| error.inside("padding"))?;
        }
        Ok(properties)
    }
}

/// Reads the values into the list and returns the number of presence bytes.
#[inline]
fn values<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    order: &'n Order,
    list: &mut Vec<Property<'d>>,
) -> Result<usize> {
    let most = order.max_groups();
    let mut group = 0;
    loop {
        if group >= most {
            let found = format!("presence byte {}, beyond the last property", group + 1);
            return Err(Fault::IndexOutOfRange.at(reader, 0, found));
        }
        let [byte] = reader.take_array()?;
        let mut bits = byte & !MORE;
        let at = reader.position() - 1;
        while bits != 0 {
            let index = group * BITS + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let Some(slot) = order.slot(index) else {
                let found = format!("bit {index}, but the class has {} properties", order.len());
                let back = reader.position() - at;
                return Err(Fault::IndexOutOfRange.at(reader, back, found));
            };
            let bytes = match slot.fixed_size() {
                Some(_) => slot.kind().decode(reader, slot.name())?,
                None => PropertyType::decode_counted(reader, slot.name())?,
            };
            // Orders have at most 1,024 properties.
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            list.push(Property { index, bytes: Cow::Borrowed(bytes) });
        }
        group += 1;
        if byte & MORE == 0 {
            return Ok(group);
        }
    }
}

#[inline]
fn write_value(slot: &Slot, bytes: &[u8], writer: &mut Writer) -> Result<()> {
    match slot.fixed_size() {
        Some(size) if usize::from(size) == bytes.len() => {}
        Some(size) => {
            let wanted = format!("{size} bytes of {}", slot.kind());
            return Err(Error::value(wanted, bytes.len().to_string()));
        }
        None => match u8::try_from(bytes.len()) {
            Ok(count) => writer.u8(count),
            Err(_) => {
                return Err(Error::value("at most 255 bytes of text", bytes.len().to_string()));
            }
        },
    }
    writer.bytes(bytes);
    Ok(())
}

#[cold]
fn no_slot(property: &Property<'_>, order: &Order) -> Error {
    Fault::IndexOutOfRange.value(format!("index {} of {}", property.index, order.len()))
}
