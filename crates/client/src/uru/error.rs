//! The errors of an Uru client.

use std::io;
use std::path::PathBuf;

use worldwire_core::Error;
use worldwire_core::connection::CloseReason;
use worldwire_net::{End, reason};
use worldwire_uru::types::NetError;

use super::games::PlayError;

/// Why a request failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The host name has no address.
    #[error(
        "cannot find {host}, the host of the {service} server; check the name and this machine's \
         network"
    )]
    HostNotFound {
        /// The service.
        service: &'static str,
        /// The name.
        host: String,
    },
    /// The server cannot be reached.
    #[error(
        "cannot connect to the {service} server at {address}: {}{}",
        reason(error),
        unreachable(error)
    )]
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
    /// The connection ended during setup: the server is not an Uru server, does not offer the service,
    /// or has a different key.
    #[error("{}", not_set_up(service, address, end))]
    Setup {
        /// The service.
        service: &'static str,
        /// The address that was tried.
        address: String,
        /// How the connection ended.
        end: End,
    },
    /// The server replied with an error.
    #[error("{request}: refused with {}{}", explained(*error), advice(request, *error))]
    Refused {
        /// The request's message.
        request: &'static str,
        /// The server's error.
        error: NetError,
    },
    /// The server did not reply in time.
    #[error("{request}: no reply in time")]
    Timeout {
        /// The request's message.
        request: &'static str,
    },
    /// The server kicked the client off.
    #[error("kicked off: {}", explained(*.0))]
    KickedOff(NetError),
    /// The connection has ended.
    #[error("{request}: the connection has ended: {end}{}", hinted(*hint))]
    Closed {
        /// The request's message.
        request: &'static str,
        /// How it ended.
        end: End,
        /// A likely cause, such as another shard's keys.
        hint: Option<&'static str>,
    },
    /// The queue of notifications is full because nobody is reading them.
    #[error("too many notifications are waiting to be read")]
    Overflow,
    /// The server replied with an unexpected message.
    #[error("{request}: the server sent {found} instead of the reply")]
    Unexpected {
        /// The request's message.
        request: &'static str,
        /// The message received instead.
        found: &'static str,
    },
    /// The server's reply is malformed.
    #[error("{request}: {error}")]
    Malformed {
        /// The request's message.
        request: &'static str,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// The request cannot be sent: a string is too long, or the send queue is full.
    #[error("{request}: not sent: {error}")]
    NotSent {
        /// The request's message.
        request: &'static str,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// The player cannot take this action in a game.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// A file differs from its manifest.
    #[error("{name}: wanted {wanted}, found {found}")]
    Download {
        /// The server's name for the file.
        name: String,
        /// What the manifest says.
        wanted: String,
        /// What the client received.
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

/// A protocol error, with the text that game clients show for it.
fn explained(error: NetError) -> String {
    match error.text() {
        Some(text) => format!("{error}: game clients show \"{text}\""),
        None => error.to_string(),
    }
}

/// What to do about an address that cannot be reached.
fn unreachable(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "; no program is listening there: check that the shard is running, and check its \
             address and port"
        }
        io::ErrorKind::TimedOut => {
            "; nothing responds there: check the address, the port and any firewalls in between"
        }
        _ => "",
    }
}

/// Why a connection was not set up and what to do.
fn not_set_up(service: &str, address: &str, end: &End) -> String {
    match end {
        End::Fault { error, .. } => format!(
            "the server at {address} does not respond like an Uru {service} server: {error}; \
             check the address and port"
        ),
        End::Closed(CloseReason::Timeout(_)) => format!(
            "the server at {address} does not respond like an Uru {service} server: {end}; check \
             the address and port"
        ),
        _ => format!(
            "the {service} server at {address} closed the connection during setup: {end}; check that \
             it is an Uru server, that server.ini has its keys, and that it accepts the client's build. \
             If it is a proxy, check that the server behind it is running"
        ),
    }
}

fn hinted(hint: Option<&str>) -> String {
    hint.map_or_else(String::new, |hint| format!("; {hint}"))
}

/// What to do about a refused login.
fn advice(request: &str, error: NetError) -> &'static str {
    if request != "AcctLoginRequest" {
        return "";
    }
    match error {
        NetError::AuthenticationFailed | NetError::AccountNotFound => {
            "; check the account name and the password"
        }
        NetError::LoginDenied => {
            "; the shard is closed to players; try again when its operator has opened it"
        }
        NetError::AccountBanned => "; only the shard's operator can lift the ban",
        NetError::TooManyFailedLogins => "; wait a minute, and check the password",
        _ => "",
    }
}

impl ClientError {
    pub(super) fn malformed(request: &'static str) -> impl Fn(Error) -> Self {
        move |error| Self::Malformed { request, error: error.into() }
    }

    /// Makes errors for a file with this name, given what was wanted and what was found.
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
