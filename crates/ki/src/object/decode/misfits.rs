//! Finding values that cannot be decoded before anything is reported about them.
//!
//! Whether a value fits the size of its property is known only after it is decoded, but reported
//! parts cannot be taken back: they may already be in a file. So deep objects are decoded twice.
//! The first pass reports nothing and finds the outermost properties that fail. The second pass
//! reports everything and keeps those properties as raw bits.

use worldwire_core::{Error, ErrorKind, Reader, Trace};

use super::{Decoder, MAX_NOTES};
use crate::object::visitor::{Slot, Visitor};

/// A value that stands for "no position".
const NO_POSITION: u64 = u64::MAX;

/// The properties that cannot be decoded.
pub(super) struct Misfits {
    /// In the first pass, the failed properties in order; in the second, the ones still ahead, with
    /// the next one last.
    list: Vec<Misfit>,
    /// The bit at which the next failed property begins.
    next: u64,
    /// The byte of the layer at which the first pass begins; `None` in the second pass.
    base: Option<u64>,
}

struct Misfit {
    bit: u64,
    /// The problem, as long as notes are kept.
    error: Option<Error>,
}

impl Misfits {
    /// Starts the first pass with an empty list.
    fn first_pass(base: u64) -> Option<Box<Self>> {
        Some(Box::new(Self { list: Vec::new(), next: NO_POSITION, base: Some(base) }))
    }

    /// Whether the property at this bit cannot be decoded.
    #[inline]
    pub(super) fn is_at(&self, bit: u64) -> bool {
        self.next == bit
    }

    /// Takes what is wrong with the next property and advances.
    pub(super) fn take(&mut self) -> Option<Error> {
        let error = self.list.pop().and_then(|misfit| misfit.error);
        self.next = self.list.last().map_or(NO_POSITION, |misfit| misfit.bit);
        error
    }

    /// Records that a property failed, or returns the error if recording does not help.
    pub(super) fn add(&mut self, bit: u64, error: Error) -> Result<(), Error> {
        let Some(base) = self.base.filter(|_| error.kind() == ErrorKind::Malformed) else {
            return Err(error);
        };
        let bit = base * 8 + bit;
        // Failures nested in the property are part of its bits.
        let inside = self.list.partition_point(|misfit| misfit.bit < bit);
        self.list.truncate(inside);
        let has_room = self.list.len() < MAX_NOTES;
        self.list.push(Misfit { bit, error: has_room.then(|| error.based(base)) });
        Ok(())
    }
}

impl<'c, V: Visitor<'c>> Decoder<'_, 'c, V> {
    /// Runs the first pass, if one is needed.
    #[inline]
    pub(super) fn first_pass<T: Trace<'c>>(&mut self, reader: &Reader<'_, T>) {
        if self.keeps() {
            self.find_misfits(reader);
        }
    }

    #[cold]
    fn find_misfits<T: Trace<'c>>(&mut self, reader: &Reader<'_, T>) {
        let mut first_pass = Decoder {
            name: self.name,
            classes: self.classes,
            options: self.options,
            flags: self.flags,
            objects: 0,
            values: self.values,
            max_values: self.max_values,
            related: None,
            last: None,
            misfits: Misfits::first_pass(reader.position() as u64),
            notes: Vec::new(),
            visitor: &mut (),
        };
        // Objects begin at byte boundaries.
        let mut ahead = Reader::within(reader.rest(), reader.limits());
        let start = ahead.place();
        // An error that ends this pass also ends the second, which reports it.
        drop(first_pass.object(&mut ahead, Slot::Root, self.name, start));
        self.misfits = first_pass.misfits;
        if let Some(found) = &mut self.misfits {
            found.list.reverse();
            found.next = found.list.last().map_or(NO_POSITION, |misfit| misfit.bit);
            found.base = None;
        }
    }
}
