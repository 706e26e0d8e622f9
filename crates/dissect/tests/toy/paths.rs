//! Paths lead to the same values in the JSON of a message as in its tree.

use std::collections::HashMap;
use std::sync::Mutex;

use worldwire_core::json::Json;
use worldwire_core::{Limits, Tree};
use worldwire_dissect::filter::{Column, FieldPath, Filter, Resolver, Subject};
use worldwire_dissect::{Definitions, Dissection, Item, Options, Scratch};

use crate::encodes::{SAMPLES, fields};
use crate::talk::push;

/// The paths to all values that are not lists or objects.
fn leaves(json: &Json, path: &str, out: &mut Vec<String>) {
    match json {
        Json::Object(object) if object.get("$hex").is_none() => {
            object.iter().for_each(|(name, value)| {
                leaves(value, &format!("{path}[{name:?}]"), out);
            });
        }
        Json::Array(items) => items.iter().enumerate().for_each(|(index, value)| {
            leaves(value, &format!("{path}[{index}]"), out);
        }),
        // Two ways to write the same number.
        Json::Number(number) if number.is_f64() => {}
        _ => out.push(path.to_owned()),
    }
}

/// Values as a table shows them; `None` if a table shows more than the JSON value.
fn shown(values: &[&Json]) -> Option<String> {
    let all = values.iter().map(|value| match value {
        Json::String(text) => Some(text.to_string()),
        Json::Object(object) if object.len() == 1 && object.contains_key("$hex") => {
            Some(value.to_string())
        }
        Json::Array(_) | Json::Object(_) => None,
        Json::Number(number) if number.is_f64() => None,
        other => Some(other.to_string()),
    });
    all.collect::<Option<Vec<String>>>().map(|all| all.join(";"))
}

/// Parsed paths, kept because parsing is slow.
struct Parsed<'d> {
    definitions: &'d Definitions,
    resolver: Resolver<'d>,
    of: Filter,
    known: HashMap<String, (Column, FieldPath)>,
}

impl Parsed<'_> {
    fn get(&mut self, path: &str) -> &(Column, FieldPath) {
        let Self { definitions, resolver, of, known } = self;
        known.entry(path.to_owned()).or_insert_with(|| {
            let column = Column::parse(path, &Resolver::new(definitions)).unwrap();
            (column, FieldPath::parse(path, of, resolver).unwrap())
        })
    }
}

#[test]
fn paths_find_the_same_values_in_json_and_trees() {
    let mut compared = 0;
    for sample in SAMPLES {
        let definitions = sample.definitions();
        let options = Options { keys: sample.keys(), definitions, ..Options::default() };
        let mut dissection = Dissection::new(options);
        for (number, data) in (1..).zip(sample.packets().iter()) {
            push(&mut dissection, number, data);
        }
        dissection.end();
        let definitions = sample.definitions();
        let parsed = Mutex::new(Parsed {
            definitions: &definitions,
            resolver: Resolver::new(&definitions),
            of: Filter::parse("*").unwrap(),
            known: HashMap::new(),
        });
        let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<(usize, String)>| {
            if item.note().is_none() {
                out.push(compare(item, &mut parsed.lock().unwrap()));
            }
        };
        let mut all = Vec::new();
        dissection.run(&show, &mut all, |_| ());
        for (count, difference) in all {
            assert_eq!(difference, "", "{}", sample.family);
            compared += count;
        }
    }
    assert!(compared > 1_000, "{compared}");
}

/// Compares some values of a message. Returns how many, and the first difference.
fn compare(item: &Item<'_>, parsed: &mut Parsed<'_>) -> (usize, String) {
    let limits = Limits::DEFAULT;
    let json = fields(item, &limits);
    let tree = item.tree(Tree::new(), &limits);
    let mut name = String::new();
    item.push_name(&mut name);
    let subject = Subject::of(item, &name, &tree);
    let mut paths = Vec::new();
    leaves(&json, "fields", &mut paths);
    paths.truncate(60);
    let ends: Vec<String> = paths
        .iter()
        .filter_map(|path| path.rsplit_once("[\"").map(|(_, end)| format!("[\"{end}")))
        .collect();
    let mut count = 0;
    for path in paths.iter().chain(&ends) {
        // A tree has more than the fields at its top.
        if tree.roots().any(|root| *path == format!("[{:?}]", root.name())) {
            continue;
        }
        let (column, field) = parsed.get(path);
        let mut wanted = String::new();
        let exists = column.is_field() && column.write(&subject, &mut wanted);
        let Ok(values) = field.values(&json, 10_000) else { continue };
        let Some(found) = shown(&values).filter(|_| exists) else { continue };
        // A table also shows what is beside the fields, if they lack the path.
        if found != wanted && !values.is_empty() {
            return (count, format!("{name}: {path}: {wanted:?} in the tree, {found:?} in JSON"));
        }
        count += 1;
    }
    (count, String::new())
}
