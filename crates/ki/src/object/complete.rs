//! Objects with all the properties of their classes.

use worldwire_core::{Error, Limits, Result};

use super::ObjectCodec;
use super::encode::parse_choice;
use super::value::{Object, ValueRef, foreign};
use super::visitor::{CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Classes, Kind, Property};

/// How deep objects and containers may stand in each other.
const MAX_DEPTH: u32 = Limits::DEFAULT.depth;

impl Object {
    /// The same object with every missing property at its default: what a shallow stream needs of
    /// an object that was written by hand or read from a deep stream. Properties take the order of
    /// their class. Defaults are 0, nothing and null, for enumerations what the list says; an
    /// object that is no pointer is made of defaults itself.
    ///
    /// # Errors
    /// Value, for classes that it was not made with; the limits on depth and nodes.
    pub fn complete(&self, classes: &Classes) -> Result<Self> {
        fill(self, classes, &|_| true)
    }

    /// The same object with its properties in the order of their classes: it holds the same as
    /// another if they are equal then.
    ///
    /// # Errors
    /// Value, for classes that it was not made with; the limit on depth.
    pub fn in_class_order(&self, classes: &Classes) -> Result<Self> {
        fill(self, classes, &|_| false)
    }

    /// A new object of a class with every property at its default.
    ///
    /// # Errors
    /// The limits on depth and nodes, for classes that contain themselves.
    pub fn with_defaults(classes: &Classes, class: &Class) -> Result<Self> {
        let class = classes.get(class.index()).ok_or_else(foreign)?;
        let mut filler = Filler { classes, object: Self::new(), wants: &|_| true };
        filler.defaults(Slot::Root, class, MAX_DEPTH)?;
        Ok(filler.object)
    }
}

impl ObjectCodec<'_> {
    /// The same object with the defaults that its streams want: in a shallow stream those of all
    /// properties that it has, in a deep one those that the mask asks for, that are in use and that
    /// are not left out as unchanged. What the object has stays.
    ///
    /// # Errors
    /// Those of [`Object::complete`].
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
    /// The properties that are to be there.
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
        // Whatever the list calls the default has to be an option; else there is none.
        let choice = |kind| {
            let choices = property.choices.as_ref();
            let name = choices.and_then(|choices| choices.default.as_deref()).unwrap_or_default();
            parse_choice(property, kind, name.as_bytes()).unwrap_or(0)
        };
        let zeros;
        let leaf = match property.kind() {
            Kind::Bool => Leaf::Bool(false),
            Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64 | Kind::SignedBits(_) => Leaf::Signed(0),
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 | Kind::UnsignedBits(_) => {
                Leaf::Unsigned(0)
            }
            Kind::F32 => Leaf::F32(0.0),
            Kind::F64 => Leaf::F64(0.0),
            Kind::String => Leaf::Text(&[]),
            Kind::WideString => Leaf::WideText(&[]),
            kind @ Kind::Enum => Leaf::Enum(choice(kind)),
            kind @ Kind::Flags => Leaf::Flags(choice(kind)),
            Kind::Tuple(tuple) => {
                zeros = vec![0; tuple.size()];
                Leaf::Tuple(tuple, &zeros)
            }
            Kind::Object => {
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

#[cold]
fn too_deep() -> Error {
    let limit = u64::from(MAX_DEPTH);
    Error::limit("depth", limit, limit + 1)
}

#[cfg(test)]
mod tests {
    use super::super::{ObjectCodec, ObjectOptions};
    use super::*;
    use crate::schema::classes::TypeLists;

    #[test]
    fn a_stream_gets_what_it_wants() {
        let list = br#"{"class A": {"hash": 7, "properties": {
            "m_save": {"type": "int", "id": 0, "flags": 1}, "m_net": {"type": "int", "id": 1,
            "flags": 24}, "m_old": {"type": "int", "id": 2, "flags": 65},
            "m_delta": {"type": "int", "id": 3, "flags": 257}}}}"#;
        let mut lists = TypeLists::new();
        lists.add("list.json", list).unwrap();
        let classes = lists.compile();
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
    fn what_is_missing_gets_its_default() {
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
        let mut lists = TypeLists::new();
        lists.add("list.json", list.as_bytes()).unwrap();
        let classes = lists.compile();
        let part = Object::parse_json(&classes, r#"{"$class":"A","m_p":null,"m_n":5}"#).unwrap();
        let codec = ObjectCodec::new(&classes, ObjectOptions::default());
        let error = codec.encode(&part, codec.header()).unwrap_err().to_string();
        assert_eq!(
            error,
            "class A: m_e: wanted a value, found none; add it, or fill in missing properties with \
             defaults: `ki op encode --complete`"
        );
        let whole = part.complete(&classes).unwrap();
        assert_eq!(
            whole.to_json(&classes).unwrap(),
            r#"{"$class":"class A","m_n":5,"m_e":"YES","m_l":[],"m_b":{"$class":"class B","#
                .to_owned()
                + r#""m_c":{"b":0,"g":0,"r":0,"a":0}},"m_p":null,"m_r":["READ","EXEC"],"m_o":"NO"}"#
        );
        codec.encode(&whole, codec.header()).unwrap();
        let class = classes.find("C").unwrap();
        let error = Object::with_defaults(&classes, class).unwrap_err().to_string();
        assert_eq!(error, "wanted at most 128 (depth), found 129");
    }
}
