//! `worldwire ki wad` on real folders.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
#[cfg(unix)]
use std::{
    process::{Child, ExitStatus, Stdio},
    time::Duration,
};

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

#[cfg(target_os = "linux")]
#[test]
fn a_create_that_fails_midway_leaves_nothing() {
    let home = tempdir().unwrap();
    fill(home.path());
    // Its size can be asked for, its content cannot be read.
    std::os::unix::fs::symlink("/proc/self/mem", home.path().join("in/z")).unwrap();
    let outcome = wad(home.path(), &["create", "in", "-o", "a.wad"]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    assert_eq!(names(home.path()), ["in"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_create_leaves_nothing() {
    use std::os::unix::process::ExitStatusExt;
    let home = tempdir().unwrap();
    fill_large(home.path());
    for signal in ["KILL", "INT"] {
        let status = interrupted(signal, || {
            let _ = fs::remove_file(home.path().join("a.wad"));
            let create = start(home.path(), &["create", "in", "-o", "a.wad", "--level", "12"]);
            wait(|| writes_into(&create, home.path()));
            create
        });
        match signal {
            "INT" => assert_eq!(status.code(), Some(130)),
            _ => assert_eq!(status.signal(), Some(9)),
        }
        let left = names(home.path());
        assert!(!left.contains(&"a.wad".to_owned()), "SIG{signal}: {status}");
        if left.len() > 1 {
            // This file system has no files without names, so nothing can take this one away.
            assert!(signal == "KILL" && left[0].ends_with(".part"), "SIG{signal}: {left:?}");
            fs::remove_file(home.path().join(&left[0])).unwrap();
        }
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_extract_leaves_only_whole_files() {
    let home = tempdir().unwrap();
    fill_large(home.path());
    assert!(wad(home.path(), &["create", "in", "-o", "a.wad", "--level", "1"]).status.success());
    let [before, after] = ["in/Data", "out/Data"].map(|folder| home.path().join(folder));
    for signal in ["KILL", "INT"] {
        let status = interrupted(signal, || {
            let _ = fs::remove_dir_all(home.path().join("out"));
            let arguments = ["extract", "a.wad", "-C", "out", "--threads", "2"];
            let extract = start(home.path(), &arguments);
            wait(|| after.exists() && names(&after).iter().any(|name| name.ends_with(".xml")));
            extract
        });
        let left = names(&after);
        assert!(!status.success());
        for name in &left {
            if name.ends_with(".xml") {
                let whole = fs::read(before.join(name)).unwrap();
                assert!(fs::read(after.join(name)).unwrap() == whole, "SIG{signal}: {name}");
            } else {
                assert!(signal == "KILL" && name.ends_with(".part"), "SIG{signal}: {name}");
            }
        }
        fs::remove_dir_all(home.path().join("out")).unwrap();
    }
}

#[test]
fn forced_extracting_replaces_files_and_only_whole_ones() {
    let home = tempdir().unwrap();
    fill(home.path());
    assert!(wad(home.path(), &["create", "in", "-o", "a.wad"]).status.success());
    let mut bytes = fs::read(home.path().join("a.wad")).unwrap();
    // The sound is stored behind all else; its CRC is wrong now.
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(home.path().join("bad.wad"), bytes).unwrap();
    fs::create_dir_all(home.path().join("out/Data/a")).unwrap();
    for name in ["x.mp3", "Data/a/7.xml"] {
        fs::write(home.path().join("out").join(name), "old").unwrap();
    }
    let outcome = wad(home.path(), &["extract", "bad.wad", "-C", "out", "--force"]);
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    assert_eq!(fs::read(home.path().join("out/x.mp3")).unwrap(), b"old");
    let [before, after] = ["in", "out"].map(|folder| home.path().join(folder).join("Data/a/7.xml"));
    assert_eq!(fs::read(before).unwrap(), fs::read(after).unwrap());
    assert_eq!(names(&home.path().join("out")), ["Data", "x.mp3"]);
}

#[cfg(unix)]
#[test]
fn forced_extracting_replaces_a_link_and_does_not_follow_it() {
    let home = tempdir().unwrap();
    fill(home.path());
    assert!(wad(home.path(), &["create", "in", "-o", "a.wad"]).status.success());
    fs::create_dir(home.path().join("out")).unwrap();
    fs::write(home.path().join("other"), "other").unwrap();
    std::os::unix::fs::symlink("../other", home.path().join("out/x.mp3")).unwrap();
    assert!(wad(home.path(), &["extract", "a.wad", "-C", "out", "--force"]).status.success());
    assert_eq!(fs::read(home.path().join("other")).unwrap(), b"other");
    assert_eq!(fs::read(home.path().join("out/x.mp3")).unwrap(), [1, 2, 3]);
}

#[cfg(unix)]
#[test]
fn names_that_could_not_be_extracted_are_refused() {
    let home = tempdir().unwrap();
    for (names, said) in [(["a", "NUL.txt"], "NUL.txt"), (["a", "A"], "differ only in case")] {
        let _ = fs::remove_dir_all(home.path().join("in"));
        fs::create_dir(home.path().join("in")).unwrap();
        for name in names {
            fs::write(home.path().join("in").join(name), name).unwrap();
        }
        if fs::read_dir(home.path().join("in")).unwrap().count() < names.len() {
            // This file system has no two names that differ only in case.
            continue;
        }
        let outcome = wad(home.path(), &["create", "in", "-o", "a.wad"]);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert!(String::from_utf8(outcome.stderr).unwrap().contains(said), "{said}");
        assert!(!home.path().join("a.wad").exists());
    }
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
    assert_eq!(said, "one.txt: twice: another file before it has the same name\n");
}

/// Files that take a second, at least, to be compressed well, and some time to be written.
#[cfg(unix)]
fn fill_large(folder: &Path) {
    fs::create_dir_all(folder.join("in/Data")).unwrap();
    let mut state = 1_u32;
    for number in 0..100 {
        let mut text = String::new();
        while text.len() < 100_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(&format!("<Value id=\"{}\">{:x}</Value>\n", text.len(), state >> 12));
        }
        fs::write(folder.join(format!("in/Data/{number:03}.xml")), text.repeat(10)).unwrap();
    }
}

#[cfg(unix)]
fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(folder).args(["-q", "ki", "wad"]).args(arguments);
    command.stderr(Stdio::null()).spawn().unwrap()
}

/// Starts something and sends it a signal, again if it was done before the signal came.
#[cfg(unix)]
fn interrupted(signal: &str, start: impl Fn() -> Child) -> ExitStatus {
    for _ in 0..20 {
        let mut child = start();
        let id = child.id().to_string();
        // Every shell has a kill of its own.
        let kill = ["-c", "kill -s \"$0\" \"$1\"", signal, &id];
        assert!(Command::new("sh").args(kill).status().unwrap().success());
        let status = child.wait().unwrap();
        if !status.success() {
            return status;
        }
    }
    panic!("SIG{signal} always came late");
}

/// Waits for something that happens soon.
#[cfg(unix)]
fn wait(happened: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if happened() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("nothing happened for a minute");
}

/// Whether a program has a new file open that is to stand in a folder, with or without a name.
#[cfg(target_os = "linux")]
fn writes_into(program: &Child, folder: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{}/fd", program.id())).into_iter().flatten();
    let mut open = open.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    open.any(|file| file.parent() == Some(folder) && file.extension().is_none_or(|it| it == "part"))
}

/// The names in a folder, in their order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
