//! Errors in objects have a position, and no part is dropped silently.

use std::sync::Arc;

use worldwire_ki::object::{CoreTable, Object, ObjectCodec, ObjectOptions};
use worldwire_ki::schema::classes::{Classes, TypeLists};

fn classes() -> Classes {
    let list = r#"{
        "class A": {"bases": [], "hash": 7, "properties": {
            "m_n": {"type": "unsigned int", "id": 0, "flags": 24},
            "m_s": {"type": "std::string", "id": 1, "flags": 24},
            "m_e": {"type": "enum E", "id": 2, "flags": 1},
            "m_l": {"type": "class A*", "id": 3, "flags": 24, "container": "List"},
            "m_f": {"type": "float", "id": 4, "flags": 1},
            "m_d": {"type": "double", "id": 5, "flags": 1},
            "m_v": {"type": "class Vector3D", "id": 6, "flags": 1}}},
        "class Empty": {"bases": [], "hash": 8, "properties": {}}}"#;
    let mut lists = TypeLists::new();
    lists.add("list.json", list.as_bytes()).unwrap();
    lists.compile()
}

#[test]
fn unknown_tags_and_pairs_are_reported_where_they_begin() {
    let classes = classes();
    let error = |core: bool, deep: bool, bytes: &[u8]| {
        let core = core.then(|| Arc::new(CoreTable::default()));
        let codec =
            ObjectCodec::new(&classes, ObjectOptions { core, deep, ..ObjectOptions::default() });
        codec.decode_all(bytes, &mut Object::new()).unwrap_err().to_string()
    };
    let tag = "wanted the tag of a known class, found 99 (0x00000063); is the type list from this revision?";
    // A number, an empty string, and two elements: null and an invalid object.
    let front = [7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0];
    let wrong = [0, 0, 0, 0, 99, 0, 0, 0];
    assert_eq!(error(false, false, &wrong[4..]), format!("object at byte 0: {tag}"));
    assert_eq!(error(false, true, &wrong[4..]), format!("object at byte 0: {tag}"));
    let bytes = [&front[..], &wrong].concat();
    assert_eq!(error(false, false, &bytes), format!("object.m_l[1] at byte 18: {tag}"));
    let bytes = [&[0, 0][..], &front, &[0, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0, 0]].concat();
    assert_eq!(error(true, false, &bytes), format!("object.m_l[1] at byte 22: {tag}"));
    let bytes = [&[0, 0][..], &front, &[0, 0, 0, 0, 0, 0, 9, 77, 1, 0, 0, 0]].concat();
    assert_eq!(
        error(true, false, &bytes),
        "object.m_l[1] at byte 22: wanted a known pair of block and type, found block 9 type 77; add \
         the pair to the table of core objects"
    );
}

#[test]
fn shallow_streams_have_every_property_once() {
    let classes = classes();
    let codec = ObjectCodec::new(&classes, ObjectOptions::default());
    let encode = |json: &str| {
        let object = Object::parse_json(&classes, json).unwrap();
        codec.encode(&object, codec.header()).map_err(|error| error.to_string())
    };
    let whole = r#"{"$class":"A","m_n":1,"m_s":"","m_l":[]}"#;
    let bytes = encode(whole).unwrap();
    // The mask does not cover `m_e`, so its value is not encoded.
    assert_eq!(encode(&whole.replace("\"m_l\"", "\"m_e\":5,\"m_l\"")).unwrap(), bytes);
    let raw = "{\"$bits\":8,\"$hex\":\"00\"}";
    let wrong = [
        (whole.replace("\"m_s\"", "\"m_n\":2,\"m_s\""), "class A: m_n: has two values"),
        (whole.replace("]}", "],\"m_n\":2}"), "class A: m_n: has two values"),
        (whole.replace("]}", "],\"m_l\":[]}"), "class A: m_l: has two values"),
        (whole.replace("[]", raw), "m_l: wanted a value of type class A*, found undecoded bits"),
        (
            whole.replace("]}", &format!("],\"0x00000063\":{raw}}}")),
            "wanted a known property, found property 0x00000063",
        ),
        (
            whole.replace("]}", &format!("],\"$rest\":{raw}}}")),
            "wanted nothing after the properties, found $rest",
        ),
        // Such a property is refused even in a class without properties.
        (
            format!("{{\"$class\":\"Empty\",\"0x00000063\":{raw}}}"),
            "wanted a known property, found property 0x00000063",
        ),
    ];
    for (json, wanted) in wrong {
        assert_eq!(encode(&json).unwrap_err(), wanted, "{json}");
    }
}

#[test]
fn numbers_out_of_range_are_not_read_as_infinity() {
    let classes = classes();
    let parse = |json: &str| {
        let json = format!("{{\"$class\":\"A\",{json}}}");
        Object::parse_json(&classes, &json).map_err(|error| error.to_string())
    };
    assert_eq!(
        parse("\"m_f\":1e39").unwrap_err(),
        "m_f: wanted a single-precision number, found 1e+39"
    );
    assert_eq!(
        parse("\"m_v\":{\"x\":0,\"y\":-1e39,\"z\":0}").unwrap_err(),
        "m_v.y: wanted a single-precision number, found -1e+39"
    );
    assert_eq!(
        parse("\"m_d\":\"1e400\"").unwrap_err(),
        "m_d: wanted a double-precision number, found \"1e400\""
    );
    let object = parse("\"m_f\":\"-Infinity\",\"m_d\":1e39").unwrap();
    assert_eq!(
        object.to_json(&classes).unwrap(),
        "{\"$class\":\"class A\",\"m_f\":\"-Infinity\",\"m_d\":1e39}"
    );
}

#[test]
fn unused_keys_are_refused() {
    let classes = classes();
    let wrong = [
        (
            r#"{"$class":"A","m_s":{"$hex":"zz"}}"#,
            "m_s.$hex: wanted pairs of hexadecimal digits, found \"zz\"",
        ),
        (
            r#"{"$class":"A","m_s":{"$hex":"00","more":1}}"#,
            "m_s: wanted only the keys $hex, found \"more\"",
        ),
        (
            r#"{"$class":"A","m_e":{"$name":"X","$hex":"00"}}"#,
            "m_e: wanted only the keys $name, found \"$hex\"",
        ),
        (r#"{"$class":"A","m_e":{"$name":5}}"#, "m_e.$name: wanted a string, found 5"),
        (
            r#"{"$class":"A","m_n":{"$bits":8,"$hex":"00","more":1}}"#,
            "m_n: wanted only the keys $bits, $hex, found \"more\"",
        ),
        (
            r#"{"$class":"A","m_n":{"$bits":9,"$hex":"00"}}"#,
            "m_n.$hex: wanted 2 bytes for 9 bits, found 1",
        ),
        (
            r#"{"$class":"A","0x0000002a":{"$bits":"x","$hex":"00"}}"#,
            "0x0000002a.$bits: wanted a number of bits, found \"x\"",
        ),
        (
            r#"{"$class":"A","$rest":{"$hex":"00"}}"#,
            "$rest: wanted {\"$bits\": 8, \"$hex\": \"00\"}, found \"an object\"",
        ),
        (
            r#"{"$class":"0x63","$bits":8,"$hex":"00","m_n":1}"#,
            "wanted only the keys $class, $block, $type, $template, $bits, $hex, found \"m_n\"",
        ),
        (r#"{"$class":"A","$template":5}"#, "$template: needs $block and $type"),
        (r#"{"$class":5}"#, "$class: wanted the name of a class, found 5"),
    ];
    for (json, wanted) in wrong {
        let error = Object::parse_json(&classes, json).unwrap_err().to_string();
        assert_eq!(error, wanted, "{json}");
    }
}
