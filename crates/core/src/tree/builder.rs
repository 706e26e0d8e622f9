//! The trace that builds a tree.

use std::borrow::Cow;

use super::{Layer, Node, Parent, Tree, index};
use crate::opener::{Carried, Opener, Site, Subject};
use crate::trace::sealed::{Key, Scopes};
use crate::trace::{Place, Trace};
use crate::{Error, Limits, Reader, Result, Value};

/// Builds a [`Tree`] while a decoder reads. Created by [`Reader::traced`].
#[derive(Debug)]
pub struct TreeBuilder<'n> {
    tree: Tree<'n>,
    /// The innermost container that is not complete; its `next` leads to the one around it.
    open: u32,
    layer: u16,
    /// Containers that were opened when there was no room for them.
    lost: u32,
    max_nodes: usize,
    /// Set when a node did not fit: the tree stops growing and ends with an error.
    full: bool,
    opener: Carried<'n>,
    /// The message that fields belong to.
    message: Subject<'n>,
}

/// No container: an index that no node has.
const NONE: u32 = u32::MAX;

impl<'n> TreeBuilder<'n> {
    /// Starts with a first layer, in the memory of an old tree.
    pub(crate) fn start(tree: Tree<'n>, name: &'n str, data: &'n [u8], limits: &Limits) -> Self {
        let mut tree = tree;
        tree.nodes.clear();
        tree.layers.clear();
        tree.remarks.clear();
        tree.error = None;
        tree.layers.push(Layer { name, data: Cow::Borrowed(data), base: 0, parent: None });
        let max_nodes = limits.nodes.min(u64::from(u32::MAX) - 1);
        Self::of(tree, usize::try_from(max_nodes).unwrap_or(usize::MAX))
    }

    const fn of(tree: Tree<'n>, max_nodes: usize) -> Self {
        let message = Subject { connection: "", number: 0, name: "", sender: None };
        let opener = Carried(None);
        Self { tree, open: NONE, layer: 0, lost: 0, max_nodes, full: false, opener, message }
    }

    pub(crate) fn set_opener(&mut self, opener: &'n dyn Opener<'n>) {
        self.opener = Carried(Some(opener));
    }

    /// For an [`Opener`]: the value before the opened field, with its name. `None` if that is not a
    /// single value.
    #[must_use]
    pub fn value_before(&self) -> Option<(&'n str, Value<'n>)> {
        let field = self.tree.nodes.get(self.open as usize)?;
        let before = self.tree.nodes.get((self.open as usize).checked_sub(1)?)?;
        let is_beside = before.next == self.open && before.layer == field.layer;
        let is_single = !matches!(before.value, Value::Record | Value::List);
        (is_beside && is_single).then_some((before.name, before.value))
    }

    /// Ends the tree and all open containers, at the end of the last reported node.
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
            let most = self.max_nodes as u64;
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
        let room = self.tree.nodes.len() < self.max_nodes;
        if room {
            self.tree.nodes.push(node);
        } else {
            self.full = true;
        }
        room
    }
}

/// The progress of a [`TreeBuilder`].
#[derive(Clone, Copy, Debug, Default)]
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
    /// The maximum number of nodes, and whether the tree was full.
    type Bound = (usize, bool);

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
        // At most one per field, so the limit on nodes bounds them too.
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

    fn bound(&mut self, _: Key, more: u64) -> (usize, bool) {
        let before = (self.max_nodes, self.full);
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        self.max_nodes = self.max_nodes.min(self.tree.nodes.len().saturating_add(more));
        self.full = false;
        before
    }

    fn unbound(&mut self, _: Key, (max_nodes, was_full): (usize, bool)) -> bool {
        let is_bound = core::mem::replace(&mut self.max_nodes, max_nodes) < max_nodes;
        let exceeded = self.full && is_bound;
        self.full = was_full || self.full && !is_bound;
        exceeded
    }

    fn detach(&mut self, _: Key) -> Self {
        // The builder left behind is empty and has no open containers.
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

    /// The number of nodes that a walk through children visits.
    fn walked(nodes: crate::Children<'_, '_>) -> usize {
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
