//! A shard's address and what a client sends about itself.

use core::time::Duration;

use worldwire_uru::connect::{BUILD_ID, BuildType, ConnectData, PRODUCT_ID};
use worldwire_uru::connection::ClientConfig;
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::file::keys::{KeyFileErrors, KeyRing};
use worldwire_uru::frame::Service;
use worldwire_uru::types::Uuid;

/// The default port of a shard.
const PORT: u16 = 14617;

/// A shard, as its clients know it.
#[derive(Clone, Debug)]
pub struct Shard {
    /// The gatekeeper's host, with an optional `:port`.
    pub gatekeeper: Option<String>,
    /// The auth server's host, with an optional `:port`. If unset, the gatekeeper is asked.
    pub auth: Option<String>,
    /// The file server's host, with an optional `:port`. If unset, the gatekeeper is asked.
    pub file: Option<String>,
    /// The port of services whose host has none. Default 14617.
    pub port: u16,
    /// The public keys. Connections to a service without a key are not encrypted.
    pub keys: KeyRing,
    /// The client's build. Default 918.
    pub build: u32,
    /// The client's build type. Default live.
    pub build_type: BuildType,
    /// The client's branch. Default 1.
    pub branch: u32,
    /// The product. Default: the one that all known shards use.
    pub product: Uuid,
    /// How long the server may take to reply to a request. Default 60 s.
    pub patience: Duration,
}

/// Why a `server.ini` is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardParseError {
    /// An invalid key.
    #[error("{0}")]
    Keys(#[from] KeyFileErrors),
    /// An invalid port.
    #[error("line {line}: Server.Port must be 1 to 65535, not {found}")]
    Port {
        /// Its line number, from 1.
        line: usize,
        /// The invalid value.
        found: String,
    },
    /// The file names neither a gatekeeper nor an auth server.
    #[error("set Server.Gate.Host or Server.Auth.Host")]
    NoHost,
}

impl Shard {
    /// A shard whose services share one host, without keys.
    #[must_use]
    pub fn new(host: &str) -> Self {
        let host = Some(host.to_owned());
        Self {
            gatekeeper: host.clone(),
            auth: host.clone(),
            file: host,
            port: PORT,
            keys: KeyRing::new(),
            build: BUILD_ID,
            build_type: BuildType::Live,
            branch: 1,
            product: PRODUCT_ID,
            patience: Duration::from_secs(60),
        }
    }

    /// Parses a `server.ini`: `Server.Port`, `Server.Gate.Host` and so on, and keys. Ignores other
    /// lines.
    pub fn parse(text: &str) -> Result<Self, ShardParseError> {
        let mut shard = Self::new("");
        (shard.gatekeeper, shard.auth, shard.file) = (None, None, None);
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let Some((name, value)) = line.trim().split_once([' ', '\t', '=']) else { continue };
            let value = value.trim_start_matches([' ', '\t', '=']).trim_matches('"');
            let host = Some(value.to_owned()).filter(|host| !host.is_empty());
            match name.to_ascii_lowercase().as_str() {
                "server.gate.host" => shard.gatekeeper = host,
                "server.auth.host" => shard.auth = host,
                "server.file.host" => shard.file = host,
                "server.port" => {
                    let port = value.parse().ok().filter(|port| *port != 0);
                    let error =
                        || ShardParseError::Port { line: index + 1, found: value.to_owned() };
                    shard.port = port.ok_or_else(error)?;
                }
                _ => {}
            }
        }
        shard.keys = KeyRing::parse(text)?;
        if shard.gatekeeper.is_none() && shard.auth.is_none() {
            return Err(ShardParseError::NoHost);
        }
        Ok(shard)
    }

    /// A service's address, if it is known without asking the gatekeeper. For the game server,
    /// there is none: the reply to an age request names it.
    #[must_use]
    pub fn host(&self, service: Service) -> Option<(&str, u16)> {
        let host = match service {
            Service::Gatekeeper => self.gatekeeper.as_deref(),
            Service::Auth => self.auth.as_deref(),
            Service::File => self.file.as_deref(),
            Service::Game => None,
        };
        host.map(|host| self.host_and_port(host))
    }

    /// Splits a host from its optional `:port`, as gatekeepers send it.
    #[must_use]
    pub fn host_and_port<'h>(&self, host: &'h str) -> (&'h str, u16) {
        if let Some((name, port)) = host.rsplit_once(':')
            // Two colons mean an IPv6 address.
            && !name.contains(':')
            && let Ok(port) = port.parse()
        {
            return (name, port);
        }
        (host, self.port)
    }

    /// Whether connections to a service are encrypted.
    #[must_use]
    pub fn encrypts(&self, service: Service) -> bool {
        kind(service).is_some_and(|kind| self.keys.public(kind).is_some())
    }

    pub(super) fn client_config(&self, service: Service) -> ClientConfig {
        let key = kind(service).and_then(|kind| self.keys.public(kind).cloned());
        let mut config = ClientConfig::new(service, key);
        let connect = &mut config.connect;
        connect.build_type = self.build_type;
        connect.branch_id = self.branch;
        connect.product_id = self.product;
        match &mut connect.data {
            ConnectData::File(data) => data.real_build_id = self.build,
            _ => connect.build_id = self.build,
        }
        config.setup_time = self.patience.min(config.setup_time);
        config
    }
}

fn kind(service: Service) -> Option<ServerKind> {
    match service {
        Service::Gatekeeper => Some(ServerKind::Gatekeeper),
        Service::Auth => Some(ServerKind::Auth),
        Service::Game => Some(ServerKind::Game),
        Service::File => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_ini_names_the_services() {
        let text = "Server.Port 9\nServer.Status \"http://x/\"\n\
                    server.gate.host = \"gate.example:7\"\nServer.File.Host \"\"\n";
        let shard = Shard::parse(text).unwrap();
        assert_eq!(shard.host(Service::Gatekeeper), Some(("gate.example", 7)));
        assert_eq!(shard.host(Service::Auth), None);
        assert_eq!(shard.host(Service::File), None);
        assert_eq!(shard.host_and_port("::1"), ("::1", 9));
        assert!(!shard.encrypts(Service::Auth));

        let error = |text| Shard::parse(text).unwrap_err().to_string();
        assert_eq!(error("\nServer.Port 0"), "line 2: Server.Port must be 1 to 65535, not 0");
        assert_eq!(error("Server.Port 1"), "set Server.Gate.Host or Server.Auth.Host");
        assert!(error("Server.Auth.Host x\nServer.Auth.N \"12\"\n").contains("Server.Auth.N"));
    }

    #[test]
    fn the_connect_packet_identifies_the_client() {
        let mut shard = Shard::new("localhost");
        (shard.build, shard.branch, shard.product) = (7, 2, Uuid([3; 16]));
        let config = shard.client_config(Service::Auth);
        assert_eq!((config.connect.build_id, config.connect.branch_id), (7, 2));
        assert_eq!(config.connect.product_id, shard.product);
        let config = shard.client_config(Service::File);
        assert_eq!(config.connect.build_id, 0);
        assert!(matches!(config.connect.data, ConnectData::File(data) if data.real_build_id == 7));
    }
}
