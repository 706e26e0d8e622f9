//! Clients' requests and the server's replies, decoded and encoded with the loaded definitions.
//!
//! Messages are looked up by tag and fields by name, so definitions of any revision work. Fields
//! missing from a definition are left out; fields that are only in the definition are set to their
//! defaults.

use std::sync::Arc;

use worldwire_core::Result;
use worldwire_ki::crypt::login::Secret;
use worldwire_ki::message::{Fields, FileListAnswer, Put, RawMessage, Selected};
use worldwire_ki::schema::Protocols;

use super::refusal::Refusal;

const SYSTEM: u8 = 1;
const EXTENDED: u8 = 2;
const GAME: u8 = 5;
const LOGIN: u8 = 7;
const PATCH: u8 = 8;

/// The version of a login message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `MSG_USER_AUTHEN_V3`.
    V3,
    /// `MSG_USER_AUTHEN`, `MSG_USER_AUTHEN_V2` and `MSG_WEB_AUTHEN`.
    Legacy,
}

/// A request that a login server handles.
#[derive(Clone, Debug)]
pub enum Request {
    /// `MSG_PING`.
    Ping,
    /// `MSG_CLIENT_DISCONNECT`.
    Disconnect,
    /// A login with a password.
    Authenticate {
        /// The version of the message.
        form: Form,
        /// `Rec1`, encrypted.
        rec1: Vec<u8>,
        /// `MachineID`.
        machine: u64,
    },
    /// `MSG_USER_VALIDATE` or `MSG_WEB_VALIDATE`: a login with a CK2.
    Validate {
        /// `UserID`.
        user: u64,
        /// `PassKey3`.
        pass_key: Secret,
        /// `MachineID`.
        machine: u64,
    },
    /// `MSG_LOGIN_NOT_AFK`; in a zone `MSG_NOT_AFK`.
    NotAfk,
    /// `MSG_REQUESTCHARACTERLIST`.
    ListCharacters,
    /// `MSG_CREATECHARACTER`, with the blob.
    CreateCharacter(Vec<u8>),
    /// `MSG_DELETECHARACTER`, with the character.
    DeleteCharacter(u64),
    /// `MSG_SELECTCHARACTER`, with the character.
    SelectCharacter(u64),
    /// `MSG_LOGINLOGCHARACTERCREATION`.
    LogCreation {
        /// `Stage`.
        stage: u32,
        /// `Parameter`.
        parameter: u32,
    },
    /// `MSG_REQUESTSERVERLIST`.
    ListServers,
    /// `MSG_LATEST_FILE_LIST`, or `MSG_LATEST_FILE_LIST_V2`.
    FileList {
        /// Whether it is the second version.
        v2: bool,
        /// `Locale`, which only the second version has.
        locale: Vec<u8>,
    },
    /// `MSG_ATTACH`: enters a zone.
    Attach {
        /// `LoginKey`.
        key: Secret,
        /// `UserID`.
        user: u64,
        /// `CharID`.
        character: u64,
    },
}

/// The outcome of decoding a message.
#[derive(Clone, Debug)]
pub enum Decoded {
    /// A request.
    Request(Request),
    /// A message without a definition, or one that login servers do not handle.
    Unknown,
    /// A message that does not match its definition.
    Malformed,
}

/// A message from the server.
#[derive(Clone, Debug)]
pub enum Reply {
    /// `MSG_PING_RSP`.
    Pong,
    /// `MSG_USER_AUTHEN_RSP`.
    Authenticated {
        /// The account and `Rec1`, or the reason for refusing the login.
        outcome: core::result::Result<(u64, Vec<u8>), Refusal>,
        /// `PayingUser`.
        paying: bool,
        /// `TimeStamp`, Unix seconds.
        time: i64,
    },
    /// `MSG_USER_VALIDATE_RSP`.
    Validated {
        /// The account, or the reason for refusing the login.
        outcome: core::result::Result<u64, Refusal>,
        /// `PayingUser`.
        paying: bool,
        /// `TimeStamp`, Unix seconds.
        time: i64,
    },
    /// `MSG_USER_ADMIT_IND`, with the position in the queue; 0 means admitted.
    Admit(u32),
    /// `MSG_STARTCHARACTERLIST`.
    StartList {
        /// `LoginServer`.
        server: String,
        /// `PurchasedCharacterSlots`.
        purchased: u32,
    },
    /// `MSG_CHARACTERINFO`.
    Character(Vec<u8>),
    /// `MSG_CHARACTERLIST`.
    EndList(Option<Refusal>),
    /// `MSG_CREATECHARACTERRESPONSE`.
    Created(Option<Refusal>),
    /// `MSG_DELETECHARACTERRESPONSE`.
    Deleted(Option<Refusal>),
    /// `MSG_CHARACTERSELECTED`.
    Selected(core::result::Result<Box<Selected>, Refusal>),
    /// `MSG_SERVERLIST`.
    Servers,
    /// `MSG_DISCONNECT_LOGIN_AFK`; in a zone `MSG_DISCONNECT_AFK`.
    Afk {
        /// Whether the client is in a zone.
        in_zone: bool,
    },
    /// `MSG_LOGINSERVERSHUTDOWN`; in a zone `MSG_SERVERSHUTDOWN`.
    Shutdown {
        /// Whether the client is in a zone.
        in_zone: bool,
    },
    /// `MSG_FORCE_DISCONNECT`.
    ForceDisconnect {
        /// `TimeStamp`, Unix seconds.
        time: i64,
        /// `Message`.
        message: String,
    },
    /// `MSG_SERVERMESSAGE`.
    Message(String),
    /// `MSG_LATEST_FILE_LIST` or `MSG_LATEST_FILE_LIST_V2`.
    FileList {
        /// Whether it is the second version.
        v2: bool,
        /// `Locale`, copied from the request.
        locale: Vec<u8>,
        /// The list.
        list: Arc<FileListAnswer>,
    },
    /// `MSG_LOGINCOMPLETE`: the client is in the zone.
    InZone {
        /// `ZoneName`.
        zone: String,
        /// `ZoneID`.
        zone_id: u64,
        /// `ServerTime`, Unix seconds.
        time: i64,
    },
    /// `MSG_ATTACHFAILED`.
    AttachFailed(Refusal),
}

impl Reply {
    /// The reason, if this is a refusal.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Authenticated { outcome, .. } => outcome.as_ref().err().copied(),
            Self::Validated { outcome, .. } => outcome.err(),
            Self::EndList(refusal) | Self::Created(refusal) | Self::Deleted(refusal) => *refusal,
            Self::Selected(outcome) => outcome.as_ref().err().copied(),
            Self::AttachFailed(refusal) => Some(*refusal),
            _ => None,
        }
    }
}

/// The definitions for decoding and encoding messages.
#[derive(Clone, Debug)]
pub struct Dialect {
    protocols: Arc<Protocols>,
    /// The fields that even the oldest known clients send.
    base: Arc<Protocols>,
}

impl Dialect {
    /// Creates a codec that uses these definitions.
    #[must_use]
    pub fn new(protocols: Arc<Protocols>) -> Self {
        Self { protocols, base: Arc::new(Protocols::built_in()) }
    }

    /// The definitions.
    #[must_use]
    pub fn protocols(&self) -> &Arc<Protocols> {
        &self.protocols
    }

    /// Decodes a client's message. Fields appended by later revisions may be missing.
    #[must_use]
    pub fn decode(&self, service: u8, order: u8, payload: &[u8]) -> Decoded {
        let Some(message) = self.protocols.message(service, order) else { return Decoded::Unknown };
        let Some(read) = reader(service, &message.tag) else { return Decoded::Unknown };
        let base = self.base.service(service).and_then(|base| base.message_tagged(&message.tag));
        let least = base.map_or(0, |base| base.fields().len());
        match Fields::read(message, payload, least) {
            Some(fields) => Decoded::Request(read(&fields)),
            None => Decoded::Malformed,
        }
    }

    /// Encodes a reply. Fails if the definitions lack the message, or a string is too long.
    pub fn write(&self, reply: &Reply) -> Result<RawMessage<'static>> {
        let error = |refusal: &Option<Refusal>| Put::Number(refusal.map_or(0, Refusal::id).into());
        let text = Put::text;
        let number = |number: u64| Put::Number(number);
        let time = |time: &i64| Put::Bytes(time.to_string().into_bytes());
        let reason = |refusal: Option<&Refusal>| {
            Put::Bytes(refusal.map_or("", |refusal| refusal.name()).as_bytes().to_vec())
        };
        match reply {
            Reply::Pong => self.put(SYSTEM, "MSG_PING_RSP", []),
            Reply::Authenticated { outcome, paying, time: at } => {
                let (user, rec1) = match outcome {
                    Ok((user, rec1)) => (*user, rec1.clone()),
                    Err(_) => (0, Vec::new()),
                };
                self.put(
                    LOGIN,
                    "MSG_USER_AUTHEN_RSP",
                    [
                        ("Error", error(&outcome.as_ref().err().copied())),
                        ("UserID", number(user)),
                        ("Rec1", Put::Bytes(rec1)),
                        ("Reason", reason(outcome.as_ref().err())),
                        ("TimeStamp", time(at)),
                        ("PayingUser", number((*paying).into())),
                    ],
                )
            }
            Reply::Validated { outcome, paying, time: at } => self.put(
                LOGIN,
                "MSG_USER_VALIDATE_RSP",
                [
                    ("Error", error(&outcome.err())),
                    ("Reason", reason(outcome.as_ref().err())),
                    ("UserID", number(outcome.unwrap_or(0))),
                    ("TimeStamp", time(at)),
                    ("PayingUser", number((*paying).into())),
                ],
            ),
            Reply::Admit(position) => self.put(
                LOGIN,
                "MSG_USER_ADMIT_IND",
                [
                    ("Status", number((*position == 0).into())),
                    ("PositionInQueue", number((*position).into())),
                ],
            ),
            Reply::StartList { server, purchased } => self.put(
                LOGIN,
                "MSG_STARTCHARACTERLIST",
                [
                    ("LoginServer", text(server)),
                    ("PurchasedCharacterSlots", number((*purchased).into())),
                ],
            ),
            Reply::Character(blob) => {
                self.put(LOGIN, "MSG_CHARACTERINFO", [("CharacterInfo", Put::Bytes(blob.clone()))])
            }
            Reply::EndList(refusal) => {
                self.put(LOGIN, "MSG_CHARACTERLIST", [("Error", error(refusal))])
            }
            Reply::Created(refusal) => {
                self.put(LOGIN, "MSG_CREATECHARACTERRESPONSE", [("ErrorCode", error(refusal))])
            }
            Reply::Deleted(refusal) => {
                self.put(LOGIN, "MSG_DELETECHARACTERRESPONSE", [("ErrorCode", error(refusal))])
            }
            Reply::Selected(Ok(to)) => {
                self.protocols.compose(LOGIN, "MSG_CHARACTERSELECTED", &to.fields())
            }
            Reply::Selected(Err(refusal)) => {
                let refusal = Some(*refusal);
                self.put(LOGIN, "MSG_CHARACTERSELECTED", [("Error", error(&refusal))])
            }
            Reply::Servers => self.put(LOGIN, "MSG_SERVERLIST", []),
            Reply::Afk { in_zone: false } => {
                self.put(LOGIN, "MSG_DISCONNECT_LOGIN_AFK", [("Warning", number(1))])
            }
            Reply::Afk { in_zone: true } => {
                self.put(GAME, "MSG_DISCONNECT_AFK", [("Warning", number(1))])
            }
            Reply::Shutdown { in_zone: false } => self.put(LOGIN, "MSG_LOGINSERVERSHUTDOWN", []),
            Reply::Shutdown { in_zone: true } => self.put(GAME, "MSG_SERVERSHUTDOWN", []),
            Reply::ForceDisconnect { time: at, message } => self.put(
                EXTENDED,
                "MSG_FORCE_DISCONNECT",
                [("TimeStamp", time(at)), ("Message", text(message))],
            ),
            Reply::Message(message) => {
                self.put(EXTENDED, "MSG_SERVERMESSAGE", [("Message", text(message))])
            }
            Reply::FileList { v2, locale, list } => {
                let tag = if *v2 { "MSG_LATEST_FILE_LIST_V2" } else { "MSG_LATEST_FILE_LIST" };
                let mut fields = list.fields();
                fields.push(("Locale", Put::Bytes(locale.clone())));
                self.protocols.compose(PATCH, tag, &fields)
            }
            Reply::InZone { zone, zone_id, time: at } => self.put(
                GAME,
                "MSG_LOGINCOMPLETE",
                [
                    ("ZoneName", text(zone)),
                    ("ServerTime", number(at.cast_unsigned())),
                    ("ZoneID", number(*zone_id)),
                ],
            ),
            Reply::AttachFailed(refusal) => {
                self.put(GAME, "MSG_ATTACHFAILED", [("Error", number(refusal.id().into()))])
            }
        }
    }

    fn put<const N: usize>(
        &self,
        service: u8,
        tag: &str,
        given: [(&str, Put); N],
    ) -> Result<RawMessage<'static>> {
        self.protocols.compose(service, tag, &given)
    }
}

/// The secret in a field. If the field is not UTF-8, the result is empty and matches no secret.
fn secret(fields: &Fields<'_>, name: &str) -> Secret {
    Secret::new(String::from_utf8(fields.bytes(name)).unwrap_or_default())
}

/// How to read a message, if login servers handle it.
fn reader(service: u8, tag: &str) -> Option<fn(&Fields<'_>) -> Request> {
    Some(match (service, tag) {
        (SYSTEM, "MSG_PING") => |_| Request::Ping,
        (GAME, "MSG_CLIENT_DISCONNECT") => |_| Request::Disconnect,
        (GAME, "MSG_ATTACH") => |fields| Request::Attach {
            key: secret(fields, "LoginKey"),
            user: fields.number("UserID"),
            character: fields.number("CharID"),
        },
        (GAME, "MSG_NOT_AFK") | (LOGIN, "MSG_LOGIN_NOT_AFK") => |_| Request::NotAfk,
        (LOGIN, "MSG_USER_AUTHEN_V3") => |fields| authenticate(Form::V3, fields),
        (LOGIN, "MSG_USER_AUTHEN" | "MSG_USER_AUTHEN_V2" | "MSG_WEB_AUTHEN") => {
            |fields| authenticate(Form::Legacy, fields)
        }
        (LOGIN, "MSG_USER_VALIDATE" | "MSG_WEB_VALIDATE") => |fields| Request::Validate {
            user: fields.number("UserID"),
            pass_key: secret(fields, "PassKey3"),
            machine: fields.number("MachineID"),
        },
        (LOGIN, "MSG_REQUESTCHARACTERLIST") => |_| Request::ListCharacters,
        (LOGIN, "MSG_CREATECHARACTER") => {
            |fields| Request::CreateCharacter(fields.bytes("CreationInfo"))
        }
        (LOGIN, "MSG_DELETECHARACTER") => {
            |fields| Request::DeleteCharacter(fields.number("CharID"))
        }
        (LOGIN, "MSG_SELECTCHARACTER") => {
            |fields| Request::SelectCharacter(fields.number("CharID"))
        }
        (LOGIN, "MSG_LOGINLOGCHARACTERCREATION") => |fields| Request::LogCreation {
            stage: fields.word("Stage"),
            parameter: fields.word("Parameter"),
        },
        (LOGIN, "MSG_REQUESTSERVERLIST") => |_| Request::ListServers,
        (PATCH, "MSG_LATEST_FILE_LIST") => |_| Request::FileList { v2: false, locale: Vec::new() },
        (PATCH, "MSG_LATEST_FILE_LIST_V2") => {
            |fields| Request::FileList { v2: true, locale: fields.bytes("Locale") }
        }
        _ => return None,
    })
}

fn authenticate(form: Form, fields: &Fields<'_>) -> Request {
    Request::Authenticate { form, rec1: fields.bytes("Rec1"), machine: fields.number("MachineID") }
}
