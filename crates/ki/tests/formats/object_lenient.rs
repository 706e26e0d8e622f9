//! Parts that lenient decoding keeps undecoded round-trip through JSON to the same bytes.

use std::sync::Arc;
use worldwire_core::json::{Style, json};

use worldwire_core::value::parse_hex;
use worldwire_core::{Reader, Tree};
use worldwire_ki::object::{
    CoreTable, Decoded, JsonWriter, Object, ObjectCodec, ObjectNote, ObjectOptions, xml,
};
use worldwire_ki::schema::classes::{Classes, TypeLists};

const LIST: &str = r#"{
    "class A": {"bases": [], "hash": 7, "properties": {
        "m_n": {"type": "unsigned int", "id": 0, "flags": 24, "hash": 1},
        "m_l": {"type": "class SharedPointer<class A>", "id": 1, "flags": 24,
            "container": "List", "hash": 2},
        "m_f": {"type": "bui5", "id": 2, "flags": 24, "hash": 3},
        "m_a": {"type": "class A*", "id": 3, "flags": 24, "hash": 4},
        "m_i": {"type": "int", "id": 4, "flags": 24, "container": "Vector", "hash": 5}}},
    "class B": {"bases": ["A"], "hash": 8, "properties": {}}}"#;

fn classes(list: &str) -> Classes {
    let mut lists = TypeLists::new();
    lists.add("list.json", list.as_bytes()).unwrap();
    lists.compile()
}

/// A deep object that consists of whole bytes: tag, properties (hash and value), and leftovers.
fn object(tag: u32, properties: &[(u32, Vec<u8>)], rest: &[u8]) -> Vec<u8> {
    let mut inside = Vec::new();
    for (hash, value) in properties {
        inside.extend(bits(8 + value.len()));
        inside.extend(hash.to_le_bytes());
        inside.extend(value);
    }
    inside.extend(rest);
    [&tag.to_le_bytes()[..], &bits(4 + inside.len()), &inside].concat()
}

fn bits(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes * 8).unwrap().to_le_bytes()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn lenient() -> ObjectOptions {
    ObjectOptions { deep: true, lenient: true, ..ObjectOptions::default() }
}

/// Decodes in every way, and encodes to the same bytes by way of JSON. Returns the JSON and the
/// notes.
fn round(codec: &ObjectCodec<'_>, bytes: &[u8]) -> (String, Decoded) {
    let classes = codec.classes();
    let mut object = Object::new();
    let decoded = codec.decode_all(bytes, &mut object).unwrap();
    let json = object.to_json(classes).unwrap();
    let mut streamed = JsonWriter::new(Vec::new(), Style::default());
    assert_eq!(codec.decode_all(bytes, &mut streamed).unwrap(), decoded);
    assert_eq!(streamed.finish().unwrap(), json.as_bytes());
    let mut reader = Reader::traced("stream", bytes, Tree::new());
    let mut traced_object = Object::new();
    assert_eq!(codec.decode(&mut reader, &mut traced_object).unwrap(), decoded);
    assert_eq!(traced_object, object);
    assert_eq!(codec.encode(&object, decoded.header).unwrap(), bytes, "{json}");
    let again = Object::parse_json(classes, &json).unwrap();
    assert_eq!(again, object, "{json}");
    assert_eq!(codec.encode(&again, decoded.header).unwrap(), bytes, "{json}");
    (json, decoded)
}

fn notes(decoded: &Decoded) -> Vec<String> {
    decoded.notes.iter().map(ToString::to_string).collect()
}

#[test]
fn everything_kept_has_a_note() {
    // A number, an unknown property, two values of the wrong size, an unknown object.
    let mut bytes = words(&[7, 0, 96, 1, 5]);
    bytes.extend(words(&[80, 42]));
    bytes.extend([0xab, 0xcd]);
    bytes.extend(words(&[72, 1]));
    bytes.extend([9]);
    bytes.extend(words(&[80, 3]));
    bytes.extend([0x1f, 0xff]);
    let list = 64 + 32 + 32 + 32 + 16;
    bytes.extend(words(&[list, 2, 1, 99, 48]));
    bytes.extend([1, 2]);
    let size = u32::try_from(bytes.len() * 8 - 32).unwrap();
    bytes[4..8].copy_from_slice(&size.to_le_bytes());
    let classes = classes(LIST);
    let strict = ObjectCodec::new(&classes, ObjectOptions { lenient: false, ..lenient() });
    let error = strict.decode_all(&bytes, &mut Object::new()).unwrap_err().to_string();
    assert!(error.contains("wanted the hash of a property of class A, found 42"), "{error}");
    let (json, decoded) = round(&ObjectCodec::new(&classes, lenient()), &bytes);
    assert_eq!(
        json,
        r#"{"$class":"class A","m_n":5,"0x0000002a":{"$bits":16,"$hex":"abcd"},"#.to_owned()
            + r#""m_n":{"$bits":8,"$hex":"09"},"m_f":{"$bits":16,"$hex":"1fff"},"#
            + r#""m_l":[{"$class":"0x00000063","$bits":16,"$hex":"0102"}]}"#
    );
    let bits: Vec<_> = decoded.notes.iter().map(|note| note.byte()).collect();
    assert_eq!(bits, [28, 38, 47, 61]);
    let paths: Vec<_> = decoded.notes.iter().map(ObjectNote::path).collect();
    assert_eq!(paths, ["", "m_n", "m_f", "m_l[0]"]);
    assert_eq!(
        notes(&decoded),
        [
            "at byte 28: property 42 (0x0000002a) is not in class A",
            "m_n at byte 38: wanted 4 bytes, found 1",
            "m_f at byte 47 bit 5: wanted a value of 16 bits, found 5",
            "m_l[0] at byte 61: no type list has class 99 (0x00000063)",
        ]
    );
}

#[test]
fn values_that_do_not_fit_are_kept_whole() {
    let classes = classes(LIST);
    let codec = ObjectCodec::new(&classes, lenient());
    let small = object(7, &[(1, words(&[5]))], &[]);
    let nested = [&small[..], &[0xab, 0xcd]].concat();
    let cases = [
        // 16 bits after the elements of a container.
        ((5, [words(&[2, 1, 2]), vec![0xab, 0xcd]].concat()), "m_i"),
        // A count that the property cannot hold.
        ((5, words(&[9, 1, 2])), "m_i"),
        // 16 bits after a nested object, and after one in a container.
        ((4, nested.clone()), "m_a"),
        ((2, [words(&[1]), nested].concat()), "m_l"),
        // An incomplete tag, and a tag without a size.
        ((4, vec![7, 0]), "m_a"),
        ((4, words(&[7])), "m_a"),
    ];
    for ((hash, value), name) in cases {
        let count = value.len() * 8;
        let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        let bytes = object(7, &[(hash, value), (1, words(&[6]))], &[]);
        let (json, decoded) = round(&codec, &bytes);
        let wanted = format!(
            "{{\"$class\":\"class A\",\"{name}\":{{\"$bits\":{count},\"$hex\":\"{hex}\"}},\"m_n\":6}}"
        );
        assert_eq!(json, wanted);
        assert_eq!(decoded.notes.len(), 1);
        assert!(decoded.notes[0].path() == name, "{:?}", decoded.notes);
        let strict = ObjectCodec::new(&classes, ObjectOptions { lenient: false, ..lenient() });
        assert!(strict.decode_all(&bytes, &mut Object::new()).is_err());
        // XML cannot represent the bytes that were kept, so writing XML fails.
        let mut kept = Object::new();
        codec.decode_all(&bytes, &mut kept).unwrap();
        let error = xml::to_xml(&classes, &[kept]).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("JSON"), "{error}");
    }
}

#[test]
fn parts_of_a_value_that_does_not_fit_are_not_reported() {
    let classes = classes(LIST);
    let codec = ObjectCodec::new(&classes, lenient());
    // The innermost number is too short, and the list around its object has a surplus byte.
    let short = object(7, &[(1, vec![1, 2])], &[]);
    let good = object(7, &[(4, short.clone())], &[]);
    let bytes = object(7, &[(2, [words(&[1]), good, vec![9]].concat()), (4, short)], &[]);
    let (json, decoded) = round(&codec, &bytes);
    assert!(json.starts_with("{\"$class\":\"class A\",\"m_l\":{\"$bits\":"), "{json}");
    assert!(
        json.ends_with(
            ",\"m_a\":{\"$class\":\"class A\",\"m_n\":{\"$bits\":16,\"$hex\":\"0102\"}}}"
        )
    );
    let notes = notes(&decoded);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("m_l at byte"), "{notes:?}");
    // Positions are relative to the start of the stream, whatever surrounds it.
    assert_eq!(notes[1], "m_a.m_n at byte 79: wanted 4 bytes, found 2");
    let around =
        ObjectCodec::new(&classes, ObjectOptions { envelope: true, flags: 1, ..lenient() });
    let header = worldwire_ki::object::Header { is_packed: false, ..around.header() };
    let mut kept = Object::new();
    codec.decode_all(&bytes, &mut kept).unwrap();
    let enveloped = around.encode(&kept, header).unwrap();
    let (_, decoded) = round(&around, &enveloped);
    assert_eq!(decoded.notes[1].to_string(), "m_a.m_n at byte 87: wanted 4 bytes, found 2");
}

#[test]
fn leftovers_of_an_object_are_kept() {
    let classes = classes(LIST);
    let codec = ObjectCodec::new(&classes, lenient());
    for rest in [&[0xab][..], &[1, 2, 3, 4, 5, 6, 7]] {
        let hex: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        let inner = object(8, &[], rest);
        let bytes = object(7, &[(1, words(&[5])), (4, inner)], rest);
        let (json, decoded) = round(&codec, &bytes);
        let kept = format!("\"$rest\":{{\"$bits\":{},\"$hex\":\"{hex}\"}}", rest.len() * 8);
        let wanted = format!(
            "{{\"$class\":\"class A\",\"m_n\":5,\"m_a\":{{\"$class\":\"class B\",{kept}}},{kept}}}"
        );
        assert_eq!(json, wanted);
        assert_eq!(decoded.notes.len(), 2, "{:?}", decoded.notes);
        let mut object = Object::new();
        codec.decode_all(&bytes, &mut object).unwrap();
        let error = xml::to_xml(&classes, &[object]).unwrap_err().to_string();
        assert!(error.contains("$rest"), "{error}");
    }
    // Five bits of a value, and eight more starting in the middle of a byte.
    let mut bytes = object(7, &[(3, vec![0b1011_1111])], &[0b0001_0101]);
    bytes[4..8].copy_from_slice(&(32_u32 + 64 + 5 + 8).to_le_bytes());
    bytes[8..12].copy_from_slice(&(64_u32 + 5).to_le_bytes());
    let (json, _) = round(&codec, &bytes);
    assert_eq!(json, r#"{"$class":"class A","m_f":31,"$rest":{"$bits":8,"$hex":"ad"}}"#);
    // A property of impossible size after a valid one, with bits in between.
    for size in [66_u32, 100, 0, u32::MAX] {
        let tail = [&size.to_le_bytes()[..], &[1, 0, 0, 0, 5, 6, 7, 8]].concat();
        let mut bytes = object(7, &[(3, vec![0b1011_1111])], &tail);
        bytes[8..12].copy_from_slice(&(64_u32 + 5).to_le_bytes());
        let (json, decoded) = round(&codec, &bytes);
        assert!(json.starts_with(r#"{"$class":"class A","m_f":31,"$rest":{"$bits":99,"#), "{json}");
        assert_eq!(
            decoded.notes[0].error().found(),
            "the last 99 bits of class A are not a property"
        );
        let strict = ObjectCodec::new(&classes, ObjectOptions { lenient: false, ..lenient() });
        let error = strict.decode_all(&bytes, &mut Object::new()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("object at byte 17: wanted a property size from 67 to 99, found {size}")
        );
    }
    // Bits that form a property cannot be leftovers.
    let json = r#"{"$class":"A","$rest":{"$bits":64,"$hex":"4000000000000000"}}"#;
    let object = Object::parse_json(&classes, json).unwrap();
    let error = codec.encode(&object, codec.header()).unwrap_err().to_string();
    assert_eq!(
        error,
        "class A: $rest: wanted bits that are not a property, found a property of 64 bits"
    );
    // Leftovers come after everything else, wherever they are in the JSON.
    let json = r#"{"$class":"A","$rest":{"$bits":8,"$hex":"01"},"m_n":1}"#;
    let object = Object::parse_json(&classes, json).unwrap();
    assert_eq!(
        object.to_json(&classes).unwrap(),
        r#"{"$class":"class A","m_n":1,"$rest":{"$bits":8,"$hex":"01"}}"#
    );
}

#[test]
fn kept_bits_can_be_changed_by_path() {
    let classes = classes(LIST);
    let json =
        r#"{"$class":"A","m_i":{"$bits":8,"$hex":"01"},"0x0000002a":{"$bits":8,"$hex":"02"},"#
            .to_owned()
            + r#""$rest":{"$bits":8,"$hex":"03"}}"#;
    let mut object = Object::parse_json(&classes, &json).unwrap();
    object.set(&classes, "m_a", &json!(null)).unwrap();
    object.set(&classes, "m_i", &json!([1])).unwrap();
    object.set(&classes, "$rest", &json!({"$bits": 4, "$hex": "0f"})).unwrap();
    object.set(&classes, "0x2a", &json!({"$bits": 8, "$hex": "05"})).unwrap();
    object.set(&classes, "0x2b", &json!({"$bits": 8, "$hex": "06"})).unwrap();
    assert_eq!(
        object.to_json(&classes).unwrap(),
        r#"{"$class":"class A","m_a":null,"m_i":[1],"0x0000002a":{"$bits":8,"$hex":"05"},"#
            .to_owned()
            + r#""0x0000002b":{"$bits":8,"$hex":"06"},"$rest":{"$bits":4,"$hex":"0f"}}"#
    );
    object.remove(&classes, "0x2a").unwrap();
    object.remove(&classes, "0x2b").unwrap();
    object.remove(&classes, "$rest").unwrap();
    object.set(&classes, "m_n", &json!(1)).unwrap();
    object.set(&classes, "$rest", &json!({"$bits": 8, "$hex": "07"})).unwrap();
    assert_eq!(
        object.to_json(&classes).unwrap(),
        r#"{"$class":"class A","m_n":1,"m_a":null,"m_i":[1],"$rest":{"$bits":8,"$hex":"07"}}"#
    );
    assert!(object.set(&classes, "$rest", &json!(1)).is_err());
}

#[test]
fn ids_of_unknown_objects_are_kept() {
    let classes = classes(LIST);
    let core = Some(Arc::new(CoreTable::default()));
    let codec = ObjectCodec::new(&classes, ObjectOptions { core, ..lenient() });
    let bytes = parse_hex("0202 37000000 30000000 abcd").unwrap();
    let (json, _) = round(&codec, &bytes);
    assert_eq!(
        json,
        r#"{"$class":"0x14e95cad","$block":2,"$type":2,"$template":55,"$bits":16,"$hex":"abcd"}"#
    );
    // An unknown object nested in another object, and an unknown ordinary one.
    let inner = parse_hex("00006b000000 40000000 01020304").unwrap();
    let mut outer = parse_hex("000007000000 00000000 00000000 02000000 02000000").unwrap();
    outer.extend(&bytes);
    outer.extend(&inner);
    let property = u32::try_from((outer.len() - 10) * 8).unwrap();
    outer[6..10].copy_from_slice(&(property + 32).to_le_bytes());
    outer[10..14].copy_from_slice(&property.to_le_bytes());
    let (again, _) = round(&codec, &outer);
    assert!(again.contains(&json), "{again}");
    // A stream without IDs cannot hold an object with an ID.
    let plain = ObjectCodec::new(&classes, lenient());
    let object = Object::parse_json(&classes, &json).unwrap();
    let error = plain.encode(&object, plain.header()).unwrap_err().to_string();
    assert_eq!(
        error,
        "wanted an object without an ID, found block 2 type 2; only streams in the \
         CoreObject form have IDs"
    );
}

/// Class names are resolved when objects are decoded, not when the pairs are added.
#[test]
fn pairs_can_name_their_classes() {
    let classes = classes(LIST);
    let mut table = CoreTable::default();
    for (kind, name) in [(1, "B"), (2, "class B"), (3, "class C")] {
        table.insert(1, kind, name);
    }
    let codec =
        ObjectCodec::new(&classes, ObjectOptions { core: Some(Arc::new(table)), ..lenient() });
    let bytes = |kind| [&[1, kind, 5, 0, 0, 0][..], &bits(5), &[9]].concat();
    for kind in [1, 2] {
        let (json, _) = round(&codec, &bytes(kind));
        let head =
            format!("{{\"$class\":\"class B\",\"$block\":1,\"$type\":{kind},\"$template\":5,");
        assert!(json.starts_with(&head), "{json}");
    }
    // If the class is not in any list, its object is kept with its pair.
    let (json, decoded) = round(&codec, &bytes(3));
    assert!(json.contains("\"$block\":1,\"$type\":3,\"$template\":5,\"$bits\":8"), "{json}");
    assert!(
        decoded.notes[0].error().found().starts_with("no type list has"),
        "{:?}",
        decoded.notes
    );
    let strict =
        ObjectCodec::new(&classes, ObjectOptions { lenient: false, ..codec.options().clone() });
    let error = strict.decode_all(&bytes(3), &mut Object::new()).unwrap_err().to_string();
    assert_eq!(
        error,
        "object at byte 0: wanted a known class, found class C (block 1, type 3); check the name, \
         and whether the type list is from this revision"
    );
}

/// A better type list does not require decoding again.
#[test]
fn kept_bits_are_encoded_even_if_their_class_is_known() {
    let few = r#"{"class A": {"bases": [], "hash": 7, "properties": {
        "m_a": {"type": "class A*", "id": 3, "flags": 24, "hash": 4}}}}"#;
    let (few, all) = (classes(few), classes(LIST));
    let unknown = object(8, &[], &[]);
    let bytes = object(7, &[(1, words(&[5])), (4, unknown), (3, vec![0x1f, 0xff])], &[]);
    let (json, decoded) = round(&ObjectCodec::new(&few, lenient()), &bytes);
    let object = Object::parse_json(&all, &json).unwrap();
    let codec = ObjectCodec::new(&all, ObjectOptions { deep: true, ..ObjectOptions::default() });
    assert_eq!(codec.encode(&object, decoded.header).unwrap(), bytes);
    // The contents can then be decoded.
    let mut known = Object::new();
    let kept = ObjectCodec::new(&all, lenient()).decode_all(&bytes, &mut known).unwrap();
    assert_eq!(notes(&kept), ["m_f at byte 44 bit 5: wanted a value of 16 bits, found 5"]);
    assert_eq!(
        known.to_json(&all).unwrap(),
        r#"{"$class":"class A","m_n":5,"m_a":{"$class":"class B"},"m_f":{"$bits":16,"$hex":"1fff"}}"#
    );
    // The class can be given by name or by tag.
    for class in ["class B", "B", "0x00000008"] {
        let json = format!("{{\"$class\":\"{class}\",\"$bits\":8,\"$hex\":\"01\"}}");
        let object = Object::parse_json(&all, &json).unwrap();
        let bytes = codec.encode(&object, codec.header()).unwrap();
        assert_eq!(bytes, [8, 0, 0, 0, 40, 0, 0, 0, 1]);
    }
}

#[test]
fn an_object_of_an_unrelated_class_gets_a_note() {
    let list = r#"{
        "class A": {"bases": ["Base"], "hash": 7, "properties": {
            "m_a": {"type": "class Base*", "id": 0, "flags": 24, "hash": 4}}},
        "class Base": {"bases": [], "hash": 8, "properties": {}},
        "class Other": {"bases": ["Third"], "hash": 9, "properties": {}}}"#;
    let classes = classes(list);
    let codec = ObjectCodec::new(&classes, lenient());
    let read = |tag| {
        let bytes = object(7, &[(4, object(tag, &[], &[]))], &[]);
        let (_, decoded) = round(&codec, &bytes);
        decoded.notes
    };
    assert_eq!((read(7), read(8)), (Vec::new(), Vec::new()));
    let notes = read(9);
    assert_eq!((notes.len(), notes[0].bit()), (1, 128));
    assert_eq!(notes[0].error().found(), "class Other where class Base belongs");
}
