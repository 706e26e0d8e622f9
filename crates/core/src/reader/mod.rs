//! The cursor that every decoder reads through.

mod bits;
mod scope;

use crate::opener::Opener;
use crate::trace::{NoTrace, Place, Trace};
use crate::tree::{Tree, TreeBuilder};
use crate::value::{Form, Span, Value};
use crate::{Error, Limits, Result};

/// A cursor over bytes: little-endian numbers, bits from the least significant up, bounded parts,
/// and scopes that a [`Trace`] turns into a [`Tree`].
///
/// Every read first checks that enough bytes are left; if not, it fails with `Incomplete` and names
/// the field. Scopes return the errors of their contents, and fail at the limit on depth. A byte
/// read after bit reads starts at the next whole byte.
///
/// ```
/// use worldwire_core::Reader;
/// let mut reader = Reader::new(&[0x96, 0x03, 0, 0, 1]);
/// assert_eq!(reader.u32("buildId")?, 918);
/// assert_eq!(reader.u8("isPatcher")?, 1);
/// reader.end()?;
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader<'d, T = NoTrace> {
    /// The rest of the current part.
    rest: &'d [u8],
    /// Where the current part ends, counted from the start of the layer.
    end: usize,
    /// The partly read byte, shifted so that the next bit is the lowest.
    partial: u8,
    /// The number of its unread bits. Every byte read sets this to 0.
    partial_bits: u8,
    depth: u32,
    layers: u32,
    limits: &'d Limits,
    trace: T,
}

impl<'d> Reader<'d, NoTrace> {
    /// Reads without a trace, within the default limits.
    #[inline]
    #[must_use]
    pub fn new(data: &'d [u8]) -> Self {
        Self::within(data, &Limits::DEFAULT)
    }

    /// Reads without a trace, within these limits.
    #[inline]
    #[must_use]
    pub fn within(data: &'d [u8], limits: &'d Limits) -> Self {
        Self::start(data, limits, NoTrace)
    }
}

impl<'d> Reader<'d, TreeBuilder<'d>> {
    /// Reads into a tree, within the default limits. `layer` names the data: `message`, `file`.
    /// Pass an old tree to reuse its memory.
    #[must_use]
    pub fn traced(layer: &'d str, data: &'d [u8], tree: Tree<'d>) -> Self {
        Self::traced_within(layer, data, tree, &Limits::DEFAULT)
    }

    /// Reads into a tree, within these limits.
    #[must_use]
    pub fn traced_within(
        layer: &'d str,
        data: &'d [u8],
        tree: Tree<'d>,
        limits: &'d Limits,
    ) -> Self {
        // Places are 32 bits wide, so bytes that they cannot address are left out.
        let most = usize::try_from(u32::MAX).unwrap_or(usize::MAX);
        let data = data.get(..most).unwrap_or(data);
        Self::start(data, limits, TreeBuilder::start(tree, layer, data, limits))
    }

    /// Adds an [opener](crate::opener) for formats inside fields.
    #[must_use]
    pub fn opening(mut self, opener: &'d dyn Opener<'d>) -> Self {
        self.trace.set_opener(opener);
        self
    }

    /// The tree of everything that was read.
    #[must_use]
    pub fn finish(self) -> Tree<'d> {
        self.trace.finish(None)
    }

    /// The tree of everything that was read before `error`, with the error at its end.
    #[must_use]
    pub(crate) fn finish_with(self, error: Error) -> Tree<'d> {
        self.trace.finish(Some(error))
    }

    /// Ends a decode with this outcome. Returns its tree and the outcome.
    pub fn conclude<R>(self, outcome: Result<R>) -> (Tree<'d>, Result<R>) {
        match outcome {
            Ok(value) => (self.finish(), Ok(value)),
            Err(error) => (self.finish_with(error.clone()), Err(error)),
        }
    }
}

/// The state of the cursor.
impl<'d, T> Reader<'d, T> {
    #[inline]
    fn start(data: &'d [u8], limits: &'d Limits, trace: T) -> Self {
        Self {
            rest: data,
            end: data.len(),
            partial: 0,
            partial_bits: 0,
            depth: 0,
            layers: 0,
            limits,
            trace,
        }
    }

    /// The next byte to be read, counted from the start of the layer.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    /// The number of whole bytes left in the current part.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bytes left in the current part. Does not move the cursor.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> &'d [u8] {
        self.rest
    }

    /// The limits to keep to.
    #[inline]
    #[must_use]
    pub fn limits(&self) -> &'d Limits {
        self.limits
    }

    /// The trace, for decoders that follow offsets and report places themselves.
    pub fn trace_mut(&mut self) -> &mut T {
        &mut self.trace
    }

    /// The place of the next bit.
    #[inline]
    #[must_use]
    pub fn place(&self) -> Place {
        let byte = narrow(self.position());
        if self.partial_bits == 0 {
            Place { byte, bit: 0 }
        } else {
            Place { byte: byte.wrapping_sub(1), bit: 8 - self.partial_bits }
        }
    }

    /// Takes the next `count` bytes without reporting them to the trace.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'d [u8]> {
        match self.rest.split_at_checked(count) {
            Some((head, rest)) => {
                self.rest = rest;
                self.partial_bits = 0;
                Ok(head)
            }
            None => Err(self.short(count)),
        }
    }

    /// Takes a fixed number of bytes without reporting them to the trace.
    #[inline]
    pub fn take_array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.rest.split_first_chunk() {
            Some((head, rest)) => {
                self.rest = rest;
                self.partial_bits = 0;
                Ok(*head)
            }
            None => Err(self.short(N)),
        }
    }

    /// Skips the rest of a partly read byte.
    #[inline]
    pub fn align(&mut self) {
        self.partial_bits = 0;
    }

    /// Sets an error's position to the current place.
    #[cold]
    #[must_use]
    pub fn place_error(&self, error: Error) -> Error {
        let place = self.place();
        error.at_bit(u64::from(place.byte), place.bit)
    }

    #[cold]
    fn short(&self, want: usize) -> Error {
        Error::incomplete(want, self.rest.len()).at(self.position() as u64)
    }

    /// Checks that everything was read.
    ///
    /// # Errors
    /// `Malformed` if bytes are left.
    pub fn end(&self) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let found = crate::error::more_bytes(self.rest.len() as u64);
        Err(self.place_error(Error::malformed("the end", found)))
    }
}

/// Numbers of whole bytes, little-endian.
macro_rules! numbers {
    ($($name:ident: $type:ty, $value:ident, $wide:ty;)*) => {$(
        #[doc = concat!("Reads a little-endian `", stringify!($type), "`.")]
        #[inline]
        pub fn $name(&mut self, name: &'n str) -> Result<$type> {
            let start = self.place_if_on();
            match self.take_array() {
                Ok(bytes) => {
                    let value = <$type>::from_le_bytes(bytes);
                    self.leaf_from(name, start, Value::$value(<$wide>::from(value)));
                    Ok(value)
                }
                Err(error) => Err(error.inside(name)),
            }
        }
    )*};
}

/// Reading values that are reported to the trace.
impl<'d, 'n, T: Trace<'n>> Reader<'d, T> {
    numbers! {
        u8: u8, Unsigned, u64;
        u16: u16, Unsigned, u64;
        u32: u32, Unsigned, u64;
        u64: u64, Unsigned, u64;
        i8: i8, Signed, i64;
        i16: i16, Signed, i64;
        i32: i32, Signed, i64;
        i64: i64, Signed, i64;
        f32: f32, F32, f32;
        f64: f64, F64, f64;
    }

    /// Reads a number with `read` and shows it as `show` says: for enumerations, flags and numbers
    /// that are written in hexadecimal.
    #[inline]
    pub fn shown<R>(
        &mut self,
        name: &'n str,
        read: impl FnOnce(&mut Self) -> Result<R>,
        show: impl FnOnce(&R) -> Value<'n>,
    ) -> Result<R> {
        let start = self.place_if_on();
        match read(self) {
            Ok(value) => {
                if T::ON {
                    let shown = show(&value);
                    self.leaf_from(name, start, shown);
                }
                Ok(value)
            }
            Err(error) => Err(error.inside(name)),
        }
    }

    /// Reads `count` bytes as a blob.
    #[inline]
    pub fn bytes(&mut self, name: &'n str, count: usize) -> Result<&'d [u8]> {
        self.span(name, count, Form::Bytes)
    }

    /// Reads `count` bytes as text or bytes of a form, which the tree decodes on demand.
    #[inline]
    pub fn span(&mut self, name: &'n str, count: usize, form: Form) -> Result<&'d [u8]> {
        let start = self.place_if_on();
        match self.take(count) {
            Ok(bytes) => {
                let span = self.span_behind(form, count);
                self.leaf_from(name, start, span);
                Ok(bytes)
            }
            Err(error) => Err(error.inside(name)),
        }
    }

    /// Reports a value that was read since `start` (see [`Reader::place`]), for composite values
    /// such as counted strings.
    #[inline]
    pub fn leaf_from(&mut self, name: &'n str, start: Place, value: Value<'n>) {
        if T::ON {
            let end = self.place();
            self.trace.leaf(name, value, start, end);
        }
    }

    /// The place of the next bit, if there is a trace to report it to.
    #[inline]
    #[must_use]
    pub fn place_if_on(&self) -> Place {
        if T::ON { self.place() } else { Place::default() }
    }

    /// A span over the last `length` bytes that were read.
    #[inline]
    #[must_use]
    pub fn span_behind(&self, form: Form, length: usize) -> Value<'n> {
        let length = narrow(length);
        Value::Span(Span { form, start: narrow(self.position()).wrapping_sub(length), length })
    }
}

/// Converts an offset in a layer. Traced layers are bounded to 32 bits; others do not use offsets.
#[expect(clippy::cast_possible_truncation, reason = "bounded when the layer was created")]
#[inline]
const fn narrow(offset: usize) -> u32 {
    offset as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn numbers_are_little_endian_and_checked() {
        let mut r = Reader::new(&[1, 2, 3, 4, 5, 0xff]);
        assert_eq!(r.u16("a").unwrap(), 0x0201);
        assert_eq!(r.position(), 2);
        let error = r.u64("b").unwrap_err();
        assert_eq!(error.needed(), Some(4));
        assert_eq!(error.to_string(), "b at byte 2: wanted 8 bytes, found 4");
        assert_eq!(r.i32("c").unwrap(), i32::from_le_bytes([3, 4, 5, 0xff]));
    }

    #[test]
    fn a_part_is_used_up_and_nothing_beyond_it_is_seen() {
        let mut r = Reader::new(&[1, 2, 3, 4]);
        let error = r.part(2, |r| r.u32("x")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert_eq!(r.position(), 2);
        let error = r.part(2, |r| r.u8("y")).unwrap_err();
        assert_eq!(error.to_string(), "at byte 3: wanted the end, found 1 more byte");
        assert_eq!(r.part(1, |r| r.u8("z")).unwrap_err().needed(), Some(1));
    }

    #[test]
    fn a_part_may_end_inside_a_byte() {
        let mut r = Reader::new(&[0xff, 0b1010_0101, 7]);
        assert_eq!(r.part_bits(13, |r| r.u8("x")).unwrap(), 0xff);
        assert_eq!(r.place(), Place { byte: 1, bit: 5 });
        assert_eq!(r.take_bits(3).unwrap(), 0b101);
        assert!(r.part_bits(3, |r| r.u16("y")).is_err());
        assert_eq!(r.place(), Place { byte: 2, bit: 3 });
        assert_eq!(r.part_bits(9, |_| Ok(())).unwrap_err().needed(), Some(2));
    }

    #[test]
    fn scopes_nest_in_trees_and_errors() {
        let data = [2, 10, 20];
        let mut r = Reader::traced("m", &data, Tree::new());
        let outcome = r.list("items", |r| {
            let count = r.take_array::<1>()?[0];
            for index in 0..usize::from(count) + 1 {
                r.item(index, |r| r.record("", |r| r.u8("slot")))?;
            }
            Ok(())
        });
        let (tree, outcome) = r.conclude(outcome);
        assert_eq!(outcome.unwrap_err().path_text(), "items[2].slot");
        assert_eq!(tree.find("items[1].slot").unwrap().unsigned(), Some(20));
        assert_eq!(tree.find("items").unwrap().children().count(), 3);
        assert!(tree.error().is_some());
    }

    #[test]
    fn depth_is_bounded() {
        fn nest(r: &mut Reader<'_>) -> Result<()> {
            r.record("x", nest)
        }
        let error = nest(&mut Reader::new(&[])).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Limit { name: "depth", limit: 128, .. }));
    }

    #[test]
    fn layers_know_where_they_come_from() {
        let data = [9, 1, 2];
        let mut r = Reader::traced("wire", &data, Tree::new());
        r.u8("type").unwrap();
        let start = r.place();
        let plain = r.take(2).unwrap().iter().map(|byte| byte ^ 0xff).collect();
        let outcome = r.layer("decrypted", start, plain, |r| {
            r.u8("a")?;
            r.u16("b")
        });
        let (tree, outcome) = r.conclude(outcome);
        let error = outcome.unwrap_err();
        assert_eq!(error.to_string(), "b at byte 1 of decrypted: wanted 2 bytes, found 1");
        let layer = &tree.layers()[1];
        assert_eq!(layer.parent().map(|p| (p.layer, p.start, p.end)), Some((0, 1, 3)));
        assert_eq!(tree.find("a").unwrap().raw(), [0xfe]);
    }

    #[test]
    fn promises_do_not_allocate() {
        let r = Reader::new(&[0; 10]);
        assert_eq!(r.capacity(1000, u64::MAX, 4).unwrap(), 3);
        assert!(r.capacity(0xffff_ffff, u64::MAX, 4).is_err());
        assert!(r.capacity(513, 512, 4).is_err());
    }
}
