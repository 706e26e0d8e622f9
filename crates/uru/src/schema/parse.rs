//! Parses text into descriptors.
//!
//! ```text
//! text       = { "STATEDESC" name "{" "VERSION" number { variable } "}" }
//! variable   = "VAR" type name "[" [ number ] "]" { attribute | ";" }
//! type       = word | "$" name
//! attribute  = ( "DEFAULT" | "DEFAULTOPTION" | "DISPLAYOPTION" ) "=" value
//! value      = word | '"' text '"' | "(" [ value { "," value } ] ")"
//! ```
//!
//! Line breaks only matter for values: a value starts on the line of its `=`. Keywords are
//! case-insensitive. Unknown attributes are ignored, with a warning.

use core::ops::Range;
use std::collections::HashMap;

use worldwire_core::Diagnostic;

use super::default;
use super::definition::{Definition, ElementType, Literal, Variable};
use super::lex::{Cursor, Lexeme, Token};
use super::problems::Problems;
use super::types::Type;

/// The maximum number of elements of a variable.
pub(super) const MAX_COUNT: u32 = 9_998;

/// A descriptor with its positions in the text.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The descriptor. It may be incomplete if it is not [valid](Self::valid).
    pub definition: Definition,
    /// The position of its name.
    pub name_span: Range<usize>,
    /// The positions of the variables' types.
    pub type_spans: Vec<Range<usize>>,
    /// Whether it was parsed without errors.
    pub valid: bool,
}

/// The parsed contents of the text.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The descriptors, including those with errors as far as they were parsed.
    pub statements: Vec<Statement>,
    /// At most 1,001 errors and warnings in text order. If there are more, the last one says so.
    pub problems: Vec<Diagnostic>,
}

/// Parses text. `name` identifies it in diagnostics and is usually a path. Names of other
/// descriptors are not looked up here; see [`Descriptors`](super::Descriptors).
#[must_use]
pub fn parse(name: &str, text: &str) -> Parsed {
    let mut problems = Problems::new(name, text);
    let statements = parse_into(text, &mut problems);
    Parsed { statements, problems: problems.into_list() }
}

/// Parses text and adds its problems to a shared list.
pub(super) fn parse_into<'t>(text: &'t str, problems: &mut Problems<'t>) -> Vec<Statement> {
    let mut parser = Parser { cursor: Cursor::new(text), problems };
    let mut statements = Vec::new();
    loop {
        let next = parser.cursor.peek();
        match next.token {
            Token::End => break,
            Token::Word(word) if is(word, "STATEDESC") => statements.extend(parser.statement()),
            _ => {
                parser.wanted("STATEDESC", &next);
                parser.skip(|token| matches!(token, Token::Word(word) if is(word, "STATEDESC")));
            }
        }
    }
    statements
}

fn is(word: &str, keyword: &str) -> bool {
    word.eq_ignore_ascii_case(keyword)
}

struct Parser<'p, 't> {
    cursor: Cursor<'t>,
    problems: &'p mut Problems<'t>,
}

/// Marks an error that has already been reported.
struct Reported;

type Parse<T> = Result<T, Reported>;

impl<'t> Parser<'_, 't> {
    fn error(&mut self, span: Range<usize>, message: impl Into<String>) -> Reported {
        self.problems.error(span, message, None);
        Reported
    }

    fn wanted(&mut self, wanted: &str, found: &Lexeme<'t>) -> Reported {
        let shown = match found.token {
            Token::End => "the end of the file".to_owned(),
            Token::Word(word) => short(word),
            Token::Quoted(text) => format!("\"{}\"", short(text)),
            Token::Unclosed(_) => "an unclosed quotation mark".to_owned(),
            Token::Mark(mark) => mark.to_string(),
        };
        self.error(found.span.clone(), format!("wanted {wanted}, found {shown}"))
    }

    /// Advances to the next token that satisfies `stop`, or to the end.
    fn skip(&mut self, stop: impl Fn(Token<'_>) -> bool) {
        loop {
            let next = self.cursor.peek();
            if next.token == Token::End || stop(next.token) {
                return;
            }
            self.cursor.next();
        }
    }

    fn mark(&mut self, wanted: char) -> Parse<()> {
        let next = self.cursor.peek();
        if next.token != Token::Mark(wanted) {
            return Err(self.wanted(&wanted.to_string(), &next));
        }
        self.cursor.next();
        Ok(())
    }

    fn word(&mut self, wanted: &str) -> Parse<(&'t str, Range<usize>)> {
        let next = self.cursor.peek();
        let Token::Word(word) = next.token else {
            return Err(self.wanted(wanted, &next));
        };
        self.cursor.next();
        Ok((word, next.span))
    }

    /// Parses a descriptor. Returns `None` if even its name and version are unreadable.
    fn statement(&mut self) -> Option<Statement> {
        self.cursor.next();
        let head = self.head();
        let next_one = |token: Token<'_>| matches!(token, Token::Word(w) if is(w, "STATEDESC"));
        let Ok((name, name_span, version)) = head else {
            self.skip(next_one);
            return None;
        };
        let mut body = Body { variables: Vec::new(), spans: Vec::new(), valid: true };
        // The first position of each name and the number of times that it occurs.
        let mut names: HashMap<Box<str>, (usize, usize)> = HashMap::new();
        loop {
            let next = self.cursor.peek();
            match next.token {
                Token::Mark('}') => {
                    self.cursor.next();
                    break;
                }
                Token::Word(word) if is(word, "VAR") => {
                    self.cursor.next();
                    match self.variable() {
                        Ok((mut variable, name_at, type_at)) => {
                            let first = (name_at.start, 0);
                            let same = names.entry(variable.folded.clone()).or_insert(first);
                            same.1 += 1;
                            let (first, number) = *same;
                            if number > 1 {
                                variable.number(number);
                                self.repeated(&variable, name_at, first);
                            }
                            body.variables.push(variable);
                            body.spans.push(type_at);
                        }
                        Err(Reported) => {
                            body.valid = false;
                            self.skip(|token| match token {
                                Token::Word(word) => is(word, "VAR") || is(word, "STATEDESC"),
                                token => token == Token::Mark('}'),
                            });
                        }
                    }
                }
                Token::Mark(';') => {
                    self.cursor.next();
                }
                other => {
                    self.wanted("VAR or }", &next);
                    body.valid = false;
                    if next_one(other) || other == Token::End {
                        break;
                    }
                    self.cursor.next();
                    self.skip(|token| match token {
                        Token::Word(word) => is(word, "VAR") || is(word, "STATEDESC"),
                        token => token == Token::Mark('}'),
                    });
                }
            }
        }
        let Body { variables, spans, valid } = body;
        let definition = Definition { name: name.into(), version, variables: variables.into() };
        Some(Statement { definition, name_span, type_spans: spans, valid })
    }

    fn repeated(&mut self, variable: &Variable, name_at: Range<usize>, first: usize) {
        let line = self.problems.source().line(first);
        let message = format!("variable {} is already declared on line {line}", variable.name);
        let help = format!("this one is shown as {}", variable.label);
        self.problems.warning(name_at, message, Some(help));
    }

    /// Parses the name, the version, and everything between them.
    fn head(&mut self) -> Parse<(&'t str, Range<usize>, u16)> {
        let (name, name_span) = self.word("the name of a descriptor")?;
        self.mark('{')?;
        let next = self.cursor.peek();
        match next.token {
            Token::Word(word) if is(word, "VERSION") => {
                self.cursor.next();
            }
            _ => return Err(self.wanted("VERSION", &next)),
        }
        let (number, span) = self.word("a version")?;
        let Ok(version) = number.parse() else {
            let message = format!("wanted a version from 0 to 65535, found {}", short(number));
            return Err(self.error(span, message));
        };
        Ok((name, name_span, version))
    }

    /// Parses the declaration after `VAR`; also returns the positions of the name and the type.
    fn variable(&mut self) -> Parse<(Variable, Range<usize>, Range<usize>)> {
        let (kind, type_at) = self.word("a type")?;
        let kind = match kind.strip_prefix('$') {
            Some("") => {
                let message = "the name of a descriptor after $ is missing";
                return Err(self.error(type_at, message));
            }
            Some(name) => ElementType::Nested(name.into()),
            None => match Type::parse(kind) {
                Some(simple) => ElementType::Simple(simple),
                None => {
                    let help = Type::nearest(kind).map(|near| format!("did you mean {near}?"));
                    self.problems.error(type_at, format!("unknown type {}", short(kind)), help);
                    return Err(Reported);
                }
            },
        };
        let (name, name_at) = self.word("the name of a variable")?;
        self.mark('[')?;
        let count = match self.cursor.peek().token {
            Token::Word(_) => self.count()?,
            _ => None,
        };
        self.mark(']')?;
        let mut variable = Variable::new(name, kind, count);
        let default_at = self.attributes(&mut variable)?;
        if let ElementType::Simple(simple) = variable.kind {
            variable.initial = match &variable.default {
                None => default::zero(simple).into(),
                Some(words) => {
                    let read = default::read(simple, words);
                    if let (Some(odd), Some(span)) = (read.odd, default_at) {
                        self.problems.warning(span, odd, None);
                    }
                    read.element.into()
                }
            };
        }
        Ok((variable, name_at, type_at))
    }

    /// Parses a number of elements; 0 means any number.
    fn count(&mut self) -> Parse<Option<u32>> {
        let (text, span) = self.word("a number of elements")?;
        match text.parse::<u32>() {
            Ok(0) => Ok(None),
            Ok(count) if count <= MAX_COUNT => Ok(Some(count)),
            _ => {
                let found = short(text);
                let message = format!("wanted 0 to {MAX_COUNT} elements, found {found}");
                Err(self.error(span, message))
            }
        }
    }

    /// Parses everything after the brackets; returns the position of the default.
    fn attributes(&mut self, variable: &mut Variable) -> Parse<Option<Range<usize>>> {
        let mut default_at = None;
        loop {
            let name = self.cursor.peek();
            let Token::Word(word) = name.token else {
                if name.token == Token::Mark(';') {
                    self.cursor.next();
                    continue;
                }
                return Ok(default_at);
            };
            let mut behind = self.cursor;
            behind.next();
            if behind.peek().token != Token::Mark('=') {
                return Ok(default_at);
            }
            behind.next();
            self.cursor = behind;
            let start = self.cursor.peek().span.start;
            let words = self.value()?;
            let span = start..self.cursor.place();
            if is(word, "DEFAULT") {
                if variable.default.is_some() {
                    let message = "the variable has two defaults; this one applies";
                    self.problems.warning(name.span, message, None);
                }
                variable.default = Some(words.into());
                default_at = Some(span);
                continue;
            }
            let options = match word {
                word if is(word, "DEFAULTOPTION") => &mut variable.default_options,
                word if is(word, "DISPLAYOPTION") => &mut variable.display_options,
                _ => {
                    let message = format!("unknown attribute {}; it is ignored", short(word));
                    self.problems.warning(name.span, message, None);
                    continue;
                }
            };
            options.extend(words.into_iter().map(|word| word.text));
        }
    }

    fn value(&mut self) -> Parse<Vec<Literal>> {
        let next = self.cursor.peek();
        if next.new_line {
            let end = next.span.start..next.span.start;
            return Err(self.error(end, "the value after = is missing"));
        }
        if next.token != Token::Mark('(') {
            return self.single().map(|word| vec![word]);
        }
        self.cursor.next();
        let mut words = Vec::new();
        if self.cursor.peek().token == Token::Mark(')') {
            self.cursor.next();
            return Ok(words);
        }
        loop {
            words.push(self.single()?);
            let next = self.cursor.peek();
            match next.token {
                Token::Mark(',') => {
                    self.cursor.next();
                }
                Token::Mark(')') => {
                    self.cursor.next();
                    return Ok(words);
                }
                _ => return Err(self.wanted(", or )", &next)),
            }
        }
    }

    fn single(&mut self) -> Parse<Literal> {
        let next = self.cursor.peek();
        let word = match next.token {
            Token::Word(text) => Literal { text: text.into(), quoted: false },
            Token::Quoted(text) => Literal { text: text.into(), quoted: true },
            _ => return Err(self.wanted("a value", &next)),
        };
        self.cursor.next();
        Ok(word)
    }
}

/// The contents of a descriptor's braces.
struct Body {
    variables: Vec<Variable>,
    spans: Vec<Range<usize>>,
    valid: bool,
}

/// The beginning of the text, for use in messages.
fn short(text: &str) -> String {
    const MAX: usize = 40;
    if text.len() <= MAX {
        return text.to_owned();
    }
    format!("{}...", text.get(..text.floor_char_boundary(MAX)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_of(text: &str) -> String {
        let parsed = parse("t.sdl", text);
        let lines: Vec<_> = parsed.problems.iter().map(ToString::to_string).collect();
        let valid = parsed.statements.iter().filter(|statement| statement.valid);
        let names: Vec<_> =
            valid.map(|s| format!("{} {}", s.definition.name, s.definition.version)).collect();
        format!("{}\nvalid: {}", lines.join("\n"), names.join(", "))
    }

    #[test]
    fn every_error_has_a_position_and_parsing_continues() {
        let text = "\
STATEDESC good { VERSION 1 VAR INT a[1] }
junk here
STATEDESC bad
{
    VERSION 2
    VAR INT b[1
    VAR INTT c[1]
    VAR $ d[1]
    VAR INT e[9999]
    VAR BYTE f[1] DEFAULT=
    VAR BYTE g[1] DEFAULT=300 DEFAULT=(1,2) HUE=red
    VAR BYTE G[1] DEFAULT=(1 2)
    VAR STRING32 h[1] DEFAULT=\"open
    VERSION 3
}
STATEDESC late { VAR INT a[1] VERSION 1 }
STATEDESC ahead { VERSION 70000 }
STATEDESC twice { VERSION 1 VAR INT a[] var int A[0] }
statedesc Lower { version 7 var rgb8 c[1] default = (1, 2, 3); displayoption = hidden }
STATEDESC open { VERSION 1
";
        insta::assert_snapshot!(problems_of(text), @r"
        t.sdl:2:1: error: wanted STATEDESC, found junk
        t.sdl:7:5: error: wanted ], found VAR
        t.sdl:7:9: error: unknown type INTT (did you mean INT?)
        t.sdl:8:9: error: the name of a descriptor after $ is missing
        t.sdl:9:15: error: wanted 0 to 9998 elements, found 9999
        t.sdl:11:5: error: the value after = is missing
        t.sdl:11:31: warning: the variable has two defaults; this one applies
        t.sdl:11:39: warning: wanted 1 value, found 2
        t.sdl:11:45: warning: unknown attribute HUE; it is ignored
        t.sdl:12:30: error: wanted , or ), found 2
        t.sdl:13:31: error: wanted a value, found an unclosed quotation mark
        t.sdl:16:18: error: wanted VERSION, found VAR
        t.sdl:17:27: error: wanted a version from 0 to 65535, found 70000
        t.sdl:18:49: warning: variable A is already declared on line 18 (this one is shown as A#2)
        t.sdl:21:1: error: wanted VAR or }, found the end of the file
        valid: good 1, twice 1, Lower 7
        ");
    }

    #[test]
    fn the_canonical_text_parses_to_the_same() {
        let text = "STATEDESC a{VERSION 3 VAR $b c[] VAR STRING32 name[2] DEFAULT=\"two words\"\n\
                    DEFAULTOPTION=\"#1\" VAR RGB tint[1] DEFAULT=(1,\"\",nil) DISPLAYOPTION=red\n\
                    VAR BYTE n[0] DEFAULT=(0) DEFAULTOPTION=(VAULT,x) VAR INT m[1] DEFAULT=()}";
        let first = parse("t", text).statements.remove(0).definition;
        let shown = first.to_string();
        assert_eq!(parse("t", &shown).statements[0].definition, first);
        insta::assert_snapshot!(shown, @r##"
        STATEDESC a
        {
            VERSION 3
            VAR $b       c[]
            VAR STRING32 name[2] DEFAULT="two words" DEFAULTOPTION="#1"
            VAR RGB      tint[1] DEFAULT=(1,"",nil) DISPLAYOPTION=red
            VAR BYTE     n[]     DEFAULT=0 DEFAULTOPTION=VAULT DEFAULTOPTION=x
            VAR INT      m[1]    DEFAULT=()
        }
        "##);
    }
}
