//! Making archives: pack files, lay them out, write the table last.

use std::borrow::Cow;

use libdeflater::{CompressionLvl, Compressor};
use worldwire_core::{Error, Limits, Result};

use super::archive::Archive;
use super::table::{Entry, STORED_SIZE, Table};

/// The level that is worth its time. On the generated files of the benchmark `wad`, archives are
/// 3.1 % larger than those of level 12 and made about 10 times as fast. Level 6 takes half as long
/// for 4.7 %, level 10 more than four times as long for 0.3 %.
pub const DEFAULT_LEVEL: u8 = 8;

/// The largest file that is compressed: larger ones could not be read again within
/// [`Limits::DEFAULT`].
pub const MAX_COMPRESSED: u64 = Limits::DEFAULT.inflated_bytes;

/// How to make an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildOptions {
    /// 1, or 2 for an archive with flags. Default 2.
    pub version: u32,
    /// See [`FLAGS`](super::FLAGS). Default 0.
    pub flags: u8,
    /// From 1, fast, to 12, small. Default [`DEFAULT_LEVEL`].
    pub level: u8,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self { version: 2, flags: 0, level: DEFAULT_LEVEL }
    }
}

/// A file as it will stand in an archive.
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

/// What compressing takes: a compressor and a buffer, to be used again and again. One a thread.
pub struct Packer {
    compressor: Compressor,
    buffer: Vec<u8>,
}

/// An archive in the making. Its table has a size that is known from the names alone, so data can
/// go out behind a gap of [`Self::table_size`] bytes, and the table into the gap in the end.
///
/// The same files give the same bytes: entries stand in the order of their names' bytes.
#[derive(Clone, Debug)]
pub struct Plan<'d> {
    table: Table<'d>,
    /// How many entries have their data.
    done: usize,
    end: u64,
}

/// Whether files of this name are always stored: sound that is compressed already.
#[must_use]
pub fn is_stored_kind(name: &[u8]) -> bool {
    let end = name.len().checked_sub(4).and_then(|start| name.get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(b".mp3") || end.eq_ignore_ascii_case(b".ogg"))
}

impl Packer {
    /// A packer of a level from 1 to 12.
    ///
    /// # Errors
    /// Value, for another level.
    pub fn new(level: u8) -> Result<Self> {
        let chosen = CompressionLvl::new(i32::from(level)).ok().filter(|_| level > 0);
        let chosen = chosen.ok_or_else(|| Error::value("a level from 1 to 12", level.to_string()));
        chosen.map(|level| Self { compressor: Compressor::new(level), buffer: Vec::new() })
    }

    /// Packs a file. With `store`, when it would not shrink, and when it is larger than
    /// [`MAX_COMPRESSED`], it is stored as it is.
    ///
    /// # Errors
    /// The limit of 4 GiB.
    pub fn pack<'d>(&mut self, file: &'d [u8], store: bool) -> Result<Packed<'d>> {
        let size = size_of_file(file.len() as u64)?;
        if !store && (1..=MAX_COMPRESSED).contains(&(file.len() as u64)) {
            let most = self.compressor.zlib_compress_bound(file.len());
            if self.buffer.len() < most {
                self.buffer = Vec::new();
                self.buffer = vec![0; most];
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
    /// Plans an archive of files of these names, which are sorted here ([`Self::names`]).
    ///
    /// # Errors
    /// Value, for a name that is empty, has a NUL or is there twice, and for flags in version 1;
    /// the limit of 4 GiB.
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

    /// The names in the order in which [`Self::add`] wants their data.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.table.entries.iter().map(|entry| &*entry.name)
    }

    /// The size of the gap before the data.
    #[must_use]
    pub fn table_size(&self) -> u64 {
        self.table.encoded_size()
    }

    /// The size of the archive with all that was added.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.end
    }

    /// Gives the next file its place: its stored bytes come behind all that were added before.
    ///
    /// # Errors
    /// Value, when all have theirs; the limit of 4 GiB.
    pub fn add(&mut self, packed: &Packed<'_>) -> Result<()> {
        let stored = size_of_file(packed.bytes.len() as u64)?;
        self.place(stored, packed.size, packed.compressed, packed.crc)
    }

    /// The same for a file that is stored as it is, and not at hand in one piece: its size and
    /// [`Crc`](super::Crc).
    ///
    /// # Errors
    /// As [`Self::add`].
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

    /// The bytes of the table, for the gap.
    ///
    /// # Errors
    /// Value, when files are missing.
    pub fn finish(self) -> Result<Vec<u8>> {
        let all = self.table.entries.len();
        if self.done < all {
            return Err(Error::value(format!("{all} files"), self.done.to_string()));
        }
        self.table.to_bytes()
    }
}

impl<'d> Archive<'d> {
    /// An entry as it stands, for another archive: nothing is compressed again.
    ///
    /// # Errors
    /// As [`Archive::stored`].
    pub fn packed(&self, entry: &Entry<'_>) -> Result<Packed<'d>> {
        Ok(Packed {
            bytes: Cow::Borrowed(self.stored(entry)?),
            size: entry.size,
            compressed: entry.is_compressed(),
            crc: entry.crc,
        })
    }
}

/// Makes a whole archive in memory.
///
/// # Errors
/// As [`Plan`] and [`Packer`].
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
    // The largest number stands for "not compressed".
    let most = STORED_SIZE - 1;
    let fits = u32::try_from(size).ok().filter(|size| *size <= most);
    fits.ok_or_else(|| Error::limit("bytes of a file", u64::from(most), size))
}

fn offset(end: u64) -> Result<u32> {
    u32::try_from(end).map_err(|_| Error::limit("archive offset", u64::from(u32::MAX), end))
}
