//! What lenient reading cannot read, found before anything is reported of it.
//!
//! Whether the value of a property fits its size shows only when it was read; but what was reported of
//! its parts cannot be taken back: it may be in a file by then. So a deep object is gone through
//! twice. The first walk tells nobody; it finds the outermost properties that fail. The second
//! tells everything, and keeps those properties as the bits that they are.

use worldwire_core::{Error, ErrorKind, Reader, Trace};

use super::{Decoder, MAX_NOTES};
use crate::object::visitor::{Slot, Visitor};

/// No place.
const NOWHERE: u64 = u64::MAX;

/// The properties that cannot be read.
pub(super) struct Misfits {
    /// On the first walk those that were found, in their order; on the second those that are left,
    /// the next one last.
    list: Vec<Misfit>,
    /// Where the next one stands: at this bit.
    next: u64,
    /// The byte of the layer that the first walk begins at; on the second there is none.
    base: Option<u64>,
}

struct Misfit {
    bit: u64,
    /// What is wrong, while there is room for notes.
    note: Option<Box<str>>,
}

impl Misfits {
    /// None yet.
    fn scout(base: u64) -> Option<Box<Self>> {
        Some(Box::new(Self { list: Vec::new(), next: NOWHERE, base: Some(base) }))
    }

    /// Whether the property at this bit cannot be read.
    #[inline]
    pub(super) fn is_at(&self, bit: u64) -> bool {
        self.next == bit
    }

    /// What is wrong with the next one; the one behind it is the next.
    pub(super) fn take(&mut self) -> Option<Box<str>> {
        let note = self.list.pop().and_then(|misfit| misfit.note);
        self.next = self.list.last().map_or(NOWHERE, |misfit| misfit.bit);
        note
    }

    /// Keeps in mind that a property failed; gives the error back where that does not help.
    pub(super) fn add(&mut self, bit: u64, error: Error) -> Result<(), Error> {
        let Some(base) = self.base.filter(|_| error.kind() == ErrorKind::Malformed) else {
            return Err(error);
        };
        let bit = base * 8 + bit;
        // Those inside of it are part of its bits.
        let inside = self.list.partition_point(|misfit| misfit.bit < bit);
        self.list.truncate(inside);
        let has_room = self.list.len() < MAX_NOTES;
        self.list
            .push(Misfit { bit, note: has_room.then(|| error.based(base).to_string().into()) });
        Ok(())
    }
}

impl<'c, V: Visitor<'c>> Decoder<'_, 'c, V> {
    /// The first walk, if there is to be one.
    #[inline]
    pub(super) fn scout<T: Trace<'c>>(&mut self, reader: &Reader<'_, T>) {
        if self.keeps() {
            self.find_misfits(reader);
        }
    }

    #[cold]
    fn find_misfits<T: Trace<'c>>(&mut self, reader: &Reader<'_, T>) {
        let mut scout = Decoder {
            name: self.name,
            classes: self.classes,
            options: self.options,
            flags: self.flags,
            objects: 0,
            values: self.values,
            max_values: self.max_values,
            related: None,
            last: None,
            misfits: Misfits::scout(reader.position() as u64),
            notes: Vec::new(),
            visitor: &mut (),
        };
        // Objects begin at whole bytes.
        let mut ahead = Reader::within(reader.rest(), reader.limits());
        let start = ahead.place();
        // What ends it ends the second walk as well, which then says so.
        drop(scout.object(&mut ahead, Slot::Root, self.name, start));
        self.misfits = scout.misfits;
        if let Some(found) = &mut self.misfits {
            found.list.reverse();
            found.next = found.list.last().map_or(NOWHERE, |misfit| misfit.bit);
            found.base = None;
        }
    }
}
