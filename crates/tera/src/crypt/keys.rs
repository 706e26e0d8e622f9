//! The key file: the keys of connections whose exchange a capture lacks.
//!
//! ```toml
//! # The keys sent by client and server: two each, of 256 hexadecimal digits.
//! [[tera.session]]
//! client = ["0011...", "2233..."]
//! server = ["4455...", "6677..."]
//! ```
//!
//! Tables of other families are ignored.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use worldwire_core::value::{parse_hex, push_hex};
use worldwire_core::{Diagnostic, Source};

use super::exchange::{Key, Keys};

/// The keys of connections from a key file.
#[derive(Clone, Debug, Default)]
pub struct KeyFile {
    sessions: Arc<[Keys]>,
}

/// Maximum number of errors reported individually.
const MAX_ERRORS: usize = 200;
const TABLE: &str = "tera";

impl KeyFile {
    /// Parses TERA's part of a TOML file; a text without one yields an empty file.
    pub fn parse(name: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        if !is_ours(text) {
            return Ok(Self::default());
        }
        let mut file = File { source: Source::new(name, text), errors: Vec::new() };
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            file.error(error.span().unwrap_or(0..0), error.message());
        }
        let ours = root.get_ref().get(TABLE).filter(|_| errors.is_empty());
        let sessions = ours.map(|ours| file.sessions(ours)).unwrap_or_default();
        if !file.errors.is_empty() {
            file.errors.sort_by_key(|error| (error.line(), error.column()));
            return Err(file.errors);
        }
        Ok(Self { sessions: sessions.into() })
    }

    /// Appends the sessions of another file.
    pub fn merge(&mut self, other: Self) {
        self.sessions = self.sessions.iter().chain(&*other.sessions).cloned().collect();
    }

    /// The TOML table of a session, as [`parse`](Self::parse) reads it.
    #[must_use]
    pub fn format_session(keys: &Keys) -> String {
        let mut text = String::from("[[tera.session]]\n");
        for (name, keys) in [("client", &keys.client), ("server", &keys.server)] {
            text.push_str(name);
            text.push_str(" = [");
            for (index, key) in keys.iter().enumerate() {
                text.push_str(if index == 0 { "\"" } else { ", \"" });
                push_hex(&mut text, key);
                text.push('"');
            }
            text.push_str("]\n");
        }
        text
    }

    /// Whether there are no sessions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// The keys of sessions, in the order of the file.
    #[must_use]
    pub fn sessions(&self) -> Arc<[Keys]> {
        Arc::clone(&self.sessions)
    }
}

/// Whether the text contains a `tera` table and therefore must be TOML.
fn is_ours(text: &str) -> bool {
    text.lines().any(|line| {
        let name = line.trim_start().trim_start_matches('[').trim_start();
        let rest = name.strip_prefix(TABLE).map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with(['.', ']', '=']))
    })
}

/// A file being parsed, with the errors found so far.
struct File<'t> {
    source: Source<'t>,
    errors: Vec<Diagnostic>,
}

impl File<'_> {
    fn sessions(&mut self, ours: &Spanned<DeValue<'_>>) -> Vec<Keys> {
        let mut sessions = Vec::new();
        let Some(table) = ours.get_ref().as_table() else {
            self.error(ours.span(), "tera must be a table");
            return sessions;
        };
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref().as_array()) {
                ("session", Some(items)) => {
                    sessions.extend(items.iter().filter_map(|item| self.session(item)));
                }
                ("session", None) => {
                    let message = "session must be an array of tables: [[tera.session]]";
                    self.error(value.span(), message);
                }
                _ => self.error(key.span(), "unknown key; only session is allowed"),
            }
        }
        sessions
    }

    fn session(&mut self, item: &Spanned<DeValue<'_>>) -> Option<Keys> {
        let Some(table) = item.get_ref().as_table() else {
            self.error(item.span(), "session must be a table");
            return None;
        };
        let before = self.errors.len();
        let (mut client, mut server) = (None, None);
        for (key, value) in table {
            let place = match key.get_ref().as_ref() {
                "client" => &mut client,
                "server" => &mut server,
                _ => {
                    self.error(key.span(), "unknown key; a session has client and server");
                    continue;
                }
            };
            *place = pair(value);
            if place.is_none() {
                self.error(
                    value.span(),
                    "must be two keys of 256 hexadecimal digits each, in quotes",
                );
            }
        }
        if self.errors.len() == before && (client.is_none() || server.is_none()) {
            self.error(item.span(), "a session needs the keys of client and server");
        }
        Some(Keys { client: client?, server: server? })
    }

    fn error(&mut self, span: core::ops::Range<usize>, message: impl Into<String>) {
        // Each error copies its whole line, and a hostile file may be one long line.
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(self.source.error(span, message));
        }
    }
}

/// The two keys of one side.
fn pair(value: &Spanned<DeValue<'_>>) -> Option<[Key; 2]> {
    let [first, second] = &value.get_ref().as_array()?[..] else { return None };
    let key = |value: &Spanned<DeValue<'_>>| -> Option<Key> {
        parse_hex(value.get_ref().as_str()?)?.try_into().ok()
    };
    Some([key(first)?, key(second)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formatted_session_is_parsed_back() {
        let keys = Keys { client: [[1; 128], [2; 128]], server: [[3; 128], [4; 128]] };
        let text = KeyFile::format_session(&keys);
        let file = KeyFile::parse("keys", &format!("[uru]\n{text}")).expect("a key file");
        assert_eq!(*file.sessions(), *core::slice::from_ref(&keys));
        let mut both = file.clone();
        both.merge(file);
        assert_eq!(*both.sessions(), [keys.clone(), keys]);
        assert!(KeyFile::parse("keys", "Key.Auth.N = 1").expect("not ours").is_empty());
    }

    #[test]
    fn all_errors_are_reported() {
        let text = "[[tera.session]]\nclient = [\"00\", \"\"]\nsevrer = []\n\
                    [[tera.session]]\n[tera.other]\n";
        let errors = KeyFile::parse("keys.toml", text).expect_err("invalid tables");
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        keys.toml:2:10: error: must be two keys of 256 hexadecimal digits each, in quotes
        keys.toml:3:1: error: unknown key; a session has client and server
        keys.toml:4:1: error: a session needs the keys of client and server
        keys.toml:5:7: error: unknown key; only session is allowed
        ");
    }
}
