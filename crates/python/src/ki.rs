//! KI type lists and game objects: `worldwire.ki`.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use rayon::prelude::*;
use worldwire_core::json::{Json, Style, parse};
use worldwire_core::{Error, nearest};
use worldwire_dissect::catch_defect;
use worldwire_ki::object::{Header, JsonWriter, Object, ObjectCodec, ObjectOptions, ValueRef};
use worldwire_ki::schema::classes::{Class as KiClass, Classes, TypeLists};

use crate::error::{Class, Fault};
use crate::game_value::{of_json, of_value};
use crate::knowledge::{paths, read_file, warn};
use crate::object_rows::ObjectRows;
use crate::reading::shared_pool;
use crate::values::json_of;

/// The classes of one or more type lists; later lists override earlier ones.
#[pyclass(frozen, module = "worldwire.ki")]
pub(crate) struct TypeList {
    classes: Arc<Classes>,
}

#[pymethods]
impl TypeList {
    #[new]
    fn new(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut files = Vec::new();
        for path in paths(Some(path))? {
            files.push((path.to_string_lossy().into_owned(), read_file(py, &path)?));
        }
        let classes = py.detach(|| {
            let mut lists = TypeLists::new();
            files.iter().try_for_each(|(name, text)| lists.add(name, text))?;
            Ok::<_, Error>(lists.compile())
        });
        let classes = classes.map_err(|error| Fault::of(Class::Definitions, &error).raise(py))?;
        Ok(Self { classes: Arc::new(classes) })
    }

    fn __len__(&self) -> usize {
        self.classes.all().len()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.classes.find(name).is_some()
    }

    fn __repr__(&self) -> String {
        format!("<type list, {} classes>", self.classes.all().len())
    }

    /// The names of a class's properties, in the order in which objects contain them.
    fn properties(&self, name: &str) -> PyResult<Vec<String>> {
        match self.classes.find(name) {
            Some(class) => Ok(class.properties().iter().map(|it| it.name.to_string()).collect()),
            None => {
                let near = self.classes.nearest(name);
                let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                Err(PyKeyError::new_err(format!("no class `{name}`{hint}")))
            }
        }
    }

    /// Decodes an object as client files and archives store it. With `lenient`, values that do not
    /// match the type list are kept as bytes.
    #[pyo3(signature = (data, *, lenient = false))]
    fn decode(&self, py: Python<'_>, data: Cow<'_, [u8]>, lenient: bool) -> PyResult<GameObject> {
        let decoded = py.detach(|| self.decoded(&data, lenient));
        decoded.map_err(|fault| fault.raise(py))?.noted(py)
    }

    /// Decodes many objects, on all cores.
    #[pyo3(signature = (data, *, lenient = false))]
    fn decode_all(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        lenient: bool,
    ) -> PyResult<Vec<GameObject>> {
        let (pool, mut all) = (shared_pool()?, Vec::new());
        let mut rest = data.try_iter()?.peekable();
        while rest.peek().is_some() {
            // The objects are not decoded all at once, so that Ctrl-C works.
            py.check_signals()?;
            let part = rest.by_ref().take(OBJECTS_AT_ONCE);
            let part: Vec<Bound<'_, PyAny>> = part.collect::<PyResult<_>>()?;
            let part: Vec<Cow<'_, [u8]>> =
                part.iter().map(|data| data.extract()).collect::<PyResult<_>>()?;
            let decode = |data: &Cow<'_, [u8]>| self.decoded(data, lenient);
            let decoded: Result<Vec<Decoded>, Fault> = py
                .detach(|| pool.install(|| part.par_iter().with_min_len(32).map(decode).collect()));
            for decoded in decoded.map_err(|fault| fault.raise(py))? {
                all.push(decoded.noted(py)?);
            }
        }
        Ok(all)
    }
}

/// The number of objects decoded between checks for Python's signals.
const OBJECTS_AT_ONCE: usize = 1_024;

/// A decoded object and its oddities.
struct Decoded {
    object: GameObject,
    notes: Vec<String>,
}

impl Decoded {
    /// The object, once its oddities have been reported as warnings.
    fn noted(self, py: Python<'_>) -> PyResult<GameObject> {
        self.notes.iter().try_for_each(|note| warn(py, note))?;
        Ok(self.object)
    }
}

impl TypeList {
    pub(crate) fn classes(&self) -> &Classes {
        &self.classes
    }

    fn decoded(&self, data: &[u8], lenient: bool) -> Result<Decoded, Fault> {
        let (classes, mut object) = (Arc::clone(&self.classes), Object::new());
        let codec = ObjectCodec::new(&classes, file_options(lenient));
        let decoded = catch_defect(|| codec.decode_all(data, &mut object))
            .map_err(|defect| Fault::new(Class::Decode, defect.report("decode an object", data)))?;
        let decoded = decoded.map_err(|error| Fault::of(Class::Decode, &error))?;
        let notes = decoded.notes.iter().map(ToString::to_string).collect();
        let header = decoded.header;
        let (is_lenient, json) = (lenient, OnceLock::new());
        let object = Arc::new(object);
        let object = GameObject { object, header, is_lenient, classes, json };
        Ok(Decoded { object, notes })
    }
}

/// A decoded object. `object["m_stats.m_health"]` reads and sets values by path, and
/// `object["m_items[*].m_id"]` reads a list of values.
#[pyclass(module = "worldwire.ki")]
pub(crate) struct GameObject {
    /// Iterators share it. A change then applies to a copy.
    object: Arc<Object>,
    /// The outer format, in which the object is encoded again.
    header: Header,
    is_lenient: bool,
    classes: Arc<Classes>,
    /// The object's values as of the last change.
    json: OnceLock<Json>,
}

impl GameObject {
    fn json(&self) -> Result<&Json, Error> {
        if let Some(json) = self.json.get() {
            return Ok(json);
        }
        let text = self.object.to_json(&self.classes)?;
        let json = parse(&text).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(self.json.get_or_init(|| json))
    }

    fn value(&self, py: Python<'_>) -> PyResult<&Json> {
        self.json().map_err(|error| Fault::of(Class::Decode, &error).raise(py))
    }

    /// The names of the properties.
    fn names(&self) -> impl Iterator<Item = &str> {
        let root = self.object.root(&self.classes);
        let values = root.into_iter().flat_map(|root| root.children());
        values.filter_map(|value| value.slot().property().map(|property| &*property.name))
    }

    fn missing(&self, path: &str) -> String {
        let near = nearest(path, self.names());
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        format!("the object has no `{path}`{hint}")
    }

    /// Appends the values at a path with `[*]` to a list. Elements without a value there are left
    /// out. Returns false if what is before `[*]` is not a list.
    fn each(
        &self,
        list: &Bound<'_, PyList>,
        value: ValueRef<'_, '_>,
        path: &str,
    ) -> PyResult<bool> {
        let (before, after) = path.split_once(EACH).unwrap_or((path, ""));
        let Some(items) = value_at(value, before).filter(|items| items.is_list()) else {
            return Ok(false);
        };
        let after = after.strip_prefix('.').unwrap_or(after);
        let is_last = !after.contains(EACH);
        for item in items.children() {
            if is_last {
                self.push(list, item, after)?;
            } else {
                self.each(list, item, after)?;
            }
        }
        Ok(true)
    }

    /// Appends the value at a path without `[*]` to a list, if there is one.
    fn push(&self, list: &Bound<'_, PyList>, value: ValueRef<'_, '_>, path: &str) -> PyResult<()> {
        let py = list.py();
        if let Some(found) = value_at(value, path) {
            list.append(self.value_object(py, &found)?)?;
        } else if let Some(json) = find(&json_of_value(py, &value)?, path) {
            list.append(of_json(py, json)?)?;
        }
        Ok(())
    }

    fn value_object<'py>(
        &self,
        py: Python<'py>,
        value: &ValueRef<'_, '_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        of_value(py, value).map_err(|error| Fault::of(Class::Decode, &error).raise(py))
    }
}

#[pymethods]
impl GameObject {
    fn __getitem__<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        let root = self.object.root(&self.classes);
        if let Some(value) = root.and_then(|root| value_at(root, path)) {
            return self.value_object(py, &value);
        }
        if let Some(class) = root.and_then(|root| class_at(root, path)) {
            return Ok(PyString::new(py, &class.name).into_any());
        }
        if let (Some(root), true) = (root, path.contains(EACH)) {
            let list = PyList::empty(py);
            return match self.each(&list, root, path)? {
                true => Ok(list.into_any()),
                false => Err(PyKeyError::new_err(self.missing(path))),
            };
        }
        // The path leads to a part of a value such as a vector.
        match find(self.value(py)?, path) {
            Some(found) => of_json(py, found),
            None => Err(PyKeyError::new_err(self.missing(path))),
        }
    }

    fn __setitem__(
        &mut self,
        py: Python<'_>,
        path: &str,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let set = json_of(value)
            .and_then(|json| Arc::make_mut(&mut self.object).set(&self.classes, path, &json));
        self.json = OnceLock::new();
        set.map_err(|error| Fault::of(Class::Encode, &error).at_path(path).raise(py))
    }

    fn __delitem__(&mut self, py: Python<'_>, path: &str) -> PyResult<()> {
        let removed = Arc::make_mut(&mut self.object).remove(&self.classes, path);
        self.json = OnceLock::new();
        removed.map_err(|error| Fault::of(Class::Encode, &error).at_path(path).raise(py))
    }

    fn __contains__(&self, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(path) = path.extract::<Cow<'_, str>>() else { return Ok(false) };
        if path.is_empty() {
            return Ok(false);
        }
        let root = self.object.root(&self.classes);
        let is_value = |root| value_at(root, &path).is_some() || class_at(root, &path).is_some();
        Ok(root.is_some_and(is_value) || find(self.value(py)?, &path).is_some())
    }

    fn __len__(&self) -> usize {
        self.names().count()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys(py)?.try_iter()?.into_any())
    }

    /// The names of the properties.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.names().collect::<Vec<_>>())
    }

    /// The values at paths of each element of a list, as tuples.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        list: &str,
        columns: Vec<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (object, classes) = (Arc::clone(&self.object), Arc::clone(&self.classes));
        let missing = || PyKeyError::new_err(self.missing(list));
        ObjectRows::new(py, object, classes, list, columns)?.ok_or_else(missing)?.iterator(py)
    }

    /// All values as plain dictionaries and lists. `$class` is an object's class.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.object.root(&self.classes) {
            Some(root) => self.value_object(py, &root),
            None => Ok(py.None().into_bound(py)),
        }
    }

    /// The JSON that `worldwire ki op decode` writes.
    #[pyo3(name = "json")]
    fn json_text(&self, py: Python<'_>) -> PyResult<String> {
        let text = self.object.to_json(&self.classes);
        text.map_err(|error| Fault::of(Class::Decode, &error).raise(py))
    }

    /// The object's bytes, with the flags and compression that it was decoded with.
    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let codec = ObjectCodec::new(&self.classes, file_options(self.is_lenient));
        let encoded = catch_defect(|| codec.encode(&self.object, self.header));
        let encoded = encoded.map_err(|defect| {
            Fault::new(Class::Encode, defect.report("encode an object", &[])).raise(py)
        })?;
        let encoded = encoded.map_err(|error| Fault::of(Class::Encode, &error).raise(py))?;
        Ok(PyBytes::new(py, &encoded))
    }

    fn __repr__(&self) -> String {
        let class = self.object.root(&self.classes).and_then(|root| root.class());
        format!("<{}>", class.map_or("null", |class| &class.name))
    }
}

/// How client files and archives store objects.
pub(crate) fn file_options(lenient: bool) -> ObjectOptions {
    ObjectOptions { lenient, ..ObjectOptions::file() }
}

/// In a path: every element of a list.
const EACH: &str = "[*]";

/// The JSON of a value, for the parts of values such as vectors.
pub(crate) fn json_of_value(py: Python<'_>, value: &ValueRef<'_, '_>) -> PyResult<Json> {
    let mut writer = JsonWriter::new(Vec::new(), Style::default());
    let written = value.visit(&mut writer).and_then(|()| writer.finish());
    let text = written.map_err(|error| Fault::of(Class::Decode, &error).raise(py))?;
    // Values that are not elements of lists begin with their name, so they are not JSON.
    Ok(parse(&String::from_utf8_lossy(&text)).unwrap_or(Json::Null))
}

/// The value at a path of names and indices.
pub(crate) fn value_at<'a, 'c>(value: ValueRef<'a, 'c>, path: &str) -> Option<ValueRef<'a, 'c>> {
    if path.is_empty() {
        return Some(value);
    }
    if let Some(inside) = path.strip_prefix('[') {
        let (index, rest) = inside.split_once(']')?;
        let item = value.element(index.parse().ok()?)?;
        return value_at(item, rest.strip_prefix('.').unwrap_or(rest));
    }
    // Uses the shortest name that exists, as `find` does.
    let ends = path.match_indices(['.', '[']).map(|(end, _)| end).chain([path.len()]);
    ends.into_iter().find_map(|end| {
        let (name, rest) = path.split_at(end);
        let found = value.property(name)?;
        value_at(found, rest.strip_prefix('.').unwrap_or(rest))
    })
}

/// The class at a path that ends with `$class`.
pub(crate) fn class_at<'c>(root: ValueRef<'_, 'c>, path: &str) -> Option<&'c KiClass> {
    let of = path.strip_suffix("$class").filter(|of| of.is_empty() || of.ends_with(['.', ']']))?;
    value_at(root, of.strip_suffix('.').unwrap_or(of))?.class()
}

/// The value at a path of names and indices. Names can have dots.
pub(crate) fn find<'j>(json: &'j Json, path: &str) -> Option<&'j Json> {
    if path.is_empty() {
        return Some(json);
    }
    if let Some(inside) = path.strip_prefix('[') {
        let (index, rest) = inside.split_once(']')?;
        let item = json.as_array()?.get(index.parse::<usize>().ok()?)?;
        return find(item, rest.strip_prefix('.').unwrap_or(rest));
    }
    // Uses the shortest name that exists. Few names have dots, so this rarely tries twice.
    let ends = path.match_indices(['.', '[']).map(|(end, _)| end).chain([path.len()]);
    ends.into_iter().find_map(|end| {
        let (name, rest) = path.split_at(end);
        json.get(name).and_then(|found| find(found, rest.strip_prefix('.').unwrap_or(rest)))
    })
}
