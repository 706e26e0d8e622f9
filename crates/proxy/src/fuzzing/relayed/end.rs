//! The ends of a conversation.

use core::fmt;
use core::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{CloseReason, Connection, Event, EventOf, Input, SendError};

/// An event at an end that a model needs to know about.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// A message arrived.
    Message(Vec<u8>),
    /// A message that this end sent was acknowledged.
    Acknowledged(Vec<u8>),
    /// The connection has ended.
    Closed(CloseReason),
}

/// A client or a server.
pub trait End {
    /// Handles what the other side sent.
    fn input(&mut self, now: Duration, input: Input<'_>);

    /// Advances time.
    fn timeout(&mut self, now: Duration);

    /// The time by which to call [`timeout`](Self::timeout).
    fn poll_timeout(&self) -> Option<Duration>;

    /// What has happened since the last call.
    fn poll(&mut self) -> Vec<Heard>;

    /// What the end sends now: writes, or datagrams.
    fn transmit(&mut self) -> Vec<Vec<u8>>;

    /// Sends a message.
    ///
    /// # Errors
    /// Those of the connection.
    fn say(&mut self, body: &[u8]) -> Result<(), SendError>;

    /// Ends the connection.
    fn close(&mut self);

    /// Whether messages can be sent.
    fn is_established(&self) -> bool;

    /// Whether the connection has ended.
    fn is_closed(&self) -> bool;
}

/// Changes bytes in transit between a connection and its network, such as a cipher that the
/// connection itself does not have.
pub(super) trait Wrapping: fmt::Debug {
    /// Returns the writes to send instead of these.
    fn leave(&mut self, writes: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        writes
    }

    /// Returns the bytes that the connection receives instead of these.
    fn arrive(&mut self, bytes: &[u8]) -> Vec<u8> {
        bytes.to_vec()
    }
}

/// Changes nothing.
#[derive(Debug)]
pub(super) struct Bare;

impl Wrapping for Bare {}

/// The parts of an end that depend on its family.
pub(super) trait Speaker: fmt::Debug {
    /// The family's connection.
    type Connection: Connection;

    /// Sends a message.
    ///
    /// # Errors
    /// Those of the connection.
    fn say(&mut self, connection: &mut Self::Connection, body: &[u8]) -> Result<(), SendError>;

    /// What a model needs to know about an event other than a fault or the end.
    fn hear(&mut self, event: EventOf<'_, Self::Connection>) -> Option<Heard>;

    /// When the end next sends something on its own.
    fn due(&self) -> Option<Duration> {
        None
    }

    /// Sends what is due.
    fn send_due(&mut self, now: Duration, connection: &mut Self::Connection) {
        let _ = (now, connection);
    }

    /// Reacts to received events.
    fn after(&mut self, connection: &mut Self::Connection, heard: &[Heard]) {
        let _ = (connection, heard);
    }
}

/// A connection as an end.
#[derive(Debug)]
pub(super) struct Machine<S: Speaker> {
    /// The side that it represents.
    pub side: Side,
    /// The connection.
    pub connection: S::Connection,
    /// What is specific to its family.
    pub speaker: S,
    /// The layer between it and the network.
    pub wrapping: Box<dyn Wrapping>,
}

impl<S: Speaker> End for Machine<S> {
    fn input(&mut self, now: Duration, input: Input<'_>) {
        let from = self.side.other();
        match input {
            Input::Bytes(bytes) => {
                let bytes = self.wrapping.arrive(bytes);
                self.connection.input(now, from, Input::Bytes(&bytes));
            }
            other => self.connection.input(now, from, other),
        }
    }

    fn timeout(&mut self, now: Duration) {
        self.connection.timeout(now);
        if self.speaker.due().is_some_and(|at| at <= now) && !self.connection.is_closed() {
            self.speaker.send_due(now, &mut self.connection);
        }
    }

    fn poll_timeout(&self) -> Option<Duration> {
        let own = self.speaker.due().filter(|_| !self.connection.is_closed());
        self.connection.poll_timeout().into_iter().chain(own).min()
    }

    fn poll(&mut self) -> Vec<Heard> {
        let mut all = Vec::new();
        while let Some((event, _)) = self.connection.poll() {
            match event {
                Event::Fault { error, .. } => panic!("the {}: {error}", self.side),
                Event::Closed(reason) => all.push(Heard::Closed(reason)),
                event => all.extend(self.speaker.hear(event)),
            }
        }
        self.speaker.after(&mut self.connection, &all);
        all
    }

    fn transmit(&mut self) -> Vec<Vec<u8>> {
        let to = self.side.other();
        let writes = core::iter::from_fn(|| self.connection.poll_transmit(to)).collect();
        self.wrapping.leave(writes)
    }

    fn say(&mut self, body: &[u8]) -> Result<(), SendError> {
        self.speaker.say(&mut self.connection, body)
    }

    fn close(&mut self) {
        self.connection.close();
    }

    fn is_established(&self) -> bool {
        self.connection.is_established()
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }
}
