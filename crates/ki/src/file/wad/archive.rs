//! An archive over its bytes: looking things up, checking, inflating.

use flate2::{Decompress, FlushDecompress};
use libdeflater::{DecompressionError, Decompressor};
use worldwire_core::{Error, Limits, Reader, Result};

use super::table::{Entry, Table};

/// An archive: its table, and the bytes that the table is about.
#[derive(Clone, Debug)]
pub struct Archive<'d> {
    table: Table<'d>,
    bytes: &'d [u8],
    table_size: usize,
    limits: &'d Limits,
}

/// What inflating takes: a decompressor and a buffer, to be used again and again. One a thread.
pub struct Inflater {
    decompressor: Decompressor,
    buffer: Vec<u8>,
    /// For beginnings, which the other one cannot give.
    beginner: Option<Decompress>,
}

/// What new memory is filled with, piece by piece.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A buffer that is larger is for one file only: see [`Inflater::release`].
const KEPT: usize = 16 << 20;

impl<'d> Archive<'d> {
    /// Reads the table of an archive. The data of entries is looked at only when asked for.
    ///
    /// # Errors
    /// Malformed, for what is no archive or has its table cut off; the limits.
    pub fn parse(bytes: &'d [u8], limits: &'d Limits) -> Result<Self> {
        let mut reader = Reader::within(bytes, limits);
        let table = Table::decode(&mut reader).map_err(Error::closed)?;
        let table_size = reader.position();
        Ok(Self { table, bytes, table_size, limits })
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Table<'d> {
        &self.table
    }

    /// The entries in their order.
    #[must_use]
    pub fn entries(&self) -> &[Entry<'d>] {
        &self.table.entries
    }

    /// The stored bytes of an entry: compressed, if it is.
    ///
    /// # Errors
    /// Malformed, for a range that leaves the archive or touches its table.
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

    /// Checks the CRC of an entry. `Ok(None)` says that it is not downloaded yet: its place is
    /// kept with zeros. Else these are the stored bytes.
    ///
    /// # Errors
    /// As [`Self::stored`]; Malformed, for another CRC.
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

    /// The file of an entry, checked and inflated. `Ok(None)` as in [`Self::verified`].
    ///
    /// # Errors
    /// As [`Self::verified`]; Malformed, for data that is no zlib stream or does not have the size
    /// it should; the limits on inflating.
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

    /// The first bytes of the file of an entry, at most so many: enough to see what it is, without
    /// the memory that the whole of it takes. The CRC is checked; how the file goes on is not.
    /// `Ok(None)` as in [`Self::verified`].
    ///
    /// # Errors
    /// As [`Self::verified`]; Malformed, for data that does not begin a zlib stream.
    pub fn head<'b>(
        &self,
        entry: &Entry<'_>,
        most: usize,
        inflater: &'b mut Inflater,
    ) -> Result<Option<&'b [u8]>>
    where
        'd: 'b,
    {
        match self.verified(entry)? {
            None => Ok(None),
            Some(stored) if !entry.is_compressed() => {
                Ok(Some(stored.get(..most).unwrap_or(stored)))
            }
            Some(stored) => inflater
                .head(stored, most.min(entry.size as usize))
                .map(Some)
                .map_err(|error| about(entry, error)),
        }
    }

    /// How many bytes belong to nothing: neither to the table nor to the data of an entry. Patched
    /// archives have some where files were that are elsewhere now.
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

    /// Where the data of each entry that has any begins and ends, with the index of the entry.
    fn ranges(&self) -> Vec<(u64, u64, usize)> {
        let entries = self.table.entries.iter().enumerate();
        let ranges = entries.filter(|(_, entry)| entry.stored_size() > 0).map(|(index, entry)| {
            let start = u64::from(entry.offset);
            (start, start + u64::from(entry.stored_size()), index)
        });
        ranges.collect()
    }

    /// Checks what reading these entries takes, from the table alone. Entries may share their
    /// data, so a small archive can promise any amount of files.
    ///
    /// # Errors
    /// The limit on the bytes of an archive's files.
    pub fn check_total<'e>(&self, entries: impl IntoIterator<Item = &'e Entry<'d>>) -> Result<()>
    where
        'd: 'e,
    {
        // The stored bytes count where they are more: their CRC is checked.
        let bytes = |entry: &Entry<'_>| u64::from(entry.size.max(entry.stored_size()));
        let total = entries.into_iter().map(bytes).fold(0, u64::saturating_add);
        if total > self.limits.archive_bytes {
            return Err(Error::limit("archive bytes", self.limits.archive_bytes, total));
        }
        Ok(())
    }

    /// Entries whose data begins inside the data of another one, as pairs of indices: the one
    /// that stands before, and the one that begins too early.
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
    /// A new one, with an empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self { decompressor: Decompressor::new(), buffer: Vec::new(), beginner: None }
    }

    /// Gives back the buffer of a large file: more than 16 MiB. Whoever reads on several threads
    /// does that before the next file, so that they do not all keep what one of them needs.
    pub fn release(&mut self) {
        if self.buffer.len() > KEPT {
            self.buffer = Vec::new();
        }
    }

    /// Inflates a zlib stream that must give exactly `size` bytes.
    fn inflate(&mut self, stream: &[u8], size: u32, limits: &Limits) -> Result<&[u8]> {
        limits.check_inflated(stream.len(), size.into())?;
        let size = size as usize;
        if self.buffer.len() < size {
            // Nothing of the old is copied. Twice as much as before, so that files that get larger
            // one by one do not each take a new one.
            let room = self.buffer.len().saturating_mul(2).min(KEPT).max(size);
            self.buffer = Vec::new();
            self.buffer.try_reserve_exact(room).map_err(|_| {
                Error::malformed(format!("memory for a file of {size} bytes"), "too little")
            })?;
            while self.buffer.len() < room {
                let piece = ZEROS.len().min(room - self.buffer.len());
                self.buffer.extend_from_slice(ZEROS.get(..piece).unwrap_or_default());
            }
        }
        let wanted = || format!("a zlib stream of {size} bytes");
        let Some(room) = self.buffer.get_mut(..size) else {
            return Err(Error::malformed(wanted(), "more than fits into memory"));
        };
        match self.decompressor.zlib_decompress(stream, room) {
            Ok(written) if written == size => Ok(room),
            Ok(written) => Err(Error::malformed(wanted(), format!("{written} bytes"))),
            Err(DecompressionError::InsufficientSpace) => {
                Err(Error::malformed(wanted(), "a longer one"))
            }
            Err(DecompressionError::BadData) => Err(Error::malformed(wanted(), "something else")),
        }
    }

    /// Inflates the first bytes of a zlib stream.
    fn head(&mut self, stream: &[u8], most: usize) -> Result<&[u8]> {
        let beginner = self.beginner.get_or_insert_with(|| Decompress::new(true));
        beginner.reset(true);
        if self.buffer.len() < most {
            self.buffer.resize(most, 0);
        }
        let room = self.buffer.get_mut(..most).unwrap_or_default();
        // All of the stream is there, so one call fills the room or comes to the end.
        beginner
            .decompress(stream, room, FlushDecompress::None)
            .map_err(|_| Error::malformed("a zlib stream", "something else"))?;
        let count = usize::try_from(beginner.total_out()).unwrap_or(usize::MAX);
        Ok(room.get(..count).unwrap_or(room))
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
