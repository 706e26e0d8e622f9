//! Net groups, client identities and matrices.

use worldwire_core::{record, wire_flags};

use super::{Bool8, CountedString, Floats, Location, Uuid};

wire_flags! {
    /// The kind of a net group.
    pub struct NetGroupFlags(u8) {
        /// Its members never change.
        Constant = 1,
        /// It exists on one client only.
        Local = 2,
    }
}

record! {
    /// A group of objects with one owner (`plNetGroupId`), usually a page. The constant groups have
    /// the sequence numbers 0xff000001 to 0xff000005: unknown, local player, remote player, local
    /// physicals, remote physicals.
    pub struct NetGroupId {
        /// The page.
        location "location": Location,
        /// The kind of group.
        flags "groupFlags": NetGroupFlags,
    }
}

wire_flags! {
    /// Which fields a [`ClientGuid`] holds.
    pub struct ClientGuidFlags(u16) {
        /// The account.
        AccountUUID = 1,
        /// The player's KI number.
        PlayerID = 2,
        /// A player number that is valid for this session only.
        TempPlayerID = 4,
        /// The level of a customer service representative.
        CCRLevel = 8,
        /// Whether the login is protected.
        ProtectedLogin = 16,
        /// The build type of the client.
        BuildType = 32,
        /// The player's name.
        PlayerName = 64,
        /// The client's address.
        SrcAddr = 128,
        /// The client's port.
        SrcPort = 256,
        /// A reserved byte.
        Reserved = 512,
        /// The client's key.
        ClientKey = 1024,
    }
}

impl ClientGuidFlags {
    /// The fields that a server shows to other clients: player number, name and CCR level.
    pub const SHOWN: Self = Self(Self::PlayerID.0 | Self::PlayerName.0 | Self::CCRLevel.0);

    /// Whether any of these bits is set.
    #[must_use]
    pub const fn has(self, any: Self) -> bool {
        self.0 & any.0 != 0
    }
}

record! {
    /// The identity of a client (`plClientGuid`). The fields are sent in the order listed here, not
    /// in the order of their bits. A server never passes the account or the client key on to other
    /// clients.
    pub struct ClientGuid<'a> {
        /// Which fields follow.
        flags "flags": ClientGuidFlags,
        /// The account.
        account_uuid "accountUuid": Uuid where flags.has(ClientGuidFlags::AccountUUID),
        /// The player's KI number, sent once even if both bits that announce it are set.
        player_id "playerId": u32
            where flags.has(ClientGuidFlags::PlayerID | ClientGuidFlags::TempPlayerID),
        /// The player's name.
        player_name "playerName": CountedString<'a>
            where flags.has(ClientGuidFlags::PlayerName),
        /// The level of a customer service representative; 0 for ordinary players.
        ccr_level "ccrLevel": u8 where flags.has(ClientGuidFlags::CCRLevel),
        /// Whether the login is protected.
        protected_login "protectedLogin": Bool8
            where flags.has(ClientGuidFlags::ProtectedLogin),
        /// The build type of the client.
        build_type "buildType": u8 where flags.has(ClientGuidFlags::BuildType),
        /// The client's address.
        src_addr "srcAddr": u32 where flags.has(ClientGuidFlags::SrcAddr),
        /// The client's port.
        src_port "srcPort": u16 where flags.has(ClientGuidFlags::SrcPort),
        /// Reserved; one byte, although two servers read two.
        reserved "reserved": Bool8 where flags.has(ClientGuidFlags::Reserved),
        /// The client's key.
        client_key "clientKey": CountedString<'a>
            where flags.has(ClientGuidFlags::ClientKey),
    }
}

record! {
    /// A transformation (`hsMatrix44`): 16 floats, row by row, or nothing for the identity.
    pub struct Matrix44 {
        /// Whether the floats follow.
        has_data "hasData": Bool8,
        /// The rows.
        rows "rows": Floats<16> where has_data.is_true(),
    }
}
