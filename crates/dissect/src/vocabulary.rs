//! The names that a family uses, for filters, completion and help.

use core::fmt;

use worldwire_core::{FieldInfo, Names};

use crate::knowledge::Definitions;

/// The names of a family's messages, fields, values and types, and advice on missing ones.
///
/// Conversations can be read without any of this. Filters are checked against it, shell completion
/// uses it, and `worldwire codecs` prints it.
pub trait Vocabulary: fmt::Debug + Sync {
    /// Every message with the names of its fields.
    fn messages<'d>(&self, definitions: &'d Definitions) -> Vec<MessageNames<'d>> {
        let _ = definitions;
        Vec::new()
    }

    /// The fields whose values have names.
    fn values<'d>(&self, definitions: &'d Definitions) -> Vec<ValueNames<'d>> {
        let _ = definitions;
        Vec::new()
    }

    /// The path to a nested field, for users who look for it at the top level. If several fields
    /// have that name, any one of their paths.
    fn path_to(&self, field: &str, definitions: &Definitions) -> Option<String> {
        let _ = (field, definitions);
        None
    }

    /// The names of messages inside others, which
    /// [`Message::push_inside`](crate::Message::push_inside) appends.
    fn inside(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The kinds of values that fields hold, for names whose fields all hold the same kind. A
    /// comparison with anything else can never match, so it is an error.
    fn kinds<'d>(&self, definitions: &'d Definitions) -> Vec<(&'d str, ValueKind)> {
        let _ = definitions;
        Vec::new()
    }

    /// Fields that are records with their value in an inner field, each with the name of the inner
    /// field.
    fn holders<'d>(&self, definitions: &'d Definitions) -> Vec<(&'d str, &'static str)> {
        let _ = definitions;
        Vec::new()
    }

    /// All fields that the records of [`holders`](Self::holders) can have.
    fn holder_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// The tags of a class of objects and of all classes derived from it; `None` if the class is
    /// unknown.
    fn derived(&self, class: &str, definitions: &Definitions) -> Option<Vec<i64>> {
        let _ = (class, definitions);
        None
    }

    /// The names of all classes of objects, and of those that they are derived from.
    fn object_classes<'d>(&self, definitions: &'d Definitions) -> Vec<&'d str> {
        let _ = definitions;
        Vec::new()
    }

    /// The types whose values have names, by the name that layouts use.
    fn named_types(&self) -> &'static [(&'static str, &'static Names)] {
        &[]
    }

    /// The text that clients show to users for a value of a named type.
    fn value_text(&self, type_name: &str, value: i64) -> Option<&'static str> {
        let _ = (type_name, value);
        None
    }

    /// The structures inside messages with their fields, by the name that layouts use.
    fn records(&self) -> Vec<(&'static str, Vec<FieldInfo>)> {
        Vec::new()
    }

    /// The fields of a codec that has no table of messages.
    fn layout(&self, codec: &str) -> Vec<FieldInfo> {
        let _ = codec;
        Vec::new()
    }

    /// The classes of objects that one of the family's codecs reads. Most codecs have none.
    fn classes(&self, codec: &str) -> Vec<ClassRow> {
        let _ = codec;
        Vec::new()
    }

    /// How to define a message that is unknown, such as `supply ... with --data`. `None` unless the
    /// name looks like one of the family's and the user gave no definitions.
    fn advice_on(&self, name: &str, definitions: &Definitions) -> Option<&'static str> {
        let _ = (name, definitions);
        None
    }

    /// How to get names for nameless messages, as `doctor` prints it: `supply ... with --data`.
    fn advice(&self) -> Option<&'static str> {
        None
    }
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A number whose values are not named. Output may still show a name beside it, such as a
    /// player's.
    Number,
    /// Text.
    Text,
}

/// The kinds of fields, given the kind of each occurrence. Only names whose occurrences all have
/// the same kind are included. `None` stands for any other kind.
#[cfg(any(feature = "ki", feature = "tera", feature = "uru"))]
pub(crate) fn common_kinds<'d>(
    fields: impl IntoIterator<Item = (&'d str, Option<ValueKind>)>,
) -> Vec<(&'d str, ValueKind)> {
    let mut kinds = std::collections::BTreeMap::new();
    for (field, kind) in fields {
        kinds
            .entry(field)
            .and_modify(|known| *known = kind.filter(|_| kind == *known))
            .or_insert(kind);
    }
    kinds.into_iter().filter_map(|(field, kind)| Some((field, kind?))).collect()
}

/// The names of a message and of its fields.
#[derive(Clone, Debug)]
pub struct MessageNames<'d> {
    /// The dotted name.
    pub name: String,
    /// The message's own fields.
    pub fields: Vec<&'d str>,
    /// Fields that can be nested in them.
    pub inner: Vec<&'d str>,
    /// Whether the message can have no other fields.
    pub is_complete: bool,
}

/// The names that the values of a field have: those of an enumeration or of flags.
#[derive(Clone, Debug)]
pub struct ValueNames<'d> {
    /// The field, with its parent if that distinguishes it: `system.name`.
    pub field: &'d str,
    /// The prefix of the names of the messages with this field; empty if all messages can have it.
    pub prefix: &'static str,
    /// The names.
    pub names: Vec<&'d str>,
    /// Whether every field of that name, in any of these messages, has values of this kind.
    pub is_only: bool,
}

/// A class of objects that a codec reads, as `worldwire codecs` describes it.
#[derive(Clone, Debug)]
pub struct ClassRow {
    /// The index on the wire.
    pub class: u32,
    /// The name in the protocol's own spelling.
    pub name: &'static str,
    /// The class it derives from.
    pub parent: &'static str,
    /// The sender: `client`, `server` or `both`; empty if unknown or never sent.
    pub sender: &'static str,
    /// A qualification: `abstract`, `unused` or `layout unknown`; usually empty.
    pub status: &'static str,
    /// Its purpose.
    pub doc: &'static str,
    /// Its fields; `None` if the layout is unknown.
    pub fields: Option<fn() -> Vec<FieldInfo>>,
}
