//! KI's archives.

use std::borrow::Cow;
use std::collections::btree_map::{BTreeMap, Entry as Slot};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyMapping, PyString};
use rayon::prelude::*;
use worldwire_core::{Error, Limits, Reader, nearest};
use worldwire_dissect::catch_defect;
use worldwire_ki::file::wad::{
    self, BuildOptions, DEFAULT_LEVEL, Entry, Inflater, Packed, Packer, Plan, Table, is_stored_kind,
};

use crate::error::{Class, Fault, of_file};
use crate::reading::shared_pool;

/// An open archive: a mapping from the names of its files to their contents.
#[pyclass(frozen, mapping, module = "worldwire.ki")]
pub(crate) struct Archive {
    path: PathBuf,
    file: File,
    size: u64,
    /// The size of the table in bytes. The data follows it.
    table_size: usize,
    version: u32,
    flags: u8,
    listed: Vec<Listed>,
    /// The names of all entries, one after another.
    names: Vec<u8>,
    /// The index of each entry by name, made when it is first needed. Of two with the same name, the
    /// first one is read. The same strings are the names that Python code gets, and looking up one
    /// of these does not compute its hash again.
    by_name: PyOnceLock<Py<PyDict>>,
}

/// An entry of the table.
struct Listed {
    /// In the names of all entries.
    name: Range<usize>,
    /// The entry without its name.
    entry: Entry<'static>,
}

/// What a file of a new archive is made of.
enum Content {
    /// An entry of the old one, by index.
    Kept(usize),
    New(Vec<u8>),
}

/// The bytes before the first entry of a table, the usual size of an entry with its name, and the
/// maximum number of bytes that are read before the table is decoded.
const HEAD_BYTES: usize = 14;
const ENTRY_BYTES: u64 = 64;
const MAX_FIRST_BYTES: u64 = 1 << 20;

#[pymethods]
impl Archive {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::of_path(py, path)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.by_name(py)?.len())
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name.cast::<PyString>() {
            Ok(name) => self.by_name(name.py())?.contains(name),
            Err(_) => Ok(false),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys(py)?.try_iter()?.into_any())
    }

    fn __getitem__<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyBytes>> {
        let index = self.index(name)?;
        Ok(PyBytes::new(name.py(), &self.content_at(name.py(), index)?))
    }

    /// The names of the files, in the order of the archive.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Ok(self.by_name(py)?.keys())
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
        name: &Bound<'py, PyString>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = name.py();
        match self.by_name(py)?.contains(name)? {
            true => Ok(self.__getitem__(name)?.into_any()),
            false => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// The names that match a pattern: `*` and `?` match within a directory, `**` any number of
    /// directories.
    fn search<'py>(&self, py: Python<'py>, pattern: &str) -> PyResult<Bound<'py, PyList>> {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob = glob.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let (matcher, found) = (glob.compile_matcher(), PyList::empty(py));
        for (name, index) in self.by_name(py)?.iter() {
            if matcher.is_match(&*self.name(index.extract()?)) {
                found.append(name)?;
            }
        }
        Ok(found)
    }

    /// The contents of several files by name, read on all cores.
    fn read<'py>(
        &self,
        py: Python<'py>,
        names: Vec<Bound<'py, PyString>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let indices: Vec<usize> =
            names.iter().map(|name| self.index(name)).collect::<PyResult<_>>()?;
        let dict = PyDict::new(py);
        // Not all at once, so that Ctrl-C works.
        for (names, indices) in names.chunks(FILES_AT_ONCE).zip(indices.chunks(FILES_AT_ONCE)) {
            py.check_signals()?;
            let runs = py.detach(|| self.read_entries(indices));
            let runs = runs.map_err(|failed| failed.raise(py, &self.path))?;
            let mut contents = vec![&[][..]; indices.len()];
            for (at, content) in runs.iter().flat_map(Contents::iter) {
                if let Some(place) = contents.get_mut(at) {
                    *place = content;
                }
            }
            for (name, content) in names.iter().zip(contents) {
                dict.set_item(name, PyBytes::new(py, content))?;
            }
        }
        Ok(dict)
    }

    /// The size of a file in bytes.
    fn size(&self, name: &Bound<'_, PyString>) -> PyResult<u32> {
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
        for index in 0..self.listed.len() {
            match contents.entry(self.raw_name(index).to_vec()) {
                Slot::Vacant(slot) => slot.insert(Content::Kept(index)),
                Slot::Occupied(_) => {
                    let problem = format!("the archive has several files `{}`", self.name(index));
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
        let options = BuildOptions { version: self.version, flags: self.flags, level };
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

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<archive {:?}, {} files>", self.path, self.by_name(py)?.len()))
    }
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

/// How many files are read between checks for Python's signals.
const FILES_AT_ONCE: usize = 1_024;

impl Archive {
    pub(crate) fn of_path(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| Self::open(path.clone()));
        opened.map_err(|failed| failed.raise(py, &path))
    }

    /// The content of a file; `None` if there is none with this name.
    pub(crate) fn content(&self, py: Python<'_>, name: &str) -> PyResult<Option<Vec<u8>>> {
        let index = self.by_name(py)?.get_item(name)?;
        index.map(|index| self.content_at(py, index.extract()?)).transpose()
    }

    fn content_at(&self, py: Python<'_>, index: usize) -> PyResult<Vec<u8>> {
        let content = py.detach(|| self.read_entry(index));
        content.map_err(|failed| failed.raise(py, &self.path))
    }

    fn open(path: PathBuf) -> Result<Self, Failed> {
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
        let by_name = PyOnceLock::new();
        Self { path, file, size, table_size, version, flags, listed, names, by_name }
    }

    fn by_name<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyDict>> {
        let make = || {
            let by_name = PyDict::new(py);
            for index in 0..self.listed.len() {
                let name = PyString::new(py, &self.name(index));
                if !by_name.contains(&name)? {
                    by_name.set_item(name, index)?;
                }
            }
            Ok(by_name.unbind())
        };
        self.by_name.get_or_try_init(py, make).map(|by_name| by_name.bind(py))
    }

    fn everything<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.read(py, self.keys(py)?.extract()?)
    }

    /// The names of the files, in the order of the archive.
    pub(crate) fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.by_name(py)?.keys().extract()
    }

    fn name(&self, index: usize) -> Cow<'_, str> {
        String::from_utf8_lossy(self.raw_name(index))
    }

    fn raw_name(&self, index: usize) -> &[u8] {
        let listed = self.listed.get(index);
        listed.and_then(|listed| self.names.get(listed.name.clone())).unwrap_or_default()
    }

    fn index(&self, name: &Bound<'_, PyString>) -> PyResult<usize> {
        match self.by_name(name.py())?.get_item(name)? {
            Some(index) => index.extract(),
            None => Err(PyKeyError::new_err(self.missing(&name.to_string_lossy()))),
        }
    }

    /// The error text for a file that is not there.
    pub(crate) fn missing(&self, name: &str) -> String {
        let names = (0..self.listed.len()).map(|index| self.name(index));
        let names: Vec<Cow<'_, str>> = names.collect();
        let near = nearest(name, names.iter().map(|name| &**name));
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        format!("the archive has no file `{name}`{hint}")
    }

    /// An entry without its name.
    fn entry(&self, index: usize) -> Option<&Entry<'static>> {
        self.listed.get(index).map(|listed| &listed.entry)
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
    fn read_range(&self, range: Range<u64>) -> Result<Vec<u8>, Failed> {
        let left = self.size.saturating_sub(range.start);
        let size = range.end.saturating_sub(range.start).min(left);
        let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
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
        Ok(Entry { name: Cow::Borrowed(self.raw_name(index)), offset: 0, ..*entry })
    }

    /// The file of an entry, checked and inflated.
    fn read_entry(&self, index: usize) -> Result<Vec<u8>, Failed> {
        let (stored, entry) = self.stored(index)?;
        let mut content = Vec::new();
        read_into(&mut content, &stored, &entry, &mut Inflater::new())?;
        Ok(content)
    }

    /// The files of entries, read on all cores. Neighbours are read together.
    fn read_entries(&self, indices: &[usize]) -> Result<Vec<Contents>, Failed> {
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
        let read_run = |inflater: &mut Inflater, run: &Vec<(Range<u64>, usize)>| {
            let (start, end) = bounds(run);
            let bytes = self.read_range(start..end)?;
            let part = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
            let mut contents = Contents::default();
            for (range, at) in run {
                let stored = bytes.get(part(range.start)..part(range.end)).unwrap_or_default();
                let index = indices.get(*at).copied().unwrap_or(usize::MAX);
                read_into(&mut contents.bytes, stored, &self.alone(index)?, inflater)?;
                contents.files.push((*at, contents.bytes.len()));
            }
            Ok(contents)
        };
        let sizes = indices.iter().filter_map(|index| self.entry(*index));
        let sizes = sizes.map(|entry| u64::from(entry.size.max(entry.stored_size())));
        if runs.len() < 2 || sizes.fold(0, u64::saturating_add) < MIN_SHARED {
            let mut inflater = Inflater::new();
            return runs.iter().map(|run| read_run(&mut inflater, run)).collect();
        }
        shared_pool()?.install(|| runs.par_iter().map_init(Inflater::new, read_run).collect())
    }
}

/// The contents of several files, one after another.
#[derive(Default)]
struct Contents {
    bytes: Vec<u8>,
    /// Which of the requested files it is, and where it ends.
    files: Vec<(usize, usize)>,
}

impl Contents {
    fn iter(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let starts = std::iter::once(0).chain(self.files.iter().map(|(_, end)| *end));
        starts
            .zip(&self.files)
            .map(|(start, (at, end))| (*at, self.bytes.get(start..*end).unwrap_or_default()))
    }
}

/// Entries with at most `MAX_GAP` bytes between them are read together, up to `MAX_RUN` bytes.
const MAX_GAP: u64 = 16 << 10;
const MAX_RUN: u64 = 256 << 10;
/// Fewer bytes are read on one thread, because that is faster than waking others.
const MIN_SHARED: u64 = 512 << 10;

/// The start of the first range and the end of the last.
fn bounds(run: &[(Range<u64>, usize)]) -> (u64, u64) {
    let start = run.first().map_or(0, |(range, _)| range.start);
    (start, run.last().map_or(0, |(range, _)| range.end))
}

/// Appends the file of an entry, given its stored bytes.
fn read_into(
    content: &mut Vec<u8>,
    stored: &[u8],
    entry: &Entry<'_>,
    inflater: &mut Inflater,
) -> Result<(), Failed> {
    let read = || {
        let (limits, inflater) = (Limits::DEFAULT, inflater);
        let archive = wad::Archive::of_data(stored, &limits);
        let absent = || Error::invalid("it has not been downloaded yet");
        let file = archive.read(entry, inflater)?;
        let file = file.ok_or_else(|| absent().about(entry.name_lossy().into_owned()))?;
        content.extend_from_slice(file);
        inflater.release();
        Ok(())
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
