//! `extract --decode`.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::tempdir;

use super::*;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(name)
}

#[test]
fn a_decoded_file_takes_no_other_ones_name() {
    let home = tempdir().unwrap();
    let pet = fs::read(sample("ki-pet.xml")).unwrap();
    let types = sample("ki-types.json");
    let files: [(&str, &[u8]); 6] = [
        ("Pet.xml", &pet),
        ("free.xml", &pet),
        ("pet.XML.json", b"real"),
        ("pet", &pet),
        ("deep.xml", &pet),
        ("deep.xml.json/in", b"in"),
    ];
    fs::write(home.path().join("a.wad"), craft(&files)).unwrap();
    let extract = |form: &str, threads: &str, more: &[&str]| {
        let arguments = ["extract", "a.wad", "-C", "out", "--threads", threads];
        let decode = ["--decode", form, "--types", types.to_str().unwrap()];
        wad(home.path(), &[&arguments[..], &decode, more].concat())
    };
    let read = |name: &str| fs::read(home.path().join("out").join(name)).unwrap();
    for (threads, more) in [("1", &[][..]), ("2", &["--force"]), ("1", &["--force"])] {
        let said = said(&extract("json", threads, more), 1);
        let wanted = "Pet.xml: not decoded: the archive also contains Pet.xml.json";
        assert!(said.contains(wanted), "{said}");
        assert!(said.contains("deep.xml: not decoded: the archive also contains deep.xml.json"));
        assert_eq!(said.lines().count(), 3, "{said}");
        assert!(read("Pet.xml") == pet, "it stays as it is");
        assert_eq!(read("pet.XML.json"), b"real");
        assert!(read("free.xml.json").starts_with(b"{") && read("pet.json").starts_with(b"{"));
        let wanted =
            ["Pet.xml", "deep.xml", "deep.xml.json", "free.xml.json", "pet.XML.json", "pet.json"];
        assert_eq!(names(&home.path().join("out")), wanted);
    }
    fs::remove_dir_all(home.path().join("out")).unwrap();
    // As XML, a file may keep its name.
    let said = said(&extract("xml", "2", &[]), 1);
    assert!(said.contains("pet: not decoded: the archive also contains pet.xml"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(read("Pet.xml").starts_with(b"<") && read("pet") == pet);
}

#[test]
fn a_name_that_would_be_too_long_stays_and_so_does_the_file() {
    let home = tempdir().unwrap();
    let pet = fs::read(sample("ki-pet.xml")).unwrap();
    let name = "n".repeat(252);
    fs::write(home.path().join("a.wad"), craft(&[(&name, &pet)])).unwrap();
    let types = sample("ki-types.json");
    let decode = ["--decode", "json", "--types", types.to_str().unwrap()];
    let outcome = wad(home.path(), &[&["extract", "a.wad", "-C", "out"], &decode[..]].concat());
    let said = said(&outcome, 1);
    assert!(said.contains("not decoded") && said.lines().count() == 2, "{said}");
    assert!(fs::read(home.path().join("out").join(&name)).unwrap() == pet);
}
