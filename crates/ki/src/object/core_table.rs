//! The pairs that stand for classes in the CoreObject form.

use std::collections::BTreeMap;

/// Which class a pair of block and type stands for. The pairs change with the years; those that
/// are built in are known from public servers, others are the user's to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreTable {
    pairs: BTreeMap<(u8, u8), u32>,
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

    /// Adds a pair, or changes the class that it stands for. (0, 0) always stands for the class
    /// whose tag follows.
    pub fn insert(&mut self, block: u8, kind: u8, hash: u32) {
        self.pairs.insert((block, kind), hash);
    }

    /// The class tag of a pair.
    #[must_use]
    pub fn hash(&self, block: u8, kind: u8) -> Option<u32> {
        self.pairs.get(&(block, kind)).copied()
    }

    /// All pairs with their class tags, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u8, u32)> {
        self.pairs.iter().map(|(&(block, kind), &hash)| (block, kind, hash))
    }
}
