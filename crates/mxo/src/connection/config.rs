//! How the roles behave.

use core::fmt;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::Bounds;

use crate::crypt::{IvSource, KnownSession, SessionKey};

/// What the margin server gave the client, and what this side encrypts with.
#[derive(Clone)]
pub struct Session {
    /// The id, which the hello carries.
    pub id: u32,
    /// The key.
    pub key: SessionKey,
    /// Where initial vectors come from.
    pub ivs: IvSource,
}

impl Session {
    /// A session. `seed` are 16 random bytes for this connection and no other: see [`IvSource`].
    #[must_use]
    pub fn new(id: u32, key: SessionKey, seed: &[u8; 16]) -> Self {
        Self { id, key, ivs: IvSource::new(seed) }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({:#x})", self.id)
    }
}

/// What clients and servers need.
#[derive(Clone, Debug)]
pub struct Common {
    /// The time since 1970 at the moment that the driver's clock counts from.
    pub epoch: Duration,
    /// How long a packet waits for its acknowledgement, so that it can go along with something
    /// else. Seven packets do not wait. Default 50 ms.
    pub ack_delay: Duration,
    /// How long a packet may be unacknowledged before it counts as lost, as long as nothing is
    /// known of the way. Later that follows from how long acknowledgements take. Default 500 ms.
    pub first_resend: Duration,
    /// The shortest such time. Default 200 ms.
    pub least_resend: Duration,
    /// The longest such time; it doubles each time that nothing is acknowledged. Default 5 s.
    pub max_resend: Duration,
    /// How long the other side may be silent. Default 30 s.
    pub idle_time: Duration,
    /// The most bytes of a packet behind its sequence word. Default 1300, as both emulators have
    /// it; the live server went up to 1322.
    pub max_payload: usize,
    /// How many packets with RPC messages may be unacknowledged. Default 64.
    pub max_in_flight: usize,
    /// How many RPC messages ahead of a missing one are kept, and sent. Default 512.
    pub max_ahead: u16,
    /// How many bytes of them are kept. Default 1 MiB.
    pub max_ahead_bytes: usize,
    /// How much may be queued for the other side, and how much may wait for acknowledgements.
    pub bounds: Bounds,
}

impl Common {
    fn new(epoch: Duration) -> Self {
        Self {
            epoch,
            ack_delay: Duration::from_millis(50),
            first_resend: Duration::from_millis(500),
            least_resend: Duration::from_millis(200),
            max_resend: Duration::from_secs(5),
            idle_time: Duration::from_secs(30),
            max_payload: 1300,
            max_in_flight: 64,
            max_ahead: 512,
            max_ahead_bytes: 1 << 20,
            bounds: Bounds::default(),
        }
    }

    /// Seconds since 1970 at a moment of the driver's.
    pub(super) fn clock(&self, now: Duration) -> u32 {
        u32::try_from(self.epoch.saturating_add(now).as_secs()).unwrap_or(u32::MAX)
    }
}

/// How a client treats a connection.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Clock, resending, bounds.
    pub common: Common,
    /// The character, as the margin server named it.
    pub character_uid: u64,
    /// What stands behind it in the hello. Default 0x384, as the client sends it.
    pub hello_unknown: u64,
    /// What stands behind the session's id in the encrypted block. Random bytes do; default zeros.
    pub block_rest: [u8; 12],
    /// How often a hello or a ping is sent again until something comes. Default 1 s.
    pub repeat_every: Duration,
    /// How long the server may take to answer (`Timer::Setup`). Default 15 s.
    pub setup_time: Duration,
    /// How long the server may be silent before a ping is sent. Default 10 s.
    pub ping_every: Duration,
}

impl ClientConfig {
    /// The defaults. `epoch` is the time since 1970 at zero of the driver's clock.
    #[must_use]
    pub fn new(epoch: Duration, character_uid: u64) -> Self {
        Self {
            common: Common::new(epoch),
            character_uid,
            hello_unknown: 0x384,
            block_rest: [0; 12],
            repeat_every: Duration::from_secs(1),
            setup_time: Duration::from_secs(15),
            ping_every: Duration::from_secs(10),
        }
    }
}

/// How a server treats a connection.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Clock, resending, bounds.
    pub common: Common,
    /// How long the client may take to say hello (`Timer::Setup`). Default 30 s.
    pub setup_time: Duration,
}

impl ServerConfig {
    /// The defaults. `epoch` is the time since 1970 at zero of the driver's clock.
    #[must_use]
    pub fn new(epoch: Duration) -> Self {
        Self { common: Common::new(epoch), setup_time: Duration::from_secs(30) }
    }
}

/// How a relay treats a connection; the [`relay`](super::Connection::relay) says what it does.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// The sessions whose keys are known.
    pub sessions: Arc<[KnownSession]>,
    /// How much may be queued for a side. More closes the connection with a fault.
    pub bounds: Bounds,
}

impl RelayConfig {
    /// The defaults, with these keys.
    #[must_use]
    pub fn new(sessions: Arc<[KnownSession]>) -> Self {
        Self { sessions, bounds: Bounds::default() }
    }
}
