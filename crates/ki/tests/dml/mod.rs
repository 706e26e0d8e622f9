//! Checks for the cases of the DML vectors.

use worldwire_core::json::{Json, Style, json, write_children};
use worldwire_core::testing::{Case, agrees, hex};
use worldwire_core::{Reader, Tree, Value};
use worldwire_ki::file::table::TableFile;
use worldwire_ki::message::{Fit, RawMessage, Values};
use worldwire_ki::schema::{Mode, Protocols, load};

type Outcome = Result<(), String>;

fn check(good: bool, what: impl Into<String>) -> Outcome {
    if good { Ok(()) } else { Err(what.into()) }
}

fn text<'j>(case: &'j Json, key: &str) -> &'j str {
    case.get(key).and_then(Json::as_str).unwrap_or_default()
}

fn json_of(tree: &Tree<'_>) -> Json {
    let mut out = String::new();
    write_children(Value::Record, tree.roots(), Style::default(), &mut out);
    serde_json::from_str(&out).unwrap()
}

pub(crate) fn protocol(Case { section, case, .. }: &Case<'_>) -> Outcome {
    let mut xml = text(case, "xml").to_owned();
    if text(case, "name") == "256_sorted" {
        xml = "<A><_ProtocolInfo><RECORD><ServiceID>9</ServiceID></RECORD></_ProtocolInfo>".into();
        (0..256).for_each(|n| xml.push_str(&format!("<MSG_{n:03}><RECORD/></MSG_{n:03}>")));
        xml.push_str("</A>");
    }
    let lenient = load("case.xml", xml.as_bytes(), Mode::Lenient);
    let strict = load("case.xml", xml.as_bytes(), Mode::Strict);
    if *section == "invalid" {
        let strict_only = ["unknown_type_strict", "duplicate_tag_different_fields"];
        let only = strict_only.contains(&text(case, "name"));
        check(strict.protocol.is_none(), "strict mode accepts it")?;
        return check(lenient.protocol.is_some() == only, format!("{:?}", lenient.diagnostics));
    }
    let expect = &case["expect"];
    let protocol = lenient.protocol.ok_or_else(|| format!("{:?}", lenient.diagnostics))?;
    check(protocol.service == expect["service_id"], "service")?;
    check(*protocol.kind == *text(expect, "type"), "type")?;
    check(protocol.version == expect["version"], "version")?;
    let wanted = expect["messages"].as_array().unwrap();
    check(wanted.len() == protocol.messages().len(), "a different number of messages")?;
    for (message, wanted) in protocol.messages().iter().zip(wanted) {
        let fields: Vec<_> = message.fields().iter().map(|f| (&*f.name, f.kind.name())).collect();
        let found = json!({
            "order": message.order, "tag": &*message.tag,
            "access_level": message.access_level, "fields": fields,
        });
        check(found == *wanted, format!("{found} is not {wanted}"))?;
    }
    let reported: Vec<_> =
        lenient.diagnostics.iter().map(|reported| reported.message().to_owned()).collect();
    for warning in expect["warnings"].as_array().into_iter().flatten() {
        let warning = warning.as_str().unwrap();
        check(
            reported.iter().any(|reported| reported.contains(warning)),
            format!("{warning} is not in {reported:?}"),
        )?;
    }
    Ok(())
}

fn vectors_protocols() -> Protocols {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/ki/dml_protocols.json");
    let json: Json = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut protocols = Protocols::new();
    for case in json["protocols"].as_array().unwrap() {
        protocols.add(text(case, "file"), text(case, "xml").as_bytes(), Mode::Lenient);
    }
    protocols
}

pub(crate) fn message(Case { section, case, .. }: &Case<'_>) -> Outcome {
    let protocols = vectors_protocols();
    let number = |key| case[key].as_u64().and_then(|n| u8::try_from(n).ok()).unwrap_or(0);
    let definition = protocols.message(number("service"), number("order")).ok_or("unknown")?;
    let payload = hex(case, "payload_hex")?;
    if *section == "invalid" {
        return check(definition.fit(&payload) != Fit::Exact, "accepted");
    }
    check(*definition.tag == *text(case, "tag"), "another tag")?;
    let bytes = hex(case, "message_hex")?;
    let raw = RawMessage::decode(&mut Reader::new(&bytes), false).map_err(|e| e.to_string())?;
    check(*raw.payload == *payload, "payload")?;
    let mut values = Values::new();
    definition
        .decode(&mut Reader::new(&payload), &mut values)
        .map_err(|error| error.to_string())?;
    check(definition.payload(&values).as_deref() == Ok(&payload), "encoded to different bytes")?;
    let mut reader = Reader::traced("payload", &payload, Tree::new());
    let mut shown = Values::new();
    let outcome = definition.decode(&mut reader, &mut shown);
    let (tree, outcome) = reader.conclude(outcome);
    outcome.map_err(|error| error.to_string())?;
    check(shown == values, "a trace changed the outcome")?;
    for (node, wanted) in tree.roots().zip(case["fields"].as_array().unwrap()) {
        check(node.name() == wanted[0], "another name")?;
        agrees(node, &wanted[2])?;
    }
    let again = definition.from_json(&json_of(&tree)).map_err(|error| error.to_string())?;
    check(again == values, "JSON has different values")?;
    for end in 0..payload.len() {
        let cut = payload.get(..end).unwrap();
        let fits = definition.decode(&mut Reader::new(cut), &mut Values::new());
        check(fits.is_err(), format!("the first {end} bytes are accepted"))?;
    }
    if text(case, "name") == "defaults" {
        check(definition.payload(&definition.defaults()) == Ok(payload), "defaults")?;
    }
    Ok(())
}

pub(crate) fn table(Case { section, case, .. }: &Case<'_>) -> Outcome {
    let bytes = hex(case, "hex")?;
    let plain = TableFile::decode(&mut Reader::new(&bytes));
    if *section == "invalid" {
        return check(plain.is_err(), "accepted");
    }
    let file = plain.map_err(|error| error.to_string())?;
    check(file.to_bytes().as_deref() == Ok(&bytes), "encoded to different bytes")?;
    let irregular = text(case, "name").ends_with("bad_size");
    let warnings: Vec<_> = file.warnings().collect();
    check(warnings.len() == usize::from(irregular), format!("{warnings:?}"))?;
    let mut reader = Reader::traced("file", &bytes, Tree::new());
    let outcome = TableFile::decode(&mut reader);
    let (tree, outcome) = reader.conclude(outcome);
    check(outcome.as_ref() == Ok(&file), "a trace changed the outcome")?;
    let again = TableFile::from_json(&json_of(&tree)).map_err(|error| error.to_string())?;
    check(again.to_bytes().as_deref() == Ok(&bytes), "JSON encoded to different bytes")?;
    let wanted = case["tables"].as_array().unwrap();
    check(wanted.len() == file.tables.len(), "a different number of tables")?;
    for (index, (table, wanted)) in file.tables.iter().zip(wanted).enumerate() {
        check(table.name.as_text() == wanted["name"].as_str(), "another name")?;
        for (at, record) in wanted["records"].as_array().unwrap().iter().enumerate() {
            for (place, column) in table.columns.iter().enumerate() {
                let path = format!("tables[{index}].records[{at}].values[{place}]");
                let node = tree.find(&path).ok_or(path)?;
                agrees(node, &record[column.name.as_text().unwrap()])?;
            }
        }
    }
    if irregular {
        return check(
            file.to_csv().is_err() && file.strict().is_err(),
            "CSV or XML accepted wrong sizes",
        );
    }
    let csv = file.to_csv().map_err(|error| error.to_string())?;
    let again = TableFile::from_csv(&csv, "").map_err(|error| error.to_string())?;
    check(again.to_bytes().as_deref() == Ok(&bytes), "CSV encoded to different bytes")?;
    let flags = file.tables.iter().flat_map(|table| &table.columns).all(|c| c.flags == 0x28);
    if flags && file.tables.iter().all(|table| !table.records.is_empty()) {
        let xml = file.to_xml().map_err(|error| error.to_string())?;
        let again = worldwire_ki::file::xml::load("vector.xml", xml.as_bytes()).file;
        let again = again.ok_or("no XML")?.to_bytes();
        check(again.as_deref() == Ok(&bytes), "XML encoded to different bytes")?;
    }
    Ok(())
}
