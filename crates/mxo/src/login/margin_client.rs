//! A client of a margin server, as a state machine without I/O.

use std::collections::VecDeque;

use md5::{Digest as _, Md5};
use worldwire_core::{Field as _, Messages as _};

use super::auth::LoginStatus;
use super::auth_client::{AuthClientConfig, EMPTY_MD5, LoginTicket};
use super::blob::MarginSecret;
use super::load::LoadCharacterReply;
use super::margin::{
    CertChallenge, CertChallengeResponse, CertConnectRequest, ClaimCharacterNameRequest,
    ConnectChallengeResponse, ConnectRequest, CreateCharacterRequest, DeleteCharacterRequest,
    LoadCharacterRequest, MarginClientMessage, MarginServerMessage,
};
use super::refusal::LoginRefusal;
use super::{LoginMessage, LoginReceived};
use crate::crypt::{Random, SessionKey};
use crate::types::{Array, Str};

/// What to do and what the server reports.
#[derive(Debug)]
pub enum MarginClientAction {
    /// Send this message.
    Send(MarginClientMessage<'static>),
    /// Encrypt everything from here on; see [`LoginSender::set_key`](super::LoginSender::set_key).
    SetKey(SessionKey),
    /// The session is open: characters can be created, deleted and loaded.
    Opened {
        /// The session's ID, for the hello on the game channel.
        session_id: u32,
        /// Its key.
        key: SessionKey,
    },
    /// The reply to [`MarginClient::claim`].
    Claimed {
        /// Success, or why the server refused.
        status: LoginStatus,
        /// The new character's ID.
        character_id: u64,
    },
    /// The reply to [`MarginClient::delete`].
    Deleted {
        /// Success, or why the server refused.
        status: LoginStatus,
        /// The character.
        character_id: u64,
    },
    /// A part of the character that is being loaded, or why it cannot be loaded.
    Part(Box<LoadCharacterReply<'static>>),
    /// The last part has arrived: send the hello on the game channel.
    Loaded,
    /// The server has received the hello.
    Established,
    /// The login has failed; close the connection.
    Refused(LoginRefusal),
}

#[derive(Debug)]
enum Step {
    Challenge,
    Accepted(SessionKey),
    Files(SessionKey),
    Session(SessionKey),
    Open,
    Closed,
}

/// The state machine. Feed it the server's messages, and carry out the actions that
/// [`poll`](Self::poll) returns.
#[derive(Debug)]
pub struct MarginClient {
    ticket: LoginTicket,
    random: Random,
    step: Step,
    actions: VecDeque<MarginClientAction>,
}

impl MarginClient {
    /// Begins with the certificate.
    #[must_use]
    pub fn new(ticket: LoginTicket, random: Random) -> Self {
        let request = CertConnectRequest { certificate: ticket.certificate.clone() };
        let actions = VecDeque::from([MarginClientAction::Send(request.into())]);
        Self { ticket, random, step: Step::Challenge, actions }
    }

    /// Input: a message from the server. Opcodes without a known layout are ignored.
    pub fn receive(&mut self, received: &LoginReceived<'_>) {
        if let Ok(LoginMessage::MarginServer(message)) = received.message() {
            self.handle(message);
        }
    }

    /// Input: a decoded message from the server.
    pub fn handle(&mut self, message: MarginServerMessage<'_>) {
        use MarginServerMessage as Message;
        let opcode = u8::try_from(message.number()).unwrap_or(0);
        let step = core::mem::replace(&mut self.step, Step::Closed);
        let outcome = match (step, message) {
            (Step::Challenge, Message::CertChallenge(sent)) => self.challenged(&sent),
            (Step::Accepted(key), Message::CertConnectReply(reply)) => {
                checked(reply.status).map(|()| {
                    self.send(ConnectRequest {
                        client_version: AuthClientConfig::CLIENT_VERSION,
                        dll_version: AuthClientConfig::CLIENT_VERSION,
                        unknown1: [0; 9],
                        digest: EMPTY_MD5,
                        unknown2: 0,
                    });
                    Step::Files(key)
                })
            }
            (Step::Files(key), Message::ConnectChallenge(sent)) => {
                // A headless client has no files; servers accept any digest.
                let digest = Md5::digest(sent.challenge).into();
                self.send(ConnectChallengeResponse { digest });
                Ok(Step::Session(key))
            }
            (Step::Session(key), Message::ConnectReply(reply)) => checked(reply.status).map(|()| {
                let session_id = reply.session_id;
                self.actions.push_back(MarginClientAction::Opened { session_id, key });
                Step::Open
            }),
            (Step::Open, message) => match self.news(message) {
                true => Ok(Step::Open),
                false => Err(LoginRefusal::OutOfOrder { opcode }),
            },
            (Step::Closed, _) => return,
            _ => Err(LoginRefusal::OutOfOrder { opcode }),
        };
        match outcome {
            Ok(step) => self.step = step,
            Err(refusal) => self.actions.push_back(MarginClientAction::Refused(refusal)),
        }
    }

    /// Whether there is something to do.
    #[must_use]
    pub fn has_action(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Output: what to do next.
    pub fn poll(&mut self) -> Option<MarginClientAction> {
        self.actions.pop_front()
    }

    /// Whether the session is open, so that the commands below can be used.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.step, Step::Open)
    }

    /// Command: reserves a name for a new character.
    pub fn claim(&mut self, handle: Str<'static>) {
        self.command(ClaimCharacterNameRequest { handle });
    }

    /// Command: creates a character with the reserved name. The server then loads the character.
    /// The offsets are filled in.
    pub fn create(&mut self, mut character: CreateCharacterRequest<'static>) {
        character.offsets = character.text_offsets();
        self.command(character);
    }

    /// Command: deletes a character.
    pub fn delete(&mut self, character_id: u64) {
        self.command(DeleteCharacterRequest { unknown1: 0, character_id });
    }

    /// Command: loads a character.
    pub fn load(&mut self, character_id: u64) {
        self.command(LoadCharacterRequest {
            character_id,
            reserved: [0; 32],
            digests: Array([EMPTY_MD5; 9]),
            chat_name: Str::new("").unwrap_or_default(),
        });
    }

    /// Queues a command. Does nothing before the session is open.
    fn command(&mut self, message: impl Into<MarginClientMessage<'static>>) {
        if self.is_open() {
            self.send(message);
        }
    }

    fn send(&mut self, message: impl Into<MarginClientMessage<'static>>) {
        self.actions.push_back(MarginClientAction::Send(message.into()));
    }

    fn challenged(&mut self, sent: &CertChallenge<'_>) -> Result<Step, LoginRefusal> {
        let secret = MarginSecret::open(&sent.blob.0, &self.ticket.key, &mut self.random);
        let secret = secret.map_err(|_| LoginRefusal::InvalidSecret)?;
        let key = SessionKey::new(&secret.key.0);
        self.actions.push_back(MarginClientAction::SetKey(key.clone()));
        self.send(CertChallengeResponse { challenge: secret.challenge });
        Ok(Step::Accepted(key))
    }

    /// Reports a message of an open session; false if it does not belong in one.
    fn news(&mut self, message: MarginServerMessage<'_>) -> bool {
        let action = match message {
            MarginServerMessage::ClaimCharacterNameReply(reply) => MarginClientAction::Claimed {
                status: reply.status,
                character_id: reply.character_id,
            },
            MarginServerMessage::DeleteCharacterReply(reply) => MarginClientAction::Deleted {
                status: reply.status,
                character_id: reply.character_id,
            },
            MarginServerMessage::LoadCharacterReply(reply) => {
                let is_last = reply.is_last != 0;
                let part = MarginClientAction::Part(Box::new(reply.into_owned()));
                self.actions.push_back(part);
                if !is_last {
                    return true;
                }
                MarginClientAction::Loaded
            }
            MarginServerMessage::EstablishUDPSession(_) => MarginClientAction::Established,
            _ => return false,
        };
        self.actions.push_back(action);
        true
    }
}

fn checked(status: LoginStatus) -> Result<(), LoginRefusal> {
    if status.is_success() { Ok(()) } else { Err(LoginRefusal::Status(status)) }
}
