//! Why packets are unusable.

use crate::link::LinkType;

/// Why a packet carries nothing usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// The link type is not one that can be followed to IP.
    #[error("{0} is not supported")]
    Link(LinkType),
    /// The frame does not contain IP. Holds the EtherType, or the length in an older frame.
    #[error("not IP but {}", ether_type(*.0))]
    NotIp(u16),
    /// IP carries neither TCP nor UDP. Holds the protocol number.
    #[error("neither TCP nor UDP but {}", protocol(*.0))]
    Protocol(u8),
    /// The packet is encrypted with IPsec.
    #[error("encrypted (IPsec)")]
    Encrypted,
    /// Too many nested tunnels.
    #[error("in tunnels nested too deeply")]
    Tunnels,
    /// Its block refers to an interface that the capture does not describe.
    #[error("on an interface that the capture does not describe")]
    Interface,
    /// Its block is shorter than the packet, or than its own fields.
    #[error("longer than the enclosing block")]
    Block,
    /// A header is inconsistent.
    #[error("with an invalid header")]
    Broken,
    /// The capture truncated the packet inside a header.
    #[error("cut off inside a header by the capture")]
    Cut,
    /// A fragment of an incomplete packet.
    #[error("belonging to an incomplete fragmented packet")]
    Fragment,
}

fn ether_type(number: u16) -> String {
    let name = match number {
        0x0806 => "ARP",
        0x8863 | 0x8864 => "PPPoE without IP",
        0x8847 => "MPLS without IP",
        0x888e => "802.1X",
        0x88cc => "LLDP",
        0x88e5 => "MACsec",
        0..0x0600 => "an 802.3 frame",
        _ => return format!("EtherType 0x{number:04x}"),
    };
    name.to_owned()
}

fn protocol(number: u8) -> String {
    let name = match number {
        1 => "ICMP",
        2 => "IGMP",
        47 => "an unsupported variant of GRE",
        58 => "ICMPv6",
        89 => "OSPF",
        132 => "SCTP",
        _ => return format!("IP protocol {number}"),
    };
    name.to_owned()
}
