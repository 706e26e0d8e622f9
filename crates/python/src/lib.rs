//! The native part of the Python package `worldwire`.
//!
//! `python/worldwire` has the rest: exceptions, type stubs, and the functions that users call.
//! Captures are read on separate threads, which decode every selected message into a compact form
//! that owns its data (`stored`). Python objects for fields are created only when the fields are
//! read.
//!
//! | module | what it is |
//! | --- | --- |
//! | `capture`, `reading`, `source` | captures: the iterator, the reading threads, and their sources |
//! | `message`, `record`, `stored`, `names` | messages, fields, and the values behind them |
//! | `table` | columns of values, for NumPy and Arrow |
//! | `codec`, `values` | single messages and files; Python values to be encoded |
//! | `ki` | type lists and game objects of KI |
//! | `knowledge` | keys and definitions |
//! | `error` | errors as exceptions |

mod capture;
mod codec;
mod error;
mod ki;
mod knowledge;
mod message;
mod names;
mod reading;
mod record;
mod source;
mod stored;
mod table;
mod values;

/// The native part of `worldwire`.
#[pyo3::pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use super::capture::{Capture, open};
    #[pymodule_export]
    use super::codec::{Context, codecs};
    #[pymodule_export]
    use super::ki::{GameObject, TypeList};
    #[pymodule_export]
    use super::message::Message;
    #[pymodule_export]
    use super::record::Record;
    #[pymodule_export]
    use super::table::Table;
    use pyo3::prelude::*;
    use pyo3::types::PyMapping;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        worldwire_dissect::quiet_defects();
        PyMapping::register::<Record>(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
