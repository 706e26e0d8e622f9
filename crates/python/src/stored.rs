//! Decoded values that own everything they need and outlive the capture they were read from.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use worldwire_core::json::{Style, float32, float64, hex, string, whole};
use worldwire_core::value::Content;
use worldwire_core::{Children, Error, NodeRef, Tree, Value};

use crate::message::MessageHead;
use crate::names::Name;
use crate::record::Record;

/// The values of one or more trees, in reading order, the bytes that they refer to, and the heads of
/// the messages that they belong to.
///
/// Several messages share the memory, because allocating and freeing it for each of them takes longer
/// than copying the values.
#[derive(Default)]
pub(crate) struct Stored {
    heads: Vec<MessageHead>,
    nodes: Vec<Node>,
    /// For each tree, the decoded bytes and what the owner keeps with them, followed by text and
    /// bytes that do not occur in them.
    data: Vec<u8>,
    /// Set if data was left out because of [`MAX_DATA`].
    error: Option<Error>,
}

/// The maximum size of the text and bytes of all trees. Deflated parts can be much larger than the
/// message.
const MAX_DATA: usize = 1 << 30;

struct Node {
    name: Label,
    value: Held,
    /// Index of the first node after this one's children.
    next: u32,
    /// The bytes that it was decoded from, counted from the start of the decoded bytes.
    bytes: (u32, u32),
}

/// A name: cached in the process, or in `data`.
#[derive(Clone, Copy)]
enum Label {
    Kept(&'static Name),
    Own(u32, u32),
}

#[derive(Clone, Copy)]
enum Held {
    Record,
    List,
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    F32(f32),
    F64(f64),
    /// The name of a value, such as one of an enumeration.
    Word(&'static Name),
    /// UTF-8 text in `data`.
    Text(u32, u32),
    /// Bytes in `data`.
    Bytes(u32, u32),
}

impl Stored {
    /// Empty, with capacity for this many messages of the usual size.
    pub(crate) fn expecting(messages: usize) -> Self {
        Self {
            heads: Vec::with_capacity(messages),
            nodes: Vec::with_capacity(8 * messages),
            data: Vec::with_capacity(192 * messages),
            error: None,
        }
    }

    /// Frees unused capacity if it is a large part of the whole.
    pub(crate) fn trim(&mut self) {
        fn trim<T>(room: &mut Vec<T>) {
            if room.capacity() / 2 > room.len() {
                room.shrink_to_fit();
            }
        }
        trim(&mut self.heads);
        trim(&mut self.nodes);
        trim(&mut self.data);
    }

    /// Adds the head of a message, whose values were added before.
    pub(crate) fn add_head(&mut self, head: MessageHead) {
        self.heads.push(head);
    }

    /// Removes the last head; its values stay.
    pub(crate) fn remove_head(&mut self) -> Option<MessageHead> {
        self.heads.pop()
    }

    pub(crate) fn heads(&self) -> &[MessageHead] {
        &self.heads
    }

    /// Stores bytes and returns their position.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Range<u32> {
        self.append(bytes).map_or(0..0, |(start, end)| start..end)
    }

    /// Copies a tree and returns the index of its top node. The roots become children of the top
    /// node or, if `top` is given, that node becomes the top node. `body` is what the tree was decoded
    /// from, and is kept from `start`.
    pub(crate) fn add(
        &mut self,
        tree: &Tree<'_>,
        top: Option<NodeRef<'_, '_>>,
        body: &[u8],
        start: u32,
    ) -> u32 {
        let index = self.end();
        self.nodes.reserve(tree.len() + 1);
        // Values in the first layer can refer to the bytes of the message.
        let first = tree.layers().first().map_or(&[][..], |layer| layer.data());
        let start = core::ptr::eq(first, body).then_some(start);
        let mut copy = Copying { stored: self, tree, start };
        match top {
            Some(top) => copy.node(top),
            None => copy.record(tree.roots()),
        }
        index
    }

    /// Adds a record with a single text, such as a note, and returns its index.
    pub(crate) fn add_text(&mut self, name: &str, text: &str) -> u32 {
        let (index, empty) = (self.end(), self.label(""));
        let (name, value) = (self.label(name), self.text(text));
        let next = index + 2;
        self.nodes.push(Node { name: empty, value: Held::Record, next, bytes: (0, 0) });
        self.nodes.push(Node { name, value, next, bytes: (0, 0) });
        index
    }

    /// Why a value has been left out since the last call, if one has.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// Its approximate size in memory.
    pub(crate) fn size(&self) -> usize {
        let heads = self.heads.len() * size_of::<MessageHead>();
        heads + self.nodes.len() * size_of::<Node>() + self.data.len()
    }

    /// Stored bytes.
    pub(crate) fn data(&self, place: Range<u32>) -> &[u8] {
        self.bytes_at(place.start, place.end)
    }

    /// The name of a node; empty for an element of a list.
    pub(crate) fn name(&self, node: u32) -> &str {
        self.node(node).map_or("", |node| self.label_text(node.name))
    }

    /// The bytes of a node, counted from the start of the decoded bytes.
    pub(crate) fn bytes(&self, node: u32) -> Range<u32> {
        self.node(node).map_or(0..0, |node| node.bytes.0..node.bytes.1)
    }

    /// The children of a node.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = u32> {
        let end = match self.node(node) {
            Some(Node { value: Held::Record | Held::List, next, .. }) => *next,
            _ => 0,
        };
        let mut at = node.saturating_add(1);
        core::iter::from_fn(move || {
            let found = (at < end).then_some(at)?;
            at = self.node(found).map_or(end, |node| node.next).max(found + 1);
            Some(found)
        })
    }

    /// The child with this name.
    pub(crate) fn child(&self, node: u32, name: &str) -> Option<u32> {
        self.children(node).find(|child| self.name(*child) == name)
    }

    /// The node at a path of names and indices below a node: `ages[3].filename`.
    pub(crate) fn find(&self, node: u32, path: &str) -> Option<u32> {
        let (mut found, mut rest) = (node, path);
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (index, after) = inside.split_once(']')?;
                let is_list = matches!(self.node(found)?.value, Held::List);
                let mut items = self.children(found).filter(|_| is_list);
                found = items.nth(index.parse().ok()?)?;
                rest = after;
            } else {
                let (name, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
                found = self.child(found, name)?;
                rest = after;
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
        }
        Some(found)
    }

    /// The nodes that a path can mean, as in filters: those at the path or, if there are none,
    /// those whose paths end with it; of these, the ones nearest to the top. A name applied to a
    /// list means all of its elements. At most `max` nodes.
    pub(crate) fn find_all(&self, top: u32, path: &str, max: usize) -> Vec<u32> {
        let mut found = Vec::new();
        // After a name, a dot is skipped.
        if path.is_empty() || path.starts_with('.') {
            return found;
        }
        self.walk(top, path, max, &mut found);
        let mut level = vec![top];
        while found.is_empty() && !level.is_empty() {
            let mut next = Vec::new();
            level.iter().for_each(|node| self.add_records(*node, &mut next));
            next.iter().for_each(|node| self.walk(*node, path, max, &mut found));
            level = next;
        }
        found
    }

    /// The path of a node below another one: `ages[3].filename`.
    pub(crate) fn path_to(&self, top: u32, node: u32) -> String {
        let (mut path, mut at) = (String::new(), top);
        while at != node {
            let is_list = self.node(at).is_some_and(|it| matches!(it.value, Held::List));
            let holds = |child: &u32| {
                *child <= node && self.node(*child).is_some_and(|child| node < child.next)
            };
            let Some((index, child)) = self.children(at).enumerate().find(|(_, it)| holds(it))
            else {
                break;
            };
            if is_list {
                path.push_str(&format!("[{index}]"));
            } else {
                path.push_str(if path.is_empty() { "" } else { "." });
                path.push_str(self.name(child));
            }
            at = child;
        }
        path
    }

    /// Adds the records that are fields of a record, or elements of its lists.
    fn add_records(&self, node: u32, records: &mut Vec<u32>) {
        for child in self.children(node) {
            match self.node(child).map(|child| child.value) {
                Some(Held::Record) => records.push(child),
                Some(Held::List) => self.add_records(child, records),
                _ => {}
            }
        }
    }

    /// Adds the nodes at a path below a node.
    fn walk(&self, node: u32, path: &str, max: usize, found: &mut Vec<u32>) {
        if found.len() >= max {
            return;
        }
        let path = path.strip_prefix('.').unwrap_or(path);
        if path.is_empty() {
            return found.push(node);
        }
        let is_list = self.node(node).is_some_and(|it| matches!(it.value, Held::List));
        match path.strip_prefix('[').map(|inside| inside.split_once(']')) {
            Some(Some(("*", rest))) => {
                self.children(node).for_each(|child| self.walk(child, rest, max, found));
            }
            Some(Some((index, rest))) if is_list => {
                let item = index.parse().ok().and_then(|index| self.children(node).nth(index));
                item.into_iter().for_each(|item| self.walk(item, rest, max, found));
            }
            Some(_) => {}
            None if is_list => {
                self.children(node).for_each(|child| self.walk(child, path, max, found));
            }
            None => {
                // Names can contain dots: the shortest one that exists is used.
                let ends = path.match_indices(['.', '[']).map(|(end, _)| end).chain([path.len()]);
                let mut names = ends.map(|end| path.split_at(end));
                let next = names.find_map(|(name, rest)| Some((self.child(node, name)?, rest)));
                next.into_iter().for_each(|(child, rest)| self.walk(child, rest, max, found));
            }
        }
    }

    /// Appends the JSON of a node's value, as [`worldwire_core::json::write_node`] writes it.
    pub(crate) fn push_json(&self, node: u32, style: Style, out: &mut String) {
        let Some(Node { value, .. }) = self.node(node) else { return out.push_str("null") };
        match *value {
            Held::Record | Held::List => {
                let is_record = matches!(value, Held::Record);
                out.push(if is_record { '{' } else { '[' });
                for (index, child) in self.children(node).enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    if is_record {
                        string(self.name(child), out);
                        out.push(':');
                    }
                    self.push_json(child, style, out);
                }
                out.push(if is_record { '}' } else { ']' });
            }
            Held::Null => out.push_str("null"),
            Held::Bool(value) => out.push_str(if value { "true" } else { "false" }),
            Held::Unsigned(value) => whole(i128::from(value), style, out),
            Held::Signed(value) => whole(i128::from(value), style, out),
            Held::F32(value) => float32(value, out),
            Held::F64(value) => float64(value, out),
            Held::Word(name) => string(name.text(), out),
            Held::Text(start, end) => string(self.text_at(start, end), out),
            Held::Bytes(start, end) => hex(self.bytes_at(start, end), out),
        }
    }

    /// The index of the next node. A tree has fewer than 2^32 nodes, and each of its sets of flags at
    /// most 65 words.
    fn end(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    fn node(&self, node: u32) -> Option<&Node> {
        self.nodes.get(node as usize)
    }

    fn bytes_at(&self, start: u32, end: u32) -> &[u8] {
        self.data.get(start as usize..end as usize).unwrap_or_default()
    }

    fn text_at(&self, start: u32, end: u32) -> &str {
        str::from_utf8(self.bytes_at(start, end)).unwrap_or_default()
    }

    fn label_text(&self, label: Label) -> &str {
        match label {
            Label::Kept(name) => name.text(),
            Label::Own(start, end) => self.text_at(start, end),
        }
    }

    fn label(&mut self, text: &str) -> Label {
        if let Some(name) = Name::of(text) {
            return Label::Kept(name);
        }
        let (start, end) = self.append(text.as_bytes()).unwrap_or_default();
        Label::Own(start, end)
    }

    fn text(&mut self, text: &str) -> Held {
        self.append(text.as_bytes()).map_or(Held::Null, |(start, end)| Held::Text(start, end))
    }

    /// Appends to the data and returns the position.
    fn append(&mut self, bytes: &[u8]) -> Option<(u32, u32)> {
        let (start, end) = (self.data.len(), self.data.len().saturating_add(bytes.len()));
        if end > MAX_DATA {
            let error = Error::limit("text and bytes of a message", MAX_DATA as u64, end as u64);
            self.error.get_or_insert(error);
            return None;
        }
        self.data.extend_from_slice(bytes);
        Some((u32::try_from(start).ok()?, u32::try_from(end).ok()?))
    }
}

/// Copies a tree.
struct Copying<'c, 't, 'n> {
    stored: &'c mut Stored,
    tree: &'t Tree<'n>,
    /// Where the first layer's bytes begin in the data, if it contains them.
    start: Option<u32>,
}

impl<'t, 'n> Copying<'_, 't, 'n> {
    fn record(&mut self, children: Children<'t, 'n>) {
        let (at, name) = (self.stored.nodes.len(), self.stored.label(""));
        self.stored.nodes.push(Node { name, value: Held::Record, next: 0, bytes: (0, 0) });
        children.for_each(|child| self.node(child));
        self.close(at);
    }

    /// The recursion is as deep as the tree, whose depth has a limit.
    fn node(&mut self, node: NodeRef<'_, '_>) {
        let at = self.stored.nodes.len();
        let value = self.value(node);
        let (name, bytes) = (self.stored.label(node.name()), self.place(node));
        self.stored.nodes.push(Node { name, value, next: 0, bytes });
        match node.value() {
            Value::Record | Value::List => node.children().for_each(|child| self.node(child)),
            Value::Flags(bits, names) => {
                let (known, rest) = names.flags(bits);
                let rest = (rest != 0).then(|| format!("0x{rest:x}"));
                for word in known.into_iter().chain(rest.as_deref()) {
                    let (name, value) = (self.stored.label(""), self.word(word));
                    self.stored.nodes.push(Node { name, value, next: 0, bytes });
                    self.close(self.stored.nodes.len() - 1);
                }
            }
            _ => {}
        }
        self.close(at);
    }

    fn close(&mut self, at: usize) {
        let next = self.stored.end();
        if let Some(node) = self.stored.nodes.get_mut(at) {
            node.next = next;
        }
    }

    fn value(&mut self, node: NodeRef<'_, '_>) -> Held {
        match node.value() {
            Value::Record => Held::Record,
            Value::List | Value::Flags(..) => Held::List,
            Value::Null => Held::Null,
            Value::Bool(value) => Held::Bool(value),
            Value::Unsigned(value) | Value::Hex(value) => Held::Unsigned(value),
            Value::Signed(value) => Held::Signed(value),
            Value::F32(value) => Held::F32(value),
            Value::F64(value) => Held::F64(value),
            Value::Enum(value, names) => match names.name(value) {
                Some(name) => self.word(name),
                None => Held::Signed(value),
            },
            Value::Span(span) => {
                let raw = node.span(span);
                let content = span.form.read(raw);
                let in_place = || {
                    let start = self.start.filter(|_| node.layer() == 0)?;
                    let start = start.checked_add(span.start)?;
                    Some((start, start.checked_add(u32::try_from(raw.len()).ok()?)?))
                };
                match (&content, in_place()) {
                    (Content::Text(Cow::Borrowed(_)), Some((start, end))) => Held::Text(start, end),
                    (Content::Bytes(Cow::Borrowed(_)), Some((start, end))) => {
                        Held::Bytes(start, end)
                    }
                    (Content::Text(text), _) => self.stored.text(text),
                    (Content::Bytes(bytes), _) => {
                        let place = self.stored.append(bytes);
                        place.map_or(Held::Null, |(start, end)| Held::Bytes(start, end))
                    }
                }
            }
        }
    }

    fn word(&mut self, word: &str) -> Held {
        Name::of(word).map_or_else(|| self.stored.text(word), Held::Word)
    }

    /// The bytes of a node. Inside a compressed or encrypted part, these are the bytes of the whole
    /// part.
    fn place(&self, node: NodeRef<'_, '_>) -> (u32, u32) {
        let (bytes, mut layer) = (node.bytes(), node.layer());
        let mut place = (bytes.start, bytes.end);
        // Every layer comes after its parent.
        while let Some(parent) =
            self.tree.layers().get(usize::from(layer)).and_then(|layer| layer.parent())
            && parent.layer < layer
        {
            place = (parent.start, parent.end);
            layer = parent.layer;
        }
        place
    }
}

/// The Python object for a node.
pub(crate) fn object<'py>(
    py: Python<'py>,
    stored: &Arc<Stored>,
    node: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(Node { value, .. }) = stored.node(node) else { return Ok(py.None().into_bound(py)) };
    Ok(match *value {
        Held::Record => Bound::new(py, Record::new(Arc::clone(stored), node))?.into_any(),
        Held::List => {
            let list = PyList::empty(py);
            for child in stored.children(node) {
                list.append(object(py, stored, child)?)?;
            }
            list.into_any()
        }
        other => single(py, stored, other)?,
    })
}

/// The Python object for a node, with dictionaries in place of records.
pub(crate) fn plain_object<'py>(
    py: Python<'py>,
    stored: &Stored,
    node: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(Node { value, .. }) = stored.node(node) else { return Ok(py.None().into_bound(py)) };
    Ok(match *value {
        Held::Record => {
            let dict = PyDict::new(py);
            for child in stored.children(node) {
                let value = plain_object(py, stored, child)?;
                match stored.node(child).map(|node| node.name) {
                    Some(Label::Kept(name)) => dict.set_item(name.object(py), value)?,
                    _ => dict.set_item(stored.name(child), value)?,
                }
            }
            dict.into_any()
        }
        Held::List => {
            let list = PyList::empty(py);
            for child in stored.children(node) {
                list.append(plain_object(py, stored, child)?)?;
            }
            list.into_any()
        }
        other => single(py, stored, other)?,
    })
}

/// The Python string for a node's name.
pub(crate) fn name_object<'py>(
    py: Python<'py>,
    stored: &Stored,
    node: u32,
) -> Bound<'py, PyString> {
    match stored.node(node).map(|node| node.name) {
        Some(Label::Kept(name)) => name.object(py).clone(),
        _ => PyString::new(py, stored.name(node)),
    }
}

fn single<'py>(py: Python<'py>, stored: &Stored, value: Held) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Held::Record | Held::List | Held::Null => py.None().into_bound(py),
        Held::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Held::Unsigned(value) => value.into_pyobject(py)?.into_any(),
        Held::Signed(value) => value.into_pyobject(py)?.into_any(),
        Held::F32(value) => f64::from(value).into_pyobject(py)?.into_any(),
        Held::F64(value) => value.into_pyobject(py)?.into_any(),
        Held::Word(name) => name.object(py).clone().into_any(),
        Held::Text(start, end) => PyString::new(py, stored.text_at(start, end)).into_any(),
        Held::Bytes(start, end) => PyBytes::new(py, stored.bytes_at(start, end)).into_any(),
    })
}
