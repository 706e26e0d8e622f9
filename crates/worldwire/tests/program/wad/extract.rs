//! `extract`.

use std::fs;

use tempfile::tempdir;

use super::*;

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

#[test]
fn forced_extracting_replaces_files_and_only_whole_ones() {
    let home = tempdir().unwrap();
    fill(home.path());
    assert!(wad(home.path(), &["create", "in", "-o", "a.wad"]).status.success());
    let mut bytes = fs::read(home.path().join("a.wad")).unwrap();
    // The sound is stored after everything else; its CRC is now wrong.
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

#[test]
fn names_that_take_each_others_place_are_told_as_what_they_are() {
    let home = tempdir().unwrap();
    let files: [(&str, &[u8]); 6] = [
        ("a", b"first"),
        ("A", b"case"),
        ("a", b"twice"),
        ("folder", b"file"),
        ("folder/in", b"in"),
        ("../out", b"outside"),
    ];
    fs::write(home.path().join("a.wad"), craft(&files)).unwrap();
    let outcome = wad(home.path(), &["extract", "a.wad", "-C", "out"]);
    let wanted = [
        "refused: A: differs only in case from a, which comes first",
        "refused: a: an earlier file has the same name",
        "refused: folder: is also the name of the directory that contains folder/in",
        "refused: ../out: its name contains a `..` component",
    ];
    let said_of_it = said(&outcome, 1);
    let lines: Vec<&str> =
        said_of_it.lines().filter_map(|line| Some(line.split_once("wad: ")?.1)).collect();
    assert_eq!(lines, wanted);
    assert_eq!(fs::read(home.path().join("out/a")).unwrap(), b"first");
    assert_eq!(fs::read(home.path().join("out/folder/in")).unwrap(), b"in");
    // `test` reports the same problems.
    let told = told(&wad(home.path(), &["test", "a.wad"]), 1);
    let wanted = [
        "A: case: differs only in case from a, which comes first",
        "a: twice: an earlier file has the same name",
        "folder: folder: is also the name of the directory that contains folder/in",
        "../out: name: its name contains a `..` component",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn a_folder_in_the_place_of_a_file_is_not_forced_away() {
    let home = tempdir().unwrap();
    fs::write(home.path().join("a.wad"), craft(&[("a", b"a"), ("b", b"b")])).unwrap();
    fs::create_dir_all(home.path().join("out/a")).unwrap();
    for more in [&[][..], &["--force"]] {
        let outcome = wad(home.path(), &[&["extract", "a.wad", "-C", "out"], more].concat());
        let said = said(&outcome, 1);
        assert!(
            said.contains("a: is a directory\n") && !said.contains("a: already exists"),
            "{said}"
        );
        assert_eq!(fs::read(home.path().join("out/b")).unwrap(), b"b");
    }
}

#[cfg(unix)]
#[test]
fn an_error_of_the_output_ends_the_work() {
    let home = tempdir().unwrap();
    let large = vec![1; 1 << 20];
    let files: Vec<String> = (0..200).map(|number| format!("small/{number:03}")).collect();
    let small = files.iter().map(|name| (&**name, &b"small"[..]));
    let files: Vec<(&str, &[u8])> =
        [("bad/a", &large[..]), ("bad/b", &large)].into_iter().chain(small).collect();
    fs::write(home.path().join("a.wad"), craft(&files)).unwrap();
    let extract = ["extract", "a.wad", "-C", "out", "--threads", "1"];
    let outcome = limited(home.path(), 16, &extract).output().unwrap();
    let said = said(&outcome, 2);
    assert_eq!(said, "worldwire: out/bad/a: file too large\n");
    assert_eq!(names(&home.path().join("out/small")), [""; 0]);
    assert_eq!(names(&home.path().join("out/bad")), [""; 0]);
}

/// `b` begins inside the data of `a`; `c` overlaps nothing.
fn overlapping() -> Vec<u8> {
    craft_with(&[("a", b"aab"), ("b", b"b"), ("c", b"c")], |entries| {
        entries[1].offset = entries[0].offset + 2;
    })
}

#[test]
fn overlaps_are_told_of_chosen_files_or_refused() {
    let home = tempdir().unwrap();
    fs::write(home.path().join("a.wad"), overlapping()).unwrap();
    let cases = [
        (&[][..], "worldwire: b: warning: begins inside the data of a\n"),
        (&["b"], "worldwire: b: warning: begins inside the data of a\n"),
        (&["a"], "worldwire: a: warning: the data of b begins inside the data of this one\n"),
        (&["c"], ""),
    ];
    for (chosen, wanted) in cases {
        let arguments = [&["extract", "a.wad", "-C", "out", "--force"], chosen].concat();
        let allowed = [&arguments[..], &["--allow-overlaps"]].concat();
        assert!(said(&wad(home.path(), &allowed), 0).starts_with(wanted));
        let refused = said(&wad(home.path(), &arguments), i32::from(!wanted.is_empty()));
        assert_eq!(refused.contains("; --allow-overlaps extracts it\n"), !wanted.is_empty());
        let arguments = [&["test", "a.wad"], chosen].concat();
        let errors = told(&wad(home.path(), &arguments), i32::from(!wanted.is_empty()));
        assert_eq!(errors.is_empty(), wanted.is_empty(), "{errors}");
    }
    let quiet = ["-q", "ki", "wad", "extract", "a.wad", "-C", "out2", "--allow-overlaps"];
    assert_eq!(said(&program(home.path(), &quiet).output().unwrap(), 0), "");
    let outcome = wad(home.path(), &["extract", "a.wad", "-C", "out3"]);
    let wanted = "worldwire: a.wad: refused: b: begins inside the data of a; \
                  --allow-overlaps extracts it\n";
    assert_eq!(said(&outcome, 1), wanted);
    let outcome = wad(home.path(), &["test", "a.wad", "--refuse-overlaps"]);
    let wanted = "worldwire: a.wad: refused: the data of b begins inside the data of other files\n";
    assert_eq!(said(&outcome, 1), wanted);
    assert!(!home.path().join("out3").exists());
}

#[test]
fn what_is_not_downloaded_is_skipped() {
    let home = tempdir().unwrap();
    let bytes = craft_with(&[("a", b"\0\0\0"), ("b", b"b")], |entries| entries[0].crc = 1);
    fs::write(home.path().join("a.wad"), bytes).unwrap();
    let outcome = wad(home.path(), &["extract", "a.wad", "-C", "out"]);
    let said_of_it = said(&outcome, 0);
    let wanted = "worldwire: a: skipped: not downloaded yet\n\
                  1 file extracted, 1 not downloaded yet; 1 byte in ";
    assert!(said_of_it.starts_with(wanted), "{said_of_it}");
    let outcome = wad(home.path(), &["-q", "extract", "a.wad", "-C", "out", "--force"]);
    assert_eq!(said(&outcome, 0), "");
    assert_eq!(names(&home.path().join("out")), ["b"]);
}

#[test]
fn a_larger_file_is_inflated_when_asked_for() {
    let home = tempdir().unwrap();
    put(&home.path().join("in"), &[("a", &"a".repeat(1000))]);
    said(&wad(home.path(), &["create", "in", "-o", "a.wad"]), 0);
    for command in [&["test", "a.wad"][..], &["extract", "a.wad", "-C", "out"]] {
        let outcome = wad(home.path(), &[command, &["--max-inflated", "999"]].concat());
        assert_eq!(outcome.status.code(), Some(1));
        let both = String::from_utf8([outcome.stdout, outcome.stderr].concat()).unwrap();
        assert!(both.contains("; --max-inflated allows more"), "{both}");
        said(&wad(home.path(), &[command, &["--max-inflated", "1000"]].concat()), 0);
    }
}

const EXTRACT: [&str; 5] = ["extract", "a.wad", "-C", "out", "--allow-overlaps"];

#[test]
fn files_that_share_their_data_are_too_much_together() {
    let home = tempdir().unwrap();
    let names: Vec<_> = (0..5_000).map(|number| format!("n{number}")).collect();
    let long = format!("{}a", format!("{}/", "b".repeat(200)).repeat(5));
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &[][..])).collect();
    let files = [&[(&*long, &[0; 4_000][..])], &files[..]].concat();
    let bytes = craft_with(&files, |entries| {
        let (offset, crc) = (entries[0].offset, entries[0].crc);
        for entry in entries {
            (entry.offset, entry.crc, entry.size) = (offset, crc, 4_000);
        }
    });
    fs::write(home.path().join("a.wad"), bytes).unwrap();
    let most = 5_001 * 4_000;
    for command in [&["test", "a.wad"][..], &["diff", "a.wad", "a.wad"], &EXTRACT] {
        let limit = (most - 1).to_string();
        let outcome = wad(home.path(), &[command, &["--max-total", &limit]].concat());
        let wanted = format!(
            "worldwire: a.wad: wanted at most {limit} (archive bytes), found {most}; \
             --max-total allows more\n"
        );
        assert_eq!(said(&outcome, 1), wanted);
        let limit = most.to_string();
        let outcome = wad(home.path(), &[command, &["--max-total", &limit]].concat());
        // A message about one file does not quote the full name of the other.
        assert!(outcome.stderr.len() + outcome.stdout.len() < 5_001 * 300);
    }
    assert_eq!(fs::read_dir(home.path().join("out")).unwrap().count(), 5_001);
    let huge = craft_with(&[("a", b""), ("b", b""), ("c", b""), ("d", b""), ("e", b"")], |all| {
        all.iter_mut().for_each(|entry| entry.size = u32::MAX);
    });
    fs::write(home.path().join("huge.wad"), huge).unwrap();
    let outcome = wad(home.path(), &["test", "huge.wad"]);
    assert!(said(&outcome, 1).contains("at most 17179869184 (archive bytes)"));
}

#[cfg(unix)]
#[test]
fn unsafe_names_are_each_reported_and_the_rest_is_extracted() {
    let home = tempdir().unwrap();
    let unsafe_names = [
        ("../x", "contains a `..` component"),
        ("/abs", "is absolute or has an empty component"),
        ("a\\b", "contains a backslash"),
        ("a/\u{1b}b", "contains a control character"),
    ];
    let windows_names = ["Data/CONIN$", "NUL .txt"];
    let problem = "contains the name of a Windows device";
    let all = unsafe_names.iter().map(|(name, _)| *name).chain(windows_names).chain(["good/file"]);
    let all: Vec<(&str, &[u8])> = all.map(|name| (name, &b"content"[..])).collect();
    fs::write(home.path().join("a.wad"), craft(&all)).unwrap();

    let extract = ["extract", "a.wad", "-C", "out/in"];
    let reported = said(&wad(home.path(), &extract), 1);
    for (name, problem) in unsafe_names {
        let is_told = |line: &&str| {
            line.starts_with("worldwire: a.wad: refused: ")
                && line.ends_with(&format!(": its name {problem}"))
        };
        assert_eq!(reported.lines().filter(is_told).count(), 1, "{name:?}: {reported}");
    }
    for name in windows_names {
        let warning = "warning: cannot be extracted on Windows:";
        let wanted = format!("worldwire: {name}: {warning} it {problem}\n");
        assert!(reported.contains(&wanted), "{wanted}{reported}");
    }
    assert_eq!(names(&home.path().join("out")), ["in"]);
    assert_eq!(names(&home.path().join("out/in")), ["Data", "NUL .txt", "good"]);
    assert_eq!(names(&home.path().join("out/in/Data")), ["CONIN$"]);
    assert_eq!(names(&home.path().join("out/in/good")), ["file"]);

    let extract = ["extract", "a.wad", "-C", "portable", "--portable"];
    let reported = said(&wad(home.path(), &extract), 1);
    for name in windows_names {
        let wanted = format!("worldwire: a.wad: refused: {name}: its name {problem}\n");
        assert!(reported.contains(&wanted), "{wanted}{reported}");
    }
    assert_eq!(names(&home.path().join("portable")), ["good"]);
}

#[test]
fn names_with_thousands_of_parts_are_refused() {
    let home = tempdir().unwrap();
    let name = "a/".repeat(20_000) + "b";
    fs::write(home.path().join("a.wad"), craft(&[(&name, b""), ("b", b"b")])).unwrap();
    for command in [&["test", "a.wad"][..], &["extract", "a.wad", "-C", "out"]] {
        let outcome = wad(home.path(), command);
        assert_eq!(outcome.status.code(), Some(1));
        let both = String::from_utf8([outcome.stdout, outcome.stderr].concat()).unwrap();
        assert!(
            both.contains(
                "its name has more than 4095 bytes, more than 128 components, or a component of \
                 more than 255 bytes"
            ),
            "{}",
            both.len()
        );
    }
    assert_eq!(names(&home.path().join("out")), ["b"]);
}

#[test]
fn a_pattern_stays_in_its_folder() {
    let home = tempdir().unwrap();
    fs::write(home.path().join("a.wad"), craft(&[("a.txt", b""), ("b/c.xml", b"")])).unwrap();
    let wanted = "*.xml: matches no file in the archive; **/*.xml does\n";
    for command in ["list", "test", "extract"] {
        let outcome = wad(home.path(), &[command, "a.wad", "*.txt", "*.xml"]);
        assert!(said(&outcome, 1).ends_with(wanted), "{outcome:?}");
    }
    assert_eq!(names(home.path()), ["a.wad"]);
    let listed = told(&wad(home.path(), &["list", "a.wad", "**/*.xml"]), 0);
    assert!(listed.contains("b/c.xml") && !listed.contains("a.txt"), "{listed}");
}

#[cfg(unix)]
#[test]
fn nobody_needs_to_listen() {
    let home = tempdir().unwrap();
    fs::write(home.path().join("a.wad"), craft(&[("../a", b""), ("b", b"")])).unwrap();
    let log = fs::File::create(home.path().join("log")).unwrap();
    let status =
        limited(home.path(), 0, &["extract", "a.wad", "-C", "out"]).stderr(log).status().unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(fs::read(home.path().join("log")).unwrap(), b"", "the log is full");
    assert_eq!(names(&home.path().join("out")), ["b"]);
}
