//! The lines of a definition.
//!
//! ```text
//! line    = depth type ws name [ "=" text ] [ ws range ] | "@include" ws file
//! depth   = { "-" { ws } }
//! type    = word [ "<" type ">" ] { "[" flags or digits "]" }
//! name    = identifier { "." identifier }      dots only after count, offset and ref
//! range   = "^" version [ "-" version ]
//! ```
//!
//! A `#` begins a comment, and empty lines are ignored. White space is anything that JavaScript's
//! `\s` matches, since byte-order marks do occur. This grammar covers all dialects; constructs that
//! a dialect lacks are rejected by [`dialect`](super::dialect).

use core::ops::Range;

use worldwire_core::{Source, nearest};

use super::problem::{Problem, ProblemKind};
use super::version::PatchRange;
use crate::types::Scalar;

/// Maximum nesting of fields, and of types.
pub const MAX_DEPTH: usize = 64;

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A type of fixed size.
    Scalar(Scalar),
    /// A text elsewhere in the message.
    Text,
    /// A byte string elsewhere in the message.
    Bytes,
    /// A linked list of elements.
    Array(Box<Self>),
    /// Named fields, including the elements of an array with fields.
    Object,
    /// A fixed number of values in a row.
    Row(Box<Self>, u32),
    /// Not a field: the position of a count or offset.
    Meta(Meta),
}

/// A line for the count or offset of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meta {
    /// The count, 2 bytes.
    Count,
    /// The offset, 2 bytes.
    Offset,
    /// Both, or whichever of them the field has.
    Ref,
}

impl Type {
    /// The innermost element type, to which nested lines belong.
    #[must_use]
    pub fn innermost(&self) -> &Self {
        match self {
            Self::Array(element) | Self::Row(element, _) => element.innermost(),
            other => other,
        }
    }
}

impl core::fmt::Display for Type {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Scalar(scalar) => f.write_str(scalar.name()),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Array(element) if **element == Self::Object => f.write_str("array"),
            Self::Array(element) => write!(f, "array<{element}>"),
            Self::Object => f.write_str("object"),
            // The leftmost bracket is the outermost, so an element's own brackets follow it.
            Self::Row(_, _) => {
                let mut counts = String::new();
                let mut inner = self;
                while let Self::Row(element, count) = inner {
                    counts.push_str(&format!("[{count}]"));
                    inner = element;
                }
                write!(f, "{inner}{counts}")
            }
            Self::Meta(Meta::Count) => f.write_str("count"),
            Self::Meta(Meta::Offset) => f.write_str("offset"),
            Self::Meta(Meta::Ref) => f.write_str("ref"),
        }
    }
}

/// One line of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Number of leading dashes.
    pub depth: usize,
    /// The type.
    pub kind: Type,
    /// Whether the elements of this array alternate with those of its neighbours.
    pub interleaved: bool,
    /// The name of the field, or the path of the field that a metadata line is for.
    pub name: Box<str>,
    /// The text after `=`.
    pub init: Option<Box<str>>,
    /// The patches it exists in; all if `None`.
    pub range: Option<PatchRange>,
    /// Where type and name are in their text.
    pub span: Range<usize>,
    /// Index of that text: 0 is the definition's own, followed by the files it includes.
    pub origin: u16,
}

/// One statement of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// A field or a metadata line.
    Line(Line),
    /// The lines of another file.
    Include {
        /// Its file name.
        file: Box<str>,
        /// Where the name is in the text.
        span: Range<usize>,
    },
}

/// Parses all lines of the text. Lines that cannot be parsed are reported and skipped.
#[must_use]
pub fn parse(name: &str, text: &str) -> (Vec<Statement>, Vec<Problem>) {
    let mut parser = Parser { name, text, source: None, problems: Vec::new() };
    let mut statements = Vec::new();
    let mut start = 0;
    for whole in text.split('\n') {
        let line = whole.split('#').next().unwrap_or_default();
        if let Some(statement) = parser.line(start, line) {
            statements.push(statement);
        }
        start += whole.len() + 1;
    }
    (statements, parser.problems)
}

/// White space as JavaScript's `\s` defines it.
pub(crate) fn is_space(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

struct Parser<'t> {
    name: &'t str,
    text: &'t str,
    /// Created on the first problem.
    source: Option<Source<'t>>,
    problems: Vec<Problem>,
}

/// The rest of a line, and its offset in the text.
#[derive(Clone, Copy)]
struct Cursor<'t> {
    rest: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        self.at += bytes;
    }

    fn skip_space(&mut self) -> bool {
        let trimmed = self.rest.trim_start_matches(is_space);
        let skipped = self.rest.len() - trimmed.len();
        self.advance(skipped);
        skipped > 0
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !keep(c)).unwrap_or(self.rest.len());
        let (taken, _) = self.rest.split_at(end);
        self.advance(end);
        taken
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.rest.starts_with(wanted);
        if found {
            self.advance(wanted.len_utf8());
        }
        found
    }
}

/// Maximum length of a name in bytes. It is printed for every value, so a long name in a list would
/// multiply the output.
pub(crate) const MAX_NAME: usize = 255;

/// The line cannot be parsed; the problem has been reported.
struct Refused;

type Parsed<T> = Result<T, Refused>;

impl<'t> Parser<'t> {
    fn error(
        &mut self,
        kind: ProblemKind,
        span: Range<usize>,
        message: String,
        help: Option<String>,
    ) -> Refused {
        let (name, text) = (self.name, self.text);
        let source = self.source.get_or_insert_with(|| Source::new(name, text));
        let mut diagnostic = source.error(span, message);
        if let Some(help) = help {
            diagnostic = diagnostic.help(help);
        }
        self.problems.push(Problem { kind, diagnostic });
        Refused
    }

    fn malformed(&mut self, cursor: Cursor<'_>, wanted: &str) -> Refused {
        let span = cursor.at..cursor.at + cursor.rest.trim_end_matches(is_space).len();
        let message = match cursor.rest.trim_matches(is_space) {
            "" => format!("wanted {wanted}, found the end of the line"),
            rest => format!("wanted {wanted}, found {}", quoted(rest)),
        };
        let help = Some("a line has dashes, a type and a name: - int32 id".to_owned());
        self.error(ProblemKind::MalformedLine, span, message, help)
    }

    fn line(&mut self, start: usize, line: &'t str) -> Option<Statement> {
        let mut cursor = Cursor { rest: line.trim_end_matches(is_space), at: start };
        cursor.skip_space();
        if cursor.rest.is_empty() {
            return None;
        }
        if let Some(odd) = cursor.rest.find(|c: char| is_space(c) && !c.is_ascii()) {
            let at = cursor.at + odd;
            let message = "whitespace other than space and tab".to_owned();
            let (name, text) = (self.name, self.text);
            let source = self.source.get_or_insert_with(|| Source::new(name, text));
            let diagnostic = source.warning(at..at + 1, message);
            self.problems.push(Problem { kind: ProblemKind::OddSpace, diagnostic });
        }
        if cursor.rest.starts_with('@') {
            return self.include(cursor).ok();
        }
        self.field(cursor).ok().map(Statement::Line)
    }

    fn include(&mut self, mut cursor: Cursor<'t>) -> Parsed<Statement> {
        let whole = cursor;
        let word = cursor.take_while(|c| !is_space(c));
        if word != "@include" || !cursor.skip_space() {
            return Err(self.malformed(whole, "@include and a file"));
        }
        let span = cursor.at..cursor.at + cursor.rest.len();
        let file = cursor.take_while(|c| !is_space(c));
        if !cursor.rest.is_empty() {
            return Err(self.malformed(cursor, "the end of the line"));
        }
        if file.contains(['/', '\\']) {
            let help = Some("included files must be in the same directory".to_owned());
            let message = format!("{} is in another directory", quoted(file));
            return Err(self.error(ProblemKind::BadInclude, span, message, help));
        }
        Ok(Statement::Include { file: file.into(), span })
    }

    fn field(&mut self, mut cursor: Cursor<'t>) -> Parsed<Line> {
        let mut depth = 0;
        while cursor.eat('-') {
            depth += 1;
            cursor.skip_space();
        }
        let begin = cursor.at;
        let kind_start = cursor;
        let (kind, interleaved) = self.kind(&mut cursor)?;
        if !cursor.skip_space() {
            return Err(self.malformed(cursor, "whitespace and a name"));
        }
        let name_at = cursor.at;
        let name = cursor.take_while(|c| !is_space(c) && c != '=' && c != '^');
        if name.is_empty() {
            return Err(self.malformed(cursor, "a name"));
        }
        let span = begin..cursor.at;
        let dotted = matches!(kind, Type::Meta(_));
        let good = if dotted { name.split('.').all(is_identifier) } else { is_identifier(name) };
        if !good {
            let help = "letters, digits and underscores, not starting with a digit".to_owned();
            let message = format!("{} is not a valid field name", quoted(name));
            let span = name_at..name_at + name.len();
            return Err(self.error(ProblemKind::BadName, span, message, Some(help)));
        }
        if name.len() > MAX_NAME {
            let message = format!("the name is {} bytes long; the limit is {MAX_NAME}", name.len());
            let span = name_at..name_at + name.len();
            return Err(self.error(ProblemKind::BadName, span, message, None));
        }
        let init = if cursor.eat('=') {
            let text = cursor.take_while(|c| !is_space(c));
            if text.is_empty() {
                return Err(self.malformed(cursor, "a value after ="));
            }
            Some(text.into())
        } else {
            None
        };
        let spaced = cursor.skip_space();
        let range = if spaced && cursor.rest.starts_with('^') {
            Some(self.range(&mut cursor)?)
        } else {
            None
        };
        cursor.skip_space();
        if !cursor.rest.is_empty() {
            return Err(self.malformed(cursor, "the end of the line"));
        }
        if matches!(kind, Type::Row(..)) && dotted {
            return Err(self.malformed(kind_start, "a type"));
        }
        Ok(Line { depth, kind, interleaved, name: name.into(), init, range, span, origin: 0 })
    }

    /// A type with its brackets, and whether it is flagged as interleaved.
    fn kind(&mut self, cursor: &mut Cursor<'t>) -> Parsed<(Type, bool)> {
        let begin = *cursor;
        let mut open = 0;
        // Nested `array<` are read from the outside in; `open` counts them.
        let word = loop {
            let start = *cursor;
            let word = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
            if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Err(self.malformed(start, "a type"));
            }
            if !cursor.eat('<') {
                break (word, start);
            }
            if word != "array" {
                let message = format!("{word} cannot contain another type");
                let span = start.at..cursor.at;
                let help = Some("only array<type> can".to_owned());
                return Err(self.error(ProblemKind::UnknownType, span, message, help));
            }
            open += 1;
            if open > MAX_DEPTH {
                let message = format!("types nested more than {MAX_DEPTH} deep");
                return Err(self.error(ProblemKind::TooLarge, begin.at..cursor.at, message, None));
            }
            cursor.skip_space();
        };
        let mut kind = self.word(word.0, word.1)?;
        let mut interleaved = self.brackets(cursor, &mut kind, begin)?;
        for _ in 0..open {
            cursor.skip_space();
            if !cursor.eat('>') {
                return Err(self.malformed(*cursor, "a closing >"));
            }
            if interleaved {
                let message = "interleaved arrays cannot be inside another array".to_owned();
                let span = begin.at..cursor.at;
                return Err(self.error(ProblemKind::FlagNotAllowed, span, message, None));
            }
            if matches!(kind, Type::Meta(_)) {
                let message = format!("{kind} cannot be an array element");
                let span = begin.at..cursor.at;
                return Err(self.error(ProblemKind::UnknownType, span, message, None));
            }
            kind = Type::Array(Box::new(kind));
            interleaved = self.brackets(cursor, &mut kind, begin)?;
        }
        Ok((kind, interleaved))
    }

    fn word(&mut self, word: &str, start: Cursor<'_>) -> Parsed<Type> {
        if let Some(scalar) = Scalar::from_name(word) {
            return Ok(Type::Scalar(scalar));
        }
        match word {
            "string" => Ok(Type::Text),
            "bytes" => Ok(Type::Bytes),
            "array" => Ok(Type::Array(Box::new(Type::Object))),
            "object" => Ok(Type::Object),
            "count" => Ok(Type::Meta(Meta::Count)),
            "offset" => Ok(Type::Meta(Meta::Offset)),
            "ref" => Ok(Type::Meta(Meta::Ref)),
            _ => {
                let span = start.at..start.at + word.len();
                let names = Scalar::ALL.iter().map(|scalar| scalar.name());
                let names = names.chain(["string", "bytes", "array", "object"]);
                // By spelling, `uint` is closer to `int16` than to `uint32`.
                let near = match word {
                    "int" => Some("int32"),
                    "uint" => Some("uint32"),
                    "uint8" | "int8" => Some("byte"),
                    _ => nearest(word, names),
                };
                let help = near.map(|near| format!("did you mean {near}?"));
                let message = format!("unknown type {}", quoted(word));
                Err(self.error(ProblemKind::UnknownType, span, message, help))
            }
        }
    }

    /// Flags and lengths: `[interleaved]`, `[3]`, `[2][3]`.
    fn brackets(
        &mut self,
        cursor: &mut Cursor<'t>,
        kind: &mut Type,
        begin: Cursor<'t>,
    ) -> Parsed<bool> {
        let mut interleaved = false;
        let mut counts = Vec::new();
        while cursor.rest.starts_with('[') {
            let open = *cursor;
            cursor.eat('[');
            let inside_at = cursor.at;
            let inside = cursor.take_while(|c| c != ']');
            if !cursor.eat(']') {
                return Err(self.malformed(open, "a closing ]"));
            }
            let span = inside_at..inside_at + inside.len();
            let plain = inside.trim_matches(is_space);
            if !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit()) {
                match plain.parse::<u32>() {
                    Ok(count @ 1..=65_535) if counts.len() < MAX_DEPTH => counts.push(count),
                    _ => {
                        let message = format!("a row can have 1 to 65535 values, not {plain}");
                        return Err(self.error(ProblemKind::TooLarge, span, message, None));
                    }
                }
                continue;
            }
            for flag in inside.split(',').map(|flag| flag.trim_matches(is_space)) {
                if flag != "interleaved" {
                    let help = Some("the only flag is [interleaved]".to_owned());
                    let message = format!("unknown flag {}", quoted(flag));
                    return Err(self.error(ProblemKind::UnknownFlag, span, message, help));
                }
                let text = matches!(kind, Type::Array(element) if **element == Type::Text);
                if !matches!(kind, Type::Array(_)) || text || !counts.is_empty() {
                    let span = begin.at..cursor.at;
                    let message = format!("{kind} cannot be interleaved");
                    return Err(self.error(ProblemKind::FlagNotAllowed, span, message, None));
                }
                interleaved = true;
            }
        }
        if !counts.is_empty() && (interleaved || matches!(kind, Type::Meta(_))) {
            let message = "this type cannot be repeated".to_owned();
            let span = begin.at..cursor.at;
            return Err(self.error(ProblemKind::FlagNotAllowed, span, message, None));
        }
        // The leftmost is the outermost.
        for count in counts.into_iter().rev() {
            let element = core::mem::replace(kind, Type::Object);
            *kind = Type::Row(Box::new(element), count);
        }
        Ok(interleaved)
    }

    fn range(&mut self, cursor: &mut Cursor<'t>) -> Parsed<PatchRange> {
        let begin = cursor.at;
        let text = cursor.take_while(|c| !is_space(c));
        let bad = |parser: &mut Self, message: String| {
            let help =
                Some("a range is ^86 (from 86 on) or ^76-86 (from 76, before 86)".to_owned());
            parser.error(ProblemKind::BadRange, begin..begin + text.len(), message, help)
        };
        let plain = text.strip_prefix('^').unwrap_or(text);
        let (from, to) = match plain.split_once('-') {
            Some((from, to)) => (from.parse(), Some(to.parse())),
            None => (plain.parse(), None),
        };
        match (from, to) {
            (Ok(from), None) => Ok(PatchRange { from, to: None }),
            (Ok(from), Some(Ok(to))) if from < to => Ok(PatchRange { from, to: Some(to) }),
            (Ok(_), Some(Ok(_))) => Err(bad(self, format!("the range {text} is empty"))),
            _ => Err(bad(self, format!("{} is not a patch range", quoted(text)))),
        }
    }
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A piece of text, quoted and shortened for a message.
pub(crate) fn quoted(text: &str) -> String {
    const MAX: usize = 40;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("\"{}...\"", text.get(..end).unwrap_or_default()),
        None => format!("\"{text}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Line {
        match parse("t", text) {
            (statements, problems) if problems.is_empty() => match statements.as_slice() {
                [Statement::Line(line)] => line.clone(),
                other => panic!("{text}: {other:?}"),
            },
            (_, problems) => panic!("{text}: {problems:?}"),
        }
    }

    fn kinds(text: &str) -> Vec<&'static str> {
        parse("t", text).1.iter().map(|problem| problem.kind.name()).collect()
    }

    #[test]
    fn types_are_parsed_and_displayed() {
        for text in [
            "int32",
            "array",
            "array<int32>",
            "array<array<int32[2]>>",
            "object[2]",
            "int16[2][3]",
            "array<string>[4]",
        ] {
            assert_eq!(one(&format!("{text} x")).kind.to_string(), text);
        }
        let line = one("- - array< vec3 >[ interleaved ] x");
        assert!(line.interleaved);
        assert_eq!((line.depth, line.kind.to_string().as_str()), (2, "array<vec3>"));
        assert_eq!(one("int16[2][3] x").kind.innermost(), &Type::Scalar(Scalar::Int16));
    }

    #[test]
    fn values_ranges_and_includes_are_parsed() {
        let line = one("int32 x=5 ^0-86.02");
        assert_eq!(line.init.as_deref(), Some("5"));
        assert_eq!(line.range.unwrap().to_string(), "^0-86.02");
        assert_eq!(&*one("ref o.s").name, "o.s");
        let (statements, _) = parse("t", "@include S_A.1.def # all of it");
        assert!(
            matches!(&statements[..], [Statement::Include { file, .. }] if &**file == "S_A.1.def")
        );
    }

    #[test]
    fn each_mistake_has_its_kind() {
        for (text, kind) in [
            ("int32", "malformed_line"),
            ("-", "malformed_line"),
            ("int32 a b", "malformed_line"),
            ("int32 a ^1 b", "malformed_line"),
            ("array<int32 a", "malformed_line"),
            ("int32[ a", "malformed_line"),
            ("@includ x", "malformed_line"),
            ("@include a b", "malformed_line"),
            ("int32 a=", "malformed_line"),
            ("@include ../x.def", "bad_include"),
            ("uint a", "unknown_type"),
            ("int32<byte> a", "unknown_type"),
            ("array<count> a", "unknown_type"),
            ("int32 a.b", "bad_name"),
            ("int32 1a", "bad_name"),
            (&format!("int32 {}", "a".repeat(256)), "bad_name"),
            ("int32[x] a", "unknown_flag"),
            ("int32[interleaved] a", "flag_not_allowed"),
            ("array<string>[interleaved] a", "flag_not_allowed"),
            ("array<array[interleaved]> a", "flag_not_allowed"),
            ("count[2] a", "flag_not_allowed"),
            ("int32[0] a", "too_large"),
            ("int32[99999999999999] a", "too_large"),
            ("int32 a ^x", "bad_range"),
            ("int32 a ^86-76", "bad_range"),
        ] {
            assert_eq!(kinds(text), [kind], "{text}");
        }
        assert_eq!(kinds(&("array<".repeat(100) + "int32")), ["too_large"]);
        assert_eq!(kinds("int32\u{a0}a"), ["odd_space"]);
        assert_eq!(kinds("\u{feff}\u{feff}# note\nint32 a"), [""; 0]);
    }

    #[test]
    fn all_problems_are_reported_with_their_positions() {
        let (statements, problems) = parse("S_A.1.def", "uint a\n\nint32 b\n  in32 c\n");
        assert_eq!(statements.len(), 1);
        let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "S_A.1.def:1:1: error: unknown type \"uint\" (did you mean uint32?) [unknown_type]",
                "S_A.1.def:4:3: error: unknown type \"in32\" (did you mean int32?) [unknown_type]",
            ]
        );
    }
}
