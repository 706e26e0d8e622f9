//! Classes of game objects, from type lists written by wiztype, arrtype or the client itself.
//!
//! A client contains no description of its objects. Users dump type lists from a running client and
//! supply them. [`TypeLists`] reads the lists and compiles them to [`Classes`], which the codec of
//! [`object`](mod@crate::object) uses. Everything is resolved when the lists are compiled, and
//! nothing while bytes are read.
//!
//! ```
//! use worldwire_ki::schema::classes::{PropertyKind, TypeLists};
//!
//! let list = br#"{"version": 2, "classes": {"1": {"name": "class Leaf", "bases": [], "hash": 1,
//!     "properties": {"m_v": {"type": "unsigned int", "id": 0, "flags": 31,
//!     "container": "Static", "hash": 404989859}}}}}"#;
//! let mut lists = TypeLists::new();
//! lists.add("types.json", list)?;
//! let classes = lists.compile();
//! let leaf = classes.find("Leaf").expect("the class is in the list");
//! assert_eq!(leaf.properties()[0].kind(), PropertyKind::U32);
//! assert_eq!(classes.notes()[0].to_string(), "types.json: class Leaf: hash 1, computed 84938464");
//! # Ok::<(), worldwire_core::Error>(())
//! ```

#[cfg(feature = "file")]
pub(crate) mod cache;
mod diff;
mod explain;
mod kind;
mod list;
mod write;

use core::fmt;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use foldhash::fast::FixedState;
use worldwire_core::{Names, nearest};

#[cfg(feature = "file")]
pub use cache::ContentHash;
pub use diff::{ClassChange, ClassesDiff};
pub use explain::Explanation;
pub use kind::{Choices, Part, PropertyKind, Tuple};
pub use list::TypeLists;
pub use write::ListVersion;

pub(crate) use kind::parse_number;
#[cfg(feature = "fuzzing")]
pub(crate) use list::SMALL_BYTES;

/// All known classes, by their tags on the wire.
#[derive(Clone, Debug)]
pub struct Classes {
    classes: Vec<Class>,
    by_hash: HashMap<u32, u32, FixedState>,
    by_name: HashMap<Arc<str>, u32, FixedState>,
    /// Built on first use.
    names: OnceLock<Names>,
    notes: Vec<ClassNote>,
}

/// A class, including its inherited properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    index: u32,
    /// The full name, such as `class WizardCharacterBehavior`.
    pub name: Arc<str>,
    /// The class's tag on the wire. The list's value is used even if it differs from the hash of
    /// the name.
    pub hash: u32,
    /// The base classes, nearest first, without the keyword `class`.
    pub bases: Vec<Arc<str>>,
    /// The list's `singleton`.
    pub singleton: bool,
    /// The properties, sorted by ID.
    properties: Vec<Property>,
    /// Property hashes and their indices, sorted.
    by_hash: Vec<(u32, u32)>,
    by_name: NameOrder,
}

/// The indices of the properties, sorted by name when they are first used. They are derived from
/// the properties, so comparisons ignore them.
#[derive(Clone, Debug, Default)]
struct NameOrder(OnceLock<Box<[u32]>>);

impl PartialEq for NameOrder {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for NameOrder {}

/// A property of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    index: u32,
    kind: PropertyKind,
    class: Option<u32>,
    base: Option<u32>,
    /// The name, which may be a path, such as `m_id.m_full`.
    pub name: Arc<str>,
    /// The type, such as `class SharedPointer<class Leaf>`. For a container, the type of an
    /// element.
    pub type_name: Arc<str>,
    /// The position among the properties.
    pub id: u32,
    /// The offset in the memory of the dumped client.
    pub offset: u32,
    /// The flags, including unknown bits; see [`Property::flag_names`].
    pub flags: u32,
    /// Whether the property holds many values, and how the client stores them.
    pub container: Container,
    /// The list's `dynamic`: the property holds many values, whatever the container's name.
    pub dynamic: bool,
    /// The list's `singleton`.
    pub singleton: bool,
    /// The list's `pointer`.
    pub pointer: bool,
    /// The property's hash in deep streams. The list's value is used even if it differs from the
    /// computed one.
    pub hash: u32,
    /// The options, if the property is an enumeration or a set of flags.
    pub choices: Option<Arc<Choices>>,
}

/// How a client stores the values of a property.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Container {
    /// One value.
    Static,
    /// A list.
    List,
    /// A vector.
    Vector,
    /// A container that does not occur in any known list.
    Other(Arc<str>),
}

/// An irregularity in a type list that could be read anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassNote {
    /// The file name of the list.
    pub list: Arc<str>,
    /// The name of the class.
    pub class: Arc<str>,
    /// The irregularity.
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
    /// Indexes the classes. If several share a hash or a name, the last one wins.
    pub(crate) fn assemble(mut classes: Vec<Class>, notes: Vec<ClassNote>) -> Self {
        let mut by_hash = HashMap::with_capacity_and_hasher(classes.len(), FixedState::default());
        let mut by_name = HashMap::with_capacity_and_hasher(classes.len(), FixedState::default());
        for (index, class) in (0..).zip(&mut classes) {
            class.index = index;
            by_hash.insert(class.hash, index);
            by_name.insert(Arc::clone(&class.name), index);
        }
        let mut all = Self { classes, by_hash, by_name, names: OnceLock::new(), notes };
        let mut classes = core::mem::take(&mut all.classes);
        for property in classes.iter_mut().flat_map(|class| &mut class.properties) {
            if property.kind != PropertyKind::Object {
                continue;
            }
            property.class = all.by_name.get(pointed_at(&property.type_name)).copied();
            let base = property.choices.as_ref().and_then(|choices| choices.base_class.as_deref());
            property.base = base.and_then(|name| all.index_of(name)).or(property.class);
        }
        all.classes = classes;
        all
    }

    /// The classes of a list, for tests.
    #[cfg(test)]
    pub(crate) fn of_json(list: impl AsRef<[u8]>) -> Self {
        let mut lists = TypeLists::new();
        lists.add("list.json", list.as_ref()).expect("the list is valid");
        lists.compile()
    }

    /// The class with this tag.
    #[inline]
    #[must_use]
    pub fn by_hash(&self, hash: u32) -> Option<&Class> {
        self.get(*self.by_hash.get(&hash)?)
    }

    /// The class with this full name, such as `class Leaf`.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Class> {
        self.get(*self.by_name.get(name)?)
    }

    /// The index of the class with this name, with or without `class`.
    fn index_of(&self, name: &str) -> Option<u32> {
        let known = |name: &str| self.by_name.get(name).copied();
        let prefixed = |kind| known(&format!("{kind} {name}"));
        known(name).or_else(|| ["class", "struct"].into_iter().find_map(prefixed))
    }

    /// Finds a class by its name, with or without `class`, or by its hash, in decimal digits or,
    /// after `0x`, in hexadecimal digits.
    #[must_use]
    pub fn find(&self, what: &str) -> Option<&Class> {
        let prefixed = || ["class", "struct", "enum"].map(|kind| format!("{kind} {what}"));
        self.by_name(what)
            .or_else(|| prefixed().iter().find_map(|name| self.by_name(name)))
            .or_else(|| self.by_hash(parse_number(what)?))
    }

    /// The class name most similar to an unknown one. If the unknown name has no keyword such as
    /// `class`, keywords are ignored.
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

    /// The class with this index; see [`Class::index`].
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

    /// The names of all tags, for display in trees.
    #[must_use]
    pub fn names(&self) -> &Names {
        self.names.get_or_init(|| {
            let name = |class: &Class| (i64::from(class.hash), Box::from(&*class.name));
            Names::from_pairs(self.classes.iter().map(name))
        })
    }

    /// Notes beyond this number are dropped.
    pub const MAX_NOTES: usize = list::MAX_NOTES;

    /// Irregularities in the lists, at most [`Self::MAX_NOTES`].
    #[must_use]
    pub fn notes(&self) -> &[ClassNote] {
        &self.notes
    }

    /// The class with this name, with or without `class`, and all classes derived from it. Lists
    /// can name a base class that they do not contain.
    pub fn derived<'c>(&'c self, base: &str) -> impl Iterator<Item = &'c Class> {
        let found = self.find(base).map_or(base, |class| &class.name);
        let name = bare(found).to_owned();
        self.classes.iter().filter(move |class| {
            bare(&class.name) == name || class.bases.iter().any(|base| **base == *name)
        })
    }

    /// Whether a class is the same as another or derived from it.
    #[must_use]
    pub(crate) fn is_a(&self, class: &Class, base: &Class) -> bool {
        let name = bare(&base.name);
        class.hash == base.hash || class.bases.iter().any(|other| &**other == name)
    }
}

impl Class {
    pub(crate) fn new(name: Arc<str>, hash: u32, mut properties: Vec<Property>) -> Self {
        // Dumpers write IDs as signed numbers.
        let position = |property: &Property| property.id.cast_signed();
        if !properties.is_sorted_by_key(position) {
            properties.sort_by_cached_key(position);
        }
        for (index, property) in (0..).zip(&mut properties) {
            property.index = index;
        }
        let mut by_hash: Vec<_> = properties.iter().map(|p| (p.hash, p.index)).collect();
        by_hash.sort_unstable();
        by_hash.dedup_by_key(|entry| entry.0);
        let (bases, singleton, by_name) = (Vec::new(), false, NameOrder::default());
        Self { index: 0, name, hash, bases, singleton, properties, by_hash, by_name }
    }

    /// The class's index in [`Classes`], by which values refer to it.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The class's properties, sorted by ID, including inherited ones.
    #[inline]
    #[must_use]
    pub fn properties(&self) -> &[Property] {
        &self.properties
    }

    /// The property with this name.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Property> {
        let name_of = |index: &u32| self.properties.get(*index as usize).map(|p| &*p.name);
        let by_name = self.by_name.0.get_or_init(|| {
            let mut by_name: Box<[u32]> = self.properties.iter().map(Property::index).collect();
            by_name.sort_by_key(name_of);
            by_name
        });
        let at = by_name.partition_point(|index| name_of(index) < Some(name));
        let property = self.properties.get(*by_name.get(at)? as usize)?;
        (&*property.name == name).then_some(property)
    }

    /// The property with this hash.
    #[must_use]
    pub fn by_hash(&self, hash: u32) -> Option<&Property> {
        let at = self.by_hash.binary_search_by_key(&hash, |entry| entry.0).ok()?;
        self.properties.get(self.by_hash.get(at)?.1 as usize)
    }

    /// The property with this hash, if it is likely to be at this index or shortly after it: deep
    /// streams usually follow the order of the IDs.
    #[inline]
    #[must_use]
    pub(crate) fn by_hash_near(&self, hash: u32, index: usize) -> Option<&Property> {
        let near = self.properties.iter().skip(index).take(4).find(|p| p.hash == hash);
        near.or_else(|| self.by_hash(hash))
    }
}

impl Property {
    /// The property is deprecated.
    pub const DEPRECATED: u32 = 1 << 6;
    /// In shallow streams, one bit before the value shows whether the value changed.
    pub const DELTA_ENCODE: u32 = 1 << 8;
    /// The property is a set of flags, whatever its type.
    pub const BITS: u32 = 1 << 20;
    /// The property is an enumeration, whatever its type.
    pub const ENUM: u32 = 1 << 21;

    /// The names of all flags.
    #[must_use]
    pub fn flag_names() -> &'static Names {
        &FLAGS
    }

    /// The property's index in the class.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// How the property's value, or one element of it, is encoded.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> PropertyKind {
        self.kind
    }

    /// The index of the class named in the property's type, if known.
    #[inline]
    #[must_use]
    pub fn class(&self) -> Option<u32> {
        self.class
    }

    /// The index of the class of the property's objects, or of a base of their class, if known: the
    /// list's `__BASECLASS`, or else the class named in the type.
    #[inline]
    #[must_use]
    pub fn base(&self) -> Option<u32> {
        self.base
    }

    /// Whether the property has all of these flags.
    #[inline]
    #[must_use]
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// Whether the property holds many values.
    #[inline]
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.dynamic
    }
}

impl Container {
    /// The container's name in type lists.
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

/// The class that a type points to: `class Leaf` for `class SharedPointer<class Leaf>`.
fn pointed_at(type_name: &str) -> &str {
    let inner = type_name.strip_suffix('>');
    let inner = inner.and_then(|name| name.strip_prefix("class SharedPointer<"));
    let name = inner.unwrap_or(type_name);
    name.strip_suffix('*').unwrap_or(name).trim_end()
}

/// A class name as in `bases`, without its keyword.
fn bare(name: &str) -> &str {
    name.strip_prefix("class ").or_else(|| name.strip_prefix("struct ")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_classes_are_found_by_any_base() {
        let list = r#"{"class A": {"hash": 1, "bases": ["Root"], "properties": {}},
            "class B": {"hash": 2, "bases": ["A", "Root"], "properties": {}},
            "class C": {"hash": 3, "bases": [], "properties": {}},
            "enum A": {"hash": 4, "bases": [], "properties": {}}}"#;
        let classes = Classes::of_json(list);
        let derived = |name: &str| classes.derived(name).map(|it| it.hash).collect::<Vec<_>>();
        assert_eq!(derived("A"), [1, 2]);
        assert_eq!(derived("class A"), [1, 2]);
        assert_eq!(derived("2"), [2]);
        // The list does not contain this class itself.
        assert_eq!(derived("Root"), [1, 2]);
        assert_eq!(derived("Roo"), [0; 0]);
    }

    #[test]
    fn pointer_types_name_classes() {
        assert_eq!(pointed_at("class SharedPointer<class Leaf>"), "class Leaf");
        assert_eq!(pointed_at("class Leaf*"), "class Leaf");
        assert_eq!(pointed_at("class Leaf"), "class Leaf");
        assert_eq!(bare("class Leaf"), "Leaf");
    }
}
