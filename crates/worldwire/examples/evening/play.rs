//! The evening itself: an archive, and the commands of a modder who changes one object in it.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use worldwire_ki::file::wad::{BuildOptions, build};
use worldwire_ki::object::{Header, Object, ObjectCodec, ObjectOptions, xml};
use worldwire_ki::schema::classes::{Classes, TypeLists};

/// The object to change.
const CHOSEN: usize = 1230;

/// Runs the steps with a program, in a directory, on an archive of this many files.
pub(crate) fn evening(
    program: &Path,
    home: &Path,
    count: usize,
    talks: bool,
) -> Result<(), Box<dyn Error>> {
    let program = fs::canonicalize(program)?;
    let types = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/ki-types.json"));
    fs::create_dir_all(home)?;
    fs::copy(types, home.join("types.json"))?;
    fs::write(home.join("Root.wad"), archive(&home.join("types.json"), count)?)?;
    let run = |arguments: &[&str]| -> Result<String, Box<dyn Error>> {
        let start = Instant::now();
        let output = Command::new(&program).current_dir(home).args(arguments).output()?;
        let said = String::from_utf8(output.stderr)?;
        if talks {
            println!("$ worldwire {}", arguments.join(" "));
            print!("{said}");
            println!("  {:.2} s", start.elapsed().as_secs_f64());
        }
        // A difference between two archives is not a failure.
        let differ = arguments.starts_with(&["ki", "wad", "diff"]) && !output.stdout.is_empty();
        let wanted = if differ { 1 } else { 0 };
        if output.status.code() != Some(wanted) {
            return Err(format!("{}: {said}", arguments.join(" ")).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    };
    let filter = format!("class MadeUpCharacter and m_level == {CHOSEN}");
    let found = run(&["ki", "find", "--where", &filter, "Root.wad", "--types", "types.json"])?;
    let wanted = format!("Root.wad/{}  class MadeUpCharacter  m_level: {CHOSEN}\n", name(CHOSEN));
    check(found == wanted, &format!("one object was found:\n{found}"))?;

    let decode = ["--decode", "json", "--json-safe", "--types", "types.json"];
    run(&[&["ki", "wad", "extract", "Root.wad", "-C", "root"], &decode[..]].concat())?;

    let chosen = name(CHOSEN);
    let path = home.join("root").join(format!("{chosen}.json"));
    let text = fs::read_to_string(&path)?;
    let changed = text.replace(&format!("\"m_level\":{CHOSEN}"), "\"m_level\":99");
    check(changed != text, "the object has its level")?;
    fs::write(&path, changed)?;

    let update = ["ki", "wad", "update", "Root.wad", "--from", "root", "--types", "types.json"];
    let told = run(&[&update[..], &["-o", "Root.new.wad"]].concat())?;
    check(told == format!("~ {chosen}\n"), &format!("one file changed:\n{told}"))?;
    let told = run(&["ki", "wad", "diff", "Root.wad", "Root.new.wad"])?;
    check(told == format!("~ {chosen}\n"), &format!("one entry differs:\n{told}"))?;
    let show = |archive| {
        let xml = ["--decode", "xml", "--types", "types.json"];
        run(&[&["ki", "wad", "cat", archive, &chosen], &xml[..]].concat())
    };
    let (before, after) = (show("Root.wad")?, show("Root.new.wad")?);
    let pairs = before.lines().zip(after.lines());
    let lines: Vec<_> = pairs.filter(|(before, after)| before != after).collect();
    let level = format!("    <m_level>{CHOSEN}</m_level>");
    check(lines == [(&*level, "    <m_level>99</m_level>")], &format!("{lines:?}"))?;

    // Makes the same change through a directory of encoded objects, to which only the changed
    // object is written.
    let told = run(&["ki", "op", "encode", "root", "-o", "back", "--types", "types.json"])?;
    check(told == format!("~ {chosen}\n"), &format!("one object was encoded:\n{told}"))?;
    let told = run(&["ki", "wad", "update", "Root.wad", "--from", "back", "-o", "Root.2.wad"])?;
    check(told == format!("~ {chosen}\n"), &format!("one file changed:\n{told}"))?;
    let same = fs::read(home.join("Root.new.wad"))? == fs::read(home.join("Root.2.wad"))?;
    check(same, "both ways lead to the same archive")
}

fn check(is_good: bool, what: &str) -> Result<(), Box<dyn Error>> {
    if is_good { Ok(()) } else { Err(format!("wanted otherwise: {what}").into()) }
}

/// The name of a file: every tenth is an object, two are text XML, and the others are textures.
fn name(index: usize) -> String {
    let folder = index / 500;
    match index % 10 {
        0 => format!("ObjectData/{folder}/Character{index}.xml"),
        1 | 2 => format!("Scripts/{folder}/Text{index}.xml"),
        _ => format!("Textures/{folder}/Stone{index}.dds"),
    }
}

fn archive(types: &Path, count: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut lists = TypeLists::new();
    lists.add("types.json", &fs::read(types)?)?;
    let classes = lists.compile();
    let mut state = 1_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 31)
    };
    let mut files = Vec::with_capacity(count);
    for index in 0..count.max(CHOSEN + 1) {
        let content = match index % 10 {
            0 => file(&classes, &character(&classes, index, random())?, index)?,
            1 | 2 => xml::to_xml(&classes, &[character(&classes, index, random())?])?.into_bytes(),
            _ => {
                let size = usize::try_from(random() % 2_000)?;
                (0..size)
                    .map(|at| if at % 3 == 0 { random().to_le_bytes()[4] } else { 7 })
                    .collect()
            }
        };
        files.push((name(index), content));
    }
    let files = files.iter().map(|(name, content)| (&**name, &**content));
    Ok(build(&BuildOptions { level: 4, ..BuildOptions::default() }, files)?)
}

/// An object with a number that a double cannot represent.
fn character(classes: &Classes, index: usize, zone: u64) -> Result<Object, Box<dyn Error>> {
    let zone = zone | (1 << 63) | 1;
    let json = format!(
        r#"{{"$class":"class MadeUpCharacter","m_name":"Number {index}","m_level":{index},
            "m_school":"Storm","m_isNew":false,"m_zoneId":{zone},"m_pet":null}}"#
    );
    Ok(Object::parse_json(classes, &json)?)
}

/// A file as games store them: uncompressed, compressed, or compressed differently from ours.
fn file(classes: &Classes, object: &Object, index: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let codec = ObjectCodec::new(classes, ObjectOptions::file());
    let header = match index / 10 % 3 {
        0 => Header { flags: 7, ..codec.header() },
        _ => codec.header(),
    };
    let bytes = codec.encode(object, header)?;
    if index / 10 % 3 < 2 {
        return Ok(bytes);
    }
    let plain = codec.encode(object, Header { flags: 7, ..header })?;
    let stream = plain.get(8..).unwrap_or_default();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::none());
    zlib.write_all(stream)?;
    let size = u32::try_from(stream.len())?;
    let head = [&b"BINd"[..], &15_u32.to_le_bytes(), &[1], &size.to_le_bytes()].concat();
    Ok([head, zlib.finish()?].concat())
}
