//! The syntax tree of a filter, and its text form.

use core::fmt::{self, Write as _};

use worldwire_core::text::is_hostile;

use super::class::ObjectClass;
use super::literal::{Literal, Needle, Regular, Set, write_quoted};
use crate::vocabulary::ValueKind;

/// A parsed filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    /// The message has this name, or belongs to this family.
    Message(Pattern),
    /// The message contains another message of this name.
    Inside(Pattern),
    /// Any value or text passes. Only created from [`Check::Contains`].
    Anywhere(Check),
    /// The field exists.
    Exists(Path),
    /// The field exists and passes.
    Test(Path, Check),
    Not(Box<Self>),
    /// All of two or more conditions. None of them is an `All`.
    All(Vec<Self>),
    /// Any of two or more conditions. None of them is an `Any`.
    Any(Vec<Self>),
}

/// A condition on a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Check {
    Compare(Comparison, Literal),
    /// All bits of a number, or of a named flag.
    Has(Literal),
    Contains(Box<Needle>),
    /// Text or bytes that start with this.
    StartsWith(Literal),
    /// Text or bytes that end with this.
    EndsWith(Literal),
    Matches(Regular),
    In(Set),
    /// An object of a class or of one derived from it.
    Is(ObjectClass),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A pattern for message names, in which `*` stands for anything.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pattern(pub(super) Box<str>);

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    steps: Box<[Step]>,
    start: Start,
    /// Whether it may be the end of a longer path.
    is_tail: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Name(Box<str>),
    /// `[3]`
    Index(usize),
    /// `[*]`
    Each,
}

/// Where a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// In the fields; if they lack it, at the top of the tree; otherwise in this metadata.
    Anywhere(Option<Metadata>),
    /// At the top of the tree.
    Top,
    /// In the metadata.
    Message(Metadata),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metadata {
    Name,
    Family,
    From,
    Stream,
    Packet,
    Elapsed,
    Length,
    Source,
    Target,
    Address,
    SourcePort,
    TargetPort,
    Port,
    Date,
    Error,
    Remarks,
}

/// The word for every value of a message. A field of that name is written `["any"]`.
pub(super) const ANY: &str = "any";

/// Words that cannot start a test. A field with such a name is written `["in"]`.
pub(super) const RESERVED: [&str; 13] = [
    "and",
    "or",
    "not",
    "in",
    "is",
    "contains",
    "startswith",
    "endswith",
    "matches",
    "has",
    "true",
    "false",
    "null",
];

impl Expression {
    /// Joins alternatives. `(a or b) or c` becomes `a or b or c`.
    pub(super) fn any(parts: Vec<Self>) -> Self {
        let open = |part| match part {
            Self::Any(parts) => parts,
            other => vec![other],
        };
        join(parts.into_iter().flat_map(open).collect(), Self::Any)
    }

    /// The same expression with different tests.
    pub(super) fn map_tests(self, map: &dyn Fn(Self) -> Self) -> Self {
        let all = |parts: Vec<Self>| parts.into_iter().map(|part| part.map_tests(map)).collect();
        match self {
            Self::Not(inner) => Self::Not(Box::new(inner.map_tests(map))),
            Self::All(parts) => Self::All(all(parts)),
            Self::Any(parts) => Self::Any(all(parts)),
            test => map(test),
        }
    }

    /// The same expression with other paths.
    pub(super) fn map_paths(self, map: &dyn Fn(Path) -> Path) -> Self {
        self.map_tests(&|test| match test {
            Self::Exists(path) => Self::Exists(map(path)),
            Self::Test(path, check) => Self::Test(map(path), check),
            other => other,
        })
    }

    /// The same expression, in which `contains` finds text in any case.
    pub(super) fn ignore_case(self) -> Self {
        let ignoring = |check| match check {
            Check::Contains(needle) => Check::Contains(Box::new(needle.ignoring_case())),
            other => other,
        };
        self.map_tests(&|test| match test {
            Self::Test(path, check) => Self::Test(path, ignoring(check)),
            Self::Anywhere(check) => Self::Anywhere(ignoring(check)),
            other => other,
        })
    }

    /// The same expression, with the tags that definitions have for the classes after `is`.
    pub(super) fn map_classes(self, tags: &dyn Fn(&str) -> Option<Vec<i64>>) -> Self {
        self.map_tests(&|test| match test {
            Self::Test(path, Check::Is(class)) => Self::Test(path, Check::Is(class.resolve(tags))),
            other => other,
        })
    }

    /// The maximum work of a match, in steps per byte of the message.
    pub(super) fn work_per_byte(&self) -> u64 {
        /// The work of a regular expression, relative to a search for a text.
        const REGULAR: u64 = 32;
        match self {
            Self::Message(_) => 0,
            Self::Test(_, Check::Matches(_)) => REGULAR,
            Self::Inside(_) | Self::Anywhere(_) | Self::Exists(_) | Self::Test(..) => 1,
            Self::Not(inner) => inner.work_per_byte(),
            Self::All(parts) | Self::Any(parts) => parts.iter().map(Self::work_per_byte).sum(),
        }
    }

    /// Joins conditions that must all hold.
    pub(super) fn all(parts: Vec<Self>) -> Self {
        let open = |part| match part {
            Self::All(parts) => parts,
            other => vec![other],
        };
        join(parts.into_iter().flat_map(open).collect(), Self::All)
    }
}

/// Joins several expressions, unless there is only one.
fn join(mut parts: Vec<Expression>, whole: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            whole(parts)
        }
    }
}

impl Pattern {
    /// Whether a message matches: by its full dotted name, by the part after the first dot, or by
    /// its family.
    pub(super) fn fits(&self, family: &str, name: &str) -> bool {
        let pattern = &*self.0;
        let short = || name.split_once('.').map(|(_, short)| short);
        pattern == family
            || alike(pattern, name)
            || (!pattern.contains('.') && short().is_some_and(|short| alike(pattern, short)))
    }

    /// Whether it has no `*`.
    pub(super) fn is_plain(&self) -> bool {
        !self.0.contains('*')
    }
}

/// Whether a name matches a pattern. Takes linear time, because each part between two stars is
/// searched for once, in order.
fn alike(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inner = name.strip_prefix(head).and_then(|name| name.strip_suffix(tail));
    let Some(mut inner) = inner else {
        return false;
    };
    for piece in middle.split('*') {
        match inner.split_once(piece) {
            _ if piece.is_empty() => {}
            Some((_, behind)) => inner = behind,
            None => return false,
        }
    }
    true
}

impl Path {
    pub(super) fn new(steps: Vec<Step>) -> Self {
        let start = match &*steps {
            [Step::Name(first), ..] if &**first == "fields" => Start::Top,
            [Step::Name(first), Step::Name(second)] if &**first == "message" => {
                Metadata::named(second).map_or(Start::Anywhere(None), Start::Message)
            }
            [Step::Name(only)] => Start::Anywhere(Metadata::named(only)),
            _ => Start::Anywhere(None),
        };
        Self { steps: steps.into(), start, is_tail: false }
    }

    /// The same path, which may also be the end of a longer one.
    pub(super) fn tail(self) -> Self {
        Self { is_tail: true, ..self }
    }

    pub(super) fn is_tail(&self) -> bool {
        self.is_tail
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn start(&self) -> Start {
        self.start
    }

    /// The metadata that it can mean.
    pub(super) fn metadata(&self) -> Option<Metadata> {
        match self.start {
            Start::Message(metadata) => Some(metadata),
            Start::Anywhere(metadata) => metadata,
            Start::Top => None,
        }
    }

    /// Whether it is the name of the message.
    pub(super) fn is_name(&self) -> bool {
        matches!(self.start, Start::Message(Metadata::Name) | Start::Anywhere(Some(Metadata::Name)))
    }

    pub(super) fn is_metadata(&self) -> bool {
        matches!(self.start, Start::Message(_) | Start::Anywhere(Some(_)))
    }
}

impl Metadata {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "name" => Self::Name,
            "family" => Self::Family,
            "from" => Self::From,
            "stream" => Self::Stream,
            "packet" => Self::Packet,
            // `time` is the older name. In JSON lines, it is the date.
            "elapsed" | "time" => Self::Elapsed,
            "length" => Self::Length,
            "src" => Self::Source,
            "dst" => Self::Target,
            "addr" => Self::Address,
            "srcport" => Self::SourcePort,
            "dstport" => Self::TargetPort,
            "port" => Self::Port,
            "date" => Self::Date,
            "error" => Self::Error,
            "remarks" => Self::Remarks,
            _ => return None,
        })
    }
}

impl Metadata {
    /// What its values are.
    pub(super) fn kind(self) -> ValueKind {
        match self {
            Self::Name
            | Self::Family
            | Self::From
            | Self::Source
            | Self::Target
            | Self::Address
            | Self::Error
            | Self::Remarks => ValueKind::Text,
            _ => ValueKind::Number,
        }
    }
}

impl Comparison {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(pattern) | Self::Inside(pattern) => f.write_str(&pattern.0),
            Self::Anywhere(check) => write!(f, "{ANY} {check}"),
            Self::Exists(path) => write!(f, "exists({path})"),
            Self::Test(path, check) => write!(f, "{path} {check}"),
            Self::Not(inner) => match **inner {
                Self::All(_) | Self::Any(_) => write!(f, "not ({inner})"),
                _ => write!(f, "not {inner}"),
            },
            Self::All(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    f.write_str(if index > 0 { " and " } else { "" })?;
                    match part {
                        Self::Any(_) => write!(f, "({part})")?,
                        _ => write!(f, "{part}")?,
                    }
                }
                Ok(())
            }
            Self::Any(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    f.write_str(if index > 0 { " or " } else { "" })?;
                    write!(f, "{part}")?;
                }
                Ok(())
            }
        }
    }
}

impl Check {
    /// Its operator.
    pub(super) fn operator(&self) -> &'static str {
        match self {
            Self::Compare(comparison, _) => comparison.sign(),
            Self::Has(_) => "has",
            Self::Contains(_) => "contains",
            Self::StartsWith(_) => "startswith",
            Self::EndsWith(_) => "endswith",
            Self::Matches(_) => "matches",
            Self::In(_) => "in",
            Self::Is(_) => "is",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.operator())?;
        match self {
            Self::Compare(_, literal)
            | Self::Has(literal)
            | Self::StartsWith(literal)
            | Self::EndsWith(literal) => literal.fmt(f),
            Self::Contains(needle) => needle.fmt(f),
            Self::Matches(regular) => regular.fmt(f),
            Self::In(set) => set.fmt(f),
            Self::Is(class) => class.fmt(f),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Each => f.write_str("[*]")?,
                Step::Name(name) if !is_plain_step(name, index == 0) => {
                    f.write_char('[')?;
                    write_quoted(f, name)?;
                    f.write_char(']')?;
                }
                Step::Name(name) if index == 0 => f.write_str(name)?,
                Step::Name(name) => write!(f, ".{name}")?,
            }
        }
        Ok(())
    }
}

/// Whether a field name needs no quotes in a path.
pub(super) fn is_plain_step(name: &str, first: bool) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c != '.' && c != '*' && is_word_char(c) && !is_hostile(c))
        && (!first || (name.starts_with(is_word_start) && name != ANY && !RESERVED.contains(&name)))
}

/// Whether a character can occur in a path or a pattern of message names.
pub(super) fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '*' | '-' | '$')
}

/// Whether a path can start with a character.
pub(super) fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_anything_or_nothing() {
        let yes = [("*", ""), ("a*", "a"), ("*a", "ba"), ("a*c", "abc"), ("a*b*c", "a-b-b-c")];
        for (pattern, name) in yes.into_iter().chain([("**", "x"), ("*a*a*", "aa")]) {
            assert!(alike(pattern, name), "{pattern} {name}");
        }
        let no = [("a*a", "a"), ("ab*bc", "abc"), ("*a*a*", "a"), ("a*", "ba"), ("a", "A")];
        for (pattern, name) in no {
            assert!(!alike(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_hostile_pattern_is_fast() {
        assert!(!alike(&"*a".repeat(16_000), &"a".repeat(15_000)));
        assert!(alike(&"*a".repeat(15_000), &"a".repeat(16_000)));
    }

    #[test]
    fn messages_match_by_name_or_family() {
        let fits = |pattern: &str| Pattern(pattern.into()).fits("uru", "auth.AcctLoginReply");
        for yes in ["auth.AcctLoginReply", "AcctLoginReply", "*Reply", "auth.*", "uru", "*.*"] {
            assert!(fits(yes), "{yes}");
        }
        for no in ["auth", "Reply", "acctloginreply", "game.*", "ur*", "auth.*Request"] {
            assert!(!fits(no), "{no}");
        }
    }
}
