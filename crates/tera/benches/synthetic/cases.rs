//! Messages for the comparison with another parser, by the names of their definition files.

use std::collections::BTreeMap;
use std::path::Path;

use worldwire_core::json::{Json, json};
use worldwire_core::value::parse_hex;
use worldwire_tera::message::{HeaderForm, Leniency};
use worldwire_tera::schema::Set;

/// The title of a kind, and its messages.
type Kind = (String, Vec<(String, Vec<u8>)>);

/// Number of messages per named definition; the messages differ in one number.
const MESSAGES: u32 = 16;

/// All definition files of a directory.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.extension().is_some_and(|ending| ending == "def"));
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.map(|path| (name(&path), std::fs::read_to_string(&path).unwrap())).collect()
}

/// Messages of five real definitions, of all relevant sizes, and a mix of all definitions.
pub(crate) fn real(set: &Set, data: &Path) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = NAMED
        .iter()
        .map(|(file, fields)| {
            let message = |number| {
                let plan = set.by_file(file).unwrap().plan();
                let mut bytes = Vec::new();
                let (form, leniency) = (HeaderForm::Plain, Leniency::Strict);
                plan.encode_json(0x1234, form, &fields(number), leniency, &mut bytes).unwrap();
                ((*file).to_owned(), bytes)
            };
            (file.trim_end_matches(".def").to_owned(), (0..MESSAGES).map(message).collect())
        })
        .collect();
    let vectors = data.join("real-definition-vectors/real_definitions.jsonl");
    let vectors = std::fs::read_to_string(vectors).unwrap();
    let mix = vectors.lines().map(|line| {
        let line: Json = serde_json::from_str(line).unwrap();
        let bytes = parse_hex(line["bytes"].as_str().unwrap()).unwrap();
        (line["file"].as_str().unwrap().to_owned(), bytes)
    });
    kinds.push(("mix".to_owned(), mix.collect()));
    kinds
}

/// The same for synthetic definitions.
pub(crate) fn synthetic(set: &Set) -> Vec<Kind> {
    let messages = |name: &str, count: usize| {
        let definition = set.newest(name).unwrap();
        let file = format!("{}.def", definition.title());
        let messages = super::synthetic::messages(definition, count).into_iter();
        messages.map(|bytes| (file.clone(), bytes)).collect::<Vec<_>>()
    };
    let named = super::synthetic::NAMED.iter();
    let mut kinds: Vec<Kind> =
        named.map(|one| (one.title.to_owned(), messages(one.name, MESSAGES as usize))).collect();
    let mix = set.definitions().flat_map(|definition| messages(definition.name(), 1));
    kinds.push(("mix".to_owned(), mix.collect()));
    kinds
}

/// A definition file, and a function that returns the fields of a message with a number in it.
type Case = (&'static str, fn(u32) -> Json);

/// The named messages.
const NAMED: [Case; 5] = [
    ("C_PLAYER_LOCATION.5.def", |number| {
        json!({
            "loc": { "x": 1200.5, "y": -870.25, "z": 310.0 }, "w": 0.5, "lookDirection": 0.25,
            "dest": { "x": 1250.0, "y": -860.0, "z": 311.5 }, "type": 1, "time": 90_000 + number,
        })
    }),
    ("S_EACH_SKILL_RESULT.15.def", |number| {
        let step = |time: u32| json!({ "duration": time, "xyRate": 1.0, "distance": 40.0 });
        json!({
            "source": "562949953421313", "target": "844424930131970", "templateId": 11_007,
            "skill": { "type": 1, "id": 31_200 }, "originSkill": { "type": 1, "id": 31_200 },
            "id": number, "value": "98765", "type": 1, "crit": true,
            "reaction": {
                "enable": true, "push": true, "loc": { "x": 4.0, "y": 5.0, "z": 6.0 }, "w": 0.125,
                "skill": { "type": 2, "id": 9 }, "id": 8, "animSeq": [step(240), step(360)],
            },
            "damageType": 1,
        })
    }),
    ("S_LOGIN.15.def", |number| {
        let servant = |id: u32| json!({ "dbid": 10 + id, "id": id, "type": 1, "energy": 50 });
        json!({
            "name": "Lakeswimmer", "details": { "$hex": "05".repeat(32) },
            "shape": { "$hex": "0a".repeat(64) }, "servants": [servant(1), servant(2)],
            "gameId": "140737488420096", "serverId": 31, "playerId": number, "level": 70,
            "totalXp": "555555555", "scale": 1.0,
        })
    }),
    ("S_PARTY_MEMBER_LIST.9.def", |number| {
        let member = |id: u32| {
            json!({
                "serverId": 31, "playerId": 500 + id, "level": 70, "class": id, "race": 2,
                "gender": 1, "online": true, "gameId": id.to_string(), "slot": id, "laurel": 2,
                "awakeningLevel": 1, "name": format!("Hunter{id}"),
            })
        };
        json!({
            "raid": true, "memberLimit": 30, "id": number,
            "leader": { "serverId": 31, "playerId": 501 },
            "lootSettings": { "mode": 1, "distributeMinRarity": 3, "distributeAllEquipment": true },
            "members": (0..10).map(member).collect::<Vec<_>>(),
        })
    }),
    ("S_AVAILABLE_EVENT_MATCHING_LIST.2.def", |number| {
        let reward = |id: u32| json!({ "dbid": id, "amount": 2 * id });
        let quest = |id: u32| {
            json!({
                "id": 41_000 + id, "unk2": 1, "unk_b2": 1, "unkArray1": [{ "unk1": 3, "unk2": 4 }],
                "rewards": [reward(7), reward(8), reward(9)], "unkArray4": [{ "unk2": 1200 }],
            })
        };
        json!({
            "unk1": number, "vanguardCredits": 5000, "level": 70,
            "quests": (0..40).map(quest).collect::<Vec<_>>(),
        })
    }),
];
