//! Why a command to a connection was refused.

use core::fmt;

use crate::Error;

/// Why a connection refused a command of [`Sender`](super::Sender), [`Forward`](super::Forward),
/// [`Inject`](super::Inject) or the family. A refused command changes nothing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SendError {
    /// The connection has ended. Open another one.
    Closed,
    /// This role has no such command; names the roles that have it.
    Role(&'static str),
    /// Setup is not complete. Wait until the connection is established.
    NotEstablished,
    /// The queue has reached this limit because the peer does not read. Send less, or close the
    /// connection.
    QueueFull(Error),
    /// The message cannot be encoded, is not exactly one message, or is not one that this side
    /// sends.
    Encode(Error),
    /// Relays: no piece waits for a decision.
    NoPiece,
    /// Relays: no piece with this ID is held; it was already released.
    NotHeld,
    /// Relays: this piece must be forwarded unchanged.
    Unchangeable(&'static str),
    /// Relays: this stream is forwarded unread after a fault, so nothing can be added to it.
    Unread,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the connection is closed"),
            Self::Role(who) => write!(f, "only {who} can do this"),
            Self::NotEstablished => {
                f.write_str("setup is not complete; wait until the connection is established")
            }
            Self::QueueFull(error) | Self::Encode(error) => error.fmt(f),
            Self::NoPiece => f.write_str("no piece is waiting for a decision"),
            Self::NotHeld => f.write_str("no piece with this ID is held"),
            Self::Unchangeable(piece) => write!(f, "{piece} must be forwarded unchanged"),
            Self::Unread => f.write_str("this stream has been forwarded unread since a fault"),
        }
    }
}

impl core::error::Error for SendError {}

impl SendError {
    /// Converts it to an [`Error`], for callers that report all errors alike.
    #[must_use]
    pub fn into_error(self) -> Error {
        match self {
            Self::QueueFull(error) | Self::Encode(error) => error,
            other => Error::invalid(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_stays_a_limit() {
        let limit = Error::limit("queued bytes", 4, 5);
        assert_eq!(SendError::QueueFull(limit.clone()).into_error(), limit);
        let closed = SendError::Closed.into_error().to_string();
        assert!(closed.ends_with("the connection is closed"), "{closed}");
    }
}
