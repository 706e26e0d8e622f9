//! A process that waits to take over a shard, which another process serves.

use std::fmt;
use std::io;
use std::net::TcpListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::sleep;
use tracing::{info, warn};
use worldwire_net::{Signal, tcp};
use worldwire_uru::crypt::key::PrimeKind;

use super::config::ShardConfig;
use super::game::GameRandom;
use super::vault::{Environment, Follower, Look, Taken, VaultError};
use super::{Parts, Shard, ShardError, client_port};
use crate::config::ServerConfig as _;
use crate::folder::blocking;
use crate::metrics::Metrics;
use crate::page;
use crate::start::{
    StartError, at, configuration, in_config, listen_status, lock_folder, or_close,
};
use crate::store::lease::{LOOK_EVERY, SharedStore, Verdict};
use crate::store::lock::FolderLock;
use crate::store::seal::{KEY_FILE, ServerKey};
use crate::store::{self, StoreError};

/// How often to try to take over from a process that keeps no lease.
const TRY_EVERY: Duration = Duration::from_secs(1);

/// A process that keeps a copy of a shard's vault, and takes over the shard when the process that
/// serves it fails or stops. It needs a PostgreSQL database.
pub struct Standby {
    folder: PathBuf,
    lock: FolderLock,
    parts: Parts,
    status: Option<StatusPort>,
    store: Arc<dyn SharedStore>,
    follower: Follower,
    view: Arc<View>,
}

impl fmt::Debug for Standby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standby").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Standby {
    /// Opens a shard's directory and reads the vault, but binds only the port of the status page.
    /// The directory needs the keys of the process that serves the shard. `change` changes the
    /// configuration. On an error, nothing is left open.
    pub async fn open(
        folder: &Path,
        change: impl FnOnce(&mut ShardConfig),
    ) -> Result<Self, ShardError> {
        let lock = lock_folder(folder).await?;
        let (config, absent) = configuration(folder, change)?;
        let Some(url) = config.database_url() else { return Err(ShardError::NotShared) };
        let key = folder.join(KEY_FILE);
        for file in [&folder.join(&config.keys), &key] {
            if !file.exists() {
                return Err(ShardError::StandbyLacks(file.clone()));
            }
        }
        let status = config.status_address().map_err(in_config::<ShardConfig>(folder))?;
        let view = Arc::<View>::default();
        let status = match listen_status(status).await? {
            Some(tcp) => Some(StatusPort::open(tcp, &view).map_err(at(folder))?),
            None => None,
        };
        let key = blocking(move || ServerKey::load(&key)).await.map_err(StartError::from)?;
        let store: Arc<dyn SharedStore> =
            Arc::new(store::open_shared(folder, url).await.map_err(StartError::from)?);
        let opened = async {
            let environment = Environment::default();
            let vault = config.vault();
            let follower = Follower::open(Arc::clone(&store), key, vault, environment).await?;
            let parts = Parts::load(folder, config, PrimeKind::Safe, absent).await?;
            Ok::<_, ShardError>((follower, parts))
        };
        let (follower, parts) = or_close(opened.await, &*store).await?;
        Ok(Self { folder: folder.to_owned(), lock, parts, status, store, follower, view })
    }

    /// Waits until this process has taken over the shard. Returns `None` after the signal.
    pub async fn lead(mut self, mut signal: Signal) -> Result<Option<Shard>, ShardError> {
        let mut log = WaitLog::default();
        let (port, taken) = loop {
            let look = tokio::select! {
                look = self.follower.look() => look,
                () = signal.stopping() => return self.stop().await,
            };
            let taken = match look {
                Ok(look) => {
                    self.view.saw(&look);
                    log.saw(&look);
                    self.try_to_lead(&look).await
                }
                Err(VaultError::Store(error)) => {
                    self.view.lost_sight();
                    Err(StartError::from(error))
                }
                Err(error) => return or_close(Err(error.into()), &*self.store).await,
            };
            let pause = match taken {
                Ok(Some(found)) => break found,
                Ok(None) => LOOK_EVERY,
                Err(error) => {
                    log.failed(&error);
                    TRY_EVERY
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = signal.stopping() => return self.stop().await,
            }
        };
        let Self { folder, lock, parts, status, store, follower, .. } = self;
        let vault = or_close(follower.serve(taken).await, &*store).await?;
        info!("this process serves the shard now");
        let random = GameRandom::default();
        let status = status.map(StatusPort::free).transpose();
        let status = or_close(status.map_err(at(&folder)), &*store).await?;
        Shard::assemble(&folder, lock, parts, (port, status), vault, &*store, random)
            .await
            .map(Some)
    }

    /// Takes over the shard, if its process has failed.
    async fn try_to_lead(&self, look: &Look) -> Result<Option<(tcp::Listener, Taken)>, StartError> {
        if look.verdict == Verdict::Wait {
            return Ok(None);
        }
        // First, because without the port this process could not serve anybody.
        let port = client_port(&self.parts.config).await?;
        let taken = self.follower.take_over(look).await?;
        Ok(taken.map(|taken| (port, taken)))
    }

    async fn stop(self) -> Result<Option<Shard>, ShardError> {
        self.store.close().await.map_err(StartError::from)?;
        Ok(None)
    }
}

/// Logs what a standby sees, but nothing twice in a row.
#[derive(Debug, Default)]
struct WaitLog {
    writer: String,
    /// Whether its failure is logged.
    has_failed: bool,
    problem: Option<String>,
}

impl WaitLog {
    fn saw(&mut self, look: &Look) {
        let writer = &look.sighting.writer;
        let has_failed = look.verdict == Verdict::TakeOverByForce;
        let is_news = !std::mem::replace(&mut self.has_failed, has_failed);
        match look.verdict {
            Verdict::Wait if *writer != self.writer => {
                info!(active = writer, "standby: another process serves the shard");
                self.writer.clone_from(writer);
                self.problem = None;
            }
            Verdict::Wait => {
                if self.problem.take().is_some() {
                    info!("standby: the shard is served again");
                }
            }
            Verdict::TakeOverByForce if is_news => {
                warn!(active = writer, "the process that serves the shard has failed; taking over");
            }
            Verdict::TryToTakeOver | Verdict::TakeOverByForce => {}
        }
    }

    fn failed(&mut self, error: &StartError) {
        let problem = match error {
            StartError::Store(StoreError::InUse { holder }) => format!(
                "{holder} serves the shard without --standby; this process can take over only \
                 when that one ends"
            ),
            error => error.to_string(),
        };
        if self.problem.as_ref() != Some(&problem) {
            warn!(problem, "standby: cannot take over yet");
            self.problem = Some(problem);
        }
    }
}

/// What the status page of a standby shows.
#[derive(Debug, Default)]
struct View {
    /// How many batches the copy of the vault lacked at the last check.
    behind: AtomicU64,
    is_failing: AtomicBool,
}

impl View {
    fn saw(&self, look: &Look) {
        self.behind.store(look.behind, Ordering::Relaxed);
        self.is_failing.store(false, Ordering::Relaxed);
    }

    fn lost_sight(&self) {
        self.is_failing.store(true, Ordering::Relaxed);
    }
}

/// The port of the status page, with the page of a standby.
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

    /// Closes the page, and returns its port for the shard's own page.
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
    let behind = view.behind.load(Ordering::Relaxed);
    let role = page::role(false);
    let status = json!({ "online": false, "role": role, "behind": behind, "database": database });
    Json(status).into_response()
}

/// A load balancer must not send clients to a standby.
async fn health(State(view): State<Arc<View>>) -> Response {
    let behind = view.behind.load(Ordering::Relaxed);
    let text = match view.is_failing.load(Ordering::Relaxed) {
        false => format!("standby, {behind} batches behind\n"),
        true => "standby; the database cannot be reached, see the log\n".to_owned(),
    };
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

async fn metrics(State(view): State<Arc<View>>) -> Response {
    let mut metrics = Metrics::default();
    let is_up = !view.is_failing.load(Ordering::Relaxed);
    let behind = "Batches of changes that the standby lacked when it last looked.";
    for (name, help, value) in [
        ("active", page::ACTIVE, 0),
        ("database_up", "Whether the database answers: 1 or 0.", i128::from(is_up)),
        ("standby_batches_behind", behind, view.behind.load(Ordering::Relaxed).into()),
    ] {
        metrics.add(name, "gauge", help, "", &[("", value)]);
    }
    page::metrics(metrics.into_text())
}
