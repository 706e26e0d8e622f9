//! The key file: session keys supplied by the user.
//!
//! ```toml
//! # The key of a session, as assigned by the margin server.
//! [[mxo.session]]
//! id = 0x1f2e3d4c                           # optional; without it, the key is tried on any session
//! key = "000102030405060708090a0b0c0d0e0f"
//! ```
//!
//! Tables of other families are ignored.

use core::fmt::Write as _;
use std::collections::HashMap;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use worldwire_core::value::push_hex;
use worldwire_core::{Diagnostic, Source, nearest};

use super::key::SessionKey;

/// The keys of sessions from a key file.
#[derive(Clone, Debug, Default)]
pub struct KeyFile {
    sessions: Arc<[KnownSession]>,
}

/// The key of a session.
#[derive(Clone, Debug)]
pub struct KnownSession {
    /// The session's ID, if known. The key with the ID from a hello is tried first.
    pub id: Option<u32>,
    /// The key.
    pub key: SessionKey,
}

impl PartialEq for KnownSession {
    fn eq(&self, other: &Self) -> bool {
        (self.id, self.key.as_bytes()) == (other.id, other.key.as_bytes())
    }
}

impl Eq for KnownSession {}

/// Maximum number of errors reported individually.
const MAX_ERRORS: usize = 200;
const TABLE: &str = "mxo";
const SESSION_KEYS: [&str; 2] = ["id", "key"];

impl KeyFile {
    /// A file with these sessions.
    #[must_use]
    pub fn new(sessions: Vec<KnownSession>) -> Self {
        Self { sessions: sessions.into() }
    }

    /// Parses MxO's part of a TOML file; a text without one yields an empty file.
    pub fn parse(name: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        if !is_ours(text) {
            return Ok(Self::default());
        }
        let mut file = File { source: Source::new(name, text), errors: Vec::new(), omitted: 0 };
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            file.error(error.span().unwrap_or(0..0), error.message());
        }
        let ours = root.get_ref().get(TABLE).filter(|_| errors.is_empty());
        let sessions = ours.map(|ours| file.sessions(ours)).unwrap_or_default();
        file.close(Self::new(sessions))
    }

    /// Appends the sessions of another file. A recording can contain a key twice: first without its
    /// ID, which was still unknown, and then with it. In that case, only the session with the ID is
    /// kept.
    pub fn merge(&mut self, other: Self) {
        let mut sessions: Vec<KnownSession> = Vec::new();
        let mut places = HashMap::new();
        for session in self.sessions.iter().chain(&*other.sessions) {
            let key = session.key.as_bytes();
            match places.get(key).and_then(|place: &usize| sessions.get_mut(*place)) {
                Some(known)
                    if known.id.is_none() || session.id.is_none() || known.id == session.id =>
                {
                    known.id = known.id.or(session.id);
                }
                _ => {
                    places.entry(key).or_insert(sessions.len());
                    sessions.push(session.clone());
                }
            }
        }
        drop(places);
        self.sessions = sessions.into();
    }

    /// The TOML table of a session, as [`parse`](Self::parse) reads it.
    #[must_use]
    pub fn format_session(session: &KnownSession) -> String {
        let mut text = String::from("[[mxo.session]]\n");
        if let Some(id) = session.id {
            let _ = writeln!(text, "id = {id:#x}");
        }
        text.push_str("key = \"");
        push_hex(&mut text, session.key.as_bytes());
        text.push_str("\"\n");
        text
    }

    /// Whether there are no sessions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// The sessions, in the order of the file.
    #[must_use]
    pub fn sessions(&self) -> &Arc<[KnownSession]> {
        &self.sessions
    }
}

/// Whether the text contains an `mxo` table, and so must be TOML.
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
    /// The number of further errors.
    omitted: usize,
}

impl File<'_> {
    fn sessions(&mut self, ours: &Spanned<DeValue<'_>>) -> Vec<KnownSession> {
        let mut sessions = Vec::new();
        let Some(table) = ours.get_ref().as_table() else {
            self.error(ours.span(), "mxo must be a table");
            return sessions;
        };
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref().as_array()) {
                ("session", Some(items)) => {
                    sessions.extend(items.iter().filter_map(|item| self.session(item)));
                }
                ("session", None) => {
                    let message = "session must be an array of tables: [[mxo.session]]";
                    self.error(value.span(), message);
                }
                _ => self.unknown(key, &["session"]),
            }
        }
        sessions
    }

    fn session(&mut self, item: &Spanned<DeValue<'_>>) -> Option<KnownSession> {
        let Some(table) = item.get_ref().as_table() else {
            self.error(item.span(), "session must be a table");
            return None;
        };
        let (mut id, mut session_key) = (None, None);
        let before = self.errors.len() + self.omitted;
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "id" => {
                    let number = value.get_ref().as_integer();
                    id = number.and_then(|number| {
                        u32::from_str_radix(number.as_str(), number.radix()).ok()
                    });
                    if id.is_none() {
                        self.error(value.span(), "not a session ID from 0 to 4294967295");
                    }
                }
                "key" => {
                    session_key = value.get_ref().as_str().and_then(SessionKey::parse);
                    if session_key.is_none() {
                        self.error(value.span(), "not 32 hexadecimal digits in quotes");
                    }
                }
                _ => self.unknown(key, &SESSION_KEYS),
            }
        }
        if session_key.is_none() && self.errors.len() + self.omitted == before {
            self.error(item.span(), "a session needs a key");
        }
        Some(KnownSession { id, key: session_key? })
    }

    fn unknown(&mut self, key: &Spanned<std::borrow::Cow<'_, str>>, known: &[&str]) {
        if self.errors.len() >= MAX_ERRORS {
            self.omitted += 1;
            return;
        }
        let message = format!("unknown key {}; allowed: {}", key.get_ref(), known.join(", "));
        let error = self.source.error(key.span(), message);
        // Names this short are similar only if they consist of the same letters.
        let letters = |name: &str| {
            let mut letters = name.to_lowercase().into_bytes();
            letters.sort_unstable();
            letters
        };
        let typed = letters(key.get_ref());
        let near = nearest(key.get_ref(), known.iter().copied())
            .or_else(|| known.iter().copied().find(|name| letters(name) == typed));
        self.errors.push(match near {
            Some(near) => error.help(format!("did you mean {near}?")),
            None => error,
        });
    }

    fn error(&mut self, span: core::ops::Range<usize>, message: impl Into<String>) {
        // Each error copies its whole line, and a hostile file may be one long line.
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(self.source.error(span, message));
        } else {
            self.omitted += 1;
        }
    }

    fn close(mut self, file: KeyFile) -> Result<KeyFile, Vec<Diagnostic>> {
        if self.errors.is_empty() {
            return Ok(file);
        }
        self.errors.sort_by_key(|error| (error.line(), error.column()));
        if self.omitted > 0 {
            let text = format!("{} more like these", self.omitted);
            self.errors.push(self.source.error(0..0, text));
        }
        Err(self.errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_parsed_and_formatted_again() {
        let text = "[uru]\ndroid = \"00\"\n[[mxo.session]]\nid = 0x12\n\
                    key = \"000102030405060708090a0b0c0d0e0f\"\n\
                    [[mxo.session]]\nkey = \"101112131415161718191a1b1c1d1e1f\"\n";
        let file = KeyFile::parse("keys", text).expect("it is right");
        let ids: Vec<_> = file.sessions().iter().map(|session| session.id).collect();
        assert_eq!(ids, [Some(0x12), None]);
        assert!(KeyFile::parse("keys", "Key.Auth.N = 1").expect("not ours").is_empty());
        let tables: Vec<_> = file.sessions().iter().map(KeyFile::format_session).collect();
        let again = tables.concat();
        assert!(text.replace("[uru]\ndroid = \"00\"\n", "") == again, "{again}");
    }

    #[test]
    fn merging_keeps_each_session_once() {
        let session = |id, key| KnownSession { id, key: SessionKey::new(&[key; 16]) };
        let mut file = KeyFile::new(vec![session(None, 1), session(Some(2), 2)]);
        let more = [session(Some(1), 1), session(None, 2), session(Some(3), 2), session(None, 3)];
        file.merge(KeyFile::new(more.into()));
        let wanted =
            [session(Some(1), 1), session(Some(2), 2), session(Some(3), 2), session(None, 3)];
        assert_eq!(file.sessions()[..], wanted);
    }

    #[test]
    fn all_errors_are_reported() {
        let text = "[[mxo.session]]\nid = -1\nkey = \"00\"\nkye = \"\"\n\
                    [[mxo.session]]\nid = 1\n[mxo.other]\n";
        let errors = KeyFile::parse("keys.toml", text).expect_err("it is wrong");
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        keys.toml:2:6: error: not a session ID from 0 to 4294967295
        keys.toml:3:7: error: not 32 hexadecimal digits in quotes
        keys.toml:4:1: error: unknown key kye; allowed: id, key (did you mean key?)
        keys.toml:5:1: error: a session needs a key
        keys.toml:7:6: error: unknown key other; allowed: session
        ");
        let errors = KeyFile::parse("keys.toml", "[[mxo.session]\n").expect_err("it is wrong");
        insta::assert_snapshot!(errors[0], @"keys.toml:1:15: error: unclosed array table, expected `]`");
    }
}
