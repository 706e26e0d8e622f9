//! A filter on its way to be read: what is left of it, and the marks and words in it.

use winnow::combinator::{opt, preceded};
use winnow::error::{ErrMode, ParserError};
use winnow::stream::{LocatingSlice, Location as _, Stateful};
use winnow::token::{literal, take_while};
use winnow::{ModalResult, Parser};

use super::error::Problem;
use super::expression::is_word_char;

/// The most regular expressions of one filter.
pub(super) const MAX_REGEXES: usize = 32;

/// The filter, as far as it is not read yet.
pub(super) type Input<'f> = Stateful<LocatingSlice<&'f str>, State>;

/// What a parser makes. Errors that stand ([`ErrMode::Cut`]) say what is wrong; those that only
/// mean "not this" ([`ErrMode::Backtrack`]) are never seen from outside.
pub(super) type Outcome<T> = ModalResult<T, Problem>;

/// What has been used up of the bounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    pub(super) depth: usize,
    pub(super) regexes: usize,
}

/// Passes over white space.
pub(super) fn space(input: &mut Input<'_>) -> Outcome<()> {
    take_while(0.., char::is_whitespace).void().parse_next(input)
}

/// A parser with white space in front.
pub(super) fn token<'f, T>(
    parser: impl Parser<Input<'f>, T, ErrMode<Problem>>,
) -> impl Parser<Input<'f>, T, ErrMode<Problem>> {
    preceded(space, parser)
}

/// This very word.
pub(super) fn word<'f>(wanted: &'static str) -> impl Parser<Input<'f>, &'f str, ErrMode<Problem>> {
    take_while(1.., is_word_char).verify(move |found: &str| found == wanted)
}

/// One of these words.
pub(super) fn word_of<'f>(
    wanted: &'static [&str],
) -> impl Parser<Input<'f>, &'f str, ErrMode<Problem>> {
    take_while(1.., is_word_char).verify(move |found: &str| wanted.contains(&found))
}

/// White space and a closing mark.
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

/// What is not read yet.
pub(super) fn rest<'f>(input: &Input<'f>) -> &'f str {
    input.input.as_ref()
}

/// The word that comes next; empty if none does.
pub(super) fn peek_word<'f>(input: &Input<'f>) -> &'f str {
    let rest = rest(input);
    let end = rest.find(|c| !is_word_char(c)).unwrap_or(rest.len());
    rest.split_at(end).0
}

/// Something else was wanted here. White space is passed over first.
#[cold]
pub(super) fn problem(input: &Input<'_>, wanted: &'static str) -> Problem {
    let rest = rest(input);
    let next = rest.trim_start();
    let at = input.current_token_start() + (rest.len() - next.len());
    Problem::new(at, wanted, found(next))
}

/// The next thing in the words of an error.
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
