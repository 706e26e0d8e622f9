//! Properties of every definition and every message.

use proptest::prelude::*;
use worldwire_core::json::{Json, Style, write_children};
use worldwire_core::{Reader, Sampler, Side, Tree, Value};
use worldwire_ki::file::table::{Column, Row, Table, TableFile, USUAL_FLAGS};
use worldwire_ki::frame::Frame;
use worldwire_ki::message::{Fit, RawMessage, Values};
use worldwire_ki::schema::{Mode, Protocols};
use worldwire_ki::types::{FieldType, FieldValue, Str};

/// Generated message XML with this many messages, each with fields of random types.
fn definitions(sampler: &mut Sampler, messages: u64) -> String {
    let mut xml = String::from(
        "<M><_ProtocolInfo><RECORD><ServiceID TYPE=\"UBYT\">200</ServiceID>\
         <ProtocolType TYPE=\"STR\">GENERATED</ProtocolType>\
         <ProtocolVersion TYPE=\"INT\">1</ProtocolVersion>\
         <ProtocolDescription TYPE=\"STR\"/></RECORD></_ProtocolInfo>",
    );
    for message in 0..messages {
        xml.push_str(&format!("<MSG_{message}><RECORD>"));
        for field in 0..sampler.below(9) {
            let kinds = FieldType::ALL;
            let kind = kinds[usize::try_from(sampler.below(kinds.len() as u64)).unwrap()];
            xml.push_str(&format!("<F{field} TYPE=\"{}\"></F{field}>", kind.name()));
        }
        xml.push_str(&format!("</RECORD></MSG_{message}>"));
    }
    xml.push_str("</M>");
    xml
}

fn protocols(sampler: &mut Sampler) -> Protocols {
    let mut protocols = Protocols::new();
    let count = 1 + sampler.below(5);
    let reported =
        protocols.add("generated.xml", definitions(sampler, count).as_bytes(), Mode::Strict);
    assert!(reported.is_empty(), "{reported:?}");
    protocols
}

fn json(tree: &Tree<'_>) -> Json {
    let mut text = String::new();
    write_children(Value::Record, tree.roots(), Style::default(), &mut text);
    serde_json::from_str(&text).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn messages_round_trip(seed: u64) {
        let sampler = &mut Sampler::new(seed);
        let protocols = protocols(sampler);
        for message in protocols.service(200).unwrap().messages() {
            let values = message.sample(sampler);
            let bytes = message.payload(&values).unwrap();
            prop_assert!(message.fits(&bytes));
            prop_assert_eq!(message.fit(&bytes), Fit::Exact);
            let sizes = message.fields().iter().map(|field| field.kind.size().unwrap_or(2));
        prop_assert!(bytes.len() >= sizes.sum::<usize>());

            let mut plain = Values::new();
            message.decode(&mut Reader::new(&bytes), &mut plain).unwrap();
            prop_assert_eq!(message.payload(&plain).unwrap(), bytes.clone());

            let mut reader = Reader::traced("payload", &bytes, Tree::new());
            let mut traced = Values::new();
            let outcome = message.decode(&mut reader, &mut traced);
            let (tree, outcome) = reader.conclude(outcome);
            outcome.unwrap();
            prop_assert_eq!(&traced, &plain);
            prop_assert_eq!(tree.roots().count(), message.fields().len());
            prop_assert_eq!(tree.roots().map(|node| node.raw().len()).sum::<usize>(), bytes.len());
            let again = message.from_json(&json(&tree)).unwrap();
            prop_assert_eq!(message.payload(&again).unwrap(), bytes.clone());

            // Every prefix is too short, and all bytes after the message are trailing.
            for end in 0..bytes.len() {
                let part = &bytes[..end];
                prop_assert!(!message.fits(part));
                let short = matches!(message.fit(part), Fit::TooShort { .. });
                prop_assert!(short);
                let mut values = Values::new();
                let outcome = message.decode(&mut Reader::new(part), &mut values);
                prop_assert!(outcome.is_err());
            }
            let mut longer = bytes.clone();
            longer.extend_from_slice(&[1, 2, 3]);
            prop_assert!(!message.fits(&longer));
            let mut values = Values::new();
            message.decode(&mut Reader::new(&longer), &mut values).unwrap();
            prop_assert_eq!(values.trailing(), &[1, 2, 3]);
            prop_assert_eq!(message.payload(&values).unwrap(), longer);
        }
    }

    #[test]
    fn frames_round_trip(seed: u64, trailer: Option<u8>) {
        let sampler = &mut Sampler::new(seed);
        let protocols = protocols(sampler);
        let mut messages = Vec::new();
        for message in protocols.service(200).unwrap().messages() {
            let payload = message.payload(&message.sample(sampler)).unwrap();
            let (service, order) = (message.service, message.order);
            messages.push(RawMessage { service, order, payload: payload.into() });
        }
        let mut frame = Frame::message(messages.remove(0));
        frame.trailer = trailer;
        if let worldwire_ki::frame::Body::Data(data) = &mut frame.body {
            data.extend(messages);
        }
        let bytes = frame.to_bytes().unwrap();
        let mut reader = Reader::traced("frame", &bytes, Tree::new());
        let again =
            Frame::decode_named(&mut reader, Some(Side::Client), &protocols).unwrap();
        prop_assert_eq!(&again, &frame);
        let again = Frame::from_json(&json(&reader.finish()), &protocols).unwrap();
        prop_assert_eq!(again.to_bytes().unwrap(), bytes.clone());
        for end in 0..bytes.len() {
            let outcome = Frame::decode(&mut Reader::new(&bytes[..end]), None);
            prop_assert!(outcome.is_err_and(|error| error.needed().is_some()), "of {end} bytes");
        }
    }

    #[test]
    fn tables_round_trip(seed: u64) {
        let sampler = &mut Sampler::new(seed);
        let mut file = TableFile::default();
        for number in 0..sampler.below(4) {
            let columns: Vec<Column<'static>> = (0..sampler.below(6))
                .map(|at| {
                    let tag = u8::try_from(1 + sampler.below(11)).unwrap();
                    let name = format!("C{at}").into_bytes();
                    let kind = FieldType::from_table_tag(tag).unwrap();
                    Column { name: Str::new(name), kind, flags: USUAL_FLAGS }
                })
                .collect();
            let row = |sampler: &mut Sampler| Row {
                values: columns.iter().map(|c| FieldValue::sample(c.kind, sampler)).collect(),
                stated_size: None,
            };
            let records = (0..sampler.below(5)).map(|_| row(sampler)).collect();
            let name = Str::new(format!("T{number}").into_bytes());
            let target_flags = sampler.bits().to_le_bytes()[0];
            file.tables.push(Table { name, columns, target_flags, stated_size: None, records });
        }
        let bytes = file.to_bytes().unwrap();
        let mut reader = Reader::traced("file", &bytes, Tree::new());
        let again = TableFile::decode(&mut reader).unwrap();
        prop_assert_eq!(again.to_bytes().unwrap(), bytes.clone());
        prop_assert!(again.strict().is_ok());
        let json = json(&reader.finish());
        let again = TableFile::from_json(&json).unwrap();
        prop_assert_eq!(again.to_bytes().unwrap(), bytes.clone());
        prop_assert_eq!(TableFile::json_to_bytes(&json).unwrap(), bytes.clone());
        let csv = file.to_csv().unwrap();
        let again = TableFile::from_csv(&csv, "").unwrap();
        prop_assert_eq!(again.to_bytes().unwrap(), bytes);
    }
}

#[test]
fn types_counted_from_0_get_a_hint() {
    let name = Str::new(b"Column".to_vec());
    let kind = FieldType::from_table_tag(1).unwrap();
    let table = Table {
        name: Str::new(b"T".to_vec()),
        columns: vec![Column { name, kind, flags: USUAL_FLAGS }],
        target_flags: USUAL_FLAGS,
        stated_size: None,
        records: Vec::new(),
    };
    let mut bytes = TableFile { tables: vec![table] }.to_bytes().unwrap();
    let at = bytes.windows(6).position(|window| window == b"Column").unwrap() + 6;
    assert_eq!(bytes[at], 1);
    bytes[at] = 0;
    let error = TableFile::decode(&mut Reader::new(&bytes)).unwrap_err().to_string();
    assert!(error.contains("count from 0, add 1 to each"), "{error}");
}
