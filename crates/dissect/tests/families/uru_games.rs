//! Games of Uru's game manager: conversations reveal their types, and filters know their names.

use std::collections::BTreeSet;

use worldwire_capture::{LinkType, Packet, SyntheticTcp, Timestamp};
use worldwire_core::json::{Json, Style, json};
use worldwire_core::{Bytes32, Field, Limits, NodeRef, Sampler, Side, Tree, Writer};
use worldwire_dissect::filter::{Filter, Resolver, Subject};
use worldwire_dissect::{
    Codec, CodecOptions, Definitions, Dissection, Format, Item, Keys, Options, Scratch,
};
use worldwire_uru::connect::ConnectPacket;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::games::message::tables;
use worldwire_uru::games::{GameMessage, GameScope, GameType};
use worldwire_uru::message::game::{client, server};

fn game_message(sender: Side, game: &str, name: &str, ids: [u32; 2], fields: Json) -> Vec<u8> {
    let json = json!({
        "game": game, "messageId": name, "transId": ids[0], "gameId": ids[1], "fields": fields,
    });
    GameMessage::from_json(sender, &json).unwrap().to_bytes().unwrap()
}

fn framed(sender: Side, content: Vec<u8>) -> Vec<u8> {
    let buffer = Bytes32::new(content);
    let message: Message<'_> = match sender {
        Side::Client => client::ClientMessage::from(client::GameMgrMsg { buffer }).into(),
        Side::Server => server::ServerMessage::from(server::GameMgrMsg { buffer }).into(),
    };
    message.to_bytes().unwrap()
}

/// A plain game connection with these messages.
fn packets(messages: &[(Side, Vec<u8>)]) -> Vec<Vec<u8>> {
    let (client, server) = ("192.0.2.10:50009", "192.0.2.1:14617");
    let mut wire = SyntheticTcp::new(client.parse().unwrap(), server.parse().unwrap());
    let mut connect = Writer::new();
    ConnectPacket::new(Service::Game).encode(&mut connect).unwrap();
    let mut packets = wire.open();
    packets.extend(wire.data(Side::Client, &[connect.as_bytes(), &[0, 2]].concat()));
    packets.extend(wire.data(Side::Server, &[1, 2]));
    for (sender, message) in messages {
        packets.extend(wire.data(*sender, message));
    }
    packets.extend(wire.close());
    packets
}

/// For the game manager's messages that a filter selects: the names inside, the JSON lines and the
/// advice.
fn dissected(
    messages: &[(Side, Vec<u8>)],
    filter: Option<&Filter>,
) -> (Vec<String>, Vec<Json>, Vec<String>) {
    let mut dissection = Dissection::new(Options::default());
    for (number, data) in (1..).zip(packets(messages)) {
        dissection.push(&Packet {
            number,
            time: Timestamp::from_parts(i64::try_from(number).unwrap(), 0),
            interface: 0,
            link: LinkType::ETHERNET,
            data: &data,
            original_length: u32::try_from(data.len()).unwrap(),
            unusable: None,
            offset: 0,
        });
    }
    dissection.end();
    let limits = Limits::DEFAULT;
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<(String, Json, String)>| {
        let mut name = String::new();
        item.push_name(&mut name);
        if name != "game.GameMgrMsg" {
            return;
        }
        let mut inside = String::new();
        item.push_inside(&mut inside);
        let tree = item.tree(Tree::new(), &limits);
        if filter.is_some_and(|filter| !filter.matches(&Subject::of(item, &name, &tree))) {
            return;
        }
        let mut line = String::new();
        Format::Json(Style::default()).write(item, &name, &tree, &mut line);
        let json: Json = serde_json::from_str(&line).unwrap();
        assert_eq!(item.encode(&json["fields"]).unwrap(), item.bytes());
        let advice = item.advice().map_or_else(String::new, |advice| advice.into_owned());
        out.push((inside, json, advice));
    };
    let mut all = Vec::new();
    dissection.run(&show, &mut all, |_| ());
    let mut parts = (Vec::new(), Vec::new(), Vec::new());
    for (inside, json, advice) in all {
        parts.0.push(inside);
        parts.1.push(json);
        parts.2.push(advice);
    }
    parts
}

#[test]
fn conversations_reveal_the_types_of_their_games() {
    let joined = json!({
        "result": 0, "owner": 5, "gameType": GameType::VarSync.id().to_string(), "gameId": 70,
    });
    let created = json!({"name": "QuabRun1", "value": 1.5});
    let mut dirty = game_message(Side::Client, "VarSync", "CreateNumericVar", [0, 70], created);
    // Memory after the terminator of the name.
    dirty[34..528].fill(0xcd);
    let other = game_message(Side::Client, "BlueSpiral", "HitCloth", [0, 71], json!({"cloth": 2}));
    let (inside, lines, advice) = dissected(
        &[
            (Side::Client, framed(Side::Client, dirty.clone())),
            (
                Side::Server,
                framed(
                    Side::Server,
                    game_message(Side::Server, "Manager", "GameInstance", [1, 0], joined),
                ),
            ),
            (Side::Client, framed(Side::Client, dirty)),
            (Side::Client, framed(Side::Client, other)),
        ],
        None,
    );
    assert_eq!(inside, ["", " Manager.GameInstance", " VarSync.CreateNumericVar", ""]);
    let message = |at: usize| &lines[at]["fields"]["buffer"]["message"];
    assert_eq!(message(2)["fields"], json!({"name": "QuabRun1", "value": 1.5}));
    // Before the type is known, and for a game that was never joined, the fields are bytes.
    for at in [0, 3] {
        assert_eq!(message(at)["game"], json!("AnyGame"));
        assert!(advice[at].contains("the capture lacks the GameInstance"), "{advice:?}");
    }
    assert!(advice[2].is_empty());
}

#[test]
fn filters_select_messages_of_games() {
    let definitions = Definitions::built_in();
    let joined = json!({
        "result": 0, "owner": 5, "gameType": GameType::Marker.id().to_string(), "gameId": 70,
    });
    for (filter, name) in [
        ("Marker.AddMarker", "AddMarker"),
        ("CaptureMarker", "CaptureMarker"),
        ("GameMgrMsg and buffer.message.fields.marker == 3", "CaptureMarker"),
        ("buffer.message.game == \"Manager\"", "GameInstance"),
        ("gameType == 000b2c39-0319-4be1-b06c-7a105b160fcf", "GameInstance"),
    ] {
        let parsed = Filter::parse(filter).unwrap().resolve(&Resolver::new(&definitions));
        assert_eq!(parsed.unknown_fields(&Resolver::new(&definitions)), [], "{filter}");
        assert_eq!(parsed.unknown_names(&Resolver::new(&definitions)), [], "{filter}");
        let add = json!({"x": 1.0, "y": 2.0, "z": 3.0, "name": "m", "age": "city"});
        let messages = [
            (Side::Server, "Manager", "GameInstance", [1, 0], joined.clone()),
            (Side::Client, "Marker", "AddMarker", [0, 70], add),
            (Side::Client, "Marker", "CaptureMarker", [0, 70], json!({"marker": 3})),
        ];
        let messages: Vec<(Side, Vec<u8>)> = messages
            .into_iter()
            .map(|(sender, game, name, ids, fields)| {
                (sender, framed(sender, game_message(sender, game, name, ids, fields)))
            })
            .collect();
        let (inside, ..) = dissected(&messages, Some(&parsed));
        let [only] = &*inside else { panic!("{filter}: {inside:?}") };
        assert!(only.ends_with(name), "{filter}: {only}");
    }
}

/// Adds the names of a node and its descendants, each in quotes.
fn names(node: NodeRef<'_, '_>, all: &mut BTreeSet<String>) {
    if !node.name().is_empty() {
        all.insert(format!("[\"{}\"]", node.name()));
    }
    node.children().for_each(|child| names(child, all));
}

#[test]
fn filters_know_all_names_inside_messages_of_games() {
    let (keys, definitions, limits) = (Keys::none(), Definitions::built_in(), Limits::DEFAULT);
    let (keys, definitions, limits) = (&keys, &definitions, &limits);
    let codecs = [
        ("uru.game-manager", GameScope::Manager),
        ("uru.game-heek", GameScope::Game(GameType::Heek)),
        ("uru.game-marker", GameScope::Game(GameType::Marker)),
        ("uru.game-spiral", GameScope::Game(GameType::BlueSpiral)),
        ("uru.game-tictactoe", GameScope::Game(GameType::TicTacToe)),
        ("uru.game-var-sync", GameScope::Game(GameType::VarSync)),
        ("uru.game-wall", GameScope::Game(GameType::ClimbingWall)),
    ];
    let mut all = BTreeSet::new();
    for (codec, scope) in codecs {
        let codec = Codec::named(codec).unwrap();
        let numbers = |side| tables(scope, side).into_iter().flatten().count();
        assert_eq!(
            codec.tables().into_iter().flatten().count(),
            Side::BOTH.map(numbers).iter().sum::<usize>()
        );
        for from in Side::BOTH {
            let options = CodecOptions { from, keys, definitions, limits };
            for info in tables(scope, from).into_iter().flatten() {
                for seed in 0..12 {
                    let mut sampler = Sampler::new(seed);
                    let message = GameMessage::sample(scope, from, info.number, &mut sampler);
                    let bytes = message.unwrap().to_bytes().unwrap();
                    let tree = codec.decode(&bytes, &options);
                    assert_eq!(tree.error(), None, "{}", info.name);
                    tree.roots().for_each(|root| names(root, &mut all));
                }
            }
        }
    }
    assert!(all.len() > 50, "{}", all.len());
    let all: Vec<&String> = all.iter().collect();
    for some in all.chunks(60) {
        let tests = some.iter().map(|name| format!("exists(fields.buffer{name})"));
        let filter = format!("GameMgrMsg and ({})", tests.collect::<Vec<_>>().join(" or "));
        let unknown = Filter::parse(&filter).unwrap().unknown_fields(&Resolver::new(definitions));
        assert_eq!(unknown, []);
    }
}
