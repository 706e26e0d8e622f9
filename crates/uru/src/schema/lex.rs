//! Splits text into tokens.

use core::ops::Range;

/// A token of the descriptor language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A name, a number or a keyword.
    Word(&'t str),
    /// The text between quotation marks.
    Quoted(&'t str),
    /// The text between a quotation mark and the end of the line, if no closing mark follows.
    Unclosed(&'t str),
    /// One of `{}[]()=,;`.
    Mark(char),
    /// The end of the text.
    End,
}

/// A token with its position.
#[derive(Clone, Debug)]
pub(super) struct Lexeme<'t> {
    pub(super) token: Token<'t>,
    pub(super) span: Range<usize>,
    /// Whether the token comes after a line break.
    pub(super) new_line: bool,
}

/// A position in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The offset just after the last token.
    pub(super) const fn place(&self) -> usize {
        self.at
    }

    /// Returns the next token without advancing.
    pub(super) fn peek(mut self) -> Lexeme<'t> {
        self.next()
    }

    /// Returns the next token.
    pub(super) fn next(&mut self) -> Lexeme<'t> {
        let new_line = self.skip();
        let start = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Lexeme { token: Token::End, span: start..start, new_line: true };
        };
        let (token, length) = if first == '"' {
            let inner = rest.get(1..).unwrap_or_default();
            let end = inner.find(['"', '\n', '\r']).unwrap_or(inner.len());
            let (quoted, behind) = inner.split_at(end);
            match behind.starts_with('"') {
                true => (Token::Quoted(quoted), end + 2),
                false => (Token::Unclosed(quoted), end + 1),
            }
        } else if is_mark(first) {
            (Token::Mark(first), first.len_utf8())
        } else {
            let ends = |c: char| is_space(c) || is_mark(c) || matches!(c, '"' | '#');
            let (word, _) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
            (Token::Word(word), word.len())
        };
        self.at += length;
        Lexeme { token, span: start..self.at, new_line }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips white space and comments; returns whether they contain a line break.
    fn skip(&mut self) -> bool {
        let begin = self.at;
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(is_space);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                break;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
        self.text.get(begin..self.at).is_some_and(|skipped| skipped.contains('\n'))
    }
}

/// White space, including the byte-order mark that some editors write at the start of a file.
fn is_space(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

fn is_mark(c: char) -> bool {
    matches!(c, '{' | '}' | '[' | ']' | '(' | ')' | '=' | ',' | ';')
}

/// Whether a text is a single word, which needs no quotation marks.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c| is_space(c) || is_mark(c) || matches!(c, '"' | '#'))
}
