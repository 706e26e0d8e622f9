//! The toy as a family that can be dissected, as in `crates/dissect/src/FAMILY`.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Bounds, Piece};
use worldwire_core::json::{FieldsOf, Given, Json};
use worldwire_core::{
    Diagnostic, Limits, MessageInfo, Names, Reader, Result, Side, Source, Trace, Tree, Writer,
};
use worldwire_dissect::{
    Codec, CodecOptions, Definitions, Emit, Fact, Facts, Families, Family, Interpreter, KeyFault,
    Keys, Message as ItemMessage, MessageNames, Opening, RelaySession, Session, Start, Verdict,
    Vocabulary, Watched, read_opening,
};

use crate::connection::{Connection, News, Received, Role, Unit};
use crate::frame::{LETTERS, MAGIC};
use crate::message::{
    Channel, ClientMessage, ClientStep, Message, ParcelFlags, ServerMessage, ServerStep, names,
};

/// The toy. Keys are [`StepKeys`]; definitions are [`ParcelFlags`].
#[derive(Clone, Copy, Debug)]
pub struct Toy;

/// The built-in families and the toy, in place of a line in the registry.
static ALL: std::sync::LazyLock<Vec<&'static dyn Family>> =
    std::sync::LazyLock::new(|| Families::standard().iter().chain([&Toy as &dyn Family]).collect());

/// All families, including the toy.
pub fn families() -> Families {
    Families::new(&ALL)
}

/// Keys of datagrams, by session.
#[derive(Clone, Debug, Default)]
pub struct StepKeys(pub Vec<(u32, [u8; 4])>);

impl Family for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn vocabulary(&self) -> &dyn Vocabulary {
        self
    }

    fn speaks_datagrams(&self) -> bool {
        true
    }

    fn recognize(&self, opening: &Opening<'_>) -> Verdict {
        if opening.datagrams {
            let is_own = opening.pieces.iter().all(|piece| piece.bytes.starts_with(&LETTERS));
            return if is_own { Verdict::Yes } else { Verdict::No };
        }
        let greets = |side| {
            let first = opening.first(side, MAGIC.len());
            match first.len() == MAGIC.len() {
                _ if !MAGIC.starts_with(&first) => Verdict::No,
                true => Verdict::Yes,
                false => Verdict::NeedMore,
            }
        };
        match (greets(Side::Server), greets(Side::Client)) {
            (Verdict::Yes, _) => Verdict::Yes,
            (_, Verdict::Yes) => Verdict::Swapped,
            (Verdict::No, Verdict::No) => Verdict::No,
            _ => Verdict::NeedMore,
        }
    }

    fn session(&self, start: &Start<'_>) -> Box<dyn Session> {
        Box::new(watched(Role::Observer, start))
    }

    fn relay(
        &self,
        start: &Start<'_>,
        _: &mut dyn FnMut(&mut [u8]),
        _: Duration,
    ) -> Result<Box<dyn RelaySession>> {
        Ok(Box::new(watched(Role::Relay, start).injecting()))
    }

    fn codecs(&self) -> &'static [Codec] {
        CODECS
    }

    fn read_keys(&self, text: &str, keys: &mut Keys) -> Result<bool, Vec<KeyFault>> {
        let mut found = StepKeys::default();
        let mut faults = Vec::new();
        let lines = text.lines().enumerate();
        for (number, line) in lines.skip_while(|(_, line)| line.trim() != "[toy.step]").skip(1) {
            if line.trim().is_empty() {
                continue;
            }
            if line.starts_with('[') {
                break;
            }
            match key_line(line) {
                Some(key) => found.0.push(key),
                None => {
                    let message = "must have the form 7 = \"01020304\"".to_owned();
                    faults.push(KeyFault::Text { line: number + 1, column: 1, message });
                }
            }
        }
        let any = !found.0.is_empty();
        keys.edit(|known: &mut StepKeys| known.0.extend(found.0));
        if faults.is_empty() { Ok(any) } else { Err(faults) }
    }

    fn built_in(&self, definitions: &mut Definitions) {
        definitions.set(ParcelFlags::default());
    }

    fn may_define(&self, name: &str) -> bool {
        name.ends_with(".toy")
    }

    fn define(
        &self,
        files: &[(&str, &[u8])],
        definitions: &mut Definitions,
    ) -> Option<Vec<Diagnostic>> {
        let mut own = files.iter().filter(|(name, _)| self.may_define(name)).peekable();
        own.peek()?;
        let mut diagnostics = Vec::new();
        let mut names: Vec<(i64, Box<str>)> = Vec::new();
        for (file, bytes) in own {
            let text = String::from_utf8_lossy(bytes);
            let source = Source::new(file, &text);
            match text.trim().strip_prefix("flag ").and_then(|rest| rest.split_once(' ')) {
                Some((bit, name)) if bit.parse::<u8>().is_ok() => {
                    names.push((bit.parse().unwrap_or(0), name.into()));
                }
                _ => diagnostics.push(source.error(0..text.len(), "wanted `flag NUMBER NAME`")),
            }
        }
        definitions.edit(|flags: &mut ParcelFlags| {
            let known = flags.0.iter().map(|(bit, name)| (bit, name.into()));
            let all: Vec<(i64, Box<str>)> = known.chain(names).collect();
            flags.0 = Names::from_pairs(all);
        });
        Some(diagnostics)
    }
}

impl Vocabulary for Toy {
    fn messages<'d>(&self, definitions: &'d Definitions) -> Vec<MessageNames<'d>> {
        let flags = definitions.get_ref::<ParcelFlags>();
        let inner = ["bytes", "flags", "label", "class", "hand", "text"];
        let inner = || inner.into_iter().filter(|_| flags.is_some()).collect::<Vec<_>>();
        let tables = [Channel::Stream, Channel::Steps].into_iter().flat_map(|channel| {
            Side::BOTH.into_iter().flat_map(move |side| {
                let row = move |info: &MessageInfo| (name(channel), info.name, (info.fields)());
                table(channel, side).iter().map(row)
            })
        });
        let hello = ("setup", "Hello", vec!["session"]);
        let rows = tables.map(|(channel, name, fields)| {
            (channel, name, fields.into_iter().map(|field| field.name).collect())
        });
        rows.chain([hello])
            .map(|(channel, name, fields)| MessageNames {
                name: format!("{channel}.{name}"),
                fields,
                inner: inner(),
                is_complete: true,
            })
            .collect()
    }

    fn advice(&self) -> Option<&'static str> {
        Some("supply a file of flags with --data")
    }
}

fn key_line(line: &str) -> Option<(u32, [u8; 4])> {
    let (session, key) = line.split_once('=')?;
    let key = worldwire_core::value::parse_hex(key.trim().trim_matches('"'))?;
    Some((session.trim().parse().ok()?, key.try_into().ok()?))
}

fn watched(role: Role, start: &Start<'_>) -> Watched<Connection, Reading> {
    let bounds = Bounds::default();
    // With a single session in the capture, a key from the user suffices.
    let given = start.keys.get_ref::<StepKeys>().and_then(|keys| keys.0.first().copied());
    let connection = match start.datagrams {
        true => Connection::datagrams(role, given, bounds),
        false => Connection::stream(role, 0, bounds),
    };
    let reading = Reading { flags: start.definitions.part(), stated: Vec::new() };
    Watched::new(connection, reading)
}

/// Turns pieces into items.
#[derive(Debug)]
pub struct Reading {
    flags: Arc<ParcelFlags>,
    stated: Vec<Fact>,
}

impl Interpreter<Connection> for Reading {
    const FAMILY: &'static str = "toy";

    fn received(&mut self, received: Received<'_>, emit: &mut Emit<'_>) {
        emit.message(&ToyMessage { received, flags: &self.flags });
    }

    fn news(&mut self, news: News, _: &mut Emit<'_>) {
        if let News::Key(session, key) = news {
            let (family, name) = ("toy", session.to_string());
            self.stated.push(Fact { family, name, value: Arc::new(key) });
        }
    }

    fn facts(&mut self) -> Vec<Fact> {
        core::mem::take(&mut self.stated)
    }

    fn waits(&self, connection: &Connection) -> bool {
        connection.waits_for().is_some()
    }

    fn learn(&mut self, connection: &mut Connection, facts: &Facts) {
        let session = connection.waits_for().map(|session| session.to_string());
        let key = session.and_then(|session| facts.get::<[u8; 4]>("toy", &session));
        if let Some(key) = key {
            connection.set_key(*key);
        }
    }
}

/// A piece, with the flags that open its parcels.
#[derive(Debug)]
struct ToyMessage<'i> {
    received: Received<'i>,
    flags: &'i ParcelFlags,
}

impl ItemMessage for ToyMessage<'_> {
    fn push_name(&self, name: &mut String) {
        let Unit::Message(channel) = self.received.unit else {
            return name.push_str("setup.Hello");
        };
        let number = self.received.bytes.first().copied().unwrap_or(0);
        name.push_str(self::name(channel));
        name.push('.');
        match names(channel, self.received.side).name(number.into()) {
            Some(known) => name.push_str(known),
            None => name.push_str(&number.to_string()),
        }
    }

    fn bytes(&self) -> &[u8] {
        self.received.bytes
    }

    fn is_message(&self) -> bool {
        Piece::is_message(&self.received)
    }

    fn is_whole(&self) -> bool {
        match self.received.unit {
            Unit::Hello => true,
            Unit::Message(channel) => {
                let mut reader = Reader::new(self.received.bytes);
                decode(channel, self.received.side, &mut reader).is_ok()
            }
        }
    }

    fn tree_of<'t>(&'t self, body: &'t [u8], tree: Tree<'t>, limits: &'t Limits) -> Tree<'t> {
        let Received { side, unit, bytes, .. } = self.received;
        let mut reader = Reader::traced_within("stream", body, tree, limits).opening(self.flags);
        let outcome = match unit {
            Unit::Hello => reader.record("fields", |reader| {
                reader.take(MAGIC.len())?;
                reader.u32("session").map(drop)
            }),
            Unit::Message(channel) => decode(channel, side, &mut reader),
        };
        let mut tree = reader.conclude(outcome).0;
        tree.set_base(self.received.range().end - bytes.len() as u64);
        tree
    }

    fn encode(&self, fields: &Json) -> Result<Vec<u8>> {
        match self.received.unit {
            Unit::Hello => {
                let mut fields = FieldsOf::new(fields)?;
                let mut writer = Writer::new();
                writer.bytes(&MAGIC);
                writer.u32(fields.value("session")?);
                Ok(writer.into_bytes())
            }
            Unit::Message(channel) => {
                let number = self.received.bytes.first().copied().unwrap_or(0);
                let given = Given::closing(fields, self.flags);
                Message::from_json(channel, self.received.side, number, given)?.to_bytes()
            }
        }
    }
}

fn decode<'d, 'n, T: Trace<'n>>(
    channel: Channel,
    side: Side,
    reader: &mut Reader<'d, T>,
) -> Result<()> {
    Message::decode(channel, side, reader).and_then(|_| reader.end())
}

fn name(channel: Channel) -> &'static str {
    match channel {
        Channel::Stream => "toy",
        Channel::Steps => "step",
    }
}

fn table(channel: Channel, side: Side) -> &'static [MessageInfo] {
    use worldwire_core::Messages;
    match (channel, side) {
        (Channel::Stream, Side::Client) => ClientMessage::INFO,
        (Channel::Stream, Side::Server) => ServerMessage::INFO,
        (Channel::Steps, Side::Client) => ClientStep::INFO,
        (Channel::Steps, Side::Server) => ServerStep::INFO,
    }
}

static CODECS: &[Codec] = &[
    Codec {
        sided: true,
        tables: || Side::BOTH.map(|side| table(Channel::Steps, side)).to_vec(),
        ..Codec::new(
            "toy.step",
            "a message of a datagram",
            |data, options, tree| decode_blob("toy.step", Channel::Steps, data, options, tree),
            |json, options| encode_blob(Channel::Steps, json, options),
        )
    },
    Codec {
        sided: true,
        tables: || Side::BOTH.map(|side| table(Channel::Stream, side)).to_vec(),
        ..Codec::new(
            "toy.stream",
            "a message of a TCP connection",
            |data, options, tree| decode_blob("toy.stream", Channel::Stream, data, options, tree),
            |json, options| encode_blob(Channel::Stream, json, options),
        )
    },
];

fn flags(definitions: &Definitions) -> &ParcelFlags {
    static NONE: std::sync::LazyLock<ParcelFlags> = std::sync::LazyLock::new(ParcelFlags::default);
    definitions.get_ref::<ParcelFlags>().unwrap_or_else(|| &NONE)
}

fn decode_blob<'d>(
    name: &'static str,
    channel: Channel,
    data: &'d [u8],
    options: &CodecOptions<'d>,
    tree: Tree<'d>,
) -> Tree<'d> {
    let from = options.from;
    read_opening(name, data, options, tree, flags(options.definitions), |reader| {
        decode(channel, from, reader)
    })
}

fn encode_blob(channel: Channel, json: &Json, options: &CodecOptions<'_>) -> Result<Vec<u8>> {
    let mut parts = FieldsOf::new(Given::closing(json, flags(options.definitions)))?;
    let number = parts.value("number")?;
    let fields = parts.given("fields")?;
    parts.end()?;
    Message::from_json(channel, options.from, number, fields)?.to_bytes()
}
