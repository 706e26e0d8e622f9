//! Objects in memory.

use worldwire_core::{Error, Limits, Result};

use super::visitor::{Bits, CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Classes, Tuple};

/// An object with all that is in it, flat: nodes in reading order and one buffer of bytes.
///
/// It refers to classes and properties by their indices, so whatever reads or writes it needs the
/// [`Classes`] that it was made with. Decode into an old one ([`Object::clear`]) to use its memory
/// again. Two are equal when they hold the same values in the same order.
#[derive(Clone, Debug)]
pub struct Object {
    nodes: Vec<Node>,
    data: Vec<u8>,
    /// The innermost container that is not complete; its size leads to the one around it.
    open: u32,
    most_nodes: u64,
}

/// Room for so many nodes and bytes is made when the outermost object begins.
const FIRST_NODES: usize = 64;
const FIRST_BYTES: usize = 64;
/// No node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The index of the property in the class of the object around it; [`NONE`] for elements, the
    /// outermost object, and properties that are unknown.
    property: u32,
    stored: Stored,
}

#[derive(Clone, Copy, Debug)]
enum Stored {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    F32(f32),
    F64(f64),
    Enum(u32),
    Flags(u32),
    Text(Range),
    WideText(Range),
    Tuple(Tuple, u32),
    /// The hash counts for unknown properties only.
    Raw {
        hash: u32,
        bits: u32,
        start: u32,
    },
    Unknown {
        tag: u32,
        bits: u32,
        start: u32,
    },
    /// `size` counts the nodes inside.
    Object {
        class: u32,
        size: u32,
        block: u8,
        kind: u8,
        template: u32,
    },
    List {
        size: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Range {
    start: u32,
    length: u32,
}

impl Default for Object {
    fn default() -> Self {
        Self::new()
    }
}

impl Object {
    /// Nothing yet; for at most [`Limits::nodes`] of the default limits.
    #[must_use]
    pub const fn new() -> Self {
        Self::within(&Limits::DEFAULT)
    }

    /// Nothing yet; for at most so many nodes as the limits say.
    #[must_use]
    pub const fn within(limits: &Limits) -> Self {
        Self { nodes: Vec::new(), data: Vec::new(), open: NONE, most_nodes: limits.nodes }
    }

    /// Forgets everything but keeps the memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.data.clear();
        self.open = NONE;
    }

    /// How many values, containers and objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The outermost value: an object, or null. `None` when there is nothing, or for classes that
    /// it was not made with.
    #[must_use]
    pub fn root<'a, 'c>(&'a self, classes: &'c Classes) -> Option<ValueRef<'a, 'c>> {
        ValueRef::new(self, classes, 0, Slot::Root)
    }

    /// Walks through everything in order.
    ///
    /// # Errors
    /// Those of the visitor; Value for classes that it was not made with.
    pub fn visit<'c, V: Visitor<'c>>(&self, classes: &'c Classes, visitor: &mut V) -> Result<()> {
        match self.root(classes) {
            Some(root) => root.visit(visitor),
            None if self.is_empty() => Err(Error::value("an object", "nothing")),
            None => Err(foreign()),
        }
    }

    /// Appends a node of so many bytes of data.
    #[inline]
    fn push(
        &mut self,
        slot: Slot<'_>,
        make: impl FnOnce(&mut Self) -> Result<Stored>,
    ) -> Result<()> {
        if self.nodes.len() as u64 >= self.most_nodes.min(u64::from(NONE)) {
            return Err(Error::limit("nodes", self.most_nodes, self.nodes.len() as u64 + 1));
        }
        let property = match slot {
            Slot::Property(property) => property.index(),
            Slot::Root | Slot::Element(_) | Slot::Unknown(_) => NONE,
        };
        let stored = make(self)?;
        self.nodes.push(Node { property, stored });
        Ok(())
    }

    /// Keeps bytes.
    #[inline]
    fn keep(&mut self, bytes: &[u8]) -> Result<Range> {
        let most = u64::from(u32::MAX);
        let end = self.data.len() as u64 + bytes.len() as u64;
        match (u32::try_from(self.data.len()), u32::try_from(bytes.len())) {
            (Ok(start), Ok(length)) if end <= most => {
                self.data.extend_from_slice(bytes);
                Ok(Range { start, length })
            }
            _ => Err(Error::limit("bytes of an object", most, end)),
        }
    }

    #[inline]
    fn begin(&mut self, slot: Slot<'_>, stored: impl FnOnce(u32) -> Stored) -> Result<()> {
        let open = self.open;
        let index = index(self.nodes.len());
        self.push(slot, |_| Ok(stored(open)))?;
        self.open = index;
        Ok(())
    }

    #[inline]
    fn end(&mut self) -> Result<()> {
        let count = index(self.nodes.len());
        let open = self.open;
        if let Some(Node { stored: Stored::Object { size, .. } | Stored::List { size }, .. }) =
            self.nodes.get_mut(open as usize)
        {
            self.open = *size;
            *size = count - open - 1;
        }
        Ok(())
    }

    #[inline]
    fn leaf(&self, stored: Stored) -> Option<Leaf<'_>> {
        let slice = |start: u32, length: usize| {
            self.data.get(start as usize..).and_then(|rest| rest.get(..length)).unwrap_or(&[])
        };
        let bits = |count: u32, start: u32| Bits {
            count,
            bytes: slice(start, count.div_ceil(8) as usize),
        };
        Some(match stored {
            Stored::Null => Leaf::Null,
            Stored::Bool(value) => Leaf::Bool(value),
            Stored::Signed(value) => Leaf::Signed(value),
            Stored::Unsigned(value) => Leaf::Unsigned(value),
            Stored::F32(value) => Leaf::F32(value),
            Stored::F64(value) => Leaf::F64(value),
            Stored::Enum(value) => Leaf::Enum(value),
            Stored::Flags(value) => Leaf::Flags(value),
            Stored::Text(range) => Leaf::Text(slice(range.start, range.length as usize)),
            Stored::WideText(range) => Leaf::WideText(slice(range.start, range.length as usize)),
            Stored::Tuple(tuple, start) => Leaf::Tuple(tuple, slice(start, tuple.size())),
            Stored::Raw { bits: count, start, .. } => Leaf::Raw(bits(count, start)),
            Stored::Unknown { tag, bits: count, start } => Leaf::Object(tag, bits(count, start)),
            Stored::Object { .. } | Stored::List { .. } => return None,
        })
    }

    /// Puts another object in the place of `count` nodes; `around` are the nodes around them.
    pub(super) fn splice(
        &mut self,
        at: usize,
        count: usize,
        around: &[usize],
        property: Option<u32>,
        new: &Self,
    ) -> Result<()> {
        if at.saturating_add(count) > self.nodes.len() {
            return Err(foreign());
        }
        let grown = self.nodes.len() as u64 + new.nodes.len() as u64;
        if grown > self.most_nodes {
            return Err(Error::limit("nodes", self.most_nodes, grown));
        }
        let base = self.keep(&new.data)?.start;
        let mut fresh = new.nodes.clone();
        for node in &mut fresh {
            node.stored.shift(base);
        }
        if let Some(first) = fresh.first_mut() {
            first.property = property.unwrap_or(NONE);
        }
        let added = index(fresh.len());
        self.nodes.splice(at..at + count, fresh);
        for index_around in around {
            if let Some(Node {
                stored: Stored::Object { size, .. } | Stored::List { size }, ..
            }) = self.nodes.get_mut(*index_around)
            {
                *size = *size + added - index(count);
            }
        }
        Ok(())
    }
}

impl Stored {
    /// Moves its bytes.
    fn shift(&mut self, base: u32) {
        match self {
            Self::Text(range) | Self::WideText(range) => range.start += base,
            Self::Tuple(_, start) | Self::Raw { start, .. } | Self::Unknown { start, .. } => {
                *start += base;
            }
            _ => {}
        }
    }
}

impl Node {
    /// It and all inside it.
    #[inline]
    fn count(&self) -> usize {
        match self.stored {
            Stored::Object { size, .. } | Stored::List { size } => size as usize + 1,
            _ => 1,
        }
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&Node, &Node)| {
            let stored = match (a.stored, b.stored) {
                (Stored::F32(a), Stored::F32(b)) => a.to_bits() == b.to_bits(),
                (Stored::F64(a), Stored::F64(b)) => a.to_bits() == b.to_bits(),
                (Stored::Raw { hash: a, .. }, Stored::Raw { hash: b, .. }) if a != b => false,
                (
                    Stored::Object { class: a, size: b, block: c, kind: d, template: e },
                    Stored::Object { class: f, size: g, block: h, kind: i, template: j },
                ) => (a, b, c, d, e) == (f, g, h, i, j),
                (Stored::List { size: a }, Stored::List { size: b }) => a == b,
                (a, b) => match (self.leaf(a), other.leaf(b)) {
                    (Some(a), Some(b)) => a == b,
                    _ => false,
                },
            };
            stored && a.property == b.property
        };
        self.nodes.len() == other.nodes.len() && self.nodes.iter().zip(&other.nodes).all(same)
    }
}

impl Eq for Object {}

impl<'c> Visitor<'c> for Object {
    #[inline]
    fn begin_object(&mut self, slot: Slot<'c>, class: &'c Class, id: CoreId) -> Result<()> {
        if self.nodes.is_empty() {
            // Most objects have no more in them than this.
            self.nodes.reserve((class.properties().len() + 1).min(FIRST_NODES));
            self.data.reserve(FIRST_BYTES);
        }
        let CoreId { block, kind, template } = id;
        let class = class.index();
        self.begin(slot, |size| Stored::Object { class, size, block, kind, template })
    }

    #[inline]
    fn end_object(&mut self) -> Result<()> {
        self.end()
    }

    #[inline]
    fn begin_list(&mut self, slot: Slot<'c>) -> Result<()> {
        self.begin(slot, |size| Stored::List { size })
    }

    #[inline]
    fn end_list(&mut self) -> Result<()> {
        self.end()
    }

    #[inline]
    fn value(&mut self, slot: Slot<'c>, value: Leaf<'_>) -> Result<()> {
        self.push(slot, |this| {
            Ok(match value {
                Leaf::Null => Stored::Null,
                Leaf::Bool(value) => Stored::Bool(value),
                Leaf::Signed(value) => Stored::Signed(value),
                Leaf::Unsigned(value) => Stored::Unsigned(value),
                Leaf::F32(value) => Stored::F32(value),
                Leaf::F64(value) => Stored::F64(value),
                Leaf::Enum(value) => Stored::Enum(value),
                Leaf::Flags(value) => Stored::Flags(value),
                Leaf::Text(bytes) => Stored::Text(this.keep(bytes)?),
                Leaf::WideText(bytes) => Stored::WideText(this.keep(bytes)?),
                Leaf::Tuple(tuple, bytes) => Stored::Tuple(tuple, this.keep(bytes)?.start),
                Leaf::Raw(bits) => {
                    let hash = if let Slot::Unknown(hash) = slot { hash } else { 0 };
                    let start = this.keep(&bits.to_vec())?.start;
                    Stored::Raw { hash, bits: bits.count, start }
                }
                Leaf::Object(tag, bits) => {
                    let start = this.keep(&bits.to_vec())?.start;
                    Stored::Unknown { tag, bits: bits.count, start }
                }
            })
        })
    }
}

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
    fn new(object: &'a Object, classes: &'c Classes, index: usize, slot: Slot<'c>) -> Option<Self> {
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
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// How many nodes it is.
    pub(super) fn count(&self) -> usize {
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

impl Node {
    #[inline]
    fn slot<'c>(&self, class: &'c Class) -> Option<Slot<'c>> {
        match (class.properties().get(self.property as usize), self.stored) {
            (Some(property), _) => Some(Slot::Property(property)),
            (None, Stored::Raw { hash, .. }) => Some(Slot::Unknown(hash)),
            _ => None,
        }
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

/// UTF-16 to text, if it is valid.
pub(super) fn wide_text(bytes: &[u8]) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    let text = char::decode_utf16(units).collect::<Result<String, _>>().ok();
    text.filter(|_| rest.is_empty())
}

#[cold]
pub(super) fn foreign() -> Error {
    Error::value("the classes that the object was made with", "others")
}

/// Counts that are bounded when nodes are added.
#[expect(clippy::cast_possible_truncation, reason = "fewer than 2^32 nodes")]
const fn index(count: usize) -> u32 {
    count as u32
}
