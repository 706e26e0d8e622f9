//! The parts of a character that a margin server sends when the character is loaded.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{
    Field, FieldInfo, Form, Reader, Record, Rest, Result, Sampler, Trace, Writer, record, wire_enum,
};

use super::auth::LoginStatus;
use super::background::Background;
use crate::offset::{Offset, OffsetSpace as _};
use crate::types::{Bytes16, Remaining, Terminated};

wire_enum! {
    /// What a `LoadCharacterReply` contains.
    pub enum LoadKind(u8) {
        /// Unverified: nothing.
        Unknown1 = 1,
        /// A [`Background`].
        Background = 2,
        /// The old list of friends: [`OldFriend`]s.
        OldFriends = 3,
        /// Unverified: empty.
        Unknown4 = 4,
        /// [`InventoryItem`]s.
        Inventory = 5,
        /// [`Ability`]s that are loaded.
        LoadedAbilities = 6,
        /// [`Ability`]s that the character knows.
        KnownAbilities = 7,
        /// [`Hardline`]s that the character knows.
        Hardlines = 8,
        /// [`AccessNode`]s that the character knows.
        AccessNodes = 9,
        /// Recipes for code, by number.
        CodeRecipes = 10,
        /// [`Contact`]s.
        Contacts = 11,
        /// A [`MessageOfTheDay`]. Some servers end with it.
        MessageOfTheDay = 13,
        /// Unverified: nothing.
        Unknown14 = 14,
        /// The end, empty.
        End = 15,
    }
}

record! {
    /// An entry of the old list of friends.
    pub struct OldFriend<'a> {
        id "id": u32,
        name "name": Terminated<'a>,
    }
}

record! {
    /// An item that the character has.
    pub struct InventoryItem {
        /// The slot in the inventory; from 0x60 on, the item is worn.
        slot "slot": u8,
        /// The item's type.
        goobj "goobj": u32,
        /// Unverified: amount and purity.
        unknown1 "unknown1": [u8; 4],
    }
}

record! {
    /// An ability.
    pub struct Ability {
        /// The place it is loaded into, or its index.
        slot "slot": u16,
        /// The ability's number plus its level.
        ability "ability": u32,
    }
}

record! {
    /// A hardline, where characters enter and leave.
    pub struct Hardline {
        district "district": u8,
        id "id": u16,
        /// 0.
        reserved "reserved": u16,
    }
}

record! {
    /// An access node.
    pub struct AccessNode {
        district "district": u8,
        id "id": u16,
    }
}

record! {
    /// A contact.
    pub struct Contact {
        contact "contact": u32,
        /// Unverified: its meaning.
        unknown1 "unknown1": u16,
    }
}

record! {
    /// A message that the server shows to everyone who enters.
    pub struct MessageOfTheDay<'a> {
        /// Seconds since 1970.
        time "time": u32,
        /// To the end, without a terminating zero.
        text "text": Remaining<'a>,
    }
}

/// Declares the data of a reply, by kind.
macro_rules! load_data {
    ($($(#[doc = $doc:literal])* $kind:ident: $type:ty,)*) => {
        /// The data of a `LoadCharacterReply`. Anything that does not match its kind is kept as
        /// bytes.
        #[derive(Clone, Debug, PartialEq)]
        pub enum LoadData<'a> {
            $($(#[doc = $doc])* $kind($type),)*
            /// Data of another kind, or of another layout; usually empty.
            Other(Cow<'a, [u8]>),
        }

        impl<'a> LoadData<'a> {
            fn decode<'n, T: Trace<'n>>(
                reader: &mut Reader<'a, T>,
                kind: LoadKind,
                length: usize,
            ) -> Result<Self> {
                let known = match kind {
                    $(LoadKind::$kind => Some(reader.attempt(|reader| {
                        reader.part(length, |reader| Field::decode(reader, "data")).map(Self::$kind)
                    })),)*
                    _ => None,
                };
                match known {
                    Some(Ok(data)) => Ok(data),
                    _ => {
                        let start = reader.place();
                        let bytes = reader.blob("data", start, length, Form::Bytes)?;
                        Ok(Self::Other(bytes.into()))
                    }
                }
            }

            fn encode(&self, writer: &mut Writer) -> Result<()> {
                match self {
                    $(Self::$kind(data) => data.encode(writer),)*
                    Self::Other(bytes) => {
                        writer.bytes(bytes);
                        Ok(())
                    }
                }
            }

            fn from_json(json: Given<'_>, kind: LoadKind) -> Result<Self> {
                if json.get("$hex").is_some() {
                    return json.bytes().map(|bytes| Self::Other(bytes.into()));
                }
                match kind {
                    $(LoadKind::$kind => Field::from_json(json).map(Self::$kind),)*
                    _ => json.bytes().map(|bytes| Self::Other(bytes.into())),
                }
            }

            fn sample(kind: LoadKind, sampler: &mut Sampler) -> Self {
                match kind {
                    $(LoadKind::$kind => Self::$kind(Field::sample(sampler)),)*
                    _ => {
                        let length = sampler.length(8);
                        Self::Other(sampler.bytes(length).into())
                    }
                }
            }

            /// Copies borrowed bytes.
            #[must_use]
            pub fn into_owned(self) -> LoadData<'static> {
                match self {
                    $(Self::$kind(data) => LoadData::$kind(Field::into_owned(data)),)*
                    Self::Other(bytes) => LoadData::Other(Cow::Owned(bytes.into_owned())),
                }
            }
        }
    };
}

load_data! {
    /// The character itself.
    Background: Background,
    /// The old list of friends.
    OldFriends: Rest<OldFriend<'a>>,
    /// The character's inventory.
    Inventory: Rest<InventoryItem>,
    /// The abilities that are loaded.
    LoadedAbilities: Rest<Ability>,
    /// The abilities that the character knows.
    KnownAbilities: Rest<Ability>,
    /// The hardlines that the character knows.
    Hardlines: Rest<Hardline>,
    /// The access nodes that the character knows.
    AccessNodes: Rest<AccessNode>,
    /// The code recipes that the character knows.
    CodeRecipes: Rest<u32>,
    /// The contacts.
    Contacts: Rest<Contact>,
    /// The message of the day.
    MessageOfTheDay: MessageOfTheDay<'a>,
}

/// A part of a character's data. The parts are numbered from 1, in any order of kinds; the last has
/// the code 10000 and the mark.
///
/// | field | type | |
/// | --- | --- | --- |
/// | `status` | `u32` | success, or why the character cannot be loaded |
/// | `characterId` | `u32` | the low half of the ID |
/// | `code` | `u16` | 0; in the last part 10000 |
/// | `number` | `u8` | 1, 2, 3 ... |
/// | `isLast` | `u8` | 1 in the last part |
/// | `kind` | `u8` | |
/// | `dataOffset` | `u16` | 16; 0 without data, which ends the message |
/// | `data` | `u16` count, bytes | by kind |
#[derive(Clone, Debug, PartialEq)]
pub struct LoadCharacterReply<'a> {
    /// Success, or why the character cannot be loaded.
    pub status: LoginStatus,
    /// The low half of the character's ID.
    pub character_id: u32,
    /// 0; 10000 in the last part.
    pub code: u16,
    /// The part's number, counted from 1.
    pub number: u8,
    /// 1 in the last part.
    pub is_last: u8,
    /// The kind of data.
    pub kind: LoadKind,
    /// The data.
    pub data: Option<LoadData<'a>>,
}

impl LoadCharacterReply<'_> {
    /// The code of the last part.
    pub const LAST_CODE: u16 = 10_000;

    /// The reply that refuses to load a character.
    #[must_use]
    pub const fn refusal(status: LoginStatus) -> LoadCharacterReply<'static> {
        LoadCharacterReply {
            status,
            character_id: 0,
            code: 0,
            number: 1,
            is_last: 0,
            kind: LoadKind(0),
            data: None,
        }
    }
}

impl<'d> Record<'d> for LoadCharacterReply<'d> {
    const NAME: &'static str = "LoadCharacterReply";

    fn fields() -> Vec<FieldInfo> {
        let row = |name, layout: &'static str, doc| FieldInfo::in_words(name, layout, doc);
        vec![
            row("status", "u32 LoginStatus", " Success, or why the character cannot be loaded."),
            row("characterId", "u32", " The low half of the ID."),
            row("code", "u16", " 0; 10000 in the last part."),
            row("number", "u8", " The part's number, counted from 1."),
            row("isLast", "u8", " 1 in the last part."),
            row("kind", "u8 LoadKind", " The kind of data."),
            row("dataOffset", "u16", " The offset of `data`; 0 without data."),
            row("data", "u16 count, by kind, if its offset is not 0", " The part's data."),
        ]
    }

    fn decode_fields<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let origin = reader.position().wrapping_sub(1);
        let status = Field::decode(reader, "status")?;
        let character_id = reader.u32("characterId")?;
        let code = reader.u16("code")?;
        let number = reader.u8("number")?;
        let is_last = reader.u8("isLast")?;
        let kind = Field::decode(reader, "kind")?;
        let at = reader.position();
        let offset = Offset::new("dataOffset", at, reader.u16("dataOffset")?);
        let mut data = None;
        if !offset.is_none() {
            offset.check(reader.position().wrapping_sub(origin))?;
            let length = reader.take_array().map_err(|error| error.inside("data"))?;
            let length = u16::from_le_bytes(length).into();
            data = Some(LoadData::decode(reader, kind, length)?);
        }
        Ok(Self { status, character_id, code, number, is_last, kind, data })
    }

    fn encode_fields(&self, writer: &mut Writer) -> Result<()> {
        let origin = writer.len().wrapping_sub(1);
        writer.u32(self.status.0);
        writer.u32(self.character_id);
        writer.u16(self.code);
        writer.u8(self.number);
        writer.u8(self.is_last);
        writer.u8(self.kind.0);
        let offset = writer.reserve::<2>();
        let Some(data) = &self.data else { return Ok(()) };
        offset.fill(writer, origin)?;
        let mut bytes = Writer::new();
        data.encode(&mut bytes).map_err(|error| error.inside("data"))?;
        Bytes16(bytes.into_bytes().into()).encode(writer).map_err(|error| error.inside("data"))
    }

    fn from_fields(fields: &mut FieldsOf<'_>) -> Result<Self> {
        fields.take_optional("dataOffset");
        let kind = fields.value("kind")?;
        let data = fields.given_optional("data");
        let data = data.map(|json| LoadData::from_json(json, kind)).transpose();
        Ok(Self {
            status: fields.value("status")?,
            character_id: fields.value("characterId")?,
            code: fields.value("code")?,
            number: fields.value("number")?,
            is_last: fields.value("isLast")?,
            kind,
            data: data.map_err(|error| error.inside("data"))?,
        })
    }
}

impl<'d> Field<'d> for LoadCharacterReply<'d> {
    type Owned = LoadCharacterReply<'static>;
    const LEAST: usize = 15;

    worldwire_core::__record_as_field!(['d] LoadCharacterReply);

    fn sample(sampler: &mut Sampler) -> Self {
        let kind = LoadKind(u8::try_from(sampler.below(17)).unwrap_or(0));
        Self {
            status: Field::sample(sampler),
            character_id: Field::sample(sampler),
            code: Field::sample(sampler),
            number: Field::sample(sampler),
            is_last: Field::sample(sampler),
            kind,
            data: (sampler.below(4) > 0).then(|| LoadData::sample(kind, sampler)),
        }
    }

    fn into_owned(self) -> Self::Owned {
        let Self { status, character_id, code, number, is_last, kind, data } = self;
        let data = data.map(LoadData::into_owned);
        LoadCharacterReply { status, character_id, code, number, is_last, kind, data }
    }
}
