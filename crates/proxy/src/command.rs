//! Commands to a conversation from other tasks.

use tokio::sync::oneshot;
use worldwire_core::Side;
use worldwire_core::connection::SendError;
use worldwire_core::json::Json;
use worldwire_dissect::Decision;

use crate::control::Choice;
use crate::exchange::Exchange;
use crate::held::HeldMessage;

/// A command, with the channel for its outcome.
#[derive(Debug)]
pub(crate) enum Command {
    /// Lists the messages held at breakpoints.
    Held { outcome: oneshot::Sender<Vec<HeldMessage>> },
    /// Decides what happens to a message held at a breakpoint, by its number.
    Decide { number: u64, choice: Choice, outcome: oneshot::Sender<Result<(), SendError>> },
    /// Encodes a message without sending it: a held one by number, or one of this sender and name.
    Encode {
        held: Option<u64>,
        from: Side,
        name: String,
        fields: Json,
        outcome: oneshot::Sender<Result<Vec<u8>, SendError>>,
    },
    /// Sends an additional message to a side.
    Add { to: Side, name: String, fields: Json, outcome: oneshot::Sender<Result<(), SendError>> },
    /// Ends the conversation.
    Close,
}

impl Command {
    /// Carries out the command. The task that sent it may already have ended.
    pub(crate) fn carry_out(self, exchange: &mut Exchange) {
        match self {
            Self::Held { outcome } => drop(outcome.send(exchange.held())),
            Self::Decide { number, choice, outcome } => {
                let _ = outcome.send(match choice {
                    Choice::Send => exchange.decide(number, Decision::AsIs),
                    Choice::Drop => exchange.decide(number, Decision::Drop),
                    Choice::Edit(fields) => exchange.edit(number, fields),
                });
            }
            Self::Encode { held, from, name, fields, outcome } => {
                let _ = outcome.send(exchange.encode(held, from, &name, fields));
            }
            Self::Add { to, name, fields, outcome } => {
                let _ = outcome.send(exchange.add_named(to, &name, fields));
            }
            Self::Close => exchange.close(),
        }
    }
}
