//! What the bytes of a captured packet start with.

use core::fmt;

/// The number a capture gives to its kind of link: what the first byte of every packet is.
///
/// Any number may stand in a file; the named ones are those whose packets can be followed to IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: four bytes of address family in the byte order of the machine that captured.
    pub const NULL: Self = Self(0);
    /// Ethernet, from the destination address on.
    pub const ETHERNET: Self = Self(1);
    /// Bare IP as some BSDs number it.
    pub const RAW_BSD: Self = Self(12);
    /// Bare IP as OpenBSD numbers it.
    pub const RAW_OPENBSD: Self = Self(14);
    /// Bare IP of either version.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: four bytes of address family, most significant first.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture on any interface, version 1.
    pub const LINUX_SLL: Self = Self(113);
    /// Bare IPv4.
    pub const IPV4: Self = Self(228);
    /// Bare IPv6.
    pub const IPV6: Self = Self(229);
    /// Linux "cooked" capture on any interface, version 2.
    pub const LINUX_SLL2: Self = Self(276);

    /// What people call it, or nothing for a number that cannot be followed here. A few common
    /// ones that cannot be followed have a name too, so that a report says more than a number.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "BSD loopback",
            1 => "Ethernet",
            9 => "PPP",
            12 | 14 | 101 => "raw IP",
            105 => "802.11",
            108 => "OpenBSD loopback",
            113 => "Linux cooked",
            127 => "802.11 with radiotap",
            189 | 220 => "Linux USB",
            228 => "raw IPv4",
            229 => "raw IPv6",
            249 => "USBPcap",
            276 => "Linux cooked v2",
            _ => return None,
        })
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "link type {} ({name})", self.0),
            None => write!(f, "link type {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_its_number_always() {
        assert_eq!(LinkType::ETHERNET.to_string(), "link type 1 (Ethernet)");
        assert_eq!(LinkType(147).to_string(), "link type 147");
    }
}
