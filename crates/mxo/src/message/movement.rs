//! A character's movement: a byte of flags, followed by the fields that the flags announce.

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Error, Reader, Result, Side, Trace, Value, Writer};

use super::fault::Fault;
use super::script::Script;
use crate::types::{PropertyType, singles};

/// Where and how a character moves.
///
/// | flag | field | bytes |
/// | --- | --- | --- |
/// | `20` | counter of scripts | `u8` |
/// | `20` | from a server, the script | varies; see [`Script`] |
/// | `01` | animation and mood | `u8`, `u8` |
/// | `02` | action | `u8` |
/// | `04` | yaw: 256 is a full turn | `u8` |
/// | `08` | position | 3 × `f32` |
/// |  | time: only from a server, after a position, for the client's own view or with flag `20` | `u32` |
///
/// A movement with another flag, or with a script of unknown layout, is unreadable:
/// [`Fault::UnknownLayout`].
///
/// Unverified: where clients put animation and mood; no client has been seen to send flag `01`.
/// Also unverified: that the last field is a time; its values increase like one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Movement {
    /// A script counter, which each script increments.
    pub script_counter: Option<u8>,
    /// The script that a server starts, sent together with a counter.
    pub script: Option<Script>,
    /// Animation and mood.
    pub animation: Option<Animation>,
    /// The action that the character performs.
    pub action: Option<u8>,
    /// The direction: 256 is a full turn.
    pub yaw: Option<u8>,
    /// The position: x, y (height), z.
    pub position: Option<[f32; 3]>,
    /// The time that a server appends to a position of the client's own view, or to any position
    /// sent with a script.
    pub time: Option<u32>,
}

/// An animation and its mood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Animation {
    /// The animation.
    pub animation: u8,
    /// The mood.
    pub mood: u8,
}

const SCRIPT: u8 = 0x20;
const ANIMATION: u8 = 0x01;
const ACTION: u8 = 0x02;
const YAW: u8 = 0x04;
const POSITION: u8 = 0x08;
const KNOWN: u8 = SCRIPT | ANIMATION | ACTION | YAW | POSITION;

impl Movement {
    /// The flags, which state which fields are present.
    #[must_use]
    pub fn flags(&self) -> u8 {
        let flag = |present: bool, flag| if present { flag } else { 0 };
        flag(self.script_counter.is_some(), SCRIPT)
            | flag(self.animation.is_some(), ANIMATION)
            | flag(self.action.is_some(), ACTION)
            | flag(self.yaw.is_some(), YAW)
            | flag(self.position.is_some(), POSITION)
    }

    /// Reads a movement and reports it to the trace as the record `movement`. `own` states whether
    /// it is of the client's own view.
    pub(super) fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'_, T>,
        from: Side,
        own: bool,
    ) -> Result<Self> {
        reader.record("movement", |reader| {
            let flags = reader.shown("flags", |r| r.take_array::<1>(), |b| Value::Hex(b[0].into()));
            let [flags] = flags?;
            if flags & !KNOWN != 0 {
                let unknown = flags & !KNOWN;
                let error = Fault::UnknownLayout.at(reader, 1, format!("flag {unknown:#04x}"));
                return Err(error.inside("flags"));
            }
            let has = |flag| flags & flag != 0;
            let is_scripted = has(SCRIPT) && from == Side::Server;
            let script_counter =
                if has(SCRIPT) { Some(reader.u8("script_counter")?) } else { None };
            let script = if is_scripted { Some(Script::decode(reader)?) } else { None };
            let mut byte = |flag, name| {
                if has(flag) { reader.u8(name).map(Some) } else { Ok(None) }
            };
            let animation = byte(ANIMATION, "animation")?;
            let mood = byte(ANIMATION, "mood")?;
            let action = byte(ACTION, "action")?;
            let yaw = byte(YAW, "yaw")?;
            let mut position = None;
            let mut time = None;
            if has(POSITION) {
                position = Some(singles(PropertyType::Vector3f.decode(reader, "position")?));
                if (own || is_scripted) && from == Side::Server {
                    time = Some(reader.u32("time")?);
                }
            }
            let animation = animation.zip(mood);
            let animation = animation.map(|(animation, mood)| Animation { animation, mood });
            Ok(Self { script_counter, script, animation, action, yaw, position, time })
        })
    }

    /// Writes the movement.
    pub(super) fn encode(&self, from: Side, own: bool, writer: &mut Writer) -> Result<()> {
        let scripted = self.script_counter.is_some();
        let timed = (own || scripted) && from == Side::Server && self.position.is_some();
        if timed != self.time.is_some() {
            let wanted = if timed {
                "a time, which servers send with the client's own position and with scripts"
            } else {
                "no time"
            };
            let found = if timed { "none" } else { "one" };
            return Err(Error::value(wanted, found).inside("time"));
        }
        if self.script.is_some() != (scripted && from == Side::Server) {
            let wanted = "a script if and only if a server sends a script counter";
            let found = if self.script.is_some() { "a script" } else { "none" };
            return Err(Error::value(wanted, found).inside("script"));
        }
        writer.u8(self.flags());
        self.script_counter.iter().for_each(|counter| writer.u8(*counter));
        self.script.iter().for_each(|script| script.encode(writer));
        let mut byte = |value: Option<u8>| value.into_iter().for_each(|value| writer.u8(value));
        byte(self.animation.map(|both| both.animation));
        byte(self.animation.map(|both| both.mood));
        byte(self.action);
        byte(self.yaw);
        self.position.iter().flatten().for_each(|part| writer.f32(*part));
        self.time.iter().for_each(|time| writer.u32(*time));
        Ok(())
    }

    /// The encoded size in bytes.
    pub(super) fn encoded_len(&self) -> usize {
        let bytes = [self.script_counter, self.action, self.yaw].iter().flatten().count();
        1 + bytes
            + self.script.map_or(0, |script| script.encoded_len())
            + self.animation.map_or(0, |_| 2)
            + self.position.map_or(0, |_| 12)
            + self.time.map_or(0, |_| 4)
    }

    /// Reads the movement from its record's JSON.
    pub(super) fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let flags = fields.take_optional("flags");
        let mut byte = |name| super::optional(&mut fields, name);
        let script_counter = byte("script_counter")?;
        let animation = match (byte("animation")?, byte("mood")?) {
            (Some(animation), Some(mood)) => Some(Animation { animation, mood }),
            (None, None) => None,
            (Some(_), None) => return Err(Error::invalid("is missing").inside("mood")),
            (None, Some(_)) => return Err(Error::invalid("is missing").inside("animation")),
        };
        let action = byte("action")?;
        let yaw = byte("yaw")?;
        let position = fields.take_optional("position").map(|json| {
            let bytes = PropertyType::Vector3f.bytes_from_json(json);
            bytes.map(|bytes| singles(&bytes)).map_err(|error| error.inside("position"))
        });
        let position = position.transpose()?;
        let time = super::optional(&mut fields, "time")?;
        let script = fields.given_optional("script").map(Script::from_json).transpose();
        let script = script.map_err(|error| error.inside("script"))?;
        fields.end()?;
        let movement = Self { script_counter, script, animation, action, yaw, position, time };
        super::agrees("flags", flags, u64::from(movement.flags()))?;
        Ok(movement)
    }
}
