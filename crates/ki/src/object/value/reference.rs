//! Access to the values of objects.

use worldwire_core::Result;

use super::{Node, Object, Stored, foreign, wide_text};
use crate::object::visitor::{CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Classes};

/// A value of an [`Object`], with its class or property.
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

    /// The position of the value in its object.
    #[must_use]
    pub fn slot(&self) -> Slot<'c> {
        self.slot
    }

    /// The value's index among all nodes.
    pub(in crate::object) fn index(&self) -> usize {
        self.index
    }

    /// The number of nodes that the value takes.
    pub(in crate::object) fn count(&self) -> usize {
        self.node().map_or(0, Node::count)
    }

    /// The class of the value, if it is an object.
    #[must_use]
    pub fn class(&self) -> Option<&'c Class> {
        self.class
    }

    /// The value's ID in the CoreObject form.
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

    /// Whether the value is a container.
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(self.node().map(|node| node.stored), Some(Stored::List { .. }))
    }

    /// The value itself, if it is neither an object nor a container.
    #[must_use]
    pub fn leaf(&self) -> Option<Leaf<'a>> {
        self.object.leaf(self.node()?.stored)
    }

    /// A non-negative whole number, including the numbers of enumerations and sets of flags.
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

    /// A whole number.
    #[must_use]
    pub fn signed(&self) -> Option<i64> {
        match self.leaf()? {
            Leaf::Signed(number) => Some(number),
            _ => self.unsigned().and_then(|number| i64::try_from(number).ok()),
        }
    }

    /// The bytes of a string, valid or not; wide strings are UTF-16.
    #[must_use]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.leaf()? {
            Leaf::Text(bytes) | Leaf::WideText(bytes) => Some(bytes),
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

    /// The properties of an object or the elements of a container, in order. Properties whose index
    /// does not exist in the classes are skipped.
    #[must_use]
    pub fn children(&self) -> Children<'a, 'c> {
        self.children_from(0)
    }

    /// Those of [`Self::children`] from a [position](Children::position) on. The position is valid
    /// as long as the object is not changed; positions outside the value yield nothing or begin with
    /// its first child.
    #[must_use]
    pub fn children_from(&self, position: usize) -> Children<'a, 'c> {
        let count = self.node().map_or(0, |node| node.count());
        let index = position.max(self.index + 1);
        Children { of: *self, index, end: self.index + count }
    }

    /// The value of an object's property.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<Self> {
        let property = self.class?.property(name)?;
        let is_it =
            |child: &Self| child.slot.property().is_some_and(|p| p.index() == property.index());
        // Two properties of a class can have the same name.
        let is_named = |child: &Self| child.slot.property().is_some_and(|p| *p.name == *name);
        self.children().find(is_it).or_else(|| self.children().find(is_named))
    }

    /// An element of a container.
    #[must_use]
    pub fn element(&self, index: usize) -> Option<Self> {
        if self.is_list() { self.children().nth(index) } else { None }
    }

    /// Reports the value to a visitor in order, without recursion.
    ///
    /// # Errors
    /// Any error from the visitor; `Value` if the object was created with different classes.
    pub fn visit<V: Visitor<'c>>(&self, visitor: &mut V) -> Result<()> {
        let mut open = Vec::new();
        let mut outcome = self.traverse(visitor, &mut open);
        while let Some((_, what)) = open.pop() {
            let ended = match what {
                OpenNode::Object(_) => visitor.end_object(),
                OpenNode::List(_) => visitor.end_list(),
            };
            outcome = outcome.and(ended);
        }
        outcome
    }

    /// Reports the value, but leaves it to the caller to end the objects and containers that are
    /// still open.
    fn traverse<V: Visitor<'c>>(
        &self,
        visitor: &mut V,
        open: &mut Vec<(usize, OpenNode<'c>)>,
    ) -> Result<()> {
        let end = self.index + self.node().map_or(0, Node::count);
        for index in self.index..end {
            while open.last().is_some_and(|(end, _)| *end <= index) {
                match open.pop() {
                    Some((_, OpenNode::Object(_))) => visitor.end_object()?,
                    _ => visitor.end_list()?,
                }
            }
            let node = self.object.nodes.get(index).ok_or_else(foreign)?;
            let slot = match open.last() {
                None => self.slot,
                Some((_, OpenNode::List(slot))) => *slot,
                Some((_, OpenNode::Object(class))) => node.slot(class).ok_or_else(foreign)?,
            };
            match node.stored {
                Stored::Object { class, block, kind, template, .. } => {
                    let class = self.classes.get(class).ok_or_else(foreign)?;
                    visitor.begin_object(slot, class, CoreId { block, kind, template })?;
                    open.push((index + node.count(), OpenNode::Object(class)));
                }
                Stored::List { .. } => {
                    visitor.begin_list(slot)?;
                    let property = slot.property().ok_or_else(foreign)?;
                    open.push((index + node.count(), OpenNode::List(Slot::Element(property))));
                }
                leaf => visitor.value(slot, self.object.leaf(leaf).ok_or_else(foreign)?)?,
            }
        }
        Ok(())
    }
}

/// An open object or container: the class of the object, or the slot of the elements. Stored
/// together with its end.
enum OpenNode<'c> {
    Object(&'c Class),
    List(Slot<'c>),
}

/// An iterator over the parts of a [`ValueRef`].
#[derive(Clone, Debug)]
pub struct Children<'a, 'c> {
    of: ValueRef<'a, 'c>,
    index: usize,
    end: usize,
}

impl Children<'_, '_> {
    /// Where it continues, for [`ValueRef::children_from`].
    #[must_use]
    pub fn position(&self) -> usize {
        self.index
    }
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

#[cfg(test)]
mod tests {
    use worldwire_core::{Error, Result};

    use super::super::Object;
    use crate::object::{CoreId, Leaf, ObjectCodec, ObjectOptions, Slot, Visitor};
    use crate::schema::classes::{Class, Classes};

    fn classes() -> Classes {
        let list = br#"{"class A": {"hash": 7, "properties": {
            "m_i": {"type": "int", "id": 0, "flags": 24},
            "m_a": {"type": "class A*", "id": 1, "flags": 24, "container": "List"}}}}"#;
        Classes::of_json(list)
    }

    #[test]
    fn a_new_outermost_object_replaces_the_last() {
        let classes = classes();
        let codec = ObjectCodec::new(
            &classes,
            ObjectOptions { null_root: true, ..ObjectOptions::default() },
        );
        let bytes = |json: &str| {
            let object = Object::parse_json(&classes, json).unwrap();
            codec.encode(&object.complete(&classes).unwrap(), codec.header()).unwrap()
        };
        let mut object = Object::new();
        for json in [r#"{"$class":"A","m_i":1}"#, r#"{"$class":"A","m_i":2}"#] {
            codec.decode_all(&bytes(json), &mut object).unwrap();
        }
        let number = object.root(&classes).unwrap().property("m_i").unwrap().signed();
        assert_eq!((number, object.len()), (Some(2), 3));
        codec.decode_all(&[0; 4], &mut object).unwrap();
        assert_eq!((object.len(), object.to_json(&classes).unwrap()), (1, "null".to_owned()));
    }

    /// Counts open objects and containers, and fails at a given call.
    struct Failing(usize, i32);

    impl Failing {
        fn call(&mut self, open: i32) -> Result<()> {
            self.0 = self.0.checked_sub(1).ok_or_else(|| Error::value("rest", "work"))?;
            self.1 += open;
            Ok(())
        }
    }

    impl<'c> Visitor<'c> for Failing {
        fn begin_object(&mut self, _: Slot<'c>, _: &'c Class, _: CoreId) -> Result<()> {
            self.call(1)
        }

        fn end_object(&mut self) -> Result<()> {
            self.1 -= 1;
            self.call(0)
        }

        fn begin_list(&mut self, _: Slot<'c>) -> Result<()> {
            self.call(1)
        }

        fn end_list(&mut self) -> Result<()> {
            self.1 -= 1;
            self.call(0)
        }

        fn value(&mut self, _: Slot<'c>, _: Leaf<'_>) -> Result<()> {
            self.call(0)
        }
    }

    #[test]
    fn every_begin_has_its_end() {
        let classes = classes();
        let json = r#"{"$class":"A","m_a":[{"$class":"A","m_a":[null,{"$class":"A","m_i":1}]}]}"#;
        let object = Object::parse_json(&classes, json).unwrap();
        let mut failed = 0;
        for calls in 0..30 {
            let mut failing = Failing(calls, 0);
            failed += usize::from(object.visit(&classes, &mut failing).is_err());
            assert_eq!(failing.1, 0, "after {calls} calls");
        }
        assert!((5..30).contains(&failed), "{failed}");
    }
}
