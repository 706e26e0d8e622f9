//! The auth channel.

use worldwire_core::{messages, wire_enum};

use super::certificate::SignedCertificate;
use super::characters::Characters;
use crate::offset::offset_record;
use crate::types::{Bytes16, List16, Padded, Str};

wire_enum! {
    /// The outcome of a request to the auth or margin server.
    pub enum LoginStatus(u32) {
        /// Success.
        Success = 0,
        /// Margin: the character is in use.
        CharacterInUse = 0x0b00_0025,
        /// The account has no room for another character.
        CharacterLimit = 0x1100_0000,
        /// Another character has this name.
        NameInUse = 0x1100_0001,
        /// The name or the password is wrong.
        WrongPassword = 0x1100_0002,
        /// The account is banned.
        Banned = 0x1100_0003,
        /// The account is already logged in.
        AccountInUse = 0x1100_0005,
        /// The character's name is not allowed.
        InvalidName = 0x1100_0006,
        /// The account is not active.
        Inactive = 0x1100_0007,
        /// The server's database is not available.
        NoDatabase = 0x1100_000f,
        /// The server does not have the key named in the client's `pubkey.dat`.
        UnknownKey = 0x1100_0010,
        /// The client's version is not supported.
        IncompatibleClient = 0x1100_0011,
        /// There is no such account.
        NoAccount = 0x1100_0012,
        /// There is no such world.
        InvalidWorld = 0x1100_0014,
    }
}

impl LoginStatus {
    /// Whether the request succeeded.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::Success
    }
}

wire_enum! {
    /// Whether a world accepts players.
    pub enum WorldStatus(u8) {
        /// Open.
        Open = 1,
    }
}

wire_enum! {
    /// The rules of a world.
    pub enum WorldType(u8) {
        /// Players do not fight each other.
        NoPvp = 1,
        /// Players fight each other.
        Pvp = 2,
    }
}

wire_enum! {
    /// How full a world is.
    pub enum WorldLoad(u8) {
        /// Low.
        Low = 0x31,
        /// Medium.
        Medium = 0x32,
        /// High.
        High = 0x33,
    }
}

worldwire_core::record! {
    /// A world that the client can choose.
    pub struct World {
        /// 0.
        reserved "reserved": u8,
        /// The world's number, which characters refer to.
        id "id": u16,
        /// The world's name. Clients derive the name of the margin server's host from it.
        name "name": Padded<20>,
        /// Whether it accepts players.
        status "status": WorldStatus,
        /// Its rules.
        type_ "type": WorldType,
        /// The version of the client that it requires.
        client_version "clientVersion": u32,
        /// Unverified: its meaning; 1.
        unknown1 "unknown1": u16,
        /// How full it is.
        load "load": WorldLoad,
    }
}

offset_record! {
    /// What a client receives after a successful login.
    pub struct LoginSuccess<'a> after 11 {
        @ u16 "certificateOffset" of certificate;
        @ u16 "privateExponentOffset" of private_exponent;
        /// Unverified: its meaning; 0x1f.
        unknown1 "unknown1": u32,
        @ u16 "charactersOffset" of characters;
        /// Unverified: its meaning; 0xd16e.
        unknown2 "unknown2": u32,
        @ u32 "worldsOffset" of worlds;
        @ u32 "nameOffset" of name;
        /// The account's characters, in all worlds.
        [at] characters "characters": Characters<'a>,
        /// The worlds.
        [at] worlds "worlds": List16<World>,
        /// The certificate that the client presents to the margin server.
        [at] certificate "certificate": SignedCertificate,
        /// The private exponent of the user's key: 96 bytes, encrypted with Twofish in CBC mode
        /// without padding. The key is the one from the request, and the initialisation vector is
        /// the challenge as it was sent.
        [at] private_exponent "privateExponent": Bytes16<'a>,
        /// The account's name.
        [at] name "name": Str<'a>,
    }
}

offset_record! {
    /// Contains the server's public key, unless the client has it.
    pub struct GetPublicKeyReply<'a> after 1 {
        /// 0.
        status "status": LoginStatus,
        /// The server's clock: seconds since 1970. The client returns it in its request.
        time "time": u32,
        /// The ID of the key.
        key_id "keyId": u32,
        @ u16 "modulusOffset" of modulus;
        /// The public exponent, 17; 0 without a key.
        exponent "exponent": u8,
        @ u16 "signatureOffset" of signature;
        /// The modulus, 128 bytes, big-endian.
        [opt] modulus "modulus": Bytes16<'a>,
        /// The signing key's signature, as in `pubkey.dat`: 256 bytes.
        [opt] signature "signature": Bytes16<'a>,
    }
}

messages! {
    /// Messages from a client to the auth server.
    pub enum AuthClientMessage<'a>: "auth", Client;
    reserved {
        12 "CreateCharacterRequest"
        14 "DeleteCharacterRequest"
        45 "RefreshCertificateRequest"
        53 "GetWorldListRequest"
    }

    /// Asks for the server's public key. The server answers with `GetPublicKeyReply`.
    6 GetPublicKeyRequest {
        /// The client's version: 7.5668 is 467417.
        client_version "clientVersion": u32,
        /// The ID of the key in the client's `pubkey.dat`: 4, or 0 for none.
        key_id "keyId": u32,
    }

    /// Names the account. The server answers with an `AuthChallenge`.
    8 AuthRequest<'a> {
        /// The ID of the key that encrypts the blob.
        key_id "keyId": u32,
        /// Unverified: its meaning; 1.
        login_type "loginType": u8,
        /// Unverified: its meaning; 0, perhaps the offset of the blob.
        unknown1 "unknown1": u16,
        /// A digest of the client's key bindings. Unverified.
        key_config_md5 "keyConfigMd5": [u8; 16],
        /// A digest of the client's interface settings. Unverified.
        ui_config_md5 "uiConfigMd5": [u8; 16],
        /// An `AuthSecret`, encrypted with RSA-OAEP (SHA-1) and the server's 1024-bit key.
        blob "blob": Bytes16<'a>,
    }

    /// Proves the password. The server answers with `AuthReply`.
    10 AuthChallengeResponse<'a> {
        /// The offset of the blob, 3; clients also send other values.
        blob_offset "blobOffset": u16,
        /// An `AuthProof`, encrypted with the key from the request, a zero initialisation vector and
        /// no padding.
        blob "blob": Bytes16<'a>,
    }
}

messages! {
    /// Messages from an auth server.
    pub enum AuthServerMessage<'a>: "auth", Server;
    reserved {
        13 "CreateCharacterReply"
        15 "DeleteCharacterReply"
        46 "RefreshCertificateReply"
        54 "GetWorldListReply"
    }

    /// The server's public key. The client continues with `AuthRequest`.
    7 GetPublicKeyReply<'a>;

    /// The challenge that the client must decrypt. The client answers with `AuthChallengeResponse`.
    9 AuthChallenge {
        /// 16 random bytes, encrypted with the key from the request, a zero initialisation vector
        /// and no padding.
        challenge "challenge": [u8; 16],
    }

    /// Ends the login. After an error, the server closes the connection.
    11 AuthReply<'a> {
        /// The outcome.
        status "status": LoginStatus,
        /// Zeros.
        reserved "reserved": [u8; 6],
        /// Everything that the client needs for the margin server.
        success "success": LoginSuccess<'a> where status.is_success(),
    }
}

impl AuthReply<'_> {
    /// The reply that refuses a login.
    #[must_use]
    pub const fn refusal(status: LoginStatus) -> AuthReply<'static> {
        AuthReply { status, reserved: [0; 6], success: None }
    }
}
