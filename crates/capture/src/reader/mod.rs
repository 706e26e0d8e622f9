//! Capture files read record by record.

mod pcap;
mod pcapng;

use core::ops::Range;
use std::borrow::Cow;
use std::io::Read;

use worldwire_core::Limits;

use crate::error::{CaptureError, not_a_capture};
use crate::link::LinkType;
use crate::source::Source;
use crate::time::Timestamp;
use crate::unusable::Unusable;

/// Reads a pcap or pcapng capture, plain or packed with gzip, from anything that can be read.
///
/// The format is told by the content. Memory is one buffer that holds the record in hand; it does
/// not grow with the file and never past [`Limits::capture_block_bytes`] (rounded up to the next
/// power of two).
///
/// After an error the reader is at its end: everything before was delivered.
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
    form: Form,
    largest: u64,
    packets: u64,
    done: bool,
}

/// One thing a capture tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// A captured packet.
    Packet(Packet<'a>),
    /// Keys that somebody put into the capture to decrypt what is in it.
    Secrets {
        /// In which form the keys are.
        kind: SecretsKind,
        /// The keys.
        data: &'a [u8],
        /// Where the block begins in the unpacked file.
        offset: u64,
    },
    /// What somebody wrote about the capture or a part of it. Follows the record it is about.
    Comment {
        /// What it is about.
        subject: Subject,
        /// The text; bytes that are no UTF-8 are replaced.
        text: Cow<'a, str>,
        /// Where the block that holds it begins in the unpacked file.
        offset: u64,
    },
}

/// A captured packet, from the first byte of its link header on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Which packet of the file it is, counted from 1 over all sections as Wireshark counts.
    pub number: u64,
    /// When it was captured. A simple packet block tells no time and has that of the packet before.
    pub time: Timestamp,
    /// The interface it was captured on, counted from 0 over all sections of the file.
    pub interface: u32,
    /// What its first byte is.
    pub link: LinkType,
    /// The bytes that were captured.
    pub data: &'a [u8],
    /// Bytes it had on the wire; more than `data` when the capture cuts long packets.
    pub original_length: u32,
    /// Why its block is of no use: [`Unusable::Interface`] or [`Unusable::Block`]. Nothing but its
    /// number and offset is known then, and `data` is empty.
    pub unusable: Option<Unusable>,
    /// Where its record begins in the unpacked file.
    pub offset: u64,
}

/// The form of the keys in a secrets block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretsKind(pub u32);

impl SecretsKind {
    /// Text lines as browsers write them with `SSLKEYLOGFILE`.
    pub const TLS_KEY_LOG: Self = Self(0x544C_534B);
    /// Text lines with SSH keys.
    pub const SSH_KEY_LOG: Self = Self(0x5353_484B);
    /// A key file of worldwire: tables with the keys of sessions. The number is not registered with
    /// anybody.
    pub const WORLDWIRE: Self = Self(0x5757_4B46);
    /// A WireGuard key log.
    pub const WIREGUARD_KEY_LOG: Self = Self(0x5747_4B4C);
}

/// What a comment is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Subject {
    /// The capture, or one section of it.
    Section,
    /// The interface of this number.
    Interface(u32),
    /// The packet of this number.
    Packet(u64),
    /// The secrets block before.
    Secrets,
}

/// The two families of capture files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The classic format: one link type, packets and nothing else.
    Pcap,
    /// The block format: several interfaces, comments, secrets.
    Pcapng,
}

impl<R: Read> CaptureReader<R> {
    /// Reads as much as it needs to tell the format.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Empty`], [`CaptureError::NotACapture`], a classic header that is cut, or
    /// what the input says.
    pub fn new(input: R, limits: &Limits) -> Result<Self, CaptureError> {
        let mut source = Source::new(input)?;
        let found = source.fill(8)?;
        if found == 0 && !source.is_cut() {
            return Err(CaptureError::Empty);
        }
        check_cut(&source)?;
        let form = if let Some(variant) = pcap::Variant::of(source.bytes()) {
            Form::Pcap(pcap::Pcap::open(&mut source, variant)?)
        } else if source.bytes().starts_with(&pcapng::SECTION) {
            Form::Pcapng(pcapng::Pcapng::new())
        } else {
            source.fill(64)?;
            let bytes = source.bytes();
            let start = bytes.get(..64).unwrap_or(bytes);
            return Err(not_a_capture(start, source.is_gzip()));
        };
        // Positions in the buffer are `usize`; a block that fits no memory is refused as well.
        let largest = limits.capture_block_bytes.min(u64::from(u32::MAX >> 1));
        Ok(Self { source, form, largest, packets: 0, done: false })
    }

    /// The next record, or `None` at the end.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Truncated`] when the file ends inside of a record, [`CaptureError::BadBlock`]
    /// when its numbers contradict each other, [`CaptureError::Limit`], or what the input says. A
    /// packet block whose own fields are wrong is no error: see [`Packet::unusable`].
    /// After an error there is only `None`.
    #[expect(clippy::should_implement_trait, reason = "the record borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        if self.done {
            return Ok(None);
        }
        let found = match &mut self.form {
            Form::Pcap(pcap) => pcap.advance(&mut self.source, self.largest),
            Form::Pcapng(pcapng) => pcapng.advance(&mut self.source, self.largest, self.packets),
        };
        match found {
            Ok(Some(found)) => Ok(Some(self.show(found))),
            Ok(None) => {
                self.done = true;
                Ok(None)
            }
            Err(error) => {
                self.done = true;
                Err(error)
            }
        }
    }

    /// Packets delivered so far.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// The format of the file.
    #[must_use]
    pub const fn format(&self) -> Format {
        match self.form {
            Form::Pcap(_) => Format::Pcap,
            Form::Pcapng(_) => Format::Pcapng,
        }
    }

    /// Whether the file is packed with gzip.
    #[must_use]
    pub const fn is_gzip(&self) -> bool {
        self.source.is_gzip()
    }

    fn show(&mut self, found: Found) -> Record<'_> {
        let bytes = self.source.bytes();
        match found {
            Found::Packet { data, time, interface, link, original_length } => {
                self.packets += 1;
                Record::Packet(Packet {
                    number: self.packets,
                    time,
                    interface,
                    link,
                    data: bytes.get(data).unwrap_or_default(),
                    original_length,
                    unusable: None,
                    offset: self.source.offset(),
                })
            }
            Found::Unusable { why, time } => {
                self.packets += 1;
                Record::Packet(Packet {
                    number: self.packets,
                    time,
                    interface: 0,
                    link: LinkType::NULL,
                    data: &[],
                    original_length: 0,
                    unusable: Some(why),
                    offset: self.source.offset(),
                })
            }
            Found::Secrets { kind, data } => Record::Secrets {
                kind,
                data: bytes.get(data).unwrap_or_default(),
                offset: self.source.offset(),
            },
            Found::Comment { subject, text } => Record::Comment {
                subject,
                text: String::from_utf8_lossy(bytes.get(text).unwrap_or_default()),
                offset: self.source.offset(),
            },
        }
    }
}

/// The state of either format.
#[derive(Debug)]
enum Form {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// A record as places in the window, so that it can be found and then borrowed.
#[derive(Debug)]
enum Found {
    Packet {
        data: Range<usize>,
        time: Timestamp,
        interface: u32,
        link: LinkType,
        original_length: u32,
    },
    /// A packet whose block contradicts itself.
    Unusable {
        why: Unusable,
        time: Timestamp,
    },
    Secrets {
        kind: SecretsKind,
        data: Range<usize>,
    },
    Comment {
        subject: Subject,
        text: Range<usize>,
    },
}

/// Fills the window with a whole part of the file; `None` when the file properly ends before it.
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
fn truncated(offset: u64, what: &'static str, wanted: u64, found: u64) -> CaptureError {
    CaptureError::Truncated { offset, what, wanted, found }
}

/// A packed file that ends early may end just between two records.
fn check_cut<R: Read>(source: &Source<R>) -> Result<(), CaptureError> {
    if source.is_cut() && source.bytes().is_empty() {
        return Err(truncated(source.offset(), "the gzip stream", 1, 0));
    }
    Ok(())
}
