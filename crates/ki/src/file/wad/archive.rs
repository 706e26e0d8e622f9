//! Reading archives: lookups, checks, inflating.

use flate2::{Decompress, FlushDecompress};
use libdeflater::{DecompressionError, Decompressor};
use worldwire_core::{Error, Limits, Reader, Result};

use super::table::{Entry, LATEST_VERSION, Table};

/// An archive: its table and its bytes.
#[derive(Clone, Debug)]
pub struct Archive<'d> {
    table: Table<'d>,
    bytes: &'d [u8],
    table_size: usize,
    limits: &'d Limits,
}

/// A reusable decompressor with its buffer, one for each thread.
pub struct Inflater {
    decompressor: Decompressor,
    buffer: Vec<u8>,
    /// Inflates the beginnings of files, which the other decompressor does not support.
    partial: Option<Decompress>,
}

/// New memory is filled from this, piece by piece.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Larger buffers are not kept for the next file: see [`Inflater::release`].
const MAX_KEPT_BYTES: usize = 16 << 20;

impl<'d> Archive<'d> {
    /// Decodes the table of an archive. Data is not checked until an entry is read.
    pub fn parse(bytes: &'d [u8], limits: &'d Limits) -> Result<Self> {
        let mut reader = Reader::within(bytes, limits);
        let table = Table::decode(&mut reader).map_err(Error::closed)?;
        let table_size = reader.position();
        Ok(Self { table, bytes, table_size, limits })
    }

    /// Data without a table, for callers that already have the entries. Their offsets count from
    /// the first of these bytes.
    #[must_use]
    pub fn of_data(bytes: &'d [u8], limits: &'d Limits) -> Self {
        let table = Table { version: LATEST_VERSION, flags: 0, entries: Vec::new() };
        Self { table, bytes, table_size: 0, limits }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Table<'d> {
        &self.table
    }

    /// The entries, in file order.
    #[must_use]
    pub fn entries(&self) -> &[Entry<'d>] {
        &self.table.entries
    }

    /// The stored bytes of an entry, which may be compressed.
    ///
    /// # Errors
    /// `Malformed` if the bytes extend beyond the archive or overlap its table.
    pub fn stored(&self, entry: &Entry<'_>) -> Result<&'d [u8]> {
        let start = entry.offset as usize;
        let size = entry.stored_size() as usize;
        if size == 0 {
            return Ok(&[]);
        }
        let range = start.checked_add(size).and_then(|end| self.bytes.get(start..end));
        range.filter(|_| start >= self.table_size).ok_or_else(|| {
            let wanted = format!("data between {} and {}", self.table_size, self.bytes.len());
            let found = format!("{size} bytes at {start}");
            about(entry, Error::malformed(wanted, found))
        })
    }

    /// Checks the CRC of an entry and returns its stored bytes. `Ok(None)` means that the file has
    /// not been downloaded yet: its space is filled with zeros.
    ///
    /// # Errors
    /// The errors of [`Self::stored`], and `Malformed` if the CRC is wrong.
    pub fn verified(&self, entry: &Entry<'_>) -> Result<Option<&'d [u8]>> {
        let stored = self.stored(entry)?;
        let found = super::crc(stored);
        if found == entry.crc {
            return Ok(Some(stored));
        }
        if stored.iter().all(|byte| *byte == 0) && !stored.is_empty() {
            return Ok(None);
        }
        let wanted = format!("CRC {:08x}", entry.crc);
        Err(about(entry, Error::malformed(wanted, format!("{found:08x}"))))
    }

    /// The file of an entry, checked and inflated. `Ok(None)` has the same meaning as in
    /// [`Self::verified`].
    ///
    /// # Errors
    /// The errors of [`Self::verified`]; `Malformed` if the data is not a zlib stream of the stated
    /// size; a limit error if inflating exceeds a limit.
    pub fn read<'b>(
        &self,
        entry: &Entry<'_>,
        inflater: &'b mut Inflater,
    ) -> Result<Option<&'b [u8]>>
    where
        'd: 'b,
    {
        match self.verified(entry)? {
            None => Ok(None),
            Some(stored) if !entry.is_compressed() => Ok(Some(stored)),
            Some(stored) => inflater
                .inflate(stored, entry.size, self.limits)
                .map(Some)
                .map_err(|error| about(entry, error)),
        }
    }

    /// The first bytes of an entry's file, at most this many. They are enough to recognise its
    /// format without memory for the whole file. The CRC is checked; the rest of the file is not.
    /// `Ok(None)` has the same meaning as in [`Self::verified`].
    ///
    /// # Errors
    /// The errors of [`Self::verified`], and `Malformed` if the data is not the start of a zlib
    /// stream.
    pub fn head<'b>(
        &self,
        entry: &Entry<'_>,
        max: usize,
        inflater: &'b mut Inflater,
    ) -> Result<Option<&'b [u8]>>
    where
        'd: 'b,
    {
        match self.verified(entry)? {
            None => Ok(None),
            Some(stored) if !entry.is_compressed() => Ok(Some(stored.get(..max).unwrap_or(stored))),
            Some(stored) => inflater
                .head(stored, max.min(entry.size as usize))
                .map(Some)
                .map_err(|error| about(entry, error)),
        }
    }

    /// The number of bytes that belong neither to the table nor to an entry. Patched archives have
    /// unused bytes where files were before they were moved.
    #[must_use]
    pub fn unused(&self) -> u64 {
        let mut ranges = self.ranges();
        ranges.sort_unstable();
        let (mut unused, mut reached) = (0, self.table_size as u64);
        let size = self.bytes.len() as u64;
        for (start, end, _) in ranges {
            unused += start.min(size).saturating_sub(reached);
            reached = reached.max(end);
        }
        unused + size.saturating_sub(reached)
    }

    /// The start, end and entry index of all data that is not empty.
    fn ranges(&self) -> Vec<(u64, u64, usize)> {
        let entries = self.table.entries.iter().enumerate();
        let ranges = entries.filter(|(_, entry)| entry.stored_size() > 0).map(|(index, entry)| {
            let start = u64::from(entry.offset);
            (start, start + u64::from(entry.stored_size()), index)
        });
        ranges.collect()
    }

    /// Checks the total size of these entries, from the table alone. Entries can share data, so a
    /// small archive can list any number of files.
    ///
    /// # Errors
    /// Fails if the limit on archive bytes is exceeded.
    pub fn check_total<'e>(&self, entries: impl IntoIterator<Item = &'e Entry<'d>>) -> Result<()>
    where
        'd: 'e,
    {
        // If the number of stored bytes is larger, it counts instead, because checking the CRC
        // reads all of them.
        let bytes = |entry: &Entry<'_>| u64::from(entry.size.max(entry.stored_size()));
        let total = entries.into_iter().map(bytes).fold(0, u64::saturating_add);
        if total > self.limits.archive_bytes {
            return Err(Error::limit("archive bytes", self.limits.archive_bytes, total));
        }
        Ok(())
    }

    /// Entries whose data begins inside another's data, as pairs of indices: the earlier entry, and
    /// the one that begins inside it.
    #[must_use]
    pub fn overlaps(&self) -> Vec<(usize, usize)> {
        let mut ranges = self.ranges();
        ranges.sort_unstable();
        let mut found = Vec::new();
        let mut furthest: Option<(u64, usize)> = None;
        for (start, end, index) in ranges {
            if let Some((reached, before)) = furthest
                && start < reached
            {
                found.push((before, index));
            }
            if furthest.is_none_or(|(reached, _)| end > reached) {
                furthest = Some((end, index));
            }
        }
        found
    }
}

impl Inflater {
    /// Creates an inflater with an empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self { decompressor: Decompressor::new(), buffer: Vec::new(), partial: None }
    }

    /// Frees the buffer if it exceeds 16 MiB. Callers that read on several threads call this before
    /// the next file, so that not every thread keeps the memory for the largest file.
    pub fn release(&mut self) {
        if self.buffer.len() > MAX_KEPT_BYTES {
            self.buffer = Vec::new();
        }
    }

    /// Inflates a zlib stream, which must yield exactly `size` bytes.
    fn inflate(&mut self, stream: &[u8], size: u32, limits: &Limits) -> Result<&[u8]> {
        limits.check_inflated(stream.len(), size.into())?;
        let size = size as usize;
        if self.buffer.len() < size {
            // The old contents are not copied. The capacity doubles, so that a series of growing
            // files does not reallocate for each one.
            let capacity = self.buffer.len().saturating_mul(2).min(MAX_KEPT_BYTES).max(size);
            self.buffer = Vec::new();
            self.buffer.try_reserve_exact(capacity).map_err(|_| {
                Error::malformed("", format!("not enough memory for a file of {size} bytes"))
            })?;
            while self.buffer.len() < capacity {
                let piece = ZEROS.len().min(capacity - self.buffer.len());
                self.buffer.extend_from_slice(ZEROS.get(..piece).unwrap_or_default());
            }
        }
        let wanted = || format!("a zlib stream that inflates to {size} bytes");
        let Some(output) = self.buffer.get_mut(..size) else {
            return Err(Error::malformed(wanted(), "more than fits in memory"));
        };
        match self.decompressor.zlib_decompress(stream, output) {
            Ok(written) if written == size => Ok(output),
            Ok(written) => Err(Error::malformed(wanted(), format!("{written} bytes"))),
            Err(DecompressionError::InsufficientSpace) => {
                Err(Error::malformed(wanted(), "a longer one"))
            }
            Err(DecompressionError::BadData) => Err(Error::malformed(wanted(), "something else")),
        }
    }

    /// Inflates the first bytes of a zlib stream.
    fn head(&mut self, stream: &[u8], max: usize) -> Result<&[u8]> {
        let partial = self.partial.get_or_insert_with(|| Decompress::new(true));
        partial.reset(true);
        if self.buffer.len() < max {
            self.buffer.resize(max, 0);
        }
        let output = self.buffer.get_mut(..max).unwrap_or_default();
        // The stream is complete, so a single call fills the buffer or reaches the end.
        partial
            .decompress(stream, output, FlushDecompress::None)
            .map_err(|_| Error::malformed("a zlib stream", "something else"))?;
        let count = usize::try_from(partial.total_out()).unwrap_or(usize::MAX);
        Ok(output.get(..count).unwrap_or(output))
    }
}

impl Default for Inflater {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Inflater({} bytes)", self.buffer.len())
    }
}

#[cold]
fn about(entry: &Entry<'_>, error: Error) -> Error {
    error.at(u64::from(entry.offset)).about(entry.name_lossy().into_owned())
}
