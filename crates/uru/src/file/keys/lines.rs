//! Line-based configuration files of servers and clients: one key and value per line, possibly in
//! sections.
//!
//! One parser reads all of them, since they differ mostly in names and operators keep lines of
//! several formats in one file. It is not a general INI or TOML parser.

use crate::crypt::key::ServerKind;

use super::collect::{Collector, KeyPart, Location, is_number};
use super::error::KeyFault;
use super::server_kind;

/// Collects the keys in the lines of a configuration file.
pub(super) fn collect(text: &str, collector: &mut Collector) {
    let mut section = "";
    for (index, line) in text.lines().enumerate() {
        let content = line.trim();
        if content.is_empty() || content.starts_with(['#', ';']) || content.starts_with("//") {
            continue;
        }
        if let Some(header) = content.strip_prefix('[') {
            let end = header.find(']').unwrap_or(header.len());
            section = header[..end].trim_start_matches('[').trim();
            continue;
        }
        let Entry { key, value } = Entry::split(content);
        let Some(target) = Target::find(section, key) else { continue };
        if target.is_guess() && !matches!(value, Value::Text(text) if is_number(text)) {
            continue;
        }
        let value_text = match value {
            Value::Text(text) | Value::Unterminated(text) => text,
            Value::None => key,
        };
        let location =
            Location { line: index + 1, column: column(line, value_text), key: key.to_owned() };
        match (target, value) {
            (Target::Nothing, _) => collector.fault(location, KeyFault::NoServer),
            (Target::Number { kind, part, .. }, Value::Text(text)) => {
                collector.base64(kind, part, location, text);
            }
            (Target::Number { kind, part, .. }, Value::None) => {
                collector.number(kind, part, location, Err(KeyFault::NoValue));
            }
            (Target::Number { kind, part, .. }, Value::Unterminated(_)) => {
                collector.number(kind, part, location, Err(KeyFault::Unterminated));
            }
            (Target::Droid, Value::Text(text)) => collector.droid(location, text),
            (Target::Droid, Value::None) => collector.fault(location, KeyFault::NoValue),
            (Target::Droid, Value::Unterminated(_)) => {
                collector.fault(location, KeyFault::Unterminated)
            }
        }
    }
}

/// The position, from 1, of the character in the line at which a slice of it begins.
fn column(line: &str, part: &str) -> usize {
    // Both are slices of the same line, so the distance between them is an offset in it.
    let offset = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    line.get(..offset).unwrap_or("").chars().count() + 1
}

/// A line, split into key and value.
struct Entry<'a> {
    key: &'a str,
    value: Value<'a>,
}

#[derive(Clone, Copy)]
enum Value<'a> {
    None,
    Text(&'a str),
    Unterminated(&'a str),
}

impl<'a> Entry<'a> {
    /// Splits `key = value`, `key: value` and `key value`, with or without quotes.
    fn split(content: &'a str) -> Self {
        let end = content.find(|c: char| c.is_whitespace() || c == '=' || c == ':');
        let (key, rest) = content.split_at(end.unwrap_or(content.len()));
        let rest = rest.trim_start();
        let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start();
        let value = match rest.chars().next() {
            None => Value::None,
            Some(quote @ ('"' | '\'')) => match rest[1..].split_once(quote) {
                Some((text, _)) => Value::Text(text),
                None => Value::Unterminated(&rest[1..]),
            },
            // Neither base64 nor hex contains blanks, so a blank ends the value; a comment may
            // follow.
            Some(_) => Value::Text(rest.split(char::is_whitespace).next().unwrap_or(rest)),
        };
        Self { key: key.trim_matches(['"', '\'']), value }
    }
}

/// What a line defines.
#[derive(Clone, Copy)]
enum Target {
    /// A number of a server. `guess` is set if the key contains words that no known format uses.
    Number { kind: ServerKind, part: KeyPart, guess: bool },
    /// The droid key.
    Droid,
    /// A number whose server is unknown.
    Nothing,
}

impl Target {
    /// Interprets section and key together as a list of words, whatever separates them.
    fn find(section: &str, key: &str) -> Option<Self> {
        let mut words: Vec<String> = section
            .split(SEPARATORS)
            .chain(key.split(SEPARATORS))
            .map(|word| word.trim().to_ascii_lowercase())
            .filter(|word| !word.is_empty())
            .collect();
        let known = |words: &[String]| words.iter().all(|w| FRAME_WORDS.contains(&w.as_str()));

        if let Some(at) = words.iter().rposition(|word| word == "droid") {
            words.remove(at);
            return known(&words).then_some(Self::Droid);
        }
        let part = KeyPart::from_letter(&words.pop()?)?;
        match words.iter().rposition(|word| server_kind(word).is_some()) {
            Some(at) => {
                let kind = server_kind(&words.remove(at))?;
                Some(Self::Number { kind, part, guess: !known(&words) })
            }
            // A bare `n` could mean anything; `key_n` is unambiguous.
            None => {
                (words.last().is_some_and(|w| w == "key") && known(&words)).then_some(Self::Nothing)
            }
        }
    }

    /// Whether the line can be recognised as a key only by its value.
    fn is_guess(self) -> bool {
        matches!(self, Self::Number { guess: true, .. })
    }
}

const SEPARATORS: [char; 5] = ['.', '_', '-', '"', '\''];
/// Words that accompany server names in known configuration files. A line with other words is used
/// only if its value is a number of the right length, because a shard's configuration may contain
/// an unrelated `x`.
const FRAME_WORDS: [&str; 14] = [
    "key",
    "keys",
    "crypt",
    "crypto",
    "encryption",
    "dh",
    "server",
    "servers",
    "keeper",
    "shard",
    "uru",
    "moulars",
    "nagus",
    "dirtsand",
];
