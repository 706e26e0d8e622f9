//! The local socket on which operators speak to a server that runs.
//!
//! On Unix it is a socket in the server's folder that only its owner can use. Elsewhere it is a port
//! of the loopback address, and a file in the folder says which, with a token that has to come
//! first.
//!
//! Everything is JSON, one value a line, none longer than [`MAX_LINE`]: first the request; if it
//! [has lines](Operated::has_lines) then those, and an empty one. The answer is any number of
//! `{"data":..}` and one `{"done":true}` or `{"error":".."}`.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader, BufWriter,
};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use tracing::warn;

/// The longest line, in bytes: a node of 1 MiB in hexadecimal digits is half of it.
pub const MAX_LINE: usize = 4 << 20;
/// Lines of one request.
const MAX_LINES: usize = 50_000_000;
/// Requests that are answered at the same time.
const MAX_AT_ONCE: usize = 8;
/// Connections on which nothing was asked yet. With one more, the one that has waited longest ends.
const MAX_SILENT: usize = 32;
/// How long a request may take to come, line by line, and its answer to be taken.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a dump may take to come, however fast its lines are.
const DUMP_PATIENCE: Duration = Duration::from_secs(600);

/// What operators speak to.
pub trait Operated: Clone + Send + Sync + 'static {
    /// What an operator may want.
    type Request: Serialize + DeserializeOwned + Send + Sync;

    /// Whether lines follow a request, such as those of a dump.
    fn has_lines(request: &Self::Request) -> bool {
        let _ = request;
        false
    }

    /// Answers a request, in JSON values of which each is a line.
    ///
    /// # Errors
    /// What is wrong, for people.
    fn perform(
        &self,
        request: Self::Request,
        lines: &[String],
    ) -> impl Future<Output = Result<Vec<Json>, String>> + Send;
}

/// Listens for operators.
#[derive(Debug)]
pub struct Listener<O> {
    inner: platform::Listener,
    operated: O,
}

impl<O: Operated> Listener<O> {
    /// Listens in a server's folder, whose lock the caller holds.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn bind(folder: &Path, operated: O) -> io::Result<Self> {
        Ok(Self { inner: platform::Listener::bind(folder)?, operated })
    }

    /// Answers operators until it is dropped.
    pub async fn run(self) {
        let permits = Arc::new(Semaphore::new(MAX_AT_ONCE));
        let mut silent: VecDeque<oneshot::Sender<()>> = VecDeque::new();
        loop {
            let stream = match self.inner.accept().await {
                Ok(stream) => stream,
                Err(error) => {
                    warn!(%error, "cannot accept an operator");
                    sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            silent.retain(|other| !other.is_closed());
            if silent.len() == MAX_SILENT {
                silent.pop_front();
            }
            let (place, has_place) = oneshot::channel();
            silent.push_back(place);
            let (operated, token) = (self.operated.clone(), self.inner.token());
            let permits = Arc::clone(&permits);
            tokio::spawn(async move {
                if let Err(error) =
                    serve(stream, &operated, token.as_deref(), has_place, &permits).await
                {
                    warn!(%error, "an operator's connection broke off");
                }
            });
        }
    }
}

/// The file in a server's folder that leads to its socket.
pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join(platform::FILE)
}

/// Asks the server that runs in a folder.
///
/// # Errors
/// Those of the connection; the inner one is the server's answer.
pub(crate) async fn ask<O: Operated>(
    folder: &Path,
    request: &O::Request,
    lines: &[String],
) -> io::Result<Result<Vec<Json>, String>> {
    let (stream, token) = platform::connect(folder).await?;
    let (reader, writer) = tokio::io::split(stream);
    let mut writer = BufWriter::new(writer);
    if let Some(token) = token {
        write_line(&mut writer, &token).await?;
    }
    write_line(&mut writer, &serde_json::to_string(request)?).await?;
    if O::has_lines(request) {
        for line in lines.iter().filter(|line| !line.trim().is_empty()) {
            write_line(&mut writer, line).await?;
        }
        write_line(&mut writer, "").await?;
    }
    writer.flush().await?;

    let mut reader = BufReader::new(reader);
    let mut data = Vec::new();
    loop {
        let Some(line) = read_line(&mut reader).await? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let Json::Object(mut object) = serde_json::from_str(&line)? else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        if let Some(value) = object.remove("data") {
            data.push(value);
        } else if let Some(error) = object.get("error").and_then(Json::as_str) {
            return Ok(Err(error.to_owned()));
        } else {
            return Ok(Ok(data));
        }
    }
}

/// Answers one request. Until it is there, the connection may lose its place; from then on it has
/// one of the permits, so that who only connects keeps nobody waiting.
async fn serve<O: Operated>(
    stream: impl AsyncRead + AsyncWrite,
    operated: &O,
    token: Option<&str>,
    has_place: oneshot::Receiver<()>,
    permits: &Semaphore,
) -> io::Result<()> {
    let (reader, writer) = tokio::io::split(stream);
    let (mut reader, mut writer) = (BufReader::new(reader), BufWriter::new(writer));
    let asked = tokio::select! {
        asked = request::<O>(&mut reader, token) => asked?,
        _ = has_place => return Err(io::Error::other("too many connections ask nothing")),
    };
    let permit = permits.acquire().await.map_err(io::Error::other)?;
    let answer = match asked {
        Ok(request) => match lines_behind::<O>(&mut reader, &request).await? {
            Ok(lines) => operated.perform(request, &lines).await,
            Err(problem) => Err(problem),
        },
        Err(problem) => Err(problem),
    };
    let end = match answer {
        Ok(data) => {
            for value in data {
                let mut line = json!({});
                line["data"] = value;
                soon(write_line(&mut writer, &line.to_string())).await?;
            }
            json!({ "done": true })
        }
        Err(error) => json!({ "error": error }),
    };
    soon(write_line(&mut writer, &end.to_string())).await?;
    soon(writer.shutdown()).await?;
    drop(permit);
    Ok(())
}

/// A request, or what is wrong with it.
async fn request<O: Operated>(
    reader: &mut (impl AsyncBufRead + Unpin),
    token: Option<&str>,
) -> io::Result<Result<O::Request, String>> {
    if let Some(token) = token
        && soon(read_line(reader)).await?.as_deref() != Some(token)
    {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let line = soon(read_line(reader)).await?.unwrap_or_default();
    Ok(serde_json::from_str(&line).map_err(|error| format!("not a request: {error}")))
}

/// The lines behind a request; or what is wrong with them.
async fn lines_behind<O: Operated>(
    reader: &mut (impl AsyncBufRead + Unpin),
    request: &O::Request,
) -> io::Result<Result<Vec<String>, String>> {
    let mut lines = Vec::new();
    if !O::has_lines(request) {
        return Ok(Ok(lines));
    }
    let all = async {
        loop {
            match soon(read_line(reader)).await? {
                Some(line) if line.is_empty() => return Ok(Ok(lines)),
                Some(line) if lines.len() < MAX_LINES => lines.push(line),
                // Half a dump is none.
                _ => return Ok(Err("wanted an empty line behind the dump".to_owned())),
            }
        }
    };
    timeout(DUMP_PATIENCE, all).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

async fn soon<T>(line: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(PATIENCE, line).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Reads a line without its end; none at the end of the stream.
async fn read_line(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let most = MAX_LINE as u64 + 1;
    (&mut *reader).take(most).read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        let long = line.len() >= MAX_LINE;
        let wanted = format!("wanted a line of at most {MAX_LINE} bytes, found a longer one");
        return Err(match long {
            true => io::Error::new(io::ErrorKind::InvalidData, wanted),
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
    use tokio::net::{UnixListener, UnixStream};

    use super::*;

    /// The socket.
    pub(super) const FILE: &str = "admin.sock";

    #[derive(Debug)]
    pub(super) struct Listener {
        inner: UnixListener,
        file: PathBuf,
    }

    impl Listener {
        pub(super) fn bind(folder: &Path) -> io::Result<Self> {
            use std::os::unix::fs::PermissionsExt as _;

            let file = folder.join(FILE);
            // Whoever made it is gone: the caller holds the lock.
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let inner = UnixListener::bind(&file)?;
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
            Ok(Self { inner, file })
        }

        pub(super) async fn accept(&self) -> io::Result<UnixStream> {
            Ok(self.inner.accept().await?.0)
        }

        /// The file's mode is enough.
        pub(super) fn token(&self) -> Option<String> {
            None
        }
    }

    impl Drop for Listener {
        fn drop(&mut self) {
            // The next server removes it otherwise.
            let _ = std::fs::remove_file(&self.file);
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

    /// The port, and the token on a line of its own.
    pub(super) const FILE: &str = "admin.token";

    #[derive(Debug)]
    pub(super) struct Listener {
        inner: TcpListener,
        file: PathBuf,
        token: String,
    }

    impl Listener {
        pub(super) fn bind(folder: &Path) -> io::Result<Self> {
            let inner = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            inner.set_nonblocking(true)?;
            let mut secret = [0_u8; 32];
            getrandom::fill(&mut secret)?;
            let token: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
            let file = folder.join(FILE);
            std::fs::write(&file, format!("{}\n{token}\n", inner.local_addr()?.port()))?;
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
        let text = std::fs::read_to_string(folder.join(FILE))?;
        let wrong = || io::Error::from(io::ErrorKind::InvalidData);
        let (port, token) = text.trim_end().split_once('\n').ok_or_else(wrong)?;
        let port: u16 = port.trim().parse().map_err(|_| wrong())?;
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        Ok((stream, Some(token.trim().to_owned())))
    }
}
