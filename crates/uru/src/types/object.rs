//! Object identifiers: locations, uoids and keys.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{
    Error, Field, Reader, Result, Sampler, Trace, Value, Writer, record, scalar, wire_enum,
    wire_flags,
};

use super::SafeString;

scalar! {
    /// The number of a page: an age prefix and a page of that age in one `u32`, or a special value.
    ///
    /// | number | meaning |
    /// | --- | --- |
    /// | 0 | fixed keys |
    /// | 1..=0x20 | local to one client; never accept from the network |
    /// | 0x21..=0xfeff0020 | `(age << 16) + page + 0x21` for age prefixes from 0 up |
    /// | 0xfeff0021..=0xfeffffff | unusable |
    /// | 0xff000000 | the server; unknown net groups |
    /// | ..=0xff010000 | reserved |
    /// | 0xff010001..=0xfffffffe | `(-age << 16) + page + 0xff000001` for negative age prefixes |
    /// | 0xffffffff | invalid |
    ///
    /// Pages are unsigned here; some tools print 0xffff as -1.
    pub struct SequenceNumber(u32) as Hex;
}

impl SequenceNumber {
    /// The sequence number of a page. `None` if the age prefix is out of range: -255 to 0xfefe are
    /// valid, without the last page at the upper end.
    #[must_use]
    pub fn from_page(age: i32, page: u16) -> Option<Self> {
        let first: u32 = if age < 0 { 0xff00_0001 } else { 0x21 };
        let number = age
            .unsigned_abs()
            .checked_mul(0x1_0000)?
            .checked_add(u32::from(page))?
            .checked_add(first)?;
        Some(Self(number)).filter(|number| number.page() == Some((age, page)))
    }

    /// The age prefix and the page; `None` for special numbers, which cannot be split.
    #[must_use]
    pub fn page(self) -> Option<(i32, u16)> {
        let (rest, sign) = match self.0 {
            0x21..=0xfeff_0020 => (self.0 - 0x21, 1),
            0xff01_0001..=0xffff_fffe => (self.0 - 0xff00_0001, -1),
            _ => return None,
        };
        let page = u16::try_from(rest & 0xffff).ok()?;
        let age = i32::try_from(rest >> 16).ok()?;
        Some((age * sign, page))
    }

    /// Whether this is one of the special numbers.
    #[must_use]
    pub(crate) fn is_special(self) -> bool {
        self.page().is_none()
    }
}

wire_enum! {
    /// The class of a net message, as announced by `PropagateBuffer`.
    pub enum ClassIndex(u32) {
        /// A client pages rooms in or out.
        plNetMsgPagingRoom = 0x0218,
        /// The object groups that a client owns: the first message a game server sends.
        plNetMsgGroupOwner = 0x0264,
        /// Requests the state of rooms.
        plNetMsgGameStateRequest = 0x0265,
        /// A game message for everyone in the age.
        plNetMsgGameMessage = 0x026b,
        /// Voice chat.
        plNetMsgVoice = 0x0279,
        /// Requests or releases a lock.
        plNetMsgTestAndSet = 0x027d,
        /// Requests a shared state; unused.
        plNetMsgGetSharedState = 0x027e,
        /// Requests the state of an object; unused.
        plNetMsgObjStateRequest = 0x0286,
        /// Selects the objects whose updates a client wants; servers ignore it.
        plNetMsgObjectUpdateFilter = 0x029d,
        /// Requests the list of members.
        plNetMsgMembersListReq = 0x02ad,
        /// The members of the age.
        plNetMsgMembersList = 0x02ae,
        /// A member joined or left.
        plNetMsgMemberUpdate = 0x02b1,
        /// How many initial states a joining client was sent.
        plNetMsgInitialAgeStateSent = 0x02b8,
        /// Selects the players a client listens to; unused.
        plNetMsgListenListUpdate = 0x02c8,
        /// The state of an object.
        plNetMsgSDLState = 0x02cd,
        /// The state of an object, to be broadcast.
        plNetMsgSDLStateBCast = 0x0329,
        /// A game message for certain players.
        plNetMsgGameMessageDirected = 0x032e,
        /// The regions a player is in and cares about.
        plNetMsgRelevanceRegions = 0x03ac,
        /// A clone is loaded or unloaded.
        plNetMsgLoadClone = 0x03b3,
        /// A player's avatar is paged in or out.
        plNetMsgPlayerPage = 0x03b4,
    }
}

wire_flags! {
    /// The kind of page that a [`Location`] names.
    pub struct LocationFlags(u16) {
        /// The page exists on one client only.
        LocalOnly = 1,
        /// The page's state is not kept.
        Volatile = 2,
        /// The sequence number is reserved: set exactly if it is 0xff000000 or higher.
        Reserved = 4,
        /// Built into the client: pages 0xffff (Textures) and 0xfffe (BuiltIn).
        BuiltIn = 8,
        /// The page travels with its player. Comparisons of locations ignore this bit and no other.
        Itinerant = 16,
    }
}

record! {
    /// The page that contains an object (`plLocation`).
    pub struct Location {
        /// The page.
        sequence_number "sequenceNumber": SequenceNumber,
        /// The kind of page.
        flags "flags": LocationFlags,
    }
}

impl Location {
    /// Whether both name the same page; the itinerant bit is ignored.
    #[must_use]
    pub(crate) fn same_page(&self, other: &Self) -> bool {
        let counted = !LocationFlags::Itinerant.0;
        self.sequence_number == other.sequence_number
            && self.flags.0 & counted == other.flags.0 & counted
    }
}

scalar! {
    /// The hardware for which an object is loaded (`plLoadMask`): one byte, quality in the high
    /// nibble and capability in the low one. 0xff means "always".
    pub struct LoadMask(u8) as Hex;
}

impl LoadMask {
    /// Loaded on all hardware.
    pub const ALWAYS: Self = Self(0xff);
}

/// The identity of an object (`plUoid`).
///
/// Layout: `u8` contents (1 clone IDs, 2 load mask; other bits are refused), [`Location`], `u8`
/// load mask if flag 2, `u16` class index, `u32` object ID, [`SafeString`] name, and if flag 1:
/// `u16` clone ID, `u16` 0, `u32` player ID of the cloner. Object ID 0 means "look up by name".
/// Comparisons of uoids ignore the load mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uoid<'d> {
    /// The page.
    pub location: Location,
    /// The hardware for which it is loaded; `None` if the field is absent, which means all.
    pub load_mask: Option<LoadMask>,
    /// The class of the object.
    pub class_index: u16,
    /// The ID within its page; 0 if unknown.
    pub object_id: u32,
    /// The name within its page.
    pub name: SafeString<'d>,
    /// Which clone it is, if it is one.
    pub clone: Option<CloneIds>,
}

/// Identifies one clone of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloneIds {
    /// The clone's number.
    pub id: u16,
    /// Always zero in practice; kept as received.
    pub filler: u16,
    /// The player whose client made the clone.
    pub player_id: u32,
}

impl Eq for Location {}

const HAS_CLONE: u8 = 1;
const HAS_LOAD_MASK: u8 = 2;

impl<'d> Uoid<'d> {
    /// Decodes the fields into the current scope.
    fn decode_fields<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let at = reader.position();
        let [contents] = reader.take_array()?;
        if contents & !(HAS_CLONE | HAS_LOAD_MASK) != 0 {
            let found = format!("0x{contents:02x}");
            return Err(Error::malformed("contents of 0 to 3", found).at(at as u64));
        }
        Ok(Self {
            location: Field::decode(reader, "location")?,
            load_mask: match contents & HAS_LOAD_MASK {
                0 => None,
                _ => Some(Field::decode(reader, "loadMask")?),
            },
            class_index: reader.shown(
                "classIndex",
                |reader| reader.take_array().map(u16::from_le_bytes),
                |class| Value::Hex(u64::from(*class)),
            )?,
            object_id: reader.u32("objectId")?,
            name: Field::decode(reader, "name")?,
            clone: match contents & HAS_CLONE {
                0 => None,
                _ => Some(CloneIds {
                    id: reader.u16("cloneId")?,
                    filler: reader.u16("cloneFiller")?,
                    player_id: reader.u32("clonerId")?,
                }),
            },
        })
    }
}

impl<'d> Field<'d> for Uoid<'d> {
    type Owned = Uoid<'static>;
    const LEAST: usize = 15;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("plUoid")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.record(name, Self::decode_fields)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let mut contents = 0;
        if self.clone.is_some() {
            contents |= HAS_CLONE;
        }
        if self.load_mask.is_some() {
            contents |= HAS_LOAD_MASK;
        }
        writer.u8(contents);
        self.location.encode(writer)?;
        if let Some(mask) = self.load_mask {
            writer.u8(mask.0);
        }
        writer.u16(self.class_index);
        writer.u32(self.object_id);
        self.name.encode(writer).map_err(|error| error.inside("name"))?;
        if let Some(clone) = self.clone {
            writer.u16(clone.id);
            writer.u16(clone.filler);
            writer.u32(clone.player_id);
        }
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let value = Self {
            location: fields.value("location")?,
            load_mask: fields.given_optional("loadMask").map(Field::from_json).transpose()?,
            class_index: fields.value("classIndex")?,
            object_id: fields.value("objectId")?,
            name: Field::from_json(fields.given("name")?).map_err(|error| error.inside("name"))?,
            clone: match fields.given_optional("cloneId") {
                None => None,
                Some(id) => Some(CloneIds {
                    id: Field::from_json(id).map_err(|error| error.inside("cloneId"))?,
                    filler: fields.value("cloneFiller")?,
                    player_id: fields.value("clonerId")?,
                }),
            },
        };
        fields.end()?;
        Ok(value)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self {
            location: Field::sample(sampler),
            load_mask: (sampler.below(2) == 0).then(|| Field::sample(sampler)),
            class_index: Field::sample(sampler),
            object_id: Field::sample(sampler),
            name: Field::sample(sampler),
            clone: (sampler.below(2) == 0).then(|| CloneIds {
                id: Field::sample(sampler),
                filler: 0,
                player_id: Field::sample(sampler),
            }),
        }
    }

    fn into_owned(self) -> Self::Owned {
        Uoid {
            location: self.location,
            load_mask: self.load_mask,
            class_index: self.class_index,
            object_id: self.object_id,
            name: self.name.into_owned(),
            clone: self.clone,
        }
    }
}

/// A reference to an object (`plKey`): `u8` 0 for none, otherwise 1 and a [`Uoid`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key<'d>(pub Option<Uoid<'d>>);

impl<'d> Field<'d> for Key<'d> {
    type Owned = Key<'static>;
    const LEAST: usize = 1;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("plKey")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let at = reader.position();
        match reader.take_array().map_err(|error| error.inside(name))? {
            [0] => {
                reader.leaf_from(name, start, Value::Null);
                Ok(Self(None))
            }
            [1] => reader
                .scope_from(name, Value::Record, start, Uoid::decode_fields)
                .map(Some)
                .map(Self),
            [other] => {
                let found = format!("{other}");
                Err(Error::malformed("0 or 1", found).at(at as u64).inside(name))
            }
        }
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u8(u8::from(self.0.is_some()));
        self.0.as_ref().map_or(Ok(()), |uoid| uoid.encode(writer))
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        if json.is_null() { Ok(Self(None)) } else { Field::from_json(json).map(Some).map(Self) }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self((sampler.below(4) != 0).then(|| Field::sample(sampler)))
    }

    fn into_owned(self) -> Self::Owned {
        Key(self.0.map(Field::into_owned))
    }
}
