//! One filter language, on the names that a tree shows.
//!
//! | filter | matches |
//! | --- | --- |
//! | `auth.AcctLoginRequest` | that message |
//! | `AcctLoginRequest`, `*Reply`, `auth.*` | by the name behind the dot, or with `*` for anything |
//! | `uru` | every message of a family |
//! | `fields.accountName == "x"` | a field; `accountName == "x"` for short |
//! | `result != 0`, `result == PlayerAlreadyExists` | enumerations by number or name |
//! | `accountFlags has Admin` | a flag |
//! | `refs[3].parentId == 5`, `refs.parentId == 5` | one element of a list; any element |
//! | `fields.node.Text_1` | the field is there |
//! | `name contains "ee"`, `startswith`, `endswith`, `matches "^a.c$"` | text; `~` is `matches` |
//! | `challengeHash contains 98:53:f1` | bytes |
//! | `transId in {1, 5..9}` | one of several values |
//! | `from == client`, `stream == 2`, `time < 1.5`, `packet`, `length`, `family` | about the message |
//! | `a and (b or not c)`, `&&`, `\|\|`, `!` | all, any, none |
//!
//! A name without `fields.` is looked up among the fields, then at the top of the tree, then among
//! what is known about the message. A comparison with a field that is not there is false, also with
//! `!=`; `not result == 0` is true for messages without a result. `time` counts seconds since the
//! first packet.
//!
//! ```
//! use worldwire_core::Tree;
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
//!     length: 74,
//!     tree: &tree,
//! };
//! assert!(filter.matches(&subject));
//! # Ok::<(), worldwire_dissect::filter::FilterError>(())
//! ```

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod parse;
mod run;

use core::fmt;

use regex_lite::Regex;
use worldwire_core::value::push_hex;
use worldwire_core::{Tree, nearest};

use crate::{Codec, Family};

/// A filter that was read and can be asked about any number of messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(Expression);

/// One message, as a filter sees it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'s> {
    /// The dotted name: `auth.AcctLoginRequest`.
    pub name: &'s str,
    /// The family: `uru`.
    pub family: &'s str,
    /// `client` or `server`.
    pub from: &'s str,
    /// The conversation.
    pub stream: u64,
    /// The packet that completed it.
    pub packet: u64,
    /// Seconds since the first packet of the capture.
    pub time: f64,
    /// Bytes of the message.
    pub length: u64,
    /// What it says: fields below a record `fields`.
    pub tree: &'s Tree<'s>,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// What is wrong and where, with a mark under the place.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        parse::parse(text).map(Self)
    }

    /// Whether a message is to be shown.
    #[must_use]
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        run::matches(&self.0, subject)
    }

    /// Message names that no family knows, each with the nearest one that is known: most likely
    /// they are misspelled.
    #[must_use]
    pub fn unknown_names(&self) -> Vec<(&str, Option<String>)> {
        let known = known_names();
        let known = || {
            known.iter().flat_map(|name| {
                [name.as_str(), name.split_once('.').map_or(name.as_str(), |(_, short)| short)]
            })
        };
        let unknown = self.names().into_iter().filter(|name| known().all(|other| other != *name));
        unknown.map(|name| (name, nearest(name, known()).map(str::to_owned))).collect()
    }

    /// The message names of the filter that have no `*`.
    fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let mut rest = vec![&self.0];
        while let Some(expression) = rest.pop() {
            match expression {
                Expression::Message(pattern) if !pattern.contains('*') => names.push(&**pattern),
                Expression::Not(inner) => rest.push(inner),
                Expression::All(parts) | Expression::Any(parts) => rest.extend(parts),
                _ => {}
            }
        }
        names
    }
}

/// Every name that an item can have, and the families.
fn known_names() -> Vec<String> {
    let mut names: Vec<String> = Family::ALL.map(|family| family.name().to_owned()).to_vec();
    for codec in Codec::all() {
        let kind = codec.name.rsplit('.').next().unwrap_or(codec.name);
        for message in codec.tables().into_iter().flatten() {
            names.push(format!("{kind}.{}", message.name));
        }
    }
    names.extend(crate::uru::SETUP_NAMES.map(str::to_owned));
    names.extend(["opened", "gap", "resync", "problem"].map(str::to_owned));
    names
}

/// What a filter asks.
#[derive(Clone, Debug, PartialEq)]
enum Expression {
    /// The message's name is this; `*` stands for anything.
    Message(Box<str>),
    /// The field is there.
    Exists(Path),
    /// The field compares like this.
    Compare(Path, Operator, Literal),
    /// The field is one of these, or between two of them.
    In(Path, Vec<(Literal, Option<Literal>)>),
    Not(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
}

/// The way to a field.
#[derive(Clone, Debug, PartialEq)]
struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Name(Box<str>),
    Index(usize),
    /// `[*]`
    Each,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    Has,
}

/// What a field is compared with.
#[derive(Clone, Debug)]
enum Literal {
    Integer(i128),
    Float(f64),
    Text(Box<str>),
    Bytes(Vec<u8>),
    Bool(bool),
    Null,
    Pattern(Box<str>, Regex),
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Text(a), Self::Text(b)) | (Self::Pattern(a, _), Self::Pattern(b, _)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Null, Self::Null) => true,
            _ => false,
        }
    }
}

/// Why a filter cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Where, counted in characters from 1.
    pub column: usize,
    /// What is wrong.
    pub problem: String,
    /// The filter.
    pub filter: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, problem, filter } = self;
        writeln!(f, "filter, column {column}: {problem}")?;
        // The mark has to stand under its place, so the filter takes one line.
        let line: String = filter.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "  {line}\n  {:1$}^", "", column.saturating_sub(1))
    }
}

impl std::error::Error for FilterError {}

/// The form that reads as the same filter.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(pattern) => f.write_str(pattern),
            Self::Exists(path) => write!(f, "{path}"),
            Self::Compare(path, operator, literal) => {
                write!(f, "{path} {} {literal}", operator.word())
            }
            Self::In(path, values) => {
                write!(f, "{path} in {{")?;
                for (index, (low, high)) in values.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    match high {
                        None => write!(f, "{comma}{low}")?,
                        Some(high) => write!(f, "{comma}{low}..{high}")?,
                    }
                }
                f.write_str("}")
            }
            Self::Not(inner) => match **inner {
                Self::All(_) | Self::Any(_) => write!(f, "not ({inner})"),
                _ => write!(f, "not {inner}"),
            },
            Self::All(parts) => join(f, parts, " and "),
            Self::Any(parts) => join(f, parts, " or "),
        }
    }
}

fn join(f: &mut fmt::Formatter<'_>, parts: &[Expression], word: &str) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            f.write_str(word)?;
        }
        match part {
            Expression::All(_) | Expression::Any(_) => write!(f, "({part})")?,
            _ => write!(f, "{part}")?,
        }
    }
    Ok(())
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Name(name) if index > 0 => write!(f, ".{name}")?,
                Step::Name(name) => f.write_str(name)?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Each => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) | Self::Pattern(text, _) => {
                f.write_str("\"")?;
                for c in text.chars() {
                    match c {
                        '"' | '\\' => write!(f, "\\{c}")?,
                        '\n' => f.write_str("\\n")?,
                        '\r' => f.write_str("\\r")?,
                        '\t' => f.write_str("\\t")?,
                        _ => write!(f, "{c}")?,
                    }
                }
                f.write_str("\"")
            }
            Self::Bytes(bytes) => {
                let mut hex = String::new();
                push_hex(&mut hex, bytes);
                write!(f, "hex\"{hex}\"")
            }
            Self::Bool(value) => write!(f, "{value}"),
            Self::Null => f.write_str("null"),
        }
    }
}

impl Operator {
    const ALL: [(Self, &'static str); 11] = [
        (Self::Equal, "=="),
        (Self::NotEqual, "!="),
        (Self::LessOrEqual, "<="),
        (Self::GreaterOrEqual, ">="),
        (Self::Less, "<"),
        (Self::Greater, ">"),
        (Self::Contains, "contains"),
        (Self::StartsWith, "startswith"),
        (Self::EndsWith, "endswith"),
        (Self::Matches, "matches"),
        (Self::Has, "has"),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.1)
    }
}
