//! Generates Python dataclasses for messages, for editors and type checkers.

use worldwire_core::codegen::python::{self, Table};
use worldwire_core::{Result, Side};

use crate::frame::{Service, table};

/// Generates the source of a Python module with a dataclass for each selected message. The
/// selection names services (`auth`) and messages (`auth.AcctLoginRequest`); an empty selection
/// means all messages. The module needs the package `worldwire`.
///
/// # Errors
/// Fails if a selected name is neither a service nor a message.
///
/// ```
/// let source = worldwire_uru::codegen::python(&["auth.AcctLoginRequest".into()])?;
/// assert!(source.contains("class AuthAcctLoginRequest(Message):"));
/// # Ok::<(), worldwire_core::Error>(())
/// ```
pub fn python(selection: &[String]) -> Result<String> {
    let table = |service: Service, side: Side| Table {
        title: service.name(),
        prefix: service.name(),
        messages: table(service, side).messages,
    };
    let tables = Service::ALL.map(|service| Side::BOTH.map(|side| table(service, side)));
    python::messages(tables.as_flattened(), selection)
}
