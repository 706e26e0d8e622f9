//! The single declaration of each message.

mod classes;
mod record;
mod table;

use core::fmt;
use std::borrow::Cow;

use crate::json::{FieldsOf, Given};
use crate::{Error, Field, Names, Reader, Result, Sampler, Shape, Side, Trace, Writer};

pub use classes::{ClassInfo, Classes, OtherClass};
#[doc(hidden)]
pub use record::{decode_optional, encode_optional};

/// A struct whose fields follow each other on the wire: declared with [`record!`](crate::record) or
/// [`messages!`](crate::messages).
pub trait Record<'d>: Field<'d> {
    /// The name in the protocol's own spelling.
    const NAME: &'static str;

    /// The fields, as documentation and `codecs` show them.
    fn fields() -> Vec<FieldInfo>;

    /// Reads the fields into the current scope.
    fn decode_fields<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self>;

    /// Writes the fields.
    fn encode_fields(&self, writer: &mut Writer) -> Result<()>;

    /// Reads the fields from JSON, which may contain other fields too.
    fn from_fields(fields: &mut FieldsOf<'_>) -> Result<Self>;
}

/// The messages that one side sends on one kind of connection: an enum declared with
/// [`messages!`](crate::messages).
pub trait Messages<'d>: Sized + Clone + PartialEq + fmt::Debug {
    /// The same messages, owned.
    type Owned: 'static;

    /// The kind of connection, which is the prefix of the names: `auth`.
    const CONNECTION: &'static str;

    /// Who sends them.
    const SENDER: Side;

    /// All messages in the order of their numbers.
    const INFO: &'static [MessageInfo];

    /// The names of all numbers.
    const NAMES: &'static Names;

    /// Numbers that have a name but no known layout.
    const RESERVED: &'static [(u32, &'static str)];

    /// Reads the fields of the message with this number into the current scope.
    ///
    /// # Errors
    /// `Malformed` for a number that is not in the table; otherwise those of the fields.
    fn decode_body<'n, T: Trace<'n>>(number: u32, reader: &mut Reader<'d, T>) -> Result<Self>;

    /// Writes the fields.
    fn encode_body(&self, writer: &mut Writer) -> Result<()>;

    /// Reads the message of this name from the JSON of its fields.
    fn from_json<'j>(name: &str, fields: impl Into<Given<'j>>) -> Result<Self>;

    /// Generates the message with this number; `None` if there is none.
    fn sample(number: u32, sampler: &mut Sampler) -> Option<Self>;

    /// The number on the wire.
    fn number(&self) -> u32;

    /// The name in the protocol's own spelling.
    fn name(&self) -> &'static str;

    /// Copies borrowed bytes, so that the message is owned.
    fn into_owned(self) -> Self::Owned;

    /// The table row of a number.
    #[must_use]
    fn info(number: u32) -> Option<&'static MessageInfo> {
        Self::INFO.iter().find(|info| info.number == number)
    }

    /// The error for a number that is not in the table.
    #[cold]
    #[must_use]
    fn unknown_number(number: u32) -> Error {
        let reserved = Self::RESERVED.iter().find(|(reserved, _)| *reserved == number);
        let found = match reserved {
            Some((_, name)) => {
                format!("{number} ({name}), which is reserved: its layout is unknown")
            }
            None => number.to_string(),
        };
        Error::malformed(format!("the number of a {} message", Self::SENDER), found)
    }

    /// The error for a name that is not in the table.
    #[cold]
    #[must_use]
    fn unknown_name(name: &str) -> Error {
        let wanted =
            format!("a message that a {} sends on {} connections", Self::SENDER, Self::CONNECTION);
        let error = Error::value(wanted, format!("\"{name}\""));
        match crate::nearest(name, Self::INFO.iter().map(|info| info.name)) {
            Some(near) => error.hint(format!("did you mean \"{near}\"?")),
            None => error,
        }
    }
}

/// A row of a message table.
#[derive(Clone, Copy, Debug)]
pub struct MessageInfo {
    /// The number on the wire.
    pub number: u32,
    /// The name in the protocol's own spelling.
    pub name: &'static str,
    /// Who sends the message.
    pub sender: Side,
    /// Its purpose.
    pub doc: &'static str,
    /// Its fields.
    pub fields: fn() -> Vec<FieldInfo>,
}

/// A field of a message table.
#[derive(Clone, Debug)]
pub struct FieldInfo {
    /// The name in the protocol's own spelling.
    pub name: &'static str,
    /// The layout: `u32`, `str(64)`.
    pub layout: Cow<'static, str>,
    /// The layout as data.
    pub shape: Shape,
    /// Its purpose; may be empty where the name says it all.
    pub doc: &'static str,
}

impl FieldInfo {
    /// A field of this type.
    #[must_use]
    pub fn of<'d, F: Field<'d>>(name: &'static str, doc: &'static str) -> Self {
        Self { name, layout: F::layout(), shape: F::shape(), doc }
    }

    /// A field whose layout is described only in words.
    #[must_use]
    pub fn in_words(
        name: &'static str,
        layout: impl Into<Cow<'static, str>>,
        doc: &'static str,
    ) -> Self {
        Self { name, layout: layout.into(), shape: Shape::Opaque, doc }
    }
}
