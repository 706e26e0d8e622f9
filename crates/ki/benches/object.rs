//! Performance of decoding and encoding game objects as values, JSON and trees, and of loading type
//! lists of a real client's size.

#![allow(clippy::unwrap_used, reason = "a panic fails the benchmark")]

use std::hint::black_box;
use std::mem::take;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use worldwire_core::json::Style;
use worldwire_core::{Reader, Tree};
use worldwire_ki::object::{COMPACT, JsonWriter, Object, ObjectCodec, ObjectOptions};
use worldwire_ki::schema::classes::{Classes, ContentHash, TypeLists};
use worldwire_ki::{property_hash, string_id};

fn main() {
    divan::main();
}

/// Ten properties that are typical of many classes.
const SMALL: [(&str, &str); 10] = [
    ("m_globalID", "gid"),
    ("m_templateID", "unsigned int"),
    ("m_level", "int"),
    ("m_name", "std::string"),
    ("m_isActive", "bool"),
    ("m_isHidden", "bool"),
    ("m_scale", "float"),
    ("m_location", "class Vector3D"),
    ("m_colour", "bui5"),
    ("m_quantity", "unsigned short"),
];

/// A list of classes, each with these properties.
fn list(classes: usize, properties: &[(&str, &str)]) -> String {
    let mut classes_of: Vec<String> = Vec::new();
    for class in 0..classes {
        let name = format!("class Made{class}");
        let hash = string_id(name.as_bytes());
        let properties: Vec<String> = properties
            .iter()
            .enumerate()
            .map(|(id, (name, kind))| {
                let hash = property_hash(kind.as_bytes(), name.as_bytes());
                let offset = 72 + 8 * id;
                format!(
                    "\"{name}\": {{\"type\": \"{kind}\", \"id\": {id}, \"offset\": {offset}, \
                     \"flags\": 31, \"container\": \"Static\", \"dynamic\": false, \
                     \"singleton\": false, \"pointer\": false, \"hash\": {hash}}}"
                )
            })
            .collect();
        classes_of.push(format!(
            "\"{hash}\": {{\"name\": \"{name}\", \"bases\": [\"PropertyClass\"], \
             \"hash\": {hash}, \"singleton\": false, \"properties\": {{{}}}}}",
            properties.join(", ")
        ));
    }
    format!("{{\"version\": 2, \"classes\": {{{}}}}}", classes_of.join(", "))
}

fn compile(json: &str) -> Classes {
    let mut lists = TypeLists::new();
    lists.add("generated.json", json.as_bytes()).unwrap();
    lists.compile()
}

/// One small object and its codec.
fn small(classes: &Classes, deep: bool) -> (ObjectCodec<'_>, Object, Vec<u8>) {
    let flags = if deep { COMPACT } else { 0 };
    let codec =
        ObjectCodec::new(classes, ObjectOptions { deep, flags, ..ObjectOptions::default() });
    let json = "{\"$class\":\"class Made0\",\"m_globalID\":191965934121493239,\"m_templateID\":77,\
                \"m_level\":-3,\"m_name\":\"Merle Ambrose\",\"m_isActive\":true,\
                \"m_isHidden\":false,\"m_scale\":1.25,\"m_location\":{\"x\":1.0,\"y\":2.0,\
                \"z\":3.0},\"m_colour\":17,\"m_quantity\":900}";
    let object = Object::parse_json(classes, json).unwrap();
    let bytes = codec.encode(&object, codec.header()).unwrap();
    (codec, object, bytes)
}

/// A class that holds small objects.
const BAG: [(&str, &str); 1] = [("m_items", "class SharedPointer<class Made0>")];

/// An object with 10,000 small ones: about half a megabyte, or more than a megabyte in deep form.
fn large(classes: &Classes, deep: bool) -> (ObjectCodec<'_>, Vec<u8>) {
    let (codec, one, _) = small(classes, deep);
    let one = one.to_json(classes).unwrap();
    let json =
        format!("{{\"$class\":\"class Bag\",\"m_items\":[{}]}}", vec![one; 10_000].join(","));
    let bag = Object::parse_json(classes, &json).unwrap();
    let bytes = codec.encode(&bag, codec.header()).unwrap();
    (codec, bytes)
}

fn bags() -> Classes {
    let bag = list(1, &BAG).replace("class Made0\", \"bases", "class Bag\", \"bases");
    let hash = |name: &str| string_id(name.as_bytes()).to_string();
    let bag = bag.replace(&hash("class Made0"), &hash("class Bag"));
    let bag = bag.replace("Static", "List").replace("\"dynamic\": false", "\"dynamic\": true");
    let mut lists = TypeLists::new();
    lists.add("small.json", list(1, &SMALL).as_bytes()).unwrap();
    lists.add("bag.json", bag.as_bytes()).unwrap();
    lists.compile()
}

#[divan::bench(args = [false, true])]
fn decode_small(bencher: Bencher<'_, '_>, deep: bool) {
    let classes = compile(&list(1, &SMALL));
    let (codec, _, bytes) = small(&classes, deep);
    let mut object = Object::new();
    bencher.counter(BytesCount::new(bytes.len())).counter(ItemsCount::new(1_usize)).bench_local(
        || {
            object.clear();
            codec.decode_all(black_box(&bytes), &mut object).unwrap();
            object.len()
        },
    );
}

#[divan::bench(args = [false, true])]
fn decode_small_new(bencher: Bencher<'_, '_>, deep: bool) {
    let classes = compile(&list(1, &SMALL));
    let (codec, _, bytes) = small(&classes, deep);
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        let mut object = Object::new();
        codec.decode_all(black_box(&bytes), &mut object).unwrap();
        object
    });
}

#[divan::bench(args = [false, true])]
fn encode_small(bencher: Bencher<'_, '_>, deep: bool) {
    let classes = compile(&list(1, &SMALL));
    let (codec, object, _) = small(&classes, deep);
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench_local(|| codec.encode(black_box(&object), codec.header()).unwrap());
}

#[divan::bench(args = [false, true])]
fn json_small(bencher: Bencher<'_, '_>, deep: bool) {
    let classes = compile(&list(1, &SMALL));
    let (codec, _, bytes) = small(&classes, deep);
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        let mut json = JsonWriter::new(Vec::new(), Style::default());
        codec.decode_all(black_box(&bytes), &mut json).unwrap();
        json.finish().unwrap()
    });
}

#[divan::bench(args = [false, true])]
fn tree_small(bencher: Bencher<'_, '_>, deep: bool) {
    let classes = compile(&list(1, &SMALL));
    let (codec, _, bytes) = small(&classes, deep);
    let mut old = Tree::new();
    let mut object = Object::new();
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        object.clear();
        let mut reader = Reader::traced("object", black_box(&bytes), take(&mut old).recycle());
        codec.decode(&mut reader, &mut object).unwrap();
        old = reader.finish().recycle();
    });
}

#[divan::bench(args = [false, true])]
fn decode_large(bencher: Bencher<'_, '_>, deep: bool) {
    let classes = bags();
    let (codec, bytes) = large(&classes, deep);
    let mut object = Object::new();
    bencher.counter(BytesCount::new(bytes.len())).bench_local(|| {
        object.clear();
        codec.decode_all(black_box(&bytes), &mut object).unwrap();
        object.len()
    });
}

#[divan::bench(args = [false, true])]
fn json_large(bencher: Bencher<'_, '_>, deep: bool) {
    let classes = bags();
    let (codec, bytes) = large(&classes, deep);
    bencher.counter(BytesCount::new(bytes.len())).bench_local(|| {
        let mut json = JsonWriter::new(Vec::new(), Style::default());
        codec.decode_all(black_box(&bytes), &mut json).unwrap();
        json.finish().unwrap()
    });
}

/// 6,981 classes and about 49,000 properties.
fn full_list() -> String {
    list(6_981, &SMALL[..7])
}

#[divan::bench(sample_count = 10)]
fn list_from_json(bencher: Bencher<'_, '_>) {
    let json = full_list();
    bencher.counter(BytesCount::new(json.len())).bench_local(|| compile(black_box(&json)));
}

#[divan::bench(sample_count = 10)]
fn list_from_cache(bencher: Bencher<'_, '_>) {
    let json = full_list();
    let content = ContentHash::of([json.as_bytes()]);
    let cache = compile(&json).to_cache(content);
    bencher
        .counter(BytesCount::new(cache.len()))
        .bench_local(|| Classes::from_cache(black_box(&cache), content).unwrap());
}

#[divan::bench(sample_count = 10)]
fn list_content_hash(bencher: Bencher<'_, '_>) {
    let json = full_list();
    bencher
        .counter(BytesCount::new(json.len()))
        .bench_local(|| ContentHash::of([black_box(json.as_bytes())]));
}
