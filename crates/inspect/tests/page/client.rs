//! A page on a sample and a small HTTP client.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use worldwire_dissect::{Keys, Options};
use worldwire_inspect::{InspectError, Inspector, Settings};
use worldwire_net::Stop;

/// How long anything may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running page.
pub(crate) struct Page {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    stop: Stop,
    serving: JoinHandle<Result<(), InspectError>>,
}

/// A response to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

pub(crate) fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(name)
}

/// Options with the keys of a sample.
pub(crate) fn with_keys(name: &str) -> Options {
    let text = std::fs::read_to_string(sample(name)).unwrap();
    Options { keys: Keys::parse(&text).unwrap(), ..Options::default() }
}

impl Page {
    pub(crate) async fn open(capture: &Path, options: Options) -> Self {
        Self::open_with(capture, options, Settings::default()).await
    }

    pub(crate) async fn open_with(capture: &Path, options: Options, settings: Settings) -> Self {
        let inspector = Inspector::open(capture, options, settings).await.unwrap();
        let url = inspector.url();
        let (host, token) = url.split_once("/?token=").unwrap();
        let address = host.strip_prefix("http://").unwrap().parse().unwrap();
        let stop = Stop::new();
        let serving = tokio::spawn(inspector.serve(stop.signal()));
        Self { address, token: token.to_owned(), stop, serving }
    }

    /// The page on the Uru login.
    pub(crate) async fn login() -> Self {
        let page = Self::open(&sample("uru-login.pcapng"), with_keys("uru-keys.toml")).await;
        page.complete().await;
        page
    }

    /// Sends a request as it is and reads the response to its end.
    pub(crate) async fn send(&self, request: &str) -> Answer {
        let exchange = async {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut bytes = Vec::new();
            // A refused upload can end with a reset.
            let _ = stream.read_to_end(&mut bytes).await;
            bytes
        };
        let bytes = timeout(PATIENCE, exchange).await.expect("an answer in time");
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { joined(&bytes[end..]) } else { bytes[end..].to_vec() };
        Answer { status, head, body }
    }

    /// Sends a request with the token.
    pub(crate) async fn request(&self, method: &str, path: &str, body: &str) -> Answer {
        let Self { address, token, .. } = self;
        let length = body.len();
        self.send(&format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n\
             {body}"
        ))
        .await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, "").await
    }

    /// Waits until the capture has been read and returns its status.
    pub(crate) async fn complete(&self) -> Value {
        let wait = async {
            loop {
                let status = self.get("/api/capture").await.json();
                if status["complete"] == true {
                    return status;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, wait).await.expect("the capture is read in time")
    }

    /// Selects rows, waits until all are found, and returns the status of the selection.
    pub(crate) async fn select(&self, request: &Value) -> Value {
        let answer = self.request("POST", "/api/selections", &request.to_string()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let path = format!("/api/selections/{}", answer.json()["id"]);
        let wait = async {
            loop {
                let status = self.get(&path).await.json();
                if status["complete"] == true {
                    return status;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, wait).await.expect("the search ends in time")
    }

    /// All rows of a selection or of the capture.
    pub(crate) async fn rows(&self, selection: Option<&Value>) -> Vec<Value> {
        let of = selection.map_or(String::new(), |id| format!("&selection={id}"));
        let answer = self.get(&format!("/api/rows?start=0&count=1000{of}")).await.json();
        answer["rows"].as_array().unwrap().clone()
    }

    pub(crate) async fn end(self) {
        self.stop.stop();
        self.serving.await.unwrap().unwrap();
    }

    pub(crate) fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }
}

/// The content of a chunked body.
fn joined(mut chunked: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = chunked.windows(2).position(|two| two == b"\r\n") {
        let digits = std::str::from_utf8(&chunked[..end]).unwrap();
        let length = usize::from_str_radix(digits, 16).unwrap();
        if length == 0 {
            break;
        }
        body.extend_from_slice(&chunked[end + 2..end + 2 + length]);
        chunked = &chunked[end + 4 + length..];
    }
    body
}
