//! A process that waits to take over a login server from the process that serves it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use worldwire_net::Signal;

use super::realm::{Realm, RealmCopy};
use super::{KiConfig, LoginServer, Parts, Ports, ServerError, Start, no_change};
use crate::admin::Administered as _;
use crate::standby::{self, Opened, TakenOver};
use crate::start::or_close;
use crate::store::lock::FolderLock;

/// A process that keeps a copy of a login server's accounts and characters, and takes over when the
/// process that serves them fails or stops. It needs a PostgreSQL database.
pub struct Standby {
    folder: PathBuf,
    lock: FolderLock,
    parts: Parts,
    standby: standby::Standby<RealmCopy>,
}

impl fmt::Debug for Standby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standby").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Standby {
    /// Opens a server's directory and reads the database, but binds only the port of the status
    /// page. The directory needs the key of the process that serves the accounts. On an error,
    /// nothing is left open.
    pub async fn open(folder: &Path, start: Start) -> Result<Self, ServerError> {
        let change = start.change.unwrap_or_else(no_change);
        let status = KiConfig::status_address;
        let opened = standby::open(folder, Realm::NAME, change, status, |_| Vec::new()).await?;
        let Opened { lock, config, absent, key, waiting } = opened;
        let copy = RealmCopy::new(key, config.limits.players);
        let standby = standby::Standby::read(waiting, copy).await?;
        let parts = Parts::load(folder, config, absent, start.secrets.as_deref()).await;
        let parts = standby.or_close(parts).await?;
        Ok(Self { folder: folder.to_owned(), lock, parts, standby })
    }

    /// Waits until this process has taken over the server. Returns `None` after the signal.
    pub async fn lead(self, signal: Signal) -> Result<Option<LoginServer>, ServerError> {
        let Self { folder, lock, parts, standby } = self;
        let bind = || Ports::bind(&folder, &parts.config);
        let taken = standby.lead::<_, _, ServerError>(signal, bind).await?;
        let Some(TakenOver { led, ports, status }) = taken else { return Ok(None) };
        let store = Arc::clone(&led.store);
        let known = or_close(ports.known(&folder, &parts.config), &*store).await?;
        let realm = or_close(Realm::lead(led, known, ports.clock), &*store).await?;
        let ports = (ports, status);
        LoginServer::assemble(&folder, lock, parts, ports, realm, &*store).await.map(Some)
    }
}
