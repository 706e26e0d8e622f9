//! Formats inside the fields of other formats.
//!
//! Some fields hold bytes in another format: a game object, a description of state, a nested
//! message. Which format it is and how to read it depend on the user's data: type lists, tables,
//! keys. An [`Opener`] holds this data. A traced decode can carry one
//! ([`Reader::opening`](crate::Reader::opening)) and offers it every blob and text. A decode
//! without a trace has no opener and does no extra work.
//!
//! An opened field is a record: `bytes`, as without the opener, followed by the opener's own
//! fields. [`Closer`] is the inverse: it encodes the bytes of a field from that JSON
//! ([`Given::blob`](crate::json::Given::blob)).

use core::fmt;

use crate::json::Json;
use crate::{Reader, Result, Side, TreeBuilder};

/// The message that a field belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subject<'s> {
    /// The prefix of the message's name: the kind of connection, or the protocol.
    pub connection: &'s str,
    /// The message's number; KI puts the service above the lowest eight bits.
    pub number: u32,
    /// The message's name in the protocol's own spelling; empty outside messages.
    pub name: &'s str,
    /// Who sends the message, if its table lists the messages of one side.
    pub sender: Option<Side>,
}

/// A field whose bytes may be in another format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site<'s> {
    /// The message it belongs to.
    pub message: Subject<'s>,
    /// Its name in the protocol's own spelling.
    pub field: &'s str,
}

/// Reads the formats inside fields. The names it reports live for `'n`.
pub trait Opener<'n>: Closer {
    /// Whether to open these bytes of this field. Called for every blob and text of a traced
    /// decode, so it should check the site first.
    fn opens(&self, site: Site<'_>, bytes: &[u8]) -> bool;

    /// Reads the field. `reader` is bounded to its bytes and must consume all of them. Decrypted or
    /// inflated bytes are read in a [layer](Reader::layer).
    ///
    /// # Errors
    /// Any error of the format. The field is then shown as bytes, and the error becomes a
    /// [remark](crate::Tree::remarks) of the tree.
    fn open(&'n self, site: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()>;
}

/// Encodes the fields that an [`Opener`] read.
pub trait Closer: Sync {
    /// The bytes of a field from JSON: an object with `bytes` and the opener's fields, either of
    /// which may be missing. `None` if `bytes` is to be used.
    ///
    /// # Errors
    /// `Value` if the JSON is something else, or the data needed to encode it is missing.
    fn close(&self, site: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>>;
}

/// An opener in a struct that derives `Debug`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Carried<'n>(pub(crate) Option<&'n dyn Opener<'n>>);

impl fmt::Debug for Carried<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Opener" } else { "None" })
    }
}
