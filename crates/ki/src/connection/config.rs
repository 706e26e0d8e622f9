//! How the roles behave.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::Bounds;

use crate::control::SessionTime;
use crate::crypt::observer::ObserverKeys;
use crate::schema::Protocols;

/// The most bytes of a frame that an observer reads.
pub const MAX_OBSERVED_BYTES: u64 = 64 << 20;

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
    /// Report it, and go on.
    Ignore,
    /// Close the connection.
    Close,
}

/// What clients and servers need.
#[derive(Clone, Debug)]
pub struct Common {
    /// The time since 1970 at the moment that the driver's clock counts from.
    pub epoch: Duration,
    /// How often to ask whether the other side lives; an answer has to come before the next one
    /// is due. Default 10 s for clients, 60 s for servers.
    pub keep_alive_every: Duration,
    /// What counts as an answer. Default [`Life::Answers`].
    pub life: Life,
    /// How many bytes a frame's body may have. Default 4 MiB. A server lets clients send less before
    /// they accept: [`ServerConfig::max_early_frame_bytes`].
    pub max_frame_bytes: u32,
    /// How much may be queued for the other side.
    pub bounds: Bounds,
}

impl Common {
    fn new(epoch: Duration, keep_alive_every: Duration) -> Self {
        Self {
            epoch,
            keep_alive_every,
            life: Life::Answers,
            max_frame_bytes: 4 << 20,
            bounds: Bounds::default(),
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
    /// How long a client may take to accept a session (`Timer::Setup`). Default 15 s.
    pub accept_time: Duration,
    /// Keep messages that come before the session is accepted, and deliver them then; else they
    /// are ignored. Default true.
    pub keep_early: bool,
    /// How many frames to keep at most; more close the connection. Default 256.
    pub max_early_frames: usize,
    /// How many bytes of them. Default 1 MiB.
    pub max_early_bytes: usize,
    /// How many bytes the body of a frame may have before the first session is accepted, an accept
    /// included; a longer one closes the connection as soon as its length is there. Default 4 KiB:
    /// accepts have at most 300 bytes, logins some hundreds.
    pub max_early_frame_bytes: u32,
    /// What to do with unknown control messages. Default: ignore.
    pub unknown_control: UnknownControl,
    /// Where access levels of messages stand. Without it, and for messages it does not know,
    /// everything is let through.
    pub protocols: Option<Arc<Protocols>>,
    /// The server's own start, on the driver's clock: keep-alives say how long ago it was.
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
            max_early_frames: 256,
            max_early_bytes: 1 << 20,
            max_early_frame_bytes: 4 << 10,
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
    /// How long the server may take to offer a session (`Timer::Setup`). Default 15 s.
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

/// How a relay treats a connection.
///
/// A relay passes on whole frames, as soon as all messages of one are decided about, and datagrams
/// as datagrams. With nothing changed the bytes on both sides are the same, encrypted or not,
/// though not cut into the same writes. Session offers, accepts and keep-alives cannot be changed.
/// It has no time-outs. An encrypted stream without its key closes it.
///
/// # Encryption
///
/// Each direction is decrypted with one state and encrypted with another, which takes over the
/// sender's nonces: as long as nothing was changed, dropped or injected, the same bytes come out.
/// From the first change on chunks hold other bytes, and the sender's nonces must not be used again
/// with the same key. The relay then derives each nonce from the key and the tag of the chunk
/// before: 16 bytes of SHA-256. A tag depends on everything in its chunk, so two chunks get the
/// same nonce only if those before them are the same, which makes relays in a row safe too; and
/// without the key nobody can foresee it. What remains is the chunk in which the first change
/// falls: its nonce is on its way already. Whoever taps both wires of the relay learns how the
/// rest of that chunk, at most 64 KiB, differs from the original, and with that can forge.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// What the user has to read encrypted connections with.
    pub keys: Arc<ObserverKeys>,
    /// How many bytes a frame's body may have; what is behind a longer one goes on unread.
    /// Default 4 MiB.
    pub max_frame_bytes: u32,
    /// How much may be queued for each side, and kept of what the other side sent.
    pub bounds: Bounds,
}

impl RelayConfig {
    /// The defaults, with these keys.
    #[must_use]
    pub fn new(keys: Arc<ObserverKeys>) -> Self {
        Self { keys, max_frame_bytes: 4 << 20, bounds: Bounds::default() }
    }
}
