//! Finding objects of the wrong class.

use super::value::{Children, Object};
use crate::schema::classes::{Classes, Property};

/// At most this many objects are reported.
const MAX_REPORTED: usize = 200;

impl Object {
    /// The nested objects whose class is neither the expected one nor derived from it, with the
    /// name of the property; at most 200. The expected class is the list's `__BASECLASS`, or else
    /// the one named in the property's type. Such objects can be encoded and decoded, but a game
    /// may not expect them.
    #[must_use]
    pub fn unrelated(&self, classes: &Classes) -> Vec<String> {
        let mut found = Vec::new();
        let mut open: Vec<Children<'_, '_>> =
            self.root(classes).map(|root| root.children()).into_iter().collect();
        while let Some(children) = open.last_mut() {
            let Some(value) = children.next() else {
                open.pop();
                continue;
            };
            let property = value.slot().property();
            let wanted = property.and_then(Property::base).and_then(|index| classes.get(index));
            if let (Some(class), Some(wanted), Some(property)) = (value.class(), wanted, property)
                && !classes.is_a(class, wanted)
            {
                if found.len() == MAX_REPORTED {
                    return found;
                }
                let (class, wanted) = (&class.name, &wanted.name);
                found.push(format!("{}: {class} where {wanted} belongs", property.name));
            }
            if value.class().is_some() || value.is_list() {
                open.push(value.children());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Object, ObjectCodec, ObjectOptions};
    use crate::schema::classes::Classes;

    #[test]
    fn a_base_class_in_the_list_is_expected() {
        let list = r#"{"class Any": {"hash": 7, "properties": {}},
            "class Base": {"hash": 8, "bases": ["Any"], "properties": {}},
            "class Good": {"hash": 9, "bases": ["Base", "Any"], "properties": {}},
            "class Holder": {"hash": 10, "properties": {
                "m_one": {"type": "class Any*", "id": 0, "flags": 24,
                    "enum_options": {"__BASECLASS": "Base"}},
                "m_new": {"type": "class NotInTheList*", "id": 1, "flags": 24,
                    "enum_options": {"__BASECLASS": "Good"}}}}}"#;
        let classes = Classes::of_json(list);
        let unrelated = |json: &str| {
            let object = Object::parse_json(&classes, json).unwrap();
            let whole = object.complete(&classes).unwrap();
            let codec = ObjectCodec::new(&classes, ObjectOptions::default());
            let decoded =
                codec.decode_all(&codec.encode(&whole, codec.header()).unwrap(), &mut ()).unwrap();
            assert_eq!(decoded.notes.len(), object.unrelated(&classes).len());
            object.unrelated(&classes)
        };
        let one = |name: &str| format!(r#"{{"$class":"Holder","m_one":{{"$class":"{name}"}}}}"#);
        assert!(unrelated(&one("Good")).is_empty());
        assert_eq!(unrelated(&one("Any")), ["m_one: class Any where class Base belongs"]);
        // Without a class in the type, an object is of the base class unless it names another
        // class.
        assert!(unrelated(r#"{"$class":"Holder","m_new":{}}"#).is_empty());
    }

    #[test]
    fn unrelated_classes_are_reported_when_decoding_and_encoding() {
        let list = r#"{"class Base": {"hash": 7, "properties": {}},
            "class Good": {"hash": 8, "bases": ["Base"], "properties": {}},
            "class Other": {"hash": 9, "properties": {}},
            "class Holder": {"hash": 10, "properties": {
                "m_one": {"type": "class Base*", "id": 0, "flags": 24},
                "m_all": {"type": "class SharedPointer<class Base>", "id": 1, "flags": 24,
                    "container": "List"}}}}"#;
        let classes = Classes::of_json(list);
        let good = |name: &str| format!(r#"{{"$class":"class {name}"}}"#);
        let json = |one: &str, all: &[&str]| {
            let all: Vec<String> = all.iter().map(|name| good(name)).collect();
            let all = all.join(",");
            format!(r#"{{"$class":"Holder","m_one":{},"m_all":[null,{all}]}}"#, good(one))
        };
        let object =
            |one: &str, all: &[&str]| Object::parse_json(&classes, &json(one, all)).unwrap();
        assert!(object("Good", &["Base", "Good", "Good"]).unrelated(&classes).is_empty());
        let wrong = object("Holder", &["Good", "Other", "Good", "Other"]);
        let unrelated = wrong.unrelated(&classes);
        assert_eq!(
            unrelated,
            [
                "m_one: class Holder where class Base belongs",
                "m_all: class Other where class Base belongs",
                "m_all: class Other where class Base belongs",
            ]
        );
        for deep in [false, true] {
            let codec =
                ObjectCodec::new(&classes, ObjectOptions { deep, ..ObjectOptions::default() });
            let whole = wrong.complete(&classes).unwrap();
            let bytes = codec.encode(&whole, codec.header()).unwrap();
            let decoded = codec.decode_all(&bytes, &mut ()).unwrap();
            let notes: Vec<&str> = decoded.notes.iter().map(|note| note.error().found()).collect();
            assert_eq!(
                notes,
                [
                    "class Holder where class Base belongs",
                    "class Other where class Base belongs",
                    "class Other where class Base belongs",
                ]
            );
        }
    }
}
