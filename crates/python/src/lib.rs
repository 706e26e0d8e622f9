//! The native part of the Python package `worldwire`.
//!
//! `python/worldwire` contains the rest: exceptions, type stubs, and the functions that users call.
//! Captures are read on separate threads, which decode every selected message into a compact form
//! that owns its data (`stored`). Python objects for fields are created only when the fields are
//! read.
//!
//! | module | what it is |
//! | --- | --- |
//! | `capture`, `reading`, `source` | captures: the iterator, the reading threads, and their sources |
//! | `message`, `record`, `stored`, `names` | messages, fields, and the values behind them |
//! | `missing` | warnings about missing definitions |
//! | `table` | columns of values, for NumPy and Arrow |
//! | `totals` | statistics of captures |
//! | `codec`, `values` | single messages and files; Python values to be encoded |
//! | `ki`, `game_value`, `archive` | KI type lists, game objects and archives |
//! | `object_rows`, `object_table` | values from the lists of an object, and from many objects |
//! | `machine`, `login` | connections without I/O, and logins |
//! | `knowledge`, `definitions`, `keys`, `catalog` | keys and definitions, including the Python objects for them |
//! | `error` | errors as exceptions |

mod archive;
mod archive_file;
mod capture;
mod catalog;
mod codec;
mod definitions;
mod error;
mod game_value;
mod keys;
mod ki;
mod knowledge;
mod login;
mod machine;
mod message;
mod missing;
mod names;
mod object_rows;
mod object_table;
mod pattern;
mod reading;
mod record;
mod source;
mod stored;
mod table;
mod totals;
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
    use super::keys::{format_keys, load_keys, new_uru_key, parse_keys};
    #[pymodule_export]
    use super::ki::{GameObject, TypeList};
    #[pymodule_export]
    use super::login::{
        AuthLogin, MarginLogin, Ticket, ki_character, ki_login, ki_new_character, ki_proof,
        ki_secret, uru_login,
    };
    #[pymodule_export]
    use super::machine::Machine;
    #[pymodule_export]
    use super::message::Message;
    #[pymodule_export]
    use super::record::Record;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::totals::totals;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        worldwire_dissect::quiet_defects();
        // Importing `collections.abc` would be the documented way, but it also imports `collections`,
        // which takes longer than the rest of this module.
        let py = module.py();
        let mapping = py.import("_collections_abc")?.getattr("Mapping")?;
        mapping.call_method1("register", (py.get_type::<Record>(),))?;
        mapping.call_method1("register", (py.get_type::<Archive>(),))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
