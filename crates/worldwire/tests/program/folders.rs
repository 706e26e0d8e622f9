//! Commands on directories that contain links, special files and unrelated files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::tempdir;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(folder).args(arguments).output().unwrap()
}

#[cfg(unix)]
#[test]
fn special_files_are_skipped() {
    let home = tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/ki-messages");
    let sample = fs::read_dir(sample).unwrap().next().unwrap().unwrap().path();
    fs::create_dir(home.path().join("defs")).unwrap();
    fs::write(home.path().join("defs/S_A.1.def"), "uint32 a\n").unwrap();
    fs::copy(sample, home.path().join("defs/a.xml")).unwrap();
    for fifo in ["defs/S_B.1.def", "defs/b.xml"] {
        assert!(Command::new("mkfifo").arg(home.path().join(fifo)).status().unwrap().success());
    }
    for command in [&["tera", "def", "check", "defs"], &["ki", "dml", "check", "defs"]] {
        let outcome = run(home.path(), command);
        let said = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!(outcome.status.code(), Some(0), "{said}");
        assert!(said.contains("b.xml: is not a regular file; skipped"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn dangling_links_are_skipped() {
    use std::os::unix::fs::symlink;

    let home = tempdir().unwrap();
    let defs = home.path().join("defs");
    fs::create_dir(&defs).unwrap();
    fs::write(defs.join("S_A.1.def"), "uint32 a\n").unwrap();
    symlink("nowhere", defs.join("S_LINK.1.def")).unwrap();
    symlink("S_SELF.1.def", defs.join("S_SELF.1.def")).unwrap();
    symlink("S_A.1.def", defs.join("S_B.1.def")).unwrap();
    for command in [&["def", "check", "defs"][..], &["def", "show", "S_B", "--data", "defs"]] {
        let outcome = run(home.path(), &[&["tera"], command].concat());
        let said = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!(outcome.status.code(), Some(0), "{said}");
        for link in ["S_LINK", "S_SELF"] {
            assert!(said.contains(&format!("{link}.1.def: is a dangling link (")), "{said}");
        }
        assert_eq!(said.matches("; skipped").count(), 2, "{said}");
    }
}

#[test]
fn one_file_in_utf_16_is_one_problem() {
    let home = tempdir().unwrap();
    let defs = home.path().join("defs");
    fs::create_dir(&defs).unwrap();
    let bytes: Vec<u8> = "\u{feff}int32 a\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(defs.join("S_A.1.def"), bytes).unwrap();
    fs::write(defs.join("S_B.1.def"), "int32 b\nodd c\n").unwrap();
    fs::write(defs.join("S_C.1.def"), "int32 c\n").unwrap();
    let outcome = run(home.path(), &["tera", "def", "check", "defs"]);
    let said = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(1), "{said}");
    assert!(said.contains("S_A.1.def: encoded as UTF-16; save it as UTF-8"), "{said}");
    assert_eq!(said.matches("S_A.1.def").count(), 1, "{said}");
    assert!(said.contains("S_B.1.def:2:1: error: "), "{said}");
    let told = String::from_utf8(outcome.stdout).unwrap();
    assert!(told.contains("1 definition of") && told.ends_with(" 2 errors\n"), "{told}");
    // In JSON output, the file's encoding is a problem like any other, and nothing else is printed.
    let outcome = run(home.path(), &["tera", "def", "check", "defs", "--json"]);
    assert_eq!((outcome.status.code(), outcome.stderr.len()), (Some(1), 0));
    let told = String::from_utf8(outcome.stdout).unwrap();
    let wanted = [("S_A.1.def", "not_text"), ("S_B.1.def", "unknown_type")];
    assert_eq!(told.lines().count(), wanted.len(), "{told}");
    for (line, (file, kind)) in told.lines().zip(wanted) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let path = Path::new("defs").join(file);
        assert_eq!(line["file"], path.to_str().unwrap());
        assert_eq!((&line["kind"], &line["severity"]), (&kind.into(), &"error".into()));
    }
}

#[test]
fn ambiguous_folders_are_named() {
    let home = tempdir().unwrap();
    for (folder, text) in [("a", "uint a\n"), ("b", "int32 b\n")] {
        fs::create_dir(home.path().join(folder)).unwrap();
        fs::write(home.path().join(folder).join(format!("S_{folder}.1.def")), text).unwrap();
    }
    let data = ["--data", "a", "--data", "b"];
    let begin = Path::new("a").join("S_a.1.def:1:1: error: unknown type");
    for command in [&["check", "a", "b"][..], &[&["list"], &data[..]].concat()] {
        let outcome = run(home.path(), &[&["tera", "def"], command].concat());
        let said = String::from_utf8(outcome.stderr).unwrap();
        assert!(said.starts_with(begin.to_str().unwrap()), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn quiet_commands_print_only_errors() {
    use std::os::unix::fs::symlink;

    let home = tempdir().unwrap();
    for folder in ["a", "b"] {
        let defs = home.path().join(folder);
        fs::create_dir(&defs).unwrap();
        fs::write(defs.join("S_A.1.def"), b"int32 a # caf\xe9\n").unwrap();
        symlink("nowhere", defs.join("S_LINK.1.def")).unwrap();
    }
    let maps = "S_A = 5\nS_A = 6 # caf\u{e9}\n";
    fs::write(home.path().join("a/protocol.7.map"), maps).unwrap();
    for command in [
        &["def", "check", "a", "b"][..],
        &["def", "list", "--data", "a", "--data", "b"],
        &["def", "fmt", "a", "--check"],
        &["map", "show", "a/protocol.7.map"],
    ] {
        let said = |quiet: &[&str]| {
            let outcome = run(home.path(), &[&["tera"], command, quiet].concat());
            String::from_utf8(outcome.stderr).unwrap()
        };
        assert_ne!(said(&[]), "", "{command:?}");
        assert_eq!(said(&["--quiet"]), "", "{command:?}");
    }
    // Errors are still reported.
    fs::write(home.path().join("a/S_B.1.def"), "odd b\n").unwrap();
    let outcome = run(home.path(), &["tera", "def", "check", "a", "--quiet"]);
    let said = String::from_utf8(outcome.stderr).unwrap();
    assert!(said.starts_with("a/S_B.1.def:1:1: error: ") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_manifest_does_not_list_itself() {
    let home = tempdir().unwrap();
    fs::create_dir_all(home.path().join("game/dat")).unwrap();
    fs::write(home.path().join("game/dat/Garden.age"), "an age").unwrap();
    let make = ["uru", "manifest", "make", "game", "-o", "game/client.mfs", "--force"];
    let make = [&make[..], &["--gzip-to", "game/gz"]].concat();
    let read = || fs::read_to_string(home.path().join("game/client.mfs")).unwrap();
    assert!(run(home.path(), &make).status.success());
    let first = read();
    assert!(first.contains("Garden.age"), "{first}");
    assert!(run(home.path(), &make).status.success());
    assert_eq!(read(), first);
    // Obstacles are found before anything is written.
    fs::remove_dir_all(home.path().join("game/gz")).unwrap();
    let outcome = run(home.path(), &[&make[..5], &["client.mfs", "--gzip-to", "gz"]].concat());
    assert!(outcome.status.success(), "{outcome:?}");
    let again = run(home.path(), &[&make[..5], &["client.mfs", "--gzip-to", "other"]].concat());
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(!home.path().join("other").exists());
}
