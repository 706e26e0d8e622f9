//! Guesses the class of an unknown goobj from the bytes of its create.

use std::collections::HashSet;

use super::class::{Class, ClassId};

/// The maximum number of shapes to try. The known classes have about 50.
pub const MAX_SHAPES: usize = 256;

/// One class for each sequence of sizes. Classes with equal sizes decode the same bytes in the same
/// way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shapes(Vec<ClassId>);

impl Shapes {
    pub(super) fn new<'c>(classes: impl Iterator<Item = (ClassId, &'c Class)>) -> Self {
        let mut shapes = Vec::new();
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        for (id, class) in classes {
            let sizes = class.create().slots().iter().map(|slot| slot.kind().size()).collect();
            if shapes.len() < MAX_SHAPES && seen.insert(sizes) {
                shapes.push(id);
            }
        }
        Self(shapes)
    }

    /// The first class of each shape.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ClassId> {
        self.0.iter().copied()
    }
}
