//! The section `[cluster]` of `shard.toml`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Cluster;
use crate::config::{ConfigError, SettingError, is_host};

/// The maximum length of a name on the bus.
const MAX_NAME: usize = 32;

/// The maximum hold time. A process that cannot reach the database for longer than this ends.
const MAX_HOLD: u32 = 30;

/// A role of a process in a shard.
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
    /// Whether this process has a role.
    #[must_use]
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// The name of this process.
    #[must_use]
    pub fn node_name(&self) -> String {
        match self.node.is_empty() {
            true => name_of_host(&whoami::hostname().unwrap_or_default()),
            false => self.node.clone(),
        }
    }

    /// The bus files in a shard's directory: the key and the certificates.
    pub(in crate::uru) fn files(&self, folder: &Path) -> [Option<PathBuf>; 2] {
        [&self.bus_key, &self.bus_ca]
            .map(|file| Some(folder.join(file)).filter(|_| !file.as_os_str().is_empty()))
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (setting, name) in [("cluster.name", &self.name), ("cluster.node", &self.node)] {
            let is_default = name.is_empty() && setting == "cluster.node";
            if !is_default && !is_name(name) {
                let found = name.clone();
                return Err(SettingError::NotANodeName { max: MAX_NAME, found }.of(setting));
            }
        }
        if let Some(other) = self.bus.iter().find(|server| !is_bus(server)) {
            return Err(SettingError::NotABus(other.clone()).of("cluster.bus"));
        }
        if self.max_players == 0 {
            return Err(SettingError::Zero.of("cluster.max_players"));
        }
        if self.hold_seconds > MAX_HOLD {
            let [max, found] = [MAX_HOLD, self.hold_seconds].map(|seconds| seconds as usize);
            return Err(SettingError::TooLarge { max, found }.of("cluster.hold_seconds"));
        }
        match self.has(Role::Vault) {
            true if Role::ALL.iter().all(|role| self.has(*role)) => Ok(()),
            false if self.roles.is_empty() => Err(SettingError::Roles.of("cluster.roles")),
            false if self.bus.is_empty() => Err(SettingError::NoBus.of("cluster.bus")),
            false => Ok(()),
            true => Err(SettingError::Roles.of("cluster.roles")),
        }
    }
}

/// Whether a text can be part of a bus subject.
pub(in crate::uru) fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_plain)
}

/// The default name of a process, which is named after its machine: the host name up to the first
/// dot.
fn name_of_host(host: &str) -> String {
    let label = host.split('.').next().unwrap_or_default();
    let plain = label.chars().map(|c| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
        _ => '-',
    });
    let name: String = plain.take(MAX_NAME).collect();
    match name.trim_matches('-') {
        "" => "node".to_owned(),
        name => name.to_owned(),
    }
}

/// Whether a text is a valid address of a bus server. The address must call for encryption unless
/// the server is on this machine.
fn is_bus(text: &str) -> bool {
    let Some((scheme, address)) = text.split_once("://") else { return false };
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_local = host == "localhost" || ip.as_ref().is_ok_and(IpAddr::is_loopback);
    let is_address = (ip.is_ok() || is_host(host)) && port.parse::<u16>().is_ok_and(|it| it != 0);
    is_address && (scheme == "tls" || scheme == "nats" && is_local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_named_after_their_machines() {
        for (host, wanted) in [
            ("shard-1.example.org", "shard-1"),
            ("WIN_SERVER", "win-server"),
            ("-", "node"),
            ("", "node"),
            ("\u{e9}t\u{e9}", "t"),
            (&"x".repeat(40), &"x".repeat(32)),
        ] {
            assert_eq!(name_of_host(host), wanted, "{host}");
            assert!(is_name(wanted));
        }
        let cluster = Cluster::default();
        assert!(cluster.node.is_empty() && is_name(&cluster.node_name()));
        assert_eq!(Cluster { node: "a".to_owned(), ..cluster }.node_name(), "a");
    }
}
