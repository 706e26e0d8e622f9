//! The role that stands between two peers.

use std::borrow::Cow;

use super::{SendError, Sender};
use crate::Side;

/// What happens to a piece that a relay received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Decision<'b> {
    /// It is forwarded unchanged.
    #[default]
    AsIs,
    /// These bytes are forwarded in its place: a whole message of the family, plain.
    Instead(Cow<'b, [u8]>),
    /// Nothing is forwarded.
    Drop,
}

impl<'b> Decision<'b> {
    /// Forwards these bytes instead of the piece.
    pub fn instead(bytes: impl Into<Cow<'b, [u8]>>) -> Self {
        Self::Instead(bytes.into())
    }

    /// The same decision with bytes of its own.
    #[must_use]
    pub fn into_owned(self) -> Decision<'static> {
        match self {
            Self::AsIs => Decision::AsIs,
            Self::Instead(bytes) => Decision::Instead(Cow::Owned(bytes.into_owned())),
            Self::Drop => Decision::Drop,
        }
    }
}

/// A piece that a relay holds; [`Forward::hold`] returns it. Unique within a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HoldId(pub(super) u64);

/// The sender of a relay: it decides about the pieces that pass.
///
/// A relay reads both streams like an observer and encrypts again with cipher states, counters and
/// clocks of its own. Every [`Event::Received`](super::Event::Received) asks for a decision. A piece
/// nobody decided about is forwarded unchanged at the next call to the connection. With nothing
/// changed the bytes on both sides are the same wherever the family allows that; each machine says
/// so in its documentation. The [module](super#relays) says how pieces are held.
///
/// A relay forwards what it cannot read: after an [`Event::Fault`](super::Event::Fault) the rest of
/// that stream passes as it came. What a family cannot relay at all (an encrypted connection
/// without its key) is refused with an error that names the reason, and the connection closes.
///
/// Other roles refuse all commands.
pub trait Forward: Sender {
    /// Decides about the piece that was received last. The last decision wins; one after
    /// [`hold`](Self::hold) releases the piece.
    ///
    /// # Errors
    /// [`Encode`](SendError::Encode), when the bytes are not one whole message;
    /// [`Unchangeable`](SendError::Unchangeable), for pieces of setup; also
    /// [`NoPiece`](SendError::NoPiece), [`Role`](SendError::Role) and
    /// [`Closed`](SendError::Closed). The piece is then forwarded unchanged unless another decision
    /// follows.
    fn forward(&mut self, decision: Decision<'_>) -> Result<(), SendError>;

    /// Holds the piece that was received last until it is [released](Self::release), and with it
    /// everything that this side sends later. Holding a piece twice returns the same id.
    ///
    /// # Errors
    /// [`NoPiece`](SendError::NoPiece), [`Role`](SendError::Role), [`Closed`](SendError::Closed).
    fn hold(&mut self) -> Result<HoldId, SendError>;

    /// Decides about a piece that is held. It leaves at the next call to the connection if no
    /// piece before it is held, or else together with that one.
    ///
    /// # Errors
    /// [`NotHeld`](SendError::NotHeld), and those of [`forward`](Self::forward). A piece whose
    /// release was refused stays held.
    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError>;
}

/// The sender of a relay that can add messages of its own.
pub trait Inject: Forward {
    /// Sends a message of the relay's own to a side, after what was forwarded to it so far and
    /// before pieces that are held. It is a whole message of the family, plain, as the other side
    /// would send it.
    ///
    /// The piece that was received last has not been forwarded yet, decided about or not: the
    /// message is sent before it. One that is to follow a piece is injected at the next event.
    ///
    /// # Errors
    /// [`NotEstablished`](SendError::NotEstablished), [`Encode`](SendError::Encode) when the bytes
    /// are not one whole message, [`QueueFull`](SendError::QueueFull),
    /// [`Unread`](SendError::Unread), [`Role`](SendError::Role) and [`Closed`](SendError::Closed).
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_may_borrow_its_bytes() {
        let bytes = vec![1, 2];
        assert_eq!(Decision::instead(&bytes).into_owned(), Decision::instead(bytes.clone()));
        assert_eq!(Decision::default(), Decision::AsIs);
        assert_eq!(Decision::Drop.into_owned(), Decision::Drop);
    }
}
