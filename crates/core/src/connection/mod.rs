//! The contract that every connection machine fulfils, and the parts the machines share.
//!
//! A connection is a state machine without IO. Bytes, time and random numbers come in as arguments;
//! events, bytes to send and deadlines come out. The same machine plays a client or a server, reads
//! a capture, stands between two peers, and runs in tests in virtual time.
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
//! * **commands**: [`send`](Connection::send), [`close`](Connection::close), and what a family
//!   adds;
//! * **outputs**: [`poll`](Connection::poll) and [`poll_transmit`](Connection::poll_transmit) until
//!   both return `None`, then [`poll_timeout`](Connection::poll_timeout), after every input and
//!   command;
//! * **getters**: the rest.
//!
//! Time is a [`Duration`] since a moment of the driver's choice. It must not run backwards.
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
//! Every [`Event::Received`] of a relay asks for a decision: [`Forward::forward`] takes it at once,
//! [`Forward::hold`] puts it off for as long as a user looks at the piece or a program works on it.
//!
//! * A held piece keeps back everything that its side sent later. Those pieces are still reported,
//!   and can be decided about and held in turn; they leave in their order when the pieces before
//!   them are [released](Forward::release). Pieces may be released in any order.
//! * The other direction and all timers continue. Where a family has keep-alives that a relay can
//!   recognise, they overtake held pieces; each machine's documentation says which. Peers without
//!   such keep-alives may give up while a piece is held for long.
//! * [`Inject`]ed messages are sent before held pieces.
//! * Each direction keeps up to the relay's [`Bounds`], and one piece or frame more. It then
//!   [pauses](Connection::is_paused): the relay reads no more of that stream, so `poll` reports no
//!   more of its pieces. The same happens when the queue to the other side has no room. A driver
//!   stops reading from that socket; one that reads on meets the limit "bytes behind a full
//!   queue", which closes the connection. A piece that has no room even in an empty queue closes
//!   the connection too, with the limit that it exceeds.
//! * [`Input::End`] leaves held pieces alone: they can still be released, and the relay closes
//!   once both streams have ended and nothing is [kept](Connection::kept_bytes). A driver passes
//!   the end of a stream on when nothing of that side is kept or queued.
//! * After a fault in a stream, the rest of it is forwarded unread, after the held pieces.
//! * Closing drops what is kept, and so do a fault that closes and a time-out. A driver whose peer
//!   is gone (a reset) closes. Releasing a piece then fails.
//!
//! Each side ends on its own: an [`Input::End`] leaves the other direction open.

mod budget;
mod forwarding;
mod incoming;
mod lane;
mod outgoing;
mod relay;
mod search;
mod send_error;
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
pub use timers::{Timer, Timers};

/// What reaches a connection from one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'b> {
    /// The next bytes of a stream. Clients and servers accept any cut; an observer expects one
    /// segment a call, since messages tend to begin with one.
    Bytes(&'b [u8]),
    /// A datagram, for families that speak UDP.
    Datagram(&'b [u8]),
    /// This many bytes of the stream are missing. Only an observer survives that.
    Gap(u64),
    /// The side sends nothing more: its stream has ended, or the network is gone.
    End,
}

/// What happened on a connection, in the order in which it happened.
///
/// `R` is the family's [`Piece`], `N` what only this family reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<R, N> {
    /// A piece is complete: a message, or a part of connection setup.
    Received(R),
    /// Something that only this family knows: a session was established, a key is missing.
    News(N),
    /// Bytes of a stream are missing (observers).
    Gap {
        /// Whose stream.
        side: Side,
        /// Which bytes, counted from the start of the stream.
        range: Range<u64>,
    },
    /// Reading goes on behind bytes that could not be read (observers).
    Resync {
        /// Whose stream.
        side: Side,
        /// The bytes passed over: the gap, and torn messages around it.
        skipped: Range<u64>,
    },
    /// Something cannot be read. A client or server closes the connection. An observer passes over
    /// it or gives the stream up. A relay forwards the rest of the stream as it is.
    Fault {
        /// Whose stream.
        side: Side,
        /// What is wrong, with the offset in that stream.
        error: Error,
    },
    /// The connection is over. Always the last event.
    Closed(CloseReason),
}

impl<R, N> Event<R, N> {
    /// The same event with another form of its piece: a queue keeps where a piece stands, and the
    /// event that is reported borrows it.
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

/// The event that a connection emits.
pub type EventOf<'c, C> = Event<<C as Connection>::Received<'c>, <C as Connection>::News>;

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it.
    Local,
    /// The other side, or the network, ended it.
    Remote,
    /// The other side broke the rules; an [`Event::Fault`] came before.
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
/// The pieces of a stream tile it: none overlaps another, and nothing lies between two of them but
/// what [`Event::Gap`], [`Event::Resync`] and [`Event::Fault`] report.
pub trait Piece<'c> {
    /// Who sent it.
    fn side(&self) -> Side;

    /// Its bytes, decrypted.
    fn bytes(&self) -> &'c [u8];

    /// The bytes of its side's stream that it takes up.
    fn range(&self) -> Range<u64>;

    /// Whether it is a message. What is not belongs to connection setup or upkeep.
    fn is_message(&self) -> bool;
}

/// A connection as a state machine; the [module](self) says how to drive it.
pub trait Connection {
    /// What only this family reports.
    type News: fmt::Debug;

    /// A piece of a stream.
    type Received<'c>: Piece<'c> + fmt::Debug
    where
        Self: 'c;

    /// The half that sends.
    type Sender: Sender;

    /// Input: something came from a side. Inputs to a closed connection are ignored.
    fn input(&mut self, now: Duration, from: Side, input: Input<'_>);

    /// Input: time has passed; see [`poll_timeout`](Self::poll_timeout). Too early does no harm.
    fn timeout(&mut self, now: Duration);

    /// Output: what happened next, and the half of the connection that can answer it. The event
    /// borrows the connection's buffers until the next call.
    fn poll(&mut self) -> Option<(EventOf<'_, Self>, &mut Self::Sender)>;

    /// Output: what happened next, for callers that do not answer.
    fn poll_event(&mut self) -> Option<EventOf<'_, Self>> {
        self.poll().map(|(event, _)| event)
    }

    /// Output: the next bytes for a side, to be written in one call; over UDP, one datagram.
    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>>;

    /// Output: when to call [`timeout`](Self::timeout) at the latest.
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

    /// Whether setup is complete: messages may be sent, or, in an observer or relay, can be read.
    fn is_established(&self) -> bool;

    /// Whether the connection is over.
    fn is_closed(&self) -> bool;

    /// How many bytes are queued for a side: what backpressure goes by.
    fn queued_bytes(&self, to: Side) -> usize;

    /// Whether a relay reads no more of a side's stream for now, because pieces are held or the
    /// other side does not read. False in other roles.
    fn is_paused(&self, from: Side) -> bool {
        let _ = from;
        false
    }

    /// How many bytes of a side's pieces a relay keeps: held, behind held ones, or without room in
    /// the queue to the other side. 0 in other roles.
    fn kept_bytes(&self, from: Side) -> usize {
        let _ = from;
        0
    }
}

/// The half of a connection that sends.
pub trait Sender {
    /// What it sends.
    type Message<'m>: ?Sized;

    /// Queues a message. Before setup is complete it waits.
    ///
    /// # Errors
    /// [`Encode`](SendError::Encode), for a message that cannot be encoded or that this side does
    /// not send; [`Role`](SendError::Role), for a role that sends no messages of its own;
    /// [`Closed`](SendError::Closed); [`QueueFull`](SendError::QueueFull): close the connection
    /// then, since its peer does not read.
    fn send(&mut self, message: &Self::Message<'_>) -> Result<(), SendError>;

    /// Ends the connection. What is queued can still be transmitted.
    fn close(&mut self);
}

/// How and when a connection ended, and whether that was reported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Closing {
    reason: Option<CloseReason>,
    is_reported: bool,
}

impl Closing {
    /// Ends the connection. The first reason counts.
    pub fn close(&mut self, reason: CloseReason) {
        self.reason.get_or_insert(reason);
    }

    /// Whether the connection is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.reason.is_some()
    }

    /// The reason, once: what [`Event::Closed`] says when no other event is left.
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
    fn only_a_piece_changes_its_form() {
        let received: Event<u8, ()> = Event::Received(7);
        assert_eq!(received.map(|piece| piece + 1), Event::Received(8));
        let gap: Event<u8, ()> = Event::Gap { side: Side::Client, range: 1..2 };
        let same = gap.clone().map(|piece| piece + 1);
        assert_eq!(same, gap);
    }

    #[test]
    fn the_first_reason_to_close_counts_and_is_reported_once() {
        let mut closing = Closing::default();
        assert!(closing.check_open().is_ok() && closing.report().is_none());
        closing.close(CloseReason::Timeout(Timer::Idle));
        closing.close(CloseReason::Local);
        assert!(closing.is_closed() && closing.check_open().is_err());
        assert_eq!(closing.report(), Some(CloseReason::Timeout(Timer::Idle)));
        assert_eq!(closing.report(), None);
    }
}
