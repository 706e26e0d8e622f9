//! Game objects taken out of folders and archives, changed, and put back.

use std::fs;
use std::process::Command;

use crate::ki_home::{Home, ends, sample};

pub(super) const ZONE: u64 = 10_903_862_769_591_682_850;

/// A file with an integer that a double cannot represent.
pub(super) fn character(home: &Home) -> Vec<u8> {
    home.put("c.json", format!("{{\"$class\":\"class MadeUpCharacter\",\"m_zoneId\":{ZONE}}}"));
    ends(&home.typed(&["op", "encode", "c.json", "-o", "c.bin", "--force"]), 0);
    home.bytes("c.bin")
}

#[test]
fn deep_writing_honours_the_mask() {
    let home = Home::new();
    home.put(
        "list.json",
        r#"{"class A": {"hash": 7, "properties": {
        "m_net": {"type": "int", "id": 0, "flags": 24, "hash": 70},
        "m_save": {"type": "int", "id": 1, "flags": 1, "hash": 71},
        "m_old": {"type": "int", "id": 2, "flags": 88, "hash": 72}}}}"#,
    );
    home.put("a.json", r#"{"$class":"A","m_net":1,"m_save":2,"m_old":3}"#);
    let kept = |mask: &[&str]| {
        let types = ["--types", "list.json", "--deep"];
        let encode = ["op", "encode", "a.json", "-o", "a.bin", "--force"];
        ends(&home.run(&[&encode[..], &types, mask].concat()), 0);
        let decode = ["op", "decode", "a.bin"];
        let json = ends(&home.run(&[&decode[..], &types].concat()), 0).0;
        ["m_net", "m_save", "m_old"].map(|name| json.contains(name))
    };
    assert_eq!(kept(&[]), [true, true, true]);
    assert_eq!(kept(&["--mask", "0x18"]), [true, false, false]);
    assert_eq!(kept(&["--mask", "1"]), [false, true, false]);
}

#[test]
fn rounded_integers_are_refused() {
    let home = Home::new();
    let before = character(&home);
    ends(&home.typed(&["op", "decode", "c.bin", "-o", "wide.json"]), 0);
    let json = home.text("wide.json");
    assert!(json.contains("\"exact\":9007199254740993"), "{json}");
    // This is how node and jq 1.6 round the numbers.
    let rounded = json.replace("9591682850", "9591683000").replace("740993", "740992");
    home.put("wide.json", &rounded);
    let (_, err) = ends(&home.typed(&["op", "encode", "wide.json", "-o", "no.bin"]), 1);
    let wanted = "stream.exact: wanted 9007199254740993, found 9007199254740992";
    assert!(err.contains(wanted) && err.contains("--json-safe"), "{err}");
    assert!(!home.at("no.bin").exists());
    home.put("wide.json", rounded.replace("740992", "740992.0"));
    ends(&home.typed(&["op", "encode", "wide.json", "-o", "no.bin"]), 1);
    // As strings, they are unchanged.
    ends(&home.typed(&["op", "decode", "c.bin", "--json-safe", "-o", "safe.json"]), 0);
    let json = home.text("safe.json");
    assert!(json.contains(&format!("\"{ZONE}\"")) && !json.contains("exact"), "{json}");
    let (_, err) = ends(&home.typed(&["op", "encode", "safe.json", "-o", "safe.bin"]), 0);
    assert_eq!((home.bytes("safe.bin"), err.as_str()), (before, ""));
}

#[test]
fn integers_that_look_rounded_are_reported() {
    let home = Home::new();
    let rounded = "{\"$class\":\"class MadeUpCharacter\",\"m_zoneId\":10903862769591683000}";
    home.put("r.json", rounded);
    let (_, err) = ends(&home.typed(&["op", "encode", "r.json", "-o", "r.bin"]), 0);
    let wanted = "m_zoneId: 10903862769591683000 looks like an integer that was rounded";
    assert!(err.contains(wanted), "{err}");
    // A number that was not rounded may be in any form.
    ends(&home.typed(&["op", "decode", "r.bin", "-o", "whole.json"]), 0);
    let (_, err) = ends(&home.typed(&["op", "encode", "whole.json", "--hex"]), 0);
    assert_eq!(err, "");
    character(&home);
    let (_, err) = ends(&home.typed(&["op", "encode", "c.json", "--hex"]), 0);
    assert_eq!(err, "");
}

#[test]
fn every_command_can_write_safe_json() {
    let home = Home::new();
    home.archive("a.wad", &[("c.xml", &character(&home))]);
    let safe = format!("\"{ZONE}\"");
    let extract = ["wad", "extract", "a.wad", "-C", "out", "--decode", "json", "--json-safe"];
    ends(&home.typed(&extract), 0);
    assert!(home.text("out/c.xml.json").contains(&safe));
    let cat = ["wad", "cat", "a.wad", "c.xml", "--decode", "json", "--json-safe"];
    assert!(ends(&home.typed(&cat), 0).0.contains(&safe));
    let lines = ends(&home.typed(&["op", "decode", "a.wad", "--json-safe"]), 0).0;
    assert!(lines.starts_with("{\"file\":\"a.wad/c.xml\",") && lines.contains(&safe), "{lines}");
    let table = format!("Id:GID,Name:STR\n{ZONE},a\n");
    home.put("t.csv", table);
    let (json, _) = ends(&home.run(&["dml", "table", "t.csv", "--json-safe"]), 0);
    assert!(json.contains(&safe), "{json}");
    home.put("t.json", json.replace(&safe, "10903862769591683000"));
    let (_, err) = ends(&home.run(&["dml", "table", "t.json"]), 0);
    assert!(err.contains("10903862769591683000 looks like an integer that was rounded"), "{err}");
    home.put("t.json", json);
    assert_eq!(ends(&home.run(&["dml", "table", "t.json"]), 0).1, "");
}

/// An archive with an object, an object that is stored differently from ours, and other files.
pub(super) fn mixed(home: &Home) {
    let pet = home.bytes("ki-pet.xml");
    let text =
        b"<Objects><Class Name=\"class MadeUpSnack\"><m_points>3</m_points></Class></Objects>";
    home.archive(
        "a.wad",
        &[
            ("Data/Nyx.xml", &pet),
            ("Data/Text.xml", text),
            ("Data/config.json", b"{\"a\": 1}"),
            ("Data/odd.json", b"{\"object\": 1, \"other\": 2}"),
            ("Pet", &pet),
            ("Stone.dds", &[0xff, 0xfe, 0, 1]),
            ("old", &home.bytes("ki-pet.xml")),
        ],
    );
}

#[test]
fn an_archive_round_trips_through_a_folder() {
    for form in ["json", "xml"] {
        let home = Home::new();
        mixed(&home);
        let extract = ["wad", "extract", "a.wad", "-C", "out", "--decode", form];
        let (_, err) = ends(&home.typed(&extract), 0);
        assert!(err.starts_with("7 files extracted, 3 decoded; "), "{err}");
        // Nothing has changed, and detecting this needs no type list.
        let update = ["wad", "update", "a.wad", "--from", "out", "-o", "b.wad", "--force"];
        let (out, err) = ends(&home.run(&update), 0);
        assert!(out.is_empty() && err.starts_with("0 changed, 0 added, 0 removed, 7 unchanged"));
        assert_eq!(home.bytes("a.wad"), home.bytes("b.wad"));
        let (out, err) = ends(&home.typed(&["op", "encode", "out", "-o", "back"]), 0);
        assert!(out.is_empty() && !home.at("back").exists(), "{out}");
        assert!(err.starts_with("0 encoded, 3 unchanged, 4 skipped, 0 failed"), "{err}");
        let all = ["op", "encode", "out", "-o", "all", "--all"];
        let (_, err) = ends(&home.typed(&all), 0);
        assert!(err.starts_with("3 encoded, 4 skipped, 0 failed"), "{err}");
        assert_eq!(home.bytes("all/Data/Nyx.xml"), home.bytes("ki-pet.xml"));
        // A change, a new file and a change in another file.
        let name = match form {
            "json" => "out/Pet.json",
            _ => "out/Pet.xml",
        };
        home.put(name, home.text(name).replace("Nyx", "Rex"));
        home.put("out/Stone.dds", [1, 2]);
        home.put("out/New.txt", "new");
        let second = name.replace("Pet", "Second");
        home.put(&second, home.text(name));
        let (out, err) = ends(&home.run(&update), 1);
        assert!(out.is_empty() && err.contains("supply the type list with --types"), "{err}");
        // One line covers all objects.
        assert_eq!(err.matches("--types").count(), 1, "{err}");
        assert!(err.contains("1 more object"), "{err}");
        fs::remove_file(home.at(&second)).unwrap();
        let (out, err) = ends(&home.typed(&[&update[..], &["--remove", "old"]].concat()), 0);
        assert_eq!(out, "+ New.txt\n~ Pet\n~ Stone.dds\n- old\n");
        assert!(err.starts_with("2 changed, 1 added, 1 removed, 4 unchanged; "), "{err}");
        let (out, _) = ends(&home.run(&["wad", "diff", "a.wad", "b.wad"]), 1);
        assert_eq!(out, "+ New.txt\n~ Pet\n~ Stone.dds\n- old\n");
        let cat = ["wad", "cat", "b.wad", "Pet", "--decode", "json"];
        assert!(ends(&home.typed(&cat), 0).0.contains("\"m_name\":\"Rex\""));
        let text = ends(&home.run(&["wad", "cat", "b.wad", "Data/Text.xml"]), 0).0;
        assert!(text.starts_with("<Objects>"), "text stays text: {text}");
    }
}

#[test]
fn creating_and_updating_treat_new_files_alike() {
    for form in ["json", "xml"] {
        let home = Home::new();
        mixed(&home);
        ends(&home.typed(&["wad", "extract", "a.wad", "-C", "out", "--decode", form]), 0);
        home.archive("empty.wad", &[]);
        // Objects in text form need a type list, unless they are kept as text.
        for command in [&["create", "out"][..], &["update", "empty.wad", "--from", "out"]] {
            let command = [&["wad"], command, &["-o", "b.wad"]].concat();
            let (_, err) = ends(&home.run(&command), 1);
            assert!(err.contains("supply the type list with --types; --text keeps"), "{err}");
            assert!(err.contains("2 more objects") && !home.at("b.wad").exists(), "{err}");
        }
        for more in [&["--types", "ki-types.json"][..], &["--text", "**"]] {
            let create = [&["wad", "create", "out", "-o", "b.wad", "--force"], more].concat();
            ends(&home.run(&create), 0);
            let update = ["wad", "update", "empty.wad", "--from", "out", "-o", "c.wad", "--force"];
            ends(&home.run(&[&update, more].concat()), 0);
            assert_eq!(home.bytes("b.wad"), home.bytes("c.wad"), "{more:?}");
        }
        let name = if form == "json" { "Pet.json" } else { "Pet.xml" };
        let kept = home.run(&["wad", "cat", "b.wad", name]);
        assert_eq!(ends(&kept, 0).0, home.text(&format!("out/{name}")));
        // With the type list, extracting and creating return the same archive, except that XML adds
        // an extension to names.
        ends(&home.typed(&["wad", "create", "out", "-o", "d.wad"]), 0);
        let (renamed, code) = match form {
            "json" => ("", 0),
            _ => ("- Pet\n+ Pet.xml\n- old\n+ old.xml\n", 1),
        };
        assert_eq!(ends(&home.run(&["wad", "diff", "a.wad", "d.wad"]), code).0, renamed);
    }
    let home = Home::new();
    home.archive("a.wad", &[("a", b"")]);
    let update =
        |more: &[&str]| home.run(&[&["wad", "update", "a.wad", "-o", "b.wad"], more].concat());
    assert!(ends(&update(&["--text", "a"]), 2).1.contains("--text needs --from"));
    home.put("out/x", "");
    let (_, err) = ends(&update(&["--from", "out", "--text", "y"]), 1);
    assert!(err.contains("y: matches no file in the directory"), "{err}");
}

#[test]
fn objects_in_xml_are_decoded_if_they_are_named() {
    let home = Home::new();
    mixed(&home);
    let text =
        "<Objects><Class Name=\"class MadeUpSnack\"><m_points>3</m_points></Class></Objects>";
    home.put("Text.xml", text);
    let object = "{\"$class\":\"class MadeUpSnack\",\"m_points\":3}";
    for input in ["Text.xml", "a.wad/Data/Text.xml"] {
        let (out, _) = ends(&home.typed(&["op", "decode", input]), 0);
        assert!(out.starts_with(&format!("{{\"object\":{object},\"stream\":")), "{out}");
    }
    let (out, _) = ends(&home.typed(&["op", "decode", "Text.xml", "--to", "text"]), 0);
    assert!(out.contains("m_points: 3"), "{out}");
    // The comment states how the object is stored.
    for stream in [&["--form", "bind"][..], &["--form", "bare", "--deep"]] {
        home.put("s.json", object);
        let encode = [&["op", "encode", "s.json", "-o", "s.bin", "--force"], stream].concat();
        ends(&home.typed(&encode), 0);
        let form = if stream.contains(&"--deep") { &["--deep"][..] } else { &[] };
        let decode = |input: &str, to: &str, form: &[&str]| {
            ends(&home.typed(&[&["op", "decode", input, "--to", to], form].concat()), 0).0
        };
        home.put("s.xml", decode("s.bin", "xml", form));
        assert_eq!(decode("s.xml", "json", &[]), decode("s.bin", "json", form));
        assert_eq!(decode("s.xml", "xml", &[]), home.text("s.xml"));
    }
    // Files that were found stay as they are.
    let (out, err) = ends(&home.typed(&["op", "decode", "a.wad"]), 0);
    assert!(!out.contains("Text.xml") && err.contains("3 decoded, 4 skipped"), "{err}");
    for (text, wanted) in [
        ("<Objects/>", "contains 0 objects, not one"),
        ("<Objects><Class Name=\"class Nobody\"/></Objects>", "no type list has \"class Nobody\""),
        ("<Objects", "Text.xml:1:1"),
    ] {
        home.put("Text.xml", text);
        let (_, err) = ends(&home.typed(&["op", "decode", "Text.xml"]), 1);
        assert!(err.contains(wanted), "{err}");
    }
}

#[test]
fn numbers_with_names_round_trip_and_are_found() {
    let home = Home::new();
    let list = r#"{"class A": {"hash": 7, "properties": {
        "m_n": {"type": "unsigned int", "id": 0, "flags": 1, "hash": 70,
            "enum_options": {"big": 1000}},
        "m_i": {"type": "int", "id": 1, "flags": 1, "hash": 71, "enum_options": {"none": -1}}}}}"#;
    home.put("list.json", list);
    let types = ["--types", "list.json"];
    let run = |arguments: &[&str], code| ends(&home.run(&[arguments, &types].concat()), code);
    home.put("d/a.json", r#"{"$class":"class A","m_n":"big","m_i":-1}"#);
    run(&["op", "encode", "d/a.json", "-o", "d/a.bin"], 0);
    let (json, _) = run(&["op", "decode", "d/a.bin"], 0);
    assert!(json.contains(r#""m_n":"big","m_i":"none""#), "{json}");
    let (xml, _) = run(&["op", "decode", "d/a.bin", "--to", "xml"], 0);
    assert!(xml.contains("<m_n>big</m_n>") && xml.contains("<m_i>none</m_i>"), "{xml}");
    let (text, _) = run(&["op", "decode", "d/a.bin", "--to", "text"], 0);
    assert!(text.contains("m_n: big (1000)") && text.contains("m_i: none (-1)"), "{text}");
    for (form, decoded) in [("json", &json), ("xml", &xml)] {
        let name = format!("again.{form}");
        home.put(&name, decoded);
        run(&["op", "encode", &name, "-o", "again.bin", "--force"], 0);
        assert_eq!(home.bytes("again.bin"), home.bytes("d/a.bin"), "{form}");
    }
    for filter in ["m_n == big", "m_n > 999", "m_n == 1000", "m_i == none", "m_i < 0"] {
        assert_eq!(run(&["find", "--where", filter, "d"], 0).0.lines().count(), 1, "{filter}");
    }
    let (_, err) = run(&["find", "--where", "m_n == bigg", "d"], 2);
    assert!(err.contains("m_n has no value named bigg; did you mean big?"), "{err}");
}

#[test]
fn a_reformatted_object_is_unchanged() {
    let home = Home::new();
    mixed(&home);
    let extract = ["wad", "extract", "a.wad", "-C", "out", "--decode", "json", "Data/*"];
    ends(&home.typed(&extract), 0);
    let json = home.text("out/Data/Nyx.xml.json");
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    // This sorts all keys.
    let sorted = serde_json::to_string_pretty(&value).unwrap();
    assert!(sorted.find("m_color").unwrap() < sorted.find("m_name").unwrap(), "{sorted}");
    home.put("out/Data/Nyx.xml.json", sorted);
    let update = ["wad", "update", "a.wad", "--from", "out", "-o", "b.wad"];
    assert_eq!(ends(&home.typed(&update), 0).0, "");
    let (_, err) = ends(&home.typed(&["op", "encode", "out", "-o", "back"]), 0);
    assert!(err.starts_with("0 encoded, 1 unchanged"), "{err}");
    // Our own JSON with a mistake is not treated as an unrelated file.
    home.put("out/Data/Nyx.xml.json", json.replace("m_speed", "m_sped"));
    let update = ["wad", "update", "a.wad", "--from", "out", "-o", "c.wad"];
    let (_, err) = ends(&home.typed(&update), 1);
    assert!(err.contains("did you mean \"m_speed\"?") && !home.at("c.wad").exists(), "{err}");
}

#[test]
fn replacing_an_object_is_a_change() {
    for form in ["json", "xml"] {
        let home = Home::new();
        mixed(&home);
        let extract = ["wad", "extract", "a.wad", "-C", "out", "--decode", form];
        ends(&home.typed(&extract), 0);
        let end = if form == "json" { ".json" } else { "" };
        let name = |name: &str| format!("out/Data/{name}.xml{end}");
        home.put(&name("Nyx"), home.text(&name("Nyx")).replace("Nyx", "Rex"));
        let update = ["wad", "update", "a.wad", "--from", "out", "-o", "b.wad"];
        assert_eq!(ends(&home.typed(&update), 0).0, "~ Data/Nyx.xml\n");
        // Applying the folder of one archive to another archive that was changed undoes the change.
        let extract = ["wad", "extract", "a.wad", "-C", "out", "--decode", form, "--force"];
        ends(&home.typed(&extract), 0);
        let update = ["wad", "update", "b.wad", "--from", "out", "-o", "c.wad"];
        assert_eq!(ends(&home.typed(&update), 0).0, "~ Data/Nyx.xml\n");
        let diff = ["wad", "diff", "a.wad", "c.wad"];
        assert_eq!(ends(&home.run(&diff), 0).0, "");
        // A copy of an object, unchanged since it was extracted.
        let extract = ["wad", "extract", "b.wad", "-C", "new", "--decode", form];
        ends(&home.typed(&extract), 0);
        let nyx = format!("new/Data/Nyx.xml{end}");
        let copies = ["new/Data/Copy", if form == "json" { "new/Pet" } else { "new/Pet.xml" }];
        let ends_with =
            |copy: &str| if copy.ends_with("Copy") { format!(".xml{end}") } else { end.into() };
        for copy in copies {
            home.put(&format!("{copy}{}", ends_with(copy)), home.text(&nyx));
        }
        let update = ["wad", "update", "b.wad", "--from", "new", "-o", "d.wad"];
        assert_eq!(ends(&home.typed(&update), 0).0, "+ Data/Copy.xml\n~ Pet\n");
        let (_, err) = ends(&home.typed(&["op", "encode", "new", "-o", "back"]), 0);
        assert!(err.starts_with("2 encoded, 2 unchanged"), "{err}");
    }
}

#[test]
fn a_syntax_error_does_not_add_a_file() {
    let home = Home::new();
    mixed(&home);
    ends(&home.typed(&["wad", "extract", "a.wad", "-C", "out", "--decode", "json"]), 0);
    let whole = home.text("out/Pet.json");
    let wide = format!("\u{feff}{whole}");
    let wide: Vec<u8> = wide.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let slips: [(&[u8], &str); 5] = [
        (whole.replace("\"Nyx\",", "\"Nox\"").as_bytes(), "column"),
        (b"", "EOF"),
        (&whole.as_bytes()[..whole.len() / 2], "EOF"),
        (format!("[{whole}]").as_bytes(), "not an object"),
        (&wide, "UTF-8"),
    ]
    .map(|(text, wanted)| (&*Vec::leak(text.to_vec()), wanted));
    for (text, wanted) in slips {
        home.put("out/Pet.json", text);
        let update = ["wad", "update", "a.wad", "--from", "out", "-o", "b.wad"];
        let (out, err) = ends(&home.typed(&update), 1);
        assert!(out.is_empty() && err.contains(wanted), "{err}");
        assert!(err.contains("Pet.json") && !home.at("b.wad").exists(), "{err}");
    }
    home.put("out/Pet.json", whole.replace("\"Nyx\",", "\"Nox\""));
    let (_, err) = ends(&home.typed(&["op", "encode", "out", "-o", "back"]), 1);
    assert!(err.contains("Pet.json") && err.contains("2 unchanged, 4 skipped, 1 failed"), "{err}");
    // Text cannot be written back.
    ends(&home.typed(&["wad", "extract", "a.wad", "-C", "text", "--decode", "text"]), 0);
    let update = ["wad", "update", "a.wad", "--from", "text", "-o", "b.wad"];
    let (_, err) = ends(&home.typed(&update), 1);
    assert!(
        err.contains("as text, which cannot be encoded") && !home.at("b.wad").exists(),
        "{err}"
    );
}

#[test]
fn a_wrong_value_in_xml_is_an_error_too() {
    let home = Home::new();
    mixed(&home);
    ends(&home.typed(&["wad", "extract", "a.wad", "-C", "out", "--decode", "xml"]), 0);
    let whole = home.text("out/Data/Nyx.xml");
    for (from, to) in [("1.25", "1,25"), ("m_speed", "m_sped"), ("CHAT", "CHAD")] {
        home.put("out/Data/Nyx.xml", whole.replace(from, to));
        let update = ["wad", "update", "a.wad", "--from", "out", "-o", "b.wad"];
        let (out, err) = ends(&home.typed(&update), 1);
        assert!(out.is_empty() && !home.at("b.wad").exists(), "{out}{err}");
        let encode = ["op", "encode", "out/Data/Nyx.xml", "-o", "c.bin"];
        ends(&home.typed(&encode), 1);
        assert!(!home.at("c.bin").exists());
    }
    // Without the comment at the top, it is still recognised as the same object.
    let bare = whole.split_once("-->\n").unwrap().1.replace("Nyx", "Rex");
    home.put("out/Data/Nyx.xml", bare);
    let update = ["wad", "update", "a.wad", "--from", "out", "-o", "b.wad"];
    assert_eq!(ends(&home.typed(&update), 0).0, "~ Data/Nyx.xml\n");
    let cat = ["wad", "cat", "b.wad", "Data/Nyx.xml", "--decode", "json"];
    assert!(ends(&home.typed(&cat), 0).0.contains("\"m_name\":\"Rex\""));
}

#[test]
fn binary_files_from_json_are_compared_by_content() {
    let home = Home::new();
    mixed(&home);
    ends(&home.typed(&["op", "decode", "a.wad", "-o", "out"]), 0);
    assert!(!home.text("out/Pet.json").contains("digest"), "all of this is encoded again");
    let (out, err) = ends(&home.typed(&["op", "encode", "out", "-o", "back"]), 0);
    assert!(out.is_empty() && err.starts_with("3 encoded, 0 skipped, 0 failed"), "{err}");
    let update = ["wad", "update", "a.wad", "--from", "back", "-o", "b.wad"];
    assert_eq!(ends(&home.typed(&update), 0).0, "");
}

#[test]
fn two_files_do_not_become_one() {
    let home = Home::new();
    home.archive("a.wad", &[("Nyx.xml", &home.bytes("ki-pet.xml"))]);
    ends(&home.typed(&["wad", "extract", "a.wad", "-C", "out", "--decode", "json"]), 0);
    home.put("out/Nyx.xml", "something else");
    home.put("out/Nyx.xml.json", home.text("out/Nyx.xml.json").replace("Nyx", "Rex"));
    let update = ["wad", "update", "a.wad", "--from", "out", "-o", "b.wad"];
    let (_, err) = ends(&home.typed(&update), 2);
    assert!(err.contains("would both become Nyx.xml"), "{err}");
}

#[test]
fn the_form_can_be_chosen() {
    let home = Home::new();
    let xml = "<Objects><Class Name=\"class MadeUpSnack\"><m_points>3</m_points></Class></Objects>";
    home.put("s.xml", xml);
    let hex = |more: &[&str], code: i32| {
        let encode = ["op", "encode", "s.xml", "--hex"];
        ends(&home.typed(&[&encode[..], more].concat()), code)
    };
    assert!(hex(&[], 0).0.starts_with("42494e640f000000"));
    let (out, err) = hex(&["--form", "bind", "--flags", "0x7"], 0);
    assert!(out.starts_with("42494e6407000000") && err.is_empty(), "{out} {err}");
    let (out, err) = hex(&["--deep", "--flags", "0x2"], 0);
    assert!(!out.starts_with("42494e64"), "{out}");
    assert!(err.contains("written without BINd; --form bind writes a BINd file"), "{err}");
    let (out, err) = hex(&["--deep", "--flags", "0x2", "--form", "bare"], 0);
    assert!(!out.starts_with("42494e64") && err.is_empty(), "{err}");
    let (out, _) = hex(&["--form", "bare"], 1);
    assert!(out.is_empty(), "a bare stream is shallow, and lacks properties: {out}");
    // The command line overrides the values in the text.
    ends(&home.typed(&["op", "decode", "ki-pet.xml", "-o", "p.json"]), 0);
    let (out, _) = ends(&home.typed(&["op", "encode", "p.json", "--flags", "0x7", "--hex"]), 0);
    assert!(out.starts_with("42494e6407000000"), "{out}");
    let (out, _) = ends(&home.typed(&["op", "encode", "p.json", "--form", "bare", "--hex"]), 0);
    assert!(out.starts_with("0f000000"), "{out}");
    // The flags add compression and can remove the flags word from a bare stream.
    let recorded = home.text("p.json").replace("\"flags\":15", "\"flags\":7");
    home.put("q.json", recorded.replace("\"compressed\":true", "\"compressed\":false"));
    let (out, _) = ends(&home.typed(&["op", "encode", "q.json", "--flags", "0xf", "--hex"]), 0);
    assert!(out.starts_with("42494e640f00000001"), "{out}");
    let bare = ["op", "encode", "q.json", "--form", "bare", "--flags", "0x6", "--hex"];
    let (out, _) = ends(&home.typed(&bare), 0);
    assert!(out.starts_with("497ec46d"), "{out}");
    // XML keeps the object's original form.
    home.put("p.json", home.text("p.json").replace("\"flags\":15", "\"flags\":7"));
    ends(&home.typed(&["op", "encode", "p.json", "-o", "p.bin"]), 0);
    ends(&home.typed(&["op", "decode", "p.bin", "--to", "xml", "-o", "p.xml"]), 0);
    ends(&home.typed(&["op", "encode", "p.xml", "-o", "again.bin"]), 0);
    assert_eq!(home.bytes("again.bin"), home.bytes("p.bin"));
    home.archive("a.wad", &[]);
    fs::create_dir(home.at("in")).unwrap();
    ends(&home.run(&["wad", "create", "in", "-o", "b.wad", "--flags", "0x1"]), 0);
    let (_, err) = ends(&home.run(&["wad", "create", "in", "-o", "c.wad", "--flags", "0x100"]), 2);
    assert!(err.contains("needs a number below 256"), "{err}");
}

#[test]
fn a_truncated_file_list_is_refused() {
    let home = Home::new();
    let whole = sample("ki-files.bin");
    home.put("whole.bin", &whole);
    assert_eq!(ends(&home.run(&["dml", "table", "whole.bin"]), 0).1, "");
    // The last table begins with its count, before its header.
    let name = whole.windows(4).rposition(|window| window == b"Base").unwrap();
    let head = [2, 1];
    let at = whole[..name].windows(2).rposition(|window| window == head).unwrap() - 4;
    home.put("cut.bin", &whole[..at]);
    let (out, err) = ends(&home.run(&["dml", "table", "cut.bin"]), 1);
    assert!(out.contains("About"), "existing definitions are listed: {out}");
    let wanted = "table Base is missing, though _TableList names it: is the file truncated?";
    assert!(err.contains(wanted), "{err}");
}

#[test]
fn an_object_of_an_unrelated_class_is_reported() {
    let home = Home::new();
    let snacks = "{\"$class\":\"class MadeUpPet\",\"m_snacks\":[{\"$class\":\"class MadeUpPet\"}]}";
    home.put("p.json", snacks);
    let (_, err) = ends(&home.typed(&["op", "encode", "p.json", "-o", "p.bin"]), 0);
    let wanted = "class MadeUpPet where class MadeUpSnack belongs";
    assert!(err.contains(&format!("warning: m_snacks: {wanted}")), "{err}");
    let (_, err) = ends(&home.typed(&["op", "decode", "p.bin", "-o", "again.json"]), 0);
    assert!(err.contains(wanted), "{err}");
}

#[test]
fn bytes_after_a_message_are_reported() {
    let home = Home::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    let hex = "07140e000100000003000000abcd";
    let output = command.args(["decode", "ki.dml", "--hex", hex]).output().unwrap();
    let (out, err) = ends(&output, 0);
    assert!(out.contains("_trailing: abcd"), "{out}");
    assert!(err.contains("LOGIN.MSG_USER_ADMIT_IND: 2 bytes too many"), "{err}");
    drop(home);
}

/// Files of many gigabytes are sparse, so they take neither time nor space.
#[cfg(target_os = "linux")]
#[test]
fn a_lost_order_is_reported() {
    let home = Home::new();
    let message = |order: &str| format!("<MSG_A><RECORD>{order}<X TYPE=\"INT\"/></RECORD></MSG_A>");
    let order = |number: u8| format!("<_MsgOrder NOXFER=\"TRUE\">{number}</_MsgOrder>");
    let check = |first: &str, second: &str| {
        let info = "<_ProtocolInfo><RECORD><ServiceID>200</ServiceID><ProtocolType>T</ProtocolType>\
                    <ProtocolVersion>1</ProtocolVersion><ProtocolDescription>d\
                    </ProtocolDescription></RECORD></_ProtocolInfo>";
        home.put("m.xml", format!("<T>{info}{}{}</T>", message(first), message(second)));
        let shown = home.run(&["dml", "list", "T", "--data", "m.xml"]);
        let (out, err) = ends(&shown, 0);
        (out, err)
    };
    let (out, err) = check(&order(3), &order(5));
    assert!(out.starts_with("200/3 "), "{out}");
    assert!(err.contains("duplicate message MSG_A merged, but its order 5 is dropped"), "{err}");
    let (out, err) = check("", &order(5));
    assert!(out.starts_with("200/5 ") && !err.contains("dropped"), "{out}{err}");
    let (_, err) = check(&order(3), &order(3));
    assert!(!err.contains("dropped"), "{err}");
}
