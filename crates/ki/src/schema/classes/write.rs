//! Writing type lists in the formats of the dumpers.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use worldwire_core::json::string;

use super::{Class, Classes, Property};

/// The version of the type list format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ListVersion {
    /// Classes by name, with option values as text.
    One,
    /// `{"version": 2, "classes": {...}}`: classes by hash, with option values as numbers. Current
    /// readers expect this version.
    #[default]
    Two,
}

impl Classes {
    /// Writes the classes as a type list. Version 2 is sorted by hash, and version 1 by name;
    /// properties are sorted by ID, with keys in wiztype's order. Flags and option values are
    /// unsigned. If several classes share a hash, the last one wins.
    #[must_use]
    pub fn to_list(&self, version: ListVersion) -> String {
        let mut out = String::new();
        match version {
            ListVersion::One => {
                let classes: BTreeMap<&str, &Class> =
                    self.all().iter().map(|class| (&*class.name, class)).collect();
                out.push_str("{\n");
                for (index, (name, class)) in classes.into_iter().enumerate() {
                    separate(index, &mut out);
                    string(name, &mut out);
                    out.push_str(": ");
                    push_class(class, version, &mut out);
                }
                out.push_str("\n}\n");
            }
            ListVersion::Two => {
                let classes: BTreeMap<u32, &Class> =
                    self.all().iter().map(|class| (class.hash, class)).collect();
                out.push_str("{\"version\": 2, \"classes\": {\n");
                for (index, (hash, class)) in classes.into_iter().enumerate() {
                    separate(index, &mut out);
                    let _ = write!(out, "\"{hash}\": ");
                    push_class(class, version, &mut out);
                }
                out.push_str("\n}}\n");
            }
        }
        out
    }
}

fn separate(index: usize, out: &mut String) {
    if index > 0 {
        out.push_str(",\n");
    }
}

fn push_class(class: &Class, version: ListVersion, out: &mut String) {
    out.push('{');
    if version == ListVersion::Two {
        out.push_str("\"name\": ");
        string(&class.name, out);
        out.push_str(", ");
    }
    out.push_str("\"bases\": [");
    for (index, base) in class.bases.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        string(base, out);
    }
    let _ = write!(out, "], \"hash\": {}", class.hash);
    if class.singleton {
        out.push_str(", \"singleton\": true");
    }
    out.push_str(", \"properties\": {");
    // A JSON object holds each name once; the last one wins, as in dumpers.
    let last: HashMap<&str, u32> =
        class.properties().iter().map(|property| (&*property.name, property.index())).collect();
    let properties = class.properties().iter();
    let once = properties.filter(|it| last.get(&*it.name) == Some(&it.index()));
    for (index, property) in once.enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str("\n  ");
        string(&property.name, out);
        out.push_str(": ");
        push_property(property, version, out);
    }
    out.push_str("}}");
}

fn push_property(property: &Property, version: ListVersion, out: &mut String) {
    out.push_str("{\"type\": ");
    string(&property.type_name, out);
    let Property { id, offset, flags, dynamic, singleton, pointer, hash, .. } = property;
    let _ =
        write!(out, ", \"id\": {id}, \"offset\": {offset}, \"flags\": {flags}, \"container\": ");
    string(property.container.name(), out);
    let _ = write!(
        out,
        ", \"dynamic\": {dynamic}, \"singleton\": {singleton}, \"pointer\": {pointer}, \
         \"hash\": {hash}"
    );
    if let Some(choices) = &property.choices {
        out.push_str(", \"enum_options\": {");
        let mut count = 0;
        let mut key = |name: &str, out: &mut String| {
            if count > 0 {
                out.push_str(", ");
            }
            count += 1;
            string(name, out);
            out.push_str(": ");
        };
        for (_, name) in choices.names().iter() {
            // Readers expect unsigned numbers, even for negative values.
            let number = choices.number(name).unwrap_or(0);
            key(name, out);
            let quote = if version == ListVersion::One { "\"" } else { "" };
            let _ = write!(out, "{quote}{number}{quote}");
        }
        let special = [("__DEFAULT", &choices.default), ("__BASECLASS", &choices.base_class)];
        let special = special.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
        let texts = choices.texts().iter().map(|(name, text)| (&**name, text));
        for (name, text) in texts.chain(special) {
            key(name, out);
            string(text, out);
        }
        out.push('}');
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_lists_read_back() {
        let json = br#"{"class A": {"bases": ["B", "C"], "hash": 173502657, "singleton": true,
            "properties": {
            "m_b": {"type": "enum E", "id": 1, "flags": -2147483647, "container": "Heap",
                "dynamic": true, "hash": 2, "enum_options": {"X": -1, "Y": 1, "Z": "Y", "T": "t",
                "__DEFAULT": "X", "__BASECLASS": "B"}},
            "m_a": {"type": "class A*", "id": 0, "hash": 1, "pointer": true, "offset": 8},
            "m_i": {"type": "int", "id": 2, "hash": 3, "enum_options": {"NONE": -1, "ONE": 1}}}},
            "class B": {"bases": [], "hash": 5, "properties": {}}}"#;
        let compile = |json: &[u8]| Classes::of_json(json);
        let classes = compile(json);
        let [one, two] =
            [ListVersion::One, ListVersion::Two].map(|version| classes.to_list(version));
        insta::assert_snapshot!(two, @r#"
        {"version": 2, "classes": {
        "5": {"name": "class B", "bases": [], "hash": 5, "properties": {}},
        "173502657": {"name": "class A", "bases": ["B", "C"], "hash": 173502657, "singleton": true, "properties": {
          "m_a": {"type": "class A*", "id": 0, "offset": 8, "flags": 0, "container": "Static", "dynamic": false, "singleton": false, "pointer": true, "hash": 1},
          "m_b": {"type": "enum E", "id": 1, "offset": 0, "flags": 2147483649, "container": "Heap", "dynamic": true, "singleton": false, "pointer": false, "hash": 2, "enum_options": {"Y": 1, "Z": 1, "X": 4294967295, "T": "t", "__DEFAULT": "X", "__BASECLASS": "B"}},
          "m_i": {"type": "int", "id": 2, "offset": 0, "flags": 0, "container": "Static", "dynamic": false, "singleton": false, "pointer": false, "hash": 3, "enum_options": {"NONE": 4294967295, "ONE": 1}}}}
        }}
        "#);
        assert!(one.contains("\"Z\": \"1\""), "{one}");
        for list in [one, two] {
            let again = compile(list.as_bytes());
            assert_eq!(again.all().len(), 2);
            for class in again.all() {
                let old = classes.by_name(&class.name).unwrap();
                assert_eq!((old.hash, &old.bases), (class.hash, &class.bases));
                for (new, old) in class.properties().iter().zip(old.properties()) {
                    assert_eq!((new.id, new.flags, new.offset), (old.id, old.flags, old.offset));
                    let texts = |it: &Property| it.choices.as_ref().map(|it| it.texts().len());
                    assert_eq!(texts(new), texts(old));
                }
            }
            let version =
                if list.contains("version") { ListVersion::Two } else { ListVersion::One };
            assert_eq!(again.to_list(version), list, "not stable when read and written again");
        }
    }
}
