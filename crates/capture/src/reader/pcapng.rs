//! The block format: every block starts with its type and length, and repeats its length at the
//! end.
//!
//! Reads section headers, interface descriptions, enhanced, simple and obsolete packets, and
//! decryption secrets. Keeps only the first comment of each section. Skips all other blocks,
//! whatever their length.

use core::ops::Range;
use std::io::Read;

use super::{Found, SecretsKind, What, exceeded, truncated, whole};
use crate::cursor::{Cursor, Order};
use crate::error::CaptureError;
use crate::link::LinkType;
use crate::source::Source;
use crate::time::{NANOS, Timestamp};
use crate::unusable::Unusable;

/// The first bytes of every pcapng file and of every section.
pub(super) const SECTION: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];

/// The reader's state.
#[derive(Clone, Debug)]
pub(super) struct Pcapng {
    order: Order,
    /// The interfaces of the current section.
    interfaces: Vec<Interface>,
    /// The number of interfaces in earlier sections.
    interfaces_before: u32,
    /// The first comment on the current section, shortened.
    comment: Option<Box<str>>,
    /// The time of the last packet that had one.
    time: Timestamp,
    /// The size of the current block, consumed when the next one is requested.
    pending: usize,
}

/// What an interface description states about its packets.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    longest: u32,
    unit: Unit,
    /// Seconds to add to every time.
    shift: i64,
}

/// The resolution of an interface's clock.
#[derive(Clone, Copy, Debug)]
enum Unit {
    /// A tick of this many nanoseconds.
    Nanos(u64),
    /// This many ticks per nanosecond.
    PerNano(u64),
    /// Two to this power of ticks per second.
    Binary(u8),
}

impl Pcapng {
    /// Returns the number of bytes to consume before the next record, and counts them as consumed.
    pub(super) fn take_pending(&mut self) -> usize {
        core::mem::take(&mut self.pending)
    }

    /// The first comment on the current section, at most [`MAX_COMMENT`] bytes of it.
    pub(super) fn comment(&self) -> Option<&str> {
        self.comment.as_deref()
    }

    pub(super) const fn new() -> Self {
        Self {
            order: Order::Little,
            interfaces: Vec::new(),
            interfaces_before: 0,
            comment: None,
            time: Timestamp::from_nanos(0),
            pending: 0,
        }
    }

    /// Advances to the next record.
    pub(super) fn advance<R: Read>(
        &mut self,
        source: &mut Source<R>,
        largest: u64,
    ) -> Result<Option<Found>, CaptureError> {
        loop {
            source.consume(self.pending);
            self.pending = 0;
            let Some(()) = whole(source, SMALLEST, "a block")? else {
                return Ok(None);
            };
            let Some(block) = self.next_block(source, largest)? else {
                continue;
            };
            if let Some(found) = self.open(source.bytes(), &block)? {
                return Ok(Some(found));
            }
        }
    }

    /// Reads the next block of a supported type into the window.
    fn next_block<R: Read>(
        &mut self,
        source: &mut Source<R>,
        largest: u64,
    ) -> Result<Option<Block>, CaptureError> {
        let offset = source.offset();
        let start = source.bytes();
        if start.starts_with(&SECTION) {
            self.order = section_order(start).ok_or_else(|| CaptureError::BadBlock {
                offset,
                what: "section header",
                problem: "its byte-order magic is invalid",
                value: Cursor::network(start.get(8..).unwrap_or_default())
                    .u32()
                    .map_or(0, u64::from),
            })?;
        }
        let mut cursor = Cursor::new(start, self.order);
        let (Some(kind), Some(length)) = (cursor.u32(), cursor.u32()) else {
            return Ok(None);
        };
        let kind = Kind::of(kind);
        let bad = |problem, value: u32| CaptureError::BadBlock {
            offset,
            what: kind.map_or("block", Kind::name),
            problem,
            value: value.into(),
        };
        if (length as usize) < SMALLEST {
            return Err(bad("its length is less than 12", length));
        }
        if !length.is_multiple_of(4) {
            return Err(bad("its length is not a multiple of 4", length));
        }
        let ending = length - 4;
        let Some(kind) = kind else {
            let skipped = source.skip(ending.into())?;
            let found = if skipped < u64::from(ending) { 0 } else { source.fill(4)? };
            if found < 4 {
                let found = skipped + found as u64;
                return Err(truncated(offset, "a block", length.into(), found));
            }
            if Cursor::new(source.bytes(), self.order).u32() != Some(length) {
                return Err(bad("its two lengths differ", length));
            }
            source.consume(4);
            return Ok(None);
        };
        if u64::from(length) > largest {
            return Err(exceeded(offset, length.into(), largest));
        }
        let (length, ending) = (length as usize, ending as usize);
        let found = source.fill(length)?;
        if found < length {
            return Err(truncated(offset, "a block", length as u64, found as u64));
        }
        let again = source.bytes().get(ending..length).unwrap_or_default();
        match Cursor::new(again, self.order).u32() {
            Some(again) if again as usize == length => {}
            again => return Err(bad("its two lengths differ", again.unwrap_or(0))),
        }
        self.pending = length;
        Ok(Some(Block { kind, ending, offset }))
    }

    /// Decodes the block in the window.
    fn open(&mut self, window: &[u8], block: &Block) -> Result<Option<Found>, CaptureError> {
        let body = window.get(8..block.ending).unwrap_or_default();
        let mut cursor = Cursor::new(body, self.order);
        let found = match block.kind {
            Kind::Section => return self.open_section(&mut cursor, block).map(|()| None),
            Kind::Interface => return self.open_interface(&mut cursor, block).map(|()| None),
            Kind::Enhanced | Kind::Obsolete => self.open_packet(&mut cursor, block),
            Kind::Simple => self.open_simple(&mut cursor, block),
            Kind::Secrets => {
                let kind =
                    cursor.u32().ok_or_else(|| block.bad("it is too short for its type", 0))?;
                let length = cursor.u32();
                let data = length.and_then(|length| block.take(&mut cursor, length));
                let data = data.ok_or_else(|| {
                    let length = length.unwrap_or(0).into();
                    block.bad("its secrets are longer than the block", length)
                })?;
                Ok(Found { data, what: What::Secrets(SecretsKind(kind)) })
            }
        };
        // An invalid packet block affects only itself: reading continues with the next block.
        Ok(Some(found.unwrap_or_else(|why| {
            let mut what = What::packet(self.time, 0, LinkType::NULL, 0);
            if let What::Packet(packet) = &mut what {
                packet.unusable = Some(why);
            }
            Found { data: 0..0, what }
        })))
    }

    fn open_section(&mut self, cursor: &mut Cursor<'_>, block: &Block) -> Result<(), CaptureError> {
        let (Some(_), Some(major), Some(_), Some(_)) =
            (cursor.u32(), cursor.u16(), cursor.u16(), cursor.array::<8>())
        else {
            return Err(block.bad("it is too short for its fields", block.ending as u64 + 4));
        };
        if major != 1 {
            return Err(block.bad("only version 1 of the format is supported", major.into()));
        }
        let described = u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX);
        self.interfaces_before = self.interfaces_before.saturating_add(described);
        self.interfaces.clear();
        self.comment = None;
        let mut options = Options(*cursor);
        while let Some((code, value)) = options.next(self.order) {
            if code == OPT_COMMENT {
                let text = value.get(..MAX_COMMENT).unwrap_or(value);
                self.comment = Some(String::from_utf8_lossy(text).into());
                break;
            }
        }
        Ok(())
    }

    fn open_interface(
        &mut self,
        cursor: &mut Cursor<'_>,
        block: &Block,
    ) -> Result<(), CaptureError> {
        let (Some(link), Some(_), Some(longest)) = (cursor.u16(), cursor.u16(), cursor.u32())
        else {
            return Err(block.bad("it is too short for its fields", block.ending as u64 + 4));
        };
        if self.interfaces.len() >= INTERFACES {
            return Err(CaptureError::Limit {
                limit: "interfaces of one section",
                offset: block.offset,
                asked: INTERFACES as u64 + 1,
                allowed: INTERFACES as u64,
            });
        }
        let (mut unit, mut shift) = (Unit::Nanos(1_000), 0);
        let mut options = Options(*cursor);
        while let Some((code, value)) = options.next(self.order) {
            match (code, value) {
                (IF_TSRESOL, [resolution]) => unit = Unit::of(*resolution),
                (IF_TSOFFSET, value) => {
                    let mut value = Cursor::new(value, self.order);
                    shift = value.array().map_or(0, |bytes| match self.order {
                        Order::Little => i64::from_le_bytes(bytes),
                        Order::Big => i64::from_be_bytes(bytes),
                    });
                }
                _ => {}
            }
        }
        self.interfaces.push(Interface { link: LinkType(link), longest, unit, shift });
        Ok(())
    }

    fn open_packet(&mut self, cursor: &mut Cursor<'_>, block: &Block) -> Result<Found, Unusable> {
        let number = match block.kind {
            Kind::Enhanced => cursor.u32(),
            // The second number counts dropped packets.
            _ => cursor.u16().zip(cursor.u16()).map(|(number, _)| number.into()),
        };
        let number = number.ok_or(Unusable::Block)?;
        let (Some(high), Some(low), Some(captured), Some(original_length)) =
            (cursor.u32(), cursor.u32(), cursor.u32(), cursor.u32())
        else {
            return Err(Unusable::Block);
        };
        let interface = self.interface(number)?;
        let time = interface.time(u64::from(high) << 32 | u64::from(low));
        let number = self.interfaces_before.saturating_add(number);
        let what = What::packet(time, number, interface.link, original_length);
        let found = Found { data: block.take(cursor, captured).ok_or(Unusable::Block)?, what };
        self.time = time;
        Ok(found)
    }

    fn open_simple(&self, cursor: &mut Cursor<'_>, block: &Block) -> Result<Found, Unusable> {
        let original_length = cursor.u32().ok_or(Unusable::Block)?;
        let interface = self.interface(0)?;
        // The captured length is not stated: it is bounded by the interface's limit.
        let longest = if interface.longest == 0 { u32::MAX } else { interface.longest };
        let data = block.take(cursor, original_length.min(longest)).ok_or(Unusable::Block)?;
        let number = self.interfaces_before;
        Ok(Found { data, what: What::packet(self.time, number, interface.link, original_length) })
    }

    fn interface(&self, number: u32) -> Result<Interface, Unusable> {
        let found = usize::try_from(number).ok().and_then(|number| self.interfaces.get(number));
        found.copied().ok_or(Unusable::Interface)
    }
}

impl Interface {
    fn time(&self, ticks: u64) -> Timestamp {
        let ticks = i128::from(ticks);
        let nanos = match self.unit {
            Unit::Nanos(each) => ticks * i128::from(each),
            Unit::PerNano(many) => ticks / i128::from(many),
            Unit::Binary(power) => (ticks * i128::from(NANOS)) >> power,
        };
        Timestamp::from_wide(nanos + i128::from(self.shift) * i128::from(NANOS))
    }
}

impl Unit {
    /// From the option's value: a power of ten, or of two if the highest bit is set.
    fn of(resolution: u8) -> Self {
        if resolution & 0x80 != 0 {
            return Self::Binary(resolution & 0x7F);
        }
        match u32::from(resolution) {
            digits @ 0..=9 => Self::Nanos(10_u64.pow(9 - digits)),
            // Ticks too short to fill a nanosecond within 64 bits all round down to its start.
            digits => Self::PerNano(10_u64.checked_pow(digits - 9).unwrap_or(u64::MAX)),
        }
    }
}

/// A block in the window.
#[derive(Debug)]
struct Block {
    kind: Kind,
    /// The position of its second length.
    ending: usize,
    offset: u64,
}

impl Block {
    /// Takes bytes of the block and returns their position in the window.
    fn take(&self, cursor: &mut Cursor<'_>, length: u32) -> Option<Range<usize>> {
        let start = self.ending - cursor.rest().len();
        let length = cursor.take(length as usize)?.len();
        Some(start..start + length)
    }

    #[cold]
    fn bad(&self, problem: &'static str, value: u64) -> CaptureError {
        CaptureError::BadBlock { offset: self.offset, what: self.kind.name(), problem, value }
    }
}

/// The supported block types.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Section,
    Interface,
    Enhanced,
    Simple,
    Obsolete,
    Secrets,
}

impl Kind {
    const fn of(number: u32) -> Option<Self> {
        Some(match number {
            0x0A0D_0D0A => Self::Section,
            1 => Self::Interface,
            2 => Self::Obsolete,
            3 => Self::Simple,
            6 => Self::Enhanced,
            10 => Self::Secrets,
            _ => return None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Section => "section header",
            Self::Interface => "interface description",
            Self::Enhanced => "packet block",
            Self::Simple => "simple packet block",
            Self::Obsolete => "obsolete packet block",
            Self::Secrets => "secrets block",
        }
    }
}

/// Options: code, length, value, padding to a multiple of four.
struct Options<'a>(Cursor<'a>);

impl<'a> Options<'a> {
    fn next(&mut self, order: Order) -> Option<(u16, &'a [u8])> {
        let mut cursor = Cursor::new(self.0.rest(), order);
        let (code, length) = (cursor.u16()?, usize::from(cursor.u16()?));
        if code == 0 {
            return None;
        }
        let value = cursor.take(length)?;
        let _ = cursor.take(length.wrapping_neg() & 3);
        self.0 = cursor;
        Some((code, value))
    }
}

/// The byte order of a section, from the magic number after its length.
fn section_order(start: &[u8]) -> Option<Order> {
    let magic = start.get(8..)?.first_chunk::<4>()?;
    [Order::Little, Order::Big].into_iter().find(|order| order.u32(*magic) == 0x1A2B_3C4D)
}

/// The size of a block without a body.
const SMALLEST: usize = 12;

/// The maximum number of interfaces per section; real captures have a handful.
const INTERFACES: usize = 65_536;

/// The number of bytes of a section's comment that are kept.
const MAX_COMMENT: usize = 256;

const OPT_COMMENT: u16 = 1;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
