//! `worldwire serve --inspect`: the page of a running server.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use worldwire_inspect::{Answering, InspectError, Inspector, Live, LiveRefusal, Settings};
use worldwire_net::Signal;
use worldwire_server::operators::{self, Operated};

use crate::command::inspect::{empty_capture, failed};
use crate::output::{Failure, Scratch, reason, recent_log, say};

/// The parts of a server that the page shows, through its operators' requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) kind: &'static str,
    /// The lists: a title, and the request that returns one object per row.
    pub(super) lists: &'static [(&'static str, &'static str)],
    /// The page's views of the world, which are filled by requests.
    pub(super) views: &'static [&'static str],
    /// The requests that the page may make.
    pub(super) allowed: &'static [&'static str],
    /// The member of a kick request that names the account.
    pub(super) kicked: &'static str,
    /// The column of the first list that contains the account.
    pub(super) account: &'static str,
}

/// A page that is served next to a server.
#[derive(Debug)]
pub(super) struct Page {
    serving: JoinHandle<Result<(), InspectError>>,
    _folder: Scratch,
}

/// The maximum number of rows of a list.
const MAX_ROWS: usize = 500;
/// The maximum length of the figures, and how long the server may take to return them.
const MAX_FIGURES: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(2);

impl Page {
    /// Opens the page. The server must run until the page [ends](Self::ended).
    pub(super) async fn open<S: Operated>(
        listen: SocketAddr,
        folder: &Path,
        shown: Shown,
        status: Option<SocketAddr>,
        signal: Signal,
    ) -> Result<Self, Failure> {
        let (scratch, path) = empty_capture(shown.kind)?;
        let server: Server<S> =
            Server { folder: folder.to_owned(), shown, status, of: PhantomData };
        let live: Option<Arc<dyn Live>> = Some(Arc::new(server));
        let settings = Settings { listen, live, ..Settings::default() };
        let options = worldwire_dissect::Options::default();
        let inspector = Inspector::open(&path, options, settings).await;
        let inspector = inspector.map_err(|error| failed(&error))?;
        say(format_args!("worldwire: the page is {}", inspector.url()));
        Ok(Self { serving: tokio::spawn(inspector.serve(signal)), _folder: scratch })
    }

    /// Closes the page before the signal.
    pub(super) async fn close(self) {
        self.serving.abort();
        self.ended().await;
    }

    /// Waits for the end of the page, after the signal.
    pub(super) async fn ended(self) {
        let _ = self.serving.await;
    }
}

/// A running server, through its operators' socket and its status page.
struct Server<S> {
    folder: PathBuf,
    shown: Shown,
    status: Option<SocketAddr>,
    of: PhantomData<fn() -> S>,
}

impl<S> fmt::Debug for Server<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("shown", &self.shown).finish_non_exhaustive()
    }
}

impl<S: Operated> Server<S> {
    async fn ask(&self, request: Json) -> Result<Vec<Json>, String> {
        let request: S::Request =
            serde_json::from_value(request).map_err(|error| format!("the request: {error}"))?;
        match operators::ask::<S>(&self.folder, &request, &[]).await {
            Ok(answer) => answer.map_err(|why| why.problem),
            Err(error) => Err(reason(&error)),
        }
    }

    async fn lists(&self) -> Json {
        let mut lists = Vec::new();
        for (title, request) in self.shown.lists {
            let request = serde_json::from_str(request).unwrap_or_default();
            lists.push(match self.ask(request).await {
                Ok(mut rows) => {
                    let total = rows.len();
                    rows.truncate(MAX_ROWS);
                    json!({ "title": title, "total": total, "rows": rows })
                }
                Err(why) => json!({ "title": title, "total": 0, "rows": [], "error": why }),
            });
        }
        lists.into()
    }
}

impl<S: Operated> Live for Server<S> {
    fn kind(&self) -> &'static str {
        "server"
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn views(&self) -> &'static [&'static str] {
        self.shown.views
    }

    fn state(&self) -> Answering<'_, Json> {
        Box::pin(async {
            let figures = match self.status {
                Some(status) => figures(status).await,
                None => None,
            };
            json!({
                "server": self.shown.kind,
                "lists": self.lists().await,
                "figures": figures,
                "kick": { "member": self.shown.kicked, "column": self.shown.account },
                "log": recent_log(),
            })
        })
    }

    fn perform(&self, request: Json) -> Answering<'_, Result<Vec<Json>, LiveRefusal>> {
        Box::pin(async move {
            let name = request["request"].as_str().unwrap_or_default();
            let answer = match self.shown.allowed.contains(&name) {
                true => self.ask(request).await,
                false => Err(format!("the page cannot request {name:?}; use the command line")),
            };
            answer.map_err(|problem| LiveRefusal { problem, field: None })
        })
    }
}

/// The figures that a status page exports to Prometheus, by name.
async fn figures(status: SocketAddr) -> Option<Map<String, Json>> {
    let fetch = async {
        let mut stream = TcpStream::connect(status).await.ok()?;
        let request =
            format!("GET /metrics HTTP/1.1\r\nHost: {status}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut text = String::new();
        stream.take(MAX_FIGURES).read_to_string(&mut text).await.ok()?;
        Some(text)
    };
    let text = timeout(PATIENCE, fetch).await.ok()??;
    let (_, body) = text.split_once("\r\n\r\n")?;
    let lines = body.lines().filter(|line| !line.starts_with('#'));
    let figure = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        let name = name.strip_prefix("worldwire_")?;
        Some((name.to_owned(), Json::from(value.parse::<f64>().ok()?)))
    };
    Some(lines.filter_map(figure).collect())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn figures_are_numbers_by_name() {
        let page = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = page.local_addr().unwrap();
        let answer = "HTTP/1.1 200 OK\r\n\r\n# HELP worldwire_players Players.\n\
                      worldwire_players 3\nother 5\nworldwire_messages_total{from=\"client\"} 7\n\
                      worldwire_odd x\n";
        let serving = tokio::spawn(async move {
            let (mut stream, _) = page.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let found = figures(at).await.unwrap();
        serving.await.unwrap();
        let wanted = json!({ "players": 3.0, "messages_total{from=\"client\"}": 7.0 });
        assert_eq!(Json::from(found), wanted);
        assert!(figures(at).await.is_none(), "nobody listens any more");
    }
}
