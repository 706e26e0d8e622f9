//! The limits of all decoders.

use crate::{Error, Result};

/// Limits that are passed through every decoder, reassembler and archive reader.
///
/// Exceeding a limit is a named error ([`ErrorKind::Limit`](crate::ErrorKind::Limit)) with the
/// limit and the requested amount. Memory use grows with the bytes that have arrived, never with
/// the sizes that they announce, so the defaults are generous. Lower them for a server on a public
/// network.
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
    /// Elements of one list. Default 16,777,216. For elements that may take no bytes,
    /// [`empty_elements`](Self::empty_elements) applies instead.
    pub elements: u64,
    /// Elements of a list whose elements may take no bytes at all. Default 65,536.
    pub empty_elements: u64,
    /// Nodes of one [`Tree`](crate::Tree). Default 4,194,304.
    pub nodes: u64,
    /// Nesting of records, lists and layers. Default 128.
    pub depth: u32,
    /// Bytes that one compressed block may inflate to. Default 256 MiB.
    pub inflated_bytes: u64,
    /// The maximum ratio of a block's inflated size to its compressed size. Default 1,100 (deflate
    /// reaches at most 1,032).
    pub inflated_ratio: u64,
    /// The maximum ratio of a file's size as text to its own size, not counting the first 64 KiB of
    /// text: the XML of a table repeats the column names in every record. Default 256; a table of
    /// bytes with column names of 40 characters needs slightly over 100. The same ratio bounds a
    /// deflated part of a message that is shown, not counting the first 4 KiB.
    pub text_ratio: u64,
    /// The maximum number of values in a game object, with all nested objects, for each byte on the
    /// wire, not counting the first 4,096 values. Default 32: an uncompressed object holds at most
    /// 8, a compressed one more. Also bounds the values shown for a deflated part of a message, not
    /// counting the first 1,024.
    pub values_per_byte: u64,
    /// Total size of all files read from one archive. Default 16 GiB: an archive itself is at most
    /// 4 GiB long, and the files in the largest game archives total a few GiB.
    pub archive_bytes: u64,
    /// Layers of one tree. Default 64.
    pub layers: u32,
    /// Bytes buffered per stream while earlier bytes are missing. Default 8 MiB.
    pub stream_bytes: u64,
    /// Bytes buffered over all streams of a capture. Default 256 MiB.
    pub streams_bytes: u64,
    /// Separate pieces buffered per stream. Default 4,096.
    pub stream_pieces: u32,
    /// Conversations followed at the same time; beyond that, the one idle longest is dropped.
    /// Default 65,536.
    pub conversations: u32,
    /// IP fragments buffered over all datagrams. Default 8,192.
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

    /// Checks the size that a compressed block announces, before anything is inflated.
    ///
    /// # Errors
    /// The limits on inflated bytes and on the compression ratio.
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
