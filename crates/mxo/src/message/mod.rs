//! Object sections: MPM ID 3 in the game's datagrams.
//!
//! ```text
//! 03 { viewId:u16 data }* 00 00
//! ```
//!
//! A section is a list of [`Operation`]s: creates and deletes by the AdminView (view 1), and
//! [`Update`]s of existing views. Operations have no length: an update can be read only with the
//! class of its view, and a create only with the class of its goobj. [`Context`] provides both.
//!
//! Integers are little-endian. Anything after the section in its datagram stays in the reader.
//!
//! ```
//! use worldwire_core::{Reader, Tree, Writer, text};
//! use worldwire_mxo::message::{Context, NoViews, Section};
//! use worldwire_mxo::schema::Objects;
//!
//! let objects = Objects::built_in();
//! let context = Context::server(&objects, &NoViews);
//! let bytes = [3, 1, 0, 1, 1, 0, 0x69, 0, 0, 0];
//! let mut reader = Reader::traced("section", &bytes, Tree::new());
//! let section = Section::decode(&mut reader, &context)?;
//! let mut shown = String::new();
//! text::write_tree(&reader.finish(), text::TextStyle::default(), &mut shown);
//! assert!(shown.contains("delete"));
//!
//! let mut writer = Writer::new();
//! section.encode(&objects, context.from, &mut writer)?;
//! assert_eq!(writer.as_bytes(), bytes);
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod admin;
mod create;
mod fault;
mod movement;
mod oddity;
mod operation;
mod properties;
mod script;
mod section;
mod unknown;
mod update;
mod views;

use worldwire_core::json::{self, FieldsOf, Json};
use worldwire_core::{Error, Field, Result};

pub use admin::{Delete, PendingUpdate};
pub use create::{Create, CreateHead};
pub use fault::Fault;
pub use movement::{Animation, Movement};
pub use oddity::Oddity;
pub use operation::Operation;
pub use properties::{Properties, Property};
pub use script::Script;
pub use section::{MAX_OPERATIONS, MPM_ID, Section, SectionWriter};
pub use unknown::{Undecoded, UnknownCreate};
pub use update::Update;
pub use views::{ADMIN_VIEW, Context, END, FIRST_VIEW, NoViews, OWN_VIEW, Rules, Viewed, Views};

use crate::schema::{Class, ClassId, Objects};
use update::agrees;

/// A class by name. If the class is already known, the name must match.
fn class_from_json(json: &Json, known: Option<ClassId>, objects: &Objects) -> Result<ClassId> {
    let unnamed = || json::expected("the name of a class", json).inside("class");
    let name = json.as_str().ok_or_else(unnamed)?;
    let (class, _) = objects.class_named(name).ok_or_else(unnamed)?;
    match known.filter(|known| *known != class).and_then(|known| objects.class(known)) {
        None => Ok(class),
        Some(known) => {
            let wanted = format!("{}, the known class", known.name());
            let error = Error::value(wanted, name.to_owned()).inside("class");
            Err(error.hint("omit it to have it filled in"))
        }
    }
}

/// Explains an error that a wrong class may have caused: adds the class and where it comes from.
#[cold]
fn misfit(error: Error, subject: &str, class: &Class) -> Error {
    let file = class.file().map_or(String::new(), |file| format!(" ({file})"));
    error.hint(format!("{subject} is read as class {}{file}", class.name()))
}

/// A field that may be missing.
fn optional<F>(fields: &mut FieldsOf<'_>, name: &'static str) -> Result<Option<F>>
where
    F: for<'a> Field<'a>,
{
    let value = fields.given_optional(name).map(F::from_json).transpose();
    value.map_err(|error| error.inside(name))
}

/// Whether a class is a guess, if the fields say so.
fn guess(fields: &mut FieldsOf<'_>) -> Result<Option<bool>> {
    let Some(json) = fields.take_optional("guess") else { return Ok(None) };
    let guess = json.as_bool().ok_or_else(|| json::expected("true or false", json));
    guess.map(Some).map_err(|error| error.inside("guess"))
}
