//! Round trips of random values through every definition in real use, at every patch where one of
//! them changes. `$WORLDWIRE_TERA_DATA` names the directory with the definitions; without it the
//! tests do nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use worldwire_core::Sampler;
use worldwire_tera::file::{CodeMap, Deprecated, MapName, NameList, Revisions};
use worldwire_tera::message::HeaderForm;
use worldwire_tera::schema::{ParseOptions, Patch, Problem, Set};

use crate::boundaries;
use crate::definitions::Message;

fn data() -> Option<PathBuf> {
    std::env::var_os("WORLDWIRE_TERA_DATA").map(PathBuf::from)
}

/// All files below a directory.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
    found.sort();
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn values_round_trip_through_every_definition() {
    let Some(data) = data() else { return };
    let (mut all, mut sets) = (Vec::new(), BTreeMap::<PathBuf, Vec<(String, String)>>::new());
    files(&data, &mut all);
    for path in all.iter().filter(|path| path.extension().is_some_and(|ending| ending == "def")) {
        let text = std::fs::read_to_string(path).unwrap();
        sets.entry(path.parent().unwrap().into()).or_default().push((name(path), text));
    }
    for (path, texts) in sets {
        let set = Set::load(texts.iter().map(|(name, text)| (name, text)), ParseOptions::default());
        // Some lines contain typing errors; more problems would be our fault.
        let bad = set.problems().filter(|problem| problem.is_error()).count();
        assert!(bad * 100 <= set.files(), "{bad} errors");
        let mut patches: Vec<Option<Patch>> = vec![None];
        patches.extend(boundaries(&set).into_iter().map(Some));
        let mut messages = 0;
        for patch in patches {
            let set = set.with(ParseOptions { patch, ..ParseOptions::default() });
            for definition in set.definitions() {
                for (seed, form) in [(1, HeaderForm::Plain), (2, HeaderForm::Integrity)] {
                    let message = Message { plan: definition.plan(), opcode: 0x1234, form };
                    let value = definition.plan().sample(&mut Sampler::new(seed));
                    let outcome = message.round_trip(&value);
                    outcome.unwrap_or_else(|why| panic!("{}: {why}", definition.title()));
                    messages += 1;
                }
            }
        }
        println!("{}: {messages} messages", path.display());
    }
}

#[test]
fn other_files_are_parsed() {
    let Some(data) = data() else { return };
    let mut all = Vec::new();
    files(&data, &mut all);
    for path in all {
        let file = name(&path);
        let text = || std::fs::read_to_string(&path).unwrap();
        let problems: Vec<Problem> = if let Some(MapName { kind, .. }) = MapName::parse(&file) {
            let (map, problems) = CodeMap::parse(kind, &file, &text());
            println!("{file}: {} codes, {} remarks", map.len(), problems.len());
            let (again, _) = CodeMap::parse(kind, &file, &map.format());
            assert!(map.iter().all(|(name, code)| again.code(name) == Some(code)));
            problems
        } else if file == "revisions.json" {
            Revisions::parse(&file, &text()).1
        } else if file == "deprecated.json" {
            Deprecated::parse(&file, &text()).1
        } else if path.parent().is_some_and(|folder| folder.ends_with("integrity")) {
            let (list, problems) = NameList::parse_json(&file, &text());
            assert!(list.iter().len() > 0);
            problems
        } else {
            continue;
        };
        let errors: Vec<_> = problems.iter().filter(|problem| problem.is_error()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}
