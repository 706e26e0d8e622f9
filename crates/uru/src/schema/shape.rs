//! The numbering of a descriptor's variables in blobs.

use core::fmt;

use worldwire_core::nearest;

use super::definition::{Definition, ElementType, Variable};
use super::types::fold;

/// The layout of a descriptor in blobs, which number simple and nested variables separately.
#[derive(Clone, Copy)]
pub struct Shape<'s> {
    arena: &'s [DescriptorLayout],
    index: usize,
}

impl<'s> Shape<'s> {
    pub(super) fn new(arena: &'s [DescriptorLayout], index: usize) -> Option<Self> {
        (index < arena.len()).then_some(Self { arena, index })
    }

    /// The shape at an index that is known to be in the arena.
    pub(super) const fn at(arena: &'s [DescriptorLayout], index: usize) -> Self {
        Self { arena, index }
    }

    /// The index in the arena.
    pub(super) const fn index(self) -> usize {
        self.index
    }

    fn layout(self) -> &'s DescriptorLayout {
        // Indices are only created together with their arena.
        &self.arena[self.index]
    }

    /// The descriptor.
    #[must_use]
    pub fn definition(self) -> &'s Definition {
        &self.layout().definition
    }

    /// The number of simple variables.
    #[must_use]
    pub fn simple_count(self) -> usize {
        self.layout().simple.len()
    }

    /// The number of nested variables.
    #[must_use]
    pub fn nested_count(self) -> usize {
        self.layout().nested.len()
    }

    /// The total number of variables.
    #[must_use]
    pub fn count(self) -> usize {
        self.definition().variables().len()
    }

    /// The variable with this index among the simple ones.
    #[must_use]
    pub fn simple(self, index: usize) -> Option<&'s Variable> {
        let at = self.layout().simple.get(index)?;
        self.definition().variables().get(*at)
    }

    /// The variable with this index among the nested ones and the shape of its records.
    #[must_use]
    pub fn nested(self, index: usize) -> Option<(&'s Variable, Self)> {
        let (at, target) = self.layout().nested.get(index)?;
        Some((self.definition().variables().get(*at)?, Self::new(self.arena, *target)?))
    }

    /// Finds a variable by its name, ignoring case.
    pub(crate) fn index_of(self, name: &str) -> Option<VariableIndex> {
        self.index_of_folded(&fold(name))
    }

    pub(crate) fn index_of_folded(self, folded: &str) -> Option<VariableIndex> {
        let names = &self.layout().names;
        let at = names.binary_search_by(|(name, _)| (**name).cmp(folded)).ok()?;
        names.get(at).map(|(_, place)| *place)
    }

    /// The variable name most similar to this one.
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

/// The variables of a descriptor, arranged for blobs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DescriptorLayout {
    definition: Definition,
    /// The positions of the simple variables, in order.
    simple: Box<[usize]>,
    /// The positions of the nested variables and the layouts of their records.
    nested: Box<[(usize, usize)]>,
    /// Case-folded names of all variables, ascending, with their indices.
    names: Box<[(Box<str>, VariableIndex)]>,
}

/// The index of a variable in blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableIndex {
    /// The index among the simple variables.
    Simple(usize),
    /// The index among the nested variables.
    Nested(usize),
}

impl DescriptorLayout {
    /// Lays out a definition. `targets` are the indices of the descriptors that its nested
    /// variables refer to.
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
