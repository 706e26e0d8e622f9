//! Irregularities in net messages: messages that servers warn about, that clients drop, or that
//! real senders never send.
//!
//! This file inspects the parts that all net messages have in common. `content` inspects the fields
//! of each class, and `values` inspects every text, object and boolean, wherever it is. `frame`
//! inspects the messages that carry net messages.

mod content;
mod frame;
mod values;

use worldwire_core::{Classes, Limits, Side};

use super::{Rules, check};
use crate::inflate::Inflater;
use crate::net_message::{NetFlags, NetHeader, NetMessage, class_info, received};
use crate::types::ClassIndex;
pub use frame::{lint_connect, lint_frame};

/// Inspects the net message of a `PropagateBuffer` and returns one remark per irregularity.
/// Messages from current clients yield none; messages from a server yield remarks only where the
/// server is known to be wrong. A message that cannot be decoded yields one remark.
#[must_use]
pub fn lint(outer: ClassIndex, message: &[u8], sender: Side, limits: &Limits) -> Vec<String> {
    let mut lint = Lint { sender, remarks: Vec::new(), has_bare_nulls: false };
    match received(outer, message, limits) {
        Ok(decoded) => {
            lint.message(&decoded, limits);
            let rules = if sender == Side::Client { Rules::PLAYER } else { Rules::ADMIN };
            if let Err(refusal) = check(message, &rules, &mut Inflater::new(), limits) {
                lint.remark(refusal.to_string());
            }
            lint.values(message, limits);
        }
        Err(error) => lint.remark(error.to_string()),
    }
    lint.remarks
}

/// All header flags that have a name.
const KNOWN_FLAGS: u32 = 0xf_ffff;

/// Header flags that no sender sets.
const UNUSED: [(NetFlags, &str); 9] = [
    (NetFlags::RequestP2P, "RequestP2P"),
    (NetFlags::AllowTimeOut, "AllowTimeOut"),
    (NetFlags::IndirectMember, "IndirectMember"),
    (NetFlags::PublicIPClient, "PublicIPClient"),
    (NetFlags::HasContext, "HasContext"),
    (NetFlags::AskVaultForGameState, "AskVaultForGameState"),
    (NetFlags::HasTransactionID, "HasTransactionID"),
    (NetFlags::HasAcctUUID, "HasAcctUUID"),
    (NetFlags::HasVersion, "HasVersion"),
];

/// A header flag that only some classes have, and those classes.
type Reserved = (NetFlags, &'static str, fn(&NetMessage<'_>) -> bool);

/// Header flags that belong to certain classes.
const OF_CLASSES: [Reserved; 6] = [
    (NetFlags::HasGameMsgRcvrs, "HasGameMsgRcvrs", |message| is_game(message)),
    (NetFlags::EchoBackToSender, "EchoBackToSender", |message| {
        is_game(message) || is_state(message) || matches!(message, NetMessage::Voice(_))
    }),
    (NetFlags::NewSDLState, "NewSDLState", |message| is_state(message)),
    (NetFlags::UseRelevanceRegions, "UseRelevanceRegions", |message| {
        is_game(message) || is_state(message)
    }),
    (NetFlags::InterAgeRouting, "InterAgeRouting", |message| {
        matches!(message, NetMessage::GameMessageDirected(_))
    }),
    (NetFlags::RouteToAllPlayers, "RouteToAllPlayers", |message| {
        matches!(message, NetMessage::GameMessage(_))
    }),
];

fn is_game(message: &NetMessage<'_>) -> bool {
    matches!(
        message,
        NetMessage::GameMessage(_) | NetMessage::GameMessageDirected(_) | NetMessage::LoadClone(_)
    )
}

fn is_state(message: &NetMessage<'_>) -> bool {
    matches!(message, NetMessage::SdlState(_) | NetMessage::SdlStateBCast(_))
}

/// Whether all senders mark messages of this class as system messages.
fn is_system(message: &NetMessage<'_>) -> bool {
    matches!(
        message,
        NetMessage::PagingRoom(_)
            | NetMessage::GameStateRequest(_)
            | NetMessage::ObjStateRequest(_)
            | NetMessage::MembersListReq(_)
            | NetMessage::GroupOwner(_)
            | NetMessage::MembersList(_)
            | NetMessage::MemberUpdate(_)
            | NetMessage::InitialAgeStateSent(_)
    )
}

/// Whether clients may send messages of this class without marking them as reliable. For game
/// messages this depends on the payload.
fn may_be_lost(message: &NetMessage<'_>) -> bool {
    matches!(
        message,
        NetMessage::Voice(_)
            | NetMessage::ObjectUpdateFilter(_)
            | NetMessage::ListenListUpdate(_)
            | NetMessage::PlayerPage(_)
    ) || is_game(message)
}

struct Lint {
    sender: Side,
    remarks: Vec<String>,
    /// Whether a brain lacks booleans; if so, there is already a remark about that.
    has_bare_nulls: bool,
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

    fn is_client(&self) -> bool {
        self.sender == Side::Client
    }

    fn message(&mut self, message: &NetMessage<'_>, limits: &Limits) {
        if let Some(info) = u16::try_from(message.class()).ok().and_then(class_info) {
            if info.sender.is_some_and(|sender| sender != self.sender) {
                self.remark(format!("{}s do not send this class", self.sender));
            }
            self.remark_if(!info.is_used, "this class is unused");
        }
        if let Some(header) = message.header() {
            self.header(header);
            self.flags(header.flags, message);
        }
        self.content(message, limits);
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
        self.remark_if(self.is_client() && header.player_id.is_none(), "without a player");
        let to_all = header.flags.contains(NetFlags::RouteToAllPlayers);
        self.remark_if(
            self.is_client() && to_all,
            "the flag RouteToAllPlayers, reserved for administrators",
        );
        let both = to_all && header.flags.contains(NetFlags::InterAgeRouting);
        self.remark_if(both, "the flag InterAgeRouting together with RouteToAllPlayers");
        let account = !self.is_client() && header.account_uuid.is_some();
        self.remark_if(account, "an account UUID, which must not be shared");
    }

    /// Inspects the flags that depend on the class of the message.
    fn flags(&mut self, flags: NetFlags, message: &NetMessage<'_>) {
        for (flag, name, belongs) in OF_CLASSES {
            if flags.contains(flag) && !belongs(message) {
                self.remark(format!("the flag {name}, which this class does not use"));
            }
        }
        let asks = matches!(message, NetMessage::GameStateRequest(_));
        let initial = flags.contains(NetFlags::InitialAgeStateRequest);
        self.remark_if(
            initial && !asks,
            "the flag InitialAgeStateRequest, which this class does not use",
        );
        self.remark_if(asks && !initial, "without the flag InitialAgeStateRequest");
        let is_marked = flags.contains(NetFlags::IsSystemMessage);
        self.remark_if(is_system(message) && !is_marked, "without the flag IsSystemMessage");
        // One server sets the flag on the states that it broadcasts.
        let may_be_marked = is_system(message) || is_state(message) && !self.is_client();
        self.remark_if(
            is_marked && !may_be_marked,
            "the flag IsSystemMessage, which this class does not use",
        );
        // Not all servers set the flag on their own messages.
        let is_reliable = flags.contains(NetFlags::NeedsReliableSend);
        let needed = self.is_client() && !may_be_lost(message);
        self.remark_if(needed && !is_reliable, "without the flag NeedsReliableSend");
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
        let odd = ["clients do not send this class"];
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
