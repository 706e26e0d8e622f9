//! What may go wrong for a client.

use core::fmt;
use std::io;
use std::sync::Arc;

use worldwire_core::Error;
use worldwire_ki::LoginError;
use worldwire_net::End;

/// The outcome of what a client wants.
pub type Result<T> = core::result::Result<T, ClientError>;

/// Why a client did not get what it asked for.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server cannot be reached.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// Where.
        address: String,
        /// What the system says.
        error: Arc<io::Error>,
    },
    /// The server said nothing, or nothing that a login server says first.
    #[error("{address} offered no session in time: wanted a login server")]
    NoOffer {
        /// Where.
        address: String,
    },
    /// The server hung up before there was a session, as servers do that have no room.
    #[error("{address} let nobody in: {end}; its limits may be reached")]
    NoSession {
        /// Where.
        address: String,
        /// How the connection ended.
        end: End,
    },
    /// The server answered with an error.
    #[error("{request}: refused with {code}")]
    Refused {
        /// What was asked.
        request: &'static str,
        /// The answer.
        code: Code,
    },
    /// The client still waits in the queue.
    #[error("still waiting in the queue, at {position}")]
    Waiting {
        /// The position that the server told last.
        position: u32,
    },
    /// The server did not answer in time.
    #[error("{request}: no answer in time")]
    Timeout {
        /// What was asked.
        request: &'static str,
    },
    /// The server threw the client out.
    #[error("thrown out: {0}")]
    ThrownOut(String),
    /// The connection is over.
    #[error("{request}: the connection is over: {end}")]
    Closed {
        /// What was asked.
        request: &'static str,
        /// How it ended.
        end: End,
    },
    /// The server's answer cannot be read.
    #[error("{request}: the answer cannot be read")]
    Unreadable {
        /// What was asked.
        request: &'static str,
    },
    /// The request cannot be sent: a text is too long.
    #[error("{request}: not sent: {error}")]
    NotSent {
        /// What was to be asked.
        request: &'static str,
        /// Why not.
        error: Box<Error>,
    },
}

impl ClientError {
    /// The error that the server named, if it did.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

/// An error that a server names: the string id of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

impl Code {
    /// Its name, if that is known.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let mut known = LoginError::NAMES.iter().filter(|(id, _)| *id != 0);
        known.find_map(|(id, name)| (id == i64::from(self.0)).then_some(name))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error {}", self.0),
        }
    }
}
