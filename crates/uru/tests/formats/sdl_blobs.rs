//! Blobs of states: unusual encodings, damage, and JSON.

use worldwire_core::json::{Json, json};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::{Reader, Tree};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{Blob, ObjectState, Scalar};

/// The descriptors of the samples.
pub(crate) fn set() -> Descriptors {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/sdl");
    let names = ["Fernhollow.sdl", "things.sdl"];
    let files =
        names.map(|name| (name, std::fs::read_to_string(format!("{folder}/{name}")).unwrap()));
    let set = Descriptors::load(files);
    assert_eq!(set.problems(), []);
    set
}

/// A blob from its variables as JSON; `"position": 9` is short for a value that a client changed.
pub(crate) fn blob(set: &Descriptors, name: &str, version: u16, variables: Json) -> Blob<'static> {
    let json = json!({
        "flags": ["AddedVarLengthIO"], "descriptor": name, "version": version,
        "variables": variables,
    });
    Blob::from_json(set, &json).unwrap()
}

pub(crate) fn changed(value: Json) -> Json {
    json!({"hint": "", "flags": ["Dirty", "WantTimeStamp"], "value": value})
}

#[test]
fn blobs_are_shown_with_their_descriptors_names() {
    let set = set();
    let blob = blob(
        &set,
        "fhWardrobe",
        1,
        json!({
            "worn": {"hint": "", "length": 3, "elements": [
                {"index": 2, "variables": {"tint": changed(json!([1, 2, 3]))}},
            ]},
            "mood": changed(json!(9)),
            "list": {"hint": "seen", "flags": ["HasTimeStamp", "Dirty"],
                     "time": {"seconds": 5, "microseconds": 6}, "value": [1, -1]},
        }),
    );
    let bytes = blob.to_bytes().unwrap();
    let mut reader = Reader::traced("sdl", &bytes, Tree::new());
    Blob::decode(&set, &mut reader).unwrap();
    let mut shown = String::new();
    let style = TextStyle { ranges: true, ..TextStyle::default() };
    write_tree(&reader.finish(), style, &mut shown);
    insta::assert_snapshot!(shown, @r#"
    0x0000..0x0002    flags: 0x8000 (AddedVarLengthIO)
    0x0002..0x000e    descriptor: "fhWardrobe"
    0x000e..0x0010    version: 1
    0x0013..0x0052    variables:
    0x0014..0x0031      list:
    0x0016..0x001c        hint: "seen"
    0x001c..0x001d        flags: 0x14 (HasTimeStamp | Dirty)
    0x001d..0x0025        time:
    0x001d..0x0021          seconds: 5
    0x0021..0x0025          microseconds: 6
    0x0025..0x0031        value: 2 items
    0x0029..0x002d          [0] 1
    0x002d..0x0031          [1] -1
    0x0031..0x0037      mood:
    0x0033..0x0035        hint: ""
    0x0035..0x0036        flags: 0x30 (Dirty | WantTimeStamp)
    0x0036..0x0037        value: 9
    0x0038..0x0052      worn:
    0x003b..0x003d        hint: ""
    0x003e..0x0042        length: 3
    0x0042..0x0052        elements: 1 item
    0x0043..0x0052          [0]
    0x0043..0x0044            index: 2
    0x0047..0x0052            variables:
    0x0048..0x0051              tint:
    0x004b..0x004d                hint: ""
    0x004d..0x004e                flags: 0x30 (Dirty | WantTimeStamp)
    0x004e..0x0051                value: 3 items
    0x004e..0x004f                  [0] 1
    0x004f..0x0050                  [1] 2
    0x0050..0x0051                  [2] 3
    "#);
}

#[test]
fn unusual_encodings_are_kept() {
    let set = set();
    let head = |name: &str| {
        let bytes = blob(&set, name, 1, json!({})).to_bytes().unwrap();
        bytes[..bytes.len() - 2].to_vec()
    };
    // Unknown bits in all flags, a byte before the hint, a boolean of 7, text followed by stale
    // memory, a NaN with a payload, and indices that do not ascend.
    let mut lever = head("fhLever");
    let flags = lever.len() - 3;
    lever[flags + 1] = 0x40;
    lever.extend([4, 4, 0x82, 5, 0, 0xf0, 0x50]);
    lever.extend(*b"dead\0memory\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    lever.extend([1, 0, 0, 7]);
    lever.extend([3, 0, 0x80, 1, 0, 0, 0, 0, 0, 0xf8, 0x7f]);
    lever.extend([0, 0, 8, 0]);
    let mut tree = head("fhTree");
    tree.extend([0, 1, 0x10, 0x20, 3, 0, 0, 0, 2]);
    tree.extend([2, 1, 0, 6, 0, 0, 0, 0, 0, 6, 0, 0]);
    for bytes in [&lever, &tree] {
        let mut reader = Reader::new(bytes);
        let read = Blob::decode(&set, &mut reader).unwrap();
        reader.end().unwrap();
        assert_eq!(read.to_bytes().unwrap(), *bytes);
        let json = read.to_json(&set).unwrap();
        assert_eq!(Blob::from_json(&set, &json).unwrap().to_bytes().unwrap(), *bytes, "{json}");
    }
    let json = Blob::decode(&set, &mut Reader::new(&lever)).unwrap().to_json(&set).unwrap();
    assert_eq!(json["simpleOrder"], json!([4, 1, 3, 0]));
    assert_eq!(json["variables"]["moving"]["value"], 7);
    assert_eq!(json["variables"]["label"]["value"]["text"], "dead");
    assert_eq!(json["variables"]["wear"]["value"], "0x7ff8000000000001");
    // A variable can only occur once in a blob, however.
    let mut twice = head("fhLever");
    twice.extend([2, 0, 0, 8, 0, 0, 8, 0]);
    let error = Blob::decode(&set, &mut Reader::new(&twice)).unwrap_err();
    assert!(error.to_string().ends_with("wanted every index at most once, found index 0 twice"));
}

#[test]
fn nesting_of_records_is_limited() {
    let set = set();
    let nested = |depth: usize| {
        let mut bytes = blob(&set, "fhTree", 1, json!({})).to_bytes().unwrap();
        bytes.truncate(bytes.len() - 2);
        for _ in 1..depth {
            bytes.extend([0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 6]);
        }
        bytes.extend([0, 0]);
        bytes
    };
    let deepest = nested(16);
    assert_eq!(all_of(&set, &deepest).to_bytes().unwrap(), deepest);
    let error = Blob::decode(&set, &mut Reader::new(&nested(17))).unwrap_err();
    assert!(error.to_string().ends_with("wanted at most 16 (nested records), found 17"), "{error}");
    // A list may declare any length up to the limit, because unset elements take no memory.
    let mut long = blob(&set, "fhTree", 1, json!({})).to_bytes().unwrap();
    long.truncate(long.len() - 1);
    long.extend([1, 0, 0, 0x0e, 0x27, 0, 0, 0]);
    let state = ObjectState::of(&all_of(&set, &long));
    assert_eq!(state.view().nested_len("branches"), Some(9_998));
    assert_eq!(
        state.view().element("branches", 9_997).unwrap().scalar("leaves"),
        Some(Scalar::Byte(0))
    );
}

#[test]
fn json_that_no_blob_can_express_is_refused() {
    let set = set();
    let refused = |flags: Json, variables: Json| {
        let json = json!({
            "flags": flags, "descriptor": "fhLever", "version": 1, "variables": variables,
        });
        let bytes = Blob::from_json(&set, &json).and_then(|blob| blob.to_bytes());
        bytes.unwrap_err().to_string()
    };
    let marked = || json!(["AddedVarLengthIO"]);
    let value = |value: Json| json!({"flags": [], "value": value});
    assert_eq!(
        refused(json!([]), json!({})),
        "flags: wanted the flag AddedVarLengthIO (0x8000), found 0x0000"
    );
    assert_eq!(
        refused(json!(["AddedVarLengthIO", "HasUoid"]), json!({})),
        "flags: wanted no flag HasUoid, since there is no object, found 0x8001"
    );
    assert_eq!(
        refused(marked(), json!({"plase": {}})),
        "variables.plase: wanted a variable of fhLever, found \"plase\"; did you mean \"place\"?"
    );
    assert_eq!(
        refused(marked(), json!({"place": value(json!(1)), "PLACE": value(json!(2))})),
        "variables: wanted each variable once, found the same variable in two spellings"
    );
    assert_eq!(
        refused(marked(), json!({"notches": value(json!([1]))})),
        "variables.notches.value: wanted 3 elements, found 1"
    );
    assert_eq!(
        refused(marked(), json!({"place": {"flags": ["SameAsDefault"], "value": 1}})),
        "variables.place: wanted a known field, found \"value\""
    );
    let shoes = |indices: [u32; 2]| {
        let element = |index| json!({"index": index, "variables": {}});
        let json = json!({
            "flags": marked(), "descriptor": "fhWardrobe", "version": 1,
            "variables": {"shoes": {"elements": indices.map(element)}},
        });
        let bytes = Blob::from_json(&set, &json).and_then(|blob| blob.to_bytes());
        bytes.unwrap_err().to_string()
    };
    for (indices, wanted) in [([1, 1], "once, found index 1 twice"), ([0, 2], "below 2, found 2")] {
        assert!(shoes(indices).contains(wanted), "{}", shoes(indices));
    }
}

/// Each type accepts the values that its bytes can express, and errors state the range. Booleans
/// are bytes, and values other than 0 and 1 are kept.
#[test]
fn json_of_each_type_has_a_range() {
    let text = "STATEDESC all { VERSION 1 VAR BOOL b[1] VAR BYTE y[1] VAR SHORT s[1] VAR INT i[1] \
                VAR FLOAT f[1] VAR DOUBLE d[1] VAR STRING32 t[1] VAR RGB8 c[1] VAR TIME at[1] \
                VAR CREATABLE m[1] VAR POINT3 p[1] VAR AGETIMEOFDAY o[1] }";
    let set = Descriptors::load([("all.sdl", text)]);
    assert_eq!(set.problems(), []);
    let made = |name: &str, value: &Json| {
        let json = json!({
            "flags": ["AddedVarLengthIO"], "descriptor": "all", "version": 1,
            "variables": {name: {"flags": [], "value": value}},
        });
        Blob::from_json(&set, &json).and_then(|blob| blob.to_bytes())
    };
    let dead = |bytes: usize| json!({"text": "ab", "deadMemory": {"$hex": "07".repeat(bytes)}});
    for (name, value, wanted) in [
        ("b", json!(256), "wanted true, false or a whole number from 0 to 255, found 256"),
        ("b", json!(-1), "wanted true, false or a whole number from 0 to 255, found -1"),
        ("y", json!(256), "wanted a whole number from 0 to 255, found 256"),
        ("s", json!(32_768), "wanted a whole number from -32768 to 32767, found 32768"),
        ("i", json!(1_u64 << 31), "from -2147483648 to 2147483647, found 2147483648"),
        ("f", json!(1e39), "wanted a single-precision number, found 1e+39"),
        ("d", json!("1e400"), "wanted a double-precision number, found \"1e400\""),
        ("t", json!("x".repeat(33)), "bytes of this string"),
        ("t", json!("a\0b"), "wanted text without NUL bytes, found a NUL byte"),
        ("t", dead(9), "wanted 32 bytes of text and dead memory in total, found 11 bytes"),
        ("t", dead(30), "deadMemory: wanted a NUL byte first, found a different one"),
        ("c", json!([1, 2, 256]), "value[2]: wanted a whole number from 0 to 255, found 256"),
        ("c", json!([1, 2]), "wanted a list of 3 numbers, found [1,2]"),
        ("at", json!({"seconds": -1, "microseconds": 0}), "from 0 to 4294967295, found -1"),
        ("m", json!({"class": 65_536, "bytes": ""}), "from 0 to 65535, found 65536"),
        ("m", json!({"class": 0x8000, "bytes": {"$hex": ""}}), "null instead of the object"),
        ("p", json!([1.0, 2.0]), "wanted a list of 3 numbers, found [1.0,2.0]"),
        ("o", json!(1), "wanted null, found 1"),
    ] {
        let text = made(name, &value).unwrap_err().to_string();
        assert!(text.contains(wanted), "{text}");
        assert!(text.starts_with(&format!("variables.{name}")), "{text}");
    }
    for byte in [0_u8, 1, 7, 255] {
        assert_eq!(made("b", &json!(byte)).unwrap().last(), Some(&0));
        let bytes = made("b", &json!(byte)).unwrap();
        let read = all_of(&set, &bytes);
        let elements = read.record.simple[0].value.as_ref().unwrap();
        assert_eq!(elements.as_bytes(), [byte]);
    }
}

#[test]
fn records_omitted_by_dirtsand_are_reported() {
    let set = set();
    let mut bytes = blob(&set, "fhWardrobe", 1, json!({})).to_bytes().unwrap();
    let head = bytes.len() - 2;
    bytes.truncate(head);
    // Both records of shoes are counted but absent; the record of the hat is present.
    bytes.extend([0, 2, 1, 0, 0, 1, 0, 0, 6, 0, 0, 2, 0, 0, 2]);
    let error = Blob::decode(&set, &mut Reader::new(&bytes)).unwrap_err();
    insta::assert_snapshot!(error, @"variables.shoes.elements[0].recordFlags at byte 34: wanted 2 bytes, found 0; 2 records of nested elements are missing, as in blobs that dirtsand damaged: the remaining ones cannot be assigned to elements");
    // Other truncations are reported as truncations.
    let whole = blob(&set, "fhLever", 1, json!({"place": changed(json!(1))})).to_bytes().unwrap();
    let error = Blob::decode(&set, &mut Reader::new(&whole[..whole.len() - 1])).unwrap_err();
    assert!(!error.to_string().contains("dirtsand"), "{error}");
}

fn all_of<'d>(set: &Descriptors, bytes: &'d [u8]) -> Blob<'d> {
    let mut reader = Reader::new(bytes);
    let blob = Blob::decode(set, &mut reader).unwrap();
    reader.end().unwrap();
    blob
}
