//! A look into `STR` fields that hold more than text.

use worldwire_core::json::Json;
use worldwire_core::{Place, Reader, Result, Trace};

/// A `STR` field of a message that is being read.
#[derive(Clone, Copy, Debug)]
pub struct StrField<'n> {
    /// The protocol.
    pub service: u8,
    /// The message in it.
    pub order: u8,
    /// The place of the field among the fields on the wire, from 0.
    pub index: usize,
    /// The name.
    pub name: &'n str,
}

/// Asked for every `STR` field when somebody listens: whether something stands in its bytes that
/// is worth showing.
///
/// A field that the hook wants becomes a record: `bytes`, and behind it whatever the hook reads.
/// From JSON, `bytes` alone counts, unless the hook [fills](Self::fill) the field.
///
/// `'n` is how long the names live that it shows.
pub trait StrHook<'n> {
    /// Whether it has something to show. Nothing is the default.
    fn wants(&mut self, field: StrField<'_>, bytes: &[u8]) -> bool {
        let (_, _) = (field, bytes);
        false
    }

    /// Shows it: mostly as a [layer](Reader::layer) that begins at `start`, where the bytes of the
    /// field begin; the reader stands behind them. What it shows is forgotten when it fails.
    ///
    /// # Errors
    /// Whatever goes wrong; the message is not the worse for it.
    fn show<'d, T: Trace<'n>>(
        &mut self,
        field: StrField<'n>,
        bytes: &'d [u8],
        start: Place,
        reader: &mut Reader<'d, T>,
    ) -> Result<()> {
        let (_, _, _, _) = (field, bytes, start, reader);
        Ok(())
    }

    /// The bytes of a field that is a record in JSON, when they are to be made of what is shown
    /// beside `bytes`, which counts if the two differ. Not so is the default.
    ///
    /// # Errors
    /// Value, when the JSON is something else.
    fn fill(&mut self, field: StrField<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
        let (_, _) = (field, json);
        Ok(None)
    }
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHook;

impl StrHook<'_> for NoHook {}
