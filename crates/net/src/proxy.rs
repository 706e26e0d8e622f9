//! The PROXY protocol, versions 1 and 2: how a proxy tells a server the address of its client.
//!
//! [`parse`] does no I/O. A listener reads the header only from
//! [trusted proxies](crate::tcp::Listener::trusting).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use worldwire_core::{Error, Result};

/// The longest header of version 1, with its line end.
const MAX_LINE: usize = 107;
/// The shortest header: `PROXY UNKNOWN` and its line end.
const SHORTEST: usize = 15;
/// The maximum size of what follows the fixed part of version 2: addresses and extensions.
const MAX_REST: usize = 4_096;
/// The beginning of version 1.
const TEXT: &[u8] = b"PROXY ";
/// The beginning of version 2.
const BINARY: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The size of the fixed part of version 2.
const FIXED: usize = 16;

/// The kind of a connection's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The beginning of a header that lacks at least this many bytes.
    Needs(usize),
    /// A whole header.
    Complete {
        /// The client's address. `None` if the proxy speaks for itself or does not know it.
        source: Option<SocketAddr>,
        /// The size of the header; the client's own bytes follow.
        size: usize,
    },
}

/// Parses the header at the beginning of a connection.
///
/// ```
/// use worldwire_net::proxy::{Header, parse};
///
/// let line = b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 12000\r\n";
/// let source = "192.0.2.7:40000".parse().ok();
/// assert_eq!(parse(line)?, Header::Complete { source, size: line.len() });
/// # Ok::<(), worldwire_core::Error>(())
/// ```
///
/// # Errors
/// `Malformed` if there is no such header; a limit if it is longer than any proxy sends.
pub fn parse(bytes: &[u8]) -> Result<Header> {
    let begins = |with: &[u8]| bytes.iter().zip(with).all(|(found, wanted)| found == wanted);
    match bytes.len() {
        _ if !begins(TEXT) && !begins(BINARY) => {
            let found = bytes.get(..bytes.len().min(8)).unwrap_or_default().escape_ascii();
            Err(Error::malformed("a PROXY protocol header", format!("\"{found}\"")))
        }
        found if found < SHORTEST => Ok(Header::Needs(SHORTEST - found)),
        _ if begins(TEXT) => line(bytes),
        found if found < FIXED => Ok(Header::Needs(FIXED - found)),
        _ => binary(bytes),
    }
}

/// Version 1.
fn line(bytes: &[u8]) -> Result<Header> {
    let within = bytes.get(..bytes.len().min(MAX_LINE)).unwrap_or_default();
    // The first CR ends the line. Looking for a later one would let a peer cause a read for every byte.
    let end = within.iter().position(|&byte| byte == b'\r').unwrap_or(within.len());
    let Some(&line_feed) = within.get(end + 1) else {
        let least = end + 2;
        if least > MAX_LINE {
            return Err(Error::limit("PROXY line", MAX_LINE as u64, least as u64));
        }
        return Ok(Header::Needs(least - within.len()));
    };
    let text = within.get(..end).unwrap_or_default();
    let invalid = || {
        let wanted = "PROXY TCP4|TCP6 SOURCE DESTINATION PORT PORT";
        Error::malformed(wanted, format!("\"{}\"", text.escape_ascii()))
    };
    if line_feed != b'\n' {
        return Err(invalid());
    }
    let text = core::str::from_utf8(text).map_err(|_| invalid())?;
    let words: Vec<&str> = text.split(' ').collect();
    let address = |word: &str, is_v4: bool| match is_v4 {
        true => word.parse::<Ipv4Addr>().map(IpAddr::from).map_err(|_| invalid()),
        false => word.parse::<Ipv6Addr>().map(IpAddr::from).map_err(|_| invalid()),
    };
    let port = |word: &str| {
        let digits = word.bytes().all(|byte| byte.is_ascii_digit());
        word.parse::<u16>().ok().filter(|_| digits).ok_or_else(invalid)
    };
    let source = match words[..] {
        [_, "UNKNOWN", ..] => None,
        [_, family @ ("TCP4" | "TCP6"), source, destination, from, to] => {
            let is_v4 = family == "TCP4";
            address(destination, is_v4)?;
            port(to)?;
            Some(SocketAddr::new(address(source, is_v4)?, port(from)?))
        }
        _ => return Err(invalid()),
    };
    Ok(Header::Complete { source, size: end + 2 })
}

/// Version 2.
fn binary(bytes: &[u8]) -> Result<Header> {
    let at = |index: usize| bytes.get(index).copied().unwrap_or_default();
    let (command, family) = (at(12), at(13));
    if !matches!(command, 0x20 | 0x21) {
        let found = format!("{command:#04x}");
        return Err(Error::malformed("version 2 with the command LOCAL or PROXY", found).at(12));
    }
    let rest = usize::from(u16::from_be_bytes([at(14), at(15)]));
    if rest > MAX_REST {
        return Err(Error::limit("PROXY header", MAX_REST as u64, rest as u64).at(14));
    }
    let size = FIXED + rest;
    let Some(rest) = bytes.get(FIXED..size) else {
        return Ok(Header::Needs(size - bytes.len()));
    };
    let is_local = command == 0x20;
    let source = match family {
        _ if is_local => None,
        // Over TCP or UDP.
        0x11 | 0x12 => Some(source::<4>(rest)?),
        0x21 | 0x22 => Some(source::<16>(rest)?),
        _ => None,
    };
    Ok(Header::Complete { source, size })
}

/// The source in an address block: both addresses, then both ports.
fn source<const N: usize>(block: &[u8]) -> Result<SocketAddr>
where
    IpAddr: From<[u8; N]>,
{
    let short = || {
        let found = format!("{} bytes", block.len());
        Error::malformed("two addresses and two ports", found).at(FIXED as u64)
    };
    let (address, _) = block.split_first_chunk::<N>().ok_or_else(short)?;
    let ports = block.get(2 * N..).and_then(|ports| ports.first_chunk::<4>()).ok_or_else(short)?;
    let [high, low, ..] = *ports;
    Ok(SocketAddr::new(IpAddr::from(*address), u16::from_be_bytes([high, low])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [BINARY, &[command, family], &length, rest].concat()
    }

    fn complete(bytes: &[u8]) -> Option<String> {
        match parse(bytes) {
            Ok(Header::Complete { source, size }) if size == bytes.len() => {
                Some(source.map_or_else(|| "none".to_owned(), |source| source.to_string()))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_versions_give_the_address_however_they_are_split() {
        // The addresses and ports of the examples in the specification.
        let v4 = [255, 255, 255, 255, 127, 0, 0, 1, 0xff, 0xff, 0, 80];
        let mut v6 = [0; 36];
        v6[15] = 1;
        v6[32..34].copy_from_slice(&443u16.to_be_bytes());
        let with_extension = [&v4[..], &[4, 0, 1, 0]].concat();
        let vectors: [(Vec<u8>, &str); 8] = [
            (
                b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n".into(),
                "255.255.255.255:65535",
            ),
            (b"PROXY TCP6 ::1 ffff::1 443 65535\r\n".into(), "[::1]:443"),
            (b"PROXY UNKNOWN\r\n".into(), "none"),
            (b"PROXY UNKNOWN ffff::1 ffff::1 65535 65535\r\n".into(), "none"),
            (binary(0x21, 0x11, &v4), "255.255.255.255:65535"),
            (binary(0x21, 0x11, &with_extension), "255.255.255.255:65535"),
            (binary(0x21, 0x21, &v6), "[::1]:443"),
            (binary(0x20, 0x00, &[]), "none"),
        ];
        for (bytes, source) in vectors {
            assert_eq!(complete(&bytes).as_deref(), Some(source));
            for end in 0..bytes.len() {
                // Never asks for more than the header: otherwise a listener would consume the
                // client's bytes.
                match parse(&bytes[..end]) {
                    Ok(Header::Needs(count)) => assert!(count > 0 && end + count <= bytes.len()),
                    other => panic!("{end}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let long = [b"PROXY ".to_vec(), vec![b'x'; 101]].concat();
        for bytes in [
            &b"GET / HTTP/1.1"[..],
            b"PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
            b"PROXY TCP4 ::1 5.6.7.8 1 2\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 65536 2\r\n",
            b"PROXY TCP4  1.2.3.4 5.6.7.8 1 2\r\n",
            b"PROXY TCP5 1.2.3.4 5.6.7.8 1 2\r\n",
            b"PROXY UNKNOWN \r\r\n",
            b"PROXY UNKNOWN \rx",
            &long,
            &binary(0x11, 0x11, &[0; 12]),
            &binary(0x21, 0x11, &[0; 11]),
            &binary(0x21, 0x21, &[0; 35]),
            &binary(0x21, 0x11, &[0; MAX_REST + 1]),
        ] {
            assert!(parse(bytes).is_err(), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_stall() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            let mut bytes = if state.is_multiple_of(2) { BINARY.to_vec() } else { TEXT.to_vec() };
            for _ in 0..state % 60 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                bytes.push(state.to_be_bytes()[0]);
            }
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            match parse(&bytes) {
                Ok(Header::Needs(count)) => assert!(count > 0),
                Ok(Header::Complete { size, .. }) => assert!(size <= bytes.len()),
                Err(_) => {}
            }
        }
    }
}
