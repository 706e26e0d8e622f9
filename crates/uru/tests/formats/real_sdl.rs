//! Descriptors and blobs from real shards; they are not part of the project.
//!
//! `WORLDWIRE_URU_SDL` names a directory. All `.sdl` files below it are read, and those in the same
//! directory form a set. All `.blob` files are decoded with the descriptors in their directory;
//! those named `.damaged.blob` were damaged by dirtsand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use worldwire_core::json::{Json, json};

use worldwire_core::{Reader, Severity};
use worldwire_uru::schema::{Descriptors, ElementType, parse};
use worldwire_uru::sdl::{Blob, ObjectState};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn folder() -> Option<PathBuf> {
    std::env::var_os("WORLDWIRE_URU_SDL").map(PathBuf::from)
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.to_string_lossy().ends_with(ending)
}

/// The files of every directory.
fn texts(folder: &Path) -> BTreeMap<PathBuf, Vec<(String, String)>> {
    let mut paths = Vec::new();
    files(folder, &mut paths);
    let mut sets: BTreeMap<PathBuf, Vec<(String, String)>> = BTreeMap::new();
    for path in paths.into_iter().filter(|path| has_ending(path, ".sdl")) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
        sets.entry(path.parent().unwrap().to_owned()).or_default().push((name, text));
    }
    sets
}

/// The expectations for a file, if the vectors mention it.
fn expected(file: &str) -> Option<Vec<Json>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/uru-game/real-sdl-index.json");
    let index: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let found = index["vectors"].as_array().unwrap().iter().find(|one| one["file"] == file)?;
    found["expect"].as_array().map(<[_]>::to_vec)
}

#[test]
fn descriptors_of_shards_round_trip() {
    let Some(folder) = folder() else { return };
    let (mut count, mut known, mut variables, mut warnings) = (0, 0, 0, 0);
    for texts in texts(&folder).into_values() {
        for (name, text) in &texts {
            let parsed = parse(name, text);
            let errors = parsed.problems.iter().filter(|one| one.severity() == Severity::Error);
            assert_eq!(errors.map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
            for statement in &parsed.statements {
                let again = parse("again", &statement.definition.to_string());
                assert_eq!(again.statements[0].definition, statement.definition, "{name}");
                variables += statement.definition.variables().len();
            }
            count += parsed.statements.len();
            let Some(expected) = expected(name) else { continue };
            let found: Vec<_> = parsed
                .statements
                .iter()
                .map(|statement| {
                    let definition = &statement.definition;
                    let of = definition.variables().iter();
                    let nested =
                        of.clone().filter(|v| matches!(v.element_type(), ElementType::Nested(_)));
                    json!({
                        "name": definition.name(),
                        "version": definition.version(),
                        "vars": definition.variables().len(),
                        "nested": nested.count(),
                        "variable_length": of.filter(|v| v.count().is_none()).count(),
                    })
                })
                .collect();
            assert_eq!(found, expected, "{name}");
            known += found.len();
        }
        let set = Descriptors::load(texts.iter().map(|(name, text)| (name, text)));
        for problem in set.problems() {
            println!("{problem}");
        }
        warnings += set.problems().len();
    }
    println!(
        "{count} descriptors with {variables} variables, {known} of them as the index says; \
         {warnings} problems"
    );
    assert!(count > 0, "no descriptors");
}

#[test]
fn blobs_of_shards_round_trip() {
    let Some(folder) = folder() else { return };
    let (mut good, mut damaged) = (0, 0);
    for (place, texts) in texts(&folder) {
        let set = Descriptors::load(texts.iter().map(|(name, text)| (name, text)));
        let mut paths = Vec::new();
        files(&place, &mut paths);
        for path in paths.iter().filter(|path| has_ending(path, ".blob")) {
            let bytes = std::fs::read(path).unwrap();
            let mut reader = Reader::new(&bytes);
            let outcome = Blob::decode(&set, &mut reader);
            if has_ending(path, ".damaged.blob") {
                let error = outcome.unwrap_err().to_string();
                assert!(error.contains("missing, as in blobs that dirtsand damaged"), "{error}");
                damaged += 1;
                continue;
            }
            let blob = outcome.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            reader.end().unwrap();
            assert_eq!(blob.to_bytes().unwrap(), bytes);
            let json = blob.to_json(&set).unwrap();
            assert_eq!(Blob::from_json(&set, &json).unwrap().to_bytes().unwrap(), bytes);
            assert_eq!(ObjectState::of(&blob).to_blob().record, blob.record);
            good += 1;
        }
    }
    println!("{good} blobs, and {damaged} damaged ones");
}
