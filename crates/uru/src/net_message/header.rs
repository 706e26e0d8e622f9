//! What all net messages begin with.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Error, Field, Reader, Result, Sampler, Trace, Writer, wire_flags};

use crate::types::{UnifiedTime, Uuid};
use crate::walk::{walk_plain, walked_record};

wire_flags! {
    /// Which fields the header of a net message has, and how the message is to be routed.
    ///
    /// A stock client always sets `HasTimeSent` and `HasPlayerID`. It sets `NeedsReliableSend` on
    /// all but voice, filters, `plNetMsgPlayerPage` and the state of an avatar's keys.
    pub struct NetFlags(u32) {
        /// A time follows.
        HasTimeSent = 0x1,
        /// The Plasma message has real receivers.
        HasGameMsgRcvrs = 0x2,
        /// The sender wants its message back.
        EchoBackToSender = 0x4,
        /// Unused.
        RequestP2P = 0x8,
        /// Unused. One server skips six bytes for it, which is wrong.
        AllowTimeOut = 0x10,
        /// Unused.
        IndirectMember = 0x20,
        /// Unused.
        PublicIPClient = 0x40,
        /// A context follows.
        HasContext = 0x80,
        /// Unused.
        AskVaultForGameState = 0x100,
        /// The number of a transaction follows.
        HasTransactionID = 0x200,
        /// The state is the first of its object.
        NewSDLState = 0x400,
        /// The sender is joining, and wants the state of the age.
        InitialAgeStateRequest = 0x800,
        /// The number of a player follows.
        HasPlayerID = 0x1000,
        /// Only players who care about the sender's regions get it.
        UseRelevanceRegions = 0x2000,
        /// An account follows.
        HasAcctUUID = 0x4000,
        /// It also goes to receivers in other ages.
        InterAgeRouting = 0x8000,
        /// The version of the protocol follows.
        HasVersion = 0x1_0000,
        /// It is about the age rather than about objects in it.
        IsSystemMessage = 0x2_0000,
        /// It must arrive.
        NeedsReliableSend = 0x4_0000,
        /// It goes to all players: for administrators.
        RouteToAllPlayers = 0x8_0000,
    }
}

/// The version of the protocol: `u8` major 12, `u8` minor 6. There is no other, and another one is
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NetVersion;

impl NetVersion {
    /// Major and minor number.
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
    /// What all net messages begin with, behind their class index.
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
        /// Which fields follow, and how the message is to be routed.
        flags "flags": NetFlags,
        /// The version of the protocol.
        version "version": NetVersion where flags.contains(NetFlags::HasVersion),
        /// When it was sent. A client sets its clock of the server by it, so a server puts its own
        /// time there.
        time_sent "timeSent": UnifiedTime where flags.contains(NetFlags::HasTimeSent),
        /// Unused; kept when it is forwarded.
        context "context": u32 where flags.contains(NetFlags::HasContext),
        /// Unused; kept when it is forwarded.
        transaction_id "transactionId": u32
            where flags.contains(NetFlags::HasTransactionID),
        /// The player who sent it. All clients trust it, so a server puts the number of the player
        /// there that it knows.
        player_id "playerId": u32 where flags.contains(NetFlags::HasPlayerID),
        /// The account of the sender.
        account_uuid "accountUuid": Uuid where flags.contains(NetFlags::HasAcctUUID),
    }
}

impl NetHeader {
    /// A header with a time, as a server makes it; reliable, and whatever `more` says.
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

    /// A header with a time and a player, as a client makes it; reliable, and whatever `more` says.
    #[must_use]
    pub fn from_client(time_sent: UnifiedTime, player_id: u32, more: NetFlags) -> Self {
        let header = Self::from_server(time_sent, NetFlags::HasPlayerID | more);
        Self { player_id: Some(player_id), ..header }
    }
}
