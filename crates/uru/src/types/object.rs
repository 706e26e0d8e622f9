//! Object identifiers: locations, uoids and keys.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{
    Error, Field, FieldInfo, Reader, Record, Result, Sampler, Trace, Value, Writer, scalar,
    wire_enum, wire_flags,
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

/// The page that contains an object (`plLocation`): `u32` sequence number, `u16` flags.
///
/// A trace also shows the two parts of the sequence number, `age` and `page`. JSON may give either
/// the number or its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The page.
    pub sequence_number: SequenceNumber,
    /// The kind of page.
    pub flags: LocationFlags,
}

impl<'d> Record<'d> for Location {
    const NAME: &'static str = "Location";

    fn fields() -> Vec<FieldInfo> {
        let rows = [
            ("sequenceNumber", SequenceNumber::layout(), "The page."),
            ("age", "part of it".into(), "The age's prefix; missing for special numbers."),
            ("page", "part of it".into(), "The page of that age."),
            ("flags", LocationFlags::layout(), "The kind of page."),
        ];
        rows.map(|(name, layout, doc)| FieldInfo { name, layout, doc }).to_vec()
    }

    #[inline]
    fn decode_fields<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let start = reader.place_if_on();
        let sequence_number = SequenceNumber::decode(reader, "sequenceNumber")?;
        if T::ON
            && let Some((age, page)) = sequence_number.page()
        {
            reader.leaf_from("age", start, Value::Signed(age.into()));
            reader.leaf_from("page", start, Value::Unsigned(page.into()));
        }
        Ok(Self { sequence_number, flags: LocationFlags::decode(reader, "flags")? })
    }

    #[inline]
    fn encode_fields(&self, writer: &mut Writer) -> Result<()> {
        self.sequence_number.encode(writer)?;
        self.flags.encode(writer)
    }

    fn from_fields(fields: &mut FieldsOf<'_>) -> Result<Self> {
        let parts = (optional::<i32>(fields, "age")?, optional::<u16>(fields, "page")?);
        let parts = match parts {
            (Some(age), Some(page)) => Some((age, page)),
            (None, None) => None,
            _ => return Err(Error::value("both `age` and `page`", "one of them")),
        };
        let sequence_number = match (optional(fields, "sequenceNumber")?, parts) {
            (Some(number), None) => number,
            (None, Some((age, page))) => SequenceNumber::from_page(age, page).ok_or_else(|| {
                Error::value("an age from -255 to 65278", age.to_string()).inside("age")
            })?,
            (Some(number), Some(parts)) if number.page() == Some(parts) => number,
            (Some(number), Some(_)) => {
                let error =
                    Error::value("the number of `age` and `page`", format!("{:#x}", number.0));
                let error = error.hint("leave out `sequenceNumber`, or `age` and `page`");
                return Err(error.inside("sequenceNumber"));
            }
            (None, None) => fields.value("sequenceNumber")?,
        };
        Ok(Self { sequence_number, flags: fields.value("flags")? })
    }
}

/// A field that JSON may leave out.
fn optional<'d, F: Field<'d>>(fields: &mut FieldsOf<'_>, name: &'static str) -> Result<Option<F>> {
    let given = fields.given_optional(name).map(F::from_json).transpose();
    given.map_err(|error| error.inside(name))
}

impl<'d> Field<'d> for Location {
    type Owned = Self;
    const LEAST: usize = 6;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("Location")
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.record(name, Self::decode_fields)
    }

    #[inline]
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.encode_fields(writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let location = Self::from_fields(&mut fields)?;
        fields.end()?;
        Ok(location)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self { sequence_number: Field::sample(sampler), flags: Field::sample(sampler) }
    }

    fn into_owned(self) -> Self {
        self
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

    /// Its parts as clients use them: quality and capability, each with the high four bits set.
    #[must_use]
    pub fn parts(self) -> [u8; 2] {
        [self.0 >> 4 | 0xf0, self.0 | 0xf0]
    }

    /// Reads the mask, or its parts, from JSON.
    fn from_fields(fields: &mut FieldsOf<'_>) -> Result<Option<Self>> {
        let mask: Option<Self> = optional(fields, "loadMask")?;
        let parts = (optional::<u8>(fields, "quality")?, optional::<u8>(fields, "capability")?);
        match (mask, parts) {
            (mask, (None, None)) => Ok(mask),
            (None, (Some(quality), Some(capability))) => {
                Ok(Some(Self(quality << 4 | capability & 0xf)))
            }
            (Some(mask), (quality, capability))
                if quality.is_none_or(|part| part == mask.parts()[0])
                    && capability.is_none_or(|part| part == mask.parts()[1]) =>
            {
                Ok(Some(mask))
            }
            (Some(mask), _) => {
                let found = format!("0x{:02x}", mask.0);
                let error = Error::value("the mask of `quality` and `capability`", found);
                let error = error.hint("leave out `loadMask`, or `quality` and `capability`");
                Err(error.inside("loadMask"))
            }
            (None, _) => Err(Error::value("both `quality` and `capability`", "one of them")),
        }
    }
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
                _ => {
                    let start = reader.place_if_on();
                    let mask = LoadMask::decode(reader, "loadMask")?;
                    let [quality, capability] = mask.parts();
                    reader.leaf_from("quality", start, Value::Hex(quality.into()));
                    reader.leaf_from("capability", start, Value::Hex(capability.into()));
                    Some(mask)
                }
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

    /// Takes the fields from a JSON object.
    fn from_fields(fields: &mut FieldsOf<'_>) -> Result<Self> {
        Ok(Self {
            location: fields.value("location")?,
            load_mask: LoadMask::from_fields(fields)?,
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
        let value = Self::from_fields(&mut fields)?;
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

/// A reference to an object (`plKey`): `u8` 0 for none, otherwise any other number and a [`Uoid`].
///
/// Writers send 1. Other numbers are kept, and shown as `present`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key<'d> {
    uoid: Option<Uoid<'d>>,
    present: u8,
}

impl<'d> Key<'d> {
    /// No object.
    pub const NONE: Self = Self { uoid: None, present: 0 };

    /// The object.
    #[must_use]
    pub fn uoid(&self) -> Option<&Uoid<'d>> {
        self.uoid.as_ref()
    }

    /// Extracts the object.
    #[must_use]
    pub fn into_uoid(self) -> Option<Uoid<'d>> {
        self.uoid
    }

    /// Whether there is no object.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.uoid.is_none()
    }

    /// Whether the first byte is 0 or 1, the only ones that known writers send.
    #[must_use]
    pub(crate) fn is_canonical(&self) -> bool {
        self.present <= 1
    }
}

impl<'d> From<Uoid<'d>> for Key<'d> {
    fn from(uoid: Uoid<'d>) -> Self {
        Self { uoid: Some(uoid), present: 1 }
    }
}

impl<'d> Field<'d> for Key<'d> {
    type Owned = Key<'static>;
    const LEAST: usize = 1;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("plKey")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let [present] = reader.take_array().map_err(|error| error.inside(name))?;
        if present == 0 {
            reader.leaf_from(name, start, Value::Null);
            return Ok(Self::NONE);
        }
        reader.scope_from(name, Value::Record, start, |reader| {
            if present != 1 {
                reader.leaf_from(PRESENT, start, Value::Unsigned(present.into()));
            }
            Ok(Self { uoid: Some(Uoid::decode_fields(reader)?), present })
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u8(self.present);
        self.uoid.as_ref().map_or(Ok(()), |uoid| uoid.encode(writer))
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        if json.is_null() {
            return Ok(Self::NONE);
        }
        let mut fields = FieldsOf::new(json)?;
        let present = match fields.given_optional(PRESENT) {
            None => 1,
            Some(given) => match u8::from_json(given) {
                Ok(0) => return Err(Error::value("null, or a number above 0", "0").inside(PRESENT)),
                number => number.map_err(|error| error.inside(PRESENT))?,
            },
        };
        let uoid = Some(Uoid::from_fields(&mut fields)?);
        fields.end()?;
        Ok(Self { uoid, present })
    }

    fn sample(sampler: &mut Sampler) -> Self {
        match sampler.below(16) {
            0..4 => Self::NONE,
            4 => Self { present: 0xff, ..Uoid::sample(sampler).into() },
            _ => Uoid::sample(sampler).into(),
        }
    }

    fn into_owned(self) -> Self::Owned {
        Key { uoid: self.uoid.map(Field::into_owned), present: self.present }
    }
}

/// The name under which an unusual first byte of a key is shown.
const PRESENT: &str = "present";

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::json::{Json, json};

    fn location(json: &Json) -> Result<u32> {
        Location::from_json(json.into()).map(|location| location.sequence_number.0)
    }

    #[test]
    fn a_page_is_given_by_its_number_or_by_its_parts() {
        let number = json!({"sequenceNumber": 0x78_0022, "flags": []});
        let parts = json!({"age": 120, "page": 1, "flags": []});
        let both = json!({"sequenceNumber": 0x78_0022, "age": 120, "page": 1, "flags": []});
        for json in [number, parts, both] {
            assert_eq!(location(&json).unwrap(), 0x78_0022);
        }
        let global = json!({"age": -6, "page": 1, "flags": []});
        assert_eq!(location(&global).unwrap(), 0xff06_0002);
        for (json, wanted) in [
            (
                json!({"sequenceNumber": 5, "age": 120, "page": 1, "flags": []}),
                "sequenceNumber: wanted the number of `age` and `page`, found 0x5; leave out \
                 `sequenceNumber`, or `age` and `page`",
            ),
            (json!({"age": 120, "flags": []}), "wanted both `age` and `page`, found one of them"),
            (
                json!({"age": 70_000, "page": 1, "flags": []}),
                "age: wanted an age from -255 to 65278, found 70000",
            ),
        ] {
            assert_eq!(location(&json).unwrap_err().to_string(), wanted);
        }
    }

    #[test]
    fn a_load_mask_shows_its_parts() {
        assert_eq!(LoadMask(0x3c).parts(), [0xf3, 0xfc]);
        let uoid = |mask: Json| {
            let mut json = json!({
                "location": {"sequenceNumber": 0, "flags": []},
                "classIndex": 1, "objectId": 0, "name": "x",
            });
            for (name, value) in mask.as_object().into_iter().flatten() {
                json[name] = value.clone();
            }
            Uoid::from_json((&json).into()).map(|uoid| uoid.load_mask)
        };
        let parts = json!({"quality": 0xf3, "capability": 0xfc});
        assert_eq!(uoid(parts).unwrap(), Some(LoadMask(0x3c)));
        assert_eq!(uoid(json!({})).unwrap(), None);
        let all = json!({"loadMask": 0x3c, "quality": 0xf3, "capability": 0xfc});
        assert_eq!(uoid(all).unwrap(), Some(LoadMask(0x3c)));
        let wrong = uoid(json!({"loadMask": 0x3c, "quality": 0xf4})).unwrap_err().to_string();
        assert!(wrong.contains("loadMask: wanted the mask of"), "{wrong}");
    }
}
