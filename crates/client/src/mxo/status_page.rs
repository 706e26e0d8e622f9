//! Requests to a server's status page.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What a client should see, according to the server.
#[derive(Clone, Debug)]
pub struct ExpectedViews {
    /// Whether the client has acknowledged all views.
    pub is_settled: bool,
    /// The views.
    pub views: Json,
}

/// Why a request to the status page failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatusPageError {
    /// A network error.
    #[error("the status page at {address}: {}", worldwire_net::reason(error))]
    Io {
        /// The page's address.
        address: SocketAddr,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The server did not reply in time.
    #[error("the status page at {0} does not respond")]
    Silent(SocketAddr),
    /// The server replied with an error.
    #[error("the status page at {address} replied: {text}")]
    Refused {
        /// The page's address.
        address: SocketAddr,
        /// The beginning of the reply.
        text: String,
    },
    /// The server sent an unexpected reply.
    #[error("the status page at {address}: wanted {wanted}, found {found}")]
    Answer {
        /// The page's address.
        address: SocketAddr,
        /// What the reply should contain.
        wanted: &'static str,
        /// The beginning of the reply.
        found: String,
    },
}

/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum size of a reply.
const MAX_BYTES: u64 = 64 << 20;

impl ExpectedViews {
    /// Asks what the client of a character should see.
    pub async fn fetch(address: SocketAddr, uid: u64) -> Result<Self, StatusPageError> {
        let body = query(address, "GET", &format!("/views/{uid}")).await?;
        let whole: Option<Json> = serde_json::from_str(&body).ok();
        let parts = whole.and_then(|mut whole| {
            let is_settled = whole.get("settled")?.as_bool()?;
            Some(Self { is_settled, views: whole.get_mut("views")?.take() })
        });
        parts.ok_or_else(|| StatusPageError::Answer {
            address,
            wanted: "settled and views",
            found: start_of(&body),
        })
    }
}

/// Sends a request and returns the body of the reply. Any status other than 200 is an error.
pub async fn query(
    address: SocketAddr,
    method: &str,
    path: &str,
) -> Result<String, StatusPageError> {
    let io = |error| StatusPageError::Io { address, error };
    let asking = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(MAX_BYTES).read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = match timeout(PATIENCE, asking).await {
        Ok(answer) => answer.map_err(io)?,
        Err(_) => return Err(StatusPageError::Silent(address)),
    };
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.starts_with("HTTP/1.1 2") {
        return Ok(body.to_owned());
    }
    let text = if body.is_empty() { start_of(head) } else { start_of(body) };
    Err(StatusPageError::Refused { address, text })
}

fn start_of(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(100).collect()
}
