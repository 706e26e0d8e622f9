//! Compressed data preceded by its size.

use std::borrow::Cow;
use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use worldwire_core::text::more_bytes;
use worldwire_core::{Error, Limits, Reader, Result, Writer};

/// The bit of an envelope's size that marks the data as not compressed.
pub const ENVELOPE_STORED: u32 = 1 << 31;
/// The initial capacity for inflated bytes.
const INITIAL_CAPACITY: usize = 4096;

/// Opens an envelope like those in many message fields: `u32` size and zlib data, or `u32` size
/// with bit 31 and plain data.
///
/// # Errors
/// `Malformed` if the size differs from the stated one or the data is not zlib data; a limit error
/// for too many inflated bytes or too high a ratio.
pub fn open_envelope<'b>(bytes: &'b [u8], limits: &Limits) -> Result<Cow<'b, [u8]>> {
    let mut reader = Reader::new(bytes);
    let size = reader.u32("envelope").map_err(Error::closed)?;
    match stored(size, reader.rest())? {
        Some(plain) => Ok(Cow::Borrowed(plain)),
        None => inflate(reader.rest(), size, limits).map(Cow::Owned),
    }
}

/// Puts bytes into an envelope. If requested, they are compressed, provided that this makes them
/// smaller.
///
/// # Errors
/// A limit error if the bytes reach 2 GiB.
pub fn seal_envelope(plain: &[u8], compress: bool) -> Result<Vec<u8>> {
    let limit =
        || Error::limit("bytes in an envelope", u64::from(ENVELOPE_STORED - 1), plain.len() as u64);
    let size = u32::try_from(plain.len()).ok().filter(|size| size & ENVELOPE_STORED == 0);
    let size = size.ok_or_else(limit)?;
    let mut out = Writer::new();
    match if compress { deflate(plain) } else { None } {
        Some(packed) => {
            out.u32(size);
            out.bytes(&packed);
        }
        None => {
            out.u32(size | ENVELOPE_STORED);
            out.bytes(plain);
        }
    }
    Ok(out.into_bytes())
}

pub(super) fn stored(size: u32, rest: &[u8]) -> Result<Option<&[u8]>> {
    if size & ENVELOPE_STORED == 0 {
        return Ok(None);
    }
    let size = size & !ENVELOPE_STORED;
    if size as usize == rest.len() {
        return Ok(Some(rest));
    }
    Err(Error::malformed(format!("{size} stored bytes"), rest.len().to_string()))
}

/// Inflates zlib data, which must yield exactly this many bytes.
///
/// # Errors
/// `Malformed` if the size differs, bytes follow the data, or it is not zlib data; a limit error
/// for too many inflated bytes or too high a ratio.
pub(super) fn inflate(packed: &[u8], size: u32, limits: &Limits) -> Result<Vec<u8>> {
    limits.check_inflated(packed.len(), size.into())?;
    #[cfg(feature = "file")]
    if let Some(plain) = whole::inflate(packed, size as usize) {
        return Ok(plain);
    }
    match inflate_up_to(packed, size as usize)? {
        Some(plain) if plain.len() == size as usize => Ok(plain),
        other => {
            let found = other.map_or_else(|| "more".to_owned(), |plain| plain.len().to_string());
            Err(Error::malformed(format!("{size} inflated bytes"), found))
        }
    }
}

/// Inflates zlib data that must span all of `packed`; returns `None` if it yields more than `max`
/// bytes.
///
/// # Errors
/// `Malformed` if bytes follow the data or it is not zlib data.
pub(crate) fn inflate_up_to(packed: &[u8], max: usize) -> Result<Option<Vec<u8>>> {
    INFLATER.with_borrow_mut(|inflater| {
        inflater.reset(true);
        inflate_with(inflater, packed, max)
    })
}

thread_local! {
    /// Kept by each thread, because most objects are much smaller than its 32 KB of memory.
    static INFLATER: RefCell<Decompress> = RefCell::new(Decompress::new(true));
}

fn inflate_with(inflater: &mut Decompress, packed: &[u8], max: usize) -> Result<Option<Vec<u8>>> {
    // The capacity grows with the output, because a stated size cannot be trusted.
    let mut plain = Vec::new();
    loop {
        let read = usize::try_from(inflater.total_in()).unwrap_or(usize::MAX);
        let rest = packed.get(read..).unwrap_or(&[]);
        if plain.len() == plain.capacity() && plain.len() < max {
            plain.reserve_exact(plain.len().max(INITIAL_CAPACITY).min(max - plain.len()));
        }
        let before = (inflater.total_in(), inflater.total_out());
        let status = inflater
            // With `Finish`, nothing is copied for later calls if the output fits.
            .decompress_vec(rest, &mut plain, FlushDecompress::Finish)
            .map_err(|error| Error::malformed("zlib data", error.to_string()))?;
        let read = usize::try_from(inflater.total_in()).unwrap_or(usize::MAX);
        if plain.len() > max {
            return Ok(None);
        }
        if status == Status::StreamEnd {
            if read != packed.len() {
                let found = more_bytes(packed.len().saturating_sub(read) as u64);
                return Err(Error::malformed("the end of the zlib data", found));
            }
            return Ok(Some(plain));
        }
        if before == (inflater.total_in(), inflater.total_out()) {
            if plain.len() == plain.capacity() && plain.len() == max {
                // Detecting the end of the data may need one more byte of capacity.
                plain.reserve_exact(1);
                continue;
            }
            return Err(Error::malformed("the rest of the zlib data", "the end"));
        }
    }
}

/// A faster path for data that can be inflated in one piece: most objects are so small that it
/// takes less than half the time.
#[cfg(feature = "file")]
mod whole {
    use std::cell::RefCell;

    use libdeflater::{Decompressor, adler32};
    use memchr::memchr_iter;

    /// A stated size is trusted up to this limit.
    const SMALL: usize = 1 << 20;
    /// A stated size of up to this many times the size of the data is trusted too.
    const RATIO: usize = 16;

    thread_local! {
        static INFLATER: RefCell<Decompressor> = RefCell::new(Decompressor::new());
    }

    /// Inflates zlib data that must span all of `packed` and yield exactly `size` bytes. Returns
    /// `None` if it does not, or if only the general method can tell.
    pub(super) fn inflate(packed: &[u8], size: usize) -> Option<Vec<u8>> {
        if size > SMALL.max(packed.len().saturating_mul(RATIO)) {
            return None;
        }
        let mut plain = vec![0; size];
        let inflate = |inflater: &RefCell<Decompressor>| {
            inflater.borrow_mut().zlib_decompress(packed, &mut plain)
        };
        let written = INFLATER.with(inflate).ok()?;
        // This decompressor accepts bytes after the data and does not report where the data ends.
        // The data ends with a checksum of the plain bytes. If the checksum occurs only in the last
        // four bytes, the data ends there.
        let (before, last) = packed.split_last_chunk::<4>()?;
        let checksum = adler32(&plain).to_be_bytes();
        let is_at = |at: usize| packed.get(at..).is_some_and(|rest| rest.starts_with(&checksum));
        let [first, ..] = checksum;
        let is_earlier = || memchr_iter(first, before).any(is_at);
        (written == size && *last == checksum && !is_earlier()).then_some(plain)
    }
}

/// Deflates bytes; returns `None` if that does not make them smaller.
pub(super) fn deflate(plain: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::with_capacity(plain.len());
    let mut deflater = Compress::new(Compression::best(), true);
    // The capacity is the size of the plain bytes, so deflating completes only if the result is
    // smaller.
    let status = deflater.compress_vec(plain, &mut packed, FlushCompress::Finish).ok()?;
    (status == Status::StreamEnd && packed.len() < plain.len()).then_some(packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_must_inflate_to_its_stated_size() {
        let limits = &Limits::DEFAULT;
        for length in [40_u32, 1000, 100_000] {
            let plain = vec![7; length as usize];
            let packed = deflate(&plain).unwrap();
            assert_eq!(inflate(&packed, length, limits).unwrap(), plain);
            assert!(inflate(&packed, length - 1, limits).is_err());
            assert!(inflate(&packed, length + 1, limits).is_err());
            assert!(inflate(&packed[..packed.len() - 1], length, limits).is_err());
            let checksum = &packed[packed.len() - 4..];
            for rest in [&b"x"[..], checksum] {
                let longer = [&packed[..], rest].concat();
                assert!(inflate(&longer, length, limits).is_err());
            }
            let tight = Limits { inflated_bytes: 39, ..Limits::DEFAULT };
            let error = inflate(&packed, length, &tight).unwrap_err().to_string();
            assert!(error.contains("inflated bytes"), "{error}");
        }
        assert_eq!(deflate(b"abc"), None);
        assert!(inflate(&deflate(&[0; 40]).unwrap(), u32::MAX, limits).is_err());
    }
}
