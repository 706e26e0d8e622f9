//! Commands to a conversation from other tasks.

use tokio::sync::oneshot;
use worldwire_core::Side;
use worldwire_core::connection::SendError;
use worldwire_dissect::Decision;

use crate::exchange::Exchange;

/// A command, with the way back for its outcome.
#[derive(Debug)]
pub(crate) enum Command {
    /// Decides about a message held at a breakpoint, by its number.
    Decide {
        number: u64,
        decision: Decision<'static>,
        outcome: oneshot::Sender<Result<(), SendError>>,
    },
    /// Sends an additional message to a side.
    Add { to: Side, body: Vec<u8>, outcome: oneshot::Sender<Result<(), SendError>> },
    /// Ends the conversation.
    Close,
}

impl Command {
    /// Carries it out. Whoever gave it may be gone.
    pub(crate) fn carry_out(self, exchange: &mut Exchange) {
        match self {
            Self::Decide { number, decision, outcome } => {
                let _ = outcome.send(exchange.decide(number, decision));
            }
            Self::Add { to, body, outcome } => {
                let _ = outcome.send(exchange.add(to, &body));
            }
            Self::Close => exchange.close(),
        }
    }
}
