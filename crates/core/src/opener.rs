//! Formats inside the fields of other formats.
//!
//! Some fields hold bytes of another format: a game object, a description of state, a nested
//! message. Which one it is, and how to read it, hangs on what the user knows: type lists, tables,
//! keys. An [`Opener`] carries that knowledge. A traced decode takes one along
//! ([`Reader::opening`](crate::Reader::opening)) and offers it every blob and text; a decode
//! without a trace knows nothing of it and pays nothing.
//!
//! A field that was opened is a record: `bytes`, as without the opener, and behind it what the
//! opener read. [`Closer`] is the way back: it makes the bytes of a field from that JSON
//! ([`Given::blob`](crate::json::Given::blob)).

use core::fmt;

use crate::json::Json;
use crate::{Reader, Result, TreeBuilder};

/// The message that a field belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subject<'s> {
    /// What stands in front of the message's name: the kind of connection, or the protocol.
    pub connection: &'s str,
    /// The message's number; KI puts the service above the lowest eight bits.
    pub number: u32,
    /// The message's name in the protocol's own spelling; empty where there is no message.
    pub name: &'s str,
}

/// A field whose bytes may be another format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site<'s> {
    /// The message it belongs to.
    pub message: Subject<'s>,
    /// Its name in the protocol's own spelling.
    pub field: &'s str,
}

/// Reads what fields hold. `'n` is how long the names live that it reports.
pub trait Opener<'n>: Closer {
    /// Whether these bytes of this field are worth opening. Called for every blob and text of a
    /// traced decode, so it should decide by the site first.
    fn opens(&self, site: Site<'_>, bytes: &[u8]) -> bool;

    /// Reads the field: `reader` is bounded to its bytes, and has to use them up. What is decrypted
    /// or inflated first is read in a [layer](Reader::layer).
    ///
    /// # Errors
    /// Whatever keeps the bytes from being read. The field is then shown as bytes, and the error
    /// becomes a [remark](crate::Tree::remarks) of the tree.
    fn open(&'n self, site: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()>;
}

/// Encodes what an [`Opener`] read.
pub trait Closer: Sync {
    /// The bytes of a field from JSON: an object with `bytes` and what the opener read, either of
    /// which may be missing. `None` when `bytes` counts.
    ///
    /// # Errors
    /// Value, when the JSON is something else, or what is needed to encode it is not known.
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
