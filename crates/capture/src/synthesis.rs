//! Generates packets for samples, tests and benchmarks.

use std::net::SocketAddrV4;

use worldwire_core::Side;

use crate::network::{ACK, FIN, PSH, SYN, TCP, UDP};

/// Generates the packets of a TCP conversation over IPv4 and Ethernet: the handshake, segments with
/// valid sequence numbers and checksums, and the end.
///
/// ```
/// use worldwire_capture::SyntheticTcp;
/// use worldwire_core::Side;
/// let mut talk = SyntheticTcp::new(
///     "192.0.2.1:49152".parse()?,
///     "192.0.2.2:14617".parse()?,
/// );
/// let mut packets = talk.open();
/// packets.extend(talk.data(Side::Client, b"hello"));
/// packets.extend(talk.close());
/// assert_eq!(packets.len(), 3 + 2 + 3);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SyntheticTcp {
    ends: [SocketAddrV4; 2],
    /// The next sequence number of each side.
    next: [u32; 2],
    packets: u16,
}

/// The maximum payload of a segment.
const SEGMENT: usize = 1460;

impl SyntheticTcp {
    /// A conversation between two ends. The initial sequence numbers are derived from the ports.
    #[must_use]
    pub fn new(client: SocketAddrV4, server: SocketAddrV4) -> Self {
        let first = |end: &SocketAddrV4| u32::from(end.port()).wrapping_mul(0x9e37_79b1);
        let next = [first(&client), first(&server)];
        Self { ends: [client, server], next, packets: 0 }
    }

    /// The three packets of the handshake.
    pub fn open(&mut self) -> Vec<Vec<u8>> {
        vec![
            self.packet(Side::Client, SYN, &[]),
            self.packet(Side::Server, SYN | ACK, &[]),
            self.packet(Side::Client, ACK, &[]),
        ]
    }

    /// Segments with the payload, at most 1460 bytes each, and the other side's acknowledgement.
    pub fn data(&mut self, side: Side, payload: &[u8]) -> Vec<Vec<u8>> {
        let mut packets: Vec<Vec<u8>> =
            payload.chunks(SEGMENT).map(|segment| self.packet(side, PSH | ACK, segment)).collect();
        packets.push(self.packet(side.other(), ACK, &[]));
        packets
    }

    /// The packets of the end, initiated by the client.
    pub fn close(&mut self) -> Vec<Vec<u8>> {
        vec![
            self.packet(Side::Client, FIN | ACK, &[]),
            self.packet(Side::Server, FIN | ACK, &[]),
            self.packet(Side::Client, ACK, &[]),
        ]
    }

    /// A packet, starting with its Ethernet header.
    fn packet(&mut self, side: Side, flags: u8, payload: &[u8]) -> Vec<u8> {
        let (own, other) = (side.index(), side.other().index());
        let [source, target] = [self.ends[own], self.ends[other]];
        let sequence = self.next[own];
        let acknowledged = if flags & ACK == 0 { 0 } else { self.next[other] };
        let payload_length = u32::try_from(payload.len()).unwrap_or(0);
        let counted = u32::from(flags & (SYN | FIN) != 0);
        self.next[own] = sequence.wrapping_add(payload_length).wrapping_add(counted);
        self.packets = self.packets.wrapping_add(1);

        let mut tcp = Vec::with_capacity(20 + payload.len());
        tcp.extend([source, target].map(|end| end.port().to_be_bytes()).as_flattened());
        tcp.extend(sequence.to_be_bytes());
        tcp.extend(acknowledged.to_be_bytes());
        tcp.extend([5 << 4, flags]);
        tcp.extend(0xffff_u16.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend_from_slice(payload);
        let length = u16::try_from(tcp.len()).unwrap_or(u16::MAX);

        let mut pseudo = Vec::with_capacity(12);
        pseudo.extend([source, target].map(|end| end.ip().octets()).as_flattened());
        pseudo.extend([0, TCP]);
        pseudo.extend(length.to_be_bytes());
        let sum = checksum(&[&pseudo, &tcp]);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());

        frame(&self.ends, side, self.packets, TCP, &tcp)
    }
}

/// Generates the packets of a UDP conversation over IPv4 and Ethernet.
///
/// ```
/// use worldwire_capture::SyntheticUdp;
/// use worldwire_core::Side;
/// let mut talk = SyntheticUdp::new("192.0.2.1:49152".parse()?, "192.0.2.2:10000".parse()?);
/// assert_eq!(talk.datagram(Side::Client, b"hello").len(), 14 + 20 + 8 + 5);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SyntheticUdp {
    ends: [SocketAddrV4; 2],
    packets: u16,
}

impl SyntheticUdp {
    /// A conversation between two ends.
    #[must_use]
    pub fn new(client: SocketAddrV4, server: SocketAddrV4) -> Self {
        Self { ends: [client, server], packets: 0 }
    }

    /// A packet with this payload of at most 65,507 bytes. It has no checksum, which IPv4 allows.
    pub fn datagram(&mut self, side: Side, payload: &[u8]) -> Vec<u8> {
        let [source, target] = [self.ends[side.index()], self.ends[side.other().index()]];
        self.packets = self.packets.wrapping_add(1);
        let length = u16::try_from(payload.len() + 8).unwrap_or(u16::MAX);
        let mut udp = Vec::with_capacity(8 + payload.len());
        udp.extend([source, target].map(|end| end.port().to_be_bytes()).as_flattened());
        udp.extend(length.to_be_bytes());
        udp.extend([0, 0]);
        udp.extend_from_slice(payload);
        frame(&self.ends, side, self.packets, UDP, &udp)
    }
}

/// A side's packet, starting with its Ethernet header.
fn frame(
    ends: &[SocketAddrV4; 2],
    side: Side,
    number: u16,
    protocol: u8,
    content: &[u8],
) -> Vec<u8> {
    let [source, target] = [ends[side.index()], ends[side.other().index()]];
    let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
    let mut ip = Vec::with_capacity(20);
    ip.extend([0x45, 0]);
    ip.extend(length.saturating_add(20).to_be_bytes());
    ip.extend(number.to_be_bytes());
    ip.extend([0x40, 0, 64, protocol, 0, 0]);
    ip.extend([source, target].map(|end| end.ip().octets()).as_flattened());
    let sum = checksum(&[&ip]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());

    let mut packet = Vec::with_capacity(14 + ip.len() + content.len());
    // Locally administered addresses, one per side.
    packet.extend([2, 0, 0, 0, 0, if side == Side::Client { 2 } else { 1 }]);
    packet.extend([2, 0, 0, 0, 0, if side == Side::Client { 1 } else { 2 }]);
    packet.extend([8, 0]);
    packet.extend(ip);
    packet.extend_from_slice(content);
    packet
}

/// The Internet checksum over the parts; all but the last must have an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for pair in part.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            sum += u32::from(u16::from_be_bytes([pair[0], low]));
        }
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !u16::try_from(sum).unwrap_or(0)
}
