//! The login of one client at an auth server, as a state machine without I/O.
//!
//! | step | client | server |
//! | --- | --- | --- |
//! | key | `GetPublicKeyRequest`, which may be missing | `GetPublicKeyReply` |
//! | name | `AuthRequest` | `AuthChallenge` |
//! | password | `AuthChallengeResponse` | `AuthReply`, after an [`AuthQuery`] |
//!
//! An unknown name also gets a challenge, to hide from attackers which accounts exist. For the same
//! reason, the code that manages the accounts must check a missing account's password against a
//! dummy hash and answer with the same status. It should also limit the attempts per address.

use std::collections::VecDeque;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::auth::{
    AuthChallenge, AuthChallengeResponse, AuthClientMessage, AuthReply, AuthRequest,
    AuthServerMessage, GetPublicKeyReply, GetPublicKeyRequest, LoginStatus, LoginSuccess, World,
};
use super::blob::{AuthProof, AuthSecret};
use super::certificate::{Certificate, SignedCertificate};
use super::characters::{Character, Characters};
use super::refusal::LoginRefusal;
use super::{LoginMessage, LoginReceived};
use crate::crypt::{BLOCK_BYTES, PrivateKey, Random, SessionKey};
use crate::file::PublicKeyFile;
use crate::types::{Bytes16, List16, Str};

/// The keys and rules of an auth server.
#[derive(Clone, Debug)]
pub struct AuthServerConfig {
    /// The server key.
    pub key: PrivateKey,
    /// The same key's signed public half, as in the clients' `pubkey.dat`.
    pub public_key: PublicKeyFile,
    /// Whether to send the key even to clients that have it. By default, it is sent only to clients
    /// that name another key ID.
    pub always_sends_key: bool,
    /// How long a certificate is valid, in seconds. Default 600.
    pub certificate_seconds: u32,
}

impl AuthServerConfig {
    /// The default rules.
    #[must_use]
    pub const fn new(key: PrivateKey, public_key: PublicKeyFile) -> Self {
        Self { key, public_key, always_sends_key: false, certificate_seconds: 600 }
    }
}

/// A question to the code that manages the accounts: whether this password is correct. Pass the
/// answer to [`AuthServer::answer`].
pub struct AuthQuery {
    /// The account's name, as the client spells it.
    pub name: String,
    /// The password.
    pub password: Zeroizing<String>,
    /// The password of the publisher's account; often the same as the first, or empty.
    pub soe_password: Zeroizing<String>,
}

impl core::fmt::Debug for AuthQuery {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AuthQuery").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An account whose password was correct.
#[derive(Clone, Debug)]
pub struct AuthAccount {
    /// Its number.
    pub user_id: u32,
    /// Its name.
    pub name: String,
    /// Its RSA key.
    pub key: Arc<PrivateKey>,
    /// When it was created, in seconds since 1970.
    pub created: u32,
    /// Its characters.
    pub characters: Vec<Character<'static>>,
    /// The worlds.
    pub worlds: Vec<World>,
}

/// What to do for a client.
#[derive(Debug)]
pub enum AuthAction {
    /// Send this message.
    Send(Box<AuthServerMessage<'static>>),
    /// Check a password, and [`answer`](AuthServer::answer).
    Query(AuthQuery),
    /// Close the connection once everything is sent. `None` after a successful login, when the
    /// client can also stay connected.
    Close(Option<LoginRefusal>),
}

#[derive(Debug)]
enum Step {
    /// Waits for a request.
    Request,
    /// Waits for the answer to the challenge.
    Proof { name: String, key: SessionKey, challenge: [u8; BLOCK_BYTES] },
    /// Waits for the answer to the query.
    Account { key: SessionKey, sealed_challenge: [u8; BLOCK_BYTES] },
    /// The client is logged in or refused.
    Done,
}

/// The state machine; see the module's documentation.
#[derive(Debug)]
pub struct AuthServer {
    config: Arc<AuthServerConfig>,
    random: Random,
    step: Step,
    actions: VecDeque<AuthAction>,
    client_version: Option<u32>,
    ignored: u64,
}

impl AuthServer {
    /// Creates the state machine for a client that has just connected.
    #[must_use]
    pub fn new(config: Arc<AuthServerConfig>, random: Random) -> Self {
        let (step, actions) = (Step::Request, VecDeque::new());
        Self { config, random, step, actions, client_version: None, ignored: 0 }
    }

    /// Input: a message from the client. `now` is in seconds since 1970. Opcodes without a known
    /// layout are ignored.
    pub fn receive(&mut self, received: &LoginReceived<'_>, now: u32) {
        match received.message() {
            Ok(LoginMessage::AuthClient(message)) => self.handle(&message, now),
            _ => self.ignored = self.ignored.saturating_add(1),
        }
    }

    /// Input: a decoded message from the client.
    pub fn handle(&mut self, message: &AuthClientMessage<'_>, now: u32) {
        let outcome = match (message, &self.step) {
            (_, Step::Done) => {
                self.ignored = self.ignored.saturating_add(1);
                return;
            }
            (_, Step::Account { .. }) => Err(out_of_order(message)),
            (AuthClientMessage::GetPublicKeyRequest(request), Step::Request) => {
                self.client_version = Some(request.client_version);
                self.offer_key(request, now);
                Ok(())
            }
            (AuthClientMessage::AuthRequest(request), Step::Request) => self.challenge(request),
            (AuthClientMessage::AuthChallengeResponse(response), Step::Proof { .. }) => {
                self.check(response)
            }
            _ => Err(out_of_order(message)),
        };
        if let Err((status, refusal)) = outcome {
            self.refuse(status, refusal);
        }
    }

    /// Input: the answer to the query. `Err` refuses the login.
    pub fn answer(&mut self, answer: Result<AuthAccount, LoginStatus>, now: u32) {
        let Step::Account { key, sealed_challenge } = &self.step else { return };
        let (key, sealed_challenge) = (key.clone(), *sealed_challenge);
        let account = match answer {
            Ok(account) => account,
            Err(status) => return self.refuse(status, LoginRefusal::Status(status)),
        };
        match self.success(account, &key, &sealed_challenge, now) {
            Some(success) => {
                let reply = AuthReply {
                    status: LoginStatus::Success,
                    reserved: [0; 6],
                    success: Some(success),
                };
                self.actions.push_back(AuthAction::Send(Box::new(reply.into())));
                self.actions.push_back(AuthAction::Close(None));
                self.step = Step::Done;
            }
            None => self.refuse(LoginStatus::NoDatabase, LoginRefusal::Internal),
        }
    }

    /// Output: what to do next.
    pub fn poll(&mut self) -> Option<AuthAction> {
        self.actions.pop_front()
    }

    /// The client's version, once the client has stated it.
    #[must_use]
    pub const fn client_version(&self) -> Option<u32> {
        self.client_version
    }

    /// The number of ignored messages: those with unknown opcodes, and those after the login.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    fn offer_key(&mut self, request: &GetPublicKeyRequest, now: u32) {
        let AuthServerConfig { public_key, always_sends_key, .. } = &*self.config;
        let sends = *always_sends_key || request.key_id != public_key.key_id;
        let blob = |bytes: &[u8]| sends.then(|| Bytes16(bytes.to_vec().into()));
        let reply = GetPublicKeyReply {
            status: LoginStatus::Success,
            time: now,
            key_id: public_key.key_id,
            exponent: if sends { public_key.exponent } else { 0 },
            modulus: blob(&public_key.modulus),
            signature: blob(&public_key.signature),
        };
        self.actions.push_back(AuthAction::Send(Box::new(reply.into())));
    }

    fn challenge(&mut self, request: &AuthRequest<'_>) -> Result<(), Refused> {
        let other_key = (LoginStatus::UnknownKey, LoginRefusal::OtherServerKey);
        let secret = AuthSecret::open(&request.blob.0, &self.config.key, &mut self.random);
        let secret = secret.map_err(|_| other_key)?;
        let key = SessionKey::new(&secret.key.0);
        let challenge = self.random.bytes();
        let sent = AuthChallenge { challenge: key.seal_block(&challenge) };
        self.actions.push_back(AuthAction::Send(Box::new(sent.into())));
        self.step = Step::Proof { name: secret.name.text(), key, challenge };
        Ok(())
    }

    fn check(&mut self, response: &AuthChallengeResponse<'_>) -> Result<(), Refused> {
        let Step::Proof { name, key, challenge } = &self.step else { return Ok(()) };
        let wrong = (LoginStatus::WrongPassword, LoginRefusal::WrongProof);
        let proof = AuthProof::open(&response.blob.0, key).map_err(|_| wrong)?;
        if !proof.answers(challenge) {
            return Err(wrong);
        }
        self.actions.push_back(AuthAction::Query(AuthQuery {
            name: name.clone(),
            password: Zeroizing::new(proof.password.0.text()),
            soe_password: Zeroizing::new(proof.soe_password.0.text()),
        }));
        let sealed_challenge = key.seal_block(challenge);
        self.step = Step::Account { key: key.clone(), sealed_challenge };
        Ok(())
    }

    fn success(
        &mut self,
        account: AuthAccount,
        key: &SessionKey,
        sealed_challenge: &[u8; BLOCK_BYTES],
        now: u32,
    ) -> Option<LoginSuccess<'static>> {
        let AuthAccount { user_id, name, key: user, created, characters, worlds } = account;
        let expires = now.saturating_add(self.config.certificate_seconds);
        let certificate = Certificate::new(user_id, &name, user.public(), created, expires).ok()?;
        let certificate =
            SignedCertificate::sign(certificate, &self.config.key, &mut self.random).ok()?;
        let private_exponent = key.seal_blocks(sealed_challenge, &user.exponent());
        Some(LoginSuccess {
            unknown1: 0x1f,
            unknown2: 0xd16e,
            characters: Characters(characters),
            worlds: List16(worlds),
            certificate,
            private_exponent: Bytes16(private_exponent.into()),
            name: Str::new(&name).ok()?,
        })
    }

    fn refuse(&mut self, status: LoginStatus, refusal: LoginRefusal) {
        let reply = AuthReply::refusal(status);
        self.actions.push_back(AuthAction::Send(Box::new(reply.into())));
        self.actions.push_back(AuthAction::Close(Some(refusal)));
        self.step = Step::Done;
    }
}

/// The status for the client and the reason for the log.
type Refused = (LoginStatus, LoginRefusal);

fn out_of_order(message: &AuthClientMessage<'_>) -> Refused {
    let number = worldwire_core::Messages::number(message);
    let opcode = u8::try_from(number).unwrap_or(0);
    (LoginStatus::IncompatibleClient, LoginRefusal::OutOfOrder { opcode })
}
