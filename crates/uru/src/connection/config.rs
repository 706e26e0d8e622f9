//! The configuration of each role.

use std::time::Duration;

use worldwire_core::connection::Bounds;
use worldwire_core::{Error, Result};

use crate::connect::{BUILD_ID, ConnectPacket};
use crate::crypt::exchange::ExchangeError;
use crate::crypt::key::{PrivateKey, PublicKey, ServerKind};
use crate::file::keys::KeyRing;
use crate::frame::Service;
use crate::types::Uuid;

/// The configuration of a server: which clients it admits, and its time-outs.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The private keys. A service without one can only be served unencrypted.
    pub keys: KeyRing,
    /// The services to serve.
    pub services: Vec<Service>,
    /// Whether connections are encrypted.
    pub encryption: Encryption,
    /// The builds to admit. File connections are never checked.
    pub builds: BuildPolicy,
    /// The required product ID, if any.
    pub product: Option<Uuid>,
    /// Whether the connection replies to pings without the driver. Default true.
    pub answer_pings: bool,
    /// The time that the connect packet and the key exchange may take. Default 10 s.
    pub setup_time: Duration,
    /// The time that a message may take from its first to its last byte. Default 30 s.
    pub message_time: Duration,
    /// The time that a client may be silent on auth, gatekeeper and file connections. Default 45 s.
    pub idle_time: Duration,
    /// The time that a client may be silent on game connections. Default 120 s.
    pub game_idle_time: Duration,
    /// Limits on the data queued for the client.
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
    /// Encrypted only if the client asks for it; suitable for loopback connections.
    AllowPlain,
    /// A client that asks for a plain connection is refused.
    Require,
    /// For clients compiled without encryption. They complete the key exchange and then send
    /// unencrypted messages, so their setup cannot be distinguished from that of other clients.
    OpenUruPlain,
}

/// The client builds that a server admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildPolicy {
    /// This build, and build 0.
    Exact(u32),
    /// All builds.
    Any,
}

impl BuildPolicy {
    /// Whether a build is admitted.
    #[must_use]
    pub fn admits(self, build: u32) -> bool {
        match self {
            Self::Exact(wanted) => build == wanted || build == 0,
            Self::Any => true,
        }
    }
}

/// The configuration of a client: its connect packet, keys and pings.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The connect packet, which names the service.
    pub connect: ConnectPacket,
    /// The server's key. Without one, the client asks for a plain connection.
    pub key: Option<PublicKey>,
    /// The interval between pings; `None` leaves pings to the driver. Default 30 s, the first one
    /// right after setup.
    pub ping_every: Option<Duration>,
    /// The time that the server may take to complete setup. Default 10 s.
    pub setup_time: Duration,
    /// Limits on the data queued for the server.
    pub bounds: Bounds,
}

impl ClientConfig {
    /// The defaults, which match today's H'uru client.
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

/// The configuration of a relay.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// The keys of encrypted connections.
    pub keys: RelayKeys,
    /// Limits on the data queued for each side.
    pub bounds: Bounds,
    /// The time that the connect packet and the key exchange may take. Default 20 s, longer than
    /// the peers wait.
    pub setup_time: Duration,
}

impl RelayConfig {
    /// The defaults with these keys.
    #[must_use]
    pub fn new(keys: RelayKeys) -> Self {
        Self { keys, bounds: Bounds::default(), setup_time: Duration::from_secs(20) }
    }
}

/// A relay's keys. If a client asks for encryption and the private key of the service is missing,
/// the connection closes with a fault that names it.
#[derive(Clone, Debug)]
pub enum RelayKeys {
    /// The server's private keys. The key exchange passes through unchanged.
    Shared(KeyRing),
    /// A key pair for each hop. The client's hop is encrypted if the client asks for it, and the
    /// server's hop if the server's public key for the service is known.
    Separate {
        /// The relay's own private keys; clients have the public ones.
        own: KeyRing,
        /// The server's public keys.
        server: KeyRing,
    },
}

/// The kind of key that a service uses.
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
/// `Malformed`, naming the service, if its key is missing.
pub(super) fn private_key(keys: &KeyRing, service: Service) -> Result<&PrivateKey> {
    key_kind(service).and_then(|kind| keys.private(kind)).ok_or_else(|| {
        let wanted = format!("a key for {}", service.name());
        Error::malformed(wanted, "none in the configuration")
    })
}

pub(super) fn refused(error: ExchangeError) -> Error {
    Error::malformed("", error.to_string())
}
