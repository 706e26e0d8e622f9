//! Classes, messages, objects and IDs, looked up by name or value.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::ki_edit::{ZONE, character, mixed};
use crate::ki_home::{Home, ends};

#[test]
fn classes_are_searched_by_parts_and_patterns() {
    let home = Home::new();
    let types = |word: &str| ends(&home.run(&["op", "types", "ki-types.json", word]), 0).0;
    assert_eq!(types("made").lines().count(), 3);
    assert!(types("*pet").ends_with("class MadeUpPet\n") && types("*pet").lines().count() == 1);
    assert!(types("MadeUpPet").contains("m_name: std::string"), "a name is explained");
}

#[test]
fn message_xml_is_read_from_an_archive() {
    let home = Home::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let xml = fs::read(samples.join("ki-messages/MadeUpMessages.xml")).unwrap();
    let other = b"<Objects></Objects>";
    let files: [(&str, &[u8]); 3] = [
        ("Data/Other.xml", other),
        ("Data/Pet.xml", &home.bytes("ki-pet.xml")),
        ("MadeUpMessages.xml", &xml),
    ];
    home.archive("m.wad", &files);
    let (out, err) = ends(&home.run(&["dml", "list", "MADEUP", "--data", "m.wad"]), 0);
    assert!(out.contains("MSG_WEATHER") && err.is_empty(), "{out}{err}");
    home.archive("none.wad", &files[..2]);
    let (_, err) = ends(&home.run(&["dml", "list", "--data", "none.wad"]), 2);
    assert!(err.contains("none.wad: contains no definitions of messages"), "{err}");
}

#[test]
fn messages_are_read_from_files_directories_and_archives_alike() {
    let home = Home::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let xml = fs::read(samples.join("ki-messages/MadeUpMessages.xml")).unwrap();
    let list = fs::read(samples.join("ki-files.bin")).unwrap();
    home.put("f/MadeUpMessages.xml", &xml);
    home.put("f/LatestFileList.bin", &list);
    home.put("game/readme.txt", "no messages");
    let files: [(&str, &[u8]); 4] = [
        ("Data/Other.xml", b"<Objects></Objects>"),
        ("Messages/MadeUpMessages.xml", &xml),
        ("LatestFileList.bin", &list),
        ("payload", &[1, 0, 0, 0]),
    ];
    home.archive("m.wad", &files);
    // An archive in a directory is used if the directory has no messages itself.
    home.put("game/Data/Root.wad", home.bytes("m.wad"));
    let run = |arguments: &[&str], code| ends(&home.run(&[&["dml"], arguments].concat()), code);
    for path in ["f", "f/MadeUpMessages.xml", "m.wad", "m.wad/Messages/MadeUpMessages.xml", "game"]
    {
        let list = ["list", "MADEUP"];
        let given = run(&[&list[..], &["--data", path]].concat(), 0).0;
        assert!(given.contains("MSG_WEATHER"), "{path}: {given}");
        assert_eq!(run(&[&list[..], &[path]].concat(), 0).0, given);
        assert!(run(&["show", "200.1", path], 0).0.contains("MADEUP.MSG_WEATHER"), "{path}");
        let (out, err) = run(&["check", path], 0);
        assert_eq!(out, "1 file: 1 service, 1 message, 0 warnings, 0 errors\n", "{path}: {err}");
        let fit = ["fit", "MADEUP.MSG_WEATHER", "--hex", "00", "--data", path];
        assert!(run(&fit, 1).0.starts_with("MADEUP.MSG_WEATHER: "), "{path}");
    }
    let (_, err) = run(&["list", "LOGIN", "MADEUP"], 2);
    assert!(err.contains("neither is a path; specify only one service"), "{err}");
    let (_, err) = run(&["list", "--data", "m.wad/payload"], 2);
    assert!(err.contains("m.wad/payload: contains no definitions of messages"), "{err}");

    let fit = |path: &str, code| run(&["fit", "LOGIN.MSG_USER_ADMIT_IND", path], code).0;
    assert!(fit("m.wad/payload", 1).starts_with("LOGIN.MSG_USER_ADMIT_IND: the last fields"));
    assert!(fit("m.wad", 1).contains("m.wad/payload: LOGIN.MSG_USER_ADMIT_IND: the last fields"));
    home.put("p/one", [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(fit("p", 0), "p/one: LOGIN.MSG_USER_ADMIT_IND: fits exactly\n");

    let table = |path: &str, code| run(&["table", path, "--to", "csv", "--table", "Base"], code);
    let csv = table("f/LatestFileList.bin", 0).0;
    assert!(csv.contains("Bin/game.exe"), "{csv}");
    for path in ["f", "m.wad", "m.wad/LatestFileList.bin", "game"] {
        assert_eq!(table(path, 0).0, csv, "{path}");
    }
    let (_, err) = table("p", 1);
    assert!(err.contains("p: contains no file of DML tables"), "{err}");
}

#[test]
fn objects_are_found_by_their_values() {
    let home = Home::new();
    mixed(&home);
    home.archive("c.wad", &[("c.xml", &character(&home))]);
    let find = |filter: &str, more: &[&str]| {
        let find = ["find", "--where", filter, "a.wad", "c.wad"];
        ends(&home.typed(&[&find[..], more].concat()), 0)
    };
    let (out, err) = find("class MadeUpPet and m_speed > 1", &[]);
    assert_eq!(
        out,
        "a.wad/Data/Nyx.xml  class MadeUpPet  m_speed: 1.25\n\
         a.wad/Pet  class MadeUpPet  m_speed: 1.25\n\
         a.wad/old  class MadeUpPet  m_speed: 1.25\n"
    );
    assert!(err.starts_with("3 of 5 objects; "), "{err}");
    // Objects in lists and objects in text are found.
    assert_eq!(find("m_snacks.m_points > 20", &[]).0.lines().count(), 3);
    let (out, _) = find("MadeUpSnack and m_points == 3", &["--json"]);
    let wanted = "{\"file\":\"a.wad/Data/Text.xml\",\"class\":\"class MadeUpSnack\",\
                  \"fields\":{\"m_points\":3}}\n";
    assert_eq!(out, wanted);
    let (out, _) = find("*Character and exists(m_zoneId)", &["--json-safe"]);
    assert!(out.contains(&format!("\"m_zoneId\":\"{ZONE}\"")), "{out}");
    assert_eq!(find("m_name == \"nobody\"", &[]).0, "");
    // Every class is derived from this one, which the type list does not contain.
    let (out, err) = find("class is PropertyClass and m_points == 3", &[]);
    assert_eq!(out, "a.wad/Data/Text.xml  class MadeUpSnack  m_points: 3\n");
    assert!(err.starts_with("1 of 5 objects; "), "{err}");
    assert_eq!(find("class is MadeUpPet", &[]).0.lines().count(), 3);
    assert_eq!(find("m_snacks is MadeUpSnack", &[]).0.lines().count(), 3);
    for (filter, wanted) in [
        ("class MadeUpPett", "no class is named MadeUpPett; did you mean MadeUpPet?"),
        ("class is PropertyClas", "no class is named PropertyClas"),
        ("m_points", "no class is named m_points; to test a property, use exists(m_points)"),
        ("m_sped > 1", "no class has a property m_sped; did you mean m_speed?"),
        ("m_speed >", "wanted"),
    ] {
        let find = ["find", "--where", filter, "a.wad"];
        let (_, err) = ends(&home.typed(&find), 2);
        assert!(err.contains(wanted), "{err}");
    }
    home.put("f/broken.xml", b"BINd\x07\0\0\0\x01\0\0\0");
    let (_, err) = ends(&home.typed(&["find", "--where", "class MadeUpPet", "f"]), 1);
    assert!(err.contains("f/broken.xml: ") && err.contains("0 of 0 objects, 1 failed"), "{err}");
}

#[test]
fn ids_are_found_in_type_lists_and_archives() {
    let home = Home::new();
    mixed(&home);
    let run = |more: &[&str], code: i32| ends(&home.run(&[&["string-id"], more].concat()), code);
    assert_eq!(run(&["--djb2", "m_templateID"], 0).0, "1075255962 m_templateID\n");
    let property = run(&["--property", "unsigned int", "m_templateID"], 0).0;
    assert_eq!(property, "1286746870 m_templateID\n");
    let find = ["--find", "0x4cb232f6", "1569547039", "1075255962"];
    let (out, err) = run(&find, 1);
    assert!(out.is_empty() && err.contains("--types or --in"), "{out}{err}");
    let (out, _) = run(&[&find[..], &["--types", "ki-types.json"]].concat(), 0);
    assert_eq!(
        out,
        "1286746870 class MadeUpSnack.m_templateID: unsigned int  (property)\n\
         1569547039 class MadeUpSnack\n\
         1075255962 m_templateID  (djb2)\n"
    );
    // Names of files, texts in objects, and lines of text.
    let ids = run(&["Stone", "Nyx", "roll over", "one two"], 0).0;
    let ids: Vec<&str> = ids.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let wide: Vec<u8> =
        "\u{feff}Head\r\none two\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    home.put("words.lang", wide);
    let inside = ["--in", "a.wad", "words.lang", "--types", "ki-types.json", "--json"];
    let (out, _) = run(&[&["--find"], &ids[..], &inside].concat(), 0);
    for (id, text) in ids.iter().zip(["Stone", "Nyx", "roll over", "one two"]) {
        assert!(out.contains(&format!("{{\"id\":{id},\"text\":\"{text}\"}}")), "{out}");
    }
}

#[test]
fn names_that_do_not_exist_are_reported_alike() {
    let home = Home::new();
    home.archive("a.wad", &[("Data/Pet.xml", b"<Objects/>"), ("Data/x.txt", b"x")]);
    home.put("zone.lang", "");
    for (words, wanted) in [
        (&["dml", "show", "MSG_ATTACH"][..], "did you mean \"GAME.MSG_ATTACH\"?"),
        (&["dml", "show", "LOGIN.MSG_ATTACH"], "did you mean \"GAME.MSG_ATTACH\"?"),
        (&["dml", "show", "MSG_ATACH"], "did you mean \"GAME.MSG_ATTACH\"?"),
        (&["dml", "show", "x"], "use SERVICE.MESSAGE; `worldwire ki dml list SERVICE` lists"),
        (&["dml", "fit", "GAME.MSG_ATTCH", "--hex", "00"], "did you mean \"GAME.MSG_ATTACH\"?"),
        (&["dml", "list", "LOGN"], "unknown service \"LOGN\"; did you mean \"LOGIN\"?"),
        (&["dml", "list", "NOWHERE"], "`worldwire ki dml list` lists them"),
        // The names that objects have after decoding.
        (&["wad", "cat", "a.wad", "Data/Pet.xml.json"], "did you mean \"Data/Pet.xml\"?"),
        (&["wad", "list", "a.wad", "Pet.xml.json"], "did you mean \"Data/Pet.xml\"?"),
        (&["wad", "update", "a.wad", "--remove", "Data/Pet.xml.json", "-o", "b.wad"], "Pet.xml\"?"),
    ] {
        let (out, err) = ends(&home.run(words), 1);
        assert!(out.is_empty() && err.contains(wanted), "{words:?}: {err}");
    }
    let (_, err) = ends(&home.typed(&["op", "decode", "a.wad/Pet.xml.json"]), 1);
    assert!(err.contains("did you mean \"Data/Pet.xml\"?"), "{err}");
}

#[test]
fn a_client_line_is_explained_and_repeated() {
    let home = Home::new();
    let line = ["client-args", "--explain", "--", "-L", "127.0.0.1", "12000", "-V"];
    let (out, _) = ends(&home.run(&line), 0);
    assert!(out.ends_with("\n\n-L 127.0.0.1 12000 -V\n"), "{out}");
}

#[test]
fn a_text_is_found_in_either_order() {
    let home = Home::new();
    let zone = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/ki-zone.wad");
    fs::copy(zone, home.at("zone.wad")).unwrap();
    let (first, _) = ends(&home.run(&["lang", "find", "hub", "zone.wad"]), 0);
    let (last, _) = ends(&home.run(&["lang", "find", "zone.wad", "hub"]), 0);
    assert!(!first.is_empty());
    assert_eq!(first, last);
    // A file with that name is searched.
    home.put("hub", "");
    ends(&home.run(&["lang", "find", "zone.wad", "hub"]), 1);
}

#[test]
fn tables_in_csv_come_from_standard_input_too() {
    let home = Home::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    fs::copy(samples.join("ki-files.bin"), home.at("files.bin")).unwrap();
    let (listed, _) = ends(&home.run(&["files", "list", "files.bin"]), 0);
    for (name, more) in [("all.csv", &[][..]), ("Base.csv", &["--table", "Base"])] {
        let to_csv = ["dml", "table", "files.bin", "--to", "csv", "-o", name];
        ends(&home.run(&[&to_csv[..], more].concat()), 0);
        let piped = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
            command.arg("ki").args(words).stdin(fs::File::open(home.at(name)).unwrap());
            command.output().unwrap()
        };
        assert_eq!(ends(&piped(&["files", "list", "-"]), 0).0, listed);
        let from_file = ends(&home.run(&["dml", "table", name]), 0).0;
        let table = |more: &[&str]| piped(&[&["dml", "table", "-"], more].concat());
        assert_eq!(ends(&table(more), 0).0, from_file);
        if !more.is_empty() {
            assert!(ends(&table(&[]), 2).1.contains("use --table NAME"));
        }
    }
}
