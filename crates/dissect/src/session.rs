//! Reads or relays one conversation, whatever its family.

use core::cell::RefCell;
use core::fmt;
use core::ops::Range;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{
    CloseReason, Connection, Decision, Event, Forward, HoldId, Inject, Input, Piece, SendError,
    Sender,
};

use crate::item::{Item, ItemBody, Note, Stamp};
use crate::knowledge::{Fact, Facts};
use crate::message::Message;

/// Reads one conversation.
///
/// A session does not depend on captures. Segments of a capture, a proxy's traffic and a server's
/// log are all valid input.
pub trait Session: fmt::Debug + Send {
    /// Handles input from a side and passes on the items decoded from it. Each call should be one
    /// segment of a stream, because messages tend to start with a segment.
    fn input(&mut self, stamp: Stamp, from: Side, input: Input<'_>, out: &mut dyn FnMut(Item<'_>));

    /// Facts for other conversations, since the last call; see [`Facts`].
    fn facts(&mut self) -> Vec<Fact> {
        Vec::new()
    }

    /// Whether the session holds input that it can only read after learning a fact. Checked after
    /// every input. [`learn`](Self::learn) is called only on waiting sessions.
    fn waits(&self) -> bool {
        false
    }

    /// The keys of this conversation, as part of a key file. They decrypt it without the secrets of
    /// its server or account. `None` if it has none.
    fn secrets(&self) -> Option<String> {
        None
    }

    /// Copies the session so that the rest of the conversation can be read again from here. Returns
    /// the copy and its approximate size in bytes. `None` if it cannot be copied at all, or not now
    /// because it [waits](Self::waits) or much of a message is missing.
    fn fork(&self) -> Option<(Box<dyn Session>, usize)> {
        None
    }

    /// Learns all facts known so far and passes on items that had to wait. They need not include
    /// the fact that the session waits for.
    fn learn(&mut self, facts: &Facts, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        let _ = (facts, stamp, out);
    }
}

/// What a relay does with an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Carries out a decision now.
    Decide(Decision<'static>),
    /// Holds the message, and everything its side sends later, until it is
    /// [released](RelaySession::release).
    Hold,
}

impl From<Decision<'static>> for Answer {
    fn from(decision: Decision<'static>) -> Self {
        Self::Decide(decision)
    }
}

/// Decides on the items of a [`RelaySession`].
///
/// A closure that returns a [`Decision`] is a decider that never holds.
pub trait Decider {
    /// Returns the decision about one item. Decisions about notes are ignored.
    fn decide(&mut self, item: &Item<'_>) -> Answer;

    /// Receives the ID of the message for which [`Answer::Hold`] was last returned. If the family
    /// cannot hold it, the session reports a problem and forwards it unchanged instead.
    fn held(&mut self, id: HoldId);

    /// The next message to add to the conversation before the one just decided on: the side that
    /// receives it, and the message, as [`RelaySession::inject`] takes it. Called until it returns
    /// `None`. A message that cannot be added is reported as a problem.
    fn added(&mut self) -> Option<(Side, Vec<u8>)> {
        None
    }

    /// Reports that the message that [`added`](Self::added) last returned was added.
    fn was_added(&mut self, to: Side) {
        let _ = to;
    }
}

impl<F: FnMut(&Item<'_>) -> Decision<'static>> Decider for F {
    fn decide(&mut self, item: &Item<'_>) -> Answer {
        self(item).into()
    }

    fn held(&mut self, _: HoldId) {}
}

/// Relays one conversation: reads it and forwards it unchanged, changed or not at all.
///
/// A breakpoint [holds](Answer::Hold) a message. The session keeps reading and reporting what
/// follows until its limits are reached ([`is_paused`](Self::is_paused)). Later,
/// [`release`](Self::release) decides on the message, and [`resume`](Self::resume) sends it and
/// everything that waited for it. Messages can be released in any order; they are sent in the order
/// in which they arrived.
pub trait RelaySession: fmt::Debug + Send {
    /// Handles input from a side. The decider is asked about every item. If the family cannot carry
    /// out a decision, the message is forwarded unchanged and a problem is reported.
    fn input(
        &mut self,
        now: Duration,
        stamp: Stamp,
        from: Side,
        input: Input<'_>,
        decider: &mut dyn Decider,
    );

    /// Advances time to `now`.
    fn timeout(&mut self, now: Duration, stamp: Stamp, decider: &mut dyn Decider);

    /// Continues where the session had to stop: queues what can leave now, and continues reading if
    /// the side was [paused](Self::is_paused). Call it after [`poll_transmit`](Self::poll_transmit)
    /// made room, and after [`release`](Self::release).
    fn resume(&mut self, stamp: Stamp, decider: &mut dyn Decider);

    /// Decides on a held message. It leaves with the next [`resume`](Self::resume), input or
    /// time-out, unless an earlier message from its side is still held.
    ///
    /// # Errors
    /// Those of [`Forward::release`]. A message whose release was refused stays held.
    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError>;

    /// Facts for other conversations, since the last call; see [`Facts`].
    fn facts(&mut self) -> Vec<Fact> {
        Vec::new()
    }

    /// The keys of this conversation, on both sides of the relay; see [`Session::secrets`].
    fn secrets(&self) -> Option<String> {
        None
    }

    /// Whether the session holds input that it can only read after learning a fact.
    fn waits(&self) -> bool {
        false
    }

    /// Learns facts and asks the decider about the items that had to wait. The driver calls this
    /// while the session waits: after the input that made it wait, and whenever another
    /// conversation states a fact.
    fn learn(&mut self, facts: &Facts, stamp: Stamp, decider: &mut dyn Decider) {
        let _ = (facts, stamp, decider);
    }

    /// Whether this family's relays can add messages to a conversation.
    fn can_inject(&self) -> bool;

    /// Adds a message to the conversation; see [`Inject::inject`].
    ///
    /// # Errors
    /// Those of [`Inject::inject`]. [`SendError::Role`] if the family's relays
    /// [cannot](Self::can_inject).
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError>;

    /// Whether the session has stopped reading from a side for now; see [`Connection::is_paused`].
    fn is_paused(&self, from: Side) -> bool;

    /// Over UDP, whether the client has replied to a datagram, which proves that its address is
    /// genuine.
    fn is_confirmed(&self) -> bool {
        true
    }

    /// The number of bytes from a side that are kept; see [`Connection::kept_bytes`].
    fn kept_bytes(&self, from: Side) -> usize;

    /// Ends the conversation.
    fn close(&mut self);

    /// The next bytes for a side; over UDP, one datagram.
    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>>;

    /// The time by which to call [`timeout`](Self::timeout).
    fn poll_timeout(&self) -> Option<Duration>;

    /// The number of bytes queued for a side.
    fn queued_bytes(&self, to: Side) -> usize;

    /// Whether the conversation has ended.
    fn is_closed(&self) -> bool;
}

/// Turns the events of a family's connection into items.
pub trait Interpreter<C: Connection>: fmt::Debug + Send {
    /// The name of the family.
    const FAMILY: &'static str;

    /// Emits a received piece as a message, after any notes about it.
    fn received(&mut self, received: C::Received<'_>, emit: &mut Emit<'_>);

    /// Tells a relay what the last received piece has revealed. Called before the decision on that
    /// piece.
    fn inform(&mut self, sender: &mut C::Sender) {
        let _ = sender;
    }

    /// Handles an event specific to the family.
    fn news(&mut self, news: C::News, emit: &mut Emit<'_>);

    /// Facts for other conversations; see [`Session::facts`].
    fn facts(&mut self) -> Vec<Fact> {
        Vec::new()
    }

    /// Whether the connection holds input until a fact is learned; see [`Session::waits`].
    fn waits(&self, connection: &C) -> bool {
        let _ = connection;
        false
    }

    /// Whether a relay's client is genuine; see [`RelaySession::is_confirmed`].
    fn is_confirmed(&self, connection: &C) -> bool {
        connection.is_established()
    }

    /// The keys of this conversation; see [`Session::secrets`].
    fn secrets(&self, connection: &C) -> Option<String> {
        let _ = connection;
        None
    }

    /// Copies the state of reading a conversation; see [`Session::fork`].
    fn fork(&self) -> Option<(Self, usize)>
    where
        Self: Sized,
    {
        None
    }

    /// Passes facts to the connection. Events that result are emitted afterwards.
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

    /// Emits a note at the position of the event.
    pub fn note(&mut self, note: Note) {
        self.body(ItemBody::Note(note));
    }

    /// The number of the packet in its capture, counted from 1. `None` if the source has no
    /// packets.
    #[must_use]
    pub fn packet(&self) -> Option<u64> {
        self.stamp.packet
    }

    /// Makes the following notes apply to a side's whole stream.
    pub fn about(&mut self, from: Side) {
        (self.from, self.range) = (from, 0..0);
    }

    fn body(&mut self, body: ItemBody<'_>) {
        let Self { stamp, family, from, .. } = *self;
        (self.out)(Item::new(stamp, family, from, self.range.clone(), body));
    }
}

impl fmt::Debug for Emit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emit").field("family", &self.family).finish_non_exhaustive()
    }
}

/// A session of any family: a connection that observes or relays, and an interpreter that turns its
/// events into items.
pub struct Watched<C: Connection, I> {
    connection: C,
    interpreter: I,
    inject: Option<InjectFn<C::Sender>>,
}

/// The error of a family whose relays cannot add messages.
const CANNOT_INJECT: SendError =
    SendError::Role("a relay of a family whose messages have no numbers");

type InjectFn<S> = fn(&mut S, Side, &[u8]) -> Result<(), SendError>;

impl<C: Connection, I: Interpreter<C>> Watched<C, I> {
    /// Creates a session for a connection, which must be an observer or a relay.
    pub fn new(connection: C, interpreter: I) -> Self {
        Self { connection, interpreter, inject: None }
    }

    /// Lets a relay add messages to the conversation.
    #[must_use]
    pub fn injecting(self) -> Self
    where
        C::Sender: Inject,
    {
        Self { inject: Some(C::Sender::inject), ..self }
    }

    /// Emits all events. `decided` is called after each event that can be decided on.
    fn emit(
        &mut self,
        stamp: Stamp,
        out: &mut dyn FnMut(Item<'_>),
        mut decided: impl FnMut(&mut C::Sender) -> Option<Note>,
    ) {
        let Self { connection, interpreter, .. } = self;
        while let Some((event, sender)) = connection.poll() {
            let (from, range) = match &event {
                Event::Received(received) => (received.side(), received.range()),
                Event::Gap { side, range } => (*side, range.clone()),
                Event::Resync { side, skipped } => (*side, skipped.clone()),
                Event::Fault { side, error } => {
                    let at = error.offset().unwrap_or(0);
                    (*side, at..at)
                }
                Event::News(_) | Event::Closed(_) => (Side::Client, 0..0),
            };
            let mut emit = Emit { stamp, family: I::FAMILY, from, range, out: &mut *out };
            match event {
                Event::Received(received) => {
                    interpreter.received(received, &mut emit);
                    interpreter.inform(sender);
                    if let Some(note) = decided(sender) {
                        emit.note(note);
                    }
                }
                Event::News(news) => interpreter.news(news, &mut emit),
                Event::Gap { range, .. } => emit.note(Note::gap(&range)),
                Event::Resync { skipped, .. } => emit.note(Note::resync(&skipped)),
                Event::Fault { error, .. } => emit.note(Note::problem(error.to_string())),
                // Other reasons have already been reported by their own events.
                Event::Closed(reason @ CloseReason::Timeout(_)) => {
                    emit.note(Note::problem(format!("closed: {reason}")));
                }
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
    C: Connection + fmt::Debug + Send + 'static,
    I: Interpreter<C> + 'static,
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

    fn fork(&self) -> Option<(Box<dyn Session>, usize)> {
        if self.interpreter.waits(&self.connection) {
            return None;
        }
        let (connection, bytes) = self.connection.fork()?;
        let (interpreter, more) = self.interpreter.fork()?;
        Some((Box::new(Self { connection, interpreter, inject: self.inject }), bytes + more))
    }

    fn learn(&mut self, facts: &Facts, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        self.interpreter.learn(&mut self.connection, facts);
        self.emit(stamp, out, |_| None);
    }
}

impl<C: Connection<Sender: Forward> + fmt::Debug + Send, I: Interpreter<C>> Watched<C, I> {
    /// Emits all events and carries out the decisions about them.
    fn emit_deciding(&mut self, stamp: Stamp, decider: &mut dyn Decider) {
        const UNCHANGED: Answer = Answer::Decide(Decision::AsIs);
        let inject = self.inject;
        let shared = RefCell::new((decider, UNCHANGED));
        let mut out = |item: Item<'_>| {
            let (decider, answer) = &mut *shared.borrow_mut();
            let answered = decider.decide(&item);
            if item.note().is_none() {
                *answer = answered;
            }
        };
        self.emit(stamp, &mut out, |sender| {
            let (decider, answer) = &mut *shared.borrow_mut();
            let mut added = Ok(());
            while let Some((to, message)) = decider.added() {
                let outcome = match inject {
                    Some(inject) => inject(sender, to, &message),
                    None => Err(CANNOT_INJECT),
                };
                if outcome.is_ok() {
                    decider.was_added(to);
                }
                if added.is_ok() {
                    added = outcome;
                }
            }
            let outcome = match core::mem::replace(answer, UNCHANGED) {
                Answer::Decide(Decision::AsIs) => Ok(()),
                Answer::Decide(decision) => sender.forward(decision),
                Answer::Hold => sender.hold().map(|id| decider.held(id)),
            };
            let problem = match (outcome, added) {
                (Err(error), _) => format!("forwarded unchanged: {error}"),
                (_, Err(error)) => format!("a message was not added: {error}"),
                (Ok(()), Ok(())) => return None,
            };
            Some(Note::problem(problem))
        });
    }
}

impl<C: Connection<Sender: Forward> + fmt::Debug + Send, I: Interpreter<C>> RelaySession
    for Watched<C, I>
{
    fn input(
        &mut self,
        now: Duration,
        stamp: Stamp,
        from: Side,
        input: Input<'_>,
        decider: &mut dyn Decider,
    ) {
        self.connection.input(now, from, input);
        self.emit_deciding(stamp, decider);
    }

    fn timeout(&mut self, now: Duration, stamp: Stamp, decider: &mut dyn Decider) {
        self.connection.timeout(now);
        self.emit_deciding(stamp, decider);
    }

    fn resume(&mut self, stamp: Stamp, decider: &mut dyn Decider) {
        self.emit_deciding(stamp, decider);
    }

    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError> {
        self.connection.sender().release(held, decision)
    }

    fn secrets(&self) -> Option<String> {
        self.interpreter.secrets(&self.connection)
    }

    fn facts(&mut self) -> Vec<Fact> {
        self.interpreter.facts()
    }

    fn waits(&self) -> bool {
        self.interpreter.waits(&self.connection)
    }

    fn learn(&mut self, facts: &Facts, stamp: Stamp, decider: &mut dyn Decider) {
        self.interpreter.learn(&mut self.connection, facts);
        self.emit_deciding(stamp, decider);
    }

    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        match self.inject {
            Some(inject) => inject(self.connection.sender(), to, message),
            None => Err(CANNOT_INJECT),
        }
    }

    fn can_inject(&self) -> bool {
        self.inject.is_some()
    }

    fn is_confirmed(&self) -> bool {
        self.interpreter.is_confirmed(&self.connection)
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
