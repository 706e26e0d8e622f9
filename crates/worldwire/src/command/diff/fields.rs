//! Differences between two JSON values, field by field.

use std::fmt::Write as _;

use serde_json::json;
use worldwire_core::json::Json;
use worldwire_dissect::cut;

use super::align::align;
use super::ignored::Ignored;
use super::style::Style;
use crate::output::printable;

/// The maximum number of differences listed for one message or object.
const MAX_CHANGES: usize = 1000;
/// The maximum width of a value in text output, in columns.
const MAX_COLUMNS: usize = 100;

/// A field that differs.
#[derive(Debug, PartialEq)]
pub(super) struct FieldChange {
    path: String,
    old: Option<Json>,
    new: Option<Json>,
}

/// The differences between two values.
#[derive(Debug, Default)]
pub(super) struct FieldChanges {
    listed: Vec<FieldChange>,
    /// The number of omitted differences.
    more: usize,
}

impl FieldChanges {
    /// Compares two values. The elements of lists are aligned.
    pub(super) fn between(old: &Json, new: &Json) -> Self {
        let mut found = Self::default();
        found.compare(&mut String::new(), old, new);
        found
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Appends a line of text per difference.
    pub(super) fn push_text(&self, indent: &str, style: Style, out: &mut String) {
        for FieldChange { path, old, new } in &self.listed {
            let path = printable(path);
            let _ = match (old, new) {
                (Some(old), Some(new)) => {
                    let [old, new] = [old, new].map(value);
                    writeln!(out, "{indent}{path}: {}", style.change(&old, &new))
                }
                (Some(old), None) => {
                    let line = format!("- {path}: {}", value(old));
                    writeln!(out, "{indent}{}", style.removed(&line))
                }
                (None, new) => {
                    let new = new.as_ref().map(value).unwrap_or_default();
                    writeln!(out, "{indent}{}", style.added(&format!("+ {path}: {new}")))
                }
            };
        }
        if self.more > 0 {
            let _ = writeln!(out, "{indent}and {} more", self.more);
        }
    }

    /// The differences as JSON, and the number of omitted ones.
    pub(super) fn to_json(&self) -> (serde_json::Value, usize) {
        let one = |FieldChange { path, old, new }: &FieldChange| {
            let mut line = json!({ "path": path });
            for (key, value) in [("old", old), ("new", new)] {
                if let Some(value) = value {
                    line[key] = json!(value);
                }
            }
            line
        };
        (self.listed.iter().map(one).collect(), self.more)
    }

    fn compare(&mut self, path: &mut String, old: &Json, new: &Json) {
        if old == new {
            return;
        }
        let end = path.len();
        match (old, new) {
            (Json::Object(olds), Json::Object(news)) if !is_bytes(old) && !is_bytes(new) => {
                for (name, old) in olds {
                    push_name(path, name);
                    match news.get(name) {
                        Some(new) => self.compare(path, old, new),
                        None => self.add(path, Some(old), None),
                    }
                    path.truncate(end);
                }
                for (name, new) in news.iter().filter(|(name, _)| !olds.contains_key(name)) {
                    push_name(path, name);
                    self.add(path, None, Some(new));
                    path.truncate(end);
                }
            }
            (Json::Array(olds), Json::Array(news)) => self.lists(path, olds, news),
            _ => self.add(path, Some(old), Some(new)),
        }
    }

    /// Compares lists. Differing elements are paired if they are at the same position between equal
    /// ones.
    fn lists(&mut self, path: &mut String, olds: &[Json], news: &[Json]) {
        let text = |json: &Json| serde_json::to_string(json).unwrap_or_default();
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        let mut pairs = align(olds, news, text);
        // Ends the last run of differences.
        pairs.push((Some(olds.len()), Some(news.len())));
        let end = path.len();
        for pair in pairs {
            match pair {
                (Some(old), None) => removed.push(old),
                (None, Some(new)) => added.push(new),
                _ => {
                    let count = removed.len().max(added.len());
                    for at in 0..count {
                        let (old, new) = (removed.get(at), added.get(at));
                        let index = new.or(old).copied().unwrap_or_default();
                        let _ = write!(path, "[{index}]");
                        let old = old.and_then(|at| olds.get(*at));
                        match (old, new.and_then(|at| news.get(*at))) {
                            (Some(old), Some(new)) => self.compare(path, old, new),
                            (old, new) => self.add(path, old, new),
                        }
                        path.truncate(end);
                    }
                    removed.clear();
                    added.clear();
                }
            }
        }
    }

    fn add(&mut self, path: &str, old: Option<&Json>, new: Option<&Json>) {
        if self.listed.len() == MAX_CHANGES {
            self.more += 1;
            return;
        }
        let change = FieldChange { path: path.to_owned(), old: old.cloned(), new: new.cloned() };
        self.listed.push(change);
    }
}

/// Removes the fields to ignore. `path` is the path of the value: the name of its message.
pub(super) fn remove(json: &mut Json, path: &mut String, ignored: &Ignored) {
    let end = path.len();
    match json {
        Json::Object(object) => {
            let names: Vec<String> = object.keys().map(str::to_owned).collect();
            for name in names {
                push_name(path, &name);
                if ignored.has(path) {
                    object.remove(&name);
                } else if let Some(value) = object.get_mut(&name) {
                    remove(value, path, ignored);
                }
                path.truncate(end);
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| remove(item, path, ignored)),
        _ => {}
    }
}

/// Whether an object stands for bytes.
fn is_bytes(json: &Json) -> bool {
    json.get("$hex").is_some()
}

fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// A value on one line.
fn value(json: &Json) -> String {
    let mut text = printable(&serde_json::to_string(json).unwrap_or_default());
    cut(&mut text, 0, MAX_COLUMNS);
    text
}

#[cfg(test)]
mod tests {
    use worldwire_core::json::parse;

    use super::*;

    fn text(old: &str, new: &str) -> String {
        let [old, new] = [old, new].map(|text| parse(text).expect("JSON"));
        let mut out = String::new();
        FieldChanges::between(&old, &new).push_text("", Style::new(false), &mut out);
        out
    }

    #[test]
    fn fields_are_compared_by_name_and_elements_by_alignment() {
        let changes = text(
            r#"{"a":1,"b":{"c":"x","d":null},"l":[1,2,{"e":3}],"h":{"$hex":"00"}}"#,
            r#"{"a":1,"b":{"c":"y","f":[]},"l":[2,{"e":4},5],"h":{"$hex":"01"}}"#,
        );
        let expected = "b.c: \"x\" -> \"y\"\n- b.d: null\n+ b.f: []\n\
                        h: {\"$hex\":\"00\"} -> {\"$hex\":\"01\"}\n\
                        - l[0]: 1\nl[1].e: 3 -> 4\n+ l[2]: 5\n";
        assert_eq!(changes, expected);
        assert_eq!(text(r#"{"a":[1]}"#, r#"{"a":[1]}"#), "");
    }

    #[test]
    fn the_number_of_listed_differences_is_bounded() {
        let list = |from: usize| json!((from..from + 3000).collect::<Vec<_>>()).to_string();
        let changes = text(&list(0), &list(10_000));
        assert_eq!(changes.lines().count(), MAX_CHANGES + 1);
        assert!(changes.ends_with("and 2000 more\n"), "{changes}");
    }
}
