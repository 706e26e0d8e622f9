//! The filter language. It uses the names that a tree shows.
//!
//! | filter | matches |
//! | --- | --- |
//! | `auth.AcctLoginRequest`, `AcctLoginRequest` | that message |
//! | `auth.*`, `*Reply` | messages by part of their name; `*` matches anything |
//! | `uru` | every message of a family |
//! | `accountName == "x"`, `fields.accountName == "x"` | a field |
//! | `result != 0`, `result == PlayerAlreadyExists` | an enumeration, by number or by name |
//! | `accountFlags has Admin`, `mask has 0x4` | flags: these bits are set |
//! | `transId < 0x20`, `scale >= 0.5`, `delta == -3` | numbers, exactly |
//! | `isPatcher == true`, `avatar != null` | booleans; optional values |
//! | `ageName contains "ee"`, `startswith`, `endswith` | parts of text |
//! | `ageName ~ r"^City\d+$"`, `ageName matches "(?i)city"` | text by a regular expression |
//! | `buffer contains 98:53:f1`, `buffer == hex"9853 f1"` | bytes as they are in the message |
//! | `accountId == 12345678-1234-5678-1234-56781234567A` | an identifier, in any spelling |
//! | `address == 127.0.0.1` | an IPv4 address |
//! | `transId in {1, 5..9}`, `result in {Success, Pending}` | one of several values |
//! | `object is ItemTemplate`, `m_item.$class is ItemTemplate` | an object of this class or of one derived from it (resolved) |
//! | `refs[3].parentId == 5`, `refs.parentId == 5` | one element of a list; any element |
//! | `fields.node.Text_1`, `exists(node.Text_1)` | the field exists |
//! | `["odd name"].x == 1` | a field whose name is not a plain word |
//! | `playerId == 5`, `payload.text contains "ee"` | a nested field, by the end of its path (resolved) |
//! | `m_id.m_full == 5` | a property whose name has dots, as output shows it (resolved) |
//! | `plNetMsgVoice` | messages that contain this one (resolved) |
//! | `any contains "Shorah"`, `any contains 98:53` | every value of the message; all its bytes |
//! | `from == client`, `stream == 2`, `elapsed < 1.5` | metadata of the message |
//! | `src == 192.0.2.1`, `port == 14617`, `addr == "2001:db8::1"` | sender and recipient |
//! | `date >= "2026-01-01 12:00"`, `date < 1767225600.5` | date and time: UTC, with an offset, or seconds since 1970 |
//! | `a and (b or not c)`, `a && (b \|\| !c)` | both, at least one, not |
//!
//! `not` binds tightest, then `and`, then `or`. Names and text are case-sensitive. A range includes
//! both ends. Comparisons may also be words: `eq`, `ne`, `lt`, `le`, `gt`, `ge`.
//!
//! # Fields and messages
//!
//! A word before an operator is a field. A single word matches messages by name. But if it starts
//! with `fields.` or has brackets, it tests whether that field exists. For any other field, use
//! `exists(...)`.
//!
//! A [resolved](Filter::resolve) filter knows the names of all messages and fields. Its paths may
//! omit their beginning: if a message lacks a path, the filter uses the fields nearest to the top
//! of its tree whose paths end with it. If they are different fields, the path is
//! [ambiguous](Filter::ambiguity). Its single words also match messages inside others.
//!
//! `any` is every value of a message, as output shows it: text, numbers, names, and what output
//! shows beside the fields, such as the names of players and the text of notes. A field of that
//! name is `fields.any`.
//!
//! A field is looked up among the fields, then at the top of the tree, then in the metadata of the
//! message; only the first match counts. `fields.length` is always the field, `message.length`
//! always the metadata. `name` is the name of the message, with and without the kind of connection,
//! if no field has that name. The metadata is `name`, `family`, `from` (`client` or `server`),
//! `stream`, `packet`, `elapsed` (seconds since the first packet of the capture), `length` (bytes),
//! `date` (date and time), `src`, `dst` (addresses), `srcport` and `dstport`; `addr` and `port`
//! match either end. `error` and `remarks` are the texts with these keys in JSON lines: why a
//! message cannot be decoded completely, and why fields are shown as bytes. `time` is an older name
//! for `elapsed`; in JSON lines, `time` is the date.
//!
//! # Comparisons
//!
//! * A comparison with a missing field is false, even with `!=`; `not` makes it true.
//! * A list matches if any of its elements does. `[*]` has the same effect. `!=` is the opposite of
//!   `==` for fields that exist, so it requires that *no* element is equal.
//! * Values of different kinds are never equal and have no order. However, text that is a whole
//!   number can be compared with numbers, booleans are 1 and 0, and bytes are compared with the
//!   bytes of any field, including records and lists.
//! * Numbers compare exactly over all of `u64`, `i64` and `f64`. A number with a fraction is first
//!   rounded to the precision of the field, so `== 0.1` finds what was sent as 0.1.
//! * Text that is not valid Unicode is treated as bytes. Text is compared with bytes as UTF-8.
//! * Names of an enumeration or of flags have the order of their numbers: `level >= Warning`.
//!
//! Escapes in text are `\"`, `\\`, `\n`, `\r`, `\t`, `\0` and `\u{...}`, and JSON's escapes, so a
//! value can be copied from any output; in `r"..."` a backslash is a backslash.
//!
//! # Bounds
//!
//! A filter has at most 65,536 bytes, 64 nested parentheses and `not`s, 64 steps per path and 32
//! regular expressions of at most 256 KiB each when compiled; regular expressions run in linear
//! time. A test visits every node at most once, and long lists of values are searched, not scanned.
//! Matching allocates only to look into text that is not stored as UTF-8, for shortened paths, and
//! for `any`.
//!
//! ```
//! use worldwire_core::Tree;
//! use worldwire_dissect::Time;
//! use worldwire_dissect::filter::{Filter, Subject};
//!
//! let filter = Filter::parse("auth.* and from == client")?;
//! let tree = Tree::new();
//! let subject = Subject {
//!     name: "auth.AcctLoginRequest",
//!     family: "uru",
//!     from: "client",
//!     stream: 0,
//!     packet: 12,
//!     time: 0.25,
//!     date: Time(1_767_225_600_250_000_000),
//!     ends: None,
//!     length: 74,
//!     tree: &tree,
//!     item: None,
//! };
//! assert!(filter.matches(&subject));
//! # Ok::<(), worldwire_dissect::filter::FilterError>(())
//! ```

mod bind;
mod check;
mod class;
mod column;
mod error;
mod expression;
mod field_path;
mod fields;
mod folded;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod input;
mod literal;
mod moment;
mod number;
mod parse;
mod path_value;
mod reach;
mod resolve;
mod run;
mod tail;
mod value;
mod values;

use core::fmt;

use worldwire_core::Tree;

pub use column::{Column, ColumnCell};
pub use error::{FilterError, FilterErrorKind};
use expression::{Expression, Pattern};
pub use field_path::{FieldPath, PathError};
pub use fields::UnknownField;
use fields::nearest_name;
pub use resolve::Resolver;
use tail::Ambiguities;
pub use tail::Ambiguity;
pub use values::UnknownValue;

use crate::item::{Ends, Item, Time};

/// A parsed filter, which can be matched against any number of messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    expression: Expression,
    found: Ambiguities,
}

/// A message as a filter sees it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'s> {
    /// The dotted name: `auth.AcctLoginRequest`.
    pub name: &'s str,
    /// The family: `uru`.
    pub family: &'s str,
    /// `client` or `server`.
    pub from: &'s str,
    /// The number of the conversation.
    pub stream: u64,
    /// The number of the packet that completed the message.
    pub packet: u64,
    /// Seconds since the first packet of the capture.
    pub time: f64,
    /// When the message was complete.
    pub date: Time,
    /// The addresses of the conversation, if known.
    pub ends: Option<&'s Ends>,
    /// The length of the message in bytes.
    pub length: u64,
    /// The message's tree: its fields are below a record `fields`.
    pub tree: &'s Tree<'s>,
    /// The item, if the message is one, for the names that output shows beside its fields.
    pub item: Option<&'s Item<'s>>,
}

impl<'s> Subject<'s> {
    /// The subject for an item with this name and tree.
    #[must_use]
    pub fn of(item: &'s Item<'s>, name: &'s str, tree: &'s Tree<'s>) -> Self {
        // Divides only once, so that the result equals what the decimal form parses to.
        #[expect(clippy::cast_precision_loss, reason = "exact for 104 days")]
        let time = item.stamp.since.as_nanos() as f64 / 1e9;
        Self {
            name,
            family: item.family,
            from: item.from.name(),
            stream: item.stamp.stream,
            packet: item.stamp.packet.unwrap_or(0),
            time,
            date: item.stamp.time,
            ends: item.ends,
            length: item.bytes().len() as u64,
            tree,
            item: Some(item),
        }
    }
}

impl Filter {
    /// Whether a word is reserved and therefore cannot be a name.
    #[must_use]
    pub fn is_keyword(word: &str) -> bool {
        expression::RESERVED.contains(&word) || parse::WORDS.contains(&word)
    }

    /// Parses a filter.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        parse::parse(text).map(Self::of)
    }

    fn of(expression: Expression) -> Self {
        Self { expression, found: Ambiguities::default() }
    }

    /// Accepts shortened paths, the names of messages inside others, and property names with dots,
    /// as far as the definitions have such names. Paths and names that are valid without this
    /// keep their meaning wherever they are found.
    #[must_use]
    pub fn resolve(self, resolver: &Resolver<'_>) -> Self {
        let expression = resolver.known().resolve(self.expression, &mut Vec::new());
        let definitions = resolver.definitions();
        let families = definitions.families();
        Self { expression, ..self }.derive_classes(|class| {
            let tags = families.iter().filter_map(|it| it.vocabulary().derived(class, definitions));
            tags.reduce(|mut all, more| {
                all.extend(more);
                all
            })
        })
    }

    /// Lets `is` match objects of derived classes, too. `tags` has the tags of a class and of all
    /// that are derived from it; `None` if the class is unknown.
    #[must_use]
    pub fn derive_classes(self, tags: impl Fn(&str) -> Option<Vec<i64>>) -> Self {
        Self { expression: self.expression.map_classes(&tags), ..self }
    }

    /// Lets `contains` find text in any case. The text form of the filter does not show this.
    #[must_use]
    pub fn ignore_case(self) -> Self {
        Self { expression: self.expression.ignore_case(), ..self }
    }

    /// The messages that match this filter and another one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { expression: Expression::all(vec![self.expression, other.expression]), ..self }
    }

    /// Joins consecutive names on a path that are one name with dots: `m_id.m_full`.
    #[must_use]
    pub fn join_names(self, is_known: impl Fn(&str) -> bool) -> Self {
        let joined = |path| resolve::joined(path, &is_known);
        Self { expression: self.expression.map_paths(&joined), ..self }
    }

    /// The earliest matched message in which a shortened path can mean several fields. Such a
    /// message lacks the path, so the filter's results are incomplete.
    #[must_use]
    pub fn ambiguity(&self) -> Option<Ambiguity> {
        self.found.earliest()
    }

    /// Whether a message with this name matches, if the name and family decide it. With `Some`, its
    /// tree is not needed.
    #[must_use]
    pub fn matches_name(&self, family: &str, name: &str) -> Option<bool> {
        run::matches_name(&self.expression, family, name)
    }

    /// Whether a message matches.
    #[must_use]
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        run::matches(&self.expression, subject, &self.found)
    }

    /// Message names that no family or definition knows, each with the most similar known name.
    /// Most of them are misspelled. Numbers are never reported, because they name messages without
    /// a name.
    #[must_use]
    pub fn unknown_names(&self, resolver: &Resolver<'_>) -> Vec<(&str, Option<String>)> {
        let known = || {
            resolver.known().names.iter().flat_map(|name| {
                [name.as_str(), name.split_once('.').map_or(name.as_str(), |(_, short)| short)]
            })
        };
        let plain = self.patterns().into_iter().filter(|pattern| pattern.is_plain());
        let is_number = |name: &str| {
            let last = name.rsplit('.').next().unwrap_or(name);
            last.bytes().all(|byte| byte.is_ascii_digit())
        };
        let unknown = plain
            .map(|pattern| &*pattern.0)
            .filter(|name| !is_number(name) && !known().any(|other| other == *name));
        unknown.map(|name| (name, nearest_name(name, known()).map(str::to_owned))).collect()
    }

    /// Fields that no message has, according to the tables and definitions of all families. If the
    /// filter also names messages, only those count. Depends on the user's definitions: a message
    /// without one has no named fields.
    #[must_use]
    pub fn unknown_fields(&self, resolver: &Resolver<'_>) -> Vec<UnknownField> {
        fields::unknown(&self.expression, resolver)
    }

    /// Values that the compared fields cannot have, such as unknown names of enumeration values and
    /// flags. Covers metadata too. Text in quotes is not treated as a name.
    #[must_use]
    pub fn unknown_values(&self, resolver: &Resolver<'_>) -> Vec<UnknownValue> {
        values::unknown(&self.expression, resolver)
    }

    /// Patterns with `*` that match no known message name, each with a suggestion. Patterns of
    /// numbers are never reported, because some messages only have a number.
    #[must_use]
    pub fn unknown_patterns(&self, resolver: &Resolver<'_>) -> Vec<(&str, Option<String>)> {
        let patterns = self.patterns().into_iter().filter(|pattern| !pattern.is_plain());
        let known = &resolver.known().names;
        let is_number = |pattern: &Pattern| {
            let last = pattern.0.rsplit('.').next().unwrap_or(&pattern.0);
            last.bytes().any(|byte| byte.is_ascii_digit())
                && last.bytes().all(|byte| byte.is_ascii_digit() || byte == b'*')
        };
        let fits = |pattern: &Pattern| known.iter().any(|name| pattern.fits("", name));
        let unknown = patterns.filter(|it| !is_number(it) && !fits(it));
        // The part before the first dot may be misspelled.
        let nearest = |pattern: &Pattern| {
            let (head, tail) = pattern.0.split_once('.')?;
            let heads = known.iter().filter_map(|name| name.split_once('.')).map(|(head, _)| head);
            // Families differ in capitalisation: `game` and `GAME`.
            let is_small = |head: &str| !head.contains(char::is_uppercase);
            let alike = heads.clone().filter(|other| is_small(other) == is_small(head));
            let near = nearest_name(head, alike).or_else(|| nearest_name(head, heads))?;
            let near = Pattern(format!("{near}.{tail}").into());
            (near != *pattern && fits(&near)).then(|| near.0.into_string())
        };
        unknown.map(|pattern| (&*pattern.0, nearest(pattern))).collect()
    }

    /// Whether a word is a field of some message or a path to one. By itself such a word would name
    /// messages.
    #[must_use]
    pub fn is_field(word: &str, resolver: &Resolver<'_>) -> bool {
        fields::is_field(word, &resolver.known().messages)
    }

    /// The message names and patterns in the filter, as written.
    #[must_use]
    pub fn message_names(&self) -> Vec<&str> {
        self.patterns().into_iter().map(|pattern| &*pattern.0).collect()
    }

    /// The maximum work of a match, in steps per byte of the message. A step takes a few nanoseconds.
    #[must_use]
    pub fn work_per_byte(&self) -> u64 {
        self.expression.work_per_byte()
    }

    /// The classes after `is`.
    #[must_use]
    pub fn class_names(&self) -> Vec<&str> {
        values::classes(&self.expression)
    }

    /// The names on each tested path, without metadata: `m_list` and `m_id` for
    /// `fields.m_list[3].m_id`.
    #[must_use]
    pub fn field_names(&self) -> Vec<Vec<&str>> {
        fields::names(&self.expression)
    }

    /// The names of tested metadata, such as `time`, but not of paths that can only be fields, such
    /// as `fields.time`.
    #[must_use]
    pub fn metadata_names(&self) -> Vec<&str> {
        fields::metadata(&self.expression)
    }

    /// The words without quotes that fields are compared with, each with the names on the path as
    /// in [`Self::field_names`]. Such a word is the name of an enumeration value or flag, or text.
    #[must_use]
    pub fn compared_words(&self) -> Vec<(Vec<&str>, &str)> {
        values::words(&self.expression)
    }

    /// The message names and patterns, in the order written.
    fn patterns(&self) -> Vec<&Pattern> {
        let mut patterns = Vec::new();
        let mut rest = vec![&self.expression];
        while let Some(expression) = rest.pop() {
            match expression {
                Expression::Message(pattern) => patterns.push(pattern),
                Expression::Not(inner) => rest.push(inner),
                Expression::All(parts) | Expression::Any(parts) => rest.extend(parts.iter().rev()),
                Expression::Inside(_)
                | Expression::Anywhere(_)
                | Expression::Exists(_)
                | Expression::Test(..) => {}
            }
        }
        patterns
    }
}

/// Writes a form that parses as the same filter.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expression.fmt(f)
    }
}

#[cfg(test)]
mod tests;
