//! Recognises and reads TERA conversations.

use core::any::Any;
use core::fmt::Write as _;
use core::mem::replace;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use worldwire_core::connection::Piece;
use worldwire_core::json::Json;
use worldwire_core::{Error, Limits, Reader, Result, Side, Tree, TreeBuilder, Value};
use worldwire_tera::connection::{Connection, News, Received, Sender, Unit};
use worldwire_tera::crypt::exchange::{Keys, SessionCiphers};
use worldwire_tera::crypt::keys::KeyFile;
use worldwire_tera::file::library::CheckVersion;
use worldwire_tera::frame::CHECK_VERSION;
use worldwire_tera::message::HeaderForm;
use worldwire_tera::packet::{Detection, IntegrityDetector, Packets};

use super::definitions::{TeraDefinitions, unused_list};
use super::editor::TapeEditor;
use crate::editor::FieldEditor;
use crate::family::{Opening, Verdict};
use crate::info::InfoFields;
use crate::item::Note;
use crate::line::Line;
use crate::message::{LineEncoder, Message};
use crate::session::{Emit, Interpreter};

/// The first bytes from the server.
const HELLO: [u8; 4] = [1, 0, 0, 0];
const KEY_BYTES: usize = 128;
/// The length of the first message's header. Two keys and the hello precede it.
const HEADER: usize = 8;

/// The server's message with the seed of the client's checksums, and its field.
const SEED_MESSAGE: &str = "S_LOGIN_ACCOUNT_INFO";
const SEED_FIELD: &str = "fields.integrityIv";

/// The maximum number of characters of a message name shown in advice.
const MAX_NAME: usize = 100;

/// Recognises the server's hello and a first key from the client. Keys are random and everything
/// after them is encrypted, so nothing else can be checked. If the hello is missing, the keys must
/// decrypt the client's first header.
pub(super) fn recognize(opening: &Opening<'_>) -> Verdict {
    if opening.midstream {
        let [client, server] = Side::BOTH.map(|side| opening.leading(side, 2 * KEY_BYTES + HEADER));
        return Verdict::either(exchanged(&server, &client), exchanged(&client, &server));
    }
    let [client, server] = Side::BOTH.map(|side| opening.first(side, 256));
    Verdict::either(greets(&server, &client), greets(&client, &server))
}

/// Whether both sides start with their keys, possibly without the hello.
fn exchanged(server: &(u64, Vec<u8>), client: &(u64, Vec<u8>)) -> Verdict {
    const HELLO_BYTES: u64 = HELLO.len() as u64;
    let ((missing, from_server), (missing_of_client, from_client)) = (server, client);
    if *missing_of_client > 0 || ![0, HELLO_BYTES].contains(missing) {
        return Verdict::No;
    }
    // The capture may have lost the hello without reporting a gap, or may include it.
    let keys = match from_server.strip_prefix(&HELLO) {
        Some(keys) if *missing == 0 => keys,
        _ => from_server,
    };
    let key = |bytes: &[u8], number: usize| bytes.get(number * KEY_BYTES..)?.first_chunk().copied();
    let keys = || {
        let of = |bytes: &[u8]| Some([key(bytes, 0)?, key(bytes, 1)?]);
        let keys = Keys { client: of(from_client)?, server: of(keys)? };
        let head = from_client.get(2 * KEY_BYTES..)?.first_chunk().copied()?;
        Some(SessionCiphers::of_first_message(&keys, head).is_some())
    };
    match keys() {
        Some(true) => Verdict::Yes,
        Some(false) => Verdict::No,
        None => Verdict::NeedMore,
    }
}

fn greets(server: &[u8], client: &[u8]) -> Verdict {
    let begins = HELLO.iter().zip(server).all(|(a, b)| a == b);
    if !begins {
        Verdict::No
    } else if server.len() >= HELLO.len() && client.len() >= KEY_BYTES {
        Verdict::Yes
    } else {
        Verdict::NeedMore
    }
}

/// The build that the client uses, and what was reported about it.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    definitions: Arc<TeraDefinitions>,
    packets: Arc<Packets>,
    /// Whether the client has reported its build.
    build_reported: bool,
    /// Finds counters and checksums in messages that no list names.
    seals: IntegrityDetector,
    /// Whether counters were reported.
    counters_reported: bool,
    /// Whether possible counters were reported.
    suspicion_reported: bool,
    unused_list_reported: bool,
    signing: Signing,
    /// The opcodes of keep-alives, until the relay knows them.
    keep_alives: Option<[Option<u16>; 2]>,
}

/// The client's and the server's keep-alives.
///
/// Unverified: these are the only messages by which an end learns that the other is alive.
const KEEP_ALIVES: [&str; 2] = ["C_PONG", "S_PING"];

/// What a relay needs in order to sign the client's messages again.
#[derive(Clone, Debug, Default)]
struct Signing {
    /// The opcode of the message with the seed.
    seed_opcode: Option<u16>,
    /// The opcodes of signed messages, until the relay knows them.
    opcodes: Option<HashSet<u16>>,
    /// The seed, until the relay knows it.
    seed: Option<u32>,
}

impl Reading {
    pub(super) fn new(definitions: Arc<TeraDefinitions>) -> Self {
        let packets = definitions.packets(None);
        let seals = IntegrityDetector::default();
        Self {
            definitions,
            packets,
            build_reported: false,
            seals,
            counters_reported: false,
            suspicion_reported: false,
            unused_list_reported: false,
            signing: Signing::default(),
            keep_alives: None,
        }
    }
}

impl Reading {
    /// A warning at the first message in an integrity list that is not used. It suppresses remarks
    /// about counters, because the list is more reliable.
    fn advise(&mut self, received: &Received<'_>) -> Option<String> {
        let Unit::Message { opcode } = received.unit else { return None };
        if received.side == Side::Server || self.unused_list_reported {
            return None;
        }
        let text = unused_list(&self.packets, opcode)?;
        (self.unused_list_reported, self.counters_reported, self.suspicion_reported) =
            (true, true, true);
        Some(text)
    }

    /// A remark about the counter of a message.
    fn remark(&mut self, seal: Detection, received: &Received<'_>) -> Option<String> {
        let Unit::Message { opcode } = received.unit else { return None };
        let name = self.packets.get(opcode).map_or("", |packet| packet.name);
        match seal {
            Detection::First if !replace(&mut self.counters_reported, true) => Some(
                "client messages have counters and checksums although no integrity list names \
                 them; they are decoded accordingly, and `worldwire tera integrity` writes a list"
                    .to_owned(),
            ),
            Detection::Possible if !replace(&mut self.suspicion_reported, true) => Some(format!(
                "{name} is 8 bytes longer than its definition: the message has new fields, or a \
                 counter and checksum; one message alone cannot show which"
            )),
            Detection::Refuted => Some(format!(
                "{name} has no counter and checksum; earlier messages of that name were decoded \
                 incorrectly"
            )),
            _ => None,
        }
    }
}

impl Interpreter<Connection> for Reading {
    const FAMILY: &'static str = "tera";

    fn fork(&self) -> Option<(Self, usize)> {
        /// The state of counters and checksums: one entry per opcode.
        const SEALS: usize = 32 << 10;
        Some((self.clone(), size_of::<Self>() + SEALS))
    }

    fn received(&mut self, received: Received<'_>, emit: &mut Emit<'_>) {
        if !self.build_reported
            && let Some(packets) = introduced(&received, &self.definitions)
        {
            self.build_reported = true;
            self.packets = packets;
            self.signing.opcodes = Some(self.packets.integrity());
            self.signing.seed_opcode = self.packets.opcode(SEED_MESSAGE);
            self.keep_alives = Some(KEEP_ALIVES.map(|name| self.packets.opcode(name)));
            if let Some(note) = unmapped(&self.packets) {
                emit.note(Note::warning(note));
            }
        }
        if let Some(text) = self.advise(&received) {
            emit.note(Note::warning(text));
        }
        let seal = match received.unit {
            Unit::Message { .. } => self.seals.push(&self.packets, received.side, received.bytes),
            Unit::Hello | Unit::Key { .. } => Detection::Listed,
        };
        if let Some(text) = self.remark(seal, &received) {
            emit.note(Note::warning(text));
        }
        let message = TeraMessage { received, packets: &self.packets, form: seal.form() };
        if received.side == Side::Server
            && let Unit::Message { opcode } = received.unit
            && Some(opcode) == self.signing.seed_opcode
        {
            let tree = message.tree(Tree::new(), &Limits::DEFAULT);
            let seed = tree.find(SEED_FIELD).and_then(|node| node.unsigned());
            self.signing.seed = seed.and_then(|seed| u32::try_from(seed).ok());
        }
        emit.message(&message);
    }

    /// Only relays sign again and hold messages; other roles refuse these commands.
    fn inform(&mut self, sender: &mut Sender) {
        if let Some(opcodes) = self.keep_alives.take() {
            let _ = sender.set_keep_alives(opcodes);
        }
        if let Some(opcodes) = self.signing.opcodes.take() {
            let _ = sender.set_integrity(opcodes);
        }
        if let Some(seed) = self.signing.seed.take() {
            let _ = sender.set_integrity_seed(seed);
        }
    }

    fn secrets(&self, connection: &Connection) -> Option<String> {
        connection.keys().map(|keys| KeyFile::format_session(&keys))
    }

    fn news(&mut self, _: News, _: &mut Emit<'_>) {}
}

/// The messages of the build that the client reports in its first message.
fn introduced(received: &Received<'_>, definitions: &TeraDefinitions) -> Option<Arc<Packets>> {
    let first = received.side == Side::Client && matches!(received.unit, Unit::Message { .. });
    first.then(|| {
        let is_check = received.unit == Unit::Message { opcode: CHECK_VERSION };
        let check = is_check.then(|| CheckVersion::decode(received.bytes).ok()).flatten();
        definitions.packets(check.and_then(|check| check.protocol))
    })
}

/// A remark about a build without an opcode map.
fn unmapped(packets: &Packets) -> Option<String> {
    (!packets.has_map()).then(|| match packets.known().revision {
        Some(revision) => format!(
            "there is no opcode map for revision {revision}, so its messages have no names; supply \
             protocol.{revision}.map with --data"
        ),
        None => "the client does not report its build; use --revision".to_owned(),
    })
}

/// Fields that say little, and the key of the handshake. Passwords and tickets need no entry.
const HIDDEN: &[&str] = &["$integrity", "integrityIv", "key", "length", "opcode"];

/// A message or handshake step, with everything needed to decode it.
#[derive(Clone, Debug)]
struct TeraMessage<'i> {
    received: Received<'i>,
    packets: &'i Arc<Packets>,
    /// The header, if it differs from what the lists say.
    form: Option<HeaderForm>,
}

impl TeraMessage<'_> {
    fn decode<'t>(&'t self, reader: &mut Reader<'t, TreeBuilder<'t>>) -> Result<()> {
        match self.received.unit {
            Unit::Hello => reader.record("fields", |reader| reader.u32("hello").map(drop)),
            Unit::Key { number } => reader.record("fields", |reader| {
                let place = reader.place();
                reader.leaf_from("number", place, Value::Unsigned(number.into()));
                let left = reader.remaining();
                reader.bytes("key", left).map(drop)
            }),
            Unit::Message { .. } => self.packets.decode_as(reader, self.form).map(drop),
        }
    }
}

impl LineEncoder for Packets {
    fn encode_line(&self, line: &Line<'_>) -> Result<Vec<u8>> {
        match super::codecs::blob(line)? {
            Some((_, json)) => self.encode_json(&json),
            None => Err(line.no_message()),
        }
    }

    fn tree_of<'t>(
        &'t self,
        _: (Side, &str),
        body: &'t [u8],
        tree: Tree<'t>,
        limits: &'t Limits,
    ) -> Tree<'t> {
        let mut reader = Reader::traced_within("stream", body, tree, limits).opening(self);
        let outcome = self.decode(&mut reader).map(drop);
        reader.conclude(outcome).0
    }
}

impl Message for TeraMessage<'_> {
    fn push_name(&self, name: &mut String) {
        match self.received.unit {
            Unit::Hello => name.push_str("handshake.Hello"),
            Unit::Key { .. } => name.push_str("handshake.Key"),
            Unit::Message { opcode } => {
                name.push_str("tera.");
                match self.packets.get(opcode) {
                    Some(packet) => name.push_str(packet.name),
                    None => name.push_str(&opcode.to_string()),
                }
            }
        }
    }

    fn info_fields(&self, _: &str) -> InfoFields {
        InfoFields { shown: None, hidden: HIDDEN }
    }

    fn bytes(&self) -> &[u8] {
        self.received.bytes
    }

    fn is_message(&self) -> bool {
        self.received.is_message()
    }

    fn is_whole(&self) -> bool {
        match self.received.unit {
            Unit::Hello | Unit::Key { .. } => true,
            Unit::Message { .. } => {
                let mut reader = Reader::new(self.received.bytes);
                self.packets.decode_as(&mut reader, self.form).is_ok()
            }
        }
    }

    fn tree_of<'t>(&'t self, body: &'t [u8], tree: Tree<'t>, limits: &'t Limits) -> Tree<'t> {
        let mut reader =
            Reader::traced_within("stream", body, tree, limits).opening(&**self.packets);
        let outcome = self.decode(&mut reader);
        let mut tree = reader.conclude(outcome).0;
        tree.set_base(self.received.offset);
        tree
    }

    fn encode(&self, fields: &Json) -> Result<Vec<u8>> {
        let Unit::Message { opcode } = self.received.unit else {
            return Err(Error::value("a message", "a step of the handshake"));
        };
        // Without a definition, the fields are the whole message: header and payload.
        if fields.get("payload").is_some() && fields.get("opcode").is_some() {
            return self.packets.encode_json(fields);
        }
        let members = [("opcode", opcode.into()), ("fields", fields.clone())];
        let definition = self.packets.get(opcode).and_then(|packet| packet.definition);
        let version = definition.map(|definition| ("version", definition.version().into()));
        let json: Json = members.into_iter().chain(version).collect();
        self.packets.encode_json(&json)
    }

    fn editor<'m>(&'m self, body: &[u8]) -> Option<Box<dyn FieldEditor + 'm>> {
        let Unit::Message { opcode } = self.received.unit else { return None };
        let editor = TapeEditor::new(self.packets, opcode, self.form, body)?;
        Some(Box::new(editor))
    }

    fn line_encoder(&self) -> Option<Arc<dyn LineEncoder>> {
        let packets: Arc<Packets> = Arc::clone(self.packets);
        Some(packets)
    }

    fn push_members(&self, line: &mut String) {
        let Unit::Message { opcode } = self.received.unit else { return };
        if let Some(definition) = self.packets.get(opcode).and_then(|packet| packet.definition) {
            let version = definition.version();
            let _ = write!(line, ",\"opcode\":{opcode},\"version\":{version}");
        }
        if let Some(revision) = self.packets.known().revision {
            let _ = write!(line, ",\"revision\":{revision}");
        }
    }

    fn advice(&self) -> Option<Cow<'static, str>> {
        let Unit::Message { opcode } = self.received.unit else { return None };
        let packet = self.packets.get(opcode).filter(|packet| packet.definition.is_none())?;
        let version = self.packets.versions(packet.name).last()?.version();
        let name = packet.name;
        let name = name.get(..name.floor_char_boundary(MAX_NAME)).unwrap_or_default();
        Some(Cow::Owned(format!(
            "shown as bytes: every version of {name} is deprecated; to read such messages, use \
             --pin {name}.{version}"
        )))
    }

    fn lacks_definition(&self) -> bool {
        let Unit::Message { opcode } = self.received.unit else { return false };
        let packet = self.packets.get(opcode);
        packet.is_none_or(|packet| {
            packet.definition.is_none() && self.packets.versions(packet.name).is_empty()
        })
    }

    fn knowledge(&self) -> Option<&(dyn Any + Send + Sync)> {
        Some(self.packets)
    }
}
