//! Net messages inside `PropagateBuffer`, and what stands in them.

use worldwire_core::json::{FieldsOf, Given, Json};
use worldwire_core::opener::{Closer, Opener, Site};
use worldwire_core::{Field, Reader, Result, TreeBuilder, Writer};
use worldwire_uru::net_message::{NetMessage, checked_class};
use worldwire_uru::plasma_message::PlasmaMessage;
use worldwire_uru::types::ClassIndex;

/// Reads the net messages of game connections: `message` behind the bytes of a buffer.
///
/// A Plasma message inside needs no opener, unless it cannot be read: then the opener tells why.
#[derive(Clone, Copy, Debug)]
pub(super) struct NetMessages;

/// The name of what is read of a buffer.
const MESSAGE: &str = "message";

impl<'n> Opener<'n> for NetMessages {
    fn opens(&self, site: Site<'_>, _: &[u8]) -> bool {
        is_buffer(site) || is_payload(site)
    }

    fn open(&'n self, site: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()> {
        if is_payload(site) {
            return PlasmaMessage::decode(reader, MESSAGE).map(drop);
        }
        let buffer = reader.rest();
        let inner = buffer.first_chunk().map_or(0, |class| u16::from_le_bytes(*class));
        checked_class(ClassIndex(inner.into()), buffer).map_err(|error| error.inside(MESSAGE))?;
        NetMessage::decode(reader, MESSAGE).map(drop)
    }
}

impl Closer for NetMessages {
    fn close(&self, _: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
        let mut parts = FieldsOf::new(json)?;
        parts.take_optional("bytes");
        let message = parts.take_optional(MESSAGE);
        parts.end()?;
        let Some(message) = message else { return Ok(None) };
        let message = NetMessage::from_json(Given::closing(message, self))
            .map_err(|error| error.inside(MESSAGE))?;
        let mut writer = Writer::new();
        message.encode(&mut writer).map_err(|error| error.inside(MESSAGE))?;
        Ok(Some(writer.into_bytes()))
    }
}

/// Whether a field holds a net message.
fn is_buffer(site: Site<'_>) -> bool {
    site.field == "buffer"
        && site.message.name == "PropagateBuffer"
        && site.message.connection == "game"
}

/// Whether a field holds a Plasma message that could not be read.
fn is_payload(site: Site<'_>) -> bool {
    site.field == "payload" && site.message.connection == "NetMessage"
}
