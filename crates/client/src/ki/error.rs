//! The errors of a KI client.

use core::fmt;
use std::io;
use std::sync::Arc;

use worldwire_core::Error;
use worldwire_ki::LoginError;
use worldwire_net::{End, reason};

/// The result of a client's request.
pub type Result<T> = core::result::Result<T, ClientError>;

/// Why a request failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server cannot be reached.
    #[error("cannot connect to {address}: {}", reason(error))]
    Connect {
        /// The address that was tried.
        address: String,
        /// The operating system's error.
        error: Arc<io::Error>,
    },
    /// The server sent either nothing or something other than a session offer.
    #[error("{address} sent no session offer in time; is it a login server?")]
    NoOffer {
        /// The server's address.
        address: String,
    },
    /// The server closed the connection before a session began, as a full server does.
    #[error(
        "{address} closed the connection before a session began: {end}; the server may be full"
    )]
    NoSession {
        /// The server's address.
        address: String,
        /// How the connection ended.
        end: End,
    },
    /// The server replied with an error.
    #[error("{request}: refused with {code}")]
    Refused {
        /// The request's message.
        request: &'static str,
        /// The server's error code.
        code: Code,
    },
    /// The client is still waiting in the queue.
    #[error("still waiting in the queue, at position {position}")]
    Waiting {
        /// The position that the server reported last.
        position: u32,
    },
    /// The server did not reply in time.
    #[error("{request}: no reply in time")]
    Timeout {
        /// The request's message.
        request: &'static str,
    },
    /// The server disconnected the client.
    #[error("disconnected by the server: {0}")]
    ThrownOut(String),
    /// The connection has ended.
    #[error("{request}: the connection has ended: {end}")]
    Closed {
        /// The request's message.
        request: &'static str,
        /// How it ended.
        end: End,
    },
    /// The server's reply is malformed.
    #[error("{request}: the reply cannot be read")]
    Unreadable {
        /// The request's message.
        request: &'static str,
    },
    /// The request cannot be encoded, usually because a string is too long.
    #[error("{request}: not sent: {error}")]
    NotSent {
        /// The request's message.
        request: &'static str,
        /// What is wrong with it.
        error: Box<Error>,
    },
}

impl ClientError {
    /// The server's error code, if it sent one.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

/// A server's error code: the string ID of the error's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

impl Code {
    /// The code's name, if it is known.
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
