//! Addresses on which the shard listens, and addresses to which clients are told to connect.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{PORT, ShardConfig};
use crate::config::{ConfigError, SettingError, address, is_host};

/// The longest address that the gatekeeper can send: its field has 24 UTF-16 units, including a
/// terminator.
const MAX_ADDRESS_UNITS: usize = 23;

impl ShardConfig {
    /// The address of the status page, if there is one.
    pub fn status_address(&self) -> Result<Option<SocketAddr>, ConfigError> {
        address("status", &self.status)
    }

    /// The public address without a port.
    #[must_use]
    pub fn host(&self) -> &str {
        self.public_address.split(':').next().unwrap_or_default()
    }

    /// The port to which clients connect.
    #[must_use]
    pub fn public_port(&self) -> u16 {
        let port = self.public_address.split_once(':').and_then(|(_, port)| port.parse().ok());
        port.unwrap_or_else(|| self.listen.port())
    }

    /// Whether clients on other machines would be told to connect to their own machine.
    #[must_use]
    pub fn misleads_others(&self) -> bool {
        self.is_local() && !self.is_private()
    }

    /// The host and port at which clients reach the status page. `None` if there is no page, or if
    /// only this machine can reach the page although the shard serves other machines.
    #[must_use]
    pub fn public_status(&self) -> Option<String> {
        let status = self.status_address().ok()??;
        let (page, host) = (status.ip().to_canonical(), self.host());
        let is_as_public = page.is_unspecified() || page == self.listen.ip().to_canonical();
        match is_loopback(page) {
            true if !self.is_local() => None,
            false if !is_as_public => Some(SocketAddr::from((page, status.port())).to_string()),
            _ => Some(format!("{host}:{}", status.port())),
        }
    }

    /// Whether all clients are on this machine.
    pub(super) fn is_private(&self) -> bool {
        is_loopback(self.listen.ip()) && self.trusted_proxies.is_empty()
    }

    /// Whether the public address is this machine's own.
    fn is_local(&self) -> bool {
        let host = self.host();
        match host.parse::<Ipv4Addr>() {
            Ok(ip) => ip.is_loopback() || ip.is_unspecified(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// Checks the host that clients are told to connect to: an IPv4 address or a name, with or without
/// a port.
pub fn check_public_address(text: &str) -> Result<(), SettingError> {
    let units = text.encode_utf16().count();
    if units == 0 || units > MAX_ADDRESS_UNITS {
        return Err(SettingError::Length { max: MAX_ADDRESS_UNITS, found: units });
    }
    let (host, port) = text.split_once(':').unwrap_or((text, "1"));
    if !is_host(host) || !port.parse::<u16>().is_ok_and(|port| port != 0) {
        let found = text.to_owned();
        return Err(SettingError::NotAHost { kind: "IPv4", example: "uru.example.org", found });
    }
    Ok(())
}

/// Parses the address to listen on. The port defaults to the standard one.
pub fn parse_listen(text: &str) -> Result<SocketAddr, SettingError> {
    let bare = || text.parse::<IpAddr>().map(|ip| SocketAddr::from((ip, PORT)));
    let not_one = |_| SettingError::NotAnAddress(text.to_owned());
    text.parse().or_else(|_| bare()).map_err(not_one)
}

/// Deserializes the address to listen on.
pub(super) fn listen_address<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(from)?;
    parse_listen(&text).map_err(|error| D::Error::custom(format!("listen: {error}")))
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_where_the_status_page_is() {
        for (listen, public, status, wanted) in [
            ("127.0.0.1:1", "127.0.0.1", "127.0.0.1:2", Some("127.0.0.1:2")),
            // Only this machine could reach the page.
            ("0.0.0.0:1", "uru.example.org", "127.0.0.1:2", None),
            ("0.0.0.0:1", "uru.example.org", "0.0.0.0:2", Some("uru.example.org:2")),
            ("192.0.2.7:1", "uru.example.org:9", "192.0.2.7:2", Some("uru.example.org:2")),
            ("192.0.2.7:1", "uru.example.org", "192.0.2.8:2", Some("192.0.2.8:2")),
            ("0.0.0.0:1", "uru.example.org", "[2001:db8::1]:2", Some("[2001:db8::1]:2")),
            ("0.0.0.0:1", "127.0.0.1", "0.0.0.0:2", Some("127.0.0.1:2")),
            ("0.0.0.0:1", "uru.example.org", "", None),
        ] {
            let config = ShardConfig {
                listen: listen.parse().unwrap(),
                public_address: public.to_owned(),
                status: status.to_owned(),
                ..ShardConfig::default()
            };
            assert_eq!(config.public_status().as_deref(), wanted, "{listen} {public} {status}");
        }
    }
}
