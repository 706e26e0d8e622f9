//! `worldwire inspect --edit`: editing an object on the page yields the same archive as editing it
//! with `ki wad extract` and `ki wad update`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::proxy::{printed, worldwire};
use crate::proxy_page::Page;

/// An archive with two pets and other files, and the type list.
fn prepare(home: &Path) {
    let sample = |name: &str| {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
        fs::read(samples.join(name)).unwrap()
    };
    fs::write(home.join("types.json"), sample("ki-types.json")).unwrap();
    let files = home.join("files");
    fs::create_dir_all(files.join("Pets")).unwrap();
    fs::write(files.join("Pets/Nyx.xml"), sample("ki-pet.xml")).unwrap();
    fs::write(files.join("Pets/Other.xml"), sample("ki-pet.xml")).unwrap();
    fs::write(files.join("zone.nav"), sample("ki-zonemap.nav")).unwrap();
    fs::write(files.join("tone.ogg"), b"a sound").unwrap();
    printed(home, &["ki", "wad", "create", "files", "-o", "pets.wad"]);
}

/// Queries the page and stops it afterwards.
fn with_page(home: &Path, words: &[&str], ask: impl FnOnce(&Page)) {
    let mut child = worldwire(home, words).stderr(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
    ask(&Page::of(&format!("the page is {url}")));
    let id = child.id().to_string();
    let killed = std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(killed.success());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
}

#[test]
fn the_page_saves_what_the_commands_build() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    prepare(home);
    let before = fs::read(home.join("pets.wad")).unwrap();
    with_page(home, &["inspect", "pets.wad", "--data", "types.json", "--edit"], |page| {
        let found = page.get("/api/archive/files?search=nyx");
        let file = &found["rows"][0]["file"];
        let object = page.get(&format!("/api/archive/files/{file}/object"));
        let object = object["object"].as_str().unwrap();
        let changed = object.replace("1.25", "2.5");
        assert_ne!(object, changed);
        let objects = json!([{ "file": file, "object": changed }]);
        let ask =
            |request: &Value| page.request("POST", "/api/archive/copies", &request.to_string());
        let (status, answer) = ask(&json!({ "name": "page.wad", "objects": objects }));
        assert_eq!((status, &answer["changed"]), (201, &json!(1)), "{answer}");
        let (status, answer) =
            ask(&json!({ "name": "page.xml", "file": file, "objects": objects }));
        assert_eq!(status, 201, "{answer}");
        let (status, answer) = ask(&json!({ "name": "pets.wad", "objects": objects }));
        assert_eq!((status, &answer["field"]), (409, &json!("name")), "{answer}");
    });
    assert_eq!(fs::read(home.join("pets.wad")).unwrap(), before);

    let extract = ["ki", "wad", "extract", "pets.wad", "-C", "out", "--decode", "json"];
    printed(home, &[&extract[..], &["--types", "types.json"]].concat());
    let path = home.join("out/Pets/Nyx.xml.json");
    let json = fs::read_to_string(&path).unwrap();
    fs::write(&path, json.replace("1.25", "2.5")).unwrap();
    let update = ["ki", "wad", "update", "pets.wad", "--from", "out", "--types", "types.json"];
    let changes = printed(home, &[&update[..], &["-o", "commands.wad"]].concat());
    assert_eq!(changes, "~ Pets/Nyx.xml\n");
    let page = fs::read(home.join("page.wad")).unwrap();
    assert!(page != before && page == fs::read(home.join("commands.wad")).unwrap());
    let alone = fs::read(home.join("page.xml")).unwrap();
    printed(home, &["ki", "wad", "extract", "commands.wad", "Pets/Nyx.xml", "-C", "again"]);
    assert_eq!(alone, fs::read(home.join("again/Pets/Nyx.xml")).unwrap());
    let hidden = fs::read_dir(home)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "nothing unfinished is left");
}

#[test]
fn without_edit_nothing_is_saved() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    prepare(home);
    with_page(home, &["inspect", "pets.wad", "--data", "types.json"], |page| {
        let objects = json!([{ "file": 0, "object": "{}" }]);
        let request = json!({ "name": "page.wad", "objects": objects }).to_string();
        let (status, answer) = page.request("POST", "/api/archive/copies", &request);
        assert_eq!(status, 403, "{answer}");
        assert!(answer["error"].as_str().unwrap().contains("--edit"), "{answer}");
    });
    assert!(!home.join("page.wad").exists());
}
