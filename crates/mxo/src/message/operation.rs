//! The operations of a section.

use worldwire_core::json::{self, Given};
use worldwire_core::{Error, Reader, Result, Side, Trace, Value, Writer};

use super::admin::{COMMAND, CREATE, DELETE, Delete, PENDING, PendingUpdate};
use super::create::Create;
use super::fault::Fault;
use super::section::Section;
use super::unknown::{Undecoded, UnknownCreate};
use super::update::{Update, has_npc_first};
use super::views::{ADMIN_VIEW, Context, OWN_VIEW, SectionViews, Viewed};
use crate::schema::Objects;

/// An operation of a section.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Operation<'d> {
    /// Creates a view.
    Create(Create<'d>),
    /// Deletes views.
    Delete(Delete),
    /// Updates a view that may not exist yet.
    PendingUpdate(PendingUpdate<'d>),
    /// Updates a view.
    Update(Update<'d>),
    /// Creates a view of an object of unknown class. Contains all bytes up to the next create, or
    /// to the end. Only with [`Rules::keep_unknown`](super::Rules::keep_unknown).
    UnknownCreate(UnknownCreate<'d>),
    /// Other remaining bytes that are unreadable. Only with
    /// [`Rules::keep_unknown`](super::Rules::keep_unknown).
    Undecoded(Undecoded<'d>),
}

impl<'d> Operation<'d> {
    /// The name in traces and JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Delete(_) => "delete",
            Self::PendingUpdate(_) => "pending_update",
            Self::Update(_) => "update",
            Self::UnknownCreate(_) => "unknown_create",
            Self::Undecoded(_) => "undecoded",
        }
    }

    /// Why the operation is unreadable, if it is kept as bytes.
    #[must_use]
    pub const fn fault(&self) -> Option<Fault> {
        match self {
            Self::UnknownCreate(_) => Some(Fault::UnknownGoid),
            Self::Undecoded(rest) => Some(rest.fault),
            _ => None,
        }
    }

    /// Keeps the bytes that are unreadable because of this fault.
    pub(super) fn decode_rest<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        fault: Fault,
        context: &Context<'n, '_>,
    ) -> Result<Self> {
        match fault {
            Fault::UnknownGoid => {
                UnknownCreate::decode(reader, context.objects).map(Self::UnknownCreate)
            }
            _ => Undecoded::decode(reader, fault).map(Self::Undecoded),
        }
    }

    #[inline]
    pub(super) fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        view: u16,
        context: &Context<'n, '_>,
        views: &mut SectionViews<'_>,
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
        let whole = reader.rest();
        reader.record("update", |reader| {
            reader.u16("view")?;
            if context.rules.keep_unknown
                && !views.trusts_npc_first
                && let Some(class) = context.objects.class(viewed.class)
                && has_npc_first(class, reader.rest())
            {
                if !Section::is_whole(whole, reader.limits(), context, views) {
                    let found = format!("block 0x01 of class {}", class.name());
                    return Err(Fault::UnknownLayout.at(reader, 0, found).inside("mask"));
                }
                views.trusts_npc_first = true;
            }
            Update::decode_body(reader, view, viewed, context.objects, context.from)
                .map(Operation::Update)
        })
    }

    fn decode_admin<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        context: &Context<'n, '_>,
        views: &mut SectionViews<'_>,
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
                    let create = Create::decode(reader, flags, context, views)?;
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

    /// Writes the operation, preceded by its view ID.
    ///
    /// # Errors
    /// A value error for values that cannot be written; [`Fault::BadViewId`] if a client writes to
    /// any view but its own.
    pub fn encode(&self, objects: &Objects, from: Side, writer: &mut Writer) -> Result<()> {
        if from == Side::Client && self.view() != OWN_VIEW {
            let error = Fault::BadViewId.value(format!("{} from a client", self.view()));
            return Err(error.inside("view"));
        }
        match self {
            Self::Create(create) => create.encode(objects, writer),
            Self::Delete(delete) => delete.encode(writer),
            Self::PendingUpdate(pending) => pending.encode(writer),
            Self::Update(update) => update.encode(objects, from, writer),
            Self::UnknownCreate(create) => create.encode(writer),
            Self::Undecoded(rest) => rest.encode(writer),
        }
    }

    /// The view ID that precedes the operation.
    const fn view(&self) -> u16 {
        match self {
            Self::Update(update) => update.view,
            Self::Undecoded(rest) => rest.view,
            _ => ADMIN_VIEW,
        }
    }

    /// The number of bytes that [`Self::encode`] writes.
    #[must_use]
    pub fn encoded_len(&self, objects: &Objects) -> usize {
        match self {
            Self::Create(create) => create.encoded_len(objects),
            Self::Delete(delete) => delete.encoded_len(),
            Self::PendingUpdate(pending) => pending.encoded_len(),
            Self::Update(update) => update.encoded_len(objects),
            Self::UnknownCreate(create) => create.encoded_len(),
            Self::Undecoded(rest) => rest.encoded_len(),
        }
    }

    pub(super) fn from_json(
        json: Given<'_>,
        context: &Context<'_, '_>,
        views: &mut SectionViews<'_>,
    ) -> Result<Operation<'static>> {
        let mut parts = json.json().as_object().into_iter().flatten();
        let (Some((name, value)), None) = (parts.next(), parts.next()) else {
            return Err(json::expected(
                "an object with one member, named after its operation (such as \"create\")",
                &json,
            ));
        };
        let given = json.at(value);
        let operation = match name {
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
            "unknown_create" => {
                UnknownCreate::from_json(given, context.objects).map(Operation::UnknownCreate)
            }
            "undecoded" => Undecoded::from_json(given).map(Operation::Undecoded),
            _ => {
                let wanted = "create, delete, pending_update, update, unknown_create or undecoded";
                return Err(Error::value(wanted, format!("\"{name}\"")));
            }
        };
        operation.map_err(|error| error.inside(name))
    }

    /// Converts to an owned value.
    #[must_use]
    pub fn into_owned(self) -> Operation<'static> {
        match self {
            Self::Create(create) => Operation::Create(create.into_owned()),
            Self::Delete(delete) => Operation::Delete(delete),
            Self::PendingUpdate(pending) => Operation::PendingUpdate(pending.into_owned()),
            Self::Update(update) => Operation::Update(update.into_owned()),
            Self::UnknownCreate(create) => Operation::UnknownCreate(create.into_owned()),
            Self::Undecoded(rest) => Operation::Undecoded(rest.into_owned()),
        }
    }
}

/// Whether it is a relevance notice, which is reported as a fault of its own, regardless of the
/// sender.
fn is_notice(view: u16, rest: &[u8]) -> bool {
    view == ADMIN_VIEW && rest.get(2).is_some_and(|flags| flags & COMMAND == COMMAND)
}
