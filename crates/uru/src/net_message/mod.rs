//! Net messages (`plNetMessage`): the contents of `PropagateBuffer` on game connections.
//!
//! A net message consists of a `u16` class index, a [header](NetHeader) whose flags show which of
//! its fields are present, and the fields of its class. Several classes contain a [stream
//! block](Stream) with a [Plasma message](crate::plasma_message), an SDL state or a shared state.
//!
//! ```
//! use worldwire_core::Limits;
//! use worldwire_uru::net_message::{NetMessage, received};
//! use worldwire_uru::types::ClassIndex;
//!
//! let bytes = [0xb8, 2, 1, 0, 6, 0, 0, 0xf1, 0x53, 0x65, 0, 0, 0, 0, 42, 0, 0, 0];
//! let outer = ClassIndex::plNetMsgInitialAgeStateSent;
//! let NetMessage::InitialAgeStateSent(sent) = received(outer, &bytes, &Limits::DEFAULT)? else {
//!     panic!("another class")
//! };
//! assert_eq!(sent.state_count, 42);
//! assert_eq!(sent.header.time_sent.map(|time| time.seconds), Some(1_700_000_000));
//! # Ok::<(), worldwire_core::Error>(())
//! ```
//!
//! Servers use [`received`] on a `PropagateBuffer`. [`NetMessage`] by itself also decodes classes
//! without a layout, as bytes. Messages that are only forwarded are [patched](patch) in place.

mod class;
mod header;
pub mod patch;
mod payload;
mod shared_state;
mod stream;
mod voice;

use worldwire_core::{Classes, Error, Field, Limits, Reader, Result};

pub use class::*;
pub use header::{NetFlags, NetHeader, NetVersion};
pub use payload::{ClonePayload, GamePayload, SdlPayload, SharedPayload};
pub use shared_state::{SharedState, SharedVariable};
pub use stream::{Compression, Payload, Stream};
pub use voice::{OpusPacket, SpeexFrames, VoiceCodec, VoiceFlags};

use crate::types::ClassIndex;

/// Decodes the complete net message of a `PropagateBuffer`.
///
/// # Errors
/// `Malformed` if the class index in the message differs from the outer one, if the class is
/// abstract or has no known layout, or if bytes are left over; otherwise, any error in the fields.
pub fn received<'d>(
    outer: ClassIndex,
    buffer: &'d [u8],
    limits: &'d Limits,
) -> Result<NetMessage<'d>> {
    let class = checked_class(outer, buffer)?;
    let about = |error: Error| {
        let name = class_info(class).map_or("net message", |info| info.name);
        error.closed().about(name)
    };
    let mut reader = Reader::within(buffer, limits);
    let message = NetMessage::decode(&mut reader, "").map_err(about)?;
    reader.end().map_err(about)?;
    Ok(message)
}

/// The class of a net message in a `PropagateBuffer`, in which the outer and inner index must
/// agree.
pub fn checked_class(outer: ClassIndex, buffer: &[u8]) -> Result<u16> {
    let Some(class) = buffer.first_chunk().map(|class| u16::from_le_bytes(*class)) else {
        let error = Error::malformed("a class index", format!("{} bytes", buffer.len()));
        return Err(error.at(0).inside("class"));
    };
    let refused = |wanted, found| Err(Error::malformed(wanted, found).at(0).inside("class"));
    if u32::from(class) != outer.0 {
        let wanted = format!("class 0x{:04x}, as announced by the PropagateBuffer", outer.0);
        return refused(wanted, format!("0x{class:04x}"));
    }
    match class_info(class) {
        Some(info) if info.layout == NetClassLayout::Known => Ok(class),
        Some(info) => {
            let what = match info.layout {
                NetClassLayout::Abstract => "is abstract",
                _ => "has no known layout",
            };
            refused("a class that can be sent".into(), format!("{}, which {what}", info.name))
        }
        None => {
            let found = match NetMessage::NAMES.name(class.into()) {
                Some(name) => name.to_owned(),
                None => format!("class 0x{class:04x}"),
            };
            refused("the class of a net message".into(), found)
        }
    }
}
