//! Values from each element of a list in a game object.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use worldwire_ki::object::{Object, Slot, ValuePaths, ValueRef};
use worldwire_ki::schema::classes::Classes;

use crate::error::{Class, Fault};
use crate::game_value::{of_json, of_value};
use crate::ki::{class_at, find, json_of_value, value_at};
use crate::object_table::no_property;

/// How many rows are created at once. The interpreter then calls this module once for all of them, and
/// the memory of their values stays in the processor's cache.
const ROWS_AT_ONCE: usize = 512;
/// Stands for no property.
const NONE: u32 = u32::MAX;

/// The rows that an iterator passes, in parts, each an iterator of tuples.
#[pyclass(module = "worldwire.ki")]
pub(crate) struct ObjectRows {
    object: Arc<Object>,
    classes: Arc<Classes>,
    /// The path of the list.
    list: String,
    columns: Vec<String>,
    /// Where the next part begins.
    position: usize,
}

impl ObjectRows {
    /// The rows of a list, with the values at these paths of each element. `None` if no list is at
    /// the path. A `KeyError` if no class has a property of a column.
    pub(crate) fn new(
        py: Python<'_>,
        object: Arc<Object>,
        classes: Arc<Classes>,
        list: &str,
        columns: Vec<String>,
    ) -> PyResult<Option<Self>> {
        let Some(items) = items(&object, &classes, list) else { return Ok(None) };
        if let Some(first) = items.children().next() {
            check(py, &columns, first, &classes)?;
        }
        Ok(Some(Self { object, classes, list: list.to_owned(), columns, position: 0 }))
    }

    /// An iterator of all rows.
    pub(crate) fn iterator(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        py.import("itertools")?.getattr("chain")?.call_method1("from_iterable", (self,))
    }
}

#[pymethods]
impl ObjectRows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(items) = items(&self.object, &self.classes, &self.list) else { return Ok(None) };
        let mut part = items.children_from(self.position);
        let mut values: Vec<Vec<Bound<'py, PyAny>>> =
            self.columns.iter().map(|_| Vec::with_capacity(ROWS_AT_ONCE)).collect();
        let mut wanted = Wanted::new(&self.columns);
        let mut count = 0;
        while count < ROWS_AT_ONCE
            && let Some(item) = part.next()
        {
            wanted.add(py, item, &mut values)?;
            count += 1;
        }
        self.position = part.position();
        if count == 0 {
            return Ok(None);
        }
        let lists = values.into_iter().map(|values| PyList::new(py, values));
        let lists = PyTuple::new(py, lists.collect::<PyResult<Vec<_>>>()?)?;
        // `zip` uses the same tuple again if the caller has not kept it.
        py.import("builtins")?.getattr("zip")?.call1(lists).map(Some)
    }
}

/// The columns, with their properties in the class of the last element: most lists contain elements
/// of one class.
struct Wanted<'p> {
    columns: &'p [String],
    class: Option<u32>,
    /// The index of each column's property; [`NONE`] for paths to something else.
    properties: Vec<u32>,
}

impl<'p> Wanted<'p> {
    fn new(columns: &'p [String]) -> Self {
        Self { columns, class: None, properties: vec![NONE; columns.len()] }
    }

    /// Adds an element's value to each column; None if it has none.
    fn add<'py>(
        &mut self,
        py: Python<'py>,
        item: ValueRef<'_, '_>,
        values: &mut [Vec<Bound<'py, PyAny>>],
    ) -> PyResult<()> {
        if let Some(class) = item.class().filter(|class| Some(class.index()) != self.class) {
            self.class = Some(class.index());
            let index = |name: &String| class.property(name).map_or(NONE, |it| it.index());
            self.properties = self.columns.iter().map(index).collect();
        }
        let row = values.first().map_or(0, Vec::len);
        if item.class().is_some() {
            for child in item.children() {
                let Slot::Property(property) = child.slot() else { continue };
                for (column, wanted) in values.iter_mut().zip(&self.properties) {
                    // Lenient decoding keeps repeated properties; the first one counts.
                    if *wanted == property.index() && column.len() == row {
                        column.push(value_object(py, &child)?);
                    }
                }
            }
        }
        for (column, path) in values.iter_mut().zip(self.columns) {
            if column.len() == row {
                let found = at_path(py, item, path)?;
                column.push(found.unwrap_or_else(|| py.None().into_bound(py)));
            }
        }
        Ok(())
    }
}

/// The value at a path of an element.
fn at_path<'py>(
    py: Python<'py>,
    item: ValueRef<'_, '_>,
    path: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(value) = value_at(item, path) {
        return value_object(py, &value).map(Some);
    }
    if let Some(class) = class_at(item, path) {
        return Ok(Some(PyString::new(py, &class.name).into_any()));
    }
    // A part of a value such as a vector, or what lenient decoding keeps. Other names are those of
    // properties that the element lacks.
    if path.contains(['.', '[', '$']) || path.starts_with("0x") {
        return find(&json_of_value(py, &item)?, path).map(|json| of_json(py, json)).transpose();
    }
    Ok(None)
}

fn value_object<'py>(py: Python<'py>, value: &ValueRef<'_, '_>) -> PyResult<Bound<'py, PyAny>> {
    of_value(py, value).map_err(|error| Fault::of(Class::Decode, &error).raise(py))
}

/// The list at a path.
fn items<'a, 'c>(object: &'a Object, classes: &'c Classes, list: &str) -> Option<ValueRef<'a, 'c>> {
    let items = object.root(classes).and_then(|root| value_at(root, list));
    items.filter(ValueRef::is_list)
}

/// Checks the names in columns of which the first element has no value: they are probably misspelt.
fn check(
    py: Python<'_>,
    columns: &[String],
    first: ValueRef<'_, '_>,
    classes: &Classes,
) -> PyResult<()> {
    for column in columns.iter().filter(|column| value_at(first, column).is_none()) {
        let paths = ValuePaths::parse([&**column]);
        let paths = paths.map_err(|error| Fault::of(Class::Filter, &error).raise(py))?;
        if let Some(name) = paths.unknown_name(0, classes) {
            return Err(no_property(name, classes));
        }
    }
    Ok(())
}
