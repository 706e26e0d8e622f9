//! Named values as a Python mapping.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use worldwire_core::json::{Json, Style, parse};
use worldwire_core::{Error, nearest};

use crate::stored::{Stored, name_object, object, plain_object};

/// Decoded, named values. Each becomes a Python object when it is read.
///
/// `record["name"]`, `record.name`, `record["ages[3].filename"]`.
#[pyclass(frozen, mapping, module = "worldwire")]
pub(crate) struct Record {
    stored: Arc<Stored>,
    node: u32,
}

impl Record {
    pub(crate) fn new(stored: Arc<Stored>, node: u32) -> Self {
        Self { stored, node }
    }

    /// Its value as JSON.
    ///
    /// # Errors
    /// If a name occurs twice, which JSON cannot represent.
    pub(crate) fn json(&self) -> Result<Json, Error> {
        let mut text = String::new();
        self.stored.push_json(self.node, Style::default(), &mut text);
        parse(&text).map_err(|error| Error::invalid(error.to_string()))
    }

    fn find(&self, name: &str) -> Option<u32> {
        let child = self.stored.child(self.node, name);
        child.or_else(|| self.stored.find(self.node, name).filter(|_| !name.is_empty()))
    }

    /// The error for an unknown name.
    fn missing(&self, name: &str) -> String {
        // Python itself looks for attributes that begin with an underscore.
        let is_own = name.starts_with('_');
        let found = if is_own { Vec::new() } else { places(&self.stored, self.node, name) };
        if !found.is_empty() {
            let full = listed(&self.stored, self.node, &found);
            return format!("no field `{name}` here; write the full path: {full}");
        }
        let names: Vec<&str> = self.names().collect();
        match nearest(name, names.iter().copied()) {
            Some(near) => format!("no field `{name}`; did you mean `{near}`?"),
            None if names.is_empty() => format!("no field `{name}`: the record has no fields"),
            None => format!("no field `{name}`; the fields are {}", names.join(", ")),
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.stored.children(self.node).map(|child| self.stored.name(child))
    }
}

/// The maximum number of places that an error lists.
const MAX_LISTED: usize = 4;

/// The places that a path below a node can mean, at most one more than errors list.
pub(crate) fn places(stored: &Stored, top: u32, path: &str) -> Vec<u32> {
    stored.find_all(top, path, MAX_LISTED + 1)
}

/// The paths of places, for errors.
pub(crate) fn listed(stored: &Stored, top: u32, places: &[u32]) -> String {
    let paths = places.iter().take(MAX_LISTED);
    let mut text: Vec<_> = paths.map(|node| format!("`{}`", stored.path_to(top, *node))).collect();
    if places.len() > MAX_LISTED {
        text.push("and others".to_owned());
    }
    match text.pop() {
        Some(last) if text.is_empty() => last,
        Some(last) if last == "and others" => format!("{} {last}", text.join(", ")),
        Some(last) => format!("{} or {last}", text.join(", ")),
        None => String::new(),
    }
}

/// The error text for an attempt to set a field.
fn read_only(name: &str) -> String {
    format!(
        "`{name}` cannot be set: fields are read-only. Pass new values to the `encode` of the \
         message or its codec, or change the copy that `to_dict` returns"
    )
}

#[pymethods]
impl Record {
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.find(name) {
            Some(node) => object(py, &self.stored, node),
            None => Err(PyKeyError::new_err(self.missing(name))),
        }
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.stored.child(self.node, name) {
            Some(node) => object(py, &self.stored, node),
            None => Err(PyAttributeError::new_err(self.missing(name))),
        }
    }

    fn __setitem__(&self, name: &str, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err(read_only(name)))
    }

    fn __delitem__(&self, name: &str) -> PyResult<()> {
        Err(PyTypeError::new_err(read_only(name)))
    }

    fn __setattr__(&self, name: &str, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyAttributeError::new_err(read_only(name)))
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        name.extract::<Cow<'_, str>>().is_ok_and(|name| self.find(&name).is_some())
    }

    fn __len__(&self) -> usize {
        self.stored.children(self.node).count()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys(py)?.try_iter()?.into_any())
    }

    fn __dir__(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        let of_class = slf.get_type().dir()?.extract::<Vec<String>>()?;
        Ok(of_class.into_iter().chain(slf.get().names().map(str::to_owned)).collect())
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let other = match other.cast::<Self>() {
            Ok(other) => other.get().to_dict(py)?,
            Err(_) => other.clone(),
        };
        self.to_dict(py)?.eq(other)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        /// Longer text is truncated.
        const MAX: usize = 1000;
        let text = self.to_dict(py)?.repr()?.to_string();
        Ok(match text.char_indices().nth(MAX) {
            Some((end, _)) => format!("Record({}...)", text.get(..end).unwrap_or_default()),
            None => format!("Record({text})"),
        })
    }

    /// The field names.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let names: Vec<_> =
            self.stored.children(self.node).map(|it| name_object(py, &self.stored, it)).collect();
        PyList::new(py, names)
    }

    /// The field values.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let values = self.stored.children(self.node).map(|child| object(py, &self.stored, child));
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }

    /// The field names and values.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let items = self.stored.children(self.node).map(|child| {
            let name = name_object(py, &self.stored, child).into_any();
            PyTuple::new(py, [name, object(py, &self.stored, child)?])
        });
        PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)
    }

    /// The value of a field or path, or `default` if there is none.
    #[pyo3(signature = (name, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.find(name) {
            Some(node) => object(py, &self.stored, node),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// All values as plain dictionaries and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain_object(py, &self.stored, self.node)
    }
}
