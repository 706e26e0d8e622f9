//! Changing values by path.

use worldwire_core::json::Json;
use worldwire_core::{Error, Limits, Result};

use super::json::{build, item, no_property, unknown_hash};
use super::value::{Object, ValueRef};
use super::visitor::Slot;
use crate::schema::classes::{Class, Classes};

impl Object {
    /// Sets the value at a path (`m_leaf.m_names[2]`) from JSON. A missing property is added; the
    /// index after the last element appends an element. Unknown properties are addressed by hash
    /// (`0x0000002a`), leftovers of an object by `$rest`.
    ///
    /// # Errors
    /// `Value` if the path does not exist or the value has the wrong type; a limit error for
    /// excessive depth or too many nodes. In each case, nothing changes.
    pub fn set(&mut self, classes: &Classes, path: &str, json: &Json) -> Result<()> {
        let about = |error: Error| error.about(path.to_owned());
        let target = find(self, classes, path).map_err(about)?;
        let slot = target.slot;
        let limits = &Limits::DEFAULT;
        let new = item(json, limits).and_then(|item| build(classes, &item, slot, true, limits));
        let new = new.map_err(about)?;
        let (max, depth) = (u64::from(limits.depth), (target.around.len() + new.depth()) as u64);
        if depth > max {
            return Err(about(Error::limit("depth", max, depth)));
        }
        self.splice(target.at, target.count, &target.around, slot, &new)
    }

    /// Removes the value at a path: a property or an element.
    pub fn remove(&mut self, classes: &Classes, path: &str) -> Result<()> {
        let target = find(self, classes, path).map_err(|error| error.about(path.to_owned()))?;
        if target.count == 0 || target.around.is_empty() {
            return Err(Error::invalid(format!("no property or element at \"{path}\"")));
        }
        self.splice(target.at, target.count, &target.around, target.slot, &Self::new())
    }
}

/// The target of a path.
struct Target<'c> {
    /// The index of the node, or the index at which it would be inserted.
    at: usize,
    /// The number of nodes in the target; 0 if it does not exist yet.
    count: usize,
    slot: Slot<'c>,
    /// The enclosing nodes, outermost first.
    around: Vec<usize>,
}

fn find<'c>(object: &Object, classes: &'c Classes, path: &str) -> Result<Target<'c>> {
    let mut value = object.known_root(classes)?;
    let mut around = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        around.push(value.index());
        let (slot, left) = step(value, rest)?;
        rest = left.strip_prefix('.').unwrap_or(left);
        let found = match slot {
            Ok(found) => found,
            Err((slot, at)) if rest.is_empty() => {
                return Ok(Target { at, count: 0, slot, around });
            }
            Err(_) => {
                return Err(Error::invalid(format!(
                    "the object that would contain {rest} is missing"
                )));
            }
        };
        value = found;
    }
    Ok(Target { at: value.index(), count: value.count(), slot: value.slot(), around })
}

/// A value, or the position at which it would be inserted.
type Step<'a, 'c> = Result<ValueRef<'a, 'c>, (Slot<'c>, usize)>;

/// One step of a path: a property, whose name may itself contain dots, or an index.
fn step<'a, 'c, 'p>(value: ValueRef<'a, 'c>, path: &'p str) -> Result<(Step<'a, 'c>, &'p str)> {
    let end = value.index() + value.count();
    if let Some(class) = value.class() {
        let Some((slot, rest)) = slot_of(class, path) else {
            return Err(no_property(class, path));
        };
        let order = order(slot);
        let is_it = |child: &ValueRef<'_, '_>| self::order(child.slot()) == order;
        if let Some(child) = value.children().find(is_it) {
            return Ok((Ok(child), rest));
        }
        let next = value.children().find(|child| self::order(child.slot()) > order);
        let at = next.map_or(end, |child| child.index());
        return Ok((Err((slot, at)), rest));
    }
    let inside = path.strip_prefix('[').and_then(|path| path.split_once(']'));
    match (inside.and_then(|(index, rest)| Some((index.parse().ok()?, rest))), value.slot()) {
        (Some((index, rest)), Slot::Property(property)) if value.is_list() => {
            if let Some(child) = value.element(index) {
                return Ok((Ok(child), rest));
            }
            if index == value.children().count() {
                return Ok((Err((Slot::Element(property), end)), rest));
            }
            let wanted = format!("an index up to {}", value.children().count());
            Err(Error::value(wanted, index.to_string()))
        }
        _ => {
            let error = Error::value("the end of the path", path.to_owned());
            Err(error.hint("parts of a value cannot be set separately; set the whole value"))
        }
    }
}

/// The first part of a path, and the rest.
fn slot_of<'c, 'p>(class: &'c Class, path: &'p str) -> Option<(Slot<'c>, &'p str)> {
    // A name may itself contain dots; the longest match wins.
    let ends = path.match_indices(['.', '[']).map(|(at, _)| at).chain([path.len()]);
    let longest = ends.rev().find_map(|end| {
        let (name, rest) = path.split_at_checked(end)?;
        class.property(name).map(|property| (Slot::Property(property), rest))
    });
    longest.or_else(|| match unknown_hash(path) {
        Some(hash) => Some((class.by_hash(hash).map_or(Slot::Unknown(hash), Slot::Property), "")),
        None => (path == Slot::REST).then_some((Slot::Rest, "")),
    })
}

/// The sort key of a value for class order: known properties, then unknown ones, then leftovers.
fn order(slot: Slot<'_>) -> (u32, u32) {
    match slot {
        Slot::Property(property) => (property.index(), 0),
        Slot::Unknown(hash) => (u32::MAX - 1, hash),
        Slot::Rest => (u32::MAX, 0),
        Slot::Root | Slot::Element(_) => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::json::json;

    use super::*;

    #[test]
    fn paths_select_values() {
        let list = r#"{"class A": {"hash": 7, "properties": {
            "m_id": {"type": "class A*", "id": 0},
            "m_id.m_full": {"type": "gid", "id": 1},
            "m_l": {"type": "class A*", "id": 2, "container": "List"},
            "m_s": {"type": "std::string", "id": 3}}}}"#;
        let classes = Classes::of_json(list);
        let mut object = Object::parse_json(&classes, r#"{"$class":"A","m_s":"x"}"#).unwrap();
        object.set(&classes, "m_id.m_full", &json!(5)).unwrap();
        object.set(&classes, "m_l", &json!([null])).unwrap();
        object.set(&classes, "m_l[1]", &json!({"m_s": "y"})).unwrap();
        object.set(&classes, "m_l[1].m_id", &json!({"$class": "A", "m_s": "z"})).unwrap();
        object.set(&classes, "m_l[1].m_id.m_s", &json!("zz")).unwrap();
        object.remove(&classes, "m_l[0]").unwrap();
        assert_eq!(
            object.to_json(&classes).unwrap(),
            r#"{"$class":"class A","m_id.m_full":5,"m_l":[{"$class":"class A","#.to_owned()
                + r#""m_id":{"$class":"class A","m_s":"zz"},"m_s":"y"}],"m_s":"x"}"#
        );
        for wrong in ["m_no", "m_l[2]", "m_l[x]", "m_s.m_s", "m_l[0].m_id.m_id.m_s", "m_s[0]"] {
            assert!(object.set(&classes, wrong, &json!(1)).is_err(), "{wrong}");
        }
        let error = object.set(&classes, "m_s", &json!(1)).unwrap_err().to_string();
        assert_eq!(error, "m_s: wanted a string or {\"$hex\": \"00ff\"}, found 1");
        assert!(object.remove(&classes, "").is_err());
        let mut error_of =
            |path: &str| object.set(&classes, path, &json!(1)).unwrap_err().to_string();
        assert_eq!(
            error_of("m_l[0].m_ss"),
            "m_l[0].m_ss: \"m_ss\" is not a property of class A; did you mean \"m_s\"?"
        );
        assert_eq!(error_of("m_l[7]"), "m_l[7]: wanted an index up to 1, found 7");
        assert_eq!(error_of("m_id.m_s"), "m_id.m_s: the object that would contain m_s is missing");
        let nothing = Object::new().set(&classes, "m_s", &json!("x")).unwrap_err().to_string();
        assert_eq!(nothing, "m_s: there is no object");
    }

    #[test]
    fn removed_values_free_their_memory_and_depth_is_bounded() {
        let list = br#"{"class A": {"hash": 7, "properties": {
            "m_a": {"type": "class A*", "id": 0}, "m_s": {"type": "std::string", "id": 1},
            "m_t": {"type": "std::string", "id": 2}}}}"#;
        let classes = Classes::of_json(list);
        let mut object = Object::parse_json(&classes, r#"{"$class":"A","m_t":"kept"}"#).unwrap();
        for number in 0..100 {
            object.set(&classes, "m_s", &json!("x".repeat(10_000 + number))).unwrap();
        }
        assert!(object.data_bytes() < 50_000, "{}", object.data_bytes());
        object.set(&classes, "m_s", &json!("y")).unwrap();
        assert_eq!(
            object.to_json(&classes).unwrap(),
            r#"{"$class":"class A","m_s":"y","m_t":"kept"}"#
        );
        let mut path = String::from("m_a");
        for _ in 1..Limits::DEFAULT.depth {
            object.set(&classes, &path, &json!({"$class": "A"})).unwrap();
            path.push_str(".m_a");
        }
        let before = object.clone();
        let error = object.set(&classes, &path, &json!({"$class": "A"})).unwrap_err().to_string();
        assert!(error.ends_with("wanted at most 128 (depth), found 129"), "{error}");
        assert_eq!(object, before);
        let json = object.to_json(&classes).unwrap();
        assert_eq!(Object::parse_json(&classes, &json).unwrap(), object);
    }
}
