//! The bounds of every decoder, in one place.

use crate::{Error, Result};

/// Bounds that travel through every decoder, reassembler and archive reader.
///
/// A bound that is hit is a named error ([`ErrorKind::Limit`](crate::ErrorKind::Limit)) that tells
/// which bound it was and what was asked for. Memory follows the bytes that are present, never the
/// bytes that are promised, so the defaults below are generous; lower them for a server that faces
/// strangers.
///
/// ```
/// use worldwire_core::Limits;
/// let limits = Limits { message_bytes: 64 * 1024, ..Limits::DEFAULT };
/// assert_eq!(limits.depth, Limits::DEFAULT.depth);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message or of one blob handed to a codec. Default 64 MiB.
    pub message_bytes: u64,
    /// Bytes of one string. Default 16 MiB.
    pub string_bytes: u64,
    /// Elements of one list. Default 16,777,216. A list whose elements take no bytes is bounded by
    /// [`empty_elements`](Self::empty_elements) instead.
    pub elements: u64,
    /// Elements of a list whose elements may take no bytes at all. Default 65,536.
    pub empty_elements: u64,
    /// Nodes of one [`Tree`](crate::Tree). Default 4,194,304.
    pub nodes: u64,
    /// Nesting of records, lists and layers. Default 128.
    pub depth: u32,
    /// Bytes that one compressed block may grow to. Default 256 MiB.
    pub inflated_bytes: u64,
    /// Times its own size that a compressed block may grow to. Default 1,100 (deflate cannot
    /// honestly do more than 1,032).
    pub inflated_ratio: u64,
    /// Times its own size that a file may grow to as text that repeats names, beyond the first
    /// 64 KiB: XML of tables has the names of columns in every record. Default 256; a table of
    /// nothing but bytes, with names of 40 characters, needs a little over 100. A deflated part of a
    /// message is shown if it inflates to so many times its own size, beyond the first 4 KiB.
    pub text_ratio: u64,
    /// Values that one game object and all in it may hold for each byte that it takes on the
    /// wire, where it may be compressed, beyond the first 4,096. Default 32; without compression
    /// no object can hold more than 8. Also values that are shown of a deflated part of a message,
    /// beyond the first 1,024.
    pub values_per_byte: u64,
    /// Bytes that all the files of an archive which are read may have together. Default 16 GiB:
    /// an archive itself has at most 4 GiB, and the game's largest hold a few.
    pub archive_bytes: u64,
    /// Layers of one tree. Default 64.
    pub layers: u32,
    /// Bytes held back per stream while a hole in it waits to be filled. Default 8 MiB.
    pub stream_bytes: u64,
    /// Bytes held back over all streams of a capture. Default 256 MiB.
    pub streams_bytes: u64,
    /// Separate pieces held back per stream. Default 4,096.
    pub stream_pieces: u32,
    /// Conversations followed at the same time; the one idle for longest is let go first.
    /// Default 65,536.
    pub conversations: u32,
    /// IP fragments held back over all datagrams. Default 8,192.
    pub fragments: u32,
    /// Bytes of one block of a capture file. Default 16 MiB.
    pub capture_block_bytes: u64,
    /// Bytes of one definition, key or manifest file. Default 256 MiB.
    pub file_bytes: u64,
}

impl Limits {
    /// The documented defaults.
    pub const DEFAULT: Self = Self {
        message_bytes: 64 << 20,
        string_bytes: 16 << 20,
        elements: 1 << 24,
        empty_elements: 1 << 16,
        nodes: 1 << 22,
        depth: 128,
        inflated_bytes: 256 << 20,
        inflated_ratio: 1_100,
        text_ratio: 256,
        values_per_byte: 32,
        archive_bytes: 16 << 30,
        layers: 64,
        stream_bytes: 8 << 20,
        streams_bytes: 256 << 20,
        stream_pieces: 4_096,
        conversations: 65_536,
        fragments: 8_192,
        capture_block_bytes: 16 << 20,
        file_bytes: 256 << 20,
    };

    /// Checks what a compressed block promises to grow to, before anything is inflated.
    ///
    /// # Errors
    /// The limits on inflated bytes and on their ratio to the compressed ones.
    pub fn check_inflated(&self, compressed: usize, inflated: u64) -> Result<()> {
        if inflated > self.inflated_bytes {
            return Err(Error::limit("inflated bytes", self.inflated_bytes, inflated));
        }
        let most = self.inflated_ratio.saturating_mul(compressed as u64);
        if inflated > most {
            return Err(Error::limit("inflated ratio", most, inflated));
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
