//! Groups, clients and matrices.

use worldwire_core::{record, wire_flags};

use super::{Bool8, CountedString, Floats, Location, Uuid};

wire_flags! {
    /// What kind of net group it is.
    pub struct NetGroupFlags(u8) {
        /// Its members never change.
        Constant = 1,
        /// It belongs to one client only.
        Local = 2,
    }
}

record! {
    /// A group of objects that has one owner (`plNetGroupId`): mostly a page. The locations of the
    /// constant ones are 0xff000001 to 0xff000005: unknown, local player, remote player, local
    /// physicals, remote physicals.
    pub struct NetGroupId {
        /// The page.
        location "location": Location,
        /// What kind of group it is.
        flags "groupFlags": NetGroupFlags,
    }
}

wire_flags! {
    /// What a [`ClientGuid`] holds.
    pub struct ClientGuidFlags(u16) {
        /// The account.
        AccountUUID = 1,
        /// The player's number.
        PlayerID = 2,
        /// A number that counts only for this session.
        TempPlayerID = 4,
        /// The level of a customer service representative.
        CCRLevel = 8,
        /// Whether the login is protected.
        ProtectedLogin = 16,
        /// Who the client was built for.
        BuildType = 32,
        /// The player's name.
        PlayerName = 64,
        /// Where the client is.
        SrcAddr = 128,
        /// Its port.
        SrcPort = 256,
        /// A reserved byte.
        Reserved = 512,
        /// A key of the client.
        ClientKey = 1024,
    }
}

impl ClientGuidFlags {
    /// What a server tells clients of each other: number, name and level.
    pub const SHOWN: Self = Self(Self::PlayerID.0 | Self::PlayerName.0 | Self::CCRLevel.0);

    /// Whether any of these bits is set.
    #[must_use]
    pub const fn has(self, any: Self) -> bool {
        self.0 & any.0 != 0
    }
}

record! {
    /// Who a client is (`plClientGuid`). Fields stand in the order of this list, not in that of their
    /// bits. A server never passes account and key on to other clients.
    pub struct ClientGuid<'a> {
        /// Which fields follow.
        flags "flags": ClientGuidFlags,
        /// The account.
        account_uuid "accountUuid": Uuid where flags.has(ClientGuidFlags::AccountUUID),
        /// The player's number. One number, even if both bits that announce it are set.
        player_id "playerId": u32
            where flags.has(ClientGuidFlags::PlayerID | ClientGuidFlags::TempPlayerID),
        /// The player's name.
        player_name "playerName": CountedString<'a>
            where flags.has(ClientGuidFlags::PlayerName),
        /// The level of a customer service representative; 0 for players.
        ccr_level "ccrLevel": u8 where flags.has(ClientGuidFlags::CCRLevel),
        /// Whether the login is protected.
        protected_login "protectedLogin": Bool8
            where flags.has(ClientGuidFlags::ProtectedLogin),
        /// Who the client was built for.
        build_type "buildType": u8 where flags.has(ClientGuidFlags::BuildType),
        /// Where the client is.
        src_addr "srcAddr": u32 where flags.has(ClientGuidFlags::SrcAddr),
        /// Its port.
        src_port "srcPort": u16 where flags.has(ClientGuidFlags::SrcPort),
        /// Reserved; one byte, though two servers read two.
        reserved "reserved": Bool8 where flags.has(ClientGuidFlags::Reserved),
        /// A key of the client.
        client_key "clientKey": CountedString<'a>
            where flags.has(ClientGuidFlags::ClientKey),
    }
}

record! {
    /// A transformation (`hsMatrix44`): 16 numbers row by row, or none for the identity.
    pub struct Matrix44 {
        /// Whether the numbers follow.
        has_data "hasData": Bool8,
        /// The rows.
        rows "rows": Floats<16> where has_data.is_true(),
    }
}
