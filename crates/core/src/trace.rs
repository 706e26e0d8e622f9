//! Who listens while a decoder reads.

use crate::opener::Subject;
use crate::{Reader, Result, Value};

/// A place in a layer: a byte, and a bit in it for formats that are not made of whole bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The byte, counted from the start of the layer.
    pub byte: u32,
    /// The bit of that byte, 0 being the least significant.
    pub bit: u8,
}

/// Listens to a [`Reader`](crate::Reader) and learns every field's name, value and place.
///
/// A decoder is written once, generic over its trace. With [`NoTrace`] all of this compiles to
/// nothing and plain reads remain: that is what servers run. With a
/// [`TreeBuilder`](crate::TreeBuilder) the very same code yields a [`Tree`](crate::Tree).
///
/// `'n` is how long the names live: static ones for messages that are part of a protocol, as long
/// as the loaded definitions for layouts that come from data files.
pub trait Trace<'n>: Sized {
    /// Whether anybody listens: lets a decoder skip work that only a listener needs.
    const ON: bool;

    /// A place to go back to.
    type Mark;

    /// A value was read.
    fn leaf(&mut self, name: &'n str, value: Value<'n>, start: Place, end: Place);

    /// A record or list begins ([`Value::Record`] or [`Value::List`]).
    fn open(&mut self, name: &'n str, shape: Value<'n>, start: Place);

    /// The record or list opened last is complete.
    fn close(&mut self, end: Place);

    /// The bytes that follow are another layer, made from these bytes of the present one.
    fn open_layer(&mut self, name: &'n str, start: Place, end: Place);

    /// The layer opened last is complete; this was its data. Also called when decoding it failed.
    fn close_layer(&mut self, data: Vec<u8>);

    /// The fields that follow belong to this message; returns the one before. See
    /// [`Reader::message`].
    fn set_message(&mut self, message: Subject<'n>) -> Subject<'n>;

    /// Whether the trace carries an [opener](crate::opener) for these bytes of a field.
    fn opens(&self, field: &str, bytes: &[u8]) -> bool;

    /// Reads what a field holds with the opener; the reader is bounded to the field's bytes.
    ///
    /// # Errors
    /// Those of the opener.
    fn open_field(reader: &mut Reader<'_, Self>, field: &str) -> Result<()>;

    /// A field could not be opened, for this reason.
    fn remark(&mut self, error: crate::Error);

    /// Remembers how far it has come...
    fn mark(&self) -> Self::Mark;

    /// ...and forgets everything since.
    fn rewind(&mut self, mark: Self::Mark);

    /// Hands the listener over to the reader of another layer; it comes back with
    /// [`Reader::into_trace`](crate::Reader::into_trace).
    fn detach(&mut self) -> Self;
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl<'n> Trace<'n> for NoTrace {
    const ON: bool = false;
    type Mark = ();

    #[inline(always)]
    fn leaf(&mut self, _: &'n str, _: Value<'n>, _: Place, _: Place) {}

    #[inline(always)]
    fn open(&mut self, _: &'n str, _: Value<'n>, _: Place) {}

    #[inline(always)]
    fn close(&mut self, _: Place) {}

    #[inline(always)]
    fn open_layer(&mut self, _: &'n str, _: Place, _: Place) {}

    #[inline(always)]
    fn close_layer(&mut self, _: Vec<u8>) {}

    #[inline(always)]
    fn set_message(&mut self, message: Subject<'n>) -> Subject<'n> {
        message
    }

    #[inline(always)]
    fn opens(&self, _: &str, _: &[u8]) -> bool {
        false
    }

    #[inline(always)]
    fn open_field(_: &mut Reader<'_, Self>, _: &str) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn remark(&mut self, _: crate::Error) {}

    #[inline(always)]
    fn mark(&self) {}

    #[inline(always)]
    fn rewind(&mut self, (): ()) {}

    #[inline(always)]
    fn detach(&mut self) -> Self {
        Self
    }
}
