//! Scopes: records, lists, parts, layers.

use super::Reader;
use crate::opener::Subject;
use crate::trace::sealed::Key;
use crate::{Error, Form, Place, Result, Trace, Value};

impl<'d, 'n, T: Trace<'n>> Reader<'d, T> {
    /// A record. `read` reads its fields.
    #[inline]
    pub fn record<R>(
        &mut self,
        name: &'n str,
        read: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        self.scope(name, Value::Record, read)
    }

    /// A list. `read` reads its elements; see [`Reader::item`].
    #[inline]
    pub fn list<R>(
        &mut self,
        name: &'n str,
        read: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        self.scope(name, Value::List, read)
    }

    /// An element of a list: `read` reads one value, without a name. Adds the index to errors.
    #[inline]
    pub fn item<R>(
        &mut self,
        index: usize,
        read: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        read(self).map_err(|error| error.inside_item(index))
    }

    #[inline]
    fn scope<R>(
        &mut self,
        name: &'n str,
        shape: Value<'n>,
        read: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        let start = self.place_if_on();
        self.scope_from(name, shape, start, read)
    }

    /// A record or list ([`Value::Record`], [`Value::List`]) that began earlier, for example with
    /// its count.
    #[inline]
    pub fn scope_from<R>(
        &mut self,
        name: &'n str,
        shape: Value<'n>,
        start: Place,
        read: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        if self.depth >= self.limits.depth {
            return Err(self.too_deep().inside(name));
        }
        self.depth += 1;
        let fill = |reader: &mut Self| {
            let outcome = read(reader);
            (outcome, reader.place_if_on())
        };
        let outcome = T::scope_of(self, |reader| &mut reader.trace, name, shape, start, fill);
        self.depth -= 1;
        outcome.map_err(|error| error.inside(name))
    }

    /// The fields of a message. An [opener](crate::opener) learns that they belong to it.
    #[inline]
    pub fn message<R>(
        &mut self,
        message: Subject<'n>,
        read: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        if !T::ON {
            return read(self);
        }
        let before = self.trace.set_message(Key::reader(), message);
        let outcome = read(self);
        self.trace.set_message(Key::reader(), before);
        outcome
    }

    /// Reads a field of `length` bytes that began at `start`, with its count. If the trace's
    /// [opener](crate::opener) knows the contents, the field is a record: `bytes`, followed by the
    /// opener's fields.
    #[inline]
    pub fn blob(
        &mut self,
        name: &'n str,
        start: Place,
        length: usize,
        form: Form,
    ) -> Result<&'d [u8]> {
        if T::ON
            && let Some(bytes) = self.rest.get(..length)
            && self.trace.opens(Key::reader(), name, bytes)
        {
            return self.opened(name, start, bytes, form);
        }
        let bytes = self.take(length).map_err(|error| error.inside(name))?;
        let span = self.span_behind(form, length);
        self.leaf_from(name, start, span);
        Ok(bytes)
    }

    /// Opens a field like a [blob](Self::blob) whose bytes begin `distance` bytes after the cursor,
    /// which does not move. Returns false and reports nothing if the trace has no opener for it.
    #[inline]
    pub fn open_ahead(
        &mut self,
        name: &'n str,
        distance: usize,
        bytes: &'d [u8],
        form: Form,
    ) -> bool {
        T::ON
            && self.trace.opens(Key::reader(), name, bytes)
            && self.opened_ahead(name, distance, bytes, form)
    }

    /// Like [`open_ahead`](Self::open_ahead), but also returns false if there is no room for the
    /// contents.
    #[cold]
    fn opened_ahead(
        &mut self,
        name: &'n str,
        distance: usize,
        bytes: &'d [u8],
        form: Form,
    ) -> bool {
        let Self { rest, end, partial, partial_bits, .. } = *self;
        let outcome = self.attempt(|reader| {
            reader.take(distance)?;
            let start = reader.place();
            reader.opened(name, start, bytes, form)
        });
        (self.rest, self.end) = (rest, end);
        (self.partial, self.partial_bits) = (partial, partial_bits);
        outcome.is_ok()
    }

    #[cold]
    fn opened(
        &mut self,
        name: &'n str,
        start: Place,
        bytes: &'d [u8],
        form: Form,
    ) -> Result<&'d [u8]> {
        self.scope_from(name, Value::Record, start, |reader| {
            let behind = reader.place().byte + super::narrow(bytes.len());
            let first = reader.place().byte;
            let span = crate::Span { form, start: first, length: behind - first };
            let end = Place { byte: behind, bit: 0 };
            reader.trace.leaf("bytes", Value::Span(span), start, end);
            let outcome = reader.attempt(|reader| {
                reader.part(bytes.len(), |r| T::open_field(Key::reader(), r, name))
            });
            if let Err(error) = outcome {
                reader.trace.remark(Key::reader(), error.inside(name));
                reader.take(bytes.len())?;
            }
            Ok(bytes)
        })
    }

    /// Records why something is shown as bytes although its format is known: a
    /// [remark](crate::Tree::remarks) of the tree. Does nothing without a trace.
    #[cold]
    pub fn remark(&mut self, error: Error) {
        self.trace.remark(Key::reader(), error);
    }

    #[cold]
    fn too_deep(&self) -> Error {
        let limit = u64::from(self.limits.depth);
        self.place_error(Error::limit("depth", limit, limit + 1))
    }

    /// A part of exactly `length` bytes. It is an error if `read` leaves some of them or reads past
    /// their end.
    ///
    /// # Errors
    /// `Incomplete` if the part itself is incomplete; otherwise those of `read`, and `Malformed`
    /// for remaining bytes.
    #[inline]
    pub fn part<R>(
        &mut self,
        length: usize,
        read: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        self.part_with_rest(length, |reader| {
            let value = read(reader)?;
            reader.end()?;
            Ok(value)
        })
    }

    /// A part of exactly `length` bytes. Bytes that `read` leaves are skipped.
    #[inline]
    pub fn part_with_rest<R>(
        &mut self,
        length: usize,
        read: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        let Some((inside, behind)) = self.rest.split_at_checked(length) else {
            return Err(self.short(length));
        };
        let end = self.end;
        self.end = self.position() + length;
        self.rest = inside;
        self.partial_bits = 0;
        // The part is complete, so nothing in it can be incomplete.
        let outcome = read(self).map_err(Error::closed);
        self.partial_bits = 0;
        self.end = end;
        self.rest = behind;
        outcome
    }

    /// A part of exactly `bits` bits that begins at the next whole byte. Bits that `read` leaves
    /// are skipped: whatever the outcome, the cursor ends at the bit after the part. Reads may
    /// extend to the end of the last byte; check [`Reader::place`] where that matters.
    #[inline]
    pub fn part_bits<R>(
        &mut self,
        bits: u64,
        read: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        let length = usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX);
        let last = length.checked_sub(1).and_then(|last| self.rest.get(last)).copied();
        let outcome = self.part_with_rest(length, read);
        // The number of bits of the last byte that belong to it; 0 for all of them.
        let used = bits % 8;
        if let Some(last) = last.filter(|_| used != 0) {
            self.partial = last >> used;
            self.partial_bits = 8 - u8::try_from(used).unwrap_or(0);
        }
        outcome
    }

    /// Tries to read something. After a failure, the cursor is where it was before, and nothing has
    /// been reported to the trace.
    #[inline]
    pub fn attempt<R>(&mut self, read: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let Self { rest, end, partial, partial_bits, depth, layers, .. } = *self;
        let mark = self.trace.mark(Key::reader());
        let outcome = read(self);
        if outcome.is_err() {
            self.trace.rewind(Key::reader(), mark);
            (self.rest, self.end) = (rest, end);
            (self.partial, self.partial_bits) = (partial, partial_bits);
            (self.depth, self.layers) = (depth, layers);
        }
        outcome
    }

    /// A new layer: bytes derived (decrypted, inflated) from those between `start` and the current
    /// place. `read` reads them and must not keep references to them.
    ///
    /// # Errors
    /// Those of `read`, with the layer's name, or the limits on layers and depth.
    pub fn layer<R>(
        &mut self,
        name: &'n str,
        start: Place,
        data: Vec<u8>,
        read: impl for<'l> FnOnce(&mut Reader<'l, T>) -> Result<R>,
    ) -> Result<R> {
        if self.layers >= self.limits.layers {
            let limit = u64::from(self.limits.layers);
            return Err(self.place_error(Error::limit("layers", limit, limit + 1)));
        }
        if T::ON && u32::try_from(data.len()).is_err() {
            let limit = u64::from(u32::MAX);
            return Err(self.place_error(Error::limit("layer bytes", limit, data.len() as u64)));
        }
        let end = self.place();
        self.trace.open_layer(Key::reader(), name, start, end);
        let mut inner = Reader {
            depth: self.depth,
            layers: self.layers + 1,
            ..Reader::start(&data, self.limits, self.trace.detach(Key::reader()))
        };
        let outcome = read(&mut inner).map_err(|error| error.closed().in_layer(name));
        self.layers = inner.layers - 1;
        self.trace = inner.trace;
        self.trace.close_layer(Key::reader(), data);
        outcome
    }

    /// A [layer](Self::layer) that may be far longer than the bytes it was derived from. A trace
    /// keeps a bounded number of its nodes.
    ///
    /// # Errors
    /// Those of [`Self::layer`], and the limit on nodes, called `what`. The layer is then
    /// incomplete, so call this within [`attempt`](Self::attempt).
    pub fn bounded_layer<R>(
        &mut self,
        name: &'n str,
        start: Place,
        data: Vec<u8>,
        (what, nodes): (&'static str, u64),
        read: impl for<'l> FnOnce(&mut Reader<'l, T>) -> Result<R>,
    ) -> Result<R> {
        let before = self.trace.bound(Key::reader(), nodes);
        let outcome = self.layer(name, start, data, read);
        match self.trace.unbound(Key::reader(), before) {
            true => Err(self.place_error(Error::limit(what, nodes, nodes + 1))),
            false => outcome,
        }
    }

    /// The number of elements to allocate: the announced `count`, but no more than the remaining
    /// bytes can hold if each takes at least `least` bytes. Checks `count` against `most` and the
    /// limits.
    #[inline]
    pub fn capacity(&self, count: u64, most: u64, least: usize) -> Result<usize> {
        let (name, limit) = if least == 0 {
            ("empty elements", most.min(self.limits.empty_elements))
        } else {
            ("elements", most.min(self.limits.elements))
        };
        if count > limit {
            return Err(self.place_error(Error::limit(name, limit, count)));
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(self.rest.len().checked_div(least).map_or(count, |fit| count.min(fit + 1)))
    }
}
