//! Reads and sets single fields of a message without decoding all of it.

use worldwire_core::Result;
use worldwire_core::json::Json;

/// Access to single fields of a message, much faster than through its tree or JSON.
///
/// Results are exactly those that [`FieldPath`](crate::filter::FieldPath) and
/// [`Message::encode`](crate::Message::encode) produce from the message's fields as JSON. The
/// editor declines anything that it cannot do exactly; callers then use JSON.
pub trait FieldEditor {
    /// The value of the field at a [plain path](crate::filter::FieldPath::plain). `None` if there
    /// is no such field or it cannot be read this way.
    fn get(&self, path: &str) -> Option<Json>;

    /// Sets the field at a plain path. Returns false and changes nothing if there is no such
    /// field or it cannot be set to this value this way.
    fn set(&mut self, path: &str, value: &Json) -> bool;

    /// The message with its changes.
    ///
    /// # Errors
    /// `Value` if the changed message is too long.
    fn encode(&self) -> Result<Vec<u8>>;
}
