//! Reads integers in either byte order, with bounds checks.

/// The byte order of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub(crate) const fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(crate) const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }
}

/// The unread bytes. Every method returns `None`, and reads nothing, if too few are left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8], order: Order) -> Self {
        Self { bytes, order }
    }

    /// A cursor over integers in network byte order.
    pub(crate) const fn network(bytes: &'a [u8]) -> Self {
        Self::new(bytes, Order::Big)
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(self.order.u16(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(self.order.u32(self.array()?))
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.bytes
    }
}
