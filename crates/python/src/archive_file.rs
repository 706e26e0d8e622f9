//! KI archives in files: their tables, and reading entries without the interpreter.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use foldhash::fast::RandomState;
use pyo3::PyErr;
use pyo3::Python;
use rayon::prelude::*;
use worldwire_core::{Error, Limits, Reader, nearest};
use worldwire_dissect::catch_defect;
use worldwire_ki::file::wad::{self, Entry, Inflater, Table};

use crate::error::{Class, Fault, of_file};
use crate::reading::shared_pool;

/// An archive whose table has been read.
pub(crate) struct ArchiveFile {
    pub(crate) path: PathBuf,
    pub(crate) version: u32,
    pub(crate) flags: u8,
    file: File,
    size: u64,
    /// The size of the table in bytes. The data follows it.
    table_size: usize,
    listed: Vec<Listed>,
    names: EntryNames,
    distinct: OnceLock<Distinct>,
}

/// The entries that can be read by name.
enum Distinct {
    /// All of them; their names are in ascending order.
    Sorted,
    /// All of them: the names are different.
    All,
    /// Those that do not share the name of an earlier entry.
    Some(Vec<usize>),
}

/// The names of all entries, one after another. Checking once that all are text is faster than
/// checking each of them.
enum EntryNames {
    Text(String),
    Bytes(Vec<u8>),
}

/// An entry of the table.
struct Listed {
    /// The position of its name among the names of all entries.
    name: Range<usize>,
    /// The entry without its name.
    entry: Entry<'static>,
}

/// How entries are read together and shared by threads.
pub(crate) struct Sharing {
    /// The maximum number of entries that are read together.
    pub(crate) run: usize,
    /// With fewer entries and fewer than [`MIN_SHARED`] bytes, one thread reads all of them, because
    /// that is faster than waking others.
    pub(crate) min_entries: usize,
}

/// The bytes before the first entry of a table, the usual size of an entry with its name, and the
/// maximum number of bytes that are read before the table is decoded.
const HEAD_BYTES: usize = 14;
const ENTRY_BYTES: u64 = 64;
const MAX_FIRST_BYTES: u64 = 1 << 20;
/// Entries with at most `MAX_GAP` bytes between them are read together, up to `MAX_RUN` bytes.
const MAX_GAP: u64 = 16 << 10;
const MAX_RUN: u64 = 256 << 10;
/// Fewer bytes are read on one thread: see [`Sharing`].
const MIN_SHARED: u64 = 512 << 10;

impl ArchiveFile {
    /// Opens an archive and reads its table.
    pub(crate) fn open(path: PathBuf) -> Result<Self, Failed> {
        let file = File::open(&path)?;
        let size = file.metadata()?.len();
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        (&file).take(HEAD_BYTES as u64).read_to_end(&mut bytes)?;
        let count = bytes.get(9..13).and_then(|count| count.first_chunk()).copied();
        let count = u64::from(count.map_or(0, u32::from_le_bytes));
        let mut wanted = (count * ENTRY_BYTES).clamp(ENTRY_BYTES, MAX_FIRST_BYTES);
        let limits = Limits::DEFAULT;
        loop {
            let more = wanted.saturating_sub(bytes.len() as u64);
            bytes.reserve(usize::try_from(more.min(size)).unwrap_or(0));
            let read = (&file).take(more).read_to_end(&mut bytes)?;
            let mut reader = Reader::within(&bytes, &limits);
            match Table::decode(&mut reader) {
                Ok(table) => {
                    let table_size = reader.position();
                    return Ok(Self::of(path, (file, size), table, table_size));
                }
                Err(error) if error.needed().is_some() && (read > 0 || more == 0) => {
                    wanted = wanted.saturating_mul(4);
                }
                Err(error) => return Err(Error::closed(error).into()),
            }
        }
    }

    fn of(path: PathBuf, (file, size): (File, u64), table: Table<'_>, table_size: usize) -> Self {
        let Table { version, flags, entries } = table;
        let mut names = Vec::with_capacity(entries.iter().map(|entry| entry.name.len()).sum());
        let listed = entries.into_iter().map(|entry| {
            let start = names.len();
            names.extend_from_slice(&entry.name);
            let entry = Entry { name: Cow::Borrowed(&[]), ..entry };
            Listed { name: start..names.len(), entry }
        });
        let listed = listed.collect();
        let names = match String::from_utf8(names) {
            Ok(text) => EntryNames::Text(text),
            Err(error) => EntryNames::Bytes(error.into_bytes()),
        };
        let distinct = OnceLock::new();
        Self { path, version, flags, file, size, table_size, listed, names, distinct }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.listed.len()
    }

    /// The name of an entry, for display and for Python.
    pub(crate) fn name(&self, index: usize) -> Cow<'_, str> {
        if let (EntryNames::Text(names), Some(listed)) = (&self.names, self.listed.get(index))
            && let Some(name) = names.get(listed.name.clone())
        {
            return Cow::Borrowed(name);
        }
        String::from_utf8_lossy(self.raw_name(index))
    }

    pub(crate) fn raw_name(&self, index: usize) -> &[u8] {
        let listed = self.listed.get(index);
        let names = self.names.as_bytes();
        listed.and_then(|listed| names.get(listed.name.clone())).unwrap_or_default()
    }

    /// An entry without its name.
    pub(crate) fn entry(&self, index: usize) -> Option<&Entry<'static>> {
        self.listed.get(index).map(|listed| &listed.entry)
    }

    /// The entries that can be read by name: of several with the same name, the first one.
    pub(crate) fn distinct(&self) -> impl Iterator<Item = usize> {
        let (some, all): (&[usize], _) = match self.by_name() {
            Distinct::Sorted | Distinct::All => (&[], 0..self.len()),
            Distinct::Some(indices) => (indices, 0..0),
        };
        some.iter().copied().chain(all)
    }

    /// The number of entries that can be read by name.
    pub(crate) fn distinct_len(&self) -> usize {
        match self.by_name() {
            Distinct::Sorted | Distinct::All => self.len(),
            Distinct::Some(indices) => indices.len(),
        }
    }

    /// The entry with this name, if the names are in ascending order. `None` if they are not.
    pub(crate) fn find_sorted(&self, name: &str) -> Option<Option<usize>> {
        if !matches!(self.by_name(), Distinct::Sorted) {
            return None;
        }
        let names = self.names.as_bytes();
        let name_of = |listed: &Listed| names.get(listed.name.clone()).unwrap_or_default();
        Some(self.listed.binary_search_by(|listed| name_of(listed).cmp(name.as_bytes())).ok())
    }

    fn by_name(&self) -> &Distinct {
        self.distinct.get_or_init(|| self.without_repeats())
    }

    fn without_repeats(&self) -> Distinct {
        let names = || (0..self.len()).map(|index| self.raw_name(index));
        // Most archives are sorted. Invalid names can become the same text.
        if self.names.as_bytes().is_ascii()
            && names().zip(names().skip(1)).all(|(one, next)| one < next)
        {
            return Distinct::Sorted;
        }
        let mut known: HashSet<Cow<'_, str>, RandomState> = HashSet::default();
        let is_new = |index: &usize| known.insert(self.name(*index));
        let distinct: Vec<usize> = (0..self.len()).filter(is_new).collect();
        match distinct.len() < self.len() {
            true => Distinct::Some(distinct),
            false => Distinct::All,
        }
    }

    /// The error text for a file that does not exist.
    pub(crate) fn missing(&self, name: &str) -> String {
        let names: Vec<Cow<'_, str>> = (0..self.len()).map(|index| self.name(index)).collect();
        let near = nearest(name, names.iter().map(|name| &**name));
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        format!("the archive has no file `{name}`{hint}")
    }

    /// The stored bytes of an entry, and an entry that refers to these bytes alone.
    pub(crate) fn stored(&self, index: usize) -> Result<(Vec<u8>, Entry<'_>), Failed> {
        let mut bytes = Vec::new();
        self.read_range(self.range(index)?, &mut bytes)?;
        Ok((bytes, self.alone(index)?))
    }

    /// The file of an entry, checked and inflated.
    pub(crate) fn read(&self, index: usize) -> Result<Vec<u8>, Failed> {
        let (stored, entry) = self.stored(index)?;
        let mut inflater = Inflater::new();
        read_entry(&stored, &entry, &mut inflater).map(<[u8]>::to_vec)
    }

    /// Reads entries and passes their files to `take`, each with its position in `indices`. Entries
    /// that are neighbours in the file are read together. Each such run, and each `scratch`, belongs
    /// to one thread; the results of the runs are returned. If `take` returns an error, reading
    /// stops.
    pub(crate) fn read_each<S, B: Default + Send>(
        &self,
        indices: &[usize],
        sharing: &Sharing,
        scratch: impl Fn() -> S + Send + Sync,
        take: impl Fn(&mut S, &mut B, usize, Result<&[u8], Failed>) -> Result<(), Failed> + Send + Sync,
    ) -> Result<Vec<B>, Failed> {
        let runs = self.runs(indices, sharing.run);
        let read_run = |(bytes, inflater, scratch): &mut (Vec<u8>, Inflater, S), run: &Run| {
            let (start, end) = bounds(run);
            self.read_range(start..end, bytes)?;
            let part = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
            let mut results = B::default();
            for (range, at) in run {
                let index = indices.get(*at).copied().unwrap_or(usize::MAX);
                let stored = bytes.get(part(range.start)..part(range.end)).unwrap_or_default();
                let file = self.range(index).and_then(|_| self.alone(index));
                let file = file.and_then(|entry| read_entry(stored, &entry, inflater));
                take(scratch, &mut results, *at, file)?;
                inflater.release();
            }
            Ok(results)
        };
        let room = || (Vec::new(), Inflater::new(), scratch());
        let sizes = indices.iter().filter_map(|index| self.entry(*index));
        let sizes = sizes.map(|entry| u64::from(entry.size.max(entry.stored_size())));
        let is_small =
            indices.len() < sharing.min_entries && sizes.fold(0, u64::saturating_add) < MIN_SHARED;
        if runs.len() < 2 || is_small {
            let mut room = room();
            return runs.iter().map(|run| read_run(&mut room, run)).collect();
        }
        shared_pool()?.install(|| runs.par_iter().map_init(room, read_run).collect())
    }

    /// The ranges of entries that are read together, with the position of each in `indices`.
    fn runs(&self, indices: &[usize], max_entries: usize) -> Vec<Run> {
        // What is wrong with a range is reported when the entry is read.
        let range = |index: &usize| self.range(*index).unwrap_or(0..0);
        let mut ranges: Run =
            indices.iter().enumerate().map(|(at, index)| (range(index), at)).collect();
        ranges.sort_by_key(|(range, _)| range.start);
        let mut runs: Vec<Run> = Vec::new();
        for (range, at) in ranges {
            let last = runs.last_mut().filter(|run| {
                let (start, end) = bounds(run);
                // Entries can share data, and those without any are at 0.
                let gap = range.start.checked_sub(end);
                let is_near = gap.is_some_and(|gap| gap <= MAX_GAP);
                is_near && range.end - start <= MAX_RUN && run.len() < max_entries
            });
            match last {
                Some(run) => run.push((range, at)),
                None => runs.push(vec![(range, at)]),
            }
        }
        runs
    }

    /// Where the data of an entry is in the file.
    fn range(&self, index: usize) -> Result<Range<u64>, Failed> {
        let entry = self.entry(index).ok_or_else(|| Error::invalid("no such entry"))?;
        let (start, size) = (u64::from(entry.offset), u64::from(entry.stored_size()));
        if size == 0 {
            return Ok(0..0);
        }
        if start < self.table_size as u64 || start + size > self.size {
            let wanted = format!("data between {} and {}", self.table_size, self.size);
            let error = Error::malformed(wanted, format!("{size} bytes at {start}"));
            return Err(error.about(self.name(index).into_owned()).into());
        }
        Ok(start..start + size)
    }

    /// Reads a part of the file, or what is left of it. The file's own position is not used, because
    /// forked processes share it.
    fn read_range(&self, range: Range<u64>, bytes: &mut Vec<u8>) -> Result<(), Failed> {
        let left = self.size.saturating_sub(range.start);
        let size = range.end.saturating_sub(range.start).min(left);
        bytes.resize(usize::try_from(size).map_err(io::Error::other)?, 0);
        let mut length = 0;
        while let Some(room) = bytes.get_mut(length..).filter(|room| !room.is_empty()) {
            match read_at(&self.file, room, range.start + length as u64) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        bytes.truncate(length);
        Ok(())
    }

    /// An entry that refers to its own data alone.
    fn alone(&self, index: usize) -> Result<Entry<'_>, Failed> {
        let entry = self.entry(index).ok_or_else(|| Error::invalid("no such entry"))?;
        Ok(Entry { name: Cow::Borrowed(self.raw_name(index)), offset: 0, ..*entry })
    }
}

impl EntryNames {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(names) => names.as_bytes(),
            Self::Bytes(names) => names,
        }
    }
}

/// Entries that are read together: their ranges, and their positions among those requested.
type Run = Vec<(Range<u64>, usize)>;

/// The start of the first range and the end of the last.
fn bounds(run: &[(Range<u64>, usize)]) -> (u64, u64) {
    let start = run.first().map_or(0, |(range, _)| range.start);
    (start, run.last().map_or(0, |(range, _)| range.end))
}

/// The file of an entry, given its stored bytes.
fn read_entry<'b>(
    stored: &'b [u8],
    entry: &Entry<'_>,
    inflater: &'b mut Inflater,
) -> Result<&'b [u8], Failed> {
    let limits = &Limits::DEFAULT;
    let read = catch_defect(move || wad::Archive::of_data(stored, limits).read(entry, inflater));
    let file = read
        .map_err(|defect| Failed::Defect(defect.report("read a file of an archive", stored)))?
        .map_err(Failed::Error)?;
    let absent = || Error::invalid("it has not been downloaded yet");
    file.ok_or_else(|| absent().about(entry.name_lossy().into_owned()).into())
}

#[cfg(unix)]
fn read_at(file: &File, room: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, room, at)
}

#[cfg(windows)]
fn read_at(file: &File, room: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, room, at)
}

/// Whether a file is an archive, judging by its first bytes.
pub(crate) fn is_archive(path: &Path) -> bool {
    const MAGIC: [u8; 5] = *b"KIWAD";
    let mut head = [0; MAGIC.len()];
    // Opening a pipe could wait forever.
    path.is_file()
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok())
        && head == MAGIC
}

/// Why an archive cannot be read or written.
pub(crate) enum Failed {
    Io(io::Error),
    Error(Error),
    Defect(String),
}

impl Failed {
    /// The exception, given the path of the archive.
    pub(crate) fn raise(&self, py: Python<'_>, path: &Path) -> PyErr {
        match self {
            Self::Io(error) => of_file(path, error),
            Self::Error(error) => Fault::of(Class::Decode, error).raise(py),
            Self::Defect(report) => Fault::new(Class::Decode, report).raise(py),
        }
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}
