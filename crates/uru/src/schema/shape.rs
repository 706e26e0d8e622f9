//! How blobs count the variables of a descriptor.

use core::fmt;

use worldwire_core::nearest;

use super::definition::{Definition, ElementType, Variable};
use super::types::fold;

/// How the variables of a descriptor are counted in blobs: simple and nested ones apart.
#[derive(Clone, Copy)]
pub struct Shape<'s> {
    arena: &'s [Layout],
    index: usize,
}

impl<'s> Shape<'s> {
    pub(super) fn new(arena: &'s [Layout], index: usize) -> Option<Self> {
        (index < arena.len()).then_some(Self { arena, index })
    }

    /// The shape at a place that is known to be one of the arena.
    pub(super) const fn at(arena: &'s [Layout], index: usize) -> Self {
        Self { arena, index }
    }

    /// The place in the arena.
    pub(super) const fn index(self) -> usize {
        self.index
    }

    fn layout(self) -> &'s Layout {
        // Indices are only ever made of the arena they go with.
        &self.arena[self.index]
    }

    /// The descriptor.
    #[must_use]
    pub fn definition(self) -> &'s Definition {
        &self.layout().definition
    }

    /// How many simple variables there are.
    #[must_use]
    pub fn simple_count(self) -> usize {
        self.layout().simple.len()
    }

    /// How many nested variables there are.
    #[must_use]
    pub fn nested_count(self) -> usize {
        self.layout().nested.len()
    }

    /// How many variables there are in all.
    #[must_use]
    pub fn count(self) -> usize {
        self.definition().variables().len()
    }

    /// A variable by its index among the simple ones.
    #[must_use]
    pub fn simple(self, index: usize) -> Option<&'s Variable> {
        let at = self.layout().simple.get(index)?;
        self.definition().variables().get(*at)
    }

    /// A variable by its index among the nested ones, and the shape of its records.
    #[must_use]
    pub fn nested(self, index: usize) -> Option<(&'s Variable, Self)> {
        let (at, target) = self.layout().nested.get(index)?;
        Some((self.definition().variables().get(*at)?, Self::new(self.arena, *target)?))
    }

    /// Where a variable is, by its name in any case.
    pub(crate) fn index_of(self, name: &str) -> Option<VariableIndex> {
        self.index_of_folded(&fold(name))
    }

    pub(crate) fn index_of_folded(self, folded: &str) -> Option<VariableIndex> {
        let names = &self.layout().names;
        let at = names.binary_search_by(|(name, _)| (**name).cmp(folded)).ok()?;
        names.get(at).map(|(_, place)| *place)
    }

    /// The name of a variable that looks like this one.
    pub(crate) fn nearest(self, name: &str) -> Option<&'s str> {
        nearest(name, self.definition().variables().iter().map(Variable::label))
    }
}

impl fmt::Debug for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let definition = self.definition();
        write!(f, "Shape({} {})", definition.name(), definition.version())
    }
}

/// What a blob needs to know of a descriptor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    definition: Definition,
    /// Which variables are simple, in order.
    simple: Box<[usize]>,
    /// Which variables are nested, and the layout of their records.
    nested: Box<[(usize, usize)]>,
    /// Folded names of all variables, ascending, with where they are.
    names: Box<[(Box<str>, VariableIndex)]>,
}

/// Where a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableIndex {
    /// The index among the simple variables.
    Simple(usize),
    /// The index among the nested variables.
    Nested(usize),
}

impl Layout {
    /// The layout of a definition, with the places of the descriptors that its nested variables refer
    /// to.
    pub(super) fn new(definition: Definition, targets: Vec<usize>) -> Self {
        let (mut simple, mut nested, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let mut targets = targets.into_iter();
        for (at, variable) in definition.variables.iter().enumerate() {
            let place = match variable.kind {
                ElementType::Simple(_) => {
                    simple.push(at);
                    VariableIndex::Simple(simple.len() - 1)
                }
                ElementType::Nested(_) => {
                    let Some(target) = targets.next() else { continue };
                    nested.push((at, target));
                    VariableIndex::Nested(nested.len() - 1)
                }
            };
            names.push((variable.folded.clone(), place));
        }
        names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let (simple, nested, names) = (simple.into(), nested.into(), names.into());
        Self { definition, simple, nested, names }
    }
}
