//! How the two active roles behave.

use std::collections::HashSet;
use std::time::Duration;

use worldwire_core::connection::Bounds;
use worldwire_core::{Error, Result};

use crate::crypt::exchange::Variant;
use crate::frame::Header;
use crate::integrity;

/// How a client or a server behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// By how much keys are turned. Default: patch 45 and later.
    pub variant: Variant,
    /// How long each step of the key exchange may take. Default 5 s.
    pub step_time: Duration,
    /// How long a message may take from its first to its last byte. Default 30 s.
    pub message_time: Duration,
    /// How long a client may be silent after the key exchange; `None` for ever. Only a server
    /// minds. Default 120 s.
    pub idle_time: Option<Duration>,
    /// The opcodes of the messages in which a client counts and signs what it sends, whatever
    /// stands there; see [`integrity`]. A server does not mind. Default: none.
    pub integrity: HashSet<u16>,
    /// How much may be queued for the other side.
    pub bounds: Bounds,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            variant: Variant::default(),
            step_time: Duration::from_secs(5),
            message_time: Duration::from_secs(30),
            idle_time: Some(Duration::from_secs(120)),
            integrity: HashSet::new(),
            bounds: Bounds::default(),
        }
    }
}

/// Whether a message of the client carries counter and checksum.
pub(super) fn signs(listed: &HashSet<u16>, message: &[u8]) -> bool {
    matches!(Header::peek(message), Ok(Some(Header { opcode, .. })) if listed.contains(&opcode))
}

/// Checks that a message that carries counter and checksum has room for them.
pub(super) fn check_signed(message: &[u8]) -> Result<()> {
    if message.len() < integrity::HEADER_BYTES {
        let found = format!("a message of {} bytes", message.len());
        return Err(Error::value("counter and checksum behind the opcode", found));
    }
    Ok(())
}
