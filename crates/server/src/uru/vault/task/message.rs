//! Messages that the vault's handles send to its task.

use tokio::sync::{mpsc, oneshot};
use worldwire_uru::types::NetError;

use crate::uru::vault::session::{ConnectionId, Notice, Outcome, Stop};
use crate::uru::vault::steps::VaultState;

/// A message to the task.
pub(crate) enum Message {
    Call(Box<dyn Request>),
    Connect { arrival: Arrival, reply: oneshot::Sender<()> },
    Close(oneshot::Sender<()>),
}

/// A new session, and the queue for its notices.
pub(crate) struct Arrival {
    pub(crate) id: ConnectionId,
    pub(crate) queue: mpsc::Sender<Notice>,
}

/// A request whose result type is hidden.
pub(crate) trait Request: Send {
    /// The node whose content it needs.
    fn needs(&self) -> Option<u32>;
    /// The session that makes it.
    fn connection(&self) -> Option<ConnectionId>;
    /// Runs the request. If contents are missing, fails with those that it needs.
    fn run(&mut self, state: &mut VaultState) -> Result<(), Vec<u32>>;
    /// Replaces the request's result with an error.
    fn refuse(&mut self, error: NetError);
    /// Delivers the result, with the number of notices that were sent to the session before it.
    fn answer(self: Box<Self>, sent: u64);
}

/// A request and its result.
pub(crate) struct Call<F, T> {
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) needs: Option<u32>,
    pub(crate) request: F,
    pub(crate) outcome: Option<Result<T, NetError>>,
    pub(crate) reply: oneshot::Sender<Result<(T, u64), NetError>>,
}

impl<F, T> Request for Call<F, T>
where
    F: FnMut(&mut VaultState) -> Outcome<T> + Send,
    T: Send,
{
    fn needs(&self) -> Option<u32> {
        self.needs
    }

    fn connection(&self) -> Option<ConnectionId> {
        self.connection
    }

    fn run(&mut self, state: &mut VaultState) -> Result<(), Vec<u32>> {
        self.outcome = Some(match state.run(&mut self.request) {
            Ok(result) => Ok(result),
            Err(Stop::Refused(error)) => Err(error),
            Err(Stop::Need(ids)) => return Err(ids),
        });
        Ok(())
    }

    fn refuse(&mut self, error: NetError) {
        self.outcome = Some(Err(error));
    }

    fn answer(self: Box<Self>, sent: u64) {
        let outcome = self.outcome.unwrap_or(Err(NetError::InternalError));
        // The caller may have stopped waiting.
        let _ = self.reply.send(outcome.map(|result| (result, sent)));
    }
}
