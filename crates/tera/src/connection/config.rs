//! The settings of clients, servers and relays.

use std::collections::HashSet;
use std::time::Duration;

use worldwire_core::connection::Bounds;
use worldwire_core::{Error, Result};

use crate::crypt::exchange::Variant;
use crate::frame::Header;
use crate::integrity;

/// Settings of a client or a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// How the session derives its ciphers from the keys. Default: patch 45 and later.
    pub variant: Variant,
    /// The time limit for each step of the key exchange. Default 5 s.
    pub step_time: Duration,
    /// The time limit for a message, from its first byte to its last. Default 30 s.
    pub message_time: Duration,
    /// How long a client may be silent after the key exchange; `None` for no limit. Servers only.
    /// Default 120 s.
    pub idle_time: Option<Duration>,
    /// The opcodes of the messages that carry a counter and checksum. A client overwrites both
    /// fields; see [`integrity`]. A server ignores this setting. Default: none.
    pub integrity: HashSet<u16>,
    /// Limits on the queue for the other side.
    pub bounds: Bounds,
}

/// Settings of a relay.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// How the session derives its ciphers from the keys. If `None`, the relay detects it from the
    /// client's first message, as an observer does. Default: none.
    pub variant: Option<Variant>,
    /// The opcodes of the client messages that carry a counter and checksum; see
    /// [`integrity`](crate::integrity). They can be set later with
    /// [`set_integrity`](super::Sender::set_integrity). Default: none.
    pub integrity: HashSet<u16>,
    /// Limits on the queue for each side.
    pub bounds: Bounds,
    /// The time limit for the whole key exchange. Default 20 s, longer than the peers wait.
    pub setup_time: Duration,
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

impl Default for RelayConfig {
    fn default() -> Self {
        Self {
            variant: None,
            integrity: HashSet::new(),
            bounds: Bounds::default(),
            setup_time: Duration::from_secs(20),
        }
    }
}

/// Whether a client message carries a counter and checksum.
pub(super) fn signs(listed: &HashSet<u16>, message: &[u8]) -> bool {
    matches!(Header::peek(message), Ok(Some(Header { opcode, .. })) if listed.contains(&opcode))
}

/// Checks that a message that carries a counter and checksum has room for them.
pub(super) fn check_signed(message: &[u8]) -> Result<()> {
    if message.len() < integrity::HEADER_BYTES {
        let found = format!("a message of {} bytes", message.len());
        return Err(Error::value("room for a counter and checksum after the opcode", found));
    }
    Ok(())
}
