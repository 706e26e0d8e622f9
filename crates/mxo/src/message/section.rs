//! A whole section: operations up to the end.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given, Json};
use worldwire_core::{Error, Place, Reader, Result, Side, Trace, Value, Writer};

use super::admin::{COMMAND, CREATE, DELETE, Delete, PENDING, PendingUpdate};
use super::create::Create;
use super::fault::{Fault, NAMES};
use super::update::Update;
use super::views::{ADMIN_VIEW, Context, END, Inside, OWN_VIEW, Viewed};
use crate::schema::Objects;

/// The MPM id of a section of objects: its first byte.
pub const MPM_ID: u8 = 3;

/// The most operations of a section. A datagram has room for fewer.
pub const MOST_OPERATIONS: usize = 32_768;

/// A section of objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section<'d> {
    /// What it does, in the order in which it is to be done.
    pub operations: Vec<Operation<'d>>,
    /// Whether it lacks the `00 00` at its end. Always so behind [`Operation::Undecoded`].
    pub unterminated: bool,
}

/// One thing that a section does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Operation<'d> {
    /// A view is created.
    Create(Create<'d>),
    /// Views are deleted.
    Delete(Delete),
    /// An update of a view that may not be created yet.
    PendingUpdate(PendingUpdate<'d>),
    /// A view is updated.
    Update(Update<'d>),
    /// What could not be read, to the end of what was there; only with
    /// [`Rules::keep_unknown`](super::Rules::keep_unknown).
    Undecoded(Undecoded<'d>),
}

/// The rest of a section that could not be read, because it takes knowledge that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecoded<'d> {
    /// The view it begins with.
    pub view: u16,
    /// What is not known.
    pub fault: Fault,
    /// Everything behind the view id.
    pub bytes: Cow<'d, [u8]>,
}

impl<'d> Section<'d> {
    /// Reads a section, and reports it to the trace. The reader then stands behind it.
    ///
    /// # Errors
    /// [`Fault::of`] says which rule is broken; [`Fault::Truncated`] is an incomplete error. The
    /// limit on operations. Nothing of a section that failed is to be applied.
    pub fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        context: &Context<'n, '_>,
    ) -> Result<Self> {
        let id = reader.u8("mpm")?;
        if id != MPM_ID {
            return Err(Fault::NotObjectSection.at(reader, 1, id.to_string()).inside("mpm"));
        }
        let mut section = Self::default();
        let mut views = Inside::new(context.views);
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

    fn operations<'n, T: Trace<'n>>(
        &mut self,
        reader: &mut Reader<'d, T>,
        context: &Context<'n, '_>,
        views: &mut Inside<'_>,
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
            if index >= MOST_OPERATIONS {
                let asked = index as u64 + 1;
                let error = Error::limit("operations of a section", MOST_OPERATIONS as u64, asked);
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
                            match Fault::of(&error).filter(|fault| fault.is_ignorance()) {
                                Some(fault) => Undecoded::decode(reader, fault),
                                None => Err(error),
                            }
                        }
                        decoded => decoded,
                    }
                })
            })?;
            let undecoded = matches!(operation, Operation::Undecoded(_));
            self.operations.push(operation);
            if undecoded {
                self.unterminated = true;
                return Ok(());
            }
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// Value, for an operation that cannot be written, with its path.
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

    /// Reads it from JSON. Views are looked up as when it is read from bytes, unless an update names
    /// its class.
    ///
    /// # Errors
    /// Value, with the path of what is wrong.
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
        let unterminated = match fields.take_optional("end") {
            Some(Json::Null) => true,
            end => {
                super::agrees("end", end, END.into())?;
                false
            }
        };
        fields.end()?;
        let mut views = Inside::new(context.views);
        let mut operations = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let operation = Operation::from_json(given.at(item), context, &mut views);
            operations
                .push(operation.map_err(|error| error.inside_item(index).inside("operations"))?);
        }
        Ok(Section { operations, unterminated })
    }

    /// Makes it owned.
    #[must_use]
    pub fn into_owned(self) -> Section<'static> {
        Section {
            operations: self.operations.into_iter().map(Operation::into_owned).collect(),
            unterminated: self.unterminated,
        }
    }
}

impl<'d> Operation<'d> {
    /// The name, as traces and JSON have it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Delete(_) => "delete",
            Self::PendingUpdate(_) => "pending_update",
            Self::Update(_) => "update",
            Self::Undecoded(_) => "undecoded",
        }
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        view: u16,
        context: &Context<'n, '_>,
        views: &mut Inside<'_>,
    ) -> Result<Self> {
        if context.from == Side::Client && view != OWN_VIEW && !is_notice(view, reader.rest()) {
            let error = Fault::BadViewId.at(reader, 0, format!("{view} from a client"));
            return Err(error.inside("view"));
        }
        if view == ADMIN_VIEW {
            return Self::decode_admin(reader, context, views);
        }
        let Some(viewed) = views.viewed(view) else {
            return Err(Fault::UnknownView.at(reader, 0, view.to_string()).inside("view"));
        };
        reader.record("update", |reader| {
            reader.u16("view")?;
            Update::decode_body(reader, view, viewed, context.objects, context.from)
                .map(Operation::Update)
        })
    }

    fn decode_admin<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        context: &Context<'n, '_>,
        views: &mut Inside<'_>,
    ) -> Result<Self> {
        let Some([_, _, flags]) = reader.rest().first_chunk() else {
            let error = Error::incomplete(3, reader.remaining());
            return Err(reader.place_error(error).inside("flags"));
        };
        let name = match flags & COMMAND {
            CREATE => "create",
            DELETE => "delete",
            PENDING => "pending_update",
            _ => {
                let found = format!("flags {flags:#04x}, a relevance notice");
                let error = Fault::ServerOnlyCommand.at(reader, 0, found);
                return Err(error.inside("flags"));
            }
        };
        reader.record(name, |reader| {
            reader.u16("view")?;
            let flags =
                reader.shown("flags", |r| r.take_array::<1>(), |b| Value::Hex(b[0].into()))?[0];
            Ok(match flags & COMMAND {
                CREATE => {
                    let create = Create::decode(reader, flags, context)?;
                    let viewed = Viewed { class: create.class, guess: create.guess };
                    views.create(create.new_view, viewed);
                    Self::Create(create)
                }
                DELETE => {
                    let delete = Delete::decode(reader, flags)?;
                    delete.views.iter().for_each(|view| views.delete(*view));
                    Self::Delete(delete)
                }
                _ => {
                    let viewed = |view| views.viewed(view);
                    Self::PendingUpdate(PendingUpdate::decode(reader, flags, context, viewed)?)
                }
            })
        })
    }

    /// Writes it, with the view id in front.
    ///
    /// # Errors
    /// Value, for what cannot be written.
    pub fn encode(&self, objects: &Objects, from: Side, writer: &mut Writer) -> Result<()> {
        match self {
            Self::Create(create) => create.encode(objects, writer),
            Self::Delete(delete) => delete.encode(writer),
            Self::PendingUpdate(pending) => pending.encode(writer),
            Self::Update(update) => update.encode(objects, from, writer),
            Self::Undecoded(rest) => {
                writer.u16(rest.view);
                writer.bytes(&rest.bytes);
                Ok(())
            }
        }
    }

    /// How many bytes [`Self::encode`] writes.
    #[must_use]
    pub fn encoded_len(&self, objects: &Objects) -> usize {
        match self {
            Self::Create(create) => create.encoded_len(objects),
            Self::Delete(delete) => delete.encoded_len(),
            Self::PendingUpdate(pending) => pending.encoded_len(),
            Self::Update(update) => update.encoded_len(objects),
            Self::Undecoded(rest) => 2 + rest.bytes.len(),
        }
    }

    fn from_json(
        json: Given<'_>,
        context: &Context<'_, '_>,
        views: &mut Inside<'_>,
    ) -> Result<Operation<'static>> {
        let mut parts = json.json().as_object().into_iter().flatten();
        let (Some((name, value)), None) = (parts.next(), parts.next()) else {
            return Err(json::expected("an object with one operation, by its name", &json));
        };
        let given = json.at(value);
        let operation = match name.as_str() {
            "create" => Create::from_json(given, context).map(|create| {
                let viewed = Viewed { class: create.class, guess: create.guess };
                views.create(create.new_view, viewed);
                Operation::Create(create)
            }),
            "delete" => Delete::from_json(given).map(|delete| {
                delete.views.iter().for_each(|view| views.delete(*view));
                Operation::Delete(delete)
            }),
            "pending_update" => PendingUpdate::from_json(given, context, |view| views.viewed(view))
                .map(Operation::PendingUpdate),
            "update" => {
                Update::from_json(given, context, |view| views.viewed(view)).map(Operation::Update)
            }
            "undecoded" => Undecoded::from_json(given).map(Operation::Undecoded),
            _ => {
                let wanted = "create, delete, pending_update, update or undecoded";
                return Err(Error::value(wanted, format!("\"{name}\"")));
            }
        };
        operation.map_err(|error| error.inside(name))
    }

    /// Makes it owned.
    #[must_use]
    pub fn into_owned(self) -> Operation<'static> {
        match self {
            Self::Create(create) => Operation::Create(create.into_owned()),
            Self::Delete(delete) => Operation::Delete(delete),
            Self::PendingUpdate(pending) => Operation::PendingUpdate(pending.into_owned()),
            Self::Update(update) => Operation::Update(update.into_owned()),
            Self::Undecoded(Undecoded { view, fault, bytes }) => {
                let bytes = Cow::Owned(bytes.into_owned());
                Operation::Undecoded(Undecoded { view, fault, bytes })
            }
        }
    }
}

impl<'d> Undecoded<'d> {
    /// The goobj, where it is that whose class is not known.
    #[must_use]
    pub fn goid(&self) -> Option<u16> {
        match self.fault {
            Fault::UnknownGoid => goid(&self.bytes),
            _ => None,
        }
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, fault: Fault) -> Result<Operation<'d>> {
        reader.record("undecoded", |reader| {
            let start = reader.place_if_on();
            let view = reader.u16("view")?;
            if T::ON {
                let end = reader.place();
                reader.trace_mut().leaf("fault", Value::Enum(fault.number(), &NAMES), start, end);
                if fault == Fault::UnknownGoid
                    && let Some(goid) = goid(reader.rest())
                {
                    // Behind the flags, in the bytes.
                    let place = |at| Place { byte: end.byte + at, bit: 0 };
                    let (start, end) = (place(1), place(3));
                    reader.trace_mut().leaf("goid", Value::Unsigned(goid.into()), start, end);
                }
            }
            let bytes = Cow::Borrowed(reader.bytes("bytes", reader.remaining())?);
            Ok(Operation::Undecoded(Self { view, fault, bytes }))
        })
    }

    fn from_json(json: Given<'_>) -> Result<Undecoded<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let view: u16 = fields.value("view")?;
        let fault = fields.take("fault")?;
        let fault = fault
            .as_str()
            .and_then(Fault::named)
            .filter(|fault| fault.is_ignorance())
            .ok_or_else(|| json::expected("what is not known, such as unknown_goid", fault));
        let fault = fault.map_err(|error| error.inside("fault"))?;
        let goid = fields.take_optional("goid");
        let bytes = fields.take("bytes")?;
        let bytes = json::bytes(bytes).map_err(|error| error.inside("bytes"))?;
        fields.end()?;
        let rest = Undecoded { view, fault, bytes: Cow::Owned(bytes) };
        super::agrees("goid", goid, rest.goid().map_or(u64::MAX, u64::from))?;
        Ok(rest)
    }
}

/// Whether it is a relevance notice, which has a fault of its own whoever sends it.
fn is_notice(view: u16, rest: &[u8]) -> bool {
    view == ADMIN_VIEW && rest.get(2).is_some_and(|flags| flags & COMMAND == COMMAND)
}

/// The goobj of a create, behind its flags.
fn goid(bytes: &[u8]) -> Option<u16> {
    bytes.get(1..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
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
    /// How many bytes a section has besides its operations.
    pub const FRAME: usize = 3;

    /// Writes the MPM id.
    pub fn begin(objects: &'o Objects, from: Side, writer: &'w mut Writer) -> Self {
        writer.u8(MPM_ID);
        Self { writer, objects, from }
    }

    /// Writes an operation. The order is the caller's: deletes, creates, updates.
    ///
    /// # Errors
    /// Value, for what cannot be written; a part of it may then be.
    pub fn operation(&mut self, operation: &Operation<'_>) -> Result<()> {
        operation.encode(self.objects, self.from, self.writer)
    }

    /// Writes the end.
    pub fn end(self) {
        self.writer.u16(END);
    }
}
