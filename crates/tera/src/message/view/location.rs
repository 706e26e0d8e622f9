//! Compact locations of records and lists.

use core::ops::Range;

/// The location of a record or list: where its scope begins, and which fields it has. A list has
/// one field, the array or row itself.
// Packed into one word: separate parts would be moved through memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordLocation(u64);

/// Bits for the start of the scope: a message has at most 65,535 bytes.
const START: u64 = 0xffff;
/// Shift of the first field's index. A definition has at most 65,536 fields.
const FROM: u32 = 16;
/// Shift of the number of fields.
const COUNT: u32 = 40;
/// Set if everything the record points to has been validated.
const WHOLE: u64 = 1 << 63;
/// Mask for an index or number of fields.
const MAX: u64 = 0x1_ffff;

impl RecordLocation {
    /// The fields of a scope that begins at `start`; `whole` says that everything they point to has
    /// been validated.
    #[inline]
    pub(super) fn new(fields: &Range<u32>, start: usize, whole: bool) -> Self {
        let whole = if whole { WHOLE } else { 0 };
        Self(start as u64 & START | whole).of(fields)
    }

    /// Other fields of the same scope.
    #[inline]
    pub(super) fn of(self, fields: &Range<u32>) -> Self {
        let (from, count) = (u64::from(fields.start), fields.len() as u64);
        Self(self.0 & (START | WHOLE) | (from & MAX) << FROM | (count & MAX) << COUNT)
    }

    /// A single field of the same scope.
    #[inline]
    pub(super) fn of_one(self, field: u32) -> Self {
        Self(self.0 & (START | WHOLE) | (u64::from(field) & MAX) << FROM | 1 << COUNT)
    }

    /// The same fields of a scope that begins elsewhere.
    #[inline]
    pub(super) fn moved(self, start: usize) -> Self {
        Self(self.0 & !START | start as u64 & START)
    }

    /// Where the scope begins.
    #[inline]
    pub(super) fn start(self) -> usize {
        (self.0 & START) as usize
    }

    /// The index of the first field.
    #[inline]
    pub(super) fn from(self) -> usize {
        (self.0 >> FROM & MAX) as usize
    }

    /// The number of fields.
    #[inline]
    pub(super) fn count(self) -> usize {
        (self.0 >> COUNT & MAX) as usize
    }

    #[inline]
    pub(super) fn is_whole(self) -> bool {
        self.0 & WHOLE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_independent() {
        let parts = |place: RecordLocation| (place.start(), place.from(), place.count());
        for (start, whole, from, count) in
            [(0, false, 0, 0), (65_535, true, 65_536, 0), (4, true, 0, 65_536), (12, false, 7, 9)]
        {
            let range = from..from + count;
            let (from, count) = (from as usize, count as usize);
            let place = RecordLocation::new(&range, start, whole);
            assert_eq!(parts(place), (start, from, count));
            let moved = place.moved(99);
            assert_eq!(parts(moved), (99, from, count));
            let others = moved.of(&(65_000..65_001));
            assert_eq!(parts(others), (99, 65_000, 1));
            let one = others.of_one(65_535);
            assert_eq!(parts(one), (99, 65_535, 1));
            assert!([place, moved, others, one].iter().all(|place| place.is_whole() == whole));
        }
    }
}
