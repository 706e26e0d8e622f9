//! A whole section: a list of operations with an end marker.

use worldwire_core::json::{self, FieldsOf, Given, Json};
use worldwire_core::{Error, Limits, Reader, Result, Side, Trace, Value, Writer};

use super::fault::Fault;
use super::operation::Operation;
use super::views::{Context, END, Rules, SectionViews};
use crate::schema::Objects;

/// The MPM ID of an object section: its first byte.
pub const MPM_ID: u8 = 3;

/// The maximum number of operations in a section. A datagram has room for fewer.
pub const MAX_OPERATIONS: usize = 32_768;

/// An object section.
///
/// An unreadable [`Operation`] contains all remaining bytes and is the last one. The exception is
/// an unreadable create: further creates can follow it, because their headers can be found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section<'d> {
    /// The operations, in the order in which to apply them.
    pub operations: Vec<Operation<'d>>,
    /// Whether the end marker `00 00` is missing. Always the case after an unreadable operation.
    pub unterminated: bool,
}

impl<'d> Section<'d> {
    /// Reads a section and reports it to the trace. This leaves the reader after the section.
    ///
    /// # Errors
    /// [`Fault::of`] identifies the broken rule; [`Fault::Truncated`] is an incomplete error.
    /// Exceeding the limit on operations is also an error. Do not apply any part of a section that
    /// caused an error.
    pub fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        context: &Context<'n, '_>,
    ) -> Result<Self> {
        let id = reader.u8("mpm")?;
        if id != MPM_ID {
            return Err(Fault::NotObjectSection.at(reader, 1, id.to_string()).inside("mpm"));
        }
        Self::decode_after_id(reader, context)
    }

    /// Reads a section whose ID has been read.
    pub fn decode_after_id<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        context: &Context<'n, '_>,
    ) -> Result<Self> {
        let mut section = Self::default();
        let mut views = SectionViews::new(context.views);
        reader.list("operations", |reader| section.operations(reader, context, &mut views))?;
        let start = reader.place_if_on();
        if section.unterminated {
            if T::ON {
                reader.leaf_from("end", start, Value::Null);
            }
            return Ok(section);
        }
        reader.u16("end")?;
        Ok(section)
    }

    /// Whether all operations can be read if the first block of NPCs is one byte. This is
    /// determined once per section.
    pub(super) fn is_whole(
        rest: &[u8],
        limits: &Limits,
        context: &Context<'_, '_>,
        views: &SectionViews<'_>,
    ) -> bool {
        let context = context.with(Rules { keep_unknown: false, ..context.rules });
        let mut views = views.clone();
        views.trusts_npc_first = true;
        let mut reader = Reader::within(rest, limits);
        Section::default().operations(&mut reader, &context, &mut views).is_ok()
    }

    fn operations<'n, T: Trace<'n>>(
        &mut self,
        reader: &mut Reader<'d, T>,
        context: &Context<'n, '_>,
        views: &mut SectionViews<'_>,
    ) -> Result<()> {
        loop {
            let view = match reader.rest().first_chunk() {
                Some(bytes) => u16::from_le_bytes(*bytes),
                None if reader.remaining() > 0 => {
                    let error = Error::incomplete(2, reader.remaining());
                    return Err(reader.place_error(error));
                }
                None if context.rules.unterminated => {
                    self.unterminated = true;
                    return Ok(());
                }
                None => return Err(Fault::MissingTerminator.at(reader, 0, "the end of the bytes")),
            };
            if view == END {
                return Ok(());
            }
            let index = self.operations.len();
            if index >= MAX_OPERATIONS {
                let asked = index as u64 + 1;
                let error = Error::limit("operations of a section", MAX_OPERATIONS as u64, asked);
                return Err(reader.place_error(error));
            }
            let operation = reader.item(index, |reader| {
                reader.record("", |reader| {
                    if !context.rules.keep_unknown {
                        return Operation::decode(reader, view, context, views);
                    }
                    let outcome = reader.attempt(|r| Operation::decode(r, view, context, views));
                    match outcome {
                        Err(error) => {
                            match Fault::of(&error).filter(|fault| fault.is_kept(context.from)) {
                                Some(fault) => Operation::decode_rest(reader, fault, context),
                                None => Err(error),
                            }
                        }
                        decoded => decoded,
                    }
                })
            })?;
            let is_rest = operation.fault().is_some() && reader.remaining() == 0;
            self.operations.push(operation);
            if is_rest {
                self.unterminated = true;
                return Ok(());
            }
        }
    }

    /// Writes the section.
    pub fn encode(&self, objects: &Objects, from: Side, writer: &mut Writer) -> Result<()> {
        let mut section = SectionWriter::begin(objects, from, writer);
        for (index, operation) in self.operations.iter().enumerate() {
            section.operation(operation).map_err(|error| {
                error.inside(operation.name()).inside_item(index).inside("operations")
            })?;
        }
        if !self.unterminated {
            section.end();
        }
        Ok(())
    }

    /// Reads the section from JSON. Classes of views are looked up as when reading bytes, unless an
    /// update names its class.
    pub fn from_json<'j>(
        json: impl Into<Given<'j>>,
        context: &Context<'_, '_>,
    ) -> Result<Section<'static>> {
        let mut fields = FieldsOf::new(json)?;
        super::agrees("mpm", fields.take_optional("mpm"), MPM_ID.into())?;
        let given = fields.given("operations")?;
        let Json::Array(items) = given.json() else {
            return Err(json::expected("an array", &given).inside("operations"));
        };
        let end = fields.take_optional("end");
        fields.end()?;
        let mut views = SectionViews::new(context.views);
        let mut operations = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let operation = Operation::from_json(given.at(item), context, &mut views);
            operations
                .push(operation.map_err(|error| error.inside_item(index).inside("operations"))?);
        }
        // An unreadable operation contains everything up to the next create.
        let is_create =
            |one: &Operation<'_>| matches!(one, Operation::Create(_) | Operation::UnknownCreate(_));
        for (index, pair) in operations.windows(2).enumerate() {
            let [one, next] = pair else { continue };
            if one.fault().is_some() && !(is_create(one) && is_create(next)) {
                let wanted = format!("{} as the last operation", one.name());
                let error = Error::value(wanted, "more operations after it");
                return Err(error.inside_item(index).inside("operations"));
            }
        }
        let has_rest = operations.last().is_some_and(|last| last.fault().is_some());
        let unterminated = match end {
            Some(Json::Null) => true,
            None if has_rest => true,
            Some(end) if has_rest => {
                return Err(
                    json::expected("null, after an unreadable operation", end).inside("end")
                );
            }
            end => {
                super::agrees("end", end, END.into())?;
                false
            }
        };
        Ok(Section { operations, unterminated })
    }

    /// Converts to an owned value.
    #[must_use]
    pub fn into_owned(self) -> Section<'static> {
        Section {
            operations: self.operations.into_iter().map(Operation::into_owned).collect(),
            unterminated: self.unterminated,
        }
    }
}

/// Writes a section operation by operation.
///
/// ```
/// use worldwire_core::{Side, Writer};
/// use worldwire_mxo::message::{Delete, Operation, SectionWriter};
/// use worldwire_mxo::schema::Objects;
///
/// let objects = Objects::built_in();
/// let mut writer = Writer::new();
/// let mut section = SectionWriter::begin(&objects, Side::Server, &mut writer);
/// section.operation(&Operation::Delete(Delete::of(vec![5])))?;
/// section.end();
/// assert_eq!(writer.as_bytes(), [3, 1, 0, 1, 1, 0, 5, 0, 0, 0]);
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[derive(Debug)]
pub struct SectionWriter<'w, 'o> {
    writer: &'w mut Writer,
    objects: &'o Objects,
    from: Side,
}

impl<'w, 'o> SectionWriter<'w, 'o> {
    /// The number of bytes in a section besides its operations.
    pub const FRAME: usize = 3;

    /// Writes the MPM ID.
    pub fn begin(objects: &'o Objects, from: Side, writer: &'w mut Writer) -> Self {
        writer.u8(MPM_ID);
        Self { writer, objects, from }
    }

    /// Writes an operation. The caller chooses the order: deletes, creates, updates.
    ///
    /// # Errors
    /// A value error for values that cannot be written; part of the operation may already
    /// have been written.
    pub fn operation(&mut self, operation: &Operation<'_>) -> Result<()> {
        operation.encode(self.objects, self.from, self.writer)
    }

    /// Writes the end marker.
    pub fn end(self) {
        self.writer.u16(END);
    }
}
