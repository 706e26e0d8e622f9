//! Game objects of classes that do not exist in any game.

use std::path::Path;

use worldwire_ki::object::{Object, ObjectCodec, ObjectOptions};
use worldwire_ki::schema::classes::{Classes, TypeLists};
use worldwire_ki::{property_hash, string_id};

use super::Outcome;

/// A property: its name, type and flags, whether it is a container, and its options.
type Property = (&'static str, &'static str, u32, bool, &'static [(&'static str, u32)]);

/// Written to files, copied, public, transmitted to everybody.
const PLAIN: u32 = 0x1f;
const ENUM: u32 = 1 << 21;
const BITS: u32 = 1 << 20;

const SCHOOLS: &[(&str, u32)] = &[("Fire", 1), ("Ice", 2), ("Storm", 3)];
const RIGHTS: &[(&str, u32)] = &[("CHAT", 1), ("TRADE", 2), ("HATCH", 4)];

const CLASSES: [(&str, &[Property]); 3] = [
    (
        "class MadeUpCharacter",
        &[
            ("m_name", "std::string", PLAIN, false, &[]),
            ("m_level", "int", PLAIN, false, &[]),
            ("m_school", "enum MadeUpSchool", PLAIN | ENUM, false, SCHOOLS),
            ("m_isNew", "bool", PLAIN, false, &[]),
            ("m_zoneId", "gid", PLAIN, false, &[]),
            ("m_pet", "class SharedPointer<class MadeUpPet>", PLAIN, false, &[]),
        ],
    ),
    (
        "class MadeUpPet",
        &[
            ("m_name", "std::string", PLAIN, false, &[]),
            ("m_speed", "float", PLAIN, false, &[]),
            ("m_color", "class Color", PLAIN, false, &[]),
            ("m_position", "class Vector3D", PLAIN, false, &[]),
            ("m_rights", "unsigned int", PLAIN | BITS, false, RIGHTS),
            ("m_tricks", "std::string", PLAIN, true, &[]),
            ("m_snacks", "class SharedPointer<class MadeUpSnack>", PLAIN, true, &[]),
        ],
    ),
    (
        "class MadeUpSnack",
        &[
            ("m_templateID", "unsigned int", PLAIN, false, &[]),
            ("m_isLiked", "bool", PLAIN, false, &[]),
            ("m_points", "bui5", PLAIN, false, &[]),
        ],
    ),
];

const PET: &str = r#"{
    "$class": "class MadeUpPet", "m_name": "Nyx", "m_speed": 1.25,
    "m_color": {"b": 32, "g": 64, "r": 128, "a": 255},
    "m_position": {"x": 10.5, "y": -2.0, "z": 0.125}, "m_rights": ["CHAT", "HATCH"],
    "m_tricks": ["jump", "roll over"],
    "m_snacks": [
        {"$class": "class MadeUpSnack", "m_templateID": 4711, "m_isLiked": true, "m_points": 25},
        null
    ]
}"#;

/// The type list of the generated classes, version 2.
pub(crate) fn types() -> String {
    let mut classes = serde_json::Map::new();
    for (name, properties) in CLASSES {
        let mut map = serde_json::Map::new();
        for (id, (property, kind, flags, is_list, options)) in (0..).zip(properties) {
            let id: u32 = id;
            let mut described = serde_json::json!({
                "type": kind, "id": id, "offset": 72 + 8 * id, "flags": flags,
                "container": if *is_list { "List" } else { "Static" }, "dynamic": is_list,
                "singleton": false, "pointer": kind.contains("Pointer"),
                "hash": property_hash(kind.as_bytes(), property.as_bytes()),
            });
            if !options.is_empty() {
                let options = options.iter().map(|(name, number)| ((*name).to_owned(), number));
                let options: std::collections::BTreeMap<_, _> = options.collect();
                described["enum_options"] = serde_json::json!(options);
            }
            map.insert((*property).to_owned(), described);
        }
        let hash = string_id(name.as_bytes());
        classes.insert(
            hash.to_string(),
            serde_json::json!({
                "name": name, "bases": ["PropertyClass"], "hash": hash, "singleton": false,
                "properties": map,
            }),
        );
    }
    let list = serde_json::json!({ "version": 2, "classes": classes });
    format!("{list:#}\n")
}

/// The same list, compiled.
pub(crate) fn classes() -> Outcome<Classes> {
    let mut lists = TypeLists::new();
    lists.add("ki-types.json", types().as_bytes())?;
    Ok(lists.compile())
}

/// A character with its pet, as in a field of a message.
pub(crate) fn character(classes: &Classes) -> Outcome<Vec<u8>> {
    let json = format!(
        r#"{{"$class": "class MadeUpCharacter", "m_name": "Merle Ashthorn", "m_level": 12,
            "m_school": "Storm", "m_isNew": false, "m_zoneId": 191965934121493239, "m_pet": {PET}}}"#
    );
    let codec = ObjectCodec::new(classes, ObjectOptions::default());
    Ok(codec.encode(&Object::parse_json(classes, &json)?, codec.header())?)
}

/// Writes the type list and a file with an object.
pub(crate) fn write(folder: &Path) -> Outcome<()> {
    let classes = classes()?;
    std::fs::write(folder.join("ki-types.json"), types())?;
    let codec = ObjectCodec::new(&classes, ObjectOptions::file());
    let pet = codec.encode(&Object::parse_json(&classes, PET)?, codec.header())?;
    std::fs::write(folder.join("ki-pet.xml"), pet)?;
    Ok(())
}
