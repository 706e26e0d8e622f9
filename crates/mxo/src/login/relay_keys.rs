//! What a relay learns from a login with private keys, and what it replaces if the key is its own.
//!
//! | secret | encrypted with | opened with |
//! | --- | --- | --- |
//! | the key of the auth channel, in `AuthRequest` | the server key | the relay's [`LoginKeys`] |
//! | the user key, in `AuthReply` | the key of the auth channel | that key |
//! | the session key, in `CertChallenge` | the user key | that key |
//!
//! With the server's own key, nothing on the wire changes. A relay with its own key presents that key to
//! clients instead of the server's, and replaces everything that depends on it:
//!
//! | message | what is replaced |
//! | --- | --- |
//! | `GetPublicKeyRequest` | the key ID, so that the server sends its key if the relay lacks it |
//! | `GetPublicKeyReply` | the server's key, by the relay's |
//! | `AuthRequest` | the blob, encrypted for the server |
//! | `AuthReply` | the signature of the certificate, by the relay's, if the relay has opened the request |
//! | `CertConnectRequest` | the certificate, by the one that the server has signed |

use core::fmt;
use std::sync::Arc;

use worldwire_core::{Side, Writer};

use super::auth::{
    AuthClientMessage, AuthReply, AuthRequest, AuthServerMessage, GetPublicKeyReply,
    GetPublicKeyRequest, LoginSuccess,
};
use super::blob::{AuthSecret, MarginSecret};
use super::certificate::SignedCertificate;
use super::connection::{LoginConnection, LoginNews, frame_bytes, is_plain};
use super::margin::{CertConnectRequest, MarginClientMessage, MarginServerMessage};
use super::{LoginMessage, has_layout};
use crate::crypt::{BLOCK_BYTES, KeyUse, PrivateKey, PublicKey, Random, SessionKey};
use crate::file::PublicKeyFile;
use crate::frame::{Channel, MAX_RPC_BYTES};
use crate::types::Bytes16;

/// The keys with which a relay reads logins.
#[derive(Clone, Debug)]
pub enum LoginKeys {
    /// The server's own private key.
    Server(Box<PrivateKey>),
    /// The relay's own key, in place of the server's.
    Own(Box<OwnLoginKeys>),
}

/// A relay's own server key.
#[derive(Clone, Debug)]
pub struct OwnLoginKeys {
    /// The private key.
    pub key: PrivateKey,
    /// Its public half, signed by a key that clients trust.
    pub public_key: PublicKeyFile,
    /// The server's public key. Without it, the relay asks the server and trusts the reply.
    pub server: Option<PublicKeyFile>,
}

impl LoginKeys {
    /// The key that opens clients' requests.
    fn private(&self) -> &PrivateKey {
        match self {
            Self::Server(key) => key,
            Self::Own(own) => &own.key,
        }
    }
}

/// An account that has logged in through a relay.
#[derive(Clone, Debug)]
pub struct KnownAccount {
    /// The certificate, as the server has signed it.
    pub certificate: SignedCertificate,
    /// The private key that belongs to the certificate.
    pub key: PrivateKey,
}

impl PartialEq for KnownAccount {
    fn eq(&self, other: &Self) -> bool {
        // The private key belongs to the certificate.
        self.certificate == other.certificate
    }
}

/// Why a relay cannot open a secret of a login. The conversation continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretFault {
    /// The client encrypted its request with another server key.
    OtherServerKey,
    /// The server did not send its public key, with which the relay must encrypt the request.
    NoServerKey,
    /// The server's reply does not contain the user key that its certificate names.
    InvalidUserKey,
    /// The certificate's account has not logged in through this relay.
    UnknownAccount,
    /// The challenge is not encrypted with the account's key.
    InvalidChallenge,
}

impl fmt::Display for SecretFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherServerKey => {
                "the request is not encrypted with the given key; the client needs the pubkey.dat \
                 that belongs to that key"
            }
            Self::NoServerKey => {
                "the server did not send its public key; pass its pubkey.dat to the relay"
            }
            Self::InvalidUserKey => "the reply does not contain the key of its certificate",
            Self::UnknownAccount => {
                "the account has not logged in through this relay since it started"
            }
            Self::InvalidChallenge => "the challenge is not encrypted with the account's key",
        })
    }
}

/// The maximum number of requests decrypted per connection; clients send one.
const MAX_OPENED: usize = 4;
/// The maximum number of unread bytes while the relay waits for the account.
const MAX_WAITING_BYTES: usize = 64 << 10;

/// What a relay with keys knows about a login.
#[derive(Debug)]
pub(super) struct RelayKeys {
    keys: Arc<LoginKeys>,
    random: Random,
    /// The key ID that the client has asked for.
    asked: Option<u32>,
    /// The server's public key.
    server: Option<PublicKeyFile>,
    /// The last request's blob and contents.
    request: Option<(Vec<u8>, AuthSecret<'static>)>,
    opened: usize,
    /// The key of the auth channel.
    key: Option<SessionKey>,
    /// The challenge as it was sent.
    challenge: [u8; BLOCK_BYTES],
    account: AccountSearch,
}

/// The search for the account of a connection to the margin server, which another connection
/// reveals.
#[derive(Debug)]
enum AccountSearch {
    /// No certificate has arrived.
    Begin,
    /// The relay waits for the account of this user key.
    Wanted(Box<[u8; 96]>),
    Done(Option<Arc<KnownAccount>>),
}

impl LoginConnection {
    /// Lets a [relay](Self::relay) read logins with these keys.
    ///
    /// On the auth channel, it reports every [account](LoginNews::Account) that has logged in. On the
    /// margin channel, it needs the account to learn the session's key. So after the client's
    /// certificate has arrived, it reads nothing until [`set_account`](Self::set_account) is called:
    /// see [`wanted_account`](Self::wanted_account).
    #[must_use]
    pub fn with_keys(mut self, keys: Arc<LoginKeys>, random: Random) -> Self {
        if let Some(relay) = &mut self.sender.half.role.relay {
            relay.keys = Some(Box::new(RelayKeys::new(keys, random)));
        }
        self
    }

    /// Relays: the modulus of the user key whose account is needed to continue.
    #[must_use]
    pub fn wanted_account(&self) -> Option<&[u8; 96]> {
        match &self.sender.half.role.relay.as_ref()?.keys.as_ref()?.account {
            AccountSearch::Wanted(modulus) => Some(modulus),
            _ => None,
        }
    }

    /// Command: sets the wanted account, or continues without it. The session's key then stays unknown,
    /// unless it was given.
    pub fn set_account(&mut self, account: Option<Arc<KnownAccount>>) {
        if let Some(relay) = &mut self.sender.half.role.relay
            && let Some(keys) = &mut relay.keys
            && matches!(keys.account, AccountSearch::Wanted(_))
        {
            keys.account = AccountSearch::Done(account);
        }
    }
}

impl RelayKeys {
    fn new(keys: Arc<LoginKeys>, random: Random) -> Self {
        let server = match &*keys {
            LoginKeys::Server(_) => None,
            LoginKeys::Own(own) => own.server.clone(),
        };
        Self {
            keys,
            random,
            asked: None,
            server,
            request: None,
            opened: 0,
            key: None,
            challenge: [0; BLOCK_BYTES],
            account: AccountSearch::Begin,
        }
    }

    /// Whether the relay must wait for an account before it reads any further. `unread` contains
    /// the next bytes.
    pub(super) fn waits(&mut self, side: Side, unread: &[u8]) -> bool {
        if side == Side::Client && matches!(self.account, AccountSearch::Begin) {
            let Ok((head, length)) = frame_bytes(unread, MAX_RPC_BYTES) else { return false };
            self.account = match unread.get(head..length).and_then(certificate_of) {
                Some(certificate) => {
                    AccountSearch::Wanted(Box::new(certificate.certificate.modulus))
                }
                None => AccountSearch::Done(None),
            };
        }
        if unread.len() > MAX_WAITING_BYTES {
            self.stop_waiting();
        }
        matches!(self.account, AccountSearch::Wanted(_))
    }

    /// Continues without the account. Returns whether the relay was waiting for it.
    pub(super) fn stop_waiting(&mut self) -> bool {
        let waited = matches!(self.account, AccountSearch::Wanted(_));
        if waited {
            self.account = AccountSearch::Done(None);
        }
        waited
    }

    /// Records what a message reveals. Returns the session's key if the message contains it.
    pub(super) fn note(
        &mut self,
        from: Side,
        message: &LoginMessage<'_>,
        news: &mut Vec<LoginNews>,
    ) -> Option<SessionKey> {
        let learnt = match message {
            LoginMessage::AuthClient(AuthClientMessage::GetPublicKeyRequest(request)) => {
                self.asked = Some(request.key_id);
                Ok(None)
            }
            LoginMessage::AuthClient(AuthClientMessage::AuthRequest(request)) => {
                self.note_request(&request.blob.0).map(|()| None)
            }
            LoginMessage::AuthServer(message) => match &**message {
                AuthServerMessage::GetPublicKeyReply(reply) => {
                    self.server = self.server.take().or_else(|| key_of(reply));
                    Ok(None)
                }
                AuthServerMessage::AuthChallenge(sent) => {
                    self.challenge = sent.challenge;
                    Ok(None)
                }
                AuthServerMessage::AuthReply(AuthReply { success: Some(success), .. }) => {
                    self.account_of(success).map(|account| {
                        news.extend(account.map(LoginNews::Account));
                        None
                    })
                }
                AuthServerMessage::AuthReply(_) => Ok(None),
            },
            LoginMessage::MarginClient(message) => match (&**message, &self.account) {
                (MarginClientMessage::CertConnectRequest(_), AccountSearch::Done(None)) => {
                    Err(SecretFault::UnknownAccount)
                }
                _ => Ok(None),
            },
            LoginMessage::MarginServer(MarginServerMessage::CertChallenge(challenge)) => {
                self.session_key(&challenge.blob.0)
            }
            _ => Ok(None),
        };
        learnt.unwrap_or_else(|fault| {
            news.push(LoginNews::Unopened { side: from, fault });
            None
        })
    }

    /// Decrypts a request, which contains the key of the auth channel.
    fn note_request(&mut self, blob: &[u8]) -> Result<(), SecretFault> {
        self.open_request(blob);
        let (_, secret) = self.request.as_ref().ok_or(SecretFault::OtherServerKey)?;
        self.key = Some(SessionKey::new(&secret.key.0));
        match (&*self.keys, &self.server) {
            (LoginKeys::Own(_), None) => Err(SecretFault::NoServerKey),
            _ => Ok(()),
        }
    }

    fn open_request(&mut self, blob: &[u8]) {
        if self.request.as_ref().is_some_and(|(known, _)| known == blob) {
            return;
        }
        self.request = None;
        if self.opened < MAX_OPENED {
            self.opened += 1;
            let secret = AuthSecret::open(blob, self.keys.private(), &mut self.random).ok();
            self.request = secret.map(|secret| (blob.to_vec(), secret));
        }
    }

    /// The account in a reply; `None` if the request was not decrypted.
    fn account_of(
        &mut self,
        success: &LoginSuccess<'_>,
    ) -> Result<Option<Arc<KnownAccount>>, SecretFault> {
        // Rebuilding a key is slow, so it is done once.
        let Some(key) = self.key.take() else { return Ok(None) };
        let exponent = key.open_blocks(&self.challenge, &success.private_exponent.0);
        let exponent = exponent.map_err(|_| SecretFault::InvalidUserKey)?;
        let certificate = success.certificate.clone();
        let modulus = &certificate.certificate.modulus;
        let key = PrivateKey::from_exponent(KeyUse::User, modulus, &exponent);
        let key = key.map_err(|_| SecretFault::InvalidUserKey)?;
        Ok(Some(Arc::new(KnownAccount { certificate, key })))
    }

    /// The session's key in a challenge; `None` if the account is unknown.
    fn session_key(&mut self, blob: &[u8]) -> Result<Option<SessionKey>, SecretFault> {
        let AccountSearch::Done(Some(account)) = &self.account else { return Ok(None) };
        let secret = MarginSecret::open(blob, &account.key, &mut self.random);
        let secret = secret.map_err(|_| SecretFault::InvalidChallenge)?;
        Ok(Some(SessionKey::new(&secret.key.0)))
    }

    /// The replacement for a message, if the relay presents its own key to clients.
    pub(super) fn rewrite(&mut self, channel: Channel, from: Side, body: &[u8]) -> Option<Vec<u8>> {
        let keys = Arc::clone(&self.keys);
        let LoginKeys::Own(own) = &*keys else { return None };
        let opcode = *body.first()?;
        if !has_layout(channel, from, opcode) {
            return None;
        }
        let message = match LoginMessage::decode_strictly(body, channel, from).ok()? {
            LoginMessage::AuthClient(message) => {
                LoginMessage::AuthClient(self.rewrite_request(message)?)
            }
            LoginMessage::AuthServer(message) => {
                LoginMessage::AuthServer(Box::new(self.rewrite_reply(*message, own)?))
            }
            LoginMessage::MarginClient(message) => {
                let MarginClientMessage::CertConnectRequest(request) = *message else {
                    return None;
                };
                let restored = self.restored(&request, own)?;
                LoginMessage::MarginClient(Box::new(restored.into()))
            }
            _ => return None,
        };
        let mut writer = Writer::new();
        message.encode(&mut writer).ok()?;
        Some(writer.into_bytes())
    }

    fn rewrite_request<'a>(
        &mut self,
        message: AuthClientMessage<'a>,
    ) -> Option<AuthClientMessage<'a>> {
        match message {
            AuthClientMessage::GetPublicKeyRequest(request) => {
                let key_id = self.server.as_ref().map_or(0, |server| server.key_id);
                Some(GetPublicKeyRequest { key_id, ..request }.into())
            }
            AuthClientMessage::AuthRequest(request) => {
                self.open_request(&request.blob.0);
                let (server, (_, secret)) = self.server.as_ref().zip(self.request.as_ref())?;
                let key_id = server.key_id;
                let secret = AuthSecret { key_id, ..secret.clone() };
                let blob = secret.seal(&server.key().ok()?, &mut self.random).ok()?;
                Some(AuthRequest { key_id, blob: Bytes16(blob.into()), ..request }.into())
            }
            AuthClientMessage::AuthChallengeResponse(_) => None,
        }
    }

    fn rewrite_reply<'a>(
        &mut self,
        message: AuthServerMessage<'a>,
        own: &OwnLoginKeys,
    ) -> Option<AuthServerMessage<'a>> {
        match message {
            AuthServerMessage::GetPublicKeyReply(reply) if reply.status.is_success() => {
                let PublicKeyFile { key_id, modulus, exponent, signature } = &own.public_key;
                let sends = self.asked != Some(*key_id);
                let blob = |bytes: &[u8]| sends.then(|| Bytes16(bytes.to_vec().into()));
                let reply = GetPublicKeyReply {
                    key_id: *key_id,
                    exponent: if sends { *exponent } else { 0 },
                    modulus: blob(modulus),
                    signature: blob(signature),
                    ..reply
                };
                Some(reply.into())
            }
            // A client that has used the server's key gets the server's certificate.
            AuthServerMessage::AuthReply(AuthReply {
                status,
                reserved,
                success: Some(success),
            }) if self.request.is_some() => {
                let certificate = success.certificate.certificate.clone();
                let certificate = SignedCertificate::sign(certificate, &own.key, &mut self.random);
                let success = LoginSuccess { certificate: certificate.ok()?, ..success };
                Some(AuthReply { status, reserved, success: Some(success) }.into())
            }
            _ => None,
        }
    }

    /// The request with the certificate that the server has signed. A certificate that the relay
    /// has not signed is left unchanged, so that the server refuses it.
    fn restored(
        &self,
        request: &CertConnectRequest,
        own: &OwnLoginKeys,
    ) -> Option<CertConnectRequest> {
        let AccountSearch::Done(Some(account)) = &self.account else { return None };
        let (presented, signed) = (&request.certificate, &account.certificate);
        let is_same =
            presented.certificate == signed.certificate && presented.is_signed_by(own.key.public());
        is_same.then(|| CertConnectRequest { certificate: signed.clone() })
    }
}

/// The certificate, if the message is one that presents it.
fn certificate_of(body: &[u8]) -> Option<SignedCertificate> {
    if !is_plain(body) {
        return None;
    }
    match LoginMessage::decode_strictly(body, Channel::Margin, Side::Client).ok()? {
        LoginMessage::MarginClient(message) => match *message {
            MarginClientMessage::CertConnectRequest(request) => Some(request.certificate),
            _ => None,
        },
        _ => None,
    }
}

/// The server's key, if the reply contains a usable one.
fn key_of(reply: &GetPublicKeyReply<'_>) -> Option<PublicKeyFile> {
    let (modulus, signature) = reply.modulus.as_ref().zip(reply.signature.as_ref())?;
    let file = PublicKeyFile {
        key_id: reply.key_id,
        modulus: modulus.0.as_ref().try_into().ok()?,
        exponent: reply.exponent,
        signature: signature.0.as_ref().try_into().ok()?,
    };
    let key: Result<PublicKey, _> = file.key();
    key.is_ok().then_some(file)
}
