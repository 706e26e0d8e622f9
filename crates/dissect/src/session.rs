//! Conversations that are being read or relayed, whatever their family.

use core::fmt;
use core::ops::Range;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{
    Connection, Decision, Event, Forward, Inject, Input, Piece, SendError, Sender,
};

use crate::item::{Item, ItemBody, Message, Note, Stamp};
use crate::knowledge::{Fact, Facts};

/// A conversation that is being read.
///
/// It knows nothing of captures: segments of a capture, what a proxy sees, and what a server logs
/// go in alike, and items come out.
pub trait Session: fmt::Debug + Send {
    /// Takes in what a side sent, and hands out what became of it. Of a stream a call should be
    /// one segment, since messages tend to begin with one.
    fn input(&mut self, stamp: Stamp, from: Side, input: Input<'_>, out: &mut dyn FnMut(Item<'_>));

    /// What other conversations should know, since the last call; see [`Facts`].
    fn facts(&mut self) -> Vec<Fact> {
        Vec::new()
    }

    /// Whether it keeps something that it can only read once it learns a fact. Asked for behind
    /// every input; only who waits learns.
    fn waits(&self) -> bool {
        false
    }

    /// The keys that this conversation was read with, as a part of a key file that opens it without
    /// the secrets of servers and accounts; `None` where there are none.
    fn secrets(&self) -> Option<String> {
        None
    }

    /// Learns what is known so far, and hands out what could not be read before. It need not be
    /// what the session waits for.
    fn learn(&mut self, facts: &Facts, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        let _ = (facts, stamp, out);
    }
}

/// A conversation that is being relayed: read, and forwarded unchanged, changed or not at all.
pub trait RelaySession: fmt::Debug + Send {
    /// Takes in what a side sent. `decide` sees every item, and says of messages what becomes of
    /// them; what it says of notes does not count. A decision that the family cannot carry out is
    /// reported as a problem, and the message goes on unchanged.
    fn input(
        &mut self,
        now: Duration,
        stamp: Stamp,
        from: Side,
        input: Input<'_>,
        decide: &mut dyn FnMut(&Item<'_>) -> Decision<'static>,
    );

    /// Time has passed. Also to be called when [`poll_transmit`](Self::poll_transmit) has made
    /// room, since a paused side is then read on.
    fn timeout(
        &mut self,
        now: Duration,
        stamp: Stamp,
        decide: &mut dyn FnMut(&Item<'_>) -> Decision<'static>,
    );

    /// What other conversations should know, since the last call; see [`Facts`].
    fn facts(&mut self) -> Vec<Fact> {
        Vec::new()
    }

    /// Whether it keeps something that it can only read once it learns a fact.
    fn waits(&self) -> bool {
        false
    }

    /// Learns what others stated; what could not be read before goes on as it is decided. The
    /// driver calls it when the session waits: behind the input that made it wait, and whenever
    /// another conversation states something.
    fn learn(
        &mut self,
        facts: &Facts,
        stamp: Stamp,
        decide: &mut dyn FnMut(&Item<'_>) -> Decision<'static>,
    ) {
        let _ = (facts, stamp, decide);
    }

    /// Whether this family's relays can send messages of their own.
    fn can_inject(&self) -> bool;

    /// Sends a message of the relay's own; see [`Inject::inject`].
    ///
    /// # Errors
    /// Those of [`Inject::inject`]. [`SendError::Role`], when the family's relays
    /// [cannot](Self::can_inject).
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError>;

    /// Whether nothing more of a side is read for now; see [`Connection::is_paused`].
    fn is_paused(&self, from: Side) -> bool;

    /// How many bytes of a side are kept; see [`Connection::kept_bytes`].
    fn kept_bytes(&self, from: Side) -> usize;

    /// Ends the conversation.
    fn close(&mut self);

    /// The next bytes for a side; over UDP, one datagram.
    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>>;

    /// When to call [`timeout`](Self::timeout) at the latest.
    fn poll_timeout(&self) -> Option<Duration>;

    /// How many bytes are queued for a side.
    fn queued_bytes(&self, to: Side) -> usize;

    /// Whether the conversation is over.
    fn is_closed(&self) -> bool;
}

/// Turns what a family's connection received into items.
pub trait Interpreter<C: Connection>: fmt::Debug + Send {
    /// The name of the family.
    const FAMILY: &'static str;

    /// A piece was received: it is to be emitted as a message, with notes in front if there is
    /// something to say about it.
    fn received(&mut self, received: C::Received<'_>, emit: &mut Emit<'_>);

    /// Something happened that only this family knows.
    fn news(&mut self, news: C::News, emit: &mut Emit<'_>);

    /// What other conversations should know; see [`Session::facts`].
    fn facts(&mut self) -> Vec<Fact> {
        Vec::new()
    }

    /// Whether the connection keeps something until a fact is learned; see [`Session::waits`].
    fn waits(&self, connection: &C) -> bool {
        let _ = connection;
        false
    }

    /// The keys of this conversation alone; see [`Session::secrets`].
    fn secrets(&self, connection: &C) -> Option<String> {
        let _ = connection;
        None
    }

    /// Learns facts; what the connection then has to say is emitted behind it.
    fn learn(&mut self, connection: &mut C, facts: &Facts) {
        let _ = (connection, facts);
    }
}

/// Emits items about one event.
pub struct Emit<'e> {
    stamp: Stamp,
    family: &'static str,
    from: Side,
    range: Range<u64>,
    out: &'e mut dyn FnMut(Item<'_>),
}

impl Emit<'_> {
    /// Emits a message.
    pub fn message(&mut self, message: &dyn Message) {
        self.body(ItemBody::Message(message));
    }

    /// Emits a note at the place of the event.
    pub fn note(&mut self, note: Note) {
        self.body(ItemBody::Note(note));
    }

    /// The number of the packet in its capture, counted from 1, if there is one.
    #[must_use]
    pub fn packet(&self) -> Option<u64> {
        self.stamp.packet
    }

    /// Says that what follows is about a side's stream as a whole.
    pub fn about(&mut self, from: Side) {
        (self.from, self.range) = (from, 0..0);
    }

    fn body(&mut self, body: ItemBody<'_>) {
        let Self { stamp, family, from, .. } = *self;
        // Sessions know of no addresses.
        (self.out)(Item { stamp, family, from, ends: None, range: self.range.clone(), body });
    }
}

impl fmt::Debug for Emit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emit").field("family", &self.family).finish_non_exhaustive()
    }
}

/// A session of any family: its connection, which observes or relays, and what turns pieces into
/// items.
pub struct Watched<C: Connection, I> {
    connection: C,
    interpreter: I,
    inject: Option<InjectFn<C::Sender>>,
}

type InjectFn<S> = fn(&mut S, Side, &[u8]) -> Result<(), SendError>;

impl<C: Connection, I: Interpreter<C>> Watched<C, I> {
    /// A session around a connection in the role of an observer or a relay.
    pub fn new(connection: C, interpreter: I) -> Self {
        Self { connection, interpreter, inject: None }
    }

    /// The same for a relay that can send messages of its own.
    #[must_use]
    pub fn injecting(self) -> Self
    where
        C::Sender: Inject,
    {
        Self { inject: Some(C::Sender::inject), ..self }
    }

    /// Emits all events; `decided` comes behind every one that may be decided about.
    fn emit(
        &mut self,
        stamp: Stamp,
        out: &mut dyn FnMut(Item<'_>),
        mut decided: impl FnMut(&mut C::Sender) -> Option<Note>,
    ) {
        let Self { connection, interpreter, .. } = self;
        while let Some((event, sender)) = connection.poll() {
            let place = match &event {
                Event::Received(received) => (received.side(), received.range()),
                Event::Gap { side, range } => (*side, range.clone()),
                Event::Resync { side, skipped } => (*side, skipped.clone()),
                Event::Fault { side, error } => {
                    let at = error.offset().unwrap_or(0);
                    (*side, at..at)
                }
                Event::News(_) | Event::Closed(_) => (Side::Client, 0..0),
            };
            let (from, range) = place;
            let mut emit = Emit { stamp, family: I::FAMILY, from, range, out: &mut *out };
            match event {
                Event::Received(received) => {
                    interpreter.received(received, &mut emit);
                    if let Some(note) = decided(sender) {
                        emit.note(note);
                    }
                }
                Event::News(news) => interpreter.news(news, &mut emit),
                Event::Gap { range, .. } => emit.note(Note::gap(&range)),
                Event::Resync { skipped, .. } => emit.note(Note::resync(&skipped)),
                Event::Fault { error, .. } => emit.note(Note::problem(error.to_string())),
                Event::Closed(_) => {}
            }
        }
    }
}

impl<C: Connection + fmt::Debug, I: fmt::Debug> fmt::Debug for Watched<C, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connection, interpreter, .. } = self;
        f.debug_struct("Watched")
            .field("connection", connection)
            .field("interpreter", interpreter)
            .finish_non_exhaustive()
    }
}

impl<C, I> Session for Watched<C, I>
where
    C: Connection + fmt::Debug + Send,
    I: Interpreter<C>,
{
    fn input(&mut self, stamp: Stamp, from: Side, input: Input<'_>, out: &mut dyn FnMut(Item<'_>)) {
        self.connection.input(stamp.since, from, input);
        self.emit(stamp, out, |_| None);
    }

    fn facts(&mut self) -> Vec<Fact> {
        self.interpreter.facts()
    }

    fn waits(&self) -> bool {
        self.interpreter.waits(&self.connection)
    }

    fn secrets(&self) -> Option<String> {
        self.interpreter.secrets(&self.connection)
    }

    fn learn(&mut self, facts: &Facts, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        self.interpreter.learn(&mut self.connection, facts);
        self.emit(stamp, out, |_| None);
    }
}

impl<C, I> Watched<C, I>
where
    C: Connection + fmt::Debug + Send,
    C::Sender: Forward,
    I: Interpreter<C>,
{
    /// Emits all events and carries out what is decided about them.
    fn emit_deciding(
        &mut self,
        stamp: Stamp,
        decide: &mut dyn FnMut(&Item<'_>) -> Decision<'static>,
    ) {
        let decision = core::cell::RefCell::new(Decision::AsIs);
        let mut out = |item: Item<'_>| {
            let said = decide(&item);
            if item.note().is_none() {
                *decision.borrow_mut() = said;
            }
        };
        self.emit(stamp, &mut out, |sender| {
            let outcome = match decision.take() {
                Decision::AsIs => Ok(()),
                decision => sender.forward(decision),
            };
            outcome.err().map(|error| Note::problem(format!("went on unchanged: {error}")))
        });
    }
}

impl<C, I> RelaySession for Watched<C, I>
where
    C: Connection + fmt::Debug + Send,
    C::Sender: Forward,
    I: Interpreter<C>,
{
    fn input(
        &mut self,
        now: Duration,
        stamp: Stamp,
        from: Side,
        input: Input<'_>,
        decide: &mut dyn FnMut(&Item<'_>) -> Decision<'static>,
    ) {
        self.connection.input(now, from, input);
        self.emit_deciding(stamp, decide);
    }

    fn timeout(
        &mut self,
        now: Duration,
        stamp: Stamp,
        decide: &mut dyn FnMut(&Item<'_>) -> Decision<'static>,
    ) {
        self.connection.timeout(now);
        self.emit_deciding(stamp, decide);
    }

    fn facts(&mut self) -> Vec<Fact> {
        self.interpreter.facts()
    }

    fn waits(&self) -> bool {
        self.interpreter.waits(&self.connection)
    }

    fn learn(
        &mut self,
        facts: &Facts,
        stamp: Stamp,
        decide: &mut dyn FnMut(&Item<'_>) -> Decision<'static>,
    ) {
        self.interpreter.learn(&mut self.connection, facts);
        self.emit_deciding(stamp, decide);
    }

    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        match self.inject {
            Some(inject) => inject(self.connection.sender(), to, message),
            None => Err(SendError::Role("a relay of a family whose messages have no numbers")),
        }
    }

    fn can_inject(&self) -> bool {
        self.inject.is_some()
    }

    fn is_paused(&self, from: Side) -> bool {
        self.connection.is_paused(from)
    }

    fn kept_bytes(&self, from: Side) -> usize {
        self.connection.kept_bytes(from)
    }

    fn close(&mut self) {
        self.connection.sender().close();
    }

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        self.connection.poll_transmit(to)
    }

    fn poll_timeout(&self) -> Option<Duration> {
        self.connection.poll_timeout()
    }

    fn queued_bytes(&self, to: Side) -> usize {
        self.connection.queued_bytes(to)
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }
}
