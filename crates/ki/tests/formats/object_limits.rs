//! Everything that decodes within limits can be written as text and read back; everything else
//! yields a named error.

use worldwire_core::json::Style;
use worldwire_core::{ErrorKind, Limits, Reader};
use worldwire_ki::object::{
    JsonWriter, Object, ObjectCodec, ObjectOptions, open_envelope, seal_envelope, xml,
};
use worldwire_ki::schema::classes::{Classes, TypeLists};

fn classes() -> Classes {
    let list = r#"{"class A": {"bases": [], "hash": 7, "properties": {
        "m_a": {"type": "class A*", "id": 0, "flags": 24},
        "m_v": {"type": "class Vector3D", "id": 1}}},
        "class L": {"bases": [], "hash": 8, "properties": {
        "m_l": {"type": "class A*", "id": 0, "flags": 24, "container": "List"}}}}"#;
    let mut lists = TypeLists::new();
    lists.add("list.json", list.as_bytes()).unwrap();
    lists.compile()
}

/// Nested objects, each the first property of the one around it.
fn chain(depth: usize) -> Vec<u8> {
    [vec![[7, 0, 0, 0]; depth], vec![[0; 4]]].concat().concat()
}

#[test]
fn the_depth_limit_is_the_same_for_all_forms() {
    let classes = classes();
    let codec = ObjectCodec::new(&classes, ObjectOptions::default());
    let wide = Limits { depth: 300, ..Limits::DEFAULT };
    for (limits, max) in [(&Limits::DEFAULT, 128), (&wide, 300)] {
        let bytes = chain(max);
        let mut object = Object::new();
        let decoded = codec.decode_all_within(&bytes, limits, &mut object).unwrap();
        assert_eq!(codec.encode_within(&object, decoded.header, limits).unwrap(), bytes);
        let json = object.to_json(&classes).unwrap();
        assert_eq!(Object::parse_json_within(&classes, &json, limits).unwrap(), object);
        let written = xml::to_xml(&classes, core::slice::from_ref(&object)).unwrap();
        let loaded = xml::load_within(&classes, "a.xml", written.as_bytes(), limits);
        assert_eq!(loaded.objects, Some(vec![object]), "{:?}", loaded.diagnostics);
        // The innermost object contains a value.
        let value = "<m_v>1,2,3</m_v></Class>";
        let (front, back) = written.split_at(written.find("</Class>").unwrap());
        let valued = format!("{front}{value}{}", back.strip_prefix("</Class>").unwrap());
        let loaded = xml::load_within(&classes, "a.xml", valued.as_bytes(), limits);
        let object = &loaded.objects.unwrap()[0];
        let json = object.to_json(&classes).unwrap();
        assert_eq!(&Object::parse_json_within(&classes, &json, limits).unwrap(), object);

        // One more level is refused, and the limit has the same name everywhere.
        let error = codec.decode_all_within(&chain(max + 1), limits, &mut ()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Limit { name: "depth", .. }), "{error}");
        let json =
            format!("{}null{}", "{\"$class\":\"A\",\"m_a\":".repeat(max + 1), "}".repeat(max + 1));
        let error = Object::parse_json_within(&classes, &json, limits).unwrap_err().to_string();
        assert!(error.contains(&format!("at most {max} (depth)")), "{error}");
        let element = "<Class Name='A'><m_a>";
        let text = format!(
            "<Objects>{}{}</Objects>",
            element.repeat(max + 1),
            "</m_a></Class>".repeat(max + 1)
        );
        let loaded = xml::load_within(&classes, "a.xml", text.as_bytes(), limits);
        let reported = loaded.diagnostics[0].to_string();
        assert!(reported.contains(&format!("at most {max} deep")), "{reported}");
    }
}

/// A container of nulls, which takes four bytes for each element.
fn nulls(count: u32) -> Vec<u8> {
    let mut bytes = [[8, 0, 0, 0], count.to_le_bytes()].concat();
    bytes.resize(bytes.len() + count as usize * 4, 0);
    bytes
}

#[test]
fn long_xml_is_read() {
    let classes = classes();
    let codec = ObjectCodec::new(&classes, ObjectOptions::default());
    let mut object = Object::new();
    codec.decode_all(&nulls(1_100_000), &mut object).unwrap();
    let written = xml::to_xml(&classes, core::slice::from_ref(&object)).unwrap();
    assert!(written.len() > 16 << 20);
    let loaded = xml::load(&classes, "a.xml", written.as_bytes());
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    assert!(loaded.objects == Some(vec![object]), "a different object");
}

#[test]
fn long_json_is_read() {
    let classes = classes();
    let codec = ObjectCodec::new(&classes, ObjectOptions::default());
    let count = u32::try_from(Limits::DEFAULT.nodes).unwrap() + 1;
    let bytes = nulls(count);
    let mut writer = JsonWriter::new(Vec::new(), Style::default());
    let decoded = codec.decode_all(&bytes, &mut writer).unwrap();
    let json = String::from_utf8(writer.finish().unwrap()).unwrap();
    let object = Object::parse_json(&classes, &json).unwrap();
    assert_eq!(codec.encode(&object, decoded.header).unwrap(), bytes);
}

fn list_of_bool() -> Classes {
    let list = r#"{"class L": {"bases": [], "hash": 8, "properties": {
        "m_l": {"type": "bool", "id": 0, "flags": 24, "container": "List"}}}}"#;
    let mut lists = TypeLists::new();
    lists.add("list.json", list.as_bytes()).unwrap();
    lists.compile()
}

/// An object with this many values, all of them false.
fn falses(count: u32) -> Vec<u8> {
    let mut plain = [[8, 0, 0, 0], count.to_le_bytes()].concat();
    plain.resize(8 + count.div_ceil(8) as usize, 0);
    plain
}

#[test]
fn values_of_objects_follow_the_bytes_on_the_wire() {
    let classes = list_of_bool();
    let codec =
        ObjectCodec::new(&classes, ObjectOptions { envelope: true, ..ObjectOptions::default() });
    let packed = seal_envelope(&falses(4_000_000), true).unwrap();
    assert!(packed.len() < 1_000);
    let max = 4_096 + 32 * packed.len() as u64;
    for outcome in [
        codec.decode_all(&packed, &mut Object::new()),
        codec.decode_all(&packed, &mut ()),
        codec.decode(&mut Reader::new(&packed), &mut ()),
    ] {
        let error = outcome.unwrap_err();
        let wanted = ErrorKind::Limit { name: "object values", limit: max, asked: 4_000_002 };
        assert_eq!(error.kind(), wanted);
    }
    let wide = Limits { values_per_byte: 1 << 20, ..Limits::DEFAULT };
    let mut object = Object::within(&wide);
    let decoded = codec.decode_all_within(&packed, &wide, &mut object).unwrap();
    // The encoded object can be decoded: it is not compressed.
    let again = codec.encode(&object, decoded.header).unwrap();
    assert!(!codec.decode_all(&again, &mut Object::new()).unwrap().header.is_packed);
    assert_eq!(open_envelope(&again, &Limits::DEFAULT).unwrap(), falses(4_000_000));
    let again = codec.encode_within(&object, decoded.header, &wide).unwrap();
    assert!(codec.decode_all_within(&again, &wide, &mut ()).unwrap().header.is_packed);
    // Without compression, no list is refused; with compression, a short list is not refused
    // either.
    let plain = ObjectCodec::new(&classes, ObjectOptions::default());
    plain.decode_all(&falses(4_000_000), &mut ()).unwrap();
    let packed = seal_envelope(&falses(4_000), true).unwrap();
    assert!(packed.len() < 100);
    codec.decode_all(&packed, &mut ()).unwrap();
}

#[test]
fn lists_that_no_decoder_accepts_are_not_encoded() {
    let classes = list_of_bool();
    let codec = ObjectCodec::new(&classes, ObjectOptions::default());
    let limits = Limits { elements: 3, ..Limits::DEFAULT };
    let mut object = Object::new();
    for (count, is_good) in [(3, true), (4, false)] {
        let header = codec.decode_all(&falses(count), &mut object).unwrap().header;
        let read = codec.decode_all_within(&falses(count), &limits, &mut ());
        let written = codec.encode_within(&object, header, &limits);
        assert_eq!((read.is_ok(), written.is_ok()), (is_good, is_good));
        if let Err(error) = written {
            let wanted = ErrorKind::Limit { name: "elements", limit: 3, asked: 4 };
            assert_eq!(error.kind(), wanted, "{error}");
        }
    }
}
