//! `list`, `test` and `diff`.

use std::fs;

use tempfile::tempdir;

use super::*;

#[test]
fn a_file_packed_in_another_way_is_the_same_file() {
    let home = tempdir().unwrap();
    fill(home.path());
    let make = |name: &str, more: &[&str]| {
        let arguments = [&["create", "in", "-o", name], more].concat();
        assert!(wad(home.path(), &arguments).status.success());
    };
    make("packed.wad", &[]);
    fs::write(home.path().join("in/x.mp3"), [3, 2, 1]).unwrap();
    fs::remove_file(home.path().join("in/Data/a/7.xml")).unwrap();
    fs::write(home.path().join("in/new.txt"), "new").unwrap();
    make("stored.wad", &["--store", "**/3?.xml"]);
    let told = wad(home.path(), &["diff", "packed.wad", "stored.wad"]);
    let told = String::from_utf8(told.stdout).unwrap();
    let (same, other): (Vec<&str>, Vec<&str>) =
        told.lines().partition(|line| line.starts_with("= "));
    assert_eq!(other, ["- Data/a/7.xml", "+ new.txt", "~ x.mp3"]);
    assert_eq!(same.len(), 10);
    assert_eq!(same[0], "= Data/a/30.xml");
}

#[test]
fn a_name_that_is_there_twice_is_a_problem() {
    let home = tempdir().unwrap();
    fs::create_dir(home.path().join("in")).unwrap();
    for name in ["one.txt", "two.txt"] {
        fs::write(home.path().join("in").join(name), name).unwrap();
    }
    assert!(wad(home.path(), &["create", "in", "-o", "a.wad"]).status.success());
    let mut bytes = fs::read(home.path().join("a.wad")).unwrap();
    let at = bytes.windows(7).position(|part| part == b"two.txt").unwrap();
    bytes[at..at + 3].copy_from_slice(b"one");
    fs::write(home.path().join("a.wad"), bytes).unwrap();
    let outcome = wad(home.path(), &["test", "a.wad"]);
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    let said = String::from_utf8(outcome.stdout).unwrap();
    assert_eq!(said, "one.txt: twice: an earlier file has the same name\n");
}

#[test]
fn a_difference_sees_the_data() {
    let home = tempdir().unwrap();
    let good = craft(&[("a", b"aaa"), ("b", b"bbb"), ("c", b"ccc")]);
    let data = good.len() - 9;
    let with = |name: &str, at: usize, with: &[u8]| {
        let mut bytes = good.clone();
        bytes[data + at..data + at + with.len()].copy_from_slice(with);
        fs::write(home.path().join(name), bytes).unwrap();
    };
    with("good.wad", 0, b"");
    with("empty.wad", 3, b"\0\0\0");
    with("bad.wad", 6, b"x");
    let diff = |before: &str, after: &str| wad(home.path(), &["diff", before, after]);
    assert_eq!(told(&diff("good.wad", "good.wad"), 0), "");
    assert_eq!(told(&diff("empty.wad", "empty.wad"), 0), "");
    assert_eq!(told(&diff("empty.wad", "good.wad"), 1), "> b\n");
    assert_eq!(told(&diff("good.wad", "empty.wad"), 1), "< b\n");
    let json = wad(home.path(), &["diff", "good.wad", "empty.wad", "--json"]);
    assert_eq!(told(&json, 1), "{\"change\":\"unpatched\",\"name\":\"b\",\"size\":3}\n");
    for threads in ["1", "2"] {
        let arguments = ["diff", "good.wad", "bad.wad", "--threads", threads];
        let said = said(&wad(home.path(), &arguments), 1);
        assert!(said.starts_with("worldwire: bad.wad: c") && said.contains("wanted CRC"), "{said}");
    }
    // Files that exist in only one archive are compared, too.
    fs::write(home.path().join("none.wad"), craft(&[])).unwrap();
    let outcome = diff("none.wad", "bad.wad");
    assert_eq!(told(&outcome, 1), "+ a\n+ b\n+ c\n");
    assert!(said(&outcome, 1).contains("bad.wad: c"));
}

#[test]
fn between_files_of_one_name_the_first_wins() {
    let home = tempdir().unwrap();
    let archive = |name: &str, files: &[(&str, &[u8])]| {
        fs::write(home.path().join(name), craft(files)).unwrap();
    };
    archive("one.wad", &[("a", b"first")]);
    archive("two.wad", &[("a", b"first"), ("a", b"second"), ("a", b"third")]);
    let outcome = wad(home.path(), &["diff", "one.wad", "two.wad"]);
    assert_eq!(told(&outcome, 0), "");
    let wanted = "worldwire: two.wad: warning: has several files named a; the first one is used\n";
    assert_eq!(said(&outcome, 0), wanted);
}

#[test]
fn standard_input_is_an_archive() {
    let home = tempdir().unwrap();
    let archive = craft(&[("a", b"a")]);
    fs::write(home.path().join("a.wad"), &archive).unwrap();
    let listed = told(&wad_from(&archive, home.path(), &["list", "-"]), 0);
    assert!(listed.contains("  a\n"), "{listed}");
    said(&wad_from(&archive, home.path(), &["test", "-"]), 0);
    assert_eq!(told(&wad_from(&archive, home.path(), &["diff", "a.wad", "-"]), 0), "");
    said(&wad_from(&archive, home.path(), &["extract", "-", "-C", "out"]), 0);
    assert_eq!(fs::read(home.path().join("out/a")).unwrap(), b"a");
    let outcome = wad_from(b"no archive", home.path(), &["test", "-"]);
    assert!(said(&outcome, 1).starts_with("worldwire: standard input: magic"));
    said(&wad_from(&archive, home.path(), &["diff", "-", "-"]), 2);
}

#[cfg(unix)]
#[test]
fn what_is_too_large_is_refused_before_it_is_read() {
    let home = tempdir().unwrap();
    let file = fs::File::create(home.path().join("a.wad")).unwrap();
    if file.set_len(9 << 30).is_err() {
        // This file system does not support sparse files.
        return;
    }
    let said = said(&wad(home.path(), &["list", "a.wad"]), 2);
    assert_eq!(said, "worldwire: a.wad: larger than 8589934592 bytes (file bytes)\n");
}
