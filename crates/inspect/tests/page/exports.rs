//! Files exported from the page.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use worldwire_capture::{CaptureReader, Conversations, EventKind, Record};
use worldwire_core::Limits;

use crate::client::{Page, sample, with_keys};

#[tokio::test]
async fn lines_and_tables_have_the_selected_rows() {
    let page = Page::login().await;
    for request in [json!({ "filter": "auth.*" }), json!({ "stream": 1 }), json!({})] {
        let id = page.select(&request).await["id"].clone();
        let rows = page.rows(Some(&id)).await;
        let lines = page.get(&format!("/api/export/jsonl?selection={id}")).await;
        assert_eq!(
            lines.header("content-disposition").unwrap(),
            "attachment; filename=\"selection.jsonl\""
        );
        let text = String::from_utf8(lines.body).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let names = |rows: &[Value]| rows.iter().map(|row| row["name"].clone()).collect::<Vec<_>>();
        assert_eq!(names(&lines), names(&rows), "{request}");
        let table = page.get(&format!("/api/export/csv?selection={id}")).await;
        let table = String::from_utf8(table.body).unwrap();
        assert_eq!(table.lines().count(), rows.len() + 1, "{request}");
        assert!(table.starts_with("row,time,packet,stream,family,from,name,kind,length,info\n"));
    }
    page.end().await;
}

#[tokio::test]
async fn packets_are_those_of_the_selected_conversations() {
    let page = Page::login().await;
    let id = page.select(&json!({ "filter": "auth.PlayerCreateReply" })).await["id"].clone();
    let packets = page.get(&format!("/api/export/pcapng?selection={id}")).await;
    let ports = |file: &[u8]| {
        let mut capture = CaptureReader::new(file, &Limits::DEFAULT).unwrap();
        let mut conversations = Conversations::new(&Limits::DEFAULT);
        let mut ports = BTreeSet::new();
        while let Some(record) = capture.next().unwrap() {
            let Record::Packet(packet) = record else { continue };
            conversations.push(&packet, &mut |event| {
                if let EventKind::Opened(opened) = event.kind {
                    ports.insert(opened.client.port());
                }
            });
        }
        ports
    };
    let all = std::fs::read(sample("uru-login.pcapng")).unwrap();
    assert_eq!((ports(&all).len(), ports(&packets.body).len()), (4, 1));
    let everything = page.get("/api/export/pcapng").await;
    assert_eq!(ports(&everything.body), ports(&all));
    page.end().await;
}

#[tokio::test]
async fn notes_are_saved_beside_the_capture_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evening.pcapng");
    std::fs::copy(sample("uru-login.pcapng"), &path).unwrap();
    let page = Page::open(&path, with_keys("uru-keys.toml")).await;
    assert_eq!(page.get("/api/notes").await.json(), json!({ "version": 1, "notes": [] }));
    let notes = json!({ "version": 1, "notes": [
        { "row": 3, "packet": 9, "name": "auth.X", "text": "who? <b>\u{202e}" },
    ] });
    let answer = page.request("PUT", "/api/notes", &notes.to_string()).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(page.get("/api/notes").await.json(), notes);
    for wrong in
        ["{}", r#"{"version":1,"notes":[{"row":-1}]}"#, r#"{"version":1,"notes":[],"path":"/x"}"#]
    {
        assert_eq!(page.request("PUT", "/api/notes", wrong).await.status, 400, "{wrong}");
    }
    assert_eq!(page.get("/api/notes").await.json(), notes);
    let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    let files: BTreeSet<_> = files.collect();
    let wanted = ["evening.pcapng", "evening.pcapng.worldwire-notes.json"];
    assert_eq!(files, wanted.map(Into::into).into());
    page.end().await;
}
