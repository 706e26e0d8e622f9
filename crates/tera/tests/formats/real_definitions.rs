//! Definitions in real use, and messages encoded with them. They have no licence, so they are not
//! part of the project. `WORLDWIRE_TERA_DATA` names the directory with the definition sets; the
//! messages are in `$WORLDWIRE_VECTORS/tera`, or in `real-definition-vectors` of that directory.

use std::path::{Path, PathBuf};

use worldwire_core::json::{Json, Object};
use worldwire_core::value::parse_hex;
use worldwire_tera::message::{HeaderForm, Leniency};
use worldwire_tera::schema::{Dialect, ParseOptions, Patch, Set};

use crate::definitions::Message;

/// The files of messages, each with the definition set it refers to.
const FILES: [(&str, &str, Dialect); 3] = [
    ("real_definitions.jsonl", "toolbox-2022/definitions", Dialect::Toolbox),
    ("legacy_definitions.jsonl", "meishuu-2017/protocol", Dialect::Legacy),
    ("proto_definitions.jsonl", "tera-proxy-2020/protocol", Dialect::Proto),
];

fn data() -> Option<PathBuf> {
    std::env::var_os("WORLDWIRE_TERA_DATA").map(PathBuf::from)
}

fn files(folder: &Path) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "def"))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned())
        })
        .collect();
    files.sort();
    files
}

fn set(folder: &Path, dialect: Dialect, patch: Option<Patch>, lenient: bool) -> Set {
    let options =
        ParseOptions { dialect: Some(dialect), patch, lenient, ..ParseOptions::default() };
    Set::load(files(folder), options)
}

/// Converts elements without fields, which are null in the files, to empty objects.
fn objects(json: &Json) -> Json {
    match json {
        Json::Object(fields) => fields.iter().map(|(name, value)| (name, objects(value))).collect(),
        Json::Array(items) => {
            let empty = || Json::from(Object::new());
            let one = |item: &Json| if item.is_null() { empty() } else { objects(item) };
            items.iter().map(one).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn real_sets_load() {
    let Some(data) = data() else { return };
    for (_, folder, dialect) in FILES {
        let start = std::time::Instant::now();
        let texts = files(&data.join(folder));
        let read = start.elapsed();
        let count = texts.len();
        // Detected from the contents of the files.
        let set = Set::load(texts, ParseOptions::default());
        println!(
            "{folder}: {count} files, {} definitions, read in {read:?}, loaded in {:?}",
            set.definitions().count(),
            start.elapsed() - read
        );
        set.problems().for_each(|problem| println!("  {problem}"));
        assert_eq!(set.dialect(), Some(dialect));
    }
}

#[test]
fn real_messages_round_trip() {
    let Some(data) = data() else { return };
    let vectors =
        std::env::var_os("WORLDWIRE_VECTORS").map(|folder| Path::new(&folder).join("tera"));
    let mut failures = Vec::new();
    for (name, folder, dialect) in FILES {
        let beside = data.join("real-definition-vectors").join(name);
        let place = vectors.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        let Ok(text) = std::fs::read_to_string(place.unwrap_or(beside)) else { continue };
        let folder = data.join(folder);
        let mut sets: Vec<(Option<String>, Set)> = Vec::new();
        let (mut good, mut refused) = (0, 0);
        for line in text.lines() {
            let case: Json = serde_json::from_str(line).unwrap();
            let patch = case.get("patch").map(ToString::to_string);
            if !sets.iter().any(|(known, _)| *known == patch) {
                let version = patch.as_deref().map(|patch| patch.parse::<Patch>().unwrap());
                sets.push((patch.clone(), set(&folder, dialect, version, false)));
            }
            let (_, set) = sets.iter().find(|(known, _)| *known == patch).unwrap();
            let file = case["file"].as_str().unwrap();
            let strict = case.get("strict").is_some();
            let Some(definition) = set.by_file(file) else {
                // Rejected by default, as the vectors expect.
                if strict {
                    refused += 1;
                } else {
                    failures.push(format!("{name} {file}: definition not loaded"));
                }
                continue;
            };
            let integrity = case.get("integrity").and_then(Json::as_bool).unwrap_or(false);
            let message = Message {
                plan: definition.plan(),
                opcode: u16::try_from(case["opcode"].as_u64().unwrap()).unwrap(),
                form: if integrity { HeaderForm::Integrity } else { HeaderForm::Plain },
            };
            let bytes = parse_hex(case["bytes"].as_str().unwrap()).unwrap();
            let value = objects(&case["value"]);
            let whole = message.decode(&bytes, &value).and_then(|()| message.damaged(&bytes));
            let outcome = whole.and_then(|()| match message.encode(&value, Leniency::Strict) {
                Ok(again) if again == bytes => Ok(()),
                Ok(_) => Err("encodes to different bytes".to_owned()),
                Err(error) => Err(error.to_string()),
            });
            match outcome {
                Ok(()) => good += 1,
                Err(why) => failures.push(format!("{name} {file}: {why}")),
            }
        }
        println!("{name}: {good} messages, {refused} definitions rejected as expected");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
