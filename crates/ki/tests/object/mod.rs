//! Checks for the cases of the ObjectProperty vectors.

use std::sync::Arc;

use worldwire_core::json::{Json, Style, write_node};
use worldwire_core::testing::{Case, hex};
use worldwire_core::{Limits, Reader, Tree};
use worldwire_ki::object::{
    CoreTable, Header, JsonWriter, Object, ObjectCodec, ObjectOptions, STATEFUL, ZLIB,
    open_envelope, seal_envelope, xml,
};
use worldwire_ki::schema::classes::{Classes, ContentHash, TypeLists};

type Outcome = Result<(), String>;

fn check(good: bool, what: impl Into<String>) -> Outcome {
    if good { Ok(()) } else { Err(what.into()) }
}

fn name(case: &Json) -> &str {
    case.get("name").and_then(Json::as_str).unwrap_or_default()
}

fn file(name: &str) -> Vec<u8> {
    let folder = std::env::var("WORLDWIRE_VECTORS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors").to_owned());
    std::fs::read(format!("{folder}/ki/{name}")).unwrap()
}

fn classes(list: &str) -> Classes {
    let mut lists = TypeLists::new();
    lists.add(list, &file(list)).unwrap();
    lists.compile()
}

/// Converts a vector's values to this crate's JSON, which uses a different key for the class.
fn ours(value: &Json) -> Json {
    match value {
        Json::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                let key = if key == "$type" { "$class" } else { key };
                (key.to_owned(), ours(value))
            })
            .collect(),
        Json::Array(items) => items.iter().map(ours).collect(),
        other => other.clone(),
    }
}

fn options(case: &Json) -> ObjectOptions {
    let options = &case["options"];
    let number = |key: &str| u32::try_from(options[key].as_u64().unwrap_or(0)).unwrap();
    let bind = options["bind_file"] == true;
    ObjectOptions {
        flags: if bind { STATEFUL } else { number("flags") },
        mask: number("mask"),
        deep: options["shallow"] == false,
        envelope: options["manual_compression"] == true,
        magic: bind,
        ..ObjectOptions::default()
    }
}

/// Converts between bytes and value in every way.
fn all_ways(
    codec: &ObjectCodec<'_>,
    bytes: &[u8],
    wanted: &Json,
) -> Result<(Object, Header), String> {
    let classes = codec.classes();
    let say = |error: worldwire_core::Error| error.to_string();
    let mut object = Object::new();
    let decoded = codec.decode_all(bytes, &mut object).map_err(say)?;
    check(decoded.notes.is_empty(), "notes")?;
    let value = Object::from_json(classes, &ours(wanted)).map_err(say)?;
    check(object == value, format!("{:?} is not {wanted}", object.to_json(classes)))?;
    let again = codec.encode(&object, decoded.header).map_err(say)?;
    let is_compressed = decoded.header.is_packed || decoded.header.is_compressed;
    if is_compressed {
        let mut other = Object::new();
        codec.decode_all(&again, &mut other).map_err(say)?;
        check(other == object, "a different object after compressing it again")?;
    } else {
        check(again == bytes, "encoded to different bytes")?;
    }
    // JSON, from the value and streamed.
    let json = object.to_json(classes).map_err(say)?;
    let mut writer = JsonWriter::new(Vec::new(), Style::default());
    codec.decode_all(bytes, &mut writer).map_err(say)?;
    check(writer.finish().map_err(say)? == json.as_bytes(), "the streamed JSON differs")?;
    check(Object::parse_json(classes, &json).map_err(say)? == object, "JSON has different values")?;
    // Decode with a trace.
    let mut reader = Reader::traced("stream", bytes, Tree::new());
    let mut traced = Object::new();
    let outcome = codec.decode(&mut reader, &mut traced);
    let (tree, outcome) = reader.conclude(outcome);
    check(outcome.map_err(say)? == decoded && traced == object, "a trace changed the outcome")?;
    let mut shown = String::new();
    write_node(tree.find("object").ok_or("no object")?, Style::default(), &mut shown);
    check(shown == json, format!("the tree shows {shown}, the value {json}"))?;
    for end in 0..bytes.len() {
        let cut = codec.decode_all(&bytes[..end], &mut Object::new());
        check(cut.is_err(), format!("the first {end} bytes are accepted"))?;
    }
    Ok((object, decoded.header))
}

pub(crate) fn binary(Case { section, case, whole, .. }: &Case<'_>) -> Outcome {
    let bytes = hex(case, "hex")?;
    match *section {
        "blob_envelope" => return envelope(case, &bytes),
        "core_object" => return core_object(case, &bytes, whole),
        _ => {}
    }
    let classes = classes(whole["types"].as_str().unwrap());
    let codec = ObjectCodec::new(&classes, options(case));
    if *section == "invalid" {
        let outcome = codec.decode_all(&bytes, &mut Object::new());
        return check(outcome.is_err(), "accepted");
    }
    all_ways(&codec, &bytes, &case["value"]).map(|_| ())
}

fn envelope(case: &Json, bytes: &[u8]) -> Outcome {
    let opened = open_envelope(bytes, &Limits::DEFAULT);
    if case.get("must").is_some() {
        return check(opened.is_err(), "accepted");
    }
    let opened = opened.map_err(|error| error.to_string())?;
    check(*opened == hex(case, "data_hex")?, "different data")?;
    let sealed = seal_envelope(&opened, name(case) == "zlib").map_err(|e| e.to_string())?;
    let again = open_envelope(&sealed, &Limits::DEFAULT).map_err(|error| error.to_string())?;
    check(again == opened, "different data after resealing")?;
    check(name(case) != "stored" || sealed == bytes, "another envelope")
}

fn core_object(case: &Json, bytes: &[u8], whole: &Json) -> Outcome {
    let classes = classes(whole["types"].as_str().unwrap());
    let byte = |json: &Json| u8::try_from(json.as_u64().unwrap_or(0)).unwrap();
    let mut table = CoreTable::default();
    for row in case["table"].as_array().into_iter().flatten() {
        let class = classes.by_name(row[2].as_str().unwrap()).unwrap();
        table.insert(byte(&row[0]), byte(&row[1]), class.hash);
    }
    let null_root = name(case) == "null";
    let core = Some(Arc::new(table));
    let codec =
        ObjectCodec::new(&classes, ObjectOptions { core, null_root, ..ObjectOptions::default() });
    if case.get("must").is_some() {
        let error = codec.decode_all(bytes, &mut Object::new()).unwrap_err().to_string();
        return check(error.contains("block 9 type 77"), error);
    }
    let mut wanted = case.get("value").cloned().unwrap_or(Json::Null);
    if let Some(template) = case.get("template_id") {
        wanted["$block"] = case["block"].clone();
        wanted["$type_"] = case["type"].clone();
        wanted["$template"] = template.clone();
    }
    // In the vectors, the key `$type` has a different meaning.
    let mut wanted = ours(&wanted);
    if let Some(kind) = wanted.as_object_mut().and_then(|fields| fields.remove("$type_")) {
        wanted["$type"] = kind;
        return all_core_ways(&codec, bytes, &wanted);
    }
    all_ways(&codec, bytes, &wanted).map(|_| ())
}

fn all_core_ways(codec: &ObjectCodec<'_>, bytes: &[u8], wanted: &Json) -> Outcome {
    let value = Object::from_json(codec.classes(), wanted).map_err(|error| error.to_string())?;
    let mut object = Object::new();
    codec.decode_all(bytes, &mut object).map_err(|error| error.to_string())?;
    check(object == value, "another value")?;
    check(codec.encode(&object, codec.header()).as_deref() == Ok(bytes), "different bytes")?;
    let mut reader = Reader::traced("stream", bytes, Tree::new());
    let outcome = codec.decode(&mut reader, &mut Object::new());
    let (tree, _) = reader.conclude(outcome);
    let mut shown = String::new();
    write_node(tree.find("object").ok_or("no object")?, Style::default(), &mut shown);
    check(Ok(shown) == object.to_json(codec.classes()), "the tree shows different values")
}

pub(crate) fn text(Case { section, case, whole, .. }: &Case<'_>) -> Outcome {
    let classes = classes(whole["types"].as_str().unwrap());
    let source = case["xml"].as_str().ok_or("no xml")?;
    let loaded = xml::load(&classes, "case.xml", source.as_bytes());
    if *section == "invalid" {
        return check(loaded.objects.is_none() && !loaded.diagnostics.is_empty(), "accepted");
    }
    let objects = loaded.objects.ok_or_else(|| format!("{:?}", loaded.diagnostics))?;
    let wanted = usize::try_from(case["issues"].as_u64().unwrap_or(0)).unwrap();
    check(loaded.diagnostics.len() == wanted, format!("{:?}", loaded.diagnostics))?;
    let values = case["value"].as_array().unwrap();
    check(objects.len() == values.len(), "a different number of objects")?;
    for (object, value) in objects.iter().zip(values) {
        let value = Object::from_json(&classes, &ours(value)).map_err(|error| error.to_string())?;
        check(*object == value, format!("{:?}", object.to_json(&classes)))?;
    }
    let written = xml::to_xml(&classes, &objects).map_err(|error| error.to_string())?;
    let again = xml::load(&classes, "again.xml", written.as_bytes());
    check(again.diagnostics.is_empty(), format!("{:?}", again.diagnostics))?;
    check(again.objects == Some(objects), format!("XML has different values: {written}"))
}

pub(crate) fn type_lists() -> Outcome {
    let (two, one) =
        (classes("objectproperty_types.json"), classes("objectproperty_types_v1.json"));
    check(one.notes().is_empty() && two.notes().is_empty(), "hashes differ")?;
    check(one.all().len() == two.all().len(), "a different number of classes")?;
    for class in one.all() {
        let other = two.by_name(&class.name).ok_or("a class is missing")?;
        check(class == other, format!("{} differs", class.name))?;
        let shown = one.explain(class).to_string();
        check(shown == two.explain(other).to_string(), "the explanation differs")?;
        check(
            class.properties().iter().all(|p| shown.contains(&*p.name)),
            "a property is missing",
        )?;
    }
    let content = ContentHash::of([&file("objectproperty_types.json")[..]]);
    let cached = Classes::from_cache(&two.to_cache(content), content).map_err(|e| e.to_string())?;
    check(cached.all() == two.all(), "the cache has different classes")
}

pub(crate) fn character_blob() -> Outcome {
    let case: Json = serde_json::from_slice(&file("character_blob.json")).unwrap();
    let mut lists = TypeLists::new();
    lists.add("character_blob.json", case["types"].to_string().as_bytes()).unwrap();
    let classes = lists.compile();
    let codec = ObjectCodec::new(&classes, options(&case));
    let (bytes, canonical) = (hex(&case, "hex")?, hex(&case, "reencoded_hex")?);
    let (object, header) = all_ways(&codec, &canonical, &case["value"])?;
    check(header.flags & ZLIB == 0, "flags")?;
    let mut real = Object::new();
    codec.decode_all(&bytes, &mut real).map_err(|error| error.to_string())?;
    check(real == object, "padding changed the value")?;
    check(codec.encode(&real, header) == Ok(canonical), "encoded to different bytes")
}
