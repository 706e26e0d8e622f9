//! The input of the filter parser: the unread part of the filter, and its tokens.

use winnow::combinator::{opt, preceded};
use winnow::error::{ErrMode, ParserError};
use winnow::stream::{LocatingSlice, Location as _, Stateful};
use winnow::token::{literal, take_while};
use winnow::{ModalResult, Parser};

use super::error::Problem;
use super::expression::is_word_char;

/// The maximum number of regular expressions in a filter.
pub(super) const MAX_REGEXES: usize = 32;

/// The rest of the filter.
pub(super) type Input<'f> = Stateful<LocatingSlice<&'f str>, Usage>;

/// The result of a parser. [`ErrMode::Cut`] is an error to report. [`ErrMode::Backtrack`] means
/// that something else may match; it is never reported.
pub(super) type Outcome<T> = ModalResult<T, Problem>;

/// The part of the limits used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) depth: usize,
    pub(super) regexes: usize,
}

/// Skips white space.
pub(super) fn space(input: &mut Input<'_>) -> Outcome<()> {
    take_while(0.., char::is_whitespace).void().parse_next(input)
}

/// Makes a parser skip white space first.
pub(super) fn token<'f, T>(
    parser: impl Parser<Input<'f>, T, ErrMode<Problem>>,
) -> impl Parser<Input<'f>, T, ErrMode<Problem>> {
    preceded(space, parser)
}

/// Matches exactly this word.
pub(super) fn word<'f>(wanted: &'static str) -> impl Parser<Input<'f>, &'f str, ErrMode<Problem>> {
    take_while(1.., is_word_char).verify(move |found: &str| found == wanted)
}

/// Matches one of these words.
pub(super) fn word_of<'f>(
    wanted: &'static [&str],
) -> impl Parser<Input<'f>, &'f str, ErrMode<Problem>> {
    take_while(1.., is_word_char).verify(move |found: &str| wanted.contains(&found))
}

/// Matches a closing character after white space.
pub(super) fn close(
    input: &mut Input<'_>,
    mark: &'static str,
    wanted: &'static str,
) -> Outcome<()> {
    space(input)?;
    match opt(literal(mark)).parse_next(input)? {
        Some(_) => Ok(()),
        None => Err(ErrMode::Cut(problem(input, wanted))),
    }
}

/// The unread part of the filter.
pub(super) fn rest<'f>(input: &Input<'f>) -> &'f str {
    input.input.as_ref()
}

/// The next word, or an empty string if no word follows.
pub(super) fn peek_word<'f>(input: &Input<'f>) -> &'f str {
    let rest = rest(input);
    let end = rest.find(|c| !is_word_char(c)).unwrap_or(rest.len());
    rest.split_at(end).0
}

/// The error that something else was expected here, after white space.
#[cold]
pub(super) fn problem(input: &Input<'_>, wanted: &'static str) -> Problem {
    let rest = rest(input);
    let next = rest.trim_start();
    let at = input.current_token_start() + (rest.len() - next.len());
    Problem::new(at, wanted, found(next))
}

/// Describes the next token for an error.
fn found(next: &str) -> String {
    let Some(first) = next.chars().next() else {
        return "the end".to_owned();
    };
    let length = match first {
        '"' => return "text".to_owned(),
        _ if is_word_char(first) => next.find(|c| !is_word_char(c)),
        '=' | '!' | '<' | '>' | '~' | '&' | '|' => next.find(|c| !"=!<>~&|".contains(c)),
        _ => return format!("`{first}`"),
    };
    format!("`{}`", next.split_at(length.unwrap_or(next.len())).0)
}

impl<'f> ParserError<Input<'f>> for Problem {
    type Inner = Self;

    fn from_input(input: &Input<'f>) -> Self {
        Self::new(input.current_token_start(), "", "")
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}
