//! Messages: bytes to values and back, according to a compiled definition.
//!
//! One decoder does all reading: into a tree for display ([`Plan::decode`]), into values
//! ([`Plan::read`]), onto a reusable [`Tape`] ([`Plan::read_into`]), or just to validate
//! ([`Plan::check`]). A [`View`] reads single fields in place.
//!
//! ```
//! use worldwire_core::{Reader, Tree};
//! use worldwire_tera::message::HeaderForm;
//! use worldwire_tera::schema::{Definition, FileName, ParseOptions};
//!
//! let file = FileName::parse("S_GREETING.1.def").unwrap();
//! let text = "int32 number\narray list\n- int16 value\n";
//! let definition = Definition::parse(&file, text, &ParseOptions::default()).unwrap();
//! let message = [
//!     0x18, 0, 0x34, 0x12, 2, 0, 0x0c, 0, 7, 0, 0, 0, // the fixed part
//!     0x0c, 0, 0x12, 0, 1, 0, // an element: its own offset, the next one's, its field
//!     0x12, 0, 0, 0, 2, 0,
//! ];
//! let mut reader = Reader::traced("message", &message, Tree::new());
//! definition.plan().decode(&mut reader, HeaderForm::Plain)?;
//! assert_eq!(reader.finish().find("list[1].value").unwrap().unsigned(), Some(2));
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod bounds;
mod content;
mod decode;
mod encode;
mod fault;
mod head;
pub mod json;
mod note;
mod pairs;
mod sample;
mod scalar;
mod slots;
mod steps;
mod tape;
mod trace;
pub mod typed;
mod value;
mod view;

use value::ValueSink;
use worldwire_core::{Reader, Result, Trace};

pub use bounds::MAX_READINGS;
pub use content::Content;
pub use fault::Fault;
pub use head::{Head, HeaderForm, Integrity};
pub use note::{Note, NoteKind, Notes};
pub use scalar::ScalarValue;
pub use tape::{Datum, Tape, TapeList, TapeRecord};
pub use value::Value;
pub use view::{Item, ListView, RecordView, View};

use crate::schema::plan::Plan;
use decode::Silent;
use trace::TraceSink;

pub(crate) use decode::{Group, Leaf, Sink, fields as run_fields};

/// How strictly values are checked when a message is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Leniency {
    /// Numbers must fit their type, texts must not contain a zero unit, and fields must be known.
    #[default]
    Strict,
    /// Like the community's parsers: numbers wrap, texts are written as they are, and unknown
    /// fields are ignored.
    Lenient,
}

impl Plan {
    /// Reads the one message that remains in a reader and reports every field to its trace, in the
    /// order of the definition.
    ///
    /// Returns notes on deviations from canonical form. The tree lists them after the fields, as
    /// `$notes`, together with the bytes `$trailing`, and with the whole message as `$original` if
    /// its fields alone would encode to different bytes.
    ///
    /// # Errors
    /// `Malformed`, with the path of the field and the offset; [`Fault::of`] tells which rule is
    /// broken.
    pub fn decode<'d, 'n, T: Trace<'n>>(
        &'n self,
        reader: &mut Reader<'d, T>,
        form: HeaderForm,
    ) -> Result<Notes> {
        let (base, data) = (reader.position(), reader.rest());
        let based = |error: worldwire_core::Error| error.based(base as u64);
        let head = Head::read(data, form).map_err(based)?;
        let mut sink = TraceSink { reader, base };
        if T::ON
            && let Some(integrity) = head.integrity
        {
            sink.integrity(integrity.counter, integrity.checksum);
        }
        let rest = run_fields(self, data, form, &mut sink).map_err(based)?;
        if T::ON && !rest.notes.is_empty() {
            sink.remarks(&rest.notes, rest.end, data.len());
        }
        reader.take(data.len())?;
        Ok(rest.notes)
    }

    /// Reads a message into values. Text and bytes are borrowed.
    ///
    /// # Errors
    /// `Malformed`, with the definition, the path of the field and the offset.
    pub fn read<'d>(&self, message: &'d [u8], form: HeaderForm) -> Result<Message<'d>> {
        let named = |error| self.named(error);
        let head = Head::read(message, form).map_err(named)?;
        let mut sink = ValueSink::new(self.fields().len());
        let rest = run_fields(self, message, form, &mut sink).map_err(named)?;
        Ok(Message {
            head,
            fields: sink.finish(),
            notes: rest.notes,
            original: message,
            end: rest.end,
            changed: false,
        })
    }

    /// Validates a message, including every offset and link.
    pub fn check(&self, message: &[u8], form: HeaderForm) -> Result<Notes> {
        let checked = Head::check(message, form);
        let rest = checked.and_then(|()| run_fields(self, message, form, &mut Silent));
        rest.map(|rest| rest.notes).map_err(|error| self.named(error))
    }

    /// Appends a message to `out`, in canonical form.
    ///
    /// # Errors
    /// `Value`, with the path of the field that cannot be written; `out` is left unchanged.
    pub fn encode(&self, head: Head, fields: &Value<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.encode_with(head, fields, Leniency::Strict, out)
    }

    /// Appends a message to `out`, in canonical form, with the given strictness.
    ///
    /// # Errors
    /// `Value`, with the path of the field that cannot be written; `out` is left unchanged.
    pub fn encode_with(
        &self,
        head: Head,
        fields: &Value<'_>,
        leniency: Leniency,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        encode::message(self, head, slots::slots(fields)?, leniency, out)
    }
}

/// A decoded message. To change its fields, clone them and encode them with [`Plan::encode`].
///
/// It is encoded to its original bytes, canonical or not, unless its header is changed. Then it is
/// encoded in canonical form, followed by its trailing bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'d> {
    head: Head,
    fields: Value<'d>,
    notes: Notes,
    original: &'d [u8],
    /// The end of the last body, in bytes.
    end: usize,
    changed: bool,
}

impl<'d> Message<'d> {
    /// Opcode and integrity.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// The header, for changing.
    pub fn head_mut(&mut self) -> &mut Head {
        self.changed = true;
        &mut self.head
    }

    /// The values of the fields.
    #[must_use]
    pub fn fields(&self) -> &Value<'d> {
        &self.fields
    }

    /// The deviations noted when the message was read.
    #[must_use]
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The bytes after the last body.
    #[must_use]
    pub fn trailing(&self) -> &'d [u8] {
        self.original.get(self.end..).unwrap_or_default()
    }

    /// Appends the message to `out`.
    ///
    /// # Errors
    /// `Value` if a changed field cannot be written; `out` is left unchanged.
    pub fn encode(&self, plan: &Plan, out: &mut Vec<u8>) -> Result<()> {
        if !self.changed {
            out.extend_from_slice(self.original);
            return Ok(());
        }
        let start = out.len();
        plan.encode(self.head, &self.fields, out)?;
        append_trailing(self.trailing(), start, out).inspect_err(|_| out.truncate(start))
    }
}

/// Appends bytes to the message that begins at `start` and corrects its length.
fn append_trailing(trailing: &[u8], start: usize, out: &mut Vec<u8>) -> Result<()> {
    let length = out.len() - start + trailing.len();
    let word = u16::try_from(length)
        .map_err(|_| Fault::MessageTooLong.value(format!("{length} bytes")))?;
    out.extend_from_slice(trailing);
    if let Some(room) = out.get_mut(start..start + 2) {
        room.copy_from_slice(&word.to_le_bytes());
    }
    Ok(())
}
