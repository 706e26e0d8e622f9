//! How sessions of clients on nodes continue elsewhere.
//!
//! The session's task holds its client's ticket. When the client presents the ticket to another
//! process, that process's session takes over the vault's session and the player's presence in
//! ages, and the task ends. If the node is given up first, the session waits without a task.

use std::future::pending;
use std::mem;

use tokio::time::Instant;
use worldwire_uru::types::NetError;

use super::RemoteClient;
use crate::uru::auth::{Claim, HeldTicket, Identity, Recent, SuspendedSession};
use crate::uru::vault::resume::{Resumed, Ticket};
use crate::uru::vault::{Connection, Notice};

/// The state that a session's task keeps for its client's return.
#[derive(Debug, Default)]
pub(super) struct Returning {
    /// The ticket for resuming the session, once the client has logged in.
    ticket: Option<HeldTicket>,
    /// The client, once it has logged in.
    client: Option<Resumed>,
    /// Recent notices, which the client may not have received.
    recent: Recent,
    /// Notices to repeat to a client that has returned.
    missed: Vec<Notice>,
    /// When the client lost its connection, if it has.
    lost_since: Option<Instant>,
}

impl Returning {
    /// Waits until another connection claims the session. Cancel safe.
    pub(super) async fn claimed(&mut self) -> Claim {
        match &mut self.ticket {
            Some(ticket) => ticket.claimed().await,
            None => pending().await,
        }
    }

    /// Records a notice sent to the client. A client that was kicked does not return.
    pub(super) fn notified(&mut self, notice: Notice) {
        match notice {
            Notice::KickedOff { .. } => (self.ticket, self.client) = (None, None),
            notice => self.recent.notified(notice),
        }
    }

    /// Takes the notices to repeat.
    pub(super) fn take_missed(&mut self) -> Vec<Notice> {
        mem::take(&mut self.missed)
    }

    /// The client has switched to another player, or to none.
    pub(super) fn chose(&mut self, player: u32) {
        if let Some(client) = &mut self.client {
            client.player = player;
        }
    }

    /// The client has lost its connection, but may return.
    pub(super) fn lost(&mut self) {
        if let (Some(ticket), Some(client)) = (&self.ticket, &self.client) {
            ticket.lost(Identity::from(client));
            self.lost_since = Some(Instant::now());
        }
    }

    /// The client is connected again.
    pub(super) fn came_back(&mut self) {
        self.lost_since = None;
    }
}

impl RemoteClient<'_> {
    /// Replaces the session's ticket. `used` is the ticket that the client presented to the node.
    ///
    /// # Errors
    /// [`NetError::AuthenticationFailed`] before the login, or if another process now has the
    /// session; database errors. The old ticket stays valid.
    pub(super) async fn renew(
        &mut self,
        used: Option<Ticket>,
        new: Option<Ticket>,
    ) -> Result<(), NetError> {
        let current = self.returning.ticket.as_ref().map(HeldTicket::ticket);
        if used.is_some() && used != current {
            return Err(NetError::AuthenticationFailed);
        }
        let client = self.session.identify().await?;
        self.store(&self.session, new).await?;
        if let Some(ticket) = &self.returning.ticket
            && !ticket.withdraw()
        {
            return Err(NetError::AuthenticationFailed);
        }
        self.returning.ticket = new.and_then(|new| self.shared.reconnections.hold(new));
        self.returning.client = Some(client);
        Ok(())
    }

    /// Replaces this session with the one that the client left elsewhere. The client may have
    /// missed notices.
    ///
    /// # Errors
    /// Database errors. The client can try again.
    pub(super) async fn resume(
        &mut self,
        presented: Ticket,
        new: Option<Ticket>,
    ) -> Result<Option<Resumed>, NetError> {
        let reconnections = &self.shared.reconnections;
        let client = match reconnections.claim(presented).await {
            Some(kept) if kept.identity.account.is_zero() => return Ok(None),
            Some(kept) => {
                match self.store(&kept.session, new).await {
                    Ok(()) => {}
                    // The session was kicked.
                    Err(NetError::AuthenticationFailed) => return Ok(None),
                    Err(error) => {
                        reconnections.put_back(presented, *kept);
                        return Err(error);
                    }
                }
                let SuspendedSession { session, presence, notices, .. } = *kept;
                let Identity { account, player } = kept.identity;
                (self.session, self.presence, self.notices) = (session, presence, notices);
                self.returning.missed = kept.recent.notices();
                let account_name = kept.account_name.unwrap_or_default();
                Resumed { account, account_name, player }
            }
            None if self.shared.vault.keeps_sessions() => {
                match self.session.resume(presented, new).await? {
                    Some(client) => client,
                    None => return Ok(None),
                }
            }
            None => return Ok(None),
        };
        self.returning.ticket = new.and_then(|new| self.shared.reconnections.hold(new));
        self.returning.client = Some(client.clone());
        Ok(Some(client))
    }

    /// Ends a session of this player that is waiting for its client.
    pub(super) async fn give_up(&self, player: u32) {
        let account = match &self.returning.client {
            Some(client) => Some(client.account),
            None => self.session.identify().await.ok().map(|client| client.account),
        };
        if let Some(account) = account.filter(|_| player != 0) {
            self.shared.reconnections.give_up(Identity { account, player }).await;
        }
    }

    /// Hands the session over.
    pub(super) fn hand_over(self, claim: Claim) {
        if let (Some(kept), _) = self.into_kept() {
            // If the claimant is gone by now, the session ends.
            let _ = claim.send(Box::new(kept));
        }
    }

    /// Keeps the session until its client returns or the time limit expires.
    pub(super) fn wait(self) {
        let lost_since = self.returning.lost_since;
        let patience = self.shared.reconnections.patience();
        let left =
            patience.saturating_sub(lost_since.map(|since| since.elapsed()).unwrap_or_default());
        if let (Some(kept), Some(ticket)) = self.into_kept() {
            kept.presence.lost();
            ticket.keep(kept, left);
        }
    }

    fn into_kept(self) -> (Option<SuspendedSession>, Option<HeldTicket>) {
        let Self { session, presence, notices, returning, .. } = self;
        let Returning { ticket, client, recent, .. } = returning;
        let kept = client.map(|client| SuspendedSession {
            identity: Identity::from(&client),
            account_name: Some(client.account_name),
            session,
            presence,
            notices,
            recent,
        });
        (kept, ticket)
    }

    /// Stores the session, so that the client can resume it through the process that takes over
    /// from this one.
    async fn store(&self, session: &Connection, new: Option<Ticket>) -> Result<(), NetError> {
        match self.shared.vault.keeps_sessions() {
            true => session.keep_ticket(new).await,
            false => Ok(()),
        }
    }
}
