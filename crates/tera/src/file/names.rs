//! Lists of message names: `whitelist.txt`, and the JSON lists of messages with an integrity
//! header.

use std::collections::BTreeSet;

use super::JsonFile;
use crate::schema::Problem;
use crate::schema::parse::is_space;

/// A list of message names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameList(BTreeSet<Box<str>>);

impl NameList {
    /// Parses a list with one name per line; `#` begins a comment.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.split('#').next());
        lines.map(|line| line.trim_matches(is_space)).filter(|line| !line.is_empty()).collect()
    }

    /// Parses a JSON array of names.
    #[must_use]
    pub fn parse_json(name: &str, text: &str) -> (Self, Vec<Problem>) {
        JsonFile::read(name, text, |file, json| {
            let names = json.as_array().map(|names| names.iter().map(|name| name.as_str()));
            let list = names.and_then(|names| names.collect::<Option<Self>>());
            list.unwrap_or_else(|| {
                file.bad("", "the file must contain an array of names");
                Self::default()
            })
        })
    }

    /// Whether a name is on the list.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// The names, sorted.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }
}

impl<'t> FromIterator<&'t str> for NameList {
    fn from_iter<I: IntoIterator<Item = &'t str>>(names: I) -> Self {
        Self(names.into_iter().map(Box::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_parsed() {
        let plain = NameList::parse("\u{feff}C_A\r\n# none\n\nS_B # x\n");
        let (json, problems) = NameList::parse_json("93.json", "[\"C_A\", \"S_B\"]");
        assert!(problems.is_empty());
        assert_eq!(plain, json);
        assert!(plain.contains("S_B") && plain.iter().len() == 2);
        assert_eq!(NameList::parse_json("93.json", "[1]").1.len(), 1);
    }
}
