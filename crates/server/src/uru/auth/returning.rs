//! Continues a session on another connection of its client, through any process.

use std::sync::Arc;

use worldwire_uru::types::NetError;

use super::Session;
use super::resume::{Reconnections, SuspendedSession};
use crate::uru::cluster::{RENEW_TICKET, RESUME_SESSION, RenewTicket, ResumeSession};
use crate::uru::vault::Vault;
use crate::uru::vault::resume::{Resumed, Ticket};

/// A session that continues.
#[derive(Debug)]
pub(super) enum Return {
    /// This process had the session.
    Kept(Box<SuspendedSession>),
    /// Another process had it. It continues as the session of the new connection.
    Moved(Resumed),
}

/// Resumes the session of a client that presents a ticket. `session` is the new connection's
/// session, and `new` is the ticket for the next time.
///
/// # Errors
/// It is currently unknown whether such a session exists. The client must try again.
pub(super) async fn resume(
    vault: &Vault,
    reconnections: &Arc<Reconnections>,
    session: &Session,
    presented: Ticket,
    new: Option<Ticket>,
) -> Result<Option<Return>, NetError> {
    let kept = reconnections.claim(presented).await;
    if vault.link().is_none() {
        if let Some(kept) = kept {
            if !kept.identity.account.is_zero()
                && let Err(error) = renew(vault, &kept.session, None, new).await
            {
                tracing::warn!(?error, "cannot store a session for a standby");
            }
            return Ok(Some(Return::Kept(kept)));
        }
        if !vault.keeps_sessions() {
            return Ok(None);
        }
        return Ok(session.resume(presented, new).await?.map(Return::Moved));
    }
    // The client may have used another process since then.
    if let Some(kept) = kept {
        if renew(vault, &kept.session, Some(presented), new).await.is_ok() {
            return Ok(Some(Return::Kept(kept)));
        }
        let moved = move_here(session, presented, new).await;
        if moved.is_err() {
            reconnections.put_back(presented, *kept);
        }
        return moved;
    }
    move_here(session, presented, new).await
}

/// Lets a session's client resume the session through any process with `new`, and no longer with
/// earlier tickets. If the client has presented a ticket, `used`, this fails unless that ticket was
/// the session's latest one.
pub(super) async fn renew(
    vault: &Vault,
    session: &Session,
    used: Option<Ticket>,
    new: Option<Ticket>,
) -> Result<(), NetError> {
    match vault.link() {
        Some(_) => session.ask_leader(RENEW_TICKET, &RenewTicket { used, new }).await,
        None if vault.keeps_sessions() => session.keep_ticket(new).await,
        None => Ok(()),
    }
}

async fn move_here(
    session: &Session,
    presented: Ticket,
    new: Option<Ticket>,
) -> Result<Option<Return>, NetError> {
    let moved: Option<Resumed> =
        session.ask_leader(RESUME_SESSION, &ResumeSession { presented, new }).await?;
    Ok(moved.map(Return::Moved))
}
