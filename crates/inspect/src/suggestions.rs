//! Completes filters: names of messages, fields and values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::Serialize;
use worldwire_dissect::Definitions;

/// All names that filters can use, collected on first use.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary(OnceLock<Words>);

#[derive(Debug, Default)]
struct Words {
    messages: Vec<String>,
    fields: Vec<String>,
    /// Each message's own fields, by message name.
    own: BTreeMap<String, Vec<String>>,
    /// The names that the values of a field have.
    values: Vec<(String, Vec<String>)>,
}

/// One completion.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Suggestion {
    /// The text that replaces the word.
    text: String,
    /// The kind: `message`, `field`, `value`, `operator` or `word`.
    kind: &'static str,
}

/// Completions of the word at a position.
#[derive(Debug, Serialize)]
pub(crate) struct Suggestions {
    /// Where the word starts and ends, counted in UTF-16 units as browsers do.
    start: usize,
    end: usize,
    suggestions: Vec<Suggestion>,
}

/// The maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 20;
/// The maximum length of a filter that is completed, in bytes.
const MAX_TEXT: usize = 4096;
/// Filter keywords, and message metadata.
const WORDS: &[&str] = &[
    "and",
    "or",
    "not",
    "contains",
    "matches",
    "startswith",
    "endswith",
    "has",
    "in",
    "exists(",
    "any",
    "from",
    "stream",
    "packet",
    "elapsed",
    "date",
    "length",
    "addr",
    "port",
    "src",
    "dst",
    "srcport",
    "dstport",
    "family",
    "name",
    "error",
    "remarks",
    "problem",
    "gap",
    "warning",
    "client",
    "server",
];
/// What can follow a field.
const AFTER_FIELD: &[&str] = &[
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "contains",
    "~",
    "startswith",
    "endswith",
    "has",
    "in {",
    "is",
];
/// Operators that a value follows.
const OPERATORS: &[&str] = &["==", "!=", "<", "<=", ">", ">=", "has", "eq", "ne", "in"];

impl Vocabulary {
    /// Completes the word that ends at `cursor`, counted in UTF-16 units. `seen` contains the
    /// capture's names, which are suggested first.
    pub(crate) fn complete(
        &self,
        definitions: &Definitions,
        seen: &[&str],
        text: &str,
        cursor: usize,
    ) -> Suggestions {
        let words = self.0.get_or_init(|| Words::new(definitions));
        let text = cut(text, cursor);
        let word_at = text.rfind(|c| !is_word(c)).map_or(0, |at| {
            at + text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        });
        let (before, word) = text.split_at(word_at);
        let units = |text: &str| text.encode_utf16().count();
        let (start, end) = (units(before), units(text));
        let mut found = Found { word, suggestions: Vec::new(), known: BTreeSet::new() };
        if let Some(field) = compared_field(before) {
            let is_own = |known: &str| known == field || field.ends_with(&format!(".{known}"));
            for (_, names) in words.values.iter().filter(|(known, _)| is_own(known)) {
                found.add(names.iter().map(String::as_str), "value");
            }
            if field == "from" {
                found.add(["client", "server"].into_iter(), "value");
            }
        } else if !is_in_text(before) && words.is_field(last_word(before)) {
            found.add(AFTER_FIELD.iter().copied(), "operator");
        } else if !is_in_text(before) && !word.is_empty() {
            // A field by itself is not a condition.
            let is_alone = words.is_field(word) && !before.ends_with("exists(");
            let exists = is_alone.then(|| format!("exists({word})"));
            found.suggestions.extend(exists.map(|text| Suggestion { text, kind: "field" }));
            let own = words.fields_of(before);
            for fits in [Fit::Start, Fit::StartInAnyCase, Fit::Part] {
                found.add_fitting(own.iter().copied(), "field", fits);
                found.add_fitting(seen.iter().copied(), "message", fits);
                found.add_fitting(words.messages.iter().map(String::as_str), "message", fits);
                found.add_fitting(words.fields.iter().map(String::as_str), "field", fits);
                found.add_fitting(WORDS.iter().copied(), "word", fits);
            }
        }
        Suggestions { start, end, suggestions: found.suggestions }
    }
}

impl Words {
    fn new(definitions: &Definitions) -> Self {
        let (mut messages, mut fields) = (BTreeSet::new(), BTreeSet::new());
        let mut own = BTreeMap::new();
        let mut values = Vec::new();
        for family in definitions.families().iter() {
            let vocabulary = family.vocabulary();
            messages.insert(family.name().to_owned());
            messages.extend(vocabulary.inside().into_iter().map(str::to_owned));
            for names in vocabulary.messages(definitions) {
                fields.extend(names.fields.iter().chain(&names.inner).map(|it| (*it).to_owned()));
                let outer: Vec<String> = names.fields.iter().map(|it| (*it).to_owned()).collect();
                own.insert(names.name.clone(), outer);
                messages.insert(names.name);
            }
            for of in vocabulary.values(definitions) {
                let names = of.names.iter().map(|name| (*name).to_owned()).collect();
                values.push((of.field.to_owned(), names));
            }
        }
        let [messages, fields] = [messages, fields].map(|words| words.into_iter().collect());
        Self { messages, fields, own, values }
    }

    /// Whether a field of any message has this name.
    fn is_field(&self, name: &str) -> bool {
        self.fields.binary_search_by(|known| known.as_str().cmp(name)).is_ok()
    }

    /// The fields of the messages that a text names.
    fn fields_of(&self, text: &str) -> BTreeSet<&str> {
        let named = text.split(|c| !is_word(c)).filter_map(|name| self.own.get(name));
        named.flatten().map(String::as_str).collect()
    }
}

/// How a name fits the typed word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// The name begins with the word.
    Start,
    /// The name begins with the word, ignoring case.
    StartInAnyCase,
    /// One of the name's parts after a dot begins with the word, in any case.
    Part,
}

impl Fit {
    /// How a name fits a word. `lower` is the same word in lower case.
    fn of(name: &str, word: &str, lower: &str) -> Option<Self> {
        let starts = |name: &str| name.to_lowercase().starts_with(lower);
        if name.starts_with(word) {
            Some(Self::Start)
        } else if starts(name) {
            Some(Self::StartInAnyCase)
        } else {
            name.split('.').any(starts).then_some(Self::Part)
        }
    }
}

struct Found<'w> {
    word: &'w str,
    suggestions: Vec<Suggestion>,
    known: BTreeSet<String>,
}

impl Found<'_> {
    /// Adds names that fit, the best ones first.
    fn add<'n>(&mut self, names: impl Iterator<Item = &'n str> + Clone, kind: &'static str) {
        for fits in [Fit::Start, Fit::StartInAnyCase, Fit::Part] {
            self.add_fitting(names.clone(), kind, fits);
        }
    }

    /// Adds the names that fit in one way.
    fn add_fitting<'n>(
        &mut self,
        names: impl Iterator<Item = &'n str>,
        kind: &'static str,
        fits: Fit,
    ) {
        let (word, lower) = (self.word, self.word.to_lowercase());
        for name in names.filter(|name| Fit::of(name, word, &lower) == Some(fits)) {
            if self.suggestions.len() >= MAX_SUGGESTIONS {
                return;
            }
            if name != self.word && self.known.insert(name.to_owned()) {
                self.suggestions.push(Suggestion { text: name.to_owned(), kind });
            }
        }
    }
}

/// The text up to a position in UTF-16 units, and at most [`MAX_TEXT`] bytes of it.
fn cut(text: &str, cursor: usize) -> &str {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        if units >= cursor || at >= MAX_TEXT {
            return text.get(..at).unwrap_or_default();
        }
        units += c.len_utf16();
    }
    text
}

/// The last word of text that ends with a space; otherwise an empty one.
fn last_word(text: &str) -> &str {
    let trimmed = text.trim_end();
    let is_apart = trimmed.len() < text.len();
    let last = trimmed.rsplit(|c| !is_word(c)).next().unwrap_or_default();
    if is_apart { last } else { "" }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '*')
}

/// The field that is compared with the word after this text.
fn compared_field(before: &str) -> Option<&str> {
    let mut rest = before.trim_end();
    let is_in_set = rest.ends_with(['{', ',']);
    if is_in_set {
        rest = rest.rsplit_once('{')?.0.trim_end();
    }
    let operator = OPERATORS.iter().filter(|it| rest.ends_with(**it)).max_by_key(|it| it.len())?;
    let left = rest.strip_suffix(*operator)?;
    let is_apart = !operator.ends_with(char::is_alphanumeric) || left.ends_with(' ');
    let left = left.trim_end();
    let field = left.rsplit(|c: char| !is_word(c) && !matches!(c, '[' | ']')).next()?;
    (is_apart && !field.is_empty()).then_some(field)
}

/// Whether a quoted text is unfinished.
fn is_in_text(before: &str) -> bool {
    let mut is_open = false;
    let mut is_escaped = false;
    for c in before.chars() {
        is_open ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
    }
    is_open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(text: &str) -> (usize, Vec<String>) {
        let (vocabulary, definitions) = (Vocabulary::default(), Definitions::built_in());
        let seen = ["auth.PlayerCreateReply"];
        let found = vocabulary.complete(&definitions, &seen, text, usize::MAX);
        (found.start, found.suggestions.into_iter().map(|it| it.text).collect())
    }

    #[test]
    fn messages_fields_and_values_are_completed() {
        let (start, found) = complete("auth.PlayerCr");
        assert_eq!((start, found[0].as_str()), (0, "auth.PlayerCreateReply"));
        assert!(found.contains(&"auth.PlayerCreateRequest".to_owned()), "{found:?}");
        let (start, found) = complete("uru and accountNa");
        assert_eq!((start, found.contains(&"accountName".to_owned())), (8, true), "{found:?}");
        // Fields of the message that the filter names come first.
        let (start, found) = complete("auth.PlayerCreateReply and res");
        assert_eq!((start, found[0].as_str()), (27, "result"), "{found:?}");
        assert_eq!(complete("resul").1[0], "result");
        // A field by itself is not a filter.
        assert_eq!(complete("auth.* and result").1[0], "exists(result)");
        assert!(!complete("exists(result").1.contains(&"exists(result)".to_owned()));
        let (start, found) = complete("result ");
        assert_eq!((start, found[0].as_str()), (7, "=="));
        assert_eq!(complete("result con").1, ["contains"]);
        assert_eq!(complete("auth.PlayerCreateReply ").1, [""; 0]);
        let (start, found) = complete("result == PlayerA");
        assert_eq!((start, found), (10, vec!["PlayerAlreadyExists".to_owned()]));
        let (_, found) = complete("result in {Success, PlayerA");
        assert_eq!(found, ["PlayerAlreadyExists"]);
        let (start, found) = complete("ageName == \"é auth.P");
        assert_eq!((start, found.len()), (14, 0));
    }

    #[test]
    fn any_text_can_be_completed() {
        let (vocabulary, definitions) = (Vocabulary::default(), Definitions::built_in());
        let text = "{,== 🦀é.*$ \"\\\" in {a,\u{202e}not ha";
        for cursor in 0..=text.len() + 1 {
            let found = vocabulary.complete(&definitions, &[], text, cursor);
            assert!(found.start <= found.end && found.end <= cursor.max(found.end));
        }
    }
}
