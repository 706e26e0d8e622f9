//! A client's session in the vault, and its notices.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;
use worldwire_uru::types::NetError;

use super::Vault;
use crate::uru::vault::ask::{Ask, Wire, encoded};
use crate::uru::vault::session::{ConnectionId, Notice, Outcome};
use crate::uru::vault::steps::VaultState;

/// A client's session in the vault.
pub struct Connection {
    id: ConnectionId,
    vault: Vault,
    /// The number of notices that were sent before the last reply.
    mark: Arc<AtomicU64>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({})", self.id.0)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        match &self.vault.link {
            // The vault ends the other sessions when it is closed; if the vault is in another
            // process, that process ends them once this one stops sending.
            _ if self.vault.leaving.load(Ordering::Relaxed) => {}
            Some(link) => link.end_session(self.id.0),
            // This fails if the vault and all its sessions have ended.
            None => drop(self.vault.ends.send(self.id)),
        }
    }
}

impl Connection {
    /// A session, with the queue of its notices. It ends when this is dropped.
    pub(super) fn new(
        id: ConnectionId,
        vault: Vault,
        notices: mpsc::Receiver<Notice>,
    ) -> (Self, Notices) {
        let mark = Arc::<AtomicU64>::default();
        let notices = Notices { notices, taken: 0, mark: Arc::clone(&mark) };
        (Self { id, vault, mark }, notices)
    }

    /// The number of this session, for logs.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.id.0
    }

    /// Makes a request on behalf of this session. The future borrows nothing.
    pub(in crate::uru) fn ask<A: Ask>(
        &self,
        ask: A,
    ) -> impl Future<Output = Result<A::Reply, NetError>> + Send + use<A> {
        let (vault, id, mark) = (self.vault.clone(), self.id, Arc::clone(&self.mark));
        async move {
            let (reply, sent) = vault.ask(id, ask).await?;
            mark.fetch_max(sent, Ordering::AcqRel);
            Ok(reply)
        }
    }

    /// Runs a request on behalf of this session. Other processes cannot make such requests.
    pub(in crate::uru::vault) async fn run<T: Send + 'static>(
        &self,
        request: impl Fn(&mut VaultState, ConnectionId) -> Outcome<T> + Send + 'static,
    ) -> Result<T, NetError> {
        let id = self.id;
        let (value, sent) =
            self.vault.call(Some(id), None, move |state| request(state, id)).await?;
        self.mark.fetch_max(sent, Ordering::AcqRel);
        Ok(value)
    }

    /// Makes a request of another kind to the process with the vault.
    pub(in crate::uru) async fn ask_leader<R: Wire>(
        &self,
        kind: u16,
        request: &impl Wire,
    ) -> Result<R, NetError> {
        let body = encoded(request).map_err(|_| NetError::InvalidParameter)?;
        let (reply, sent) = self.vault.ask_elsewhere(self.id, kind, body).await?;
        self.mark.fetch_max(sent, Ordering::AcqRel);
        Ok(reply)
    }
}

/// A session's notices, in order.
#[derive(Debug)]
pub struct Notices {
    notices: mpsc::Receiver<Notice>,
    taken: u64,
    mark: Arc<AtomicU64>,
}

impl Notices {
    /// Waits for the next notice. `None` means that the vault has ended the session because too
    /// many notices were queued or the shard is shutting down. Cancel safe.
    pub async fn recv(&mut self) -> Option<Notice> {
        let notice = self.notices.recv().await?;
        self.taken += 1;
        Some(notice)
    }

    /// Whether the vault has ended the session. Some notices may still be queued.
    pub(in crate::uru) fn has_ended(&self) -> bool {
        self.notices.is_closed()
    }

    /// The next notice that must be sent before the reply from the method that returned last, if
    /// there is one.
    pub fn due(&mut self) -> Option<Notice> {
        if self.taken >= self.mark.load(Ordering::Acquire) {
            return None;
        }
        let notice = self.notices.try_recv().ok()?;
        self.taken += 1;
        Some(notice)
    }
}
