//! Tables of values from many archived objects.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use worldwire_core::{Error, nearest};
use worldwire_dissect::catch_defect;
use worldwire_dissect::filter::ColumnCell;
use worldwire_ki::object::{ObjectCodec, PathValue, PathVisitor, ValuePaths};
use worldwire_ki::schema::classes::{Class as KiClass, Classes};

use crate::archive_file::{ArchiveFile, Failed, Sharing};
use crate::error::{Class, Fault};
use crate::ki::file_options;
use crate::knowledge::warn;
use crate::table::{Cells, ObjectFault, Table};

/// The column with the names of the files.
const FILE: &str = "$file";
/// The column that says why an object could not be decoded.
const ERROR: &str = "$error";

/// Objects are decoded in groups of this size, so that threads share them.
const OBJECTS_TOGETHER: usize = 128;
/// Fewer objects are decoded on one thread, because that is faster than waking others.
const MIN_SHARED_OBJECTS: usize = 512;
/// The number of objects decoded between checks for Python's signals.
const OBJECTS_AT_ONCE: usize = 16_384;
/// The maximum number of irregularities that a table keeps.
const MAX_NOTES: usize = 100_000;

/// Decodes the objects in some files of an archive, and returns a table of their values at paths,
/// with one row for each file. If an object cannot be decoded, it has no values, and its error is in
/// the column `$error` or, without that, in a Python warning. The table lists all errors and
/// irregularities.
pub(crate) fn object_table(
    py: Python<'_>,
    file: &ArchiveFile,
    indices: &[usize],
    columns: Vec<String>,
    classes: &Classes,
    lenient: bool,
) -> PyResult<Table> {
    let is_path = |name: &&String| !matches!(&***name, FILE | ERROR);
    let paths = ValuePaths::parse(columns.iter().filter(is_path).map(|name| &**name));
    let paths = paths.map_err(|error| Fault::of(Class::Filter, &error).raise(py))?;
    let mut rows = Rows::new(&columns, indices.len());
    let codec = ObjectCodec::new(classes, file_options(lenient));
    let sharing = Sharing { run: OBJECTS_TOGETHER, min_entries: MIN_SHARED_OBJECTS };
    for (part, indices) in indices.chunks(OBJECTS_AT_ONCE).enumerate() {
        py.check_signals()?;
        let take =
            |visitor: &mut PathVisitor<'_>, found: &mut Found, at, file: Result<&[u8], _>| {
                found.add(&codec, visitor, part * OBJECTS_AT_ONCE + at, file)
            };
        let visitor = || PathVisitor::new(&paths);
        let found = py.detach(|| file.read_each(indices, &sharing, visitor, take));
        let found: Vec<Found> = found.map_err(|failed| failed.raise(py, &file.path))?;
        py.detach(|| found.into_iter().for_each(|found| rows.add(found, paths.len())));
    }
    rows.report(py, file, indices, columns.iter().any(|name| name == ERROR))?;
    check_paths(&paths, &rows, classes)?;
    let faults = rows.faults(file, indices);
    let cells = py.detach(|| rows.cells(&columns, file, indices));
    let table = Table::of_columns(&columns, cells).map_err(|fault| fault.raise(py))?;
    Ok(table.with_errors(faults))
}

/// What one thread has found in a group of files.
#[derive(Default)]
struct Found {
    /// The rows of the objects that were decoded.
    rows: Vec<usize>,
    /// The values in these rows: one for each path, row by row.
    values: Vec<Option<PathValue>>,
    /// The rows of the objects that could not be decoded, and why.
    errors: Vec<(usize, ObjectFault)>,
    /// The rows of irregular objects, and their irregularities.
    notes: Vec<(usize, ObjectFault)>,
    /// The number of irregular objects.
    irregular: usize,
}

impl Found {
    /// Decodes the object in a file. Returns an error only if reading the archive fails.
    fn add(
        &mut self,
        codec: &ObjectCodec<'_>,
        visitor: &mut PathVisitor<'_>,
        row: usize,
        file: Result<&[u8], Failed>,
    ) -> Result<(), Failed> {
        let data = match file {
            Ok(data) => data,
            Err(Failed::Io(error)) => return Err(Failed::Io(error)),
            Err(Failed::Error(error)) => return self.refuse(row, &error),
            Err(Failed::Defect(report)) => return self.refuse(row, &Error::invalid(report)),
        };
        let decoded = catch_defect(|| codec.decode_all(data, visitor));
        let decoded = decoded
            .unwrap_or_else(|defect| Err(Error::invalid(defect.report("decode an object", data))));
        match decoded {
            Ok(decoded) => {
                self.rows.push(row);
                self.values.extend(visitor.take());
                self.irregular += usize::from(!decoded.notes.is_empty());
                self.notes.extend(decoded.notes.into_iter().map(|note| {
                    let (offset, text) = (Some(note.byte()), note.to_string());
                    (row, ObjectFault { path: note.path(), offset, text, is_decoded: true })
                }));
                Ok(())
            }
            Err(error) => self.refuse(row, &error),
        }
    }

    fn refuse(&mut self, row: usize, error: &Error) -> Result<(), Failed> {
        let (path, offset, text) = (error.path_text(), error.offset(), error.to_string());
        self.errors.push((row, ObjectFault { path, offset, text, is_decoded: false }));
        Ok(())
    }
}

/// The values of all objects.
struct Rows {
    count: usize,
    /// The values for each path.
    columns: Vec<Cells>,
    errors: Vec<(usize, ObjectFault)>,
    notes: Vec<(usize, ObjectFault)>,
    irregular: usize,
}

impl Rows {
    fn new(columns: &[String], count: usize) -> Self {
        let paths = columns.iter().filter(|name| !matches!(&***name, FILE | ERROR));
        let columns = paths.map(|path| match path.contains("[*]") {
            true => Cells::Lists(vec![None; count]),
            false => Cells::Single(vec![None; count]),
        });
        let (errors, notes) = (Vec::new(), Vec::new());
        Self { count, columns: columns.collect(), errors, notes, irregular: 0 }
    }

    fn add(&mut self, found: Found, paths: usize) {
        self.errors.extend(found.errors);
        self.irregular += found.irregular;
        // A type list from another revision makes every object irregular, in many places.
        let room = MAX_NOTES.saturating_sub(self.notes.len());
        self.notes.extend(found.notes.into_iter().take(room));
        let mut values = found.values.into_iter();
        for row in found.rows {
            for (column, value) in self.columns.iter_mut().zip(values.by_ref().take(paths)) {
                match (column, value) {
                    (_, None | Some(PathValue::Null)) => {}
                    (Cells::Single(cells), Some(value)) => {
                        if let Some(place) = cells.get_mut(row) {
                            *place = Some(cell(value)).filter(|it| *it != ColumnCell::Null);
                        }
                    }
                    (Cells::Lists(lists), Some(value)) => {
                        let PathValue::List(list) = value else { continue };
                        if let Some(place) = lists.get_mut(row) {
                            *place = Some(list.into_iter().map(cell).collect());
                        }
                    }
                }
            }
        }
    }

    /// Reports irregular objects to Python, and damaged ones unless a column has their errors.
    fn report(
        &mut self,
        py: Python<'_>,
        file: &ArchiveFile,
        indices: &[usize],
        has_errors: bool,
    ) -> PyResult<()> {
        // A thread reports its files in order, but not those of other threads.
        self.errors.sort_by_key(|(row, _)| *row);
        self.notes.sort_by_key(|(row, _)| *row);
        let name = |row: usize| file.name(indices.get(row).copied().unwrap_or(usize::MAX));
        if let (Some((row, error)), false) = (self.errors.first(), has_errors) {
            let (failed, count, name) = (self.errors.len(), self.count, name(*row));
            let hint = "the column `$error` lists all errors";
            let text = &error.text;
            warn(py, &format!("{failed} of {count} objects not decoded: {name}: {text}; {hint}"))?;
        }
        if let Some((row, note)) = self.notes.first() {
            let (irregular, count, name) = (self.irregular, self.count, name(*row));
            let (hint, text) = ("the table's `errors` lists all irregularities", &note.text);
            warn(
                py,
                &format!("{irregular} of {count} objects are irregular: {name}: {text}; {hint}"),
            )?;
        }
        Ok(())
    }

    /// What is wrong with the objects, in the order of the rows.
    fn faults(&self, file: &ArchiveFile, indices: &[usize]) -> Vec<(String, ObjectFault)> {
        let mut all: Vec<_> = self.errors.iter().chain(&self.notes).collect();
        all.sort_by_key(|(row, _)| *row);
        let name = |row: usize| file.name(indices.get(row).copied().unwrap_or(usize::MAX));
        all.into_iter().map(|(row, fault)| (name(*row).into_owned(), fault.clone())).collect()
    }

    /// The columns of the table.
    fn cells(self, columns: &[String], file: &ArchiveFile, indices: &[usize]) -> Vec<Cells> {
        let mut paths = self.columns.into_iter();
        let names = |index: &usize| Some(ColumnCell::Text(file.name(*index).into_owned()));
        let errors = || {
            let mut cells = vec![None; self.count];
            for (row, error) in &self.errors {
                if let Some(place) = cells.get_mut(*row) {
                    *place = Some(ColumnCell::Text(error.text.clone()));
                }
            }
            cells
        };
        let cells = columns.iter().map(|column| match &**column {
            FILE => Cells::Single(indices.iter().map(names).collect()),
            ERROR => Cells::Single(errors()),
            _ => paths.next().unwrap_or_else(|| Cells::Single(vec![None; self.count])),
        });
        cells.collect()
    }
}

/// Checks the names in paths that lead to nothing in any object: they are probably misspelt.
fn check_paths(paths: &ValuePaths, rows: &Rows, classes: &Classes) -> PyResult<()> {
    for (path, column) in rows.columns.iter().enumerate() {
        let is_empty = match column {
            Cells::Single(cells) => cells.iter().all(Option::is_none),
            Cells::Lists(lists) => lists.iter().flatten().all(Vec::is_empty),
        };
        if let Some(name) = paths.unknown_name(path, classes).filter(|_| is_empty) {
            return Err(no_property(name, classes));
        }
    }
    Ok(())
}

/// The error for a name that no class has.
pub(crate) fn no_property(name: &str, classes: &Classes) -> PyErr {
    let properties = classes.all().iter().flat_map(KiClass::properties);
    let near = nearest(name, properties.map(|property| &*property.name));
    let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    PyKeyError::new_err(format!("no class has a property `{name}`{hint}"))
}

fn cell(value: PathValue) -> ColumnCell {
    match value {
        PathValue::Null => ColumnCell::Null,
        PathValue::Bool(value) => ColumnCell::Bool(value),
        PathValue::Signed(value) => ColumnCell::Signed(value),
        PathValue::Unsigned(value) => ColumnCell::Unsigned(value),
        PathValue::Real(value) => ColumnCell::Real(value),
        // The bits of a value that cannot be decoded. The table's errors say why.
        PathValue::Json(text) if text.starts_with("{\"$bits\":") => ColumnCell::Null,
        PathValue::Text(text) | PathValue::Json(text) => ColumnCell::Text(text.into()),
        PathValue::Bytes(bytes) => ColumnCell::Bytes(bytes.into()),
        // A single value is never a list: only a column can consist of lists.
        PathValue::List(_) => ColumnCell::Null,
    }
}
