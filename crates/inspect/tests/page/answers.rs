//! The API's responses about captures.

use std::path::Path;

use serde_json::{Value, json};
use worldwire_core::Side;
use worldwire_dissect::Options;

use crate::client::{Page, sample, with_keys};
use crate::ki::{KiCapture, message};

/// The samples with the keys that decrypt them.
fn samples() -> Vec<(&'static str, Options)> {
    vec![
        ("uru-login.pcapng", with_keys("uru-keys.toml")),
        ("uru-games.pcapng", with_keys("uru-keys.toml")),
        ("uru-age.pcapng", with_keys("uru-keys.toml")),
        ("ki-login.pcapng", with_keys("ki-keys.toml")),
        ("ki-server.pcapng", with_keys("ki-server-keys.toml")),
        ("mxo-world.pcapng", with_keys("mxo-keys.toml")),
        ("tera-login.pcapng", Options::default()),
    ]
}

#[tokio::test]
async fn every_row_of_every_sample_can_be_shown() {
    for (name, options) in samples() {
        let page = Page::open(&sample(name), options).await;
        let status = page.complete().await;
        assert_eq!(status["error"], Value::Null, "{name}: {status}");
        let rows = page.rows(None).await;
        assert!(rows.len() > 10, "{name}");
        // All rows of small samples and some of large ones.
        let step = rows.len().div_ceil(60);
        for row in rows.iter().step_by(step) {
            let answer = page.get(&format!("/api/messages/{}", row["row"])).await;
            let detail = answer.json();
            for key in ["row", "name", "from", "family", "time", "stream"] {
                assert_eq!(detail[key], row[key], "{name}: {row} {detail}");
            }
            if row["kind"] == "message" || row["kind"] == "setup" {
                assert!(!detail["nodes"].as_array().unwrap().is_empty(), "{name}: {detail}");
                assert!(detail["captured"].is_object(), "{name}: {row} {detail}");
                check_places(&detail);
            }
        }
        page.end().await;
    }
}

/// Every field is inside its layer and inside the field around it.
fn check_places(detail: &Value) {
    let layers = detail["layers"].as_array().unwrap();
    for node in detail["nodes"].as_array().unwrap() {
        let layer = &layers[usize::try_from(node["layer"].as_u64().unwrap()).unwrap()];
        let [start, end] = ["start", "end"].map(|key| node[key][0].as_u64().unwrap());
        assert!(start <= end && end <= layer["length"].as_u64().unwrap(), "{node} {layer}");
    }
}

#[tokio::test]
async fn a_message_has_its_fields_layers_and_captured_bytes() {
    let page = Page::login().await;
    let rows = page.rows(None).await;
    let row = rows.iter().find(|row| row["name"] == "auth.AcctLoginRequest").unwrap();
    assert!(row["info"].as_str().unwrap().starts_with("accountName="), "{row}");
    let detail = page.get(&format!("/api/messages/{}", row["row"])).await.json();
    assert_eq!(detail["codec"], "uru.auth");
    let nodes = detail["nodes"].as_array().unwrap();
    let name = nodes.iter().find(|node| node["name"] == "accountName").unwrap();
    assert_eq!(name["kind"], "text");
    let [plain, captured] = [&detail["layers"][0]["bytes"], &detail["captured"]["bytes"]]
        .map(|bytes| bytes.as_str().unwrap());
    assert_eq!(plain, detail["body"]);
    // The captured bytes are encrypted, but their length is the same.
    assert_eq!(plain.len(), captured.len());
    assert_ne!(plain, captured);
    assert_eq!(detail["captured"]["base"], detail["range"][0]);
    let line: Value = serde_json::from_str(detail["line"].as_str().unwrap()).unwrap();
    assert_eq!(line["name"], "auth.AcctLoginRequest");
    page.end().await;
}

#[tokio::test]
async fn selections_are_those_of_the_filter_language() {
    let page = Page::login().await;
    let all = page.rows(None).await;
    let names = |rows: &[Value]| -> Vec<String> {
        rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    let cases = [
        (json!({ "filter": "auth.*" }), None),
        (json!({ "filter": "opened" }), None),
        (json!({ "stream": 2 }), None),
        (json!({ "filter": "result != 0" }), Some(1)),
        (json!({ "search": "PlayerAlreadyExists" }), Some(1)),
        (json!({ "search": "playeralreadyEXISTS", "filter": "auth.PlayerCreateReply" }), Some(1)),
        (json!({ "search": "playeralreadyexists", "match_case": true }), Some(0)),
        (json!({ "search": "PlayerAlreadyExists", "filter": "connect.*" }), Some(0)),
        (json!({ "search": "PlayerCreateReply", "stream": 2 }), None),
        (json!({ "search": "no such \\ \"text\"" }), Some(0)),
    ];
    for (request, wanted) in cases {
        let selection = page.select(&request).await;
        assert_eq!(selection["error"], Value::Null, "{request}: {selection}");
        let rows = page.rows(Some(&selection["id"])).await;
        assert_eq!(selection["rows"], rows.len(), "{request}");
        assert!(wanted.is_none_or(|wanted| wanted == rows.len()), "{request}: {:?}", names(&rows));
        assert!(rows.is_sorted_by_key(|row| row["row"].as_u64()));
        let has = |row: &Value| match (&request["filter"], &request["stream"]) {
            (Value::String(filter), _) if filter == "auth.*" => {
                row["name"].as_str().unwrap().starts_with("auth.")
            }
            (Value::String(filter), _) if filter == "opened" => row["kind"] == "opened",
            (_, stream @ Value::Number(_)) if request["search"].is_null() => {
                row["stream"] == *stream
            }
            _ => rows.contains(row),
        };
        let wanted: Vec<_> = all.iter().filter(|row| has(row)).cloned().collect();
        assert_eq!(rows, wanted, "{request}");
    }
    page.end().await;
}

#[tokio::test]
async fn positions_lead_to_rows() {
    let page = Page::login().await;
    let id = page.select(&json!({ "filter": "auth.*" })).await["id"].clone();
    let rows = page.rows(Some(&id)).await;
    for (position, row) in rows.iter().enumerate() {
        let path = format!("/api/position?selection={id}&row={}", row["row"]);
        assert_eq!(
            page.get(&path).await.json(),
            json!({ "position": position, "row": row["row"] })
        );
    }
    let last = page.get(&format!("/api/position?selection={id}&row=99999")).await.json();
    assert_eq!(last, json!({ "position": rows.len(), "row": null }));
    let time = rows[3]["time"].as_str().unwrap();
    let found = page.get(&format!("/api/position?time={time}")).await.json();
    assert!(found["row"].as_u64() <= rows[3]["row"].as_u64(), "{found}");
    assert_eq!(page.get("/api/position").await.status, 400);
    page.end().await;
}

#[tokio::test]
async fn conversations_and_rates_add_up() {
    let page = Page::login().await;
    let status = page.complete().await;
    let list = page.get("/api/conversations").await.json();
    let conversations = list["conversations"].as_array().unwrap();
    assert_eq!((list["total"].as_u64(), conversations.len()), (Some(4), 4));
    let lines = conversations.iter().flat_map(|it| it["sparkline"].as_array().unwrap());
    let rows: u64 = lines.map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(status["rows"], rows);
    let part = page.get("/api/conversations?start=3&count=5").await.json();
    assert_eq!(part["conversations"][0], conversations[3]);
    let timeline = page.get("/api/timeline?buckets=10").await.json();
    let series = timeline["series"].as_array().unwrap();
    let total: u64 = series.iter().map(|series| series["total"].as_u64().unwrap()).sum();
    assert_eq!(total, rows);
    page.end().await;
}

#[tokio::test]
async fn suggestions_complete_the_word_at_the_cursor() {
    let page = Page::login().await;
    let found = page.get("/api/suggestions?text=result%20%3D%3D%20PlayerAl%20and&cursor=18").await;
    let found = found.json();
    assert_eq!((&found["start"], &found["end"]), (&json!(10), &json!(18)));
    assert_eq!(found["suggestions"][0]["text"], "PlayerAlreadyExists", "{found}");
    page.end().await;
}

/// Writes many KI conversations, a few at a time.
fn write_conversations(path: &Path) {
    let mut capture = KiCapture::new(path);
    for group in 0..120 {
        let ports = (0..5).map(|number| 40_000 + 5 * group + number);
        let mut talks: Vec<_> = ports.map(|port| capture.open(port)).collect();
        for number in 0..10_u16 {
            for (talk, more) in talks.iter_mut().zip(0..) {
                let message = message(900 + 16 * number + more, 0);
                let from = if number.is_multiple_of(3) { Side::Client } else { Side::Server };
                capture.write(talk.data(from, &message));
            }
        }
        talks.iter_mut().for_each(|talk| capture.write(talk.close()));
    }
}

/// The capture has several checkpoints, so that most conversations are not read from its beginning.
#[tokio::test]
async fn messages_of_later_conversations_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.pcapng");
    write_conversations(&path);
    assert!(std::fs::metadata(&path).unwrap().len() > 5 << 20);
    let page = Page::open(&path, Options::default()).await;
    let status = page.complete().await;
    assert_eq!(status["conversations"], 600);
    let total = status["rows"].as_u64().unwrap();
    assert!(total >= 600 * 12, "{status}");
    for start in (0..total).step_by(97) {
        let rows = page.get(&format!("/api/rows?start={start}&count=1")).await.json();
        let row = &rows["rows"][0];
        let detail = page.get(&format!("/api/messages/{start}")).await.json();
        for key in ["row", "name", "from", "time", "stream", "packet"] {
            assert_eq!(detail[key], row[key], "{row} {detail}");
        }
        if row["kind"] == "message" {
            assert!(detail["captured"].is_object(), "{detail}");
        }
    }
    page.end().await;
}
