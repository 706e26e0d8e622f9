//! Patches net messages that are forwarded, without decoding them completely.
//!
//! A server forwards the bytes it received and changes only what it cannot trust: time and player
//! ([`restamp`]), and the flag that marks chat as coming from an administrator
//! ([`clear_chat_admin`]). The header's flags determine where its fields are.

use core::ops::Range;

use worldwire_core::{Error, Field, Limits, Reader, Record as _, Result};

use super::{Compression, GamePayload, NetFlags, Stream};
use crate::inflate::Inflater;
use crate::plasma_message::{BYTES_AFTER_KI_TEXT, ChatFlags, MessageHeader};
use crate::types::{SafeString, SafeWString, UnifiedTime, encoded};

/// The offsets of header fields in a net message, which starts with the class index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderLayout {
    /// The flags.
    pub flags: NetFlags,
    /// The offset of the time, 8 bytes.
    pub time_sent: Option<usize>,
    /// The offset of the player number, 4 bytes.
    pub player_id: Option<usize>,
    /// The offset of the player number, whether or not the number is present.
    player_place: usize,
    /// The end of the header, where the fields of the class begin.
    pub end: usize,
}

/// The size of class index and flags.
const FIXED: usize = 6;
const FLAGS: Range<usize> = 2..6;

impl HeaderLayout {
    /// The offsets for a header with these flags.
    #[must_use]
    pub const fn new(flags: NetFlags) -> Self {
        const fn size(flags: NetFlags, flag: NetFlags, bytes: usize) -> usize {
            if flags.contains(flag) { bytes } else { 0 }
        }
        const fn place(flags: NetFlags, flag: NetFlags, at: usize) -> Option<usize> {
            if flags.contains(flag) { Some(at) } else { None }
        }
        let time = FIXED + size(flags, NetFlags::HasVersion, 2);
        let player = time
            + size(flags, NetFlags::HasTimeSent, 8)
            + size(flags, NetFlags::HasContext, 4)
            + size(flags, NetFlags::HasTransactionID, 4);
        let end =
            player + size(flags, NetFlags::HasPlayerID, 4) + size(flags, NetFlags::HasAcctUUID, 16);
        Self {
            flags,
            time_sent: place(flags, NetFlags::HasTimeSent, time),
            player_id: place(flags, NetFlags::HasPlayerID, player),
            player_place: player,
            end,
        }
    }

    /// The offsets for this message.
    #[inline]
    pub fn of(message: &[u8]) -> Result<Self> {
        let flags = message.get(FLAGS).and_then(|flags| flags.first_chunk());
        let layout = Self::new(NetFlags(flags.map_or(0, |flags| u32::from_le_bytes(*flags))));
        if flags.is_none() || message.len() < layout.end {
            let wanted = format!("a header of {} bytes", layout.end);
            return Err(Error::malformed(wanted, message.len().to_string()).at(0));
        }
        Ok(layout)
    }
}

/// Inserts the server's time and the sender's player number into a message. All other bytes are
/// kept. If the message has no time, none is added. If it has no player number, one is added, which
/// shifts the bytes after it.
///
/// # Errors
/// `Malformed` if the header is incomplete; the message is then unchanged.
#[inline]
pub fn restamp(message: &mut Vec<u8>, time: UnifiedTime, player_id: u32) -> Result<()> {
    let layout = HeaderLayout::of(message)?;
    if let Some(at) = layout.time_sent {
        write(message, at, &time.seconds.to_le_bytes());
        write(message, at + 4, &time.microseconds.to_le_bytes());
    }
    match layout.player_id {
        Some(at) => write(message, at, &player_id.to_le_bytes()),
        None => {
            let at = layout.player_place.min(message.len());
            message.splice(at..at, player_id.to_le_bytes());
            set_flags(message, layout.flags | NetFlags::HasPlayerID);
        }
    }
    Ok(())
}

/// Clears header flags that do not announce a field, such as those for routing.
pub fn clear_routing(message: &mut [u8], flags: NetFlags) -> Result<()> {
    const WITH_FIELDS: u32 = NetFlags::HasVersion.0
        | NetFlags::HasTimeSent.0
        | NetFlags::HasContext.0
        | NetFlags::HasTransactionID.0
        | NetFlags::HasPlayerID.0
        | NetFlags::HasAcctUUID.0;
    let layout = HeaderLayout::of(message)?;
    set_flags(message, NetFlags(layout.flags.0 & !(flags.0 & !WITH_FIELDS)));
    Ok(())
}

/// Clears the flag that marks chat as coming from an administrator, in a net message whose fields
/// begin with a stream block (`plNetMsgGameMessage` or `plNetMsgGameMessageDirected`). Returns
/// whether it was set. Uncompressed payloads are changed in place, and deflated ones are
/// recompressed. Other messages are left alone.
///
/// # Errors
/// `Malformed` if the message cannot be decoded up to the flag, or a limit error; in both cases the
/// message is unchanged.
pub fn clear_chat_admin(
    message: &mut Vec<u8>,
    inflater: &mut Inflater,
    limits: &Limits,
) -> Result<bool> {
    const ADMIN: u32 = ChatFlags::Admin.0;
    change_payload(message, inflater, limits, |payload| {
        let Some(at) = chat_flags(payload, limits)? else { return Ok(None) };
        let flags = payload.get(at..).and_then(|flags| flags.first_chunk());
        let flags = flags.map_or(0, |flags| u32::from_le_bytes(*flags));
        Ok((flags & ADMIN != 0).then_some((at, flags & !ADMIN)))
    })
}

/// Changes a `u32` in the payload. `change` returns the number's offset and its new value, or
/// `None`.
fn change_payload(
    message: &mut Vec<u8>,
    inflater: &mut Inflater,
    limits: &Limits,
    change: impl FnOnce(&[u8]) -> Result<Option<(usize, u32)>>,
) -> Result<bool> {
    /// The size of the fields before the payload: uncompressed length, compression and count.
    const HEAD: usize = 9;
    let start = HeaderLayout::of(message)?.end;
    let mut reader = Reader::within(message.get(start..).unwrap_or_default(), limits);
    let stream = Stream::<GamePayload>::decode(&mut reader, "stream").map_err(Error::closed)?;
    let end = start + reader.position();
    let payload = stream.payload(inflater, limits)?;
    let Some((at, number)) = change(payload).map_err(Error::closed)? else { return Ok(false) };
    if stream.compression() != Compression::Zlib {
        write(message, start + HEAD + at, &number.to_le_bytes());
        return Ok(true);
    }
    let mut changed = payload.to_vec();
    write(&mut changed, at, &number.to_le_bytes());
    message.splice(start..end, encoded(&Stream::<GamePayload>::new(changed))?);
    Ok(true)
}

/// The offset of the flags in a chat payload; `None` for other payloads.
fn chat_flags(payload: &[u8], limits: &Limits) -> Result<Option<usize>> {
    const KI: [u8; 2] = [0x64, 3];
    if !payload.starts_with(&KI) {
        return Ok(None);
    }
    let mut reader = Reader::within(payload, limits);
    reader.u16("class")?;
    MessageHeader::decode_fields(&mut reader)?;
    reader.u8("command")?;
    SafeString::decode(&mut reader, "user")?;
    reader.u32("playerId")?;
    SafeWString::<BYTES_AFTER_KI_TEXT>::decode(&mut reader, "text")?;
    let at = reader.position();
    reader.u32("flags")?;
    Ok(Some(at))
}

#[inline]
fn set_flags(message: &mut [u8], flags: NetFlags) {
    write(message, FLAGS.start, &flags.0.to_le_bytes());
}

/// Overwrites bytes.
#[inline]
fn write(message: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = message.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net_message::{GameMessage, NetHeader, NetMessage};
    use crate::plasma_message::{BroadcastFlags, KiCommand, KiMsg, PlasmaMessage};
    use crate::types::{Double, Key};

    const TIME: UnifiedTime = UnifiedTime { seconds: 7, microseconds: 9 };

    fn bytes<'d>(value: &impl Field<'d>) -> Vec<u8> {
        encoded(value).unwrap()
    }

    fn chat(text: &str, flags: ChatFlags, header: NetHeader) -> NetMessage<'static> {
        let message = MessageHeader {
            sender: Key::NONE,
            receivers: vec![Key::NONE, Key::NONE].into(),
            timestamp: Double(0.0),
            bcast_flags: BroadcastFlags(0x848),
        };
        let chat = PlasmaMessage::from(KiMsg {
            message,
            command: KiCommand::HACKChatMsg,
            user: "Sedge".into(),
            player_id: 5,
            text: text.into(),
            flags,
            delay: 0.0.into(),
            value: 0,
        });
        GameMessage {
            header,
            stream: Stream::new(bytes(&chat)),
            has_delivery_time: false.into(),
            delivery_time: None,
        }
        .into()
    }

    #[test]
    fn the_admin_bit_is_cleared_in_place_and_in_deflated_payloads() {
        let (mut inflater, limits) = (Inflater::new(), &Limits::DEFAULT);
        for text in ["hi", "", &"shorah ".repeat(60)] {
            let header = NetHeader::from_client(TIME, 5, NetFlags(0));
            let admin = chat(text, ChatFlags(0x102), header.clone());
            let plain = chat(text, ChatFlags(0x100), header);
            let mut message = bytes(&admin);
            assert_eq!(clear_chat_admin(&mut message, &mut inflater, limits), Ok(true));
            assert_eq!(message, bytes(&plain));
            assert_eq!(clear_chat_admin(&mut message, &mut inflater, limits), Ok(false));
        }
    }

    #[test]
    fn a_message_without_a_player_gets_one() {
        let old = UnifiedTime { seconds: 1, microseconds: 1 };
        let mut message =
            bytes(&chat("hi", ChatFlags(0), NetHeader::from_server(old, NetFlags(0))));
        restamp(&mut message, TIME, 5).unwrap();
        let wanted = chat("hi", ChatFlags(0), NetHeader::from_client(TIME, 5, NetFlags(0)));
        assert_eq!(message, bytes(&wanted));
        let mut again = message.clone();
        restamp(&mut again, TIME, 5).unwrap();
        assert_eq!(again, message);
    }
}
