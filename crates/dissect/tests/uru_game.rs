//! Game connections of real clients and a real server: every net message is read to its last byte,
//! and says what the programs that made it said of it.
//!
//! `WORLDWIRE_URU_GAME` names a directory with captures (`NAME.pcapng`), what is expected of each
//! (`NAME.pcapng.expected.json`), and the shard's keys (`server-keys.ini`, or the file that
//! `WORLDWIRE_URU_KEYS` names).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use worldwire_capture::{CaptureReader, Record};
use worldwire_core::json::Json;
use worldwire_core::value::{Content, parse_hex};
use worldwire_core::{Field, Limits, NodeRef, Reader, Side, Tree, Value, Writer};
use worldwire_dissect::{Definitions, Dissection, Item, Keys, Options, Scratch};
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::inflate::Inflater;
use worldwire_uru::message::game;
use worldwire_uru::net_message::{NetMessage, received};
use worldwire_uru::safety::{Reason, Rules, check, lint};
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

/// What was met.
#[derive(Debug, Default)]
struct Sums {
    connections: usize,
    messages: usize,
    bytes: usize,
    payloads: usize,
    fields: usize,
    deflated: usize,
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
        self.ends_client += other.ends_client;
    }
}

/// A net message on a game connection.
struct Said {
    class: ClassIndex,
    bytes: Vec<u8>,
}

/// The net messages of each conversation, by side, in order.
type Conversations = BTreeMap<u64, [Vec<Said>; 2]>;

fn conversations(capture: &Path, keys: &str) -> Conversations {
    let data = std::fs::read(capture).unwrap();
    let definitions = Definitions::built_in();
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
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<(u64, Side, Vec<u8>)>| {
        let mut name = String::new();
        item.push_name(&mut name);
        if name != "game.PropagateBuffer" {
            return;
        }
        // The field is opened, and encodes to the same bytes again.
        let tree = item.tree(Tree::new(), &limits);
        assert_eq!(tree.error(), None);
        assert!(tree.remarks().is_empty(), "{:?}", tree.remarks());
        assert!(tree.find("fields.buffer.message.class").is_some());
        let mut text = String::new();
        let fields = tree.find("fields").unwrap();
        worldwire_core::json::write_node(fields, Default::default(), &mut text);
        let json: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(item.encode(&json).unwrap(), item.body());
        out.push((item.stamp.stream, item.from, item.bytes().to_vec()));
    };
    let mut found = Vec::new();
    dissection.run(&show, &mut found, |_| ());
    let mut conversations = Conversations::new();
    for (stream, from, bytes) in found {
        let message = Message::decode(Service::Game, from, &mut Reader::new(&bytes)).unwrap();
        let said = match message {
            Message::GameClient(game::client::ClientMessage::PropagateBuffer(it)) => {
                Said { class: it.type_, bytes: it.buffer.to_vec() }
            }
            Message::GameServer(game::server::ServerMessage::PropagateBuffer(it)) => {
                Said { class: it.type_, bytes: it.buffer.to_vec() }
            }
            _ => panic!("{stream}: another message"),
        };
        let [client, server] = conversations.entry(stream).or_default();
        if from == Side::Client { client } else { server }.push(said);
    }
    conversations
}

fn capture_agrees(capture: &Path, expected: &Path, keys: &str) -> Sums {
    let expected: Json = serde_json::from_str(&std::fs::read_to_string(expected).unwrap()).unwrap();
    let connections = expected["game_connections"].as_array().unwrap();
    let conversations = conversations(capture, keys);
    assert_eq!(conversations.len(), connections.len(), "connections with net messages");
    let mut sums = Sums { connections: connections.len(), ..Sums::default() };
    for (said, wanted) in conversations.values().zip(connections) {
        for (side, said) in [Side::Client, Side::Server].into_iter().zip(said) {
            let wanted = wanted[side.name()].as_array().unwrap();
            assert_eq!(said.len(), wanted.len(), "messages of the {side}");
            for (index, (said, wanted)) in said.iter().zip(wanted).enumerate() {
                message_agrees(side, said, wanted, &mut sums)
                    .unwrap_or_else(|why| panic!("{side}[{index}]: {why}\n{wanted}"));
            }
        }
    }
    sums
}

type Outcome = Result<(), String>;

fn ensure(good: bool, what: impl Into<String>) -> Outcome {
    if good { Ok(()) } else { Err(what.into()) }
}

fn message_agrees(side: Side, said: &Said, wanted: &Json, sums: &mut Sums) -> Outcome {
    let limits = Limits::DEFAULT;
    let bytes = &said.bytes[..];
    sums.messages += 1;
    sums.bytes += bytes.len();
    ensure(wanted["len"] == bytes.len(), "another length")?;
    let digest: String =
        Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    ensure(wanted["sha256_16"] == *digest, "other bytes")?;
    let message = received(said.class, bytes, &limits).map_err(|error| error.to_string())?;
    let mut writer = Writer::new();
    message.encode(&mut writer).map_err(|error| error.to_string())?;
    ensure(writer.as_bytes() == bytes, "encodes to other bytes")?;

    let mut traced = Reader::traced("message", bytes, Tree::new());
    let outcome = NetMessage::decode(&mut traced, "message");
    let (tree, outcome) = traced.conclude(outcome);
    ensure(outcome.as_ref() == Ok(&message), "the trace changes the value")?;
    let root = tree.find("message").ok_or("no tree")?;
    let mut compared = 0;
    fields_agree(root, wanted, &mut compared)?;
    sums.fields += compared;
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
        Ok(()) => ensure(!throws, "a text that ends the client passed")?,
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
    for remark in lint::lint(said.class, bytes, side, &limits) {
        *sums.remarks.entry(format!("{side}: {remark}")).or_default() += 1;
    }
    Ok(())
}

/// Compares what the expectation has a name for, and counts it.
fn fields_agree(root: NodeRef<'_, '_>, wanted: &Json, compared: &mut usize) -> Outcome {
    for (key, wanted_value) in wanted.as_object().ok_or("no object")? {
        let places: &[&str] = match key.as_str() {
            "class" => &["class"],
            "payload" => &["stream.payload.class"],
            "flags" => &["flags"],
            "player" => &["playerId"],
            "compression" => &["stream.compression"],
            "object" => &["object", "uoid"],
            "is_player" => &["isPlayer"],
            "loading" => &["isLoading"],
            "initial" => &["isInitialState"],
            "persist" => &["persistOnServer"],
            "avatar" => &["isAvatarState"],
            "spawn" => &["stream.payload.spawnPoint"],
            "user_string" => &["stream.payload.userString"],
            "msg_is_player" => &["stream.payload.isPlayer"],
            "has_task" => &["stream.payload.hasInitialTask"],
            "clone" => &["stream.payload.clone"],
            "requestor" => &["stream.payload.requestor"],
            "originating" => &["stream.payload.originatingPlayerId"],
            "user_data" => &["stream.payload.userData"],
            "msg_loading" => &["stream.payload.loading"],
            "trigger" => &["stream.payload.trigger"],
            "unload" => &["unload"],
            "page_flags" => &["pageFlags"],
            "leaving" => &["stream.payload.leaving"],
            "link_key" => &["stream.payload.linkKey"],
            "invis" => &["stream.payload.invisLevel"],
            "effect_flags" => &["stream.payload.effects"],
            "lock_request" => &["lockRequest"],
            "shared_name" => &["stream.sharedState.name"],
            "may_delete" => &["stream.sharedState.serverMayDelete"],
            "shared_value" => &["stream.sharedState.variables[0].value.value"],
            "notify_type" => &["stream.payload.notifyType"],
            "notify_state" => &["stream.payload.state"],
            "notify_id" => &["stream.payload.id"],
            "ki_command" => &["stream.payload.command"],
            "user" => &["stream.payload.user"],
            "ki_player" => &["stream.payload.playerId"],
            "text" => &["stream.payload.text"],
            "ki_flags" => &["stream.payload.flags"],
            "count" => &["stateCount"],
            "reply" => &["stream.payload.replyType"],
            "adding" => &["wasAdded"],
            "state" => &["stream.payload.state"],
            "anim" => &["stream.payload.animName"],
            "loop" => &["stream.payload.loopName"],
            "begin" => &["stream.payload.begin"],
            "end" => &["stream.payload.end"],
            "loop_begin" => &["stream.payload.loopBegin"],
            "loop_end" => &["stream.payload.loopEnd"],
            "speed" => &["stream.payload.speed"],
            "rate" => &["stream.payload.speedChangeRate"],
            "anim_time" => &["stream.payload.time"],
            "voice_flags" => &["voiceFlags"],
            "frames" => &["frameCount"],
            "warp_flags" => &["stream.payload.warpFlags"],
            // What is no field of its own, or belongs to the state inside.
            _ => &[],
        };
        let outcome = match places {
            [] => other_agrees(root, key, wanted, wanted_value, compared),
            places => {
                *compared += 1;
                let node = places.iter().find_map(|place| find(root, place));
                node.ok_or_else(|| "is missing".to_owned())
                    .and_then(|node| agrees(node, wanted_value))
            }
        };
        outcome.map_err(|why| format!("{key}: {why}"))?;
    }
    Ok(())
}

fn other_agrees(
    root: NodeRef<'_, '_>,
    key: &str,
    wanted: &Json,
    value: &Json,
    compared: &mut usize,
) -> Outcome {
    *compared += 1;
    match key {
        "payload_index" => {
            let payload = find(root, "stream.payload").ok_or("is missing")?.raw();
            let class = payload.first_chunk().map(|class| u16::from_le_bytes(*class));
            ensure(class.map(u64::from) == value.as_u64(), "another class")
        }
        "msg" => {
            let payload = find(root, "stream.payload").ok_or("is missing")?;
            let flags = payload.child("bcastFlags").ok_or("no flags")?;
            let (zero, none) = (Json::from(0), Json::from("-"));
            agrees(flags, value.get("bcast").unwrap_or(&zero))?;
            agrees(
                payload.child("sender").ok_or("no sender")?,
                value.get("sender").unwrap_or(&none),
            )?;
            let receivers = payload.child("receivers").ok_or("no receivers")?;
            list_agrees(receivers, value.get("receivers"), agrees)
        }
        "rooms" => list_agrees(root.child("rooms").ok_or("no rooms")?, Some(value), |room, it| {
            let location = room.child("location").ok_or("no location")?;
            agrees(location.child("sequenceNumber").ok_or("no number")?, &it["seq"])?;
            agrees(location.child("flags").ok_or("no flags")?, &it["loc_flags"])?;
            agrees(room.child("name").ok_or("no name")?, &it["name"])
        }),
        "groups" => list_agrees(root.child("groups").ok_or("none")?, Some(value), |group, it| {
            let location = group.child("location").ok_or("no location")?;
            agrees(location.child("sequenceNumber").ok_or("no number")?, &it["seq"])?;
            agrees(location.child("flags").ok_or("no flags")?, &it["loc_flags"])?;
            agrees(group.child("owned").ok_or("no owner")?, &it["own"])
        }),
        "member" => member_agrees(root.child("member").ok_or("no member")?, value),
        "members" => list_agrees(root.child("members").ok_or("none")?, Some(value), member_agrees),
        "players" => list_agrees(root.child("receivers").ok_or("none")?, Some(value), agrees),
        "shared_vars" => {
            let variables = find(root, "stream.sharedState.variables").ok_or("none")?;
            ensure(value == variables.children().count(), "another count")
        }
        "events" => {
            let events = find(root, "stream.payload.events").ok_or("none")?;
            ensure(value == events.children().count(), "another count")
        }
        "event_types" => {
            let events = find(root, "stream.payload.events").ok_or("none")?;
            list_agrees(events, Some(value), |event, it| {
                agrees(event.child("class").ok_or("no type")?, it)
            })
        }
        "voice_len" => {
            let voice = ["pcm", "speex", "opus"].into_iter().find_map(|name| root.child(name));
            let length = voice.ok_or("no voice")?.raw().len() - 2;
            ensure(value == length, "another length")
        }
        // The descriptor of a state stands behind two bytes of flags.
        "sdl" if wanted.get("sdl_unreadable").is_none() => {
            let blob = find(root, "stream.sdl").ok_or("no state")?.raw();
            let mut reader = Reader::new(&blob[2..]);
            let name = worldwire_uru::types::SafeString::decode(&mut reader, "name");
            ensure(name.is_ok_and(|name| *value == *name.to_text()), "another descriptor")
        }
        _ => {
            *compared -= 1;
            let known = [
                "len",
                "sha256_16",
                "vars",
                "sdl",
                "sdl_version",
                "sdl_record_flags",
                "sdl_unreadable",
                "client_throws",
                "note",
            ];
            ensure(known.contains(&key), "nothing is known of it")
        }
    }
}

fn member_agrees(member: NodeRef<'_, '_>, wanted: &Json) -> Outcome {
    let client = member.child("client").ok_or("no client")?;
    agrees(client.child("playerId").ok_or("no player")?, &wanted["ki"])?;
    agrees(client.child("playerName").ok_or("no name")?, &wanted["name"])?;
    agrees(client.child("flags").ok_or("no flags")?, &wanted["guid_flags"])?;
    agrees(member.child("flags").ok_or("no flags")?, &wanted["member_flags"])?;
    match wanted.get("avatar") {
        Some(avatar) => agrees(member.child("avatar").ok_or("no avatar")?, avatar),
        None => Ok(()),
    }
}

fn list_agrees(
    list: NodeRef<'_, '_>,
    wanted: Option<&Json>,
    agrees: impl Fn(NodeRef<'_, '_>, &Json) -> Outcome,
) -> Outcome {
    let none = Vec::new();
    let wanted = wanted.and_then(Json::as_array).unwrap_or(&none);
    let nodes: Vec<_> = list.children().collect();
    ensure(nodes.len() == wanted.len(), format!("{} elements", nodes.len()))?;
    nodes.into_iter().zip(wanted).enumerate().try_for_each(|(index, (node, wanted))| {
        agrees(node, wanted).map_err(|why| format!("[{index}]: {why}"))
    })
}

/// A node below another one: names, and places in lists.
fn find<'t, 'n>(node: NodeRef<'t, 'n>, path: &str) -> Option<NodeRef<'t, 'n>> {
    path.split('.').try_fold(node, |node, name| match name.strip_suffix("[0]") {
        Some(list) => node.child(list)?.children().next(),
        None => node.child(name),
    })
}

fn agrees(node: NodeRef<'_, '_>, wanted: &Json) -> Outcome {
    let mut found = String::new();
    worldwire_core::text::write_value(node, 0, &mut found);
    let good = match (node.value(), wanted) {
        (Value::Null, Json::String(none)) => none == "-",
        (Value::Bool(found), Json::Bool(wanted)) => found == *wanted,
        (Value::Bool(found), Json::String(wanted)) => wanted == if found { "1" } else { "0" },
        (Value::Bool(found), Json::Number(wanted)) => wanted.as_u64() == Some(found.into()),
        (Value::F32(found), wanted) => {
            wanted.as_f64().is_some_and(|wanted| (f64::from(found) - wanted).abs() < 0.001)
        }
        (Value::Enum(number, _), Json::Number(wanted)) => wanted.as_i64() == Some(number),
        (Value::Enum(number, names), Json::String(wanted)) => {
            names.name(number) == Some(wanted.as_str())
        }
        (Value::Signed(found), Json::Number(wanted)) => wanted.as_i64() == Some(found),
        // An object, or a message inside.
        (Value::Record, Json::String(wanted)) => match node.child("class") {
            Some(class) => return agrees(class, &wanted.as_str().into()),
            None if node.child("location").is_some() => uoid_text(node).as_deref() == Some(wanted),
            // A text that has something to it beside its characters.
            None => return agrees(node.child("text").ok_or(found)?, &wanted.as_str().into()),
        },
        (Value::Span(_), Json::String(wanted)) => match node.content() {
            Some(Content::Text(text)) => text == *wanted,
            Some(Content::Bytes(bytes)) => {
                String::from_utf8_lossy(&bytes) == *wanted
                    || parse_hex(wanted).is_some_and(|wanted| wanted == *bytes)
            }
            None => false,
        },
        (_, Json::Number(wanted)) => {
            node.unsigned().is_some() && node.unsigned() == wanted.as_u64()
        }
        _ => false,
    };
    ensure(good, format!("wanted {wanted}, found {found}"))
}

/// `class:name@sequence/locationflags#objectid!cloneid,player`.
fn uoid_text(node: NodeRef<'_, '_>) -> Option<String> {
    use std::fmt::Write as _;
    let number = |node: Option<NodeRef<'_, '_>>| node.and_then(|node| node.unsigned());
    let location = node.child("location")?;
    let name = match node.child("name")?.content()? {
        Content::Text(text) => text.into_owned(),
        Content::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    };
    let Value::Flags(flags, _) = location.child("flags")?.value() else { return None };
    let mut text = format!(
        "{:04x}:{name}@{:08x}/{flags:x}",
        number(node.child("classIndex"))?,
        number(location.child("sequenceNumber"))?,
    );
    let id = number(node.child("objectId"))?;
    if id != 0 {
        let _ = write!(text, "#{id}");
    }
    if let (Some(clone), Some(player)) =
        (number(node.child("cloneId")), number(node.child("clonerId")))
    {
        let _ = write!(text, "!{clone},{player}");
    }
    Some(text)
}
