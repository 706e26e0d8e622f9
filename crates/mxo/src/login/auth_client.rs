//! The login at an auth server, as a client's state machine without I/O.

use std::collections::VecDeque;

use worldwire_core::Messages as _;
use zeroize::Zeroizing;

use super::auth::{
    AuthChallengeResponse, AuthClientMessage, AuthReply, AuthRequest, AuthServerMessage,
    GetPublicKeyReply, GetPublicKeyRequest, LoginStatus, World,
};
use super::blob::{AuthProof, AuthSecret};
use super::certificate::SignedCertificate;
use super::characters::Character;
use super::refusal::LoginRefusal;
use super::{LoginMessage, LoginReceived};
use crate::crypt::{BLOCK_BYTES, KeyUse, PrivateKey, PublicKey, Random, SessionKey};
use crate::file::PublicKeyFile;
use crate::types::{Bytes16, Secret, Str};

/// The account that logs in and the server that the client trusts.
#[derive(Clone)]
pub struct AuthClientConfig {
    /// The account's name: at most 32 bytes.
    pub name: String,
    /// Its password.
    pub password: Zeroizing<String>,
    /// The version that the client claims. Default 467417, which is 7.5668.
    pub client_version: u32,
    /// The server's key from `pubkey.dat`; without it, the client asks for the key.
    pub public_key: Option<PublicKeyFile>,
    /// The signing key that must have signed the server's key. `None` accepts any key, and
    /// therefore any server.
    pub signing_key: Option<PublicKey>,
}

impl core::fmt::Debug for AuthClientConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AuthClientConfig").field("name", &self.name).finish_non_exhaustive()
    }
}

impl AuthClientConfig {
    /// The version of the last client, 7.5668.
    pub const CLIENT_VERSION: u32 = 467_417;

    /// Logs in with the key from `pubkey.dat`, and trusts any server that has this key.
    #[must_use]
    pub fn new(name: &str, password: &str, public_key: Option<PublicKeyFile>) -> Self {
        Self {
            name: name.to_owned(),
            password: Zeroizing::new(password.to_owned()),
            client_version: Self::CLIENT_VERSION,
            public_key,
            signing_key: None,
        }
    }
}

/// The result of a successful login: everything that the margin server requires.
#[derive(Clone, Debug)]
pub struct LoginTicket {
    /// The certificate, which expires after ten minutes.
    pub certificate: SignedCertificate,
    /// The user's key.
    pub key: PrivateKey,
    /// The account's characters.
    pub characters: Vec<Character<'static>>,
    /// The worlds.
    pub worlds: Vec<World>,
}

#[derive(Debug)]
enum Step {
    Key,
    Challenge(SessionKey),
    Reply(SessionKey, [u8; BLOCK_BYTES]),
    Done,
}

/// The state machine. Feed it the server's messages, and send what [`poll`](Self::poll) returns,
/// until there is an [`outcome`](Self::outcome).
#[derive(Debug)]
pub struct AuthClient {
    config: AuthClientConfig,
    random: Random,
    step: Step,
    messages: VecDeque<AuthClientMessage<'static>>,
    outcome: Option<Result<LoginTicket, LoginRefusal>>,
}

impl AuthClient {
    /// Begins with the request for the server's key and time.
    #[must_use]
    pub fn new(config: AuthClientConfig, random: Random) -> Self {
        let key_id = config.public_key.as_ref().map_or(0, |file| file.key_id);
        let request = GetPublicKeyRequest { client_version: config.client_version, key_id };
        let messages = VecDeque::from([request.into()]);
        Self { config, random, step: Step::Key, messages, outcome: None }
    }

    /// Input: a message from the server. Opcodes without a known layout are ignored.
    pub fn receive(&mut self, received: &LoginReceived<'_>) {
        if let Ok(LoginMessage::AuthServer(message)) = received.message() {
            self.handle(&message);
        }
    }

    /// Input: a decoded message from the server.
    pub fn handle(&mut self, message: &AuthServerMessage<'_>) {
        let outcome = match (message, &self.step) {
            (AuthServerMessage::GetPublicKeyReply(reply), Step::Key) => self.request(reply),
            (AuthServerMessage::AuthChallenge(sent), Step::Challenge(_)) => {
                self.prove(&sent.challenge)
            }
            // A refusal can come at any step.
            (AuthServerMessage::AuthReply(AuthReply { status, success: None, .. }), _) => {
                Err(LoginRefusal::Status(*status))
            }
            (AuthServerMessage::AuthReply(reply), Step::Reply(..)) => self.finish(reply),
            _ => {
                let opcode = u8::try_from(message.number()).unwrap_or(0);
                Err(LoginRefusal::OutOfOrder { opcode })
            }
        };
        if let Err(refusal) = outcome {
            self.end(Err(refusal));
        }
    }

    /// Whether there is a message to send.
    #[must_use]
    pub fn has_message(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Output: the next message to send.
    pub fn poll(&mut self) -> Option<AuthClientMessage<'static>> {
        self.messages.pop_front()
    }

    /// Output: how the login ended. Returned once.
    pub fn outcome(&mut self) -> Option<Result<LoginTicket, LoginRefusal>> {
        self.outcome.take()
    }

    fn end(&mut self, outcome: Result<LoginTicket, LoginRefusal>) {
        if !matches!(self.step, Step::Done) {
            self.step = Step::Done;
            self.outcome = Some(outcome);
        }
    }

    /// The server's key: the one that it sent, or the one that the client already had.
    fn server_key(&self, reply: &GetPublicKeyReply<'_>) -> Result<PublicKey, LoginRefusal> {
        let array = |blob: &Option<Bytes16<'_>>| blob.as_ref().map(|blob| blob.0.to_vec());
        let sent = array(&reply.modulus).zip(array(&reply.signature));
        let file = match (sent, &self.config.public_key) {
            (Some((modulus, signature)), _) => PublicKeyFile {
                key_id: reply.key_id,
                modulus: modulus.try_into().map_err(|_| LoginRefusal::InvalidSecret)?,
                exponent: reply.exponent,
                signature: signature.try_into().map_err(|_| LoginRefusal::UnsignedKey)?,
            },
            (None, Some(file)) => file.clone(),
            (None, None) => return Err(LoginRefusal::NoKey),
        };
        let is_trusted = self.config.signing_key.as_ref().is_none_or(|key| file.is_signed_by(key));
        match is_trusted {
            true => file.key().map_err(|_| LoginRefusal::InvalidSecret),
            false => Err(LoginRefusal::UnsignedKey),
        }
    }

    fn request(&mut self, reply: &GetPublicKeyReply<'_>) -> Result<(), LoginRefusal> {
        if reply.status != LoginStatus::Success {
            return Err(LoginRefusal::Status(reply.status));
        }
        let server = self.server_key(reply)?;
        let key: [u8; BLOCK_BYTES] = self.random.bytes();
        let secret = AuthSecret {
            reserved: 0,
            key_id: reply.key_id,
            key: Secret(key),
            time: reply.time,
            name: Str::new(&self.config.name).map_err(|_| LoginRefusal::Internal)?,
        };
        let blob = secret.seal(&server, &mut self.random).map_err(|_| LoginRefusal::Internal)?;
        self.messages.push_back(
            AuthRequest {
                key_id: reply.key_id,
                login_type: 1,
                unknown1: 0,
                key_config_md5: EMPTY_MD5,
                ui_config_md5: EMPTY_MD5,
                blob: Bytes16(blob.into()),
            }
            .into(),
        );
        self.step = Step::Challenge(SessionKey::new(&key));
        Ok(())
    }

    fn prove(&mut self, sealed: &[u8; BLOCK_BYTES]) -> Result<(), LoginRefusal> {
        let Step::Challenge(key) = &self.step else { return Ok(()) };
        let password = Str::new(&self.config.password).map_err(|_| LoginRefusal::Internal)?;
        let soe_password = Str::new("").map_err(|_| LoginRefusal::Internal)?;
        let proof = AuthProof::new(&key.open_block(sealed), password, soe_password);
        let blob = proof.seal(key).map_err(|_| LoginRefusal::Internal)?;
        let response = AuthChallengeResponse { blob_offset: 3, blob: Bytes16(blob.into()) };
        self.messages.push_back(response.into());
        self.step = Step::Reply(key.clone(), *sealed);
        Ok(())
    }

    fn finish(&mut self, reply: &AuthReply<'_>) -> Result<(), LoginRefusal> {
        let (Step::Reply(key, challenge), Some(success)) = (&self.step, &reply.success) else {
            return Ok(());
        };
        let exponent = key.open_blocks(challenge, &success.private_exponent.0);
        let exponent = exponent.map_err(|_| LoginRefusal::InvalidSecret)?;
        let modulus = &success.certificate.certificate.modulus;
        let key = PrivateKey::from_exponent(KeyUse::User, modulus, &exponent);
        let ticket = LoginTicket {
            certificate: success.certificate.clone(),
            key: key.map_err(|_| LoginRefusal::InvalidSecret)?,
            characters: success.characters.0.iter().cloned().map(Character::into_owned).collect(),
            worlds: success.worlds.0.clone(),
        };
        self.end(Ok(ticket));
        Ok(())
    }
}

/// The MD5 of the empty string.
pub(super) const EMPTY_MD5: [u8; 16] = [
    0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0x00, 0xb2, 0x04, 0xe9, 0x80, 0x09, 0x98, 0xec, 0xf8, 0x42, 0x7e,
];
