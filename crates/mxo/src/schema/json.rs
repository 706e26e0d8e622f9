//! Tables as JSON.

use core::ops::Range;
use std::collections::{HashMap, HashSet};

use worldwire_core::json::Object;
use worldwire_core::json::{self, Json};
use worldwire_core::{Diagnostic, nearest};

use super::class::{Class, Group, MAX_PROPERTIES, is_label, is_name};
use super::known;
use super::problems::{Problems, lines, quoted};
use super::tables::Tables;
use crate::types::PropertyType;

/// The known keys: the parts that are read, and those that describe the file.
const KEYS: [&str; 8] = [
    "tables",
    "update_tables",
    "update_table_for",
    "goobjects",
    "format",
    "byte_order",
    "note",
    "update_strings",
];

impl Tables {
    /// Reads classes and goobjs from JSON. Invalid entries are reported as problems; all others are
    /// read.
    ///
    /// Problems inside the JSON point to the first occurrence of the name that they concern.
    ///
    /// ```text
    /// {
    ///   "tables": {
    ///     "subway": [{"index": 0, "name": "CurrentState", "size": 4, "type": "EventID"}]
    ///   },
    ///   "update_tables": {
    ///     "subway_update": [{"index": 0, "name": "CurrentState", "size": 4, "type": "EventID"}]
    ///   },
    ///   "update_table_for": {"subway": "subway_update"},
    ///   "goobjects": {"6568": {"name": "Subway Car Default", "table": "subway"}}
    /// }
    /// ```
    ///
    /// For a player, `update_table_for` is `{"own_view": ..., "other_view": ...}`. The keys
    /// `format`, `byte_order`, `note` and `update_strings` describe the file and are ignored;
    /// unknown keys cause a warning. Anything that the file does not state about a goobj stays
    /// unchanged.
    pub fn read_json(&mut self, name: &str, text: &str) -> Vec<Diagnostic> {
        let mut problems = Problems::new(name, text);
        match json::parse(text) {
            Ok(whole) => self.reading(name, |tables| {
                JsonReader { tables, text, problems: &mut problems }.read(&whole);
            }),
            Err(error) => {
                let line = lines(text).nth(error.line().saturating_sub(1));
                let at = line.map_or(text.len(), |(start, _)| start) + error.column();
                let at = at.saturating_sub(1).min(text.len());
                let message = error.to_string();
                let what = message.split(" at line ").next().unwrap_or_default();
                problems.error(at..at, format!("invalid JSON: {what}"));
            }
        }
        problems.finish()
    }
}

type Properties<'j> = Vec<(&'j str, PropertyType)>;

struct JsonReader<'s, 'p, 't> {
    tables: &'s mut Tables,
    text: &'t str,
    problems: &'p mut Problems<'t>,
}

impl JsonReader<'_, '_, '_> {
    fn read(&mut self, whole: &Json) {
        let Some(whole) = whole.as_object() else {
            return self.wrong(&[], "an object with tables and goobjects", whole);
        };
        for key in whole.keys().filter(|key| !KEYS.contains(key)) {
            let near = nearest(key, KEYS.iter().copied());
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            let span = self.name_span(&[key]);
            self.problems.warning(span, format!("unknown key {} is ignored{near}", quoted(key)));
        }
        let mut updates = HashMap::new();
        for (name, list) in self.part(whole, "update_tables") {
            if let Some(list) = self.properties(&["update_tables", name], list) {
                updates.insert(name, list);
            }
        }
        let groups: HashMap<_, _> = self.part(whole, "update_table_for").collect();
        let tables = whole.get("tables").and_then(Json::as_object);
        for (name, _) in self.part(whole, "update_table_for") {
            if !tables.is_some_and(|tables| tables.contains_key(name)) {
                let span = self.name_span(&["update_table_for", name]);
                let message =
                    format!("there is no table {} here; the entry is ignored", quoted(name));
                self.problems.warning(span, message);
            }
        }
        for (name, list) in self.part(whole, "tables") {
            let path = ["tables", name];
            let Some(list) = self.properties(&path, list) else { continue };
            if !is_name(name) {
                self.wrong(&path, "the name of a class", &Json::from(name));
                continue;
            }
            let class = Class::new(name, list);
            let class = match groups.get(name) {
                Some(group) => self.updates(class, name, group, &updates),
                None => class,
            };
            if let Some(before) = self.tables.contradiction(&class) {
                let span = self.name_span(&path);
                self.problems.warning(span, before);
            }
            if !self.tables.add(class) {
                let span = self.name_span(&path);
                self.problems.error(span, "wanted at most 65534 classes, found more");
            }
        }
        for (goid, goobj) in self.part(whole, "goobjects") {
            self.goobj(goid, goobj);
        }
    }

    /// The entries of an optional part.
    fn part<'j>(
        &mut self,
        whole: &'j Object,
        name: &'static str,
    ) -> impl Iterator<Item = (&'j str, &'j Json)> + use<'j> {
        let part = match whole.get(name) {
            Some(Json::Object(part)) => Some(part),
            Some(other) => {
                self.wrong(&[name], "an object", other);
                None
            }
            None => None,
        };
        part.into_iter().flatten()
    }

    fn wrong(&mut self, path: &[&str], wanted: &'static str, found: &Json) {
        let span = self.name_span(path);
        self.problems.error(span, json::expected(wanted, found).to_string());
    }

    /// The position of a name: its first occurrence after the enclosing names.
    fn name_span(&self, path: &[&str]) -> Range<usize> {
        let mut span = 0..0;
        if self.problems.is_full() {
            return span;
        }
        for name in path {
            let Ok(word) = serde_json::to_string(name) else { return span };
            let behind = self.text.get(span.end..).unwrap_or_default();
            let Some(at) = behind.find(&word) else { return span };
            span = span.end + at..span.end + at + word.len();
        }
        span
    }

    fn properties<'j>(&mut self, path: &[&str], list: &'j Json) -> Option<Properties<'j>> {
        let Some(list) = list.as_array().filter(|list| list.len() <= MAX_PROPERTIES) else {
            self.wrong(path, "an array of at most 1024 properties", list);
            return None;
        };
        let mut names = HashSet::new();
        let mut properties = Vec::with_capacity(list.len());
        for (index, property) in list.iter().enumerate() {
            let name = property.get("name").and_then(Json::as_str).unwrap_or_default();
            let path = [path, &[name]].concat();
            if !is_name(name) || !names.insert(name) {
                self.wrong(&path, "the name of a property, once", property);
                return None;
            }
            let given = property.get("index").and_then(Json::as_u64);
            if given.is_some_and(|given| given != index as u64) {
                self.wrong(&path, "properties in the order of their indices", property);
                return None;
            }
            let kind = property.get("type").and_then(Json::as_str);
            let size = property.get("size").and_then(Json::as_u64);
            let named = kind.and_then(PropertyType::parse);
            let sized = named.filter(|kind| size.is_none_or(|size| size == u64::from(kind.size())));
            let Some(kind) = sized else {
                self.wrong(&path, "a type such as uint8 or raw4, and its size", property);
                return None;
            };
            properties.push((name, kind));
        }
        Some(properties)
    }

    fn updates(
        &mut self,
        class: Class,
        name: &str,
        group: &Json,
        updates: &HashMap<&str, Properties<'_>>,
    ) -> Class {
        let path = ["update_table_for", name];
        let find = |json: &Json| json.as_str().and_then(|name| updates.get(name));
        match (group, group.get("own_view"), group.get("other_view")) {
            (Json::String(_), ..) => match find(group) {
                Some(order) => return known::grouped(class, order),
                None => self.wrong(&path, "an update table", group),
            },
            (_, Some(own), Some(other)) => match (find(own), find(other)) {
                (Some(own), Some(other)) => {
                    let class = class.grouped(Group::Own, own.iter().copied());
                    return class.grouped(Group::Other, other.iter().copied());
                }
                _ => self.wrong(&path, "two update tables", group),
            },
            _ => self.wrong(&path, "an update table, or own_view and other_view", group),
        }
        class
    }

    fn goobj(&mut self, goid: &str, goobj: &Json) {
        let path = ["goobjects", goid];
        let Ok(number) = goid.parse() else {
            return self.wrong(&path, "a goobj from 0 to 65535", &Json::from(goid));
        };
        let text = |key: &str| goobj.get(key).and_then(Json::as_str);
        let class = match goobj.get("table") {
            None | Some(Json::Null) => None,
            Some(table) => match table.as_str().filter(|name| self.tables.class(name).is_some()) {
                Some(name) => Some(name),
                None => return self.wrong(&path, "the name of a table", table),
            },
        };
        let (name, source) = (text("name"), text("evidence"));
        if !name.into_iter().chain(source).all(is_label) {
            return self.wrong(&path, "a name and one line of evidence", goobj);
        }
        if let Some(before) = class.and_then(|class| self.tables.set_class(number, class)) {
            let span = self.name_span(&path);
            self.problems.warning(span, before);
        }
        let entry = self.tables.goobj_mut(number);
        if let Some(name) = name {
            entry.name = Some(name.into());
        }
        entry.source = source.map(Into::into);
    }
}
