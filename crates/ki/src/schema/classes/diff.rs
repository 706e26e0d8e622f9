//! Comparing the classes of two clients.

use std::collections::HashMap;

use super::{Class, Classes, Property};

/// The differences between two sets of classes, matched by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassesDiff<'c> {
    /// Classes that exist only in the later lists.
    pub added: Vec<&'c Class>,
    /// Classes that exist only in the earlier lists.
    pub removed: Vec<&'c Class>,
    /// Changed classes, sorted by name.
    pub changed: Vec<ClassChange<'c>>,
}

/// The changes to one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassChange<'c> {
    /// The earlier class.
    pub old: &'c Class,
    /// The later class.
    pub new: &'c Class,
    /// Whether the base classes changed.
    pub bases: bool,
    /// Properties that exist only in the later class.
    pub added: Vec<&'c Property>,
    /// Properties that exist only in the earlier class.
    pub removed: Vec<&'c Property>,
    /// Changed properties: the earlier one, the later one, and the differences.
    pub changed: Vec<(&'c Property, &'c Property, Vec<&'static str>)>,
}

impl Classes {
    /// Compares these classes with later ones. Offsets in memory are ignored: they change with
    /// every build and mean nothing on the wire.
    #[must_use]
    pub fn diff<'c>(&'c self, later: &'c Self) -> ClassesDiff<'c> {
        let mut diff = ClassesDiff::default();
        diff.removed.extend(self.all().iter().filter(|old| later.by_name(&old.name).is_none()));
        for new in later.all() {
            match self.by_name(&new.name) {
                None => diff.added.push(new),
                Some(old) => diff.changed.extend(change(old, new)),
            }
        }
        for list in [&mut diff.added, &mut diff.removed] {
            list.sort_by(|a, b| a.name.cmp(&b.name));
        }
        diff.changed.sort_by(|a, b| a.new.name.cmp(&b.new.name));
        diff
    }
}

fn change<'c>(old: &'c Class, new: &'c Class) -> Option<ClassChange<'c>> {
    let by_name = |class: &'c Class| -> HashMap<&str, &'c Property> {
        class.properties().iter().map(|property| (&*property.name, property)).collect()
    };
    let (before, after) = (by_name(old), by_name(new));
    let missing = |class: &'c Class, others: &HashMap<&str, &Property>| {
        let unmatched = class.properties().iter().filter(|it| !others.contains_key(&*it.name));
        unmatched.collect::<Vec<_>>()
    };
    let changed = new.properties().iter().filter_map(|property| {
        let old = *before.get(&*property.name)?;
        let what = different(old, property);
        (!what.is_empty()).then_some((old, property, what))
    });
    let change = ClassChange {
        old,
        new,
        bases: old.bases != new.bases,
        added: missing(new, &before),
        removed: missing(old, &after),
        changed: changed.collect(),
    };
    let is_same = old.hash == new.hash
        && !change.bases
        && change.added.is_empty()
        && change.removed.is_empty()
        && change.changed.is_empty();
    (!is_same).then_some(change)
}

/// Names the differences between two versions of a property.
fn different(old: &Property, new: &Property) -> Vec<&'static str> {
    let options = |it: &Property| {
        it.choices.as_ref().map(|it| {
            let mut names: Vec<_> =
                it.names().iter().map(|(number, name)| (name.to_owned(), number)).collect();
            names.sort();
            (names, it.texts().to_vec(), it.default.clone(), it.base_class.clone())
        })
    };
    let all = [
        ("type", old.type_name != new.type_name),
        ("id", old.id != new.id),
        ("flags", old.flags != new.flags),
        ("container", old.container != new.container || old.dynamic != new.dynamic),
        ("pointer", old.pointer != new.pointer),
        ("hash", old.hash != new.hash),
        ("options", options(old) != options(new)),
    ];
    all.into_iter().filter(|(_, is_different)| *is_different).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(json: &str) -> Classes {
        Classes::of_json(json)
    }

    #[test]
    fn changes_are_named_and_offsets_ignored() {
        let property = |id: u32, rest: &str| {
            format!(r#"{{"type": "int", "id": {id}, "hash": 1, "offset": {}{rest}}}"#, id * 8)
        };
        let old = classes(&format!(
            r#"{{"class Gone": {{"hash": 1, "properties": {{}}}},
                "class Same": {{"hash": 2, "properties": {{"m": {}}}}},
                "class A": {{"hash": 3, "bases": ["B"], "properties": {{"m_a": {}, "m_b": {}}}}}}}"#,
            property(0, ""),
            property(0, ""),
            property(1, r#", "enum_options": {"X": 1}"#),
        ));
        let new = classes(&format!(
            r#"{{"class New": {{"hash": 1, "properties": {{}}}},
                "class Same": {{"hash": 2, "properties": {{"m": {}}}}},
                "class A": {{"hash": 3, "bases": [], "properties": {{"m_c": {}, "m_b": {}}}}}}}"#,
            property(0, "").replace("\"offset\": 0", "\"offset\": 16"),
            property(0, ""),
            property(2, r#", "flags": 7, "enum_options": {"X": 2}"#),
        ));
        let diff = old.diff(&new);
        let names = |list: &[&Class]| list.iter().map(|it| it.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&diff.added), ["class New"]);
        assert_eq!(names(&diff.removed), ["class Gone"]);
        let [change] = &diff.changed[..] else { panic!("{:?}", diff.changed) };
        assert!(change.bases && &*change.new.name == "class A");
        assert_eq!((&*change.added[0].name, &*change.removed[0].name), ("m_c", "m_a"));
        assert_eq!(change.changed[0].2, ["id", "flags", "options"]);
        assert_eq!(old.diff(&old), ClassesDiff::default());
    }
}
