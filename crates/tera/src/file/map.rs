//! Maps between names and codes: opcodes of a build, or system messages of a patch.

use core::fmt;
use core::ops::Range;
use std::collections::HashMap;

use worldwire_core::Source;

use crate::schema::parse::{MAX_NAME, is_space, quoted};
use crate::schema::{Problem, ProblemKind};

/// The meaning of a map's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapKind {
    /// Opcodes, 0 to 65535, of one build of the client.
    Protocol,
    /// Numbers of system messages.
    SystemMessages,
}

/// The file name of a map: `protocol.387486.map`, `sysmsg.98.map`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapName {
    /// The contents of the map.
    pub kind: MapKind,
    /// Its version: the revision of a build, or for system messages a revision or a patch.
    pub version: Box<str>,
}

impl MapName {
    /// Splits a file name, given without its directory, into its parts; `None` if it is not a
    /// map's.
    #[must_use]
    pub fn parse(file: &str) -> Option<Self> {
        let (kind, version) = file.strip_suffix(".map")?.split_once('.')?;
        let kind = match kind {
            "protocol" => MapKind::Protocol,
            "sysmsg" => MapKind::SystemMessages,
            _ => return None,
        };
        (!version.is_empty()).then(|| Self { kind, version: version.into() })
    }
}

impl fmt::Display for MapName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            MapKind::Protocol => "protocol",
            MapKind::SystemMessages => "sysmsg",
        };
        write!(f, "{kind}.{}.map", self.version)
    }
}

/// Names and their codes, in both directions.
///
/// ```
/// use worldwire_tera::file::{CodeMap, MapKind};
/// let text = "C_CHECK_VERSION 19900\nS_LOGIN = 0x10\n";
/// let (map, problems) = CodeMap::parse(MapKind::Protocol, "protocol.1.map", text);
/// assert_eq!(map.code("C_CHECK_VERSION"), Some(19_900));
/// assert_eq!(map.name(19_900), Some("C_CHECK_VERSION"));
/// assert_eq!(
///     problems[0].to_string(),
///     "protocol.1.map:2:11: error: \"0x10\" is not a decimal number (write 16) [bad_code]",
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeMap {
    /// The entries, in the order of the text.
    entries: Vec<(Box<str>, u32)>,
    names: HashMap<Box<str>, usize>,
    /// For each code, its last entry.
    codes: HashMap<u32, usize>,
}

impl CodeMap {
    /// Parses a map. A line is a name and a decimal code, separated by white space, an equals sign
    /// or both; `#` begins a comment. Invalid lines are reported and skipped. If a name or code
    /// occurs more than once, the last one wins.
    #[must_use]
    pub fn parse(kind: MapKind, name: &str, text: &str) -> (Self, Vec<Problem>) {
        let source = Source::new(name, text);
        let mut map = Self::default();
        let mut problems = Vec::new();
        let mut start = 0;
        for whole in text.split('\n') {
            let line = whole.split('#').next().unwrap_or_default();
            let at = start + line.len() - line.trim_start_matches(is_space).len();
            let line = line.trim_matches(is_space);
            start += whole.len() + 1;
            if line.is_empty() {
                continue;
            }
            match entry(kind, line) {
                Ok((name, code)) => {
                    let span = at..at + line.len();
                    for (kind, message) in map.insert(name, code) {
                        let diagnostic = source.warning(span.clone(), message);
                        problems.push(Problem { kind, diagnostic });
                    }
                }
                Err(Bad { kind, span, message, help }) => {
                    let diagnostic = source.error(at + span.start..at + span.end, message);
                    let diagnostic = diagnostic.help(help);
                    problems.push(Problem { kind, diagnostic });
                }
            }
        }
        (map, problems)
    }

    /// Builds a map from pairs. If a name or code occurs more than once, the last one wins. Names
    /// that cannot appear in a map file are left out.
    pub fn from_pairs<N: AsRef<str>>(pairs: impl IntoIterator<Item = (N, u32)>) -> Self {
        Self::from_pairs_noting(pairs).0
    }

    /// Like [`from_pairs`](Self::from_pairs), but also reports duplicates and names left out.
    pub fn from_pairs_noting<N: AsRef<str>>(
        pairs: impl IntoIterator<Item = (N, u32)>,
    ) -> (Self, Vec<String>) {
        let mut map = Self::default();
        let mut remarks = Vec::new();
        for (name, code) in pairs {
            if !is_name(name.as_ref()) {
                remarks.push(format!("{:?} is not a valid name; left out", name.as_ref()));
                continue;
            }
            remarks.extend(map.insert(name.as_ref(), code).into_iter().map(|(_, text)| text));
        }
        (map, remarks)
    }

    /// Adds an entry; returns warnings about it.
    fn insert(&mut self, name: &str, code: u32) -> Vec<(ProblemKind, String)> {
        let mut remarks = Vec::new();
        let index = match self.names.get(name) {
            Some(&index) => {
                let message = format!("{name} is already in the map; the last one wins");
                remarks.push((ProblemKind::DuplicateName, message));
                if let Some(entry) = self.entries.get_mut(index) {
                    let old = core::mem::replace(&mut entry.1, code);
                    if old != code && self.codes.get(&old) == Some(&index) {
                        self.codes.remove(&old);
                    }
                }
                index
            }
            None => {
                self.entries.push((name.into(), code));
                self.names.insert(name.into(), self.entries.len() - 1);
                self.entries.len() - 1
            }
        };
        if let Some(other) = self.codes.insert(code, index).filter(|other| *other != index) {
            let other = self.entries.get(other).map_or("", |entry| &entry.0);
            let message = format!("{code} is also the code of {other}; it now means {name}");
            remarks.push((ProblemKind::DuplicateCode, message));
        }
        remarks
    }

    /// The code of a name.
    #[must_use]
    pub fn code(&self, name: &str) -> Option<u32> {
        self.entries.get(*self.names.get(name)?).map(|entry| entry.1)
    }

    /// The name of a code.
    #[must_use]
    pub fn name(&self, code: u32) -> Option<&str> {
        self.entries.get(*self.codes.get(&code)?).map(|entry| &*entry.0)
    }

    /// All entries, in the order in which their names first appeared.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.entries.iter().map(|(name, code)| (&**name, *code))
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the map is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The text of the map: a line `NAME = code` for each entry, sorted by code.
    #[must_use]
    pub fn format(&self) -> String {
        let mut entries: Vec<_> = self.iter().collect();
        entries.sort_by_key(|entry| (entry.1, entry.0));
        entries.iter().map(|(name, code)| format!("{name} = {code}\n")).collect()
    }
}

/// An error in a line.
struct Bad {
    kind: ProblemKind,
    /// Its position in the line.
    span: Range<usize>,
    message: String,
    help: &'static str,
}

/// Whether a text is a valid name: visible ASCII characters that do not end a name in a map.
pub(super) fn is_name(text: &str) -> bool {
    let may_be = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'=');
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(may_be)
}

fn entry(kind: MapKind, line: &str) -> Result<(&str, u32), Bad> {
    let malformed = |message: String| Bad {
        kind: ProblemKind::MalformedLine,
        span: 0..line.len(),
        message,
        help: "a line is a name and a number: S_LOGIN = 12345",
    };
    let end = line.find(|c| is_space(c) || c == '=').unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if name.is_empty() {
        return Err(malformed("no name".to_owned()));
    }
    if name.len() > MAX_NAME {
        return Err(malformed(format!(
            "the name is {} bytes long; the limit is {MAX_NAME}",
            name.len()
        )));
    }
    if !is_name(name) {
        return Err(malformed(format!("{} is not a valid name", quoted(name))));
    }
    let rest = rest.trim_start_matches(is_space);
    let code = rest.strip_prefix('=').unwrap_or(rest).trim_start_matches(is_space);
    if code.is_empty() {
        return Err(malformed(format!("no code for {}", quoted(name))));
    }
    let span = line.len() - code.len()..line.len();
    if code.contains(is_space) || code.contains('=') {
        return Err(malformed(format!("more than one code for {}", quoted(name))));
    }
    if !code.bytes().all(|byte| byte.is_ascii_digit()) {
        let hex = code.strip_prefix("0x").and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let help = match hex {
            Some(16) => "write 16",
            Some(_) => "write it in decimal",
            None => "digits only",
        };
        let message = format!("{} is not a decimal number", quoted(code));
        return Err(Bad { kind: ProblemKind::BadCode, span, message, help });
    }
    let max = match kind {
        MapKind::Protocol => u32::from(u16::MAX),
        MapKind::SystemMessages => u32::MAX,
    };
    match code.parse() {
        Ok(number) if number <= max => Ok((name, number)),
        _ => {
            let message = format!("{} is more than {max}", quoted(code));
            let help = "opcodes have 16 bits, system messages 32";
            Err(Bad { kind: ProblemKind::CodeOutOfRange, span, message, help })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are printed without escaping.
    #[test]
    fn names_cannot_contain_control_characters() {
        let text = "S_A 1\nS_\u{1b}[31mB 2\nS_C\0 3\nS_\u{202e}D 4\n";
        let (map, problems) = CodeMap::parse(MapKind::Protocol, "protocol.1.map", text);
        assert_eq!(map.iter().collect::<Vec<_>>(), [("S_A", 1)]);
        let kinds: Vec<_> = problems.iter().map(|problem| problem.kind.name()).collect();
        assert_eq!(kinds, ["malformed_line"; 3]);
    }

    #[test]
    fn a_formatted_map_parses_to_the_same_entries() {
        let (map, problems) = CodeMap::parse(MapKind::Protocol, "m", "B=2\nA = 10 # x\r\nC\t1\n");
        assert!(problems.is_empty());
        assert_eq!(map.format(), "C = 1\nB = 2\nA = 10\n");
        assert_eq!(CodeMap::parse(MapKind::Protocol, "m", &map.format()).0.len(), 3);
    }

    #[test]
    fn a_name_with_a_new_code_loses_its_old_one() {
        let (map, problems) = CodeMap::parse(MapKind::Protocol, "m", "A 1\nA 2\nB 2\nB 2\n");
        assert_eq!((map.name(1), map.name(2)), (None, Some("B")));
        let kinds: Vec<_> = problems.iter().map(|problem| problem.kind.name()).collect();
        assert_eq!(kinds, ["duplicate_name", "duplicate_code", "duplicate_name"]);
    }

    #[test]
    fn invalid_names_are_left_out() {
        let odd = ["", "A\u{1b}[31m", "A\nB", "A B", "A#B", "A=B", "\u{202e}A"];
        let pairs = odd.into_iter().chain(["S_GOOD"]).zip(1..);
        let (map, warnings) = CodeMap::from_pairs_noting(pairs);
        assert_eq!(map.format(), "S_GOOD = 8\n");
        assert_eq!(warnings.len(), odd.len());
        assert_eq!(warnings[1], "\"A\\u{1b}[31m\" is not a valid name; left out");
    }

    #[test]
    fn duplicate_pairs_are_reported() {
        let (map, warnings) = CodeMap::from_pairs_noting([("A", 1), ("B", 1), ("A", 3)]);
        assert_eq!((map.code("A"), map.name(1)), (Some(3), Some("B")));
        let wanted = [
            "1 is also the code of A; it now means B",
            "A is already in the map; the last one wins",
        ];
        assert_eq!(warnings, wanted);
    }

    #[test]
    fn all_errors_are_reported_together() {
        let long = format!("{} 1", "A".repeat(256));
        assert_eq!(CodeMap::parse(MapKind::Protocol, "m", &long).1.len(), 1);
        let text = "A\n= 5\nB 0x1f\nC 70000\nD 1 2\nE 3\n";
        let (map, problems) = CodeMap::parse(MapKind::Protocol, "m.map", text);
        assert_eq!(map.len(), 1);
        let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        m.map:1:1: error: no code for "A" (a line is a name and a number: S_LOGIN = 12345) [malformed_line]
        m.map:2:1: error: no name (a line is a name and a number: S_LOGIN = 12345) [malformed_line]
        m.map:3:3: error: "0x1f" is not a decimal number (write it in decimal) [bad_code]
        m.map:4:3: error: "70000" is more than 65535 (opcodes have 16 bits, system messages 32) [code_out_of_range]
        m.map:5:1: error: more than one code for "D" (a line is a name and a number: S_LOGIN = 12345) [malformed_line]
        "#);
    }

    #[test]
    fn file_names_say_what_a_map_contains() {
        let name = MapName::parse("protocol.387486.map").unwrap();
        assert_eq!((name.kind, &*name.version), (MapKind::Protocol, "387486"));
        assert_eq!(name.to_string(), "protocol.387486.map");
        assert_eq!(MapName::parse("other.1.map"), None);
        assert_eq!(MapName::parse("protocol.map"), None);
    }
}
