//! The fuzz targets of this crate.

use std::net::{IpAddr, SocketAddr};

use worldwire_core::testing::Target;

use crate::proxy::{Header, parse};

/// The maximum size of a header in bytes: a fixed part of 16, then up to 4,096.
const MAX_HEADER: usize = 4_112;

/// Reads arbitrary bytes as the header of a proxied connection, as a listener does.
///
/// # Panics
/// If the parser asks for nothing, for bytes that do not belong to the header, or for more than the
/// longest header has; or if the result depends on how the bytes arrive.
pub fn proxy_header(data: &[u8]) {
    let mut read = 0;
    let mut steps = 0;
    let outcome = loop {
        let bytes = data.get(..read).unwrap_or_default();
        match parse(bytes) {
            Ok(Header::Needs(count)) => {
                assert!(count > 0, "asks for 0 bytes");
                assert!(read + count <= MAX_HEADER, "asks for {} bytes", read + count);
                steps += 1;
                assert!(steps <= 64, "asks {steps} times");
                if read + count > data.len() {
                    // Every byte so far belongs to a header, so none of them completes one.
                    for end in read..data.len() {
                        let part = parse(data.get(..end).unwrap_or_default());
                        assert!(!matches!(part, Ok(Header::Complete { .. })), "complete at {end}");
                    }
                    return;
                }
                read += count;
            }
            outcome => break outcome,
        }
    };
    match (outcome, parse(data)) {
        (Ok(Header::Complete { source, size }), whole) => {
            assert_eq!(size, read, "read bytes that follow the header");
            let same = Header::Complete { source, size };
            assert!(matches!(whole, Ok(header) if header == same), "{whole:?}, not {same:?}");
        }
        (Err(_), Err(error)) => {
            assert!(!error.to_string().contains('\n'), "more than one line: {error}");
        }
        (one, other) => panic!("{one:?} in parts, {other:?} at once"),
    }
}

/// Every target with its seeds.
pub const TARGETS: &[Target] =
    &[Target { name: "net_proxy_header", run: proxy_header, seeds: proxy_headers }];

/// Headers of both versions, each followed by the client's first byte.
fn proxy_headers() -> Vec<Vec<u8>> {
    let addresses = ["192.0.2.7:40000", "[2001:db8::7]:40000"].map(|address| {
        let address: Option<SocketAddr> = address.parse().ok();
        address
    });
    let mut seeds = vec![b"PROXY UNKNOWN\r\nx".to_vec(), version_2(0x20, 0, &[])];
    // Carriage returns without a line feed once cost one read each.
    seeds.push([&b"PROXY UNKNOWN "[..], &[b'\r'; 80], b"\r\nx"].concat());
    for address in addresses.into_iter().flatten() {
        let (ip, port) = (address.ip(), address.port());
        let family = if ip.is_ipv4() { "TCP4" } else { "TCP6" };
        seeds.push(format!("PROXY {family} {ip} {ip} {port} 12000\r\nx").into_bytes());
        let octets = match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let ports = [port.to_be_bytes(), 12_000_u16.to_be_bytes()].concat();
        let block = [&octets[..], &octets, &ports].concat();
        let family = if ip.is_ipv4() { 0x11 } else { 0x21 };
        seeds.push(version_2(0x21, family, &block));
        // With an extension of one byte.
        seeds.push(version_2(0x21, family, &[&block[..], &[4, 0, 1, 9]].concat()));
    }
    seeds
}

fn version_2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).unwrap_or(u16::MAX).to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n", &[command, family][..], &length, rest, b"x"].concat()
}
