//! XML text as elements in each other. Nothing is expanded, so hostile text cannot grow: memory
//! follows its length, and only depth and the length itself have a limit.

use core::iter;
use core::num::NonZeroU32;
use core::ops::Range;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use worldwire_core::Limits;

use crate::schema::xml::{Notes, attributes};

/// The elements of a file, in the order in which they begin: there may be millions.
pub(super) struct Document<'t> {
    text: &'t str,
    nodes: Vec<Node>,
    attributes: Vec<Attributes>,
    /// Texts that do not stand in the file as they are.
    texts: Vec<String>,
}

/// An element. Its parts stand behind it.
struct Node {
    /// Where its name stands.
    at: u32,
    length: u32,
    /// The node behind the last one in it.
    end: u32,
    words: Words,
    attributes: Option<NonZeroU32>,
}

/// The text of an element.
#[derive(Clone, Copy)]
enum Words {
    /// Bytes of the file.
    Here { at: u32, length: u32 },
    /// One of the texts beside it.
    Made(u32),
}

/// The attributes that mean something.
#[derive(Default, PartialEq)]
struct Attributes {
    /// `Name`, of a class.
    class: Option<String>,
    /// `key`, of an element of a container.
    key: Option<String>,
    /// `count="0"`: a container without elements.
    is_none: bool,
}

/// An element with all that is in it.
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
            Words::Here { at, length } => self.document.text.get(range(at, length)),
            Words::Made(index) => self.document.texts.get(index as usize).map(String::as_str),
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

    /// Whether it is no element of its container but says that there are none.
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

    /// Elements beside each other.
    fn elements(&self, mut from: u32, to: u32) -> impl Iterator<Item = Element<'_>> {
        iter::from_fn(move || {
            let index = from;
            let node = self.nodes.get(index as usize).filter(|_| index < to)?;
            from = node.end;
            Some(Element { document: self, node, index })
        })
    }
}

/// The elements of a file. `None` when it is no XML of this kind: that is said then.
pub(super) fn document<'t>(
    text: &'t str,
    limits: &Limits,
    notes: &mut Notes<'t>,
) -> Option<Document<'t>> {
    if u32::try_from(text.len()).is_err() {
        notes.error(&(0..0), "longer than 4 GiB", "split it");
        return None;
    }
    // Two for every object, the root, and a value in the innermost object.
    let max_depth = (limits.depth as usize).saturating_mul(2).saturating_add(1);
    let mut reader = Reader::from_str(text);
    reader.config_mut().allow_dangling_amp = true;
    let mut document =
        Document { text, nodes: Vec::new(), attributes: Vec::new(), texts: Vec::new() };
    // The nodes of the elements that are not closed yet.
    let mut open: Vec<usize> = Vec::new();
    loop {
        let start = offset(reader.buffer_position());
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => {
                let at = offset(reader.error_position());
                notes.error(&(at..at + 1), format!("invalid XML: {error}"), "");
                return None;
            }
        };
        let end = offset(reader.buffer_position());
        let (tag, empty) = match event {
            Event::Start(tag) => (tag, false),
            Event::Empty(tag) => (tag, true),
            Event::End(_) => {
                document.close(open.pop());
                continue;
            }
            Event::Text(words) => {
                document.push(open.last(), &words.into_inner(), start, notes);
                continue;
            }
            Event::CData(words) => {
                let start = start + "<![CDATA[".len();
                document.push(open.last(), &words.into_inner(), start, notes);
                continue;
            }
            Event::GeneralRef(name) => {
                let known = match (name.resolve_char_ref(), &*name.into_inner()) {
                    (Ok(Some(character)), _) => Some(character),
                    (_, "lt") => Some('<'),
                    (_, "gt") => Some('>'),
                    (_, "amp") => Some('&'),
                    (_, "quot") => Some('"'),
                    (_, "apos") => Some('\''),
                    _ => None,
                };
                let whole = text.get(start..end).unwrap_or_default();
                if known.is_none() {
                    notes.odd(&(start..end), format!("{whole} is kept as it is"), "");
                }
                let mut buffer = [0; 4];
                let words = known.map_or(whole, |known| known.encode_utf8(&mut buffer));
                document.push(open.last(), words, start, notes);
                continue;
            }
            Event::DocType(_) => {
                notes.odd(&(start..end), "document type ignored", "");
                continue;
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
            Event::Eof => break,
        };
        let span = start + 1..start + 1 + tag.name().into_inner().len();
        let name = text.get(span.clone()).unwrap_or_default();
        let is_first = document.nodes.is_empty();
        if open.is_empty() && !(is_first && name == "Objects") {
            let what = if is_first { "the root element" } else { "another root element" };
            notes.error(
                &span,
                format!("{what} {name}"),
                "all objects belong in one Objects element",
            );
            return None;
        }
        if open.len() == max_depth {
            let text = format!("elements nested more than {max_depth} deep");
            let help = format!("objects can be nested at most {} deep (depth)", limits.depth);
            notes.error(&span, text, &help);
            return None;
        }
        let mut attributes = value_attributes(&tag);
        if name == "Class"
            && let Some(class) = class_name(&tag, text, &span, notes)
        {
            attributes.get_or_insert_default().class = Some(class);
        }
        open.push(document.nodes.len());
        document.open(&span, attributes);
        if empty {
            document.close(open.pop());
        }
    }
    if let Some(node) = open.pop().and_then(|index| document.nodes.get(index)) {
        let span = range(node.at, node.length);
        let name = text.get(span.clone()).unwrap_or_default();
        notes.error(&span, format!("{name} is not closed"), "the file is cut off");
        return None;
    }
    if document.nodes.is_empty() {
        notes.error(&(0..0), "no elements", "");
        return None;
    }
    Some(document)
}

impl<'t> Document<'t> {
    fn open(&mut self, name: &Range<usize>, attributes: Option<Attributes>) {
        let attributes = attributes.and_then(|attributes| {
            // Classes repeat in containers.
            if self.attributes.last() != Some(&attributes) {
                self.attributes.push(attributes);
            }
            NonZeroU32::new(number(self.attributes.len()))
        });
        let (at, length) = (number(name.start), number(name.len()));
        let words = Words::Here { at: 0, length: 0 };
        self.nodes.push(Node { at, length, end: 0, words, attributes });
    }

    fn close(&mut self, index: Option<usize>) {
        let end = number(self.nodes.len());
        if let Some(node) = index.and_then(|index| self.nodes.get_mut(index)) {
            node.end = end;
        }
    }

    /// Text in an element.
    fn push(&mut self, index: Option<&usize>, words: &str, start: usize, notes: &mut Notes<'t>) {
        let end = start.saturating_add(words.len());
        let Some(&index) = index else {
            if !words.trim().is_empty() {
                notes.note(&(start..end), "stray text between elements", "");
            }
            return;
        };
        let has_children = self.nodes.len() > index + 1;
        let Some(node) = self.nodes.get_mut(index) else { return };
        let here = self.text.get(start..end) == Some(words);
        match node.words {
            Words::Here { length: 0, .. } if here => {
                node.words = Words::Here { at: number(start), length: number(words.len()) };
            }
            // Between the elements in it there is nothing but white space.
            _ if words.trim().is_empty() && has_children => {}
            Words::Here { at, length } => {
                let before = self.text.get(range(at, length)).unwrap_or_default();
                node.words = Words::Made(number(self.texts.len()));
                self.texts.push(format!("{before}{words}"));
            }
            Words::Made(text) => {
                if let Some(text) = self.texts.get_mut(text as usize) {
                    text.push_str(words);
                }
            }
        }
    }
}

fn class_name<'t>(
    tag: &BytesStart<'_>,
    text: &'t str,
    span: &Range<usize>,
    notes: &mut Notes<'t>,
) -> Option<String> {
    let found = attributes(tag, text, span, notes);
    found.into_iter().find(|(key, ..)| *key == "Name").map(|(_, _, name)| name.into_owned())
}

/// Most values have none.
fn value_attributes(tag: &BytesStart<'_>) -> Option<Attributes> {
    let mut found = None;
    for attribute in tag.attributes().with_checks(false).flatten() {
        let name = attribute.key.into_inner();
        let value: &str = &attribute.value;
        match name {
            "key" => {
                let found: &mut Attributes = found.get_or_insert_default();
                found.key = Some(value.to_owned());
            }
            "count" if value == "0" => found.get_or_insert_default().is_none = true,
            _ => {}
        }
    }
    found
}

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

/// Where something of a length stands.
fn range(at: u32, length: u32) -> Range<usize> {
    let at = at as usize;
    at..at + length as usize
}

/// A place or count; the file has less than 4 Gi bytes.
fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
