//! KI's archives.

use std::borrow::Cow;
use std::collections::btree_map::{BTreeMap, Entry as Slot};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyMapping, PyString};
use worldwire_core::Limits;
use worldwire_ki::file::wad::{
    self, BuildOptions, DEFAULT_LEVEL, Packed, Packer, Plan, is_stored_kind,
};

use crate::archive_file::{ArchiveFile, Failed, Sharing};
use crate::error::{Class, Fault};
use crate::ki::TypeList;
use crate::object_table::object_table;
use crate::pattern::Pattern;
use crate::table::Table;

/// An open archive: a mapping from file names to contents.
#[pyclass(frozen, mapping, module = "worldwire.ki")]
pub(crate) struct Archive {
    file: Arc<ArchiveFile>,
    /// The index of each entry by name, created when Python code asks for the names. If two entries
    /// have the same name, the first one is read. Python code gets these very strings as names, so
    /// looking one up does not compute its hash again.
    by_name: PyOnceLock<Py<PyDict>>,
}

/// The source of a file in a new archive.
enum Content {
    /// An entry of the old one, by index.
    Kept(usize),
    New(Vec<u8>),
}

#[pymethods]
impl Archive {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::of_path(py, path)
    }

    fn __len__(&self) -> usize {
        self.file.distinct_len()
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name.cast::<PyString>() {
            Ok(name) => Ok(self.find(name)?.is_some()),
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

    /// The file names, in archive order.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Ok(self.by_name(py)?.keys())
    }

    /// The file contents, in archive order.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.everything(py).map(|all| all.values())
    }

    /// The file names and contents.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.everything(py).map(|all| all.items())
    }

    /// The contents of a file, or `default` if no file has this name.
    #[pyo3(signature = (name, default = None))]
    fn get<'py>(
        &self,
        name: &Bound<'py, PyString>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = name.py();
        match self.find(name)? {
            Some(index) => Ok(PyBytes::new(py, &self.content_at(py, index)?).into_any()),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// The names that match a pattern: `*` and `?` match within a directory; `**` matches any
    /// number of directories.
    fn search<'py>(&self, py: Python<'py>, pattern: &str) -> PyResult<Bound<'py, PyList>> {
        let (pattern, found) = (read_pattern(pattern)?, PyList::empty(py));
        for (name, index) in self.by_name(py)?.keys().iter().zip(self.file.distinct()) {
            if pattern.matches(&self.file.name(index)) {
                found.append(name)?;
            }
        }
        Ok(found)
    }

    /// The contents of several files by name, read on all cores. `files` is a pattern or the names.
    fn read<'py>(
        &self,
        py: Python<'py>,
        files: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let selected = self.selected(files)?;
        for part in self.parts(&selected.indices) {
            let names = selected.names(&self.file, py, part.clone());
            for (name, content) in names.zip(self.contents(py, &selected, part.clone())?) {
                dict.set_item(name, content)?;
            }
        }
        Ok(dict)
    }

    /// The names and contents of several files, read as the iterator advances. `files` is a pattern or
    /// the names.
    #[pyo3(signature = (files = None))]
    fn files<'py>(
        slf: Bound<'py, Self>,
        files: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, archive) = (slf.py(), slf.get());
        let selected = match files {
            Some(files) => archive.selected(files)?,
            None => Selected { indices: archive.file.distinct().collect(), names: None },
        };
        let parts = archive.parts(&selected.indices);
        let parts = ArchiveParts { archive: slf.unbind(), selected, parts: parts.into_iter() };
        // The interpreter then calls this module once for each part, not for each file.
        py.import("itertools")?.getattr("chain")?.call_method1("from_iterable", (parts,))
    }

    /// A table of the values at paths of many objects, one row for each file.
    #[pyo3(signature = (files, columns, types, *, lenient = false))]
    fn table(
        &self,
        files: &Bound<'_, PyAny>,
        columns: Vec<String>,
        types: &TypeList,
        lenient: bool,
    ) -> PyResult<Table> {
        let selected = self.selected(files)?.indices;
        object_table(files.py(), &self.file, &selected, columns, types.classes(), lenient)
    }

    /// The size of a file in bytes.
    fn size(&self, name: &Bound<'_, PyString>) -> PyResult<u32> {
        Ok(self.file.entry(self.index(name)?).map_or(0, |entry| entry.size))
    }

    /// Writes an archive with new contents for the given files. `None` removes a file. All other
    /// files are copied as they are stored.
    #[pyo3(signature = (path, changes, *, level = DEFAULT_LEVEL))]
    fn update(
        &self,
        py: Python<'_>,
        path: PathBuf,
        changes: &Bound<'_, PyMapping>,
        level: u8,
    ) -> PyResult<()> {
        let mut contents = BTreeMap::new();
        for index in 0..self.file.len() {
            match contents.entry(self.file.raw_name(index).to_vec()) {
                Slot::Vacant(slot) => slot.insert(Content::Kept(index)),
                Slot::Occupied(_) => {
                    let problem =
                        format!("the archive has several files `{}`", self.file.name(index));
                    return Err(Fault::new(Class::Encode, problem).raise(py));
                }
            };
        }
        for (name, content) in files_in(changes)? {
            match content {
                Some(content) => contents.insert(name.into_bytes(), Content::New(content)),
                None if contents.contains_key(name.as_bytes()) => contents.remove(name.as_bytes()),
                None => return Err(PyKeyError::new_err(self.file.missing(&name))),
            };
        }
        let options = BuildOptions { version: self.file.version, flags: self.file.flags, level };
        let written = py.detach(|| write(&path, &options, &contents, Some(&self.file)));
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
        format!("<archive {:?}, {} files>", self.file.path, self.file.distinct_len())
    }
}

/// The maximum number of files read between checks for Python's signals, and of bytes unless a single
/// file has more. With more small files, their memory would be returned to the system after each part.
const FILES_AT_ONCE: usize = 512;
const BYTES_AT_ONCE: u64 = 32 << 20;
/// The maximum number of bytes allocated before they are read. A stated size can be wrong.
const MAX_RESERVED: usize = 256 << 10;

impl Archive {
    pub(crate) fn of_path(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| ArchiveFile::open(path.clone()));
        let file = Arc::new(opened.map_err(|failed| failed.raise(py, &path))?);
        Ok(Self { file, by_name: PyOnceLock::new() })
    }

    /// The contents of a file; `None` if no file has this name.
    pub(crate) fn content(&self, py: Python<'_>, name: &str) -> PyResult<Option<Vec<u8>>> {
        let index = self.find(&PyString::new(py, name))?;
        index.map(|index| self.content_at(py, index)).transpose()
    }

    /// The error text for a file that does not exist.
    pub(crate) fn missing(&self, name: &str) -> String {
        self.file.missing(name)
    }

    /// The file names, in archive order.
    pub(crate) fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.by_name(py)?.keys().extract()
    }

    fn content_at(&self, py: Python<'_>, index: usize) -> PyResult<Vec<u8>> {
        let content = py.detach(|| self.file.read(index));
        content.map_err(|failed| failed.raise(py, &self.file.path))
    }

    fn by_name<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyDict>> {
        let make = || {
            let by_name = PyDict::new(py);
            for index in self.file.distinct() {
                by_name.set_item(&*self.file.name(index), index)?;
            }
            Ok(by_name.unbind())
        };
        self.by_name.get_or_try_init(py, make).map(|by_name| by_name.bind(py))
    }

    fn everything<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.read(py, self.keys(py)?.as_any())
    }

    fn index(&self, name: &Bound<'_, PyString>) -> PyResult<usize> {
        let missing = || PyKeyError::new_err(self.missing(&name.to_string_lossy()));
        self.find(name)?.ok_or_else(missing)
    }

    /// The index of the entry with this name.
    fn find(&self, name: &Bound<'_, PyString>) -> PyResult<Option<usize>> {
        let py = name.py();
        // Creating the dictionary takes longer than many searches.
        if self.by_name.get(py).is_none()
            && let Ok(text) = name.to_cow()
            && let Some(found) = self.file.find_sorted(&text)
        {
            return Ok(found);
        }
        self.by_name(py)?.get_item(name)?.map(|index| index.extract()).transpose()
    }

    /// The files that match a pattern, or those with these names.
    fn selected<'py>(&self, files: &Bound<'py, PyAny>) -> PyResult<Selected> {
        if let Ok(pattern) = files.cast::<PyString>() {
            let pattern = read_pattern(&pattern.to_cow()?)?;
            let matches = |index: &usize| pattern.matches(&self.file.name(*index));
            let indices = self.file.distinct().filter(matches).collect();
            return Ok(Selected { indices, names: None });
        }
        let names: Vec<Bound<'py, PyString>> = files.extract()?;
        let indices = names.iter().map(|name| self.index(name)).collect::<PyResult<_>>()?;
        let names = names.into_iter().map(Bound::unbind).collect();
        Ok(Selected { indices, names: Some(names) })
    }

    /// Divides files into parts that are read at once.
    fn parts(&self, indices: &[usize]) -> Vec<Range<usize>> {
        let (mut parts, mut start, mut bytes) = (Vec::new(), 0, 0_u64);
        for (at, index) in indices.iter().enumerate() {
            let size = self.file.entry(*index).map_or(0, |it| it.size.max(it.stored_size()));
            let total = bytes.saturating_add(size.into());
            if at > start && (at - start == FILES_AT_ONCE || total > BYTES_AT_ONCE) {
                parts.push(start..at);
                (start, bytes) = (at, size.into());
            } else {
                bytes = total;
            }
        }
        parts.push(start..indices.len());
        parts
    }

    /// The contents of a part of the files.
    fn contents<'py>(
        &self,
        py: Python<'py>,
        selected: &Selected,
        part: Range<usize>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        py.check_signals()?;
        let indices = selected.indices.get(part).unwrap_or_default();
        let sharing = Sharing { run: usize::MAX, min_entries: usize::MAX };
        let sizes = indices.iter().filter_map(|index| self.file.entry(*index));
        let total: usize = sizes.map(|entry| entry.size as usize).fold(0, usize::saturating_add);
        let take = |(): &mut (), contents: &mut Contents, at, file: Result<&[u8], Failed>| {
            if contents.files.is_empty() {
                contents.bytes.reserve(total.min(MAX_RESERVED));
                contents.files.reserve(indices.len());
            }
            contents.bytes.extend_from_slice(file?);
            contents.files.push((at, contents.bytes.len()));
            Ok(())
        };
        let runs = py.detach(|| self.file.read_each(indices, &sharing, || (), take));
        let runs: Vec<Contents> = runs.map_err(|failed| failed.raise(py, &self.file.path))?;
        let mut contents = vec![&[][..]; indices.len()];
        for (at, content) in runs.iter().flat_map(Contents::iter) {
            if let Some(place) = contents.get_mut(at) {
                *place = content;
            }
        }
        Ok(contents.into_iter().map(|content| PyBytes::new(py, content)).collect())
    }
}

/// Files of an archive.
struct Selected {
    indices: Vec<usize>,
    /// Their names, if Python code gave them.
    names: Option<Vec<Py<PyString>>>,
}

impl Selected {
    /// The names of a part of the files.
    fn names<'py>(
        &self,
        file: &ArchiveFile,
        py: Python<'py>,
        part: Range<usize>,
    ) -> impl ExactSizeIterator<Item = Bound<'py, PyString>> {
        part.map(move |at| match self.names.as_ref().and_then(|names| names.get(at)) {
            Some(name) => name.bind(py).clone(),
            None => {
                let index = self.indices.get(at).copied().unwrap_or(usize::MAX);
                PyString::new(py, &file.name(index))
            }
        })
    }
}

/// The parts of the files that an iterator passes, each an iterator of names and contents.
#[pyclass(module = "worldwire.ki")]
struct ArchiveParts {
    archive: Py<Archive>,
    selected: Selected,
    parts: std::vec::IntoIter<Range<usize>>,
}

#[pymethods]
impl ArchiveParts {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(part) = self.parts.next() else { return Ok(None) };
        let archive = self.archive.get();
        let contents = archive.contents(py, &self.selected, part.clone())?;
        let names = self.selected.names(&archive.file, py, part);
        let (names, contents) = (PyList::new(py, names)?, PyList::new(py, contents)?);
        // `zip` uses the same tuple again if the caller has not kept it.
        py.import("builtins")?.getattr("zip")?.call1((names, contents)).map(Some)
    }
}

/// The contents of several files, one after another.
#[derive(Default)]
struct Contents {
    bytes: Vec<u8>,
    /// For each file, its index among the requested files, and where its contents end.
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

fn read_pattern(pattern: &str) -> PyResult<Pattern> {
    Pattern::new(pattern).map_err(|error| PyValueError::new_err(error.to_string()))
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
                // A game object has a method that returns its bytes.
                let hint = if content.hasattr("encode")? { "; call its `encode`" } else { "" };
                Err(PyTypeError::new_err(message + hint))
            }
        }
    };
    files.items()?.iter().map(read).collect()
}

/// Writes an archive next to its path and then renames it, so that no one sees a partial archive.
fn write(
    path: &Path,
    options: &BuildOptions,
    contents: &BTreeMap<Vec<u8>, Content>,
    old: Option<&ArchiveFile>,
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
