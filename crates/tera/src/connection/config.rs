//! How the two active roles behave.

use std::time::Duration;

use worldwire_core::connection::Bounds;

use crate::crypt::exchange::Variant;

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
            bounds: Bounds::default(),
        }
    }
}
