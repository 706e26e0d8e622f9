//! Link types.

use core::fmt;

/// A capture's link type: the format of the start of every packet.
///
/// Files can contain any value. The constants name the types that can be followed to IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: four bytes of address family, in the byte order of the capturing machine.
    pub const NULL: Self = Self(0);
    /// Ethernet, starting with the destination address.
    pub const ETHERNET: Self = Self(1);
    /// Bare IP, with the number that some BSDs use.
    pub const RAW_BSD: Self = Self(12);
    /// Bare IP, with OpenBSD's number.
    pub const RAW_OPENBSD: Self = Self(14);
    /// Bare IP, version 4 or 6.
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

    /// The type's usual name. Also names some common types that cannot be followed, to make reports
    /// more readable.
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
    fn always_shows_the_number() {
        assert_eq!(LinkType::ETHERNET.to_string(), "link type 1 (Ethernet)");
        assert_eq!(LinkType(147).to_string(), "link type 147");
    }
}
