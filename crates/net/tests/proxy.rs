//! Headers of the PROXY protocol, compared with another implementation.

use std::net::{IpAddr, SocketAddr};

use ppp::v2::{Builder, Command, Protocol, Version};
use proptest::prelude::*;
use worldwire_net::proxy::{Header, parse};

/// Two addresses of one family.
fn ends() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    let v4 = || (any::<[u8; 4]>(), any::<u16>()).prop_map(|(ip, port)| (IpAddr::from(ip), port));
    let v6 = || (any::<[u8; 16]>(), any::<u16>()).prop_map(|(ip, port)| (IpAddr::from(ip), port));
    prop_oneof![(v4(), v4()), (v6(), v6())].prop_map(|(from, to)| (from.into(), to.into()))
}

/// A header as another implementation writes it, and its client.
fn header() -> impl Strategy<Value = (Vec<u8>, Option<SocketAddr>)> {
    let extension = proptest::collection::vec(any::<u8>(), 0..300);
    let version_1 = ends().prop_map(|(from, to)| {
        let header = ppp::v1::Addresses::from((from, to)).to_string();
        (header.into_bytes(), Some(from))
    });
    let version_2 = (ends(), any::<bool>(), extension).prop_map(|((from, to), is_local, value)| {
        let command = if is_local { Command::Local } else { Command::Proxy };
        let builder = Builder::with_addresses(Version::Two | command, Protocol::Stream, (from, to));
        let header = builder.write_tlv(ppp::v2::Type::NoOp, &value).and_then(Builder::build);
        (header.expect("it fits"), Some(from).filter(|_| !is_local))
    });
    prop_oneof![version_1, version_2]
}

/// Reads a header as a listener does: never more than the parser asks for.
fn read(bytes: &[u8]) -> Result<(Option<SocketAddr>, usize), String> {
    let mut read = 0;
    loop {
        match parse(&bytes[..read]).map_err(|error| error.to_string())? {
            Header::Complete { source, size } => {
                assert_eq!(size, read);
                return Ok((source, size));
            }
            Header::Needs(count) if read + count > bytes.len() => {
                return Err("incomplete".to_owned());
            }
            Header::Needs(count) => read += count,
        }
    }
}

proptest! {
    #[test]
    fn headers_are_read_exactly((bytes, source) in header(), behind in any::<Vec<u8>>()) {
        let stream = [&bytes[..], &behind].concat();
        prop_assert_eq!(read(&stream), Ok((source, bytes.len())));
        for end in 0..bytes.len() {
            prop_assert_eq!(read(&bytes[..end]), Err("incomplete".to_owned()));
        }
    }

    #[test]
    fn damaged_headers_never_read_the_clients_bytes(
        (mut bytes, _) in header(),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u32,
    ) {
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok((source, size)) = read(&bytes) {
            prop_assert!(size <= bytes.len());
            // The other implementation agrees, unless the damage only shows in a port's digits.
            if let ppp::HeaderResult::V2(Ok(header)) = ppp::HeaderResult::parse(&bytes) {
                prop_assert_eq!(header.len(), size);
                let theirs = match header.addresses {
                    ppp::v2::Addresses::IPv4(ip) => {
                        Some(SocketAddr::new(ip.source_address.into(), ip.source_port))
                    }
                    ppp::v2::Addresses::IPv6(ip) => {
                        Some(SocketAddr::new(ip.source_address.into(), ip.source_port))
                    }
                    _ => None,
                };
                let is_local = header.command == Command::Local;
                prop_assert_eq!(source, theirs.filter(|_| !is_local));
            }
        }
    }
}
