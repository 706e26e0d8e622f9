//! `worldwire proxy --inspect`: the page's API on a proxy between a login server and a client.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::proxy::{Running, login_server, worldwire};

/// The page of a running program.
pub(crate) struct Page {
    host: String,
    token: String,
}

impl Page {
    /// The page whose address the program printed.
    pub(crate) fn of(said: &str) -> Self {
        let url = said.split("the page is http://").nth(1).unwrap();
        let (host, token) = url.lines().next().unwrap().split_once("/?token=").unwrap();
        Self { host: host.to_owned(), token: token.to_owned() }
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let Self { host, token } = self;
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, json) = self.request("GET", path, "");
        assert_eq!(status, 200, "{path}: {json}");
        json
    }

    fn ask(&self, request: &Value) -> (u16, Value) {
        self.request("POST", "/api/live", &request.to_string())
    }
}

#[test]
fn a_message_is_held_edited_and_sent_from_the_page() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let server = login_server(home);
    let to = server.address();
    let relay = ["proxy", "ki", "--to", &to, "--listen", "127.0.0.1:0", "--inspect"];
    let proxy = Running::start(home, &relay);
    let page = Page::of(&proxy.said);
    let status = page.get("/api/capture");
    assert_eq!((&status["live"], &status["following"]), (&json!("proxy"), &json!(true)));

    let pause = json!({ "request": "pause", "filters": ["LOGIN.MSG_CREATECHARACTER"] });
    assert_eq!(page.ask(&pause).0, 200);
    let nonsense = json!({ "request": "pause", "filters": ["LOGIN.MSG_NOTHING and ("] });
    let (refused, why) = page.ask(&nonsense);
    assert_eq!(refused, 409, "{why}");
    assert_eq!(page.get("/api/live")["filters"], json!(["LOGIN.MSG_CREATECHARACTER"]));

    let visit = ["client", "ki", &proxy.address(), "--account", "merle", "--password-file", "pw"];
    let steps = ["login", "+", "validate", "+", "create", "Merle", "Fire", "+", "list"];
    let mut client = worldwire(home, &[&visit[..], &steps].concat()).spawn().unwrap();
    let held = loop {
        let state = page.get("/api/live");
        if let Some(held) = state["held"].as_array().unwrap().first() {
            break held.clone();
        }
        assert!(client.try_wait().unwrap().is_none(), "{state}");
    };
    assert_eq!(held["name"], "LOGIN.MSG_CREATECHARACTER");
    let line: Value = serde_json::from_str(held["line"].as_str().unwrap()).unwrap();
    let fields = &line["fields"];
    let encode = |fields: &Value| {
        page.ask(&json!({
            "request": "encode", "connection": held["connection"], "id": held["id"],
            "to": "server", "name": "", "fields": fields.to_string()
        }))
    };
    let (done, original) = encode(fields);
    assert_eq!(done, 200, "{original}");
    let digits = original["answers"][0]["bytes"].as_str().unwrap();
    assert!(digits.len() > 20, "{original}");
    let (key, _) = fields.as_object().unwrap().iter().next().unwrap();
    let mut wrong = fields.clone();
    wrong[key] = json!({ "not": ["this"] });
    let (refused, why) = encode(&wrong);
    assert_eq!(refused, 409, "{why}");
    let field = why["field"].as_str().unwrap();
    assert!(field.starts_with(&format!("fields.{key}")), "{why}");
    assert!(page.get("/api/live")["held"][0].is_object(), "encoding sends nothing");

    let edit = json!({
        "request": "edit", "connection": held["connection"], "id": held["id"],
        "fields": fields.to_string()
    });
    assert_eq!(page.ask(&edit).0, 200);
    assert_eq!(page.ask(&edit).0, 409, "it is no longer held");
    let output = client.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    // The traffic arrives as rows, on both sides of the proxy.
    let named = |wanted: &str| {
        let rows = page.get("/api/rows?count=1000");
        let rows = rows["rows"].as_array().unwrap();
        rows.iter().filter(|row| row["name"] == wanted).count()
    };
    while named("LOGIN.MSG_CREATECHARACTER") < 2 {}
    assert_eq!(page.get("/api/live")["held"], json!([]));
    proxy.stop();
}
