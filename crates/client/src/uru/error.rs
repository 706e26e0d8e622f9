//! What may go wrong for a client.

use std::io;
use std::path::PathBuf;

use worldwire_core::Error;
use worldwire_net::End;
use worldwire_uru::types::NetError;

/// Why a client did not get what it asked for.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server cannot be reached.
    #[error("cannot connect to the {service} server at {address}: {error}")]
    Connect {
        /// The service that was wanted.
        service: &'static str,
        /// Where.
        address: String,
        /// What the system says.
        error: std::sync::Arc<io::Error>,
    },
    /// The configuration does not say where the server is.
    #[error("wanted a host of the {0} server, found none: give it, or that of the gatekeeper")]
    NoHost(&'static str),
    /// The server hung up before the connection was set up: it does not serve this, or has another
    /// key.
    #[error("the {service} server closed the connection during setup: {end}")]
    Setup {
        /// The service that was wanted.
        service: &'static str,
        /// How the connection ended.
        end: End,
    },
    /// The server answered with an error.
    #[error("{request}: refused with {error}")]
    Refused {
        /// What was asked.
        request: &'static str,
        /// The answer.
        error: NetError,
    },
    /// The server did not answer in time.
    #[error("{request}: no answer in time")]
    Timeout {
        /// What was asked.
        request: &'static str,
    },
    /// The server threw the client out.
    #[error("kicked off with {0}")]
    KickedOff(NetError),
    /// The connection is over.
    #[error("{request}: the connection is over: {end}")]
    Closed {
        /// What was asked.
        request: &'static str,
        /// How it ended.
        end: End,
    },
    /// More notifications wait than there is room for, since nobody takes them.
    #[error("too many notifications are waiting")]
    Overflow,
    /// The server answered with something else.
    #[error("{request}: wanted its reply, found {found}")]
    Unexpected {
        /// What was asked.
        request: &'static str,
        /// The message that came.
        found: &'static str,
    },
    /// The server's answer cannot be read.
    #[error("{request}: {error}")]
    Malformed {
        /// What was asked.
        request: &'static str,
        /// What is wrong with the answer.
        error: Box<Error>,
    },
    /// The request cannot be sent: a text is too long, or too much is queued.
    #[error("{request}: not sent: {error}")]
    NotSent {
        /// What was to be asked.
        request: &'static str,
        /// Why not.
        error: Box<Error>,
    },
    /// A file is not what its manifest says.
    #[error("{name}: wanted {wanted}, found {found}")]
    Download {
        /// The file, as the server names it.
        name: String,
        /// What the manifest says.
        wanted: String,
        /// What came.
        found: String,
    },
    /// A file cannot be written.
    #[error("{}: {error}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system says.
        error: std::sync::Arc<io::Error>,
    },
}

impl ClientError {
    /// The error that the server named, if it did.
    #[must_use]
    pub fn net_error(&self) -> Option<NetError> {
        match self {
            Self::Refused { error, .. } | Self::KickedOff(error) => Some(*error),
            _ => None,
        }
    }
}
