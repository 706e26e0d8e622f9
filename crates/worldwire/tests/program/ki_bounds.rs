//! The limits on archives and folders, and contents that are never accepted silently.

use std::borrow::Cow;
use std::fs;
#[cfg(target_os = "linux")]
use std::process::{Command, Output};

use worldwire_ki::file::wad::{
    Archive, BuildOptions, Entry, Packed, Packer, Plan, STORED_SIZE, Table, crc,
};

use crate::ki_home::{Home, ends, sample};

/// A folder with a type list.
fn home() -> Home {
    let home = Home::empty();
    home.put("types.json", sample("ki-types.json"));
    home
}

/// An archive of data that is already compressed.
fn of_packed(files: &[(&str, &Packed<'_>)]) -> Vec<u8> {
    let names = files.iter().map(|(name, _)| Cow::Borrowed(name.as_bytes())).collect();
    let mut plan = Plan::new(&BuildOptions::default(), names).unwrap();
    let mut data = Vec::new();
    for (_, packed) in files {
        plan.add(packed).unwrap();
        data.extend_from_slice(&packed.bytes);
    }
    [plan.finish().unwrap(), data].concat()
}

/// Runs the program with this much address space, in KiB.
#[cfg(target_os = "linux")]
fn within(home: &Home, memory: u32, arguments: &[&str]) -> Output {
    let limit = format!("ulimit -v {memory}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limit, "sh", env!("CARGO_BIN_EXE_worldwire"), "ki"]).args(arguments);
    // Otherwise, each thread reserves address space for a heap of its own, which it does not need.
    command.env("MALLOC_ARENA_MAX", "1").current_dir(home.path()).output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn threads_share_their_memory() {
    let home = home();
    let large = vec![0; 150 << 20];
    let packed = Packer::new(1).unwrap().pack(&large, false).unwrap();
    let names: Vec<String> = (0..8).map(|number| number.to_string()).collect();
    let files: Vec<(&str, &Packed<'_>)> = names.iter().map(|name| (&**name, &packed)).collect();
    fs::write(home.at("a.wad"), of_packed(&files)).unwrap();
    let test = ["wad", "test", "--threads", "8", "a.wad"];
    ends(&within(&home, 900_000, &test), 0);
    // With even less memory, the program does not abort.
    let (out, _) = ends(&within(&home, 250_000, &test), 1);
    assert!(out.contains("not enough memory for a file of 157286400 bytes"), "{out}");
}

#[test]
fn files_that_are_not_objects_are_not_read_completely() {
    let home = home();
    let stone = Packer::new(1).unwrap().pack(&[7; 100_000], false).unwrap().bytes.into_owned();
    let crc = crc(&stone);
    // Larger than the limit on inflated data.
    let size = 300 << 20;
    let large = Packed { bytes: stone.into(), size, compressed: true, crc };
    let pet = sample("ki-pet.xml");
    let pet = Packer::new(1).unwrap().pack(&pet, true).unwrap();
    fs::write(home.at("a.wad"), of_packed(&[("Nyx.xml", &pet), ("Stone.dds", &large)])).unwrap();
    let find = ["find", "--where", "class *", "a.wad", "-t", "types.json"];
    let (out, err) = ends(&home.run(&find), 0);
    assert_eq!(out, "a.wad/Nyx.xml  class MadeUpPet\n", "{err}");
    assert!(err.starts_with("1 of 1 object; "), "{err}");
    for to in [&["-o", "out"][..], &[]] {
        let decode = [&["op", "decode", "a.wad", "-t", "types.json"], to].concat();
        let (_, err) = ends(&home.run(&decode), 0);
        assert!(err.starts_with("1 decoded, 1 skipped, 0 failed; "), "{err}");
    }
    let (out, _) = ends(&home.run(&["op", "types", "types.json", "--used-in", "a.wad"]), 0);
    assert!(out.contains("MadeUpPet"), "{out}");
    // The same limits apply in folders.
    fs::create_dir(home.at("in")).unwrap();
    fs::write(home.at("in/Nyx.xml"), sample("ki-pet.xml")).unwrap();
    let stone = fs::File::create(home.at("in/Stone.dds")).unwrap();
    stone.set_len(300 << 20).unwrap();
    let find = ["find", "--where", "class *", "in", "-t", "types.json"];
    let (_, err) = ends(&home.run(&find), 0);
    assert!(err.starts_with("1 of 1 object; "), "{err}");
}

#[test]
fn an_update_writes_shared_data_out_only_if_it_may() {
    let home = home();
    let entry = |name: &'static str| Entry {
        name: Cow::Borrowed(name.as_bytes()),
        terminated: true,
        offset: 0,
        size: 1000,
        compressed_size: STORED_SIZE,
        compressed: 0,
        crc: crc(&[5; 1000]),
    };
    let mut table = Table { version: 2, flags: 0, entries: vec![entry("a"), entry("b")] };
    let start = u32::try_from(table.encoded_size()).unwrap();
    table.entries.iter_mut().for_each(|entry| entry.offset = start);
    let bytes = [table.to_bytes().unwrap(), vec![5; 1000]].concat();
    fs::write(home.at("a.wad"), bytes).unwrap();
    let update = ["wad", "update", "a.wad", "-o", "b.wad"];
    let (_, err) = ends(&home.run(&update), 1);
    let wanted = "worldwire: a.wad: refused: the data of b begins inside the data of other files; \
        --allow-overlaps gives each file its own data\n";
    assert_eq!(err, wanted);
    assert!(!home.at("b.wad").exists());
    ends(&home.run(&[&update[..], &["--allow-overlaps"]].concat()), 0);
    let bytes = fs::read(home.at("b.wad")).unwrap();
    assert!(
        Archive::parse(&bytes, &worldwire_core::Limits::DEFAULT).unwrap().overlaps().is_empty()
    );
}

#[test]
fn an_update_reports_dropped_bytes_and_nameless_entries() {
    let home = home();
    home.archive("a.wad", &[("a", b"a"), ("b", b"b")]);
    let mut bytes = fs::read(home.at("a.wad")).unwrap();
    bytes.extend([9; 30]);
    fs::write(home.at("a.wad"), bytes).unwrap();
    let update = ["wad", "update", "a.wad", "-o", "b.wad"];
    let (_, err) = ends(&home.run(&update), 0);
    let wanted = "worldwire: a.wad: warning: 30 bytes that belong to no file are dropped\n";
    assert!(err.starts_with(wanted), "{err}");
    for (name, problem, hint) in
        [("", "has no name", "''"), ("x\0y", "has a name that contains a NUL", "with a pattern")]
    {
        let entry = Entry {
            name: Cow::Borrowed(name.as_bytes()),
            terminated: true,
            offset: 0,
            size: 0,
            compressed_size: STORED_SIZE,
            compressed: 0,
            crc: 0,
        };
        let table = Table { version: 2, flags: 0, entries: vec![entry] };
        fs::write(home.at("c.wad"), table.to_bytes().unwrap()).unwrap();
        let update = ["wad", "update", "c.wad", "-o", "d.wad", "--force"];
        let (_, err) = ends(&home.run(&update), 1);
        let wanted = format!("c.wad: entry 0 {problem}; --remove {hint} removes");
        assert!(err.contains(&wanted), "{err}");
        let remove = if name.is_empty() { "" } else { "x*" };
        ends(&home.run(&[&update[..], &["--remove", remove]].concat()), 0);
    }
}

#[test]
fn names_that_differ_in_case_do_not_overwrite_each_other() {
    let home = home();
    let pet = sample("ki-pet.xml");
    home.archive("a.wad", &[("A/b.xml", &pet), ("a/B.xml", &pet), ("c.xml", b"no object")]);
    let decode = ["op", "decode", "a.wad", "-t", "types.json", "-o", "out"];
    let (_, err) = ends(&home.run(&decode), 1);
    let wanted = "a.wad/a/B.xml: refused: differs only in case from an earlier file in the archive";
    assert!(err.contains(wanted) && err.contains("1 decoded, 1 skipped, 1 failed; "), "{err}");
    assert!(home.at("out/A/b.xml.json").exists());
    assert!(!home.at("out/a/B.xml.json").exists());
    // A file that is not an object does not replace an object.
    home.archive("b.wad", &[("A/b.xml", b"no object"), ("a/B.xml", &pet)]);
    let decode = ["op", "decode", "b.wad", "-t", "types.json", "-o", "other"];
    ends(&home.run(&decode), 0);
    assert!(home.at("other/a/B.xml.json").exists());
}

#[test]
fn existing_results_can_be_skipped() {
    let home = home();
    let pet = sample("ki-pet.xml");
    home.archive("a.wad", &[("a.xml", &pet), ("b.xml", &pet)]);
    fs::create_dir(home.at("out")).unwrap();
    fs::write(home.at("out/a.xml.json"), "mine").unwrap();
    let decode = ["op", "decode", "a.wad", "-t", "types.json", "-o", "out", "--skip-existing"];
    let (_, err) = ends(&home.run(&decode), 0);
    assert!(err.starts_with("1 decoded, 0 skipped, 1 already there, 0 failed; "), "{err}");
    assert_eq!(fs::read(home.at("out/a.xml.json")).unwrap(), b"mine");
    assert!(home.at("out/b.xml.json").exists());
    // Encodes one object, to one file.
    let one = ["op", "decode", "a.wad/a.xml", "-t", "types.json", "-o", "out/a.xml.json"];
    let (_, err) = ends(&home.run(&[&one[..], &["--skip-existing"]].concat()), 0);
    assert!(err.ends_with("skipped: already there\n"), "{err}");
    ends(&home.run(&one), 2);
}

#[test]
fn xml_objects_are_counted_and_damaged_ones_reported() {
    let home = home();
    fs::create_dir(home.at("in")).unwrap();
    fs::write(home.at("in/a.xml"), sample("ki-pet.xml")).unwrap();
    let xml = ["op", "decode", "in/a.xml", "-t", "types.json", "--to", "xml", "-o", "in/b.xml"];
    ends(&home.run(&xml), 0);
    let count = ["op", "types", "types.json", "MadeUpPet", "--used-in", "in", "--json"];
    let (out, _) = ends(&home.run(&count), 0);
    assert!(out.contains("\"objects\":2"), "{out}");
    let whole = fs::read_to_string(home.at("in/b.xml")).unwrap();
    fs::write(home.at("in/c.xml"), &whole[..whole.len() / 2]).unwrap();
    let (out, err) = ends(&home.run(&count), 1);
    assert!(out.contains("\"objects\":2"), "{out}");
    assert!(err.contains("in/c.xml: line ") && err.contains("not counted: 1 file"), "{err}");
}

#[test]
fn property_names_with_dots_are_typed_as_they_are_shown() {
    let home = home();
    home.archive("a.wad", &[("a.xml", &sample("ki-pet.xml"))]);
    let types = String::from_utf8(sample("ki-types.json")).unwrap();
    let types = types.replace("\"m_speed\"", "\"m_speed.m_real\"");
    fs::write(home.at("dotted.json"), types).unwrap();
    let filter = "class MadeUpPet and m_speed.m_real > 1";
    let find = ["find", "--where", filter, "a.wad", "-t", "dotted.json"];
    let (out, _) = ends(&home.run(&find), 0);
    assert_eq!(out, "a.wad/a.xml  class MadeUpPet  m_speed.m_real: 1.25\n");
}

#[test]
fn filters_on_message_properties_are_refused_for_objects() {
    let home = home();
    home.archive("a.wad", &[("a.xml", &sample("ki-pet.xml"))]);
    for (filter, name) in [("time > 1", "time"), ("MadeUpPet and port == 1", "port")] {
        let find = ["find", "--where", filter, "a.wad", "-t", "types.json"];
        let (_, err) = ends(&home.run(&find), 2);
        let wanted = format!("no class has a property {name}; only captured messages have that");
        assert!(err.contains(&wanted), "{err}");
    }
    let find = ["find", "--where", "length > 1", "a.wad", "-t", "types.json"];
    ends(&home.run(&find), 0);
}

#[test]
fn texts_skipped_for_translators_are_reported() {
    let home = home();
    let text = "1:Zone\r\n7\r\n\r\nfirst\r\n7\r\n\r\nsecond\r\n8\r\n\r\n\r\n9\r\n";
    let bytes = text.encode_utf16().flat_map(u16::to_le_bytes);
    fs::write(home.at("Zone.lang"), [0xff, 0xfe].into_iter().chain(bytes).collect::<Vec<u8>>())
        .unwrap();
    let repeated =
        "worldwire: Zone.lang: warning: the key \"7\" is repeated; the last one is used\n";
    let lacks = "worldwire: Zone.lang: warning: entry 3 is incomplete and is skipped\n";
    let (out, err) = ends(&home.run(&["lang", "csv", "Zone.lang"]), 0);
    assert_eq!(err, format!("{lacks}{repeated}"));
    assert!(out.contains("Zone_7,,first") && out.contains("Zone_7,,second"), "{out}");
    let (out, err) = ends(&home.run(&["lang", "po", "Zone.lang"]), 0);
    let empty = "worldwire: Zone.lang: warning: an entry without text was skipped\n";
    assert_eq!(err, format!("{lacks}{repeated}{empty}"));
    assert!(!out.contains("first"), "{out}");
}

#[test]
fn a_truncated_object_prints_nothing() {
    let home = home();
    // Large enough that the output is written while the input is read.
    let tricks = vec![format!("\"{}\"", "x".repeat(60_000)); 90].join(",");
    let json = format!("{{\"$class\":\"class MadeUpPet\",\"m_tricks\":[{tricks}]}}");
    fs::write(home.at("pet.json"), json).unwrap();
    let options = ["-t", "types.json", "--shallow", "--flags", "0", "--mask", "1"];
    let encode = ["op", "encode", "pet.json", "--complete", "-o", "pet.bin"];
    ends(&home.run(&[&encode[..], &options].concat()), 0);
    let whole = fs::read(home.at("pet.bin")).unwrap();
    fs::write(home.at("cut.bin"), &whole[..whole.len() - 3]).unwrap();
    let (out, _) = ends(&home.run(&[&["op", "decode", "pet.bin"], &options[..]].concat()), 0);
    assert!(out.starts_with("{\"object\":{"));
    let (out, err) = ends(&home.run(&[&["op", "decode", "cut.bin"], &options[..]].concat()), 1);
    assert_eq!(out, "");
    assert!(err.starts_with("worldwire: cut.bin: object."), "{err}");
}

#[test]
fn codes_in_objects_of_archives_are_shown_with_their_texts() {
    let home = home();
    let named = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transcripts/ki-files/named.bin");
    home.archive("a.wad", &[("Pet.xml", &fs::read(named).unwrap())]);
    fs::write(home.at("zone.wad"), sample("ki-zone.wad")).unwrap();
    let cat = ["wad", "cat", "a.wad", "Pet.xml", "-t", "types.json", "--lang", "zone.wad"];
    let (out, _) = ends(&home.run(&[&cat[..], &["--decode", "text"]].concat()), 0);
    assert!(out.contains("MadeUp_00000001 = \"Meadow of #1\""), "{out}");
    let (_, err) = ends(&home.run(&[&cat[..], &["--decode", "json"]].concat()), 2);
    assert!(err.contains("--lang needs --decode text"), "{err}");
}
