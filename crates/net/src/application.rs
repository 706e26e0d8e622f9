//! What a server or client does with a connection.

use core::fmt;
use core::future::{Future, pending, ready};
use core::ops::ControlFlow;

use worldwire_core::Error;
use worldwire_core::connection::{CloseReason, Connection, EventOf};

/// Whether a connection goes on. `Break` writes what is queued and closes.
pub type Flow = ControlFlow<()>;

/// What a server or client does with one connection.
///
/// The driver calls one method at a time. While a method works, nothing is read from the peer; what
/// was queued before is still written. A method's future is dropped where it stands when the
/// connection is cut, so what must not stay half done belongs into a task of its own, or into
/// [`ended`](Self::ended).
pub trait Application<C: Connection + 'static>: Send {
    /// What other tasks tell this connection.
    type Notice: Send;

    /// Something happened on the connection. The sender queues answers.
    fn event(
        &mut self,
        event: EventOf<'_, C>,
        sender: &mut C::Sender,
    ) -> impl Future<Output = Flow> + Send;

    /// Waits for a notice, usually at a [`Mailbox`](crate::Mailbox). The future is dropped and made
    /// again whenever something else happens first, so it must not lose a notice then.
    fn notified(&mut self) -> impl Future<Output = Self::Notice> + Send {
        pending()
    }

    /// A notice came.
    fn notice(
        &mut self,
        notice: Self::Notice,
        sender: &mut C::Sender,
    ) -> impl Future<Output = Flow> + Send {
        let _ = (notice, sender);
        ready(Flow::Continue(()))
    }

    /// Whether there is more to send as soon as the queue is short: a download in progress.
    fn wants_room(&self) -> bool {
        false
    }

    /// The queue is shorter than [`Settings::low_water`](crate::Settings): send the next part of
    /// what is long. Called again and again while [`wants_room`](Self::wants_room) says so;
    /// between two calls, what the peer sends is read.
    fn room(&mut self, sender: &mut C::Sender) -> impl Future<Output = Flow> + Send {
        let _ = sender;
        ready(Flow::Continue(()))
    }

    /// The server stops, and this connection is about to be closed: the moment for a last message.
    fn stopping(&mut self, sender: &mut C::Sender) -> impl Future<Output = ()> + Send {
        let _ = sender;
        ready(())
    }

    /// What the connection is for and how far it has come: for the log, when the peer has broken a
    /// rule. Empty by default.
    fn state(&self) -> String {
        String::new()
    }

    /// The connection is over. Always called, once and last, also after a panic.
    fn ended(&mut self, end: &End) -> impl Future<Output = ()> + Send {
        let _ = end;
        ready(())
    }
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The machine closed it: the peer hung up, or was silent for too long.
    Closed(CloseReason),
    /// The network ended it, and not the peer by hanging up: the peer may come back.
    Lost,
    /// The peer broke a rule.
    Fault {
        /// Which one, and where.
        error: Box<Error>,
        /// What [`Application::state`] said then.
        state: String,
    },
    /// The application wanted no more.
    Application,
    /// The server stopped.
    Stopped,
    /// The server stopped, and the connection was not over in time.
    Cut,
    /// The peer took nothing of what it was sent for too long.
    Stalled,
    /// A panic in the machine or the application: a defect of ours. The text is the panic's.
    Panicked(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(reason) => reason.fmt(f),
            Self::Lost => f.write_str("lost"),
            Self::Fault { error, .. } => error.fmt(f),
            Self::Application => f.write_str("closed by the application"),
            Self::Stopped => f.write_str("closed because the server stops"),
            Self::Cut => f.write_str("cut because the server stops"),
            Self::Stalled => f.write_str("the peer reads nothing"),
            Self::Panicked(text) => write!(f, "a defect of worldwire: {text}"),
        }
    }
}
