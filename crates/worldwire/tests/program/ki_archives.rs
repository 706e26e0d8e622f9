//! Commands that read and write archives of game objects.

use std::fs;

use crate::ki_edit::mixed;
use crate::ki_home::{Home, ends};

#[test]
fn commands_take_archives() {
    let home = Home::new();
    mixed(&home);
    home.archive("b.wad", &[("Other.xml", &home.bytes("ki-pet.xml"))]);
    let (_, err) = ends(&home.typed(&["op", "decode", "a.wad", "b.wad", "-o", "out"]), 0);
    assert!(err.starts_with("4 decoded, 4 skipped, 0 failed; "), "{err}");
    assert!(home.at("out/Data/Nyx.xml.json").exists() && home.at("out/Other.xml.json").exists());
    // Each result has its own path.
    home.archive("c.wad", &[("Other.xml", &home.bytes("ki-pet.xml")), ("Stone.dds", b"x")]);
    let (_, err) = ends(&home.typed(&["op", "decode", "b.wad", "c.wad", "-o", "no"]), 2);
    assert!(err.contains("b.wad/Other.xml and c.wad/Other.xml would both be written to"), "{err}");
    home.archive("d.wad", &[("Stone.dds", b"x")]);
    let (_, err) = ends(&home.typed(&["op", "decode", "a.wad", "d.wad", "-o", "two"]), 0);
    assert!(err.starts_with("3 decoded, 5 skipped, 0 failed; "), "{err}");
    let (out, err) = ends(&home.typed(&["op", "guess", "a.wad"]), 0);
    assert!(out.contains("a.wad/Data/Nyx.xml: class MadeUpPet: a BINd file"), "{out}");
    assert_eq!(err, "3 objects, 4 skipped, 0 failed\n");
    let (out, _) = ends(&home.run(&["op", "types", "ki-types.json", "--used-in", "a.wad"]), 0);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 2, "{out}");
    // The object in text XML is counted in the same way.
    assert!(lines[0].starts_with("        4  1569547039") && lines[0].ends_with("MadeUpSnack"));
    // An entry whose name leads outside the folder is not written.
    let hostile = home.bytes("a.wad");
    let at = hostile.windows(12).position(|window| window == b"Data/Nyx.xml").unwrap();
    let mut bytes = hostile;
    bytes[at..at + 12].copy_from_slice(b"../Nyx12.xml");
    home.put("h.wad", bytes);
    let (_, err) = ends(&home.typed(&["op", "decode", "h.wad", "-o", "h/in"]), 1);
    assert!(
        err.contains("h.wad/../Nyx12.xml: refused: its name contains a `..` component"),
        "{err}"
    );
    assert!(!home.at("h/Nyx12.xml.json").exists() && home.at("h/in/Pet.json").exists());
}

#[test]
fn several_archives_at_once() {
    let home = Home::new();
    home.archive("a.wad", &[("a.txt", b"a"), ("a.xml", b"<a/>")]);
    home.archive("b.wad", &[("b.txt", b"bb")]);
    let (out, _) = ends(&home.run(&["wad", "list", "a.wad", "b.wad", "*.txt"]), 0);
    assert!(out.starts_with("a.wad:\n") && out.contains("b.wad:\n") && !out.contains("a.xml"));
    assert!(out.contains(" 1 file, version 2"), "{out}");
    let (_, err) = ends(&home.run(&["wad", "test", "a.wad", "b.wad"]), 0);
    assert!(err.contains("2 files, no problems; 5 bytes in ") && err.contains("1 file, no"));
    let (_, err) = ends(&home.run(&["wad", "extract", "a.wad", "b.wad", "-C", "out"]), 0);
    assert!(err.starts_with("3 files extracted; 7 bytes in "), "{err}");
    let (_, err) = ends(&home.run(&["wad", "extract", "a.wad", "b.wad", "*.dds"]), 1);
    assert!(err.ends_with("*.dds: matches no file in the archives\n"), "{err}");
    // Existing files are kept, and the others are extracted.
    fs::remove_file(home.at("out/b.txt")).unwrap();
    home.put("out/a.txt", "mine");
    let skip = ["wad", "extract", "a.wad", "b.wad", "-C", "out", "--skip-existing"];
    let (_, err) = ends(&home.run(&skip), 0);
    assert!(err.starts_with("1 file extracted, 2 already there; 2 bytes in "), "{err}");
    assert_eq!(home.text("out/a.txt"), "mine");
}

#[test]
fn cat_writes_a_file_to_standard_output() {
    let home = Home::new();
    mixed(&home);
    let output = home.run(&["wad", "cat", "a.wad", "Stone.dds", "Data/config.json"]);
    assert_eq!(ends(&home.run(&["wad", "cat", "a.wad", "Data/odd.json"]), 0).1, "");
    assert_eq!(output.stdout, b"\xff\xfe\0\x01{\"a\": 1}");
    let (_, err) = ends(&home.run(&["wad", "cat", "a.wad", "nyx.xml"]), 1);
    assert!(err.contains("no file nyx.xml; did you mean \"Data/Nyx.xml\"?"), "{err}");
    let (_, err) = ends(&home.run(&["wad", "extract", "a.wad", "-C", "-"]), 2);
    assert!(err.contains("to write to standard output, use `ki wad cat`"), "{err}");
    assert!(!home.at("-").exists());
    let (_, err) = ends(&home.run(&["wad", "extract", "a.wad", "-C", "out", "--flags", "2"]), 2);
    assert!(err.contains("options for object streams need --decode"), "{err}");
}

#[test]
fn shared_data_is_refused() {
    let home = Home::new();
    let content = [7; 64];
    let names: Vec<String> = (0..3).map(|number| format!("n{number}")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &content[..])).collect();
    home.archive("a.wad", &files);
    // All files share the data of the first one.
    let mut bytes = home.bytes("a.wad");
    let first: [u8; 4] = bytes[14..18].try_into().unwrap();
    for entry in 1..3 {
        let at = 14 + 24 * entry;
        bytes[at..at + 4].copy_from_slice(&first);
    }
    home.put("a.wad", bytes);
    let (_, err) = ends(&home.run(&["wad", "extract", "a.wad", "-C", "out"]), 1);
    assert!(
        err.contains("refused: n1: begins inside the data of n0 and 1 more; --allow-overlaps"),
        "{err}"
    );
    assert!(!home.at("out").exists());
    let allowed = ["wad", "extract", "a.wad", "-C", "out", "--allow-overlaps"];
    let (_, err) = ends(&home.run(&allowed), 0);
    assert!(err.contains("warning:") && home.at("out/n2").exists(), "{err}");
}

#[test]
fn files_too_large_for_an_archive_are_refused_early() {
    let home = Home::new();
    let large = |name: &str, size: u64| {
        fs::create_dir_all(home.at("in")).unwrap();
        let file = fs::File::create(home.at(name)).unwrap();
        file.set_len(size).is_ok()
    };
    if !large("in/a.mp3", 3 << 30) || !large("in/b.mp3", 3 << 30) || !large("in/c", 1) {
        // This file system does not support sparse files.
        return;
    }
    let (_, err) = ends(&home.run(&["wad", "create", "in", "-o", "a.wad"]), 2);
    let wanted = "c: wanted an archive whose last file begins below 4 GiB, found 64424509";
    assert!(err.contains(&wanted[..wanted.len() - 8]), "{err}");
    assert!(large("in/a.mp3", 5 << 30));
    let (_, err) = ends(&home.run(&["wad", "create", "in", "-o", "a.wad"]), 2);
    assert!(err.contains("a.mp3: wanted a file of less than 4 GiB, found 5368709120"), "{err}");
}

#[test]
fn large_stored_files_are_copied() {
    let home = Home::new();
    let sound: Vec<u8> = (0..9_000_000_u32).map(|at| (at % 251) as u8).collect();
    home.put("in/a.mp3", &sound);
    home.put("in/b.txt", "b");
    ends(&home.run(&["wad", "create", "in", "-o", "a.wad"]), 0);
    ends(&home.run(&["wad", "test", "a.wad"]), 0);
    ends(&home.run(&["wad", "extract", "a.wad", "-C", "out"]), 0);
    assert!(home.bytes("out/a.mp3") == sound && home.text("out/b.txt") == "b");
}

#[test]
fn one_file_goes_into_a_new_directory() {
    let home = Home::new();
    ends(&home.typed(&["op", "decode", "ki-pet.xml", "-o", "new/dir/"]), 0);
    assert!(home.text("new/dir/ki-pet.xml.json").contains("Nyx"));
    ends(&home.typed(&["op", "encode", "new/dir/ki-pet.xml.json", "-o", "new"]), 0);
    assert_eq!(home.bytes("new/ki-pet.xml"), home.bytes("ki-pet.xml"));
}
