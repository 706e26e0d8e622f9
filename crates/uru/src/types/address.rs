//! Identifiers and addresses.

use core::fmt;
use std::net::Ipv4Addr;

use worldwire_core::value::{guid_text, parse_guid};
use worldwire_core::{Form, scalar};

scalar! {
    /// A UUID in Microsoft byte order: one `u32` and two `u16`, all little-endian, then 8 plain
    /// bytes. `12345678-1234-5678-1234-567812345678` is sent as
    /// `78563412 3412 7856 1234567812345678`.
    #[derive(Default)]
    pub struct Uuid([u8; 16]):
        [u8; 16] as Form::Guid, "a UUID such as 12345678-1234-5678-1234-567812345678";
    read |bytes| bytes;
    write |id| id;
    parse |text| parse_guid(text);
    sample |sampler| (sampler.below(4) == 0).then_some([0; 16]);
}

impl Uuid {
    /// The nil UUID, which means "none".
    pub const ZERO: Self = Self([0; 16]);

    /// Whether this is the nil UUID.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&guid_text(&self.0))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

scalar! {
    /// An IPv4 address as the protocol sends it: a little-endian `u32` whose most significant byte
    /// is the first octet. 184.73.198.22 is `16 c6 49 b8`. IPv6 cannot be expressed.
    #[derive(Debug)]
    pub struct Ipv4(Ipv4Addr): [u8; 4] as Form::Ipv4, "an IPv4 address such as 127.0.0.1";
    read |bytes| Ipv4Addr::from(u32::from_le_bytes(bytes));
    write |address| u32::from(address).to_le_bytes();
    parse |text| text.parse().ok();
}

scalar! {
    /// A transaction number. A reply repeats the number of its request, so that clients can match
    /// the two. 0 means no transaction.
    pub struct TransId(u32);
}
