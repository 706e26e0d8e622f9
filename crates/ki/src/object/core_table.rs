//! The pairs that stand for classes in the CoreObject form.

use std::collections::BTreeMap;

use worldwire_core::json::{Json, expected, integer};
use worldwire_core::{Error, Result};

use crate::schema::classes::Classes;

/// A class that a pair stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoreClass {
    /// By its tag.
    Tag(u32),
    /// By its name, with or without `class`. Its tag is that of the type list, as the two games
    /// compute tags in different ways.
    Name(Box<str>),
}

impl CoreClass {
    /// The tag of the class. `None` for a name that is in no list.
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

/// Which class a pair of block and type stands for. The pairs change with the years; those that
/// are built in are known from public servers, others are the user's to add.
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
    /// The pairs that are built in.
    fn default() -> Self {
        let mut table = Self::empty();
        for (block, kind, hash) in KNOWN {
            table.insert(block, kind, hash);
        }
        table
    }
}

impl CoreTable {
    /// No pairs: only ordinary classes.
    #[must_use]
    pub const fn empty() -> Self {
        Self { pairs: BTreeMap::new() }
    }

    /// Adds a pair, or changes the class that it stands for: by its tag, or by a name that need not
    /// be known yet. (0, 0) always stands for the class whose tag follows.
    pub fn insert(&mut self, block: u8, kind: u8, class: impl Into<CoreClass>) {
        self.pairs.insert((block, kind), class.into());
    }

    /// The class of a pair.
    #[must_use]
    pub fn get(&self, block: u8, kind: u8) -> Option<&CoreClass> {
        self.pairs.get(&(block, kind))
    }

    /// All pairs with their classes, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u8, &CoreClass)> {
        self.pairs.iter().map(|(&(block, kind), class)| (block, kind, class))
    }

    /// Adds the pairs of a JSON text: a list of `[block, type, class]`, the class by its name or
    /// its tag.
    ///
    /// # Errors
    /// Value, for another JSON, and for a class that is not known by its name.
    pub fn add_json(&mut self, classes: &Classes, json: &str) -> Result<()> {
        let json: Json = serde_json::from_str(json)
            .map_err(|error| Error::value("a list of pairs", error.to_string()))?;
        let Json::Array(rows) = &json else { return Err(expected("a list of pairs", &json)) };
        for (index, row) in rows.iter().enumerate() {
            let added = self.add_row(classes, row);
            added.map_err(|error| error.inside_item(index))?;
        }
        Ok(())
    }

    fn add_row(&mut self, classes: &Classes, row: &Json) -> Result<()> {
        let columns = row.as_array().unwrap_or_default();
        let [block, kind, class] = columns else {
            return Err(expected("[block, type, class]", row));
        };
        let block = integer(block, "a number below 256")?;
        let kind = integer(kind, "a number below 256")?;
        let known = class.as_str().and_then(|name| classes.find(name));
        let hash = match known {
            Some(class) => class.hash,
            None => integer(class, "a known class or its tag")?,
        };
        self.insert(block, kind, hash);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::classes::TypeLists;

    #[test]
    fn pairs_are_added_by_name_and_by_tag() {
        let mut lists = TypeLists::new();
        lists.add("list.json", br#"{"class A": {"hash": 7, "properties": {}}}"#).unwrap();
        let classes = lists.compile();
        let mut table = CoreTable::default();
        assert_eq!(table.iter().count(), KNOWN.len());
        table.insert(1, 4, "A");
        table.insert(1, 5, "B");
        table.add_json(&classes, r#"[[1, 2, "A"], [1, 3, 99], [2, 2, "class A"]]"#).unwrap();
        let tag = |(block, kind)| table.get(block, kind).and_then(|class| class.tag(&classes));
        assert_eq!([(1, 2), (1, 3), (2, 2), (1, 4)].map(tag), [7, 99, 7, 7].map(Some));
        assert_eq!(tag((1, 5)), None);
        for wrong in ["{}", "[[1, 2]]", "[[256, 2, 7]]", "[[1, 2, \"B\"]]", "["] {
            assert!(table.add_json(&classes, wrong).is_err(), "{wrong}");
        }
    }
}
