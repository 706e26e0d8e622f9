//! Control of a running proxy by other tasks: its connections and its held messages.

use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{mpsc, oneshot};
use worldwire_core::Side;
use worldwire_core::connection::SendError;
use worldwire_core::json::Json;

use crate::command::Command;
use crate::exchange::Counts;
use crate::gate::Shared;
use crate::held::HeldMessage;

/// Controls a running proxy.
#[derive(Clone, Debug)]
pub struct Control(Arc<Shared>);

/// An open conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Its number.
    pub connection: u64,
    /// The client's address.
    pub client: SocketAddr,
    /// The server's address.
    pub server: SocketAddr,
    /// The time since it was opened.
    pub age: Duration,
    /// Its message counts.
    pub counts: Counts,
}

/// Counts of a proxy's conversations and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Conversations that are open.
    pub open: usize,
    /// Conversations so far.
    pub conversations: u64,
    /// The messages of all conversations.
    pub counts: Counts,
}

/// What happens to a held message.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// It is forwarded as the handlers left it.
    Send,
    /// It is dropped.
    Drop,
    /// It is forwarded with other fields, given as in a line of `dissect --json`.
    Edit(Json),
}

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The conversation has ended, or never existed.
    #[error("connection {0} is not open")]
    NotOpen(u64),
    /// The message is not held, or is no longer held.
    #[error("message {number} of connection {connection} is not held")]
    NotHeld {
        /// The conversation.
        connection: u64,
        /// The message's number.
        number: u64,
    },
    /// The message cannot be sent.
    #[error("{0}")]
    Send(SendError),
}

impl Control {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// The open conversations, oldest first.
    #[must_use]
    pub fn conversations(&self) -> Vec<Listing> {
        let now = self.0.clock.now();
        let conversations = self.0.conversations();
        let open = conversations.open.iter().map(|(connection, open)| Listing {
            connection: *connection,
            client: open.client,
            server: open.server,
            age: now.saturating_sub(open.since),
            counts: open.counts(),
        });
        open.collect()
    }

    /// The counts of the proxy's conversations and messages.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let conversations = self.0.conversations();
        let mut counts = conversations.past;
        conversations.open.values().for_each(|open| counts += open.counts());
        let opened = self.0.next.load(Ordering::Relaxed);
        Figures { open: conversations.open.len(), conversations: opened, counts }
    }

    /// The messages of a conversation that are held at breakpoints, and for how long.
    ///
    /// # Errors
    /// [`ControlError::NotOpen`].
    pub async fn held(
        &self,
        connection: u64,
    ) -> Result<Vec<(HeldMessage, Duration)>, ControlError> {
        let held = self.ask(connection, |outcome| Command::Held { outcome }).await?;
        let now = self.0.clock.now();
        Ok(held.into_iter().map(|held| (held.clone(), now.saturating_sub(held.since))).collect())
    }

    /// Decides what happens to a held message, by its number.
    ///
    /// # Errors
    /// [`ControlError::NotOpen`]; [`ControlError::NotHeld`]; [`ControlError::Send`] if the fields
    /// do not fit. The message then stays held.
    pub async fn decide(
        &self,
        connection: u64,
        number: u64,
        choice: Choice,
    ) -> Result<(), ControlError> {
        let decided =
            self.ask(connection, |outcome| Command::Decide { number, choice, outcome }).await?;
        decided.map_err(|error| match error {
            SendError::NotHeld => ControlError::NotHeld { connection, number },
            other => ControlError::Send(other),
        })
    }

    /// Sends an additional message to a side, given by its name and fields.
    ///
    /// # Errors
    /// [`ControlError::NotOpen`]; [`ControlError::Send`] if the message cannot be added.
    pub async fn add(
        &self,
        connection: u64,
        to: Side,
        name: String,
        fields: Json,
    ) -> Result<(), ControlError> {
        let added =
            self.ask(connection, |outcome| Command::Add { to, name, fields, outcome }).await?;
        added.map_err(ControlError::Send)
    }

    /// Encodes a message without sending it: a held one with other fields, given its number, or an
    /// additional one, given its sender, its name and its fields. Returns the message without its
    /// frame.
    ///
    /// # Errors
    /// [`ControlError::NotOpen`]; [`ControlError::NotHeld`]; [`ControlError::Send`] if the fields
    /// do not fit.
    pub async fn encode(
        &self,
        connection: u64,
        held: Option<u64>,
        from: Side,
        name: String,
        fields: Json,
    ) -> Result<Vec<u8>, ControlError> {
        let command = |outcome| Command::Encode { held, from, name, fields, outcome };
        let encoded = self.ask(connection, command).await?;
        encoded.map_err(|error| match (error, held) {
            (SendError::NotHeld, Some(number)) => ControlError::NotHeld { connection, number },
            (other, _) => ControlError::Send(other),
        })
    }

    /// Ends a conversation.
    ///
    /// # Errors
    /// [`ControlError::NotOpen`].
    pub async fn close(&self, connection: u64) -> Result<(), ControlError> {
        let closed = self.commands(connection)?.send(Command::Close).await;
        closed.map_err(|_| ControlError::NotOpen(connection))
    }

    async fn ask<T>(
        &self,
        connection: u64,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, ControlError> {
        let (outcome, answer) = oneshot::channel();
        let gone = || ControlError::NotOpen(connection);
        self.commands(connection)?.send(command(outcome)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }

    fn commands(&self, connection: u64) -> Result<mpsc::Sender<Command>, ControlError> {
        let conversations = self.0.conversations();
        let open = conversations.open.get(&connection).ok_or(ControlError::NotOpen(connection))?;
        Ok(open.commands.clone())
    }
}
