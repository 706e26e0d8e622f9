//! The payloads of stream blocks in net messages.

use worldwire_core::json::Given;
use worldwire_core::{Classes, Field, Form, Reader, Result, Sampler, Trace};

use super::{Payload, SharedState};
use crate::plasma_message::{NULL, PlasmaMessage};
use crate::types::encoded;
use crate::walk::{Guard, Reason, Refusal, Walk, WalkClasses, WalkResult};

/// Any Plasma message except those that load clones.
#[derive(Clone, Copy, Debug)]
pub enum GamePayload {}

/// A Plasma message that loads or unloads a clone: `plLoadCloneMsg` or `plLoadAvatarMsg`.
#[derive(Clone, Copy, Debug)]
pub enum ClonePayload {}

/// The state of an object: SDL bytes, which the opener may decode.
#[derive(Clone, Copy, Debug)]
pub enum SdlPayload {}

/// A shared state.
#[derive(Clone, Copy, Debug)]
pub enum SharedPayload {}

/// The classes that load or unload clones.
const CLONES: [u16; 2] = [0x0253, 0x03b1];

/// Whether a Plasma message of this class belongs in a `plNetMsgLoadClone` and nowhere else.
#[must_use]
fn loads_clone(class: u16) -> bool {
    CLONES.contains(&class)
}

macro_rules! plasma_payload {
    ($($name:ident: |$class:ident| $belongs:expr;)*) => {$(
        impl Payload for $name {
            const NAME: &'static str = "plMessage";
            const FIELD: &'static str = "payload";

            fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<()> {
                PlasmaMessage::decode(reader, Self::FIELD).map(|_| ())
            }

            fn from_json(json: Given<'_>) -> Result<Vec<u8>> {
                if is_bytes(json) { json.bytes() } else { encoded(&PlasmaMessage::from_json(json)?) }
            }

            fn sample(sampler: &mut Sampler) -> Vec<u8> {
                let fits = |message: &PlasmaMessage<'_>| {
                    u16::try_from(message.class()).is_ok_and(|$class| $belongs)
                };
                let mut draw = || PlasmaMessage::sample(sampler);
                // Most samples are suitable; if this one is not, one of the next few hundred is.
                let message = core::iter::repeat_with(&mut draw).take(1000).find(fits);
                message.and_then(|message| encoded(&message).ok()).unwrap_or_default()
            }

            fn walk<G: Guard>(reader: &mut Reader<'_>, guard: &mut G) -> WalkResult {
                let at = reader.position();
                let $class = u16::from_le_bytes(reader.take_array()?);
                let refuse = |reason| {
                    let name = PlasmaMessage::NAMES.name($class.into());
                    Refusal::at(reason, name, at).inside("class")
                };
                if !$belongs {
                    return Err(refuse(Reason::Wrapper($class)));
                }
                guard.class($class).map_err(refuse)?;
                PlasmaMessage::walk_class($class.into(), reader, guard)
            }
        }
    )*};
}

plasma_payload! {
    GamePayload: |class| class != NULL && !loads_clone(class);
    ClonePayload: |class| loads_clone(class);
}

impl Payload for SdlPayload {
    const NAME: &'static str = "SDL";
    const FIELD: &'static str = "sdl";

    fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<()> {
        let (start, count) = (reader.place_if_on(), reader.remaining());
        reader.blob(Self::FIELD, start, count, Form::Bytes).map(|_| ())
    }

    fn from_json(json: Given<'_>) -> Result<Vec<u8>> {
        json.bytes()
    }

    fn sample(sampler: &mut Sampler) -> Vec<u8> {
        let times = if sampler.below(4) == 0 { 12 } else { 1 };
        let length = sampler.length(40);
        sampler.bytes(length * times)
    }

    fn walk<G: Guard>(reader: &mut Reader<'_>, _: &mut G) -> WalkResult {
        let left = reader.remaining();
        reader.take(left)?;
        Ok(())
    }
}

impl Payload for SharedPayload {
    const NAME: &'static str = "shared state";
    const FIELD: &'static str = "sharedState";

    fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<()> {
        SharedState::decode(reader, Self::FIELD).map(|_| ())
    }

    fn from_json(json: Given<'_>) -> Result<Vec<u8>> {
        if is_bytes(json) { json.bytes() } else { encoded(&SharedState::from_json(json)?) }
    }

    fn sample(sampler: &mut Sampler) -> Vec<u8> {
        encoded(&SharedState::sample(sampler)).unwrap_or_default()
    }

    fn walk<G: Guard>(reader: &mut Reader<'_>, guard: &mut G) -> WalkResult {
        SharedState::walk(reader, guard)
    }
}

/// Whether the JSON represents an unreadable payload: bytes, possibly with an opener's output.
fn is_bytes(json: Given<'_>) -> bool {
    json.get("$hex").is_some() || json.get("bytes").is_some() && json.get("class").is_none()
}
