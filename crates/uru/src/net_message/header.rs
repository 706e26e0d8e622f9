//! The header of all net messages.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Error, Field, Reader, Result, Sampler, Trace, Writer, wire_flags};

use crate::types::{UnifiedTime, Uuid};
use crate::walk::{walk_plain, walked_record};

wire_flags! {
    /// Which fields a header has, and how the message is routed.
    ///
    /// Stock clients always set `HasTimeSent` and `HasPlayerID`. They set `NeedsReliableSend` on
    /// everything except voice, filters, `plNetMsgPlayerPage` and an avatar's input state.
    pub struct NetFlags(u32) {
        /// A time follows.
        HasTimeSent = 0x1,
        /// The Plasma message has actual receivers.
        HasGameMsgRcvrs = 0x2,
        /// The sender requests a copy of the message.
        EchoBackToSender = 0x4,
        /// Unused.
        RequestP2P = 0x8,
        /// Unused. One server skips six bytes if it is set, which is wrong.
        AllowTimeOut = 0x10,
        /// Unused.
        IndirectMember = 0x20,
        /// Unused.
        PublicIPClient = 0x40,
        /// A context follows.
        HasContext = 0x80,
        /// Unused.
        AskVaultForGameState = 0x100,
        /// A transaction number follows.
        HasTransactionID = 0x200,
        /// This is the first state of the object.
        NewSDLState = 0x400,
        /// The sender is joining and requests the state of the age.
        InitialAgeStateRequest = 0x800,
        /// A player number follows.
        HasPlayerID = 0x1000,
        /// The message is only for players who care about the sender's regions.
        UseRelevanceRegions = 0x2000,
        /// An account UUID follows.
        HasAcctUUID = 0x4000,
        /// The message is also routed to receivers in other ages.
        InterAgeRouting = 0x8000,
        /// The protocol version follows.
        HasVersion = 0x1_0000,
        /// The message concerns the age rather than objects in it.
        IsSystemMessage = 0x2_0000,
        /// The message must be delivered reliably.
        NeedsReliableSend = 0x4_0000,
        /// The message is routed to all players; for administrators only.
        RouteToAllPlayers = 0x8_0000,
    }
}

/// The protocol version: `u8` major 12, `u8` minor 6. Other versions do not exist and are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NetVersion;

impl NetVersion {
    /// The major and the minor number.
    pub const NUMBERS: [u8; 2] = [12, 6];
}

impl<'d> Field<'d> for NetVersion {
    type Owned = Self;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u8 12, u8 6")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.record(name, |reader| {
            let at = reader.position() as u64;
            let found = [reader.u8("major")?, reader.u8("minor")?];
            if found == Self::NUMBERS {
                return Ok(Self);
            }
            let [major, minor] = found;
            Err(Error::malformed("version 12.6", format!("{major}.{minor}")).at(at))
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes(&Self::NUMBERS);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let found = [fields.value::<u8>("major")?, fields.value::<u8>("minor")?];
        fields.end()?;
        if found == Self::NUMBERS {
            return Ok(Self);
        }
        let [major, minor] = found;
        Err(Error::value("version 12.6", format!("{major}.{minor}")))
    }

    fn sample(_: &mut Sampler) -> Self {
        Self
    }

    fn into_owned(self) -> Self {
        self
    }
}

walk_plain! {
    NetFlags;
    NetVersion;
}

walked_record! {
    /// The header of all net messages, after the class index.
    ///
    /// | offset | size | field |
    /// | --- | --- | --- |
    /// | 0 | 2 | class index |
    /// | 2 | 4 | flags |
    /// | 6 | 2, if `HasVersion` | version |
    /// | | 8, if `HasTimeSent` | time |
    /// | | 4, if `HasContext` | context |
    /// | | 4, if `HasTransactionID` | transaction |
    /// | | 4, if `HasPlayerID` | player |
    /// | | 16, if `HasAcctUUID` | account |
    pub struct NetHeader {
        /// Which fields follow, and how the message is routed.
        flags "flags": NetFlags,
        /// The protocol version.
        version "version": NetVersion where flags.contains(NetFlags::HasVersion),
        /// When the message was sent. Clients synchronise their server clock with it, so servers
        /// insert their own time.
        time_sent "timeSent": UnifiedTime where flags.contains(NetFlags::HasTimeSent),
        /// Unused; forwarded unchanged.
        context "context": u32 where flags.contains(NetFlags::HasContext),
        /// Unused; forwarded unchanged.
        transaction_id "transactionId": u32
            where flags.contains(NetFlags::HasTransactionID),
        /// The sending player. Clients trust this number, so servers insert the one they know.
        player_id "playerId": u32 where flags.contains(NetFlags::HasPlayerID),
        /// The sender's account.
        account_uuid "accountUuid": Uuid where flags.contains(NetFlags::HasAcctUUID),
    }
}

impl NetHeader {
    /// A header as a server creates it: marked reliable, with a time and the flags in `more`.
    #[must_use]
    pub fn from_server(time_sent: UnifiedTime, more: NetFlags) -> Self {
        Self {
            flags: NetFlags::HasTimeSent | NetFlags::NeedsReliableSend | more,
            version: None,
            time_sent: Some(time_sent),
            context: None,
            transaction_id: None,
            player_id: None,
            account_uuid: None,
        }
    }

    /// A header as a client creates it: marked reliable, with a time, a player and the flags in
    /// `more`.
    #[must_use]
    pub fn from_client(time_sent: UnifiedTime, player_id: u32, more: NetFlags) -> Self {
        let header = Self::from_server(time_sent, NetFlags::HasPlayerID | more);
        Self { player_id: Some(player_id), ..header }
    }
}
