//! Finds the IP packet inside link-layer and IP tunnels.

use crate::cursor::Cursor;
use crate::unusable::Unusable;

/// The EtherType of IPv4.
pub(crate) const IPV4: u16 = 0x0800;
/// The EtherType of IPv6.
pub(crate) const IPV6: u16 = 0x86dd;
/// The EtherType of a whole Ethernet frame in GRE.
const ETHERNET: u16 = 0x6558;
const VXLAN: u16 = 4789;
/// The maximum number of consecutive VLAN tags and MPLS labels.
const MAX_TAGS: usize = 16;

/// The IP packet in an Ethernet frame.
pub(crate) fn ethernet(frame: &[u8]) -> Result<&[u8], Unusable> {
    let mut cursor = Cursor::network(frame);
    cursor.take(12).ok_or(Unusable::Broken)?;
    let ether_type = cursor.u16().ok_or(Unusable::Broken)?;
    behind(ether_type, cursor)
}

/// The IP packet after an EtherType: directly, or after VLAN tags, a PPPoE session or MPLS labels.
pub(crate) fn behind<'a>(
    mut ether_type: u16,
    mut cursor: Cursor<'a>,
) -> Result<&'a [u8], Unusable> {
    let broken = Unusable::Broken;
    for _ in 0..MAX_TAGS {
        match ether_type {
            IPV4 | IPV6 => return Ok(cursor.rest()),
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                cursor.take(2).ok_or(broken)?;
                ether_type = cursor.u16().ok_or(broken)?;
            }
            0x8864 => return pppoe(cursor),
            0x8847 | 0x8848 => return mpls(cursor),
            other => return Err(Unusable::NotIp(other)),
        }
    }
    Err(broken)
}

/// RFC 2516: version and type, code, session and length, then PPP's protocol number.
fn pppoe(mut cursor: Cursor<'_>) -> Result<&[u8], Unusable> {
    const SESSION: u16 = 0x8864;
    let broken = Unusable::Broken;
    let [head, code] = cursor.array().ok_or(broken)?;
    let _session = cursor.u16().ok_or(broken)?;
    let length = cursor.u16().ok_or(broken)?;
    if head != 0x11 || code != 0 {
        return Err(Unusable::NotIp(SESSION));
    }
    let protocol = cursor.u16().ok_or(broken)?;
    let packet = cursor.rest();
    // Link-layer padding follows.
    let packet = packet.get(..usize::from(length.saturating_sub(2))).unwrap_or(packet);
    match protocol {
        0x0021 | 0x0057 => Ok(packet),
        _ => Err(Unusable::NotIp(SESSION)),
    }
}

/// RFC 3032: labels of four bytes; a bit marks the last one. The payload's type is not stated.
fn mpls(mut cursor: Cursor<'_>) -> Result<&[u8], Unusable> {
    for _ in 0..MAX_TAGS {
        let [_, _, bottom, _] = cursor.array::<4>().ok_or(Unusable::Broken)?;
        if bottom & 1 == 1 {
            return match cursor.rest().first().map(|first| first >> 4) {
                Some(4 | 6) => Ok(cursor.rest()),
                _ => Err(Unusable::NotIp(0x8847)),
            };
        }
    }
    Err(Unusable::Broken)
}

/// The IP packet in a GRE packet of version 0 (RFC 2784 and 2890).
pub(crate) fn gre(payload: &[u8]) -> Result<&[u8], Unusable> {
    let broken = Unusable::Broken;
    let mut cursor = Cursor::network(payload);
    let flags = cursor.u16().ok_or(broken)?;
    let protocol = cursor.u16().ok_or(broken)?;
    // Source routes were dropped from the standard; version 1 carries PPP.
    if flags & 0x4007 != 0 {
        return Err(Unusable::Protocol(47));
    }
    // Checksum, key, sequence number.
    for bit in [0x8000, 0x2000, 0x1000] {
        if flags & bit != 0 {
            cursor.take(4).ok_or(broken)?;
        }
    }
    match protocol {
        ETHERNET => ethernet(cursor.rest()),
        protocol => behind(protocol, cursor),
    }
}

/// The IP packet in a VXLAN datagram (RFC 7348); `None` if it is not VXLAN.
pub(crate) fn vxlan(port: u16, payload: &[u8]) -> Option<Result<&[u8], Unusable>> {
    let (head, frame) = payload.split_first_chunk::<8>()?;
    // One flag is set. The rest of the header is reserved, except for the network's number.
    let is_vxlan = port == VXLAN && head[..4] == [8, 0, 0, 0] && head[7] == 0;
    is_vxlan.then(|| ethernet(frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_and_other_payloads_are_reported() {
        let session = [0x11, 0, 0, 1, 0, 6, 0, 0x21, 0x45, 1, 2, 3, 0, 0];
        assert_eq!(pppoe(Cursor::network(&session)), Ok(&[0x45, 1, 2, 3][..]));
        assert_eq!(pppoe(Cursor::network(&session[..7])), Err(Unusable::Broken));
        let discovery = [0x11, 9, 0, 1, 0, 0, 0, 0x21];
        assert_eq!(pppoe(Cursor::network(&discovery)), Err(Unusable::NotIp(0x8864)));
        let labels = [0, 1, 0x10, 64, 0, 1, 0x11, 64, 0x60];
        assert_eq!(mpls(Cursor::network(&labels)), Ok(&[0x60][..]));
        assert_eq!(mpls(Cursor::network(&labels[..4])), Err(Unusable::Broken));
        assert_eq!(mpls(Cursor::network(&[0; 200])), Err(Unusable::Broken));
        assert_eq!(mpls(Cursor::network(&[0, 1, 1, 64, 0x00])), Err(Unusable::NotIp(0x8847)));
        let keyed = [0x30, 0, 8, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0x45];
        assert_eq!(gre(&keyed), Ok(&[0x45][..]));
        assert_eq!(gre(&[0, 1, 0x88, 0x0b]), Err(Unusable::Protocol(47)));
        assert_eq!(vxlan(4789, &[8, 0, 0, 0, 1]), None);
        assert_eq!(vxlan(4790, &[8, 0, 0, 0, 0, 0, 1, 0]), None);
        assert_eq!(vxlan(4789, &[8, 0, 0, 0, 0, 0, 1, 0]), Some(Err(Unusable::Broken)));
    }

    #[test]
    fn tags_without_an_end_are_broken() {
        let tags = [0x81, 0].repeat(100);
        assert_eq!(behind(0x8100, Cursor::network(&tags)), Err(Unusable::Broken));
    }
}
