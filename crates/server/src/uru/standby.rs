//! A process that waits to take over a shard that another process serves.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use worldwire_net::Signal;
use worldwire_uru::crypt::key::PrimeKind;

use super::admin::{Control, Relay};
use super::cluster::{Description, Joining, LeadersSettings, Refusal};
use super::config::{Role, ShardConfig};
use super::game::GameRandom;
use super::joining::{bus, not_led, passports, vault_at_leader};
use super::vault::{Environment, Vault, VaultCopy};
use super::{GOODBYE, Parts, Shard, ShardError, client_port};
use crate::admin::Administered as _;
use crate::config::SettingError;
use crate::operators;
use crate::page::unix;
use crate::standby::{self, Opened, TakenOver, View};
use crate::start::{StartError, at, or_close};
use crate::store::Store;
use crate::store::lease::SharedStore;
use crate::store::lock::FolderLock;

/// How often this process tells the leader how far behind it is.
const DESCRIBE_EVERY: Duration = Duration::from_secs(1);
/// The maximum time that a standby usually takes to join the leader.
const JOIN_WITHIN: Duration = Duration::from_secs(10);
/// How long a standby that has not joined the leader in that time lets others go first. As a
/// leader, it might not reach the nodes, either.
const UNJOINED_PATIENCE: Duration = Duration::from_secs(10);
/// If this much time has passed since the last attempt to take over, the next attempt follows
/// another leader's failure.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(5);

/// A process that keeps a copy of a shard's vault and takes over the shard when the process that
/// serves it fails or stops. It needs a PostgreSQL database.
pub struct Standby {
    folder: PathBuf,
    lock: FolderLock,
    parts: Parts,
    standby: standby::Standby<VaultCopy>,
    operators: operators::Listener<Relay>,
    view: Arc<View>,
    /// The leader's vault, if there is a bus.
    leader: Option<Vault>,
    /// The random number of the shard in the database.
    identity: Arc<AtomicU64>,
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
        let status = |config: &ShardConfig| match config.cluster.has(Role::Vault) {
            false => Err(SettingError::StandbyWithoutVault.of("cluster.roles")),
            true => config.status_address(),
        };
        let keys = |config: &ShardConfig| vec![config.keys.clone()];
        let opened = standby::open(folder, Control::NAME, change, status, keys).await?;
        let Opened { lock, config, absent, key, waiting } = opened;
        let (view, store) = (waiting.view(), Arc::clone(&waiting.store));
        let copy = VaultCopy::new(key, config.vault(), Environment::default());
        let identity = copy.identity();
        let standby = standby::Standby::read(waiting, copy).await?;
        let parts = Parts::load(folder, config, PrimeKind::Safe, absent).await;
        let parts = standby.or_close(parts).await?;
        let leader = standby.or_close(leaders_vault(folder, &parts).await).await?;
        let relay = Relay::standby(leader.clone(), Arc::clone(&view));
        let operators = operators::Listener::bind(folder, relay).await;
        let operators = or_close(operators, &*store).await.map_err(at(folder))?;
        let folder = folder.to_owned();
        Ok(Self { folder, lock, parts, standby, operators, view, leader, identity })
    }

    /// Waits until this process has taken over the shard. Returns `None` after the signal.
    pub async fn lead(self, signal: Signal) -> Result<Option<Shard>, ShardError> {
        let Self { folder, lock, parts, standby, operators, view, leader, identity } = self;
        let operators = tokio::spawn(operators.run());
        let precedence = Arc::new(Precedence::of(&view));
        let describing =
            keep_described(leader.clone(), Arc::clone(&precedence), Arc::clone(&identity));
        let describing = tokio::spawn(describing);
        let bind = || async {
            may_lead(leader.as_ref(), &parts.config, &identity, &precedence).await?;
            client_port(&parts.config).await
        };
        let taken = standby.lead::<_, _, ShardError>(signal, bind).await;
        // The shard needs this socket for itself.
        for task in [operators, describing] {
            task.abort();
            let _ = task.await;
        }
        let Some(TakenOver { led, ports, status }) = taken? else {
            if let Some(link) = leader.as_ref().and_then(Vault::link) {
                link.stop();
                let _ = timeout(GOODBYE, link.flush()).await;
            }
            return Ok(None);
        };
        // This process must not join itself.
        drop(leader);
        let store: Arc<dyn SharedStore> = Arc::clone(&led.store);
        let vault = or_close(Vault::lead(led).await, &*store).await?;
        let (ports, random) = ((ports, status), GameRandom::default());
        let stores = (&*store as &dyn Store, Some(Arc::clone(&store)));
        Shard::assemble(&folder, lock, parts, ports, vault, stores, random).await.map(Some)
    }
}

/// Checks whether this process can take over: with other keys, clients could not connect to it; and
/// if there were two leaders, nodes could follow only one of them.
async fn may_lead(
    leader: Option<&Vault>,
    config: &ShardConfig,
    identity: &AtomicU64,
    precedence: &Precedence,
) -> Result<(), StartError> {
    let Some(link) = leader.and_then(Vault::link) else { return Ok(()) };
    let shard = identity.load(Ordering::Relaxed);
    not_led(link.other_leader(shard).await, config, shard)?;
    match link.refusal() {
        Some(refusal @ Refusal::Keys { .. }) => Err(StartError::NotAdmitted(refusal.to_string())),
        _ if precedence.must_wait(Instant::now()) => Err(StartError::NotJoined(UNJOINED_PATIENCE)),
        _ => Ok(()),
    }
}

/// Whether this standby lets others take over first.
#[derive(Debug)]
struct Precedence {
    view: Arc<View>,
    has_joined: AtomicBool,
    /// The first and the last attempt to take over.
    attempts: Mutex<Option<(Instant, Instant)>>,
}

impl Precedence {
    fn of(view: &Arc<View>) -> Self {
        let view = Arc::clone(view);
        Self { view, has_joined: AtomicBool::new(false), attempts: Mutex::default() }
    }

    /// Records whether this process has a leader.
    fn saw(&self, is_member: bool) {
        self.view.set_member(is_member);
        self.has_joined.fetch_or(is_member, Ordering::Relaxed);
    }

    /// Whether it is still too early to take over.
    fn must_wait(&self, now: Instant) -> bool {
        let since = self.view.active_since();
        if self.has_joined.load(Ordering::Relaxed)
            || since.is_none_or(|since| now - since < JOIN_WITHIN)
        {
            return false;
        }
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = attempts.filter(|(_, last)| now - *last < LONGEST_ATTEMPT);
        let first = recent.map_or(now, |(first, _)| first);
        *attempts = Some((first, now));
        now - first < UNJOINED_PATIENCE
    }
}

/// Describes this process to the leader.
async fn keep_described(
    leader: Option<Vault>,
    precedence: Arc<Precedence>,
    identity: Arc<AtomicU64>,
) {
    let view = &precedence.view;
    let Some(link) = leader.as_ref().and_then(Vault::link) else { return };
    let started = unix(Instant::now());
    loop {
        link.belong_to(identity.load(Ordering::Relaxed));
        precedence.saw(link.is_member());
        view.set_refusal(link.refusal().map(|refusal| refusal.to_string()));
        link.describe(Description {
            roles: vec!["standby".to_owned()],
            started,
            behind: Some(view.behind()),
            ..Description::of_this_version()
        });
        sleep(DESCRIBE_EVERY).await;
    }
}

/// The leader's vault, if there is a bus. This process joins the cluster under its own name.
async fn leaders_vault(folder: &Path, parts: &Parts) -> Result<Option<Vault>, ShardError> {
    let config = &parts.config;
    match config.cluster.bus.is_empty() {
        true => Ok(None),
        false => {
            let process = getrandom::u64().map_err(io::Error::other).map_err(at(folder))?;
            let bus = bus(folder, config).await?;
            let joining = Joining {
                node: config.cluster.node_name(),
                process,
                office: passports(folder, parts, true),
                settings: LeadersSettings::Compared(Box::new(config.clone())),
            };
            Ok(Some(vault_at_leader(bus, joining, config).await?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_standby_that_never_joined_lets_others_take_over_first() {
        let view = Arc::<View>::default();
        let precedence = Precedence::of(&view);
        let second = Duration::from_secs(1);
        let mut now = Instant::now();
        assert!(!precedence.must_wait(now), "no leader was seen");
        view.see_active(now);
        assert!(!precedence.must_wait(now + 9 * second), "it is still joining");
        now += 10 * second;
        for _ in 0..2 {
            for _ in 0..10 {
                assert!(precedence.must_wait(now));
                now += second;
            }
            assert!(!precedence.must_wait(now));
            // Another leader that fails later.
            now += 60 * second;
        }
        precedence.saw(true);
        precedence.saw(false);
        assert!(!precedence.must_wait(now));
    }
}
