//! A process that waits to take over a shard, which another process serves.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use worldwire_net::Signal;
use worldwire_uru::crypt::key::PrimeKind;

use super::admin::Control;
use super::config::ShardConfig;
use super::game::GameRandom;
use super::vault::{Environment, Vault, VaultCopy};
use super::{Parts, Shard, ShardError, client_port};
use crate::admin::Administered as _;
use crate::config::SettingError;
use crate::standby::{self, Opened, TakenOver};
use crate::start::or_close;
use crate::store::lock::FolderLock;

/// A process that keeps a copy of a shard's vault, and takes over the shard when the process that
/// serves it fails or stops. It needs a PostgreSQL database.
pub struct Standby {
    folder: PathBuf,
    lock: FolderLock,
    parts: Parts,
    standby: standby::Standby<VaultCopy>,
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
        let status = |config: &ShardConfig| match config.cluster.is_front() {
            true => Err(SettingError::FrontAsStandby.of("cluster.roles")),
            false => config.status_address(),
        };
        let keys = |config: &ShardConfig| vec![config.keys.clone()];
        let opened = standby::open(folder, Control::NAME, change, status, keys).await?;
        let Opened { lock, config, absent, key, waiting } = opened;
        let copy = VaultCopy::new(key, config.vault(), Environment::default());
        let standby = standby::Standby::read(waiting, copy).await?;
        let parts = Parts::load(folder, config, PrimeKind::Safe, absent).await;
        let parts = standby.or_close(parts).await?;
        Ok(Self { folder: folder.to_owned(), lock, parts, standby })
    }

    /// Waits until this process has taken over the shard. Returns `None` after the signal.
    pub async fn lead(self, signal: Signal) -> Result<Option<Shard>, ShardError> {
        let Self { folder, lock, parts, standby } = self;
        let taken = standby.lead::<_, _, ShardError>(signal, || client_port(&parts.config)).await?;
        let Some(TakenOver { led, ports, status }) = taken else { return Ok(None) };
        let store = Arc::clone(&led.store);
        let vault = or_close(Vault::lead(led).await, &*store).await?;
        let (ports, random) = ((ports, status), GameRandom::default());
        Shard::assemble(&folder, lock, parts, ports, vault, &*store, random).await.map(Some)
    }
}
