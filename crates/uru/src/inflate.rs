//! Inflates compressed data inside messages.

use core::fmt;
use std::io::{Read, Write as _};

use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use worldwire_core::text::more_bytes;
use worldwire_core::{Error, Limits, Result};

/// The maximum inflated size of a stream block, whatever the limits: no message is larger.
pub(crate) const MAX_INFLATED: u64 = 1 << 20;

/// Inflates blocks, reusing the same buffer.
///
/// A server keeps one per thread.
pub struct Inflater {
    decompress: Decompress,
    buffer: Vec<u8>,
}

impl Inflater {
    /// Creates an inflater with an empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self { decompress: Decompress::new(true), buffer: Vec::new() }
    }

    /// Inflates zlib data that follows the uncompressed bytes `raw`. The result, including `raw`,
    /// must be exactly `size` bytes long.
    ///
    /// # Errors
    /// `Malformed` for a wrong size, bytes after the data, or invalid zlib data. The limits on
    /// inflated bytes and compression ratio are checked before inflating.
    pub fn inflate(
        &mut self,
        raw: &[u8],
        deflated: &[u8],
        size: u32,
        limits: &Limits,
    ) -> Result<&[u8]> {
        check_size(deflated.len(), size, limits)?;
        let size = size as usize;
        let Some(inflated) = size.checked_sub(raw.len()) else {
            let wanted = format!("at least {} bytes", raw.len());
            return Err(Error::malformed(wanted, size.to_string()));
        };
        self.buffer.clear();
        self.buffer.extend_from_slice(raw);
        self.buffer.resize(size, 0);
        self.decompress.reset(true);
        let room = self.buffer.get_mut(raw.len()..).unwrap_or_default();
        let status = self
            .decompress
            .decompress(deflated, room, FlushDecompress::Finish)
            .map_err(|error| Error::malformed("zlib data", error.to_string()))?;
        let (read, written) = (self.decompress.total_in(), self.decompress.total_out());
        if status != Status::StreamEnd {
            let found = match written == inflated as u64 {
                true => "more".to_owned(),
                false => format!("only {written} before the end"),
            };
            return Err(Error::malformed(format!("{inflated} inflated bytes"), found));
        }
        if written != inflated as u64 {
            return Err(Error::malformed(
                format!("{inflated} inflated bytes"),
                written.to_string(),
            ));
        }
        if read != deflated.len() as u64 {
            let found = more_bytes(deflated.len() as u64 - read);
            return Err(Error::malformed("the end of the zlib data", found));
        }
        Ok(&self.buffer)
    }

    /// Takes the buffer with the last result; [`Self::give_back`] returns its memory.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.buffer)
    }

    /// Returns a buffer for reuse.
    pub(crate) fn give_back(&mut self, buffer: Vec<u8>) {
        self.buffer = buffer;
    }
}

impl Default for Inflater {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater").field("room", &self.buffer.capacity()).finish_non_exhaustive()
    }
}

/// Checks the announced size of a block.
///
/// # Errors
/// Fails if the limit on inflated bytes or on the compression ratio is exceeded.
pub(crate) fn check_size(deflated: usize, size: u32, limits: &Limits) -> Result<()> {
    let max = limits.inflated_bytes.min(MAX_INFLATED);
    if u64::from(size) > max {
        return Err(Error::limit("inflated bytes", max, size.into()));
    }
    limits.check_inflated(deflated.max(1), size.into())
}

/// Compresses bytes with zlib; returns `None` if that does not make them smaller.
#[must_use]
pub fn deflate(plain: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::with_capacity(plain.len());
    let mut deflater = Compress::new(Compression::default(), true);
    // The output has no room for more than the plain size, so compression finishes only if the data
    // shrinks.
    let status = deflater.compress_vec(plain, &mut packed, FlushCompress::Finish).ok()?;
    (status == Status::StreamEnd && packed.len() < plain.len()).then_some(packed)
}

/// Compresses bytes with zlib even if that makes them larger.
pub(crate) fn deflate_always(plain: &[u8]) -> Result<Vec<u8>> {
    let mut deflater = ZlibEncoder::new(Vec::new(), Compression::default());
    let packed = deflater.write_all(plain).and_then(|()| deflater.finish());
    packed.map_err(|error| Error::value("compressible bytes", error.to_string()))
}

/// The first bytes that zlib data inflates to, up to `max`. If the end of the data is reached,
/// nothing may follow it.
pub(crate) fn inflate_first(deflated: &[u8], max: usize) -> Result<Vec<u8>> {
    let mut inflater = ZlibDecoder::new(deflated);
    let mut inflated = Vec::new();
    let read = Read::by_ref(&mut inflater).take(max as u64).read_to_end(&mut inflated);
    read.map_err(|error| Error::malformed("zlib data", error.to_string()))?;
    let behind = deflated.len() as u64 - inflater.total_in();
    if inflated.len() < max && behind > 0 {
        return Err(Error::malformed("the end of the zlib data", more_bytes(behind)));
    }
    Ok(inflated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_must_inflate_to_exactly_its_size() {
        let limits = &Limits::DEFAULT;
        let mut inflater = Inflater::new();
        for length in [40_u32, 1000, 100_000] {
            let plain = vec![7; length as usize];
            let packed = deflate(&plain).unwrap();
            let mut inflate = |packed: &[u8], size| {
                inflater.inflate(b"ab", packed, size, limits).map(<[u8]>::to_vec)
            };
            let whole = inflate(&packed, length + 2).unwrap();
            assert_eq!(whole, [b"ab", &*plain].concat());
            assert!(inflate(&packed, length + 1).is_err());
            assert!(inflate(&packed, length + 3).is_err());
            assert!(inflate(&packed[..packed.len() - 1], length + 2).is_err());
            assert!(inflate(&[&*packed, b"x"].concat(), length + 2).is_err());
        }
        let packed = deflate(&[0; 4000]).unwrap();
        let error = inflater.inflate(b"", &packed, 2 << 20, limits).unwrap_err();
        assert_eq!(error.to_string(), "wanted at most 1048576 (inflated bytes), found 2097152");
        let tight = Limits { inflated_bytes: 39, ..Limits::DEFAULT };
        assert!(inflater.inflate(b"", &packed, 4000, &tight).is_err());
        assert!(inflater.inflate(b"abc", &packed, 2, limits).is_err());
        assert_eq!(deflate(b"abc"), None);
    }
}
