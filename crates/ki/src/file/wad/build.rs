//! Building archives: pack the files, lay them out, and write the table last.

use std::borrow::Cow;

use libdeflater::{CompressionLvl, Compressor};
use worldwire_core::{Error, Limits, Result};

use super::archive::Archive;
use super::table::{Entry, STORED_SIZE, Table};

/// The default compression level, a compromise between size and time. On the generated files of the
/// benchmark `wad`, archives are 3.1 % larger than at level 12 and are built about 10 times as
/// fast. At level 6, they are 4.7 % larger than at level 12 and take half the time of level 8 to
/// build; at level 10, they are 0.3 % larger and take more than four times as long as at level 8.
pub const DEFAULT_LEVEL: u8 = 8;

/// The size of the largest file that is compressed, in bytes: larger ones could not be read within
/// [`Limits::DEFAULT`].
pub const MAX_COMPRESSED: u64 = Limits::DEFAULT.inflated_bytes;

/// How to build an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildOptions {
    /// The version: 1, or 2 for an archive with flags. Default: 2.
    pub version: u32,
    /// The archive's flags; see [`FLAGS`](super::FLAGS). Default: 0.
    pub flags: u8,
    /// The compression level, from 1 (fast) to 12 (small). Default: [`DEFAULT_LEVEL`].
    pub level: u8,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self { version: 2, flags: 0, level: DEFAULT_LEVEL }
    }
}

/// A file in the form that archives store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed<'d> {
    /// The stored bytes.
    pub bytes: Cow<'d, [u8]>,
    /// The size of the file.
    pub size: u32,
    /// Whether the bytes are compressed.
    pub compressed: bool,
    /// The CRC of the stored bytes.
    pub crc: u32,
}

/// A reusable compressor with its buffer, one for each thread.
pub struct Packer {
    compressor: Compressor,
    buffer: Vec<u8>,
}

/// An archive under construction. The size of its table depends only on the names, so callers can
/// leave a gap of [`Self::table_size`] bytes, write the data after it, and fill the gap last.
///
/// The same files yield the same bytes: entries are sorted bytewise by name.
#[derive(Clone, Debug)]
pub struct Plan<'d> {
    table: Table<'d>,
    /// The number of entries whose data has been added.
    done: usize,
    end: u64,
}

/// Whether files with this name are never compressed, because they are audio that already is.
#[must_use]
pub fn is_stored_kind(name: &[u8]) -> bool {
    let end = name.len().checked_sub(4).and_then(|start| name.get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(b".mp3") || end.eq_ignore_ascii_case(b".ogg"))
}

impl Packer {
    /// Creates a packer with a level from 1 to 12.
    pub fn new(level: u8) -> Result<Self> {
        let chosen = CompressionLvl::new(i32::from(level)).ok().filter(|_| level > 0);
        let chosen = chosen.ok_or_else(|| Error::value("a level from 1 to 12", level.to_string()));
        chosen.map(|level| Self { compressor: Compressor::new(level), buffer: Vec::new() })
    }

    /// Packs a file. It is stored uncompressed if `store` is set, if compression would not shrink
    /// it, or if it exceeds [`MAX_COMPRESSED`].
    ///
    /// # Errors
    /// A limit error if the file exceeds 4 GiB.
    pub fn pack<'d>(&mut self, file: &'d [u8], store: bool) -> Result<Packed<'d>> {
        let size = size_of_file(file.len() as u64)?;
        if !store && (1..=MAX_COMPRESSED).contains(&(file.len() as u64)) {
            let max = self.compressor.zlib_compress_bound(file.len());
            if self.buffer.len() < max {
                self.buffer = Vec::new();
                self.buffer = vec![0; max];
            }
            if let Ok(written) = self.compressor.zlib_compress(file, &mut self.buffer)
                && written < file.len()
                && let Some(packed) = self.buffer.get(..written)
            {
                let crc = super::crc(packed);
                let bytes = Cow::Owned(packed.to_vec());
                return Ok(Packed { bytes, size, compressed: true, crc });
            }
        }
        let crc = super::crc(file);
        Ok(Packed { bytes: Cow::Borrowed(file), size, compressed: false, crc })
    }
}

impl core::fmt::Debug for Packer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Packer")
    }
}

impl<'d> Plan<'d> {
    /// Plans an archive of files with these names, which are sorted ([`Self::names`]).
    ///
    /// # Errors
    /// `Value` for a name that is empty, contains a NUL or occurs twice, and for flags in version
    /// 1; a limit error for more than 4 GiB.
    pub fn new(options: &BuildOptions, mut names: Vec<Cow<'d, [u8]>>) -> Result<Self> {
        if options.version == 0 {
            return Err(Error::value("version 1 or later", "0").inside("version"));
        }
        if options.version == 1 && options.flags != 0 {
            let error = Error::value("no flags in version 1", options.flags.to_string());
            return Err(error.inside("flags"));
        }
        names.sort_unstable();
        let mut before: Option<&[u8]> = None;
        for name in &names {
            let shown = || String::from_utf8_lossy(name).into_owned();
            if name.is_empty() || name.contains(&0) {
                return Err(Error::value("a name without NULs", format!("{:?}", shown())));
            }
            if before == Some(name) {
                return Err(Error::value("unique names", "a duplicate").about(shown()));
            }
            before = Some(name);
        }
        let entry = |name| Entry {
            name,
            terminated: true,
            offset: 0,
            size: 0,
            compressed_size: STORED_SIZE,
            compressed: 0,
            crc: 0,
        };
        let entries = names.into_iter().map(entry).collect();
        let table = Table { version: options.version, flags: options.flags, entries };
        let end = table.encoded_size();
        offset(end)?;
        Ok(Self { table, done: 0, end })
    }

    /// The names, in the order in which [`Self::add`] expects their data.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.table.entries.iter().map(|entry| &*entry.name)
    }

    /// The size of the gap before the data.
    #[must_use]
    pub fn table_size(&self) -> u64 {
        self.table.encoded_size()
    }

    /// The size of the archive, including everything added so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.end
    }

    /// Adds the next file. Its stored bytes follow those of all earlier files.
    ///
    /// # Errors
    /// `Value` if all files have already been added; a limit error for more than 4 GiB.
    pub fn add(&mut self, packed: &Packed<'_>) -> Result<()> {
        let stored = size_of_file(packed.bytes.len() as u64)?;
        self.place(stored, packed.size, packed.compressed, packed.crc)
    }

    /// Like [`Self::add`], but for an uncompressed file that is not completely in memory: takes its
    /// size and [`Crc`](super::Crc).
    pub fn add_stored(&mut self, size: u64, crc: u32) -> Result<()> {
        let size = size_of_file(size)?;
        self.place(size, size, false, crc)
    }

    fn place(&mut self, stored: u32, size: u32, compressed: bool, crc: u32) -> Result<()> {
        let Some(entry) = self.table.entries.get_mut(self.done) else {
            return Err(Error::value("the end of the archive", "another file"));
        };
        entry.offset =
            offset(self.end).map_err(|error| error.about(entry.name_lossy().into_owned()))?;
        entry.size = size;
        entry.compressed = u8::from(compressed);
        entry.compressed_size = if compressed { stored } else { STORED_SIZE };
        entry.crc = crc;
        self.end += u64::from(stored);
        self.done += 1;
        Ok(())
    }

    /// Encodes the table, which fills the gap.
    pub fn finish(self) -> Result<Vec<u8>> {
        let all = self.table.entries.len();
        if self.done < all {
            return Err(Error::value(format!("{all} files"), self.done.to_string()));
        }
        self.table.to_bytes()
    }
}

impl<'d> Archive<'d> {
    /// An entry in its packed form, for adding it to another archive without compressing it again.
    pub fn packed(&self, entry: &Entry<'_>) -> Result<Packed<'d>> {
        Ok(Packed {
            bytes: Cow::Borrowed(self.stored(entry)?),
            size: entry.size,
            compressed: entry.is_compressed(),
            crc: entry.crc,
        })
    }
}

/// Builds a whole archive in memory.
pub fn build<'d>(
    options: &BuildOptions,
    files: impl IntoIterator<Item = (&'d str, &'d [u8])>,
) -> Result<Vec<u8>> {
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by_key(|(name, _)| name.as_bytes());
    let names = files.iter().map(|(name, _)| Cow::Borrowed(name.as_bytes())).collect();
    let mut plan = Plan::new(options, names)?;
    let mut packer = Packer::new(options.level)?;
    let mut data = Vec::new();
    for (name, file) in files {
        let packed = packer.pack(file, is_stored_kind(name.as_bytes()))?;
        plan.add(&packed)?;
        data.extend_from_slice(&packed.bytes);
    }
    let mut bytes = plan.finish()?;
    bytes.append(&mut data);
    Ok(bytes)
}

fn size_of_file(size: u64) -> Result<u32> {
    // The largest number is reserved for "not compressed".
    let max = STORED_SIZE - 1;
    let fits = u32::try_from(size).ok().filter(|size| *size <= max);
    fits.ok_or_else(|| Error::limit("bytes of a file", u64::from(max), size))
}

fn offset(end: u64) -> Result<u32> {
    u32::try_from(end).map_err(|_| Error::limit("archive offset", u64::from(u32::MAX), end))
}
