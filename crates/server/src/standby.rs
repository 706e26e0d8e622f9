//! A process that waits to take over a server of any family from another process.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};
use worldwire_net::Signal;

use crate::config::{ConfigError, ServerConfig};
use crate::folder::blocking;
use crate::metrics::Metrics;
use crate::page;
use crate::start::{
    Absent, StartError, at, configuration, in_config, listen_status, lock_folder, or_close,
};
use crate::store::follow::{Copied, Follower, Led, Look, Taken};
use crate::store::lease::{LOOK_EVERY, SharedStore, Verdict};
use crate::store::lock::FolderLock;
use crate::store::outage::Outage;
use crate::store::seal::{KEY_FILE, ServerKey};
use crate::store::{self, StoreError};

/// How often to try to take over from a process that renews no lease.
const TRY_EVERY: Duration = Duration::from_secs(1);

/// The resources that a standby opens before it reads any data.
pub(crate) struct Opened<C> {
    pub(crate) lock: FolderLock,
    pub(crate) config: C,
    pub(crate) absent: Absent,
    pub(crate) key: ServerKey,
    pub(crate) waiting: Waiting,
}

/// The database, and the standby's status page.
pub(crate) struct Waiting {
    pub(crate) store: Arc<dyn SharedStore>,
    status: Option<StatusPort>,
    view: Arc<View>,
    /// The name that operators use for the server, such as `shard`.
    name: &'static str,
}

impl Waiting {
    /// The standby's observations.
    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view)
    }
}

/// Opens a server's directory and its database, and binds only the port of the status page. `files`
/// are the files that the directory needs besides the key for passwords. On an error, nothing is
/// left open.
pub(crate) async fn open<C: ServerConfig>(
    folder: &Path,
    name: &'static str,
    change: impl FnOnce(&mut C),
    status: impl FnOnce(&C) -> Result<Option<SocketAddr>, ConfigError>,
    files: impl FnOnce(&C) -> Vec<PathBuf>,
) -> Result<Opened<C>, StartError> {
    let lock = lock_folder(folder).await?;
    let (config, absent) = configuration(folder, change)?;
    let status = status(&config).map_err(in_config::<C>(folder))?;
    let Some(url) = config.database_url() else {
        return Err(StartError::NotShared { name, config: C::FILE });
    };
    let key = folder.join(KEY_FILE);
    let files = files(&config).into_iter().map(|file| folder.join(file));
    for file in files.chain([key.clone()]) {
        if !file.exists() {
            return Err(StartError::Lacks(file));
        }
    }
    let view = Arc::<View>::default();
    let status = match listen_status(status).await? {
        Some(tcp) => Some(StatusPort::open(tcp, &view).map_err(at(folder))?),
        None => None,
    };
    let key = blocking(move || ServerKey::load(&key)).await?;
    let store: Arc<dyn SharedStore> = Arc::new(store::open_shared(folder, url).await?);
    Ok(Opened { lock, config, absent, key, waiting: Waiting { store, status, view, name } })
}

/// A copy of a server's data, and everything needed to take over the server.
pub(crate) struct Standby<C> {
    waiting: Waiting,
    follower: Follower<C>,
}

/// A server that this process has taken over.
pub(crate) struct TakenOver<C, P> {
    pub(crate) led: Led<C>,
    /// The ports for clients.
    pub(crate) ports: P,
    /// The port of the status page, which is free for the server's own page.
    pub(crate) status: Option<TcpListener>,
}

impl<C: Copied> Standby<C> {
    /// Reads the whole database into an empty copy. Closes the database after an error.
    pub(crate) async fn read(waiting: Waiting, copy: C) -> Result<Self, C::Error> {
        let follower = Follower::open(Arc::clone(&waiting.store), copy).await;
        let follower = or_close(follower, &*waiting.store).await?;
        Ok(Self { waiting, follower })
    }

    /// Closes the database if a later step failed.
    pub(crate) async fn or_close<T, E>(&self, result: Result<T, E>) -> Result<T, E> {
        or_close(result, &*self.waiting.store).await
    }

    /// Waits until this process has taken over the server. Before each attempt, `bind` opens the
    /// ports for clients. Returns `None` after the signal. The database is then closed, as it is
    /// after an error.
    pub(crate) async fn lead<P, F, E>(
        mut self,
        mut signal: Signal,
        bind: impl Fn() -> F,
    ) -> Result<Option<TakenOver<C, P>>, E>
    where
        F: Future<Output = Result<P, StartError>>,
        E: From<C::Error> + From<StartError>,
    {
        let mut log = WaitLog::new(self.waiting.name);
        let (ports, taken) = loop {
            let look = tokio::select! {
                look = self.follower.look() => look,
                () = signal.stopping() => return self.stop().await,
            };
            let taken = match look {
                Ok(look) => {
                    self.waiting.view.saw(&look);
                    log.saw(&look);
                    self.try_to_lead(&look, &bind).await.map_err(|error| log.failed(&error))
                }
                Err(error) => match C::outage(error) {
                    Ok(outage) => {
                        self.waiting.view.lost_sight();
                        log.lost(&outage);
                        Err(())
                    }
                    Err(error) => return self.or_close(Err(error.into())).await,
                },
            };
            let pause = match taken {
                Ok(Some(found)) => break found,
                Ok(None) => LOOK_EVERY,
                Err(()) => TRY_EVERY,
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = signal.stopping() => return self.stop().await,
            }
        };
        let Self { waiting, follower } = self;
        let led = or_close(follower.lead(taken).await, &*waiting.store).await?;
        info!("this process serves the {} now", waiting.name);
        let status = waiting.status.map(StatusPort::free).transpose();
        let status = status.map_err(StartError::StatusPort);
        let status = or_close(status, &*waiting.store).await?;
        Ok(Some(TakenOver { led, ports, status }))
    }

    /// Takes over the server if the process that served it has failed.
    async fn try_to_lead<P, F: Future<Output = Result<P, StartError>>>(
        &self,
        look: &Look,
        bind: impl Fn() -> F,
    ) -> Result<Option<(P, Taken)>, StartError> {
        if look.verdict == Verdict::Wait {
            return Ok(None);
        }
        // Bind the ports first: without them, this process could not serve anybody.
        let ports = bind().await?;
        let taken = self.follower.take_over(look).await?;
        Ok(taken.map(|taken| (ports, taken)))
    }

    async fn stop<T, E: From<StartError>>(self) -> Result<Option<T>, E> {
        self.waiting.store.close().await.map_err(StartError::from)?;
        Ok(None)
    }
}

/// Logs a standby's observations, but nothing twice in a row.
struct WaitLog {
    /// The name that operators use for the server.
    name: &'static str,
    writer: String,
    /// Whether the active process's failure has been logged.
    has_failed: bool,
    /// Failures of the database.
    outage: Outage,
    /// Why this process cannot take over.
    problem: Option<String>,
}

impl WaitLog {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            writer: String::new(),
            has_failed: false,
            outage: Outage::default(),
            problem: None,
        }
    }

    fn saw(&mut self, look: &Look) {
        let writer = &look.sighting.writer;
        // An attempt can take so long that the watch starts over.
        let has_failed = match look.verdict {
            Verdict::TakeOverByForce => true,
            Verdict::TryToTakeOver => false,
            Verdict::Wait => self.has_failed && !look.is_alive,
        };
        let is_news = !std::mem::replace(&mut self.has_failed, has_failed);
        if self.outage.end() {
            info!("standby: the database can be read again");
        }
        match look.verdict {
            Verdict::Wait if look.is_alive && *writer != self.writer => {
                info!(active = writer, "standby: another process serves the {}", self.name);
                self.writer.clone_from(writer);
                self.problem = None;
            }
            Verdict::Wait if look.is_alive => {
                if self.problem.take().is_some() {
                    info!(
                        active = writer,
                        "standby: the same process serves the {} again", self.name
                    );
                }
            }
            Verdict::TakeOverByForce if is_news && look.is_alive => warn!(
                active = writer,
                "the process that serves the {} has failed; taking over", self.name
            ),
            Verdict::TakeOverByForce if is_news && writer.is_empty() => {
                info!("standby: no process has served the {} yet; taking over", self.name);
            }
            // The other process ended before this process began to watch, or the database is a
            // restored backup.
            Verdict::TakeOverByForce if is_news => warn!(
                last = writer,
                "no process serves the {}, and the last one did not release its lease: it failed, or \
                 the database was restored from a backup; taking over",
                self.name
            ),
            Verdict::Wait | Verdict::TryToTakeOver | Verdict::TakeOverByForce => {}
        }
    }

    fn lost(&mut self, error: &StoreError) {
        if self.outage.is_news(error) {
            warn!(%error, "standby: cannot read the database");
        }
    }

    fn failed(&mut self, error: &StartError) {
        let problem = match error {
            StartError::Store(StoreError::InUse { holder }) => format!(
                "{holder} serves the {} without --standby; this process can take over only when \
                 that one ends",
                self.name
            ),
            error => error.to_string(),
        };
        if self.problem.as_ref() != Some(&problem) {
            warn!(problem, "standby: cannot take over yet");
            self.problem = Some(problem);
        }
    }
}

/// A standby's observations, for its status page and for operators.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// The number of batches that the copy lacked at the last check.
    behind: AtomicU64,
    is_failing: AtomicBool,
    /// The process that serves the data.
    active: Mutex<Option<String>>,
    /// Why that process refuses to admit this one.
    refusal: Mutex<Option<String>>,
    /// Why this process must not take over, whether or not another one serves the data.
    unfitness: Mutex<Option<String>>,
    /// When another process was first seen to serve the data.
    active_since: OnceLock<Instant>,
    /// Whether this process has joined the one that serves the data, if there is a bus.
    is_member: Mutex<Option<bool>>,
}

impl View {
    /// The number of batches that the copy lacked at the last check.
    pub(crate) fn behind(&self) -> u64 {
        self.behind.load(Ordering::Relaxed)
    }

    /// The process that serves the data, with its directory, if the standby has seen it renew its
    /// lease.
    pub(crate) fn active(&self) -> Option<String> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why the process that serves the data does not admit this one, if it has said so.
    fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records why the process that serves the data does not admit this one, or that it admits it
    /// again.
    pub(crate) fn set_refusal(&self, refusal: Option<String>) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
    }

    fn unfitness(&self) -> Option<String> {
        self.unfitness.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records why this process must not take over, or that it may.
    pub(crate) fn set_unfitness(&self, unfitness: Option<String>) {
        *self.unfitness.lock().unwrap_or_else(PoisonError::into_inner) = unfitness;
    }

    /// When another process was first seen to serve the data.
    pub(crate) fn active_since(&self) -> Option<Instant> {
        self.active_since.get().copied()
    }

    /// Records that another process serves the data.
    #[cfg(test)]
    pub(crate) fn see_active(&self, since: Instant) {
        self.active_since.get_or_init(|| since);
    }

    /// Whether this process has joined the one that serves the data; `None` if there is no bus.
    fn is_member(&self) -> Option<bool> {
        *self.is_member.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records whether this process has joined the one that serves the data.
    pub(crate) fn set_member(&self, is_member: bool) {
        *self.is_member.lock().unwrap_or_else(PoisonError::into_inner) = Some(is_member);
    }

    fn saw(&self, look: &Look) {
        self.behind.store(look.behind, Ordering::Relaxed);
        let active =
            (look.verdict == Verdict::Wait && look.is_alive).then_some(&look.sighting.writer);
        if active.is_some() {
            self.active_since.get_or_init(Instant::now);
        }
        let mut seen = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.as_ref() != active {
            *seen = active.cloned();
        }
        self.is_failing.store(false, Ordering::Relaxed);
    }

    fn lost_sight(&self) {
        self.is_failing.store(true, Ordering::Relaxed);
    }
}

/// The port of the status page, which shows the standby's page.
#[derive(Debug)]
struct StatusPort {
    port: StdListener,
    page: AbortHandle,
}

impl StatusPort {
    fn open(tcp: TcpListener, view: &Arc<View>) -> io::Result<Self> {
        let port = tcp.into_std()?;
        let tcp = TcpListener::from_std(port.try_clone()?)?;
        let router = Router::new()
            .route("/status", get(status))
            .route("/metrics", get(metrics))
            .route("/health", get(health))
            .with_state(Arc::clone(view));
        let page = tokio::spawn(page::serve(tcp, router, page::Hosts::Own, Signal::never()))
            .abort_handle();
        Ok(Self { port, page })
    }

    /// Closes the page and returns its port for the server's own page.
    fn free(self) -> io::Result<TcpListener> {
        TcpListener::from_std(self.port.try_clone()?)
    }
}

impl Drop for StatusPort {
    fn drop(&mut self) {
        self.page.abort();
    }
}

async fn status(State(view): State<Arc<View>>) -> Response {
    let database = page::database(view.is_failing.load(Ordering::Relaxed));
    let behind = view.behind();
    let role = page::Role::Standby.name();
    let mut status =
        json!({ "online": false, "role": role, "behind": behind, "database": database });
    if let Some(refusal) = view.refusal().or_else(|| view.unfitness()) {
        status["refused"] = refusal.into();
    }
    if let Some(is_member) = view.is_member() {
        status["joined"] = is_member.into();
    }
    Json(status).into_response()
}

/// A load balancer must not send clients to a standby.
async fn health(State(view): State<Arc<View>>) -> Response {
    let behind = view.behind();
    let unfitness = view.unfitness().map(|why| format!("this process cannot take over: {why}"));
    let refusal =
        view.refusal().map(|why| format!("the leader does not admit this process: {why}"));
    let text = match (view.is_failing.load(Ordering::Relaxed), refusal.or(unfitness)) {
        (true, _) => "standby; the database cannot be reached; see the log\n".to_owned(),
        (false, Some(why)) => format!("standby; {why}\n"),
        (false, None) if view.is_member() == Some(false) => {
            "standby; this process has not joined the leader; see the log\n".to_owned()
        }
        (false, None) => format!("standby, {behind} batches behind\n"),
    };
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

async fn metrics(State(view): State<Arc<View>>) -> Response {
    let mut metrics = Metrics::default();
    let is_up = !view.is_failing.load(Ordering::Relaxed);
    let is_refused = view.refusal().or_else(|| view.unfitness()).is_some();
    let behind = "Batches of changes that the standby lacked when it last checked.";
    let refused = "1 if this standby is not admitted by the active process, or must not take over.";
    for (name, help, value) in [
        ("active", page::ACTIVE, 0),
        ("database_up", "Whether the database responds: 1 or 0.", i128::from(is_up)),
        ("standby_batches_behind", behind, view.behind().into()),
        ("standby_refused", refused, is_refused.into()),
    ] {
        metrics.add(name, "gauge", help, "", &[("", value)]);
    }
    if let Some(is_member) = view.is_member() {
        metrics.add("node_joined", "gauge", page::JOINED, "", &[("", is_member.into())]);
    }
    page::metrics(metrics.into_text())
}
