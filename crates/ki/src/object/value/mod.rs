//! Objects in memory.

mod reference;

use worldwire_core::{Error, Limits, Result};

pub use reference::{Children, ValueRef};

use super::visitor::{Bits, CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Classes, Tuple};

/// An object with all its contents in flat memory: nodes in reading order and one buffer of bytes.
///
/// It refers to classes and properties by index, so every access needs the [`Classes`] with which
/// it was created; using different classes is detected only if they lack an index. Decoding into an
/// existing object replaces its contents and reuses its memory. Two objects are equal if they hold
/// the same values in the same order.
#[derive(Clone, Debug)]
pub struct Object {
    nodes: Vec<Node>,
    data: Vec<u8>,
    /// The number of data bytes that belong to removed values.
    unused: usize,
    /// The innermost open container. Until it is complete, its size field links to the enclosing
    /// one.
    open: u32,
    max_nodes: u64,
}

/// The initial capacity, in nodes and in bytes.
const INITIAL_CAPACITY: usize = 64;
const FIRST_BYTES: usize = 64;
/// Compacting is not worthwhile for at most this many unused bytes.
const MAX_UNUSED: usize = 1 << 12;
/// The size of the template before the bytes of an unknown object.
const TEMPLATE_BYTES: usize = 4;
/// The maximum number of nodes that indices can address.
const MAX_NODES: u64 = u32::MAX as u64 - 1;
const NONE: u32 = u32::MAX;
/// Used in place of a property index for the leftovers of the object.
const REST: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The index of the property in the class of the enclosing object; [`REST`] for leftovers;
    /// [`NONE`] for elements, the outermost object, and unknown properties.
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
    /// The hash is used only for unknown properties.
    Raw {
        hash: u32,
        bits: u32,
        start: u32,
    },
    /// The bytes begin with the template.
    Unknown {
        tag: u32,
        bits: u32,
        start: u32,
        block: u8,
        kind: u8,
    },
    /// `size` is the number of nodes inside the object or container.
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
    /// An empty object for at most as many nodes as [`Limits::nodes`] allows by default.
    #[must_use]
    pub const fn new() -> Self {
        Self::within(&Limits::DEFAULT)
    }

    /// An empty object for at most as many nodes as [`Limits::nodes`] of these limits allows.
    #[must_use]
    pub const fn within(limits: &Limits) -> Self {
        let max_nodes = if limits.nodes < MAX_NODES { limits.nodes } else { MAX_NODES };
        Self { nodes: Vec::new(), data: Vec::new(), unused: 0, open: NONE, max_nodes }
    }

    /// An empty object for the contents of text in memory, whose length bounds the object.
    pub(in crate::object) const fn of_text() -> Self {
        Self { nodes: Vec::new(), data: Vec::new(), unused: 0, open: NONE, max_nodes: MAX_NODES }
    }

    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.data.clear();
        (self.unused, self.open) = (0, NONE);
    }

    /// The number of values, containers and objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the object is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The outermost value: an object or null. `None` if it is empty or was created with different
    /// classes.
    #[must_use]
    pub fn root<'a, 'c>(&'a self, classes: &'c Classes) -> Option<ValueRef<'a, 'c>> {
        ValueRef::new(self, classes, 0, Slot::Root)
    }

    /// The outermost value, as the value of a property.
    pub(in crate::object) fn as_value<'a, 'c>(
        &'a self,
        classes: &'c Classes,
        slot: Slot<'c>,
    ) -> Result<ValueRef<'a, 'c>> {
        ValueRef::new(self, classes, 0, slot).ok_or_else(foreign)
    }

    /// Like [`Self::root`], but returns an error if there is no outermost value.
    pub(in crate::object) fn known_root<'a, 'c>(
        &'a self,
        classes: &'c Classes,
    ) -> Result<ValueRef<'a, 'c>> {
        self.root(classes).ok_or_else(|| match self.is_empty() {
            true => Error::invalid("there is no object"),
            false => foreign(),
        })
    }

    /// Reports everything to a visitor, in order.
    ///
    /// # Errors
    /// Any error from the visitor; `Value` if the object was created with different classes.
    pub fn visit<'c, V: Visitor<'c>>(&self, classes: &'c Classes, visitor: &mut V) -> Result<()> {
        self.known_root(classes)?.visit(visitor)
    }

    /// An empty object within the same limits.
    pub(in crate::object) fn like(&self) -> Self {
        Self { max_nodes: self.max_nodes, ..Self::new() }
    }

    /// The size of the object's data in bytes, including the data of removed values.
    #[cfg(test)]
    pub(in crate::object) fn data_bytes(&self) -> usize {
        self.data.len()
    }

    /// The number of open objects and containers.
    pub(in crate::object) fn depth(&self) -> usize {
        let (mut open, mut max) = (Vec::new(), 0);
        for (index, node) in self.nodes.iter().enumerate() {
            while open.last().is_some_and(|end| *end <= index) {
                open.pop();
            }
            if matches!(node.stored, Stored::Object { .. } | Stored::List { .. }) {
                open.push(index + node.count());
                max = max.max(open.len());
            }
        }
        max
    }

    /// Starts a value. A new outermost value replaces the contents.
    #[cold]
    fn start(&mut self, slot: Slot<'_>) {
        if matches!(slot, Slot::Root) && !self.nodes.is_empty() {
            self.clear();
        }
    }

    /// Appends a node with this many bytes of data.
    #[inline]
    fn push(
        &mut self,
        slot: Slot<'_>,
        make: impl FnOnce(&mut Self) -> Result<Stored>,
    ) -> Result<()> {
        if self.nodes.len() as u64 >= self.max_nodes {
            return Err(Error::limit("nodes", self.max_nodes, self.nodes.len() as u64 + 1));
        }
        let stored = make(self)?;
        self.nodes.push(Node { property: Node::property(slot), stored });
        Ok(())
    }

    #[inline]
    fn keep(&mut self, bytes: &[u8]) -> Result<Range> {
        let max = u64::from(u32::MAX);
        let end = self.data.len() as u64 + bytes.len() as u64;
        match (u32::try_from(self.data.len()), u32::try_from(bytes.len())) {
            (Ok(start), Ok(length)) if end <= max => {
                self.data.extend_from_slice(bytes);
                Ok(Range { start, length })
            }
            _ => Err(Error::limit("bytes of an object", max, end)),
        }
    }

    #[cold]
    fn keep_raw(&mut self, slot: Slot<'_>, value: Leaf<'_>) -> Result<Stored> {
        Ok(match value {
            Leaf::Raw(bits) => {
                let hash = if let Slot::Unknown(hash) = slot { hash } else { 0 };
                let start = self.keep(&bits.to_vec())?.start;
                Stored::Raw { hash, bits: bits.count, start }
            }
            Leaf::Object { tag, block, kind, template, count, bytes } => {
                let start = self.keep(&template.to_le_bytes())?.start;
                self.keep(&Bits { count, bytes }.to_vec())?;
                Stored::Unknown { tag, bits: count, start, block, kind }
            }
            _ => Stored::Null,
        })
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
            Stored::Unknown { tag, bits: count, start, block, kind } => {
                let id = CoreId { block, kind, template: self.template(start) };
                Leaf::object(tag, id, bits(count, start + index(TEMPLATE_BYTES)))
            }
            Stored::Object { .. } | Stored::List { .. } => return None,
        })
    }

    /// The template at the beginning of an unknown object's bytes.
    #[cold]
    fn template(&self, start: u32) -> u32 {
        let bytes = self.data.get(start as usize..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Replaces `count` nodes with another object; `around` are the enclosing nodes.
    pub(in crate::object) fn splice(
        &mut self,
        at: usize,
        count: usize,
        around: &[usize],
        slot: Slot<'_>,
        new: &Self,
    ) -> Result<()> {
        if at.saturating_add(count) > self.nodes.len() {
            return Err(foreign());
        }
        let grown = (self.nodes.len() - count) as u64 + new.nodes.len() as u64;
        if grown > self.max_nodes {
            return Err(Error::limit("nodes", self.max_nodes, grown));
        }
        let base = self.keep(&new.data)?.start;
        let mut fresh = new.nodes.clone();
        for node in &mut fresh {
            node.stored.shift(base);
        }
        if let Some(first) = fresh.first_mut() {
            first.property = Node::property(slot);
        }
        let added = index(fresh.len());
        let removed = self.nodes.splice(at..at + count, fresh);
        self.unused +=
            removed.map(|mut node| node.stored.data().map_or(0, |(_, size)| size)).sum::<usize>();
        for index_around in around {
            if let Some(Node {
                stored: Stored::Object { size, .. } | Stored::List { size }, ..
            }) = self.nodes.get_mut(*index_around)
            {
                *size = *size + added - index(count);
            }
        }
        if self.unused > MAX_UNUSED.max(self.data.len() / 2) {
            self.compact();
        }
        Ok(())
    }

    /// Removes the data of removed values.
    fn compact(&mut self) {
        let old = core::mem::take(&mut self.data);
        self.unused = 0;
        for node in &mut self.nodes {
            if let Some((start, size)) = node.stored.data() {
                let from = *start as usize;
                *start = index(self.data.len());
                self.data.extend_from_slice(old.get(from..from + size).unwrap_or_default());
            }
        }
    }
}

impl Stored {
    /// The position and the number of the node's bytes.
    fn data(&mut self) -> Option<(&mut u32, usize)> {
        let bytes = |bits: u32| bits.div_ceil(8) as usize;
        match self {
            Self::Text(Range { start, length }) | Self::WideText(Range { start, length }) => {
                Some((start, *length as usize))
            }
            Self::Tuple(tuple, start) => Some((start, tuple.size())),
            Self::Raw { start, bits, .. } => Some((start, bytes(*bits))),
            Self::Unknown { start, bits, .. } => Some((start, TEMPLATE_BYTES + bytes(*bits))),
            _ => None,
        }
    }

    /// Moves the position of the node's bytes.
    fn shift(&mut self, base: u32) {
        if let Some((start, _)) = self.data() {
            *start += base;
        }
    }
}

impl Node {
    /// The property index that represents a slot.
    #[inline]
    fn property(slot: Slot<'_>) -> u32 {
        match slot {
            Slot::Property(property) => property.index(),
            Slot::Rest => REST,
            Slot::Root | Slot::Element(_) | Slot::Unknown(_) => NONE,
        }
    }

    /// The number of nodes, including nested ones.
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
        if self.open == NONE {
            self.start(slot);
            // Most objects need no more capacity.
            self.nodes.reserve((class.properties().len() + 1).min(INITIAL_CAPACITY));
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
        if self.open == NONE {
            self.start(slot);
        }
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
                Leaf::Raw(_) | Leaf::Object { .. } => this.keep_raw(slot, value)?,
            })
        })
    }
}

impl Node {
    #[inline]
    fn slot<'c>(&self, class: &'c Class) -> Option<Slot<'c>> {
        match class.properties().get(self.property as usize) {
            Some(property) => Some(Slot::Property(property)),
            None => self.nameless_slot(),
        }
    }

    /// The slot of bits that belong to no known property.
    #[cold]
    fn nameless_slot<'c>(&self) -> Option<Slot<'c>> {
        match self.stored {
            Stored::Raw { .. } if self.property == REST => Some(Slot::Rest),
            Stored::Raw { hash, .. } => Some(Slot::Unknown(hash)),
            _ => None,
        }
    }
}

/// Converts UTF-16 to text, if it is valid.
pub(in crate::object) fn wide_text(bytes: &[u8]) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    let text = char::decode_utf16(units).collect::<Result<String, _>>().ok();
    text.filter(|_| rest.is_empty())
}

#[cold]
pub(in crate::object) fn foreign() -> Error {
    Error::value("the classes that the object was created with", "different ones")
}

/// Converts a count; adding nodes already keeps it within bounds.
#[expect(clippy::cast_possible_truncation, reason = "fewer than 2^32 nodes")]
const fn index(count: usize) -> u32 {
    count as u32
}
