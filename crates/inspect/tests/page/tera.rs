//! TERA's opcodes without a name.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use worldwire_dissect::{Definitions, Options};
use worldwire_inspect::Settings;
use worldwire_tera::file::{CodeMap, MapKind};

use crate::client::{Page, sample, with_keys};

/// The page on TERA's sample, with the definitions in these directories.
async fn opened(folders: &[&str]) -> Page {
    let mut definitions = Definitions::built_in();
    for folder in folders {
        definitions.add_folder(sample(folder)).unwrap();
    }
    let options = Options { definitions, ..Options::default() };
    let page = Page::open(&sample("tera-login.pcapng"), options).await;
    page.complete().await;
    page
}

#[tokio::test]
async fn an_unknown_opcode_is_listed_with_its_neighbours() {
    let page = opened(&["tera"]).await;
    let views = page.get("/api/capture").await.json()["views"].clone();
    assert_eq!(views, json!(["tera"]));
    let board = page.get("/api/tera/opcodes").await.json();
    assert_eq!((&board["total"], &board["messages"]), (&json!(1), &json!(15)), "{board}");
    let build = &board["builds"][0];
    assert_eq!((&build["revision"], &build["has_map"]), (&json!(999_001), &json!(true)));
    let found = &board["opcodes"][0];
    let wanted = json!({
        "build": 0, "opcode": 51042, "messages": [0, 3], "shortest": 42, "longest": 108,
        "row": found["row"],
        "before": [
            { "name": "51042", "messages": 2 }, { "name": "C_START_SKILL", "messages": 1 }
        ],
        "after": [
            { "name": "51042", "messages": 2 }, { "name": "S_WEATHER_INFO", "messages": 1 }
        ],
    });
    let sorted = |value: &Value| {
        let mut list = value.as_array().unwrap().clone();
        list.sort_by_key(|it| it["name"].as_str().unwrap().to_owned());
        list
    };
    for key in ["before", "after"] {
        assert_eq!(sorted(&found[key]), sorted(&wanted[key]));
    }
    for key in ["build", "opcode", "messages", "shortest", "longest"] {
        assert_eq!(found[key], wanted[key], "{key}");
    }
    let row = page.get(&format!("/api/rows?start={}&count=1", found["row"])).await.json();
    assert_eq!(row["rows"][0]["name"], "tera.51042");
    page.end().await;
}

#[tokio::test]
async fn candidates_are_ranked_and_decode_a_sample() {
    let page = opened(&["tera"]).await;
    let ranked = page.get("/api/tera/opcodes/51042?top=2").await.json();
    let [first, second] = [&ranked["candidates"][0], &ranked["candidates"][1]];
    // These are the figures in the transcript of `tera def rank` in docs/tera.md.
    let shown = |it: &Value| (it["title"].clone(), it["score"].clone(), it["clean"].clone());
    assert_eq!(shown(first), (json!("S_PARTY_MEMBER_LIST.1"), json!(55.5), json!(3)));
    assert_eq!(shown(second), (json!("S_LOGIN_ACCOUNT_INFO.1"), json!(-30.0), json!(0)));
    assert_eq!((&second["mapped"], &first["mapped"]), (&json!(30_112), &Value::Null));
    assert_eq!(second["notes"], json!({ "trailing_bytes": 3 }));
    assert_eq!((&ranked["tried"], &ranked["tied"]), (&json!(3), &json!([])));
    let samples = ranked["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 3);
    let row = &samples[1][0];
    let layout = async |definition: &str, header: u32, row: &Value| {
        let path = format!(
            "/api/tera/opcodes/51042/layout?definition={definition}&header={header}&row={row}"
        );
        page.get(&path).await
    };
    let right = layout("S_PARTY_MEMBER_LIST.1", 4, row).await.json();
    assert_eq!((&right["error"], &right["notes"]), (&Value::Null, &json!([])), "{right}");
    assert!(right["nodes"].as_array().unwrap().iter().any(|node| node["name"] == "members"));
    assert_eq!(right["bytes"].as_str().unwrap().len(), 2 * 75);
    let wrong = layout("S_CHAT.2", 4, row).await.json();
    assert!(wrong["error"].as_str().unwrap().contains("fields.authorName"), "{wrong}");
    let short = layout("S_LOGIN_ACCOUNT_INFO.1", 4, row).await.json();
    assert_eq!(short["notes"][0][0], "trailing_bytes");
    for (definition, header, row, status) in [
        ("S_NOTHING.1", 4, row, 404),
        ("S_CHAT.9", 4, row, 404),
        ("S_CHAT", 4, row, 404),
        ("S_CHAT.2", 5, row, 400),
        ("S_CHAT.2", 4, &json!(0), 404),
    ] {
        let answer = layout(definition, header, row).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    for (path, status) in [
        ("/api/tera/opcodes/51043", 404),
        ("/api/tera/opcodes/51042?build=7", 404),
        ("/api/tera/opcodes/70000", 400),
        ("/api/tera/opcodes/S_CHAT", 400),
    ] {
        let answer = page.get(path).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.json()["error"].is_string());
    }
    page.end().await;
}

#[tokio::test]
async fn accepted_names_are_added_to_the_map() {
    let page = opened(&["tera"]).await;
    let names = |names: Value| json!({ "build": 0, "names": names }).to_string();
    let accepted = names(json!({ "51042": "S_PARTY_MEMBER_LIST" }));
    let answer = page.request("POST", "/api/tera/map", &accepted).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    assert_eq!(answer["file"], "protocol.999001.map");
    let text = answer["text"].as_str().unwrap();
    let (map, problems) = CodeMap::parse(MapKind::Protocol, "protocol.999001.map", text);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(map.code("S_PARTY_MEMBER_LIST"), Some(51_042));
    let own = std::fs::read_to_string(sample("tera/map/protocol.999001.map")).unwrap();
    let (own, _) = CodeMap::parse(MapKind::Protocol, "own", &own);
    for (name, code) in own.iter() {
        assert_eq!(map.code(name), Some(code), "{name} is kept");
    }
    for (wrong, part) in [
        (names(json!({ "51042": "S_LOGIN_ACCOUNT_INFO" })), "already in the map"),
        (names(json!({ "30112": "S_PARTY_MEMBER_LIST" })), "also the code of"),
        (names(json!({ "1": "S_NEW", "2": "S_NEW" })), "already in the map"),
        (names(json!({ "1": "S NEW\n" })), "not a valid name"),
        (names(json!({ "70000": "S_NEW" })), "u16"),
        (json!({ "names": {}, "file": "/etc/passwd" }).to_string(), "unknown field"),
    ] {
        let answer = page.request("POST", "/api/tera/map", &wrong).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.json()["error"].as_str().unwrap().contains(part), "{answer:?}");
    }
    let other = json!({ "build": 1, "names": {} }).to_string();
    assert_eq!(page.request("POST", "/api/tera/map", &other).await.status, 404);
    page.end().await;
}

/// Without a map, all opcodes are unknown except for those that are the same in every build.
#[tokio::test]
async fn without_a_map_every_opcode_is_unknown() {
    let page = opened(&["tera/definitions"]).await;
    let board = page.get("/api/tera/opcodes").await.json();
    assert_eq!(board["builds"][0]["has_map"], false);
    let opcodes = board["opcodes"].as_array().unwrap();
    assert!(opcodes.len() > 8, "{board}");
    for of in opcodes {
        let answer = page.get(&format!("/api/tera/opcodes/{}", of["opcode"])).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.json()["candidates"].is_array());
    }
    page.end().await;
}

#[tokio::test]
async fn the_board_grows_with_the_capture() {
    let whole = std::fs::read(sample("tera-login.pcapng")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcapng");
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let settings = Settings { follow: true, ..Settings::default() };
    let page = Page::open_with(&path, Options::default(), settings).await;
    let before = page.get("/api/tera/opcodes").await.json()["messages"].as_u64().unwrap();
    assert!(before < 15, "{before}");
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&whole[whole.len() / 2..]).unwrap();
    let wait = async {
        while page.get("/api/tera/opcodes").await.json()["messages"] != 15 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(60), wait).await.expect("messages in time");
    page.end().await;
}

#[tokio::test]
async fn another_family_has_no_opcodes() {
    let page = Page::open(&sample("uru-login.pcapng"), with_keys("uru-keys.toml")).await;
    page.complete().await;
    let board = page.get("/api/tera/opcodes").await.json();
    assert_eq!((&board["total"], &board["opcodes"]), (&json!(0), &json!([])));
    page.end().await;
}
