//! A copy of a vault that another process serves; see [`Follower`](crate::store::follow::Follower).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use worldwire_uru::types::Uuid;

use super::config::VaultConfig;
use super::graph::Graph;
use super::handle::{Environment, Vault};
use super::session::Notice;
use super::steps::VaultState;
use super::task::{VaultError, load_rows};
use crate::store::follow::{Copied, Led};
use crate::store::seal::ServerKey;
use crate::store::{Change, Changes, Key, NodeRow, RefRow, Store, StoreError};

/// The copy.
pub(crate) struct VaultCopy {
    state: VaultState,
    clock: Box<dyn Fn() -> u32 + Send>,
    missed: Missed,
    followed: Arc<Followed>,
}

/// What a process that follows a vault needs to know about it.
#[derive(Debug, Default)]
pub(in crate::uru) struct Followed {
    shard: AtomicU64,
    keys: AtomicU64,
    live: watch::Sender<LiveSettings>,
}

/// The settings that operators change while a shard runs, as the active process last stored them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::uru) struct LiveSettings {
    /// Whether the shard is closed to players.
    pub(in crate::uru) restricted: Option<bool>,
    /// The welcome message.
    pub(in crate::uru) welcome: Option<String>,
}

impl fmt::Debug for VaultCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VaultCopy")
    }
}

impl VaultCopy {
    /// An empty copy.
    pub(crate) fn new(key: ServerKey, config: VaultConfig, environment: Environment) -> Self {
        let Environment { clock, random } = environment;
        let state = VaultState::new(config, key, random);
        Self { state, clock, missed: Missed::default(), followed: Arc::default() }
    }

    /// What is known about the vault as of the last read.
    pub(in crate::uru) fn followed(&self) -> Arc<Followed> {
        Arc::clone(&self.followed)
    }

    /// Sets whether only staff may log in once this process serves the vault.
    pub(in crate::uru) fn set_restricted(&mut self, restricted: bool) {
        self.state.set_restricted(restricted);
    }
}

impl Followed {
    /// The shard's random number; 0 until it has one.
    pub(in crate::uru) fn shard(&self) -> u64 {
        self.shard.load(Ordering::Relaxed)
    }

    /// Whether the shard was last served with keys other than those with this digest.
    pub(in crate::uru) fn has_other_keys(&self, digest: u64) -> bool {
        ![0, digest].contains(&self.keys.load(Ordering::Relaxed))
    }

    /// The settings that operators change.
    pub(in crate::uru) fn live(&self) -> watch::Receiver<LiveSettings> {
        self.live.subscribe()
    }

    fn take(&self, state: &VaultState) {
        self.shard.store(state.shard_id(), Ordering::Relaxed);
        self.keys.store(state.keys(), Ordering::Relaxed);
        self.live.send_if_modified(|live| {
            let is_news = live != state.live();
            live.clone_from(state.live());
            is_news
        });
    }
}

impl Copied for VaultCopy {
    type Error = VaultError;

    async fn load(&mut self, store: &dyn Store) -> Result<(), VaultError> {
        load_rows(store, &mut self.state).await?;
        self.followed.take(&self.state);
        Ok(())
    }

    fn follow(&mut self, changes: &Changes) -> Result<(), VaultError> {
        self.missed.add(changes, self.state.graph(), Instant::now());
        self.state.follow(changes)?;
        self.followed.take(&self.state);
        Ok(())
    }

    fn forget(&mut self) {
        self.state.forget();
    }

    fn outage(error: VaultError) -> Result<StoreError, VaultError> {
        match error {
            VaultError::Store(error) => Ok(error),
            error => Err(error),
        }
    }
}

impl Vault {
    /// Starts serving a vault that this process has taken over.
    pub(crate) async fn lead(led: Led<VaultCopy>) -> Result<Self, VaultError> {
        let Led { store, copy, position, last_epoch, lease, is_clean } = led;
        let VaultCopy { mut state, clock, missed, .. } = copy;
        // When the copy was made, there may have been no passwords yet.
        if !state.check_key(&store.settings().await?) {
            return Err(VaultError::OtherKey);
        }
        state.finish_loading()?;
        state.load_placements(store.placements().await?);
        let sessions = store.sessions().await?;
        state.load_sessions(sessions, last_epoch, missed.into_notices());
        let mut vault = Self::start(store, state, clock, position, Some(lease)).await?;
        vault.set_follows_failure(!is_clean);
        Ok(vault)
    }
}

/// Notices about recent changes. The most recent ones may not have reached the clients of a process
/// that failed.
#[derive(Debug, Default)]
struct Missed(BTreeMap<Key, (Instant, Notice)>);

impl Missed {
    /// How long a client may take to notice that its connection is lost.
    const WINDOW: Duration = Duration::from_secs(60);
    /// The maximum number of notices. Beyond it, the oldest ones are discarded.
    const MAX: usize = 512;

    /// Adds the notices for changes that are not in the graph yet. Only the latest notice about
    /// each node or reference is kept.
    fn add(&mut self, changes: &Changes, graph: &Graph, now: Instant) {
        for (key, change) in changes {
            let notice = match *change {
                Change::PutNode(NodeRow { id, .. }) if graph.contains(id) => {
                    // Use a revision that no client sends.
                    Notice::NodeChanged { node_id: id, revision_id: Uuid([0xfd; 16]) }
                }
                Change::PutRef(RefRow { parent, child, owner }) => {
                    Notice::NodeAdded { parent_id: parent, child_id: child, owner_id: owner }
                }
                Change::DeleteRef { parent, child } => {
                    Notice::NodeRemoved { parent_id: parent, child_id: child }
                }
                _ => continue,
            };
            self.0.insert(key.clone(), (now, notice));
        }
        self.0.retain(|_, (then, _)| now.duration_since(*then) <= Self::WINDOW);
        if self.0.len() > Self::MAX {
            let mut times: Vec<_> = self.0.values().map(|(then, _)| *then).collect();
            times.sort_unstable();
            let oldest = times[times.len() - Self::MAX];
            self.0.retain(|_, (then, _)| *then >= oldest);
        }
    }

    /// The notices, in the order in which the changes were made.
    fn into_notices(self) -> Vec<Notice> {
        let mut notices: Vec<_> = self.0.into_values().collect();
        notices.sort_by_key(|(then, _)| *then);
        notices.into_iter().map(|(_, notice)| notice).collect()
    }
}
