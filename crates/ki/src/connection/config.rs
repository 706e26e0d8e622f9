//! How the two active roles behave.

use std::sync::Arc;
use std::time::Duration;

use crate::control::SessionTime;
use crate::schema::Protocols;

/// What shows that the other side lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// An answer to the keep-alive, as documented.
    Answers,
    /// Anything at all it sends. For servers that face clients whose answers are not proven.
    AnyTraffic,
}

/// What a server does with a control message whose opcode it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownControl {
    /// Tell the driver, and go on.
    Ignore,
    /// Close the connection.
    Close,
}

/// What both roles need.
#[derive(Clone, Debug)]
pub struct Common {
    /// The time since 1970 at the moment that the driver's clock counts from.
    pub epoch: Duration,
    /// How often to ask whether the other side lives; an answer has to come before the next one
    /// is due. Default 10 s for clients, 60 s for servers.
    pub keep_alive_every: Duration,
    /// What counts as an answer. Default [`Life::Answers`].
    pub life: Life,
    /// How many bytes a frame's body may have. Default 4 MiB.
    pub most_frame_bytes: u32,
    /// How many bytes may wait to be sent. Default 8 MiB.
    pub most_queued_bytes: usize,
    /// How many frames may wait to be sent. Default 1000.
    pub most_queued_frames: usize,
}

impl Common {
    fn new(epoch: Duration, keep_alive_every: Duration) -> Self {
        Self {
            epoch,
            keep_alive_every,
            life: Life::Answers,
            most_frame_bytes: 4 << 20,
            most_queued_bytes: 8 << 20,
            most_queued_frames: 1000,
        }
    }

    /// The wall clock at a moment of the driver's.
    pub(super) fn clock(&self, now: Duration) -> SessionTime {
        SessionTime::since_1970(self.epoch.saturating_add(now))
    }
}

/// How a server treats a connection.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Clock, heartbeat, bounds.
    pub common: Common,
    /// Put "no encryption" into offers, as official servers of today do; else nothing. Default
    /// true.
    pub offer_crypto_block: bool,
    /// How long a client may take to accept a session. Default 15 s.
    pub accept_time: Duration,
    /// Keep messages that come before the session is accepted, and deliver them then; else they
    /// are ignored. Default true.
    pub keep_early: bool,
    /// How many frames to keep at most; more close the connection. Default 256.
    pub most_early_frames: usize,
    /// How many bytes of them. Default 1 MiB.
    pub most_early_bytes: usize,
    /// What to do with unknown control messages. Default: ignore.
    pub unknown_control: UnknownControl,
    /// Where access levels of messages stand. Without it, and for messages it does not know,
    /// everything is let through.
    pub protocols: Option<Arc<Protocols>>,
    /// The server's own start, on the driver's clock: keep-alives tell how long ago it was.
    pub started: Duration,
}

impl ServerConfig {
    /// The defaults. `epoch` is the time since 1970 at zero of the driver's clock.
    #[must_use]
    pub fn new(epoch: Duration) -> Self {
        Self {
            common: Common::new(epoch, Duration::from_secs(60)),
            offer_crypto_block: true,
            accept_time: Duration::from_secs(15),
            keep_early: true,
            most_early_frames: 256,
            most_early_bytes: 1 << 20,
            unknown_control: UnknownControl::Ignore,
            protocols: None,
            started: Duration::ZERO,
        }
    }
}

/// How a client treats a connection.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Clock, heartbeat, bounds.
    pub common: Common,
    /// Put "no encryption" into accepts of offers that have a crypto block. Default true.
    pub accept_crypto_block: bool,
    /// Put a trailer behind keep-alives; the retail client does not. Default false.
    pub keep_alive_trailer: bool,
    /// How long the server may take to offer a session. Default 15 s.
    pub offer_time: Duration,
}

impl ClientConfig {
    /// The defaults. `epoch` is the time since 1970 at zero of the driver's clock.
    #[must_use]
    pub fn new(epoch: Duration) -> Self {
        Self {
            common: Common::new(epoch, Duration::from_secs(10)),
            accept_crypto_block: true,
            keep_alive_trailer: false,
            offer_time: Duration::from_secs(15),
        }
    }
}
