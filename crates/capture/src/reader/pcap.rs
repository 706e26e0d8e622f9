//! The classic format: a 24-byte file header, then packets with 16-byte headers.
//!
//! | Offset | Size | Field            |
//! |-------:|-----:|------------------|
//! |      0 |    4 | magic            |
//! |      4 |    4 | version 2.4      |
//! |      8 |    8 | zone and accuracy, always 0 |
//! |     16 |    4 | longest packet   |
//! |     20 |    4 | link type in the lower 16 bits |

use std::io::Read;

use super::{Found, What, exceeded, truncated, whole};
use crate::cursor::{Cursor, Order};
use crate::error::CaptureError;
use crate::link::LinkType;
use crate::source::Source;
use crate::time::Timestamp;

/// What the file header states about every packet.
#[derive(Clone, Debug)]
pub(super) struct Pcap {
    variant: Variant,
    link: LinkType,
    /// The size of the current packet, consumed when the next one is requested.
    pending: usize,
}

/// The variants that the magic number distinguishes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    order: Order,
    /// Nanoseconds per unit of the fraction.
    unit: i64,
    /// The size of a packet header. Kuznetzov's patch added eight bytes.
    header: usize,
}

impl Variant {
    /// The variant of a file, by its magic number.
    pub(super) fn of(start: &[u8]) -> Option<Self> {
        let magic = *start.first_chunk::<4>()?;
        for order in [Order::Little, Order::Big] {
            let (unit, header) = match order.u32(magic) {
                0xA1B2_C3D4 => (1_000, 16),
                0xA1B2_3C4D => (1, 16),
                0xA1B2_CD34 => (1_000, 24),
                _ => continue,
            };
            return Some(Self { order, unit, header });
        }
        None
    }
}

impl Pcap {
    /// Returns the number of bytes to consume before the next record, and counts them as consumed.
    pub(super) fn take_pending(&mut self) -> usize {
        core::mem::take(&mut self.pending)
    }

    pub(super) fn open<R: Read>(
        source: &mut Source<R>,
        variant: Variant,
    ) -> Result<Self, CaptureError> {
        let Some(()) = whole(source, HEADER, "the file header")? else {
            return Err(CaptureError::Empty);
        };
        let link = source.bytes().get(20..24).and_then(|bytes| bytes.first_chunk());
        // The upper half describes frame check sequences; IP's own length excludes them.
        let link = (link.map_or(0, |bytes| variant.order.u32(*bytes)) & 0xFFFF).to_le_bytes();
        let link = LinkType(u16::from_le_bytes([link[0], link[1]]));
        Ok(Self { variant, link, pending: HEADER })
    }

    pub(super) fn advance<R: Read>(
        &mut self,
        source: &mut Source<R>,
        largest: u64,
    ) -> Result<Option<Found>, CaptureError> {
        source.consume(self.pending);
        self.pending = 0;
        let Variant { order, unit, header } = self.variant;
        let Some(()) = whole(source, header, "a packet header")? else {
            return Ok(None);
        };
        let mut cursor = Cursor::new(source.bytes(), order);
        let (Some(seconds), Some(fraction), Some(captured), Some(original_length)) =
            (cursor.u32(), cursor.u32(), cursor.u32(), cursor.u32())
        else {
            return Ok(None);
        };
        if u64::from(captured) > largest {
            return Err(exceeded(source.offset(), captured.into(), largest));
        }
        // The length is below the limit, which is less than half of the address space.
        let wanted = header + captured as usize;
        let found = source.fill(wanted)?;
        if found < wanted {
            return Err(truncated(source.offset(), "a packet", wanted as u64, found as u64));
        }
        self.pending = wanted;
        let time = Timestamp::from_parts(seconds.into(), i64::from(fraction) * unit);
        let what = What::packet(time, 0, self.link, original_length);
        Ok(Some(Found { data: header..wanted, what }))
    }
}

/// The size of the file header.
const HEADER: usize = 24;
