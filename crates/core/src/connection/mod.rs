//! The contract of all connection machines, and the parts they share.
//!
//! A connection is a state machine without I/O. Bytes, time and random numbers are arguments;
//! events, bytes to send and deadlines are results. The same machine acts as a client or a server,
//! reads a capture, relays between two peers, and runs in tests in virtual time.
//!
//! # The four roles
//!
//! | role | receives from | sends to | |
//! | --- | --- | --- | --- |
//! | client | the server | the server | |
//! | server | the client | the client | |
//! | observer | both | nobody | survives lost bytes |
//! | relay | both | both | forwards each piece unchanged, changed or not at all: see [`Forward`] |
//!
//! # The four kinds of methods
//!
//! * **inputs**: [`input`](Connection::input), [`timeout`](Connection::timeout);
//! * **commands**: [`send`](Connection::send), [`close`](Connection::close), and the family's own;
//! * **outputs**: [`poll`](Connection::poll) and [`poll_transmit`](Connection::poll_transmit) until
//!   both return `None`, then [`poll_timeout`](Connection::poll_timeout), after every input and
//!   command;
//! * **getters**: the rest.
//!
//! Time is a [`Duration`] since an origin that the driver chooses. It must not run backwards.
//!
//! # Answering while reading
//!
//! An event borrows the connection's buffers, so a second borrow could not send.
//! [`poll`](Connection::poll) therefore returns the event together with the connection's
//! [`Sender`]:
//!
//! ```
//! use worldwire_core::connection::{Connection, Event, Sender};
//!
//! fn serve<C: Connection>(connection: &mut C, answer: &<C::Sender as Sender>::Message<'_>) {
//!     while let Some((event, sender)) = connection.poll() {
//!         if let Event::Received(_) = event {
//!             // The limit on queued bytes: the peer does not read.
//!             if sender.send(answer).is_err() {
//!                 sender.close();
//!             }
//!         }
//!     }
//! }
//! ```
//!
//! # Relays
//!
//! A relay can decide on every [`Event::Received`]: [`Forward::forward`] decides immediately,
//! [`Forward::hold`] defers the decision for as long as a user or a program needs.
//!
//! * A held piece delays everything that its side sent later. Later pieces are still reported and
//!   can be decided on or held too. They leave in order when the pieces before them are
//!   [released](Forward::release). Pieces may be released in any order.
//! * The other direction and all timers continue. Where a relay can recognise the family's
//!   keep-alives, they overtake held pieces; each machine documents which. Peers without such
//!   keep-alives may give up if a piece is held for a long time.
//! * [`Inject`]ed messages are sent before held pieces.
//! * Each direction keeps up to the relay's [`Bounds`] plus one piece or frame. It then
//!   [pauses](Connection::is_paused): the relay reads no more of that stream, so `poll` reports no
//!   more of its pieces. The same happens when the queue to the other side has no room. The driver
//!   should then stop reading from that socket; otherwise the limit on unread bytes closes the
//!   connection. A piece that does not fit into an empty queue also closes the connection, with the
//!   limit that it exceeds.
//! * After [`Input::End`], held pieces can still be released. The relay closes once both streams
//!   have ended and nothing is [kept](Connection::kept_bytes). A driver forwards the end of a
//!   stream when nothing from that side is kept or queued.
//! * After a fault in a stream, the rest of it is forwarded unread, after the held pieces.
//! * Closing, a closing fault and a time-out drop everything that is kept. Releasing a piece then
//!   fails. When a peer resets its connection, the driver closes the relay.
//!
//! Each side ends separately: an [`Input::End`] leaves the other direction open.

mod budget;
mod forwarding;
mod incoming;
mod lane;
mod outgoing;
mod relay;
mod search;
mod send_error;
mod send_half;
mod stream_machine;
mod timers;

use core::fmt;
use core::ops::Range;
use std::time::Duration;

use crate::{Error, Side};

pub use budget::SkipBudget;
pub use forwarding::{Forwarding, Leaving};
pub use incoming::{Incoming, Located};
pub use lane::{Lane, StreamCipher};
pub use outgoing::{Bounds, Outgoing};
pub use relay::{Decision, Forward, HoldId, Inject};
pub use search::{Probe, Search, evidence};
pub use send_error::SendError;
pub use send_half::{HalfSender, Role, SendHalf};
pub use stream_machine::{Parts, PieceOf, ReadStream, StreamMachine, Unread, read_up};
pub use timers::{Timer, Timers};

/// An input to a connection from one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'b> {
    /// The next bytes of a stream. Clients and servers accept chunks of any size. An observer
    /// expects one segment per call, because messages usually begin with one.
    Bytes(&'b [u8]),
    /// A datagram, for families that use UDP.
    Datagram(&'b [u8]),
    /// This many bytes of the stream are missing. Only an observer can continue.
    Gap(u64),
    /// The side will send nothing more: its stream has ended, or the network is gone.
    End,
}

/// An event on a connection. Events are reported in the order in which they happen.
///
/// `R` is the family's [`Piece`], `N` its own kind of event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<R, N> {
    /// A piece is complete: a message, or a part of connection setup.
    Received(R),
    /// An event that only this family has: for example a session was established, or a key is
    /// missing.
    News(N),
    /// Bytes of a stream are missing (observers).
    Gap {
        /// The side whose stream it is.
        side: Side,
        /// The missing bytes, counted from the start of the stream.
        range: Range<u64>,
    },
    /// Reading resumes after bytes that could not be read (observers).
    Resync {
        /// The side whose stream it is.
        side: Side,
        /// The bytes skipped: the gap, and torn messages around it.
        skipped: Range<u64>,
    },
    /// Something cannot be read. A client or server closes the connection. An observer skips it or
    /// gives up the stream. A relay forwards the rest of the stream unchanged.
    Fault {
        /// The side whose stream it is.
        side: Side,
        /// What is wrong, with the offset in that stream.
        error: Error,
    },
    /// The connection has ended. Always the last event.
    Closed(CloseReason),
}

impl<R, N> Event<R, N> {
    /// Converts the piece: a queue keeps a piece's position, while the reported event borrows its
    /// bytes.
    #[inline]
    pub fn map<S>(self, piece: impl FnOnce(R) -> S) -> Event<S, N> {
        match self {
            Self::Received(received) => Event::Received(piece(received)),
            Self::News(news) => Event::News(news),
            Self::Gap { side, range } => Event::Gap { side, range },
            Self::Resync { side, skipped } => Event::Resync { side, skipped },
            Self::Fault { side, error } => Event::Fault { side, error },
            Self::Closed(reason) => Event::Closed(reason),
        }
    }
}

/// The maximum number of unread bytes in a [copy](Connection::fork) of an observer.
pub const MAX_FORKED_BYTES: usize = 64 << 10;

/// The event that a connection emits.
pub type EventOf<'c, C> = Event<<C as Connection>::Received<'c>, <C as Connection>::News>;

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it.
    Local,
    /// The other side, or the network, ended it.
    Remote,
    /// The other side violated the protocol; an [`Event::Fault`] preceded it.
    Fault,
    /// Something did not happen in time.
    Timeout(Timer),
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "closed by this side",
            Self::Remote => "closed by the other side",
            Self::Fault => "closed because of a fault",
            Self::Timeout(timer) => timer.expired(),
        })
    }
}

/// A complete part of one side's stream: a message, or a step of connection setup.
///
/// The pieces of a stream tile it: they do not overlap, and everything between them is reported by
/// [`Event::Gap`], [`Event::Resync`] or [`Event::Fault`].
pub trait Piece<'c> {
    /// The side that sent it.
    fn side(&self) -> Side;

    /// Its bytes, decrypted.
    fn bytes(&self) -> &'c [u8];

    /// Its byte range in its side's stream.
    fn range(&self) -> Range<u64>;

    /// Whether it is a message, as opposed to a part of connection setup or upkeep.
    fn is_message(&self) -> bool;
}

/// A connection as a state machine. The [module](self) describes how to drive it.
pub trait Connection {
    /// Events that only this family has.
    type News: fmt::Debug;

    /// A piece of a stream.
    type Received<'c>: Piece<'c> + fmt::Debug
    where
        Self: 'c;

    /// The half of the connection that sends.
    type Sender: Sender;

    /// Input from a side. A closed connection ignores inputs.
    fn input(&mut self, now: Duration, from: Side, input: Input<'_>);

    /// Input: time has passed; see [`poll_timeout`](Self::poll_timeout). An early call does no
    /// harm.
    fn timeout(&mut self, now: Duration);

    /// Output: the next event, and the half of the connection that can answer it. The event borrows
    /// the connection's buffers until the next call.
    fn poll(&mut self) -> Option<(EventOf<'_, Self>, &mut Self::Sender)>;

    /// Output: the next event, for callers that do not answer.
    fn poll_event(&mut self) -> Option<EventOf<'_, Self>> {
        self.poll().map(|(event, _)| event)
    }

    /// Output: the next bytes for a side, to be written in one call; over UDP, one datagram.
    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>>;

    /// Output: the time by which to call [`timeout`](Self::timeout).
    fn poll_timeout(&self) -> Option<Duration>;

    /// The half that sends.
    fn sender(&mut self) -> &mut Self::Sender;

    /// Command: sends a message; see [`Sender::send`].
    fn send(&mut self, message: &<Self::Sender as Sender>::Message<'_>) -> Result<(), SendError> {
        self.sender().send(message)
    }

    /// Command: ends the connection; see [`Sender::close`].
    fn close(&mut self) {
        self.sender().close();
    }

    /// Copies an observer between two inputs so that the rest of the conversation can be read again
    /// from here. Returns the copy and its approximate size in bytes. `None` in other roles, in
    /// families that cannot be copied, while there are events to poll, and while more than
    /// [`MAX_FORKED_BYTES`] wait for the rest of their message.
    fn fork(&self) -> Option<(Self, usize)>
    where
        Self: Sized,
    {
        None
    }

    /// Whether setup is complete, so that messages can be sent or, by an observer or relay, read.
    fn is_established(&self) -> bool;

    /// Whether the connection has ended.
    fn is_closed(&self) -> bool;

    /// The number of bytes queued for a side, for backpressure.
    fn queued_bytes(&self, to: Side) -> usize;

    /// Whether a relay has stopped reading a side's stream for now, because pieces are held or the
    /// other side does not read. False in other roles.
    fn is_paused(&self, from: Side) -> bool {
        let _ = from;
        false
    }

    /// The number of bytes of a side's pieces that a relay keeps: held, waiting for held pieces, or
    /// waiting for room in the queue to the other side. 0 in other roles.
    fn kept_bytes(&self, from: Side) -> usize {
        let _ = from;
        0
    }
}

/// The half of a connection that sends.
pub trait Sender {
    /// The messages it sends.
    type Message<'m>: ?Sized;

    /// Queues a message. Messages queued before setup is complete are sent afterwards.
    ///
    /// # Errors
    /// [`Encode`](SendError::Encode) for a message that cannot be encoded or that this side does
    /// not send; [`Role`](SendError::Role) for a role that cannot send messages;
    /// [`Closed`](SendError::Closed); [`QueueFull`](SendError::QueueFull) if the peer does not
    /// read, in which case close the connection.
    fn send(&mut self, message: &Self::Message<'_>) -> Result<(), SendError>;

    /// Ends the connection. Queued bytes can still be transmitted.
    fn close(&mut self);
}

/// Why a connection ended, and whether that was reported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Closing {
    reason: Option<CloseReason>,
    is_reported: bool,
}

impl Closing {
    /// Ends the connection. Only the first reason is kept.
    pub fn close(&mut self, reason: CloseReason) {
        self.reason.get_or_insert(reason);
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.reason.is_some()
    }

    /// Returns the reason once, for [`Event::Closed`] when no other event is left.
    pub fn report(&mut self) -> Option<CloseReason> {
        let reason = self.reason?;
        (!core::mem::replace(&mut self.is_reported, true)).then_some(reason)
    }

    /// The error for a command on a closed connection.
    ///
    /// # Errors
    /// [`SendError::Closed`].
    pub fn check_open(&self) -> Result<(), SendError> {
        match self.reason {
            None => Ok(()),
            Some(_) => Err(SendError::Closed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_converts_only_pieces() {
        let received: Event<u8, ()> = Event::Received(7);
        assert_eq!(received.map(|piece| piece + 1), Event::Received(8));
        let gap: Event<u8, ()> = Event::Gap { side: Side::Client, range: 1..2 };
        let same = gap.clone().map(|piece| piece + 1);
        assert_eq!(same, gap);
    }

    #[test]
    fn the_first_close_reason_is_reported_once() {
        let mut closing = Closing::default();
        assert!(closing.check_open().is_ok() && closing.report().is_none());
        closing.close(CloseReason::Timeout(Timer::Idle));
        closing.close(CloseReason::Local);
        assert!(closing.is_closed() && closing.check_open().is_err());
        assert_eq!(closing.report(), Some(CloseReason::Timeout(Timer::Idle)));
        assert_eq!(closing.report(), None);
    }
}
