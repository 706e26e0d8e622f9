//! Captures that grow, long conversations, and a running program behind the page.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use worldwire_capture::{CaptureReader, CaptureWriter, LinkType, Record, SecretsKind};
use worldwire_core::value::push_hex;
use worldwire_core::{Limits, Side};
use worldwire_dissect::Options;
use worldwire_inspect::{Answering, Live, LiveRefusal, Settings};

use crate::client::{Page, sample, with_keys};
use crate::ki::{KiCapture, message};

fn followed() -> Settings {
    Settings { follow: true, ..Settings::default() }
}

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// Waits until the page has this many rows and returns its status.
async fn rows_arrive(page: &Page, count: usize) -> Value {
    let wait = async {
        loop {
            let status = page.get("/api/capture").await.json();
            if status["rows"].as_u64() >= Some(count as u64) {
                return status;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(60), wait).await.expect("rows in time")
}

#[tokio::test]
async fn a_growing_capture_gets_the_rows_that_a_complete_one_has() {
    let page = Page::login().await;
    let wanted = page.rows(None).await;
    let matching = page.select(&json!({ "filter": "exists(transId)" })).await;
    let matching = page.rows(Some(&matching["id"])).await;
    let last_with = matching.last().unwrap()["row"].clone();
    page.end().await;
    let whole = std::fs::read(sample("uru-login.pcapng")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcapng");
    // Most cuts are inside a packet.
    let cuts = [whole.len() / 3, whole.len() / 2 + 1, whole.len() - 5, whole.len()];
    std::fs::write(&path, &whole[..cuts[0]]).unwrap();
    let page = Page::open_with(&path, with_keys("uru-keys.toml"), followed()).await;
    rows_arrive(&page, 2).await;
    let request = json!({ "filter": "exists(transId)" });
    let answer = page.request("POST", "/api/selections", &request.to_string()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let selection = answer.json()["id"].clone();
    for pair in cuts.windows(2) {
        append(&path, &whole[pair[0]..pair[1]]);
        sleep(Duration::from_millis(60)).await;
    }
    let last = wanted.len() - 1;
    // Rows after the last packet appear only when a capture ends, and this one has not ended.
    let closing = wanted.iter().rev().take_while(|row| row["packet"] == wanted[last]["packet"]);
    let status = rows_arrive(&page, wanted.len() - closing.count()).await;
    assert_eq!((&status["following"], &status["complete"]), (&json!(true), &json!(false)));
    let rows = page.rows(None).await;
    assert_eq!(rows, wanted[..rows.len()]);
    for (number, row) in rows.iter().enumerate() {
        let detail = page.get(&format!("/api/messages/{number}")).await;
        assert_eq!(detail.json()["name"], row["name"], "{detail:?}");
    }
    // The filter follows the file, too.
    let wait = async {
        while page.rows(Some(&selection)).await.last().is_none_or(|row| row["row"] != last_with) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(60), wait).await.expect("matches in time");
    page.end().await;
}

/// A proxy writes the keys of a conversation after its first packets.
#[tokio::test]
async fn keys_that_follow_the_first_packets_decrypt_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcapng");
    let mut writer = CaptureWriter::new(File::create(&path).unwrap(), &[]).unwrap();
    writer.secrets(SecretsKind::WORLDWIRE, b"# keys follow between the packets\n").unwrap();
    let interface = writer.interface(LinkType::ETHERNET).unwrap();
    writer.flush().unwrap();
    let page = Page::open_with(&path, Options::default(), followed()).await;
    sleep(Duration::from_millis(120)).await;
    let file = std::fs::read(sample("uru-login.pcapng")).unwrap();
    let mut capture = CaptureReader::new(file.as_slice(), &Limits::DEFAULT).unwrap();
    while let Some(record) = capture.next().unwrap() {
        if let Record::Packet(packet) = record {
            writer.packet(interface, packet.time, packet.data, packet.original_length).unwrap();
        }
    }
    writer.flush().unwrap();
    sleep(Duration::from_millis(120)).await;
    let keys = std::fs::read(sample("uru-keys.toml")).unwrap();
    writer.secrets(SecretsKind::WORLDWIRE, &keys).unwrap();
    writer.flush().unwrap();
    rows_arrive(&page, 50).await;
    let rows = page.rows(None).await;
    assert!(rows.iter().any(|row| row["name"] == "auth.AcctLoginRequest"), "{rows:?}");
    assert!(rows.iter().all(|row| row["problem"] == false), "{rows:?}");
    page.end().await;
}

/// Writes two long KI conversations, whose messages contain their number. One is nearly silent.
fn write_long(path: &Path) {
    let mut capture = KiCapture::new(path);
    let mut talks = [50_001, 50_002].map(|port| capture.open(port));
    for number in 0..3_000_u32 {
        let talk = &mut talks[usize::from(number.is_multiple_of(400))];
        let from = if number.is_multiple_of(3) { Side::Client } else { Side::Server };
        capture.write(talk.data(from, &message(4_000, number)));
    }
}

/// The capture has several checkpoints, so that most messages are read from copied states.
#[tokio::test]
async fn late_messages_of_long_conversations_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.pcapng");
    write_long(&path);
    assert!(std::fs::metadata(&path).unwrap().len() > 11 << 20);
    let page = Page::open(&path, Options::default()).await;
    let status = page.complete().await;
    let total = usize::try_from(status["rows"].as_u64().unwrap()).unwrap();
    assert!(total >= 3_006, "{status}");
    for start in (0..total).step_by(83).chain(total - 12..total) {
        let rows = page.get(&format!("/api/rows?start={start}&count=1")).await.json();
        let row = &rows["rows"][0];
        let detail = page.get(&format!("/api/messages/{start}")).await.json();
        for key in ["row", "name", "from", "time", "stream", "packet"] {
            assert_eq!(detail[key], row[key], "{row} {detail}");
        }
        if row["kind"] == "message" {
            // Two openings, two offers and two accepts precede the messages.
            let mut number = String::new();
            push_hex(&mut number, &u32::try_from(start - 6).unwrap().to_le_bytes());
            let body = detail["body"].as_str().unwrap();
            assert!(body[..40].contains(&number), "{start}: {}", &body[..40]);
            assert!(detail["captured"]["bytes"].as_str().unwrap().len() > 8_000, "{start}");
        }
    }
    page.end().await;
}

/// A program that holds messages until they are dropped.
#[derive(Debug)]
struct Desk(watch::Sender<Vec<u64>>);

impl Live for Desk {
    fn kind(&self) -> &'static str {
        "proxy"
    }

    fn state(&self) -> Answering<'_, Value> {
        Box::pin(async { json!({ "held": *self.0.borrow() }) })
    }

    fn perform(&self, request: Value) -> Answering<'_, Result<Vec<Value>, LiveRefusal>> {
        Box::pin(async move {
            let wanted = request["id"].as_u64();
            let mut is_held = false;
            self.0.send_modify(|held| {
                held.retain(|id| {
                    is_held |= Some(*id) == wanted;
                    Some(*id) != wanted
                });
            });
            match is_held {
                true => Ok(vec![json!({ "dropped": wanted })]),
                false => Err(LiveRefusal {
                    problem: "nothing like this is held".to_owned(),
                    field: Some("items[3].slot".to_owned()),
                }),
            }
        })
    }
}

async fn with_desk() -> Page {
    let live: Option<Arc<dyn Live>> = Some(Arc::new(Desk(watch::Sender::new(vec![3, 4]))));
    let settings = Settings { live, ..Settings::default() };
    Page::open_with(&sample("uru-login.pcapng"), Options::default(), settings).await
}

#[tokio::test]
async fn a_running_program_is_watched_and_controlled() {
    let page = with_desk().await;
    assert_eq!(page.get("/api/capture").await.json()["live"], "proxy");
    assert_eq!(page.get("/api/live").await.json(), json!({ "held": [3, 4] }));
    let drop = json!({ "request": "drop", "id": 3 }).to_string();
    let answer = page.request("POST", "/api/live", &drop).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "answers": [{ "dropped": 3 }] })));
    let answer = page.request("POST", "/api/live", &drop).await;
    let wanted = json!({ "error": "nothing like this is held", "field": "items[3].slot" });
    assert_eq!((answer.status, answer.json()), (409, wanted));
    assert_eq!(page.get("/api/live").await.json(), json!({ "held": [4] }));
    page.end().await;
    let page = Page::login().await;
    assert!(page.get("/api/capture").await.json().get("live").is_none());
    assert_eq!(page.get("/api/live").await.status, 404);
    assert_eq!(page.request("POST", "/api/live", &drop).await.status, 404);
    page.end().await;
}

#[tokio::test]
async fn nobody_else_controls_the_program() {
    let page = with_desk().await;
    let (address, token) = (page.address, &page.token);
    let own = address.to_string();
    let body = json!({ "request": "drop", "id": 3 }).to_string();
    let length = body.len();
    let json = "Content-Type: application/json\r\n";
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let cases = [
        (own.clone(), json.to_owned(), 401),
        (own.clone(), format!("{json}Authorization: Bearer {}\r\n", &token[1..]), 401),
        (own.clone(), format!("{json}Cookie: worldwire-1={token}\r\n"), 401),
        (own.clone(), format!("{json}{bearer}Origin: http://evil.example\r\n"), 403),
        (own.clone(), format!("{json}{bearer}Origin: null\r\n"), 403),
        (format!("evil.example:{}", address.port()), format!("{json}{bearer}"), 421),
        // Requests that a form on another site can send without a preflight.
        (own.clone(), format!("Content-Type: text/plain\r\n{bearer}"), 400),
        (own, format!("Content-Type: application/x-www-form-urlencoded\r\n{bearer}"), 400),
    ];
    for (host, lines, wanted) in cases {
        let request = format!(
            "POST /api/live HTTP/1.1\r\nHost: {host}\r\n{lines}Connection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        let answer = page.send(&request).await;
        assert_eq!(answer.status, wanted, "{request}: {answer:?}");
    }
    for wrong in ["", "{", "[1"] {
        assert_eq!(page.request("POST", "/api/live", wrong).await.status, 400, "{wrong}");
    }
    let huge = format!("\"{}\"", "x".repeat(5 << 20));
    assert_eq!(page.request("POST", "/api/live", &huge).await.status, 413);
    assert_eq!(page.request("DELETE", "/api/live", "").await.status, 405);
    assert_eq!(page.get("/api/live").await.json(), json!({ "held": [3, 4] }), "nothing happened");
    page.end().await;
}

#[tokio::test]
async fn a_file_that_another_program_changes_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcapng");
    let whole = std::fs::read(sample("uru-login.pcapng")).unwrap();
    std::fs::write(&path, &whole).unwrap();
    let page = Page::open(&path, Options::default()).await;
    assert_eq!(page.complete().await["changed"], false);
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(page.get("/api/capture").await.json()["changed"], true);
    page.end().await;
    std::fs::write(&path, &whole).unwrap();
    let page = Page::open_with(&path, Options::default(), followed()).await;
    rows_arrive(&page, 10).await;
    append(&path, &[]);
    assert_eq!(page.get("/api/capture").await.json()["changed"], false);
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(page.get("/api/capture").await.json()["changed"], true);
    page.end().await;
}

#[tokio::test]
async fn two_pages_do_not_overwrite_each_others_notes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcapng");
    std::fs::copy(sample("uru-login.pcapng"), &path).unwrap();
    let page = Page::open(&path, with_keys("uru-keys.toml")).await;
    page.complete().await;
    let first = page.get("/api/notes").await.header("etag").unwrap().to_owned();
    // The row's number is from a reading with other keys.
    let rows = page.rows(None).await;
    let is_same = |a: &Value, b: &Value| (&a["packet"], &a["name"]) == (&b["packet"], &b["name"]);
    let is_alone = |row: &Value| rows.iter().filter(|other| is_same(row, other)).count() == 1;
    let own = (10..rows.len()).find(|number| is_alone(&rows[*number])).unwrap();
    let row = &rows[own];
    let note = |row: &Value, number: usize, text: &str| {
        json!({ "version": 1, "notes": [
            { "row": number, "packet": row["packet"], "name": row["name"], "text": text }
        ] })
    };
    let put = |tag: &str, list: &Value| {
        let (address, token, body) = (page.address, &page.token, list.to_string());
        format!(
            "PUT /api/notes HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\nContent-Type: application/json\r\nIf-Match: {tag}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let saved = page.send(&put(&first, &note(row, 3, "mine"))).await;
    assert_eq!(saved.status, 204, "{saved:?}");
    let second = saved.header("etag").unwrap().to_owned();
    assert_ne!(first, second);
    let refused = page.send(&put(&first, &note(row, 3, "theirs"))).await;
    assert_eq!(refused.status, 412, "{refused:?}");
    let found = page.get("/api/notes").await;
    assert_eq!(found.header("etag"), Some(&*second));
    assert_eq!(found.json(), note(row, own, "mine"), "the row was found by packet and name");
    page.end().await;
}
