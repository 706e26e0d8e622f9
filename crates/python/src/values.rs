//! Python values as JSON, to be encoded.

use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple,
};
use worldwire_core::json::{Json, Number, json};
use worldwire_core::value::push_hex;
use worldwire_core::{Error, Limits};

use crate::record::Record;

/// The JSON of a value: a whole number, float, string, `bytes`, `bool`, `None`, a list or tuple, a
/// mapping with strings as keys, or a record.
///
/// # Errors
/// Other types, whole numbers of more than 64 bits, values nested too deeply, and too many values.
/// The error contains the path to the value.
pub(crate) fn json_of(value: &Bound<'_, PyAny>) -> Result<Json, Error> {
    Values { count: 0 }.json(value, 0)
}

/// Counts values, because a list that contains itself, even indirectly, has no end.
struct Values {
    count: u64,
}

impl Values {
    fn json(&mut self, value: &Bound<'_, PyAny>, depth: u32) -> Result<Json, Error> {
        let limits = Limits::DEFAULT;
        self.count += 1;
        if depth > limits.depth {
            return Err(Error::limit("depth", limits.depth.into(), depth.into()));
        }
        if self.count > limits.nodes {
            return Err(Error::limit("nodes", limits.nodes, self.count));
        }
        if value.is_none() {
            return Ok(Json::Null);
        }
        // A boolean is also a whole number.
        if let Ok(value) = value.cast::<PyBool>() {
            return Ok(value.is_true().into());
        }
        if let Ok(text) = value.cast::<PyString>() {
            let text = text.to_cow();
            let text = text.map_err(|_| Error::value("valid Unicode", "a lone surrogate"))?;
            return Ok((&*text).into());
        }
        if value.is_instance_of::<PyInt>() {
            return whole(value);
        }
        if let Ok(value) = value.cast::<PyFloat>() {
            return Ok(float(value.value()));
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(hex(bytes.as_bytes()));
        }
        if let Ok(bytes) = value.cast::<PyByteArray>() {
            return Ok(hex(&bytes.to_vec()));
        }
        if let Ok(record) = value.cast::<Record>() {
            return record.get().json();
        }
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            return self.list(value, depth);
        }
        if value.is_instance_of::<PyDict>() || value.cast::<PyMapping>().is_ok() {
            return self.object(value, depth);
        }
        // Whole numbers of NumPy and other libraries.
        if let Ok(index) = value.call_method0("__index__") {
            return whole(&index);
        }
        let name = value.get_type().name();
        let found =
            name.map_or_else(|_| "a value of another type".to_owned(), |name| name.to_string());
        Err(Error::value("a number, text, bytes, list, mapping or None", found))
    }

    fn list(&mut self, value: &Bound<'_, PyAny>, depth: u32) -> Result<Json, Error> {
        let items = value.try_iter().map_err(failed)?;
        let items = items.enumerate().map(|(index, item)| {
            let json = self.json(&item.map_err(failed)?, depth + 1);
            json.map_err(|error| error.inside_item(index))
        });
        Ok(Json::Array(items.collect::<Result<_, _>>()?))
    }

    fn object(&mut self, value: &Bound<'_, PyAny>, depth: u32) -> Result<Json, Error> {
        let items = value.call_method0("items").and_then(|items| items.try_iter());
        let items = items.map_err(failed)?.map(|item| {
            let item = item.map_err(failed)?;
            let (name, value) =
                item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>().map_err(failed)?;
            let name = name
                .extract::<String>()
                .map_err(|_| Error::value("a string as the name of a field", name.to_string()))?;
            let json = self.json(&value, depth + 1).map_err(|error| error.inside(&name))?;
            Ok((name, json))
        });
        Ok(items.collect::<Result<Vec<_>, Error>>()?.into_iter().collect())
    }
}

/// An exception that Python code raised.
fn failed(error: PyErr) -> Error {
    Error::invalid(error.to_string())
}

fn whole(value: &Bound<'_, PyAny>) -> Result<Json, Error> {
    let signed = value.extract::<i64>().map(Json::from);
    let number = signed.or_else(|_| value.extract::<u64>().map(Json::from));
    number.map_err(|_| Error::value("a whole number of at most 64 bits", "a larger one"))
}

fn float(value: f64) -> Json {
    match Number::from_f64(value) {
        Some(number) => Json::Number(number),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

fn hex(bytes: &[u8]) -> Json {
    let mut digits = String::with_capacity(2 * bytes.len());
    push_hex(&mut digits, bytes);
    json!({ "$hex": digits })
}
