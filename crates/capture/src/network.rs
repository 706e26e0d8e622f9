//! Extracts TCP and UDP segments from captured packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::cursor::{Cursor, Order};
use crate::fragments::{Fragments, Piece, PieceKey};
use crate::link::LinkType;
use crate::time::Timestamp;
use crate::tunnel;
use crate::unusable::Unusable;

/// A TCP segment or UDP datagram in a packet.
pub(crate) struct Segment<'a> {
    pub(crate) source: (IpAddr, u16),
    pub(crate) target: (IpAddr, u16),
    /// The TCP header; `None` for UDP.
    pub(crate) tcp: Option<TcpHeader>,
    /// The captured part of its payload.
    pub(crate) payload: &'a [u8],
    /// The number of payload bytes that were sent but not captured.
    pub(crate) missing: u32,
}

/// The fields of a TCP header that decide what happens to a segment.
pub(crate) struct TcpHeader {
    /// The sequence number of the first byte of payload, or of the SYN or FIN.
    pub(crate) sequence: u32,
    /// The next byte that the sender expects.
    pub(crate) acknowledged: Option<u32>,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
}

/// The flags of a TCP segment: no more data, a new connection, an aborted one, data to deliver
/// immediately, and a valid acknowledgement number.
pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const PSH: u8 = 8;
pub(crate) const ACK: u8 = 16;

/// The maximum number of consecutive IPv6 extension headers.
const MAX_HEADERS: usize = 16;
/// The maximum nesting of IP packets.
const MAX_TUNNELS: usize = 4;
/// A generous bound on the bytes that a network card is given to split into packets.
const MAX_OFFLOADED: usize = 1 << 20;

/// Finds a packet's TCP or UDP payload and passes it to `then`. Fragments wait in `fragments`; the
/// last one passes the payload of the reassembled packet.
///
/// # Errors
/// The reason why there is no payload.
pub(crate) fn segment<R>(
    link: LinkType,
    data: &[u8],
    original_length: u32,
    time: Timestamp,
    fragments: &mut Fragments,
    then: impl FnOnce(&Segment<'_>) -> R,
) -> Result<R, Unusable> {
    // This is only used where IP states no length, as in packets left for the network card to
    // split.
    let cut = (original_length as usize).saturating_sub(data.len()).min(MAX_OFFLOADED);
    let found = network(link, data).and_then(|packet| {
        let mut inside = Inside { time, fragments, tunnels: 0 };
        inside.segment(packet, cut, then)
    });
    found.map_err(|why| match why {
        Unusable::Broken if cut > 0 => Unusable::Cut,
        why => why,
    })
}

/// The state while following nested IP packets.
struct Inside<'f> {
    time: Timestamp,
    fragments: &'f mut Fragments,
    tunnels: usize,
}

impl Inside<'_> {
    /// `cut` bytes after the packet were not captured.
    fn segment<R>(
        &mut self,
        packet: &[u8],
        cut: usize,
        then: impl FnOnce(&Segment<'_>) -> R,
    ) -> Result<R, Unusable> {
        let ip = internet(packet, cut)?;
        let Some(place) = ip.fragment else {
            return self.payload(&ip, ip.payload, ip.missing, then);
        };
        let missing = ip.missing as usize;
        let piece = Piece { offset: place.offset, last: !place.more, bytes: ip.payload, missing };
        let key = PieceKey {
            source: ip.source,
            target: ip.target,
            protocol: ip.protocol,
            identification: place.identification,
        };
        let whole = self.fragments.add(key, piece, self.time).ok_or(Unusable::Fragment)?;
        // In IPv6, more headers may follow the fragment header.
        let chain = match ip.source {
            IpAddr::V4(_) => Chain { next: ip.protocol, rest: &whole.bytes, fragment: None },
            IpAddr::V6(_) => extensions(ip.protocol, &whole.bytes)?,
        };
        if chain.fragment.is_some() {
            return Err(Unusable::Broken);
        }
        let ip = Internet { protocol: chain.next, ..ip };
        self.payload(&ip, chain.rest, whole.missing, then)
    }

    /// Handles what IP carries: a segment, or a tunnel.
    fn payload<R>(
        &mut self,
        ip: &Internet<'_>,
        payload: &[u8],
        missing: u32,
        then: impl FnOnce(&Segment<'_>) -> R,
    ) -> Result<R, Unusable> {
        let packet = match ip.protocol {
            TCP => return Ok(then(&tcp(ip, payload, missing)?)),
            UDP => {
                let segment = udp(ip, payload)?;
                match tunnel::vxlan(segment.target.1, segment.payload) {
                    Some(packet) => packet?,
                    None => return Ok(then(&segment)),
                }
            }
            IP_IN_IP | IPV6_IN_IP => payload,
            GRE => tunnel::gre(payload)?,
            ESP => return Err(Unusable::Encrypted),
            other => return Err(Unusable::Protocol(other)),
        };
        self.tunnels += 1;
        if self.tunnels > MAX_TUNNELS {
            return Err(Unusable::Tunnels);
        }
        self.segment(packet, missing as usize, then)
    }
}

/// The IP packet in a link frame.
fn network(link: LinkType, data: &[u8]) -> Result<&[u8], Unusable> {
    let broken = Unusable::Broken;
    let mut cursor = Cursor::network(data);
    match link {
        LinkType::ETHERNET => tunnel::ethernet(data),
        LinkType::LINUX_SLL => {
            cursor.take(14).ok_or(broken)?;
            tunnel::behind(cursor.u16().ok_or(broken)?, cursor)
        }
        LinkType::LINUX_SLL2 => {
            let ether_type = cursor.u16().ok_or(broken)?;
            cursor.take(18).ok_or(broken)?;
            tunnel::behind(ether_type, cursor)
        }
        LinkType::NULL | LinkType::LOOP => {
            // The family is in the byte order of the capturing machine, and its values differ by
            // system. The IP packet after it states its own version.
            let family: [u8; 4] = cursor.array().ok_or(broken)?;
            let families = [Order::Little.u32(family), Order::Big.u32(family)];
            if !families.iter().any(|family| matches!(family, 2 | 10 | 23 | 24 | 28 | 30)) {
                return Err(Unusable::NotIp(0));
            }
            Ok(cursor.rest())
        }
        LinkType::RAW
        | LinkType::RAW_BSD
        | LinkType::RAW_OPENBSD
        | LinkType::IPV4
        | LinkType::IPV6 => Ok(data),
        other => Err(Unusable::Link(other)),
    }
}

/// The fields of an IP header.
struct Internet<'a> {
    source: IpAddr,
    target: IpAddr,
    protocol: u8,
    payload: &'a [u8],
    /// The number of payload bytes that were not captured.
    missing: u32,
    fragment: Option<FragmentPosition>,
}

/// Where a fragment belongs in its packet.
#[derive(Clone, Copy)]
struct FragmentPosition {
    identification: u32,
    offset: usize,
    more: bool,
}

const IP_IN_IP: u8 = 4;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const ESP: u8 = 50;

fn internet(packet: &[u8], cut: usize) -> Result<Internet<'_>, Unusable> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => internet4(packet, cut),
        Some(6) => internet6(packet, cut),
        Some(_) | None => Err(Unusable::Broken),
    }
}

fn internet4(packet: &[u8], cut: usize) -> Result<Internet<'_>, Unusable> {
    let broken = Unusable::Broken;
    let header: &[u8; 20] = packet.first_chunk().ok_or(broken)?;
    let header_length = usize::from(header[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // With offloading, the network card fills in the length; use everything captured.
    let total = if total == 0 { packet.len() + cut } else { total };
    if header_length < 20 || total < header_length {
        return Err(broken);
    }
    let body = packet.get(header_length..).ok_or(broken)?;
    let (payload, missing) = bounded(body, total - header_length);
    let place = u16::from_be_bytes([header[6], header[7]]);
    let (more, offset) = (place & 0x2000 != 0, usize::from(place & 0x1fff) * 8);
    let identification = u32::from(u16::from_be_bytes([header[4], header[5]]));
    let address = |at: usize| -> IpAddr {
        Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]).into()
    };
    Ok(Internet {
        source: address(12),
        target: address(16),
        protocol: header[9],
        payload,
        missing,
        fragment: (more || offset > 0).then_some(FragmentPosition { identification, offset, more }),
    })
}

fn internet6(packet: &[u8], cut: usize) -> Result<Internet<'_>, Unusable> {
    let broken = Unusable::Broken;
    let (header, body) = packet.split_first_chunk::<40>().ok_or(broken)?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let length = if length == 0 { body.len() + cut } else { length };
    let address = |bytes: &[u8]| -> Result<IpAddr, Unusable> {
        let octets: [u8; 16] = bytes.try_into().map_err(|_| broken)?;
        Ok(Ipv6Addr::from(octets).into())
    };
    let (source, target) = (address(&header[8..24])?, address(&header[24..40])?);
    let (payload, missing) = bounded(body, length);
    let Chain { next, rest, fragment } = extensions(header[6], payload)?;
    Ok(Internet { source, target, protocol: next, payload: rest, missing, fragment })
}

/// What follows the extension headers of an IPv6 packet, or its fragment header.
struct Chain<'a> {
    next: u8,
    rest: &'a [u8],
    fragment: Option<FragmentPosition>,
}

fn extensions(first: u8, payload: &[u8]) -> Result<Chain<'_>, Unusable> {
    let broken = Unusable::Broken;
    let (mut next, mut cursor) = (first, Cursor::network(payload));
    for _ in 0..MAX_HEADERS {
        match next {
            // Hop-by-hop options, routing, destination options: the length counts 8 bytes.
            0 | 43 | 60 => {
                next = cursor.u8().ok_or(broken)?;
                let more = usize::from(cursor.u8().ok_or(broken)?);
                cursor.take(more * 8 + 6).ok_or(broken)?;
            }
            // Authentication: the length counts 4 bytes, minus two.
            51 => {
                next = cursor.u8().ok_or(broken)?;
                let more = usize::from(cursor.u8().ok_or(broken)?);
                cursor.take(more * 4 + 6).ok_or(broken)?;
            }
            44 => {
                next = cursor.u8().ok_or(broken)?;
                cursor.take(1).ok_or(broken)?;
                let place = cursor.u16().ok_or(broken)?;
                let identification = cursor.u32().ok_or(broken)?;
                let (more, offset) = (place & 1 != 0, usize::from(place & 0xfff8));
                // A single fragment is the whole packet.
                if more || offset > 0 {
                    let fragment = Some(FragmentPosition { identification, offset, more });
                    return Ok(Chain { next, rest: cursor.rest(), fragment });
                }
            }
            _ => break,
        }
    }
    Ok(Chain { next, rest: cursor.rest(), fragment: None })
}

/// The first `length` captured bytes, and the number of bytes that were not captured.
fn bounded(body: &[u8], length: usize) -> (&[u8], u32) {
    match body.get(..length) {
        // Padding of the link follows.
        Some(payload) => (payload, 0),
        None => (body, u32::try_from(length - body.len()).unwrap_or(u32::MAX)),
    }
}

fn tcp<'a>(ip: &Internet<'_>, payload: &'a [u8], missing: u32) -> Result<Segment<'a>, Unusable> {
    let broken = Unusable::Broken;
    let header: &[u8; 20] = payload.first_chunk().ok_or(broken)?;
    let length = usize::from(header[12] >> 4) * 4;
    if length < 20 {
        return Err(broken);
    }
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let has = |flag: u8| header[13] & flag != 0;
    // Missing bytes of truncated options are not payload.
    let cut = u32::try_from(length.saturating_sub(payload.len())).unwrap_or(u32::MAX);
    Ok(Segment {
        source: (ip.source, u16::from_be_bytes([header[0], header[1]])),
        target: (ip.target, u16::from_be_bytes([header[2], header[3]])),
        tcp: Some(TcpHeader {
            sequence: word(4),
            acknowledged: has(ACK).then(|| word(8)),
            syn: has(SYN),
            fin: has(FIN),
            rst: has(RST),
        }),
        payload: payload.get(length..).unwrap_or_default(),
        missing: missing.checked_sub(cut).ok_or(broken)?,
    })
}

fn udp<'a>(ip: &Internet<'_>, payload: &'a [u8]) -> Result<Segment<'a>, Unusable> {
    let broken = Unusable::Broken;
    let (header, body) = payload.split_first_chunk::<8>().ok_or(broken)?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let length = if length == 0 { body.len() } else { length.checked_sub(8).ok_or(broken)? };
    let (payload, missing) = bounded(body, length);
    Ok(Segment {
        source: (ip.source, u16::from_be_bytes([header[0], header[1]])),
        target: (ip.target, u16::from_be_bytes([header[2], header[3]])),
        tcp: None,
        payload,
        missing,
    })
}
