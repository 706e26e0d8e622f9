//! The block and type pairs that represent classes in the CoreObject form.

use std::collections::BTreeMap;

use crate::schema::classes::Classes;

/// The class of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoreClass {
    /// A class given by its tag.
    Tag(u32),
    /// A class given by its name, with or without `class`. The tag is taken from the type list,
    /// because the two games compute tags differently.
    Name(Box<str>),
}

impl CoreClass {
    /// The tag of the class; `None` if no list contains the name.
    #[must_use]
    pub fn tag(&self, classes: &Classes) -> Option<u32> {
        match self {
            Self::Tag(tag) => Some(*tag),
            Self::Name(name) => classes.find(name).map(|class| class.hash),
        }
    }
}

impl From<u32> for CoreClass {
    fn from(tag: u32) -> Self {
        Self::Tag(tag)
    }
}

impl From<&str> for CoreClass {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}

/// Maps pairs of block and type to classes. The pairs have changed over the years: the built-in
/// ones are known from public servers, and users can add others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreTable {
    pairs: BTreeMap<(u8, u8), CoreClass>,
}

/// Block, type and class tag.
const KNOWN: [(u8, u8, u32); 10] = [
    (2, 2, 350_837_933),
    (5, 2, 350_837_933),
    (9, 9, 350_837_933),
    (104, 2, 766_500_222),
    (106, 2, 1_167_581_154),
    (108, 2, 2_109_552_587),
    (115, 9, 1_653_772_158),
    (131, 131, 958_775_582),
    (132, 9, 398_229_815),
    (148, 9, 1_748_894_102),
];

impl Default for CoreTable {
    /// The built-in pairs.
    fn default() -> Self {
        let mut table = Self::empty();
        for (block, kind, hash) in KNOWN {
            table.insert(block, kind, hash);
        }
        table
    }
}

impl CoreTable {
    /// A table without pairs: only ordinary class tags can be decoded.
    #[must_use]
    pub const fn empty() -> Self {
        Self { pairs: BTreeMap::new() }
    }

    /// Adds a pair or changes its class, given by its tag or by a name, which need not be known
    /// yet. The pair (0, 0) always means that a class tag follows.
    pub fn insert(&mut self, block: u8, kind: u8, class: impl Into<CoreClass>) {
        self.pairs.insert((block, kind), class.into());
    }

    /// The class of a pair.
    #[must_use]
    pub fn get(&self, block: u8, kind: u8) -> Option<&CoreClass> {
        self.pairs.get(&(block, kind))
    }

    /// All pairs and their classes, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u8, &CoreClass)> {
        self.pairs.iter().map(|(&(block, kind), class)| (block, kind, class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_added_by_name_or_tag() {
        let classes = Classes::of_json(br#"{"class A": {"hash": 7, "properties": {}}}"#);
        let mut table = CoreTable::default();
        assert_eq!(table.iter().count(), KNOWN.len());
        table.insert(1, 4, "A");
        table.insert(1, 5, "B");
        table.insert(1, 3, 99);
        table.insert(2, 2, "class A");
        let tag = |(block, kind)| table.get(block, kind).and_then(|class| class.tag(&classes));
        assert_eq!([(1, 3), (2, 2), (1, 4)].map(tag), [99, 7, 7].map(Some));
        assert_eq!(tag((1, 5)), None);
    }
}
