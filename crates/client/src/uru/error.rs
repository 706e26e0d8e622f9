//! The errors of an Uru client.

use std::io;
use std::path::PathBuf;

use worldwire_core::Error;
use worldwire_net::{End, reason};
use worldwire_uru::types::NetError;

/// Why a request failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server cannot be reached.
    #[error("cannot connect to the {service} server at {address}: {}", reason(error))]
    Connect {
        /// The service.
        service: &'static str,
        /// The address that was tried.
        address: String,
        /// The operating system's error.
        error: std::sync::Arc<io::Error>,
    },
    /// The configuration has no host for the service.
    #[error("no host is known for the {0} server; set its host or the gatekeeper's")]
    NoHost(&'static str),
    /// The server closed the connection during setup: it does not offer the service, or has a
    /// different key.
    #[error("the {service} server closed the connection during setup: {end}")]
    Setup {
        /// The service.
        service: &'static str,
        /// How the connection ended.
        end: End,
    },
    /// The server answered with an error.
    #[error("{request}: refused with {}", explained(*error))]
    Refused {
        /// The request's message.
        request: &'static str,
        /// The server's error.
        error: NetError,
    },
    /// The server did not answer in time.
    #[error("{request}: no answer in time")]
    Timeout {
        /// The request's message.
        request: &'static str,
    },
    /// The server kicked the client off.
    #[error("kicked off: {}", explained(*.0))]
    KickedOff(NetError),
    /// The connection has ended.
    #[error("{request}: the connection has ended: {end}")]
    Closed {
        /// The request's message.
        request: &'static str,
        /// How it ended.
        end: End,
    },
    /// The queue of notifications is full because nobody reads them.
    #[error("too many notifications are waiting")]
    Overflow,
    /// The server answered with a different message.
    #[error("{request}: answered with {found}, which is not its reply")]
    Unexpected {
        /// The request's message.
        request: &'static str,
        /// The message received instead.
        found: &'static str,
    },
    /// The server's answer is malformed.
    #[error("{request}: {error}")]
    Malformed {
        /// The request's message.
        request: &'static str,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// The request cannot be sent: a text is too long, or the send queue is full.
    #[error("{request}: not sent: {error}")]
    NotSent {
        /// The request's message.
        request: &'static str,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// A file differs from its manifest.
    #[error("{name}: wanted {wanted}, found {found}")]
    Download {
        /// The server's name for the file.
        name: String,
        /// What the manifest says.
        wanted: String,
        /// What was received.
        found: String,
    },
    /// A file cannot be written.
    #[error("{}: {}", path.display(), reason(error))]
    Io {
        /// The file's path.
        path: PathBuf,
        /// The operating system's error.
        error: std::sync::Arc<io::Error>,
    },
}

/// An error of the protocol, with the text that game clients show for it.
fn explained(error: NetError) -> String {
    match error.text() {
        Some(text) => format!("{error}: game clients show \"{text}\""),
        None => error.to_string(),
    }
}

impl ClientError {
    pub(super) fn malformed(request: &'static str) -> impl Fn(Error) -> Self {
        move |error| Self::Malformed { request, error: error.into() }
    }

    /// Makes errors for a file with this name from what was wanted and found.
    pub(super) fn download(name: &str) -> impl Fn(String, String) -> Self {
        move |wanted, found| Self::Download { name: name.to_owned(), wanted, found }
    }

    /// The server's error, if it sent one.
    #[must_use]
    pub fn net_error(&self) -> Option<NetError> {
        match self {
            Self::Refused { error, .. } | Self::KickedOff(error) => Some(*error),
            _ => None,
        }
    }
}
