//! Checks the crate against the object vectors.

use std::collections::BTreeMap;

use worldwire_core::json::{Json, Style};
use worldwire_core::testing::{agrees, hex, render};
use worldwire_core::value::parse_hex;
use worldwire_core::{NodeRef, Reader, Side, Tree, Writer};
use worldwire_mxo::message::{Context, Fault, Properties, Rules, Section, Viewed};
use worldwire_mxo::schema::{Class, Objects, Tables};
use worldwire_mxo::types::PropertyType;

pub(crate) type Outcome = Result<(), String>;

fn text<E: core::fmt::Display>(error: E) -> String {
    error.to_string()
}

fn same<T: PartialEq + core::fmt::Debug>(what: &str, found: T, wanted: T) -> Outcome {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{what}: wanted {wanted:x?}, found {found:x?}"))
}

fn number(json: &Json, key: &str) -> Result<u64, String> {
    json.get(key).and_then(Json::as_u64).ok_or_else(|| format!("no {key}"))
}

/// The views that a case requires, by class name.
fn views(case: &Json, objects: &Objects) -> Result<BTreeMap<u16, Viewed>, String> {
    let known = case.get("known_views").and_then(Json::as_object).ok_or("no known_views")?;
    let view = |(view, class): (&str, &Json)| {
        let class = class.as_str().and_then(|name| objects.class_named(name));
        let (class, _) = class.ok_or_else(|| format!("no class of view {view}"))?;
        Ok((view.parse().map_err(text)?, class.into()))
    };
    known.iter().map(view).collect()
}

/// Checks a readable stream: every operation, and every way to encode it back to its bytes.
pub(crate) fn section(case: &Json) -> Outcome {
    match case.get("kind").and_then(Json::as_str) {
        Some("flags") => return flags(case),
        Some("vector") => return bits(case),
        Some(other) => return Err(format!("no test for kind {other}")),
        None => {}
    }
    let objects = Objects::built_in();
    let views = views(case, &objects)?;
    let input = hex(case, "input")?;
    let from = match case.get("source_kind").and_then(Json::as_str) {
        Some("client") => Side::Client,
        _ => Side::Server,
    };
    let context = Context { objects: &objects, views: &views, from, rules: Rules::STRICT };
    let expect = case.get("expect").ok_or("no expect")?;

    let mut reader = Reader::traced("section", &input, Tree::new());
    let outcome = Section::decode(&mut reader, &context);
    let (consumed, rest) = (reader.position(), reader.rest());
    let (tree, outcome) = reader.conclude(outcome);
    let read = outcome.map_err(text)?;
    same("consumed", consumed as u64, number(expect, "consumed")?)?;
    same("rest", rest.to_vec(), hex(expect, "rest")?)?;

    let wanted = expect.get("ops").and_then(Json::as_array).ok_or("no ops")?;
    let items: Vec<_> = tree.find("operations").ok_or("no operations")?.children().collect();
    same("operations", items.len(), wanted.len())?;
    for (item, wanted) in items.into_iter().zip(wanted) {
        let node = item.children().next().ok_or("an empty operation")?;
        operation(node, wanted).map_err(|why| format!("{}: {why}", node.name()))?;
    }

    let silent = Section::decode(&mut Reader::new(&input), &context).map_err(text)?;
    same("without a trace", silent, read.clone())?;
    let mut writer = Writer::new();
    read.encode(&objects, from, &mut writer).map_err(text)?;
    same("encoded", writer.as_bytes(), &input[..consumed])?;
    let length: usize = read.operations.iter().map(|one| one.encoded_len(&objects)).sum();
    same("length", length + 3, consumed)?;
    let json = render(&tree, Style::default());
    let again = Section::from_json(&json, &context).map_err(text)?;
    same("from JSON", again, read)
}

/// Checks an operation of a section: the tree must contain everything that the case states.
fn operation(node: NodeRef<'_, '_>, wanted: &Json) -> Outcome {
    let wanted = wanted.as_object().ok_or("no operation")?;
    let find = |name: &str| node.child(name).ok_or_else(|| format!("no {name}"));
    for (key, value) in wanted {
        match key {
            "op" => same("op", Some(node.name()), value.as_str())?,
            "dynamic" => {
                let flags = find("flags")?.unsigned();
                same("dynamic", flags.map(|flags| flags & 4 != 0), value.as_bool())?;
            }
            "normal" => {
                let flags = find("flags")?.unsigned();
                same("normal", flags.map(|flags| flags & 8 != 0), value.as_bool())?;
            }
            "world_id" if value.is_null() => {
                same("world_id", node.child("world_id").is_some(), false)?;
            }
            // One byte per seven properties: the part of the record besides the values.
            "vector_bytes" => {
                let record = find("properties")?;
                let values: usize = record.children().map(|child| child.raw().len()).sum();
                same(
                    "vector_bytes",
                    (record.raw().len() - values) as u64,
                    value.as_u64().unwrap(),
                )?;
            }
            "target_view" => agrees(find("target")?, value)?,
            "state" => {
                let movement = find("movement")?;
                for (key, value) in value.as_object().ok_or("no state")? {
                    match key {
                        "pos" => {
                            let parts = movement.child("position").ok_or("no position")?;
                            coordinates(parts, value)?;
                        }
                        key => agrees(movement.child(key).ok_or("no such field")?, value)?,
                    }
                }
            }
            "props" => properties(find("properties")?, value)?,
            key => agrees(find(key)?, value)?,
        }
    }
    Ok(())
}

fn coordinates(node: NodeRef<'_, '_>, wanted: &Json) -> Outcome {
    let wanted = wanted.as_array().ok_or("no array")?;
    same("numbers", node.children().count(), wanted.len())?;
    node.children().zip(wanted).try_for_each(|(child, wanted)| agrees(child, wanted))
}

fn properties(record: NodeRef<'_, '_>, wanted: &Json) -> Outcome {
    let wanted = wanted.as_array().ok_or("no props")?;
    same("properties", record.children().count(), wanted.len())?;
    for (child, wanted) in record.children().zip(wanted) {
        same("name", Some(child.name()), wanted.get("name").and_then(Json::as_str))?;
        let bytes = hex(wanted, "hex")?;
        // Text in a client's own view is length-prefixed.
        let raw = child.raw();
        same("bytes", raw.get(raw.len() - bytes.len()..), Some(&bytes[..]))?;
        match wanted.get("value") {
            Some(value @ Json::Array(_)) => coordinates(child, value)?,
            Some(value) => agrees(child, value)?,
            None => {}
        }
    }
    Ok(())
}

/// Checks the meaning of the flag bits.
fn flags(case: &Json) -> Outcome {
    for one in case.get("cases").and_then(Json::as_array).ok_or("no cases")? {
        let byte = u8::try_from(number(one, "byte")?).map_err(text)?;
        let objects = Objects::built_in();
        let context = Context::server(&objects, &worldwire_mxo::message::NoViews);
        // Enough zeros for anything but a relevance notice, whose layout is unknown.
        let bytes = [&[3, 1, 0, byte][..], &[0; 16]].concat();
        let mut reader = Reader::traced("section", &bytes, Tree::new());
        let outcome = Section::decode(&mut reader, &context);
        let (tree, outcome) = reader.conclude(outcome);
        let command = one.get("cmd").and_then(Json::as_str).ok_or("no cmd")?;
        if command == "relevance_notice" {
            let fault = outcome.err().as_ref().and_then(Fault::of);
            same("fault", fault, Some(Fault::ServerOnlyCommand))?;
            continue;
        }
        let item = tree.find("operations[0]").ok_or("no operation")?;
        let node = item.children().next().ok_or("no name")?;
        same("command", node.name(), command)?;
        if command == "create" {
            let dynamic = one.get("dynamic").and_then(Json::as_bool);
            same("dynamic", Some(node.child("world_id").is_none()), dynamic)?;
        }
    }
    Ok(())
}

/// Checks which properties the bits of a single presence byte stand for.
fn bits(case: &Json) -> Outcome {
    let mut bytes = hex(case, "vector")?;
    bytes.resize(bytes.len() + 4 * 7, 0);
    let names: Vec<String> = (0..7).map(|index| format!("p{index}")).collect();
    let kind = PropertyType::Uint32;
    let class = Class::new("bits", names.iter().map(|name| (name.as_str(), kind)));
    let read = Properties::decode(&mut Reader::new(&bytes), class.create()).map_err(text)?;
    same("indices", found(&read), indices(case)?)
}

fn found(properties: &Properties<'_>) -> Vec<u64> {
    properties.list().iter().map(|one| one.index() as u64).collect()
}

fn indices(case: &Json) -> Result<Vec<u64>, String> {
    let indices = case.get("indices").and_then(Json::as_array).ok_or("no indices")?;
    Ok(indices.iter().filter_map(Json::as_u64).collect())
}

/// Checks presence encoding alone.
pub(crate) fn vector(case: &Json) -> Outcome {
    let length = number(case, "table_len")?;
    let size = usize::try_from(number(case, "property_size")?).map_err(text)?;
    let kind = PropertyType::raw(size).ok_or("no size")?;
    let names: Vec<String> = (0..length).map(|index| format!("p{index}")).collect();
    let class = Class::new("bits", names.iter().map(|name| (name.as_str(), kind)));
    let order = class.create();
    let encoded = hex(case, "encoded")?;
    let mut reader = Reader::new(&encoded);
    let read = Properties::decode(&mut reader, order).map_err(text)?;
    reader.end().map_err(text)?;
    same("indices", found(&read), indices(case)?)?;
    let value = |index: u64| vec![0xa0_u8.wrapping_add(u8::try_from(index).unwrap())];
    for one in read.list() {
        same("value", one.bytes().to_vec(), value(one.index() as u64))?;
    }
    let mut writer = Writer::new();
    read.encode(order, &mut writer).map_err(text)?;
    same("encoding what was read", writer.as_bytes(), &encoded)?;
    same("length", read.encoded_len(order), encoded.len())?;

    let mut made = Properties::new();
    for index in indices(case)?.into_iter().rev() {
        made.set(u16::try_from(index).map_err(text)?, value(index));
    }
    let mut writer = Writer::new();
    made.encode(order, &mut writer).map_err(text)?;
    let padded = case.get("kind").and_then(Json::as_str) == Some("vector-decode-only");
    same("padded", read.padding() > 0, padded)?;
    same("padding", writer.as_bytes() == encoded, !padded)
}

/// Checks a stream that must fail with the stated fault.
pub(crate) fn malformed(case: &Json) -> Outcome {
    let mut tables = Tables::built_in();
    assert!(tables.goobjs().all(|(goid, _)| goid != 0xfefe));
    tables.goobj_mut(0xfefe).name = Some("unknown".into());
    let objects = tables.compile();
    let views = views(case, &objects)?;
    let input = case.get("input").and_then(Json::as_str).and_then(parse_hex).ok_or("no input")?;
    let context = Context::server(&objects, &views);
    let wanted = case.get("error").and_then(Json::as_str).ok_or("no error")?;
    let mut reader = Reader::traced("section", &input, Tree::new());
    let outcome = Section::decode(&mut reader, &context);
    let (tree, outcome) = reader.conclude(outcome);
    render(&tree, Style::default());
    let Err(error) = outcome else { return Err("it was accepted".into()) };
    same("fault", Fault::of(&error).map(Fault::name), Some(wanted))?;
    let silent = Section::decode(&mut Reader::new(&input), &context);
    same("without a trace", silent.err(), Some(error))?;

    let lenient = Section::decode(&mut Reader::new(&input), &context.with(Rules::LENIENT));
    let kept = matches!(
        wanted,
        "unknown_goid" | "unknown_view" | "server_only_command" | "missing_terminator"
    );
    same("kept", lenient.is_ok(), kept)?;
    if let Ok(section) = lenient {
        let mut writer = Writer::new();
        section.encode(&objects, Side::Server, &mut writer).map_err(text)?;
        same("encoded", writer.as_bytes(), &input)?;
    }
    Ok(())
}
