//! The auth channel.

use worldwire_core::messages;

use super::types::Bytes16;

messages! {
    /// What a client sends to the auth server.
    pub enum AuthClientMessage<'a>: "auth", Client;

    /// Asks for the server's public key. The server answers with `GetPublicKeyReply` (7).
    6 GetPublicKeyRequest {
        /// The version of the client.
        client_version "clientVersion": u32,
        /// The version of the public key that the client has; 4 is the one of the final client.
        rsa_version "rsaVersion": u32,
    }

    /// Names the account. The server answers with an `AuthChallenge`.
    8 AuthRequest<'a> {
        /// The version of the public key that the blob is encrypted with: 4.
        rsa_version "rsaVersion": u32,
        /// Unverified: its meaning.
        unknown1 "unknown1": u32,
        /// Unverified: their meaning.
        unknown2 "unknown2": [u8; 31],
        /// Session key, time and name of the account, encrypted with RSA-OAEP (SHA-1) and the
        /// server's key of 1024 bits.
        blob "blob": Bytes16<'a>,
    }

    /// Proves the password. The server answers with `AuthReply` (11).
    10 AuthChallengeResponse<'a> {
        /// Unverified: its meaning.
        unknown "unknown": u16,
        /// Digest of the challenge, password and more, encrypted with the session key, an initial
        /// vector of zeros and no padding.
        blob "blob": Bytes16<'a>,
    }
}

messages! {
    /// What an auth server sends.
    pub enum AuthServerMessage: "auth", Server;
    reserved { 7 "GetPublicKeyReply" 11 "AuthReply" }

    /// What the client has to decrypt.
    9 AuthChallenge {
        /// 16 random bytes, encrypted with the session key, an initial vector of zeros and no
        /// padding.
        challenge "challenge": [u8; 16],
    }
}
