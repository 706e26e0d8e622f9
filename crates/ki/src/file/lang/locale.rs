//! All texts in one language.

use std::collections::{HashMap, HashSet};

use super::LangFile;

/// The maximum length in bytes of a code to look up: file names have at most 255 bytes, and known
/// keys have a quarter of that.
const MAX_CODE: usize = 1024;

/// The texts of many files, by code.
#[derive(Clone, Debug, Default)]
pub struct Locale {
    files: HashMap<String, HashMap<String, String>>,
}

impl Locale {
    /// A locale without texts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file under the name that its codes begin with: its file name, without the extension.
    /// If keys repeat, the last one wins.
    pub fn add(&mut self, stem: &str, file: &LangFile<'_>) {
        let texts = self.files.entry(stem.to_owned()).or_default();
        for entry in &file.entries {
            texts.insert(entry.key.to_text(), entry.text.to_text());
        }
    }

    /// The text for a code, such as `Items_31939071`. The file name is the part before the first
    /// `_` or, if there is no such text, before a later one. Unverified: whether the game ignores
    /// case; this function does not.
    #[must_use]
    pub fn text(&self, code: &str) -> Option<&str> {
        // Every split is tried, so the length of codes must be limited.
        let mut cuts = code.match_indices('_').take_while(|_| code.len() <= MAX_CODE);
        cuts.find_map(|(at, _)| {
            let (stem, key) = code.split_at(at);
            self.files.get(stem)?.get(key.get(1..)?).map(String::as_str)
        })
    }

    /// The number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.values().map(HashMap::len).sum()
    }

    /// Whether there are no texts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.values().all(HashMap::is_empty)
    }

    /// All keys: words for the [`Dictionary`](crate::Dictionary).
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.files.values().flat_map(|texts| texts.keys().map(String::as_str))
    }

    /// Explains the codes in a line, each as `CODE = "text"`, in order and without duplicates.
    /// Unknown codes are skipped.
    #[must_use]
    pub fn explain(&self, line: &str) -> Vec<String> {
        let (mut found, mut known) = (Vec::new(), HashSet::new());
        let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        for word in line.split(|c| !part(c)).filter(|word| word.contains('_')) {
            if let Some(text) = self.text(word)
                && known.insert(word)
            {
                found.push(format!("{word} = {text:?}"));
            }
        }
        found
    }
}

/// The codes that a text refers to with `<string;CODE>`.
pub fn codes_in(text: &str) -> impl Iterator<Item = &str> {
    text.split("<string;").skip(1).filter_map(|rest| rest.split_once('>').map(|(code, _)| code))
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::*;
    use crate::types::WStr;

    fn locale() -> Locale {
        let mut locale = Locale::new();
        let files = [
            ("Zone", [("1", "first"), ("1", "last")]),
            ("Wiz_Extra", [("3", "Found"), ("a_b", "Deep")]),
        ];
        for (stem, entries) in files {
            let entry = |(key, text)| Entry {
                key: WStr::from(key),
                comment: WStr::default(),
                text: WStr::from(text),
            };
            let entries = entries.into_iter().map(entry).collect();
            locale.add(stem, &LangFile { number: 1, name: WStr::from(stem), entries });
        }
        locale
    }

    #[test]
    fn codes_are_split_where_a_text_exists() {
        let locale = locale();
        assert_eq!(locale.text("Zone_1"), Some("last"));
        assert_eq!(locale.text("Wiz_Extra_3"), Some("Found"));
        assert_eq!(locale.text("Wiz_Extra_a_b"), Some("Deep"));
        for none in ["", "Zone", "Zone_", "Zone_2", "zone_1", "_1"] {
            assert_eq!(locale.text(none), None, "{none}");
        }
        assert_eq!((locale.len(), locale.is_empty()), (3, false));
    }

    #[test]
    fn codes_in_lines_are_explained() {
        let line = r#"{"m_displayName": "Zone_1", "again": "Zone_1", "x": "Wiz_Extra_a_b"}"#;
        assert_eq!(locale().explain(line), ["Zone_1 = \"last\"", "Wiz_Extra_a_b = \"Deep\""]);
        let codes: Vec<_> = codes_in("a<string;GUI_1>b<string;GUI_2<string;X>").collect();
        assert_eq!(codes, ["GUI_1", "X"]);
    }
}
