//! Other servers, which drop a client's sessions when it establishes one here.
//!
//! A client talks to only one server at a time. When a client logs in, its sessions on other
//! servers become stale, as [`Request::DropSessions`] describes. This server notifies the other
//! servers through the sockets in their directories.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;
use worldwire_net::LogLimiter;

use super::admin::Request;
use super::realm::Realm;
use crate::operators;

/// The maximum number of announcements in progress. Further ones are dropped.
const MAX_AT_ONCE: usize = 64;
/// How long another server may take to reply.
const PATIENCE: Duration = Duration::from_secs(5);
/// The minimum interval between log lines.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// The other servers.
#[derive(Debug)]
pub(super) struct Peers {
    folders: Vec<PathBuf>,
    slots: Arc<Semaphore>,
    failures: Arc<LogLimiter>,
}

impl Peers {
    /// The servers in these directories.
    pub(super) fn new(folders: Vec<PathBuf>) -> Self {
        let slots = Arc::new(Semaphore::new(MAX_AT_ONCE));
        Self { folders, slots, failures: Arc::new(LogLimiter::new(LOG_EVERY)) }
    }

    /// Tells every other server to drop a client's sessions, without waiting for the replies.
    pub(super) fn drop_sessions(&self, user: u64, account: Option<&str>) {
        for folder in &self.folders {
            let (folder, failures) = (folder.clone(), Arc::clone(&self.failures));
            let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
                failed(&failures, &folder, "too many announcements at once");
                continue;
            };
            let account = account.map(str::to_owned);
            tokio::spawn(async move {
                let request = Request::DropSessions { user, account };
                let asked = operators::ask::<Realm>(&folder, &request, &[]);
                match timeout(PATIENCE, asked).await {
                    Ok(Ok(Ok(_))) => {}
                    Ok(Ok(Err(refusal))) => failed(&failures, &folder, &refusal.problem),
                    Ok(Err(error)) => failed(&failures, &folder, &error.to_string()),
                    Err(_) => failed(&failures, &folder, "no response within 5 s"),
                }
                drop(slot);
            });
        }
    }
}

fn failed(failures: &LogLimiter, folder: &Path, why: &str) {
    if let Some(count) = failures.count() {
        let server = folder.display();
        tracing::warn!(%server, why, count, "sessions were not dropped on another server");
    }
}
