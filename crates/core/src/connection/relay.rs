//! The role that stands between two peers.

use crate::{Error, Result, Side};

use super::Sender;

/// What becomes of a piece that a relay received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward<'b> {
    /// It goes on unchanged.
    AsIs,
    /// These bytes go on in its place: a whole message of the family, plain.
    Instead(&'b [u8]),
    /// Nothing goes on.
    Drop,
}

/// The sender of a relay: it decides about pieces and adds messages of its own.
///
/// A relay reads both streams like an observer and encrypts again with cipher states, counters and
/// clocks of its own. Every [`Event::Received`](super::Event::Received) asks for a decision; a piece
/// nobody decided about goes on unchanged at the next call to the connection. With nothing changed
/// the bytes on both sides are the same wherever the family allows that; each machine says so in
/// its documentation.
///
/// What a relay cannot read it forwards: after an [`Event::Fault`](super::Event::Fault) the rest of
/// that stream goes on as it came. What a family cannot relay at all (an encrypted connection
/// without its key) is refused with an error that names the reason, and the connection closes.
///
/// Each side ends on its own: an [`Input::End`](super::Input::End) leaves the other direction open,
/// and the relay closes when both have ended. Other roles refuse both commands.
pub trait Relay: Sender {
    /// Decides about the piece that was received last. The last decision counts.
    ///
    /// # Errors
    /// Value, when this is no relay, no piece was received, the bytes are not one whole message, or
    /// the piece belongs to setup and must go on unchanged. The piece then goes on unchanged unless
    /// another decision follows.
    fn forward(&mut self, decision: Forward<'_>) -> Result<()>;

    /// Sends a message of the relay's own to a side, behind what was forwarded to it so far. It is
    /// a whole message of the family, plain, as the other side would send it.
    ///
    /// The piece that was received last has not gone on yet, decided about or not: the message goes
    /// in front of it. One that is to follow a piece is injected at the next event.
    ///
    /// # Errors
    /// Value, when this is no relay, setup is not complete, the connection is closed, or the bytes
    /// are not one whole message; a limit, when too much is queued.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<()>;
}

/// The decision about the piece that was received last.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    pending: Option<Decision>,
}

/// A decision that is carried out now: an owned [`Forward`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// The piece goes on unchanged.
    #[default]
    AsIs,
    /// These bytes go on in its place.
    Instead(Vec<u8>),
    /// Nothing goes on.
    Drop,
}

impl Decisions {
    /// A piece is reported: it can be decided about.
    pub fn ask(&mut self) {
        self.pending = Some(Decision::AsIs);
    }

    /// Whether a piece waits for its decision to be carried out.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Records a decision.
    ///
    /// # Errors
    /// Value, when no piece was received.
    pub fn decide(&mut self, decision: Forward<'_>) -> Result<()> {
        let Some(pending) = &mut self.pending else {
            return Err(Error::value("a piece to decide about", "none"));
        };
        *pending = match decision {
            Forward::AsIs => Decision::AsIs,
            Forward::Instead(bytes) => Decision::Instead(bytes.to_vec()),
            Forward::Drop => Decision::Drop,
        };
        Ok(())
    }

    /// The decision about the piece, once; `None` when there is no piece. For families that forward
    /// several pieces at once, and have to know whether all are unchanged.
    pub fn take(&mut self) -> Option<Decision> {
        self.pending.take()
    }

    /// The decision about the piece, once; `bytes` are its own. `None` when there is no piece;
    /// inside it `None` for one that was dropped.
    pub fn settle(&mut self, bytes: impl FnOnce() -> Vec<u8>) -> Option<Option<Vec<u8>>> {
        Some(match self.take()? {
            Decision::AsIs => Some(bytes()),
            Decision::Instead(bytes) => Some(bytes),
            Decision::Drop => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_decision_counts_and_none_means_unchanged() {
        let mut decisions = Decisions::default();
        assert!(decisions.decide(Forward::Drop).is_err());
        assert_eq!(decisions.settle(|| vec![1]), None);
        decisions.ask();
        assert_eq!(decisions.settle(|| vec![1]), Some(Some(vec![1])));
        decisions.ask();
        decisions.decide(Forward::Drop).unwrap();
        decisions.decide(Forward::Instead(&[2])).unwrap();
        assert_eq!(decisions.settle(|| vec![1]), Some(Some(vec![2])));
        decisions.ask();
        decisions.decide(Forward::Drop).unwrap();
        assert_eq!(decisions.settle(|| vec![1]), Some(None));
        assert!(!decisions.is_pending());
        decisions.ask();
        assert_eq!((decisions.take(), decisions.take()), (Some(Decision::AsIs), None));
    }
}
