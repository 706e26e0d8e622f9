//! Checks that pieces reported in any order tile their stream.

use core::ops::Range;

/// The known ranges of one stream.
#[derive(Debug, Default)]
pub(super) struct Tiling {
    covered: Vec<Range<u64>>,
    excused: Vec<Range<u64>>,
}

impl Tiling {
    /// Adds the range of a piece.
    pub(super) fn cover(&mut self, range: Range<u64>) {
        self.covered.push(range);
    }

    /// Allows bytes in or next to this range that belong to no piece.
    pub(super) fn excuse(&mut self, range: Range<u64>) {
        self.excused.push(range);
    }

    /// The end of the last piece.
    pub(super) fn end(&self) -> u64 {
        self.covered.iter().map(|range| range.end).max().unwrap_or(0)
    }

    /// Checks that no pieces overlap and that every hole between two is allowed.
    pub(super) fn check(&mut self) {
        self.covered.sort_by_key(|range| (range.start, range.end));
        let mut end = 0;
        for range in &self.covered {
            assert!(
                range.start >= end,
                "{range:?} begins before {end}, where the previous one ends"
            );
            let hole = end..range.start;
            let excused =
                |excuse: &Range<u64>| excuse.start <= hole.end && excuse.end >= hole.start;
            let is_excused = hole.is_empty() || self.excused.iter().any(excused);
            assert!(is_excused, "nothing covers {hole:?}");
            end = range.end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiling() -> Tiling {
        let mut tiling = Tiling::default();
        [4..9, 0..4, 12..14].into_iter().for_each(|range| tiling.cover(range));
        tiling
    }

    #[test]
    fn pieces_may_come_in_any_order() {
        let mut tiling = tiling();
        tiling.excuse(10..10);
        tiling.check();
    }

    #[test]
    #[should_panic(expected = "nothing covers 9..12")]
    fn holes_are_detected() {
        tiling().check();
    }

    #[test]
    #[should_panic(expected = "5..6 begins before 9")]
    fn overlaps_are_detected() {
        let mut tiling = tiling();
        tiling.cover(5..6);
        tiling.check();
    }
}
