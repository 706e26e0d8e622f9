//! Changes one property of one game object inside a KIWAD archive.
//!
//! Run it with `cargo run -p worldwire-ki --example edit_object`. The archive and its classes are
//! generated here. A real program reads `Root.wad`, and the type list of the same game revision.

use worldwire_core::json::json;
use worldwire_core::{Limits, Result};
use worldwire_ki::file::wad::{
    Archive, BuildOptions, Change, DEFAULT_LEVEL, Inflater, Packer, Plan, build, diff,
};
use worldwire_ki::object::{Object, ObjectCodec, ObjectOptions};
use worldwire_ki::schema::classes::{Classes, TypeLists};

/// A type list describes the game's classes; users extract it from their client. Properties need at
/// least a name, a type, an ID that determines their order, and flags that show where they are
/// used.
const TYPES: &str = r#"{
    "class Stats": {"bases": [], "hash": 1000452497, "properties": {
        "m_health": {"type": "int", "id": 0, "flags": 31}}},
    "class Template": {"bases": [], "hash": 1688388201, "properties": {
        "m_name": {"type": "std::string", "id": 0, "flags": 31},
        "m_stats": {"type": "class Stats*", "id": 1, "flags": 31}}}}"#;

/// The file to change. The game gives many of its binary objects names that end in `.xml`.
const TARGET: &str = "Templates/Imp.xml";

/// Builds an archive of two objects and a text.
fn sample_archive(classes: &Classes, codec: &ObjectCodec<'_>) -> Result<Vec<u8>> {
    let object = |json: &str| codec.encode(&Object::parse_json(classes, json)?, codec.header());
    let stats = r#""m_stats": {"$class": "Stats", "m_health": 60}"#;
    let ghoul = object(&format!(r#"{{"$class": "Template", "m_name": "Ghoul", {stats}}}"#))?;
    let imp = object(&format!(r#"{{"$class": "Template", "m_name": "Imp", {stats}}}"#))?;
    let files =
        [("Readme.txt", &b"not an object"[..]), ("Templates/Ghoul.xml", &ghoul), (TARGET, &imp)];
    build(&BuildOptions::default(), files)
}

/// Copies an archive with one file replaced. All other files keep their stored bytes.
fn replace_file(archive: &Archive<'_>, name: &str, file: &[u8]) -> Result<Vec<u8>> {
    let table = archive.table();
    let options = BuildOptions { version: table.version, flags: table.flags, level: DEFAULT_LEVEL };
    let names = table.entries.iter().map(|entry| entry.name.clone()).collect();
    let mut plan = Plan::new(&options, names)?;
    // The data must follow in the plan's order: sorted by name.
    let mut entries: Vec<_> = table.entries.iter().collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let mut packer = Packer::new(options.level)?;
    let mut data = Vec::new();
    for entry in entries {
        let packed = match *entry.name == *name.as_bytes() {
            true => packer.pack(file, false)?,
            // Copied as stored, without decompressing it.
            false => archive.packed(entry)?,
        };
        plan.add(&packed)?;
        data.extend_from_slice(&packed.bytes);
    }
    let mut bytes = plan.finish()?;
    bytes.append(&mut data);
    Ok(bytes)
}

fn main() -> Result<()> {
    let mut lists = TypeLists::new();
    lists.add("types.json", TYPES.as_bytes())?;
    let classes = lists.compile();
    for note in classes.notes() {
        eprintln!("{note}");
    }
    let codec = ObjectCodec::new(&classes, ObjectOptions::file());
    let before = sample_archive(&classes, &codec)?;

    let archive = Archive::parse(&before, &Limits::DEFAULT)?;
    for entry in archive.entries() {
        println!("{}: {} bytes", entry.name_lossy(), entry.size);
    }

    let mut inflater = Inflater::new();
    let entry = archive.entries().iter().find(|entry| *entry.name == *TARGET.as_bytes());
    let file = entry.map(|entry| archive.read(entry, &mut inflater)).transpose()?.flatten();
    let mut object = Object::new();
    let decoded = codec.decode_all(file.unwrap_or_default(), &mut object)?;
    println!("before: {}", object.to_json(&classes)?);
    object.set(&classes, "m_stats.m_health", &json!(75))?;
    println!("after:  {}", object.to_json(&classes)?);

    // The header keeps the file's own flags and compression.
    let after = replace_file(&archive, TARGET, &codec.encode(&object, decoded.header)?)?;
    let updated = Archive::parse(&after, &Limits::DEFAULT)?;
    for change in diff(archive.table(), updated.table()) {
        match change {
            Change::Added(entry) => println!("added {}", entry.name_lossy()),
            Change::Removed(entry) => println!("removed {}", entry.name_lossy()),
            Change::Changed(entry, _) => println!("changed {}", entry.name_lossy()),
        }
    }
    Ok(())
}
