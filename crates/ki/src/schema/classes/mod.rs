//! Classes of game objects, from the type lists that wiztype and arrtype dump, or the client itself.
//!
//! A client contains no description of its objects. Users dump type lists from a running client and
//! supply them. [`TypeLists`] reads the lists and compiles them to [`Classes`], which the codec of
//! [`object`](mod@crate::object) uses. Everything is resolved at compile time, nothing while bytes
//! are read.
//!
//! ```
//! use worldwire_ki::schema::classes::{Kind, TypeLists};
//!
//! let list = br#"{"version": 2, "classes": {"1": {"name": "class Leaf", "bases": [], "hash": 1,
//!     "properties": {"m_v": {"type": "unsigned int", "id": 0, "flags": 31,
//!     "container": "Static", "hash": 404989859}}}}}"#;
//! let mut lists = TypeLists::new();
//! lists.add("types.json", list)?;
//! let classes = lists.compile();
//! let leaf = classes.find("Leaf").expect("it is in the list");
//! assert_eq!(leaf.properties()[0].kind(), Kind::U32);
//! assert_eq!(classes.notes()[0].to_string(), "types.json: class Leaf: hash 1, computed 84938464");
//! # Ok::<(), worldwire_core::Error>(())
//! ```

pub(crate) mod cache;
mod diff;
mod explain;
mod kind;
mod list;
mod write;

use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use worldwire_core::{Names, nearest};

pub use cache::ContentHash;
pub use diff::{ClassChange, ClassesDiff};
pub use explain::Explanation;
pub use kind::{Choices, Kind, Part, Tuple};
pub use list::TypeLists;
pub use write::ListVersion;

pub(crate) use kind::parse_number;

/// All classes that are known, by the tags that stand for them on the wire.
#[derive(Clone, Debug)]
pub struct Classes {
    classes: Vec<Class>,
    by_hash: HashMap<u32, u32, FixedState>,
    by_name: HashMap<Arc<str>, u32, FixedState>,
    names: Names,
    notes: Vec<ClassNote>,
}

/// One class, with the properties that it inherits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    index: u32,
    /// `class WizardCharacterBehavior`.
    pub name: Arc<str>,
    /// The tag that stands for it. That of the list counts, whatever the name would give.
    pub hash: u32,
    /// Its bases, the nearest first, without `class`.
    pub bases: Vec<Arc<str>>,
    /// What the list calls singleton.
    pub singleton: bool,
    /// Sorted by id.
    properties: Vec<Property>,
    /// Property hashes and their indices, sorted.
    by_hash: Vec<(u32, u32)>,
    /// The indices of the properties, sorted by name.
    by_name: Vec<u32>,
}

/// One property of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    index: u32,
    kind: Kind,
    class: Option<u32>,
    /// Its name, which may be a path: `m_id.m_full`.
    pub name: Arc<str>,
    /// The type, of an element if it is a container: `class SharedPointer<class Leaf>`.
    pub type_name: Arc<str>,
    /// Its place among the properties.
    pub id: u32,
    /// Where the dumped client keeps it in memory.
    pub offset: u32,
    /// [`Property::SAVE`] and others, unknown bits too; see [`Property::flag_names`].
    pub flags: u32,
    /// Whether it holds many values, and how the client keeps them.
    pub container: Container,
    /// What the list calls dynamic: it holds many values, whatever the container is called.
    pub dynamic: bool,
    /// What the list calls singleton.
    pub singleton: bool,
    /// What the list calls pointer.
    pub pointer: bool,
    /// The hash that stands for it in deep streams. That of the list counts.
    pub hash: u32,
    /// The options, if it is an enumeration or a set of flags.
    pub choices: Option<Arc<Choices>>,
}

/// How a client keeps the values of a property.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Container {
    /// One value.
    Static,
    /// A list.
    List,
    /// A vector.
    Vector,
    /// Something that no known list has.
    Other(Arc<str>),
}

/// Something odd in a type list that was read all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassNote {
    /// The list.
    pub list: Arc<str>,
    /// The class.
    pub class: Arc<str>,
    /// What is odd.
    pub text: String,
}

impl fmt::Display for ClassNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.list, self.class, self.text)
    }
}

/// The names of property flags.
static FLAGS: Names = Names::fixed(&[
    (1, "Save"),
    (1 << 1, "Copy"),
    (1 << 2, "Public"),
    (1 << 3, "Transmit"),
    (1 << 4, "PrivilegedTransmit"),
    (1 << 5, "Persist"),
    (1 << 6, "Deprecated"),
    (1 << 7, "NoScript"),
    (1 << 8, "DeltaEncode"),
    (1 << 9, "Blob"),
    (1 << 16, "NoEdit"),
    (1 << 17, "FileName"),
    (1 << 18, "Color"),
    (1 << 19, "ConstrainedValue"),
    (1 << 20, "Bits"),
    (1 << 21, "Enum"),
    (1 << 22, "Localized"),
    (1 << 23, "StringKey"),
    (1 << 24, "ObjectId"),
    (1 << 25, "ReferenceId"),
    (1 << 26, "Radians"),
    (1 << 27, "ObjectName"),
    (1 << 28, "HasBaseClass"),
    (1 << 29, "IsBehavior"),
    (1 << 30, "Asset"),
]);

impl Classes {
    /// Puts classes together; of several with one hash or name the last counts.
    pub(crate) fn assemble(mut classes: Vec<Class>, notes: Vec<ClassNote>) -> Self {
        let mut by_hash = HashMap::with_capacity_and_hasher(classes.len(), FixedState::default());
        let mut by_name = HashMap::with_capacity_and_hasher(classes.len(), FixedState::default());
        for (index, class) in (0..).zip(&mut classes) {
            class.index = index;
            by_hash.insert(class.hash, index);
            by_name.insert(Arc::clone(&class.name), index);
        }
        let names = classes.iter().map(|class| (i64::from(class.hash), Box::from(&*class.name)));
        let names = Names::from_pairs(names);
        let mut all = Self { classes, by_hash, by_name, names, notes };
        let mut classes = core::mem::take(&mut all.classes);
        for property in classes.iter_mut().flat_map(|class| &mut class.properties) {
            property.class = match property.kind {
                Kind::Object => all.by_name.get(pointed_at(&property.type_name)).copied(),
                _ => None,
            };
        }
        all.classes = classes;
        all
    }

    /// The class behind a tag.
    #[inline]
    #[must_use]
    pub fn by_hash(&self, hash: u32) -> Option<&Class> {
        self.get(*self.by_hash.get(&hash)?)
    }

    /// A class by its whole name: `class Leaf`.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Class> {
        self.get(*self.by_name.get(name)?)
    }

    /// A class by what people write: its name with or without `class`, or its hash in decimal or,
    /// with `0x`, hexadecimal digits.
    #[must_use]
    pub fn find(&self, what: &str) -> Option<&Class> {
        let prefixed = || ["class", "struct", "enum"].map(|kind| format!("{kind} {what}"));
        self.by_name(what)
            .or_else(|| prefixed().iter().find_map(|name| self.by_name(name)))
            .or_else(|| self.by_hash(parse_number(what)?))
    }

    /// The name most like one that is unknown. Where that says no kind, such as `class`, the kinds
    /// of the others do not count.
    #[must_use]
    pub fn nearest(&self, wrong: &str) -> Option<&str> {
        let names = || self.classes.iter().map(|class| &*class.name);
        if wrong.contains(' ') {
            return nearest(wrong, names());
        }
        let bare = |name: &'_ str| name.split_once(' ').map_or(0, |(kind, _)| kind.len() + 1);
        let near = nearest(wrong, names().map(|name| name.split_at(bare(name)).1))?;
        names().find(|name| name.split_at(bare(name)).1 == near)
    }

    /// The class of an index; see [`Class::index`].
    #[inline]
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&Class> {
        self.classes.get(index as usize)
    }

    /// All classes, in the order of the lists.
    #[must_use]
    pub fn all(&self) -> &[Class] {
        &self.classes
    }

    /// The names of all tags, for trees.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The most notes that are kept.
    pub const MAX_NOTES: usize = list::MAX_NOTES;

    /// What was odd in the lists: at most [`Self::MAX_NOTES`].
    #[must_use]
    pub fn notes(&self) -> &[ClassNote] {
        &self.notes
    }

    /// Whether objects of a class can stand where those of another are wanted.
    #[must_use]
    pub fn is_a(&self, class: &Class, base: &Class) -> bool {
        let name = bare(&base.name);
        class.hash == base.hash || class.bases.iter().any(|other| &**other == name)
    }
}

impl Class {
    pub(crate) fn new(name: Arc<str>, hash: u32, mut properties: Vec<Property>) -> Self {
        // Dumpers have ids as signed numbers.
        properties.sort_by_key(|property| property.id.cast_signed());
        for (index, property) in (0..).zip(&mut properties) {
            property.index = index;
        }
        let mut by_hash: Vec<_> = properties.iter().map(|p| (p.hash, p.index)).collect();
        by_hash.sort_unstable();
        by_hash.dedup_by_key(|entry| entry.0);
        let mut by_name: Vec<_> = properties.iter().map(Property::index).collect();
        by_name.sort_by_key(|index| properties.get(*index as usize).map(|property| &property.name));
        let (bases, singleton) = (Vec::new(), false);
        Self { index: 0, name, hash, bases, singleton, properties, by_hash, by_name }
    }

    /// Its index in [`Classes`], which is how values refer to it.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Its properties by id, inherited ones too.
    #[inline]
    #[must_use]
    pub fn properties(&self) -> &[Property] {
        &self.properties
    }

    /// A property by its name.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Property> {
        let name_of = |index: &u32| self.properties.get(*index as usize).map(|p| &*p.name);
        let at = self.by_name.partition_point(|index| name_of(index) < Some(name));
        let property = self.properties.get(*self.by_name.get(at)? as usize)?;
        (&*property.name == name).then_some(property)
    }

    /// A property by its hash.
    #[must_use]
    pub fn by_hash(&self, hash: u32) -> Option<&Property> {
        let at = self.by_hash.binary_search_by_key(&hash, |entry| entry.0).ok()?;
        self.properties.get(self.by_hash.get(at)?.1 as usize)
    }

    /// A property by its hash, when it is probably at an index or a little behind: deep streams
    /// mostly keep to the order of the ids.
    #[inline]
    #[must_use]
    pub(crate) fn by_hash_near(&self, hash: u32, index: usize) -> Option<&Property> {
        let near = self.properties.iter().skip(index).take(4).find(|p| p.hash == hash);
        near.or_else(|| self.by_hash(hash))
    }
}

impl Property {
    /// Is written to files.
    pub const SAVE: u32 = 1;
    /// Is sent to everybody.
    pub const PUBLIC: u32 = 1 << 2;
    /// Is sent.
    pub const TRANSMIT: u32 = 1 << 3;
    /// Is sent to its owner.
    pub const PRIVILEGED_TRANSMIT: u32 = 1 << 4;
    /// Is out of use.
    pub const DEPRECATED: u32 = 1 << 6;
    /// Stands behind one bit in shallow streams: whether it changed.
    pub const DELTA_ENCODE: u32 = 1 << 8;
    /// Is a set of flags, whatever its type.
    pub const BITS: u32 = 1 << 20;
    /// Is an enumeration, whatever its type.
    pub const ENUM: u32 = 1 << 21;

    /// The names of all flags.
    #[must_use]
    pub fn flag_names() -> &'static Names {
        &FLAGS
    }

    /// Its index in the class.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// How its value, or one element, is written.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The index of the class that its type names, if it is known.
    #[inline]
    #[must_use]
    pub fn class(&self) -> Option<u32> {
        self.class
    }

    /// Whether it has all of these flags.
    #[inline]
    #[must_use]
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// Whether it holds many values.
    #[inline]
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.dynamic
    }
}

impl Container {
    /// The name in type lists.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Static => "Static",
            Self::List => "List",
            Self::Vector => "Vector",
            Self::Other(name) => name,
        }
    }

    pub(crate) fn parse(name: Arc<str>) -> Self {
        match &*name {
            "Static" => Self::Static,
            "List" => Self::List,
            "Vector" => Self::Vector,
            _ => Self::Other(name),
        }
    }
}

/// The class that a type points at: `class Leaf` of `class SharedPointer<class Leaf>`.
fn pointed_at(type_name: &str) -> &str {
    let inner = type_name.strip_suffix('>');
    let inner = inner.and_then(|name| name.strip_prefix("class SharedPointer<"));
    let name = inner.unwrap_or(type_name);
    name.strip_suffix('*').unwrap_or(name).trim_end()
}

/// A class name as `bases` have it.
fn bare(name: &str) -> &str {
    name.strip_prefix("class ").or_else(|| name.strip_prefix("struct ")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_lead_to_classes() {
        assert_eq!(pointed_at("class SharedPointer<class Leaf>"), "class Leaf");
        assert_eq!(pointed_at("class Leaf*"), "class Leaf");
        assert_eq!(pointed_at("class Leaf"), "class Leaf");
        assert_eq!(bare("class Leaf"), "Leaf");
    }
}
