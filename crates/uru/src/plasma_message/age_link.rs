//! Links to ages.

use std::borrow::Cow;
use worldwire_core::json::{self, Given};
use worldwire_core::{
    Error, Field, Reader, Result, Sampler, Trace, Value, Writer, record, wire_flags,
};

use crate::types::{CountedString, Uuid};

wire_flags! {
    /// Which fields an [`AgeInfo`] has.
    pub struct AgeInfoFlags(u8) {
        /// The age's file name.
        Filename = 1,
        /// The instance's name.
        InstanceName = 2,
        /// The instance.
        InstanceGuid = 4,
        /// The name given by its owner.
        UserName = 8,
        /// The number that distinguishes instances with the same name.
        SequenceNumber = 16,
        /// The description.
        Description = 32,
        /// The language.
        Language = 64,
    }
}

record! {
    /// An age instance (`plAgeInfoStruct`).
    pub struct AgeInfo<'a> {
        /// Which fields follow.
        flags "flags": AgeInfoFlags,
        /// The age's file name.
        filename "filename": CountedString<'a> where flags.contains(AgeInfoFlags::Filename),
        /// The instance's name.
        instance_name "instanceName": CountedString<'a>
            where flags.contains(AgeInfoFlags::InstanceName),
        /// The instance.
        instance_guid "instanceGuid": Uuid where flags.contains(AgeInfoFlags::InstanceGuid),
        /// The name given by its owner.
        user_name "userName": CountedString<'a> where flags.contains(AgeInfoFlags::UserName),
        /// The number that distinguishes instances with the same name.
        sequence_number "sequenceNumber": u32
            where flags.contains(AgeInfoFlags::SequenceNumber),
        /// The description.
        description "description": CountedString<'a>
            where flags.contains(AgeInfoFlags::Description),
        /// The language.
        language "language": u32 where flags.contains(AgeInfoFlags::Language),
    }
}

/// Which fields an [`AgeLink`] has.
///
/// Only bits with a known layout are accepted, because the fields after an unknown one could not be
/// located.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AgeLinkFlags(u16);

impl AgeLinkFlags {
    /// The age.
    pub const AGE_INFO: Self = Self(1);
    /// The linking rules.
    pub const LINKING_RULES: Self = Self(2);
    /// Whether the link belongs to a customer service representative.
    pub const AM_CCR: Self = Self(16);
    /// The arrival point in the age.
    pub const SPAWN_POINT: Self = Self(32);
    /// The parent age.
    pub const PARENT_AGE: Self = Self(64);
    /// All bits with a known layout.
    const KNOWN: u16 = 1 | 2 | 16 | 32 | 64;

    /// The set of these bits; `None` if any of them has no known layout.
    #[must_use]
    pub const fn new(bits: u16) -> Option<Self> {
        if bits & !Self::KNOWN == 0 { Some(Self(bits)) } else { None }
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether this set contains all bits of the other.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl<'d> Field<'d> for AgeLinkFlags {
    type Owned = Self;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 AgeLinkFlags")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let at = reader.position() as u64;
        let bits = reader.shown(
            name,
            |reader| reader.take_array().map(u16::from_le_bytes),
            |bits| Value::Hex(u64::from(*bits)),
        )?;
        let unknown = || Error::malformed("bits 0, 1, 4, 5 and 6", format!("0x{bits:04x}"));
        Self::new(bits).ok_or_else(|| unknown().at(at).inside(name))
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u16(self.0);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let bits = json::integer(&json, "a whole number from 0 to 65535")?;
        Self::new(bits).ok_or_else(|| json::expected("bits 0, 1, 4, 5 and 6", &json))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(u16::sample(sampler) & Self::KNOWN)
    }

    fn into_owned(self) -> Self {
        self
    }
}

record! {
    /// A place where players arrive in an age (`plSpawnPointInfo`).
    ///
    /// Unverified: three counted strings. No known capture contains one.
    pub struct SpawnPointInfo<'a> {
        /// The name shown to players.
        title "title": CountedString<'a>,
        /// The object.
        spawn_point "spawnPoint": CountedString<'a>,
        /// The cameras at that place.
        camera_stack "cameraStack": CountedString<'a>,
    }
}

record! {
    /// A link to an age (`plAgeLinkStruct`).
    ///
    /// Unverified: everything but the age and the rules. No known capture contains the rest.
    pub struct AgeLink<'a> {
        /// Which fields follow.
        flags "flags": AgeLinkFlags,
        /// The age.
        age_info "ageInfo": AgeInfo<'a> where flags.contains(AgeLinkFlags::AGE_INFO),
        /// The linking rules.
        linking_rules "linkingRules": u8 where flags.contains(AgeLinkFlags::LINKING_RULES),
        /// Whether the link belongs to a customer service representative.
        am_ccr "amCcr": u8 where flags.contains(AgeLinkFlags::AM_CCR),
        /// The arrival point in the age.
        spawn_point "spawnPoint": SpawnPointInfo<'a>
            where flags.contains(AgeLinkFlags::SPAWN_POINT),
        /// The parent age.
        parent_age_filename "parentAgeFilename": CountedString<'a>
            where flags.contains(AgeLinkFlags::PARENT_AGE),
    }
}

crate::walk::walk_plain! {
    AgeLink<'d>;
}
