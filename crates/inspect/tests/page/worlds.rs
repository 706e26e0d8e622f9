//! Views of worlds: archives, vaults, ages.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use worldwire_capture::CaptureWriter;
use worldwire_dissect::Options;
use worldwire_inspect::{KiArchive, Settings};

use crate::client::{Page, sample, with_keys};

/// The page on an archive of the samples.
async fn archive(name: &str) -> (Page, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pcapng");
    CaptureWriter::new(File::create(&empty).unwrap(), &[]).unwrap().flush().unwrap();
    let bytes = std::fs::read(sample(name)).unwrap();
    let archive = Some(Arc::new(KiArchive::open(name, bytes).unwrap()));
    let settings = Settings { archive, ..Settings::default() };
    (Page::open_with(&empty, Options::default(), settings).await, folder)
}

/// The number of the file with this path.
async fn number(page: &Page, path: &str) -> u64 {
    let found = page.get(&format!("/api/archive/files?search={path}")).await.json();
    let rows = found["rows"].as_array().unwrap();
    rows.iter().find(|row| row["path"] == path).unwrap()["file"].as_u64().unwrap()
}

#[tokio::test]
async fn an_archive_is_listed_and_its_files_are_decoded() {
    let (page, _folder) = archive("ki-zone.wad").await;
    let status = page.get("/api/capture").await.json();
    assert_eq!((&status["file"], &status["views"]), (&json!("ki-zone.wad"), &json!(["archive"])));
    assert_eq!(status["archive"]["files"], 4);
    let root = page.get("/api/archive/files").await.json();
    assert_eq!(root["total"], 4);
    assert_eq!(root["rows"][0], json!({ "path": "Locale/", "files": 1 }));
    let inner = page.get("/api/archive/files?folder=Locale/English/").await.json();
    assert_eq!(inner["rows"][0]["path"], "Locale/English/MadeUp.lang");
    let part = page.get("/api/archive/files?start=3&count=1").await.json();
    assert_eq!((&part["total"], part["rows"].as_array().unwrap().len()), (&json!(4), 1));

    let graph = number(&page, "zone.nav").await;
    let detail = page.get(&format!("/api/archive/files/{graph}")).await.json();
    assert_eq!((&detail["kind"], &detail["codec"]), (&json!("graph"), &json!("ki.nav")));
    assert_eq!((&detail["picture"], &detail["cut"]), (&json!(true), &json!(false)));
    let names: Vec<_> = detail["nodes"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert!(names.contains(&&json!("last_id")), "{names:?}");
    assert_eq!(detail["layers"][0]["length"], 90);
    let picture = page.get(&format!("/api/archive/files/{graph}/picture")).await;
    assert_eq!(picture.header("content-type").unwrap(), "image/svg+xml");
    assert!(picture.header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert!(picture.body.starts_with(b"<svg "));

    let texts = number(&page, "Locale/English/MadeUp.lang").await;
    let detail = page.get(&format!("/api/archive/files/{texts}")).await.json();
    assert!(detail["text"].as_str().unwrap().starts_with("1:MadeUp\r\n"), "{}", detail["text"]);
    page.end().await;
}

#[tokio::test]
async fn a_file_is_exported_under_a_harmless_name() {
    let (page, _folder) = archive("ki-hostile.wad").await;
    let file = page.get("/api/archive/files/0/content").await;
    assert_eq!(file.header("content-disposition").unwrap(), "attachment; filename=\"outside.txt\"");
    assert_eq!(file.header("content-type").unwrap(), "application/octet-stream");
    assert_eq!(file.body.len(), 18);
    page.end().await;
}

/// Files are found by number, so no path leads out of the archive.
#[tokio::test]
async fn nothing_outside_the_archive_is_served() {
    let (page, _folder) = archive("ki-made-up.wad").await;
    for path in ["3", "18446744073709551616", "-1", "..%2f..%2fCargo.toml", "Root.txt"] {
        for part in ["", "/content", "/picture"] {
            let answer = page.get(&format!("/api/archive/files/{path}{part}")).await;
            assert!([400, 404].contains(&answer.status), "{path}{part}: {answer:?}");
        }
    }
    for folder in ["../", "/", "/etc/", "C:/"] {
        let found = page.get(&format!("/api/archive/files?folder={folder}")).await.json();
        assert_eq!(found["total"], 0, "{folder}");
    }
    let plain = number(&page, "Root.txt").await;
    assert_eq!(page.get(&format!("/api/archive/files/{plain}/picture")).await.status, 404);
    page.end().await;
    let login = Page::login().await;
    for path in ["", "/0", "/0/content", "/0/picture"] {
        assert_eq!(login.get(&format!("/api/archive/files{path}")).await.status, 404, "{path}");
    }
    login.end().await;
}

/// Every byte of an archive may be wrong.
#[tokio::test]
async fn damaged_archives_are_refused_or_shown_in_part() {
    let whole = std::fs::read(sample("ki-zone.wad")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pcapng");
    CaptureWriter::new(File::create(&empty).unwrap(), &[]).unwrap().flush().unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        let Ok(archive) = KiArchive::open("damaged", bytes) else { continue };
        let settings = Settings { archive: Some(Arc::new(archive)), ..Settings::default() };
        let page = Page::open_with(&empty, Options::default(), settings).await;
        for file in 0..4 {
            for part in ["", "/picture"] {
                let answer = page.get(&format!("/api/archive/files/{file}{part}")).await;
                assert!([200, 404, 422].contains(&answer.status), "{at} {file}{part}: {answer:?}");
            }
        }
        page.end().await;
    }
}

/// The page on a capture of the samples, with the descriptors of its states.
async fn uru(name: &str) -> Page {
    let mut options = with_keys("uru-keys.toml");
    let names = ["Fernhollow.sdl", "things.sdl"];
    let texts = names.map(|name| std::fs::read_to_string(sample("sdl").join(name)).unwrap());
    options.definitions.add(names.into_iter().zip(texts.iter().map(String::as_str)));
    let page = Page::open(&sample(name), options).await;
    page.complete().await;
    page
}

/// Repeats a request until the response covers the whole capture.
async fn world(page: &Page, path: &str) -> Value {
    let wait = async {
        loop {
            let answer = page.get(path).await.json();
            if answer["status"]["complete"] == true {
                return answer;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(60), wait).await.expect("the capture is read in time")
}

#[tokio::test]
async fn the_vault_is_what_messages_showed_of_it() {
    let page = uru("uru-walk.pcapng").await;
    let status = page.get("/api/capture").await.json();
    assert_eq!(status["views"], json!(["vault", "ages"]));
    let roots = world(&page, "/api/uru/vault").await;
    assert_eq!(roots["known"], json!({ "nodes": 4, "references": 3 }));
    let player = json!({ "id": 10190, "type": "Player", "title": "Yeesha", "children": 3 });
    assert_eq!(roots["nodes"], json!([player]));
    let children = page.get("/api/uru/vault?parent=10190").await.json();
    assert_eq!(children["nodes"][1]["title"], "CleftSolved");
    let found = page.get("/api/uru/vault?search=JOURNAL").await.json();
    assert_eq!(found["nodes"][0]["id"], 10193);
    let journal = page.get("/api/uru/vault/10193").await.json();
    assert_eq!(journal["parents"], json!([player]));
    let text = journal["fields"].as_array().unwrap().iter().find(|it| it["name"] == "Text_1");
    assert_eq!(text.unwrap()["game"], "NoteContents");
    assert_eq!(text.unwrap()["value"], "fifty-nine steps and a lever");
    let history = journal["history"].as_array().unwrap();
    assert_eq!(history.len(), 3);
    // Each change names the row of its message.
    let row = history[2]["row"].as_u64().unwrap();
    let message = page.get(&format!("/api/messages/{row}")).await.json();
    assert_eq!(message["name"], "auth.VaultNodeSave");
    assert!(message["line"].as_str().unwrap().contains("fifty-nine steps"));
    assert_eq!(page.get("/api/uru/vault/1").await.status, 404);
    page.end().await;
}

#[tokio::test]
async fn ages_have_states_with_a_history_and_positions() {
    let page = uru("uru-walk.pcapng").await;
    let ages = world(&page, "/api/uru/ages").await;
    assert_eq!(
        (&ages["ages"][0]["age"], &ages["ages"][0]["name"]),
        (&json!(8), &json!("Fernhollow"))
    );
    let objects = page.get("/api/uru/ages/8").await.json();
    let lever = objects["objects"].as_array().unwrap().iter().find(|it| it["name"] == "FernLever");
    let lever = lever.unwrap();
    assert_eq!((&lever["descriptor"], &lever["changes"]), (&json!("fhLever"), &json!(3)));
    let lever = page.get(&format!("/api/uru/ages/8/objects/{}", lever["object"])).await.json();
    let label = json!({ "name": "label", "value": "pulled at 50 s" });
    assert_eq!(lever["variables"][1], label);
    let paths = page.get("/api/uru/ages/8/paths").await.json();
    let paths = paths["paths"].as_array().unwrap();
    let names: Vec<_> = paths.iter().map(|path| path["player"].as_str().unwrap()).collect();
    assert_eq!(names, ["Yeesha", "Atrus"]);
    let points = paths[0]["points"].as_array().unwrap();
    // The last point is a warp.
    assert_eq!(points.len(), 61);
    assert_eq!(points[60].as_array().unwrap()[2..], [json!(40.0), json!(0.0), json!(3.0)]);
    for path in ["/api/uru/ages/9", "/api/uru/ages/9/paths", "/api/uru/ages/8/objects/99"] {
        assert_eq!(page.get(path).await.status, 404, "{path}");
    }
    page.end().await;
}

/// Without descriptors, states are bytes.
#[tokio::test]
async fn states_without_descriptors_are_bytes() {
    let page = Page::open(&sample("uru-age.pcapng"), with_keys("uru-keys.toml")).await;
    page.complete().await;
    let ages = world(&page, "/api/uru/ages").await;
    assert_eq!(ages["ages"][0]["objects"], 2);
    let objects = page.get("/api/uru/ages/7/objects/0").await.json();
    assert_eq!(objects["variables"][0]["name"], "bytes");
    page.end().await;
}
