//! How the two active roles behave.

use std::time::Duration;

use worldwire_core::connection::Bounds;
use worldwire_core::{Error, Result};

use crate::connect::{BUILD_ID, ConnectPacket};
use crate::crypt::exchange::ExchangeError;
use crate::crypt::key::{PrivateKey, PublicKey, ServerKind};
use crate::file::keys::KeyRing;
use crate::frame::Service;
use crate::types::Uuid;

/// What a server lets in, and how patient it is.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The private keys. A service without one can only be served in plain.
    pub keys: KeyRing,
    /// The services to serve.
    pub services: Vec<Service>,
    /// Encrypted or plain.
    pub encryption: Encryption,
    /// Which builds to let in. File connections are never checked here.
    pub builds: BuildPolicy,
    /// The product id to insist on, if any.
    pub product: Option<Uuid>,
    /// Answer pings without asking the driver. Default true.
    pub answer_pings: bool,
    /// How long connect packet and key exchange may take. Default 10 s.
    pub setup_time: Duration,
    /// How long a message may take from its first to its last byte. Default 30 s.
    pub message_time: Duration,
    /// How long a client may be silent on auth, gatekeeper and file connections. Default 45 s.
    pub idle_time: Duration,
    /// How long a client may be silent on game connections. Default 120 s.
    pub game_idle_time: Duration,
    /// How much may be queued for the client.
    pub bounds: Bounds,
}

impl ServerConfig {
    /// The defaults with these keys: all services, encryption required, today's build.
    #[must_use]
    pub fn new(keys: KeyRing) -> Self {
        Self {
            keys,
            services: Service::ALL.to_vec(),
            encryption: Encryption::Require,
            builds: BuildPolicy::Exact(BUILD_ID),
            product: None,
            answer_pings: true,
            setup_time: Duration::from_secs(10),
            message_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(45),
            game_idle_time: Duration::from_secs(120),
            bounds: Bounds::default(),
        }
    }
}

/// Whether connections (other than file connections, which are always plain) are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Encrypted if the client wants it; good for loopback.
    AllowPlain,
    /// A client that wants a plain connection is turned away.
    Require,
    /// For clients compiled without encryption, which go through the exchange all the same and
    /// then speak plain. On the wire they look like others.
    OpenUruPlain,
}

/// Which builds a server lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildPolicy {
    /// This one, and 0.
    Exact(u32),
    /// All.
    Any,
}

impl BuildPolicy {
    /// Whether a build is let in.
    #[must_use]
    pub fn admits(self, build: u32) -> bool {
        match self {
            Self::Exact(wanted) => build == wanted || build == 0,
            Self::Any => true,
        }
    }
}

/// What a client says first, and how it keeps the connection alive.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The connect packet; it names the service.
    pub connect: ConnectPacket,
    /// The key of the server. Without one the client asks for a plain connection.
    pub key: Option<PublicKey>,
    /// How often to ping; `None` leaves it to the driver. Default 30 s, the first one right after
    /// setup.
    pub ping_every: Option<Duration>,
    /// How long the server may take to answer setup. Default 10 s.
    pub setup_time: Duration,
    /// How much may be queued for the server.
    pub bounds: Bounds,
}

impl ClientConfig {
    /// The defaults: what the H'uru client of today does.
    #[must_use]
    pub fn new(service: Service, key: Option<PublicKey>) -> Self {
        Self {
            connect: ConnectPacket::new(service),
            key,
            ping_every: Some(Duration::from_secs(30)),
            setup_time: Duration::from_secs(10),
            bounds: Bounds::default(),
        }
    }
}

/// How a relay behaves.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// The keys of encrypted connections.
    pub keys: RelayKeys,
    /// How much may be queued for each side.
    pub bounds: Bounds,
    /// How long connect packet and key exchange may take. Default 20 s: longer than the ends wait.
    pub setup_time: Duration,
}

impl RelayConfig {
    /// The defaults with these keys.
    #[must_use]
    pub fn new(keys: RelayKeys) -> Self {
        Self { keys, bounds: Bounds::default(), setup_time: Duration::from_secs(20) }
    }
}

/// Which keys a relay has. An encrypted connection for whose service it lacks one is refused: a
/// fault names the key, and the connection closes.
#[derive(Clone, Debug)]
pub enum RelayKeys {
    /// The private keys of the server. The exchange passes through.
    Shared(KeyRing),
    /// A pair for each hop.
    Separate {
        /// The relay's own private keys; clients have the public ones.
        own: KeyRing,
        /// The public keys of the server.
        server: KeyRing,
    },
}

/// Which key belongs to a service.
pub(crate) fn key_kind(service: Service) -> Option<ServerKind> {
    match service {
        Service::Gatekeeper => Some(ServerKind::Gatekeeper),
        Service::Auth => Some(ServerKind::Auth),
        Service::Game => Some(ServerKind::Game),
        Service::File => None,
    }
}

/// The private key of a service.
///
/// # Errors
/// Malformed, naming the service, when there is none.
pub(super) fn private_key(keys: &KeyRing, service: Service) -> Result<&PrivateKey> {
    key_kind(service).and_then(|kind| keys.private(kind)).ok_or_else(|| {
        let wanted = format!("a key for {}", service.name());
        Error::malformed(wanted, "none in the configuration")
    })
}

pub(super) fn refused(error: ExchangeError) -> Error {
    Error::malformed("a number y that is safe to use", error.to_string())
}
