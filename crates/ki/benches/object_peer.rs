//! One half of a comparison. The other half, `object_peer.py`, explains how to run both.
//!
//! * `write FOLDER` writes a type list and objects of its classes, always the same ones;
//! * `time FOLDER` decodes them and prints a line of JSON for each measurement.

#![allow(clippy::unwrap_used, reason = "a panic fails the benchmark")]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::BufWriter;
use std::path::Path;
use std::time::Instant;

use worldwire_core::Sampler;
use worldwire_core::json::Style;
use worldwire_ki::object::{JsonWriter, Object, ObjectCodec, ObjectOptions};
use worldwire_ki::schema::classes::{Classes, TypeLists};
use worldwire_ki::{property_hash, string_id};

/// The number of small objects in each form.
const OBJECTS: usize = 100_000;
/// The number of small objects in the large one, which takes 33 MB.
const IN_LARGE: usize = 368_000;
/// The number of measurements. The best one is reported.
const ROUNDS: usize = 5;

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

fn main() {
    // Cargo adds arguments of its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", folder] => write(Path::new(folder)),
        ["time", folder] => time(Path::new(folder)),
        _ => println!("object_peer: nothing to do; see crates/ki/benches/object_peer.py"),
    }
}

fn class(name: &str, properties: &[(&str, &str)], is_list: bool) -> (String, serde_json::Value) {
    let mut map = serde_json::Map::new();
    for (id, (property, kind)) in (0..).zip(properties) {
        let id: u32 = id;
        let described = serde_json::json!({
            "type": kind, "id": id, "offset": 72 + 8 * id, "flags": 31, "singleton": false,
            "container": if is_list { "List" } else { "Static" }, "dynamic": is_list,
            "pointer": is_list, "hash": property_hash(kind.as_bytes(), property.as_bytes()),
        });
        map.insert((*property).to_owned(), described);
    }
    let hash = string_id(name.as_bytes());
    let class = serde_json::json!({
        "name": name, "bases": ["PropertyClass"], "hash": hash, "singleton": false,
        "properties": map,
    });
    (hash.to_string(), class)
}

fn types() -> String {
    let mut classes = serde_json::Map::new();
    classes.extend((0..20).map(|index| class(&format!("class Made{index}"), &SMALL, false)));
    classes.extend([class("class Bag", &[("m_items", "class SharedPointer<class Made0>")], true)]);
    format!("{{\"version\":2,\"classes\":{}}}", serde_json::Value::Object(classes))
}

fn compile(json: &str) -> Classes {
    let mut lists = TypeLists::new();
    lists.add("types.json", json.as_bytes()).unwrap();
    lists.compile()
}

const NAMES: [&str; 5] = ["Merle Ambrose", "Malorie", "Headmistress Crisp", "", "Gamma"];
/// Longer texts, for the large object.
const TEXTS: [&str; 4] = [
    "The tower stands where the river leaves the old town, and nobody has the key.",
    "Data/GameData/Textures/Character/Wizard/Hat_Novice_01.dds",
    "Quest/WC-TRIT-C02-001: talk to the headmistress",
    "a_short_one",
];

fn small(sampler: &mut Sampler, names: &[&str]) -> String {
    let mut number = |below: u64| sampler.below(below);
    let name = names[usize::try_from(number(names.len() as u64)).unwrap()];
    format!(
        "{{\"$class\":\"class Made{}\",\"m_globalID\":{},\"m_templateID\":{},\"m_level\":{},\
         \"m_name\":\"{name}\",\"m_isActive\":{},\"m_isHidden\":{},\"m_scale\":{}.5,\
         \"m_location\":{{\"x\":{}.25,\"y\":{}.5,\"z\":3.0}},\"m_colour\":{},\"m_quantity\":{}}}",
        number(20),
        number(1 << 60),
        number(1 << 32),
        number(1000),
        number(2) == 0,
        number(2) == 0,
        number(100),
        number(1000),
        number(1000),
        number(32),
        number(1 << 16)
    )
}

fn options(deep: bool) -> ObjectOptions {
    ObjectOptions { deep, ..ObjectOptions::default() }
}

/// Writes objects, each preceded by its length.
fn write(folder: &Path) {
    let json = types();
    let classes = compile(&json);
    fs::write(folder.join("types.json"), &json).unwrap();
    for (name, deep) in [("shallow.bin", false), ("deep.bin", true)] {
        let codec = ObjectCodec::new(&classes, options(deep));
        let mut sampler = Sampler::new(101);
        let mut out = Vec::new();
        for _ in 0..OBJECTS {
            let object = Object::parse_json(&classes, &small(&mut sampler, &NAMES)).unwrap();
            let bytes = codec.encode(&object, codec.header()).unwrap();
            out.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_le_bytes());
            out.extend_from_slice(&bytes);
        }
        fs::write(folder.join(name), out).unwrap();
    }
    let mut sampler = Sampler::new(102);
    let items: Vec<String> = (0..IN_LARGE).map(|_| small(&mut sampler, &TEXTS)).collect();
    let bag = format!("{{\"$class\":\"class Bag\",\"m_items\":[{}]}}", items.join(","));
    let object = Object::parse_json(&classes, &bag).unwrap();
    let codec = ObjectCodec::new(&classes, options(false));
    fs::write(folder.join("large.bin"), codec.encode(&object, codec.header()).unwrap()).unwrap();
}

fn time(folder: &Path) {
    let classes = compile(&fs::read_to_string(folder.join("types.json")).unwrap());
    // Measured first, before anything else has used memory.
    let (mut best, mut bytes) = (f64::MAX, 0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let large = fs::read(folder.join("large.bin")).unwrap();
        let codec = ObjectCodec::new(&classes, options(false));
        let file = BufWriter::new(File::create(folder.join("ours.json")).unwrap());
        let mut json = JsonWriter::new(file, Style::default());
        codec.decode_all(&large, &mut json).unwrap();
        json.finish().unwrap().into_inner().unwrap();
        best = best.min(start.elapsed().as_secs_f64());
        bytes = large.len();
    }
    println!(
        "{{\"what\":\"large to JSON\",\"seconds\":{best},\"bytes\":{bytes},\"peak\":{}}}",
        peak()
    );
    for (name, deep) in [("shallow", false), ("deep", true)] {
        let file = fs::read(folder.join(format!("{name}.bin"))).unwrap();
        let mut objects = Vec::new();
        let mut rest = &file[..];
        while let Some((head, tail)) = rest.split_first_chunk() {
            let (object, tail) = tail.split_at(u32::from_le_bytes(*head) as usize);
            objects.push(object);
            rest = tail;
        }
        let codec = ObjectCodec::new(&classes, options(deep));
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            for bytes in &objects {
                let mut object = Object::new();
                codec.decode_all(bytes, &mut object).unwrap();
                black_box(&object);
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!(
            "{{\"what\":\"{name}\",\"seconds\":{best},\"objects\":{},\"peak\":{}}}",
            objects.len(),
            peak()
        );
    }
}

/// The peak memory of this process in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
