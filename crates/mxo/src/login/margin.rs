//! The margin channel.

use worldwire_core::{Rest, messages};

use super::auth::LoginStatus;
use super::certificate::SignedCertificate;
use super::load::LoadCharacterReply;
use crate::offset::offset_record;
use crate::types::{Array, Bytes16, Str};

offset_record! {
    /// Presents the certificate.
    pub struct CertConnectRequest after 1 {
        @ u16 "certificateOffset" of certificate;
        /// The certificate from the auth server.
        [at] certificate "certificate": SignedCertificate,
    }
}

offset_record! {
    /// Asks whether a name is free.
    pub struct ClaimCharacterNameRequest<'a> after 1 {
        @ u16 "handleOffset" of handle;
        /// The character's name in the game.
        [at] handle "handle": Str<'a>,
    }
}

offset_record! {
    /// Loads a character.
    pub struct LoadCharacterRequest<'a> after 1 {
        /// The character.
        character_id "characterId": u64,
        /// Zeros.
        reserved "reserved": [u8; 32],
        /// Digests of unknown files; in the only recordings, of the empty string.
        digests "digests": Array<[u8; 16], 9>,
        @ u16 "chatNameOffset" of chat_name;
        /// The name in the publisher's chat system, such as `SOE+MXO+World+Handle`; often empty.
        [at] chat_name "chatName": Str<'a>,
    }
}

offset_record! {
    /// Contains the session key.
    pub struct CertChallenge<'a> after 1 {
        @ u16 "blobOffset" of blob;
        /// A `MarginSecret`, encrypted with RSA-OAEP (SHA-1) and the user's key.
        [at] blob "blob": Bytes16<'a>,
    }
}

offset_record! {
    /// Whether a name is free.
    pub struct ClaimCharacterNameReply<'a> after 1 {
        @ u16 "handleOffset" of handle;
        /// Success, or why the name cannot be used.
        status "status": LoginStatus,
        /// The new character's ID; 0 after an error.
        character_id "characterId": u64,
        /// The name.
        [at] handle "handle": Str<'a>,
    }
}

messages! {
    /// Messages from a client to a margin server.
    pub enum MarginClientMessage<'a>: "margin", Client;
    reserved { 18 "RefreshSessionKeyRequest" }

    /// Presents the certificate. Not encrypted. The server answers with a `CertChallenge`.
    1 CertConnectRequest;

    /// Returns the challenge. Encrypted with the session key, as is everything from here on. The
    /// server answers with a `CertConnectReply`.
    3 CertChallengeResponse {
        challenge "challenge": [u8; 16],
    }

    /// Opens the session. The server answers with a `ConnectChallenge`.
    6 ConnectRequest {
        /// The version of the client.
        client_version "clientVersion": u32,
        /// The version of `client.dll`.
        dll_version "dllVersion": u32,
        /// Unverified: their meaning.
        unknown1 "unknown1": [u8; 9],
        /// A digest of unknown bytes; in the only recordings, of the empty string.
        digest "digest": [u8; 16],
        /// Unverified: its meaning; 0.
        unknown2 "unknown2": u8,
    }

    /// Answers the challenge. The server answers with a `ConnectReply`.
    8 ConnectChallengeResponse {
        /// A digest of the client's files and the challenge. Unverified: how it is calculated.
        digest "digest": [u8; 16],
    }

    /// Asks whether a name is free and reserves it. The server answers with
    /// `ClaimCharacterNameReply`.
    10 ClaimCharacterNameRequest<'a>;

    /// Creates a character with the name that was claimed. The server answers with
    /// `LoadCharacterReply`, as if the character had been loaded.
    12 CreateCharacterRequest<'a> {
        skin_tone "skinTone": u32,
        body "body": u32,
        /// Unverified: its meaning.
        unknown1 "unknown1": u32,
        hair "hair": u32,
        hair_color "hairColor": u32,
        tattoo "tattoo": u32,
        head "head": u32,
        facial_detail "facialDetail": u32,
        /// The hat's goobj. The other clothes are goobjs, too.
        hat "hat": u32,
        eyewear "eyewear": u32,
        shirt "shirt": u32,
        gloves "gloves": u32,
        outerwear "outerwear": u32,
        pants "pants": u32,
        /// Unverified: leggings.
        unknown2 "unknown2": u32,
        footwear "footwear": u32,
        profession "profession": u32,
        /// Unverified: the offsets of the three texts, and 0.
        offsets "offsets": Array<u16, 4>,
        first_name "firstName": Str<'a>,
        last_name "lastName": Str<'a>,
        /// The character's background.
        description "description": Str<'a>,
    }

    /// Deletes a character. The server answers with `DeleteCharacterReply`.
    13 DeleteCharacterRequest {
        /// Unverified: its meaning.
        unknown1 "unknown1": u16,
        character_id "characterId": u64,
    }

    /// Loads a character. The server answers with several `LoadCharacterReply` messages.
    15 LoadCharacterRequest<'a>;
}

impl CreateCharacterRequest<'_> {
    /// The offsets of the texts, for the field `offsets`.
    #[must_use]
    pub fn text_offsets(&self) -> Array<u16, 4> {
        /// Everything before the first text.
        const HEAD: usize = 77;
        let second = HEAD + self.first_name.wire_bytes();
        let third = second + self.last_name.wire_bytes();
        let offset = |offset: usize| u16::try_from(offset).unwrap_or(u16::MAX);
        Array([offset(HEAD), offset(second), offset(third), 0])
    }
}

messages! {
    /// Messages from a margin server.
    pub enum MarginServerMessage<'a>: "margin", Server;
    reserved {
        19 "RefreshSessionKeyReply"
        20 "ShuttingDown"
    }

    /// Contains the session key. Not encrypted. The client answers with a `CertChallengeResponse`.
    2 CertChallenge<'a>;

    /// The certificate is accepted. The client continues with `ConnectRequest`.
    4 CertConnectReply {
        /// 0.
        status "status": LoginStatus,
    }

    /// Asks for a digest of the client's files. The client answers with `ConnectChallengeResponse`.
    7 ConnectChallenge {
        challenge "challenge": [u8; 16],
        /// Unverified: its meaning; 0.
        unknown1 "unknown1": u16,
        /// Unverified: its meaning; 1.
        unknown2 "unknown2": u16,
    }

    /// Opens the session. Its ID goes into the hello of the game channel.
    9 ConnectReply {
        /// 0.
        status "status": LoginStatus,
        /// Unverified: its meaning; 0.
        unknown1 "unknown1": u32,
        session_id "sessionId": u32,
        /// Unverified: their meaning; 15, 3, 12, 7, 169.
        unknown2 "unknown2": Array<u16, 5>,
    }

    /// Whether a name is free. The name is then reserved for this connection.
    11 ClaimCharacterNameReply<'a>;

    /// Reports that a character was deleted, or why it was not.
    14 DeleteCharacterReply {
        character_id "characterId": u64,
        status "status": LoginStatus,
    }

    /// A part of a character's data.
    16 LoadCharacterReply<'a>;

    /// The server has received the hello of the game channel.
    17 EstablishUDPSession {
        /// 0.
        status "status": LoginStatus,
        /// Nothing; one server sends a 1.
        rest "rest": Rest<u8>,
    }
}
