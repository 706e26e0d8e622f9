//! `create` and `update`.

use std::fs;
#[cfg(unix)]
use std::process::Command;

use tempfile::tempdir;

use super::*;

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
    // Nothing was written. A single existing file has the same effect.
    assert_eq!(again.status.code(), Some(2), "files were overwritten");
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(said.ends_with("out: nothing was extracted: all files already exist\n"), "{said}");
    fs::remove_file(home.path().join("out/x.mp3")).unwrap();
    let some = wad(home.path(), &["extract", "1.wad", "-C", "out"]);
    assert_eq!(some.status.code(), Some(1), "one file was written");
}

#[cfg(target_os = "linux")]
#[test]
fn a_create_that_fails_midway_leaves_nothing() {
    let home = tempdir().unwrap();
    fill(home.path());
    // The file's size can be queried, but its content cannot be read.
    std::os::unix::fs::symlink("/proc/self/mem", home.path().join("in/z")).unwrap();
    let outcome = wad(home.path(), &["create", "in", "-o", "a.wad"]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    assert_eq!(names(home.path()), ["in"]);
}

#[cfg(unix)]
#[test]
fn names_that_differ_only_in_case_are_refused() {
    let home = tempdir().unwrap();
    put(&home.path().join("in"), &[("a", "a"), ("A", "A")]);
    if names(&home.path().join("in")).len() < 2 {
        // This file system cannot hold two names that differ only in case.
        return;
    }
    let outcome = wad(home.path(), &["create", "in", "-o", "a.wad"]);
    assert!(said(&outcome, 2).contains("differ only in case"), "{outcome:?}");
    assert!(!home.path().join("a.wad").exists());
}

/// The commands that pack a folder `in`, with additional arguments.
#[cfg(unix)]
const PACKING: [&[&str]; 2] =
    [&["create", "in", "-o", "new.wad"], &["update", "a.wad", "--from", "in", "-o", "new.wad"]];

#[cfg(unix)]
#[test]
fn every_name_that_could_not_be_extracted_is_reported() {
    let home = tempdir().unwrap();
    fs::write(home.path().join("a.wad"), craft(&[("old", b"old")])).unwrap();
    put(&home.path().join("in"), &[("good", ""), ("..\\x", ""), ("Data/a\u{1}b", "")]);
    for command in PACKING {
        let said = said(&wad(home.path(), command), 2);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 3, "{said}");
        for (end, problem) in [("x", "contains a backslash"), ("b", "contains a control character")]
        {
            let is_told = |line: &&str| {
                line.starts_with("worldwire: in/")
                    && line.ends_with(&format!("{end}: refused: its name {problem}"))
            };
            assert_eq!(lines.iter().filter(|line| is_told(line)).count(), 1, "{problem}: {said}");
        }
        assert_eq!(lines[2], "worldwire: in: 2 names refused; nothing was written");
        assert!(!said.contains('\u{1}'), "control characters are escaped");
        assert!(!home.path().join("new.wad").exists());
    }
}

#[cfg(unix)]
#[test]
fn names_that_windows_does_not_allow_are_packed_unless_portable() {
    let home = tempdir().unwrap();
    fs::write(home.path().join("a.wad"), craft(&[("old", b"old")])).unwrap();
    let files = ["CON.txt", "Data/NUL .txt", "ab:c", "dot.", "good"];
    let problems = [
        ("CON.txt", "contains the name of a Windows device"),
        ("Data/NUL .txt", "contains the name of a Windows device"),
        ("ab:c", "contains `:`, which Windows does not allow"),
        ("dot.", "has a component that ends with a dot or a space, which Windows removes"),
    ];
    put(&home.path().join("in"), &files.map(|name| (name, name)));
    for command in PACKING {
        let reported = said(&wad(home.path(), command), 0);
        let mut warned: Vec<_> = reported.lines().filter(|line| line.contains("warning")).collect();
        warned.sort_unstable();
        let warning = "warning: cannot be extracted on Windows:";
        let wanted =
            problems.map(|(name, problem)| format!("worldwire: {name}: {warning} it {problem}"));
        assert_eq!(warned, wanted);
        let listed = told(&wad(home.path(), &["list", "new.wad"]), 0);
        assert!(files.iter().all(|name| listed.contains(name)), "{listed}");
        fs::remove_file(home.path().join("new.wad")).unwrap();

        let refused = said(&wad(home.path(), &[command, &["--portable"]].concat()), 2);
        assert_eq!(refused.lines().count(), 5, "{refused}");
        for (name, problem) in problems {
            let wanted = format!("worldwire: in/{name}: refused: its name {problem}\n");
            assert!(refused.contains(&wanted), "{wanted}{refused}");
        }
        assert!(refused.ends_with("worldwire: in: 4 names refused; nothing was written\n"));
        assert!(!home.path().join("new.wad").exists());
    }
}

#[test]
fn deep_folders_are_packed() {
    let home = tempdir().unwrap();
    let deep = format!("{}file", "a/".repeat(40));
    put(&home.path().join("in"), &[(&deep, "deep"), ("b", "b")]);
    said(&wad(home.path(), &["create", "in", "-o", "a.wad"]), 0);
    let listed = told(&wad(home.path(), &["list", "a.wad"]), 0);
    assert!(listed.contains(&deep), "{listed}");
}

#[cfg(unix)]
#[test]
fn loops_of_links_are_passed_over() {
    use std::os::unix::fs::symlink;

    let home = tempdir().unwrap();
    put(&home.path().join("in"), &[("a", "a"), ("b/c", "c")]);
    for (to, link) in [(".", "self"), (".", "self2"), ("..", "b/up")] {
        symlink(to, home.path().join("in").join(link)).unwrap();
    }
    let outcome = wad(home.path(), &["create", "in", "-o", "a.wad"]);
    let said_of_it = said(&outcome, 0);
    assert_eq!(said_of_it.lines().count(), 4, "{said_of_it}");
    assert!(said_of_it.contains("in/self: links back to /"), "{said_of_it}");
    let quiet = wad(home.path(), &["-q", "create", "in", "-o", "b.wad"]);
    assert_eq!(said(&quiet, 0), "");
    let listed = told(&wad(home.path(), &["list", "a.wad", "--json"]), 0);
    assert_eq!(listed.lines().count(), 3, "{listed}");
}

#[cfg(unix)]
#[test]
fn only_regular_files_are_packed() {
    let home = tempdir().unwrap();
    fs::create_dir(home.path().join("in")).unwrap();
    let socket = home.path().join("in/socket");
    let _kept = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let outcome = wad(home.path(), &["create", "in", "-o", "a.wad"]);
    assert!(said(&outcome, 2).contains("in/socket: is a socket, not a regular file"));
    fs::remove_file(socket).unwrap();
    let made = Command::new("mkfifo").arg(home.path().join("in/fifo")).status().unwrap();
    assert!(made.success());
    let outcome = wad(home.path(), &["create", "in", "-o", "a.wad"]);
    assert!(said(&outcome, 2).contains("in/fifo: is a FIFO, not a regular file"));
    assert_eq!(names(home.path()), ["in"]);
}

#[test]
fn what_is_too_large_to_be_inflated_again_is_stored() {
    let home = tempdir().unwrap();
    fs::create_dir(home.path().join("in")).unwrap();
    let file = fs::File::create(home.path().join("in/large")).unwrap();
    file.set_len((256 << 20) + 1).unwrap();
    said(&wad(home.path(), &["create", "in", "-o", "a.wad"]), 0);
    assert!(fs::metadata(home.path().join("a.wad")).unwrap().len() > 256 << 20);
    said(&wad(home.path(), &["test", "a.wad"]), 0);
}

#[test]
fn a_file_beside_a_folder_of_its_name_is_refused() {
    let home = tempdir().unwrap();
    put(&home.path().join("in"), &[("file/x", "x"), ("File", "f")]);
    if !home.path().join("in/file/x").is_file() {
        // This file system cannot hold two names that differ only in case.
        return;
    }
    let outcome = wad(home.path(), &["create", "in", "-o", "a.wad"]);
    let wanted = "refused: File is a file, but file/x needs it to be a directory";
    assert!(said(&outcome, 2).contains(wanted), "{outcome:?}");
}

#[test]
fn the_archive_is_no_file_of_itself() {
    let home = tempdir().unwrap();
    put(&home.path().join("in"), &[("a", "a")]);
    let create = ["create", "in", "-o", "in/self.wad", "--force"];
    assert!(said(&wad(home.path(), &create), 0).starts_with("1 file packed; "));
    let before = fs::read(home.path().join("in/self.wad")).unwrap();
    let wanted = "in/self.wad: is the archive to be overwritten; skipped";
    assert!(said(&wad(home.path(), &create), 0).contains(wanted));
    assert!(fs::read(home.path().join("in/self.wad")).unwrap() == before);
    // Under another name, it is a normal file.
    said(&wad(home.path(), &["create", "in", "-o", "other.wad"]), 0);
    let listed = told(&wad(home.path(), &["list", "other.wad"]), 0);
    assert!(listed.contains("self.wad"));
}

#[test]
fn leftovers_of_a_killed_run_are_not_packed() {
    let home = tempdir().unwrap();
    put(
        &home.path().join("in"),
        &[
            ("a", "a"),
            ("b/.worldwire-AbCdEf.part", "half"),
            ("b/.worldwire-GhIjKl.part/c", "half"),
            (".b.part", ""),
        ],
    );
    let is_told = |said: &str| {
        for (name, what) in [("AbCdEf", "an incomplete file"), ("GhIjKl", "a directory")] {
            let wanted =
                format!(".worldwire-{name}.part: is {what} left by an interrupted run; skipped");
            assert!(said.contains(&wanted), "{said}");
        }
    };
    is_told(&said(&wad(home.path(), &["create", "in", "-o", "a.wad"]), 0));
    let listed = told(&wad(home.path(), &["list", "a.wad", "--json"]), 0);
    assert_eq!(listed.lines().count(), 3, "{listed}");
    is_told(&said(&wad(home.path(), &["update", "a.wad", "--from", "in", "-o", "b.wad"]), 0));
    let listed = told(&wad(home.path(), &["list", "b.wad", "--json"]), 0);
    assert_eq!(listed.lines().count(), 3, "{listed}");
}

#[test]
fn patterns_of_what_is_stored_match_something() {
    let home = tempdir().unwrap();
    let zeros = "0".repeat(100);
    put(&home.path().join("in"), &[("Data/a.bik", &zeros), ("b.bik", &zeros), ("c", &zeros)]);
    let create = |store: &str| wad(home.path(), &["create", "in", "-o", "a.wad", "--store", store]);
    let wanted = "*.bin: matches no file to be packed\n";
    assert!(said(&create("*.bin"), 1).ends_with(wanted));
    let wanted = "a.bik: matches no file to be packed; **/a.bik does\n";
    assert!(said(&create("a.bik"), 1).ends_with(wanted));
    assert_eq!(names(home.path()), ["in"]);
    said(&create("*.bik"), 0);
    let listed = told(&wad(home.path(), &["list", "a.wad"]), 0);
    let stored: Vec<bool> = listed.lines().map(|line| line.contains("100.0%")).collect();
    assert_eq!(stored, [false, true, false, false], "{listed}");
}

#[cfg(unix)]
#[test]
fn names_do_not_steer_the_terminal() {
    let home = tempdir().unwrap();
    put(&home.path().join("in"), &[("a\u{1b}[31m", "a")]);
    let outcome = wad(home.path(), &["create", "in", "-o", "a.wad"]);
    assert!(said(&outcome, 2).contains("a\\u{1b}[31m"), "{outcome:?}");
    let outcome = wad(home.path(), &["create", "in\u{1b}", "-o", "a.wad"]);
    assert!(said(&outcome, 2).contains("in\\u{1b}"), "{outcome:?}");
    fs::write(home.path().join("b.wad"), craft(&[("\u{1b}[2J", b"x"), ("\u{1b}[2J", b"y")]))
        .unwrap();
    let outcome = wad(home.path(), &["update", "b.wad", "-o", "a.wad"]);
    assert!(said(&outcome, 1).contains("\\u{1b}[2J"), "{outcome:?}");
}

#[test]
fn threads_are_bounded() {
    let home = tempdir().unwrap();
    for command in [&["create", "in", "-o", "a.wad"][..], &["test", "a.wad"], &["extract", "a.wad"]]
    {
        let outcome = wad(home.path(), &[command, &["--threads", "257"]].concat());
        assert!(said(&outcome, 2).contains("257 is not in 0..=256"), "{outcome:?}");
    }
}

#[cfg(unix)]
#[test]
fn an_archive_that_cannot_be_written_ends_the_work() {
    let home = tempdir().unwrap();
    fs::create_dir(home.path().join("in")).unwrap();
    // More data than is packed at a time, so that one thread is waiting for another when that one
    // fails.
    for name in ["a.mp3", "b.mp3", "c.mp3"] {
        let file = fs::File::create(home.path().join("in").join(name)).unwrap();
        file.set_len(65 << 20).unwrap();
    }
    let outcome = limited(home.path(), 16, &["create", "in", "-o", "a.wad"]).output().unwrap();
    assert_eq!(said(&outcome, 2), "worldwire: a.wad: file too large\n");
    assert_eq!(names(home.path()), ["in"]);
}
