//! The receiver of everything a decoder reads.

use crate::Value;
use sealed::{Key, Scopes};

/// A place in a layer: a byte, and a bit of it for formats that do not use whole bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The byte, counted from the start of the layer.
    pub byte: u32,
    /// The bit of that byte, 0 being the least significant.
    pub bit: u8,
}

/// Receives every field's name, value and place from a [`Reader`](crate::Reader).
///
/// A decoder is written once, generic over its trace. With [`NoTrace`] it compiles to
/// plain reads, which is what servers run. With a [`TreeBuilder`](crate::TreeBuilder) the same code
/// builds a [`Tree`](crate::Tree).
///
/// Structure is reported only through scopes, which end whatever the outcome, so a decoder cannot
/// leave one open. The methods that begin and end scopes are therefore private to this crate.
///
/// Names live for `'n`: `'static` for messages that are part of a protocol, and as long as the
/// loaded definitions for layouts from data files.
pub trait Trace<'n>: Scopes<'n> {
    /// Whether anything is recorded. A decoder can skip work that only a trace needs.
    const ON: bool;

    /// A value was read.
    fn leaf(&mut self, name: &'n str, value: Value<'n>, start: Place, end: Place);

    /// A record or list ([`Value::Record`], [`Value::List`]) that begins at `start`. It contains
    /// everything that `fill` reports and ends at the place that `fill` returns.
    #[inline(always)]
    fn scope<R>(
        &mut self,
        name: &'n str,
        shape: Value<'n>,
        start: Place,
        fill: impl FnOnce(&mut Self) -> (R, Place),
    ) -> R {
        Self::scope_of(self, |trace| trace, name, shape, start, fill)
    }

    /// Like [`scope`](Self::scope), for a caller that owns the trace and fills the scope itself.
    #[inline(always)]
    fn scope_of<H: ?Sized, R>(
        holder: &mut H,
        trace: impl Fn(&mut H) -> &mut Self,
        name: &'n str,
        shape: Value<'n>,
        start: Place,
        fill: impl FnOnce(&mut H) -> (R, Place),
    ) -> R {
        trace(holder).open(Key(()), name, shape, start);
        let (value, end) = fill(holder);
        trace(holder).close(Key(()), end);
        value
    }
}

/// The methods that only this crate may call.
pub(crate) mod sealed {
    use super::Place;
    use crate::opener::Subject;
    use crate::{Error, Reader, Result, Value};

    /// Grants access to sealed methods; only this crate can construct a key.
    #[derive(Clone, Copy, Debug)]
    pub struct Key(pub(super) ());

    impl Key {
        /// The reader's key. The reader ends every scope that it begins.
        pub(crate) const fn reader() -> Self {
            Self(())
        }
    }

    /// Beginning, ending and undoing. By default, nothing is recorded.
    pub trait Scopes<'n>: Sized {
        /// A point to roll back to.
        type Mark: Default;

        /// A bound on kept nodes.
        type Bound: Default;

        /// A record or list begins.
        #[inline(always)]
        fn open(&mut self, _: Key, _name: &'n str, _shape: Value<'n>, _start: Place) {}

        /// The innermost record or list is complete.
        #[inline(always)]
        fn close(&mut self, _: Key, _end: Place) {}

        /// The following bytes are another layer, made from these bytes of the current one.
        #[inline(always)]
        fn open_layer(&mut self, _: Key, _name: &'n str, _start: Place, _end: Place) {}

        /// The innermost layer is complete; this was its data. Also called after an error in it.
        #[inline(always)]
        fn close_layer(&mut self, _: Key, _data: Vec<u8>) {}

        /// The following fields belong to this message. Returns the previous one. See
        /// [`Reader::message`].
        #[inline(always)]
        fn set_message(&mut self, _: Key, message: Subject<'n>) -> Subject<'n> {
            message
        }

        /// Whether the trace carries an [opener](crate::opener) for these bytes of a field.
        #[inline(always)]
        fn opens(&self, _: Key, _field: &str, _bytes: &[u8]) -> bool {
            false
        }

        /// Reads the contents of a field with the opener; the reader is bounded to the field's
        /// bytes.
        #[inline(always)]
        fn open_field(_: Key, _: &mut Reader<'_, Self>, _field: &str) -> Result<()> {
            Ok(())
        }

        /// A field could not be opened, for this reason.
        #[inline(always)]
        fn remark(&mut self, _: Key, _error: Error) {}

        /// Marks the current state, to return to it.
        #[inline(always)]
        fn mark(&self, _: Key) -> Self::Mark {
            Self::Mark::default()
        }

        /// Returns to a marked state and forgets everything reported since.
        #[inline(always)]
        fn rewind(&mut self, _: Key, _: Self::Mark) {}

        /// Keeps at most this many more nodes from here on. Returns the previous bound.
        #[inline(always)]
        fn bound(&mut self, _: Key, _more: u64) -> Self::Bound {
            Self::Bound::default()
        }

        /// Ends a bound. Returns whether it was exceeded.
        #[inline(always)]
        fn unbound(&mut self, _: Key, _before: Self::Bound) -> bool {
            false
        }

        /// Passes the trace to the reader of another layer.
        fn detach(&mut self, key: Key) -> Self;
    }
}

/// Records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl<'n> Trace<'n> for NoTrace {
    const ON: bool = false;

    #[inline(always)]
    fn leaf(&mut self, _: &'n str, _: Value<'n>, _: Place, _: Place) {}
}

impl<'n> Scopes<'n> for NoTrace {
    type Mark = ();
    type Bound = ();

    #[inline(always)]
    fn detach(&mut self, _: Key) -> Self {
        Self
    }
}
