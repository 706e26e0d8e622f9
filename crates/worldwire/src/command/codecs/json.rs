//! Codecs as JSON.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};
use worldwire_core::{FieldInfo, MessageInfo};
use worldwire_dissect::{ClassRow, Codec, Families};

use super::plain;
use crate::cli::Codecs;
use crate::output::{Failure, complain, print};

/// Writes one object per codec, or one per message or class of a codec.
pub(super) fn run(arguments: &Codecs) -> Result<(), Failure> {
    let mut out = String::new();
    match (&arguments.name, &arguments.entry) {
        (None, _) => Codec::all().for_each(|codec| push(&about(codec), &mut out)),
        (Some(name), None) if let Ok(family) = Families::standard().named(name) => {
            family.codecs().iter().for_each(|codec| push(&about(codec), &mut out));
        }
        (Some(name), entry) => {
            let codec = Codec::named(name).map_err(|error| Failure::Run(error.to_string()))?;
            match entry {
                None => push(&whole(codec), &mut out),
                Some(entry) => {
                    let found = entries(codec, entry);
                    if found.is_empty() {
                        complain(codec.name, &format!("no message or class is named {entry:?}"));
                        return Err(Failure::Input);
                    }
                    found.iter().for_each(|it| push(it, &mut out));
                }
            }
        }
    }
    print(&out)
}

fn push(json: &Json, out: &mut String) {
    out.push_str(&json.to_string());
    out.push('\n');
}

/// A codec without its contents.
fn about(codec: &Codec) -> Json {
    json!({ "codec": codec.name, "about": codec.about })
}

/// A codec with its messages, classes and fields.
fn whole(codec: &Codec) -> Json {
    let messages: Vec<Json> = codec.tables().into_iter().flatten().map(message).collect();
    let classes: Vec<Json> = codec.classes().iter().map(class).collect();
    let [records, values] = types(codec);
    json!({
        "codec": codec.name,
        "about": codec.about,
        "messages": messages,
        "classes": classes,
        "fields": fields(&codec.layout()),
        "records": records,
        "values": values,
    })
}

/// The messages and classes with this name or number.
fn entries(codec: &Codec, entry: &str) -> Vec<Json> {
    let number = match entry.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => entry.parse().ok(),
    };
    let is_wanted = |name: &str, own: u32| name.eq_ignore_ascii_case(entry) || number == Some(own);
    let messages = codec.tables().into_iter().flatten();
    let messages = messages.filter(|it| is_wanted(it.name, it.number)).map(message);
    let classes = codec.classes();
    let classes = classes.iter().filter(|it| is_wanted(it.name, it.class)).map(class);
    messages.chain(classes).collect()
}

fn message(message: &MessageInfo) -> Json {
    json!({
        "name": message.name,
        "number": message.number,
        "from": message.sender.name(),
        "about": text(message.doc),
        "fields": fields(&(message.fields)()),
    })
}

fn class(class: &ClassRow) -> Json {
    json!({
        "name": class.name,
        "number": class.class,
        "parent": class.parent,
        "from": class.sender,
        "status": class.status,
        "about": text(class.doc),
        "fields": class.fields.map(|of| fields(&of())),
    })
}

fn fields(fields: &[FieldInfo]) -> Json {
    let field = |field: &FieldInfo| json!({ "name": field.name, "layout": field.layout, "about": text(field.doc) });
    fields.iter().map(field).collect()
}

/// The structures in a codec's fields, and the value names of enumerations and flags, both by type.
fn types(codec: &Codec) -> [Map<String, Json>; 2] {
    let of_messages = codec.tables().into_iter().flatten().flat_map(|it| (it.fields)());
    let of_classes = codec.classes().into_iter().filter_map(|it| it.fields).flat_map(|of| of());
    let mut waiting: Vec<FieldInfo> = of_messages.chain(of_classes).chain(codec.layout()).collect();
    let [mut records, mut values] = [Map::new(), Map::new()];
    let mut seen = BTreeSet::new();
    while let Some(field) = waiting.pop() {
        if !seen.insert(field.layout.clone()) {
            continue;
        }
        for (name, names) in codec.named_types(&field.layout) {
            let name_of = |(value, name): (i64, &str)| json!({ "value": value, "name": name });
            values.insert(name.to_owned(), names.iter().map(name_of).collect());
        }
        for (name, inner) in codec.records(&field.layout) {
            records.insert(name.to_owned(), fields(&inner));
            waiting.extend(inner);
        }
    }
    [records, values]
}

/// Documentation on one line.
fn text(doc: &str) -> String {
    plain(doc).split_whitespace().collect::<Vec<_>>().join(" ")
}
