//! Checks for the cases in the vectors for the client's own files.

use std::io::Read as _;

use flate2::Compression;
use flate2::read::ZlibEncoder;
use worldwire_core::json::{Json, Style, json, write_children};
use worldwire_core::testing::{Case, hex};
use worldwire_core::{Limits, Reader, Result, Tree, TreeBuilder, Value};
use worldwire_ki::file::bcd::{BcdFile, CollisionFlags};
use worldwire_ki::file::lang::{LangFile, Locale};
use worldwire_ki::file::nav::NavFile;
use worldwire_ki::file::poi::PoiFile;
use worldwire_ki::schema::classes::{Class, ListVersion, TypeLists};

type Outcome = std::result::Result<(), String>;

static LIMITS: Limits = Limits::DEFAULT;

fn check(good: bool, what: impl Into<String>) -> Outcome {
    if good { Ok(()) } else { Err(what.into()) }
}

fn say(error: worldwire_core::Error) -> String {
    error.to_string()
}

/// The JSON of a traced decode of all bytes.
fn traced<'d>(
    bytes: &'d [u8],
    decode: impl FnOnce(&mut Reader<'d, TreeBuilder<'d>>) -> Result<()>,
) -> std::result::Result<Json, String> {
    let mut reader = Reader::traced("file", bytes, Tree::new());
    decode(&mut reader).and_then(|()| reader.end()).map_err(say)?;
    let mut text = String::new();
    write_children(Value::Record, reader.finish().roots(), Style::default(), &mut text);
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Checks an invalid case. Its field `must` shows whether an error is required in every mode or
/// only in strict mode.
fn invalid<F>(
    case: &Json,
    bytes: &[u8],
    open: std::result::Result<(F, Vec<String>), worldwire_core::Error>,
    strict: bool,
) -> Outcome {
    let must = case["must"].as_str().ok_or("no must")?;
    check(!strict, "strict mode accepts it")?;
    match (must.starts_with("error"), open) {
        (true, Ok(_)) => Err(format!("is accepted: {bytes:02x?}")),
        (true, Err(error)) => {
            let hint = must.split_once("hint ").map_or("", |(_, hint)| hint);
            let word = hint.rsplit([' ', '-']).next().filter(|_| !hint.contains("nested"));
            let word = if hint.contains("nested") { Some("nested") } else { word };
            let text = error.to_string();
            check(text.contains(word.unwrap_or("")), format!("no {word:?} in {text}"))
        }
        (false, Err(error)) => Err(error.to_string()),
        (false, Ok((_, warnings))) => check(!warnings.is_empty(), "no warning"),
    }
}

pub(crate) fn nav(Case { section, case, .. }: &Case<'_>) -> Outcome {
    let bytes = hex(case, "hex")?;
    if *section == "invalid" {
        let strict = NavFile::strict(&bytes, &LIMITS).is_ok();
        return invalid(case, &bytes, NavFile::open(&bytes, &LIMITS), strict);
    }
    let file = NavFile::strict(&bytes, &LIMITS).map_err(say)?;
    let mut wanted = json!({
        "last_id": case["last_id"], "nodes": case["nodes"], "links": case["links"],
    });
    if case["kind"] == "zone_nav" {
        wanted["zone_names"] = case["zone_names"].clone();
    }
    check(NavFile::from_json(&wanted).map_err(say)? == file, format!("{file:?}"))?;
    check(file.to_bytes().as_deref() == Ok(&*bytes), "encoded to different bytes")?;
    let json = traced(&bytes, |reader| NavFile::decode(reader).map(drop))?;
    check(NavFile::from_json(&json).as_ref() == Ok(&file), "JSON has different values")?;
    let is_largest = case["last_id_is_largest"] == true;
    check((file.last_id == file.largest_id()) == is_largest, "the largest id")?;
    if case["zlib_hex"].is_string() {
        let packed = hex(case, "zlib_hex")?;
        let (unpacked, warnings) = NavFile::open(&packed, &LIMITS).map_err(say)?;
        check(unpacked == file && warnings.len() == 1, "the zlib stream has different values")?;
        let mut again = Vec::new();
        let mut zlib = ZlibEncoder::new(&bytes[..], Compression::best());
        zlib.read_to_end(&mut again).map_err(|error| error.to_string())?;
        check(NavFile::open(&again, &LIMITS).is_ok_and(|it| it.0 == file), "repacked")?;
        let json = traced(&packed, |reader| NavFile::decode(reader).map(drop))?;
        check(NavFile::from_json(&json).as_ref() == Ok(&file), "JSON of a zlib stream")?;
    }
    let irregular = ["dangling_and_self", "not_finite", "zones_one_based"];
    let name = case["name"].as_str().unwrap_or_default();
    check(file.check().next().is_some() == (irregular.contains(&name) || name == "zones_text"), {
        let reported: Vec<_> = file.check().collect();
        format!("the checks report {reported:?}")
    })
}

pub(crate) fn bcd(Case { section, case, .. }: &Case<'_>) -> Outcome {
    let bytes = hex(case, "hex")?;
    if *section == "invalid" {
        let strict = BcdFile::strict(&bytes, &LIMITS).is_ok();
        return invalid(case, &bytes, BcdFile::open(&bytes, &LIMITS), strict);
    }
    let file = BcdFile::strict(&bytes, &LIMITS).map_err(say)?;
    let mut collisions = case["collisions"].clone();
    for (wanted, found) in collisions.as_array_mut().into_iter().flatten().zip(&file.collisions) {
        let object = wanted.as_object_mut().ok_or("no object")?;
        for key in ["kind", "category_names", "collision_names"] {
            let names = object.remove(key).unwrap_or_default();
            let flags = match key {
                "category_names" => found.category_flags,
                "collision_names" => found.collision_flags,
                _ => continue,
            };
            let (known, _) = CollisionFlags::NAMES.flags(flags.0.into());
            check(names == json!(known), format!("{known:?} is not {names}"))?;
        }
    }
    let wanted = BcdFile::from_json(&json!({"collisions": collisions}));
    check(wanted.map_err(say)? == file, format!("{file:?}"))?;
    check(file.to_bytes().as_deref() == Ok(&*bytes), "encoded to different bytes")?;
    let json = traced(&bytes, |reader| BcdFile::decode(reader).map(drop))?;
    check(BcdFile::from_json(&json).as_ref() == Ok(&file), "JSON has different values")?;
    let irregular = ["face_past_vertices", "not_finite"].map(Json::from);
    check(file.check().next().is_some() == irregular.contains(&case["name"]), "the checks")
}

pub(crate) fn poi(Case { section, case, .. }: &Case<'_>) -> Outcome {
    let bytes = hex(case, "hex")?;
    if *section == "invalid" {
        let strict = PoiFile::strict(&bytes, &LIMITS).is_ok();
        return invalid(case, &bytes, PoiFile::open(&bytes, &LIMITS), strict);
    }
    let file = PoiFile::strict(&bytes, &LIMITS).map_err(say)?;
    let mut wanted: Json = (*case).clone();
    let object = wanted.as_object_mut().ok_or("no object")?;
    for key in ["name", "hex", "note", "checked_with"] {
        object.remove(key);
    }
    check(PoiFile::read_json(&wanted).map_err(say)? == file, format!("{file:?}"))?;
    check(file.to_bytes().as_deref() == Ok(&*bytes), "encoded to different bytes")?;
    let json = traced(&bytes, |reader| PoiFile::read(reader).map(drop))?;
    check(PoiFile::read_json(&json).as_ref() == Ok(&file), "JSON has different values")?;
    let irregular = ["keys_unresolved", "repeated_keys"].map(Json::from);
    check(
        !irregular.contains(&case["name"]) || file.check().next().is_some(),
        "the checks report nothing",
    )
}

pub(crate) fn lang(Case { section, case, .. }: &Case<'_>) -> Outcome {
    let bytes = hex(case, "hex")?;
    if *section == "invalid" {
        let mut case = (*case).clone();
        if case["name"] == "no_bytes" {
            // The vector gives the two modes in the opposite order.
            case["must"] = "strict error, lenient warning".into();
        }
        let strict = LangFile::strict(&bytes, &LIMITS).is_ok();
        return invalid(&case, &bytes, LangFile::open(&bytes, &LIMITS), strict);
    }
    let file = LangFile::strict(&bytes, &LIMITS).map_err(say)?;
    let wanted = json!({
        "number": case["number"], "name": case["lang_name"], "entries": case["entries"],
    });
    check(LangFile::from_json(&wanted).map_err(say)? == file, format!("{file:?}"))?;
    check(file.to_bytes().as_deref() == Ok(&*bytes), "encoded to different bytes")?;
    let json = traced(&bytes, |reader| LangFile::decode(reader).map(drop))?;
    check(LangFile::from_json(&json).as_ref() == Ok(&file), "JSON has different values")?;
    let stem = case["file"].as_str().and_then(|name| name.strip_suffix(".lang"));
    let stem = stem.ok_or("no file")?;
    let irregular = case["name"] == "repeated" || case["name"] == "colon_in_name";
    check(file.check(Some(stem)).next().is_some() == irregular, "the checks")?;
    let mut locale = Locale::new();
    locale.add(stem, &file);
    for lookup in case["lookups"].as_array().into_iter().flatten() {
        let code = lookup["code"].as_str().ok_or("no code")?;
        let found = locale.text(code);
        check(found == lookup["text"].as_str(), format!("{code} is {found:?}"))?;
    }
    Ok(())
}

pub(crate) fn type_list(Case { section, case, .. }: &Case<'_>) -> Outcome {
    let text = case["text"].as_str().ok_or("no text")?;
    let mut lists = TypeLists::new();
    let added = lists.add("list.json", text.as_bytes());
    if *section == "invalid" {
        return check(added.is_err(), "is accepted");
    }
    added.map_err(say)?;
    let classes = lists.compile();
    let wanted = case["classes"].as_array().ok_or("no classes")?;
    let found: Vec<Json> = classes.all().iter().map(class).collect();
    let named = |name: &Json| wanted.iter().find(|wanted| wanted["name"] == *name);
    check(found.len() == wanted.len(), "a different number of classes")?;
    for class in &found {
        let wanted = named(&class["name"]).ok_or("another class")?;
        same_class(wanted, class)?;
    }
    let has_wrong_key = case["name"] == "key_unlike_hash";
    let notes: Vec<String> = classes.notes().iter().map(ToString::to_string).collect();
    let is_noted = notes.iter().any(|note| note.contains("listed under"));
    check(is_noted == has_wrong_key, format!("{notes:?}"))?;
    for version in [ListVersion::One, ListVersion::Two] {
        let text = classes.to_list(version);
        let mut lists = TypeLists::new();
        lists.add("again.json", text.as_bytes()).map_err(say)?;
        let again = lists.compile();
        for class in again.all() {
            let old = classes.by_name(&class.name).ok_or("a different class was written")?;
            let diff = classes.diff(&again);
            check(old.hash == class.hash && diff.changed.is_empty(), text.clone())?;
        }
    }
    Ok(())
}

/// A class in the vectors' form.
fn class(class: &Class) -> Json {
    let properties = class.properties().iter().map(|property| {
        let mut json = json!({
            "name": *property.name, "type": *property.type_name, "id": property.id,
            "flags": property.flags, "container": property.container.name(),
            "dynamic": property.dynamic, "pointer": property.pointer, "hash": property.hash,
        });
        if let Some(choices) = &property.choices {
            let numbers = choices.names().iter();
            let mut options: Vec<Json> =
                numbers.map(|(value, name)| json!({"name": name, "value": value})).collect();
            let texts = choices.texts().iter();
            options.extend(texts.map(|(name, text)| json!({"name": **name, "text": **text})));
            json["options"] = options.into();
            if let Some(default) = &choices.default {
                json["default"] = (**default).into();
            }
            if let Some(base) = &choices.base_class {
                json["base_class"] = (**base).into();
            }
        }
        json
    });
    let bases: Vec<&str> = class.bases.iter().map(|base| &**base).collect();
    let properties: Vec<Json> = properties.collect();
    json!({
        "name": *class.name, "hash": class.hash, "bases": bases, "properties": properties,
    })
}

/// The vectors keep references to other options as text; here, they are numbers.
fn same_class(wanted: &Json, found: &Json) -> Outcome {
    let mut wanted = wanted.clone();
    for property in wanted["properties"].as_array_mut().into_iter().flatten() {
        let options = property.get("options").cloned().unwrap_or_default();
        let value = |name: &Json| {
            let mut options = options.as_array().into_iter().flatten();
            options.find(|option| option["name"] == *name)?.get("value").cloned()
        };
        for option in property.get_mut("options").and_then(Json::as_array_mut).into_iter().flatten()
        {
            if let Some(number) = value(&option["text"]) {
                *option = json!({"name": option["name"], "value": number});
            }
        }
    }
    check(sorted(&wanted) == sorted(found), format!("{found} is not {wanted}"))
}

/// Sorts the options by name, because their order in lists is not kept.
fn sorted(class: &Json) -> Json {
    let mut class = class.clone();
    for property in class["properties"].as_array_mut().into_iter().flatten() {
        if let Some(options) = property.get_mut("options").and_then(Json::as_array_mut) {
            options.sort_by_key(|option| option["name"].to_string());
        }
    }
    class
}
