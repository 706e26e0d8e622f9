//! Describing a class in text.

use core::fmt;

use super::{Class, Classes, Property};

/// Displays a class on several lines: bases, properties, flags by name, options.
#[derive(Clone, Copy, Debug)]
pub struct Explanation<'c> {
    classes: &'c Classes,
    class: &'c Class,
}

impl Classes {
    /// Describes a class in text.
    #[must_use]
    pub fn explain<'c>(&'c self, class: &'c Class) -> Explanation<'c> {
        Explanation { classes: self, class }
    }
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { classes, class } = self;
        writeln!(f, "{}  {} ({:#010x})", class.name, class.hash, class.hash)?;
        if !class.bases.is_empty() {
            writeln!(f, "  is a {}", class.bases.join(", "))?;
        }
        for property in class.properties() {
            write!(f, "  {:3} {}: {}", property.id, property.name, property.type_name)?;
            if property.is_list() {
                write!(f, " ({})", property.container.name())?;
            }
            writeln!(f, "  {} ({:#010x})", property.hash, property.hash)?;
            let (names, rest) = Property::flag_names().flags(u64::from(property.flags));
            let mut flags = names.join(" ");
            if rest != 0 {
                flags.push_str(&format!(" {rest:#x}"));
            }
            if !flags.is_empty() {
                writeln!(f, "      {}", flags.trim_start())?;
            }
            if let Some(target) = property.class().and_then(|index| classes.get(index)) {
                writeln!(f, "      class {} ({:#010x})", target.hash, target.hash)?;
            }
            if let Some(choices) = &property.choices {
                for (number, name) in choices.names().iter() {
                    writeln!(f, "      {name} = {number}")?;
                }
                for (name, text) in choices.texts() {
                    writeln!(f, "      {name} = {text:?}")?;
                }
                if let Some(default) = &choices.default {
                    match classes.default_error(property) {
                        None => writeln!(f, "      default: {default}")?,
                        Some(error) => writeln!(f, "      default: {default} (unusable: {error})")?,
                    }
                }
                if let Some(base) = &choices.base_class {
                    let is_known = classes.find(base).is_some();
                    let note = if is_known { "" } else { " (in no type list)" };
                    writeln!(f, "      base class: {base}{note}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Classes;

    #[test]
    fn an_explanation_lists_everything() {
        let json = br#"{"class A": {"bases": ["B", "C"], "hash": 7, "properties": {
            "m_b": {"type": "enum E", "id": 1, "flags": 2147483649, "container": "List",
                "hash": 2, "enum_options": {"X": 1, "__DEFAULT": "X"}},
            "m_c": {"type": "int", "id": 2, "hash": 3, "enum_options": {"__DEFAULT": "c"}},
            "m_a": {"type": "class A*", "id": 0, "hash": 1,
                "enum_options": {"__DEFAULT": "A", "__BASECLASS": "B"}}}}}"#;
        let classes = Classes::of_json(json);
        let text = classes.explain(classes.find("7").unwrap()).to_string();
        let wanted = "class A  7 (0x00000007)\n  is a B, C\n    0 m_a: class A*  1 (0x00000001)\n      \
                      class 7 (0x00000007)\n      default: A\n      base class: B (in no type \
                      list)\n    1 m_b: enum E (List)  2 (0x00000002)\n      \
                      Save 0x80000000\n      X = 1\n      default: X\n    \
                      2 m_c: int  3 (0x00000003)\n      default: c (unusable: wanted a whole \
                      number, found \"c\")\n";
        assert_eq!(text, wanted);
    }
}
