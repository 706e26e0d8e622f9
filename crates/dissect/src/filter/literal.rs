//! Operands: values, lists of values, and patterns for text.

use core::cmp::Ordering;
use core::fmt::{self, Write as _};
use core::net::Ipv4Addr;

use memchr::memmem::Finder;
use regex_lite::Regex;
use worldwire_core::text::is_hostile;
use worldwire_core::value::{parse_guid, parse_hex, push_hex};

use super::folded::Folded;
use super::number::{Count, Number};

/// A value in a filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Number(Number),
    Text(Text),
    Bytes(Box<[u8]>),
}

/// A text, with the identifier, address or bytes that it can also stand for.
#[derive(Clone, Debug)]
pub(super) struct Text {
    text: Box<str>,
    /// Whether it has no quotes and can be the name of a value.
    is_bare: bool,
    /// Whether it has no quotes.
    is_word: bool,
    /// The identifier, in its stored byte order.
    guid: Option<[u8; 16]>,
    /// The IPv4 address, in its stored byte order.
    ipv4: Option<[u8; 4]>,
    /// The bytes that its hexadecimal digits stand for, if it has no quotes.
    hex: Option<Box<[u8]>>,
}

/// Text or bytes to search for.
#[derive(Clone, Debug)]
pub(super) struct Needle {
    literal: Literal,
    finder: Finder<'static>,
    /// Finds the bytes whose hexadecimal form is the text.
    hex: Option<Finder<'static>>,
    /// Finds the text in any case.
    folded: Option<Folded>,
}

#[derive(Clone, Debug)]
pub(super) struct Regular {
    source: Box<str>,
    compiled: Regex,
}

/// The list after `in`.
#[derive(Clone, Debug)]
pub(super) struct Set {
    /// The members, in the order written.
    members: Box<[Member]>,
    /// Whole numbers and ranges of whole numbers, sorted and disjoint.
    wholes: Box<[(i128, i128)]>,
    pub(super) texts: Sorted,
    /// The identifiers among the texts.
    pub(super) guids: Sorted,
    pub(super) bytes: Sorted,
    /// The bytes whose hexadecimal form is one of the texts.
    pub(super) hexes: Sorted,
    /// The indices of all other members.
    others: Box<[usize]>,
}

/// Byte strings, sorted.
#[derive(Clone, Debug)]
pub(super) struct Sorted(Vec<Box<[u8]>>);

impl Sorted {
    fn of(mut strings: Vec<Box<[u8]>>) -> Self {
        strings.sort_unstable();
        Self(strings)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, string: &[u8]) -> bool {
        self.0.binary_search_by(|entry| (**entry).cmp(string)).is_ok()
    }
}

/// An element of a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Member {
    One(Literal),
    Range(Number, Number),
}

impl Text {
    pub(super) fn new(text: &str) -> Self {
        let ipv4 = text.parse::<Ipv4Addr>().ok().map(|address| {
            let mut stored = address.octets();
            stored.reverse();
            stored
        });
        let guid = parse_guid(text);
        Self { text: text.into(), is_bare: false, is_word: false, guid, ipv4, hex: None }
    }

    /// A word without quotes. Its digits can stand for bytes.
    pub(super) fn word(text: &str) -> Self {
        let hex = parse_hex(text).filter(|bytes| !bytes.is_empty()).map(Into::into);
        Self { hex, is_word: true, ..Self::new(text) }
    }

    /// A word without quotes that can also be the name of a value.
    pub(super) fn bare(text: &str) -> Self {
        Self { is_bare: true, ..Self::word(text) }
    }

    pub(super) fn is_bare(&self) -> bool {
        self.is_bare
    }

    pub(super) fn is_word(&self) -> bool {
        self.is_word
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn guid(&self) -> Option<&[u8; 16]> {
        self.guid.as_ref()
    }

    pub(super) fn ipv4(&self) -> Option<&[u8; 4]> {
        self.ipv4.as_ref()
    }

    /// The bytes whose hexadecimal form this is.
    pub(super) fn hex(&self) -> Option<&[u8]> {
        self.hex.as_deref()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.hex == other.hex
    }
}

impl Needle {
    /// Takes a text or bytes; nothing else can be searched for.
    pub(super) fn new(literal: Literal) -> Self {
        let finder = match &literal {
            Literal::Text(text) => Finder::new(text.as_str().as_bytes()).into_owned(),
            Literal::Bytes(bytes) => Finder::new(&**bytes).into_owned(),
            Literal::Null | Literal::Bool(_) | Literal::Number(_) => Finder::new("").into_owned(),
        };
        let hex = match &literal {
            Literal::Text(text) => text.hex().map(|bytes| Finder::new(bytes).into_owned()),
            _ => None,
        };
        Self { literal, finder, hex, folded: None }
    }

    /// The same needle, but text is found in any case.
    pub(super) fn ignoring_case(self) -> Self {
        let folded = match &self.literal {
            Literal::Text(text) => Some(Folded::new(text.as_str())),
            _ => None,
        };
        Self { folded, ..self }
    }

    pub(super) fn literal(&self) -> &Literal {
        &self.literal
    }

    /// Whether it is text rather than bytes.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.literal, Literal::Text(_))
    }

    /// Whether `hay` contains it. Takes time linear in both lengths.
    pub(super) fn is_in(&self, hay: &[u8]) -> bool {
        match &self.folded {
            Some(folded) => folded.is_in(hay),
            None => self.finder.find(hay).is_some(),
        }
    }

    /// Whether `bytes` contains the bytes whose hexadecimal form is the text.
    pub(super) fn is_shown_in(&self, bytes: &[u8]) -> bool {
        self.hex.as_ref().is_some_and(|finder| finder.find(bytes).is_some())
    }
}

impl PartialEq for Needle {
    fn eq(&self, other: &Self) -> bool {
        self.literal == other.literal && self.folded.is_some() == other.folded.is_some()
    }
}

impl Regular {
    pub(super) fn new(source: &str, compiled: Regex) -> Self {
        Self { source: source.into(), compiled }
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }
}

impl PartialEq for Regular {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Set {
    pub(super) fn new(members: Vec<Member>) -> Self {
        let mut wholes = Vec::new();
        let [mut texts, mut guids, mut bytes, mut hexes] = [const { Vec::<Box<[u8]>>::new() }; 4];
        let mut others = Vec::new();
        for (index, member) in members.iter().enumerate() {
            match member {
                Member::One(Literal::Number(Number::Whole(value))) => wholes.push((*value, *value)),
                Member::Range(Number::Whole(low), Number::Whole(high)) => {
                    wholes.push((*low, *high))
                }
                Member::One(Literal::Text(text)) => {
                    texts.push(text.as_str().as_bytes().into());
                    guids.extend(text.guid().map(|guid| guid.as_slice().into()));
                    hexes.extend(text.hex().map(Into::into));
                }
                Member::One(Literal::Bytes(value)) => bytes.push(value.clone()),
                Member::One(_) | Member::Range(..) => others.push(index),
            }
        }
        let [texts, guids, bytes, hexes] = [texts, guids, bytes, hexes].map(Sorted::of);
        Self {
            wholes: apart(wholes).into(),
            texts,
            guids,
            bytes,
            hexes,
            others: others.into(),
            members: members.into(),
        }
    }

    /// Whether a number is listed or in a listed range.
    pub(super) fn has_whole(&self, count: Count) -> bool {
        let order = |bound: i128| count.compare(&Number::Whole(bound));
        let begun =
            self.wholes.partition_point(|range| order(range.0).is_some_and(Ordering::is_ge));
        let last = begun.checked_sub(1).and_then(|index| self.wholes.get(index));
        last.is_some_and(|range| order(range.1).is_some_and(Ordering::is_le))
    }

    pub(super) fn has_any_whole(&self) -> bool {
        !self.wholes.is_empty()
    }

    /// All members, in the order written.
    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The members that are in none of the sorted lists.
    pub(super) fn others(&self) -> impl Iterator<Item = &Member> {
        self.others.iter().filter_map(|index| self.members.get(*index))
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Self) -> bool {
        self.members == other.members
    }
}

/// Sorts ranges and joins those that overlap. Adjacent ranges stay separate, because there are
/// fractions between them.
fn apart(mut ranges: Vec<(i128, i128)>) -> Vec<(i128, i128)> {
    ranges.sort_unstable();
    let mut apart: Vec<(i128, i128)> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match apart.last_mut() {
            Some(last) if range.0 <= last.1 => last.1 = last.1.max(range.1),
            _ => apart.push(range),
        }
    }
    apart
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) if text.hex().is_some() => f.write_str(text.as_str()),
            Self::Text(text) => write_quoted(f, text.as_str()),
            Self::Bytes(bytes) => {
                let mut digits = String::new();
                push_hex(&mut digits, bytes);
                write!(f, "hex\"{digits}\"")
            }
        }
    }
}

impl fmt::Display for Needle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.literal.fmt(f)
    }
}

impl fmt::Display for Regular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quoted(f, &self.source)
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, member) in self.members.iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            match member {
                Member::One(literal) => write!(f, "{literal}")?,
                Member::Range(low, high) => write!(f, "{low}..{high}")?,
            }
        }
        f.write_str("}")
    }
}

/// Writes a text in quotes. The result parses as the same text and cannot control a terminal.
pub(super) fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            _ if is_hostile(c) => write!(f, "{}", c.escape_unicode())?,
            _ => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_ranges_stay_apart_for_fractions() {
        let range = |low, high| Member::Range(Number::Whole(low), Number::Whole(high));
        let one = |value| Member::One(Literal::Number(Number::Whole(value)));
        let set = Set::new(vec![range(5, 9), one(3), range(1, 2), range(7, 20), one(-4)]);
        assert_eq!(*set.wholes, [(-4, -4), (1, 2), (3, 3), (5, 20)]);
        for yes in [-4, 1, 2, 3, 5, 9, 10, 20] {
            assert!(set.has_whole(Count::Whole(yes)), "{yes}");
        }
        for no in [-5, 0, 4, 21] {
            assert!(!set.has_whole(Count::Whole(no)), "{no}");
        }
        assert!(set.has_whole(Count::Double(1.5)));
        assert!(!set.has_whole(Count::Double(2.5)));
        assert!(!set.has_whole(Count::Double(f64::NAN)));
    }

    #[test]
    fn a_huge_list_is_searched_not_scanned() {
        let one = |value| Member::One(Literal::Number(Number::Whole(value)));
        let set = Set::new((0..16_000).map(|value| one(value * 2)).collect());
        let hits = (0..1_000_000).filter(|value| set.has_whole(Count::Whole(*value))).count();
        assert_eq!(hits, 16_000);
    }
}
