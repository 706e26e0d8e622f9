//! The queues of a relay, between reading a piece and sending it.

use std::collections::VecDeque;

use super::{Bounds, Decision, HoldId, Outgoing, SendError};
use crate::{Error, Result, Side};

/// The pieces that a relay has read and not sent yet, for the machines of all families.
///
/// A piece is reported, can be decided on until the next call, and leaves as soon as everything
/// before it has left and the queue to the other side has room. [Held](Self::hold) pieces stay
/// until they are released. `P` is what the family needs to know about a piece to forward it.
#[derive(Debug)]
pub struct Forwarding<P> {
    bounds: Bounds,
    reported: Option<Reported<P>>,
    /// The directions, by the side that sends.
    directions: [Direction<P>; 2],
    /// The number of pieces held so far.
    holds: u64,
}

/// The piece that was reported last.
#[derive(Debug)]
struct Reported<P> {
    side: Side,
    piece: P,
    is_urgent: bool,
    state: PieceState,
}

#[derive(Debug)]
enum PieceState {
    Decided(Decision<'static>),
    Held(HoldId),
}

#[derive(Debug)]
struct Direction<P> {
    queue: VecDeque<Queued<P>>,
    /// Pieces that overtake held ones.
    urgent: VecDeque<Queued<P>>,
    /// The number of bytes in both queues.
    bytes: usize,
    /// The rest of the stream is forwarded unread.
    is_raw: bool,
}

#[derive(Debug)]
struct Queued<P> {
    /// `None` for a part of a stream that is forwarded unread.
    piece: Option<P>,
    bytes: Vec<u8>,
    state: PieceState,
    /// The number of pieces that had been held when this one was queued; used to find a held piece.
    holds: u64,
}

/// An entry that leaves the relay now.
#[derive(Debug)]
pub struct Leaving<P> {
    /// The piece; `None` for a part of a stream that is forwarded unread.
    pub piece: Option<P>,
    /// Its original bytes.
    pub bytes: Vec<u8>,
    /// The decision about it.
    pub decision: Decision<'static>,
    /// Whether it overtakes held pieces.
    pub overtakes: bool,
}

/// The maximum number of bytes of an unreadable stream that are forwarded at once.
const MAX_RAW_BYTES: usize = 16 << 10;

impl<P> Forwarding<P> {
    /// Creates empty queues. The bounds limit what each direction keeps as well as what it queues.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let directions = Side::BOTH.map(|_| Direction {
            queue: VecDeque::new(),
            urgent: VecDeque::new(),
            bytes: 0,
            is_raw: false,
        });
        Self { bounds, reported: None, directions, holds: 0 }
    }

    /// Records that a piece was reported. `is_urgent` lets it overtake held pieces, as keep-alives
    /// should.
    pub fn report(&mut self, side: Side, piece: P, is_urgent: bool) {
        let state = PieceState::Decided(Decision::AsIs);
        self.reported = Some(Reported { side, piece, is_urgent, state });
    }

    /// The piece reported last and the side that sent it, until [`settle`](Self::settle) queues it.
    #[must_use]
    pub fn reported(&self) -> Option<(Side, &P)> {
        self.reported.as_ref().map(|reported| (reported.side, &reported.piece))
    }

    /// Records a decision about the piece reported last. If `check` refuses it, the piece is
    /// forwarded unchanged.
    ///
    /// # Errors
    /// [`SendError::NoPiece`], and the errors of `check`, which is called for every decision except
    /// [`Decision::AsIs`].
    pub fn decide(
        &mut self,
        decision: Decision<'_>,
        check: impl FnOnce(&P, &Decision<'_>) -> Result<(), SendError>,
    ) -> Result<(), SendError> {
        let reported = self.reported.as_mut().ok_or(SendError::NoPiece)?;
        let checked = check_decision(&reported.piece, &decision, check);
        reported.state = PieceState::Decided(match checked {
            Ok(()) => decision.into_owned(),
            Err(_) => Decision::AsIs,
        });
        checked
    }

    /// Holds the piece reported last until it is [released](Self::release).
    ///
    /// # Errors
    /// [`SendError::NoPiece`].
    pub fn hold(&mut self) -> Result<HoldId, SendError> {
        let reported = self.reported.as_mut().ok_or(SendError::NoPiece)?;
        if let PieceState::Held(id) = reported.state {
            return Ok(id);
        }
        self.holds += 1;
        let id = HoldId(self.holds);
        reported.state = PieceState::Held(id);
        Ok(id)
    }

    /// Decides on a held piece. If `check` refuses the decision, the piece stays held.
    ///
    /// # Errors
    /// [`SendError::NotHeld`], and the errors of `check`, as for [`decide`](Self::decide).
    pub fn release(
        &mut self,
        id: HoldId,
        decision: Decision<'_>,
        check: impl FnOnce(&P, &Decision<'_>) -> Result<(), SendError>,
    ) -> Result<(), SendError> {
        let is_it = |state: &PieceState| matches!(state, PieceState::Held(held) if *held == id);
        let reported = self.reported.iter_mut().map(|it| (Some(&it.piece), &mut it.state));
        let queued = self.directions.iter_mut().flat_map(|direction| direction.queued_at(id));
        let queued = queued.map(|it| (it.piece.as_ref(), &mut it.state));
        let held = reported.chain(queued).find(|(_, state)| is_it(state));
        let Some((Some(piece), state)) = held else {
            return Err(SendError::NotHeld);
        };
        check_decision(piece, &decision, check)?;
        *state = PieceState::Decided(decision.into_owned());
        Ok(())
    }

    /// Queues the piece reported last, which can then no longer be decided on. Returns the side
    /// that sent it.
    pub fn settle(&mut self, bytes: impl FnOnce(Side, &mut P) -> Vec<u8>) -> Option<Side> {
        let Reported { side, mut piece, is_urgent, state } = self.reported.take()?;
        let bytes = bytes(side, &mut piece);
        let direction = &mut self.directions[side.index()];
        let overtakes =
            is_urgent && direction.is_holding() && matches!(state, PieceState::Decided(_));
        direction.push(Queued { piece: Some(piece), bytes, state, holds: self.holds }, overtakes);
        Some(side)
    }

    /// Queues an entry that needs no decision; `piece` is `None` for a part of a stream that is
    /// forwarded unread.
    pub fn pass(&mut self, side: Side, piece: Option<P>, bytes: Vec<u8>) {
        let state = PieceState::Decided(Decision::AsIs);
        let queued = Queued { piece, bytes, state, holds: self.holds };
        self.directions[side.index()].push(queued, false);
    }

    /// Passes everything from a side that may leave now to `send`, as long as the queue to the
    /// other side has room.
    ///
    /// # Errors
    /// The limit that a piece exceeds even in an empty queue.
    pub fn fill<T: AsMut<Outgoing>>(
        &mut self,
        from: Side,
        to: &mut T,
        mut send: impl FnMut(&mut T, Leaving<P>),
    ) -> Result<()> {
        loop {
            let out = to.as_mut();
            out.refill()?;
            if out.is_full() {
                return Ok(());
            }
            match self.directions[from.index()].pop() {
                Some(leaving) => send(to, leaving),
                None => return Ok(()),
            }
        }
    }

    /// Whether the pieces of a side that wait for room or for a held piece have reached the bounds,
    /// so that no more of its stream is read. `out` is the queue to the other side.
    #[must_use]
    pub fn is_paused(&self, side: Side, out: &Outgoing) -> bool {
        let direction = &self.directions[side.index()];
        let Bounds { queued_bytes, queued_messages } = self.bounds;
        out.is_full()
            || direction.bytes >= queued_bytes
            || direction.queue.len() + direction.urgent.len() >= queued_messages
    }

    /// Whether any piece of a side is held.
    #[must_use]
    pub fn is_holding(&self, side: Side) -> bool {
        let is_held =
            |last: &Reported<P>| last.side == side && matches!(last.state, PieceState::Held(_));
        self.directions[side.index()].is_holding() || self.reported.as_ref().is_some_and(is_held)
    }

    /// Whether `is` returns true for any queued piece of either side. The piece
    /// [reported](Self::reported) last is not queued yet and is not checked.
    pub fn keeps(&self, is: impl Fn(&P) -> bool) -> bool {
        let queued = self.directions.iter().flat_map(|direction| &direction.queue);
        queued.filter_map(|queued| queued.piece.as_ref()).any(is)
    }

    /// The number of bytes from a side that have not left yet. `out` is the queue to the other
    /// side.
    #[must_use]
    pub fn kept_bytes(&self, side: Side, out: &Outgoing) -> usize {
        self.directions[side.index()].bytes.saturating_add(out.overflow_bytes())
    }

    /// Checks how much of a stream has arrived while the relay does not read it.
    ///
    /// # Errors
    /// The limit on unread bytes.
    pub fn check_unread(&self, unread: usize) -> Result<()> {
        let max = self.bounds.queued_bytes;
        if unread <= max {
            return Ok(());
        }
        Err(Error::limit("bytes waiting while the queue is full", max as u64, unread as u64))
    }

    /// Forwards the rest of a side's stream unread.
    pub fn set_raw(&mut self, side: Side) {
        self.directions[side.index()].is_raw = true;
    }

    /// Whether the rest of a side's stream is forwarded unread.
    #[must_use]
    pub fn is_raw(&self, side: Side) -> bool {
        self.directions[side.index()].is_raw
    }

    /// Checks that a message may be injected into a side's stream.
    ///
    /// # Errors
    /// [`SendError::Unread`] if that stream is forwarded unread.
    pub fn check_readable(&self, side: Side) -> Result<(), SendError> {
        match self.is_raw(side) {
            true => Err(SendError::Unread),
            false => Ok(()),
        }
    }

    /// The maximum number of bytes of an unread stream to forward at once.
    #[must_use]
    pub fn max_raw_bytes(&self) -> usize {
        self.bounds.queued_bytes.clamp(1, MAX_RAW_BYTES)
    }
}

impl<P> Direction<P> {
    fn push(&mut self, queued: Queued<P>, overtakes: bool) {
        self.bytes += queued.bytes.len();
        match overtakes {
            true => self.urgent.push_back(queued),
            false => self.queue.push_back(queued),
        }
    }

    fn pop(&mut self) -> Option<Leaving<P>> {
        let overtakes = !self.urgent.is_empty();
        let queue = if overtakes { &mut self.urgent } else { &mut self.queue };
        if matches!(queue.front()?.state, PieceState::Held(_)) {
            return None;
        }
        let Queued { piece, bytes, state, .. } = queue.pop_front()?;
        let PieceState::Decided(decision) = state else { return None };
        self.bytes -= bytes.len();
        Some(Leaving { piece, bytes, decision, overtakes })
    }

    /// The entries that can be the held piece, if it is in the queue. Searching the whole queue
    /// would be slow with thousands of held pieces.
    fn queued_at(&mut self, id: HoldId) -> impl Iterator<Item = &mut Queued<P>> {
        let from = self.queue.partition_point(|queued| queued.holds < id.0);
        self.queue.range_mut(from..).take_while(move |queued| queued.holds == id.0)
    }

    fn is_holding(&self) -> bool {
        self.queue.iter().any(|queued| matches!(queued.state, PieceState::Held(_)))
    }
}

fn check_decision<P>(
    piece: &P,
    decision: &Decision<'_>,
    check: impl FnOnce(&P, &Decision<'_>) -> Result<(), SendError>,
) -> Result<(), SendError> {
    if *decision == Decision::AsIs { Ok(()) } else { check(piece, decision) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Side = Side::Client;

    fn small() -> (Forwarding<u8>, Outgoing) {
        let bounds = Bounds { queued_bytes: 4, queued_messages: 8 };
        (Forwarding::new(bounds), Outgoing::new(bounds))
    }

    fn arrive(forwarding: &mut Forwarding<u8>, length: u8) {
        forwarding.report(FROM, length, false);
        settle(forwarding);
    }

    fn settle(forwarding: &mut Forwarding<u8>) {
        forwarding.settle(|_, length| vec![*length; (*length).into()]);
    }

    fn fill(forwarding: &mut Forwarding<u8>, out: &mut Outgoing) -> Result<()> {
        forwarding.fill(FROM, out, |out, leaving| match leaving.decision {
            Decision::AsIs => out.forward(leaving.bytes),
            Decision::Instead(bytes) => out.forward(bytes.into_owned()),
            Decision::Drop => {}
        })
    }

    fn sent(out: &mut Outgoing) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| out.pop()).collect()
    }

    fn allow(_: &u8, _: &Decision<'_>) -> Result<(), SendError> {
        Ok(())
    }

    #[test]
    fn the_last_decision_wins_and_a_refused_one_leaves_the_piece_unchanged() {
        let (mut forwarding, mut out) = small();
        assert!(forwarding.decide(Decision::Drop, allow).is_err());
        forwarding.report(FROM, 1, false);
        forwarding.decide(Decision::Drop, allow).unwrap();
        forwarding.decide(Decision::instead(&[9]), allow).unwrap();
        settle(&mut forwarding);
        assert!(forwarding.hold().is_err(), "it is no longer the last piece");
        forwarding.report(FROM, 2, false);
        forwarding.decide(Decision::Drop, allow).unwrap();
        let refused = forwarding.decide(Decision::Drop, |_, _| Err(SendError::Unread));
        assert!(refused.is_err());
        settle(&mut forwarding);
        fill(&mut forwarding, &mut out).unwrap();
        assert_eq!(sent(&mut out), [vec![9], vec![2; 2]]);
    }

    #[test]
    fn a_piece_waits_for_room() {
        let (mut forwarding, mut out) = small();
        for length in [3, 2, 1] {
            arrive(&mut forwarding, length);
        }
        fill(&mut forwarding, &mut out).unwrap();
        assert!(forwarding.is_paused(FROM, &out) && out.check_room(0).is_err());
        assert_eq!(forwarding.kept_bytes(FROM, &out), 3);
        assert_eq!(sent(&mut out), [vec![3; 3]]);
        fill(&mut forwarding, &mut out).unwrap();
        assert!(!forwarding.is_paused(FROM, &out));
        assert_eq!(sent(&mut out), [vec![2; 2], vec![1]]);
        arrive(&mut forwarding, 5);
        let error = fill(&mut forwarding, &mut out).unwrap_err();
        assert_eq!(error.to_string(), "wanted at most 4 (queued bytes), found 5");
        let error = forwarding.check_unread(5).unwrap_err();
        assert_eq!(
            error.to_string(),
            "wanted at most 4 (bytes waiting while the queue is full), found 5"
        );
        forwarding.set_raw(FROM);
        assert!(forwarding.check_readable(FROM).is_err());
        assert!(forwarding.check_readable(FROM.other()).is_ok());
    }

    #[test]
    fn pieces_leave_in_order_once_the_held_ones_before_them_are_released() {
        let (mut forwarding, mut out) = small();
        forwarding.report(FROM, 1, false);
        let first = forwarding.hold().unwrap();
        assert_eq!(forwarding.hold().unwrap(), first, "holding twice changes nothing");
        settle(&mut forwarding);
        forwarding.report(FROM, 2, false);
        let second = forwarding.hold().unwrap();
        settle(&mut forwarding);
        assert!(!forwarding.is_paused(FROM, &out));
        arrive(&mut forwarding, 1);
        forwarding.report(FROM, 3, true);
        settle(&mut forwarding);
        assert!(forwarding.is_paused(FROM, &out), "the bound is reached");
        fill(&mut forwarding, &mut out).unwrap();
        assert_eq!(sent(&mut out), [vec![3; 3]], "an urgent piece overtakes");
        forwarding.release(second, Decision::AsIs, allow).unwrap();
        fill(&mut forwarding, &mut out).unwrap();
        assert_eq!(sent(&mut out), [[0; 0]; 0]);
        assert!(forwarding.release(first, Decision::Drop, |_, _| Err(SendError::Unread)).is_err());
        forwarding.release(first, Decision::instead(&[7]), allow).unwrap();
        assert!(forwarding.release(first, Decision::AsIs, allow).is_err(), "it is released");
        fill(&mut forwarding, &mut out).unwrap();
        assert_eq!(sent(&mut out), [vec![7], vec![2; 2], vec![1]]);
        assert_eq!(forwarding.kept_bytes(FROM, &out), 0);
    }
}
