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
//! | `ki`, `archive` | type lists, game objects and archives of KI |
//! | `machine` | connections without I/O |
//! | `knowledge`, `catalog` | keys and definitions; definitions as objects |
//! | `error` | errors as exceptions |

mod archive;
mod capture;
mod catalog;
mod codec;
mod error;
mod ki;
mod knowledge;
mod machine;
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
    use super::archive::Archive;
    #[pymodule_export]
    use super::capture::{Capture, open};
    #[pymodule_export]
    use super::catalog::{StateCatalog, TeraCatalog};
    #[pymodule_export]
    use super::codec::{Context, codecs};
    #[pymodule_export]
    use super::ki::{GameObject, TypeList};
    #[pymodule_export]
    use super::machine::{Machine, uru_login};
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
        PyMapping::register::<Archive>(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
