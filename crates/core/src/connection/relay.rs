//! The relay role: decisions about pieces, and messages that the relay adds.

use std::borrow::Cow;

use super::{SendError, Sender};
use crate::Side;

/// What a relay does with a piece that it received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Decision<'b> {
    /// Forward it unchanged.
    #[default]
    AsIs,
    /// Forward these bytes in its place: a whole message of the family, unencrypted.
    Instead(Cow<'b, [u8]>),
    /// Forward nothing.
    Drop,
}

impl<'b> Decision<'b> {
    /// Forwards these bytes instead of the piece.
    pub fn instead(bytes: impl Into<Cow<'b, [u8]>>) -> Self {
        Self::Instead(bytes.into())
    }

    /// The same decision with owned bytes.
    #[must_use]
    pub fn into_owned(self) -> Decision<'static> {
        match self {
            Self::AsIs => Decision::AsIs,
            Self::Instead(bytes) => Decision::Instead(Cow::Owned(bytes.into_owned())),
            Self::Drop => Decision::Drop,
        }
    }
}

/// Identifies a held piece within a connection; [`Forward::hold`] returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HoldId(pub(super) u64);

/// A relay's sender, which decides on the pieces that pass.
///
/// A relay reads both streams like an observer and encrypts them again with separate cipher states,
/// counters and clocks. Every [`Event::Received`](super::Event::Received) allows a decision.
/// Without one, the piece is forwarded unchanged at the next call to the connection. If nothing is
/// changed, the bytes on both sides are identical wherever the family allows that; each machine
/// documents it. The [module](super#relays) describes how pieces are held.
///
/// A relay forwards streams that it cannot read: after an [`Event::Fault`](super::Event::Fault) the
/// rest of that stream passes unchanged. A connection that the family cannot relay at all, such as
/// an encrypted one without its key, is closed with a fault that names the reason.
///
/// Other roles refuse all commands.
pub trait Forward: Sender {
    /// Decides on the piece received last. The last decision wins. A decision after
    /// [`hold`](Self::hold) releases the piece.
    ///
    /// # Errors
    /// [`Encode`](SendError::Encode) if the bytes are not one whole message;
    /// [`Unchangeable`](SendError::Unchangeable) for pieces of setup;
    /// [`NoPiece`](SendError::NoPiece), [`Role`](SendError::Role) and
    /// [`Closed`](SendError::Closed). The piece is then forwarded unchanged unless another decision
    /// follows.
    fn forward(&mut self, decision: Decision<'_>) -> Result<(), SendError>;

    /// Holds the piece received last, and with it everything that its side sends later, until it is
    /// [released](Self::release). Holding a piece twice returns the same ID.
    ///
    /// # Errors
    /// [`NoPiece`](SendError::NoPiece), [`Role`](SendError::Role), [`Closed`](SendError::Closed).
    fn hold(&mut self) -> Result<HoldId, SendError>;

    /// Decides on a held piece. It leaves at the next call to the connection, or, while a piece
    /// before it is held, together with that piece.
    ///
    /// # Errors
    /// [`NotHeld`](SendError::NotHeld), and the errors of [`forward`](Self::forward). If the
    /// release is refused, the piece stays held.
    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError>;
}

/// A relay's sender that can also add messages.
pub trait Inject: Forward {
    /// Sends an additional message to a side, after everything forwarded to it so far and before
    /// held pieces. It must be a whole message of the family, unencrypted, as the other side would
    /// send it.
    ///
    /// The piece received last has not been forwarded yet, even if it has been decided on, so the
    /// message is sent before it. To send a message after a piece, inject it at the next event.
    ///
    /// # Errors
    /// [`NotEstablished`](SendError::NotEstablished), [`Encode`](SendError::Encode) if the bytes
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
