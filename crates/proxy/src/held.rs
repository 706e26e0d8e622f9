//! A message that an exchange holds.

use core::time::Duration;
use std::collections::VecDeque;

use worldwire_core::Side;
use worldwire_dissect::Decision;

use crate::handler::Hold;
use crate::kept::Kept;

/// A held message.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) number: u64,
    pub(crate) name: String,
    pub(crate) from: Side,
    /// How long it is held, besides the ticket.
    pub(crate) hold: Option<Hold>,
    /// It waits until its hooks finish this ticket.
    pub(crate) ticket: Option<u64>,
    /// Messages to add right before it.
    pub(crate) added: VecDeque<(Side, Vec<u8>)>,
    /// The ticket with which its hooks finished it.
    pub(crate) finished: Option<u64>,
    pub(crate) decision: Decision<'static>,
    /// The message, if it is held at a breakpoint.
    pub(crate) kept: Option<Kept>,
    /// When it was held, on the proxy's clock.
    pub(crate) since: Duration,
}

/// A message that is held at a breakpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldMessage {
    /// Its number within the conversation.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its sender.
    pub from: Side,
    /// When it was held, on the proxy's clock.
    pub since: Duration,
    /// The message as a line of `dissect --json`, as the handlers left it.
    pub line: String,
}

impl Held {
    pub(crate) fn is_open(&self) -> bool {
        self.hold == Some(Hold::Open)
    }

    /// When it is released, if that depends only on time.
    pub(crate) fn due(&self) -> Option<Duration> {
        match (self.ticket, self.hold) {
            (None, Some(Hold::Until(at))) => Some(at),
            _ => None,
        }
    }

    pub(crate) fn is_ready(&self, now: Duration) -> bool {
        let waits = match self.hold {
            None => false,
            Some(Hold::Until(at)) => at > now,
            Some(Hold::Open) => true,
        };
        self.ticket.is_none() && !waits
    }

    /// Whether it waits until everything before it has been sent: additions would overtake earlier
    /// messages, and the number of bytes waiting here is limited.
    pub(crate) fn is_ordered(&self) -> bool {
        !self.added.is_empty() || matches!(self.decision, Decision::Instead(_))
    }

    /// The size of what it adds and changes, in bytes.
    pub(crate) fn waiting_bytes(&self) -> usize {
        waiting_bytes(&self.added, &self.decision)
    }
}

/// The size of a decision and of additions, in bytes.
pub(crate) fn waiting_bytes<'a>(
    added: impl IntoIterator<Item = &'a (Side, Vec<u8>)>,
    decision: &Decision<'_>,
) -> usize {
    let added: usize = added.into_iter().map(|(_, body)| body.len()).sum();
    match decision {
        Decision::Instead(body) => added.saturating_add(body.len()),
        _ => added,
    }
}
