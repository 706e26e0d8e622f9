//! Every case of the conformance vectors about SDL: descriptors, blobs, updates, and invalid input.

use worldwire_core::json::{Json, Object, Style, json, write_children};
use worldwire_core::testing::{Case, hex, run_vectors};
use worldwire_core::{Error, Reader, Tree, Value};
use worldwire_uru::schema::{Descriptors, ElementType, Shape, Type, Variable, parse};
use worldwire_uru::sdl::{Blob, MergePolicy, ObjectState, Scalar, StateRecord, StateView};
use worldwire_uru::types::UnifiedTime;

#[test]
fn every_case_of_every_file() {
    // Other tests cover the messages around the blobs.
    let elsewhere = ["netmsg", "plmessage", "primitives", "scenarios", "real-sdl-index"];
    run_vectors("uru-game", &elsewhere, |Case { file, section, case, whole }| {
        let text = whole.get("descriptor_text").and_then(Json::as_str).unwrap_or_default();
        let set = Descriptors::load([("vectors.sdl", text)]);
        check(set.problems().is_empty(), "the descriptors have problems")?;
        match (file, section) {
            ("sdl-parse", "vectors") => descriptor(&set, case),
            ("sdl-blob", "vectors") => blob(&set, case),
            ("sdl-update", "vectors") => update(&set, case),
            ("sdl-update", "upgrade_vectors") => upgrade(&set, case),
            ("negative", "vectors") => negative(&set, case),
            (file, section) => Err(format!("no test for {section} of {file}.json")),
        }
    });
}

type Outcome = Result<(), String>;

fn check(good: bool, what: &str) -> Outcome {
    if good { Ok(()) } else { Err(what.to_owned()) }
}

fn shown(error: Error) -> String {
    error.to_string()
}

fn equal(what: &str, wanted: &Json, found: &Json) -> Outcome {
    if same(wanted, found) {
        return Ok(());
    }
    Err(format!("{what}: wanted {wanted}, found {found}"))
}

/// Whether two values are equal; numbers are compared as f32 where that is the type.
#[expect(clippy::cast_possible_truncation, reason = "single precision is what is compared")]
fn same(wanted: &Json, found: &Json) -> bool {
    match (wanted, found) {
        (Json::Number(one), Json::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            one == other || (one as f32) == (other as f32)
        }
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|o| same(value, o)))
        }
        (one, other) => one == other,
    }
}

fn text<'j>(case: &'j Json, key: &str) -> Result<&'j str, String> {
    case.get(key).and_then(Json::as_str).ok_or_else(|| format!("no {key}"))
}

fn version(case: &Json, key: &str) -> Result<u16, String> {
    let number = case.get(key).and_then(Json::as_u64).and_then(|number| u16::try_from(number).ok());
    number.ok_or_else(|| format!("no {key}"))
}

/// A scalar in the notation of the vectors.
fn scalar(scalar: &Scalar<'_>) -> Json {
    match scalar {
        Scalar::Int(value) => json!(value),
        Scalar::Float(value) => json!(value),
        Scalar::Bool(value) => json!(value),
        Scalar::Text(text) => json!(String::from_utf8_lossy(text)),
        Scalar::Key(uoid) if uoid.location.sequence_number.0 == u32::MAX => Json::Null,
        Scalar::Key(uoid) => json!({
            "location": {
                "sequence": uoid.location.sequence_number.0,
                "flags": uoid.location.flags.0,
            },
            "class_index": uoid.class_index,
            "object_id": uoid.object_id,
            "name": uoid.name.to_text(),
        }),
        Scalar::Double(value) => json!(value),
        Scalar::Time(time) => json!([time.seconds, time.microseconds]),
        Scalar::Byte(value) => json!(value),
        Scalar::Short(value) => json!(value),
        Scalar::Triple(values) => json!(values),
        Scalar::Quadruple(values) => json!(values),
        Scalar::Triple8(values) => json!(values),
        Scalar::Quadruple8(values) => json!(values),
        Scalar::AgeTimeOfDay | Scalar::Creatable(_) => Json::Null,
    }
}

/// The value of a variable in the notation of the vectors.
fn value(variable: &Variable, scalars: &[Scalar<'_>]) -> Json {
    if variable.simple_type() == Some(Type::AgeTimeOfDay) {
        return Json::Null;
    }
    match (variable.count(), scalars) {
        (Some(1), [one]) => scalar(one),
        (_, all) => all.iter().map(scalar).collect(),
    }
}

fn described(variable: &Variable) -> Json {
    let words = |words: &[worldwire_uru::schema::Literal]| {
        words.iter().map(|word| json!(word.text())).collect::<Json>()
    };
    json!({
        "type": variable.element_type().to_string(),
        "name": variable.name(),
        "count": variable.count(),
        "default": variable.default().map_or(Json::Null, words),
        "default_option": variable.default_options().collect::<Vec<_>>(),
        "display_option": variable.display_options().collect::<Vec<_>>(),
    })
}

fn descriptor(set: &Descriptors, case: &Json) -> Outcome {
    let wanted = case.get("expect").ok_or("no expect")?;
    let found = set.get(text(wanted, "name")?, version(wanted, "version")?);
    let found = found.ok_or("no such descriptor")?;
    check(found.name() == text(wanted, "name")?, "another name")?;
    let again = parse("again", &found.to_string());
    check(again.statements[0].definition == *found, "prints as something else")?;
    let variables = found.variables();
    if let Some(count) = wanted.get("var_count") {
        equal("var_count", count, &json!(variables.len()))?;
        equal("first", &wanted["first"], &described(&variables[0]))?;
        return equal("last", &wanted["last"], &described(&variables[variables.len() - 1]));
    }
    let wanted = wanted["vars"].as_array().ok_or("no vars")?;
    check(wanted.len() == variables.len(), "another number of variables")?;
    let state = ObjectState::new(found.clone());
    for (wanted, variable) in wanted.iter().zip(variables) {
        let mut found = described(variable);
        found["variable_length"] = json!(variable.count().is_none());
        // The vectors state the value only if the text declares a default.
        let stated = variable.default().is_some();
        let first = state.scalar(variable.name()).filter(|_| stated);
        found["default_value"] = first.as_ref().map_or(Json::Null, scalar);
        equal(variable.name(), wanted, &found)?;
    }
    Ok(())
}

/// The variables of a record in the notation of the vectors.
fn variables(shape: Shape<'_>, record: &StateRecord<'_>) -> Json {
    let mut all = Object::new();
    for entry in &record.simple {
        let variable = shape.simple(entry.index as usize).unwrap();
        let mut one = Object::new();
        one.insert("flags", json!(entry.flags.0));
        if let Some(elements) = &entry.value {
            let scalars: Vec<_> = elements.scalars(variable.simple_type().unwrap()).collect();
            one.insert("value", value(variable, &scalars));
        }
        if let Some(time) = &entry.time {
            one.insert("timestamp", json!([time.seconds, time.microseconds]));
        }
        match &entry.head.hint {
            None => drop(one.insert("hint", Json::Null)),
            Some(hint) if hint.to_text().is_empty() => {}
            Some(hint) => drop(one.insert("hint", json!(hint.to_text()))),
        }
        all.insert(variable.name(), Json::Object(one));
    }
    for entry in &record.nested {
        let (variable, inner) = shape.nested(entry.index as usize).unwrap();
        let elements = entry.elements.iter();
        let elements = elements.map(|one| (one.index.to_string(), variables(inner, &one.record)));
        let mut one = Object::new();
        one.insert("elements", elements.collect::<Object>().into());
        if variable.count().is_none() {
            one.insert("length", json!(entry.length));
        }
        all.insert(variable.name(), Json::Object(one));
    }
    Json::Object(all)
}

/// Decodes with and without a trace, and encodes both the value and its JSON.
fn all_ways<'d>(set: &Descriptors, bytes: &'d [u8]) -> Result<Blob<'d>, String> {
    let mut plain = Reader::new(bytes);
    let blob = Blob::decode(set, &mut plain).map_err(shown)?;
    plain.end().map_err(shown)?;
    let mut traced = Reader::traced("vector", bytes, Tree::new());
    let outcome = Blob::decode(set, &mut traced);
    let (tree, outcome) = traced.conclude(outcome);
    check(outcome.map_err(shown)? == blob, "traced and plain decode differ")?;
    check(blob.to_bytes().map_err(shown)? == bytes, "encodes to different bytes")?;
    let mut json = String::new();
    write_children(Value::Record, tree.roots(), Style::default(), &mut json);
    let json: Json = serde_json::from_str(&json).map_err(|error| error.to_string())?;
    let again = Blob::from_json(set, &json).map_err(shown)?;
    check(again == blob, "JSON is another blob")?;
    check(again.to_bytes().map_err(shown)? == bytes, "JSON encodes to different bytes")?;
    check(blob.to_json(set).map_err(shown)? == json, "the blob shows other JSON")?;
    Ok(blob)
}

fn blob(set: &Descriptors, case: &Json) -> Outcome {
    let bytes = hex(case, "hex")?;
    let blob = all_ways(set, &bytes)?;
    check(text(case, "reencode")? == "exact", "no exact case")?;
    check(blob.descriptor.name() == text(case, "descriptor")?, "another descriptor")?;
    check(blob.head.version == version(case, "version")?, "another version")?;
    let object = blob.head.object.clone();
    equal(
        "fields",
        &case["fields"],
        &json!({
            "record_flags": blob.record.flags.0,
            "object": object.map_or(Json::Null, |uoid| scalar(&Scalar::Key(uoid))),
            "vars": variables(blob.descriptor.shape(), &blob.record),
        }),
    )
}

/// All variables of a state in the notation of the vectors.
fn state(view: StateView<'_>) -> Json {
    let mut all = Object::new();
    for variable in view.shape().definition().variables() {
        let name = variable.name();
        let set = view.is_set(name);
        let one = match variable.element_type() {
            ElementType::Simple(_) => json!({
                "value": value(variable, &view.scalars(name).unwrap()),
                "hint": view.hint(name),
                "set": set,
            }),
            ElementType::Nested(_) => {
                let elements = (0..view.nested_len(name).unwrap())
                    .map(|index| state(view.element(name, index).unwrap()));
                json!({ "elements": elements.collect::<Vec<_>>(), "set": set })
            }
        };
        all.insert(name, one);
    }
    Json::Object(all)
}

fn update(set: &Descriptors, case: &Json) -> Outcome {
    let (base_hex, update_hex) = (hex(case, "base_hex")?, hex(case, "update_hex")?);
    let (base, update) = (all_ways(set, &base_hex)?, all_ways(set, &update_hex)?);
    let shape = base.descriptor.shape();
    equal("base", &case["base_record"], &variables(shape, &base.record))?;
    equal("update", &case["update_record"], &variables(shape, &update.record))?;
    let now = UnifiedTime { seconds: 1_700_000_000, microseconds: 7 };
    let mut ours = ObjectState::of(&base);
    ours.apply(&update, MergePolicy::OURS, &now).map_err(|error| error.to_string())?;
    equal("after", &case["expect_after"], &state(ours.view()))?;
    // Applied to an empty state, a client's rules yield the same values.
    let mut client = ObjectState::new(base.descriptor.clone());
    for blob in [&base, &update] {
        client.apply(blob, MergePolicy::CLIENT, &now).map_err(|error| error.to_string())?;
    }
    equal("client", &case["expect_after"], &state(client.view()))?;
    // Variables stamped by the server have its time, and the state that it sends to others decodes
    // to the same state.
    let mut stamped = update.record.simple.iter().map(|entry| shape.simple(entry.index as usize));
    check(
        stamped.all(|one| ours.view().time(one.unwrap().name()) == Some(now.clone())),
        "not the server's time",
    )?;
    let sent = ours.to_blob().to_bytes().map_err(shown)?;
    check(ObjectState::of(&all_ways(set, &sent)?) == ours, "sends something else")
}

fn upgrade(set: &Descriptors, case: &Json) -> Outcome {
    let bytes = hex(case, "base_hex")?;
    let base = all_ways(set, &bytes)?;
    check(base.head.version == version(case, "from")?, "another version")?;
    let newer = set.get(text(case, "descriptor")?, version(case, "to")?);
    let after = ObjectState::of(&base).upgrade(&newer.ok_or("no newer version")?);
    let mut found = state(after.view());
    // The vectors do not cover hints here.
    for variable in found.as_object_mut().unwrap().values_mut() {
        variable.as_object_mut().unwrap().remove("hint");
    }
    equal("after", &case["expect_after"], &found)
}

fn negative(set: &Descriptors, case: &Json) -> Outcome {
    if case.get("kind").and_then(Json::as_str) != Some("sdl") {
        return Ok(());
    }
    let bytes = hex(case, "hex")?;
    let Err(error) = Blob::decode(set, &mut Reader::new(&bytes)) else {
        return Err("accepted".to_owned());
    };
    let wanted = match text(case, "error")? {
        "no marker" => "flags at byte 0: wanted the flag AddedVarLengthIO (0x8000), found 0x0000",
        "io version" => "recordVersion at byte 15: wanted 6, found 5",
        "unknown descriptor" => "descriptor at byte 2: wanted a known descriptor, found \"nope\"",
        "unknown version" => "version at byte 11: wanted versions 1, 2 of wwLever, found 9",
        "bad index" => "variables at byte 17: wanted an index below 2, found 7",
        "list too long" => {
            "variables.aList.value at byte 25: wanted at most 9998 (elements of a list), found 9999"
        }
        "count above" => "variables at byte 16: wanted at most 2 variables or elements, found 3",
        other => return Err(format!("no test for {other}")),
    };
    let found = error.to_string();
    if found == wanted { Ok(()) } else { Err(format!("wanted {wanted}, found {found}")) }
}
