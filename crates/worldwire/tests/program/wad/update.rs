//! `update`: unchanged files are copied beside the new ones.

use std::fs;

use tempfile::tempdir;

use super::*;

#[test]
fn spellings_are_those_of_kept_files_too() {
    let home = tempdir().unwrap();
    let kept = craft(&[("Good.txt", b"good"), ("folder/in", b"in")]);
    fs::write(home.path().join("a.wad"), kept).unwrap();
    let cases = [
        ("good.txt", "refused: good.txt and Good.txt in the archive differ only in case"),
        ("Good.txt/in", "refused: Good.txt is a file, but Good.txt/in needs it to be a directory"),
        ("folder", "refused: folder is a file, but folder/in needs it to be a directory"),
        ("Folder", "refused: Folder is a file, but folder/in needs it to be a directory"),
    ];
    for (name, wanted) in cases {
        let _ = fs::remove_dir_all(home.path().join("new"));
        put(&home.path().join("new"), &[(name, "new")]);
        let outcome = wad(home.path(), &["update", "a.wad", "--from", "new", "-o", "b.wad"]);
        assert!(said(&outcome, 2).contains(wanted), "{outcome:?}");
        assert!(!home.path().join("b.wad").exists());
    }
}

#[test]
fn files_are_replaced_added_removed_and_renamed() {
    let home = tempdir().unwrap();
    let kept = craft(&[("Good.txt", b"good"), ("a", b"old"), ("folder/in", b"in")]);
    fs::write(home.path().join("a.wad"), kept).unwrap();
    put(&home.path().join("new"), &[("a", "new"), ("good.txt", "GOOD"), ("b", "b")]);
    let update = ["update", "a.wad", "--from", "new", "--remove", "Good.*", "-o", "b.wad"];
    said(&wad(home.path(), &update), 0);
    let changes = told(&wad(home.path(), &["diff", "a.wad", "b.wad"]), 1);
    assert_eq!(changes, "- Good.txt\n~ a\n+ b\n+ good.txt\n");
}

#[test]
fn text_entries_stay_text() {
    let home = tempdir().unwrap();
    // A comment like those that `op decode` writes, but without an object.
    let [old, new] = ["old", "new"].map(|word| format!("<!-- worldwire {word} -->\n<Objects/>\n"));
    fs::write(home.path().join("a.wad"), craft(&[("own.xml", old.as_bytes())])).unwrap();
    put(&home.path().join("new"), &[("own.xml", &new)]);
    let update = ["update", "a.wad", "--from", "new", "-o", "b.wad"];
    said(&wad(home.path(), &update), 0);
    assert_eq!(told(&wad(home.path(), &["cat", "b.wad", "own.xml"]), 0), new);
}

#[test]
fn patterns_of_what_is_removed_match_something() {
    let home = tempdir().unwrap();
    fs::write(home.path().join("a.wad"), craft(&[("a/b.txt", b""), ("c", b"")])).unwrap();
    let remove =
        |pattern: &str| wad(home.path(), &["update", "a.wad", "--remove", pattern, "-o", "b.wad"]);
    let wanted = "*.txt: matches no file in the archive; **/*.txt does\n";
    assert!(said(&remove("*.txt"), 1).ends_with(wanted));
    assert_eq!(names(home.path()), ["a.wad"]);
    said(&remove("**/*.txt"), 0);
}

#[test]
fn an_archive_is_updated_in_its_place() {
    let home = tempdir().unwrap();
    put(&home.path().join("new"), &[("new", "new")]);
    fs::write(home.path().join("a.wad"), craft(&[("a", b"a")])).unwrap();
    let update = ["update", "a.wad", "--from", "new", "-o", "a.wad", "--force"];
    said(&wad(home.path(), &update), 0);
    assert!(told(&wad(home.path(), &["list", "a.wad"]), 0).contains("new"));
}

#[test]
fn damaged_files_are_not_copied_silently() {
    let home = tempdir().unwrap();
    let mut bytes = craft(&[("good", b"good"), ("bad", b"damaged"), ("worse", b"broken")]);
    for part in [&b"damaged"[..], b"broken"] {
        let at = bytes.windows(part.len()).rposition(|window| window == part).unwrap();
        bytes[at] ^= 1;
    }
    fs::write(home.path().join("a.wad"), bytes).unwrap();
    put(&home.path().join("new"), &[("bad", "repaired")]);
    let update = ["update", "a.wad", "--from", "new", "-o", "b.wad"];
    let text = said(&wad(home.path(), &update), 1);
    assert!(text.contains("a.wad: worse: at byte ") && !text.contains("a.wad: bad: "), "{text}");
    assert!(
        text.contains("a.wad: nothing was written, because 1 file is damaged; replace it"),
        "{text}"
    );
    assert_eq!(names(home.path()), ["a.wad", "new"]);
    let removed = [&update[..], &["--remove", "worse"]].concat();
    assert!(!said(&wad(home.path(), &removed), 0).contains("damaged"));
    fs::remove_file(home.path().join("b.wad")).unwrap();
    let text = said(&wad(home.path(), &[&update[..], &["--allow-damaged"]].concat()), 0);
    assert!(text.contains("a.wad: worse: at byte "), "{text}");
    told(&wad(home.path(), &["cat", "b.wad", "bad"]), 0);
    said(&wad(home.path(), &["cat", "b.wad", "worse"]), 1);
}

#[test]
fn unknown_versions_are_reported() {
    let home = tempdir().unwrap();
    let mut bytes = craft(&[("a", b"a")]);
    for version in [3, 7] {
        bytes[5] = version;
        fs::write(home.path().join("a.wad"), &bytes).unwrap();
        let wanted = format!(
            "a.wad: warning: archive version {version} is unknown and is read like version 2; the \
             known versions are 1 and 2."
        );
        for words in [&["list", "a.wad"][..], &["cat", "a.wad", "a"], &["test", "a.wad"]] {
            let text = said(&wad(home.path(), words), 0);
            assert!(text.contains(&wanted), "{text}");
        }
        let quiet = said(&wad(home.path(), &["list", "a.wad", "--quiet"]), 0);
        assert_eq!(quiet, "");
        fs::write(home.path().join("a.wad"), &bytes[..20]).unwrap();
        let text = said(&wad(home.path(), &["list", "a.wad"]), 1);
        assert!(text.contains("was read like version 2; the known versions are 1 and 2"), "{text}");
    }
    bytes[5] = 0;
    fs::write(home.path().join("a.wad"), &bytes).unwrap();
    let text = said(&wad(home.path(), &["list", "a.wad"]), 1);
    assert!(text.contains("wanted version 1 or 2, found 0"), "{text}");
    put(&home.path().join("new"), &[("a", "a")]);
    for version in ["0", "3", "x"] {
        let create = ["create", "new", "-o", "b.wad", "--archive-version", version];
        let text = said(&wad(home.path(), &create), 2);
        assert!(text.contains("the known versions are 1 and 2"), "{text}");
    }
}
