//! Names for numbers: enumerations and flags.

use core::fmt::{Display, Write as _};
use std::borrow::Cow;

/// A table of names for the values of an enumeration, or for the bits of a set of flags.
///
/// Tables that are part of a protocol are constants ([`Names::fixed`]); tables that come from a
/// user's data files are built at load time ([`Names::from_pairs`]). A number without a
/// name is normal: it is shown as a number everywhere.
///
/// ```
/// use worldwire_core::Names;
/// static BUILD: Names = Names::fixed(&[(10, "dev"), (50, "live")]);
/// assert_eq!(BUILD.name(50), Some("live"));
/// assert_eq!(BUILD.number("dev"), Some(10));
/// assert_eq!(BUILD.name(11), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    table: Table,
    /// Whether the numbers are only indices into the table.
    words: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Table {
    Fixed(&'static [(i64, &'static str)], Order),
    /// Sorted by number, in the given order where numbers are equal.
    Loaded(Vec<(i64, Box<str>)>),
}

/// The order of a fixed table's numbers, so that a name is found without a linear search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Each is one more than the one before.
    Dense,
    /// Each is greater than the one before.
    Rising,
    /// Any order; where numbers are equal, the first one wins.
    Any,
}

impl Names {
    /// A table that is part of a protocol.
    #[must_use]
    pub const fn fixed(pairs: &'static [(i64, &'static str)]) -> Self {
        Self { table: Table::Fixed(pairs, Order::of(pairs)), words: false }
    }

    /// A table from loaded data.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (i64, Box<str>)>) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort_by_key(|pair| pair.0);
        Self { table: Table::Loaded(pairs), words: false }
    }

    /// The same names for numbers that mean nothing outside the program, such as indices of a
    /// loaded list. Text shows only the names.
    #[must_use]
    pub const fn words(mut self) -> Self {
        self.words = true;
        self
    }

    /// Whether the numbers mean nothing to people: see [`words`](Self::words).
    #[must_use]
    pub(crate) const fn are_words(&self) -> bool {
        self.words
    }

    /// The name of a number.
    #[must_use]
    pub fn name(&self, number: i64) -> Option<&str> {
        match &self.table {
            Table::Fixed(pairs, order) => {
                let at = match order {
                    Order::Dense => {
                        let first = pairs.first()?.0;
                        usize::try_from(number.checked_sub(first)?).ok()?
                    }
                    Order::Rising => pairs.binary_search_by_key(&number, |pair| pair.0).ok()?,
                    Order::Any => pairs.iter().position(|pair| pair.0 == number)?,
                };
                pairs.get(at).map(|pair| pair.1)
            }
            Table::Loaded(pairs) => {
                let at = pairs.partition_point(|pair| pair.0 < number);
                pairs.get(at).filter(|pair| pair.0 == number).map(|pair| &*pair.1)
            }
        }
    }

    /// The number with this name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<i64> {
        self.iter().find(|pair| pair.1 == name).map(|pair| pair.0)
    }

    /// All pairs, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &str)> {
        let (fixed, loaded) = match &self.table {
            Table::Fixed(pairs, _) => (*pairs, None),
            Table::Loaded(pairs) => (&[][..], Some(pairs)),
        };
        let loaded = loaded.into_iter().flatten().map(|pair| (pair.0, &*pair.1));
        fixed.iter().copied().chain(loaded)
    }

    /// Splits a set of flags into the names of its bits, in table order, and the bits that no name
    /// covers. Entries of the table are masks; an entry matches if all its bits are set.
    pub fn flags(&self, bits: u64) -> (Vec<&str>, u64) {
        let mut rest = bits;
        let mut names = Vec::new();
        for (mask, name) in self.iter() {
            let mask = mask.cast_unsigned();
            if mask != 0 && bits & mask == mask && rest & mask != 0 {
                names.push(name);
                rest &= !mask;
            }
        }
        (names, rest)
    }

    /// The name closest to a misspelled one, for error messages.
    #[must_use]
    pub fn nearest(&self, wrong: &str) -> Option<&str> {
        nearest(wrong, self.iter().map(|pair| pair.1))
    }
}

impl Order {
    const fn of(pairs: &[(i64, &str)]) -> Self {
        let (mut order, mut next) = (Self::Dense, 1);
        while next < pairs.len() {
            let (before, number) = (pairs[next - 1].0, pairs[next].0);
            if number <= before {
                return Self::Any;
            }
            if number - 1 != before {
                order = Self::Rising;
            }
            next += 1;
        }
        order
    }
}

/// The candidate most similar to `wrong`, if one is similar enough for a "did you mean".
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = fold(wrong);
    candidates
        .into_iter()
        .map(|candidate| (distance(&wrong, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A list for use in a sentence: its first ten items, and the number of the others.
///
/// ```
/// assert_eq!(worldwire_core::listed([7, 8]), "7, 8");
/// assert_eq!(worldwire_core::listed(1..=12), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more");
/// ```
pub fn listed<T: Display>(all: impl IntoIterator<Item = T>) -> String {
    const MAX: usize = 10;
    let mut text = String::new();
    let mut all = all.into_iter();
    for (place, one) in all.by_ref().take(MAX).enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{one}");
    }
    let more = all.count();
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}

fn fold(text: &str) -> Cow<'_, str> {
    let mut end = text.len().min(64);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(text[..end].to_ascii_lowercase())
}

/// Edit distance by rows; both texts are at most 64 bytes long, so the work is bounded.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    static FLAGS: Names = Names::fixed(&[(1, "admin"), (2, "developer"), (0x1_0000, "banned")]);

    #[test]
    fn flags_keep_unknown_bits() {
        assert_eq!(FLAGS.flags(0x1_0005), (vec!["admin", "banned"], 4));
        assert_eq!(FLAGS.flags(0), (vec![], 0));
    }

    #[test]
    fn loaded_tables_answer_like_fixed_ones() {
        let loaded = Names::from_pairs([(2, "b".into()), (1, "a".into()), (2, "c".into())]);
        assert_eq!(loaded.name(2), Some("b"));
        assert_eq!(loaded.number("c"), Some(2));
        assert_eq!(loaded.name(3), None);
    }

    #[test]
    fn fixed_tables_of_any_order_are_searched() {
        let dense: &[(i64, &str)] = &[(-1, "none"), (0, "zero"), (1, "one")];
        let rising: &[(i64, &str)] = &[(i64::MIN, "least"), (3, "three"), (i64::MAX, "most")];
        let any: &[(i64, &str)] = &[(4, "four"), (2, "two"), (4, "again"), (3, "three")];
        for (pairs, order) in
            [(dense, Order::Dense), (rising, Order::Rising), (any, Order::Any), (&[], Order::Dense)]
        {
            assert_eq!(Order::of(pairs), order, "{pairs:?}");
        }
        static TABLES: [Names; 4] = [
            Names::fixed(&[(-1, "none"), (0, "zero"), (1, "one")]),
            Names::fixed(&[(i64::MIN, "least"), (3, "three"), (i64::MAX, "most")]),
            Names::fixed(&[(4, "four"), (2, "two"), (4, "again"), (3, "three")]),
            Names::fixed(&[]),
        ];
        for names in &TABLES {
            for number in [i64::MIN, -2, -1, 0, 1, 2, 3, 4, i64::MAX] {
                let first = names.iter().find(|pair| pair.0 == number).map(|pair| pair.1);
                assert_eq!(names.name(number), first, "{names:?} {number}");
            }
        }
    }

    #[test]
    fn near_misses_are_recognised() {
        assert_eq!(FLAGS.nearest("develloper"), Some("developer"));
        assert_eq!(FLAGS.nearest("Admin"), Some("admin"));
        assert_eq!(FLAGS.nearest("zzzzzz"), None);
    }
}
