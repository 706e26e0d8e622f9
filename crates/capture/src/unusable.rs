//! Why packets are of no use.

use crate::link::LinkType;

/// Why a packet carries nothing for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// The link type is none that leads to IP here.
    #[error("{0} is not supported")]
    Link(LinkType),
    /// The frame holds no IP; the EtherType, or the length of an older frame.
    #[error("not IP but {}", ether_type(*.0))]
    NotIp(u16),
    /// IP carries neither TCP nor UDP; the number of the protocol.
    #[error("neither TCP nor UDP but {}", protocol(*.0))]
    Protocol(u8),
    /// It is encrypted by IPsec.
    #[error("encrypted (IPsec)")]
    Encrypted,
    /// More tunnels are inside of each other than are followed.
    #[error("a tunnel in a tunnel, too deep")]
    Tunnels,
    /// Its block names an interface that the capture does not describe.
    #[error("of an interface that the capture does not describe")]
    Interface,
    /// Its block is shorter than the packet that it promises, or than its own fields.
    #[error("longer than its block")]
    Block,
    /// A header contradicts itself.
    #[error("with a broken header")]
    Broken,
    /// A header is not whole, since the capture cuts packets.
    #[error("cut by the capture within a header")]
    Cut,
    /// It is a fragment whose other pieces are not there yet.
    #[error("a fragment whose other parts are missing")]
    Fragment,
}

fn ether_type(number: u16) -> String {
    let name = match number {
        0x0806 => "ARP",
        0x8863 | 0x8864 => "PPPoE that carries none",
        0x8847 => "MPLS that carries none",
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
        47 => "GRE that is not followed",
        58 => "ICMPv6",
        89 => "OSPF",
        132 => "SCTP",
        _ => return format!("IP protocol {number}"),
    };
    name.to_owned()
}
