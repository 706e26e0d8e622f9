//! What dissection needs to know about a message, whatever its family.

use core::any::Any;
use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;

use worldwire_core::json::Json;
use worldwire_core::{Limits, Result, Side, Tree};

use crate::editor::FieldEditor;
use crate::info::InfoFields;
use crate::line::Line;

/// A message of any family.
///
/// It borrows everything needed to decode it: the connection's buffer, keys and definitions.
pub trait Message: fmt::Debug {
    /// Appends the dotted name: `auth.AcctLoginRequest`. The message's number replaces an unknown
    /// name.
    fn push_name(&self, name: &mut String);

    /// Appends the names of the messages inside this one, outermost first, each preceded by a
    /// space. Only messages whose own name says little have any. Must be cheap, and the number of
    /// distinct results must be bounded.
    fn push_inside(&self, inside: &mut String) {
        let _ = inside;
    }

    /// Appends the number that notes use for this message, preceded by a space, if a brief line
    /// would not show it otherwise.
    fn push_number(&self, text: &mut String) {
        let _ = text;
    }

    /// The plain bytes.
    fn bytes(&self) -> &[u8];

    /// The part of the bytes that [`encode`](Self::encode) produces and a relay takes: all of them,
    /// unless the message has a frame around it.
    fn body(&self) -> &[u8] {
        self.bytes()
    }

    /// Whether this is a message rather than a step of connection setup.
    fn is_message(&self) -> bool;

    /// Whether the message decodes without an error, as [`tree`](Self::tree) would find. Called for
    /// every message whose tree is not needed, so it must be faster than building the tree.
    fn is_whole(&self) -> bool;

    /// Whether the message may have fields with contents in another format, so that only its tree
    /// shows whether these can be read.
    fn has_contents(&self) -> bool {
        false
    }

    /// Whether any field with contents in another format is shown as bytes because the contents do
    /// not fit that format. A missing description is not such a fault.
    fn has_opaque_fields(&self, tree: &Tree<'_>) -> bool {
        !tree.remarks().is_empty() && self.advice().is_none()
    }

    /// The message's tree, built in the memory of `tree`. Offsets count from the start of the
    /// sender's stream.
    fn tree<'t>(&'t self, tree: Tree<'t>, limits: &'t Limits) -> Tree<'t> {
        self.tree_of(self.body(), tree, limits)
    }

    /// The tree that the message would have with another [body](Self::body), such as the one that
    /// [`encode`](Self::encode) returned for changed fields.
    fn tree_of<'t>(&'t self, body: &'t [u8], tree: Tree<'t>, limits: &'t Limits) -> Tree<'t>;

    /// Encodes the fields given to [`Item::encode`](crate::Item::encode), with the definitions that [`tree`](Self::tree)
    /// uses.
    ///
    /// # Errors
    /// `Value` if the fields do not fit, or if this kind of piece cannot be encoded.
    fn encode(&self, fields: &Json) -> Result<Vec<u8>>;

    /// An editor of single fields of the message with this [body](Self::body). `None` if the family
    /// has none or the message is unsuitable.
    fn editor<'m>(&'m self, body: &[u8]) -> Option<Box<dyn FieldEditor + 'm>> {
        let _ = body;
        None
    }

    /// Encodes other messages of the conversation, for the build that the conversation has revealed. `None`
    /// if [`Line::encode`] needs only the definitions.
    fn line_encoder(&self) -> Option<Arc<dyn LineEncoder>> {
        None
    }

    /// The meaning of numbers in the fields, as far as the capture has revealed it; `None` if it
    /// has revealed nothing.
    fn number_names(&self) -> Option<&dyn NumberNames> {
        None
    }

    /// The fields that a brief line shows, given the message's name; see [`Item::push_info`](crate::Item::push_info).
    fn info_fields(&self, name: &str) -> InfoFields {
        let _ = name;
        InfoFields::default()
    }

    /// The number by which a reply refers to its request, if the message has one. Must be cheap.
    fn transaction(&self) -> Option<u64> {
        None
    }

    /// How to decode a part that is shown as bytes. Continues "2 messages" or "this is a message":
    /// `shown as bytes: supply ... with --data`.
    fn advice(&self) -> Option<Cow<'static, str>> {
        None
    }

    /// Whether the message is shown as bytes because the user gave no definition of it, in any
    /// version.
    fn lacks_definition(&self) -> bool {
        false
    }

    /// Appends the extra members that encoding needs in a line of JSON, besides name and fields:
    /// `,"version":3`.
    fn push_members(&self, line: &mut String) {
        let _ = line;
    }

    /// Data that only programs aware of the family can use, such as TERA's `Arc<Packets>`.
    fn knowledge(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}

/// Encodes and decodes messages of one conversation; see [`Message::line_encoder`].
pub trait LineEncoder: Send + Sync {
    /// Encodes a message given as a line of JSON.
    ///
    /// # Errors
    /// Those of [`Line::encode`].
    fn encode_line(&self, line: &Line<'_>) -> Result<Vec<u8>>;

    /// The tree of an encoded message with this sender and name, built in the memory of `tree`.
    fn tree_of<'t>(
        &'t self,
        sent: (Side, &str),
        body: &'t [u8],
        tree: Tree<'t>,
        limits: &'t Limits,
    ) -> Tree<'t>;
}

/// The meaning of numbers in message fields, such as the names of players. Output shows it beside
/// the number, never in its place.
pub trait NumberNames {
    /// The key of the names in JSON: `players`.
    fn key(&self) -> &'static str;

    /// The name for a number in a field, or in a list of that name.
    fn name(&self, field: &str, number: u64) -> Option<&str>;
}
