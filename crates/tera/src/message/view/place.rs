//! Where the parts of a view are.

/// Where a record or list is: its scope, where that begins, and of objects, rows and arrays the field.
// In one word: what is read is moved about, and parts of a word would go through memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(u64);

/// Where it begins: a message has at most 65,535 bytes.
const START: u64 = 0xffff;
/// Where in the word the field is, or all ones for none. There are at most 65,536 in a definition, and
/// as many scopes and the root.
const FIELD: u32 = 16;
/// Where the scope is.
const SCOPE: u32 = 40;
/// Whether all that it leads to was checked.
const WHOLE: u64 = 1 << 63;
/// As wide as a field is.
const NONE: u64 = 0xff_ffff;

impl Place {
    /// A scope that begins at a place; whether all that it leads to was checked.
    #[inline]
    pub(super) fn new(scope: u32, start: usize, whole: bool) -> Self {
        let whole = if whole { WHOLE } else { 0 };
        Self(start as u64 & START | NONE << FIELD | u64::from(scope) << SCOPE | whole)
    }

    /// A field of the scope.
    #[inline]
    pub(super) fn of(self, field: u32) -> Self {
        Self(self.0 & !(NONE << FIELD) | (u64::from(field) & NONE) << FIELD)
    }

    /// The same scope at another place.
    #[inline]
    pub(super) fn moved(self, start: usize) -> Self {
        Self(self.0 & !START | start as u64 & START)
    }

    #[inline]
    pub(super) fn start(self) -> usize {
        (self.0 & START) as usize
    }

    #[inline]
    pub(super) fn scope(self) -> u32 {
        (self.0 >> SCOPE & 0x7f_ffff) as u32
    }

    #[inline]
    pub(super) fn field(self) -> Option<u32> {
        let field = self.0 >> FIELD & NONE;
        (field != NONE).then_some(field as u32)
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
        for (scope, start, whole, field) in
            [(0, 0, false, 0), (65_537, 65_535, true, 65_535), (1, 4, true, 0), (9, 12, false, 7)]
        {
            let place = Place::new(scope, start, whole);
            assert_eq!((place.scope(), place.start(), place.field()), (scope, start, None));
            let inner = place.of(field);
            assert_eq!((inner.scope(), inner.start(), inner.field()), (scope, start, Some(field)));
            let moved = inner.moved(99);
            assert_eq!((moved.scope(), moved.start(), moved.field()), (scope, 99, Some(field)));
            assert!([place, inner, moved].iter().all(|place| place.is_whole() == whole));
        }
    }
}
