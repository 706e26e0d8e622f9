//! Errors as Python exceptions. The classes are Python code: `worldwire/_errors.py`.

use std::fmt;
use std::path::Path;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use worldwire_core::ErrorKind;
use worldwire_dissect::filter::FilterError;

/// The classes of exceptions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class {
    Capture,
    Decode,
    Definitions,
    Encode,
    Filter,
    Keys,
    Limit,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Self::Capture => "CaptureError",
            Self::Decode => "DecodeError",
            Self::Definitions => "DefinitionsError",
            Self::Encode => "EncodeError",
            Self::Filter => "FilterError",
            Self::Keys => "KeysError",
            Self::Limit => "LimitError",
        }
    }
}

/// An error that is not yet an exception. Only a thread that holds the interpreter lock can create
/// exceptions.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    class: Class,
    message: String,
    path: Option<String>,
    offset: Option<u64>,
    hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(class: Class, message: impl fmt::Display) -> Self {
        Self { class, message: message.to_string(), path: None, offset: None, hint: None }
    }

    /// A failure to decode or encode. Exceeded limits have their own class.
    pub(crate) fn of(class: Class, error: &worldwire_core::Error) -> Self {
        let class = match error.kind() {
            ErrorKind::Limit { .. } => Class::Limit,
            _ => class,
        };
        let path = Some(error.path_text()).filter(|path| !path.is_empty());
        let hint = error.advice().map(str::to_owned);
        Self { path, offset: error.offset(), hint, ..Self::new(class, error) }
    }

    pub(crate) fn at_path(self, path: &str) -> Self {
        Self { path: Some(path.to_owned()), ..self }
    }

    pub(crate) fn at_offset(self, offset: Option<u64>) -> Self {
        Self { offset, ..self }
    }

    pub(crate) fn hinting(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// The exception.
    pub(crate) fn raise(&self, py: Python<'_>) -> PyErr {
        let Self { class, message, path, offset, hint } = self;
        let made = py
            .import("worldwire._errors")
            .and_then(|module| module.getattr(class.name()))
            .and_then(|class| class.call1((message, path, offset, hint)));
        made.map_or_else(|error| error, PyErr::from_value)
    }
}

impl From<FilterError> for Fault {
    fn from(error: FilterError) -> Self {
        // The filter is one line, so its column is the most exact position.
        let offset = error.column().checked_sub(1).map(|column| column as u64);
        let hint = error.hint().map(str::to_owned);
        Self::new(Class::Filter, &error).at_offset(offset).hinting(hint)
    }
}

/// The exception for a file that cannot be read: `FileNotFoundError` and others, with the path.
pub(crate) fn of_file(path: &Path, error: &std::io::Error) -> PyErr {
    let path = path.to_string_lossy().into_owned();
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let reason = text.split(" (os error").next().unwrap_or_default().to_owned();
            // The constructor chooses the subclass by the number.
            PyOSError::new_err((number, reason, path))
        }
        None => std::io::Error::new(error.kind(), format!("{path}: {error}")).into(),
    }
}
