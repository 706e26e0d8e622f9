//! Every message of the conformance vectors.

use proptest::prelude::*;
use worldwire_core::json::{Json, Style, json, write_node};
use worldwire_core::testing::{Case, agrees, hex, run_vectors};
use worldwire_core::{NodeRef, Reader, Sampler, Side, Tree};
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::games::message::tables;
use worldwire_uru::games::{GameHeader, GameMessage, GameScope, GameType};

use crate::spelling::{camel, game_type};

type Outcome = Result<(), String>;

fn ensure(good: bool, what: &str) -> Outcome {
    if good { Ok(()) } else { Err(what.to_owned()) }
}

fn shown(error: impl ToString) -> String {
    error.to_string()
}

#[test]
fn every_message_of_every_file() {
    run_vectors("uru-games", &["negative", "scenarios"], |Case { case, .. }| {
        let id = case["id"].as_str().unwrap_or("?");
        message(case).map_err(|why| format!("{id}: {why}"))
    });
}

fn message(case: &Json) -> Outcome {
    let bytes = hex(case, "hex")?;
    let sender = match case["direction"].as_str() {
        Some("client->server") => Side::Client,
        Some("server->client") => Side::Server,
        _ => return Err("no direction".into()),
    };
    let game = game_type(case["game"].as_str().unwrap_or_default());
    let canonical = match case["reencode"].as_str() {
        Some("exact") => bytes.clone(),
        Some("canonical") => hex(case, "hex_canonical")?,
        _ => return Err("no reencode".into()),
    };

    let decoded = GameMessage::decode(game, sender, &mut Reader::new(&bytes)).map_err(shown)?;
    let mut reader = Reader::traced("vector", &bytes, Tree::new());
    let outcome = reader.record("message", |reader| GameMessage::decode(game, sender, reader));
    let (tree, outcome) = reader.conclude(outcome);
    ensure(outcome.map_err(shown)? == decoded, "traced and plain decode differ")?;
    let root = tree.find("message").ok_or("no tree")?;
    ensure(root.raw().len() == bytes.len(), "the root misses bytes")?;
    agrees(root.child("messageId").ok_or("no messageId")?, &case["message"])?;
    let header = &case["header"];
    for (name, key) in [("transId", "trans_id"), ("gameId", "game_id"), ("size", "size")] {
        agrees(root.child(name).ok_or("no header")?, &header[key])?;
    }
    let peeked = GameHeader::of(&bytes).ok_or("no header")?;
    ensure(case["message_id"].as_u64() == Some(peeked.number.into()), "another number")?;
    fields(root.child("fields").ok_or("no fields")?, &case["fields"])?;

    ensure(decoded.to_bytes().map_err(shown)? == canonical, "encodes to different bytes")?;
    let mut text = String::new();
    write_node(root, Style::default(), &mut text);
    // Uninitialised memory is not shown.
    ensure(!text.contains("cdcd") && !text.contains('\u{cdcd}'), "shows dead memory")?;
    let json: Json = serde_json::from_str(&text).map_err(shown)?;
    let again = GameMessage::from_json(sender, &json).and_then(|again| again.to_bytes());
    ensure(again.map_err(shown)? == canonical, "JSON encodes to different bytes")?;

    if case.get("frame_hex").is_some() {
        let frame = hex(case, "frame_hex")?;
        let mut reader = Reader::new(&frame);
        let outer = Message::decode(Service::Game, sender, &mut reader).map_err(shown)?;
        ensure(outer.to_bytes().as_deref() == Ok(&*frame), "the frame differs")?;
        ensure(frame.ends_with(&bytes), "another buffer")?;
    }
    Ok(())
}

fn fields(node: NodeRef<'_, '_>, wanted: &Json) -> Outcome {
    for (key, wanted) in wanted.as_object().ok_or("no fields")?.iter() {
        let outcome = match key {
            "params" => {
                let data = node.child("createData").ok_or("no createData")?;
                fields(data, wanted)
            }
            // The bytes must be the same as in `params`.
            "data_hex" => Ok(()),
            _ => {
                let name = camel(key);
                let child = node.child(&name).ok_or_else(|| format!("no {name}"))?;
                agrees(child, wanted)
            }
        };
        outcome.map_err(|why| format!("{key}: {why}"))?;
    }
    Ok(())
}

/// Every message has a vector, except those that no server sends and no vector needs.
#[test]
fn every_message_has_a_vector() {
    let mut seen = std::collections::BTreeSet::new();
    run_vectors("uru-games", &["negative", "scenarios", "client-sent"], |Case { case, .. }| {
        let scope = match case["game"].as_str() {
            Some("mgr") => "Manager",
            Some("any") => "AnyGame",
            Some(game) => game_type(game).map_or("?", GameType::name),
            None => "?",
        };
        let side = if case["direction"] == "client->server" { Side::Client } else { Side::Server };
        seen.insert((scope, side, case["message"].as_str().unwrap_or_default().to_owned()));
        Ok(())
    });
    let scopes = [GameScope::Manager, GameScope::Unknown].into_iter();
    for scope in scopes.chain(GameType::ALL.map(GameScope::Game)) {
        for side in Side::BOTH {
            let own = tables(scope, side).into_iter().next_back().unwrap();
            for info in own {
                let key = (scope.name(), side, info.name.to_owned());
                assert!(seen.contains(&key), "no vector for {key:?}");
            }
        }
    }
}

/// A message of a game whose type is not known shows its header and is kept unchanged.
#[test]
fn messages_of_unknown_games_keep_their_bytes() {
    let hit = [4, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 17, 0, 0, 0, 3];
    let mut reader = Reader::traced("message", &hit, Tree::new());
    let decoded =
        reader.record("message", |reader| GameMessage::decode(None, Side::Client, reader)).unwrap();
    assert_eq!((decoded.body.number(), decoded.body.name()), (4, None));
    let tree = reader.finish();
    let mut text = String::new();
    write_node(tree.find("message").unwrap(), Style::default(), &mut text);
    let found: Json = serde_json::from_str(&text).unwrap();
    let wanted = json!({
        "game": "AnyGame", "messageId": 4, "transId": 0, "gameId": 9, "size": 17,
        "body": {"$hex": "03"},
    });
    assert_eq!(found, wanted);
    assert_eq!(GameMessage::from_json(Side::Client, &found).unwrap().to_bytes().unwrap(), hit);
    // Messages common to all games do not need the type.
    let left = [1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0];
    let decoded = GameMessage::decode(None, Side::Server, &mut Reader::new(&left)).unwrap();
    assert_eq!(decoded.body.name(), Some("PlayerLeft"));
}

#[test]
fn errors_name_field_and_offset() {
    let error = |game, bytes: &[u8]| {
        let decoded = GameMessage::decode(game, Side::Client, &mut Reader::new(bytes));
        decoded.unwrap_err().to_string()
    };
    let spiral = Some(GameType::BlueSpiral);
    let short = [4, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 16, 0, 0, 0];
    assert_eq!(error(spiral, &short), "fields.cloth at byte 16: wanted 1 byte, found 0");
    let size = [4, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 18, 0, 0, 0, 1];
    assert_eq!(
        error(spiral, &size),
        "size at byte 12: wanted 17, the length of the message, found 18"
    );
    let long = [3, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 17, 0, 0, 0, 1];
    assert_eq!(error(spiral, &long), "fields at byte 16: wanted the end, found 1 more byte");
    let unknown = [99, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 16, 0, 0, 0];
    assert_eq!(
        error(spiral, &unknown),
        "fields at byte 0: wanted the number of a client message, found 99"
    );
    let huge = vec![0; 2_049];
    assert_eq!(
        error(None, &huge),
        "at byte 0: wanted at most 2048 (bytes of a game message), found 2049"
    );
    let json = json!({
        "game": "Marker", "messageId": "AddMarkr", "transId": 0, "gameId": 9, "fields": {},
    });
    assert_eq!(
        GameMessage::from_json(Side::Client, &json).unwrap_err().to_string(),
        "messageId: wanted a message of Marker from the client, found \"AddMarkr\"; did you mean \
         \"AddMarker\"?"
    );
    let json = json!({
        "game": "Marker", "messageId": "StartGame", "transId": 0, "gameId": 0, "fields": {},
    });
    let message = GameMessage::from_json(Side::Client, &json).unwrap();
    assert_eq!(
        message.to_bytes().unwrap_err().to_string(),
        "gameId: wanted the ID of a game, found 0"
    );
}

proptest! {
    /// Every encoded message decodes to the same message, survives conversion to JSON, and fails to
    /// decode if truncated.
    #[test]
    fn every_message_round_trips(seed: u64) {
        let scopes = [GameScope::Manager, GameScope::Unknown].into_iter();
        for scope in scopes.chain(GameType::ALL.map(GameScope::Game)) {
            let game = match scope {
                GameScope::Game(game) => Some(game),
                _ => None,
            };
            for side in Side::BOTH {
                for info in tables(scope, side).into_iter().flatten() {
                    let mut sampler = Sampler::new(seed);
                    let message = GameMessage::sample(scope, side, info.number, &mut sampler);
                    let message = message.unwrap();
                    let bytes = message.to_bytes().unwrap();
                    let decode = |bytes| GameMessage::decode(game, side, &mut Reader::new(bytes));
                    let decoded = decode(&bytes);
                    prop_assert_eq!(decoded.as_ref(), Ok(&message));
                    prop_assert!(decode(&bytes[..bytes.len() - 1]).is_err());
                    let mut reader = Reader::traced("message", &bytes, Tree::new());
                    reader
                        .record("message", |reader| GameMessage::decode(game, side, reader))
                        .unwrap();
                    let mut text = String::new();
                    let tree = reader.finish();
                    write_node(tree.find("message").unwrap(), Style::default(), &mut text);
                    let json: Json = serde_json::from_str(&text).unwrap();
                    let again = GameMessage::from_json(side, &json).unwrap().to_bytes().unwrap();
                    prop_assert_eq!(again, bytes);
                }
            }
        }
    }
}
