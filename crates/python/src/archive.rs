//! KI's archives.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry as Slot};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use globset::GlobBuilder;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyMapping};
use rayon::prelude::*;
use worldwire_core::{Error, Limits, Reader, nearest};
use worldwire_dissect::catch_defect;
use worldwire_ki::file::wad::{
    self, BuildOptions, DEFAULT_LEVEL, Entry, Inflater, Packed, Packer, Plan, Table, is_stored_kind,
};

use crate::error::{Class, Fault, of_file};
use crate::reading::pool;

/// An open archive: a mapping from the names of its files to their contents.
#[pyclass(frozen, mapping, module = "worldwire.ki")]
pub(crate) struct Archive {
    path: PathBuf,
    file: Mutex<File>,
    size: u64,
    table: Table<'static>,
    /// The size of the table in bytes. The data follows it.
    table_size: usize,
    /// Indices of entries. Of two with the same name, the first one is read.
    by_name: HashMap<String, usize>,
}

/// What a file of a new archive is made of.
enum Content {
    /// An entry of the old one, by index.
    Kept(usize),
    New(Vec<u8>),
}

/// The number of bytes in which a table is searched first. Most are smaller.
const TABLE_BYTES: u64 = 1 << 20;

#[pymethods]
impl Archive {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::of_path(py, path)
    }

    fn __len__(&self) -> usize {
        self.by_name.len()
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        name.extract::<Cow<'_, str>>().is_ok_and(|name| self.has(&name))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys(py)?.try_iter()?.into_any())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.content(py, name)?))
    }

    /// The names of the files, in the order of the archive.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.names())
    }

    /// The contents of the files, in the order of the archive.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.everything(py).map(|all| all.values())
    }

    /// The names and contents of the files.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.everything(py).map(|all| all.items())
    }

    /// The content of a file, or `default` if there is none with this name.
    #[pyo3(signature = (name, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.has(name) {
            true => Ok(self.__getitem__(py, name)?.into_any()),
            false => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// The names that match a pattern: `*` and `?` match within a directory, `**` any number of
    /// directories.
    fn search<'py>(&self, py: Python<'py>, pattern: &str) -> PyResult<Bound<'py, PyList>> {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob = glob.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let matcher = glob.compile_matcher();
        let found: Vec<_> = self.names().filter(|name| matcher.is_match(&**name)).collect();
        PyList::new(py, found)
    }

    /// The contents of several files by name, read on all cores.
    fn read<'py>(&self, py: Python<'py>, names: Vec<String>) -> PyResult<Bound<'py, PyDict>> {
        let indices: Vec<usize> =
            names.iter().map(|name| self.index(name)).collect::<PyResult<_>>()?;
        let (pool, dict) = (pool()?, PyDict::new(py));
        // Not all at once, so that Ctrl-C works.
        for (names, indices) in names.chunks(FILES_AT_ONCE).zip(indices.chunks(FILES_AT_ONCE)) {
            py.check_signals()?;
            let contents = py.detach(|| pool.install(|| self.read_entries(indices)));
            let contents = contents.map_err(|failed| failed.raise(py, &self.path))?;
            for (name, content) in names.iter().zip(contents) {
                dict.set_item(name, PyBytes::new(py, &content))?;
            }
        }
        Ok(dict)
    }

    /// The size of a file in bytes.
    fn size(&self, name: &str) -> PyResult<u32> {
        Ok(self.entry(self.index(name)?).map_or(0, |entry| entry.size))
    }

    /// Writes an archive with other contents for some files. `None` removes a file. All others are
    /// copied as they are stored.
    #[pyo3(signature = (path, changes, *, level = DEFAULT_LEVEL))]
    fn update(
        &self,
        py: Python<'_>,
        path: PathBuf,
        changes: &Bound<'_, PyMapping>,
        level: u8,
    ) -> PyResult<()> {
        let mut contents = BTreeMap::new();
        for (index, entry) in self.table.entries.iter().enumerate() {
            match contents.entry(entry.name.to_vec()) {
                Slot::Vacant(slot) => slot.insert(Content::Kept(index)),
                Slot::Occupied(_) => {
                    let problem = format!("the archive has several files `{}`", entry.name_lossy());
                    return Err(Fault::new(Class::Encode, problem).raise(py));
                }
            };
        }
        for (name, content) in files_in(changes)? {
            match content {
                Some(content) => contents.insert(name.into_bytes(), Content::New(content)),
                None if contents.contains_key(name.as_bytes()) => contents.remove(name.as_bytes()),
                None => return Err(PyKeyError::new_err(self.missing(&name))),
            };
        }
        let options = BuildOptions { version: self.table.version, flags: self.table.flags, level };
        let written = py.detach(|| write(&path, &options, &contents, Some(self)));
        written.map_err(|failed| failed.raise(py, &path))
    }

    /// Writes an archive of these files.
    #[staticmethod]
    #[pyo3(signature = (path, files, *, level = DEFAULT_LEVEL))]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        files: &Bound<'_, PyMapping>,
        level: u8,
    ) -> PyResult<()> {
        let files = files_in(files)?.into_iter();
        let files = files.filter_map(|(name, content)| Some((name.into_bytes(), content?)));
        let contents = files.map(|(name, content)| (name, Content::New(content))).collect();
        let options = BuildOptions { level, ..BuildOptions::default() };
        let written = py.detach(|| write(&path, &options, &contents, None));
        written.map_err(|failed| failed.raise(py, &path))
    }

    fn __repr__(&self) -> String {
        format!("<archive {:?}, {} files>", self.path, self.by_name.len())
    }
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

/// How many files are read between checks for Python's signals.
const FILES_AT_ONCE: usize = 1_024;

impl Archive {
    pub(crate) fn of_path(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| Self::open(path.clone()));
        opened.map_err(|failed| failed.raise(py, &path))
    }

    /// The content of a file.
    pub(crate) fn content(&self, py: Python<'_>, name: &str) -> PyResult<Vec<u8>> {
        let index = self.index(name)?;
        let content = py.detach(|| self.read_entry(index, &mut Inflater::new()));
        content.map_err(|failed| failed.raise(py, &self.path))
    }

    fn open(path: PathBuf) -> Result<Self, Failed> {
        let file = File::open(&path)?;
        let size = file.metadata()?.len();
        let (mut bytes, mut wanted) = (Vec::new(), TABLE_BYTES);
        let limits = Limits::DEFAULT;
        let (table, table_size) = loop {
            let more = wanted.saturating_sub(bytes.len() as u64);
            let read = (&file).take(more).read_to_end(&mut bytes)?;
            let mut reader = Reader::within(&bytes, &limits);
            match Table::decode(&mut reader) {
                Ok(table) => break (owned(table), reader.position()),
                Err(error) if error.needed().is_some() && read > 0 => {
                    wanted = wanted.saturating_mul(4);
                }
                Err(error) => return Err(Error::closed(error).into()),
            }
        };
        let mut by_name = HashMap::with_capacity(table.entries.len());
        for (index, entry) in table.entries.iter().enumerate() {
            by_name.entry(entry.name_lossy().into_owned()).or_insert(index);
        }
        Ok(Self { path, file: Mutex::new(file), size, table, table_size, by_name })
    }

    fn everything<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.read(py, self.names().map(Cow::into_owned).collect())
    }

    /// The names of the files, in the order of the archive.
    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = Cow<'_, str>> {
        let mut names: Vec<(usize, &str)> =
            self.by_name.iter().map(|(name, index)| (*index, name.as_str())).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| Cow::Borrowed(name))
    }

    fn index(&self, name: &str) -> PyResult<usize> {
        let known = self.by_name.get(name).copied();
        known.ok_or_else(|| PyKeyError::new_err(self.missing(name)))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The error text for a file that is not there.
    pub(crate) fn missing(&self, name: &str) -> String {
        let near = nearest(name, self.by_name.keys().map(String::as_str));
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        format!("the archive has no file `{name}`{hint}")
    }

    fn entry(&self, index: usize) -> Option<&Entry<'static>> {
        self.table.entries.get(index)
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
            return Err(error.about(entry.name_lossy().into_owned()).into());
        }
        Ok(start..start + size)
    }

    /// Reads a part of the file, or what is left of it.
    fn read_range(&self, range: Range<u64>) -> Result<Vec<u8>, Failed> {
        let size = range.end.saturating_sub(range.start);
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        if size > 0 {
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::Start(range.start))?;
            (&*file).take(size).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// The stored bytes of an entry, with the entry for them alone.
    fn stored(&self, index: usize) -> Result<(Vec<u8>, Entry<'_>), Failed> {
        let bytes = self.read_range(self.range(index)?)?;
        Ok((bytes, self.alone(index)?))
    }

    /// An entry for its own data.
    fn alone(&self, index: usize) -> Result<Entry<'_>, Failed> {
        let entry = self.entry(index).ok_or_else(|| Error::invalid("no such entry"))?;
        Ok(Entry { name: Cow::Borrowed(&entry.name), offset: 0, ..*entry })
    }

    /// The file of an entry, checked and inflated.
    fn read_entry(&self, index: usize, inflater: &mut Inflater) -> Result<Vec<u8>, Failed> {
        let (stored, entry) = self.stored(index)?;
        opened(&stored, &entry, inflater)
    }

    /// The files of entries, in the same order, read on all cores. Neighbours are read together.
    fn read_entries(&self, indices: &[usize]) -> Result<Vec<Vec<u8>>, Failed> {
        let ranges = indices.iter().enumerate().map(|(at, index)| Ok((self.range(*index)?, at)));
        let mut ranges = ranges.collect::<Result<Vec<_>, Failed>>()?;
        ranges.sort_unstable_by_key(|(range, _)| range.start);
        let mut runs: Vec<Vec<(Range<u64>, usize)>> = Vec::new();
        for (range, at) in ranges {
            let last = runs.last_mut().filter(|run| {
                let (start, end) = bounds(run);
                // Entries can share data, and those without any are at 0.
                let gap = range.start.checked_sub(end);
                gap.is_some_and(|gap| gap <= MAX_GAP) && range.end - start <= MAX_RUN
            });
            match last {
                Some(run) => run.push((range, at)),
                None => runs.push(vec![(range, at)]),
            }
        }
        let read = |inflater: &mut Inflater, run: &Vec<(Range<u64>, usize)>| {
            let (start, end) = bounds(run);
            let bytes = self.read_range(start..end)?;
            let part = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
            let read = run.iter().map(|(range, at)| {
                let stored = bytes.get(part(range.start)..part(range.end)).unwrap_or_default();
                let index = indices.get(*at).copied().unwrap_or(usize::MAX);
                Ok((*at, opened(stored, &self.alone(index)?, inflater)?))
            });
            read.collect::<Result<Vec<_>, Failed>>()
        };
        let read = runs.par_iter().map_init(Inflater::new, read).collect::<Result<Vec<_>, _>>()?;
        let mut contents = vec![Vec::new(); indices.len()];
        for (at, content) in read.into_iter().flatten() {
            if let Some(place) = contents.get_mut(at) {
                *place = content;
            }
        }
        Ok(contents)
    }
}

/// Entries with at most `MAX_GAP` bytes between them are read together, up to `MAX_RUN` bytes.
const MAX_GAP: u64 = 16 << 10;
const MAX_RUN: u64 = 256 << 10;

/// The start of the first range and the end of the last.
fn bounds(run: &[(Range<u64>, usize)]) -> (u64, u64) {
    let start = run.first().map_or(0, |(range, _)| range.start);
    (start, run.last().map_or(0, |(range, _)| range.end))
}

/// The file of an entry, given its stored bytes.
fn opened(stored: &[u8], entry: &Entry<'_>, inflater: &mut Inflater) -> Result<Vec<u8>, Failed> {
    let read = || {
        let (limits, inflater) = (Limits::DEFAULT, inflater);
        let archive = wad::Archive::of_data(stored, &limits);
        let file = archive.read(entry, inflater)?.map(<[u8]>::to_vec);
        inflater.release();
        let absent = || Error::invalid("it has not been downloaded yet");
        file.ok_or_else(|| absent().about(entry.name_lossy().into_owned()))
    };
    let read = catch_defect(read);
    read.map_err(|defect| Failed::Defect(defect.report("read a file of an archive", stored)))?
        .map_err(Failed::Error)
}

/// The files of a mapping from names to bytes or `None`.
fn files_in(files: &Bound<'_, PyMapping>) -> PyResult<Vec<(String, Option<Vec<u8>>)>> {
    let read = |item: Bound<'_, PyAny>| {
        let (name, content) = item.extract::<(String, Bound<'_, PyAny>)>()?;
        if content.is_none() {
            return Ok((name, None));
        }
        match content.extract::<Cow<'_, [u8]>>() {
            Ok(bytes) => Ok((name, Some(bytes.into_owned()))),
            Err(_) => {
                let kind = content.get_type().name()?;
                let message = format!("the content of `{name}` must be bytes or None, not {kind}");
                // A game object has a method that returns them.
                let hint = if content.hasattr("encode")? { "; call its `encode`" } else { "" };
                Err(PyTypeError::new_err(message + hint))
            }
        }
    };
    files.items()?.iter().map(read).collect()
}

/// Writes an archive beside its path and then renames it, so that nobody sees half of it.
fn write(
    path: &Path,
    options: &BuildOptions,
    contents: &BTreeMap<Vec<u8>, Content>,
    old: Option<&Archive>,
) -> Result<(), Failed> {
    let names = contents.keys().map(|name| Cow::Borrowed(&**name)).collect();
    let mut plan = Plan::new(options, names)?;
    let mut packer = Packer::new(options.level)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder.unwrap_or_else(|| Path::new(".")))?;
    file.seek(SeekFrom::Start(plan.table_size()))?;
    for (name, content) in contents {
        let stored;
        let packed = match (content, old) {
            (Content::New(content), _) => packer.pack(content, is_stored_kind(name))?,
            (Content::Kept(index), Some(old)) => {
                stored = old.stored(*index)?;
                let (bytes, entry) = &stored;
                // A damaged file must not be copied unnoticed.
                wad::Archive::of_data(bytes, &Limits::DEFAULT).verified(entry)?;
                Packed {
                    bytes: Cow::Borrowed(bytes),
                    size: entry.size,
                    compressed: entry.is_compressed(),
                    crc: entry.crc,
                }
            }
            (Content::Kept(_), None) => continue,
        };
        plan.add(&packed)?;
        file.write_all(&packed.bytes)?;
    }
    let table = plan.finish()?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&table)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn owned(table: Table<'_>) -> Table<'static> {
    let Table { version, flags, entries } = table;
    let own = |entry: Entry<'_>| Entry { name: Cow::Owned(entry.name.into_owned()), ..entry };
    Table { version, flags, entries: entries.into_iter().map(own).collect() }
}

/// Why an archive cannot be read or written.
enum Failed {
    Io(io::Error),
    Error(Error),
    Defect(String),
}

impl Failed {
    fn raise(&self, py: Python<'_>, path: &Path) -> PyErr {
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
