//! The errors of capture files.

use std::io;

use worldwire_core::text::byte_count;

/// Why a capture cannot be read further, or cannot be written.
///
/// Each error is one line that says what is wrong and where. Offsets refer to the capture itself:
/// for a compressed file, to the unpacked bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file is empty.
    #[error("the input is empty")]
    Empty,
    /// The file has a different format.
    #[error("not a pcap or pcapng capture: it starts with {first}, {looks_like}")]
    NotACapture {
        /// Up to eight of its first bytes, in hex.
        first: String,
        /// The likely format.
        looks_like: &'static str,
    },
    /// The file ends inside a record. Everything before it was delivered.
    #[error("truncated at offset {offset}: {what} needs {}, but has only {found}", byte_count(*.wanted))]
    Truncated {
        /// Where the truncated part begins.
        offset: u64,
        /// The truncated part.
        what: &'static str,
        /// Its full length in bytes.
        wanted: u64,
        /// The bytes that are left.
        found: u64,
    },
    /// The fields of a block contradict each other.
    #[error("bad {what} at offset {offset}: {problem} ({value})")]
    BadBlock {
        /// Where the block begins.
        offset: u64,
        /// The type of block.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
        /// The wrong value.
        value: u64,
    },
    /// The file exceeds the caller's [`Limits`](worldwire_core::Limits).
    #[error("limit exceeded at offset {offset}: {asked} requested, {allowed} allowed ({limit})")]
    Limit {
        /// The name of the limit.
        limit: &'static str,
        /// Where it was exceeded.
        offset: u64,
        /// The value in the file.
        asked: u64,
        /// The limit's value.
        allowed: u64,
    },
    /// The compressed data is damaged. Everything before it was delivered.
    #[error("the gzip data is damaged after {offset} unpacked bytes: {source}")]
    Gzip {
        /// The number of bytes that were unpacked.
        offset: u64,
        /// The decompressor's error.
        source: io::Error,
    },
    /// The input cannot be read.
    #[error("cannot read the capture at offset {offset}: {source}")]
    Read {
        /// The number of bytes that were read.
        offset: u64,
        /// The operating system's error.
        source: io::Error,
    },
    /// The output cannot be written.
    #[error("cannot write the capture: {0}")]
    Write(#[source] io::Error),
    /// The caller asked for something that the format cannot represent.
    #[error("a capture file cannot hold {what} ({value})")]
    Unwritable {
        /// What cannot be represented.
        what: &'static str,
        /// The number that does not fit.
        value: i64,
    },
}

/// The error for a file that starts with `start` and is not a capture.
pub(crate) fn not_a_capture(start: &[u8], gzip: bool) -> CaptureError {
    let text = start.iter().all(|&byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~'));
    let looks_like = match (start, gzip) {
        ([0x1F, 0x8B, ..], true) => {
            "which looks like gzip inside gzip; unpack the outer layer first"
        }
        ([b'P', b'K', 3, 4, ..], _) => "which looks like a zip archive; unpack it first",
        ([0x28, 0xB5, 0x2F, 0xFD, ..], _) => "which looks like zstd; unpack it first",
        ([0xFD, b'7', b'z', b'X', b'Z', ..], _) => "which looks like xz; unpack it first",
        ([b'B', b'Z', b'h', ..], _) => "which looks like bzip2; unpack it first",
        ([b's', b'n', b'o', b'o', b'p', 0, ..], _) => "which is a snoop capture; convert it first",
        (_, true) if text => "which looks like text compressed with gzip",
        (_, false) if text => "which looks like text",
        (_, true) => "which matches no known capture format (unpacked from gzip)",
        (_, false) => "which matches no known capture format",
    };
    let first: Vec<String> = start.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    CaptureError::NotACapture { first: first.join(" "), looks_like }
}
