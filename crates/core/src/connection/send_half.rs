//! The shared part of all families' senders: role, lanes, clock and a relay's queues.

use core::fmt::Debug;
use std::time::Duration;

use super::{
    Bounds, CloseReason, Closing, Decision, Forward, Forwarding, HoldId, Leaving, Outgoing,
    SendError, Sender, Timer, Timers,
};
use crate::Side;

/// The role of a connection, with the family's rules for relays.
pub trait Role: Debug {
    /// The queue to one side, with its cipher.
    type Lane: AsMut<Outgoing> + AsRef<Outgoing> + Debug;
    /// What a relay needs to know about a piece to forward it.
    type Piece: Debug;

    /// The side that a client or server represents; `None` for an observer or relay.
    fn side(&self) -> Option<Side>;

    /// How long a peer may take to complete a message, once setup is complete (clients and servers).
    fn message_time(&self) -> Option<Duration> {
        None
    }

    /// Relays: the relay's own bytes, which replace the piece reported last.
    fn replacement(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Relays: queues an entry that leaves now. `lane` leads away from the side that sent it.
    ///
    /// # Errors
    /// Why the connection must close.
    fn leave(
        &mut self,
        from: Side,
        lane: &mut Self::Lane,
        leaving: Leaving<Self::Piece>,
    ) -> Result<(), CloseReason>;

    /// Relays: checks that a piece may be dropped or replaced as decided. `lanes` is indexed by
    /// receiving side.
    ///
    /// # Errors
    /// Those of [`Forward::forward`].
    fn check(
        &self,
        lanes: &[Self::Lane; 2],
        piece: &Self::Piece,
        decision: &Decision<'_>,
    ) -> Result<(), SendError>;
}

/// The part of a [`Sender`] that all families share.
#[derive(Debug)]
pub struct SendHalf<R: Role> {
    /// The role.
    pub role: R,
    /// The lanes, by receiving side.
    pub lanes: [R::Lane; 2],
    /// The deadlines and the clock.
    pub timers: Timers,
    /// Why the connection ended.
    pub closing: Closing,
    /// The pieces in transit; `None` except in relays.
    pub forwarding: Option<Box<Forwarding<R::Piece>>>,
}

/// A family's part of a [`Sender`] and [`Forward`], which [`SendHalf`] and its [`Role`] complete.
pub trait HalfSender {
    /// The role.
    type Role: Role;
    /// See [`Sender::Message`].
    type Message<'m>: ?Sized;

    /// The shared part.
    fn half(&self) -> &SendHalf<Self::Role>;

    /// The shared part.
    fn half_mut(&mut self) -> &mut SendHalf<Self::Role>;

    /// Queues a message.
    ///
    /// # Errors
    /// Those of [`Sender::send`].
    fn queue(&mut self, message: &Self::Message<'_>) -> Result<(), SendError>;
}

impl<R: Role> SendHalf<R> {
    /// Creates the sending half of a client, server or observer.
    #[must_use]
    pub fn new(role: R, lanes: [R::Lane; 2], now: Duration) -> Self {
        let (timers, closing) = (Timers::new(now), Closing::default());
        Self { role, lanes, timers, closing, forwarding: None }
    }

    /// The sending half of an observer's [copy](super::Connection::fork), with a copy of its role
    /// and empty lanes.
    #[must_use]
    pub fn observing(&self, role: R, lanes: [R::Lane; 2]) -> Self {
        Self { role, lanes, timers: self.timers, closing: self.closing, forwarding: None }
    }

    /// Makes it the sending half of a relay, with these limits for each direction.
    #[must_use]
    pub fn forwarding(self, bounds: Bounds) -> Self {
        Self { forwarding: Some(Box::new(Forwarding::new(bounds))), ..self }
    }

    /// Ends the connection. Only the first reason is kept.
    pub fn close_for(&mut self, reason: CloseReason) {
        self.closing.close(reason);
        self.timers.stop_all();
    }

    /// Starts the deadline of a message that has begun to arrive, or stops it.
    pub(super) fn watch_message(&mut self, has_begun: bool) {
        match self.role.message_time() {
            Some(time) if has_begun => self.timers.start_once(Timer::Message, time),
            Some(_) => self.timers.stop(Timer::Message),
            None => {}
        }
    }

    /// Relays: queues everything from a side that may leave now.
    ///
    /// # Errors
    /// The limit that a piece exceeds even in an empty queue.
    pub fn fill(&mut self, from: Side) -> crate::Result<()> {
        let Self { role, lanes, closing, forwarding: Some(forwarding), .. } = self else {
            return Ok(());
        };
        if closing.is_closed() {
            return Ok(());
        }
        let mut left = Ok(());
        let filled = forwarding.fill(from, &mut lanes[from.other().index()], |lane, leaving| {
            if let Err(reason) = role.leave(from, lane, leaving) {
                left = Err(reason);
            }
        });
        if let Err(reason) = left {
            self.close_for(reason);
        }
        filled
    }

    /// See [`Connection::is_paused`](super::Connection::is_paused).
    #[must_use]
    pub fn is_paused(&self, from: Side) -> bool {
        let out = self.lanes[from.other().index()].as_ref();
        self.forwarding.as_ref().is_some_and(|forwarding| forwarding.is_paused(from, out))
    }

    /// See [`Connection::kept_bytes`](super::Connection::kept_bytes).
    #[must_use]
    pub fn kept_bytes(&self, from: Side) -> usize {
        let out = self.lanes[from.other().index()].as_ref();
        self.forwarding.as_ref().map_or(0, |forwarding| forwarding.kept_bytes(from, out))
    }

    /// The queues of an open relay.
    ///
    /// # Errors
    /// [`SendError::Closed`] and [`SendError::Role`].
    pub fn open_relay(&mut self) -> Result<&mut Forwarding<R::Piece>, SendError> {
        self.closing.check_open()?;
        self.forwarding.as_deref_mut().ok_or(SendError::Role("a relay"))
    }
}

impl<S: HalfSender> Sender for S {
    type Message<'m> = <S as HalfSender>::Message<'m>;

    fn send(&mut self, message: &Self::Message<'_>) -> Result<(), SendError> {
        self.queue(message)
    }

    fn close(&mut self) {
        self.half_mut().close_for(CloseReason::Local);
    }
}

impl<S: HalfSender> Forward for S {
    fn forward(&mut self, decision: Decision<'_>) -> Result<(), SendError> {
        let half = self.half_mut();
        half.open_relay()?;
        let SendHalf { role, lanes, forwarding: Some(forwarding), .. } = half else {
            return Ok(());
        };
        forwarding.decide(decision, |piece, decision| role.check(lanes, piece, decision))
    }

    fn hold(&mut self) -> Result<HoldId, SendError> {
        self.half_mut().open_relay()?.hold()
    }

    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError> {
        let half = self.half_mut();
        half.open_relay()?;
        let SendHalf { role, lanes, forwarding: Some(forwarding), .. } = half else {
            return Ok(());
        };
        forwarding.release(held, decision, |piece, decision| role.check(lanes, piece, decision))
    }
}
