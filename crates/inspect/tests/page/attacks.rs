//! Requests that must be refused, and captures that must do no harm.

use std::io::Write as _;
use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use worldwire_dissect::Options;
use worldwire_inspect::{InspectError, Inspector, Settings};

use crate::client::{Page, sample, with_keys};

#[tokio::test]
async fn only_clients_with_the_token_are_answered() {
    let page = Page::login().await;
    let (address, token) = (page.address, &page.token);
    let get = |path: &str, lines: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{lines}Connection: close\r\n\r\n")
    };
    let paths =
        ["/", "/main.js", "/api/capture", "/api/rows", "/api/messages/1", "/api/events", "/x"];
    for path in paths {
        for lines in ["", "Cookie: worldwire-1=x\r\n", "Authorization: Bearer x\r\n"] {
            let answer = page.send(&get(path, lines)).await;
            assert_eq!(answer.status, 401, "{path} {lines}: {answer:?}");
            assert!(!String::from_utf8_lossy(&answer.body).contains("uru"), "{answer:?}");
        }
    }
    for wrong in ["", &token[1..], &format!("{token}0"), &token.to_uppercase()] {
        let answer = page.send(&get(&format!("/?token={wrong}"), "")).await;
        assert_eq!(answer.status, 401, "{wrong}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    // The token in the path of the API is not enough: it would end up in logs.
    assert_eq!(page.send(&get(&format!("/api/rows?token={token}"), "")).await.status, 401);
    let entry = page.send(&get(&format!("/?token={token}"), "")).await;
    let cookie = entry.header("set-cookie").unwrap();
    for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let lines = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    assert_eq!(page.send(&get("/", &lines)).await.status, 200);
    assert_eq!(page.send(&get("/api/rows", &lines)).await.status, 200);
    page.end().await;
}

#[tokio::test]
async fn other_sites_are_refused() {
    let page = Page::login().await;
    let (address, token) = (page.address, &page.token);
    let port = address.port();
    let own = address.to_string();
    let cases = [
        (own.clone(), None, 200),
        (format!("localhost:{port}"), None, 200),
        (own.clone(), Some(format!("http://{own}")), 200),
        // DNS rebinding: the attacker's name resolves to this machine.
        (format!("evil.example:{port}"), None, 421),
        (format!("evil.example:{port}"), Some(format!("http://evil.example:{port}")), 421),
        (format!("127.0.0.1.evil.example:{port}"), None, 421),
        ("127.0.0.1:1".to_owned(), None, 421),
        (own.clone(), Some("http://evil.example".to_owned()), 403),
        (own.clone(), Some("null".to_owned()), 403),
        (own.clone(), Some(format!("https://{own}")), 403),
        (own.clone(), Some("http://127.0.0.1:1".to_owned()), 403),
    ];
    for (host, origin, wanted) in cases {
        let origin = origin.map(|it| format!("Origin: {it}\r\n")).unwrap_or_default();
        for path in ["/api/capture", "/", "/api/events"] {
            let answer = page
                .send(&format!(
                    "GET {path} HTTP/1.1\r\nHost: {host}\r\n{origin}Authorization: Bearer {token}\r\n\
                     Connection: close\r\n\r\n"
                ))
                .await;
            let is_socket = path == "/api/events" && wanted == 200;
            // The request is not a WebSocket handshake, but it is admitted.
            let wanted = if is_socket { 400 } else { wanted };
            assert_eq!(answer.status, wanted, "{host} {origin} {path}: {answer:?}");
        }
    }
    page.end().await;
}

#[tokio::test]
async fn every_answer_has_a_strict_policy() {
    let page = Page::login().await;
    for path in ["/", "/main.js", "/api/capture", "/api/messages/99999", "/nothing"] {
        let answer = page.get(path).await;
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    page.end().await;
}

#[tokio::test]
async fn no_other_file_is_served() {
    let page = Page::login().await;
    let paths = [
        "/../Cargo.toml",
        "/..%2f..%2fCargo.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/page/../main.js",
        "/main.js/",
        "/main.js%00.html",
        "/uru-login.pcapng",
        "/samples/uru-keys.toml",
        "/api/export/..%2f..%2fetc%2fpasswd",
        "/api/export/jsonl%2f..",
        "/api/messages/..%2f1",
        "/api/",
    ];
    for path in paths {
        let answer = page.get(path).await;
        assert!(matches!(answer.status, 400 | 404), "{path}: {answer:?}");
        assert!(!String::from_utf8_lossy(&answer.body).contains("root:"), "{path}");
    }
    page.end().await;
}

#[tokio::test]
async fn wrong_requests_are_explained() {
    let page = Page::login().await;
    let cases = [
        ("/api/rows?start=-1", 400),
        ("/api/rows?start=99999999999999999999999", 400),
        ("/api/rows?selection=7", 404),
        ("/api/messages/59000", 404),
        ("/api/messages/x", 400),
        ("/api/timeline?from=x", 400),
        ("/api/export/exe", 404),
        ("/api/selections/7", 404),
    ];
    for (path, wanted) in cases {
        let answer = page.get(path).await;
        assert_eq!(answer.status, wanted, "{path}: {answer:?}");
        assert!(wanted < 400 || answer.json()["error"].is_string(), "{path}: {answer:?}");
    }
    let extreme = format!("/api/rows?start={0}&count={0}", usize::MAX);
    assert_eq!(page.get(&extreme).await.json()["rows"], json!([]));
    let extreme = format!("/api/conversations?start={0}&count={0}", usize::MAX);
    assert_eq!(page.get(&extreme).await.json()["conversations"], json!([]));
    let extreme = format!("/api/timeline?buckets={}&from={}&to={}", usize::MAX, i64::MIN, i64::MAX);
    assert_eq!(page.get(&extreme).await.status, 200);
    let filter = page.request("POST", "/api/selections", r#"{"filter":"result = 3"}"#).await;
    assert_eq!((filter.status, &filter.json()["column"]), (400, &json!(8)));
    let filter = page.request("POST", "/api/selections", r#"{"filter":"resul == 1"}"#).await;
    let wanted = json!("no matching message has a field `resul`; did you mean `result`?");
    assert_eq!((filter.status, &filter.json()["error"]), (400, &wanted));
    for body in ["", "7", "{", r#"{"filter":1}"#, r#"{"unknown":1}"#, "{\"filter\":\"\u{0}\"}"] {
        assert_eq!(page.request("POST", "/api/selections", body).await.status, 400, "{body}");
    }
    let long = json!({ "filter": "a".repeat(70_000) }).to_string();
    assert_eq!(page.request("POST", "/api/selections", &long).await.status, 400);
    let deep = json!({ "filter": "(".repeat(60_000) }).to_string();
    assert_eq!(page.request("POST", "/api/selections", &deep).await.status, 400);
    let huge = "x".repeat(9 << 20);
    assert_eq!(page.request("PUT", "/api/notes", &huge).await.status, 413);
    for method in ["POST", "DELETE", "PATCH"] {
        let answer = page.request(method, "/api/capture", "").await;
        let wanted = json!({ "error": "Method Not Allowed" });
        assert_eq!((answer.status, answer.json()), (405, wanted), "{method}");
    }
    page.end().await;
}

#[tokio::test]
async fn a_hundred_clients_are_answered() {
    let page = Page::login().await.shared();
    let rows = page.rows(None).await.len();
    let clients = (0..100).map(|number| {
        let page = Arc::clone(&page);
        tokio::spawn(async move {
            for step in 0..5 {
                let row = (number * 7 + step * 13) % rows;
                let detail = page.get(&format!("/api/messages/{row}")).await;
                assert_eq!((detail.status, &detail.json()["row"]), (200, &json!(row)));
                assert_eq!(page.get("/api/rows?count=50").await.status, 200);
                assert_eq!(page.get("/api/timeline").await.status, 200);
                let filter = json!({ "filter": format!("transId == {number}") }).to_string();
                let answer = page.request("POST", "/api/selections", &filter).await;
                // Too many searches at the same time are refused, not queued.
                assert!(matches!(answer.status, 201 | 429), "{answer:?}");
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    assert_eq!(page.get("/api/capture").await.status, 200);
}

#[tokio::test]
async fn a_socket_reports_the_capture_and_selections() {
    let page = Page::login().await;
    let (address, token) = (page.address, &page.token);
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /api/events HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
         Authorization: Bearer {token}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    page.select(&json!({ "filter": "auth.*" })).await;
    let mut text = String::new();
    while !text.contains("\"type\":\"selection\"") {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await.unwrap();
        assert_ne!(count, 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(text.starts_with("HTTP/1.1 101"), "{text}");
    assert!(text.contains("\"type\":\"capture\""), "{text}");
    // A client that sends too much is cut off; the others are not.
    let mut frame = vec![0x82, 0xff];
    frame.extend_from_slice(&(1_u64 << 40).to_be_bytes());
    frame.extend_from_slice(&[0; 64]);
    stream.write_all(&frame).await.unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert_eq!(page.get("/api/capture").await.status, 200);
    page.end().await;
}

#[tokio::test]
async fn damaged_and_growing_captures_are_shown() {
    let whole = std::fs::read(sample("uru-login.pcapng")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcapng");
    for content in [&whole[..10], &[], b"not a capture, but a text of some length"] {
        std::fs::write(&path, content).unwrap();
        let options = with_keys("uru-keys.toml");
        let refused = Inspector::open(&path, options, Settings::default()).await;
        assert!(matches!(refused, Err(InspectError::NoCapture { .. })), "{refused:?}");
    }
    std::fs::write(&path, &whole[..whole.len() / 2 + 1]).unwrap();
    let page = Page::open(&path, with_keys("uru-keys.toml")).await;
    let status = page.complete().await;
    assert!(status["error"].is_string() && status["rows"].as_u64() > Some(0), "{status}");
    page.end().await;
    std::fs::write(&path, &whole).unwrap();
    let page = Page::open(&path, with_keys("uru-keys.toml")).await;
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&whole).unwrap();
    let status = page.complete().await;
    assert_eq!(status["size"], whole.len());
    let count = status["rows"].as_u64().unwrap();
    let selection =
        page.select(&json!({ "filter": "exists(transId) or not exists(transId)" })).await;
    assert_eq!(selection["rows"], count);
    let last = page.get(&format!("/api/messages/{}", count - 1)).await;
    assert_eq!(last.status, 200);
    page.end().await;
    // A truncated file no longer has its messages, which is an error and not a crash.
    std::fs::write(&path, &whole).unwrap();
    let page = Page::open(&path, with_keys("uru-keys.toml")).await;
    page.complete().await;
    std::fs::write(&path, &whole[..100]).unwrap();
    let answer = page.get(&format!("/api/messages/{}", count - 1)).await;
    assert_eq!(answer.status, 500, "{answer:?}");
    page.end().await;
}

#[tokio::test]
async fn bytes_in_any_order_are_no_capture_that_harms() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcapng");
    let whole = std::fs::read(sample("uru-games.pcapng")).unwrap();
    let mut state = 1_u32;
    for _ in 0..20 {
        let mut bytes = whole[..whole.len().min(60_000)].to_vec();
        for _ in 0..40 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = state as usize % bytes.len();
            bytes[at] ^= 1 << (state >> 29);
        }
        std::fs::write(&path, &bytes).unwrap();
        let page = Page::open(&path, Options::default()).await;
        page.complete().await;
        for row in page.rows(None).await.iter().rev().step_by(40) {
            let answer = page.get(&format!("/api/messages/{}", row["row"])).await;
            assert_eq!(answer.json()["name"], row["name"], "{answer:?}");
        }
        page.end().await;
    }
}
