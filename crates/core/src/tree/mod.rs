//! The flat tree: the result of a traced decode.

mod builder;

use std::borrow::Cow;

use crate::trace::Place;
use crate::value::{Content, Span};
use crate::{Error, Value};

pub use builder::TreeBuilder;

/// The result of a traced decode: names, values and places, in one flat arena.
///
/// Nodes are in reading order; a container is followed by its children and stores where they end.
/// Text is decoded on demand. The tree of a failed decode holds everything read before, and the
/// error as its last node.
///
/// ```
/// use worldwire_core::{Reader, Tree};
/// let mut reader = Reader::traced("message", &[7, 0, 2], Tree::new());
/// reader.u16("number").unwrap();
/// reader.u8("flag").unwrap();
/// let tree = reader.finish();
/// assert_eq!(tree.find("flag").unwrap().unsigned(), Some(2));
/// assert_eq!(tree.find("flag").unwrap().bytes(), 2..3);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tree<'n> {
    nodes: Vec<Node<'n>>,
    layers: Vec<Layer<'n>>,
    remarks: Vec<Error>,
    error: Option<Error>,
}

#[derive(Clone, Copy, Debug)]
struct Node<'n> {
    name: &'n str,
    value: Value<'n>,
    start: u32,
    end: u32,
    /// Index of the first node after this one's children.
    next: u32,
    layer: u16,
    start_bit: u8,
    end_bit: u8,
}

/// A buffer that nodes refer to, and its origin.
///
/// The first layer is the decoder's input. A decrypted or inflated block is a separate layer that
/// refers to the bytes it was derived from, so every field can be traced back to bytes on the wire.
#[derive(Clone, Debug)]
pub struct Layer<'n> {
    name: &'n str,
    data: Cow<'n, [u8]>,
    base: u64,
    parent: Option<Parent>,
}

/// The bytes that a layer was derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Index of their layer.
    pub layer: u16,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl<'n> Layer<'n> {
    /// The name of the layer: `message`, `decrypted`, `inflated`.
    #[must_use]
    pub fn name(&self) -> &'n str {
        self.name
    }

    /// Its bytes.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The position of its first byte in its stream or file. It is added to shown offsets.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The bytes it was derived from; `None` for the first layer.
    #[must_use]
    pub fn parent(&self) -> Option<Parent> {
        self.parent
    }
}

impl<'n> Tree<'n> {
    /// An empty tree.
    #[must_use]
    pub const fn new() -> Self {
        Self { nodes: Vec::new(), layers: Vec::new(), remarks: Vec::new(), error: None }
    }

    /// Empties a tree but keeps its memory, for the next message. The new names and data can have
    /// other lifetimes.
    #[must_use]
    pub fn recycle<'m>(mut self) -> Tree<'m> {
        self.nodes.clear();
        self.layers.clear();
        // Collecting an empty vector in place keeps its memory and changes the lifetime.
        Tree {
            nodes: self.nodes.into_iter().map(|_| Node::nothing()).collect(),
            layers: self.layers.into_iter().map(|_| Layer::nothing()).collect(),
            remarks: Vec::new(),
            error: None,
        }
    }

    /// The top nodes.
    pub fn roots(&self) -> Children<'_, 'n> {
        Children { tree: self, index: 0, end: index(self.nodes.len()) }
    }

    /// Every node in reading order, containers before their children.
    pub fn nodes(&self) -> impl Iterator<Item = NodeRef<'_, 'n>> {
        (0..index(self.nodes.len())).map(|index| NodeRef { tree: self, index })
    }

    /// The number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the tree has no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The buffers that places refer to.
    #[must_use]
    pub fn layers(&self) -> &[Layer<'n>] {
        &self.layers
    }

    /// Why fields that should hold another format are shown as bytes; see
    /// [`opener`](crate::opener).
    #[must_use]
    pub fn remarks(&self) -> &[Error] {
        &self.remarks
    }

    /// Why the decode stopped early, if it did.
    #[must_use]
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Adds an error after all nodes.
    pub fn set_error(&mut self, error: Error) {
        self.error = Some(error);
    }

    /// Sets the position of the first layer's first byte in its stream or file.
    pub fn set_base(&mut self, base: u64) {
        if let Some(layer) = self.layers.first_mut() {
            layer.base = base;
            self.error = self.error.take().map(|error| error.based(base));
        }
    }

    /// The first node at a path of names and indices: `ages[3].filename`.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<NodeRef<'_, 'n>> {
        let (mut nodes, mut found, mut rest) = (self.roots(), None, path);
        while !rest.is_empty() {
            let node = if let Some(inside) = rest.strip_prefix('[') {
                let (index, behind) = inside.split_once(']')?;
                rest = behind;
                nodes.nth(index.parse().ok()?)?
            } else {
                let (name, behind) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
                rest = behind;
                nodes.find(|node| node.name() == name)?
            };
            rest = rest.strip_prefix('.').unwrap_or(rest);
            nodes = node.children();
            found = Some(node);
        }
        found
    }
}

/// One node of a tree.
#[derive(Clone, Copy, Debug)]
pub struct NodeRef<'t, 'n> {
    tree: &'t Tree<'n>,
    index: u32,
}

impl<'t, 'n> NodeRef<'t, 'n> {
    fn node(&self) -> &'t Node<'n> {
        // Indices are only created for existing nodes.
        &self.tree.nodes[self.index as usize]
    }

    /// Its name in the protocol's own spelling; empty for the elements of a list.
    #[must_use]
    pub fn name(&self) -> &'n str {
        self.node().name
    }

    /// Its value.
    #[must_use]
    pub fn value(&self) -> Value<'n> {
        self.node().value
    }

    /// Its children, if it is a record or list.
    #[must_use]
    pub fn children(&self) -> Children<'t, 'n> {
        Children { tree: self.tree, index: self.index + 1, end: self.node().next }
    }

    /// The child of that name.
    #[must_use]
    pub fn child(&self, name: &str) -> Option<Self> {
        self.children().find(|child| child.name() == name)
    }

    /// Where it starts and ends, to the bit; the end is exclusive.
    #[must_use]
    pub fn places(&self) -> (Place, Place) {
        let node = self.node();
        (
            Place { byte: node.start, bit: node.start_bit },
            Place { byte: node.end, bit: node.end_bit },
        )
    }

    /// The bytes it touches, counted from the start of its layer.
    #[must_use]
    pub fn bytes(&self) -> core::ops::Range<u32> {
        let node = self.node();
        node.start..node.end + u32::from(node.end_bit != 0)
    }

    /// Index of the layer that its place refers to.
    #[must_use]
    pub fn layer(&self) -> u16 {
        self.node().layer
    }

    /// Its bytes in the layer.
    #[must_use]
    pub fn raw(&self) -> &'t [u8] {
        let range = self.bytes();
        slice(self.tree, self.layer(), range.start, range.end)
    }

    /// Its value as a non-negative number, however it is shown.
    #[must_use]
    pub fn unsigned(&self) -> Option<u64> {
        match self.value() {
            Value::Unsigned(n) | Value::Hex(n) | Value::Flags(n, _) => Some(n),
            Value::Signed(n) | Value::Enum(n, _) => u64::try_from(n).ok(),
            Value::Bool(b) => Some(u64::from(b)),
            _ => None,
        }
    }

    /// The text or bytes of a span.
    #[must_use]
    pub fn content(&self) -> Option<Content<'t>> {
        match self.value() {
            Value::Span(span) => Some(span.form.read(self.span(span))),
            _ => None,
        }
    }

    /// The stored bytes of a span.
    #[must_use]
    pub fn span(&self, span: Span) -> &'t [u8] {
        slice(self.tree, self.layer(), span.start, span.start.saturating_add(span.length))
    }

    /// Its text; `None` if its value is not text.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'t, str>> {
        match self.content()? {
            Content::Text(text) => Some(text),
            Content::Bytes(_) => None,
        }
    }
}

fn slice<'t>(tree: &'t Tree<'_>, layer: u16, start: u32, end: u32) -> &'t [u8] {
    tree.layers
        .get(usize::from(layer))
        .and_then(|layer| layer.data.get(start as usize..end as usize))
        .unwrap_or(&[])
}

/// The children of a node, or the top nodes.
#[derive(Clone, Debug)]
pub struct Children<'t, 'n> {
    tree: &'t Tree<'n>,
    index: u32,
    end: u32,
}

impl<'t, 'n> Iterator for Children<'t, 'n> {
    type Item = NodeRef<'t, 'n>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.end {
            return None;
        }
        let node = NodeRef { tree: self.tree, index: self.index };
        // Always advance, so that every walk ends, whatever a node says.
        self.index = node.node().next.max(self.index + 1);
        Some(node)
    }
}

impl Node<'_> {
    const fn nothing() -> Self {
        Self {
            name: "",
            value: Value::Null,
            start: 0,
            end: 0,
            next: 0,
            layer: 0,
            start_bit: 0,
            end_bit: 0,
        }
    }
}

impl Layer<'_> {
    const fn nothing() -> Self {
        Self { name: "", data: Cow::Borrowed(&[]), base: 0, parent: None }
    }
}

/// Converts a count; the limit on nodes keeps it within bounds.
#[expect(clippy::cast_possible_truncation, reason = "a tree holds at most 2^32 - 1 nodes")]
const fn index(count: usize) -> u32 {
    count as u32
}
