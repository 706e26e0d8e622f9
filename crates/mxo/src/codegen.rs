//! Generates Python dataclasses for messages, for editors and type checkers.

use worldwire_core::codegen::python::{self, Table};
use worldwire_core::{Messages as _, Result};

use crate::login::{
    AuthClientMessage, AuthServerMessage, MarginClientMessage, MarginServerMessage,
};
use crate::rpc::{ClientRpc, ServerRpc};

/// Generates the source of a Python module with a dataclass for each selected message; an empty
/// selection selects all. `auth`, `margin` and `rpc` select many messages, `auth.AuthRequest`
/// selects one login message, and `Chat` one message of the world. The module requires the Python
/// package `worldwire`.
///
/// # Errors
/// If no message has a selected name.
///
/// ```
/// let source = worldwire_mxo::codegen::python(&["ChatMessage".into()])?;
/// assert!(source.contains("class RpcChatMessage(Message):"));
/// # Ok::<(), worldwire_core::Error>(())
/// ```
pub fn python(selection: &[String]) -> Result<String> {
    let tables = [
        ("auth", "auth", AuthClientMessage::INFO),
        ("auth", "auth", AuthServerMessage::INFO),
        ("margin", "margin", MarginClientMessage::INFO),
        ("margin", "margin", MarginServerMessage::INFO),
        // The names of RPC messages have no prefix, because these messages are parts of packets.
        ("rpc", "", ClientRpc::INFO),
        ("rpc", "", ServerRpc::INFO),
    ];
    let tables = tables.map(|(title, prefix, messages)| Table { title, prefix, messages });
    python::messages(&tables, selection)
}
