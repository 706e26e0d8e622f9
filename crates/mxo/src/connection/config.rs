//! The settings of each role.

use core::fmt;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::Bounds;

use crate::crypt::{IvSource, KnownSession, SessionKey};

/// The session that the margin server assigned, with this side's source of initialisation vectors.
#[derive(Clone)]
pub struct Session {
    /// The ID, sent in the hello.
    pub id: u32,
    /// The key.
    pub key: SessionKey,
    /// The source of initialisation vectors.
    pub ivs: IvSource,
}

impl Session {
    /// Creates a session. `seed` is 16 random bytes, unique to this connection; see [`IvSource`].
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

/// Settings shared by clients and servers.
#[derive(Clone, Debug)]
pub struct Common {
    /// The time since 1970 when the driver's clock reads zero.
    pub epoch: Duration,
    /// How long an acknowledgement waits so that it can share a packet. Seven waiting packets are
    /// acknowledged immediately. Default 50 ms.
    pub ack_delay: Duration,
    /// How long a packet may stay unacknowledged before it counts as lost, until a round-trip time
    /// has been measured. Default 500 ms.
    pub first_resend: Duration,
    /// The minimum time before an unacknowledged packet counts as lost. Default 200 ms.
    pub least_resend: Duration,
    /// The maximum time before an unacknowledged packet counts as lost. The time doubles whenever
    /// nothing is acknowledged. Default 5 s.
    pub max_resend: Duration,
    /// How long the other side may be silent. Default 30 s.
    pub idle_time: Duration,
    /// The maximum number of bytes after a packet's sequence word. Default 1300, as in both
    /// emulators; the live server sent up to 1322.
    pub max_payload: usize,
    /// The maximum number of unacknowledged packets with RPC messages. Default 64.
    pub max_in_flight: usize,
    /// The maximum number of received RPC messages kept ahead of a missing one. Only half this
    /// number is sent ahead, because a relay may add some. Default 512.
    pub max_ahead: u16,
    /// The maximum number of bytes of RPC messages kept ahead of a missing one. Default 1 MiB.
    pub max_ahead_bytes: usize,
    /// Limits on data queued for the other side and on unacknowledged data.
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

    /// Seconds since 1970, from a time on the driver's clock.
    pub(super) fn clock(&self, now: Duration) -> u32 {
        u32::try_from(self.epoch.saturating_add(now).as_secs()).unwrap_or(u32::MAX)
    }
}

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Settings shared by both roles: clock, resending, bounds.
    pub common: Common,
    /// The character's ID from the margin server.
    pub character_uid: u64,
    /// The unknown field after the character's ID in the hello. Default 0x384, which the game's
    /// client sends.
    pub hello_unknown: u64,
    /// The bytes after the session ID in the encrypted block. Any value works. Default: zeros.
    pub block_rest: [u8; 12],
    /// The interval at which the client repeats a ping until its answer arrives, a hello until the
    /// first packet arrives, and that packet's acknowledgement until the server acknowledges a
    /// packet. Default 500 ms.
    pub repeat_every: Duration,
    /// The time limit for the server's answer (`Timer::Setup`). Default 15 s.
    pub setup_time: Duration,
    /// How long the server may be silent before a ping is sent. Default 10 s.
    pub ping_every: Duration,
}

impl ClientConfig {
    /// The defaults. `epoch` is the time since 1970 when the driver's clock reads zero.
    #[must_use]
    pub fn new(epoch: Duration, character_uid: u64) -> Self {
        Self {
            common: Common::new(epoch),
            character_uid,
            hello_unknown: 0x384,
            block_rest: [0; 12],
            repeat_every: Duration::from_millis(500),
            setup_time: Duration::from_secs(15),
            ping_every: Duration::from_secs(10),
        }
    }
}

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Settings shared by both roles: clock, resending, bounds.
    pub common: Common,
    /// The time limit for the client's hello (`Timer::Setup`). Default 30 s.
    pub setup_time: Duration,
    /// The time limit for the client's first acknowledgement after its last hello (`Timer::Setup`).
    /// Default 5 s.
    pub confirm_time: Duration,
    /// Whether a hello alone establishes the connection, without an acknowledgement. Anyone can
    /// send a hello with a forged address, and the server would then send everything to that
    /// address. So set this only on networks where addresses cannot be forged. Default false.
    pub trusts_hellos: bool,
}

impl ServerConfig {
    /// The defaults. `epoch` is the time since 1970 when the driver's clock reads zero.
    #[must_use]
    pub fn new(epoch: Duration) -> Self {
        Self {
            common: Common::new(epoch),
            setup_time: Duration::from_secs(30),
            confirm_time: Duration::from_secs(5),
            trusts_hellos: false,
        }
    }
}

/// Settings of a [relay](super::Connection::relay).
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// The sessions whose keys are known.
    pub sessions: Arc<[KnownSession]>,
    /// Limits on data queued for each side. Exceeding them closes the connection with a fault.
    pub bounds: Bounds,
    /// The time limit for the first encrypted packets from both sides (`Timer::Setup`), needed
    /// because anyone can send hellos with forged addresses. Default 15 s.
    pub setup_time: Duration,
}

impl RelayConfig {
    /// The defaults, with these keys.
    #[must_use]
    pub fn new(sessions: Arc<[KnownSession]>) -> Self {
        Self { sessions, bounds: Bounds::default(), setup_time: Duration::from_secs(15) }
    }
}
