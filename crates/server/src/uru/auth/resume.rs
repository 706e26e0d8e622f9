//! Reconnecting: a client whose connection was lost resumes its session on a new one.
//!
//! After every `ClientRegisterReply`, the server sends a `ServerAddr` with a token, which the
//! client repeats in the connect packet of its next connection. When the client registers there,
//! that connection takes over the session, with its account and player, and resends messages that
//! may have been lost. The old connection may still be open on the server, because clients often
//! notice a loss first.
//!
//! If the client closed the connection itself, the session ends at once. The token is sent
//! unencrypted in the connect packet, so it can be used only once and only from the same address. A
//! client that then logs in to another account gives up the session.
//!
//! In a cluster, the leader holds the tickets of all sessions and decides who may resume them. So a
//! client can return through any process, even if the one that it used has failed. A front also
//! keeps the sessions of lost connections, with the messages that may have been lost, but it asks
//! the leader before a client resumes one.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::pending;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use worldwire_core::{Reader, Side};
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::types::Uuid;

use super::replies::{notice_in, notice_message};
use super::{ClientState, Presence, Session};
use crate::uru::config::Settings;
use crate::uru::vault::resume::{Resumed, Ticket};
use crate::uru::vault::{Notice, Notices};

/// How long an open connection may take to hand its session over: it first finishes the current
/// request.
const HANDOVER: Duration = Duration::from_secs(5);
/// Messages sent within this time before the client last answered may have been lost.
const MARGIN: Duration = Duration::from_secs(5);
/// How long a client may take to notice that its front has failed.
const BLINDNESS: Duration = Duration::from_secs(60);
/// The maximum number and total size of messages to resend.
const MAX_MESSAGES: usize = 256;
const MAX_BYTES: usize = 64 << 10;

/// A session that can continue on another connection.
#[derive(Debug)]
pub(in crate::uru) struct SuspendedSession {
    pub(in crate::uru) session: Session,
    pub(in crate::uru) presence: Presence,
    pub(in crate::uru) notices: Notices,
    pub(in crate::uru) identity: Identity,
    pub(in crate::uru) account_name: Option<String>,
    pub(in crate::uru) recent: Recent,
}

/// The account and its player. Both are zero before the login, and the player is 0 if none is
/// chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::uru) struct Identity {
    pub(in crate::uru) account: Uuid,
    pub(in crate::uru) player: u32,
}

impl Identity {
    /// The client's state.
    pub(super) fn state(self) -> ClientState {
        match (self.account, self.player) {
            (Uuid::ZERO, _) => ClientState::Connected,
            (_, 0) => ClientState::LoggedIn,
            _ => ClientState::Playing,
        }
    }
}

impl From<&Resumed> for Identity {
    fn from(&Resumed { account, player, .. }: &Resumed) -> Self {
        Self { account, player }
    }
}

/// Where to hand over a session.
pub(in crate::uru) type Claim = oneshot::Sender<Box<SuspendedSession>>;

/// A shard's sessions that can continue on another connection.
pub(in crate::uru) struct Reconnections {
    settings: Settings,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_ticket: HashMap<Ticket, Entry>,
    /// The tickets of sessions whose clients are not connected.
    lost: HashMap<Identity, Ticket>,
    last: u64,
}

struct Entry {
    /// Distinguishes this entry from an earlier one with the same ticket.
    serial: u64,
    holder: Holder,
    /// The session's owner, set once the client is not connected.
    lost: Option<Identity>,
}

/// The holder of a session.
enum Holder {
    /// A task that can be asked for the session: the task of an open connection or of a front's
    /// client.
    Task(oneshot::Sender<Claim>),
    /// This entry, since the connection was lost.
    Suspended(Box<SuspendedSession>),
}

impl Holder {
    /// Ends the session.
    fn end(self) {
        if let Self::Task(ask) = self {
            // Ask for the session but drop the answer. This fails if the session has just ended.
            let _ = ask.send(oneshot::channel().0);
        }
    }
}

impl fmt::Debug for Reconnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens are secrets.
        f.debug_struct("Reconnections").field("patience", &self.patience()).finish_non_exhaustive()
    }
}

impl Reconnections {
    /// Keeps sessions for the time in the settings. Zero disables reconnecting.
    pub(in crate::uru) fn new(settings: Settings) -> Self {
        Self { settings, entries: Mutex::default() }
    }

    /// Ends all sessions that are kept for their clients.
    pub(in crate::uru) fn close(&self) {
        let entries = std::mem::take(&mut *self.lock());
        drop(entries);
    }

    /// Issues a token to an open connection, unless reconnecting is disabled.
    pub(super) fn issue_token(self: &Arc<Self>, address: IpAddr) -> Option<(Uuid, HeldTicket)> {
        let mut token = [0; 16];
        getrandom::fill(&mut token).ok()?;
        let token = Uuid(token);
        Some((token, self.hold(Ticket::new(token, address))?))
    }

    /// Lets a client resume a session with this ticket, unless reconnecting is disabled, or another
    /// session has the ticket.
    pub(in crate::uru) fn hold(self: &Arc<Self>, ticket: Ticket) -> Option<HeldTicket> {
        let (ask, claims) = oneshot::channel();
        let mut entries = self.lock();
        if self.patience().is_zero() || entries.by_ticket.contains_key(&ticket) {
            return None;
        }
        entries.last += 1;
        let serial = entries.last;
        entries.by_ticket.insert(ticket, Entry { serial, holder: Holder::Task(ask), lost: None });
        let all = Arc::clone(self);
        Some(HeldTicket { ticket, serial, claims: Some(claims), all, is_kept: false })
    }

    /// Redeems a ticket for its session. Waits while the old connection is busy.
    pub(in crate::uru) async fn claim(&self, ticket: Ticket) -> Option<Box<SuspendedSession>> {
        let holder = self.lock().take(ticket)?.holder;
        let given = match holder {
            Holder::Suspended(kept) => return Some(kept),
            Holder::Task(ask) => {
                let (give, given) = oneshot::channel();
                ask.send(give).ok()?;
                given
            }
        };
        timeout(HANDOVER, given).await.ok()?.ok()
    }

    /// Ends the session of a player whose client reconnected without the token. Returns once the
    /// player can be chosen again.
    pub(in crate::uru) async fn give_up(&self, identity: Identity) {
        let ticket = self.lock().lost.get(&identity).copied();
        if let Some(ticket) = ticket {
            drop(self.claim(ticket).await);
        }
    }

    /// Keeps a claimed session that cannot be resumed now for another attempt.
    pub(in crate::uru) fn put_back(self: &Arc<Self>, ticket: Ticket, kept: SuspendedSession) {
        if let Some(held) = self.hold(ticket) {
            held.keep(kept, self.patience());
        }
    }

    /// How long sessions are kept.
    pub(in crate::uru) fn patience(&self) -> Duration {
        self.settings.current().patience()
    }

    /// The number of sessions whose clients are not connected.
    #[cfg(test)]
    pub(super) fn lost_count(&self) -> usize {
        self.lock().lost.len()
    }

    /// Removes an entry, unless its ticket has been used.
    fn remove(&self, ticket: Ticket, serial: u64) -> Option<Entry> {
        let mut entries = self.lock();
        let is_there = entries.by_ticket.get(&ticket).is_some_and(|entry| entry.serial == serial);
        if is_there { entries.take(ticket) } else { None }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn take(&mut self, ticket: Ticket) -> Option<Entry> {
        let entry = self.by_ticket.remove(&ticket)?;
        if let Some(identity) = entry.lost
            && self.lost.get(&identity) == Some(&ticket)
        {
            self.lost.remove(&identity);
        }
        Some(entry)
    }

    /// Records that the client with this ticket is not connected. Returns an earlier session of the
    /// same player, which the caller must end: otherwise, a client could accumulate sessions.
    fn lose(&mut self, ticket: Ticket, identity: Identity) -> Option<Entry> {
        self.by_ticket.get_mut(&ticket)?.lost = Some(identity);
        let earlier = self.lost.insert(identity, ticket).filter(|earlier| *earlier != ticket)?;
        self.by_ticket.remove(&earlier)
    }
}

/// The ticket of a session that a task holds. Dropping it invalidates the ticket.
pub(in crate::uru) struct HeldTicket {
    ticket: Ticket,
    serial: u64,
    /// `None` once a claim has been received.
    claims: Option<oneshot::Receiver<Claim>>,
    all: Arc<Reconnections>,
    /// Whether the ticket stays valid, because the session is kept.
    is_kept: bool,
}

impl fmt::Debug for HeldTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldTicket").finish_non_exhaustive()
    }
}

impl HeldTicket {
    pub(in crate::uru) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Waits until another connection claims the session. Cancel safe.
    pub(in crate::uru) async fn claimed(&mut self) -> Claim {
        if let Some(claims) = &mut self.claims {
            let claimed = claims.await;
            self.claims = None;
            if let Ok(claim) = claimed {
                return claim;
            }
        }
        pending().await
    }

    /// Invalidates the ticket. Returns false if it has been used; [`claimed`](Self::claimed) then
    /// returns the claim.
    pub(in crate::uru) fn withdraw(&self) -> bool {
        self.all.remove(self.ticket, self.serial).is_some()
    }

    /// Records that the client is not connected, but may return.
    pub(in crate::uru) fn lost(&self, identity: Identity) {
        let earlier = self.all.lock().lose(self.ticket, identity);
        if let Some(earlier) = earlier {
            earlier.holder.end();
        }
    }

    /// Keeps the session of a lost connection for a while.
    pub(in crate::uru) fn keep(mut self, kept: SuspendedSession, patience: Duration) {
        let (ticket, serial, identity) = (self.ticket, self.serial, kept.identity);
        let mut entries = self.all.lock();
        let entry = entries.by_ticket.get_mut(&ticket).filter(|entry| entry.serial == serial);
        let Some(entry) = entry else {
            drop(entries);
            // Another connection has already claimed the session.
            if let Some(Ok(claim)) = self.claims.as_mut().map(oneshot::Receiver::try_recv) {
                let _ = claim.send(Box::new(kept));
            }
            return;
        };
        entry.holder = Holder::Suspended(Box::new(kept));
        let earlier = entries.lose(ticket, identity);
        drop(entries);
        if let Some(earlier) = earlier {
            earlier.holder.end();
        }
        self.is_kept = true;
        let all = Arc::downgrade(&self.all);
        tokio::spawn(async move {
            sleep(patience).await;
            if let Some(all) = all.upgrade() {
                // The session's client did not reconnect in time.
                drop(all.remove(ticket, serial));
            }
        });
    }
}

impl Drop for HeldTicket {
    fn drop(&mut self) {
        if !self.is_kept {
            self.withdraw();
        }
    }
}

/// Messages that the client may not have received: those sent since shortly before its last
/// message. Clients ping every 30 s.
#[derive(Debug, Default)]
pub(in crate::uru) struct Recent {
    messages: VecDeque<(Instant, Sent)>,
    bytes: usize,
}

/// A message that was sent to a client.
#[derive(Debug)]
enum Sent {
    /// An encoded message that this process sent.
    Message(Box<[u8]>),
    /// A notice that another process sent.
    Notice(Notice),
}

impl Sent {
    /// Its size in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Message(bytes) => bytes.len(),
            Self::Notice(notice) => size_of_val(notice),
        }
    }
}

impl Recent {
    /// Remembers a sent message, and forgets the oldest ones if the limits are exceeded.
    pub(super) fn sent(&mut self, message: Vec<u8>) {
        self.push(Sent::Message(message.into()));
    }

    fn push(&mut self, sent: Sent) {
        self.bytes += sent.size();
        self.messages.push_back((Instant::now(), sent));
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
            // This frees the memory of idle connections.
            *self = Self::default();
        }
    }

    /// Remembers a notice to a client of another process, because that process may fail before the
    /// client has received the notice. Forgets notices that this one supersedes: clients fetch a
    /// node after each notice.
    pub(in crate::uru) fn notified(&mut self, notice: Notice) {
        let now = Instant::now();
        while self.messages.front().is_some_and(|(sent, _)| now.duration_since(*sent) > BLINDNESS) {
            self.forget_first();
        }
        let is_superseded =
            |sent: &Sent| matches!(sent, Sent::Notice(earlier) if notice.supersedes(earlier));
        let superseded = self.messages.iter().position(|(_, sent)| is_superseded(sent));
        if let Some((_, earlier)) = superseded.and_then(|at| self.messages.remove(at)) {
            self.bytes -= earlier.size();
        }
        self.push(Sent::Notice(notice));
    }

    /// The notices among the messages, in order.
    pub(in crate::uru) fn notices(&self) -> Vec<Notice> {
        let decoded = |bytes: &[u8]| {
            let message = Message::decode(Service::Auth, Side::Server, &mut Reader::new(bytes));
            match message {
                Ok(Message::AuthServer(message)) => notice_in(&message),
                _ => None,
            }
        };
        let notice = |(_, sent): &(Instant, Sent)| match sent {
            Sent::Message(bytes) => decoded(bytes),
            Sent::Notice(notice) => Some(*notice),
        };
        self.messages.iter().filter_map(notice).collect()
    }

    /// The encoded messages, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        self.messages.iter().filter_map(|(_, sent)| match sent {
            Sent::Message(bytes) => Some(Cow::Borrowed(&**bytes)),
            Sent::Notice(notice) => {
                Message::from(notice_message(*notice)).to_bytes().ok().map(Cow::Owned)
            }
        })
    }

    fn forget_first(&mut self) {
        if let Some((_, message)) = self.messages.pop_front() {
            self.bytes -= message.size();
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
        assert_eq!(recent.iter().map(Cow::into_owned).collect::<Vec<_>>(), [[2; 10]]);
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

    #[tokio::test(start_paused = true)]
    async fn only_the_latest_notice_about_a_node_or_reference_is_repeated() {
        let changed =
            |node_id, byte| Notice::NodeChanged { node_id, revision_id: Uuid([byte; 16]) };
        let added = Notice::NodeAdded { parent_id: 1, child_id: 2, owner_id: 0 };
        let removed = Notice::NodeRemoved { parent_id: 1, child_id: 2 };
        let mut recent = Recent::default();
        for notice in [changed(1, 0), added, removed, changed(2, 0)] {
            recent.notified(notice);
        }
        // They would displace all other messages.
        for _ in 0..=MAX_MESSAGES {
            recent.notified(changed(2, 1));
        }
        assert_eq!(recent.notices(), [changed(1, 0), removed, changed(2, 1)]);
        assert_eq!(recent.bytes, 3 * size_of::<Notice>());
        // The client may return to this process.
        let again: Vec<_> = recent.iter().map(Cow::into_owned).collect();
        let mut resent = Recent::default();
        again.into_iter().for_each(|message| resent.sent(message));
        assert_eq!(resent.notices(), recent.notices());
        tokio::time::advance(BLINDNESS + Duration::from_millis(1)).await;
        recent.notified(added);
        assert_eq!(recent.notices(), [added]);
    }
}
