//! A process that waits to take over a shard that another process serves.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, info};
use worldwire_core::listed;
use worldwire_net::Signal;
use worldwire_uru::crypt::key::PrimeKind;

use super::admin::{Control, Relay};
use super::cluster::{Description, Joining, KeyDigests, LeadersSettings, NodeKind, Refusal};
use super::config::{self, RESTRICTED, Role, ShardConfig, WELCOME};
use super::game::GameRandom;
use super::joining::{bus, not_led, passports, vault_at_leader};
use super::vault::{Environment, Followed, LiveSettings, Vault, VaultCopy};
use super::{GOODBYE, Parts, Shard, ShardError, client_port};
use crate::admin::Administered as _;
use crate::config::{ConfigError, SettingError};
use crate::folder::blocking;
use crate::operators;
use crate::page::unix;
use crate::standby::{self, Opened, TakenOver, View};
use crate::start::{StartError, at, or_close};
use crate::store::Store;
use crate::store::lease::SharedStore;
use crate::store::lock::FolderLock;

/// How often this process reports to the leader how far behind it is.
const DESCRIBE_EVERY: Duration = Duration::from_secs(1);
/// How often to check whether another process has been active.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often to try again to write settings.
const RETRY_EVERY: Duration = Duration::from_secs(10);
/// The maximum time that a standby normally takes to join the leader.
const JOIN_WITHIN: Duration = Duration::from_secs(10);
/// How long a standby that has not joined the leader within that time lets others go first. If it
/// became the leader, it might not reach the nodes either.
const UNJOINED_PATIENCE: Duration = Duration::from_secs(10);
/// If the last attempt to take over is longer ago than this, the next attempt follows another
/// failure of a leader.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(5);

/// A process that keeps a copy of a shard's vault and takes over the shard when the active process
/// fails or stops. It needs a PostgreSQL database.
pub struct Standby {
    folder: PathBuf,
    lock: FolderLock,
    parts: Parts,
    standby: standby::Standby<VaultCopy>,
    operators: operators::Listener<Relay>,
    view: Arc<View>,
    /// The leader's vault, if there is a bus.
    leader: Option<Vault>,
    /// What is known from the database about the shard.
    followed: Arc<Followed>,
}

impl fmt::Debug for Standby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standby").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Standby {
    /// Opens a shard's directory and reads the vault, but binds only the status page's port. The
    /// directory needs the keys of the active process. `change` is applied to the configuration. On
    /// an error, nothing is left open.
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
        let followed = copy.followed();
        let standby = standby::Standby::read(waiting, copy).await?;
        let parts = Parts::load(folder, config, PrimeKind::Safe, absent).await;
        let parts = standby.or_close(parts).await?;
        let leader = standby.or_close(leaders_vault(folder, &parts).await).await?;
        let relay = Relay::standby(leader.clone(), Arc::clone(&view));
        let operators = operators::Listener::bind(folder, relay).await;
        let operators = or_close(operators, &*store).await.map_err(at(folder))?;
        let folder = folder.to_owned();
        Ok(Self { folder, lock, parts, standby, operators, view, leader, followed })
    }

    /// Waits until this process has taken over the shard. Returns `None` if it is stopped first.
    pub async fn lead(self, signal: Signal) -> Result<Option<Shard>, ShardError> {
        let Self { folder, lock, mut parts, standby, operators, view, leader, followed } = self;
        let operators = tokio::spawn(operators.run());
        let precedence = Arc::new(Precedence::of(&view));
        let keys = KeyDigests::of(&parts.server.keys).short();
        let describing =
            keep_described(leader.clone(), Arc::clone(&precedence), Arc::clone(&followed), keys);
        let describing = tokio::spawn(describing);
        let own = LiveSettings::of(&parts.config);
        let adopting = tokio::spawn(adopt(folder.clone(), Arc::clone(&view), followed.live(), own));
        let bind = || async {
            if followed.has_other_keys(keys) {
                return Err(StartError::OtherKeys);
            }
            may_lead(leader.as_ref(), &parts.config, followed.shard(), &precedence).await?;
            client_port(&parts.config).await
        };
        let taken = standby.lead::<_, _, ShardError>(signal, bind).await;
        // The shard needs this socket for itself.
        for task in [operators, describing, adopting] {
            task.abort();
            let _ = task.await;
        }
        let Some(TakenOver { mut led, ports, status }) = taken? else {
            if let Some(link) = leader.as_ref().and_then(Vault::link) {
                link.stop();
                let _ = timeout(GOODBYE, link.flush()).await;
            }
            return Ok(None);
        };
        if view.active_since().is_some() {
            let live = followed.live().borrow().clone();
            // Perhaps not all of them are written yet.
            let written = configure(&folder, live.since(&LiveSettings::of(&parts.config))).await;
            if let Err(error) = written {
                complain(&error.to_string());
            }
            live.apply_to(&mut parts.config);
        }
        led.copy.set_restricted(parts.config.auth.restricted);
        // This process must not join itself.
        drop(leader);
        let store: Arc<dyn SharedStore> = Arc::clone(&led.store);
        let vault = or_close(Vault::lead(led).await, &*store).await?;
        let (ports, random) = ((ports, status), GameRandom::default());
        let stores = (&*store as &dyn Store, Some(Arc::clone(&store)));
        Shard::assemble(&folder, lock, parts, ports, vault, stores, random).await.map(Some)
    }
}

/// Checks whether this process can take over. With different keys, clients could not connect to it;
/// with two leaders, nodes could follow only one of them.
async fn may_lead(
    leader: Option<&Vault>,
    config: &ShardConfig,
    shard: u64,
    precedence: &Precedence,
) -> Result<(), StartError> {
    let Some(link) = leader.and_then(Vault::link) else { return Ok(()) };
    not_led(link.other_leader(shard).await, config, shard)?;
    match link.refusal() {
        Some(refusal @ Refusal::Keys { .. }) => Err(StartError::NotAdmitted(refusal.to_string())),
        _ if precedence.must_wait(Instant::now()) => Err(StartError::NotJoined(UNJOINED_PATIENCE)),
        _ => Ok(()),
    }
}

/// Decides whether this standby should let others take over first.
#[derive(Debug)]
struct Precedence {
    view: Arc<View>,
    has_joined: AtomicBool,
    /// The times of the first and the last attempt to take over.
    attempts: Mutex<Option<(Instant, Instant)>>,
}

impl Precedence {
    fn of(view: &Arc<View>) -> Self {
        let view = Arc::clone(view);
        Self { view, has_joined: AtomicBool::new(false), attempts: Mutex::default() }
    }

    /// Records whether this process currently has a leader.
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

/// Keeps the view of this process, and the leader's description of it, up to date.
async fn keep_described(
    leader: Option<Vault>,
    precedence: Arc<Precedence>,
    followed: Arc<Followed>,
    keys: u64,
) {
    let view = &precedence.view;
    let link = leader.as_ref().and_then(Vault::link);
    let started = unix(Instant::now());
    loop {
        let is_unfit = followed.has_other_keys(keys);
        view.set_unfitness(is_unfit.then(|| StartError::OtherKeys.to_string()));
        let Some(link) = link else {
            sleep(DESCRIBE_EVERY).await;
            continue;
        };
        link.belong_to(followed.shard());
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

/// Adopts the settings that operators change on the active process, once one has been seen.
async fn adopt(
    folder: PathBuf,
    view: Arc<View>,
    mut live: watch::Receiver<LiveSettings>,
    mut own: LiveSettings,
) {
    let mut failure = None;
    loop {
        if view.active_since().is_some() {
            let wanted = live.borrow_and_update().clone();
            match configure(&folder, wanted.since(&own)).await {
                Ok(()) => (own, failure) = (wanted, None),
                // Tried again, because otherwise this process would start with the old settings.
                Err(error) => {
                    let error = error.to_string();
                    if failure.as_ref() != Some(&error) {
                        complain(&error);
                    }
                    failure = Some(error);
                }
            }
        }
        tokio::select! {
            changed = live.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = sleep(if failure.is_none() { LOOK_EVERY } else { RETRY_EVERY }) => {}
        }
    }
}

fn complain(error: &str) {
    error!(error, "cannot write settings of the active process to shard.toml");
}

/// Changes settings in the configuration file, each given as section, name and value.
async fn configure(
    folder: &Path,
    edits: Vec<(&'static str, &'static str, Json)>,
) -> Result<(), ConfigError> {
    if edits.is_empty() {
        return Ok(());
    }
    let folder = folder.to_owned();
    let names = listed(edits.iter().map(|(_, name, _)| *name));
    let edited = blocking(move || {
        let mut edits = edits.into_iter();
        edits.try_for_each(|(section, name, value)| config::edit(&folder, section, name, value))
    });
    edited.await?;
    info!(settings = names, "shard.toml now has settings of the active process");
    Ok(())
}

impl LiveSettings {
    fn of(config: &ShardConfig) -> Self {
        let (restricted, welcome) = (config.auth.restricted, config.welcome.clone());
        Self { restricted: Some(restricted), welcome: Some(welcome) }
    }

    fn apply_to(self, config: &mut ShardConfig) {
        if let Some(restricted) = self.restricted {
            config.auth.restricted = restricted;
        }
        if let Some(welcome) = self.welcome {
            config.welcome = welcome;
        }
    }

    /// The settings that differ from `others`, each as section, name and value.
    fn since(&self, others: &Self) -> Vec<(&'static str, &'static str, Json)> {
        let restricted = self.restricted.filter(|_| self.restricted != others.restricted);
        let welcome = self.welcome.as_ref().filter(|_| self.welcome != others.welcome);
        let restricted = restricted.map(|it| (RESTRICTED.0, RESTRICTED.1, json!(it)));
        restricted.into_iter().chain(welcome.map(|it| (WELCOME.0, WELCOME.1, json!(it)))).collect()
    }
}

/// Joins the cluster under this process's own name and returns the leader's vault, if there is a
/// bus.
async fn leaders_vault(folder: &Path, parts: &Parts) -> Result<Option<Vault>, ShardError> {
    let config = &parts.config;
    match config.cluster.bus.is_empty() {
        true => Ok(None),
        false => {
            let process = getrandom::u64().map_err(io::Error::other).map_err(at(folder))?;
            let bus = bus(folder, config).await?;
            let joining = Joining {
                node: config.cluster.node_name(),
                kind: NodeKind::of(&config.cluster.roles),
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
