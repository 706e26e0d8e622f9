//! Scripts that a server starts for a character: emotes, effects and leaving.

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Error, Reader, Result, Trace, Value, Writer};

use super::fault::Fault;

/// A script. Its first bytes determine its layout; scripts with other first bytes are unreadable.
///
/// | bytes | script |
/// | --- | --- |
/// | `40 00 25 id:u32` | an emote |
/// | `40 00 29 id:u32 unknown1:u16` | an animation or effect |
/// | `c0 00 74 unknown1:u16` | the character leaves |
///
/// Unverified: whether the first two bytes of a script have a meaning of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Script {
    /// An emote.
    Emote {
        /// 0x10000000 plus the emote's number.
        id: u32,
    },
    /// An animation or effect.
    Effect {
        /// A `REZ_ID`, such as 0x280000a5.
        id: u32,
        /// Unverified: its meaning; 0x100.
        unknown1: u16,
    },
    /// The character leaves the world.
    JackOut {
        /// Unverified: its meaning; 0x1000.
        unknown1: u16,
    },
}

const EMOTE: [u8; 3] = [0x40, 0, 0x25];
const EFFECT: [u8; 3] = [0x40, 0, 0x29];
const JACK_OUT: [u8; 3] = [0xc0, 0, 0x74];

/// The ID of the emote with number 0.
const FIRST_EMOTE: u32 = 0x1000_0000;

impl Script {
    /// The script of an emote, by its number; see
    /// [`EmoteId::script_number`](crate::rpc::EmoteId::script_number).
    #[must_use]
    pub const fn emote(number: u8) -> Self {
        Self::Emote { id: FIRST_EMOTE + number as u32 }
    }

    /// The number of the emote, if it is one.
    #[must_use]
    pub fn emote_number(self) -> Option<u8> {
        match self {
            Self::Emote { id } => u8::try_from(id.checked_sub(FIRST_EMOTE)?).ok(),
            Self::Effect { .. } | Self::JackOut { .. } => None,
        }
    }

    /// The name in traces and JSON.
    const fn name(self) -> &'static str {
        match self {
            Self::Emote { .. } => "emote",
            Self::Effect { .. } => "effect",
            Self::JackOut { .. } => "jack_out",
        }
    }

    /// Reads a script and reports it to the trace as the record `script`.
    pub(super) fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'_, T>) -> Result<Self> {
        reader.record("script", |reader| {
            let start = reader.place_if_on();
            let rest = reader.rest().get(..3).unwrap_or_else(|| reader.rest());
            if ![EMOTE, EFFECT, JACK_OUT].iter().any(|head| head.starts_with(rest)) {
                let error = Fault::UnknownLayout.at(reader, 0, format!("a script {rest:02x?}"));
                return Err(error);
            }
            let head: [u8; 3] = reader.take_array()?;
            match head {
                EMOTE => reader.scope_from("emote", Value::Record, start, |reader| {
                    Ok(Self::Emote { id: reader.u32("id")? })
                }),
                EFFECT => reader.scope_from("effect", Value::Record, start, |reader| {
                    Ok(Self::Effect { id: reader.u32("id")?, unknown1: reader.u16("unknown1")? })
                }),
                _ => reader.scope_from("jack_out", Value::Record, start, |reader| {
                    Ok(Self::JackOut { unknown1: reader.u16("unknown1")? })
                }),
            }
        })
    }

    /// Writes the script.
    pub(super) fn encode(self, writer: &mut Writer) {
        match self {
            Self::Emote { id } => {
                writer.bytes(&EMOTE);
                writer.u32(id);
            }
            Self::Effect { id, unknown1 } => {
                writer.bytes(&EFFECT);
                writer.u32(id);
                writer.u16(unknown1);
            }
            Self::JackOut { unknown1 } => {
                writer.bytes(&JACK_OUT);
                writer.u16(unknown1);
            }
        }
    }

    /// The encoded size in bytes.
    pub(super) const fn encoded_len(self) -> usize {
        match self {
            Self::Emote { .. } => 7,
            Self::Effect { .. } => 9,
            Self::JackOut { .. } => 5,
        }
    }

    /// Reads the script from its record's JSON.
    pub(super) fn from_json(json: Given<'_>) -> Result<Self> {
        let mut scripts = FieldsOf::new(json)?;
        for name in
            [Self::emote(0), Self::Effect { id: 0, unknown1: 0 }, Self::JackOut { unknown1: 0 }]
                .map(Self::name)
        {
            let Some(inner) = scripts.given_optional(name) else { continue };
            scripts.end()?;
            let read = |inner: Given<'_>| {
                let mut fields = FieldsOf::new(inner)?;
                let script = match name {
                    "emote" => Self::Emote { id: fields.value("id")? },
                    "effect" => {
                        let unknown1 = fields.value("unknown1")?;
                        Self::Effect { id: fields.value("id")?, unknown1 }
                    }
                    _ => Self::JackOut { unknown1: fields.value("unknown1")? },
                };
                fields.end()?;
                Ok(script)
            };
            return read(inner).map_err(|error: Error| error.inside(name));
        }
        Err(Error::value("emote, effect or jack_out", "a different script"))
    }
}
