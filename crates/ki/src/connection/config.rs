//! The configuration of each role.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::Bounds;

use crate::control::SessionTime;
use crate::crypt::observer::ObserverKeys;
use crate::schema::Protocols;

/// The maximum size in bytes of a frame body that an observer reads.
pub const MAX_OBSERVED_BYTES: u64 = 64 << 20;

/// What counts as evidence that the other side is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// A response to the keep-alive, as documented.
    Answers,
    /// Any bytes it sends. For servers whose clients might not respond to keep-alives.
    AnyTraffic,
}

/// What a server does with a control message whose opcode it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownControl {
    /// Report it and continue.
    Ignore,
    /// Close the connection.
    Close,
}

/// The settings shared by clients and servers.
#[derive(Clone, Debug)]
pub struct Common {
    /// The Unix time at which the driver's clock reads zero.
    pub epoch: Duration,
    /// The interval between keep-alives. The response to each must arrive before the next is due.
    /// Default 10 s for clients, 60 s for servers.
    pub keep_alive_every: Duration,
    /// What counts as a response. Default [`Life::Answers`].
    pub life: Life,
    /// The maximum size of a frame body in bytes. Default 4 MiB. Before the session is accepted,
    /// servers allow less: [`ServerConfig::max_early_frame_bytes`].
    pub max_frame_bytes: u32,
    /// Limits on the data queued for the other side.
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

    /// Converts a time on the driver's clock to wall-clock time.
    pub(super) fn clock(&self, now: Duration) -> SessionTime {
        SessionTime::since_1970(self.epoch.saturating_add(now))
    }
}

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Clock, heartbeat, bounds.
    pub common: Common,
    /// Whether offers contain the crypto block "no encryption", as the offers of today's official
    /// servers do. Default true.
    pub offer_crypto_block: bool,
    /// The time a client may take to accept a session (`Timer::Setup`). Default 15 s.
    pub accept_time: Duration,
    /// Whether messages that arrive before the session is accepted are kept and delivered
    /// afterwards, rather than ignored. Default true.
    pub keep_early: bool,
    /// The maximum number of messages to keep. Exceeding it closes the connection. Default 256.
    pub max_early_frames: usize,
    /// The maximum number of bytes to keep. Exceeding it closes the connection. Default 1 MiB.
    pub max_early_bytes: usize,
    /// The maximum size in bytes of a frame body before the first session is accepted, including
    /// the accept. A longer one closes the connection as soon as its length arrives. Default 4 KiB:
    /// an accept takes at most 300 bytes, a login a few hundred.
    pub max_early_frame_bytes: u32,
    /// How to treat unknown control messages. Default: ignore.
    pub unknown_control: UnknownControl,
    /// The definitions with the access levels of messages. Messages that are not defined there are
    /// always delivered. Without definitions, all messages are.
    pub protocols: Option<Arc<Protocols>>,
    /// The time on the driver's clock at which the server started. Keep-alives contain the server's
    /// uptime.
    pub started: Duration,
}

impl ServerConfig {
    /// The defaults. `epoch` is the Unix time at which the driver's clock reads zero.
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

/// The configuration of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Clock, heartbeat, bounds.
    pub common: Common,
    /// Whether to reply to an offer's crypto block with "no encryption". Default true.
    pub accept_crypto_block: bool,
    /// Whether keep-alives end with a trailer; the retail client's do not. Default false.
    pub keep_alive_trailer: bool,
    /// The time the server may take to offer a session (`Timer::Setup`). Default 15 s.
    pub offer_time: Duration,
    /// Whether to begin with a [`UdpHello`](crate::control::Opcode::UdpHello). Over UDP, the server
    /// learns of a client only from its first datagram. Unverified: that the hello is empty.
    /// Default false.
    pub says_hello: bool,
}

impl ClientConfig {
    /// The defaults. `epoch` is the Unix time at which the driver's clock reads zero.
    #[must_use]
    pub fn new(epoch: Duration) -> Self {
        Self {
            common: Common::new(epoch, Duration::from_secs(10)),
            accept_crypto_block: true,
            keep_alive_trailer: false,
            offer_time: Duration::from_secs(15),
            says_hello: false,
        }
    }
}

/// The configuration of a relay.
///
/// A relay forwards a frame as soon as all of its messages have been decided on, and forwards
/// datagrams as datagrams. If no message is changed, the bytes on both sides are identical, whether
/// encrypted or not, though they may be split into different writes. Session offers, accepts and
/// keep-alives cannot be changed, because the login's secrets depend on the offer and each end
/// keeps its own clock. Keep-alives and their responses overtake held pieces. A relay has no
/// time-outs. An encrypted stream whose key is missing closes the connection.
///
/// # Encryption
///
/// Each direction is decrypted with one cipher state and encrypted with another that reuses the
/// sender's nonces. The output is therefore identical to the input until something is changed,
/// dropped or injected. After the first change, chunks hold different bytes, and reusing the
/// sender's nonces with the same key would be unsafe. From then on, the relay derives each nonce
/// from the key and the tag of the previous chunk: 16 bytes of SHA-256. A tag depends on everything
/// in its chunk, so two chunks share a nonce only if the chunks before them are identical. Chains
/// of relays are therefore safe too, and nobody without the key can predict a nonce. One weakness
/// remains: the nonce of the chunk that contains the first change has already been sent. An
/// attacker who taps both wires of the relay learns how the rest of that chunk, at most 64 KiB,
/// differs from the original, and can then forge chunks.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// The user's keys for encrypted connections.
    pub keys: Arc<ObserverKeys>,
    /// The maximum size of a frame body in bytes. From the first longer frame on, the stream is
    /// forwarded unread. Default 4 MiB.
    pub max_frame_bytes: u32,
    /// Limits on the data queued for each side, and on the data kept from the other side.
    pub bounds: Bounds,
}

impl RelayConfig {
    /// The defaults with these keys.
    #[must_use]
    pub fn new(keys: Arc<ObserverKeys>) -> Self {
        Self { keys, max_frame_bytes: 4 << 20, bounds: Bounds::default() }
    }
}
