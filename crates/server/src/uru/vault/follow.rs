//! A copy of a vault that another process serves, kept up to date until this process takes over.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tracing::info;
use worldwire_uru::types::Uuid;

use super::config::VaultConfig;
use super::graph::Graph;
use super::handle::{Environment, Vault};
use super::session::Notice;
use super::steps::VaultState;
use super::task::{VaultError, load_rows};
use crate::store::lease::{Lease, SharedStore, Sighting, Verdict, Watch};
use crate::store::seal::ServerKey;
use crate::store::{Change, Changes, Key, NodeRow, Position, RefRow, StoreError};

/// How long the database may take to answer a check.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// The copy.
pub(crate) struct Follower {
    store: Arc<dyn SharedStore>,
    state: VaultState,
    clock: Box<dyn Fn() -> u32 + Send>,
    /// The last batch that the copy includes.
    batch: u64,
    watch: Watch,
    missed: Missed,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("batch", &self.batch).finish_non_exhaustive()
    }
}

/// What a check of the active process showed.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) sighting: Sighting,
    pub(crate) verdict: Verdict,
    /// How many batches the copy lacked.
    pub(crate) behind: u64,
}

impl Follower {
    /// Reads the whole database, which other processes may change meanwhile.
    pub(crate) async fn open(
        store: Arc<dyn SharedStore>,
        key: ServerKey,
        config: VaultConfig,
        environment: Environment,
    ) -> Result<Self, VaultError> {
        let Environment { clock, random } = environment;
        let state = VaultState::new(config, key, random);
        let (watch, missed) = (Watch::default(), Missed::default());
        let mut this = Self { store, state, clock, batch: 0, watch, missed };
        this.read_all().await?;
        Ok(this)
    }

    /// Checks the active process, and catches up with its changes.
    pub(crate) async fn look(&mut self) -> Result<Look, VaultError> {
        let asked = Instant::now();
        let sighting = timeout(LOOK_WITHIN, self.store.look()).await;
        let sighting = sighting.map_err(|_| StoreError::Timeout)??;
        let verdict = self.watch.see(&sighting, asked, Instant::now());
        let behind = sighting.position.batch.saturating_sub(self.batch);
        if sighting.position.batch != self.batch {
            self.catch_up().await?;
        }
        Ok(Look { sighting, verdict, behind })
    }

    /// Takes over the database, if nothing has changed since the check. Returns `None` if another
    /// process was faster or is active again.
    pub(crate) async fn take_over(&self, look: &Look) -> Result<Option<Taken>, StoreError> {
        let by_force = look.verdict == Verdict::TakeOverByForce;
        let start = Instant::now();
        let position = self.store.take_over(&look.sighting, by_force).await?;
        Ok(position.map(|position| {
            let lease = Lease::keep(Arc::clone(&self.store), position, start);
            Taken { position, lease }
        }))
    }

    /// Serves the vault, after this process has taken over.
    pub(crate) async fn serve(mut self, taken: Taken) -> Result<Vault, VaultError> {
        let Taken { position, lease } = taken;
        if position.batch != self.batch {
            self.catch_up().await?;
        }
        // There may have been no passwords yet when the copy was made.
        if !self.state.check_key(&self.store.settings().await?) {
            return Err(VaultError::OtherKey);
        }
        self.state.finish_loading()?;
        let sessions = self.store.sessions().await?;
        self.state.load_sessions(sessions, position.epoch, self.missed.into_notices());
        let Self { store, state, clock, .. } = self;
        Vault::start(store, state, clock, position, Some(lease)).await
    }

    async fn catch_up(&mut self) -> Result<(), VaultError> {
        match self.store.changes_after(self.batch).await? {
            Some((last, changes)) => {
                self.missed.add(&changes, self.state.graph(), Instant::now());
                self.state.follow(&changes)?;
                self.batch = last;
                Ok(())
            }
            None => {
                info!("reading the whole database again: its log does not go back far enough");
                self.state.forget();
                self.read_all().await
            }
        }
    }

    /// Reads everything, and then the changes made while it was being read.
    async fn read_all(&mut self) -> Result<(), VaultError> {
        self.batch = self.store.look().await?.position.batch;
        load_rows(&*self.store, &mut self.state).await?;
        if let Some((last, changes)) = self.store.changes_after(self.batch).await? {
            self.state.follow(&changes)?;
            self.batch = last;
        }
        // Otherwise the next check starts again.
        Ok(())
    }
}

/// Notices of recent changes. Those of the last changes may not have reached the clients of a
/// process that failed.
#[derive(Debug, Default)]
struct Missed(BTreeMap<Key, (Instant, Notice)>);

impl Missed {
    /// Clients may notice after this time that a connection is lost.
    const WINDOW: Duration = Duration::from_secs(60);
    /// The maximum number of notices. Beyond that, the oldest ones are forgotten.
    const MAX: usize = 512;

    /// Adds the notices of changes to a graph that does not have them yet. Only the latest notice
    /// about each node or reference counts.
    fn add(&mut self, changes: &Changes, graph: &Graph, now: Instant) {
        for (key, change) in changes {
            let notice = match *change {
                Change::PutNode(NodeRow { id, .. }) if graph.contains(id) => {
                    // A revision that no client has sent.
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

    /// The notices, in the order of the changes.
    fn into_notices(self) -> Vec<Notice> {
        let mut notices: Vec<_> = self.0.into_values().collect();
        notices.sort_by_key(|(then, _)| *then);
        notices.into_iter().map(|(_, notice)| notice).collect()
    }
}

/// A database that this process has taken over.
#[derive(Debug)]
pub(crate) struct Taken {
    position: Position,
    lease: Lease,
}
