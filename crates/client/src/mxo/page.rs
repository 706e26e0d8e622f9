//! Questions to the status page of a server.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What a server says that a client should see.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Whether the client has all of it for certain, as far as the server knows.
    pub is_settled: bool,
    /// The views.
    pub views: Json,
}

/// Why a page cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// The network.
    #[error("the status page at {address}: {error}")]
    Io {
        /// Where it is.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// It takes too long.
    #[error("the status page at {0} does not answer")]
    Silent(SocketAddr),
    /// It says something else.
    #[error("the status page at {address}: wanted {wanted}, found {found}")]
    Answer {
        /// Where it is.
        address: SocketAddr,
        /// What was asked for.
        wanted: &'static str,
        /// The beginning of the answer.
        found: String,
    },
}

/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of an answer.
const MAX_BYTES: u64 = 64 << 20;

impl Truth {
    /// Asks what the client with a character should see.
    ///
    /// # Errors
    /// [`PageError`].
    pub async fn of(address: SocketAddr, uid: u64) -> Result<Self, PageError> {
        let body = ask(address, "GET", &format!("/views/{uid}")).await?;
        let whole: Option<Json> = serde_json::from_str(&body).ok();
        let parts = whole.and_then(|mut whole| {
            let is_settled = whole.get("settled")?.as_bool()?;
            Some(Self { is_settled, views: whole.get_mut("views")?.take() })
        });
        parts.ok_or_else(|| PageError::Answer {
            address,
            wanted: "settled and views",
            found: start_of(&body),
        })
    }
}

/// Asks for a page, and returns its body.
///
/// # Errors
/// [`PageError`], also when the server does not say that all is well.
pub async fn ask(address: SocketAddr, method: &str, path: &str) -> Result<String, PageError> {
    let io = |error| PageError::Io { address, error };
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
        Err(_) => return Err(PageError::Silent(address)),
    };
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.starts_with("HTTP/1.1 2") {
        return Ok(body.to_owned());
    }
    let found = if body.is_empty() { start_of(head) } else { start_of(body) };
    Err(PageError::Answer { address, wanted: "an answer", found })
}

fn start_of(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(100).collect()
}
