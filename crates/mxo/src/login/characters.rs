//! The list of characters in an auth reply.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{
    Error, Field, Place, Reader, Result, Sampler, Trace, Value, Writer, wire_enum,
};

use crate::types::Str;

wire_enum! {
    /// Whether a character can be chosen.
    pub enum CharacterStatus(u8) {
        /// The character can be chosen.
        Ready = 0,
    }
}

/// The characters of an account.
///
/// | field | type | |
/// | --- | --- | --- |
/// | | `u16` | count |
/// | for each: | | |
/// | `reserved` | `u8` | 0 |
/// | `handleOffset` | `u16` | the handle's offset from the start of this entry |
/// | `id` | `u64` | |
/// | `status` | `u8` | 0; otherwise the character cannot be chosen |
/// | `worldId` | `u16` | |
/// | for each: | | |
/// | `handle` | `u16` length, text, `00` | |
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Characters<'d>(pub Vec<Character<'d>>);

/// A character that the client can choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Character<'d> {
    /// 0.
    pub reserved: u8,
    /// Its ID, which the client sends to the margin server.
    pub id: u64,
    /// Whether it can be chosen.
    pub status: CharacterStatus,
    /// The number of its world.
    pub world_id: u16,
    /// Its name in the game.
    pub handle: Str<'d>,
}

/// The size of an entry.
const ENTRY_BYTES: usize = 14;

impl<'d> Field<'d> for Characters<'d> {
    type Owned = Characters<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 count, entries, handles")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.list(name, |reader| {
            let count = usize::from(u16::from_le_bytes(reader.take_array()?));
            let start = reader.position();
            let entries = reader.take(count * ENTRY_BYTES)?;
            let (entries, _) = entries.as_chunks::<ENTRY_BYTES>();
            let mut characters = Vec::with_capacity(count);
            for (index, entry) in entries.iter().enumerate() {
                let at = start + index * ENTRY_BYTES;
                let read = |reader: &mut Reader<'d, T>| decode_one(reader, *entry, at);
                characters.push(reader.item(index, read)?);
            }
            Ok(Self(characters))
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let count = self.0.len();
        let Ok(short) = u16::try_from(count) else {
            return Err(Error::limit("characters", u16::MAX.into(), count as u64));
        };
        writer.u16(short);
        let mut offset = count * ENTRY_BYTES;
        for (index, character) in self.0.iter().enumerate() {
            let Ok(handle) = u16::try_from(offset) else {
                let error = Error::limit("offset", u16::MAX.into(), offset as u64);
                return Err(error.inside("handle").inside_item(index));
            };
            writer.u8(character.reserved);
            writer.u16(handle);
            writer.u64(character.id);
            writer.u8(character.status.0);
            writer.u16(character.world_id);
            // The next entry begins later, so its handle is nearer.
            offset = (offset + character.handle.wire_bytes()).saturating_sub(ENTRY_BYTES);
        }
        self.0.iter().enumerate().try_for_each(|(index, character)| {
            let encoded = character.handle.encode(writer);
            encoded.map_err(|error| error.inside("handle").inside_item(index))
        })
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let items = json.as_array().ok_or_else(|| json::expected("an array", &json))?;
        let item = |(index, item)| {
            Character::from_json(json.at(item)).map_err(|error| error.inside_item(index))
        };
        items.iter().enumerate().map(item).collect::<Result<_>>().map(Self)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let count = sampler.length(4);
        Self((0..count).map(|_| Character::sample(sampler)).collect())
    }

    fn into_owned(self) -> Self::Owned {
        Characters(self.0.into_iter().map(Character::into_owned).collect())
    }
}

/// Reads the handle of the entry at this position.
fn decode_one<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    entry: [u8; ENTRY_BYTES],
    at: usize,
) -> Result<Character<'d>> {
    let [reserved, o0, o1, i0, i1, i2, i3, i4, i5, i6, i7, status, w0, w1] = entry;
    let offset = u16::from_le_bytes([o0, o1]);
    let id = u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]);
    let (status, world_id) = (CharacterStatus(status), u16::from_le_bytes([w0, w1]));
    let place = |offset: usize| Place { byte: u32::try_from(at + offset).unwrap_or(0), bit: 0 };
    reader.scope_from("", Value::Record, place(0), |reader| {
        if T::ON {
            let trace = reader.trace_mut();
            let mut leaf = |name, value, from, to| trace.leaf(name, value, place(from), place(to));
            leaf("reserved", Value::Unsigned(reserved.into()), 0, 1);
            leaf("handleOffset", Value::Unsigned(offset.into()), 1, 3);
            leaf("id", Value::Unsigned(id), 3, 11);
            let named = Value::Enum(status.0.into(), CharacterStatus::NAMES);
            leaf("status", named, 11, 12);
            leaf("worldId", Value::Unsigned(world_id.into()), 12, 14);
        }
        let distance = reader.position() - at;
        if usize::from(offset) != distance {
            let wanted = format!("{distance}, the offset of the handle");
            let error = Error::malformed(wanted, offset.to_string()).at(at as u64 + 1);
            return Err(error.inside("handleOffset"));
        }
        let handle = Str::decode(reader, "handle")?;
        Ok(Character { reserved, id, status, world_id, handle })
    })
}

impl<'d> Character<'d> {
    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        fields.take_optional("handleOffset");
        let handle = Str::from_json(fields.given("handle")?);
        let character = Self {
            reserved: fields.value("reserved")?,
            id: fields.value("id")?,
            status: fields.value("status")?,
            world_id: fields.value("worldId")?,
            handle: handle.map_err(|error| error.inside("handle"))?,
        };
        fields.end()?;
        Ok(character)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self {
            reserved: Field::sample(sampler),
            id: Field::sample(sampler),
            status: Field::sample(sampler),
            world_id: Field::sample(sampler),
            handle: Field::sample(sampler),
        }
    }

    /// Copies borrowed bytes.
    #[must_use]
    pub fn into_owned(self) -> Character<'static> {
        let Self { reserved, id, status, world_id, handle } = self;
        Character { reserved, id, status, world_id, handle: handle.into_owned() }
    }
}
