//! Checks game connections of real clients with a real server. Every net message is decoded to its
//! last byte and has the meaning that was recorded by the programs that wrote it.
//!
//! `WORLDWIRE_URU_GAME` names a directory with captures (`NAME.pcapng`), expectations
//! (`NAME.pcapng.expected.json`), and the shard's keys (`server-keys.ini`, or the file that
//! `WORLDWIRE_URU_KEYS` names).

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod expected;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use expected::{Agreement, Outcome, ensure};

use sha2::{Digest as _, Sha256};
use worldwire_capture::{CaptureReader, Record};
use worldwire_core::json::Json;
use worldwire_core::{Field, Limits, Reader, Side, Tree, Value, Writer};
use worldwire_dissect::{Definitions, Dissection, Item, Keys, Options, Scratch};
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::inflate::Inflater;
use worldwire_uru::message::game;
use worldwire_uru::net_message::{NetMessage, received};
use worldwire_uru::safety::{Reason, Rules, check, lint};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::types::ClassIndex;

#[test]
fn real_game_connections() {
    let Some(folder) = std::env::var_os("WORLDWIRE_URU_GAME").map(PathBuf::from) else {
        println!("WORLDWIRE_URU_GAME names no folder: nothing to read");
        return;
    };
    let keys = std::env::var_os("WORLDWIRE_URU_KEYS")
        .map_or_else(|| folder.join("server-keys.ini"), PathBuf::from);
    let keys = std::fs::read_to_string(keys).unwrap();
    let mut total = Sums::default();
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        let Some(capture) = name.strip_suffix(".expected.json") else { continue };
        files += 1;
        let sums = capture_agrees(Path::new(capture), &path, &keys);
        println!("{capture}: {sums:?}");
        total.add(&sums);
    }
    assert!(files > 0, "{}: no expectations", folder.display());
    println!("all: {total:?}");
}

/// Totals over all captures.
#[derive(Debug, Default)]
struct Sums {
    connections: usize,
    messages: usize,
    bytes: usize,
    payloads: usize,
    fields: usize,
    deflated: usize,
    /// States that were decoded, and those that dirtsand damaged.
    states: usize,
    damaged: usize,
    refused_of_players: BTreeMap<String, usize>,
    ends_client: usize,
    remarks: BTreeMap<String, usize>,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.payloads += other.payloads;
        self.fields += other.fields;
        self.deflated += other.deflated;
        self.states += other.states;
        self.damaged += other.damaged;
        self.ends_client += other.ends_client;
    }
}

/// A net message on a game connection.
struct Captured {
    class: ClassIndex,
    bytes: Vec<u8>,
    /// Whether the object state in it could be decoded; `None` if it has none.
    state: Option<bool>,
}

/// The net messages of each conversation, by side, in order.
type Conversations = BTreeMap<u64, [Vec<Captured>; 2]>;

fn conversations(capture: &Path, keys: &str) -> Conversations {
    let data = std::fs::read(capture).unwrap();
    let folder = capture.parent().unwrap().join("sdl");
    let states: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.to_string_lossy().into_owned(), std::fs::read(path).unwrap()))
        .collect();
    let mut definitions = Definitions::built_in();
    assert_eq!(definitions.add(states), Some(Vec::new()));
    let keys = Keys::parse(keys).unwrap();
    let mut dissection = Dissection::new(Options { keys, definitions, ..Options::default() });
    let mut reader = CaptureReader::new(&data[..], &Limits::DEFAULT).unwrap();
    while let Some(record) = reader.next().unwrap() {
        if let Record::Packet(packet) = record {
            dissection.push(&packet);
        }
    }
    dissection.end();
    let limits = Limits::DEFAULT;
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<(u64, Side, Captured)>| {
        let mut name = String::new();
        item.push_name(&mut name);
        if name != "game.PropagateBuffer" {
            return;
        }
        // The field is opened and encodes to the same bytes.
        let tree = item.tree(Tree::new(), &limits);
        assert_eq!(tree.error(), None);
        let sdl = tree.find("fields.buffer.message.stream.sdl");
        let state = sdl.map(|sdl| sdl.child("state").is_some());
        let damaged = tree.remarks().iter().any(|remark| remark.to_string().contains("dirtsand"));
        assert_eq!(tree.remarks().len(), usize::from(state == Some(false)), "{:?}", tree.remarks());
        assert_eq!(damaged, state == Some(false), "{:?}", tree.remarks());
        assert!(tree.find("fields.buffer.message.class").is_some());
        let mut text = String::new();
        let fields = tree.find("fields").unwrap();
        worldwire_core::json::write_node(fields, Default::default(), &mut text);
        let json: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(item.encode(&json).unwrap(), item.body());
        let message =
            Message::decode(Service::Game, item.from, &mut Reader::new(item.bytes())).unwrap();
        let captured = match message {
            Message::GameClient(game::client::ClientMessage::PropagateBuffer(it)) => {
                Captured { class: it.type_, bytes: it.buffer.to_vec(), state }
            }
            Message::GameServer(game::server::ServerMessage::PropagateBuffer(it)) => {
                Captured { class: it.type_, bytes: it.buffer.to_vec(), state }
            }
            _ => panic!("{}: another message", item.stamp.stream),
        };
        out.push((item.stamp.stream, item.from, captured));
    };
    let mut found = Vec::new();
    dissection.run(&show, &mut found, |_| ());
    let mut conversations = Conversations::new();
    for (stream, from, captured) in found {
        let [client, server] = conversations.entry(stream).or_default();
        if from == Side::Client { client } else { server }.push(captured);
    }
    conversations
}

fn capture_agrees(capture: &Path, expected: &Path, keys: &str) -> Sums {
    let expected: Json = serde_json::from_str(&std::fs::read_to_string(expected).unwrap()).unwrap();
    let connections = expected["game_connections"].as_array().unwrap();
    let conversations = conversations(capture, keys);
    let descriptors = expected::descriptors(capture.parent().unwrap());
    assert_eq!(conversations.len(), connections.len(), "connections with net messages");
    let mut sums = Sums { connections: connections.len(), ..Sums::default() };
    for (captured, wanted) in conversations.values().zip(connections) {
        for (side, captured) in [Side::Client, Side::Server].into_iter().zip(captured) {
            let wanted = wanted[side.name()].as_array().unwrap();
            assert_eq!(captured.len(), wanted.len(), "messages of the {side}");
            for (index, (captured, wanted)) in captured.iter().zip(wanted).enumerate() {
                message_agrees(side, captured, wanted, &descriptors, &mut sums)
                    .unwrap_or_else(|why| panic!("{side}[{index}]: {why}\n{wanted}"));
            }
        }
    }
    sums
}

fn message_agrees(
    side: Side,
    captured: &Captured,
    wanted: &Json,
    descriptors: &Descriptors,
    sums: &mut Sums,
) -> Outcome {
    let state = wanted.get("sdl").map(|_| wanted.get("sdl_unreadable").is_none());
    ensure(
        captured.state == state,
        format!("state: wanted {state:?}, found {:?}", captured.state),
    )?;
    sums.states += usize::from(state == Some(true));
    sums.damaged += usize::from(state == Some(false));
    let limits = Limits::DEFAULT;
    let bytes = &captured.bytes[..];
    sums.messages += 1;
    sums.bytes += bytes.len();
    ensure(wanted["len"] == bytes.len(), "another length")?;
    let digest: String =
        Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    ensure(wanted["sha256_16"] == *digest, "different bytes")?;
    let message = received(captured.class, bytes, &limits).map_err(|error| error.to_string())?;
    let mut writer = Writer::new();
    message.encode(&mut writer).map_err(|error| error.to_string())?;
    ensure(writer.as_bytes() == bytes, "encodes to different bytes")?;

    let mut traced = Reader::traced("message", bytes, Tree::new());
    let outcome = NetMessage::decode(&mut traced, "message");
    let (tree, outcome) = traced.conclude(outcome);
    ensure(outcome.as_ref() == Ok(&message), "the trace changes the value")?;
    let root = tree.find("message").ok_or("no tree")?;
    let agreement = Agreement::of(root, &message, wanted, descriptors);
    ensure(agreement.different.is_empty(), agreement.different.join("\n"))?;
    sums.fields += agreement.compared;
    let payload = tree.find("message.stream.payload");
    if let Some(payload) = payload {
        ensure(matches!(payload.value(), Value::Record), "a payload that is only bytes")?;
        sums.payloads += 1;
    }
    if wanted["compression"] == 2 {
        sums.deflated += 1;
    }

    let mut inflater = Inflater::new();
    let admin = check(bytes, &Rules::ADMIN, &mut inflater, &limits);
    let throws = wanted.get("client_throws").is_some();
    match admin {
        Ok(()) => ensure(!throws, "passed a text that ends the client")?,
        Err(refusal) => {
            ensure(throws && refusal.reason == Reason::Text, refusal.to_string())?;
            sums.ends_client += 1;
        }
    }
    if side == Side::Client
        && let Err(refusal) = check(bytes, &Rules::PLAYER, &mut inflater, &limits)
    {
        let what = wanted["payload"].as_str().unwrap_or_default().to_owned();
        *sums.refused_of_players.entry(format!("{what} {:?}", refusal.reason)).or_default() += 1;
    }
    for remark in lint::lint(captured.class, bytes, side, &limits) {
        *sums.remarks.entry(format!("{side}: {remark}")).or_default() += 1;
    }
    Ok(())
}
