//! What a section does, one thing at a time.

use worldwire_core::json::{self, Given};
use worldwire_core::{Error, Reader, Result, Side, Trace, Value, Writer};

use super::admin::{COMMAND, CREATE, DELETE, Delete, PENDING, PendingUpdate};
use super::create::Create;
use super::fault::Fault;
use super::unknown::{Undecoded, UnknownCreate};
use super::update::Update;
use super::views::{ADMIN_VIEW, Context, Inside, OWN_VIEW, Viewed};
use crate::schema::Objects;

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
    /// A view of an object whose class is not known is created. Everything to the end of what was
    /// there belongs to it; only with [`Rules::keep_unknown`](super::Rules::keep_unknown).
    UnknownCreate(UnknownCreate<'d>),
    /// What else could not be read, to the end of what was there; only with
    /// [`Rules::keep_unknown`](super::Rules::keep_unknown).
    Undecoded(Undecoded<'d>),
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
            Self::UnknownCreate(_) => "unknown_create",
            Self::Undecoded(_) => "undecoded",
        }
    }

    /// What was not known to read it, if it holds the rest of a section that could not be read.
    #[must_use]
    pub const fn fault(&self) -> Option<Fault> {
        match self {
            Self::UnknownCreate(_) => Some(Fault::UnknownGoid),
            Self::Undecoded(rest) => Some(rest.fault),
            _ => None,
        }
    }

    /// Whether it holds everything to the end.
    pub(super) const fn is_rest(&self) -> bool {
        self.fault().is_some()
    }

    /// Keeps what could not be read because of this fault.
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
    /// Value, for what cannot be written; [`Fault::BadViewId`] for any view but its own of a client.
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

    /// The view id in front of it.
    const fn view(&self) -> u16 {
        match self {
            Self::Update(update) => update.view,
            Self::Undecoded(rest) => rest.view,
            _ => ADMIN_VIEW,
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
            Self::UnknownCreate(create) => create.encoded_len(),
            Self::Undecoded(rest) => rest.encoded_len(),
        }
    }

    pub(super) fn from_json(
        json: Given<'_>,
        context: &Context<'_, '_>,
        views: &mut Inside<'_>,
    ) -> Result<Operation<'static>> {
        let mut parts = json.json().as_object().into_iter().flatten();
        let (Some((name, value)), None) = (parts.next(), parts.next()) else {
            return Err(json::expected("an object with one operation, by its name", &json));
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

    /// Makes it owned.
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

/// Whether it is a relevance notice, which has a fault of its own whoever sends it.
fn is_notice(view: u16, rest: &[u8]) -> bool {
    view == ADMIN_VIEW && rest.get(2).is_some_and(|flags| flags & COMMAND == COMMAND)
}
