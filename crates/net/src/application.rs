//! Applications, which use connections.

use core::fmt;
use core::future::{Future, pending, ready};
use core::ops::ControlFlow;

use worldwire_core::Error;
use worldwire_core::connection::{CloseReason, Connection, EventOf};

/// Whether a connection continues. `Break` sends queued data and closes.
pub type Flow = ControlFlow<()>;

/// What a server or client does with one connection.
///
/// The driver calls one method at a time. Meanwhile it reads nothing from the peer, but still
/// writes queued data. Cutting a connection drops the running method's future, so work that must
/// complete belongs in a separate task or in [`ended`](Self::ended).
pub trait Application<C: Connection + 'static>: Send {
    /// A notice from another task to this connection.
    type Notice: Send;

    /// Handles an event. The sender queues answers.
    fn event(
        &mut self,
        event: EventOf<'_, C>,
        sender: &mut C::Sender,
    ) -> impl Future<Output = Flow> + Send;

    /// Waits for a notice, usually from a [`Mailbox`](crate::Mailbox). The future is dropped and
    /// created again whenever something else happens first, so it must not lose notices.
    fn notified(&mut self) -> impl Future<Output = Self::Notice> + Send {
        pending()
    }

    /// Handles a notice.
    fn notice(
        &mut self,
        notice: Self::Notice,
        sender: &mut C::Sender,
    ) -> impl Future<Output = Flow> + Send {
        let _ = (notice, sender);
        ready(Flow::Continue(()))
    }

    /// Whether more data waits until the queue is short, as during a download.
    fn wants_room(&self) -> bool {
        false
    }

    /// Sends the next part of a long transfer, since the queue is below
    /// [`Settings::low_water`](crate::Settings). Called repeatedly while
    /// [`wants_room`](Self::wants_room) is true; input is read between calls.
    fn room(&mut self, sender: &mut C::Sender) -> impl Future<Output = Flow> + Send {
        let _ = sender;
        ready(Flow::Continue(()))
    }

    /// Sends a last message, because the server is stopping and will close this connection.
    fn stopping(&mut self, sender: &mut C::Sender) -> impl Future<Output = ()> + Send {
        let _ = sender;
        ready(())
    }

    /// Describes the connection's purpose and progress, for the log entry about a fault. Empty by
    /// default.
    fn state(&self) -> String {
        String::new()
    }

    /// The connection has ended. Always the last call, made exactly once, even after a panic.
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
    /// The network failed, without the peer hanging up. The peer may reconnect.
    Lost,
    /// The peer violated the protocol.
    Fault {
        /// The violated rule, and the position.
        error: Box<Error>,
        /// The result of [`Application::state`].
        state: String,
    },
    /// The application closed it.
    Application,
    /// The server stopped.
    Stopped,
    /// The server stopped, and the connection did not end in time.
    Cut,
    /// The peer read nothing for too long.
    Stalled,
    /// After a peer ended its stream, a relay held the peer's data for too long.
    Abandoned,
    /// The connection machine or the application panicked, with this message. A worldwire defect.
    Panicked(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(reason) => reason.fmt(f),
            Self::Lost => f.write_str("lost"),
            Self::Fault { error, .. } => error.fmt(f),
            Self::Application => f.write_str("closed by the application"),
            Self::Stopped => f.write_str("closed because the server is stopping"),
            Self::Cut => f.write_str("cut because the server is stopping"),
            Self::Stalled => f.write_str("the peer stopped reading"),
            Self::Abandoned => f.write_str("a peer left while its messages were held"),
            Self::Panicked(text) => write!(f, "a defect in worldwire: {text}"),
        }
    }
}
