//! A margin server's side of one client's connection, as a state machine without I/O.
//!
//! | step | client | server |
//! | --- | --- | --- |
//! | certificate | `CertConnectRequest` | `CertChallenge`, after [`MarginQuery::Account`]; then everything is encrypted |
//! | challenge | `CertChallengeResponse` | `CertConnectReply` |
//! | files | `ConnectRequest` | `ConnectChallenge` |
//! | session | `ConnectChallengeResponse`, whatever its digest | `ConnectReply` |
//! | characters | claim a name, create, delete, load | replies, after a query for each |
//! | game | the hello on the game channel | `EstablishUDPSession`: call [`established`](MarginServer::established) |
//!
//! Any other message closes the connection, as does any message while a query is open.
//! The game channel uses the session's key and ID.

use std::collections::VecDeque;
use std::sync::Arc;

use worldwire_core::{Messages as _, Rest};

use super::auth::LoginStatus;
use super::background::Background;
use super::blob::MarginSecret;
use super::certificate::Certificate;
use super::load::{
    Ability, AccessNode, Contact, Hardline, InventoryItem, LoadCharacterReply, LoadData, LoadKind,
    MessageOfTheDay,
};
use super::margin::{
    CertChallenge, CertConnectReply, CertConnectRequest, ClaimCharacterNameReply,
    ClaimCharacterNameRequest, ConnectChallenge, ConnectReply, CreateCharacterRequest,
    DeleteCharacterReply, EstablishUDPSession, MarginClientMessage, MarginServerMessage,
};
use super::refusal::LoginRefusal;
use super::{LoginMessage, LoginReceived};
use crate::crypt::{BLOCK_BYTES, EXPONENT, KeyUse, PublicKey, Random, SessionKey};
use crate::types::{Array, Bytes16, Remaining, Secret, Str};

/// The rules of a margin server.
#[derive(Clone, Debug)]
pub struct MarginServerConfig {
    /// The public half of the key that signs certificates.
    pub key: PublicKey,
    /// Shown to everyone who loads a character.
    pub message_of_the_day: Option<String>,
}

/// The maximum length of a character's name.
pub const MAX_HANDLE: usize = 31;

/// Whether a character can have this name: 1 to 31 letters, digits and underscores, beginning with a
/// letter.
#[must_use]
pub fn is_handle(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.len() <= MAX_HANDLE
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(is_part)
}

/// A question to the code that manages accounts and characters. Pass the answer to
/// [`MarginServer::answer`].
#[derive(Clone, Debug)]
pub enum MarginQuery {
    /// Whether an account exists and may enter: [`MarginAnswer::Account`].
    Account {
        /// Its number.
        user_id: u32,
        /// Its name.
        name: String,
    },
    /// Reserve a name, regardless of case: [`MarginAnswer::Claimed`].
    Claim {
        /// The name, which follows the rules of [`is_handle`].
        handle: String,
    },
    /// Store a new character: [`MarginAnswer::Loaded`].
    Create {
        /// The ID that was assigned when the name was reserved.
        character_id: u64,
        /// The name.
        handle: String,
        /// Appearance, clothes, texts.
        character: Box<CreateCharacterRequest<'static>>,
    },
    /// Delete a character, which must be the account's: [`MarginAnswer::Deleted`].
    Delete {
        /// The character.
        character_id: u64,
    },
    /// Load a character, which must be the account's: [`MarginAnswer::Loaded`].
    Load {
        /// The character.
        character_id: u64,
    },
}

/// The answer to a query.
#[derive(Clone, Debug)]
pub enum MarginAnswer {
    /// Whether the account may enter.
    Account(bool),
    /// The new character's ID, or why the name cannot be used.
    Claimed(Result<u64, LoginStatus>),
    /// Success, or why the character was not deleted.
    Deleted(LoginStatus),
    /// The character, or why it cannot be created or loaded.
    Loaded(Result<Box<CharacterData>, LoginStatus>),
}

/// Everything that a client receives about its character.
#[derive(Clone, Debug)]
pub struct CharacterData {
    /// Appearance, names, values. For a new character, this is sent without the appearance.
    pub background: Background,
    /// What the character carries.
    pub inventory: Vec<InventoryItem>,
    /// The abilities that are loaded; at least "Awakened", 0x80000800 plus the level.
    pub loaded_abilities: Vec<Ability>,
    /// The abilities that the character knows; at least "Awakened".
    pub known_abilities: Vec<Ability>,
    /// The hardlines that the character knows.
    pub hardlines: Vec<Hardline>,
    /// The access nodes that the character knows.
    pub access_nodes: Vec<AccessNode>,
    /// The code recipes that the character knows.
    pub code_recipes: Vec<u32>,
    /// The character's contacts.
    pub contacts: Vec<Contact>,
}

/// What to do for a client.
#[derive(Debug)]
pub enum MarginAction {
    /// Send this message.
    Send(MarginServerMessage<'static>),
    /// Encrypt everything from here on; see [`LoginSender::set_key`](super::LoginSender::set_key).
    SetKey(SessionKey),
    /// Ask the code that manages accounts and characters, and [`answer`](MarginServer::answer).
    Query(MarginQuery),
    /// The client may send a hello with this session on the game channel, once it has loaded a
    /// character.
    Opened {
        /// The session's ID.
        session_id: u32,
        /// Its key.
        key: SessionKey,
    },
    /// Close the connection once everything is sent.
    Close(LoginRefusal),
}

#[derive(Debug)]
enum Step {
    /// Waits for the certificate.
    Certificate,
    /// Waits for the answer to the account query.
    Account(Box<Certificate>),
    /// Waits for the client to return the challenge.
    Challenge { key: SessionKey, challenge: [u8; BLOCK_BYTES] },
    /// Waits for the client's versions.
    Connect(SessionKey),
    /// Waits for the digest of its files.
    Files(SessionKey),
    /// The session is open.
    Open,
    /// The session is open, and a query about a character is pending.
    Asked(Asked),
    /// The connection must be closed.
    Closed,
}

#[derive(Clone, Debug)]
enum Asked {
    Claim(String),
    Create(u64),
    Delete(u64),
    Load(u64),
}

/// The state machine; see the module's documentation.
#[derive(Debug)]
pub struct MarginServer {
    config: Arc<MarginServerConfig>,
    random: Random,
    step: Step,
    actions: VecDeque<MarginAction>,
    user_id: Option<u32>,
    /// A reserved name whose character has not been created yet.
    claim: Option<(u64, String)>,
    ignored: u64,
}

impl MarginServer {
    /// Creates the state machine for a client that has just connected.
    #[must_use]
    pub fn new(config: Arc<MarginServerConfig>, random: Random) -> Self {
        let (step, actions) = (Step::Certificate, VecDeque::new());
        Self { config, random, step, actions, user_id: None, claim: None, ignored: 0 }
    }

    /// Input: a message from the client. `now` is in seconds since 1970. Opcodes without a known
    /// layout are ignored.
    pub fn receive(&mut self, received: &LoginReceived<'_>, now: u32) {
        match received.message() {
            Ok(LoginMessage::MarginClient(message)) => self.handle(*message, now),
            _ => self.ignored = self.ignored.saturating_add(1),
        }
    }

    /// Input: a decoded message from the client.
    pub fn handle(&mut self, message: MarginClientMessage<'_>, now: u32) {
        use MarginClientMessage as Message;
        let opcode = u8::try_from(message.number()).unwrap_or(0);
        let step = core::mem::replace(&mut self.step, Step::Closed);
        let outcome = match (step, message) {
            (Step::Certificate, Message::CertConnectRequest(request)) => {
                self.certificate(request, now)
            }
            (Step::Challenge { key, challenge }, Message::CertChallengeResponse(response)) => {
                let is_right: bool = ctutils::CtEq::ct_eq(&challenge, &response.challenge).into();
                match is_right {
                    true => {
                        self.send(CertConnectReply { status: LoginStatus::Success });
                        Ok(Step::Connect(key))
                    }
                    false => Err(LoginRefusal::WrongChallenge),
                }
            }
            (Step::Connect(key), Message::ConnectRequest(_)) => {
                let challenge = self.random.bytes();
                self.send(ConnectChallenge { challenge, unknown1: 0, unknown2: 1 });
                Ok(Step::Files(key))
            }
            (Step::Files(key), Message::ConnectChallengeResponse(_)) => {
                self.open(key);
                Ok(Step::Open)
            }
            (Step::Open, Message::ClaimCharacterNameRequest(request)) => Ok(self.claim(&request)),
            (Step::Open, Message::CreateCharacterRequest(request)) => {
                Ok(self.create(worldwire_core::Field::into_owned(request)))
            }
            (Step::Open, Message::DeleteCharacterRequest(request)) => {
                let character_id = request.character_id;
                let query = MarginQuery::Delete { character_id };
                Ok(self.ask(query, Asked::Delete(character_id)))
            }
            (Step::Open, Message::LoadCharacterRequest(request)) => {
                let character_id = request.character_id;
                let query = MarginQuery::Load { character_id };
                Ok(self.ask(query, Asked::Load(character_id)))
            }
            (Step::Closed, _) => return,
            _ => Err(LoginRefusal::OutOfOrder { opcode }),
        };
        self.proceed(outcome);
    }

    /// Input: the answer to the open query; any other is ignored.
    pub fn answer(&mut self, answer: MarginAnswer, now: u32) {
        let step = core::mem::replace(&mut self.step, Step::Closed);
        let outcome = match (step, answer) {
            (Step::Account(certificate), MarginAnswer::Account(true)) => {
                self.challenge(&certificate)
            }
            (Step::Account(_), MarginAnswer::Account(false)) => {
                Err(LoginRefusal::Status(LoginStatus::NoAccount))
            }
            (Step::Asked(Asked::Claim(handle)), MarginAnswer::Claimed(claimed)) => {
                self.claimed(&handle, claimed)
            }
            (Step::Asked(Asked::Delete(character_id)), MarginAnswer::Deleted(status)) => {
                self.send(DeleteCharacterReply { character_id, status });
                Ok(Step::Open)
            }
            (Step::Asked(Asked::Load(id)), MarginAnswer::Loaded(loaded)) => {
                self.loaded(id, loaded, false, now)
            }
            (Step::Asked(Asked::Create(id)), MarginAnswer::Loaded(loaded)) => {
                self.loaded(id, loaded, true, now)
            }
            (step, _) => Ok(step),
        };
        self.proceed(outcome);
    }

    /// Input: the hello of this session has arrived on the game channel.
    pub fn established(&mut self) {
        if matches!(self.step, Step::Open | Step::Asked(_)) {
            let rest = Rest(Vec::new());
            self.send(EstablishUDPSession { status: LoginStatus::Success, rest });
        }
    }

    /// Output: what to do next.
    pub fn poll(&mut self) -> Option<MarginAction> {
        self.actions.pop_front()
    }

    /// The account, once its certificate is accepted.
    #[must_use]
    pub const fn user_id(&self) -> Option<u32> {
        self.user_id
    }

    /// A reserved name whose character was not created. Release it when the connection has ended.
    pub fn take_claim(&mut self) -> Option<String> {
        self.claim.take().map(|(_, handle)| handle)
    }

    /// The number of messages with unknown opcodes, which were ignored.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    fn proceed(&mut self, outcome: Result<Step, LoginRefusal>) {
        match outcome {
            Ok(step) => self.step = step,
            Err(refusal) => self.actions.push_back(MarginAction::Close(refusal)),
        }
    }

    fn send(&mut self, message: impl Into<MarginServerMessage<'static>>) {
        self.actions.push_back(MarginAction::Send(message.into()));
    }

    fn ask(&mut self, query: MarginQuery, asked: Asked) -> Step {
        self.actions.push_back(MarginAction::Query(query));
        Step::Asked(asked)
    }

    fn certificate(&mut self, request: CertConnectRequest, now: u32) -> Result<Step, LoginRefusal> {
        if !request.certificate.is_signed_by(&self.config.key) {
            return Err(LoginRefusal::UnsignedCertificate);
        }
        let certificate = request.certificate.certificate;
        if certificate.expires < now {
            return Err(LoginRefusal::Expired { at: certificate.expires });
        }
        let (user_id, name) = (certificate.user_id, certificate.name.text());
        self.actions.push_back(MarginAction::Query(MarginQuery::Account { user_id, name }));
        Ok(Step::Account(Box::new(certificate)))
    }

    fn challenge(&mut self, certificate: &Certificate) -> Result<Step, LoginRefusal> {
        let user = PublicKey::new(KeyUse::User, &certificate.modulus);
        let user = user.ok().filter(|_| certificate.exponent.0 == EXPONENT);
        let user = user.ok_or(LoginRefusal::InvalidUserKey)?;
        let (key, challenge): ([u8; BLOCK_BYTES], _) = (self.random.bytes(), self.random.bytes());
        let secret = MarginSecret { reserved: 0, key: Secret(key), challenge };
        let blob = secret.seal(&user, &mut self.random).map_err(|_| LoginRefusal::Internal)?;
        self.send(CertChallenge { blob: Bytes16(blob.into()) });
        let key = SessionKey::new(&key);
        self.actions.push_back(MarginAction::SetKey(key.clone()));
        self.user_id = Some(certificate.user_id);
        Ok(Step::Challenge { key, challenge })
    }

    fn open(&mut self, key: SessionKey) {
        let session_id = u32::from_le_bytes(self.random.bytes());
        self.send(ConnectReply {
            status: LoginStatus::Success,
            unknown1: 0,
            session_id,
            unknown2: Array([15, 3, 12, 7, 169]),
        });
        self.actions.push_back(MarginAction::Opened { session_id, key });
    }

    fn claim(&mut self, request: &ClaimCharacterNameRequest<'_>) -> Step {
        let handle = request.handle.text();
        if is_handle(&handle) {
            let query = MarginQuery::Claim { handle: handle.clone() };
            return self.ask(query, Asked::Claim(handle));
        }
        self.send(ClaimCharacterNameReply {
            status: LoginStatus::InvalidName,
            character_id: 0,
            handle: worldwire_core::Field::into_owned(request.handle.clone()),
        });
        Step::Open
    }

    fn claimed(
        &mut self,
        handle: &str,
        claimed: Result<u64, LoginStatus>,
    ) -> Result<Step, LoginRefusal> {
        let (status, character_id) = match claimed {
            Ok(id) => (LoginStatus::Success, id),
            Err(status) => (status, 0),
        };
        if status.is_success() {
            self.claim = Some((character_id, handle.to_owned()));
        }
        let handle = Str::new(handle).map_err(|_| LoginRefusal::Internal)?;
        self.send(ClaimCharacterNameReply { status, character_id, handle });
        Ok(Step::Open)
    }

    fn create(&mut self, request: CreateCharacterRequest<'static>) -> Step {
        let Some((character_id, handle)) = self.claim.clone() else {
            self.send(LoadCharacterReply::refusal(LoginStatus::InvalidName));
            return Step::Open;
        };
        let character = Box::new(request);
        let query = MarginQuery::Create { character_id, handle, character };
        self.ask(query, Asked::Create(character_id))
    }

    fn loaded(
        &mut self,
        character_id: u64,
        loaded: Result<Box<CharacterData>, LoginStatus>,
        is_new: bool,
        now: u32,
    ) -> Result<Step, LoginRefusal> {
        let mut data = match loaded {
            Ok(data) => *data,
            Err(status) => {
                self.send(LoadCharacterReply::refusal(status));
                return Ok(Step::Open);
            }
        };
        if is_new {
            self.claim = None;
            data.background.appearance = None;
        }
        let parts = parts(data, self.config.message_of_the_day.as_deref(), now)?;
        let last = parts.len().saturating_sub(1);
        // The low half of the ID.
        let [a, b, c, d, ..] = character_id.to_le_bytes();
        for (index, (kind, data)) in parts.into_iter().enumerate() {
            let is_last = index == last;
            self.send(LoadCharacterReply {
                status: LoginStatus::Success,
                character_id: u32::from_le_bytes([a, b, c, d]),
                code: if is_last { LoadCharacterReply::LAST_CODE } else { 0 },
                number: u8::try_from(index + 1).unwrap_or(u8::MAX),
                is_last: is_last.into(),
                kind,
                data,
            });
        }
        Ok(Step::Open)
    }
}

/// The parts of a character, in the order of their kinds. The last one is the message of the day, or
/// empty.
fn parts(
    data: CharacterData,
    message_of_the_day: Option<&str>,
    now: u32,
) -> Result<Vec<(LoadKind, Option<LoadData<'static>>)>, LoginRefusal> {
    let empty = || Some(LoadData::Other((&[]).into()));
    let nodes = data.access_nodes;
    let nodes = (!nodes.is_empty()).then_some(LoadData::AccessNodes(Rest(nodes)));
    let last = match message_of_the_day {
        Some(text) => {
            let text = Remaining::new(text).map_err(|_| LoginRefusal::Internal)?;
            let message = MessageOfTheDay { time: now, text };
            (LoadKind::MessageOfTheDay, Some(LoadData::MessageOfTheDay(message)))
        }
        None => (LoadKind::End, empty()),
    };
    let loaded = LoadData::LoadedAbilities(Rest(data.loaded_abilities));
    let known = LoadData::KnownAbilities(Rest(data.known_abilities));
    Ok(vec![
        (LoadKind::Unknown1, None),
        (LoadKind::Background, Some(LoadData::Background(data.background))),
        (LoadKind::OldFriends, None),
        (LoadKind::Unknown4, empty()),
        (LoadKind::Inventory, Some(LoadData::Inventory(Rest(data.inventory)))),
        (LoadKind::LoadedAbilities, Some(loaded)),
        (LoadKind::KnownAbilities, Some(known)),
        (LoadKind::Hardlines, Some(LoadData::Hardlines(Rest(data.hardlines)))),
        (LoadKind::AccessNodes, nodes),
        (LoadKind::CodeRecipes, Some(LoadData::CodeRecipes(Rest(data.code_recipes)))),
        (LoadKind::Contacts, Some(LoadData::Contacts(Rest(data.contacts)))),
        (LoadKind::Unknown14, None),
        last,
    ])
}
