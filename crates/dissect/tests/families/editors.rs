//! Editors of single fields agree with the fields as JSON.

use worldwire_capture::{CaptureReader, Record};
use worldwire_core::json::{Json, Style, parse, write_node};
use worldwire_core::{Limits, Tree};
use worldwire_dissect::{Dissection, Item, Message, Options, Scratch};

use crate::tera_builds::{SAMPLE, definitions};

/// The number of a message's fields that were compared.
#[derive(Debug, Default)]
struct Compared {
    read: usize,
    set: usize,
    refused: usize,
}

fn fields(message: &dyn Message, body: &[u8]) -> Json {
    let limits = Limits::DEFAULT;
    let tree = message.tree_of(body, Tree::new(), &limits);
    let mut text = String::new();
    write_node(tree.find("fields").unwrap(), Style::default(), &mut text);
    parse(&text).unwrap()
}

/// Every value in the fields, with its path.
fn values(json: &Json, path: &str, out: &mut Vec<(String, Json)>) {
    match json {
        Json::Object(object) => {
            for (name, value) in object.iter().filter(|(name, _)| !name.starts_with('$')) {
                let dot = if path.is_empty() { "" } else { "." };
                values(value, &format!("{path}{dot}{name}"), out);
            }
        }
        Json::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                values(item, &format!("{path}[{index}]"), out);
            }
        }
        value => out.push((path.to_owned(), value.clone())),
    }
}

/// Sets the value at a path.
fn set(json: &mut Json, path: &str, value: Json) {
    let at = path.replace('[', ".").replace(']', "");
    let place = at.split('.').try_fold(json, |json, step| match json {
        Json::Object(object) => object.get_mut(step),
        Json::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    });
    *place.unwrap() = value;
}

fn compare(message: &dyn Message) -> Compared {
    let mut compared = Compared::default();
    let before = fields(message, message.body());
    let mut all = Vec::new();
    values(&before, "", &mut all);
    let editor = || message.editor(message.body());
    let Some(unchanged) = editor() else { return compared };
    assert_eq!(unchanged.encode().unwrap(), message.body());
    assert!(unchanged.get("no.such[3]").is_none() && unchanged.get("").is_none());
    // Setting several fields, one after another.
    let (mut together, mut after) = (editor().unwrap(), before.clone());
    for (path, value) in all {
        let Some(found) = unchanged.get(&path) else {
            compared.refused += 1;
            assert!(!editor().unwrap().set(&path, &value), "{path}");
            continue;
        };
        assert_eq!(found, value, "{path}");
        compared.read += 1;
        let news: Vec<Json> = match &value {
            Json::Bool(value) => vec![(!value).into(), 1.into()],
            Json::String(text) => vec![format!("{text}é𝄞").into(), "".into(), 5.into()],
            _ => vec![0.into(), 77.into(), (-1).into(), u64::MAX.into(), 0.5.into(), "x".into()],
        };
        for new in news {
            let mut own = editor().unwrap();
            let mut wanted = before.clone();
            set(&mut wanted, &path, new.clone());
            let wanted = message.encode(&wanted);
            if !own.set(&path, &new) {
                assert_eq!(own.encode().unwrap(), message.body(), "{path} = {new}");
                continue;
            }
            assert_eq!(own.get(&path), Some(new.clone()), "{path} = {new}");
            assert_eq!(own.encode().unwrap(), wanted.unwrap(), "{path} = {new}");
            compared.set += 1;
            assert!(together.set(&path, &new));
            set(&mut after, &path, new);
        }
    }
    assert_eq!(together.encode().unwrap(), message.encode(&after).unwrap());
    compared
}

#[test]
fn editors_agree_with_json() {
    let mut capture = CaptureReader::new(SAMPLE, &Limits::DEFAULT).unwrap();
    let options = Options { definitions: definitions(), ..Options::default() };
    let mut dissection = Dissection::new(options);
    while let Some(record) = capture.next().unwrap() {
        if let Record::Packet(packet) = record {
            dissection.push(&packet);
        }
    }
    dissection.end();
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<Compared>| {
        if let Some(message) = item.message().filter(|message| message.is_message()) {
            out.push(compare(message));
        }
    };
    let mut all = Vec::new();
    dissection.run(&show, &mut all, |_| ());
    let sum = |of: fn(&Compared) -> usize| all.iter().map(of).sum::<usize>();
    let counts = [sum(|it| it.read), sum(|it| it.set), sum(|it| it.refused)];
    assert!(counts[0] > 30 && counts[1] > 60 && counts[2] > 40, "{counts:?}");
}
