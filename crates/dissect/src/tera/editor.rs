//! Reads and sets single fields of a message by way of a tape.

use worldwire_core::Result;
use worldwire_core::json::Json;
use worldwire_tera::message::{Datum, HeaderForm, ScalarValue, Tape, Value};
use worldwire_tera::packet::{Packet, Packets};
use worldwire_tera::schema::Plan;
use worldwire_tera::types::{Scalar, Text};

use crate::editor::FieldEditor;

/// A canonical message with a definition, on a tape. Numbers, booleans and text can be read and set;
/// values of other types have more than one form in JSON.
pub(super) struct TapeEditor<'m> {
    plan: &'m Plan,
    tape: Tape,
}

impl<'m> TapeEditor<'m> {
    /// Puts a message on a tape. `found` is the form of the header, if it differs from what the
    /// lists say. `None` for messages without a definition, and for those that do not encode to the
    /// same bytes.
    pub(super) fn new(
        packets: &'m Packets,
        opcode: u16,
        found: Option<HeaderForm>,
        body: &[u8],
    ) -> Option<Self> {
        let Packet { form, definition, .. } = packets.get(opcode)?;
        let plan = definition?.plan();
        let mut tape = Tape::new();
        plan.read_into(body, found.unwrap_or(form), &mut tape).ok()?;
        let is_canonical = tape.notes().is_empty() && tape.trailing().is_empty();
        is_canonical.then_some(Self { plan, tape })
    }
}

impl FieldEditor for TapeEditor<'_> {
    fn get(&self, path: &str) -> Option<Json> {
        match self.tape.fields(self.plan).find(path)? {
            Datum::Scalar(value) => plain(value),
            // Text with a system message inside is an object in JSON.
            Datum::Text(text) => text.to_utf8().filter(|it| !it.starts_with('@')).map(Json::from),
            _ => None,
        }
    }

    fn set(&mut self, path: &str, value: &Json) -> bool {
        let Some(old) = self.get(path) else { return false };
        let text;
        let value = match (&old, value) {
            (Json::Bool(_), Json::Bool(value)) => Value::Bool(*value),
            (Json::Number(_), Json::Number(number)) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => Value::Unsigned(number),
                (None, Some(number)) => Value::Signed(number),
                (None, None) => return false,
            },
            (Json::String(_), Json::String(value)) => {
                text = Text::from(&**value);
                Value::Text(text)
            }
            _ => return false,
        };
        self.tape.set(self.plan, path, &value).is_ok()
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let mut message = Vec::new();
        self.tape.encode(self.plan, &mut message)?;
        Ok(message)
    }
}

/// An integer or a boolean.
fn plain(value: ScalarValue) -> Option<Json> {
    use Scalar::{Bool, Byte, Int16, Int32, Int64, Uint16, Uint32, Uint64};
    match value.scalar() {
        Bool => value.bool().map(Json::from),
        Byte | Uint16 | Uint32 | Uint64 => value.unsigned().map(Json::from),
        Int16 | Int32 | Int64 => value.signed().map(Json::from),
        _ => None,
    }
}
