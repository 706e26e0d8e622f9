//! What a relay of two streams keeps between reading and sending.

use super::{Decision, Decisions, Forward, Lane, StreamCipher};
use crate::{Error, Result, Side};

/// Pieces on their way through a relay of two streams.
///
/// A piece is reported, decided about at the next call, and goes on when there is room for it in
/// the queue to the other side. Until then the relay reads no more of that stream: at most one
/// piece a side is held. `P` says where a piece stands, in the machine's own terms.
#[derive(Debug)]
pub struct Forwarding<P> {
    piece: Option<P>,
    decisions: Decisions,
    /// What waits for room in the queue to a side.
    held: [Option<Held>; 2],
    /// Whose streams go on as they came.
    passes: [bool; 2],
    /// How much of a stream may come in while it has to wait.
    most: usize,
}

/// Plain bytes on their way, and whether they are encrypted on the wire.
#[derive(Debug)]
struct Held {
    bytes: Vec<u8>,
    is_encrypted: bool,
}

/// How much of a stream that cannot be read goes on at a time.
const MAX_PASSED_BYTES: usize = 16 << 10;

impl<P> Forwarding<P> {
    /// Nothing is on its way. `queued_bytes` is that of the [`Bounds`](super::Bounds).
    #[must_use]
    pub fn new(queued_bytes: usize) -> Self {
        let (piece, decisions) = (None, Decisions::default());
        Self { piece, decisions, held: [None, None], passes: [false; 2], most: queued_bytes }
    }

    /// A piece is reported.
    pub fn ask(&mut self, piece: P) {
        self.piece = Some(piece);
        self.decisions.ask();
    }

    /// The piece that was reported last, until its decision is carried out.
    #[must_use]
    pub fn piece(&self) -> Option<&P> {
        self.piece.as_ref()
    }

    /// Records a decision about the last piece, if `check` allows it; otherwise the piece goes on
    /// unchanged.
    ///
    /// # Errors
    /// Value, when no piece was received; those of `check`, which is asked about every decision but
    /// [`Forward::AsIs`].
    pub fn decide(
        &mut self,
        decision: Forward<'_>,
        check: impl FnOnce(&P) -> Result<()>,
    ) -> Result<()> {
        let checked = match &self.piece {
            Some(piece) if decision != Forward::AsIs => check(piece),
            _ => Ok(()),
        };
        let decided = self.decisions.decide(if checked.is_ok() { decision } else { Forward::AsIs });
        checked.and(decided)
    }

    /// The last piece and the decision about it, once.
    pub fn settle(&mut self) -> Option<(P, Decision)> {
        self.piece.take().zip(self.decisions.take())
    }

    /// Bytes go to a side as soon as there is room: see [`fill`](Self::fill).
    pub fn hold(&mut self, to: Side, bytes: Vec<u8>, is_encrypted: bool) {
        self.held[to.index()] = Some(Held { bytes, is_encrypted });
    }

    /// Whether bytes to a side wait for room, so that no more is read of the stream they are from.
    #[must_use]
    pub fn is_holding(&self, to: Side) -> bool {
        self.held[to.index()].is_some()
    }

    /// Queues what waits for room in the lane to a side, if there is some now.
    ///
    /// # Errors
    /// The limit that it exceeds even in an empty queue.
    pub fn fill<C: StreamCipher>(&mut self, to: Side, lane: &mut Lane<C>) -> Result<()> {
        let Some(held) = self.held[to.index()].take() else { return Ok(()) };
        match lane.out.check_room(held.bytes.len()) {
            Ok(()) if held.is_encrypted => lane.push(held.bytes),
            Ok(()) => lane.out.push(held.bytes),
            Err(error) => {
                self.held[to.index()] = Some(held);
                return if lane.out.bytes() > 0 { Ok(()) } else { Err(error) };
            }
        }
        Ok(())
    }

    /// Checks that a message of the relay's own has room in the lane to a side, behind what is held
    /// for it.
    ///
    /// # Errors
    /// The limits on what may be queued. Value, when the stream it would join goes on unread.
    pub fn check_room<C>(&self, to: Side, lane: &Lane<C>, length: usize) -> Result<()> {
        if self.passes[to.other().index()] {
            return Err(Error::value("a stream that can be read", "one behind a fault"));
        }
        let waiting = self.held[to.index()].as_ref().map_or(0, |held| held.bytes.len());
        lane.out.check_room(waiting.saturating_add(length))
    }

    /// Checks that not too much has come in of a stream that has to wait.
    ///
    /// # Errors
    /// The limit "bytes behind a full queue".
    pub fn check_unread(&self, unread: usize) -> Result<()> {
        if unread <= self.most {
            return Ok(());
        }
        Err(Error::limit("bytes behind a full queue", self.most as u64, unread as u64))
    }

    /// From now on a side's stream goes on as it came.
    pub fn pass(&mut self, side: Side) {
        self.passes[side.index()] = true;
    }

    /// How much of a stream that goes on as it came is taken at a time.
    #[must_use]
    pub fn max_passed(&self) -> usize {
        self.most.clamp(1, MAX_PASSED_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Bounds;

    struct Flip;

    impl StreamCipher for Flip {
        fn apply(&mut self, bytes: &mut [u8]) {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    #[test]
    fn a_piece_waits_for_room_and_a_refused_decision_leaves_it_unchanged() {
        let bounds = Bounds { queued_bytes: 4, queued_messages: 8 };
        let mut lane = Lane { cipher: Some(Flip), ..Lane::new(bounds) };
        let mut forwarding = Forwarding::new(bounds.queued_bytes);
        assert!(forwarding.decide(Forward::Drop, |&()| Ok(())).is_err());
        forwarding.ask(());
        let refused = forwarding.decide(Forward::Drop, |()| Err(Error::value("a", "b")));
        assert!(refused.is_err());
        assert_eq!(forwarding.settle(), Some(((), Decision::AsIs)));
        assert_eq!(forwarding.settle(), None);

        let to = Side::Server;
        forwarding.hold(to, vec![0; 3], true);
        forwarding.fill(to, &mut lane).unwrap();
        forwarding.hold(to, vec![1; 2], false);
        forwarding.fill(to, &mut lane).unwrap();
        assert!(forwarding.is_holding(to) && !forwarding.is_holding(to.other()));
        assert!(forwarding.check_room(to, &lane, 0).is_err());
        assert_eq!(lane.out.pop(), Some(vec![255; 3]));
        forwarding.check_room(to, &lane, 2).unwrap();
        forwarding.fill(to, &mut lane).unwrap();
        assert_eq!((lane.out.pop(), forwarding.is_holding(to)), (Some(vec![1; 2]), false));

        forwarding.hold(to, vec![0; 5], true);
        let error = forwarding.fill(to, &mut lane).unwrap_err();
        assert_eq!(error.to_string(), "wanted at most 4 (queued bytes), found 5");
        let error = forwarding.check_unread(5).unwrap_err();
        assert_eq!(error.to_string(), "wanted at most 4 (bytes behind a full queue), found 5");
        forwarding.pass(Side::Client);
        assert!(forwarding.check_room(to, &lane, 0).is_err());
    }
}
