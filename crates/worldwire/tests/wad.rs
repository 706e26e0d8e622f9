//! `worldwire ki wad` on real folders.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::tempdir;

fn wad(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(folder).args(["ki", "wad"]).args(arguments).output().unwrap()
}

fn fill(folder: &Path) {
    fs::create_dir_all(folder.join("in/Data/a")).unwrap();
    for number in 0..40 {
        let text = format!("<Record>{number}</Record>\n").repeat(number);
        fs::write(folder.join(format!("in/Data/a/{number}.xml")), text).unwrap();
    }
    fs::write(folder.join("in/x.mp3"), [1, 2, 3]).unwrap();
}

#[test]
fn created_and_extracted_is_the_same_with_any_number_of_threads() {
    let home = tempdir().unwrap();
    fill(home.path());
    for threads in ["1", "2"] {
        let name = format!("{threads}.wad");
        let made = wad(home.path(), &["create", "in", "-o", &name, "--threads", threads]);
        assert!(made.status.success(), "{made:?}");
    }
    let archives = ["1.wad", "2.wad"].map(|name| fs::read(home.path().join(name)).unwrap());
    assert_eq!(archives[0], archives[1]);
    assert!(wad(home.path(), &["test", "1.wad"]).status.success());
    assert!(wad(home.path(), &["extract", "1.wad", "-C", "out"]).status.success());
    for name in ["Data/a/0.xml", "Data/a/39.xml", "x.mp3"] {
        let [before, after] =
            ["in", "out"].map(|folder| fs::read(home.path().join(folder).join(name)).unwrap());
        assert_eq!(before, after, "{name}");
    }
    let again = wad(home.path(), &["extract", "1.wad", "-C", "out"]);
    assert_eq!(again.status.code(), Some(1), "files were overwritten");
}

#[cfg(unix)]
#[test]
fn a_link_in_the_folder_leads_nowhere() {
    let home = tempdir().unwrap();
    fill(home.path());
    assert!(wad(home.path(), &["create", "in", "-o", "a.wad"]).status.success());
    for folder in ["out", "elsewhere"] {
        fs::create_dir(home.path().join(folder)).unwrap();
    }
    std::os::unix::fs::symlink("../elsewhere", home.path().join("out/Data")).unwrap();
    std::os::unix::fs::symlink("../elsewhere/x", home.path().join("out/x.mp3")).unwrap();
    let outcome = wad(home.path(), &["extract", "a.wad", "-C", "out"]);
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    assert_eq!(fs::read_dir(home.path().join("elsewhere")).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn a_create_that_fails_midway_leaves_nothing() {
    let home = tempdir().unwrap();
    fill(home.path());
    // Its size can be asked for, its content cannot be read.
    std::os::unix::fs::symlink("/proc/self/mem", home.path().join("in/z")).unwrap();
    let outcome = wad(home.path(), &["create", "in", "-o", "a.wad"]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    let left: Vec<_> = fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["in"]);
}
