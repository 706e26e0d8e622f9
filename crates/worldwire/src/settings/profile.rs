//! Profiles and the traffic that they apply to.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use super::{ColorRule, Setting, Values};

/// Settings for the traffic of one world.
#[derive(Debug)]
pub(super) struct Profile {
    pub(super) name: String,
    /// The profile applies to conversations with one of these ends.
    pub(super) ends: Vec<Ends>,
    pub(super) values: BTreeMap<Setting, Values>,
    pub(super) colors: Vec<ColorRule>,
}

/// An end of conversations: an address, a network, a port, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The address and the number of its significant bits.
    network: Option<(IpAddr, u8)>,
    port: Option<u16>,
}

impl Ends {
    /// Exactly this end.
    pub(super) fn of(address: SocketAddr) -> Self {
        Self { port: Some(address.port()), ..Self::of_host(address.ip()) }
    }

    /// Any port of an address.
    pub(super) fn of_host(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { network: Some((address, bits_of(address))), port: None }
    }

    /// A port of any address.
    pub(super) fn of_port(port: u16) -> Self {
        Self { network: None, port: Some(port) }
    }

    /// Whether it describes one of the ends of the traffic.
    pub(super) fn fits(&self, traffic: &[Self]) -> bool {
        traffic.iter().any(|other| self.contains(other))
    }

    fn contains(&self, other: &Self) -> bool {
        let has_port = self.port.is_none() || self.port == other.port;
        let has_address = match (self.network, other.network) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some((network, bits)), Some((address, _))) => shares(network, address, bits),
        };
        has_port && has_address
    }
}

fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Whether the first bits of two addresses are equal.
fn shares(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    let differing = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        _ => return false,
    };
    differing >= u32::from(bits)
}

/// Text that is not valid as `Ends`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotEnds;

impl fmt::Display for NotEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "must be an address, a network or a port: 192.0.2.1, 192.0.2.1:14617, 192.0.2.0/24 or \
             :14617",
        )
    }
}

impl FromStr for Ends {
    type Err = NotEnds;

    fn from_str(text: &str) -> Result<Self, NotEnds> {
        // An IPv6 address can begin with a colon, too.
        if let Some(Ok(port)) = text.strip_prefix(':').map(str::parse) {
            return Ok(Self::of_port(port));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self::of(address));
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotEnds)?;
        let most = bits_of(address);
        match bits.map(|bits| bits.parse::<u8>().ok().filter(|bits| *bits <= most)) {
            None => Ok(Self::of_host(address)),
            Some(Some(bits)) => Ok(Self { network: Some((address, bits)), port: None }),
            Some(None) => Err(NotEnds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_addresses_networks_and_ports() {
        let traffic = ["192.0.2.1:14617", "[2001:db8::1]:80"];
        let traffic = traffic.map(|end| end.parse::<Ends>().expect("it is valid"));
        for (text, fits) in [
            ("192.0.2.1", true),
            ("192.0.2.1:14617", true),
            ("192.0.2.1:80", false),
            (":14617", true),
            (":80", true),
            (":81", false),
            ("192.0.2.0/24", true),
            ("192.0.3.0/24", false),
            ("0.0.0.0/0", true),
            ("2001:db8::/32", true),
            ("2001:db9::/32", false),
            ("[2001:db8::1]:80", true),
            ("::/0", true),
            ("::1", false),
        ] {
            assert_eq!(text.parse::<Ends>().map(|ends| ends.fits(&traffic)), Ok(fits), "{text}");
        }
        for text in ["", ":", "14617", "host", "192.0.2.0/33", ":70000", "192.0.2.1/x"] {
            assert_eq!(text.parse::<Ends>(), Err(NotEnds), "{text}");
        }
    }
}
