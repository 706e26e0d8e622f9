//! The TCP channels, auth and margin: their messages, and both ends of a login.
//!
//! A message is a one-byte opcode, then fields.
//!
//! Messages of known layout are declared in tables. All others, with or without a known name, are
//! kept as bytes. Margin bodies must be decrypted first: see
//! [`MarginFrame`](crate::frame::MarginFrame).
//!
//! | machine | what it does |
//! | --- | --- |
//! | [`LoginConnection`] | frames, encrypts and checks messages, as client or server, on either channel; or observes both, or relays between them |
//! | [`AuthServer`], [`AuthClient`] | exchange name and password for a certificate |
//! | [`MarginServer`], [`MarginClient`] | exchange the certificate for a session, then manage characters |
//!
//! A driver feeds bytes to the connection and each [`LoginReceived`] to the machine, and carries
//! out the machine's actions with the connection's [`LoginSender`]. The machines take random
//! numbers from [`Random`](crate::crypt::Random), and the time as an argument. Without the feature
//! `login`, only the messages and the connection exist.
//!
//! Both ends of a login at the auth server, without connections:
//!
//! ```
//! use std::sync::Arc;
//! use worldwire_mxo::crypt::{KeyUse, PrivateKey, Random};
//! use worldwire_mxo::file::PublicKeyFile;
//! use worldwire_mxo::login::{
//!     AuthAccount, AuthAction, AuthClient, AuthClientConfig, AuthServer, AuthServerConfig,
//!     LoginStatus,
//! };
//!
//! // Seeds and keys of a real server come from the operating system and from files.
//! let mut random = Random::new([1; 32]);
//! let key = PrivateKey::generate(KeyUse::Server, &mut random)?;
//! let modulus = key.public().modulus().try_into().unwrap();
//! let public_key = PublicKeyFile { key_id: 4, modulus, exponent: 17, signature: [0; 256] };
//! let account = AuthAccount {
//!     user_id: 1,
//!     name: "neo".into(),
//!     key: Arc::new(PrivateKey::generate(KeyUse::User, &mut random)?),
//!     created: 0,
//!     characters: Vec::new(),
//!     worlds: Vec::new(),
//! };
//!
//! let config = AuthClientConfig::new("neo", "zion", Some(public_key.clone()));
//! let mut client = AuthClient::new(config, Random::new([2; 32]));
//! let config = AuthServerConfig::new(key, public_key);
//! let mut server = AuthServer::new(Arc::new(config), Random::new([3; 32]));
//! let now = 1_248_965_312;
//! while let Some(message) = client.poll() {
//!     server.handle(&message, now);
//!     while let Some(action) = server.poll() {
//!         match action {
//!             AuthAction::Send(message) => client.handle(&message),
//!             // Compare with a stored hash, in the same time for unknown names.
//!             AuthAction::Query(query) if *query.password == "zion" => {
//!                 server.answer(Ok(account.clone()), now);
//!             }
//!             AuthAction::Query(_) => server.answer(Err(LoginStatus::WrongPassword), now),
//!             AuthAction::Close(_) => {}
//!         }
//!     }
//! }
//! let ticket = client.outcome().unwrap()?;
//! assert_eq!(ticket.certificate.certificate.user_id, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Many messages contain offsets of their own fields, counted from the opcode. Offsets are checked
//! when a message is read and computed when it is written. Those that clients are known to fill
//! with other values are treated like any other field.

mod auth;
#[cfg(feature = "login")]
mod auth_client;
#[cfg(feature = "login")]
mod auth_server;
mod background;
mod blob;
mod certificate;
mod characters;
mod connection;
mod load;
mod margin;
#[cfg(feature = "login")]
mod margin_client;
#[cfg(feature = "login")]
mod margin_server;
#[cfg(feature = "login")]
mod refusal;
mod relay;
#[cfg(feature = "login")]
mod relay_keys;
#[cfg(feature = "login")]
mod secrets;

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Error, Form, Messages, Reader, Result, Sampler, Side, Trace, Writer};

pub use auth::{
    AuthChallenge, AuthChallengeResponse, AuthClientMessage, AuthReply, AuthRequest,
    AuthServerMessage, GetPublicKeyReply, GetPublicKeyRequest, LoginStatus, LoginSuccess, World,
    WorldLoad, WorldStatus, WorldType,
};
#[cfg(feature = "login")]
pub use auth_client::{AuthClient, AuthClientConfig, LoginTicket};
#[cfg(feature = "login")]
pub use auth_server::{AuthAccount, AuthAction, AuthQuery, AuthServer, AuthServerConfig};
pub use background::{Background, BackgroundAttribute, BackgroundText, BackgroundValue};
pub use blob::{AuthProof, AuthSecret, MarginSecret};
pub use certificate::{Certificate, SignedCertificate};
pub use characters::{Character, CharacterStatus, Characters};
pub use connection::{LoginConfig, LoginConnection, LoginNews, LoginReceived, LoginSender};
pub use load::{
    Ability, AccessNode, Contact, Hardline, InventoryItem, LoadCharacterReply, LoadData, LoadKind,
    MessageOfTheDay, OldFriend,
};
pub use margin::{
    CertChallenge, CertChallengeResponse, CertConnectReply, CertConnectRequest,
    ClaimCharacterNameReply, ClaimCharacterNameRequest, ConnectChallenge, ConnectChallengeResponse,
    ConnectReply, ConnectRequest, CreateCharacterRequest, DeleteCharacterReply,
    DeleteCharacterRequest, EstablishUDPSession, LoadCharacterRequest, MarginClientMessage,
    MarginServerMessage,
};
#[cfg(feature = "login")]
pub use margin_client::{MarginClient, MarginClientAction};
#[cfg(feature = "login")]
pub use margin_server::{
    CharacterData, MAX_HANDLE, MarginAction, MarginAnswer, MarginQuery, MarginServer,
    MarginServerConfig, is_handle,
};
#[cfg(feature = "login")]
pub use refusal::LoginRefusal;
pub use relay::LoginRelayConfig;
#[cfg(feature = "login")]
pub use relay_keys::{KnownAccount, LoginKeys, OwnLoginKeys, SecretFault};

use crate::frame::Channel;

/// A message of a TCP channel.
#[derive(Clone, Debug, PartialEq)]
pub enum LoginMessage<'d> {
    /// From a client, on the auth channel.
    AuthClient(AuthClientMessage<'d>),
    /// From a server, on the auth channel.
    AuthServer(Box<AuthServerMessage<'d>>),
    /// From a client, on the margin channel.
    MarginClient(Box<MarginClientMessage<'d>>),
    /// From a server, on the margin channel.
    MarginServer(MarginServerMessage<'d>),
    /// A message of unknown layout.
    Other {
        /// The opcode.
        opcode: u8,
        /// The bytes after the opcode.
        data: Cow<'d, [u8]>,
    },
}

/// Runs code with the message table of a side and channel.
macro_rules! with_table {
    ($channel:expr, $from:expr, $table:ident => $do:expr) => {
        match ($channel, $from) {
            (Channel::Auth, Side::Client) => {
                type $table<'a> = AuthClientMessage<'a>;
                ($do).map(LoginMessage::AuthClient)
            }
            (Channel::Auth, Side::Server) => {
                type $table<'a> = AuthServerMessage<'a>;
                ($do).map(|message| LoginMessage::AuthServer(Box::new(message)))
            }
            (Channel::Margin, Side::Client) => {
                type $table<'a> = MarginClientMessage<'a>;
                ($do).map(|message| LoginMessage::MarginClient(Box::new(message)))
            }
            (Channel::Margin, Side::Server) => {
                type $table<'a> = MarginServerMessage<'a>;
                ($do).map(LoginMessage::MarginServer)
            }
        }
    };
}

/// The name of an opcode, if it is known.
#[must_use]
pub fn name(channel: Channel, from: Side, opcode: u8) -> Option<&'static str> {
    fn of<'a, M: Messages<'a>>(opcode: u8) -> Option<&'static str> {
        let reserved = M::RESERVED.iter().find(|(number, _)| *number == u32::from(opcode));
        M::info(opcode.into()).map(|info| info.name).or_else(|| reserved.map(|(_, name)| *name))
    }
    match (channel, from) {
        (Channel::Auth, Side::Client) => of::<AuthClientMessage<'_>>(opcode),
        (Channel::Auth, Side::Server) => of::<AuthServerMessage<'_>>(opcode),
        (Channel::Margin, Side::Client) => of::<MarginClientMessage<'_>>(opcode),
        (Channel::Margin, Side::Server) => of::<MarginServerMessage<'_>>(opcode),
    }
}

/// Whether the layout of an opcode's message is known.
fn has_layout(channel: Channel, from: Side, opcode: u8) -> bool {
    let number = u32::from(opcode);
    match (channel, from) {
        (Channel::Auth, Side::Client) => AuthClientMessage::info(number).is_some(),
        (Channel::Auth, Side::Server) => AuthServerMessage::info(number).is_some(),
        (Channel::Margin, Side::Client) => MarginClientMessage::info(number).is_some(),
        (Channel::Margin, Side::Server) => MarginServerMessage::info(number).is_some(),
    }
}

/// Reads the fields of a message, which take all remaining bytes.
fn decode_fields<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    opcode: u8,
    channel: Channel,
    from: Side,
) -> Result<LoginMessage<'d>> {
    let message = with_table!(channel, from, Table => {
        <Table<'d> as Messages<'d>>::decode_body(opcode.into(), reader)
    })?;
    reader.end()?;
    Ok(message)
}

impl<'d> LoginMessage<'d> {
    /// Reads the opcode and all remaining bytes. A message that does not match its layout is kept
    /// as bytes.
    pub fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        channel: Channel,
        from: Side,
    ) -> Result<Self> {
        let opcode = reader.u8("opcode")?;
        let known = reader.attempt(|reader| {
            reader.record("fields", |reader| decode_fields(reader, opcode, channel, from))
        });
        known.or_else(|_| {
            let (start, length) = (reader.place(), reader.remaining());
            let data = reader.blob("data", start, length, Form::Bytes)?.into();
            Ok(Self::Other { opcode, data })
        })
    }

    /// Reads a message that a peer sent: one that does not match its layout is an error. Only
    /// messages without a known layout are kept as bytes.
    ///
    /// # Errors
    /// Incomplete or malformed.
    pub fn decode_strictly(bytes: &'d [u8], channel: Channel, from: Side) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let opcode = reader.u8("opcode")?;
        if !has_layout(channel, from, opcode) {
            return Ok(Self::Other { opcode, data: reader.rest().into() });
        }
        let name = name(channel, from, opcode).unwrap_or_default();
        let message = decode_fields(&mut reader, opcode, channel, from);
        message.map_err(|error| error.closed().about(name))
    }

    /// Writes the opcode and the data.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u8(self.opcode());
        match self {
            Self::AuthClient(message) => message.encode_body(writer),
            Self::AuthServer(message) => message.encode_body(writer),
            Self::MarginClient(message) => message.encode_body(writer),
            Self::MarginServer(message) => message.encode_body(writer),
            Self::Other { data, .. } => {
                writer.bytes(data);
                Ok(())
            }
        }
    }

    /// Reads the message from JSON; the exact inverse of writing the traced message as JSON.
    pub fn from_json<'j>(
        json: impl Into<Given<'j>>,
        channel: Channel,
        from: Side,
    ) -> Result<LoginMessage<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let opcode: u8 = fields.value("opcode")?;
        let message = match fields.given_optional("fields") {
            None => {
                let data = fields.given("data")?.bytes().map_err(|error| error.inside("data"))?;
                LoginMessage::Other { opcode, data: data.into() }
            }
            Some(inner) => {
                let name = name(channel, from, opcode).unwrap_or_default();
                let named = with_table!(channel, from, Table => {
                    <Table<'static> as Messages<'static>>::from_json(name, inner)
                });
                named.map_err(|error: Error| error.inside("fields"))?
            }
        };
        fields.end()?;
        Ok(message)
    }

    /// Checks that this side sends the message on this channel. Either side may send messages
    /// without a known layout.
    ///
    /// # Errors
    /// A value error.
    pub(super) fn check_sender(&self, channel: Channel, from: Side) -> Result<()> {
        let is_right = match self {
            Self::AuthClient(_) => (channel, from) == (Channel::Auth, Side::Client),
            Self::AuthServer(_) => (channel, from) == (Channel::Auth, Side::Server),
            Self::MarginClient(_) => (channel, from) == (Channel::Margin, Side::Client),
            Self::MarginServer(_) => (channel, from) == (Channel::Margin, Side::Server),
            Self::Other { .. } => true,
        };
        match is_right {
            true => Ok(()),
            false => Err(Error::value(format!("a message from the {from}"), "a different message")),
        }
    }

    /// The opcode.
    #[must_use]
    pub fn opcode(&self) -> u8 {
        let number = match self {
            Self::AuthClient(message) => message.number(),
            Self::AuthServer(message) => message.number(),
            Self::MarginClient(message) => message.number(),
            Self::MarginServer(message) => message.number(),
            Self::Other { opcode, .. } => return *opcode,
        };
        u8::try_from(number).unwrap_or(0)
    }

    /// Generates a message.
    #[must_use]
    pub fn sample(sampler: &mut Sampler, channel: Channel, from: Side) -> LoginMessage<'static> {
        let opcode = 1 + u8::try_from(sampler.below(18)).unwrap_or(0);
        let known = with_table!(channel, from, Table => {
            <Table<'static> as Messages<'static>>::sample(opcode.into(), sampler)
        });
        known.unwrap_or_else(|| {
            let length = sampler.length(30);
            LoginMessage::Other { opcode, data: sampler.bytes(length).into() }
        })
    }
}
