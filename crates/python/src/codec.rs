//! Single messages and files, by the name of their codec.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use worldwire_core::{Limits, Side};
use worldwire_dissect::{Codec, CodecOptions, Shape, catch_defect};

use crate::error::{Class, Fault};
use crate::knowledge::Knowledge;
use crate::stored::{Stored, object};
use crate::values::json_of;

/// Keys and definitions for decoding and encoding, read once.
#[pyclass(frozen, module = "worldwire")]
pub(crate) struct Context {
    knowledge: Arc<Knowledge>,
}

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (*, keys = None, data = None))]
    fn new(
        py: Python<'_>,
        keys: Option<&Bound<'_, PyAny>>,
        data: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self { knowledge: Knowledge::read(py, keys, data)? })
    }

    /// Decodes all of the bytes.
    #[pyo3(signature = (codec, data, *, side = "client"))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        codec: &str,
        data: Cow<'_, [u8]>,
        side: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (codec, from) = (codec_of(py, codec)?, side_of(side)?);
        let Knowledge { keys, definitions, .. } = &*self.knowledge;
        let decoded = py.detach(|| {
            catch_defect(|| {
                let limits = Limits::DEFAULT;
                let options = CodecOptions { from, keys, definitions, limits: &limits };
                let tree = codec.decode(&data, &options);
                let top = match codec.shape {
                    Shape::Fields => None,
                    Shape::Value => tree.roots().next(),
                };
                let error = tree.error().cloned();
                let mut stored = Stored::default();
                let start = stored.keep(&data).start;
                let top = stored.add(&tree, top, &data, start);
                let error = error.or_else(|| stored.take_error());
                (stored, top, error)
            })
        });
        let (stored, top, error) = decoded.map_err(|defect| {
            let report = defect.report(&format!("decode {}", codec.name), &data);
            Fault::new(Class::Decode, report).raise(py)
        })?;
        let error = error.map(|error| Fault::of(Class::Decode, &error));
        let value = object(py, &Arc::new(stored), top)?;
        match error {
            None => Ok(value),
            Some(fault) => {
                let raised = fault.raise(py);
                // The values decoded before the error.
                raised.value(py).setattr("partial", value)?;
                Err(raised)
            }
        }
    }

    /// Encodes a value that `decode` returned, or a similar one.
    #[pyo3(signature = (codec, value, *, side = "client"))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        codec: &str,
        value: &Bound<'py, PyAny>,
        side: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (codec, from) = (codec_of(py, codec)?, side_of(side)?);
        let failed = |error: &worldwire_core::Error| Fault::of(Class::Encode, error).raise(py);
        let json = json_of(value).map_err(|error| failed(&error.about(codec.name)))?;
        let Knowledge { keys, definitions, .. } = &*self.knowledge;
        let encoded = py.detach(|| {
            catch_defect(|| {
                let limits = Limits::DEFAULT;
                codec.encode(json, &CodecOptions { from, keys, definitions, limits: &limits })
            })
        });
        let encoded = encoded.map_err(|defect| {
            let report = defect.report(&format!("encode {}", codec.name), &[]);
            Fault::new(Class::Encode, report).raise(py)
        })?;
        Ok(PyBytes::new(py, &encoded.map_err(|error| failed(&error))?))
    }
}

/// The names of all codecs, each with a one-line description.
#[pyfunction]
pub(crate) fn codecs(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    PyList::new(py, Codec::all().map(|codec| (codec.name, codec.about)))
}

fn codec_of(py: Python<'_>, name: &str) -> PyResult<&'static Codec> {
    let error = match Codec::named(name) {
        Ok(codec) => return Ok(codec),
        Err(error) => error,
    };
    // Python has no `worldwire codecs`.
    let hint = error.advice().filter(|advice| !advice.contains("worldwire codecs"));
    let hint = hint.unwrap_or("`worldwire.codecs()` lists them").to_owned();
    let message = format!("unknown codec \"{name}\"; {hint}");
    Err(Fault::new(Class::Decode, message).hinting(Some(hint)).raise(py))
}

pub(crate) fn side_of(side: &str) -> PyResult<Side> {
    match side {
        "client" => Ok(Side::Client),
        "server" => Ok(Side::Server),
        other => Err(PyValueError::new_err(format!(
            "side must be \"client\" or \"server\", not {other:?}"
        ))),
    }
}
