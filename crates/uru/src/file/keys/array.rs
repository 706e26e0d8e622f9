//! C arrays in which the OpenUru source holds a client's keys, least significant byte first.
//!
//! Unverified: the names that contain a server (`kAuthDhNData`); only the plain ones (`kDhNData`)
//! are confirmed. Compare with a key header of a shard that ships an OpenUru client.

use zeroize::Zeroizing;

use crate::crypt::key::{KEY_BYTES, ServerKind};

use super::collect::{Collector, KeyPart, Location};
use super::error::KeyFault;
use super::server_kind;

/// Whether the text looks like such source code.
pub(super) fn is_source(text: &str) -> bool {
    text.contains('{') && Tokens::new(text).any(|token| Name::find(token.text).is_some())
}

/// Collects the keys of all arrays. All other source code is skipped.
pub(super) fn collect(text: &str, collector: &mut Collector) {
    let mut tokens = Tokens::new(text).peekable();
    // The server named by the last scope or base, for array names that do not include it.
    let mut scope = None;
    while let Some(token) = tokens.next() {
        if token.text == "namespace" {
            scope = tokens.peek().and_then(|name| server_kind(name.text)).or(scope);
            continue;
        }
        let Some(name) = Name::find(token.text) else { continue };
        let Some(part) = name.part else {
            let value = tokens.by_ref().take_while(|t| t.text != ";").find_map(Token::number);
            let kind = |base| ServerKind::ALL.into_iter().find(|k| u64::from(k.base()) == base);
            scope = value.and_then(kind).or(scope);
            continue;
        };
        let opening = tokens.by_ref().find(|t| t.text == "{" || t.text == ";");
        let Some(opening) = opening.filter(|t| t.text == "{") else {
            // A use of the name, not a definition.
            continue;
        };
        let number = elements(tokens.by_ref().take_while(|t| t.text != "}"));
        let location =
            Location { line: opening.line, column: opening.column, key: token.text.to_owned() };
        match name.kind.or(scope) {
            Some(kind) => collector.number(kind, part, location, number),
            None => collector.fault(location, KeyFault::NoServer),
        }
    }
}

/// The number formed by an array's elements, most significant byte first.
fn elements<'a>(
    tokens: impl Iterator<Item = Token<'a>>,
) -> Result<Zeroizing<[u8; KEY_BYTES]>, KeyFault> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    let mut found = 0;
    for token in tokens.filter(|t| t.text != ",") {
        let byte = token.number().and_then(|n| u8::try_from(n).ok());
        let byte = byte.ok_or(KeyFault::Element { at: found + 1 })?;
        if let Some(location) = bytes.get_mut(found) {
            *location = byte;
        }
        found += 1;
    }
    if found != KEY_BYTES {
        return Err(KeyFault::Length { found });
    }
    bytes.reverse();
    Ok(bytes)
}

/// The meaning of a constant's name.
struct Name {
    /// The server, if the name includes it.
    kind: Option<ServerKind>,
    /// Which number of the key it is; `None` for the base.
    part: Option<KeyPart>,
}

impl Name {
    /// Interprets names such as `kAuthDhNData`, `kDhNData` and `kAuthDhGValue`.
    fn find(identifier: &str) -> Option<Self> {
        let (server, rest) = identifier.strip_prefix('k')?.split_once("Dh")?;
        let kind = if server.is_empty() { None } else { Some(server_kind(server)?) };
        if rest == "GValue" {
            return Some(Self { kind, part: None });
        }
        let part = KeyPart::from_letter(rest.strip_suffix("Data")?)?;
        Some(Self { kind, part: Some(part) })
    }
}

/// An identifier, a number or a punctuation character, with its position.
#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    line: usize,
    column: usize,
}

impl Token<'_> {
    /// The value of a decimal or hexadecimal number.
    fn number(self) -> Option<u64> {
        let digits = self.text.trim_end_matches(['u', 'U', 'l', 'L']);
        let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
        hex.map_or_else(|| digits.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
    }
}

/// Splits source code into tokens and drops comments. Strings are not handled, since no key header
/// contains any.
struct Tokens<'a> {
    rest: &'a str,
    line: usize,
    column: usize,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1, column: 1 }
    }

    /// Consumes bytes from the front, up to a character boundary.
    fn advance(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        for c in taken.chars() {
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.rest = rest;
        taken
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if self.rest.starts_with("//") {
                self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                self.advance(self.rest.find("*/").map_or(self.rest.len(), |at| at + 2));
            } else {
                break;
            }
        }
        let first = self.rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_word(first) {
            self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len())
        } else {
            first.len_utf8()
        };
        let (line, column) = (self.line, self.column);
        Some(Token { text: self.advance(length), line, column })
    }
}
