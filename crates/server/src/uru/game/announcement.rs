//! Messages from operators to players, shown as an administrator's chat.

use std::time::{SystemTime, UNIX_EPOCH};

use worldwire_core::{Field as _, Result, Writer};
use worldwire_uru::age::Packet;
use worldwire_uru::net_message::{GameMessage, NetFlags, NetHeader, Stream};
use worldwire_uru::plasma_message::{
    BroadcastFlags, ChatFlags, KiCommand, KiMsg, MessageHeader, PlasmaMessage,
};
use worldwire_uru::types::{Double, Key, UnifiedTime};

/// The longest text of a message, in UTF-16 units.
pub(in crate::uru) const MAX_TEXT: usize = 1_000;
/// The longest name of a sender, in bytes.
const MAX_NAME: usize = 39;

/// Whether clients can show a message. Names outside ASCII crash some of them.
pub(in crate::uru) fn can_be_shown(sender: &str, text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let units = text.encode_utf16().count();
    (1..=MAX_NAME).contains(&sender.len())
        && sender.bytes().all(is_name)
        && (1..=MAX_TEXT).contains(&units)
        && !text.contains(char::is_control)
}

/// A chat message whose sender is in no age.
pub(super) fn announcement(sender: &str, text: &str) -> Result<Packet> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = u32::try_from(since.as_secs()).unwrap_or(u32::MAX);
    let time = UnifiedTime { seconds, microseconds: since.subsec_micros() };
    let chat = KiMsg {
        message: MessageHeader {
            sender: Key::NONE,
            receivers: Vec::new().into(),
            timestamp: Double(0.0),
            bcast_flags: BroadcastFlags::NetPropagate | BroadcastFlags::LocalPropagate,
        },
        command: KiCommand::HACKChatMsg,
        user: sender.into(),
        player_id: 0,
        text: text.into(),
        flags: ChatFlags(ChatFlags::Admin.0),
        delay: 0.0.into(),
        value: 0,
    };
    let mut writer = Writer::new();
    PlasmaMessage::from(chat).encode(&mut writer)?;
    Packet::of(GameMessage {
        header: NetHeader::from_client(time, 0, NetFlags(0)),
        stream: Stream::new(writer.into_bytes()),
        has_delivery_time: false.into(),
        delivery_time: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_clients_cannot_show_are_refused() {
        assert!(can_be_shown("Shard", "The city closes at ten. Sh\u{f3}rah!"));
        for (sender, text) in [
            ("", "x"),
            ("\u{c9}owyn", "x"),
            ("a\u{7f}", "x"),
            ("Shard", ""),
            ("Shard", "two\nlines"),
        ] {
            assert!(!can_be_shown(sender, text), "{sender:?} {text:?}");
        }
        assert!(!can_be_shown("Shard", &"x".repeat(MAX_TEXT + 1)));
        assert!(!can_be_shown(&"x".repeat(MAX_NAME + 1), "x"));
        assert!(announcement("Shard", &"\u{10437}".repeat(MAX_TEXT / 2)).is_ok());
    }
}
