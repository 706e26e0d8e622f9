//! Reconnecting: a client whose connection was lost resumes its session on a new one.
//!
//! After every `ClientRegisterReply`, `ServerAddr` gives the client a token, which it repeats in
//! the connect packet of its next connection. When it registers there, that connection takes over
//! the session, with its account and player, and resends messages that may have been lost. The old
//! connection may still be open, because clients often notice a loss first.
//!
//! If the client closed the connection itself, the session ends at once. The token is sent in the
//! clear in the connect packet, so it can be used only once and only from the same address. A
//! client that then logs in to another account gives up the session.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::pending;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use worldwire_uru::types::Uuid;

use super::{ClientState, Notices, Presence, Session};

/// How long an open connection may take to hand its session over: it finishes a request first.
const HANDOVER: Duration = Duration::from_secs(5);
/// Messages sent within this time before the client last answered may have been lost.
const MARGIN: Duration = Duration::from_secs(5);
/// The maximum number and total size of messages to resend.
const MAX_MESSAGES: usize = 256;
const MAX_BYTES: usize = 64 << 10;

/// A session that can resume on another connection.
#[derive(Debug)]
pub(crate) struct SuspendedSession {
    pub(super) session: Session,
    pub(super) presence: Presence,
    pub(super) notices: Notices,
    pub(super) state: ClientState,
    pub(super) identity: Identity,
    pub(super) account_name: Option<String>,
    pub(super) recent: Recent,
}

/// An account and its player, or 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub(super) account: Uuid,
    pub(super) player: u32,
}

/// Where to hand over a session.
pub(crate) type Claim = oneshot::Sender<Box<SuspendedSession>>;

/// A shard's sessions that can resume on another connection.
pub(crate) struct Reconnections {
    patience: Duration,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_token: HashMap<Uuid, Entry>,
    /// The tokens of sessions without a connection.
    suspended: HashMap<Identity, Uuid>,
}

struct Entry {
    address: IpAddr,
    holder: Holder,
}

/// What holds a session.
enum Holder {
    /// An open connection, which can be asked for it.
    Connection(oneshot::Sender<Claim>),
    /// This entry, since the connection was lost.
    Suspended(Box<SuspendedSession>),
}

impl fmt::Debug for Reconnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens are secrets.
        f.debug_struct("Reconnections").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl Reconnections {
    /// Keeps sessions for this long. Zero disables reconnecting.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, entries: Mutex::default() }
    }

    /// Ends all sessions that are kept for their clients.
    pub(crate) fn close(&self) {
        let entries = std::mem::take(&mut *self.lock());
        drop(entries);
    }

    /// Issues a token to an open connection, unless reconnecting is disabled.
    pub(super) fn issue_token(self: &Arc<Self>, address: IpAddr) -> Option<ResumeToken> {
        if self.patience.is_zero() {
            return None;
        }
        let mut token = [0; 16];
        getrandom::fill(&mut token).ok()?;
        let (ask, claims) = oneshot::channel();
        let entry = Entry { address: address.to_canonical(), holder: Holder::Connection(ask) };
        self.lock().by_token.insert(Uuid(token), entry);
        Some(ResumeToken { token: Uuid(token), claims: Some(claims), all: Arc::clone(self) })
    }

    /// Redeems a token for its session. Waits while the old connection is busy.
    pub(super) async fn claim(
        &self,
        token: Uuid,
        address: IpAddr,
    ) -> Option<Box<SuspendedSession>> {
        let given = {
            let mut entries = self.lock();
            if entries.by_token.get(&token)?.address != address.to_canonical() {
                return None;
            }
            match entries.take(token)? {
                Holder::Suspended(kept) => return Some(kept),
                Holder::Connection(ask) => {
                    let (give, given) = oneshot::channel();
                    ask.send(give).ok()?;
                    given
                }
            }
        };
        timeout(HANDOVER, given).await.ok()?.ok()
    }

    /// Ends the session of a player whose client reconnected without the token.
    pub(super) fn give_up(&self, identity: Identity) {
        let given_up = {
            let mut entries = self.lock();
            entries.suspended.get(&identity).copied().and_then(|token| entries.take(token))
        };
        drop(given_up);
    }

    /// Ends a session whose client did not reconnect in time.
    fn expire(&self, token: Uuid) {
        let expired = self.lock().take(token);
        drop(expired);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn take(&mut self, token: Uuid) -> Option<Holder> {
        let holder = self.by_token.remove(&token)?.holder;
        if let Holder::Suspended(kept) = &holder
            && self.suspended.get(&kept.identity) == Some(&token)
        {
            self.suspended.remove(&kept.identity);
        }
        Some(holder)
    }
}

/// The token of an open connection. Dropping it invalidates the token.
pub(super) struct ResumeToken {
    token: Uuid,
    /// `None` once a claim was received.
    claims: Option<oneshot::Receiver<Claim>>,
    all: Arc<Reconnections>,
}

impl fmt::Debug for ResumeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumeToken").finish_non_exhaustive()
    }
}

impl ResumeToken {
    pub(super) fn token(&self) -> Uuid {
        self.token
    }

    /// Waits until another connection claims the session. Cancel safe.
    pub(super) async fn claimed(&mut self) -> Claim {
        if let Some(claims) = &mut self.claims {
            let claimed = claims.await;
            self.claims = None;
            if let Ok(claim) = claimed {
                return claim;
            }
        }
        pending().await
    }

    /// Keeps the session of a lost connection for a while.
    pub(super) fn keep(mut self, kept: SuspendedSession) {
        let (token, identity) = (self.token, kept.identity);
        // Ends the session of an earlier lost connection of the same player.
        self.all.give_up(identity);
        let mut entries = self.all.lock();
        let Some(entry) = entries.by_token.get_mut(&token) else {
            drop(entries);
            // Another connection has already claimed it.
            if let Some(Ok(claim)) = self.claims.as_mut().map(oneshot::Receiver::try_recv) {
                let _ = claim.send(Box::new(kept));
            }
            return;
        };
        entry.holder = Holder::Suspended(Box::new(kept));
        entries.suspended.insert(identity, token);
        drop(entries);
        let (all, patience) = (Arc::downgrade(&self.all), self.all.patience);
        // Keeps `drop` from invalidating the token.
        self.token = Uuid::ZERO;
        tokio::spawn(async move {
            sleep(patience).await;
            if let Some(all) = all.upgrade() {
                all.expire(token);
            }
        });
    }
}

impl Drop for ResumeToken {
    fn drop(&mut self) {
        let taken = self.all.lock().take(self.token);
        drop(taken);
    }
}

/// Messages that the client may not have received: those sent since shortly before its last
/// message. Clients ping every 30 s.
#[derive(Debug, Default)]
pub(super) struct Recent {
    messages: VecDeque<(Instant, Box<[u8]>)>,
    bytes: usize,
}

impl Recent {
    /// Remembers a sent message, and forgets the oldest ones beyond the limits.
    pub(super) fn sent(&mut self, message: Vec<u8>) {
        self.bytes += message.len();
        self.messages.push_back((Instant::now(), message.into()));
        while self.messages.len() > MAX_MESSAGES || self.bytes > MAX_BYTES {
            self.forget_first();
        }
    }

    /// Forgets messages that have arrived, because the client sent something well after them.
    pub(super) fn heard(&mut self) {
        let now = Instant::now();
        while self.messages.front().is_some_and(|(sent, _)| now.duration_since(*sent) > MARGIN) {
            self.forget_first();
        }
        if self.messages.is_empty() {
            // Frees the memory of idle connections.
            *self = Self::default();
        }
    }

    /// The messages, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.messages.iter().map(|(_, message)| &**message)
    }

    fn forget_first(&mut self) {
        if let Some((_, message)) = self.messages.pop_front() {
            self.bytes -= message.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn possibly_lost_messages_are_kept_within_limits() {
        let mut recent = Recent::default();
        recent.sent(vec![1; 10]);
        tokio::time::advance(MARGIN).await;
        recent.sent(vec![2; 10]);
        recent.heard();
        assert_eq!(recent.iter().count(), 2, "the first may still be in transit");
        tokio::time::advance(Duration::from_millis(1)).await;
        recent.heard();
        assert_eq!(recent.iter().collect::<Vec<_>>(), [[2; 10]]);
        tokio::time::advance(MARGIN * 2).await;
        assert_eq!(recent.iter().count(), 1, "the client has sent nothing since");
        recent.heard();
        assert_eq!((recent.iter().count(), recent.bytes, recent.messages.capacity()), (0, 0, 0));

        for number in 0..1000 {
            recent.sent(vec![0; number]);
        }
        assert!(recent.bytes <= MAX_BYTES && recent.bytes > MAX_BYTES - 1000);
        assert_eq!(recent.iter().last().unwrap().len(), 999);
        for _ in 0..1000 {
            recent.sent(vec![0; 2]);
        }
        assert_eq!((recent.iter().count(), recent.bytes), (MAX_MESSAGES, MAX_MESSAGES * 2));
    }
}
