//! Completing objects with default values.

use std::collections::HashMap;
use std::rc::Rc;

use worldwire_core::{Error, Limits, Result};

use super::ObjectCodec;
use super::defaults::{DefaultValue, given};
use super::value::{Object, ValueRef};
use super::visitor::{CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Classes, Property, PropertyKind};

/// How deeply objects and containers can be nested.
const MAX_DEPTH: u32 = Limits::DEFAULT.depth;

impl Object {
    /// A copy with every missing property set to its default. Shallow streams need this for objects
    /// that were written by hand or read from a deep stream. Properties are put into class order.
    /// Defaults are taken from the type list; without one, they are 0, empty or null. An object
    /// that is not a pointer is itself filled with defaults.
    ///
    /// # Errors
    /// `Value` if the object was created with different classes; a limit error for excessive depth
    /// or too many nodes.
    pub fn complete(&self, classes: &Classes) -> Result<Self> {
        fill(self, classes, &|_| true)
    }

    /// A copy with all properties in class order. Two objects have the same contents if these
    /// copies are equal.
    ///
    /// # Errors
    /// `Value` if the object was created with different classes; a limit error for excessive depth.
    pub fn in_class_order(&self, classes: &Classes) -> Result<Self> {
        fill(self, classes, &|_| false)
    }
}

impl ObjectCodec<'_> {
    /// A copy with the defaults that this codec's streams need: in a shallow stream, those of all
    /// properties that the stream contains; in a deep one, those of properties that are covered by
    /// the mask, not deprecated, and not omitted as unchanged. Existing values are kept.
    pub fn complete(&self, object: &Object) -> Result<Object> {
        let options = &self.options;
        fill(object, self.classes, &|property| match options.deep {
            true => options.writes_deep(property) && !property.has(Property::DELTA_ENCODE),
            false => options.shallow().has(property),
        })
    }
}

fn fill(object: &Object, classes: &Classes, wants: &dyn Fn(&Property) -> bool) -> Result<Object> {
    let mut filler =
        Filler { classes, object: object.like(), wants, known: HashMap::new(), filled: 0 };
    filler.value(object.known_root(classes)?, MAX_DEPTH)?;
    Ok(filler.object)
}

struct Filler<'f, 'c> {
    classes: &'c Classes,
    object: Object,
    /// Which properties to fill in.
    wants: &'f dyn Fn(&Property) -> bool,
    /// The list's defaults that have been needed so far.
    known: HashMap<*const Property, Rc<Option<DefaultValue<'c>>>>,
    /// The number of values filled in so far.
    filled: u64,
}

impl<'c> Filler<'_, 'c> {
    fn value(&mut self, value: ValueRef<'_, 'c>, depth: u32) -> Result<()> {
        let deeper = || depth.checked_sub(1).ok_or_else(too_deep);
        if let Some(leaf) = value.leaf() {
            return self.object.value(value.slot(), leaf);
        }
        let Some(class) = value.class() else {
            self.object.begin_list(value.slot())?;
            for child in value.children() {
                self.value(child, deeper()?)?;
            }
            return self.object.end_list();
        };
        let index =
            |child: &ValueRef<'_, '_>| child.slot().property().map_or(u32::MAX, Property::index);
        let mut children: Vec<_> = value.children().collect();
        children.sort_by_key(index);
        let mut children = children.into_iter().peekable();
        self.object.begin_object(value.slot(), class, value.core_id())?;
        for property in class.properties() {
            let mut is_there = false;
            while let Some(child) = children.next_if(|child| index(child) == property.index()) {
                is_there = true;
                self.value(child, deeper()?)?;
            }
            if !is_there && (self.wants)(property) {
                self.default(property, deeper()?)?;
            }
        }
        for unknown in children {
            self.value(unknown, deeper()?)?;
        }
        self.object.end_object()
    }

    /// Fills in an object of a class.
    fn defaults(&mut self, slot: Slot<'c>, class: &'c Class, depth: u32) -> Result<()> {
        self.count(1)?;
        self.object.begin_object(slot, class, CoreId::default())?;
        for property in class.properties().iter().filter(|property| (self.wants)(property)) {
            self.default(property, depth.checked_sub(1).ok_or_else(too_deep)?)?;
        }
        self.object.end_object()
    }

    /// Fills in a property: with the list's default if it fits, else with 0, empty or null.
    fn default(&mut self, property: &'c Property, depth: u32) -> Result<()> {
        self.count(1)?;
        let slot = Slot::Property(property);
        let (classes, known) = (self.classes, &mut self.known);
        let given = known
            .entry(core::ptr::from_ref(property))
            .or_insert_with(|| Rc::new(given(classes, property).ok().flatten()));
        match &*Rc::clone(given) {
            Some(DefaultValue::Value(parsed)) => return self.object.value(slot, parsed.leaf()),
            Some(DefaultValue::Values(list)) => {
                self.object.begin_list(slot)?;
                self.count(list.len() as u64)?;
                for parsed in list {
                    self.object.value(Slot::Element(property), parsed.leaf())?;
                }
                return self.object.end_list();
            }
            Some(DefaultValue::Null) => return self.object.value(slot, Leaf::Null),
            Some(DefaultValue::Class(class)) => return self.defaults(slot, class, depth),
            Some(DefaultValue::Built(object)) => {
                self.count(object.len() as u64)?;
                return self.value(object.as_value(classes, slot)?, depth);
            }
            None => {}
        }
        if property.is_list() {
            self.object.begin_list(slot)?;
            return self.object.end_list();
        }
        let zeros;
        let leaf = match property.kind() {
            PropertyKind::Bool => Leaf::Bool(false),
            PropertyKind::I8
            | PropertyKind::I16
            | PropertyKind::I32
            | PropertyKind::I64
            | PropertyKind::SignedBits(_) => Leaf::Signed(0),
            PropertyKind::U8
            | PropertyKind::U16
            | PropertyKind::U32
            | PropertyKind::U64
            | PropertyKind::UnsignedBits(_) => Leaf::Unsigned(0),
            PropertyKind::F32 => Leaf::F32(0.0),
            PropertyKind::F64 => Leaf::F64(0.0),
            PropertyKind::String => Leaf::Text(&[]),
            PropertyKind::WideString => Leaf::WideText(&[]),
            PropertyKind::Enum => Leaf::Enum(0),
            PropertyKind::Flags => Leaf::Flags(0),
            PropertyKind::Tuple(tuple) => {
                zeros = vec![0; tuple.size()];
                Leaf::Tuple(tuple, &zeros)
            }
            PropertyKind::Object => {
                let class = property.class().and_then(|class| self.classes.get(class));
                match class.filter(|class| class.name == property.type_name) {
                    Some(class) => return self.defaults(slot, class, depth),
                    None => Leaf::Null,
                }
            }
        };
        self.object.value(slot, leaf)
    }

    /// Counts values that are filled in. Nested defaults can multiply without being deep.
    fn count(&mut self, more: u64) -> Result<()> {
        let limit = Limits::DEFAULT.nodes;
        self.filled += more;
        match self.filled <= limit {
            true => Ok(()),
            false => Err(Error::limit("nodes", limit, self.filled)),
        }
    }
}

#[cold]
fn too_deep() -> Error {
    let limit = u64::from(MAX_DEPTH);
    Error::limit("depth", limit, limit + 1)
}

#[cfg(test)]
mod tests {
    use super::super::{ObjectCodec, ObjectOptions};
    use super::*;

    #[test]
    fn streams_get_the_defaults_they_need() {
        let list = br#"{"class A": {"hash": 7, "properties": {
            "m_save": {"type": "int", "id": 0, "flags": 1}, "m_net": {"type": "int", "id": 1,
            "flags": 24}, "m_old": {"type": "int", "id": 2, "flags": 65},
            "m_delta": {"type": "int", "id": 3, "flags": 257}}}}"#;
        let classes = Classes::of_json(list);
        let object = Object::parse_json(&classes, r#"{"$class":"A"}"#).unwrap();
        let complete = |options: ObjectOptions| {
            let whole = ObjectCodec::new(&classes, options).complete(&object).unwrap();
            whole.to_json(&classes).unwrap().replace("{\"$class\":\"class A\",", "{")
        };
        assert_eq!(complete(ObjectOptions::file()), r#"{"m_save":0}"#);
        let shallow = ObjectOptions { mask: 1, ..ObjectOptions::default() };
        assert_eq!(complete(shallow.clone()), r#"{"m_save":0,"m_old":0,"m_delta":0}"#);
        let skipping = ObjectOptions { skip_deprecated: true, ..shallow };
        assert_eq!(complete(skipping), r#"{"m_save":0,"m_delta":0}"#);
        assert_eq!(complete(ObjectOptions::default()), r#"{"m_net":0}"#);
    }

    #[test]
    fn type_lists_have_defaults_for_numbers_and_texts() {
        let json = r#"{"class A": {"hash": 7, "properties": {
            "m_i": {"type": "int", "id": 0, "enum_options": {"__DEFAULT": -5}},
            "m_n": {"type": "unsigned int", "id": 1,
                "enum_options": {"big": 1000, "__DEFAULT": "big"}},
            "m_f": {"type": "float", "id": 2, "enum_options": {"__DEFAULT": "1.5"}},
            "m_b": {"type": "bool", "id": 3, "enum_options": {"__DEFAULT": "true"}},
            "m_s": {"type": "std::string", "id": 4, "enum_options": {"__DEFAULT": "x"}},
            "m_w": {"type": "unsigned char", "id": 5, "enum_options": {"__DEFAULT": "256"}}}}}"#;
        let xml = r#"<ClassList><Class Name="class A">
            <Property Name="m_i" Type="int" PropertyId="0" Default="-5"/>
            <Property Name="m_n" Type="unsigned int" PropertyId="1" Default="big">
            <Enum><Option Name="big" Value="1000"/></Enum></Property>
            <Property Name="m_f" Type="float" PropertyId="2" Default="1.5"/>
            <Property Name="m_b" Type="bool" PropertyId="3" Default="true"/>
            <Property Name="m_s" Type="std::string" PropertyId="4" Default="x"/>
            <Property Name="m_w" Type="unsigned char" PropertyId="5" Default="256"/>
            </Class></ClassList>"#;
        for list in [json, xml] {
            let classes = Classes::of_json(list);
            let object = Object::parse_json(&classes, r#"{"$class":"A"}"#).unwrap();
            assert_eq!(
                object.complete(&classes).unwrap().to_json(&classes).unwrap(),
                r#"{"$class":"class A","m_i":-5,"m_n":"big","m_f":1.5,"m_b":true,"m_s":"x","m_w":0}"#
            );
        }
    }

    #[test]
    fn type_lists_have_defaults_for_tuples_objects_and_containers() {
        let json = r#"{"class A": {"hash": 7, "properties": {
            "m_v": {"type": "class Vector3D", "id": 0, "enum_options": {"__DEFAULT": "1,-2.5,0"}},
            "m_c": {"type": "class Color", "id": 1, "enum_options": {"__DEFAULT": "FF010203"}},
            "m_r": {"type": "class Rect<int>", "id": 2, "enum_options": {"__DEFAULT": "1,2,3,4"}},
            "m_i": {"type": "int", "id": 3, "container": "List",
                "enum_options": {"__DEFAULT": "5, 6"}},
            "m_p": {"type": "class Point<int>", "id": 4, "container": "Vector",
                "enum_options": {"__DEFAULT": "1,2,3,4"}},
            "m_e": {"type": "enum E", "id": 5, "container": "List",
                "enum_options": {"X": 1, "Y": 2, "__DEFAULT": "Y,X"}},
            "m_o": {"type": "class B*", "id": 6, "enum_options": {"__DEFAULT": "D"}},
            "m_n": {"type": "class B", "id": 7, "enum_options": {"__DEFAULT": "NULL"}}}},
            "class B": {"hash": 8, "properties": {}},
            "class D": {"hash": 9, "bases": ["B"], "properties": {
                "m_s": {"type": "std::string", "id": 0, "enum_options": {"__DEFAULT": "d"}}}}}"#;
        let xml = r#"<ClassList><Class Name="class A">
            <Property Name="m_v" Type="class Vector3D" PropertyId="0" Default="1,-2.5,0"/>
            <Property Name="m_c" Type="class Color" PropertyId="1" Default="FF010203"/>
            <Property Name="m_r" Type="class Rect&amp;lt;int&amp;gt;" PropertyId="2">
            <Enum><Option Name="__DEFAULT" Value="1,2,3,4"/></Enum></Property>
            <Property Name="m_i" Type="int" PropertyId="3" Container="List" Default="5, 6"/>
            <Property Name="m_p" Type="class Point&amp;lt;int&amp;gt;" PropertyId="4"
                Container="Vector" Default="1,2,3,4"/>
            <Property Name="m_e" Type="enum E" PropertyId="5" Container="List" Default="Y,X">
            <Enum><Option Name="X" Value="1"/><Option Name="Y" Value="2"/></Enum></Property>
            <Property Name="m_o" Type="class B*" PropertyId="6" Default="D"/>
            <Property Name="m_n" Type="class B" PropertyId="7" Default="NULL"/></Class>
            <Class Name="class B"/><Class Name="class D" Base="class B">
            <Property Name="m_s" Type="std::string" PropertyId="0" Default="d"/></Class></ClassList>"#;
        for list in [json, xml] {
            let classes = Classes::of_json(list);
            let object = Object::parse_json(&classes, r#"{"$class":"A"}"#).unwrap();
            assert_eq!(
                object.complete(&classes).unwrap().to_json(&classes).unwrap(),
                r#"{"$class":"class A","m_v":{"x":1.0,"y":-2.5,"z":0.0},"#.to_owned()
                    + r#""m_c":{"b":3,"g":2,"r":1,"a":255},"#
                    + r#""m_r":{"left":1,"top":2,"right":3,"bottom":4},"m_i":[5,6],"#
                    + r#""m_p":[{"x":1,"y":2},{"x":3,"y":4}],"m_e":["Y","X"],"#
                    + r#""m_o":{"$class":"class D","m_s":"d"},"m_n":null}"#
            );
        }
    }

    #[test]
    fn defaults_can_be_json() {
        let list = r#"{"class A": {"hash": 7, "properties": {
            "m_v": {"type": "class Point<int>", "id": 0,
                "enum_options": {"__DEFAULT": {"x": 1, "y": 2}}},
            "m_l": {"type": "class B*", "id": 1, "container": "List",
                "enum_options": {"__DEFAULT": [{"$class": "class B"}, null]}},
            "m_b": {"type": "class B*", "id": 2,
                "enum_options": {"__DEFAULT": "{\"m_n\": 6}"}},
            "m_s": {"type": "std::string", "id": 3, "enum_options": {"__DEFAULT": "{}"}}}},
            "class B": {"hash": 8, "properties": {
                "m_n": {"type": "int", "id": 0, "enum_options": {"__DEFAULT": 5}}}}}"#;
        let classes = Classes::of_json(list);
        let object = Object::parse_json(&classes, r#"{"$class":"A"}"#).unwrap();
        assert_eq!(
            object.complete(&classes).unwrap().to_json(&classes).unwrap(),
            r#"{"$class":"class A","m_v":{"x":1,"y":2},"m_l":[{"$class":"class B","m_n":5},null],"#
                .to_owned()
                + r#""m_b":{"$class":"class B","m_n":6},"m_s":"{}"}"#
        );
    }

    #[test]
    fn defaults_that_do_not_fit_are_explained_and_left_out() {
        let cases = [
            ("int", "Static", "x", "wanted a whole number, found \"x\""),
            ("unsigned char", "Static", "256", "wanted an unsigned 8-bit number, found \"256\""),
            ("bool", "Static", "maybe", "wanted 0, 1, true or false, found maybe"),
            ("class Vector3D", "Static", "1,2", "wanted 3 numbers separated by commas, found 1,2"),
            ("class Color", "Static", "red", "wanted a colour AARRGGBB, found red"),
            ("class A*", "Static", "B", "wanted class A or a class derived from it, found class B"),
            ("class A*", "Static", "class AB", "wanted the name of a class, found \"class AB\""),
            ("class A*", "Static", "{", "invalid JSON: "),
            ("class A*", "List", "A", "wanted a list of objects in JSON, found \"A\""),
            ("int", "List", "1,x", "wanted a whole number, found \"x\""),
            ("int", "List", "[1,true]", "[1]: wanted a whole number, found true"),
            ("class Point<int>", "List", "1,2,3", "wanted 2 numbers separated by commas, found 3"),
        ];
        for (kind, container, text, wanted) in cases {
            let list = |options: &str| {
                Classes::of_json(format!(
                    r#"{{"class A": {{"hash": 7, "properties": {{"m": {{"type": "{kind}", "id": 0,
                    "container": "{container}", "enum_options": {{{options}}}}}}}}},
                    "class B": {{"hash": 8, "properties": {{}}}}}}"#
                ))
            };
            let [with, without] = [&*format!(r#""__DEFAULT": "{text}""#), ""].map(list);
            let property = &with.find("A").unwrap().properties()[0];
            let error = with.default_error(property).unwrap().to_string();
            assert!(error.starts_with(wanted), "{kind} {text}: {error}");
            let [with, without] = [with, without].map(|classes| {
                let object = Object::parse_json(&classes, r#"{"$class":"A"}"#).unwrap();
                object.complete(&classes).unwrap().to_json(&classes).unwrap()
            });
            assert_eq!(with, without);
        }
    }

    #[test]
    fn nested_defaults_cannot_multiply_without_bound() {
        let mut list = String::from("{");
        for level in 0..40 {
            let next = level + 1;
            list.push_str(&format!(
                r#""class C{level}": {{"hash": {}, "properties": {{
                "m_a": {{"type": "class C{next}", "id": 0}},
                "m_b": {{"type": "class C{next}", "id": 1}}}}}},"#,
                level + 10,
            ));
        }
        list.push_str(r#""class C40": {"hash": 9, "properties": {}}}"#);
        let classes = Classes::of_json(list);
        let object = Object::parse_json(&classes, r#"{"$class":"C0"}"#).unwrap();
        let error = object.complete(&classes).unwrap_err().to_string();
        assert!(error.contains("(nodes)"), "{error}");
    }

    #[test]
    fn missing_properties_get_their_defaults() {
        let list = r#"{"class A": {"hash": 7, "properties": {
            "m_n": {"type": "int", "id": 0, "flags": 24},
            "m_e": {"type": "enum E", "id": 1, "flags": 24,
                "enum_options": {"NO": 0, "YES": 3, "__DEFAULT": "YES"}},
            "m_r": {"type": "unsigned int", "id": 5, "flags": 1048600,
                "enum_options": {"READ": 1, "EXEC": 4, "__DEFAULT": "READ|EXEC"}},
            "m_o": {"type": "enum E", "id": 6, "flags": 24,
                "enum_options": {"NO": 0, "YES": 3, "__DEFAULT": "NONE"}},
            "m_l": {"type": "float", "id": 2, "flags": 24, "container": "List"},
            "m_b": {"type": "class B", "id": 3, "flags": 24},
            "m_p": {"type": "class A*", "id": 4, "flags": 24}}},
            "class B": {"hash": 8, "properties": {
            "m_c": {"type": "class Color", "id": 0, "flags": 24}}},
            "class C": {"hash": 9, "properties": {"m_c": {"type": "class C", "id": 0}}}}"#;
        let classes = Classes::of_json(list);
        let part = Object::parse_json(&classes, r#"{"$class":"A","m_p":null,"m_n":5}"#).unwrap();
        let codec = ObjectCodec::new(&classes, ObjectOptions::default());
        let error = codec.encode(&part, codec.header()).unwrap_err().to_string();
        assert_eq!(
            error,
            "class A: m_e: is missing; add it, or fill in missing properties with defaults: `ki op \
             encode --complete`"
        );
        let whole = part.complete(&classes).unwrap();
        assert_eq!(
            whole.to_json(&classes).unwrap(),
            r#"{"$class":"class A","m_n":5,"m_e":"YES","m_l":[],"m_b":{"$class":"class B","#
                .to_owned()
                + r#""m_c":{"b":0,"g":0,"r":0,"a":0}},"m_p":null,"m_r":["READ","EXEC"],"m_o":"NO"}"#
        );
        codec.encode(&whole, codec.header()).unwrap();
        let endless = Object::parse_json(&classes, r#"{"$class":"C"}"#).unwrap();
        let error = endless.complete(&classes).unwrap_err().to_string();
        assert_eq!(error, "wanted at most 128 (depth), found 129");
    }
}
