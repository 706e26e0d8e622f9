//! XML text as nested elements. The memory that the elements take is proportional to the length of
//! the text, so only the depth and that length are limited.

use core::iter;
use core::num::NonZeroU32;
use core::ops::Range;

use worldwire_core::Limits;

use crate::xml::{Diagnostics, Scanner, Tag, Token};

/// The elements of a file, in the order in which they begin. There may be millions, so they are
/// compact.
pub(super) struct Document<'t> {
    text: &'t str,
    nodes: Vec<Node>,
    attributes: Vec<Attributes>,
    /// Texts that differ from those in the file, such as texts with entities.
    texts: Vec<String>,
}

/// An element, followed by its children.
struct Node {
    /// The position of its name.
    at: u32,
    length: u32,
    /// The index after its last descendant.
    end: u32,
    words: TextSource,
    attributes: Option<NonZeroU32>,
}

/// The text of an element.
#[derive(Clone, Copy)]
enum TextSource {
    /// A range of the file.
    Here { at: u32, length: u32 },
    /// An index into the texts that differ from those in the file.
    Made(u32),
}

/// The attributes that are recognised.
#[derive(Default, PartialEq)]
struct Attributes {
    /// `Name`, of a class.
    class: Option<String>,
    /// `key`, of an element of a container.
    key: Option<String>,
    /// `count="0"`: a container without elements.
    is_none: bool,
}

/// An element with its contents.
#[derive(Clone, Copy)]
pub(super) struct Element<'x> {
    document: &'x Document<'x>,
    node: &'x Node,
    index: u32,
}

impl<'x> Element<'x> {
    pub(super) fn name(self) -> &'x str {
        self.document.text.get(self.span()).unwrap_or_default()
    }

    pub(super) fn span(self) -> Range<usize> {
        range(self.node.at, self.node.length)
    }

    pub(super) fn text(self) -> &'x str {
        match self.node.words {
            TextSource::Here { at, length } => self.document.text.get(range(at, length)),
            TextSource::Made(index) => self.document.texts.get(index as usize).map(String::as_str),
        }
        .unwrap_or_default()
    }

    pub(super) fn children(self) -> impl Iterator<Item = Self> {
        self.document.elements(self.index + 1, self.node.end)
    }

    pub(super) fn class(self) -> Option<&'x str> {
        self.attributes()?.class.as_deref()
    }

    pub(super) fn key(self) -> Option<&'x str> {
        self.attributes()?.key.as_deref()
    }

    /// Whether the element marks its container as empty rather than being one of the container's
    /// elements.
    pub(super) fn is_none(self) -> bool {
        let is_none = self.attributes().is_some_and(|attributes| attributes.is_none);
        is_none && self.children().next().is_none() && self.text().trim().is_empty()
    }

    fn attributes(self) -> Option<&'x Attributes> {
        self.document.attributes.get(self.node.attributes?.get() as usize - 1)
    }
}

impl Document<'_> {
    /// The children of the root element.
    pub(super) fn roots(&self) -> impl Iterator<Item = Element<'_>> {
        self.elements(1, number(self.nodes.len()))
    }

    /// Sibling elements.
    fn elements(&self, mut from: u32, to: u32) -> impl Iterator<Item = Element<'_>> {
        iter::from_fn(move || {
            let index = from;
            let node = self.nodes.get(index as usize).filter(|_| index < to)?;
            from = node.end;
            Some(Element { document: self, node, index })
        })
    }
}

/// Reads the elements of a file. Returns `None` if the file is not XML of this kind, which is then
/// reported.
pub(super) fn document<'t>(
    text: &'t str,
    limits: &Limits,
    diagnostics: &mut Diagnostics<'t>,
) -> Option<Document<'t>> {
    if u32::try_from(text.len()).is_err() {
        diagnostics.error(&(0..0), "the file is longer than 4 GiB", "split it");
        return None;
    }
    // Two levels for every object and one for the root; the innermost object may hold a value.
    let max_depth = (limits.depth as usize).saturating_mul(2).saturating_add(1);
    let mut scanner = Scanner::new(text);
    let mut document =
        Document { text, nodes: Vec::new(), attributes: Vec::new(), texts: Vec::new() };
    // The nodes of the open elements.
    let mut open: Vec<usize> = Vec::new();
    loop {
        let tag = match scanner.read_reported(diagnostics)? {
            Token::Open(tag) => tag,
            Token::Close => {
                document.close(open.pop());
                continue;
            }
            Token::Text { text, span, .. } => {
                document.push(open.last(), &text, span.start, diagnostics);
                continue;
            }
            Token::DocType(_) => continue,
            Token::End => break,
        };
        let is_first = document.nodes.is_empty();
        if open.is_empty() && !(is_first && tag.name == "Objects") {
            let what = if is_first { "the root element is" } else { "a second root element:" };
            diagnostics.error(
                &tag.span,
                format!("{what} {}", tag.name),
                "put all objects into one Objects element",
            );
            return None;
        }
        if open.len() == max_depth {
            let text = format!("elements nested more than {max_depth} deep");
            let help = format!("objects can be nested at most {} deep (depth)", limits.depth);
            diagnostics.error(&tag.span, text, &help);
            return None;
        }
        let mut attributes = value_attributes(&tag);
        if tag.name == "Class"
            && let Some(class) = class_name(&tag, diagnostics)
        {
            attributes.get_or_insert_default().class = Some(class);
        }
        open.push(document.nodes.len());
        document.open(&tag.span, attributes);
    }
    if document.nodes.is_empty() {
        diagnostics.error(&(0..0), "the file has no elements", "");
        return None;
    }
    Some(document)
}

impl<'t> Document<'t> {
    fn open(&mut self, name: &Range<usize>, attributes: Option<Attributes>) {
        let attributes = attributes.and_then(|attributes| {
            // In containers, neighbours usually share their class.
            if self.attributes.last() != Some(&attributes) {
                self.attributes.push(attributes);
            }
            NonZeroU32::new(number(self.attributes.len()))
        });
        let (at, length) = (number(name.start), number(name.len()));
        let words = TextSource::Here { at: 0, length: 0 };
        self.nodes.push(Node { at, length, end: 0, words, attributes });
    }

    fn close(&mut self, index: Option<usize>) {
        let end = number(self.nodes.len());
        if let Some(node) = index.and_then(|index| self.nodes.get_mut(index)) {
            node.end = end;
        }
    }

    /// Adds character data to an element.
    fn push(
        &mut self,
        index: Option<&usize>,
        words: &str,
        start: usize,
        diagnostics: &mut Diagnostics<'t>,
    ) {
        let end = start.saturating_add(words.len());
        let Some(&index) = index else {
            if !words.trim().is_empty() {
                diagnostics.warning(&(start..end), "stray text between elements", "");
            }
            return;
        };
        let has_children = self.nodes.len() > index + 1;
        let Some(node) = self.nodes.get_mut(index) else { return };
        let here = self.text.get(start..end) == Some(words);
        match node.words {
            TextSource::Here { length: 0, .. } if here => {
                node.words = TextSource::Here { at: number(start), length: number(words.len()) };
            }
            // White space between child elements is not text.
            _ if words.trim().is_empty() && has_children => {}
            TextSource::Here { at, length } => {
                let before = self.text.get(range(at, length)).unwrap_or_default();
                node.words = TextSource::Made(number(self.texts.len()));
                self.texts.push(format!("{before}{words}"));
            }
            TextSource::Made(text) => {
                if let Some(text) = self.texts.get_mut(text as usize) {
                    text.push_str(words);
                }
            }
        }
    }
}

fn class_name(tag: &Tag<'_>, diagnostics: &mut Diagnostics<'_>) -> Option<String> {
    let attributes = tag.located_attributes(diagnostics);
    attributes.into_iter().find(|it| it.name == "Name").map(|it| it.value.into_owned())
}

/// The attributes of a value. Most have none.
fn value_attributes(tag: &Tag<'_>) -> Option<Attributes> {
    let mut attributes = None;
    for (name, value) in tag.attributes() {
        match name {
            "key" => {
                let attributes: &mut Attributes = attributes.get_or_insert_default();
                attributes.key = Some(value.into_owned());
            }
            "count" if value == "0" => attributes.get_or_insert_default().is_none = true,
            _ => {}
        }
    }
    attributes
}

/// The range of this length at a position.
fn range(at: u32, length: u32) -> Range<usize> {
    let at = at as usize;
    at..at + length as usize
}

/// Converts a position or count. It fits, because the file is shorter than 4 GiB.
fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
