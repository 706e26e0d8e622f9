//! Worldwire's own format: the table `uru` of a TOML file.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use worldwire_core::value::parse_hex;

use crate::crypt::exchange::SessionKey;
use crate::crypt::key::ServerKind;
use crate::frame::Service;

use super::collect::{Collector, KeyPart, Location, MAX_FAULTS};
use super::error::KeyFault;
use super::{TABLE, server_kind};

/// Collects the keys of the table `uru`. Other tables are ignored.
pub(super) fn collect(text: &str, collector: &mut Collector) {
    let source = Source::new(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    // After a syntax error the parser can only guess at the rest, so errors reported there would be
    // misleading.
    let sound = errors.is_empty();
    for error in errors.iter().take(MAX_FAULTS + 1) {
        let location = source.location(error.span().unwrap_or(0..0), String::new());
        collector.fault(location, KeyFault::Syntax { message: error.message().to_owned() });
    }
    for (key, value) in root.get_ref() {
        if sound && key.get_ref() == TABLE {
            source.shard(value, collector);
        }
    }
}

/// The text of the file, for computing lines and columns.
struct Source<'a> {
    text: &'a str,
    /// The offset of each line.
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { text, lines }
    }

    /// Reads everything under `uru`.
    fn shard(&self, value: &Spanned<DeValue<'_>>, collector: &mut Collector) {
        let Some(table) = value.get_ref().as_table() else {
            let location = self.location(value.span(), TABLE.to_owned());
            return collector.fault(location, wrong_type("a table", value));
        };
        for (key, value) in table {
            if collector.is_full() {
                return;
            }
            let path = format!("{TABLE}.{}", key.get_ref());
            let location = self.location(value.span(), path.clone());
            if key.get_ref() == "droid" {
                match value.get_ref().as_str() {
                    Some(text) => collector.droid(location, text),
                    None => collector.fault(location, wrong_type("a string of hex digits", value)),
                }
            } else if key.get_ref() == "session" {
                self.sessions(location, value, collector);
            } else if let Some(kind) = server_kind(key.get_ref()) {
                self.server(kind, &path, value, collector);
            } else {
                let location = self.location(key.span(), path);
                let wanted = "gatekeeper, auth, game, csr, droid, session";
                collector.fault(location, KeyFault::UnknownKey { wanted });
            }
        }
    }

    /// Reads the tables of single connections.
    fn sessions(
        &self,
        location: Location,
        value: &Spanned<DeValue<'_>>,
        collector: &mut Collector,
    ) {
        let Some(sessions) = value.get_ref().as_array() else {
            let wanted = "tables in double brackets, [[uru.session]]";
            return collector.fault(location, wrong_type(wanted, value));
        };
        for session in sessions {
            if collector.is_full() {
                return;
            }
            self.session(session, collector);
        }
    }

    /// Reads the service, seed and key of a connection.
    fn session(&self, value: &Spanned<DeValue<'_>>, collector: &mut Collector) {
        const PATH: &str = "uru.session";
        let location = self.location(value.span(), PATH.to_owned());
        let Some(table) = value.get_ref().as_table() else {
            return collector.fault(location, wrong_type("a table", value));
        };
        let (mut service, mut seed, mut session_key, mut is_good) = (None, None, None, true);
        for (key, value) in table {
            let path = format!("{PATH}.{}", key.get_ref());
            let text = value.get_ref().as_str();
            let bytes = || text.and_then(parse_hex).and_then(|bytes| bytes.try_into().ok());
            let wanted = match key.get_ref().as_ref() {
                "service" => {
                    service = text.and_then(Service::from_name);
                    service.is_none().then_some("\"gatekeeper\", \"auth\" or \"game\"")
                }
                "seed" => {
                    seed = bytes();
                    seed.is_none().then_some(DIGITS)
                }
                "key" => {
                    session_key = bytes();
                    session_key.is_none().then_some(DIGITS)
                }
                _ => {
                    let wanted = "service, seed, key";
                    let location = self.location(key.span(), path.clone());
                    collector.fault(location, KeyFault::UnknownKey { wanted });
                    is_good = false;
                    None
                }
            };
            if let Some(wanted) = wanted {
                let location = self.location(value.span(), path);
                collector.fault(location, KeyFault::Session { wanted });
                is_good = false;
            }
        }
        match (service, seed, session_key) {
            (Some(service), Some(seed), Some(key)) => {
                collector.session(service, seed, SessionKey::new(key));
            }
            _ if is_good => {
                collector.fault(location, KeyFault::Session { wanted: "service, seed and key" });
            }
            _ => {}
        }
    }

    /// Reads the table of one server.
    fn server(
        &self,
        kind: ServerKind,
        path: &str,
        value: &Spanned<DeValue<'_>>,
        collector: &mut Collector,
    ) {
        let Some(table) = value.get_ref().as_table() else {
            let location = self.location(value.span(), path.to_owned());
            return collector.fault(location, wrong_type("a table", value));
        };
        for (key, value) in table {
            if collector.is_full() {
                return;
            }
            let path = format!("{path}.{}", key.get_ref());
            let Some(part) = KeyPart::from_letter(key.get_ref()) else {
                let location = self.location(key.span(), path);
                collector.fault(location, KeyFault::UnknownKey { wanted: "n, a, x" });
                continue;
            };
            let location = self.location(value.span(), path);
            match value.get_ref().as_str() {
                Some(text) => collector.base64(kind, part, location, text),
                None => {
                    let fault = wrong_type("a string in base64", value);
                    collector.number(kind, part, location, Err(fault));
                }
            }
        }
    }

    fn location(&self, span: Range<usize>, key: String) -> Location {
        let line = self.lines.partition_point(|begin| *begin <= span.start);
        let begin = self.lines.get(line.saturating_sub(1)).copied().unwrap_or(0);
        // Spans come from the parser and lie within the text; `get` makes a bug there harmless.
        let before = self.text.get(begin..span.start).unwrap_or("");
        Location { line, column: before.chars().count() + 1, key }
    }
}

fn wrong_type(wanted: &'static str, value: &Spanned<DeValue<'_>>) -> KeyFault {
    KeyFault::Type { wanted, found: value.get_ref().type_str() }
}

const DIGITS: &str = "14 hexadecimal digits in quotes";
