//! Replays captures of game connections into an age, compares the messages that every client
//! receives, and explains each difference from the recorded server or from the expectations.

#[path = "../uru_game/expected.rs"]
mod expected;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use expected::Agreement;
use worldwire_capture::{CaptureReader, Record};
use worldwire_core::json::Json;
use worldwire_core::{Classes, Field, Limits, Reader, Side, Tree};
use worldwire_dissect::{Definitions, Dissection, Item, Keys, Options, Scratch};
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::inflate::Inflater;
use worldwire_uru::message::game;
use worldwire_uru::net_message::{NetMessage, SdlState, received};
use worldwire_uru::plasma_message::{BroadcastFlags, MessageHeader, PlasmaMessage};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::BlobHeader;
use worldwire_uru::types::{ClassIndex, Uoid};

/// An age into which captures are replayed.
pub(crate) trait Stage {
    /// Restarts the age with its stored states, at a time since 1970.
    fn start(&mut self, unix: Duration);
    /// A player joins. Times count from the start.
    fn join(&mut self, now: Duration, player: u32);
    /// A player sends a message.
    fn receive(&mut self, now: Duration, player: u32, class: ClassIndex, buffer: &[u8]);
    /// A player leaves, if still present.
    fn leave(&mut self, now: Duration, player: u32);
    /// The messages that players have received since the last call.
    fn take(&mut self) -> Vec<(u32, Vec<u8>)>;
    /// Ends the replay. Returns the last messages that players received.
    fn end(&mut self, now: Duration) -> Vec<(u32, Vec<u8>)>;
}

/// The captures in a directory, and their age.
pub(crate) struct Recording {
    pub(crate) folder: PathBuf,
    /// The age's name in files.
    pub(crate) name: String,
    captures: Vec<Capture>,
    descriptors: Descriptors,
}

struct Capture {
    captured: Vec<Captured>,
    /// The expectations beside the capture, if any: the messages to send, by player.
    expected: BTreeMap<u32, Vec<Json>>,
    names: BTreeMap<u32, String>,
}

/// A message of a game connection.
struct Captured {
    stream: u64,
    from: Side,
    /// Nanoseconds since 1970.
    time: i64,
    bytes: Vec<u8>,
}

/// A line describing a received message, and the part that must be equal byte for byte.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    text: String,
    body: Option<Vec<u8>>,
    /// The net message.
    bytes: Vec<u8>,
    /// The expectations about it, by field.
    expected: Option<Json>,
}

impl Recording {
    /// The recording that the environment names, if any.
    pub(crate) fn of_environment() -> Option<Self> {
        let Some(folder) = std::env::var_os("WORLDWIRE_URU_AGES").map(PathBuf::from) else {
            println!("WORLDWIRE_URU_AGES names no folder: nothing to replay");
            return None;
        };
        let keys = std::env::var_os("WORLDWIRE_URU_KEYS")
            .map_or_else(|| folder.join("server-keys.ini"), PathBuf::from);
        let keys = std::fs::read_to_string(keys).unwrap();
        let name = std::env::var("WORLDWIRE_URU_AGE").unwrap_or_else(|_| "Fernbrook".to_owned());
        let mut captures: Vec<Capture> = paths(&folder)
            .iter()
            .filter(|path| path.extension().is_some_and(|ending| ending == "pcapng"))
            .map(|path| Capture::read(path, &keys))
            .collect();
        captures.sort_by_key(|capture| capture.captured.first().map(|first| first.time));
        let descriptors = expected::descriptors(&folder);
        Some(Self { folder, name, captures, descriptors })
    }

    /// Replays all captures and compares the results. A difference without a reason fails.
    pub(crate) fn play(&self, stage: &mut impl Stage) {
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        let (mut same, mut bytes_same, mut unexplained) = (0, 0, Vec::new());
        let (mut expected, mut fields) = (0, 0);
        for capture in &self.captures {
            let replay = replay(capture, stage);
            for (player, wanted) in &replay.recorded {
                let got = replay.ours.get(player).map_or(&[][..], Vec::as_slice);
                let comparison = compare(wanted, got, &self.descriptors);
                expected += comparison.expected;
                fields += comparison.fields;
                same += comparison.same;
                bytes_same += comparison.bytes_same;
                for (sign, text) in comparison.different {
                    match reason(sign, &text) {
                        Some(reason) => {
                            println!("{player} {sign} {text}");
                            *reasons.entry(reason.to_owned()).or_default() += 1;
                        }
                        None => unexplained.push(format!("{player} {sign} {text}")),
                    }
                }
            }
        }
        println!("{same} messages agree, {bytes_same} of them to the last byte of the payload");
        println!("{fields} fields of {expected} of them are as expected");
        for (reason, count) in &reasons {
            println!("{count:4} {reason}");
        }
        assert!(unexplained.is_empty(), "without a reason:\n{}", unexplained.join("\n"));
        assert!(same > 0);
        let is_expected = self.captures.iter().any(|capture| !capture.expected.is_empty());
        assert_eq!(fields > 0, is_expected);
    }

    /// All players: their numbers and expected names.
    pub(crate) fn players(&self) -> BTreeMap<u32, String> {
        let mut players = BTreeMap::new();
        for capture in &self.captures {
            for captured in &capture.captured {
                let mut reader = Reader::new(&captured.bytes);
                let message = Message::decode(Service::Game, captured.from, &mut reader).unwrap();
                if let Message::GameClient(game::client::ClientMessage::JoinAgeRequest(join)) =
                    message
                {
                    let player = join.player_id;
                    let name = capture.names.get(&player).cloned();
                    players.insert(player, name.unwrap_or_else(|| format!("Player {player}")));
                }
            }
        }
        players
    }
}

/// Why a message is only in the recording (-), only in our output (+), not equal in every byte (!),
/// or has an unexpected field (=).
fn reason(sign: char, text: &str) -> Option<&'static str> {
    let is = |start: &str| text.starts_with(start);
    let has = |part: &str| text.contains(part);
    if sign == '=' {
        let (line, field) = text.split_once(" | ")?;
        return field_reason(line, field);
    }
    Some(match sign {
        _ if is("InitialAgeStateSent") => "clones also count as initial messages",
        _ if is("MembersList") => {
            "the recorded server lists nobody before the client's own avatar is loaded"
        }
        '-' if is("SDLState initial") => "a list of rooms limits the states",
        '-' if has("[ends client]") => "a text that ends clients",
        '+' if has("[empty]") => "the recorded server cannot read an empty wide text",
        '!' if has("[beyond ASCII]") => "the recorded server garbles wide text",
        '!' if has("plAvPushBrainMsg") => "the recorded server rewrites the brain, and changes it",
        '-' | '+' if is("LoadClone initial") && has("Hen") => {
            "no clones for a members request; the new owner's name after a crash"
        }
        '-' | '+' if is("LoadClone initial") => {
            "clones at the state request, all of them, and none at a members request"
        }
        '-' | '+' if has("plServerReplyMsg") => {
            "a holder gets its lock again; also a race: the recorded server took two requests in a \
             different order from the capture"
        }
        '-' if is("GroupOwner true") => "the player present longest becomes the owner",
        _ => return None,
    })
}

/// The reason why a message's field differs from the recorded server's.
fn field_reason(line: &str, field: &str) -> Option<&'static str> {
    let (name, why) = field.split_once(": ")?;
    let class = line.split(' ').next()?;
    Some(match (class, name) {
        ("GameMessage" | "GameMessageDirected", "msg") if is_non_local(why) => {
            "the recorded server sets the non-local bit, which clients set themselves"
        }
        ("GameMessage" | "GameMessageDirected", "text") if line.contains("[beyond ASCII]") => {
            "the recorded server garbles wide text"
        }
        ("LoadClone", "flags" | "object" | "spawn" | "msg")
            if line.starts_with("LoadClone initial") =>
        {
            "the message that loaded the clone; the recorded server makes up a new one"
        }
        ("MembersList", "members") if why.starts_with('[') => {
            "members in the order in which they joined; the recorded server keeps none"
        }
        ("MemberUpdate", "member") if line.ends_with("false") && why.contains("0xffffffff") => {
            "chapter 8: an avatar that was unloaded is forgotten; the recorded server still names it"
        }
        ("SDLState", "compression") if why.starts_with("wanted 0, found Dont ") => {
            "chapter 4: bytes that are not deflated may be of type 0 or 3"
        }
        ("SDLState", "vars") if why.starts_with(".$") && why.ends_with(": not wanted") => {
            "nested variables merge; the recorded server forgets what was not sent again"
        }
        ("SDLStateBCast", "flags" | "compression") => {
            "the message as it was sent; the recorded server rewrites it"
        }
        ("SDLStateBCast", "vars") if why.ends_with(": missing") => {
            "only changes are forwarded; the recorded server sends the whole state"
        }
        _ => return None,
    })
}

/// Whether two sets of flags differ only in the non-local bit.
fn is_non_local(why: &str) -> bool {
    let numbers = why.strip_prefix("wanted ").and_then(|rest| rest.split_once(", found 0x"));
    numbers.is_some_and(|(wanted, found)| {
        let found = found.split(' ').next().unwrap_or_default();
        let found = u32::from_str_radix(found, 16).unwrap();
        wanted.parse::<u32>().unwrap() ^ found == 0x400
    })
}

pub(crate) fn paths(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

impl Capture {
    fn read(path: &Path, keys: &str) -> Self {
        let captured = conversations(path, keys);
        let mut capture = Self { captured, expected: BTreeMap::new(), names: BTreeMap::new() };
        let expected = PathBuf::from(format!("{}.expected.json", path.display()));
        if let Ok(text) = std::fs::read_to_string(expected) {
            let expected: Json = serde_json::from_str(&text).unwrap();
            for connection in expected["game_connections"].as_array().unwrap() {
                let player = connection["ki"].as_u64().unwrap().try_into().unwrap();
                let server = connection["server"].as_array().unwrap();
                capture.expected.entry(player).or_default().extend_from_slice(server);
                let name = connection["player"].as_str().unwrap().to_owned();
                capture.names.insert(player, name);
            }
        }
        capture
    }
}

/// The messages of a capture's game connections, in order.
fn conversations(capture: &Path, keys: &str) -> Vec<Captured> {
    let data = std::fs::read(capture).unwrap();
    let (keys, definitions) = (Keys::parse(keys).unwrap(), Definitions::built_in());
    let mut dissection = Dissection::new(Options { keys, definitions, ..Options::default() });
    let mut reader = CaptureReader::new(&data[..], &Limits::DEFAULT).unwrap();
    while let Some(record) = reader.next().unwrap() {
        if let Record::Packet(packet) = record {
            dissection.push(&packet);
        }
    }
    dissection.end();
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<Captured>| {
        let mut name = String::new();
        item.push_name(&mut name);
        if name.starts_with("game.") {
            let (stream, time) = (item.stamp.stream, item.stamp.time.0);
            out.push(Captured { stream, from: item.from, time, bytes: item.bytes().to_vec() });
        }
    };
    let mut found = Vec::new();
    dissection.run(&show, &mut found, |_| ());
    found.sort_by_key(|captured| captured.time);
    found
}

#[derive(Default)]
struct Replay {
    recorded: BTreeMap<u32, Vec<Line>>,
    ours: BTreeMap<u32, Vec<Line>>,
}

impl Replay {
    fn deliver(&mut self, deliveries: Vec<(u32, Vec<u8>)>) {
        for (player, bytes) in deliveries {
            self.ours.entry(player).or_default().push(line(&bytes));
        }
    }
}

fn replay(Capture { captured, expected, .. }: &Capture, stage: &mut impl Stage) -> Replay {
    let first = captured.first().map_or(0, |captured| captured.time);
    let at = |time: i64| Duration::from_nanos(u64::try_from(time - first).unwrap());
    stage.start(Duration::from_nanos(u64::try_from(first).unwrap()));
    let mut players: BTreeMap<u64, u32> = BTreeMap::new();
    let mut replay = Replay::default();
    for captured in captured {
        let now = at(captured.time);
        let mut reader = Reader::new(&captured.bytes);
        let message = Message::decode(Service::Game, captured.from, &mut reader).unwrap();
        match message {
            Message::GameClient(game::client::ClientMessage::JoinAgeRequest(join)) => {
                players.insert(captured.stream, join.player_id);
                stage.join(now, join.player_id);
            }
            Message::GameClient(game::client::ClientMessage::PropagateBuffer(it)) => {
                stage.receive(now, players[&captured.stream], it.type_, &it.buffer);
            }
            Message::GameServer(game::server::ServerMessage::PropagateBuffer(it)) => {
                // The recorded server reports that a player left.
                if let Some(gone) = who_is_gone(it.type_, &it.buffer) {
                    stage.leave(now, gone);
                }
                let player = players[&captured.stream];
                let lines = replay.recorded.entry(player).or_default();
                let expected = expected.get(&player).map(|all| all[lines.len()].clone());
                lines.push(Line { expected, ..line(&it.buffer) });
            }
            _ => {}
        }
        replay.deliver(stage.take());
    }
    replay.deliver(stage.end(at(captured.last().unwrap().time)));
    replay
}

fn who_is_gone(class: ClassIndex, buffer: &[u8]) -> Option<u32> {
    match received(class, buffer, &Limits::DEFAULT).unwrap() {
        NetMessage::MemberUpdate(update) if !update.was_added.is_true() => {
            update.member.client.player_id
        }
        NetMessage::LoadClone(load)
            if load.header.player_id.is_none() && !load.is_loading.is_true() =>
        {
            load.uoid.clone.map(|ids| ids.player_id)
        }
        _ => None,
    }
}

/// The parts of a message that are compared.
fn line(bytes: &[u8]) -> Line {
    let limits = &Limits::DEFAULT;
    let mut inflater = Inflater::new();
    let message = NetMessage::decode(&mut Reader::new(bytes), "").unwrap();
    let from = message.header().and_then(|header| header.player_id).unwrap_or(0);
    let mut body = None;
    let text = match &message {
        NetMessage::GroupOwner(owner) => format!("GroupOwner {}", owner.groups[0].owned.is_true()),
        NetMessage::MemberUpdate(update) => {
            let who = update.member.client.player_id.unwrap();
            format!("MemberUpdate {who} {}", update.was_added.is_true())
        }
        NetMessage::MembersList(list) => {
            let who = list
                .members
                .iter()
                .map(|member| (member.client.player_id.unwrap(), member.avatar.name.to_text()));
            format!("MembersList {:?}", who.collect::<BTreeSet<_>>())
        }
        NetMessage::InitialAgeStateSent(sent) => {
            format!("InitialAgeStateSent {}", sent.state_count)
        }
        NetMessage::SdlState(state) => state_text("SDLState", state),
        NetMessage::SdlStateBCast(broadcast) => {
            format!("{} from {from}", state_text("SDLStateBCast", &broadcast.state))
        }
        NetMessage::LoadClone(load) => {
            let payload = load.stream.payload(&mut inflater, limits).unwrap();
            let payload = PlasmaMessage::decode(&mut Reader::new(payload), "").unwrap();
            let clone = match payload {
                PlasmaMessage::LoadCloneMsg(clone) => clone,
                PlasmaMessage::LoadAvatarMsg(avatar) => avatar.clone_msg,
                other => panic!("{other:?}"),
            };
            let kind = match load.is_initial_state.is_true() {
                true => "LoadClone initial",
                false => "LoadClone",
            };
            let object = uoid(clone.clone.uoid().unwrap());
            let (by, loading) = (clone.originating_player_id, clone.loading.is_true());
            format!("{kind} {object} {} {loading} by {by}", load.is_player.is_true())
        }
        NetMessage::Voice(voice) => {
            body = Some(bytes[bytes.len().saturating_sub(4)..].to_vec());
            format!("Voice from {from} to {:?}", &*voice.receivers)
        }
        NetMessage::GameMessage(game) => {
            body = Some(plain_payload(bytes));
            let payload = game.stream.payload(&mut inflater, limits).unwrap();
            format!("GameMessage {} from {from}", payload_text(payload))
        }
        NetMessage::GameMessageDirected(directed) => {
            body = Some(plain_payload(bytes));
            let payload = directed.game.stream.payload(&mut inflater, limits).unwrap();
            format!("GameMessageDirected {} from {from}", payload_text(payload))
        }
        other => panic!("{other:?}"),
    };
    Line { text, body, bytes: bytes.to_vec(), expected: None }
}

fn state_text(kind: &str, state: &SdlState<'_>) -> String {
    let mut inflater = Inflater::new();
    let blob = state.stream.payload(&mut inflater, &Limits::DEFAULT).unwrap();
    let head = BlobHeader::decode_fields(&mut Reader::new(blob)).unwrap();
    let initial = if state.is_initial_state.is_true() { " initial" } else { "" };
    let flags = (state.persist_on_server.is_true(), state.is_avatar_state.is_true());
    format!("{kind}{initial} {} {} {flags:?}", uoid(&state.object), head.name.to_text())
}

fn uoid(object: &Uoid<'_>) -> String {
    let clone = object.clone.map(|ids| (ids.id, ids.player_id));
    let page = object.location.sequence_number.0;
    format!("{}@{page:x} {clone:?}", object.name.to_text())
}

fn payload_text(payload: &[u8]) -> String {
    let message = PlasmaMessage::decode(&mut Reader::new(payload), "").unwrap();
    let name = PlasmaMessage::NAMES.name(message.class().into()).unwrap_or("?").to_owned();
    match message {
        PlasmaMessage::ServerReplyMsg(reply) => format!("{name} {}", reply.reply_type),
        PlasmaMessage::KiMsg(chat) => {
            // The recorded server rewrites the name and damages it.
            let is_ascii = chat.user.stored().iter().all(|byte| byte & 0x80 != 0);
            let text = chat.text.to_text();
            let mark = match text.chars().next() {
                _ if !is_ascii => "[ends client]",
                None => "[empty]",
                Some(first) if !first.is_ascii() => "[beyond ASCII]",
                Some(_) => "",
            };
            let units = text.encode_utf16().count();
            format!("{name} {units} units {:?} {mark}", chat.flags)
        }
        _ => name,
    }
}

/// The payload, uncompressed and without the bit that the recorded server sets.
fn plain_payload(bytes: &[u8]) -> Vec<u8> {
    let limits = &Limits::DEFAULT;
    let mut inflater = Inflater::new();
    let mut payload = match NetMessage::decode(&mut Reader::new(bytes), "").unwrap() {
        NetMessage::GameMessage(game) => {
            game.stream.payload(&mut inflater, limits).unwrap().to_vec()
        }
        NetMessage::GameMessageDirected(directed) => {
            directed.game.stream.payload(&mut inflater, limits).unwrap().to_vec()
        }
        other => panic!("{other:?}"),
    };
    let mut reader = Reader::new(&payload);
    reader.u16("class").unwrap();
    // The flags are the last field of the header.
    let header = MessageHeader::decode(&mut reader, "").unwrap();
    let at = reader.position() - 4;
    let flags = header.bcast_flags.0 & !BroadcastFlags::NetNonLocal.0;
    payload[at..at + 4].copy_from_slice(&flags.to_le_bytes());
    payload
}

struct Comparison {
    same: usize,
    bytes_same: usize,
    /// The number of messages with expectations, and the number of fields that meet them.
    expected: usize,
    fields: usize,
    different: Vec<(char, String)>,
}

/// Compares the recording with our output. Initial messages have no fixed order, except that clones
/// precede states. Messages from different players have no fixed order either. So lines are
/// compared as a multiset, but lines from one sender must also be in order.
fn compare(wanted: &[Line], got: &[Line], descriptors: &Descriptors) -> Comparison {
    let mut left: Vec<&Line> = got.iter().collect();
    let mut comparison =
        Comparison { same: 0, bytes_same: 0, expected: 0, fields: 0, different: Vec::new() };
    for line in wanted {
        // The first line with the same text, because messages from one sender keep their order.
        match left.iter().position(|other| other.text == line.text) {
            Some(index) => {
                let other = left.remove(index);
                comparison.same += 1;
                if let Some(expected) = &line.expected {
                    let agreement = agreement(&other.bytes, expected, descriptors);
                    comparison.expected += 1;
                    comparison.fields += agreement.compared;
                    let named = |field| ('=', format!("{} | {field}", line.text));
                    comparison.different.extend(agreement.different.into_iter().map(named));
                }
                match (&line.body, &other.body) {
                    (Some(wanted), Some(got)) if wanted == got => comparison.bytes_same += 1,
                    (None, None) => {}
                    (Some(wanted), Some(got)) => {
                        let at = wanted.iter().zip(got).position(|(one, other)| one != other);
                        let lengths = (wanted.len(), got.len());
                        let text = format!("{} at {at:?} of {lengths:?}", line.text);
                        comparison.different.push(('!', text));
                    }
                    _ => comparison.different.push(('!', line.text.clone())),
                }
            }
            None => comparison.different.push(('-', line.text.clone())),
        }
    }
    comparison.different.extend(left.iter().map(|line| ('+', line.text.clone())));
    comparison
}

/// The difference between our message and the expectations for the recorded one.
fn agreement(bytes: &[u8], expected: &Json, descriptors: &Descriptors) -> Agreement {
    let mut reader = Reader::traced("message", bytes, Tree::new());
    let outcome = NetMessage::decode(&mut reader, "message");
    let (tree, message) = reader.conclude(outcome);
    let root = tree.find("message").unwrap();
    Agreement::of(root, &message.unwrap(), expected, descriptors)
}
