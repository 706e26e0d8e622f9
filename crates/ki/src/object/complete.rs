//! Completing objects with default values.

use worldwire_core::json::Json;
use worldwire_core::{Error, Limits, Result};

use super::ObjectCodec;
use super::parse::{self, Parsed};
use super::value::{Object, ValueRef};
use super::visitor::{CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Classes, Property, PropertyKind};

/// How deep objects and containers can be nested.
const MAX_DEPTH: u32 = Limits::DEFAULT.depth;

impl Object {
    /// A copy with every missing property at its default, as shallow streams need it for an object
    /// that was written by hand or read from a deep stream. Properties are put into class order.
    /// Defaults are those of the type list, or else 0, empty and null. An object that is not a
    /// pointer is itself filled with defaults.
    ///
    /// # Errors
    /// Value, if it was made with different classes; the limits on depth and nodes.
    pub fn complete(&self, classes: &Classes) -> Result<Self> {
        fill(self, classes, &|_| true)
    }

    /// A copy with all properties in class order. Two objects have the same contents if these
    /// copies are equal.
    ///
    /// # Errors
    /// Value, if it was made with different classes; the limit on depth.
    pub fn in_class_order(&self, classes: &Classes) -> Result<Self> {
        fill(self, classes, &|_| false)
    }
}

impl ObjectCodec<'_> {
    /// A copy with the defaults that this codec's streams need: in a shallow stream, those of all
    /// properties that it has; in a deep one, those of properties that are covered by the mask, not
    /// deprecated, and not omitted as unchanged. Existing values stay.
    pub fn complete(&self, object: &Object) -> Result<Object> {
        let options = &self.options;
        fill(object, self.classes, &|property| match options.deep {
            true => options.writes_deep(property) && !property.has(Property::DELTA_ENCODE),
            false => options.shallow().has(property),
        })
    }
}

fn fill(object: &Object, classes: &Classes, wants: &dyn Fn(&Property) -> bool) -> Result<Object> {
    let mut filler = Filler { classes, object: object.like(), wants };
    filler.value(object.known_root(classes)?, MAX_DEPTH)?;
    Ok(filler.object)
}

struct Filler<'f, 'c> {
    classes: &'c Classes,
    object: Object,
    /// Which properties to fill in.
    wants: &'f dyn Fn(&Property) -> bool,
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

    fn defaults(&mut self, slot: Slot<'c>, class: &'c Class, depth: u32) -> Result<()> {
        self.object.begin_object(slot, class, CoreId::default())?;
        for property in class.properties().iter().filter(|property| (self.wants)(property)) {
            self.default(property, depth.checked_sub(1).ok_or_else(too_deep)?)?;
        }
        self.object.end_object()
    }

    fn default(&mut self, property: &'c Property, depth: u32) -> Result<()> {
        let slot = Slot::Property(property);
        if property.is_list() {
            self.object.begin_list(slot)?;
            return self.object.end_list();
        }
        if let Some(given) = given(property) {
            return self.object.value(slot, given.leaf());
        }
        // The list's default is used only if it is an option.
        let choice = |kind| {
            let choices = property.choices.as_ref();
            let name = choices.and_then(|choices| choices.default.as_deref()).unwrap_or_default();
            parse::choice(property, kind, name.as_bytes()).unwrap_or(0)
        };
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
            kind @ PropertyKind::Enum => Leaf::Enum(choice(kind)),
            kind @ PropertyKind::Flags => Leaf::Flags(choice(kind)),
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
}

/// The type list's default of a number, a Boolean or a text; `None` if there is none, or it does
/// not fit the type.
fn given(property: &Property) -> Option<Parsed> {
    let choices = property.choices.as_ref()?;
    let text = choices.default.as_deref()?;
    match property.kind() {
        PropertyKind::Bool => {
            let is_true = text.trim() == "1" || text.trim().eq_ignore_ascii_case("true");
            Some(Parsed::Leaf(Leaf::Bool(is_true)))
        }
        PropertyKind::String => Some(Parsed::Text(text.as_bytes().to_vec())),
        PropertyKind::WideString => Some(Parsed::WideText(parse::wide_bytes(text))),
        kind => {
            let number =
                |text: String| parse::number(kind, &Json::String(text.into())).ok().flatten();
            let named = || number(choices.parse(text.trim())?.to_string());
            number(text.trim().to_owned()).or_else(named).map(Parsed::Leaf)
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
                r#"{"$class":"class A","m_i":-5,"m_n":1000,"m_f":1.5,"m_b":true,"m_s":"x","m_w":0}"#
            );
        }
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
