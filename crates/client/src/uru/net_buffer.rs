//! Net messages as a game connection carries them, and the Plasma messages inside.

use worldwire_core::{Error, Field as _, Limits, Reader};
use worldwire_uru::net_message::{NetMessage, received};
use worldwire_uru::plasma_message::PlasmaMessage;
use worldwire_uru::types::ClassIndex;

/// A net message as received, not yet decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetBuffer {
    /// The message's class.
    pub class: ClassIndex,
    /// The message's bytes, which begin with the class.
    pub bytes: Vec<u8>,
}

impl NetBuffer {
    /// Decodes the message.
    pub fn decode(&self) -> worldwire_core::Result<NetMessage<'_>> {
        received(self.class, &self.bytes, &LIMITS)
    }
}

static LIMITS: Limits = Limits::DEFAULT;

/// The descriptor of an avatar's position.
pub(super) const PHYSICAL: &str = "avatarPhysical";

/// Decodes the Plasma message in a stream.
pub(super) fn plasma_message(stream: &[u8]) -> worldwire_core::Result<PlasmaMessage<'_>> {
    PlasmaMessage::decode(&mut Reader::within(stream, &LIMITS), "payload").map_err(Error::closed)
}
