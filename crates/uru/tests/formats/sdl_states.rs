//! States: updates by all implementations, upgrades, comparisons, and the database.

use worldwire_core::json::{Json, json};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::{Reader, Tree};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{
    Blob, MergePolicy, ObjectKey, ObjectState, Scalar, StateDb, StoredState, UpdateError,
    UpdateOrigin, hook,
};
use worldwire_uru::types::{
    CloneIds, LoadMask, Location, LocationFlags, SafeString, SequenceNumber, UnifiedTime, Uoid,
};

fn set() -> Descriptors {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/sdl");
    let names = ["Fernhollow.sdl", "things.sdl"];
    let files =
        names.map(|name| (name, std::fs::read_to_string(format!("{folder}/{name}")).unwrap()));
    let set = Descriptors::load(files);
    assert_eq!(set.problems(), []);
    set
}

fn at(seconds: u32) -> UnifiedTime {
    UnifiedTime { seconds, microseconds: 0 }
}

/// A blob from its variables as JSON; `"position": 9` is short for a value that a client changed.
fn blob(set: &Descriptors, name: &str, version: u16, variables: Json) -> Blob<'static> {
    let json = json!({
        "flags": ["AddedVarLengthIO"], "descriptor": name, "version": version,
        "variables": variables,
    });
    Blob::from_json(set, &json).unwrap()
}

fn changed(value: Json) -> Json {
    json!({"hint": "", "flags": ["Dirty", "WantTimeStamp"], "value": value})
}

fn diff(old: &ObjectState, new: &ObjectState) -> String {
    let lines: Vec<_> = old.diff(new).iter().map(ToString::to_string).collect();
    lines.join("\n")
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
    // A list may claim any length up to the limit, because unset elements take no memory.
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

/// Each type accepts the values its bytes can express, and errors state the range. Booleans are
/// bytes, and values other than 0 and 1 are kept.
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

fn all_of<'d>(set: &Descriptors, bytes: &'d [u8]) -> Blob<'d> {
    let mut reader = Reader::new(bytes);
    let blob = Blob::decode(set, &mut reader).unwrap();
    reader.end().unwrap();
    blob
}

#[test]
fn records_omitted_by_dirtsand_are_reported() {
    let set = set();
    let mut bytes = blob(&set, "fhWardrobe", 1, json!({})).to_bytes().unwrap();
    let head = bytes.len() - 2;
    bytes.truncate(head);
    // Both records of shoes are counted but absent; that of hat is present.
    bytes.extend([0, 2, 1, 0, 0, 1, 0, 0, 6, 0, 0, 2, 0, 0, 2]);
    let error = Blob::decode(&set, &mut Reader::new(&bytes)).unwrap_err();
    insta::assert_snapshot!(error, @"variables.shoes.elements[0].recordFlags at byte 34: wanted 2 bytes, found 0; 2 records of nested elements are missing, as in blobs that dirtsand damaged: the remaining ones cannot be assigned to elements");
    // Other truncations are reported as truncations.
    let whole = blob(&set, "fhLever", 1, json!({"place": changed(json!(1))})).to_bytes().unwrap();
    let error = Blob::decode(&set, &mut Reader::new(&whole[..whole.len() - 1])).unwrap_err();
    assert!(!error.to_string().contains("dirtsand"), "{error}");
}

#[test]
fn implementations_apply_updates_differently() {
    let set = set();
    let base = blob(
        &set,
        "fhWardrobe",
        1,
        json!({
            "mood": {"hint": "why", "flags": ["Dirty"], "value": 5},
            "list": {"hint": "", "flags": ["Dirty"], "value": [1, 2]},
            "shoes": {"hint": "", "elements": [
                {"variables": {"tint": changed(json!([1, 1, 1]))}},
                {"variables": {"tint": changed(json!([2, 2, 2]))}},
            ]},
        }),
    );
    let update = blob(
        &set,
        "fhWardrobe",
        1,
        json!({
            "mood": {"hint": "", "flags": ["Dirty", "WantTimeStamp"], "value": 6},
            "list": {"hint": "", "flags": [], "value": [3]},
            "shoes": {"hint": "", "elements": [
                {"index": 1, "variables": {"tint": changed(json!([7, 7, 7]))}},
            ]},
        }),
    );
    let mut shown = String::new();
    for (name, rule) in [
        ("ours", MergePolicy::OURS),
        ("client", MergePolicy::CLIENT),
        ("MOSS", MergePolicy::MOSS),
        ("dirtsand", MergePolicy::DIRTSAND),
    ] {
        let before = ObjectState::of(&base);
        let mut after = before.clone();
        after.apply(&update, rule, &at(1_700_000_000)).unwrap();
        shown += &format!("{name}\n{}\n", diff(&before, &after));
    }
    insta::assert_snapshot!(shown, @r#"
    ours
    ~ shoes[1].tint: [2,2,2] became [7,7,7]
    + shoes[1].tint time = 1700000000.000000
    ~ list: [1,2] became [3]
    + list time = 1700000000.000000
    ~ mood: 5 became 6
    + mood time = 1700000000.000000
    client
    ~ shoes[1].tint: [2,2,2] became [7,7,7]
    ~ list: [1,2] became [3]
    ~ mood: 5 became 6
    MOSS
    - shoes[0].tint = [1,1,1]
    ~ shoes[1].tint: [2,2,2] became [7,7,7]
    + shoes[1].tint time = 1700000000.000000
    ~ mood: 5 became 6
    - mood hint = "why"
    + mood time = 1700000000.000000
    dirtsand
    - shoes[0].tint = [1,1,1]
    ~ shoes[1].tint: [2,2,2] became [7,7,7]
    + shoes[1].tint time = 1700000000.000000
    ~ list: [1,2] became [3]
    ~ mood: 5 became 6
    - mood hint = "why"
    + mood time = 1700000000.000000
    "#);
}

#[test]
fn updates_of_newer_versions_upgrade_and_older_ones_are_refused() {
    let set = set();
    let old = blob(
        &set,
        "Fernhollow",
        1,
        json!({
            "fhLampCount": changed(json!(300)),
            "fhGateOpen": {"flags": ["SameAsDefault", "Dirty"]},
        }),
    );
    let newer = blob(&set, "fernhollow", 3, json!({"fhTide": changed(json!([1.0, 2.0, 3.5]))}));
    let mut state = ObjectState::of(&old);
    let before = state.clone();
    state.apply(&newer, MergePolicy::OURS, &at(9)).unwrap();
    assert_eq!(state.descriptor().version(), 3);
    insta::assert_snapshot!(diff(&before, &state), @r"
    ~ Fernhollow version: 1 became 3
    ~ fhLampCount: 300 became 255
    + fhTide = [1.0,2.0,3.5]
    + fhTide time = 9.000000
    ");
    // A variable that was set to the old default keeps that value when the default changes.
    assert_eq!(state.scalar("fhGateOpen"), Some(Scalar::Bool(false)));
    let unchanged = state.clone();
    let refused = state.apply(&old, MergePolicy::OURS, &at(10)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Fernhollow: the update uses version 1, but the state already has version 3"
    );
    let other = blob(&set, "fhLever", 1, json!({}));
    let refused = state.apply(&other, MergePolicy::OURS, &at(10)).unwrap_err();
    assert_eq!(refused.to_string(), "the update is for fhLever, not for Fernhollow");
    assert_eq!(state, unchanged);
}

#[test]
fn upgrades_convert_compatible_values() {
    let text = "
        STATEDESC a { VERSION 1
            VAR FLOAT up[1] VAR DOUBLE down[1] VAR INT wide[1] VAR BOOL flag[1] VAR BYTE list[]
            VAR INT same[2] VAR VECTOR3 v[1] VAR $c one[2] VAR $c none[1] VAR STRING32 gone[1]
            VAR PLKEY key[2] }
        STATEDESC a { VERSION 2
            VAR BYTE UP[1] VAR INT down[1] VAR FLOAT wide[1] VAR SHORT flag[1] VAR SHORT list[3] DEFAULT=8
            VAR INT same[] VAR RGB v[1] VAR $d one[1] VAR INT none[1] VAR PLKEY key[1] }
        STATEDESC c { VERSION 1 VAR INT x[1] VAR INT y[1] }
        STATEDESC d { VERSION 1 VAR BOOL y[1] VAR INT z[1] DEFAULT=4 }";
    let set = Descriptors::load([("a.sdl", text)]);
    assert_eq!(set.problems(), []);
    let key = json!({
        "location": {"sequenceNumber": 33, "flags": []}, "classIndex": 1, "objectId": 0,
        "name": "k",
    });
    let old = blob(
        &set,
        "a",
        1,
        json!({
            "up": changed(json!(-7.9)), "down": changed(json!(1e300)), "wide": changed(json!(16777217)),
            "flag": changed(json!(true)), "list": changed(json!([5, 6])),
            "same": changed(json!([1, 2])), "v": changed(json!([1.0, 2.0, 3.0])),
            "gone": changed(json!("x")), "key": changed(json!([key, key])),
            "one": {"elements": [
                {"index": 0, "variables": {"x": changed(json!(1)), "y": changed(json!(2))}},
            ]},
            "none": {"elements": [{"variables": {}}]},
        }),
    );
    let new = ObjectState::of(&old).upgrade(&set.newest("a").unwrap());
    let json = new.to_blob().to_json(&set).unwrap();
    let value = |name: &str| json["variables"][name]["value"].clone();
    assert_eq!(value("UP"), 0);
    assert_eq!(value("down"), i32::MAX);
    assert_eq!(value("wide"), 16_777_216.0);
    assert_eq!(value("flag"), 1);
    assert_eq!(value("list"), json!([5, 6, 8]));
    assert_eq!(value("same"), json!([1, 2]));
    assert_eq!(value("key")["name"], "k");
    assert_eq!(new.scalar("v"), Some(Scalar::Triple([0.0; 3])));
    assert!(!new.is_set("v") && !new.is_set("none"));
    let one = new.view().element("one", 0).unwrap();
    assert_eq!(one.scalar("y"), Some(Scalar::Bool(true)));
    assert_eq!(one.scalar("z"), Some(Scalar::Int(4)));
    assert!(new.view().element("one", 1).is_none());
}

#[test]
fn states_are_compared_by_name_and_depth() {
    let set = set();
    let wardrobe = set.newest("fhWardrobe").unwrap();
    let old = ObjectState::of(&blob(
        &set,
        "fhWardrobe",
        1,
        json!({
            "worn": {"length": 2, "elements": [{"variables": {"tint": changed(json!([1, 2, 3]))}}]},
            "mood": changed(json!(1)),
        }),
    ));
    let mut new = old.clone();
    let update = blob(
        &set,
        "fhWardrobe",
        1,
        json!({
            "worn": {"hint": "torn", "length": 1, "elements": [
                {"variables": {"tint": {"flags": ["SameAsDefault"]}}}]},
            "list": changed(json!([4])),
        }),
    );
    new.apply(&update, MergePolicy::CLIENT, &at(1)).unwrap();
    insta::assert_snapshot!(diff(&old, &new), @r#"
    ~ worn length: 2 became 1
    + worn hint = "torn"
    ~ worn[0].tint: [1,2,3] became [1,1,1]
    + list = [4]
    "#);
    insta::assert_snapshot!(diff(&new, &ObjectState::new(wardrobe)), @r#"
    - worn length = 1
    - worn hint = "torn"
    - worn[0].tint = [1,1,1]
    - list = [4]
    - mood = 1
    "#);
    let mut json = String::new();
    old.diff(&new)[0].write_json(&mut json);
    assert_eq!(json, r#"{"path":"worn","part":"length","before":2,"after":1}"#);
    assert_eq!(new.diff(&new), []);
}

#[test]
fn servers_can_set_variables() {
    let mut state = ObjectState::new(set().newest("fhlever").unwrap());
    state.set("Place", &[Scalar::Int(4)], &at(3)).unwrap();
    state.set("notches", &[1, 2, 3].map(Scalar::Short), &at(4)).unwrap();
    assert_eq!(state.view().scalars("notches").unwrap().len(), 3);
    assert_eq!(state.view().time("notches"), Some(at(4)));
    let error = |state: &mut ObjectState, name: &str, value: &[Scalar<'_>]| {
        state.set(name, value, &at(5)).unwrap_err().to_string()
    };
    assert_eq!(
        error(&mut state, "plaze", &[]),
        "wanted a simple variable of fhLever, found \"plaze\""
    );
    assert_eq!(
        error(&mut state, "place", &[Scalar::Byte(1)]),
        "place[0]: wanted an element of type INT, found Byte(1)"
    );
    assert_eq!(error(&mut state, "place", &[]), "place: wanted 1 element, found 0");
    let long = [Scalar::Text(&[b'x'; 33])];
    assert!(error(&mut state, "label", &long).contains("bytes of this string"));
}

fn object(sequence: u32, name: &str, clone: Option<u16>) -> Uoid<'static> {
    Uoid {
        location: Location {
            sequence_number: SequenceNumber(sequence),
            flags: LocationFlags::default(),
        },
        load_mask: None,
        class_index: 1,
        object_id: 5,
        name: SafeString::from(name),
        clone: clone.map(|id| CloneIds { id, filler: 0, player_id: 10_190 }),
    }
}

#[test]
fn objects_are_identified_by_page_class_name_and_clone() {
    let plain = object(0x21, "Lever", None);
    let mut same = plain.clone();
    same.object_id = 99;
    same.load_mask = Some(LoadMask(3));
    same.location.flags = LocationFlags::Itinerant;
    assert_eq!(ObjectKey::of(&plain), ObjectKey::of(&same));
    same.location.flags = LocationFlags::BuiltIn;
    for other in [
        same,
        object(0x22, "Lever", None),
        object(0x21, "Lever", Some(1)),
        object(0x21, "lever", None),
    ] {
        assert_ne!(ObjectKey::of(&plain), ObjectKey::of(&other));
    }
}

#[test]
fn a_database_keeps_one_state_for_each_object_and_descriptor() {
    let set = set();
    let mut db = StateDb::with_limit(3);
    let lever = blob(&set, "fhLever", 1, json!({"place": changed(json!(1))}));
    let body = blob(&set, "fhBody", 1, json!({}));
    let kept = UpdateOrigin { persist: true, avatar: false, player_id: 10_190 };
    let (one, two) = (object(0x21, "Lever", None), object(0x21, "Lever", Some(2)));
    let mut apply = |object: &Uoid<'_>, blob: &Blob<'_>, sent| {
        db.apply(object, blob, sent, MergePolicy::OURS, &at(1)).map(|stored| stored.is_durable())
    };
    assert_eq!(apply(&one, &lever, kept), Ok(true));
    assert_eq!(apply(&one, &body, UpdateOrigin { avatar: true, ..kept }), Ok(false));
    // States of clones do not outlive the server.
    assert_eq!(apply(&two, &lever, kept), Ok(false));
    assert_eq!(apply(&one, &lever, UpdateOrigin { persist: false, ..kept }), Ok(false));
    let volatile = json!({
        "flags": ["AddedVarLengthIO"], "descriptor": "FHLEVER", "version": 1,
        "recordFlags": ["Volatile"], "variables": {},
    });
    let volatile = Blob::from_json(&set, &volatile).unwrap();
    assert_eq!(apply(&one, &volatile, kept), Ok(false));
    let three = object(0x22, "Lever", None);
    assert_eq!(apply(&three, &lever, kept), Err(UpdateError::Full { limit: 3 }));
    assert_eq!((db.len(), db.of(&one).len()), (3, 2));
    assert_eq!(db.get(&one, "fhlever").unwrap().state.scalar("place"), Some(Scalar::Int(1)));
    let restored =
        StoredState { object: one.clone(), state: ObjectState::of(&lever), origin: kept };
    assert_eq!(db.insert(restored).unwrap().map(|old| old.state.is_volatile()), Some(true));
    assert_eq!(db.iter().filter(|stored| stored.is_durable()).count(), 1);
    db.retain(|stored| !stored.origin.avatar);
    assert_eq!(db.len(), 2);
    assert_eq!((db.remove(&two).len(), db.len()), (1, 1));
    assert_eq!(db.iter().count(), 1);
}

#[test]
fn the_state_of_an_age_is_merged_by_time() {
    let set = set();
    let stamped = |value: Json, seconds: u32| json!({"flags": ["HasTimeStamp"], "time": {"seconds": seconds, "microseconds": 0}, "value": value});
    let instance = ObjectState::of(&blob(
        &set,
        "Fernhollow",
        3,
        json!({
            "fhGateOpen": stamped(json!(false), 10), "fhLampCount": stamped(json!(5), 10),
            "fhMotto": {"flags": [], "value": "mine"}, "fhSky": stamped(json!([1, 1, 1]), 10),
        }),
    ));
    // The settings follow an older version of the descriptor.
    let shard = ObjectState::of(&blob(
        &set,
        "Fernhollow",
        2,
        json!({
            "fhGateOpen": stamped(json!(true), 11), "fhLampCount": stamped(json!(6), 10),
            "fhTide": {"flags": [], "value": [1.5, 2.5]},
        }),
    ));
    let merged = hook::merged(&instance, &shard);
    insta::assert_snapshot!(diff(&instance, &merged), @r"
    ~ fhGateOpen: false became true
    ~ fhGateOpen time: 10.000000 became 11.000000
    + fhTide = [1.5,2.5,0.5]
    ");
    let nothing = ObjectState::new(set.get("Fernhollow", 3).unwrap());
    assert_eq!(hook::merged(&instance, &nothing), instance);
}

#[test]
fn the_age_hook_is_distinguished_from_objects_of_the_same_name() {
    let hook = hook::object(120).unwrap();
    assert_eq!(hook.location.sequence_number, SequenceNumber(0x0079_001f));
    assert!(hook::is_hook(&hook, 120) && !hook::is_hook(&hook, 121));
    let mut other = hook.clone();
    other.location.flags = LocationFlags::BuiltIn | LocationFlags::Itinerant;
    other.object_id = 0;
    assert!(hook::is_hook(&other, 120));
    other.location.flags = LocationFlags::default();
    assert!(!hook::is_hook(&other, 120));
    assert!(!hook::is_hook(&object(0x0079_001f, "AgeSDLHook", None), 120));
    let mut clone = hook.clone();
    clone.clone = Some(CloneIds { id: 1, filler: 0, player_id: 7 });
    assert!(!hook::is_hook(&clone, 120));
    assert_eq!(hook::object(70_000), None);
}
