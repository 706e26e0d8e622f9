//! Where the parts of a view are.

use core::ops::Range;

/// Where a record or list is: where its scope begins, and which fields it has. A list has one, that
/// of the array or row.
// In one word: what is read is moved about, and parts of a word would go through memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(u64);

/// Where its scope begins: a message has at most 65,535 bytes.
const START: u64 = 0xffff;
/// Where in the word the first field is. A definition has at most 65,536.
const FROM: u32 = 16;
/// Where the number of fields is.
const COUNT: u32 = 40;
/// Whether all that it leads to was checked.
const WHOLE: u64 = 1 << 63;
/// As many fields as there can be.
const MAX: u64 = 0x1_ffff;

impl Place {
    /// So many fields, of a scope that begins at a place; whether all that it leads to was checked.
    #[inline]
    pub(super) fn new(fields: &Range<u32>, start: usize, whole: bool) -> Self {
        let whole = if whole { WHOLE } else { 0 };
        Self(start as u64 & START | whole).of(fields)
    }

    /// Fields of the same scope.
    #[inline]
    pub(super) fn of(self, fields: &Range<u32>) -> Self {
        let (from, count) = (u64::from(fields.start), fields.len() as u64);
        Self(self.0 & (START | WHOLE) | (from & MAX) << FROM | (count & MAX) << COUNT)
    }

    /// One field of the same scope.
    #[inline]
    pub(super) fn of_one(self, field: u32) -> Self {
        Self(self.0 & (START | WHOLE) | (u64::from(field) & MAX) << FROM | 1 << COUNT)
    }

    /// The same fields of a scope at another place.
    #[inline]
    pub(super) fn moved(self, start: usize) -> Self {
        Self(self.0 & !START | start as u64 & START)
    }

    /// Where its scope begins.
    #[inline]
    pub(super) fn start(self) -> usize {
        (self.0 & START) as usize
    }

    /// The index of the first field.
    #[inline]
    pub(super) fn from(self) -> usize {
        (self.0 >> FROM & MAX) as usize
    }

    /// How many fields it has.
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
    fn parts_do_not_touch_each_other() {
        let parts = |place: Place| (place.start(), place.from(), place.count());
        for (start, whole, from, count) in
            [(0, false, 0, 0), (65_535, true, 65_536, 0), (4, true, 0, 65_536), (12, false, 7, 9)]
        {
            let range = from..from + count;
            let (from, count) = (from as usize, count as usize);
            let place = Place::new(&range, start, whole);
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
