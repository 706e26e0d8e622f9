//! XML text as elements in each other. Nothing is expanded, so hostile text cannot grow: memory
//! follows its length, and only depth has a limit.

use core::ops::Range;
use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use worldwire_core::Limits;

use crate::schema::xml::{Notes, attributes};

/// An element with all that is in it. There may be millions.
pub(super) struct Element<'t> {
    pub(super) name: &'t str,
    /// Where the name stands.
    at: usize,
    attributes: Option<Box<Attributes>>,
    pub(super) children: Vec<Self>,
    pub(super) text: Cow<'t, str>,
}

/// The attributes that mean something.
#[derive(Default)]
struct Attributes {
    /// `Name`, of a class.
    class: Option<String>,
    /// `key`, of an element of a container.
    key: Option<String>,
    /// `count="0"`: a container without elements.
    is_none: bool,
}

impl Element<'_> {
    pub(super) fn span(&self) -> Range<usize> {
        self.at..self.at + self.name.len()
    }

    pub(super) fn class(&self) -> Option<&str> {
        self.attributes.as_ref()?.class.as_deref()
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.attributes.as_ref()?.key.as_deref()
    }

    /// Whether it is no element of its container but says that there are none.
    pub(super) fn is_none(&self) -> bool {
        let is_none = self.attributes.as_ref().is_some_and(|attributes| attributes.is_none);
        is_none && self.children.is_empty() && self.text.trim().is_empty()
    }
}

/// The children of the root element. `None` when it is no XML of this kind: that is said then.
pub(super) fn document<'t>(
    text: &'t str,
    limits: &Limits,
    notes: &mut Notes<'t>,
) -> Option<Vec<Element<'t>>> {
    // Two for every object, the root, and a value in the innermost object.
    let most_depth = (limits.depth as usize).saturating_mul(2).saturating_add(1);
    let mut reader = Reader::from_str(text);
    reader.config_mut().allow_dangling_amp = true;
    let mut open: Vec<Element<'t>> = Vec::new();
    let mut root = None;
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
                close(&mut open, &mut root);
                continue;
            }
            Event::Text(words) => {
                push(&mut open, &words.into_inner(), text, start, notes);
                continue;
            }
            Event::CData(words) => {
                let start = start + "<![CDATA[".len();
                push(&mut open, &words.into_inner(), text, start, notes);
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
                push(&mut open, words, text, start, notes);
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
        if open.is_empty() && (root.is_some() || name != "Objects") {
            let what = if root.is_some() { "another root element" } else { "the root element" };
            notes.error(
                &span,
                format!("{what} {name}"),
                "all objects belong in one Objects element",
            );
            return None;
        }
        if open.len() == most_depth {
            let text = format!("elements nested more than {most_depth} deep");
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
        let children = Vec::new();
        open.push(Element { name, at: span.start, attributes, children, text: Cow::default() });
        if empty {
            close(&mut open, &mut root);
        }
    }
    if let Some(element) = open.pop() {
        notes.error(
            &element.span(),
            format!("{} is not closed", element.name),
            "the file is cut off",
        );
        return None;
    }
    if root.is_none() {
        notes.error(&(0..0), "no elements", "");
    }
    root.map(|root: Element<'t>| root.children)
}

fn close<'t>(open: &mut Vec<Element<'t>>, root: &mut Option<Element<'t>>) {
    if let Some(done) = open.pop() {
        match open.last_mut() {
            Some(around) => around.children.push(done),
            None => *root = Some(done),
        }
    }
}

fn push<'t>(
    open: &mut [Element<'t>],
    words: &str,
    text: &'t str,
    start: usize,
    notes: &mut Notes<'t>,
) {
    let end = start.saturating_add(words.len());
    match open.last_mut() {
        Some(element) => match text.get(start..end).filter(|whole| *whole == words) {
            Some(whole) if element.text.is_empty() => element.text = Cow::Borrowed(whole),
            // Between the elements in it there is nothing but white space.
            _ if words.trim().is_empty() && !element.children.is_empty() => {}
            _ => element.text.to_mut().push_str(words),
        },
        None if words.trim().is_empty() => {}
        None => notes.note(&(start..end), "stray text between elements", ""),
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
fn value_attributes(tag: &BytesStart<'_>) -> Option<Box<Attributes>> {
    let mut found = None;
    for attribute in tag.attributes().with_checks(false).flatten() {
        let name = attribute.key.into_inner();
        let value: &str = &attribute.value;
        match name {
            "key" => {
                let found: &mut Box<Attributes> = found.get_or_insert_default();
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
