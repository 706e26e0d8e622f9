//! The scenarios of the conformance vectors: exactly the messages that a server must send.

use std::collections::BTreeMap;

use worldwire_core::json::{Json, Style, json, write_node};
use worldwire_core::testing::{Case, run_vectors};
use worldwire_core::{Reader, Side, Tree};
use worldwire_uru::games::{GameMessage, GameType};

use crate::spelling::{camel, game_type};
use crate::world::{A, B, D, Got, World, encoded};

type Outcome = Result<(), String>;

const ELSEWHERE: &[&str] = &[
    "bluespiral",
    "client-sent",
    "climbingwall",
    "common",
    "heek",
    "manager",
    "marker",
    "negative",
    "tictactoe",
    "varsync",
];

#[test]
fn every_scenario_runs() {
    let mut count = 0;
    run_vectors("uru-games", ELSEWHERE, |Case { case, .. }| {
        count += 1;
        let id = case["id"].as_str().unwrap_or("?");
        let mut world = World::new();
        if id == "ttt-win" {
            // The first member starts the game.
            world.fix_random();
        }
        let mut scene = Scene { world, bound: BTreeMap::new(), types: BTreeMap::new() };
        let steps = case["steps"].as_array().ok_or_else(|| format!("{id}: no steps"))?;
        for (number, step) in steps.iter().enumerate() {
            scene.step(step).map_err(|why| format!("{id}, step {number}: {why}"))?;
        }
        Ok(())
    });
    assert!(count > 0 || std::env::var_os("WORLDWIRE_VECTORS").is_some());
}

struct Scene {
    world: World,
    /// The values of `$G` and so on.
    bound: BTreeMap<String, Json>,
    types: BTreeMap<u32, GameType>,
}

const PLAYERS: [(&str, u32); 3] = [("A", A), ("B", B), ("D", D)];

fn player(name: &str) -> Option<u32> {
    PLAYERS.iter().find(|it| it.0 == name).map(|it| it.1)
}

impl Scene {
    fn step(&mut self, step: &Json) -> Outcome {
        if let Some(send) = step.get("send") {
            let client = step["client"].as_str().and_then(player).ok_or("no client")?;
            let bytes = self.message(send)?;
            self.world.send_bytes(client, &bytes);
        } else if let Some(milliseconds) = step.get("advance_ms") {
            self.world.advance(milliseconds.as_u64().ok_or("no time")?);
        } else if let Some(client) = step.get("disconnect") {
            self.world.leave(client.as_str().and_then(player).ok_or("no client")?);
        } else if step.get("state").is_none() {
            return Err("an unknown step".into());
        }
        for (name, id) in PLAYERS {
            let none = json!([]);
            let wanted = step.get("expect").and_then(|expect| expect.get(name)).unwrap_or(&none);
            let got = self.world.take(id);
            let wanted = wanted.as_array().ok_or("no list")?;
            let names: Vec<_> = got.iter().map(Got::name).collect();
            if got.len() != wanted.len() {
                return Err(format!("{name} received {names:?}, not {wanted:?}"));
            }
            for (got, wanted) in got.iter().zip(wanted) {
                self.compare(got, wanted).map_err(|why| format!("{name}, {names:?}: {why}"))?;
            }
        }
        Ok(())
    }

    /// The bytes of a client's message.
    fn message(&self, send: &Json) -> Result<Vec<u8>, String> {
        let (game, name) =
            send["msg"].as_str().and_then(|it| it.split_once('.')).ok_or("no msg")?;
        let none = json!({});
        let given = send.get("fields").unwrap_or(&none);
        let mut fields = self.fields(given)?;
        let scope = match game {
            "mgr" => "Manager",
            "any" => "AnyGame",
            game => game_type(game).ok_or("no game")?.name(),
        };
        if scope == "Manager" {
            let object = fields.as_object_mut().ok_or("no fields")?;
            if let Some(named) = object.get("gameType").and_then(Json::as_str) {
                let found = game_type(named);
                let id = found.map_or_else(|| named.to_owned(), |game| game.id().to_string());
                let data = match (object.remove("params"), found) {
                    (Some(params), _) => params,
                    (None, Some(found)) => json!({"filler": found != GameType::Heek}),
                    (None, None) => json!({"$hex": "00"}),
                };
                object.insert("createData", data);
                object.insert("gameType", id.into());
            }
        }
        let trans_id = send.get("trans").and_then(Json::as_u64).unwrap_or(0);
        let game_id = match send.get("game") {
            Some(game) => self.value(game)?.as_u64().ok_or("no game id")?,
            None => 0,
        };
        let [trans_id, game_id] = [trans_id, game_id].map(|it| u32::try_from(it).unwrap());
        Ok(encoded(trans_id, game_id, &format!("{scope}.{name}"), fields))
    }

    /// Fields in the protocol's spelling, with the values of names.
    fn fields(&self, given: &Json) -> Result<Json, String> {
        let mut fields = json!({});
        let object = fields.as_object_mut().ok_or("no fields")?;
        for (key, value) in given.as_object().ok_or("no fields")?.iter() {
            let value = match value {
                Json::Object(_) => self.fields(value)?,
                value => self.value(value)?,
            };
            object.insert(&camel(key), value);
        }
        Ok(fields)
    }

    /// The value of a name such as `$G` or `$P[0]`; other values are returned unchanged.
    fn value(&self, given: &Json) -> Result<Json, String> {
        let Some(name) = given.as_str().filter(|it| it.starts_with('$')) else {
            return Ok(given.clone());
        };
        let (name, item) = match name.strip_suffix(']').and_then(|it| it.split_once('[')) {
            Some((name, item)) => (name, item.parse::<usize>().ok()),
            None => (name, None),
        };
        let value = self.bound.get(name).ok_or_else(|| format!("{name} has no value"))?;
        match item {
            Some(item) => value
                .as_array()
                .and_then(|it| it.get(item))
                .cloned()
                .ok_or_else(|| "no item".into()),
            None => Ok(value.clone()),
        }
    }

    fn compare(&mut self, got: &Got, wanted: &Json) -> Outcome {
        let (game, name) =
            wanted["msg"].as_str().and_then(|it| it.split_once('.')).ok_or("no msg")?;
        if got.name() != name {
            return Err(format!("wanted {game}.{name}"));
        }
        let trans_id = wanted.get("trans").and_then(Json::as_u64).unwrap_or(0);
        if u64::from(got.trans_id) != trans_id {
            return Err(format!("{name} in transaction {}", got.trans_id));
        }
        let shown = self.shown(got)?;
        self.same(name, &wanted["game"], &got.game_id.into())?;
        let none = json!({});
        let fields = wanted.get("fields").unwrap_or(&none);
        for (key, wanted) in fields.as_object().ok_or("no fields")?.iter() {
            let found =
                shown.get(&*camel(key)).cloned().ok_or_else(|| format!("{name}: no {key}"))?;
            let is_player = matches!(key, "owner" | "player" | "winner");
            let wanted = match (wanted.as_str().filter(|_| is_player), key) {
                (Some(name), _) => json!(player(name).ok_or("no player")?),
                (None, "game_type") => {
                    let named = wanted.as_str().ok_or("no type")?;
                    let id = game_type(named).map(|game| game.id().to_string());
                    json!(id.unwrap_or_else(|| named.to_owned()))
                }
                _ => wanted.clone(),
            };
            self.same(&format!("{name}.{key}"), &wanted, &found)?;
        }
        Ok(())
    }

    /// The fields of a message, with numbers instead of names.
    fn shown(&mut self, got: &Got) -> Result<Json, String> {
        let game = self.types.get(&got.game_id).copied();
        let mut reader = Reader::traced("message", &got.bytes, Tree::new());
        reader
            .record("message", |reader| GameMessage::decode(game, Side::Server, reader))
            .map_err(|error| error.to_string())?;
        let tree = reader.finish();
        let fields = tree.find("message.fields").ok_or("no fields")?;
        let mut shown = json!({});
        let object = shown.as_object_mut().ok_or("no object")?;
        for field in fields.children() {
            let mut text = String::new();
            write_node(field, Style::default(), &mut text);
            let value: Json = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            let number = match field.value() {
                worldwire_core::Value::Enum(number, _) => json!(number),
                _ => value,
            };
            object.insert(field.name(), number);
        }
        if let (Some(id), Some(game)) = (shown["gameId"].as_u64(), shown["gameType"].as_str()) {
            let id = u32::try_from(id).unwrap_or(0);
            let game = worldwire_uru::types::Uuid::parse(game).and_then(GameType::of);
            self.types.extend(game.map(|game| (id, game)));
        }
        Ok(shown)
    }

    /// Whether a value is the expected one. A name receives its value when it is first used.
    fn same(&mut self, what: &str, wanted: &Json, found: &Json) -> Outcome {
        let name = wanted.as_str().filter(|it| it.starts_with('$'));
        let wanted = match (name, wanted.as_str()) {
            (_, Some("*")) => return Ok(()),
            (Some(name), _) => {
                let others =
                    self.bound.iter().filter(|it| it.0 != name && it.0.as_bytes()[1] < b'P');
                if others.into_iter().any(|it| it.1 == found) && !self.bound.contains_key(name) {
                    return Err(format!("{what}: {name} has the value of another name"));
                }
                self.bound.entry(name.to_owned()).or_insert_with(|| found.clone()).clone()
            }
            (None, _) => wanted.clone(),
        };
        let is_same = match (wanted.as_f64(), found.as_f64()) {
            (Some(wanted), Some(found)) => wanted.to_bits() == found.to_bits(),
            _ => wanted == *found,
        };
        if is_same { Ok(()) } else { Err(format!("{what}: wanted {wanted}, found {found}")) }
    }
}
