//! The margin channel.

use worldwire_core::{messages, record};

use super::types::{BigU16, Bytes16};

record! {
    /// The data that the auth server certifies: the user, and the user's public key.
    pub struct Certificate {
        /// Unverified: its meaning; 1.
        unknown1 "unknown1": u8,
        /// The account.
        user_id "userId": u32,
        /// The account's name, padded with zeros.
        name "name": [u8; 33],
        /// Unverified: its meaning; 256.
        unknown2 "unknown2": u16,
        /// Unverified: its meaning; 0.
        unknown3 "unknown3": u32,
        /// When it expires, in seconds since 1970; ten minutes after it was created.
        expires "expires": u32,
        /// Zeros.
        reserved "reserved": [u8; 32],
        /// The public exponent of the user's key: 17.
        exponent "exponent": BigU16,
        /// The modulus of the user's key, 768 bits.
        modulus "modulus": [u8; 96],
        /// When it was created, in seconds since 1970.
        created "created": u32,
    }
}

messages! {
    /// Messages from a client to a margin server.
    pub enum MarginClientMessage: "margin", Client;
    reserved {
        6 "ConnectRequest"
        8 "ConnectChallengeResponse"
        10 "ClaimNameRequest"
        12 "CreateCharacterRequest"
        13 "DeleteCharacterRequest"
        15 "LoadCharacterRequest"
        18 "RefreshSessionKeyRequest"
    }

    /// Presents the certificate. Not encrypted. The server answers with a `CertChallenge`.
    1 CertConnectRequest {
        /// Unverified: its meaning; 3.
        version "version": u16,
        /// Unverified: its meaning; `36 01`.
        unknown "unknown": u16,
        /// The auth server's RSA signature over the MD5 of the certificate.
        signature "signature": [u8; 128],
        certificate "certificate": Certificate,
    }

    /// Returns the challenge. Encrypted with the session key. The server answers with a
    /// `CertConnectReply`.
    3 CertChallengeResponse {
        challenge "challenge": [u8; 16],
    }
}

messages! {
    /// Messages from a margin server.
    pub enum MarginServerMessage<'a>: "margin", Server;
    reserved {
        11 "ClaimNameReply"
        14 "DeleteCharacterReply"
        16 "LoadCharacterReply"
        19 "RefreshSessionKeyReply"
        20 "ShuttingDown"
    }

    /// Contains the session key. Not encrypted. The client answers with a `CertChallengeResponse`.
    2 CertChallenge<'a> {
        /// Unverified: its meaning; 3.
        version "version": u16,
        /// The session key and a challenge, encrypted with RSA-OAEP and the user's key.
        blob "blob": Bytes16<'a>,
    }

    /// The certificate is accepted. The client continues with `ConnectRequest` (6).
    4 CertConnectReply {
        /// 0.
        status "status": u32,
    }

    /// Asks for a digest of the client's files.
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
        status "status": u32,
        /// Unverified: its meaning; 0.
        unknown1 "unknown1": u32,
        session_id "sessionId": u32,
        /// Unverified: their meaning; `0f 00 03 00 0c 00 07 00 a9 00`.
        unknown2 "unknown2": [u8; 10],
    }

    /// The server has received the hello of the game channel.
    17 EstablishUDPSession {
        /// 0.
        status "status": u32,
    }
}
