//! The auth channel.

use worldwire_core::messages;

use super::types::Bytes16;

messages! {
    /// Messages from a client to the auth server.
    pub enum AuthClientMessage<'a>: "auth", Client;

    /// Asks for the server's public key. The server answers with `GetPublicKeyReply` (7).
    6 GetPublicKeyRequest {
        /// The client's version.
        client_version "clientVersion": u32,
        /// The client's version of the public key; 4 in the final client.
        rsa_version "rsaVersion": u32,
    }

    /// Names the account. The server answers with an `AuthChallenge`.
    8 AuthRequest<'a> {
        /// The version of the public key that encrypts the blob: 4.
        rsa_version "rsaVersion": u32,
        /// Unverified: its meaning.
        unknown1 "unknown1": u32,
        /// Unverified: their meaning.
        unknown2 "unknown2": [u8; 31],
        /// Session key, time and account name, encrypted with RSA-OAEP (SHA-1) and the server's
        /// 1024-bit key.
        blob "blob": Bytes16<'a>,
    }

    /// Proves the password. The server answers with `AuthReply` (11).
    10 AuthChallengeResponse<'a> {
        /// Unverified: its meaning.
        unknown "unknown": u16,
        /// A digest of the challenge, the password and more, encrypted with the session key, a zero
        /// initialisation vector and no padding.
        blob "blob": Bytes16<'a>,
    }
}

messages! {
    /// Messages from an auth server.
    pub enum AuthServerMessage: "auth", Server;
    reserved { 7 "GetPublicKeyReply" 11 "AuthReply" }

    /// The challenge that the client must decrypt.
    9 AuthChallenge {
        /// 16 random bytes, encrypted with the session key, a zero initialisation vector and no
        /// padding.
        challenge "challenge": [u8; 16],
    }
}
