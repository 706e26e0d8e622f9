//! Reading and writing objects as XML, which clients use alongside the binary format.
//!
//! ```xml
//! <Objects>
//!   <Class Name="class Tree">
//!     <m_color>FF010203</m_color>
//!     <m_position>1,-2.5,0.125</m_position>
//!     <m_rights>READ|EXEC</m_rights>
//!     <m_names>a</m_names>
//!     <m_names>b</m_names>
//!     <m_leaf><Class Name="class Leaf"><m_v>7</m_v></Class></m_leaf>
//!   </Class>
//! </Objects>
//! ```
//!
//! A container is written as a repeated element, with an optional `key` that gives the order. An
//! empty element is null, the empty string, or 0. An empty container is therefore written as one
//! element with a count, which other programs read as an empty element: `<m_names count="0"/>`. A
//! number that has a name among its property's options is written as the name. Colours are
//! hexadecimal digits: alpha, red, green, blue. Properties without an element are missing.

mod document;
mod write;

use std::collections::HashMap;

use worldwire_core::{Diagnostic, Limits, Result, Source};

use document::{Element, document};
use write::Writer;

use super::parse;
use super::value::Object;
use super::visitor::{CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Classes, Property, PropertyKind};
use crate::xml::{Diagnostics, decode};

/// The outcome of reading objects from XML.
#[derive(Debug)]
pub struct Loaded {
    /// The objects; `None` if the file is not object XML. Unknown classes and properties are omitted.
    pub objects: Option<Vec<Object>>,
    /// Warnings and errors.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a file of objects, of up to 4 GiB. Memory use is proportional to its length.
#[must_use]
pub fn load(classes: &Classes, name: &str, bytes: &[u8]) -> Loaded {
    load_within(classes, name, bytes, &Limits::DEFAULT)
}

/// Like [`load`], but with the given limit on depth.
#[must_use]
pub fn load_within(classes: &Classes, name: &str, bytes: &[u8], limits: &Limits) -> Loaded {
    let (text, replaced) = match decode(name, bytes) {
        Ok(text) => text,
        Err(refused) => return Loaded { objects: None, diagnostics: vec![*refused] },
    };
    let mut diagnostics = Diagnostics::new(Source::new(name, &text), false);
    if replaced {
        diagnostics.strict_error(
            &(0..0),
            "bytes that are not UTF-8 are read as U+FFFD",
            "save it as UTF-8",
        );
    }
    let objects = document(&text, limits, &mut diagnostics).map(|document| {
        let objects = document.roots().filter_map(|element| {
            let mut object = Object::of_text();
            let mut builder =
                Builder { classes, diagnostics: &mut diagnostics, object: &mut object };
            let written = builder.object(Slot::Root, element).ok()?;
            written.then_some(object)
        });
        objects.collect()
    });
    let objects = objects.filter(|_| !diagnostics.has_errors());
    Loaded { objects, diagnostics: diagnostics.into_sorted() }
}

/// Writes objects as a file.
///
/// # Errors
/// `Value` if the objects contain something that XML cannot represent: invalid Unicode, undecoded
/// bits, a property that occurs twice, or IDs of the CoreObject form. JSON can hold all of these.
pub fn to_xml(classes: &Classes, objects: &[Object]) -> Result<String> {
    let mut writer = Writer::new();
    for object in objects {
        object.visit(classes, &mut writer)?;
    }
    Ok(writer.finish())
}

struct Builder<'b, 'c, 't> {
    classes: &'c Classes,
    diagnostics: &'b mut Diagnostics<'t>,
    object: &'b mut Object,
}

impl<'c> Builder<'_, 'c, '_> {
    /// Reads an object if the element is a `Class` element. Returns whether it is one.
    fn object(&mut self, slot: Slot<'c>, element: Element<'_>) -> Result<bool> {
        let Some(class) = self.class(element) else { return Ok(false) };
        if !element.text().trim().is_empty() {
            self.diagnostics.warning(&element.span(), "text in an object is ignored", "");
        }
        // A container is a repeated element, not necessarily in sequence.
        let mut order: Vec<(&'c Property, Vec<Element<'_>>)> = Vec::new();
        let mut known: HashMap<u32, usize> = HashMap::new();
        for child in element.children() {
            let Some(property) = class.property(child.name()) else {
                let text = format!("{} is not a property of {}; ignored", child.name(), class.name);
                let names = class.properties().iter().map(|property| &*property.name);
                let near = self
                    .diagnostics
                    .has_room()
                    .then(|| worldwire_core::nearest(child.name(), names));
                let near = near.flatten();
                let help = near.map_or_else(String::new, |near| format!("did you mean {near}?"));
                self.diagnostics.warning(&child.span(), text, &help);
                continue;
            };
            let position = *known.entry(property.index()).or_insert_with(|| {
                order.push((property, Vec::new()));
                order.len() - 1
            });
            if let Some((_, children)) = order.get_mut(position) {
                if !property.is_list() && !children.is_empty() {
                    self.diagnostics.warning(
                        &child.span(),
                        format!("duplicate {} is ignored", child.name()),
                        "",
                    );
                } else {
                    children.push(child);
                }
            }
        }
        self.object.begin_object(slot, class, CoreId::default())?;
        for (property, children) in order {
            if property.is_list() {
                self.list(property, children)?;
            } else if let Some(&child) = children.first() {
                self.value(Slot::Property(property), property, child)?;
            }
        }
        self.object.end_object()?;
        Ok(true)
    }

    /// Reads a container, in the order of the keys. An element without a key stays after the
    /// element that precedes it in the text.
    fn list(&mut self, property: &'c Property, children: Vec<Element<'_>>) -> Result<()> {
        self.object.begin_list(Slot::Property(property))?;
        let mut last = 0;
        let mut keyed = Vec::with_capacity(children.len());
        let is_alone = children.len() == 1;
        for child in children {
            if child.is_none() {
                if !is_alone {
                    let text = format!("an empty {} among its elements is ignored", child.name());
                    self.diagnostics.warning(&child.span(), text, "");
                }
                continue;
            }
            match child.key().map(|key| (key, key.trim().parse::<u64>())) {
                Some((_, Ok(key))) => last = key,
                Some((key, Err(_))) => {
                    let text = format!("key \"{}\" is not a number; ignored", key.escape_debug());
                    self.diagnostics.warning(&child.span(), text, "");
                }
                None => {}
            }
            keyed.push((last, child));
        }
        keyed.sort_by_key(|(key, _)| *key);
        for (_, child) in keyed {
            self.value(Slot::Element(property), property, child)?;
        }
        self.object.end_list()
    }

    fn class(&mut self, element: Element<'_>) -> Option<&'c Class> {
        let Some(name) = element.class().filter(|_| element.name() == "Class") else {
            let text = format!("{} is not a Class with a Name; ignored", element.name());
            self.diagnostics.warning(&element.span(), text, "");
            return None;
        };
        let class = self.classes.find(name);
        if class.is_none() {
            let near = self.diagnostics.has_room().then(|| self.classes.nearest(name)).flatten();
            let help = near.map_or_else(String::new, |near| format!("did you mean {near}?"));
            let text = format!("no type list has {name:?}; ignored");
            self.diagnostics.warning(&element.span(), text, &help);
        }
        class
    }

    fn value(
        &mut self,
        slot: Slot<'c>,
        property: &'c Property,
        element: Element<'_>,
    ) -> Result<()> {
        if property.kind() == PropertyKind::Object {
            if element.children().next().is_none() {
                if !element.text().trim().is_empty() {
                    self.diagnostics.warning(&element.span(), "text in place of an object", "");
                }
                return self.object.value(slot, Leaf::Null);
            }
            let is_list = matches!(slot, Slot::Element(_));
            for (index, child) in element.children().enumerate() {
                if index > 0 && !is_list {
                    self.diagnostics.warning(&child.span(), "a second object is ignored", "");
                } else {
                    self.object(slot, child)?;
                }
            }
            return Ok(());
        }
        for child in element.children() {
            self.diagnostics.warning(
                &child.span(),
                format!("{} in a value is ignored", child.name()),
                "",
            );
        }
        match parse::text(property, element.text()) {
            Ok(parsed) => self.object.value(slot, parsed.leaf()),
            Err(error) => {
                let help = format!("its type is {}", property.type_name);
                let text = format!("{}: {error}", property.name);
                self.diagnostics.warning(&element.span(), text, &help);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::json::json;

    const LIST: &str = r#"{"class A": {"hash": 7, "properties": {
        "m_n": {"type": "int", "id": 0},
        "m_c": {"type": "class Color", "id": 1},
        "m_p": {"type": "class Point<float>", "id": 2},
        "m_l": {"type": "class A*", "id": 3, "container": "List"},
        "m_a": {"type": "class A*", "id": 4},
        "m_s": {"type": "std::string", "id": 5},
        "m_e": {"type": "enum E", "id": 6, "enum_options": {"RED": 1}},
        "m_b": {"type": "bool", "id": 7},
        "m_i": {"type": "int", "id": 9, "container": "Vector"},
        "m_d": {"type": "double", "id": 10},
        "odd name": {"type": "int", "id": 8}}}}"#;

    fn classes() -> Classes {
        Classes::of_json(LIST)
    }

    #[test]
    fn mistakes_are_reported_with_their_lines() {
        let classes = classes();
        let text = "<Objects>\n<Class Name='A'>\n<m_n>x</m_n>\n<m_m>1</m_m>\n<m_c>red</m_c>\n\
                    <m_p>1</m_p>\n<m_a><Class Name='class B'/></m_a>\n<m_e>PINK</m_e>\n<m_b>2</m_b>\n\
                    <m_s>a</m_s><m_s>b</m_s>\n</Class>\n<Other/>\n</Objects>";
        let loaded = load(&classes, "a.xml", text.as_bytes());
        let reported: Vec<_> = loaded.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(
            reported,
            [
                "a.xml:3:2: warning: m_n: wanted a whole number, found \"x\" (its type is int)",
                "a.xml:4:2: warning: m_m is not a property of class A; ignored (did you mean \
                 m_n?)",
                "a.xml:5:2: warning: m_c: wanted a colour AARRGGBB, found red (its type is class \
                 Color)",
                "a.xml:6:2: warning: m_p: wanted 2 numbers separated by commas, found 1 (its type \
                 is class Point<float>)",
                "a.xml:7:7: warning: no type list has \"class B\"; ignored (did you mean class A?)",
                "a.xml:8:2: warning: m_e: wanted an option of enum E, found \"PINK\" (its type is enum E)",
                "a.xml:9:2: warning: m_b: wanted 0, 1, true or false, found 2 (its type is bool)",
                "a.xml:10:14: warning: duplicate m_s is ignored",
                "a.xml:12:2: warning: Other is not a Class with a Name; ignored",
            ]
        );
        let objects = loaded.objects.unwrap();
        let shown: Vec<_> =
            objects.iter().map(|object| object.to_json(&classes).unwrap()).collect();
        assert_eq!(shown, [r#"{"$class":"class A","m_s":"a"}"#]);
    }

    #[test]
    fn every_form_round_trips() {
        let classes = classes();
        let json = r#"{"$class":"class A","m_n":-5,"m_c":{"b":3,"g":2,"r":1,"a":255},"#.to_owned()
            + r#""m_p":{"x":0.5,"y":"NaN"},"m_l":[null,{"$class":"class A","m_b":true}],"#
            + r#""m_a":null,"m_s":" <a>\r\n&","m_e":9}"#;
        let object = Object::parse_json(&classes, &json).unwrap();
        let written = to_xml(&classes, core::slice::from_ref(&object)).unwrap();
        let wanted = "<Objects>\n  <Class Name=\"class A\">\n    <m_n>-5</m_n>\n    \
                      <m_c>FF010203</m_c>\n    <m_p>0.5,0x7fc00000</m_p>\n    <m_l></m_l>\n    \
                      <m_l>\n      <Class Name=\"class A\">\n        <m_b>1</m_b>\n      \
                      </Class>\n    </m_l>\n    <m_a></m_a>\n    \
                      <m_s> &lt;a&gt;&#13;\n&amp;</m_s>\n    <m_e>9</m_e>\n  </Class>\n\
                      </Objects>\n";
        assert_eq!(written, wanted);
        let loaded = load(&classes, "a.xml", written.as_bytes());
        assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
        assert_eq!(loaded.objects, Some(vec![object]));
    }

    #[test]
    fn options_with_unusual_names_round_trip() {
        let list = r#"{"class A": {"hash": 7, "properties": {"m_e": {"type": "enum E", "id": 0,
            "enum_options": {"5": 9, "": 3, "RED": 1}}, "m_n": {"type": "int", "id": 1,
            "enum_options": {"5": 9, "": 3, "RED": 1, " x": 10}}}}}"#;
        let classes = Classes::of_json(list);
        for number in [0, 1, 3, 5, 9, 10] {
            let json = json!({"$class": "class A", "m_e": number, "m_n": number});
            let object = Object::from_json(&classes, &json).unwrap();
            let text = to_xml(&classes, core::slice::from_ref(&object)).unwrap();
            let loaded = load(&classes, "a.xml", text.as_bytes());
            assert_eq!(loaded.objects, Some(vec![object]), "{text}");
        }
    }

    #[test]
    fn containers_can_be_empty_and_have_keys() {
        let classes = classes();
        let read = |text: &str| {
            let text = format!("<Objects><Class Name='A'>{text}</Class></Objects>");
            let loaded = load(&classes, "a.xml", text.as_bytes());
            let json = loaded.objects.unwrap()[0].to_json(&classes).unwrap();
            let reported = loaded.diagnostics.iter().map(|reported| reported.message().to_owned());
            (json, reported.collect::<Vec<_>>())
        };
        let cases = [
            ("<m_i count='0'/>", "\"m_i\":[]", None),
            ("<m_l count='0'></m_l>", "\"m_l\":[]", None),
            // Without a count, it is an ordinary element.
            ("<m_i/>", "\"m_i\":[0]", None),
            ("<m_l/>", "\"m_l\":[null]", None),
            ("<m_i count='0'>5</m_i>", "\"m_i\":[5]", None),
            (
                "<m_i count='0'/><m_i>5</m_i>",
                "\"m_i\":[5]",
                Some("an empty m_i among its elements is ignored"),
            ),
            ("<m_i key='1'>5</m_i><m_i key='0'>6</m_i>", "\"m_i\":[6,5]", None),
            (
                "<m_i key='10'>5</m_i><m_i>6</m_i><m_i key='9'>7</m_i><m_i key='10'>8</m_i>",
                "\"m_i\":[7,5,6,8]",
                None,
            ),
            (
                "<m_i key='x'>5</m_i><m_i key='0'>6</m_i>",
                "\"m_i\":[5,6]",
                Some("key \"x\" is not a number; ignored"),
            ),
        ];
        for (text, wanted, reported) in cases {
            let reported: Vec<_> = reported.map(str::to_owned).into_iter().collect();
            assert_eq!(
                read(text),
                (format!("{{\"$class\":\"class A\",{wanted}}}"), reported),
                "{text}"
            );
        }
        // Shallow streams need empty containers.
        let json = r#"{"$class":"class A","m_l":[],"m_i":[]}"#;
        let object = Object::parse_json(&classes, json).unwrap();
        let written = to_xml(&classes, core::slice::from_ref(&object)).unwrap();
        assert!(written.contains("<m_i count=\"0\"></m_i>"), "{written}");
        assert_eq!(load(&classes, "a.xml", written.as_bytes()).objects, Some(vec![object]));
    }

    #[test]
    fn numbers_out_of_range_are_not_read_as_infinity() {
        let classes = classes();
        let text = "<Objects><Class Name='A'><m_p>1e39,0</m_p><m_d>1e400</m_d></Class></Objects>";
        let loaded = load(&classes, "a.xml", text.as_bytes());
        assert_eq!(loaded.diagnostics.len(), 2, "{:?}", loaded.diagnostics);
        let text = text.replace("1e39", "-inf").replace("1e400", "Infinity");
        let loaded = load(&classes, "a.xml", text.as_bytes());
        assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    }

    #[test]
    fn unrepresentable_values_are_refused() {
        let classes = classes();
        let wrong = [
            r#"{"$class":"A","m_s":"\u0001"}"#,
            r#"{"$class":"A","m_s":{"$hex":"ff"}}"#,
            r#"{"$class":"A","odd name":1}"#,
            r#"{"$class":"A","0x00000001":{"$bits":8,"$hex":"00"}}"#,
            r#"{"$class":"A","$block":1,"$type":1}"#,
            r#"{"$class":"A","m_n":{"$bits":8,"$hex":"00"}}"#,
            r#"{"$class":"A","m_l":{"$bits":8,"$hex":"00"}}"#,
            r#"{"$class":"A","$rest":{"$bits":8,"$hex":"00"}}"#,
            r#"{"$class":"A","m_a":{"$class":"0x00000009","$bits":8,"$hex":"00"}}"#,
            r#"{"$class":"A","m_n":1,"m_s":"","m_n":1}"#,
            "null",
        ];
        for json in wrong {
            let object = Object::parse_json(&classes, json).unwrap();
            let error = to_xml(&classes, &[object]).unwrap_err().to_string();
            assert_eq!(
                error.contains("use JSON instead"),
                json.contains("$bits"),
                "{json}: {error}"
            );
        }
        let deep = format!("<Objects>{}</Objects>", "<a>".repeat(300));
        let loaded = load(&classes, "a.xml", deep.as_bytes());
        assert_eq!(
            loaded.diagnostics[0].to_string(),
            "a.xml:1:779: error: elements nested more than 257 deep (objects can be nested at most \
             128 deep (depth))"
        );
        let bind = load(&classes, "a.xml", b"BINd");
        assert!(bind.objects.is_none());
    }
}
