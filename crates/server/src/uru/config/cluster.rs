//! The section `[cluster]` of `shard.toml`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Cluster;
use crate::config::{ConfigError, SettingError, is_host};

/// The maximum length of a name on the bus.
const MAX_NAME: usize = 32;

/// What a process of a shard does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It serves the gatekeeper, the files, and auth connections.
    Front,
    /// It runs ages.
    Age,
    /// It has the vault.
    Vault,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Front, Self::Age, Self::Vault];

    /// Its name in `shard.toml`.
    pub(in crate::uru) const fn name(self) -> &'static str {
        match self {
            Self::Front => "front",
            Self::Age => "age",
            Self::Vault => "vault",
        }
    }
}

impl Cluster {
    /// Whether this process serves clients only, for a shard whose vault is elsewhere.
    #[must_use]
    pub fn is_front(&self) -> bool {
        self.roles == [Role::Front]
    }

    /// Whether this process can have the vault.
    #[must_use]
    pub fn has_vault(&self) -> bool {
        self.roles.contains(&Role::Vault)
    }

    /// The files for the bus in a shard's directory: the key and the certificates.
    pub(in crate::uru) fn files(&self, folder: &Path) -> [Option<PathBuf>; 2] {
        [&self.bus_key, &self.bus_ca]
            .map(|file| Some(folder.join(file)).filter(|_| !file.as_os_str().is_empty()))
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (setting, name) in [("cluster.name", &self.name), ("cluster.node", &self.node)] {
            if !is_name(name) {
                let found = name.clone();
                return Err(SettingError::NotANodeName { max: MAX_NAME, found }.of(setting));
            }
        }
        if let Some(other) = self.bus.iter().find(|server| !is_bus(server)) {
            return Err(SettingError::NotABus(other.clone()).of("cluster.bus"));
        }
        match Role::ALL.iter().all(|role| self.roles.contains(role)) {
            true => Ok(()),
            false if !self.is_front() => Err(SettingError::Roles.of("cluster.roles")),
            false if self.bus.is_empty() => Err(SettingError::NoBus.of("cluster.bus")),
            false => Ok(()),
        }
    }
}

/// Whether a text can be part of a subject on the bus.
pub(in crate::uru) fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_plain)
}

/// Whether a text is the address of a bus server, encrypted unless it is on this machine.
fn is_bus(text: &str) -> bool {
    let Some((scheme, address)) = text.split_once("://") else { return false };
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_local = host == "localhost" || ip.as_ref().is_ok_and(IpAddr::is_loopback);
    let is_address = (ip.is_ok() || is_host(host)) && port.parse::<u16>().is_ok_and(|it| it != 0);
    is_address && (scheme == "tls" || scheme == "nats" && is_local)
}
