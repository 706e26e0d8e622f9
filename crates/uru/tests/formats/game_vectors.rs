//! Every case of the conformance vectors for game connections.

use crate::game_message;
use worldwire_core::json::{Json, Style, json, write_node};
use worldwire_core::testing::{Case, agrees, hex, run_vectors};
use worldwire_core::{Error, Field, Limits, NodeRef, Reader, Side, Tree, Value, Writer};
use worldwire_uru::inflate::Inflater;
use worldwire_uru::net_message::{NetMessage, checked_class, class_info, received};
use worldwire_uru::plasma_message::PlasmaMessage;
use worldwire_uru::safety::{Reason, Rules, check};
use worldwire_uru::types::{
    BitVector, ClassIndex, ClientGuid, GenericType, NetGroupId, SafeString, SafeWString,
    SequenceNumber, UnifiedTime, Uoid,
};

#[test]
fn every_case_of_every_file() {
    run_vectors("uru-game", ELSEWHERE, |Case { file, case, .. }| {
        let id = case["id"].as_str().unwrap_or("?");
        let outcome = match file {
            "netmsg" => net_message(case),
            "plmessage" => plasma_message(case),
            "primitives" => primitive(case),
            "negative" if case["kind"] == "sdl" => Ok(()),
            "negative" => negative(case),
            other => Err(format!("no test for {other}.json")),
        };
        outcome.map_err(|why| format!("{id}: {why}"))
    });
}

/// Files that other tests cover.
const ELSEWHERE: &[&str] = &["sdl-blob", "sdl-parse", "sdl-update", "real-sdl-index", "scenarios"];

type Outcome = Result<(), String>;

fn ensure(good: bool, what: &str) -> Outcome {
    if good { Ok(()) } else { Err(what.to_owned()) }
}

fn shown(error: impl ToString) -> String {
    error.to_string()
}

/// Decodes the bytes with and without a trace, compares the tree with the expected one, encodes
/// both the value and its JSON, and compares the bytes.
fn all_ways<'d, F: Field<'d>>(
    bytes: &'d [u8],
    compare: impl FnOnce(NodeRef<'_, '_>) -> Outcome,
) -> Result<F, String> {
    let mut plain = Reader::new(bytes);
    let value = F::decode(&mut plain, "value").map_err(shown)?;
    plain.end().map_err(shown)?;
    let mut traced = Reader::traced("vector", bytes, Tree::new());
    let outcome = F::decode(&mut traced, "value");
    let (tree, outcome) = traced.conclude(outcome);
    ensure(outcome.map_err(shown)? == value, "traced and plain decode differ")?;
    let root = tree.find("value").ok_or("no tree")?;
    ensure(root.raw().len() == bytes.len(), "the root misses bytes")?;
    compare(root)?;
    let mut writer = Writer::new();
    value.encode(&mut writer).map_err(shown)?;
    ensure(writer.as_bytes() == bytes, "encodes to different bytes")?;
    let mut json = String::new();
    write_node(root, Style::default(), &mut json);
    let json: Json = serde_json::from_str(&json).map_err(shown)?;
    let mut again = Writer::new();
    F::from_json((&json).into()).map_err(shown)?.encode(&mut again).map_err(shown)?;
    ensure(again.as_bytes() == bytes, "JSON encodes to different bytes")?;
    Ok(value)
}

fn net_message(case: &Json) -> Outcome {
    let bytes = hex(case, "hex")?;
    let fields = &case["fields"];
    let class = class_of(case)?;
    let message: NetMessage<'_> = all_ways(&bytes, |root| same(root, fields))?;
    let row = class_info(class).ok_or("no such class")?;
    ensure(row.name == case["class"], "another name")?;
    let from = |side| row.sender.is_none_or(|sender| sender == side);
    let direction = case["direction"].as_str().unwrap_or_default();
    ensure(direction != "client->server" || from(Side::Client), "not from clients")?;
    ensure(direction != "server->client" || from(Side::Server), "not from servers")?;
    let limits = &Limits::DEFAULT;
    let outer = ClassIndex(class.into());
    ensure(received(outer, &bytes, limits).map_err(shown)? == message, "received differs")?;
    // Administrators may send any message.
    check(&bytes, &Rules::ADMIN, &mut Inflater::new(), limits).map_err(shown)
}

fn plasma_message(case: &Json) -> Outcome {
    let bytes = hex(case, "hex")?;
    let class = class_of(case)?;
    let message: PlasmaMessage<'_> = all_ways(&bytes, |root| {
        let name = root.child("class").ok_or("no class")?;
        agrees(name, &case["class"])?;
        same(root, &case["fields"])
    })?;
    let known = !matches!(message, PlasmaMessage::Other(_));
    ensure(known, "a class without a layout")?;
    let (mut inflater, limits) = (Inflater::new(), &Limits::DEFAULT);
    let walked = check(&game_message(&bytes), &Rules::ADMIN, &mut inflater, limits);
    match (walked, class) {
        (Err(refusal), 0x0253 | 0x03b1) => {
            ensure(refusal.reason == Reason::Wrapper(class), &refusal.to_string())
        }
        (walked, _) => walked.map_err(shown),
    }
}

fn class_of(case: &Json) -> Result<u16, String> {
    let index = case["class_index"].as_str().and_then(|index| index.strip_prefix("0x"));
    index.and_then(|index| u16::from_str_radix(index, 16).ok()).ok_or_else(|| "no class".to_owned())
}

/// Handles the bytes as a server does.
fn negative(case: &Json) -> Outcome {
    let bytes = hex(case, "hex")?;
    let outer = bytes.first_chunk().map_or(0, |class| u16::from_le_bytes(*class));
    let limits = &Limits::DEFAULT;
    let taken = received(ClassIndex(outer.into()), &bytes, limits).map_err(shown);
    let checked = taken
        .and_then(|_| check(&bytes, &Rules::ADMIN, &mut Inflater::new(), limits).map_err(shown));
    match checked {
        Ok(()) => Err("accepted".to_owned()),
        Err(_) => Ok(()),
    }
}

/// Whether a node matches a vector. Names in the vectors use capitals instead of underscores; other
/// notations of the vectors are converted.
fn same(node: NodeRef<'_, '_>, wanted: &Json) -> Outcome {
    if let (Value::F32(found), Some(wanted)) = (node.value(), wanted.as_f64()) {
        // The vectors contain the shortest decimal of the f32.
        let near = (f64::from(found) - wanted).abs() <= wanted.abs() * f64::from(f32::EPSILON);
        return ensure(near, &format!("wanted {wanted}, found {found}"));
    }
    let Json::Object(fields) = wanted else {
        return agrees(node, wanted);
    };
    for (key, wanted) in fields {
        field(node, key, wanted).map_err(|why| format!("{key}: {why}"))?;
    }
    Ok(())
}

fn field(node: NodeRef<'_, '_>, key: &str, wanted: &Json) -> Outcome {
    let child = |name: &str| node.child(name).ok_or_else(|| format!("no {name}"));
    match (key, wanted) {
        // The fields of these records are on the same level as the others.
        ("header" | "message", Json::Object(_)) => same(node, wanted),
        ("stream", _) => stream(child("stream")?, wanted),
        ("payload", _) => {
            let payload = child("stream")?.child("payload").ok_or("no payload")?;
            same(payload, wanted)
        }
        ("state_name", _) => agrees(shared(node)?.child("name").ok_or("no name")?, wanted),
        ("server_may_delete", _) => {
            agrees(shared(node)?.child("serverMayDelete").ok_or("no flag")?, wanted)
        }
        ("vars", Json::Array(items)) => {
            let variables = shared(node)?.child("variables").ok_or("no variables")?;
            each(variables, items, |variable, item| {
                agrees(variable.child("name").ok_or("no name")?, &item["name"])?;
                generic(variable.child("value").ok_or("no value")?, item)
            })
        }
        ("time_sent" | "delivery_time", Json::Array(parts)) => {
            let time = child(&camel(key))?;
            agrees(time.child("seconds").ok_or("no seconds")?, &parts[0])?;
            agrees(time.child("microseconds").ok_or("no microseconds")?, &parts[1])
        }
        ("version", Json::Array(parts)) => {
            let version = child(key)?;
            agrees(version.child("major").ok_or("no major")?, &parts[0])?;
            agrees(version.child("minor").ok_or("no minor")?, &parts[1])
        }
        ("class_index", Json::String(index)) => {
            let found = child("class")?.unsigned().or(number(child("class")?));
            let wanted = index.strip_prefix("0x").and_then(|x| u64::from_str_radix(x, 16).ok());
            ensure(found == wanted, "another class")
        }
        ("sequence", _) => agrees(child("sequenceNumber")?, wanted),
        ("clone_player_id", _) => agrees(child("clonerId")?, wanted),
        ("group_location", _) => same(child("group")?.child("location").ok_or("none")?, wanted),
        ("group_flags", _) if node.child("group").is_some() => {
            agrees(child("group")?.child("groupFlags").ok_or("no flags")?, wanted)
        }
        ("voice_data_hex", Json::String(data)) => {
            let voice = ["pcm", "speex", "opus"].into_iter().find_map(|name| node.child(name));
            let raw = voice.ok_or("no voice")?.raw();
            let raw: String = raw[2..].iter().map(|byte| format!("{byte:02x}")).collect();
            ensure(*raw == **data, "another voice")
        }
        ("matrix", Json::String(_)) => {
            ensure(child("matrix")?.child("rows").is_none(), "not the identity")
        }
        ("matrix", _) => agrees(child("matrix")?.child("rows").ok_or("no rows")?, wanted),
        ("number", _) => {
            let held = ["float", "int", "unused"].into_iter().find_map(|name| node.child(name));
            agrees(held.ok_or("no number")?, wanted)
        }
        ("type", _) if node.child("class").is_some() => {
            let class = number(child("class")?);
            ensure(class == wanted.as_u64(), "another type of event")
        }
        // Absent fields have no node.
        (_, Json::Null) => {
            let found = node.child(&camel(key));
            ensure(found.is_none_or(|node| matches!(node.value(), Value::Null)), "not null")
        }
        (_, Json::Array(words)) if key.ends_with("_words") => {
            let bits = child(&camel(key.trim_end_matches("_words")))?;
            agrees(bits.child("words").ok_or("no words")?, &words.len().into())?;
            let set = words.iter().enumerate().flat_map(|(index, word)| {
                let word = word.as_u64().unwrap_or(0);
                (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index * 32 + bit)
            });
            agrees(bits.child("bits").ok_or("no bits")?, &set.collect::<Vec<_>>().into())
        }
        (_, Json::Array(items)) => each(child(&camel(key))?, items, same),
        // A stage of a brain with its progress.
        (_, _) => {
            let name = camel(key);
            let stage = || node.child("stage").and_then(|stage| stage.child(&name));
            same(node.child(&name).or_else(stage).ok_or_else(|| format!("no {name}"))?, wanted)
        }
    }
}

fn shared<'t, 'n>(node: NodeRef<'t, 'n>) -> Result<NodeRef<'t, 'n>, String> {
    let stream = node.child("stream").ok_or("no stream")?;
    stream.child("sharedState").ok_or_else(|| "no shared state".to_owned())
}

fn number(node: NodeRef<'_, '_>) -> Option<u64> {
    match node.value() {
        Value::Enum(number, _) => u64::try_from(number).ok(),
        _ => node.unsigned(),
    }
}

fn each(
    list: NodeRef<'_, '_>,
    items: &[Json],
    compare: impl Fn(NodeRef<'_, '_>, &Json) -> Outcome,
) -> Outcome {
    let nodes: Vec<_> = list.children().collect();
    ensure(nodes.len() == items.len(), "another count")?;
    for (index, (node, item)) in nodes.into_iter().zip(items).enumerate() {
        compare(node, item).map_err(|why| format!("[{index}]: {why}"))?;
    }
    Ok(())
}

fn generic(node: NodeRef<'_, '_>, wanted: &Json) -> Outcome {
    let kind = node.child("type").ok_or("no type")?;
    ensure(number(kind) == wanted["type"].as_u64(), "another type")?;
    match node.child("value") {
        Some(value) => agrees(value, &wanted["value"]),
        None => ensure(wanted["value"].is_null(), "no value"),
    }
}

fn stream(node: NodeRef<'_, '_>, wanted: &Json) -> Outcome {
    agrees(node.child("compression").ok_or("no compression")?, &wanted["compression"])?;
    let payload = ["payload", "sdl", "sharedState"].into_iter().find_map(|name| node.child(name));
    let raw = payload.ok_or("no payload")?.raw();
    let found: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
    ensure(wanted["uncompressed_hex"] == *found, "another payload")?;
    if let Some(length) = wanted.get("uncompressed_length_field") {
        agrees(node.child("uncompressedLength").ok_or("no length")?, length)?;
    }
    if let Some(class) = wanted.get("payload_class_index") {
        let raw = raw.first_chunk().map(|class| u16::from_le_bytes(*class));
        ensure(raw.map(u64::from) == class.as_u64(), "another class of payload")?;
    }
    Ok(())
}

/// Converts `time_sent` to `timeSent`.
fn camel(key: &str) -> String {
    let mut name = String::new();
    for (index, word) in key.split('_').enumerate() {
        let mut letters = word.chars();
        match letters.next() {
            Some(first) if index > 0 => name.extend(first.to_uppercase()),
            first => name.extend(first),
        }
        name.push_str(letters.as_str());
    }
    name
}

fn primitive(case: &Json) -> Outcome {
    let bytes = hex(case, "hex")?;
    let fields = &case["fields"];
    match case["class"].as_str().ok_or("no class")? {
        "uoid" => all_ways::<Uoid<'_>>(&bytes, |root| same(root, fields)).map(|_| ()),
        "guid" => all_ways::<ClientGuid<'_>>(&bytes, |root| same(root, fields)).map(|_| ()),
        "safe_string" => {
            let text: SafeString<'_> = all_ways(&bytes, |_| Ok(()))?;
            match fields.as_str() {
                Some(wanted) => {
                    ensure(text.to_text() == wanted, "another text")?;
                    ensure(!text.crashes_client(), "a text that ends the client")
                }
                // The text is written as inverted, although the client's reader cannot distinguish
                // the two.
                None => {
                    ensure(fields["wire_bytes_inverted_on_write"] == *text.to_text(), "another")?;
                    let stored = hex(fields, "reference_reader_yields_hex")?;
                    ensure(text.stored() == stored, "other bytes")?;
                    ensure(text.crashes_client(), "a text that the client survives")
                }
            }
        }
        "safe_wstring" => {
            let text: SafeWString<'_, 12> = all_ways(&bytes, |root| agrees(root, fields))?;
            ensure(text.is_canonical(), "not as the client writes it")
        }
        "unified_time" => {
            let time: UnifiedTime = all_ways(&bytes, |_| Ok(()))?;
            let wanted = json!([time.seconds, time.microseconds]);
            ensure(wanted == *fields, "another time")
        }
        "net_group_id" => {
            let compare = |root: NodeRef<'_, '_>| {
                same(root.child("location").ok_or("no location")?, &fields["location"])?;
                agrees(root.child("groupFlags").ok_or("no flags")?, &fields["flags"])
            };
            all_ways::<NetGroupId>(&bytes, compare).map(|_| ())
        }
        "bit_vector" => {
            let bits: BitVector = all_ways(&bytes, |_| Ok(()))?;
            ensure(json!(bits.0) == fields["words"], "other words")?;
            ensure(json!(bits.bits().collect::<Vec<_>>()) == fields["bits"], "bits")
        }
        "generic_type" => {
            all_ways::<GenericType<'_>>(&bytes, |root| generic(root, fields)).map(|_| ())
        }
        "sequence_number" => {
            let number: SequenceNumber = all_ways(&bytes, |_| Ok(()))?;
            let (age, page) = number.page().ok_or("special")?;
            let found = json!({"age": age, "page": page, "sequence": number.0});
            ensure(found == *fields, "another page")
        }
        "propagate_buffer" => propagate_buffer(&bytes, case),
        other => Err(format!("no test for {other}")),
    }
}

fn propagate_buffer(bytes: &[u8], case: &Json) -> Outcome {
    let read = |bytes: &[u8]| -> Result<(u32, Vec<u8>), Error> {
        let mut reader = Reader::new(bytes);
        reader.u16("number")?;
        let class = reader.u32("type")?;
        let length = reader.u32("length")?;
        let payload = reader.bytes("buffer", length as usize)?.to_vec();
        reader.end()?;
        Ok((class, payload))
    };
    let (class, payload) = read(bytes).map_err(shown)?;
    let checked = checked_class(ClassIndex(class), &payload);
    if case["reencode"] == "reject" {
        let error = checked.err().ok_or("accepted")?.to_string();
        let wanted = "class at byte 0: wanted class 0x02cd, as announced by the PropagateBuffer, found 0x02ad";
        return ensure(error == wanted, &error);
    }
    ensure(u64::from(class) == case["fields"]["class_index"].as_u64().unwrap_or(0), "class")?;
    ensure(payload == hex(&case["fields"], "payload_hex")?, "another payload")?;
    checked.map(|_| ()).map_err(shown)
}
