//! Object identifiers: uoids and keys.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{
    Error, Field, Reader, Result, Sampler, Trace, Value, Writer, scalar, wire_enum,
};

use super::location::optional;
use super::{Location, SafeString};

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
        /// The number of initial states that a joining client was sent.
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

scalar! {
    /// The hardware for which an object is loaded (`plLoadMask`): one byte, quality in the high
    /// nibble and capability in the low one. 0xff means "always".
    pub struct LoadMask(u8) as Hex;
}

impl LoadMask {
    /// Loaded on all hardware.
    pub const ALWAYS: Self = Self(0xff);

    /// The parts as clients use them: quality and capability, each with the high four bits set.
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
                let error = Error::value("the mask that `quality` and `capability` imply", found);
                let error = error.hint("leave out `loadMask`, or `quality` and `capability`");
                Err(error.inside("loadMask"))
            }
            (None, _) => Err(Error::value("both `quality` and `capability`", "only one of them")),
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
    /// The hardware for which it is loaded; `None` if the field is absent, which means all
    /// hardware.
    pub load_mask: Option<LoadMask>,
    /// The class of the object.
    pub class_index: u16,
    /// The ID within its page; 0 if unknown.
    pub object_id: u32,
    /// The name within its page.
    pub name: SafeString<'d>,
    /// The clone IDs, if the object is a clone.
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
        assert!(wrong.contains("loadMask: wanted the mask that"), "{wrong}");
    }
}
