//! Unreadable parts of sections, kept as bytes.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{Error, Reader, Result, Trace, Value, Writer};

use super::create::CreateHead;
use super::fault::{Fault, NAMES};
use super::views::END;
use crate::schema::Objects;

/// A create of an object of unknown class: its header, and everything up to the next create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCreate<'d> {
    /// The part whose layout does not depend on the class.
    pub head: CreateHead,
    /// The properties, the new view, and everything up to the next create.
    pub bytes: Cow<'d, [u8]>,
}

impl<'d> UnknownCreate<'d> {
    /// Converts to an owned value.
    #[must_use]
    pub fn into_owned(self) -> UnknownCreate<'static> {
        UnknownCreate { head: self.head, bytes: Cow::Owned(self.bytes.into_owned()) }
    }

    pub(super) fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        objects: &'n Objects,
    ) -> Result<Self> {
        reader.record("unknown_create", |reader| {
            reader.u16("view")?;
            let flags =
                reader.shown("flags", |r| r.take_array::<1>(), |b| Value::Hex(b[0].into()))?[0];
            let head = CreateHead::decode(reader, flags, objects)?;
            let length = next_create(reader.rest()).unwrap_or_else(|| reader.remaining());
            let bytes = Cow::Borrowed(reader.bytes("bytes", length)?);
            Ok(Self { head, bytes })
        })
    }

    pub(super) fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.head.encode(writer)?;
        writer.bytes(&self.bytes);
        Ok(())
    }

    pub(super) fn encoded_len(&self) -> usize {
        3 + self.head.encoded_len() + self.bytes.len()
    }

    pub(super) fn from_json(json: Given<'_>, objects: &Objects) -> Result<UnknownCreate<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let head = CreateHead::from_json(&mut fields, objects)?;
        let head = CreateHead { count: fields.value("count")?, ..head };
        let bytes = Cow::Owned(bytes(&mut fields)?);
        fields.end()?;
        Ok(UnknownCreate { head, bytes })
    }
}

/// Where the next create begins: after a tail of 0, with the AdminView, known flags, and the magic
/// number in its place. Together these are 48 bits, so a coincidence is unlikely.
fn next_create(rest: &[u8]) -> Option<usize> {
    /// A presence byte, the new view and the tail.
    const LEAST: usize = 4;
    let is_create = |bytes: &[u8]| {
        matches!(
            bytes,
            [0, 1, 0, 0x0c, _, _, _, 0xcd, 0xab, ..]
                | [0, 1, 0, 0x08, _, _, _, _, _, _, _, 0xcd, 0xab, ..]
        )
    };
    (LEAST..rest.len()).find(|at| rest.get(at - 1..).is_some_and(is_create))
}

/// The rest of a section, starting with something unreadable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecoded<'d> {
    /// The view at its start.
    pub view: u16,
    /// Why it is unreadable.
    pub fault: Fault,
    /// Everything after the view ID.
    pub bytes: Cow<'d, [u8]>,
}

impl<'d> Undecoded<'d> {
    /// Converts to an owned value.
    #[must_use]
    pub fn into_owned(self) -> Undecoded<'static> {
        let Self { view, fault, bytes } = self;
        Undecoded { view, fault, bytes: Cow::Owned(bytes.into_owned()) }
    }

    pub(super) fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        fault: Fault,
    ) -> Result<Self> {
        reader.record("undecoded", |reader| {
            let start = reader.place_if_on();
            let view = reader.u16("view")?;
            // At least one byte must follow.
            if reader.remaining() == 0 {
                return Err(reader.place_error(Error::incomplete(1, 0)).inside("bytes"));
            }
            reader.leaf_from("fault", start, Value::Enum(fault.number(), &NAMES));
            let bytes = Cow::Borrowed(reader.bytes("bytes", reader.remaining())?);
            Ok(Self { view, fault, bytes })
        })
    }

    pub(super) fn encode(&self, writer: &mut Writer) -> Result<()> {
        if self.view == END {
            return Err(Fault::BadViewId.value(self.view.to_string()).inside("view"));
        }
        if self.bytes.is_empty() {
            return Err(Error::value("at least 1 byte after the view", "none").inside("bytes"));
        }
        writer.u16(self.view);
        writer.bytes(&self.bytes);
        Ok(())
    }

    pub(super) fn encoded_len(&self) -> usize {
        2 + self.bytes.len()
    }

    pub(super) fn from_json(json: Given<'_>) -> Result<Undecoded<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let view: u16 = fields.value("view")?;
        let fault = fields.take("fault")?;
        let fault = fault
            .as_str()
            .and_then(Fault::named)
            .filter(|fault| fault.is_unknown())
            .ok_or_else(|| json::expected("a fault such as unknown_view", fault));
        let fault = fault.map_err(|error| error.inside("fault"))?;
        let bytes = Cow::Owned(bytes(&mut fields)?);
        fields.end()?;
        Ok(Undecoded { view, fault, bytes })
    }
}

fn bytes(fields: &mut FieldsOf<'_>) -> Result<Vec<u8>> {
    let bytes = fields.take("bytes")?;
    json::bytes(bytes).map_err(|error| error.inside("bytes"))
}
