//! The local socket through which operators control a running server.
//!
//! On Unix, it is a socket in the server's directory that only its owner can use. On other systems,
//! it is a port on the loopback address; a file in the directory contains the port and a token,
//! which clients send first.
//!
//! Client and server exchange JSON, one value per line, at most [`MAX_LINE`] bytes each. The client
//! sends a request. If the request [has lines](Operated::has_lines), they follow, and then an empty
//! line. The server replies with any number of `{"data":..}` and then `{"done":true}` or
//! `{"error":".."}`. The latter includes `"failed":true` if the server did not refuse the request
//! but failed to carry it out. Until then it sends `{"busy":true}` every second, so that the client
//! can distinguish a slow server from one that hangs.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use subtle::ConstantTimeEq as _;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader, BufWriter,
};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use tracing::warn;

/// The longest line, in bytes: twice a node of 1 MiB in hexadecimal digits.
pub const MAX_LINE: usize = 4 << 20;
/// The maximum number of lines after a request.
const MAX_LINES: usize = 50_000_000;
/// The maximum number of requests handled at the same time.
const MAX_AT_ONCE: usize = 8;
/// The maximum number of connections without a request. If another arrives, the oldest is closed.
const MAX_SILENT: usize = 32;
/// How long each line of a request may take to arrive, and how long each line of a reply may take
/// to be read.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a server that is working on a request says so.
const BUSY_EVERY: Duration = Duration::from_secs(1);
/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(10);
/// How long all lines of a dump may take to arrive.
const DUMP_PATIENCE: Duration = Duration::from_secs(600);

/// A server that operators can control.
pub trait Operated: Clone + Send + Sync + 'static {
    /// The requests that operators can make.
    type Request: Serialize + DeserializeOwned + Send + Sync;
    /// Why a request was refused, in words for the operator.
    type Error: fmt::Display + Send;

    /// Whether the server failed to carry out the request, for example because its database failed.
    /// Otherwise, it refused the request.
    fn is_failure(error: &Self::Error) -> bool {
        let _ = error;
        false
    }

    /// Whether lines follow a request, such as a dump.
    fn has_lines(request: &Self::Request) -> bool {
        let _ = request;
        false
    }

    /// Answers a request with JSON values, one per line.
    fn perform(
        &self,
        request: Self::Request,
        lines: &[String],
    ) -> impl Future<Output = Result<Vec<Json>, Self::Error>> + Send;
}

/// Why a server did not carry out an operator's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The reason, in words for the operator.
    pub problem: String,
    /// Whether the server failed to carry out the request instead of refusing it.
    pub is_failure: bool,
}

impl Rejection {
    /// The rejection that reports a server's error.
    pub(crate) fn of<O: Operated>(error: &O::Error) -> Self {
        Self { problem: error.to_string(), is_failure: O::is_failure(error) }
    }

    /// The rejection of a request that cannot be read.
    fn malformed(error: &Malformed) -> Self {
        Self { problem: error.to_string(), is_failure: false }
    }
}

/// A server's reply.
pub(crate) type Answer = Result<Vec<Json>, Rejection>;

/// The lines of a reply.
pub(crate) fn answer_lines(answer: Answer) -> impl Iterator<Item = String> {
    let (data, end) = match answer {
        Ok(data) => (data, json!({ "done": true })),
        Err(Rejection { problem, is_failure: true }) => {
            (Vec::new(), json!({ "error": problem, "failed": true }))
        }
        Err(Rejection { problem, .. }) => (Vec::new(), json!({ "error": problem })),
    };
    let data = data.into_iter().map(|value| {
        let mut line = json!({});
        line["data"] = value;
        line
    });
    data.chain([end]).map(|line| line.to_string())
}

/// Reads a reply line by line.
#[derive(Debug, Default)]
pub(crate) struct AnswerReader(Vec<Json>);

impl AnswerReader {
    /// Takes the next line. Returns the reply after its last line.
    ///
    /// # Errors
    /// The line is not part of a reply.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<Option<Answer>> {
        let Json::Object(mut object) = serde_json::from_str(line)? else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        if let Some(value) = object.remove("data") {
            self.0.push(value);
            return Ok(None);
        }
        if object.contains_key("busy") {
            return Ok(None);
        }
        let data = std::mem::take(&mut self.0);
        Ok(Some(match object.get("error").and_then(Json::as_str) {
            Some(error) => {
                let is_failure = object.get("failed").and_then(Json::as_bool).unwrap_or(false);
                Err(Rejection { problem: error.to_owned(), is_failure })
            }
            None => Ok(data),
        }))
    }
}

/// Writes a number as text, because many programs keep only 53 bits of one.
pub(crate) fn as_text<S: serde::Serializer>(
    number: &u64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

/// Formats a request without its fields, which may include a password.
pub(crate) fn debug_request(request: &impl Serialize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let json = serde_json::to_value(request).unwrap_or_default();
    write!(f, "Request({})", json["request"])
}

/// Listens for operators.
#[derive(Debug)]
pub struct Listener<O> {
    inner: platform::Listener,
    operated: O,
}

impl<O: Operated> Listener<O> {
    /// Listens in a server's directory. The caller must hold the directory's lock.
    pub async fn bind(folder: &Path, operated: O) -> io::Result<Self> {
        Ok(Self { inner: platform::Listener::bind(folder).await?, operated })
    }

    /// Answers operators until it is dropped.
    pub async fn run(self) {
        let permits = Arc::new(Semaphore::new(MAX_AT_ONCE));
        let mut silent: VecDeque<oneshot::Sender<()>> = VecDeque::new();
        loop {
            let stream = match self.inner.accept().await {
                Ok(stream) => stream,
                Err(error) => {
                    warn!(%error, "cannot accept an operator's connection");
                    sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            silent.retain(|other| !other.is_closed());
            if silent.len() == MAX_SILENT {
                silent.pop_front();
            }
            let (slot, lost_slot) = oneshot::channel();
            silent.push_back(slot);
            let (operated, token) = (self.operated.clone(), self.inner.token());
            let permits = Arc::clone(&permits);
            tokio::spawn(async move {
                if let Err(error) =
                    serve(stream, &operated, token.as_deref(), lost_slot, &permits).await
                {
                    warn!(%error, "an operator's connection failed");
                }
            });
        }
    }
}

/// The socket in a server's directory, or the file that says where it is.
pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join(platform::FILE)
}

/// Removes the socket of a server that was killed: a process that does not serve yet must not look
/// like a server that does not reply. The caller must hold the directory's lock.
pub(crate) fn remove_stale(folder: &Path) -> io::Result<()> {
    match std::fs::remove_file(file(folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Sends a request to the server that is running in a directory. The outer error is the
/// connection's; the inner one is the server's reply.
///
/// # Errors
/// The server is not running, or its socket fails.
pub async fn ask<O: Operated>(
    folder: &Path,
    request: &O::Request,
    lines: &[String],
) -> io::Result<Result<Vec<Json>, Rejection>> {
    let (stream, token) = within(SILENCE, platform::connect(folder)).await?;
    let (reader, writer) = tokio::io::split(stream);
    let mut writer = BufWriter::new(writer);
    if let Some(token) = token {
        write_line(&mut writer, &token).await?;
    }
    write_line(&mut writer, &serde_json::to_string(request)?).await?;
    if O::has_lines(request) {
        for line in lines.iter().filter(|line| !line.trim().is_empty()) {
            in_time(write_line(&mut writer, line)).await?;
        }
        write_line(&mut writer, "").await?;
    }
    in_time(writer.flush()).await?;

    let mut reader = BufReader::new(reader);
    let mut answer = AnswerReader::default();
    loop {
        let Some(line) = within(SILENCE, read_line(&mut reader)).await? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        if let Some(answer) = answer.line(&line)? {
            return Ok(answer);
        }
    }
}

/// Handles one request. A connection takes a permit only once it has sent a request, so that idle
/// connections do not block others. Until then, it can lose its slot to a newer connection.
async fn serve<O: Operated>(
    stream: impl AsyncRead + AsyncWrite,
    operated: &O,
    token: Option<&str>,
    lost_slot: oneshot::Receiver<()>,
    permits: &Semaphore,
) -> io::Result<()> {
    let (reader, writer) = tokio::io::split(stream);
    let (mut reader, mut writer) = (BufReader::new(reader), BufWriter::new(writer));
    let request = tokio::select! {
        request = read_request::<O>(&mut reader, token) => request?,
        _ = lost_slot => return Err(io::Error::other("too many connections without a request")),
    };
    let answer = async {
        let permit = permits.acquire().await.map_err(io::Error::other)?;
        let answer = match request {
            Ok(request) => match read_lines::<O>(&mut reader, &request).await? {
                Ok(lines) => {
                    let answer = operated.perform(request, &lines).await;
                    answer.map_err(|error| Rejection::of::<O>(&error))
                }
                Err(malformed) => Err(Rejection::malformed(&malformed)),
            },
            Err(malformed) => Err(Rejection::malformed(&malformed)),
        };
        io::Result::Ok((answer, permit))
    };
    tokio::pin!(answer);
    let (answer, permit) = loop {
        match timeout(BUSY_EVERY, &mut answer).await {
            Ok(answer) => break answer?,
            Err(_) => {
                in_time(write_line(&mut writer, BUSY)).await?;
                in_time(writer.flush()).await?;
            }
        }
    };
    for line in answer_lines(answer) {
        in_time(write_line(&mut writer, &line)).await?;
    }
    in_time(writer.shutdown()).await?;
    drop(permit);
    Ok(())
}

/// What a server says while it works on a request.
const BUSY: &str = r#"{"busy":true}"#;

/// Why a request cannot be read. The operator receives this as the reply.
#[derive(Debug, thiserror::Error)]
enum Malformed {
    #[error("not a request: {0}")]
    Request(serde_json::Error),
    #[error("the lines after the request must end with an empty line")]
    Unfinished,
}

/// Reads a request.
async fn read_request<O: Operated>(
    reader: &mut (impl AsyncBufRead + Unpin),
    token: Option<&str>,
) -> io::Result<Result<O::Request, Malformed>> {
    if let Some(token) = token {
        let found = in_time(read_line(reader)).await?.unwrap_or_default();
        // Compare in constant time: the duration must not reveal how much of a guess is right.
        if !bool::from(found.as_bytes().ct_eq(token.as_bytes())) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
    }
    let line = in_time(read_line(reader)).await?.unwrap_or_default();
    Ok(serde_json::from_str(&line).map_err(Malformed::Request))
}

/// Reads the lines after a request.
async fn read_lines<O: Operated>(
    reader: &mut (impl AsyncBufRead + Unpin),
    request: &O::Request,
) -> io::Result<Result<Vec<String>, Malformed>> {
    let mut lines = Vec::new();
    if !O::has_lines(request) {
        return Ok(Ok(lines));
    }
    let all = async {
        loop {
            match in_time(read_line(reader)).await? {
                Some(line) if line.is_empty() => return Ok(Ok(lines)),
                Some(line) if lines.len() < MAX_LINES => lines.push(line),
                // An incomplete dump must not be imported.
                _ => return Ok(Err(Malformed::Unfinished)),
            }
        }
    };
    timeout(DUMP_PATIENCE, all).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Fails if a line takes too long.
async fn in_time<T>(line: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    within(PATIENCE, line).await
}

async fn within<T>(
    time: Duration,
    operation: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    timeout(time, operation).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Reads a line without its terminator; `None` at the end of the stream.
async fn read_line(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let limit = MAX_LINE as u64 + 1;
    (&mut *reader).take(limit).read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(match line.len() >= MAX_LINE {
            true => io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a line is longer than {MAX_LINE} bytes"),
            ),
            false => io::ErrorKind::UnexpectedEof.into(),
        });
    }
    let text = String::from_utf8(line);
    text.map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

async fn write_line(writer: &mut (impl AsyncWrite + Unpin), line: &str) -> io::Result<()> {
    writer.write_all(line.as_bytes()).await?;
    writer.write_all(b"\n").await
}

#[cfg(unix)]
mod platform {
    use std::fs::{self, DirBuilder, Permissions};
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    use std::os::unix::net::UnixListener as StdUnixListener;

    use tokio::net::{UnixListener, UnixStream};

    use super::*;
    use crate::folder::blocking;

    /// The name of the socket.
    pub(super) const FILE: &str = "admin.sock";
    /// The directory in which the socket is created. Its path must not be longer than the socket's,
    /// because the system limits the length of a socket's path.
    const PRIVATE: &str = ".admin";

    #[derive(Debug)]
    pub(super) struct Listener {
        inner: UnixListener,
        file: PathBuf,
    }

    impl Listener {
        pub(super) async fn bind(folder: &Path) -> io::Result<Self> {
            let (file, private) = (folder.join(FILE), folder.join(PRIVATE));
            let made = file.clone();
            let inner = blocking(move || private_socket(&made, &private)).await?;
            Ok(Self { inner: UnixListener::from_std(inner)?, file })
        }

        pub(super) async fn accept(&self) -> io::Result<UnixStream> {
            Ok(self.inner.accept().await?.0)
        }

        /// `None`, because the file's mode is enough.
        pub(super) fn token(&self) -> Option<String> {
            None
        }
    }

    /// Creates a socket that only its owner can use. The caller holds the lock on the directory.
    fn private_socket(file: &Path, private: &Path) -> io::Result<StdUnixListener> {
        // A server that ended early may have left this file.
        match fs::remove_dir_all(private) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // The umask determines the permissions of a new socket. Therefore, create it where nobody
        // else can reach it, and move it once it is private.
        DirBuilder::new().mode(0o700).create(private)?;
        let socket = private.join("s");
        let bound = StdUnixListener::bind(&socket).and_then(|inner| {
            inner.set_nonblocking(true)?;
            fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
            // This also replaces a socket that an earlier server left behind.
            fs::rename(&socket, file)?;
            Ok(inner)
        });
        let _ = fs::remove_dir_all(private);
        bound
    }

    impl Drop for Listener {
        fn drop(&mut self) {
            // If this fails, the next server removes it.
            let _ = fs::remove_file(&self.file);
        }
    }

    pub(super) async fn connect(folder: &Path) -> io::Result<(UnixStream, Option<String>)> {
        Ok((UnixStream::connect(folder.join(FILE)).await?, None))
    }
}

#[cfg(not(unix))]
mod platform {
    use std::net::Ipv4Addr;

    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::folder::blocking;

    /// The name of the file with the port on its first line and the token on its second.
    pub(super) const FILE: &str = "admin.token";

    #[derive(Debug)]
    pub(super) struct Listener {
        inner: TcpListener,
        file: PathBuf,
        token: String,
    }

    impl Listener {
        pub(super) async fn bind(folder: &Path) -> io::Result<Self> {
            let inner = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            inner.set_nonblocking(true)?;
            let mut secret = [0_u8; 32];
            getrandom::fill(&mut secret)?;
            let token: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
            let file = folder.join(FILE);
            let (made, text) = (file.clone(), format!("{}\n{token}\n", inner.local_addr()?.port()));
            blocking(move || std::fs::write(made, text)).await?;
            Ok(Self { inner: TcpListener::from_std(inner)?, file, token })
        }

        pub(super) async fn accept(&self) -> io::Result<TcpStream> {
            Ok(self.inner.accept().await?.0)
        }

        pub(super) fn token(&self) -> Option<String> {
            Some(self.token.clone())
        }
    }

    impl Drop for Listener {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.file);
        }
    }

    pub(super) async fn connect(folder: &Path) -> io::Result<(TcpStream, Option<String>)> {
        let text = tokio::fs::read_to_string(folder.join(FILE)).await?;
        let wrong = || io::Error::from(io::ErrorKind::InvalidData);
        let (port, token) = text.trim_end().split_once('\n').ok_or_else(wrong)?;
        let port: u16 = port.trim().parse().map_err(|_| wrong())?;
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        Ok((stream, Some(token.trim().to_owned())))
    }
}
