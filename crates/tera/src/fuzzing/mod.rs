//! The fuzz targets of this family: every kind of input, with the properties that must hold.

mod connection;

use std::sync::LazyLock;

use worldwire_core::json::{Json, Object, Style};
use worldwire_core::testing::{Target, render};
use worldwire_core::{Reader, Tree};

use crate::codegen::rust;
use crate::crypt::exchange::{self, Key, Keys, Variant};
use crate::crypt::pike::{self, STATE_BYTES};
use crate::file::map::{CodeMap, MapKind};
use crate::message::{Datum, HeaderForm, Item, Leniency, RecordView, Tape, View};
use crate::schema::{Definition, Dialect, FileName, ParseOptions};
use crate::sysmsg::SystemMessage;

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    connection::TARGETS.iter().chain(FORMATS)
}

const FORMATS: &[Target] = &[
    Target { name: "tera_def", run: definition, seeds: definitions },
    Target { name: "tera_map", run: map, seeds: maps },
    Target { name: "tera_message", run: message, seeds: messages },
    Target { name: "tera_sysmsg", run: system_message, seeds: system_messages },
];

/// An expanded key, which test vectors contain.
#[must_use]
pub fn expanded_key(key: &Key) -> [u8; STATE_BYTES] {
    pike::expand(key)
}

/// The key for messages from the client, which test vectors contain.
#[must_use]
pub fn client_key(keys: &Keys, variant: Variant) -> Key {
    exchange::client_key(keys, variant)
}

/// Layouts that together use every feature.
const LAYOUTS: [(&str, Dialect, &str); 7] = [
    (
        "S_HOISTED.1.def",
        Dialect::Toolbox,
        "array list\n- int32 id\n- string name\n- array inner\n- - byte x\nstring title\nbytes blob\n\
         object place\n- vec3 loc\n- angle w\nbool flag\nskillid skill\narray<string> words\n\
         array<int32> numbers\nint64 gold\ndouble part\n",
    ),
    (
        "S_REF.1.def",
        Dialect::Toolbox,
        "int32 id\nref list\nref name\nuint16 more\narray list\n- ref word\n- float f\n- string word\n\
         string name\n",
    ),
    (
        "S_PLACED.1.def",
        Dialect::Proto,
        "int32 id\nstring name\narray<array<int16>> grid\nint32[3] three\nbytes blob\n\
         object[2] rows\n- string name\n- array list\n- - byte x\n",
    ),
    (
        "S_MIXED.1.def",
        Dialect::Toolbox,
        "int32 id\narray[interleaved] list\n- int32 id\n- string name\n\
         - array[interleaved] inner\n- - byte x\n- array<int16>[interleaved] more\n\
         array<vec3>[interleaved] places\narray<int32>[interleaved] numbers\nint64 gold\n\
         string title\nbool flag\n",
    ),
    (
        "S_PIECES.1.def",
        Dialect::Toolbox,
        "object place\n- int32 id\n- string name\nint32 id\nobject place\n- bytes blob\n\
         - bool flag\nint32 id\narray list\n- object place\n- - string name\n- int32 id\n\
         - object place\n- - array inner\n- - - byte x\n- - - object o\n- - - - byte a\n\
         - - - object o\n- - - - string word\nint64 gold\n",
    ),
    (
        "S_COUNTED.1.def",
        Dialect::Legacy,
        "offset name\ncount list\nint32 id\noffset nobody\noffset list\narray list\n\
         - offset name\n- int32 id\n- string name\n- count inner\n- offset inner\n\
         - array inner\n- - byte x\nstring name\nint64 gold\ncount blob\noffset blob\n\
         bytes blob\nbool flag\n",
    ),
    ("S_INLINE.1.def", Dialect::Legacy, "offset nmae\nint32 id\nstring name\nint64 gold\n"),
];

static PLANS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    let parsed = LAYOUTS.iter().filter_map(|(name, dialect, text)| {
        // One definition relies on its string being read in place.
        let lenient = name.starts_with("S_INLINE");
        let options = ParseOptions { dialect: Some(*dialect), lenient, ..ParseOptions::default() };
        Definition::parse(&FileName::parse(name).ok()?, text, &options).ok()
    });
    parsed.collect()
});

/// The first byte selects layout and header; the rest is the message.
fn message(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let Some(definition) = PLANS.get(usize::from(choice >> 1) % PLANS.len().max(1)) else { return };
    let form = if choice & 1 == 0 { HeaderForm::Plain } else { HeaderForm::Integrity };
    let plan = definition.plan();
    let checked = plan.check(data, form);
    let read = plan.read(data, form);
    let mut reader = Reader::traced("message", data, Tree::new());
    let outcome = plan.decode(&mut reader, form);
    let (tree, outcome) = reader.conclude(outcome);
    assert_eq!(checked.is_ok(), read.is_ok(), "checking and reading disagree");
    assert_eq!(checked.is_ok(), outcome.is_ok(), "tracing changed the outcome");
    let json = render(&tree, Style::default());
    assert!(tree.len() <= 64 + MAX_NODES_A_BYTE * data.len(), "{} nodes", tree.len());
    if let Ok(view) = View::new(plan, data, form) {
        // Errors may occur anywhere, but the work is bounded.
        record(view.fields(), read.is_ok());
    }
    let viewed = View::checked(plan, data, form);
    assert_eq!(viewed.as_ref().ok().map(|(_, notes)| notes), checked.as_ref().ok());
    if let Ok((view, _)) = viewed {
        record(view.fields(), true);
    }
    let mut tape = Tape::new();
    let taped = plan.read_into(data, form, &mut tape);
    assert_eq!(taped.is_ok(), read.is_ok(), "the tape changed the outcome");
    let Ok(read) = read else { return };
    let of_tape = Datum::Record(tape.fields(plan)).to_value();
    assert_eq!(format!("{of_tape:?}"), format!("{:?}", read.fields()), "the tape differs");
    let mut again = Vec::new();
    tape.encode(plan, &mut again).expect("the message was read");
    assert_eq!(again, data, "unchanged on the tape");
    // In a message that is not canonical, bodies may overlap, and then encode to too many bytes.
    tape.head_mut();
    let (mut reencoded, mut wanted) = (Vec::new(), Vec::new());
    let written = plan.encode(read.head(), read.fields(), &mut wanted).is_ok();
    if tape.trailing().is_empty() && tape.encode(plan, &mut reencoded).is_ok() {
        assert!(written && reencoded == wanted, "the tape and its values encode differently");
    }
    again.clear();
    read.encode(plan, &mut again).expect("the message was read");
    assert_eq!(again, data, "an unchanged message has the same bytes");
    assert!(View::new(plan, data, form).is_ok(), "a message that was read has a view");
    again.clear();
    plan.encode_json(read.head().opcode, form, &json, Leniency::Strict, &mut again)
        .unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(again, data, "JSON round trip");
}

/// A skill has six nodes in four bytes, and each byte may be read [`MAX_READINGS`] times.
///
/// [`MAX_READINGS`]: crate::message::MAX_READINGS
const MAX_NODES_A_BYTE: usize = 2 * crate::message::MAX_READINGS;

/// Accesses every field in place; `good` says whether the whole message is valid.
fn record(view: RecordView<'_, '_, '_>, good: bool) {
    for (_, inner) in view.iter() {
        item(inner, good);
    }
}

fn item(found: worldwire_core::Result<Item<'_, '_, '_>>, good: bool) {
    match found {
        Ok(Item::Record(view)) => record(view, good),
        Ok(Item::List(list)) => list.iter().for_each(|element| item(element, good)),
        Ok(Item::Scalar(_) | Item::Text(_) | Item::Bytes(_)) => {}
        Err(error) => assert!(!good, "a valid message has an error: {error}"),
    }
}

fn messages() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (index, definition) in (0u8..).zip(PLANS.iter()) {
        for json in [
            "{}",
            r#"{"id":7,"name":"x","list":[{"id":1,"name":"a","word":"b","inner":[{"x":3},{"x":4}],"more":[7],
                "place":{"name":"p","inner":[{"x":1,"o":{"a":2,"word":"o"}}]}},{"id":2,"name":"z"}],
                "place":{"id":6,"name":"n","blob":{"$hex":"03"},"flag":true},"id#1":8,
                "places":[{"x":1.5},{"y":2.5},{}],"rows":[{"name":"r","list":[{"x":5}]},{"name":"s"}],
                "title":"t","blob":{"$hex":"0102"},"words":["u","v"],"numbers":[1,2],"more":5,
                "grid":[[1,2],[3]],"three":[1,2,3],"flag":true,"gold":9}"#,
        ] {
            let json: Json = serde_json::from_str(json).expect("valid JSON");
            for form in [HeaderForm::Plain, HeaderForm::Integrity] {
                let choice = 2 * index + u8::from(form == HeaderForm::Integrity);
                let mut bytes = Vec::new();
                let plan = definition.plan();
                if plan.encode_json(0x1234, form, &json, Leniency::Lenient, &mut bytes).is_ok() {
                    seeds.push([&[choice][..], &bytes].concat());
                }
            }
        }
    }
    seeds
}

fn definition(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let file = FileName::parse("S_FUZZ.1.def").expect("a valid name");
    for dialect in [Dialect::Legacy, Dialect::Toolbox, Dialect::Proto] {
        for lenient in [false, true] {
            let options =
                ParseOptions { dialect: Some(dialect), lenient, ..ParseOptions::default() };
            match Definition::parse(&file, text, &options) {
                Ok(definition) => {
                    let mut bytes = Vec::new();
                    let json = Json::Object(Object::new());
                    let plan = definition.plan();
                    let form = HeaderForm::Plain;
                    if !lenient {
                        let source = rust([(definition.name(), definition.version(), plan)]);
                        assert!(source.contains("pub struct SFuzzV1"), "no struct was generated");
                    }
                    if plan.encode_json(1, form, &json, Leniency::Strict, &mut bytes).is_ok() {
                        plan.check(&bytes, form).expect("an encoded message is valid");
                    }
                }
                Err(problems) => assert!(!problems.is_empty(), "failed without a problem"),
            }
        }
    }
}

fn definitions() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> =
        LAYOUTS.iter().map(|(_, _, text)| text.as_bytes().into()).collect();
    seeds.push(
        b"# legacy\ncount list\noffset list\noffset name\narray list\n- int32 a\nstring name\n"
            .to_vec(),
    );
    seeds.push(b"offset nmae\nstring name\nobject[2] o\n- byte a\n- byte a\n".to_vec());
    seeds.push(b"int32 a ^27-98.02\narray<array<int32[2]>> x\n@include other.def\n".to_vec());
    seeds
}

fn map(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    for kind in [MapKind::Protocol, MapKind::SystemMessages] {
        let (map, _) = CodeMap::parse(kind, "fuzz.map", text);
        let (again, _) = CodeMap::parse(kind, "again.map", &map.format());
        let sorted = |map: &CodeMap| {
            let mut pairs: Vec<_> =
                map.iter().map(|(name, code)| (name.to_owned(), code)).collect();
            pairs.sort();
            pairs
        };
        assert_eq!(sorted(&map), sorted(&again), "map round trip");
    }
}

fn maps() -> Vec<Vec<u8>> {
    vec![b"C_CHECK_VERSION 19900\nS_CHECK_VERSION = 19901 # fixed\nA= 1\r\nB =2\n".to_vec()]
}

fn system_message(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    if let Ok(message) = SystemMessage::parse_raw(text) {
        assert_eq!(message.format_raw().as_deref(), Ok(text), "system message round trip");
    }
}

fn system_messages() -> Vec<Vec<u8>> {
    vec!["@5\u{b}name\u{b}Elin\u{b}item\u{b}@item:888".into(), "@achievement:5".into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_is_valid_and_has_seeds() {
        assert_eq!(PLANS.len(), LAYOUTS.len());
        let seeds = messages();
        assert_eq!(seeds.len(), 4 * LAYOUTS.len());
        for (index, definition) in PLANS.iter().enumerate() {
            let seed = |seed: &&Vec<u8>| usize::from(seed[0] >> 1) == index;
            let longest = seeds.iter().filter(seed).map(Vec::len).max();
            let least = definition.plan().min_length();
            assert!(longest.is_some_and(|longest| longest > least + 8), "{}", definition.title());
        }
    }
}
