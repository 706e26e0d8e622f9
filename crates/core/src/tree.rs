//! The flat tree: what a traced decode leaves behind.

use std::borrow::Cow;

use crate::opener::{Carried, Opener, Site, Subject};
use crate::trace::sealed::{Key, Scopes};
use crate::trace::{Place, Trace};
use crate::value::{Content, Span};
use crate::{Error, Limits, Reader, Result, Value};

/// Everything a traced decode learned: names, values and places, in one flat arena.
///
/// Nodes stand in reading order; a container is followed by its children and knows where they end.
/// Text is decoded when somebody looks at it. A tree whose decoder failed holds all that was read
/// before, and the error as its last node.
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
    /// Index of the first node behind this one's children.
    next: u32,
    layer: u16,
    start_bit: u8,
    end_bit: u8,
}

/// One buffer that nodes have their places in, and where it came from.
///
/// The first layer is what the decoder was given. A decrypted or inflated block is a layer of its
/// own that knows which bytes of which layer it was made from, so every field leads back to the
/// bytes on the wire.
#[derive(Clone, Debug)]
pub struct Layer<'n> {
    name: &'n str,
    data: Cow<'n, [u8]>,
    base: u64,
    parent: Option<Parent>,
}

/// The bytes that a layer was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Index of the layer they stand in.
    pub layer: u16,
    /// The first byte.
    pub start: u32,
    /// The byte behind the last.
    pub end: u32,
}

impl<'n> Layer<'n> {
    /// What the layer is: `message`, `decrypted`, `inflated`.
    #[must_use]
    pub fn name(&self) -> &'n str {
        self.name
    }

    /// Its bytes.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Where its first byte stands in its stream or file; added to offsets when they are shown.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The bytes it was made from; `None` for the first layer.
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

    /// Empties a tree but keeps its memory, for the next message. Its names and data may live
    /// shorter or longer than those of the old content.
    #[must_use]
    pub fn recycle<'m>(mut self) -> Tree<'m> {
        self.nodes.clear();
        self.layers.clear();
        // An empty vector is collected in place: the memory stays, the lifetime changes.
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

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The buffers that places count in.
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

    /// Puts an error behind all nodes.
    pub fn set_error(&mut self, error: Error) {
        self.error = Some(error);
    }

    /// Says where the first layer's first byte stands in its stream or file.
    pub fn set_base(&mut self, base: u64) {
        if let Some(layer) = self.layers.first_mut() {
            layer.base = base;
            self.error = self.error.take().map(|error| error.based(base));
        }
    }

    /// The first node at a path of names and indices: `ages[3].filename`.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<NodeRef<'_, 'n>> {
        let mut steps = PathSteps(path);
        let first = steps.next()??;
        let mut node = pick(self.roots(), first)?;
        for step in steps {
            node = pick(node.children(), step?)?;
        }
        Some(node)
    }
}

/// One step of a path in [`Tree::find`].
#[derive(Clone, Copy)]
enum PathStep<'p> {
    Name(&'p str),
    Index(usize),
}

struct PathSteps<'p>(&'p str);

impl<'p> Iterator for PathSteps<'p> {
    /// The inner `None` is a path that cannot be read.
    type Item = Option<PathStep<'p>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        if let Some(rest) = self.0.strip_prefix('[') {
            let Some((index, rest)) = rest.split_once(']') else {
                self.0 = "";
                return Some(None);
            };
            self.0 = rest.strip_prefix('.').unwrap_or(rest);
            return Some(index.parse().ok().map(PathStep::Index));
        }
        let end = self.0.find(['.', '[']).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(end);
        self.0 = rest.strip_prefix('.').unwrap_or(rest);
        Some(Some(PathStep::Name(name)))
    }
}

fn pick<'t, 'n>(mut nodes: Children<'t, 'n>, step: PathStep<'_>) -> Option<NodeRef<'t, 'n>> {
    match step {
        PathStep::Name(name) => nodes.find(|node| node.name() == name),
        PathStep::Index(index) => nodes.nth(index),
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
        // Indices are only made from existing nodes.
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

    /// The first and the last-but-one place of its bytes, with bits.
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

    /// Index of the layer that its place counts in.
    #[must_use]
    pub fn layer(&self) -> u16 {
        self.node().layer
    }

    /// The bytes as they stand in its layer.
    #[must_use]
    pub fn raw(&self) -> &'t [u8] {
        let range = self.bytes();
        slice(self.tree, self.layer(), range.start, range.end)
    }

    /// A number that is not negative, whatever way it is shown.
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

    /// The text, if it is one.
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
        // Going on is what ends every walk, whatever a node says.
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

/// Counts that were bounded when the tree grew.
#[expect(clippy::cast_possible_truncation, reason = "a tree holds at most 2^32 - 1 nodes")]
const fn index(count: usize) -> u32 {
    count as u32
}

/// Builds a [`Tree`] while a decoder reads. Made by [`Reader::traced`].
#[derive(Debug)]
pub struct TreeBuilder<'n> {
    tree: Tree<'n>,
    /// The innermost container that is not complete; its `next` leads to the one around it.
    open: u32,
    /// The present layer.
    layer: u16,
    /// Containers that were opened when there was no room for them.
    lost: u32,
    most_nodes: usize,
    /// Set when a node had no room: the tree stops growing and says so in the end.
    full: bool,
    opener: Carried<'n>,
    /// The message that fields belong to.
    message: Subject<'n>,
}

/// No container: an index that no node has.
const NONE: u32 = u32::MAX;

impl<'n> TreeBuilder<'n> {
    /// Starts on a first layer, in the memory of an old tree.
    pub(crate) fn start(tree: Tree<'n>, name: &'n str, data: &'n [u8], limits: &Limits) -> Self {
        let mut tree = tree;
        tree.nodes.clear();
        tree.layers.clear();
        tree.remarks.clear();
        tree.error = None;
        tree.layers.push(Layer { name, data: Cow::Borrowed(data), base: 0, parent: None });
        let most_nodes = limits.nodes.min(u64::from(u32::MAX) - 1);
        Self::of(tree, usize::try_from(most_nodes).unwrap_or(usize::MAX))
    }

    const fn of(tree: Tree<'n>, most_nodes: usize) -> Self {
        let message = Subject { connection: "", number: 0, name: "" };
        let opener = Carried(None);
        Self { tree, open: NONE, layer: 0, lost: 0, most_nodes, full: false, opener, message }
    }

    /// Takes an opener along.
    pub(crate) fn set_opener(&mut self, opener: &'n dyn Opener<'n>) {
        self.opener = Carried(Some(opener));
    }

    /// Ends the tree, and whatever is open in it: at the end of what was reported last.
    pub(crate) fn finish(mut self, error: Option<Error>) -> Tree<'n> {
        self.lost = 0;
        while let Some(open) = self.tree.nodes.get(self.open as usize) {
            let start = Place { byte: open.start, bit: open.start_bit };
            let last = self.tree.nodes.last().filter(|last| last.layer == open.layer);
            let last = last.map_or(start, |last| Place { byte: last.end, bit: last.end_bit });
            self.close_last(start.max(last));
        }
        self.tree.error = error;
        if self.full && self.tree.error.is_none() {
            let most = self.most_nodes as u64;
            self.tree.error = Some(Error::limit("nodes", most, most + 1));
        }
        self.tree
    }

    /// Closes the innermost container; the one around it is then the innermost.
    #[inline]
    fn close_last(&mut self, end: Place) {
        let next = index(self.tree.nodes.len());
        if let Some(node) = self.tree.nodes.get_mut(self.open as usize) {
            self.open = node.next;
            node.next = next;
            node.end = end.byte;
            node.end_bit = end.bit;
        }
    }

    #[inline]
    fn push(&mut self, node: Node<'n>) -> bool {
        let room = self.tree.nodes.len() < self.most_nodes;
        if room {
            self.tree.nodes.push(node);
        } else {
            self.full = true;
        }
        room
    }
}

/// How far a [`TreeBuilder`] had come.
#[derive(Clone, Copy, Debug)]
pub struct TreeMark {
    nodes: usize,
    layers: usize,
    remarks: usize,
    open: u32,
    layer: u16,
    lost: u32,
    full: bool,
}

impl<'n> Trace<'n> for TreeBuilder<'n> {
    const ON: bool = true;

    #[inline]
    fn leaf(&mut self, name: &'n str, value: Value<'n>, start: Place, end: Place) {
        let next = index(self.tree.nodes.len()) + 1;
        self.push(Node {
            name,
            value,
            start: start.byte,
            end: end.byte,
            next,
            layer: self.layer,
            start_bit: start.bit,
            end_bit: end.bit,
        });
    }
}

impl<'n> Scopes<'n> for TreeBuilder<'n> {
    type Mark = TreeMark;

    #[inline]
    fn open(&mut self, _: Key, name: &'n str, shape: Value<'n>, start: Place) {
        let at = index(self.tree.nodes.len());
        let pushed = self.push(Node {
            name,
            value: shape,
            start: start.byte,
            end: start.byte,
            next: self.open,
            layer: self.layer,
            start_bit: start.bit,
            end_bit: start.bit,
        });
        if pushed {
            self.open = at;
        } else {
            self.lost += 1;
        }
    }

    #[inline]
    fn close(&mut self, _: Key, end: Place) {
        if self.lost > 0 {
            self.lost -= 1;
        } else {
            self.close_last(end);
        }
    }

    fn open_layer(&mut self, _: Key, name: &'n str, start: Place, end: Place) {
        let parent = Parent { layer: self.layer, start: start.byte, end: end.byte };
        let fresh = u16::try_from(self.tree.layers.len()).unwrap_or(u16::MAX);
        self.tree.layers.push(Layer {
            name,
            data: Cow::Borrowed(&[]),
            base: 0,
            parent: Some(parent),
        });
        self.layer = fresh;
    }

    fn close_layer(&mut self, _: Key, data: Vec<u8>) {
        if let Some(layer) = self.tree.layers.get_mut(usize::from(self.layer)) {
            layer.data = Cow::Owned(data);
            self.layer = layer.parent.map_or(0, |parent| parent.layer);
        }
    }

    fn set_message(&mut self, _: Key, message: Subject<'n>) -> Subject<'n> {
        core::mem::replace(&mut self.message, message)
    }

    #[inline]
    fn opens(&self, _: Key, field: &str, bytes: &[u8]) -> bool {
        let Some(opener) = self.opener.0 else { return false };
        opener.opens(Site { message: self.message, field }, bytes)
    }

    fn open_field(_: Key, reader: &mut Reader<'_, Self>, field: &str) -> Result<()> {
        let trace = reader.trace_mut();
        match trace.opener.0 {
            Some(opener) => opener.open(Site { message: trace.message, field }, reader),
            None => Ok(()),
        }
    }

    fn remark(&mut self, _: Key, error: Error) {
        // One a field: bounded by the nodes.
        self.tree.remarks.push(error);
    }

    fn mark(&self, _: Key) -> TreeMark {
        TreeMark {
            nodes: self.tree.nodes.len(),
            layers: self.tree.layers.len(),
            remarks: self.tree.remarks.len(),
            open: self.open,
            layer: self.layer,
            lost: self.lost,
            full: self.full,
        }
    }

    fn rewind(&mut self, _: Key, mark: TreeMark) {
        self.tree.nodes.truncate(mark.nodes);
        self.tree.layers.truncate(mark.layers);
        self.tree.remarks.truncate(mark.remarks);
        self.open = mark.open;
        self.layer = mark.layer;
        self.lost = mark.lost;
        self.full = mark.full;
    }

    fn detach(&mut self, _: Key) -> Self {
        // What stays behind takes nothing, and has nothing open.
        core::mem::replace(self, Self::of(Tree::new(), 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_small() {
        assert!(size_of::<Node<'_>>() <= 64, "{} bytes", size_of::<Node<'_>>());
    }

    #[test]
    fn recycling_keeps_the_memory() {
        let data = vec![1_u8; 64];
        let mut reader = Reader::traced("message", &data, Tree::new());
        for _ in 0..64 {
            reader.u8("x").unwrap();
        }
        let tree = reader.finish();
        let before = tree.nodes.capacity();
        let again: Tree<'static> = tree.recycle();
        assert!(again.is_empty());
        assert_eq!(again.nodes.capacity(), before);
    }

    /// As many nodes as a walk meets, through children only.
    fn walked(nodes: Children<'_, '_>) -> usize {
        nodes.map(|node| 1 + walked(node.children())).sum()
    }

    #[test]
    fn a_scope_ends_where_its_decoder_failed() {
        let mut reader = Reader::traced("message", &[1, 2], Tree::new());
        let trace = reader.trace_mut();
        let place = |byte| Place { byte, bit: 0 };
        let failed: Result<(), Error> = trace.scope("o", Value::Record, place(0), |trace| {
            trace.leaf("a", Value::Unsigned(1), place(0), place(1));
            let inner = trace.scope("p", Value::Record, place(1), |_| {
                (Err(Error::malformed("a", "b")), place(1))
            });
            (inner, place(1))
        });
        let tree = reader.finish_with(failed.unwrap_err());
        assert_eq!((walked(tree.roots()), tree.len()), (3, 3));
        assert_eq!(tree.find("o.p").unwrap().bytes(), 1..1);
    }

    #[test]
    fn what_is_left_open_is_closed_in_the_end() {
        let mut reader = Reader::traced("message", &[1, 2, 3, 4], Tree::new());
        let key = Key::reader();
        let trace = reader.trace_mut();
        for at in 0..3 {
            let start = Place { byte: at, bit: 0 };
            trace.open(key, "o", Value::Record, start);
            trace.leaf("x", Value::Null, start, Place { byte: at + 1, bit: 0 });
        }
        let tree = reader.finish();
        assert_eq!((walked(tree.roots()), tree.len()), (6, 6));
        let ends: Vec<_> = tree.nodes().filter(|n| n.name() == "o").map(|n| n.bytes()).collect();
        assert_eq!(ends, [0..3, 1..3, 2..3]);
    }

    #[test]
    fn a_full_tree_says_so() {
        let limits = Limits { nodes: 2, ..Limits::DEFAULT };
        let mut reader = Reader::traced_within("message", &[1, 2, 3], Tree::new(), &limits);
        for _ in 0..3 {
            reader.u8("x").unwrap();
        }
        let tree = reader.finish();
        assert_eq!(tree.len(), 2);
        assert!(tree.error().unwrap().to_string().contains("nodes"));
    }
}
