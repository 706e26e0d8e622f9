//! What can be wrong with a capture file.

use core::fmt;
use std::io;

/// Why a capture cannot be read on, or not be written.
///
/// Each shows as one line that says what and where. Offsets count in the capture itself: in what a
/// compressed file unpacks to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file: there is not one byte.
    #[error("the input is empty")]
    Empty,
    /// The file: it is something else.
    #[error("not a pcap or pcapng capture: it starts with {first}, {looks_like}")]
    NotACapture {
        /// The bytes it starts with.
        first: FirstBytes,
        /// What these bytes usually mean.
        looks_like: &'static str,
    },
    /// The file: it ends in the middle. Everything before was delivered.
    #[error("truncated at offset {offset}: {what} wants {wanted} bytes, only {found} are left")]
    Truncated {
        /// Where the part that is cut begins.
        offset: u64,
        /// The part that is cut.
        what: &'static str,
        /// Bytes it should have.
        wanted: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// The file: a block's own numbers contradict each other.
    #[error("bad {what} at offset {offset}: {problem} ({value})")]
    BadBlock {
        /// Where the block begins.
        offset: u64,
        /// The kind of block.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
        /// The number that is wrong.
        value: u64,
    },
    /// The file asks for more than the caller's [`Limits`](worldwire_core::Limits) allow.
    #[error("limit {limit} at offset {offset}: {asked} wanted, {allowed} allowed")]
    Limit {
        /// The field of the limits that was hit.
        limit: &'static str,
        /// Where it was hit.
        offset: u64,
        /// What the file asks for.
        asked: u64,
        /// What is allowed.
        allowed: u64,
    },
    /// The file: its compressed form is damaged. Everything before was delivered.
    #[error("the gzip data is damaged after {offset} unpacked bytes: {source}")]
    Gzip {
        /// Bytes that could be unpacked.
        offset: u64,
        /// What the unpacker says.
        source: io::Error,
    },
    /// The system: the input cannot be read.
    #[error("cannot read the capture at offset {offset}: {source}")]
    Read {
        /// Bytes that could be read.
        offset: u64,
        /// What the system says.
        source: io::Error,
    },
    /// The system: the output cannot be written.
    #[error("cannot write the capture: {0}")]
    Write(#[source] io::Error),
    /// The caller: the format has no place for this.
    #[error("a capture file cannot hold {what} ({value})")]
    Unwritable {
        /// What was to be written.
        what: &'static str,
        /// The number that does not fit.
        value: i64,
    },
}

/// Up to eight bytes a file starts with, shown as hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstBytes {
    bytes: [u8; 8],
    length: usize,
}

impl FirstBytes {
    pub(crate) fn new(start: &[u8]) -> Self {
        let mut bytes = [0; 8];
        for (place, byte) in bytes.iter_mut().zip(start) {
            *place = *byte;
        }
        Self { bytes, length: start.len().min(8) }
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl fmt::Display for FirstBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.as_slice().iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{byte:02x}")?;
        }
        Ok(())
    }
}

/// The error for a file that starts with `start` and is no capture.
pub(crate) fn not_a_capture(start: &[u8], gzip: bool) -> CaptureError {
    let text = start.iter().all(|&byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~'));
    let looks_like = match (start, gzip) {
        ([0x1F, 0x8B, ..], true) => "which looks like gzip inside of gzip; unpack it once first",
        ([b'P', b'K', 3, 4, ..], _) => "which looks like a zip archive; unpack it first",
        ([0x28, 0xB5, 0x2F, 0xFD, ..], _) => "which looks like zstd; unpack it first",
        ([0xFD, b'7', b'z', b'X', b'Z', ..], _) => "which looks like xz; unpack it first",
        ([b'B', b'Z', b'h', ..], _) => "which looks like bzip2; unpack it first",
        ([b's', b'n', b'o', b'o', b'p', 0, ..], _) => "which is a snoop capture; convert it first",
        (_, true) if text => "which looks like text compressed with gzip",
        (_, false) if text => "which looks like text",
        (_, true) => "unpacked from gzip",
        (_, false) => "which begins no known capture format",
    };
    CaptureError::NotACapture { first: FirstBytes::new(start), looks_like }
}
