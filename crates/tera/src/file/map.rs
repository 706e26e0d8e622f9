//! Maps from names to codes: opcodes of a build, or system messages of a patch.

use core::fmt;
use core::ops::Range;
use std::collections::HashMap;

use worldwire_core::Source;

use crate::schema::parse::{MAX_NAME, is_space, quoted};
use crate::schema::{Problem, ProblemKind};

/// What the codes of a map are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapKind {
    /// Opcodes, 0 to 65535, of one build of the client.
    Protocol,
    /// Numbers of system messages.
    SystemMessages,
}

/// The name of a map's file: `protocol.387486.map`, `sysmsg.98.map`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapName {
    /// What is in it.
    pub kind: MapKind,
    /// Whose it is: the revision of a build, or for system messages a revision or a patch.
    pub version: Box<str>,
}

impl MapName {
    /// Takes the name of a file, without its folder, apart; `None` when it is no map.
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

/// Names and their codes, both ways.
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
    /// In the order of the text.
    entries: Vec<(Box<str>, u32)>,
    names: HashMap<Box<str>, usize>,
    /// The entry that a code stands for: the last with it.
    codes: HashMap<u32, usize>,
}

impl CodeMap {
    /// Reads a map. A line is a name and a decimal code, with white space, an equals sign or both
    /// between them; `#` begins a comment. Lines that cannot be read are problems, the others
    /// count. A name or code that stands more than once means the last.
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

    /// A map of pairs; of a name or code that comes more than once the last counts. What can be no
    /// name in the text of a map is left out.
    pub fn from_pairs<N: AsRef<str>>(pairs: impl IntoIterator<Item = (N, u32)>) -> Self {
        Self::from_pairs_noting(pairs).0
    }

    /// The same, and what comes more than once or is left out.
    pub fn from_pairs_noting<N: AsRef<str>>(
        pairs: impl IntoIterator<Item = (N, u32)>,
    ) -> (Self, Vec<String>) {
        let mut map = Self::default();
        let mut remarks = Vec::new();
        for (name, code) in pairs {
            if !is_name(name.as_ref()) {
                remarks.push(format!("{:?} is no name; it is left out", name.as_ref()));
                continue;
            }
            remarks.extend(map.insert(name.as_ref(), code).into_iter().map(|(_, text)| text));
        }
        (map, remarks)
    }

    /// Adds an entry; gives what there is to report about it.
    fn insert(&mut self, name: &str, code: u32) -> Vec<(ProblemKind, String)> {
        let mut remarks = Vec::new();
        let index = match self.names.get(name) {
            Some(&index) => {
                let message = format!("{name} is already in the map; the last one counts");
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
            let message = format!("{code} is also the code of {other}; it stands for {name}");
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

    /// All entries, in the order in which their names came first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.entries.iter().map(|(name, code)| (&**name, *code))
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The text of the map: a line `NAME = code` for each entry, in the order of their codes.
    #[must_use]
    pub fn format(&self) -> String {
        let mut entries: Vec<_> = self.iter().collect();
        entries.sort_by_key(|entry| (entry.1, entry.0));
        entries.iter().map(|(name, code)| format!("{name} = {code}\n")).collect()
    }
}

/// What is wrong with a line.
struct Bad {
    kind: ProblemKind,
    /// Where in the line.
    span: Range<usize>,
    message: String,
    help: &'static str,
}

/// Whether a text may be a name: of characters that can be seen, that stand in no other's place, and
/// that end no name in a map.
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
            "the name has {} bytes, wanted at most {MAX_NAME}",
            name.len()
        )));
    }
    if !is_name(name) {
        return Err(malformed(format!("{} is no name", quoted(name))));
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
    let most = match kind {
        MapKind::Protocol => u32::from(u16::MAX),
        MapKind::SystemMessages => u32::MAX,
    };
    match code.parse() {
        Ok(number) if number <= most => Ok((name, number)),
        _ => {
            let message = format!("{} is more than {most}", quoted(code));
            let help = "opcodes have 16 bits, system messages 32";
            Err(Bad { kind: ProblemKind::CodeOutOfRange, span, message, help })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are shown as they are.
    #[test]
    fn names_cannot_hide_anything() {
        let text = "S_A 1\nS_\u{1b}[31mB 2\nS_C\0 3\nS_\u{202e}D 4\n";
        let (map, problems) = CodeMap::parse(MapKind::Protocol, "protocol.1.map", text);
        assert_eq!(map.iter().collect::<Vec<_>>(), [("S_A", 1)]);
        let kinds: Vec<_> = problems.iter().map(|problem| problem.kind.name()).collect();
        assert_eq!(kinds, ["malformed_line"; 3]);
    }

    #[test]
    fn a_map_is_written_as_it_is_read() {
        let (map, problems) = CodeMap::parse(MapKind::Protocol, "m", "B=2\nA = 10 # x\r\nC\t1\n");
        assert!(problems.is_empty());
        assert_eq!(map.format(), "C = 1\nB = 2\nA = 10\n");
        assert_eq!(CodeMap::parse(MapKind::Protocol, "m", &map.format()).0.len(), 3);
    }

    #[test]
    fn a_name_that_moves_leaves_its_code() {
        let (map, problems) = CodeMap::parse(MapKind::Protocol, "m", "A 1\nA 2\nB 2\nB 2\n");
        assert_eq!((map.name(1), map.name(2)), (None, Some("B")));
        let kinds: Vec<_> = problems.iter().map(|problem| problem.kind.name()).collect();
        assert_eq!(kinds, ["duplicate_name", "duplicate_code", "duplicate_name"]);
    }

    #[test]
    fn what_no_map_could_have_as_a_name_is_left_out() {
        let odd = ["", "A\u{1b}[31m", "A\nB", "A B", "A#B", "A=B", "\u{202e}A"];
        let pairs = odd.into_iter().chain(["S_GOOD"]).zip(1..);
        let (map, said) = CodeMap::from_pairs_noting(pairs);
        assert_eq!(map.format(), "S_GOOD = 8\n");
        assert_eq!(said.len(), odd.len());
        assert_eq!(said[1], "\"A\\u{1b}[31m\" is no name; it is left out");
    }

    #[test]
    fn pairs_that_come_twice_are_told() {
        let (map, said) = CodeMap::from_pairs_noting([("A", 1), ("B", 1), ("A", 3)]);
        assert_eq!((map.code("A"), map.name(1)), (Some(3), Some("B")));
        let wanted = [
            "1 is also the code of A; it stands for B",
            "A is already in the map; the last one counts",
        ];
        assert_eq!(said, wanted);
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
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
    fn names_of_files_tell_what_is_in_them() {
        let name = MapName::parse("protocol.387486.map").unwrap();
        assert_eq!((name.kind, &*name.version), (MapKind::Protocol, "387486"));
        assert_eq!(name.to_string(), "protocol.387486.map");
        assert_eq!(MapName::parse("other.1.map"), None);
        assert_eq!(MapName::parse("protocol.map"), None);
    }
}
