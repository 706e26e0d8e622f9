//! Reads capture files record by record.

mod pcap;
mod pcapng;

use core::ops::Range;
use std::io::Read;

use worldwire_core::Limits;

use crate::error::{CaptureError, not_a_capture};
use crate::link::LinkType;
use crate::source::Source;
use crate::time::Timestamp;
use crate::unusable::Unusable;

/// Reads a pcap or pcapng capture, plain or gzipped.
///
/// Detects the format from the content. Memory use is one buffer for the current record; it does
/// not grow with the file, and never beyond [`Limits::capture_block_bytes`] (rounded up to the next
/// power of two).
///
/// After an error the reader is at its end; everything before the error was delivered.
///
/// ```
/// use worldwire_capture::{CaptureReader, ClassicWriter, LinkType, Record, Timestamp};
/// use worldwire_core::Limits;
///
/// let mut file = Vec::new();
/// let mut writer = ClassicWriter::new(&mut file, LinkType::RAW)?;
/// writer.packet(Timestamp::from_parts(12, 0), b"bytes", 5)?;
///
/// let mut reader = CaptureReader::new(file.as_slice(), &Limits::DEFAULT)?;
/// while let Some(record) = reader.next()? {
///     if let Record::Packet(packet) = record {
///         assert_eq!((packet.number, packet.data), (1, &b"bytes"[..]));
///     }
/// }
/// # Ok::<(), worldwire_capture::CaptureError>(())
/// ```
#[derive(Debug)]
pub struct CaptureReader<R> {
    source: Source<R>,
    state: FormatState,
    largest: u64,
    packets: u64,
    done: bool,
}

/// A place between two records of a plain capture, where reading can [resume](CaptureReader::resume).
#[derive(Clone, Debug)]
pub struct Mark {
    state: FormatState,
    offset: u64,
    packets: u64,
}

impl Mark {
    /// Where the next record begins in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

/// A record of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// A captured packet.
    Packet(Packet<'a>),
    /// Keys that were added to the capture to decrypt its packets.
    Secrets {
        /// The format of the keys.
        kind: SecretsKind,
        /// The keys.
        data: &'a [u8],
        /// Where the block begins in the unpacked file.
        offset: u64,
    },
}

/// A captured packet, starting with its link header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its number in the file, from 1 over all sections, as in Wireshark.
    pub number: u64,
    /// When it was captured. Simple packet blocks have no time and are given that of the previous
    /// packet.
    pub time: Timestamp,
    /// The interface it was captured on, from 0 over all sections of the file.
    pub interface: u32,
    /// The format of its first bytes.
    pub link: LinkType,
    /// The captured bytes.
    pub data: &'a [u8],
    /// Its length on the wire; greater than the length of `data` if the capture truncated it.
    pub original_length: u32,
    /// Why its block is unusable: [`Unusable::Interface`] or [`Unusable::Block`]. If it is,
    /// only its number and offset are known, and `data` is empty.
    pub unusable: Option<Unusable>,
    /// Where its record begins in the unpacked file.
    pub offset: u64,
}

/// The format of the keys in a secrets block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretsKind(pub u32);

impl SecretsKind {
    /// A worldwire key file: tables with session keys. The number is not registered.
    pub const WORLDWIRE: Self = Self(0x5757_4B46);
}

/// The first worldwire key file in a proxy's recording. Its only content is a comment saying that
/// session keys follow between the packets.
pub const MORE_KEYS: &str = "# keys follow between the packets\n";

impl<R: Read> CaptureReader<R> {
    /// Reads just enough to detect the format.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Empty`], [`CaptureError::NotACapture`], a truncated classic header, or an
    /// I/O error.
    pub fn new(input: R, limits: &Limits) -> Result<Self, CaptureError> {
        let mut source = Source::new(input)?;
        let found = source.fill(8)?;
        if found == 0 && !source.is_cut() {
            return Err(CaptureError::Empty);
        }
        check_cut(&source)?;
        let state = if let Some(variant) = pcap::Variant::of(source.bytes()) {
            FormatState::Pcap(pcap::Pcap::open(&mut source, variant)?)
        } else if source.bytes().starts_with(&pcapng::SECTION) {
            FormatState::Pcapng(pcapng::Pcapng::new())
        } else {
            source.fill(64)?;
            let bytes = source.bytes();
            let start = bytes.get(..64).unwrap_or(bytes);
            return Err(not_a_capture(start, source.is_gzip()));
        };
        Ok(Self { source, state, largest: largest(limits), packets: 0, done: false })
    }

    /// The position after the last record read. `None` for gzipped captures, which can only be read
    /// from the beginning.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        let mut state = self.state.clone();
        let pending = match &mut state {
            FormatState::Pcap(pcap) => pcap.take_pending(),
            FormatState::Pcapng(pcapng) => pcapng.take_pending(),
        };
        let offset = self.source.offset() + pending as u64;
        (!self.source.is_gzip()).then_some(Mark { state, offset, packets: self.packets })
    }

    /// Resumes at a position in the same capture. `input` must begin at [`Mark::offset`].
    #[must_use]
    pub fn resume(input: R, mark: &Mark, limits: &Limits) -> Self {
        let Mark { state, offset, packets } = mark.clone();
        let source = Source::resumed(input, offset);
        Self { source, state, largest: largest(limits), packets, done: false }
    }

    /// The first comment on the current section, truncated to 256 bytes. Programs use it to
    /// describe the whole file. `None` before the first record, or if the format has no comments.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        match &self.state {
            FormatState::Pcap(_) => None,
            FormatState::Pcapng(pcapng) => pcapng.comment(),
        }
    }

    /// The next record, or `None` at the end.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Truncated`] if the file ends inside a record, [`CaptureError::BadBlock`] if
    /// its fields contradict each other, [`CaptureError::Limit`], or an I/O error. A packet block
    /// whose own fields are invalid is not an error: see [`Packet::unusable`]. After an error, only
    /// `None` is returned.
    #[expect(clippy::should_implement_trait, reason = "the record borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        if self.done {
            return Ok(None);
        }
        let found = match &mut self.state {
            FormatState::Pcap(pcap) => pcap.advance(&mut self.source, self.largest),
            FormatState::Pcapng(pcapng) => pcapng.advance(&mut self.source, self.largest),
        };
        self.done = !matches!(found, Ok(Some(_)));
        Ok(found?.map(|found| self.show(found)))
    }

    fn show(&mut self, Found { data, what }: Found) -> Record<'_> {
        let data = self.source.bytes().get(data).unwrap_or_default();
        let offset = self.source.offset();
        match what {
            What::Packet(packet) => {
                self.packets += 1;
                Record::Packet(Packet { number: self.packets, data, offset, ..packet })
            }
            What::Secrets(kind) => Record::Secrets { kind, data, offset },
        }
    }
}

/// The maximum size of a block. Positions in the buffer are `usize`; a block that does not fit in
/// memory is refused as well.
fn largest(limits: &Limits) -> u64 {
    limits.capture_block_bytes.min(u64::from(u32::MAX >> 1))
}

/// The state of either format.
#[derive(Clone, Debug)]
enum FormatState {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// A record, with the position of its bytes in the window: records are found first and borrowed
/// afterwards.
#[derive(Debug)]
struct Found {
    data: Range<usize>,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Without its number, bytes and offset.
    Packet(Packet<'static>),
    Secrets(SecretsKind),
}

impl What {
    fn packet(time: Timestamp, interface: u32, link: LinkType, original_length: u32) -> Self {
        let (number, data, unusable, offset) = (0, &[], None, 0);
        let packet =
            Packet { number, time, interface, link, data, original_length, unusable, offset };
        Self::Packet(packet)
    }
}

/// Fills the window with one whole part of the file; `None` if the file ends cleanly before it.
#[inline]
fn whole<R: Read>(
    source: &mut Source<R>,
    wanted: usize,
    what: &'static str,
) -> Result<Option<()>, CaptureError> {
    let found = source.fill(wanted)?;
    if found >= wanted {
        return Ok(Some(()));
    }
    if found == 0 {
        check_cut(source)?;
        return Ok(None);
    }
    Err(truncated(source.offset(), what, wanted as u64, found as u64))
}

#[cold]
fn exceeded(offset: u64, asked: u64, allowed: u64) -> CaptureError {
    CaptureError::Limit { limit: "capture_block_bytes", offset, asked, allowed }
}

#[cold]
fn truncated(offset: u64, what: &'static str, wanted: u64, found: u64) -> CaptureError {
    CaptureError::Truncated { offset, what, wanted, found }
}

/// A truncated gzip file may end exactly between two records.
fn check_cut<R: Read>(source: &Source<R>) -> Result<(), CaptureError> {
    if source.is_cut() && source.bytes().is_empty() {
        return Err(truncated(source.offset(), "the gzip stream", 1, 0));
    }
    Ok(())
}
