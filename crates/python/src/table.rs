//! Columns of values, for NumPy, pandas, polars and everything else that reads Arrow.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, ListArray, NullArray,
    RecordBatch, RecordBatchIterator, StringArray, TimestampNanosecondArray, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyByteArray, PyBytes, PyCapsule, PyDict, PyList, PyTuple};
use worldwire_core::json::hex;
use worldwire_core::{Tree, nearest};
use worldwire_dissect::Item;
use worldwire_dissect::filter::{Column, ColumnCell, Subject};

use crate::error::{Class, Fault};
use crate::knowledge::Knowledge;
use crate::missing::{Lack, Warnings};
use crate::reading::Harvest;

/// A row: for each column, a value if the message has one.
pub(crate) type Row = Box<[Option<ColumnCell>]>;

/// Turns messages into rows.
pub(crate) struct Columns {
    pub(crate) columns: Vec<Column>,
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) warnings: Arc<Warnings>,
}

impl Harvest for Columns {
    type Batch = Vec<Row>;

    fn keep(&self, item: &Item<'_>, name: &str, tree: &Tree<'_>, batch: &mut Vec<Row>) {
        let subject = Subject::of(item, name, tree);
        let row: Row = self.columns.iter().map(|column| column.cell(&subject)).collect();
        let definitions = &self.knowledge.definitions;
        self.warnings.note(Lack::of(item).as_ref(), item.family, name, definitions);
        // As in the program's tables, messages with none of the fields are left out.
        let mut fields =
            self.columns.iter().zip(&row).filter(|(column, _)| column.is_field()).peekable();
        if fields.peek().is_none() || fields.any(|(_, cell)| cell.is_some()) {
            batch.push(row);
        }
    }

    fn mistake(&self) -> Option<Fault> {
        let ambiguity = self.columns.iter().find_map(Column::ambiguity)?;
        Some(Fault::new(Class::Filter, format!("column: {ambiguity}")))
    }
}

/// The values of a column.
pub(crate) enum Cells {
    Single(Vec<Option<ColumnCell>>),
    /// A list in each row.
    Lists(Vec<Option<Vec<ColumnCell>>>),
}

/// Columns of values, one row for each message or object, for anything that reads Arrow's C streams.
#[pyclass(frozen, module = "worldwire")]
pub(crate) struct Table {
    batch: RecordBatch,
    /// What is wrong with objects, with the names of their files.
    errors: Vec<(String, ObjectFault)>,
}

/// Why an object could not be decoded, or a part of it that was kept although it is irregular.
#[derive(Clone, Debug)]
pub(crate) struct ObjectFault {
    pub(crate) path: String,
    pub(crate) offset: Option<u64>,
    pub(crate) text: String,
    pub(crate) is_decoded: bool,
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// What is wrong with the objects of an archive's table: those that could not be decoded, and
    /// irregularities of the others.
    #[getter]
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let class = py.import("worldwire._types")?.getattr("ObjectError")?;
        let errors = self.errors.iter().map(|(file, fault)| {
            let ObjectFault { path, offset, text, is_decoded } = fault;
            class.call1((file, path, offset, text, is_decoded))
        });
        PyList::new(py, errors.collect::<PyResult<Vec<_>>>()?)
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The values of a column. Times are nanoseconds since 1970.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        match self.batch.column_by_name(name) {
            Some(array) => list(py, array),
            None => {
                let names = self.column_names();
                let near = nearest(name, names.iter().map(|name| &**name));
                let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                Err(PyKeyError::new_err(format!("the table has no column `{name}`{hint}")))
            }
        }
    }

    /// The values of each row, as a tuple.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let columns = self.batch.columns().iter().map(|array| list(py, array));
        let columns = PyTuple::new(py, columns.collect::<PyResult<Vec<_>>>()?)?;
        py.import("builtins")?.getattr("zip")?.call1(columns)
    }

    /// A NumPy array for each column, by name. If a row lacks the value, columns of whole numbers
    /// and booleans become masked arrays. In other columns, its value is NaN, NaT or None.
    pub(crate) fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arrays = PyDict::new(py);
        for (field, array) in self.batch.schema_ref().fields().iter().zip(self.batch.columns()) {
            arrays.set_item(field.name(), numpy(py, array)?)?;
        }
        Ok(arrays)
    }

    /// Arrow's C stream interface. The schema cannot be changed.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = std::iter::once(Ok(self.batch.clone()));
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("<Table of {} rows: {}>", self.batch.num_rows(), self.column_names().join(", "))
    }
}

impl Table {
    /// The table of these rows.
    pub(crate) fn of(columns: &[String], rows: Vec<Row>) -> Result<Self, Fault> {
        let mut cells: Vec<Vec<Option<ColumnCell>>> =
            columns.iter().map(|_| Vec::with_capacity(rows.len())).collect();
        for row in rows {
            for (column, cell) in cells.iter_mut().zip(row) {
                column.push(cell.filter(|cell| *cell != ColumnCell::Null));
            }
        }
        Self::of_columns(columns, cells.into_iter().map(Cells::Single).collect())
    }

    /// The table of these columns, which have the same number of rows.
    pub(crate) fn of_columns(columns: &[String], cells: Vec<Cells>) -> Result<Self, Fault> {
        let arrays = cells.into_iter().map(|cells| match cells {
            Cells::Single(cells) => Ok(array(cells)),
            Cells::Lists(lists) => list_array(lists),
        });
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_, Fault>>()?;
        let fields = columns.iter().zip(&arrays);
        let fields = fields.map(|(name, array)| Field::new(name, array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema, arrays);
        let batch = batch.map_err(|error| Fault::new(Class::Capture, error))?;
        Ok(Self { batch, errors: Vec::new() })
    }

    pub(crate) fn with_errors(self, errors: Vec<(String, ObjectFault)>) -> Self {
        Self { errors, ..self }
    }
}

/// The kinds of values in a column.
#[derive(Default)]
struct Kinds {
    null_only: bool,
    bools: bool,
    whole: bool,
    /// Some exceed the range of a signed 64-bit number.
    large: bool,
    negative: bool,
    /// Whole numbers that a double cannot represent exactly.
    inexact: bool,
    real: bool,
    moments: bool,
    bytes: bool,
    texts: bool,
}

impl Kinds {
    fn of(cells: &[Option<ColumnCell>]) -> Self {
        const EXACT: u64 = 1 << 53;
        let mut kinds = Self { null_only: true, ..Self::default() };
        for cell in cells.iter().flatten() {
            kinds.null_only = false;
            match cell {
                ColumnCell::Null => {}
                ColumnCell::Bool(_) => kinds.bools = true,
                ColumnCell::Unsigned(value) => {
                    kinds.whole = true;
                    kinds.large |= i64::try_from(*value).is_err();
                    kinds.inexact |= *value > EXACT;
                }
                ColumnCell::Signed(value) => {
                    kinds.whole = true;
                    kinds.negative |= *value < 0;
                    kinds.inexact |= value.unsigned_abs() > EXACT;
                }
                ColumnCell::Real(_) => kinds.real = true,
                ColumnCell::Moment(_) => kinds.moments = true,
                ColumnCell::Bytes(_) => kinds.bytes = true,
                ColumnCell::Text(_) => kinds.texts = true,
            }
        }
        kinds
    }

    fn data_type(&self) -> DataType {
        let numbers = self.whole || self.real;
        match (self.bools, numbers, self.moments, self.bytes, self.texts) {
            _ if self.null_only => DataType::Null,
            (true, false, false, false, false) => DataType::Boolean,
            (false, true, false, false, false) if !self.real && !self.large => DataType::Int64,
            (false, true, false, false, false) if !self.real && !self.negative => DataType::UInt64,
            (false, true, false, false, false) if self.real && !self.inexact => DataType::Float64,
            (false, false, true, false, false) => {
                DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
            }
            (false, false, false, true, false) => DataType::Binary,
            // Values of different kinds have only their text in common.
            _ => DataType::Utf8,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "whole numbers among them are exact")]
fn array(cells: Vec<Option<ColumnCell>>) -> ArrayRef {
    let cells_count = cells.len();
    let cells = cells.into_iter();
    match Kinds::of(cells.as_slice()).data_type() {
        DataType::Null => Arc::new(NullArray::new(cells_count)),
        DataType::Boolean => Arc::new(BooleanArray::from_iter(cells.map(|cell| match cell {
            Some(ColumnCell::Bool(value)) => Some(value),
            _ => None,
        }))),
        DataType::Int64 => Arc::new(Int64Array::from_iter(cells.map(|cell| match cell {
            Some(ColumnCell::Unsigned(value)) => i64::try_from(value).ok(),
            Some(ColumnCell::Signed(value)) => Some(value),
            _ => None,
        }))),
        DataType::UInt64 => Arc::new(UInt64Array::from_iter(cells.map(|cell| match cell {
            Some(ColumnCell::Unsigned(value)) => Some(value),
            Some(ColumnCell::Signed(value)) => u64::try_from(value).ok(),
            _ => None,
        }))),
        DataType::Float64 => Arc::new(Float64Array::from_iter(cells.map(|cell| match cell {
            Some(ColumnCell::Real(value)) => Some(value),
            Some(ColumnCell::Unsigned(value)) => Some(value as f64),
            Some(ColumnCell::Signed(value)) => Some(value as f64),
            _ => None,
        }))),
        DataType::Timestamp(..) => {
            let moments = cells.map(|cell| match cell {
                Some(ColumnCell::Moment(time)) => Some(time.0),
                _ => None,
            });
            Arc::new(TimestampNanosecondArray::from_iter(moments).with_timezone("UTC"))
        }
        DataType::Binary => Arc::new(BinaryArray::from_iter(cells.map(|cell| match cell {
            Some(ColumnCell::Bytes(bytes)) => Some(bytes),
            _ => None,
        }))),
        _ => Arc::new(StringArray::from_iter(cells.map(|cell| cell.map(text)))),
    }
}

fn list_array(lists: Vec<Option<Vec<ColumnCell>>>) -> Result<ArrayRef, Fault> {
    let nulls: NullBuffer = lists.iter().map(Option::is_some).collect();
    let lengths = lists.iter().map(|list| list.as_ref().map_or(0, Vec::len));
    let items: usize = lengths.clone().sum();
    if i32::try_from(items).is_err() {
        let problem = format!("a column with {items} elements in lists; read fewer files at once");
        return Err(Fault::new(Class::Limit, problem));
    }
    let offsets = OffsetBuffer::from_lengths(lengths);
    let is_null = |cell: &ColumnCell| *cell == ColumnCell::Null;
    let cells = lists.into_iter().flatten().flatten();
    let values = array(cells.map(|cell| Some(cell).filter(|cell| !is_null(cell))).collect());
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let array = ListArray::try_new(item, offsets, values, Some(nulls));
    Ok(Arc::new(array.map_err(|error| Fault::new(Class::Capture, error))?))
}

/// The text of a value, as tables show it.
fn text(cell: ColumnCell) -> String {
    let mut text = String::new();
    match cell {
        ColumnCell::Null => {}
        ColumnCell::Bool(value) => text.push_str(if value { "true" } else { "false" }),
        ColumnCell::Unsigned(value) => text.push_str(&value.to_string()),
        ColumnCell::Signed(value) => text.push_str(&value.to_string()),
        ColumnCell::Real(value) => text.push_str(&value.to_string()),
        ColumnCell::Moment(time) => text.push_str(&time.to_string()),
        ColumnCell::Bytes(bytes) => hex(&bytes, &mut text),
        ColumnCell::Text(value) => text = value,
    }
    text
}

/// The NumPy array for an Arrow array.
fn numpy<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    let fixed = |bytes: Vec<u8>, dtype: &str| {
        // A bytearray, unlike bytes, can be written to.
        numpy.call_method1("frombuffer", (PyByteArray::new(py, &bytes), dtype))
    };
    let masked = |array: Bound<'py, PyAny>, nulls: &ArrayRef| {
        if nulls.null_count() == 0 {
            return Ok(array);
        }
        let mask: Vec<u8> = (0..nulls.len()).map(|row| u8::from(nulls.is_null(row))).collect();
        let mask = [("mask", fixed(mask, "bool")?)].into_py_dict(py)?;
        py.import("numpy.ma")?.call_method("array", (array,), Some(&mask))
    };
    let any = array.as_any();
    if let Some(values) = any.downcast_ref::<Int64Array>() {
        let bytes = values.values().iter().flat_map(|value| value.to_ne_bytes()).collect();
        return masked(fixed(bytes, "int64")?, array);
    }
    if let Some(values) = any.downcast_ref::<UInt64Array>() {
        let bytes = values.values().iter().flat_map(|value| value.to_ne_bytes()).collect();
        return masked(fixed(bytes, "uint64")?, array);
    }
    if let Some(values) = any.downcast_ref::<BooleanArray>() {
        let bytes = values.iter().map(|value| u8::from(value.unwrap_or_default())).collect();
        return masked(fixed(bytes, "bool")?, array);
    }
    if let Some(values) = any.downcast_ref::<Float64Array>() {
        let values = values.iter().map(|value| value.unwrap_or(f64::NAN));
        return fixed(values.flat_map(f64::to_ne_bytes).collect(), "float64");
    }
    if let Some(values) = any.downcast_ref::<TimestampNanosecondArray>() {
        // The minimum is NumPy's NaT.
        let values = values.iter().map(|value| value.unwrap_or(i64::MIN));
        return fixed(values.flat_map(i64::to_ne_bytes).collect(), "datetime64[ns]");
    }
    let objects = list(py, array)?;
    if any.is::<ListArray>() {
        // NumPy would treat lists in a list as another dimension.
        let lists = numpy.call_method1("empty", (objects.len(), "object"))?;
        objects.iter().enumerate().try_for_each(|(row, list)| lists.set_item(row, list))?;
        return Ok(lists);
    }
    numpy.call_method1("array", (objects, "object"))
}

/// The values of an Arrow array.
fn list<'py>(py: Python<'py>, array: &dyn Array) -> PyResult<Bound<'py, PyList>> {
    let any = array.as_any();
    if let Some(values) = any.downcast_ref::<Int64Array>() {
        return PyList::new(py, values.iter());
    }
    if let Some(values) = any.downcast_ref::<UInt64Array>() {
        return PyList::new(py, values.iter());
    }
    if let Some(values) = any.downcast_ref::<Float64Array>() {
        return PyList::new(py, values.iter());
    }
    if let Some(values) = any.downcast_ref::<BooleanArray>() {
        return PyList::new(py, values.iter());
    }
    if let Some(values) = any.downcast_ref::<StringArray>() {
        return PyList::new(py, values.iter());
    }
    if let Some(values) = any.downcast_ref::<BinaryArray>() {
        return PyList::new(py, values.iter().map(|value| value.map(|it| PyBytes::new(py, it))));
    }
    if let Some(values) = any.downcast_ref::<TimestampNanosecondArray>() {
        return PyList::new(py, values.iter());
    }
    if let Some(values) = any.downcast_ref::<ListArray>() {
        let lists = values.iter().map(|value| value.map(|value| list(py, &value)).transpose());
        return PyList::new(py, lists.collect::<PyResult<Vec<_>>>()?);
    }
    PyList::new(py, (0..array.len()).map(|_| py.None()))
}
