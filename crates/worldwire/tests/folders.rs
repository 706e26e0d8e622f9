//! Commands over folders with all sorts of things in them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

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
fn what_is_no_file_is_passed_over() {
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
    // What is in the way is found before anything is written.
    fs::remove_dir_all(home.path().join("game/gz")).unwrap();
    let outcome = run(home.path(), &[&make[..5], &["client.mfs", "--gzip-to", "gz"]].concat());
    assert!(outcome.status.success(), "{outcome:?}");
    let again = run(home.path(), &[&make[..5], &["client.mfs", "--gzip-to", "other"]].concat());
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(!home.path().join("other").exists());
}
