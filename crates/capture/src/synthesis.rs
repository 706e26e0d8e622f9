//! Generates packets for conversations that were not captured in this form: for exports, samples,
//! tests and benchmarks.

use std::net::{IpAddr, SocketAddr, SocketAddrV4};

use worldwire_core::Side;

use crate::network::{ACK, FIN, PSH, SYN, TCP, UDP};

/// Generates the packets of a TCP conversation over IP and Ethernet: the handshake, segments with
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
    ends: [SocketAddr; 2],
    /// The next sequence number of each side.
    next: [u32; 2],
    packets: u16,
}

/// The maximum payload of a segment.
const SEGMENT: usize = 1460;
/// The maximum payload of a segment that should hold a whole message: less than half a window, so
/// that two of them never fill it.
const LARGE_SEGMENT: usize = 32_767;

impl SyntheticTcp {
    /// A conversation between two ends. The initial sequence numbers are derived from the ports.
    #[must_use]
    pub fn new(client: SocketAddrV4, server: SocketAddrV4) -> Self {
        Self::between([client.into(), server.into()])
    }

    /// Creates a conversation between a client and a server with addresses of either kind. If the
    /// kinds differ, IPv6 is used.
    #[must_use]
    pub fn between(ends: [SocketAddr; 2]) -> Self {
        let first = |end: SocketAddr| u32::from(end.port()).wrapping_mul(0x9e37_79b1);
        Self { ends: alike(ends), next: ends.map(first), packets: 0 }
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

    /// Segments with the payload, as large as possible, without an acknowledgement.
    pub fn segments(&mut self, side: Side, payload: &[u8]) -> Vec<Vec<u8>> {
        let segments = payload.chunks(LARGE_SEGMENT);
        segments.map(|segment| self.packet(side, PSH | ACK, segment)).collect()
    }

    /// Acknowledges everything that the other side has sent.
    pub fn acknowledgement(&mut self, side: Side) -> Vec<u8> {
        self.packet(side, ACK, &[])
    }

    /// Leaves out bytes from a side, as if they had not been captured.
    pub fn skip(&mut self, side: Side, bytes: u32) {
        let next = &mut self.next[side.index()];
        *next = next.wrapping_add(bytes);
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
        let sum = transport_checksum([source, target], TCP, &tcp);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());

        frame(&self.ends, side, self.packets, TCP, &tcp)
    }
}

/// Generates the packets of a UDP conversation over IP and Ethernet.
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
    ends: [SocketAddr; 2],
    packets: u16,
}

impl SyntheticUdp {
    /// A conversation between two ends.
    #[must_use]
    pub fn new(client: SocketAddrV4, server: SocketAddrV4) -> Self {
        Self::between([client.into(), server.into()])
    }

    /// Creates a conversation between a client and a server with addresses of either kind. If the
    /// kinds differ, IPv6 is used.
    #[must_use]
    pub fn between(ends: [SocketAddr; 2]) -> Self {
        Self { ends: alike(ends), packets: 0 }
    }

    /// A packet with this payload of at most 65,507 bytes. Over IPv4 it has no checksum, which the
    /// protocol allows.
    pub fn datagram(&mut self, side: Side, payload: &[u8]) -> Vec<u8> {
        let [source, target] = [self.ends[side.index()], self.ends[side.other().index()]];
        self.packets = self.packets.wrapping_add(1);
        let length = u16::try_from(payload.len() + 8).unwrap_or(u16::MAX);
        let mut udp = Vec::with_capacity(8 + payload.len());
        udp.extend([source, target].map(|end| end.port().to_be_bytes()).as_flattened());
        udp.extend(length.to_be_bytes());
        udp.extend([0, 0]);
        udp.extend_from_slice(payload);
        if source.is_ipv6() {
            let sum = match transport_checksum([source, target], UDP, &udp) {
                // 0 would mean that there is none.
                0 => u16::MAX,
                sum => sum,
            };
            udp[6..8].copy_from_slice(&sum.to_be_bytes());
        }
        frame(&self.ends, side, self.packets, UDP, &udp)
    }
}

/// Two addresses of the same kind: IPv6 unless both are IPv4.
fn alike(ends: [SocketAddr; 2]) -> [SocketAddr; 2] {
    if ends.iter().all(SocketAddr::is_ipv4) {
        return ends;
    }
    ends.map(|end| match end.ip() {
        IpAddr::V4(address) => SocketAddr::new(address.to_ipv6_mapped().into(), end.port()),
        IpAddr::V6(_) => end,
    })
}

/// The bytes of an address.
fn octets(end: SocketAddr) -> Vec<u8> {
    match end.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The checksum of a TCP segment or UDP datagram, with the pseudo header of its IP version.
fn transport_checksum([source, target]: [SocketAddr; 2], protocol: u8, content: &[u8]) -> u16 {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let mut pseudo = [octets(source), octets(target)].concat();
    pseudo.extend(length.to_be_bytes());
    pseudo.extend([0, 0, 0, protocol]);
    checksum(&[&pseudo, content])
}

/// A side's packet, starting with its Ethernet header.
fn frame(ends: &[SocketAddr; 2], side: Side, number: u16, protocol: u8, content: &[u8]) -> Vec<u8> {
    let [source, target] = [ends[side.index()], ends[side.other().index()]];
    let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
    let mut packet = Vec::with_capacity(14 + 40 + content.len());
    // Locally administered addresses, one per side.
    packet.extend([2, 0, 0, 0, 0, if side == Side::Client { 2 } else { 1 }]);
    packet.extend([2, 0, 0, 0, 0, if side == Side::Client { 1 } else { 2 }]);
    let addresses = [octets(source), octets(target)].concat();
    if source.is_ipv4() {
        let mut ip = Vec::with_capacity(20);
        ip.extend([0x45, 0]);
        ip.extend(length.saturating_add(20).to_be_bytes());
        ip.extend(number.to_be_bytes());
        ip.extend([0x40, 0, 64, protocol, 0, 0]);
        ip.extend(addresses);
        let sum = checksum(&[&ip]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend([8, 0]);
        packet.extend(ip);
    } else {
        packet.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        packet.extend(length.to_be_bytes());
        packet.extend([protocol, 64]);
        packet.extend(addresses);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum over a segment or datagram whose checksum field is filled is zero.
    fn is_valid(packet: &[u8], protocol: u8, ends: [SocketAddr; 2]) -> bool {
        transport_checksum(ends, protocol, &packet[14 + 40..]) == 0
    }

    #[test]
    fn addresses_of_either_kind_have_valid_checksums() -> Result<(), std::net::AddrParseError> {
        let ends = ["192.0.2.1:49152".parse()?, "[2001:db8::2]:10000".parse()?];
        let both = alike(ends);
        assert!(both.iter().all(SocketAddr::is_ipv6));
        let mut talk = SyntheticTcp::between(ends);
        let packets = [talk.open(), talk.segments(Side::Client, &[7; LARGE_SEGMENT + 1])].concat();
        assert_eq!(packets.len(), 3 + 2);
        assert!(packets.iter().all(|packet| is_valid(packet, TCP, both)));
        let packet = SyntheticUdp::between(ends).datagram(Side::Client, b"odd");
        assert!(is_valid(&packet, UDP, both));
        Ok(())
    }

    #[test]
    fn skipped_bytes_are_missing() -> Result<(), std::net::AddrParseError> {
        let mut talk = SyntheticTcp::new("192.0.2.1:1".parse()?, "192.0.2.2:2".parse()?);
        let sequence = |packet: &[u8]| packet[38..42].to_vec();
        let first = talk.segments(Side::Server, b"ab").concat();
        talk.skip(Side::Server, 0x1_0000);
        let second = talk.segments(Side::Server, b"c").concat();
        let [first, second] = [first, second]
            .map(|packet| u32::from_be_bytes(sequence(&packet).try_into().unwrap_or_default()));
        assert_eq!(second.wrapping_sub(first), 2 + 0x1_0000);
        Ok(())
    }
}
