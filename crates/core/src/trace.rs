//! Who listens while a decoder reads.

use crate::opener::Subject;
use crate::{Error, Reader, Result, Value};
use sealed::{Key, Scopes};

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
/// Structure is reported through scopes only, which end whatever the outcome: a decoder cannot leave
/// one open. So nobody outside of this crate can call what begins and ends them.
///
/// `'n` is how long the names live: static ones for messages that are part of a protocol, as long
/// as the loaded definitions for layouts that come from data files.
pub trait Trace<'n>: Scopes<'n> {
    /// Whether anything is recorded: lets a decoder skip work that only a trace needs.
    const ON: bool;

    /// A value was read.
    fn leaf(&mut self, name: &'n str, value: Value<'n>, start: Place, end: Place);

    /// A record or list ([`Value::Record`], [`Value::List`]) that begins at `start`. What `fill`
    /// reports is in it; `fill` also says where it ends.
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

    /// The same for whoever holds a trace and is needed to fill the scope.
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

/// What only this crate may call.
pub(crate) mod sealed {
    use super::Place;
    use crate::opener::Subject;
    use crate::{Error, Reader, Result, Value};

    /// Opens what is sealed; nobody outside can make one.
    #[derive(Clone, Copy, Debug)]
    pub struct Key(pub(super) ());

    impl Key {
        /// For the reader, which ends what it begins.
        pub(crate) const fn reader() -> Self {
            Self(())
        }
    }

    /// What begins, ends, and is taken back.
    pub trait Scopes<'n>: Sized {
        /// A place to go back to.
        type Mark;

        /// How much may be kept.
        type Bound;

        /// A record or list begins.
        fn open(&mut self, key: Key, name: &'n str, shape: Value<'n>, start: Place);

        /// The record or list opened last is complete.
        fn close(&mut self, key: Key, end: Place);

        /// The bytes that follow are another layer, made from these bytes of the present one.
        fn open_layer(&mut self, key: Key, name: &'n str, start: Place, end: Place);

        /// The layer opened last is complete; this was its data. Also called when decoding it
        /// failed.
        fn close_layer(&mut self, key: Key, data: Vec<u8>);

        /// The fields that follow belong to this message; returns the one before. See
        /// [`Reader::message`].
        fn set_message(&mut self, key: Key, message: Subject<'n>) -> Subject<'n>;

        /// Whether the trace carries an [opener](crate::opener) for these bytes of a field.
        fn opens(&self, key: Key, field: &str, bytes: &[u8]) -> bool;

        /// Reads what a field holds with the opener; the reader is bounded to the field's bytes.
        ///
        /// # Errors
        /// Those of the opener.
        fn open_field(key: Key, reader: &mut Reader<'_, Self>, field: &str) -> Result<()>;

        /// A field could not be opened, for this reason.
        fn remark(&mut self, key: Key, error: Error);

        /// Remembers how far it has come...
        fn mark(&self, key: Key) -> Self::Mark;

        /// ...and forgets everything since.
        fn rewind(&mut self, key: Key, mark: Self::Mark);

        /// From here on, only so many nodes more are kept; returns what held before.
        fn bound(&mut self, key: Key, more: u64) -> Self::Bound;

        /// Ends a bound; says whether more would have been kept without it.
        fn unbound(&mut self, key: Key, before: Self::Bound) -> bool;

        /// Hands the trace over to the reader of another layer.
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
    fn open(&mut self, _: Key, _: &'n str, _: Value<'n>, _: Place) {}

    #[inline(always)]
    fn close(&mut self, _: Key, _: Place) {}

    #[inline(always)]
    fn open_layer(&mut self, _: Key, _: &'n str, _: Place, _: Place) {}

    #[inline(always)]
    fn close_layer(&mut self, _: Key, _: Vec<u8>) {}

    #[inline(always)]
    fn set_message(&mut self, _: Key, message: Subject<'n>) -> Subject<'n> {
        message
    }

    #[inline(always)]
    fn opens(&self, _: Key, _: &str, _: &[u8]) -> bool {
        false
    }

    #[inline(always)]
    fn open_field(_: Key, _: &mut Reader<'_, Self>, _: &str) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn remark(&mut self, _: Key, _: Error) {}

    #[inline(always)]
    fn mark(&self, _: Key) {}

    #[inline(always)]
    fn rewind(&mut self, _: Key, (): ()) {}

    #[inline(always)]
    fn bound(&mut self, _: Key, _: u64) {}

    #[inline(always)]
    fn unbound(&mut self, _: Key, (): ()) -> bool {
        false
    }

    #[inline(always)]
    fn detach(&mut self, _: Key) -> Self {
        Self
    }
}
