//! Parses operands.

use regex_lite::RegexBuilder;
use winnow::Parser as _;
use winnow::combinator::{opt, separated};
use winnow::error::ErrMode;
use winnow::stream::Location as _;
use winnow::token::{literal as mark, take, take_till};
use worldwire_core::text::parse_escape;
use worldwire_core::value::parse_hex;

use super::class::ObjectClass;
use super::error::Problem;
use super::input::{Input, MAX_REGEXES, Outcome, close, problem, rest, space, token};
use super::literal::{Literal, Member, Needle, Regular, Set, Text};
use super::number::Number;

/// The maximum size of a compiled regular expression in bytes.
const MAX_REGEX_BYTES: usize = 256 << 10;

pub(super) fn literal(input: &mut Input<'_>) -> Outcome<Literal> {
    match atom(input)? {
        Atom::Quoted(text) => Ok(Literal::Text(Text::new(&text))),
        Atom::Bytes(bytes) => Ok(Literal::Bytes(bytes.into())),
        Atom::Bare(at, run) => bare(at, run),
    }
}

/// Text or bytes. Without quotes, everything except bytes is text: `contains 7`.
pub(super) fn piece(input: &mut Input<'_>) -> Outcome<Literal> {
    match atom(input)? {
        Atom::Quoted(text) => Ok(Literal::Text(Text::new(&text))),
        Atom::Bytes(bytes) => Ok(Literal::Bytes(bytes.into())),
        Atom::Bare(at, run) if run.contains(':') => bare(at, run),
        Atom::Bare(_, run) => Ok(Literal::Text(Text::word(run))),
    }
}

/// Text or bytes to search for.
pub(super) fn needle(input: &mut Input<'_>) -> Outcome<Needle> {
    piece(input).map(Needle::new)
}

/// A number with bits set, or the name of a flag.
pub(super) fn mask(input: &mut Input<'_>) -> Outcome<Literal> {
    space(input)?;
    let at = input.current_token_start();
    let literal = literal(input)?;
    match &literal {
        Literal::Text(_) => Ok(literal),
        Literal::Number(Number::Whole(bits)) if *bits > 0 => Ok(literal),
        _ => {
            let wanted = "a flag name or a positive number";
            Err(ErrMode::Cut(Problem::new(at, wanted, format!("`{literal}`"))))
        }
    }
}

pub(super) fn regular(input: &mut Input<'_>) -> Outcome<Regular> {
    space(input)?;
    let at = input.current_token_start();
    let Literal::Text(text) = piece(input)? else {
        return Err(ErrMode::Cut(Problem::new(at, "a regular expression", "bytes")));
    };
    if input.state.regexes >= MAX_REGEXES {
        let wanted = format!("at most {MAX_REGEXES} regular expressions");
        return Err(ErrMode::Cut(Problem::limit(at, "regexes", MAX_REGEXES, wanted)));
    }
    input.state.regexes += 1;
    match RegexBuilder::new(text.as_str()).size_limit(MAX_REGEX_BYTES).build() {
        Ok(compiled) => Ok(Regular::new(text.as_str(), compiled)),
        Err(error) => {
            // Some of the library's messages already begin with "found".
            let error = error.to_string();
            let found = error.strip_prefix("found ").unwrap_or(&error);
            let problem = Problem::new(at, "a regular expression", found);
            Err(ErrMode::Cut(problem.regex()))
        }
    }
}

/// `ItemTemplate`, `"class ItemTemplate"`
pub(super) fn class(input: &mut Input<'_>) -> Outcome<ObjectClass> {
    space(input)?;
    let at = input.current_token_start();
    match piece(input)? {
        Literal::Text(text) if !text.as_str().is_empty() => Ok(ObjectClass::new(text.as_str())),
        other => {
            let problem = Problem::new(at, "the name of a class", format!("`{other}`"));
            Err(ErrMode::Cut(problem.hint("for values, use `==`")))
        }
    }
}

/// `{1, 2, 5..9}`
pub(super) fn set(input: &mut Input<'_>) -> Outcome<Set> {
    close(input, "{", "`{` and values")?;
    space(input)?;
    if rest(input).starts_with('}') {
        return Err(ErrMode::Cut(problem(input, "a value")));
    }
    let members: Vec<Member> = separated(1.., member, token(mark(","))).parse_next(input)?;
    close(input, "}", "`,` or `}`")?;
    Ok(Set::new(members))
}

/// Whether `<` is meaningful for a value.
pub(super) fn has_order(literal: &Literal) -> bool {
    !matches!(literal, Literal::Null | Literal::Bool(_))
}

fn member(input: &mut Input<'_>) -> Outcome<Member> {
    space(input)?;
    let at = input.current_token_start();
    let low = literal(input)?;
    if opt(token(mark(".."))).parse_next(input)?.is_none() {
        return Ok(Member::One(low));
    }
    let high = literal(input)?;
    match (low, high) {
        (Literal::Number(low), Literal::Number(high)) => {
            if low.compare(&high).is_some_and(core::cmp::Ordering::is_gt) {
                let found = format!("`{low}..{high}`");
                return Err(ErrMode::Cut(Problem::new(at, "the smaller number first", found)));
            }
            Ok(Member::Range(low, high))
        }
        (low, high) => {
            let found = format!("`{low}..{high}`");
            Err(ErrMode::Cut(Problem::new(at, "a range of numbers", found)))
        }
    }
}

/// A value as written.
enum Atom<'f> {
    Quoted(String),
    Bytes(Vec<u8>),
    Bare(usize, &'f str),
}

fn atom<'f>(input: &mut Input<'f>) -> Outcome<Atom<'f>> {
    space(input)?;
    let at = input.current_token_start();
    let next = rest(input);
    if next.starts_with('"') {
        return quoted(input).map(Atom::Quoted);
    }
    if next.starts_with("r\"") {
        mark("r\"").parse_next(input)?;
        return raw(input, at).map(|text| Atom::Quoted(text.to_owned()));
    }
    if next.starts_with("hex\"") {
        mark("hex\"").parse_next(input)?;
        let digits = raw(input, at)?;
        return match parse_hex(digits) {
            Some(bytes) => Ok(Atom::Bytes(bytes)),
            None => {
                let found = format!("`{digits}`");
                Err(ErrMode::Cut(Problem::new(at, "an even number of hexadecimal digits", found)))
            }
        };
    }
    // Two dots are part of a range.
    let end = next.find(|c: char| !is_value_char(c)).unwrap_or(next.len());
    let end = next.split_at(end).0.find("..").unwrap_or(end);
    if end == 0 {
        let wrong = problem(input, "a value");
        return Err(ErrMode::Cut(match next.chars().next() {
            Some('\'' | '`') => wrong.hint("put text in double quotes"),
            Some('{') => wrong.hint("use `in` for several values"),
            Some('*') => wrong.hint("`*` works only in message names"),
            Some('=') => {
                wrong.hint("the comparison operators are `==`, `!=`, `<`, `<=`, `>` and `>=`")
            }
            _ => wrong,
        }));
    }
    let run = take(next.split_at(end).0.chars().count()).parse_next(input)?;
    Ok(Atom::Bare(at, run))
}

/// Whether a character can occur in a value without quotes.
fn is_value_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '-' | '+' | '$')
}

/// A value without quotes: a number, bytes, a boolean or `null`. Anything else that looks like
/// a name, an identifier or an address is text.
fn bare(at: usize, run: &str) -> Outcome<Literal> {
    let wrong = |wanted: &'static str, hint: &'static str| {
        Err(ErrMode::Cut(Problem::new(at, wanted, format!("`{run}`")).hint(hint)))
    };
    let text = || Ok(Literal::Text(Text::bare(run)));
    match run {
        "true" => return Ok(Literal::Bool(true)),
        "false" => return Ok(Literal::Bool(false)),
        "null" => return Ok(Literal::Null),
        _ if run.contains(':') => {
            return match colon_bytes(run) {
                Some(bytes) => Ok(Literal::Bytes(bytes.into())),
                None => {
                    wrong("bytes such as `00:ff:1a`", "put other text with colons in double quotes")
                }
            };
        }
        _ => {}
    }
    let digits = run.strip_prefix('-').unwrap_or(run);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        let signs = run.starts_with(['-', '+', '.']);
        return match run {
            _ if signs => wrong("a value", "put text in double quotes"),
            _ if run.starts_with("fields.") => {
                wrong("a value", "fields can only be compared with values")
            }
            _ => text(),
        };
    }
    let shown = Text::word(run);
    let hex = digits.starts_with("0x") || digits.starts_with("0X");
    if digits.bytes().all(|byte| byte.is_ascii_digit()) || hex {
        let wanted = "a number of at most 64 bits";
        return match Number::parse_whole(run) {
            Some(number) => Ok(Literal::Number(number)),
            None => wrong(wanted, "put text in double quotes"),
        };
    }
    if shown.ipv4().is_some() || (shown.guid().is_some() && run.contains('-')) {
        return Ok(Literal::Text(shown));
    }
    // This many digits with a single `e` are taken as bytes, because no real number is written that
    // long.
    const MANY: usize = 32;
    if shown.hex().is_some() && run.len() >= MANY {
        return Ok(Literal::Text(shown));
    }
    let real = digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    match Number::parse_real(run) {
        Some(number) if real => Ok(Literal::Number(number)),
        _ if shown.hex().is_some() => Ok(Literal::Text(shown)),
        _ => wrong("a number", "put text that starts with a digit in double quotes"),
    }
}

/// `00:ff:1a`
fn colon_bytes(run: &str) -> Option<Vec<u8>> {
    let pair = |pair: &str| match pair.len() {
        2 if !pair.starts_with('+') => u8::from_str_radix(pair, 16).ok(),
        _ => None,
    };
    run.split(':').map(pair).collect()
}

/// Text in double quotes, with escapes.
pub(super) fn quoted(input: &mut Input<'_>) -> Outcome<String> {
    let start = input.current_token_start();
    mark("\"").parse_next(input)?;
    let mut text = String::new();
    loop {
        text.push_str(take_till(0.., ['"', '\\']).parse_next(input)?);
        let at = input.current_token_start();
        match opt(take(1_usize)).parse_next(input)? {
            Some("\"") => return Ok(text),
            Some(_) => text.push(escape(input, at)?),
            None => return Err(ErrMode::Cut(unclosed(start))),
        }
    }
}

/// The character after a backslash.
fn escape(input: &mut Input<'_>, at: usize) -> Outcome<char> {
    let Some((c, length)) = parse_escape(rest(input)) else {
        let found: String = rest(input).chars().take(1).collect();
        let wanted = r#"one of the escapes `\"`, `\\`, `\n`, `\r`, `\t` and `\u{...}`"#;
        let hint = "write `\\\\` for a backslash, or put `r` before the quotes: r\"C:\\dat\"";
        return Err(ErrMode::Cut(Problem::new(at, wanted, format!("`\\{found}`")).hint(hint)));
    };
    take(length).void().parse_next(input)?;
    Ok(c)
}

/// Text up to the closing quote, without escapes. The opening quote has already been read.
fn raw<'f>(input: &mut Input<'f>, start: usize) -> Outcome<&'f str> {
    let text = take_till(0.., '"').parse_next(input)?;
    match opt(mark("\"")).parse_next(input)? {
        Some(_) => Ok(text),
        None => Err(ErrMode::Cut(unclosed(start))),
    }
}

fn unclosed(start: usize) -> Problem {
    Problem::new(start, "text in double quotes", "no closing quote")
}
