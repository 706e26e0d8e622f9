//! Values of KI game objects as Python objects.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use worldwire_core::json::{Json, Style, bytes, parse};
use worldwire_core::{Error, Result};
use worldwire_ki::object::{CoreId, JsonWriter, Leaf, Plain, Slot, ValueRef, Visitor};
use worldwire_ki::schema::classes::Class;

use crate::names::Name;

/// The Python object for a value: the same as [`of_json`] creates from its JSON.
///
/// # Errors
/// Two properties with the same name, which a dictionary cannot have.
pub(crate) fn of_value<'py>(
    py: Python<'py>,
    value: &ValueRef<'_, '_>,
) -> Result<Bound<'py, PyAny>> {
    if let Some(leaf) = value.leaf()
        && let Some(plain) = Plain::of(value.slot(), leaf)
    {
        return of_plain(py, plain);
    }
    let mut builder = Builder { py, open: Vec::new(), done: None };
    value.visit(&mut builder)?;
    builder.done.ok_or_else(|| Error::invalid("the object has no value"))
}

/// The Python object for JSON. Its depth has a limit.
pub(crate) fn of_json<'py>(py: Python<'py>, json: &Json) -> PyResult<Bound<'py, PyAny>> {
    Ok(match json {
        Json::Null => py.None().into_bound(py),
        Json::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => value.into_pyobject(py)?.into_any(),
            (_, Some(value)) => value.into_pyobject(py)?.into_any(),
            _ => number.as_f64().into_pyobject(py)?.into_any(),
        },
        Json::String(text) => PyString::new(py, text).into_any(),
        Json::Array(items) => {
            let list = PyList::empty(py);
            items.iter().try_for_each(|item| list.append(of_json(py, item)?))?;
            list.into_any()
        }
        Json::Object(object) => {
            if object.len() == 1
                && object.contains_key("$hex")
                && let Ok(bytes) = bytes(json)
            {
                return Ok(PyBytes::new(py, &bytes).into_any());
            }
            let dict = PyDict::new(py);
            for (name, value) in object.iter() {
                dict.set_item(name, of_json(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

/// Builds dictionaries and lists from the parts of an object.
struct Builder<'c, 'py> {
    py: Python<'py>,
    /// Incomplete containers, outermost first, each with its slot in the one around it.
    open: Vec<(Slot<'c>, Open<'py>)>,
    done: Option<Bound<'py, PyAny>>,
}

enum Open<'py> {
    Object(Bound<'py, PyDict>),
    List(Bound<'py, PyList>),
}

impl<'c, 'py> Builder<'c, 'py> {
    fn put(&mut self, slot: Slot<'c>, value: Bound<'py, PyAny>) -> Result<()> {
        let Some((_, open)) = self.open.last() else {
            self.done = Some(value);
            return Ok(());
        };
        let dict = match open {
            Open::List(list) => return list.append(value).map_err(failed),
            Open::Object(dict) => dict,
        };
        let before = dict.len();
        match slot {
            Slot::Property(property) => set(dict, &property.name, value)?,
            Slot::Unknown(hash) => set(dict, &format!("{hash:#010x}"), value)?,
            Slot::Rest => set(dict, "$rest", value)?,
            Slot::Root | Slot::Element(_) => {}
        }
        if dict.len() == before {
            return Err(Error::invalid("two properties have the same name"));
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        match self.open.pop() {
            Some((slot, Open::Object(dict))) => self.put(slot, dict.into_any()),
            Some((slot, Open::List(list))) => self.put(slot, list.into_any()),
            None => Ok(()),
        }
    }

    /// A value whose JSON form is not simply a number or a string.
    fn by_json(&mut self, slot: Slot<'c>, leaf: Leaf<'_>) -> Result<()> {
        let mut writer = JsonWriter::new(Vec::new(), Style::default());
        writer.value(slot, leaf)?;
        let text = writer.finish()?;
        let text = String::from_utf8(text).map_err(|error| Error::invalid(error.to_string()))?;
        // The writer begins with the name.
        let has_name = !matches!(slot, Slot::Root | Slot::Element(_));
        let text = if has_name { format!("{{{text}}}") } else { text };
        let json = parse(&text).map_err(|error| Error::invalid(error.to_string()))?;
        let value = match (has_name, &json) {
            (true, Json::Object(object)) => object.iter().next().map(|(_, value)| value),
            _ => Some(&json),
        };
        let value = of_json(self.py, value.unwrap_or(&Json::Null)).map_err(failed)?;
        self.put(slot, value)
    }
}

impl<'c> Visitor<'c> for Builder<'c, '_> {
    fn begin_object(&mut self, slot: Slot<'c>, class: &'c Class, id: CoreId) -> Result<()> {
        let dict = PyDict::new(self.py);
        set(&dict, "$class", text(self.py, &class.name))?;
        if id != CoreId::default() {
            for (name, number) in
                [("$block", id.block.into()), ("$type", id.kind.into()), ("$template", id.template)]
            {
                set(&dict, name, number.into_pyobject(self.py).map_err(failed)?.into_any())?;
            }
        }
        self.open.push((slot, Open::Object(dict)));
        Ok(())
    }

    fn end_object(&mut self) -> Result<()> {
        self.close()
    }

    fn begin_list(&mut self, slot: Slot<'c>) -> Result<()> {
        self.open.push((slot, Open::List(PyList::empty(self.py))));
        Ok(())
    }

    fn end_list(&mut self) -> Result<()> {
        self.close()
    }

    fn value(&mut self, slot: Slot<'c>, leaf: Leaf<'_>) -> Result<()> {
        match Plain::of(slot, leaf) {
            Some(plain) => self.put(slot, of_plain(self.py, plain)?),
            None => self.by_json(slot, leaf),
        }
    }
}

/// The Python object for a number, a string or bytes.
fn of_plain<'py>(py: Python<'py>, plain: Plain<'_>) -> Result<Bound<'py, PyAny>> {
    Ok(match plain {
        Plain::Null => py.None().into_bound(py),
        Plain::Bool(value) => value.into_pyobject(py).map_err(failed)?.to_owned().into_any(),
        Plain::Signed(value) => value.into_pyobject(py).map_err(failed)?.into_any(),
        Plain::Unsigned(value) => value.into_pyobject(py).map_err(failed)?.into_any(),
        Plain::Real(value) => value.into_pyobject(py).map_err(failed)?.into_any(),
        Plain::Name(name) => text(py, name),
        Plain::Text(text) => PyString::new(py, &text).into_any(),
        Plain::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
    })
}

/// Sets an item of a dictionary. Names are cached: see [`Name`].
fn set(dict: &Bound<'_, PyDict>, name: &str, value: Bound<'_, PyAny>) -> Result<()> {
    match Name::of(name) {
        Some(kept) => dict.set_item(kept.object(dict.py()), value),
        None => dict.set_item(name, value),
    }
    .map_err(failed)
}

/// The Python string of a name.
fn text<'py>(py: Python<'py>, name: &str) -> Bound<'py, PyAny> {
    match Name::of(name) {
        Some(kept) => kept.object(py).clone().into_any(),
        None => PyString::new(py, name).into_any(),
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::invalid(error.to_string())
}
