//! Keys and definitions, as `keys=` and `data=` name them.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use worldwire_capture::{CaptureReader, Record, SecretsKind};
use worldwire_core::{Diagnostic, Limits, Severity};
use worldwire_dissect::filter::{FieldPath, Filter, Resolver};
use worldwire_dissect::{Definitions, Keys, KiObjects, MxoObjects};
use worldwire_ki::schema::classes::TypeLists;

use crate::error::{Class, Fault, of_file};

/// What decoding and encoding need besides bytes.
pub(crate) struct Knowledge {
    pub(crate) keys: Keys,
    pub(crate) definitions: Definitions,
    /// Resolved paths, by message and path. They are kept because resolving collects the names of
    /// all fields.
    paths: Mutex<HashMap<(String, String), Arc<FieldPath>>>,
}

/// The maximum number of resolved paths that are kept.
const MAX_PATHS: usize = 1024;

impl Knowledge {
    pub(crate) fn new(keys: Keys, definitions: Definitions) -> Arc<Self> {
        Arc::new(Self { keys, definitions, paths: Mutex::default() })
    }

    /// Reads key files and definitions. Warnings become Python warnings.
    pub(crate) fn read(
        py: Python<'_>,
        keys: Option<&Bound<'_, PyAny>>,
        data: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Arc<Self>> {
        let keys = read_keys(py, keys)?;
        Ok(Self::new(keys, read_definitions(py, data)?))
    }

    /// The path to a field of a message, as a filter reads it.
    pub(crate) fn path(&self, message: &str, path: &str) -> Result<Arc<FieldPath>, Fault> {
        let key = (message.to_owned(), path.to_owned());
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = paths.get(&key) {
            return Ok(Arc::clone(path));
        }
        let of = match Filter::parse(message) {
            Ok(of) => of,
            // A name that is not a word in filters.
            Err(_) => Filter::parse("*")?,
        };
        let resolver = Resolver::new(&self.definitions);
        let path = Arc::new(FieldPath::parse(path, &of, &resolver)?);
        if paths.len() == MAX_PATHS {
            paths.clear();
        }
        paths.insert(key, Arc::clone(&path));
        Ok(path)
    }
}

/// The paths in an argument: one path, or a list or tuple of them.
pub(crate) fn paths(argument: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<PathBuf>> {
    let Some(argument) = argument else { return Ok(Vec::new()) };
    if argument.is_instance_of::<PyList>() || argument.is_instance_of::<PyTuple>() {
        return argument.try_iter()?.map(|path| path?.extract()).collect();
    }
    Ok(vec![argument.extract()?])
}

fn read_keys(py: Python<'_>, argument: Option<&Bound<'_, PyAny>>) -> PyResult<Keys> {
    let mut keys = Keys::none();
    for path in paths(argument)? {
        let failed = |error: &dyn std::fmt::Display| {
            let fault = Fault::new(Class::Keys, format!("{}: {error}", path.display()));
            fault.at_path(&path.to_string_lossy()).raise(py)
        };
        let bytes = read_file(py, &path)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            failed(&format!("at byte {}: not UTF-8 text", error.utf8_error().valid_up_to()))
        })?;
        keys.add(&text).map_err(|error| failed(&error))?;
    }
    Ok(keys)
}

/// The keys that a capture file contains. Recordings have further keys between their packets, so a
/// capture that begins with keys is read to its end. Problems are reported when it is read again.
pub(crate) fn keys_inside(path: &Path) -> Result<Keys, Fault> {
    let mut text = String::new();
    if let Ok(file) = fs::File::open(path)
        && let Ok(mut capture) = CaptureReader::new(file, &Limits::DEFAULT)
    {
        while let Ok(Some(record)) = capture.next() {
            match record {
                Record::Secrets { kind: SecretsKind::WORLDWIRE, data, .. } => {
                    text.push_str(&String::from_utf8_lossy(data));
                }
                Record::Packet(_) if text.is_empty() => break,
                _ => {}
            }
        }
    }
    let has_keys = text.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#'));
    if !has_keys {
        return Ok(Keys::none());
    }
    let failed = |error| Fault::new(Class::Keys, format!("keys in the capture: {error}"));
    Keys::parse(&text).map_err(failed)
}

fn read_definitions(py: Python<'_>, argument: Option<&Bound<'_, PyAny>>) -> PyResult<Definitions> {
    let mut definitions = Definitions::built_in();
    let (mut lists, mut tables) = (Vec::new(), Vec::new());
    for path in paths(argument)? {
        let is_folder = path.is_dir();
        let files = if is_folder { files(&path)? } else { vec![path.clone()] };
        let mut of_messages = Vec::new();
        let mut is_used = false;
        for file in files {
            let name = file.to_string_lossy().into_owned();
            let may_list = !is_folder || file.extension().is_some_and(|it| it == "json");
            // Directories may contain unrelated files of any size.
            if is_folder && !may_list && !definitions.may_be_in(&name) {
                continue;
            }
            let bytes = read_file(py, &file)?;
            if may_list && is_type_list(&bytes, is_folder) {
                is_used = true;
                lists.push((name, bytes));
            } else if MxoObjects::are_in(&bytes) {
                is_used = true;
                // Tables refer to each other, in any order.
                tables.push((name, bytes));
            } else if !is_folder || definitions.may_be_in(&name) {
                of_messages.push((name, bytes));
            }
        }
        let said = definitions.add(of_messages);
        if said.is_none() && !is_used {
            let fault = Fault::new(
                Class::Definitions,
                format!("{}: contains no definitions", path.display()),
            );
            let hint = "`data` takes message definitions, type lists, and folders of these";
            return Err(fault
                .at_path(&path.to_string_lossy())
                .hinting(Some(hint.into()))
                .raise(py));
        }
        report(py, &said.unwrap_or_default())?;
    }
    report(py, &definitions.add(tables).unwrap_or_default())?;
    if !lists.is_empty() {
        let mut reader = TypeLists::new();
        for (name, text) in &lists {
            let failed =
                |error: worldwire_core::Error| Fault::of(Class::Definitions, &error).raise(py);
            reader.add(name, text).map_err(failed)?;
        }
        let classes = Arc::new(reader.compile());
        definitions.edit(|objects: &mut KiObjects| objects.set_classes(classes));
    }
    Ok(definitions)
}

/// Raises the first error, and reports warnings to Python.
fn report(py: Python<'_>, said: &[Diagnostic]) -> PyResult<()> {
    for diagnostic in said {
        if diagnostic.severity() == Severity::Error {
            let fault = Fault::new(Class::Definitions, diagnostic).at_path(diagnostic.file());
            return Err(fault.hinting(diagnostic.help_text().map(str::to_owned)).raise(py));
        }
        warn(py, &diagnostic.to_string())?;
    }
    Ok(())
}

/// Reports a warning to Python.
pub(crate) fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    let class = py.import("worldwire._errors")?.getattr("WorldwireWarning")?;
    py.import("warnings")?.call_method1("warn", (text, class, 2))?;
    Ok(())
}

/// Whether a file looks like a type list, judging by its first bytes.
fn is_type_list(bytes: &[u8], is_of_folder: bool) -> bool {
    const LOOK: usize = 64 << 10;
    let head = bytes.get(..LOOK).unwrap_or(bytes);
    let has = |key: &[u8]| head.windows(key.len()).any(|window| window == key);
    has(b"\"hash\"") && if is_of_folder { has(b"\"bases\"") } else { has(b"\"properties\"") }
}

/// All files in a directory and its subdirectories, sorted. Links to directories are not followed.
fn files(folder: &Path) -> PyResult<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let failed = |error| of_file(&folder, &error);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            if entry.file_type().map_err(failed)?.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                files.push(path);
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Reads a whole file of bounded size.
pub(crate) fn read_file(py: Python<'_>, path: &Path) -> PyResult<Vec<u8>> {
    let most = Limits::DEFAULT.file_bytes;
    let read = py.detach(|| {
        let mut bytes = Vec::new();
        fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let bytes = read.map_err(|error| of_file(path, &error))?;
    if bytes.len() as u64 > most {
        let message = format!("{}: larger than {most} bytes (file bytes)", path.display());
        return Err(Fault::new(Class::Limit, message).at_path(&path.to_string_lossy()).raise(py));
    }
    Ok(bytes)
}
