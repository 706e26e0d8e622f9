//! The values of objects, and walks through them.

use worldwire_core::Result;

use super::{Node, Object, Stored, foreign, wide_text};
use crate::object::visitor::{CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Classes};

/// A value of an [`Object`], with what the classes say about it.
#[derive(Clone, Copy, Debug)]
pub struct ValueRef<'a, 'c> {
    object: &'a Object,
    classes: &'c Classes,
    index: usize,
    slot: Slot<'c>,
    class: Option<&'c Class>,
}

impl<'a, 'c> ValueRef<'a, 'c> {
    pub(super) fn new(
        object: &'a Object,
        classes: &'c Classes,
        index: usize,
        slot: Slot<'c>,
    ) -> Option<Self> {
        let class = match object.nodes.get(index)?.stored {
            Stored::Object { class, .. } => Some(classes.get(class)?),
            _ => None,
        };
        Some(Self { object, classes, index, slot, class })
    }

    fn node(&self) -> Option<&'a Node> {
        self.object.nodes.get(self.index)
    }

    /// Where it stands.
    #[must_use]
    pub fn slot(&self) -> Slot<'c> {
        self.slot
    }

    /// Its index among all nodes.
    pub(in crate::object) fn index(&self) -> usize {
        self.index
    }

    /// How many nodes it is.
    pub(in crate::object) fn count(&self) -> usize {
        self.node().map_or(0, Node::count)
    }

    /// Its class, if it is an object.
    #[must_use]
    pub fn class(&self) -> Option<&'c Class> {
        self.class
    }

    /// What stands in front of it in the CoreObject form.
    #[must_use]
    pub fn core_id(&self) -> CoreId {
        match self.node().map(|node| node.stored) {
            Some(Stored::Object { block, kind, template, .. }) => CoreId { block, kind, template },
            Some(Stored::Unknown { .. }) => self.unknown_id(),
            _ => CoreId::default(),
        }
    }

    #[cold]
    fn unknown_id(&self) -> CoreId {
        match self.leaf() {
            Some(Leaf::Object { block, kind, template, .. }) => CoreId { block, kind, template },
            _ => CoreId::default(),
        }
    }

    /// Whether it is a container.
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(self.node().map(|node| node.stored), Some(Stored::List { .. }))
    }

    /// The value, if it is neither an object nor a container.
    #[must_use]
    pub fn leaf(&self) -> Option<Leaf<'a>> {
        self.object.leaf(self.node()?.stored)
    }

    /// A whole number that is not negative: of an enumeration or a set of flags, too.
    #[must_use]
    pub fn unsigned(&self) -> Option<u64> {
        match self.leaf()? {
            Leaf::Unsigned(number) => Some(number),
            Leaf::Signed(number) => u64::try_from(number).ok(),
            Leaf::Enum(number) | Leaf::Flags(number) => Some(u64::from(number)),
            Leaf::Bool(value) => Some(u64::from(value)),
            _ => None,
        }
    }

    /// The text of a string, if it is valid.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match self.leaf()? {
            Leaf::Text(bytes) => core::str::from_utf8(bytes).ok().map(str::to_owned),
            Leaf::WideText(bytes) => wide_text(bytes),
            _ => None,
        }
    }

    /// The properties of an object or the elements of a container, in their order. Indices that the
    /// classes do not know are left out.
    #[must_use]
    pub fn children(&self) -> Children<'a, 'c> {
        let count = self.node().map_or(0, |node| node.count());
        Children { of: *self, index: self.index + 1, end: self.index + count }
    }

    /// The value of a property of an object.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<Self> {
        let is_it = |child: &Self| child.slot.property().is_some_and(|p| &*p.name == name);
        self.class?;
        self.children().find(is_it)
    }

    /// An element of a container.
    #[must_use]
    pub fn element(&self, index: usize) -> Option<Self> {
        if self.is_list() { self.children().nth(index) } else { None }
    }

    /// Walks through it in order, without recursion.
    ///
    /// # Errors
    /// Those of the visitor; Value for classes that it was not made with.
    pub fn visit<V: Visitor<'c>>(&self, visitor: &mut V) -> Result<()> {
        // Containers that are open, and where they end; beneath an object its class, else the
        // property of the container.
        enum In<'c> {
            Object(&'c Class),
            List(Slot<'c>),
        }
        let end = self.index + self.node().map_or(0, Node::count);
        let mut open: Vec<(usize, In<'c>)> = Vec::new();
        for index in self.index..end {
            while open.last().is_some_and(|(end, _)| *end <= index) {
                match open.pop() {
                    Some((_, In::Object(_))) => visitor.end_object()?,
                    _ => visitor.end_list()?,
                }
            }
            let node = self.object.nodes.get(index).ok_or_else(foreign)?;
            let slot = match open.last() {
                None => self.slot,
                Some((_, In::List(slot))) => *slot,
                Some((_, In::Object(class))) => node.slot(class).ok_or_else(foreign)?,
            };
            match node.stored {
                Stored::Object { class, block, kind, template, .. } => {
                    let class = self.classes.get(class).ok_or_else(foreign)?;
                    visitor.begin_object(slot, class, CoreId { block, kind, template })?;
                    open.push((index + node.count(), In::Object(class)));
                }
                Stored::List { .. } => {
                    visitor.begin_list(slot)?;
                    let property = slot.property().ok_or_else(foreign)?;
                    open.push((index + node.count(), In::List(Slot::Element(property))));
                }
                leaf => visitor.value(slot, self.object.leaf(leaf).ok_or_else(foreign)?)?,
            }
        }
        while let Some((_, what)) = open.pop() {
            match what {
                In::Object(_) => visitor.end_object()?,
                In::List(_) => visitor.end_list()?,
            }
        }
        Ok(())
    }
}

/// The parts of a [`ValueRef`].
#[derive(Clone, Debug)]
pub struct Children<'a, 'c> {
    of: ValueRef<'a, 'c>,
    index: usize,
    end: usize,
}

impl<'a, 'c> Iterator for Children<'a, 'c> {
    type Item = ValueRef<'a, 'c>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while self.index < self.end {
            let index = self.index;
            let node = self.of.object.nodes.get(index)?;
            self.index += node.count();
            let slot = match self.of.class {
                Some(class) => node.slot(class),
                None => self.of.slot.property().map(Slot::Element),
            };
            let found =
                slot.and_then(|slot| ValueRef::new(self.of.object, self.of.classes, index, slot));
            if found.is_some() {
                return found;
            }
        }
        None
    }
}
