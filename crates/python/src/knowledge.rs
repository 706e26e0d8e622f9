//! What decoding needs besides bytes: the keys and definitions that `keys=` and `data=` name.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use worldwire_capture::{CaptureReader, Record, SecretsKind};
use worldwire_core::Limits;
use worldwire_dissect::filter::{FieldPath, Filter, Resolver};
use worldwire_dissect::{Definitions, Keys};

use crate::definitions::read_definitions;
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
    parts(argument)?.iter().map(|path| path.extract()).collect()
}

/// The parts of an argument: itself, or the items of a list or tuple.
fn parts<'py>(argument: Option<&Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let Some(argument) = argument else { return Ok(Vec::new()) };
    if argument.is_instance_of::<PyList>() || argument.is_instance_of::<PyTuple>() {
        return argument.try_iter()?.collect();
    }
    Ok(vec![argument.clone()])
}

/// Reads key files, and keys that are objects of `worldwire.keys`.
pub(crate) fn read_keys(py: Python<'_>, argument: Option<&Bound<'_, PyAny>>) -> PyResult<Keys> {
    let mut keys = Keys::none();
    for part in parts(argument)? {
        if part.hasattr("to_toml")? {
            let text: String = part.call_method0("to_toml")?.extract()?;
            let added = if text.is_empty() { Ok(()) } else { keys.add(&text) };
            added.map_err(|error| Fault::new(Class::Keys, error).raise(py))?;
            continue;
        }
        let path: PathBuf = part.extract()?;
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

/// The keys in a capture file. Recordings contain further keys between their packets, so a capture
/// that begins with keys is read to its end. Problems are reported when it is read again.
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

/// The classes of warnings.
#[derive(Clone, Copy)]
pub(crate) enum WarningClass {
    /// Definitions are missing.
    Definitions,
    Other,
}

/// Reports a warning to Python.
pub(crate) fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    warn_as(py, WarningClass::Other, text)
}

/// Reports a warning of this class to Python.
pub(crate) fn warn_as(py: Python<'_>, class: WarningClass, text: &str) -> PyResult<()> {
    let errors = py.import("worldwire._errors")?;
    let class = errors.getattr(match class {
        WarningClass::Definitions => "DefinitionsWarning",
        WarningClass::Other => "WorldwireWarning",
    })?;
    errors.call_method1("warn", (text, class))?;
    Ok(())
}

/// Reads a whole file of bounded size.
pub(crate) fn read_file(py: Python<'_>, path: &Path) -> PyResult<Vec<u8>> {
    let most = Limits::DEFAULT.file_bytes;
    let read = py.detach(|| {
        let file = fs::File::open(path)?;
        // One byte more than the file has, so that its end is seen without another allocation.
        let size = file.metadata()?.len().min(most) + 1;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        file.take(most + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let bytes = read.map_err(|error| of_file(path, &error))?;
    if bytes.len() as u64 > most {
        let message = format!("{}: larger than {most} bytes (file bytes)", path.display());
        return Err(Fault::new(Class::Limit, message).at_path(&path.to_string_lossy()).raise(py));
    }
    Ok(bytes)
}
