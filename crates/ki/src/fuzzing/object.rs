//! Targets for type lists and game objects, with and without a list.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use worldwire_core::json::{Style, write_node};
use worldwire_core::testing::{Target, render};
use worldwire_core::{Reader, Sampler, Tree};

use crate::object::{CoreTable, JsonWriter, Object, ObjectCodec, ObjectOptions, ZLIB, xml};
use crate::schema::classes::cache::{HEAD_BYTES, sealed};
use crate::schema::classes::{
    Class, Classes, ContentHash, ListVersion, SMALL_BYTES, Tuple, TypeLists,
};

/// The targets in this file.
pub(super) const TARGETS: &[Target] = &[
    Target { name: "ki_object", run: object, seeds: object_seeds },
    Target { name: "ki_object_types", run: types, seeds: type_seeds },
    Target { name: "ki_object_cache", run: cache, seeds: cache_seeds },
    Target { name: "ki_object_xml", run: text, seeds: text_seeds },
    Target { name: "ki_object_json", run: json, seeds: json_seeds },
];

/// A generated type list that contains every type, in classes that refer to each other.
#[must_use]
pub fn generated_list(sampler: &mut Sampler, classes: usize) -> String {
    let simple = [
        "bool",
        "char",
        "unsigned char",
        "short",
        "unsigned short",
        "wchar_t",
        "int",
        "unsigned int",
        "long",
        "unsigned long",
        "unsigned __int64",
        "gid",
        "union gid",
        "float",
        "double",
        "bi2",
        "bi7",
        "bui2",
        "bui5",
        "bui7",
        "s24",
        "u24",
        "std::string",
        "std::wstring",
        "__int64",
        "enum Colour",
    ];
    // With names that end in their number, hashes of different types would collide.
    let tuples = Tuple::ALL.map(Tuple::type_name);
    let mut json = String::from("{");
    for class in 0..classes {
        let comma = if class == 0 { "" } else { "," };
        let hash = crate::string_id(format!("class C{class}").as_bytes());
        let _ = write!(
            json,
            "{comma}\"class C{class}\":{{\"bases\":[\"PropertyClass\"],\"hash\":{hash},\
             \"properties\":{{"
        );
        for id in 0..sampler.below(12) {
            let comma = if id == 0 { "" } else { "," };
            let below = |sampler: &mut Sampler, bound: usize| {
                usize::try_from(sampler.below(bound as u64)).unwrap_or(0)
            };
            let kind = match sampler.below(16) {
                0 | 1 => tuples[below(sampler, tuples.len())].to_owned(),
                2 => format!("class C{}*", below(sampler, classes)),
                3 => format!("class SharedPointer<class C{}>", below(sampler, classes)),
                _ => simple[below(sampler, simple.len())].to_owned(),
            };
            let mut flags = [31, 31, 24, 1, 7, 95, 287, 0][below(sampler, 8)];
            if kind.starts_with("unsigned int") && sampler.below(2) == 0 {
                flags |= 1 << 20;
            }
            let options = if kind.starts_with("enum") || flags & 1 << 20 != 0 {
                ",\"enum_options\":{\"NONE\":0,\"RED\":1,\"GREEN\":2,\"DARK_BLUE\":4,\"FAR\":-2}"
            } else {
                ""
            };
            let container = ["Static", "Static", "Static", "List", "Vector"][below(sampler, 5)];
            let hash = crate::property_hash(kind.as_bytes(), format!("m_{id}value").as_bytes());
            let _ = write!(
                json,
                "{comma}\"m_{id}value\":{{\"type\":\"{kind}\",\"id\":{id},\"flags\":{flags},\
                 \"container\":\"{container}\",\"hash\":{hash}{options}}}"
            );
        }
        json.push_str("}}");
    }
    json.push('}');
    json
}

/// The classes of a generated list.
///
/// # Panics
/// Panics if the list cannot be read, which would be a bug in this file.
#[must_use]
pub fn generated_classes(sampler: &mut Sampler, classes: usize) -> Classes {
    let mut lists = TypeLists::new();
    let json = generated_list(sampler, classes);
    lists.add("generated.json", json.as_bytes()).expect("the list is valid");
    lists.compile()
}

/// All options that affect the bytes, selected by the bits of a number.
#[must_use]
pub fn options(classes: &Classes, bits: u16) -> ObjectOptions {
    let core = (bits & 0x80 != 0).then(|| {
        let mut table = CoreTable::default();
        if let Some(first) = classes.all().first() {
            table.insert(9, 7, first.hash);
        }
        Arc::new(table)
    });
    ObjectOptions {
        flags: u32::from(bits & 0x1f),
        deep: bits & 0x20 != 0,
        envelope: bits & 0x40 != 0,
        core,
        lenient: bits & 0x100 != 0,
        magic: bits & 0x200 != 0,
        mask: if bits & 0x400 != 0 { 1 } else { 0x18 },
        null_root: bits & 0x800 != 0,
        skip_deprecated: bits & 0x1000 != 0,
        ..ObjectOptions::default()
    }
}

pub(super) static CLASSES: LazyLock<Classes> =
    LazyLock::new(|| generated_classes(&mut Sampler::new(8), 12));
static NONE: LazyLock<Classes> = LazyLock::new(|| TypeLists::new().compile());

/// The first two bytes select the options.
fn object(data: &[u8]) {
    let [low, high, bytes @ ..] = data else { return };
    let bits = u16::from_le_bytes([*low, *high]);
    for classes in [&*CLASSES, &*NONE] {
        stream(&ObjectCodec::new(classes, options(classes, bits)), bytes);
    }
}

fn stream(codec: &ObjectCodec<'_>, bytes: &[u8]) {
    let classes = codec.classes();
    let mut object = Object::new();
    let mut reader = Reader::new(bytes);
    let outcome = codec.decode(&mut reader, &mut object);
    let mut traced = Reader::traced("stream", bytes, Tree::new());
    let mut shown = Object::new();
    let traced_outcome = codec.decode(&mut traced, &mut shown);
    assert_eq!(outcome, traced_outcome, "a trace changed the outcome");
    let (tree, _) = traced.conclude(traced_outcome);
    render(&tree, Style::default());
    let mut json = JsonWriter::new(Vec::new(), Style::default());
    let streamed = codec.decode(&mut Reader::new(bytes), &mut json);
    assert_eq!(streamed, outcome, "the visitor changed the outcome");
    let Ok(decoded) = outcome else { return };
    assert!(object == shown, "a trace changed the value");
    let json = json.finish().expect("writing to memory cannot fail");
    let json = String::from_utf8(json).expect("JSON is text");
    assert_eq!(object.to_json(classes).as_ref(), Ok(&json), "JSON of the value");
    let again = Object::parse_json(classes, &json).expect("it was just written");
    assert!(again == object, "JSON has different values: {json}");
    // Notes about unrelated classes do not affect decoding.
    if decoded.notes.iter().all(|note| note.error().found().ends_with(" belongs")) {
        let mut text = String::new();
        write_node(
            tree.find("object").expect("the tree has the object"),
            Style::default(),
            &mut text,
        );
        assert_eq!(text, json, "the tree");
    } else {
        assert!(codec.options().lenient, "notes without lenient decoding");
    }
    // Encoding normalises data that lenient decoding accepted, so only the second round must agree.
    let first = codec.encode(&object, decoded.header);
    let first = first.unwrap_or_else(|error| panic!("a decoded object must encode: {error}"));
    let mut second = Object::new();
    let read = codec.decode_all(&first, &mut second).expect("it was just written");
    assert!(second == object, "a different object after a round trip");
    assert_eq!(codec.encode(&second, read.header).as_ref(), Ok(&first), "different bytes");
    if !decoded.header.is_packed && !decoded.header.is_compressed && codec.options().deep {
        let flags = codec.options().flags | decoded.header.flags;
        assert!(flags & ZLIB != 0 || read.header == decoded.header, "another header");
    }
}

/// Checks that reading a written list yields the same list.
fn written(classes: &Classes, version: ListVersion) {
    let text = classes.to_list(version);
    let mut lists = TypeLists::new();
    let is_key = |class: &Class| matches!(&*class.name, "version" | "classes");
    if version == ListVersion::One && classes.all().iter().any(is_key) {
        // The names of such classes are indistinguishable from keys.
        return;
    }
    lists.add("written.json", text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(lists.compile().to_list(version), text);
}

fn types(data: &[u8]) {
    let mut lists = TypeLists::new();
    if lists.add("fuzz.json", data).is_err() {
        return;
    }
    let classes = lists.compile();
    // In large lists, repeated properties are not read again.
    let mut large = TypeLists::new();
    let padded = [data, &[b' '; SMALL_BYTES]].concat();
    large.add("fuzz.json", &padded).expect("only blanks were added");
    assert_eq!(large.compile().all(), classes.all(), "a large list");
    let content = ContentHash::of([data]);
    let cache = classes.to_cache(content);
    let again = Classes::from_cache(&cache, content).expect("it was just created");
    assert_eq!(again.all(), classes.all(), "the cache");
    for version in [ListVersion::One, ListVersion::Two] {
        written(&classes, version);
    }
    let mut sampler = Sampler::new(data.len() as u64);
    for class in classes.all().iter().take(20) {
        assert!(!classes.explain(class).to_string().is_empty(), "an empty explanation");
        let Ok(made) = Object::sample(&classes, class, true, &mut sampler) else { continue };
        if made.len() > 20_000 {
            continue;
        }
        let codec = ObjectCodec::new(
            &classes,
            ObjectOptions { null_root: true, ..ObjectOptions::default() },
        );
        if let Ok(bytes) = codec.encode(&made, codec.header()) {
            // The hash may also belong to another class, so this only checks that nothing panics.
            drop(codec.decode_all(&bytes, &mut Object::new()));
        }
    }
}

/// The content hash of the caches used here, which do not belong to any file.
const NO_CONTENT: ContentHash = ContentHash([0; 32]);

/// The input is the contents of a cache; a header with the right checksum is put before it.
fn cache(data: &[u8]) {
    let Ok(classes) = Classes::from_cache(&sealed(NO_CONTENT, data), NO_CONTENT) else { return };
    let cache = classes.to_cache(NO_CONTENT);
    let again = Classes::from_cache(&cache, NO_CONTENT).expect("it was just created");
    assert_eq!(again.all(), classes.all(), "round trip");
}

fn text(data: &[u8]) {
    let loaded = xml::load(&CLASSES, "fuzz.xml", data);
    let Some(objects) = loaded.objects else {
        assert!(!loaded.diagnostics.is_empty(), "refused without a diagnostic");
        return;
    };
    if let Ok(written) = xml::to_xml(&CLASSES, &objects) {
        let again = xml::load(&CLASSES, "again.xml", written.as_bytes());
        assert!(again.objects == Some(objects), "round trip");
    }
}

fn json(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let Ok(object) = Object::parse_json(&CLASSES, text) else { return };
    let json = object.to_json(&CLASSES).expect("the object has these classes");
    let again = Object::parse_json(&CLASSES, &json);
    assert_eq!(again.as_ref(), Ok(&object), "round trip: {json}");
    if let Ok(value) = serde_json::from_str(text) {
        assert!(Object::from_json(&CLASSES, &value).is_ok(), "the two JSON readers disagree");
    }
    for bits in [0, 0x20, 0x26] {
        let codec = ObjectCodec::new(&CLASSES, options(&CLASSES, bits));
        if let Ok(bytes) = codec.encode(&object, codec.header()) {
            let lenient = ObjectOptions { lenient: true, ..codec.options().clone() };
            let codec = ObjectCodec::new(&CLASSES, lenient);
            codec.decode_all(&bytes, &mut Object::new()).expect("it was just written");
        }
    }
}

fn object_seeds() -> Vec<Vec<u8>> {
    let mut sampler = Sampler::new(21);
    let mut seeds = Vec::new();
    for (at, class) in CLASSES.all().iter().enumerate() {
        for extra in [0, 0x26, 0x127, 0x0b, 0x82, 0xaf, 0x40, 0x10] {
            let bits: u16 = extra | [0, 0x200, 0x400][at % 3];
            let codec = ObjectCodec::new(&CLASSES, options(&CLASSES, bits));
            let complete = bits & 0x20 == 0;
            let made = Object::sample(&CLASSES, class, complete, &mut sampler);
            let made = made.and_then(|made| codec.encode(&made, codec.header()));
            if let Ok(bytes) = made
                && bytes.len() < 2000
            {
                seeds.push([&bits.to_le_bytes()[..], &bytes].concat());
            }
        }
    }
    seeds.push(vec![0x20, 0x01, 1, 2, 3, 4, 40, 0, 0, 0, 7]);
    seeds
}

fn type_seeds() -> Vec<Vec<u8>> {
    let list = generated_list(&mut Sampler::new(3), 3);
    let two = "{\"version\":2,\"classes\":{\"1\":{\"name\":\"class A\",\"bases\":[],\"hash\":1,\
               \"singleton\":false,\"properties\":{\"m\":{\"type\":\"int\",\"id\":0,\"hash\":2}}}}}";
    let xml = "<ClassList><Class Name=\"class A\" Base=\"class B\"><Property Name=\"m\" Type=\"enum \
               E\" PropertyId=\"1\" Flags=\"2097159\" Container=\"List\"><Enum><Option Name=\"X\" \
               Value=\"1\"/><Option Name=\"Y\" Value=\"X\"/></Enum></Property></Class><Class \
               Name=\"class B\" Base=\"\"><Property Name=\"n\" Type=\"class \
               SharedPointer&amp;lt;class A&amp;gt;\"/></Class></ClassList>";
    vec![list.into_bytes(), two.into(), xml.into()]
}

fn cache_seeds() -> Vec<Vec<u8>> {
    let cache = generated_classes(&mut Sampler::new(3), 3).to_cache(NO_CONTENT);
    vec![cache.get(HEAD_BYTES..).unwrap_or_default().to_vec()]
}

fn sample_objects() -> Vec<Object> {
    let mut sampler = Sampler::new(30);
    let made = CLASSES.all().iter().filter_map(|class| {
        Object::sample(&CLASSES, class, false, &mut sampler).ok().filter(|made| made.len() < 100)
    });
    made.collect()
}

fn text_seeds() -> Vec<Vec<u8>> {
    let made = sample_objects();
    let written = made.iter().filter_map(|one| {
        xml::to_xml(&CLASSES, core::slice::from_ref(one)).ok().map(String::into_bytes)
    });
    written.collect()
}

fn json_seeds() -> Vec<Vec<u8>> {
    let made = sample_objects();
    let mut seeds: Vec<Vec<u8>> =
        made.iter().filter_map(|one| one.to_json(&CLASSES).ok().map(String::into_bytes)).collect();
    seeds.push(b"{\"$class\":\"C1\",\"0x0000002a\":{\"$bits\":9,\"$hex\":\"ff01\"}}".to_vec());
    seeds
}
