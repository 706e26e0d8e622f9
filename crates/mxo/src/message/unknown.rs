//! What cannot be read because something is not known, kept as bytes.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{Error, Reader, Result, Trace, Value, Writer};

use super::create::Head;
use super::fault::{Fault, NAMES};
use super::views::END;
use crate::schema::Objects;

/// A create of an object whose class is not known: its head, and everything behind the count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCreate<'d> {
    /// The flags, as in [`Create`](super::Create).
    pub flags: u8,
    /// The game object type.
    pub goid: u16,
    /// The object of the world.
    pub world_id: Option<u32>,
    /// Tells objects apart that have one view id after the other.
    pub spawn_seq: u8,
    /// How many properties there are.
    pub count: u8,
    /// The properties, the new view, and whatever follows in the section.
    pub bytes: Cow<'d, [u8]>,
}

impl<'d> UnknownCreate<'d> {
    /// Makes it owned.
    #[must_use]
    pub fn into_owned(self) -> UnknownCreate<'static> {
        let Self { flags, goid, world_id, spawn_seq, count, bytes } = self;
        let bytes = Cow::Owned(bytes.into_owned());
        UnknownCreate { flags, goid, world_id, spawn_seq, count, bytes }
    }

    pub(super) fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        objects: &'n Objects,
    ) -> Result<Self> {
        reader.record("unknown_create", |reader| {
            reader.u16("view")?;
            let flags =
                reader.shown("flags", |r| r.take_array::<1>(), |b| Value::Hex(b[0].into()))?[0];
            let Head { flags, goid, world_id, spawn_seq, count } =
                Head::decode(reader, flags, objects)?;
            let bytes = Cow::Borrowed(reader.bytes("bytes", reader.remaining())?);
            Ok(Self { flags, goid, world_id, spawn_seq, count, bytes })
        })
    }

    pub(super) fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.head().encode(writer)?;
        writer.bytes(&self.bytes);
        Ok(())
    }

    pub(super) fn encoded_len(&self) -> usize {
        3 + self.head().encoded_len() + self.bytes.len()
    }

    pub(super) fn from_json(json: Given<'_>, objects: &Objects) -> Result<UnknownCreate<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let Head { flags, goid, world_id, spawn_seq, .. } = Head::from_json(&mut fields, objects)?;
        let count: u8 = fields.value("count")?;
        let bytes = Cow::Owned(bytes(&mut fields)?);
        fields.end()?;
        Ok(UnknownCreate { flags, goid, world_id, spawn_seq, count, bytes })
    }

    fn head(&self) -> Head {
        let Self { flags, goid, world_id, spawn_seq, count, .. } = *self;
        Head { flags, goid, world_id, spawn_seq, count }
    }
}

/// The rest of a section that begins with something that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecoded<'d> {
    /// The view it begins with.
    pub view: u16,
    /// What is not known.
    pub fault: Fault,
    /// Everything behind the view id.
    pub bytes: Cow<'d, [u8]>,
}

impl<'d> Undecoded<'d> {
    /// Makes it owned.
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
            // The least that there can be of anything is its first byte.
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
            return Err(Error::value("at least 1 byte behind the view", "none").inside("bytes"));
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
            .filter(|fault| fault.is_ignorance())
            .ok_or_else(|| json::expected("what is not known, such as unknown_view", fault));
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
