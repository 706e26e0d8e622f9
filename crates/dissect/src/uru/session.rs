//! Recognises and reads Uru conversations.

use core::ops::RangeInclusive;
use std::borrow::Cow;
use std::sync::Arc;

use worldwire_core::json::{Given, Json};
use worldwire_core::{
    Classes, Error, Field, Limits, Names, Reader, Result, Side, Tree, Writer, connection,
};
use worldwire_uru::connect::ConnectPacket;
use worldwire_uru::connection::{Connection, News, Received, Unit};
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::file::keys::{KeyFileFormat, KeyRing};
use worldwire_uru::frame::{self, Service};
use worldwire_uru::games::GameBody;
use worldwire_uru::net_message::patch::HeaderLayout;
use worldwire_uru::net_message::{Compression, NetMessage, Payload, SdlState, Stream};
use worldwire_uru::plasma_message::PlasmaMessage;
use worldwire_uru::sdl::BlobHeader;
use worldwire_uru::types::ClassIndex;

use super::definitions::UruDefinitions;
use super::game_manager::{Contents, GameTypes, buffer_of};
use super::players::Players;
use crate::family::{HeldPiece, Opening, Start, Verdict};
use crate::info::InfoFields;
use crate::item::Note;
use crate::knowledge::{Fact, Facts};
use crate::message::{Message, NumberNames};
use crate::session::{Emit, Interpreter};

/// The maximum number of pieces examined in a conversation whose beginning is missing.
const MAX_PIECES: usize = 16;

/// Recognises the client's connect packet. If the beginning is missing, setup packets or complete
/// file messages serve instead.
pub(super) fn recognize(opening: &Opening<'_>) -> Verdict {
    if opening.midstream {
        let verdict = recognize_late(opening);
        if verdict != Verdict::NeedMore || opening.pieces.len() >= MAX_PIECES {
            return if verdict == Verdict::NeedMore { Verdict::No } else { verdict };
        }
        return verdict;
    }
    let [client, server] = Side::BOTH.map(|side| connects(&opening.first(side, 256)));
    Verdict::either(client, server)
}

fn recognize_late(opening: &Opening<'_>) -> Verdict {
    // A setup packet starts with its type and byte count. A client's number rarely has fewer bytes.
    let is_setup = |piece: &HeldPiece, kind: u8, counts: RangeInclusive<u8>| {
        let (Some(first), Some(count)) = (piece.bytes.first(), piece.bytes.get(1)) else {
            return false;
        };
        *first == kind && counts.contains(count) && piece.bytes.len() == usize::from(*count)
    };
    let side_of = |kind, counts: RangeInclusive<u8>| {
        let mut pieces = opening.pieces.iter();
        pieces.find(|piece| is_setup(piece, kind, counts.clone())).map(|piece| piece.side)
    };
    let asks = side_of(0, 62..=66).or_else(|| side_of(0, 2..=2));
    match (asks, side_of(1, 9..=9).or_else(|| side_of(1, 2..=2))) {
        (Some(Side::Client), Some(Side::Server)) => return Verdict::Yes,
        (Some(Side::Server), Some(Side::Client)) => return Verdict::Swapped,
        _ => {}
    }
    let of_files = |piece: &HeldPiece, side| fills(&piece.bytes, side);
    for piece in opening.pieces.iter().filter(|piece| piece.missing == 0) {
        match [piece.side, piece.side.other()].map(|side| of_files(piece, side)) {
            // Both directions fit, so the sides are left as they are.
            [true, _] => return Verdict::Yes,
            [false, true] => return Verdict::Swapped,
            [false, false] => {}
        }
    }
    // The client's first piece may still be a connect packet.
    match Side::BOTH.map(|side| connects(&opening.first(side, 256))) {
        [Verdict::Yes, _] => Verdict::Yes,
        [_, Verdict::Yes] => Verdict::Swapped,
        _ => Verdict::NeedMore,
    }
}

/// Whether these bytes are exactly a sequence of file messages, which have length fields.
fn fills(mut bytes: &[u8], side: Side) -> bool {
    let mut count = 0;
    while !bytes.is_empty() {
        let mut reader = Reader::new(bytes);
        if frame::Message::decode(Service::File, side, &mut reader).is_err() {
            return false;
        }
        bytes = bytes.get(reader.position()..).unwrap_or_default();
        count += 1;
    }
    count > 0
}

fn connects(first: &[u8]) -> Verdict {
    /// The connection type and the header's byte count.
    const HEAD: usize = 3;
    if first.len() < HEAD {
        return Verdict::NeedMore;
    }
    match ConnectPacket::decode_fields(&mut Reader::new(first)) {
        Ok(_) => Verdict::Yes,
        Err(error) if error.needed().is_some() => Verdict::NeedMore,
        Err(_) => Verdict::No,
    }
}

/// Emits pieces as messages.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    keys: Arc<KeyRing>,
    /// Opens object states in game messages.
    states: Arc<UruDefinitions>,
    players: Players,
    games: GameTypes,
    /// Whether it waits for player names, which a game connection does when it begins.
    waits: bool,
}

impl Reading {
    pub(super) fn new(start: &Start<'_>) -> Self {
        Self {
            keys: start.keys.part(),
            states: start.definitions.part(),
            players: Players::default(),
            games: GameTypes::default(),
            waits: false,
        }
    }
}

/// A piece, with everything needed to open its fields.
#[derive(Debug)]
struct UruMessage<'m> {
    received: &'m Received<'m>,
    contents: Contents<'m>,
    players: &'m Players,
}

/// Enough bytes for a state's head: flags, the longest name and the version.
const MAX_HEAD: usize = 2 + 2 + 4095 + 2 + 4200;
/// The maximum number of characters shown of a descriptor's name.
const MAX_NAME: usize = 60;

/// The kind of key that decrypts a service.
fn kind(service: Service) -> ServerKind {
    match service {
        Service::Gatekeeper => ServerKind::Gatekeeper,
        Service::Game => ServerKind::Game,
        Service::Auth | Service::File => ServerKind::Auth,
    }
}

impl Interpreter<Connection> for Reading {
    const FAMILY: &'static str = "uru";

    fn fork(&self) -> Option<(Self, usize)> {
        // The overhead of an entry; the text of a name is shared.
        const NAME: usize = 48;
        let bytes = size_of::<Self>() + NAME * (self.players.len() + self.games.len());
        Some((self.clone(), bytes))
    }

    fn received(&mut self, received: Received<'_>, emit: &mut Emit<'_>) {
        match received.unit {
            Unit::Connect => self.waits = received.name().1 == "CliToGame",
            Unit::Setup => {}
            Unit::Message(_) => self.waits = false,
        }
        self.players.learn_from(&received);
        self.games.learn_from(&received);
        let Self { states, players, games, .. } = self;
        let contents = Contents { states, games };
        emit.message(&UruMessage { received: &received, contents, players });
    }

    fn facts(&mut self) -> Vec<Fact> {
        self.players.facts()
    }

    fn waits(&self, _: &Connection) -> bool {
        self.waits
    }

    fn learn(&mut self, _: &mut Connection, facts: &Facts) {
        self.players.learn(facts);
        self.waits = false;
    }

    fn secrets(&self, connection: &Connection) -> Option<String> {
        connection.opened_with().map(|ring| ring.format(KeyFileFormat::Toml).to_string())
    }

    fn news(&mut self, news: News, emit: &mut Emit<'_>) {
        if let News::KeysNeeded { service } = news {
            let Some(service) = service else {
                let text = "the connect packet is missing, the connection is encrypted, and no \
                            given key decrypts it; supply the shard's keys with --keys";
                return emit.note(Note::problem(text.to_owned()));
            };
            let what = if self.keys.public(kind(service)).is_some() {
                "only the client's public key was given; supply the shard's private keys with --keys"
            } else {
                "no key was given; supply the shard's keys with --keys"
            };
            let name = service.name();
            emit.note(Note::problem(format!("the {name} connection is encrypted, and {what}")));
        }
    }
}

impl<'m> UruMessage<'m> {
    /// The net message of a `PropagateBuffer`.
    fn buffer(&self) -> Option<&'m [u8]> {
        /// Message number, class and length.
        const HEAD: usize = 10;
        let received: &'m Received<'m> = self.received;
        let is_game = received.unit == Unit::Message(Service::Game);
        let holds = is_game && received.name().1 == "PropagateBuffer";
        holds.then(|| received.bytes.get(HEAD..)).flatten()
    }

    /// Advice about a message of a game whose type is not known.
    fn games_advice(&self, buffer: &[u8]) -> Option<Cow<'static, str>> {
        let message = self.contents.games.decode(self.received.side, buffer).ok()?;
        matches!(message.body, GameBody::Unknown { .. }).then(|| {
            let advice = "of a game whose fields are shown as bytes: the capture lacks the \
                          GameInstance that reveals its type";
            Cow::Borrowed(advice)
        })
    }
}

/// The name of the class with this index.
fn name_of(class: Option<&[u8; 2]>, names: &'static Names) -> Option<&'static str> {
    names.name(u16::from_le_bytes(*class?).into())
}

fn class_name(buffer: &[u8]) -> Option<&'static str> {
    name_of(buffer.first_chunk(), NetMessage::NAMES)
}

/// The classes of net messages with a Plasma message inside.
const PAYLOADS: [ClassIndex; 3] = [
    ClassIndex::plNetMsgGameMessage,
    ClassIndex::plNetMsgGameMessageDirected,
    ClassIndex::plNetMsgLoadClone,
];
/// The classes of net messages with an object state inside.
const STATES: [ClassIndex; 2] = [ClassIndex::plNetMsgSDLState, ClassIndex::plNetMsgSDLStateBCast];

/// The class of the Plasma message inside, which precedes the deflated part.
fn payload_class(buffer: &[u8]) -> Option<&'static str> {
    /// Two lengths and the compression type.
    const STREAM: usize = 9;
    let class = u32::from(u16::from_le_bytes(*buffer.first_chunk()?));
    if !PAYLOADS.contains(&ClassIndex(class)) {
        return None;
    }
    let stream = HeaderLayout::of(buffer).ok()?.end;
    name_of(buffer.get(stream + STREAM..)?.first_chunk(), PlasmaMessage::NAMES)
}

/// Whether a payload can be read. A compressed one may exceed a limit on what is shown.
fn is_readable<K: Payload>(stream: &Stream<'_, K>) -> bool {
    let mut reader = Reader::new(stream.as_bytes());
    stream.compression() != Compression::Zlib
        && K::decode(&mut reader).is_ok()
        && reader.remaining() == 0
}

/// The object state in a net message.
fn state(buffer: &[u8]) -> Option<SdlState<'_>> {
    let class = ClassIndex(u16::from_le_bytes(*buffer.first_chunk()?).into());
    if !STATES.contains(&class) {
        return None;
    }
    match NetMessage::decode(&mut Reader::new(buffer), "").ok()? {
        NetMessage::SdlState(state) => Some(state),
        NetMessage::SdlStateBCast(broadcast) => Some(broadcast.state),
        _ => None,
    }
}

impl Message for UruMessage<'_> {
    fn push_name(&self, name: &mut String) {
        let (kind, message) = self.received.name();
        name.push_str(kind);
        name.push('.');
        name.push_str(message);
    }

    fn bytes(&self) -> &[u8] {
        self.received.bytes
    }

    fn is_message(&self) -> bool {
        connection::Piece::is_message(self.received)
    }

    /// Most messages have no length field, so a received one was already decoded to its end.
    fn is_whole(&self) -> bool {
        true
    }

    /// Whether it has a message inside. False if decoding that message without a trace shows that
    /// all of it can be read.
    fn has_contents(&self) -> bool {
        if let Some(buffer) = buffer_of(self.received) {
            return self.contents.games.decode(self.received.side, buffer).is_err();
        }
        let Some(buffer) = self.buffer() else { return false };
        let class = buffer.first_chunk().map_or(0, |class| u16::from_le_bytes(*class));
        if STATES.contains(&ClassIndex(class.into()))
            && !self.contents.states.descriptors().is_empty()
        {
            return true;
        }
        match NetMessage::decode(&mut Reader::new(buffer), "") {
            Ok(NetMessage::GameMessage(message)) => !is_readable(&message.stream),
            Ok(NetMessage::GameMessageDirected(message)) => !is_readable(&message.game.stream),
            Ok(NetMessage::LoadClone(message)) => !is_readable(&message.stream),
            Ok(_) => false,
            Err(_) => true,
        }
    }

    fn tree_of<'t>(&'t self, body: &'t [u8], tree: Tree<'t>, limits: &'t Limits) -> Tree<'t> {
        let received: Received<'t> = Received { bytes: body, ..*self.received };
        match received.unit {
            Unit::Message(Service::Game) => received.tree_opening(tree, limits, &self.contents),
            _ => received.tree(tree, limits),
        }
    }

    fn info_fields(&self, name: &str) -> InfoFields {
        super::info::fields(name)
    }

    fn transaction(&self) -> Option<u64> {
        super::transaction::number(self.received)
    }

    fn number_names(&self) -> Option<&dyn NumberNames> {
        (!self.players.is_empty()).then_some(self.players)
    }

    fn push_inside(&self, inside: &mut String) {
        if let Some(buffer) = buffer_of(self.received) {
            if let Some((scope, name)) = self.contents.games.name(self.received.side, buffer) {
                inside.extend([" ", scope, ".", name]);
            }
            return;
        }
        let Some(buffer) = self.buffer() else { return };
        let Some(class) = class_name(buffer) else { return };
        inside.push(' ');
        inside.push_str(class);
        if let Some(payload) = payload_class(buffer) {
            inside.push(' ');
            inside.push_str(payload);
        }
    }

    fn advice(&self) -> Option<Cow<'static, str>> {
        if let Some(buffer) = buffer_of(self.received) {
            return self.games_advice(buffer);
        }
        let state = self.buffer().and_then(state)?;
        if self.contents.states.descriptors().is_empty() {
            let advice = "with an object state (SDL) shown as bytes: supply descriptors (.sdl files) \
                          with --data";
            return Some(Cow::Borrowed(advice));
        }
        let start = state.stream.beginning(MAX_HEAD).ok()?;
        let head = BlobHeader::decode_fields(&mut Reader::new(&start)).ok()?;
        let name = head.name.to_text();
        if self.contents.states.descriptors().find(name.as_bytes(), head.version).is_ok() {
            return None;
        }
        let name = name.get(..name.floor_char_boundary(MAX_NAME)).unwrap_or_default();
        let (name, version) = (name.escape_debug(), head.version);
        Some(Cow::Owned(format!(
            "with a state of {name} {version} shown as bytes: supply its descriptor (.sdl files) with \
             --data"
        )))
    }

    fn encode(&self, fields: &Json) -> Result<Vec<u8>> {
        match self.received.unit {
            Unit::Message(service) => {
                let (_, name) = self.received.name();
                let members = [("name", name.into()), ("fields", fields.clone())];
                let json: Json = members.into_iter().collect();
                let given = Given::closing(&json, &self.contents);
                frame::Message::from_json(service, self.received.side, given)?.to_bytes()
            }
            Unit::Connect => {
                let mut writer = Writer::new();
                ConnectPacket::from_json(fields.into())?.encode(&mut writer)?;
                Ok(writer.into_bytes())
            }
            Unit::Setup => Err(Error::value("a message, or the connect packet", "a setup packet")),
        }
    }
}
