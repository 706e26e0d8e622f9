//! Recognises, reads and relays MxO conversations on the auth and margin channels.

use core::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::json::Json;
use worldwire_core::{
    Error, FieldInfo, Limits, MessageInfo, Messages, Reader, Record, Result, Side, Tree,
};
use worldwire_mxo::connection::MissingKey;
use worldwire_mxo::crypt::KeyFile;
#[cfg(feature = "keys")]
use worldwire_mxo::crypt::Random;
use worldwire_mxo::frame::Channel;
use worldwire_mxo::login::{
    Ability, AccessNode, AuthClientMessage, AuthServerMessage, BackgroundAttribute, BackgroundText,
    BackgroundValue, Certificate, Contact, Hardline, InventoryItem, LoginConnection, LoginMessage,
    LoginNews, LoginReceived, LoginRelayConfig, LoginSuccess, MarginClientMessage,
    MarginServerMessage, MessageOfTheDay, OldFriend, World, name,
};
#[cfg(feature = "keys")]
use worldwire_mxo::login::{KnownAccount, LoginKeys};

use super::FAMILY;
use crate::family::{Opening, Start, Verdict};
use crate::info::InfoFields;
use crate::item::Note;
use crate::knowledge::Fact;
#[cfg(feature = "keys")]
use crate::knowledge::Facts;
use crate::line::Line;
use crate::message::{LineEncoder, Message};
use crate::session::{Emit, Interpreter};
use crate::vocabulary::MessageNames;

/// The name of a message that is still encrypted.
const SEALED: &str = "margin.Encrypted";
/// The size of a request for the key, with its length.
const HEAD: usize = 10;
/// How a client's first message begins: on the auth channel, with a request for the key or a name;
/// on the margin channel, with a certificate.
const KEY_REQUEST: [u8; 2] = [9, 6];
const CERTIFICATE: [u8; 7] = [0x81, 0x3b, 1, 3, 0, 0x36, 1];

/// Recognises the beginning of a login.
pub(super) fn recognize(opening: &Opening<'_>) -> Verdict {
    if opening.midstream {
        return Verdict::No;
    }
    // Clients speak first.
    let speaks = opening.pieces.iter().find(|piece| !piece.bytes.is_empty());
    let Some(client) = speaks.map(|piece| piece.side) else { return Verdict::NeedMore };
    let verdict = if client == Side::Client { Verdict::Yes } else { Verdict::Swapped };
    let first = opening.first(client, HEAD);
    match channel_of(&first) {
        Some(Channel::Margin) => verdict,
        // The opcode alone says little.
        Some(Channel::Auth) if first.len() == HEAD => verdict,
        Some(Channel::Auth) => Verdict::NeedMore,
        None if !first.is_empty() && might_begin(&first) => Verdict::NeedMore,
        None => Verdict::No,
    }
}

/// The channel that a client's first bytes belong to.
fn channel_of(first: &[u8]) -> Option<Channel> {
    // The high half of a version is 7, or 1 for some launchers; that of a key ID is 0. Both follow the
    // opcode, low byte first.
    let is = |at: usize, wanted: &[u8]| first.get(at).is_none_or(|byte| wanted.contains(byte));
    let has_version = || is(4, &[1, 7]) && [5, 7, 8, 9].iter().all(|at| is(*at, &[0]));
    if first.starts_with(&CERTIFICATE) {
        Some(Channel::Margin)
    } else if first.starts_with(&KEY_REQUEST) && has_version() {
        Some(Channel::Auth)
    } else {
        None
    }
}

/// Whether these bytes could become the beginning of a login with the bytes that follow.
fn might_begin(first: &[u8]) -> bool {
    KEY_REQUEST.starts_with(first) || CERTIFICATE.starts_with(first)
}

/// The connection that reads a conversation.
pub(super) fn connection(start: &Start<'_>) -> LoginConnection {
    LoginConnection::observer(start.keys.part::<KeyFile>().sessions().clone())
}

/// The connection that relays a conversation and opens it if the server's keys are known.
pub(super) fn relay(
    start: &Start<'_>,
    random: &mut dyn FnMut(&mut [u8]),
    now: Duration,
) -> LoginConnection {
    let config = LoginRelayConfig::new(start.keys.part::<KeyFile>().sessions().clone());
    let mut seed = [0; 16];
    random(&mut seed);
    let relay = LoginConnection::relay(&config, &seed, now);
    #[cfg(feature = "keys")]
    if let Some(keys) = start.keys.get::<LoginKeys>() {
        let mut seed = [0; 32];
        random(&mut seed);
        return relay.with_keys(keys, Random::new(seed));
    }
    relay
}

/// The name of the fact that a relay states when a character is loaded: the session with which its
/// client enters the world.
pub(super) fn session_fact(character: u64) -> String {
    format!("session of character {character:#x}")
}

/// The name of the fact that a relay states when an account has logged in.
#[cfg(feature = "keys")]
fn account_fact(modulus: &[u8; 96]) -> String {
    let mut name = String::from("account with key ");
    worldwire_core::value::push_hex(&mut name, modulus);
    name
}

/// Reads one conversation.
#[derive(Debug, Default)]
pub(super) struct LoginReading {
    facts: Vec<Fact>,
}

impl Interpreter<LoginConnection> for LoginReading {
    const FAMILY: &'static str = FAMILY;

    fn received(&mut self, received: LoginReceived<'_>, emit: &mut Emit<'_>) {
        // The missing key is reported once, by an event of its own.
        let is_whole = received.is_sealed || received.message().is_ok();
        emit.message(&LoginItem { received, is_whole });
    }

    fn secrets(&self, connection: &LoginConnection) -> Option<String> {
        connection.opened_with().map(KeyFile::format_session)
    }

    fn facts(&mut self) -> Vec<Fact> {
        core::mem::take(&mut self.facts)
    }

    #[cfg(feature = "keys")]
    fn waits(&self, connection: &LoginConnection) -> bool {
        connection.wanted_account().is_some()
    }

    #[cfg(feature = "keys")]
    fn learn(&mut self, connection: &mut LoginConnection, facts: &Facts) {
        let Some(modulus) = connection.wanted_account() else { return };
        // A client has logged in before it presents the certificate.
        let account = facts.get::<Arc<KnownAccount>>(FAMILY, &account_fact(modulus)).cloned();
        connection.set_account(account);
    }

    fn news(&mut self, news: LoginNews, emit: &mut Emit<'_>) {
        match news {
            LoginNews::KeysNeeded { side, missing } => {
                emit.about(side);
                let problem = match missing {
                    MissingKey::NotGiven => "no key was given".to_owned(),
                    MissingKey::NoneFits { keys: 1 } => {
                        "the given key does not decrypt them".to_owned()
                    }
                    MissingKey::NoneFits { keys } => {
                        format!("none of the {keys} given keys decrypts them")
                    }
                    missing => missing.to_string(),
                };
                emit.note(Note::problem(format!(
                    "the messages after the challenge are encrypted, and {problem}; supply the \
                     session's key with --keys"
                )));
            }
            LoginNews::Character { id, session } => {
                let name = session_fact(id);
                self.facts.push(Fact { family: FAMILY, name, value: session });
            }
            #[cfg(feature = "keys")]
            LoginNews::Account(account) => {
                let name = account_fact(&account.certificate.certificate.modulus);
                self.facts.push(Fact { family: FAMILY, name, value: Arc::new(account) });
            }
            #[cfg(feature = "keys")]
            LoginNews::Unopened { side, fault } => {
                emit.about(side);
                emit.note(Note::problem(fault.to_string()));
            }
            _ => {}
        }
    }
}

/// A message of the auth or margin channel.
#[derive(Clone, Debug)]
struct LoginItem<'c> {
    received: LoginReceived<'c>,
    is_whole: bool,
}

impl LoginItem<'_> {
    /// The number of stream bytes that precede the message in its frame: the length, and if the message
    /// was encrypted, the initialisation vector, checksum, length and time.
    fn head(&self) -> u64 {
        let LoginReceived { range, encrypted, is_sealed, .. } = &self.received;
        let whole = range.end.saturating_sub(range.start);
        let length = if whole > 0x80 { 2 } else { 1 };
        if *encrypted && !is_sealed { length + 26 } else { length }
    }
}

impl Message for LoginItem<'_> {
    fn push_name(&self, text: &mut String) {
        let LoginReceived { channel, side, is_sealed, bytes, .. } = self.received;
        if is_sealed {
            return text.push_str(SEALED);
        }
        let opcode = bytes.first().copied().unwrap_or(0);
        text.push_str(prefix(channel));
        match name(channel, side, opcode) {
            Some(name) => text.push_str(name),
            None => {
                let _ = write!(text, "{opcode:#04x}");
            }
        }
    }

    fn info_fields(&self, name: &str) -> InfoFields {
        super::info::fields(name)
    }

    fn bytes(&self) -> &[u8] {
        self.received.bytes
    }

    fn is_message(&self) -> bool {
        true
    }

    fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn tree_of<'t>(&'t self, body: &'t [u8], tree: Tree<'t>, limits: &'t Limits) -> Tree<'t> {
        let LoginReceived { channel, side, encrypted, is_sealed, .. } = self.received;
        let layer = if encrypted && !is_sealed { "decrypted" } else { "message" };
        let mut reader = Reader::traced_within(layer, body, tree, limits);
        let outcome = reader.record("fields", |reader| match is_sealed {
            true => {
                let (start, length) = (reader.place(), reader.remaining());
                reader.blob("encrypted", start, length, worldwire_core::Form::Bytes).map(drop)
            }
            false => LoginMessage::decode(reader, channel, side).map(drop),
        });
        // A message that does not match its layout is shown as bytes, with the error.
        let outcome = outcome.and_then(|()| match is_sealed {
            true => Ok(()),
            false => LoginMessage::decode_strictly(body, channel, side).map(drop),
        });
        let mut tree = reader.conclude(outcome.map_err(Error::closed)).0;
        tree.set_base(self.received.range.start + self.head());
        tree
    }

    fn encode(&self, fields: &Json) -> Result<Vec<u8>> {
        let LoginReceived { channel, side, is_sealed, .. } = self.received;
        if is_sealed {
            return Err(Error::invalid("an encrypted message cannot be encoded without its key"));
        }
        encoded(fields, channel, side)
    }

    fn line_encoder(&self) -> Option<Arc<dyn LineEncoder>> {
        Some(Arc::new(LoginEncoder))
    }
}

/// Encodes messages given as lines. Their codecs do not suffice: the record `fields` of a line has
/// a field that is also named `fields`.
#[derive(Debug)]
struct LoginEncoder;

impl LineEncoder for LoginEncoder {
    fn encode_line(&self, line: &Line<'_>) -> Result<Vec<u8>> {
        let channel = channel_named(line.name).ok_or_else(|| line.no_message())?;
        encoded(line.fields, channel, line.from)
    }

    fn tree_of<'t>(
        &'t self,
        (from, name): (Side, &str),
        body: &'t [u8],
        tree: Tree<'t>,
        limits: &'t Limits,
    ) -> Tree<'t> {
        let mut reader = Reader::traced_within("message", body, tree, limits);
        let outcome = reader.record("fields", |reader| match channel_named(name) {
            Some(channel) => LoginMessage::decode(reader, channel, from).map(drop),
            None => Err(Error::invalid("an encrypted message cannot be decoded without its key")),
        });
        reader.conclude(outcome.map_err(Error::closed)).0
    }
}

fn encoded(fields: &Json, channel: Channel, from: Side) -> Result<Vec<u8>> {
    let message = LoginMessage::from_json(fields, channel, from)?;
    let mut writer = worldwire_core::Writer::new();
    message.encode(&mut writer)?;
    Ok(writer.into_bytes())
}

/// The channel of messages of this name.
fn channel_named(name: &str) -> Option<Channel> {
    let all = [Channel::Auth, Channel::Margin];
    all.into_iter().find(|channel| name != SEALED && name.starts_with(prefix(*channel)))
}

/// The prefix of the names on a channel.
const fn prefix(channel: Channel) -> &'static str {
    match channel {
        Channel::Auth => "auth.",
        Channel::Margin => "margin.",
    }
}

/// Every message of the two channels.
pub(super) fn messages() -> Vec<MessageNames<'static>> {
    let mut messages = Vec::new();
    add::<AuthClientMessage<'_>>(Channel::Auth, &mut messages);
    add::<AuthServerMessage<'_>>(Channel::Auth, &mut messages);
    add::<MarginClientMessage<'_>>(Channel::Margin, &mut messages);
    add::<MarginServerMessage<'_>>(Channel::Margin, &mut messages);
    messages.push(MessageNames {
        name: SEALED.to_owned(),
        fields: vec!["encrypted"],
        inner: vec!["encrypted"],
        is_complete: true,
    });
    messages
}

/// Adds the messages of one side of a channel.
fn add<'a, M: Messages<'a>>(channel: Channel, messages: &mut Vec<MessageNames<'static>>) {
    let mut add = |name: &str, fields: Vec<&'static str>, inner: Vec<&'static str>| {
        let name = format!("{}{name}", prefix(channel));
        messages.push(MessageNames { name, fields, inner, is_complete: true });
    };
    for row in M::INFO {
        let own = ["opcode", "fields", "data"];
        add(row.name, own.to_vec(), inner(row).chain(own).collect());
    }
    // Their layout is unknown.
    for (_, name) in M::RESERVED {
        add(name, vec!["opcode", "data"], vec!["opcode", "data"]);
    }
}

/// The fields of a message, and of the records inside it.
fn inner(row: &MessageInfo) -> impl Iterator<Item = &'static str> {
    /// The fields of characters and signed certificates, whose layouts are not records.
    const CHARACTERS: &[&str] = &["reserved", "handleOffset", "id", "status", "worldId", "handle"];
    const SIGNED: &[&str] = &["signature", "certificate"];
    /// The only field of a background that is not part of its text.
    const BACKGROUND: &[&str] = &["appearance"];
    let others: &[&[&str]] = match row.name {
        "AuthReply" => &[CHARACTERS, SIGNED],
        "CertConnectRequest" => &[SIGNED],
        "LoadCharacterReply" => &[BACKGROUND],
        _ => &[],
    };
    listed(row).map(|field| field.name).chain(others.iter().copied().flatten().copied())
}

/// The fields of a message, and of the records inside it that have tables.
fn listed(row: &MessageInfo) -> impl Iterator<Item = FieldInfo> {
    let records = match row.name {
        "AuthReply" => vec![LoginSuccess::fields(), World::fields(), Certificate::fields()],
        "CertConnectRequest" => vec![Certificate::fields()],
        "LoadCharacterReply" => vec![
            BackgroundText::fields(),
            BackgroundValue::fields(),
            BackgroundAttribute::fields(),
            OldFriend::fields(),
            InventoryItem::fields(),
            Ability::fields(),
            Hardline::fields(),
            AccessNode::fields(),
            Contact::fields(),
            MessageOfTheDay::fields(),
        ],
        _ => Vec::new(),
    };
    (row.fields)().into_iter().chain(records.into_iter().flatten())
}

/// The fields of all messages of a channel, and of the records inside them that have tables.
pub(super) fn fields(channel: Channel) -> Vec<FieldInfo> {
    let rows: [&[MessageInfo]; 2] = match channel {
        Channel::Auth => [AuthClientMessage::INFO, AuthServerMessage::INFO],
        Channel::Margin => [MarginClientMessage::INFO, MarginServerMessage::INFO],
    };
    rows.into_iter().flatten().flat_map(listed).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use worldwire_core::{NodeRef, Sampler, Value, Writer};

    use super::*;

    #[test]
    fn every_field_has_a_name_for_filters() {
        fn add(node: NodeRef<'_, '_>, in_list: bool, found: &mut BTreeSet<String>) {
            if !in_list {
                found.insert(node.name().to_owned());
            }
            let is_list = matches!(node.value(), Value::List);
            node.children().for_each(|child| add(child, is_list, found));
        }
        let known = messages();
        let mut unknown: BTreeSet<String> = BTreeSet::new();
        let mut sampler = Sampler::new(7);
        for round in 0..4_000 {
            let channel = if round % 2 == 0 { Channel::Auth } else { Channel::Margin };
            let side = if round % 4 < 2 { Side::Client } else { Side::Server };
            let message = LoginMessage::sample(&mut sampler, channel, side);
            let Some(name) = name(channel, side, message.opcode()) else { continue };
            let mut writer = Writer::new();
            message.encode(&mut writer).unwrap();
            let bytes = writer.into_bytes();
            let mut reader = Reader::traced("message", &bytes, Tree::new());
            LoginMessage::decode(&mut reader, channel, side).unwrap();
            let mut found = BTreeSet::new();
            reader.finish().roots().for_each(|node| add(node, false, &mut found));
            let name = format!("{}{name}", prefix(channel));
            let known: Vec<_> = known.iter().filter(|known| known.name == name).collect();
            for field in &found {
                if !known.iter().any(|known| known.inner.contains(&&**field)) {
                    unknown.insert(format!("{name}: {field}"));
                }
            }
        }
        assert!(unknown.is_empty(), "{unknown:#?}");
    }
}
