//! Irregularities in net messages: what servers warn about, what clients drop, and what real
//! senders never do.

use worldwire_core::{Classes, Error, Field, Limits, Reader, Side};

use super::{Reason, Rules, check};
use crate::inflate::Inflater;
use crate::net_message::{
    Compression, NetFlags, NetHeader, NetMessage, Payload, Stream, Voice, class_info, received,
};
use crate::plasma_message::{
    BroadcastFlags, ChatFlags, KiMsg, LoadCloneMsg, PlasmaMessage, ReplyType,
};
use crate::types::{ClassIndex, ClientGuid, ClientGuidFlags, SafeString, Uoid};
use crate::walk::Guard;

/// Inspects the net message of a `PropagateBuffer` and returns one remark per irregularity.
/// Messages of current clients and servers yield none. A message that cannot be decoded yields one
/// remark.
#[must_use]
pub fn lint(outer: ClassIndex, message: &[u8], sender: Side, limits: &Limits) -> Vec<String> {
    let mut lint = Lint { sender, remarks: Vec::new() };
    match received(outer, message, limits) {
        Ok(decoded) => {
            lint.message(&decoded, limits);
            let rules = if sender == Side::Client { Rules::PLAYER } else { Rules::ADMIN };
            if let Err(refusal) = check(message, &rules, &mut Inflater::new(), limits) {
                lint.remark(refusal.to_string());
            }
            lint.texts(message, limits);
        }
        Err(error) => lint.remark(error.to_string()),
    }
    lint.remarks
}

/// Header flags that nothing uses.
const UNUSED: [(NetFlags, &str); 5] = [
    (NetFlags::RequestP2P, "RequestP2P"),
    (NetFlags::AllowTimeOut, "AllowTimeOut"),
    (NetFlags::IndirectMember, "IndirectMember"),
    (NetFlags::PublicIPClient, "PublicIPClient"),
    (NetFlags::AskVaultForGameState, "AskVaultForGameState"),
];
/// All header flags that have a name.
const KNOWN_FLAGS: u32 = 0xf_ffff;
/// The broadcast flags that are repeated in the header flags.
const MIRRORED: [(BroadcastFlags, NetFlags, &str, &str); 3] = [
    (
        BroadcastFlags::NetUseRelevanceRegions,
        NetFlags::UseRelevanceRegions,
        "NetUseRelevanceRegions",
        "UseRelevanceRegions",
    ),
    (
        BroadcastFlags::NetAllowInterAge,
        NetFlags::InterAgeRouting,
        "NetAllowInterAge",
        "InterAgeRouting",
    ),
    (
        BroadcastFlags::CCRSendToAllPlayers,
        NetFlags::RouteToAllPlayers,
        "CCRSendToAllPlayers",
        "RouteToAllPlayers",
    ),
];

struct Lint {
    sender: Side,
    remarks: Vec<String>,
}

impl Lint {
    fn remark(&mut self, remark: impl Into<String>) {
        self.remarks.push(remark.into());
    }

    fn remark_if(&mut self, odd: bool, remark: &str) {
        if odd {
            self.remark(remark);
        }
    }

    fn message(&mut self, message: &NetMessage<'_>, limits: &Limits) {
        if let Some(info) = u16::try_from(message.class()).ok().and_then(class_info) {
            if info.sender.is_some_and(|sender| sender != self.sender) {
                self.remark(format!("a {} does not send this class", self.sender));
            }
            self.remark_if(!info.is_used, "this class is unused");
        }
        if let Some(header) = message.header() {
            self.header(header);
        }
        match message {
            NetMessage::Voice(voice) => self.voice(voice),
            NetMessage::GameMessage(game) => {
                self.game(&game.header, &game.stream, limits);
            }
            NetMessage::GameMessageDirected(directed) => {
                self.game(&directed.game.header, &directed.game.stream, limits);
                self.remark_if(directed.receivers.is_empty(), "directed message without players");
            }
            NetMessage::LoadClone(clone) => {
                let Some(payload) = self.game(&clone.header, &clone.stream, limits) else { return };
                let inner = match &payload {
                    PlasmaMessage::LoadCloneMsg(clone) => clone,
                    PlasmaMessage::LoadAvatarMsg(avatar) => &avatar.clone_msg,
                    _ => return,
                };
                self.clone(&clone.header, inner);
                let loading = inner.loading.is_true() == clone.is_loading.is_true();
                self.remark_if(!loading, "message and payload disagree about loading");
                let named = inner.clone.0.as_ref().is_none_or(|uoid| *uoid == clone.uoid);
                // The clones that servers create for joining clients are not named outside the
                // payload.
                let nameless = self.sender == Side::Server && clone.uoid.name.stored().is_empty();
                self.remark_if(!named && !nameless, "message and payload name different clones");
            }
            NetMessage::TestAndSet(test) => self.stream(&test.stream),
            NetMessage::SdlState(state) => self.stream(&state.stream),
            NetMessage::SdlStateBCast(state) => self.stream(&state.state.stream),
            NetMessage::MembersList(list) => {
                list.members.iter().for_each(|member| self.client(&member.client));
            }
            NetMessage::MemberUpdate(update) => self.client(&update.member.client),
            _ => {}
        }
    }

    /// Reports the first text that clients misread. They survive it, so it may be forwarded.
    fn texts(&mut self, message: &[u8], limits: &Limits) {
        let mut guard = Misread { inflater: Inflater::new(), read_as: String::new() };
        let walked = NetMessage::walk(&mut Reader::within(message, limits), &mut guard);
        if let Err(refusal) = walked
            && refusal.reason == Reason::Text
        {
            let (path, text) = (refusal.error().path_text(), guard.read_as);
            self.remark(format!("{path}: the first byte is 0x80 or higher; clients read {text:?}"));
        }
    }

    fn header(&mut self, header: &NetHeader) {
        let unknown = header.flags.0 & !KNOWN_FLAGS;
        if unknown != 0 {
            self.remark(format!("unknown flags 0x{unknown:x}"));
        }
        for (flag, name) in UNUSED {
            if header.flags.contains(flag) {
                self.remark(format!("the unused flag {name}"));
            }
        }
        self.remark_if(header.time_sent.is_none(), "without a time");
        let from_client = self.sender == Side::Client;
        self.remark_if(from_client && header.player_id.is_none(), "without a player");
        let to_all = header.flags.contains(NetFlags::RouteToAllPlayers);
        self.remark_if(
            from_client && to_all,
            "the flag RouteToAllPlayers, reserved for administrators",
        );
        let account = !from_client && header.account_uuid.is_some();
        self.remark_if(account, "an account UUID, which must not be shared");
    }

    fn stream<K>(&mut self, stream: &Stream<'_, K>) {
        let (length, count) = (stream.uncompressed_length() as usize, stream.as_bytes().len());
        let from_client = self.sender == Side::Client;
        match stream.compression() {
            Compression::None | Compression::Dont => {
                // Servers compress less, and write the size where clients write 0.
                let long = stream.compression() == Compression::None && count > 255;
                self.remark_if(from_client && long, "more than 255 bytes without compression");
                let odd = length != 0 && (length != count || from_client);
                self.remark_if(odd, "an uncompressed length although nothing is compressed");
            }
            Compression::Failed => {
                self.remark_if(length != count, "two different lengths for the same bytes");
                let short = "at most 255 bytes, but a failed compression";
                self.remark_if(count <= 255, short);
            }
            Compression::Zlib => {
                self.remark_if(count >= length, "compressed without saving space");
            }
            Compression(other) => self.remark(format!("unknown compression {other}")),
        }
    }

    /// Inspects a net message with a Plasma message and returns the latter.
    fn game<K: Payload>(
        &mut self,
        header: &NetHeader,
        stream: &Stream<'_, K>,
        limits: &Limits,
    ) -> Option<PlasmaMessage<'static>> {
        self.stream(stream);
        let real = header.flags.contains(NetFlags::HasGameMsgRcvrs);
        let dont = stream.compression() == Compression::Dont;
        self.remark_if(
            real && !dont,
            "the flag HasGameMsgRcvrs without compression Dont; clients send both",
        );
        self.remark_if(
            !real && dont,
            "compression Dont without the flag HasGameMsgRcvrs; clients send both",
        );
        let mut inflater = Inflater::new();
        let read = |payload: &[u8]| {
            let mut reader = Reader::within(payload, limits);
            let message = PlasmaMessage::decode(&mut reader, "payload").map_err(Error::closed)?;
            reader.end()?;
            Ok(message.into_owned())
        };
        // Undecodable payloads are refused by the safety check already.
        let message = stream.payload(&mut inflater, limits).and_then(read).ok()?;
        self.payload(header, &message);
        Some(message)
    }

    fn payload(&mut self, header: &NetHeader, message: &PlasmaMessage<'_>) {
        if let PlasmaMessage::Other(other) = message {
            self.remark(format!(
                "a payload of class 0x{:04x}, whose layout is unknown",
                other.class
            ));
            return;
        }
        if let Some(inner) = message.header() {
            let flags = inner.bcast_flags;
            for (bit, flag, name, mirror) in MIRRORED {
                match (flags.contains(bit), header.flags.contains(flag)) {
                    (true, false) => self.remark(format!("{name} without {mirror}")),
                    (false, true) => self.remark(format!("{mirror} without {name}")),
                    _ => {}
                }
            }
            let delivered = BroadcastFlags::NetPropagate.0 | BroadcastFlags::LocalPropagate.0;
            self.remark_if(
                flags.0 & delivered == 0,
                "neither NetPropagate nor LocalPropagate; clients drop it",
            );
        }
        match message {
            PlasmaMessage::KiMsg(chat) => self.chat(header, chat),
            PlasmaMessage::ServerReplyMsg(reply) => {
                self.remark_if(self.sender == Side::Client, "a server reply sent by a client");
                let odd = reply.reply_type == ReplyType::Uninit;
                self.remark_if(odd, "an uninitialised reply, which clients take as a grant");
            }
            _ => {}
        }
    }

    fn chat(&mut self, header: &NetHeader, chat: &KiMsg<'_>) {
        self.remark_if(!chat.text.is_canonical(), "text that is not encoded the way clients do");
        let admin = chat.flags.contains(ChatFlags::Admin) && self.sender == Side::Client;
        self.remark_if(admin, "chat marked as an administrator's");
        let other = header.player_id.is_some_and(|player| player != chat.player_id);
        self.remark_if(other, "chat in the name of another player");
    }

    fn clone(&mut self, header: &NetHeader, clone: &LoadCloneMsg<'_>) {
        let other = header.player_id.is_some_and(|player| player != clone.originating_player_id);
        self.remark_if(
            other && self.sender == Side::Client,
            "a clone of a player other than the sender",
        );
        self.remark_if(!clone.valid.is_true(), "an invalid clone");
    }

    fn client(&mut self, client: &ClientGuid<'_>) {
        let secret = ClientGuidFlags::AccountUUID | ClientGuidFlags::ClientKey;
        let shown = client.flags.has(secret);
        self.remark_if(shown, "a player's account or key, which must not be shared");
        let both = ClientGuidFlags::PlayerID | ClientGuidFlags::TempPlayerID;
        let both = client.flags.contains(both);
        self.remark_if(both, "a player number that is both permanent and temporary");
    }

    fn voice(&mut self, voice: &Voice<'_>) {
        let known = matches!(voice.voice_flags.0, 0 | 1 | 3 | 5);
        if !known {
            self.remark(format!("unknown voice flags {}", voice.voice_flags.0));
        }
        self.remark_if(voice.header.player_id.is_none(), "voice without a sender; clients drop it");
        if let Some(speex) = &voice.speex {
            let counted = speex.frames().count() == usize::from(voice.frame_count);
            self.remark_if(!counted, "a frame count that does not match the frames");
            self.remark_if(!speex.trailing().is_empty(), "bytes after the last frame");
        }
        if let Some(opus) = &voice.opus {
            let zero = opus.split().is_some_and(|(head, _)| head == 0);
            self.remark_if(!zero, "an Opus packet that does not begin with four zeros");
        }
    }
}

/// A guard that stops at the first text that clients misread without crashing.
struct Misread {
    inflater: Inflater,
    /// The text as clients read it.
    read_as: String,
}

impl Guard for Misread {
    fn text(&mut self, text: &SafeString<'_>) -> Result<(), Reason> {
        if !text.is_misread() || text.crashes_client() {
            return Ok(());
        }
        self.read_as = String::from_utf8_lossy(text.stored()).into_owned();
        Err(Reason::Text)
    }

    fn object(&mut self, uoid: &Uoid<'_>) -> Result<(), Reason> {
        self.text(&uoid.name)
    }

    fn inflater(&mut self) -> &mut Inflater {
        &mut self.inflater
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remarks on a client's message given in hex.
    fn remarks(hex: &str) -> Vec<String> {
        let bytes = worldwire_core::value::parse_hex(hex).unwrap();
        let class = u16::from_le_bytes(*bytes.first_chunk().unwrap());
        lint(ClassIndex(class.into()), &bytes, Side::Client, &Limits::DEFAULT)
    }

    #[test]
    fn client_messages_yield_no_remarks() {
        assert_eq!(remarks("ad020110060000f1536590d0030087d61200"), [""; 0]);
    }

    #[test]
    fn irregularities_are_reported() {
        // Unused flags, an unknown flag, no player.
        let odd = ["the unused flag RequestP2P", "without a player"];
        assert_eq!(remarks("ad020900060000f1536590d00300"), odd);
        let odd = ["unknown flags 0x80000000", "without a player"];
        assert_eq!(remarks("ad020100068000f1536590d00300"), odd);
        // A class that only servers send, and a flag that is unused.
        let odd = ["a client does not send this class"];
        assert_eq!(remarks("b8020110060000f1536590d0030087d6120000000000"), odd);
        // A lock request that ends within the timestamp.
        let odd = remarks("7d020110060000f153");
        let wanted = "plNetMsgTestAndSet: timeSent at byte 6: wanted 8 bytes, found 3";
        assert!(odd.len() == 1 && odd[0].contains("timeSent"), "{odd:?} {wanted}");
    }

    #[test]
    fn routing_and_payload_must_agree() {
        // An empty chat message between ages, without the routing flag in its header.
        let hex = "6b020110040000f1536590d0030087d612000000000000 28000000 \
                   6403 00 00000000 0000000000000000 48480000 00 00f0 87d61200 00f0 02000000 \
                   00000000 00000000 00";
        let odd = ["NetAllowInterAge without InterAgeRouting", "chat marked as an administrator's"];
        assert_eq!(remarks(hex), odd);
    }

    /// Texts whose first byte is 0x80 or higher: one that crashes clients, two that they misread.
    #[test]
    fn texts_that_clients_misread_are_reported() {
        let chat = |user: &str| {
            remarks(&format!(
                "6b020110040000f1536590d0030087d612000000000000 {:02x}000000 \
                 6403 00 00000000 0000000000000000 48080000 00 {user} 87d61200 00f0 00000000 \
                 00000000 00000000 00",
                0x26 + user.split_whitespace().collect::<String>().len() / 2,
            ))
        };
        assert_eq!(chat("03f0 9e9d9c"), [""; 0]);
        // Clients read "é=V" as "<V©".
        let read = "stream.payload.user: the first byte is 0x80 or higher; clients read";
        assert_eq!(chat("04f0 3c56c2a9"), [format!("{read} \"<V©\"")]);
        // "é" alone is ambiguous; it could also mean "<V".
        assert_eq!(chat("02f0 3c56"), [format!("{read} \"<V\"")]);
        let ends = chat("06f0 3c7b8b8d8a8c");
        assert!(ends.len() == 1 && ends[0].contains("text that the client can read"), "{ends:?}");
    }
}
