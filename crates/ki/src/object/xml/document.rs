//! XML text as elements in each other. Nothing is expanded, so hostile text cannot grow.

use core::ops::Range;

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::schema::xml::{Notes, attributes};

/// How deep elements may stand in each other: two for every object.
const MOST_DEPTH: usize = 256;
/// The most elements of a file.
const MOST_ELEMENTS: usize = 1 << 20;

/// An element with all that is in it.
pub(super) struct Element<'t> {
    pub(super) name: &'t str,
    pub(super) span: Range<usize>,
    /// The attribute `Name`.
    pub(super) class: Option<String>,
    pub(super) children: Vec<Self>,
    pub(super) text: String,
}

/// The children of the root element. `None` when it is no XML of this kind: that is said then.
pub(super) fn document<'t>(text: &'t str, notes: &mut Notes<'t>) -> Option<Vec<Element<'t>>> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().allow_dangling_amp = true;
    let mut open: Vec<Element<'t>> = Vec::new();
    let mut root = None;
    let mut count = 0;
    loop {
        let start = offset(reader.buffer_position());
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => {
                let at = offset(reader.error_position());
                notes.error(&(at..at + 1), format!("no XML: {error}"), "");
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
                push(&mut open, &words.into_inner(), start, notes);
                continue;
            }
            Event::CData(words) => {
                push(&mut open, &words.into_inner(), start, notes);
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
                    notes.odd(&(start..end), format!("{whole} is kept as it stands"), "");
                }
                let mut buffer = [0; 4];
                let words = known.map_or(whole, |known| known.encode_utf8(&mut buffer));
                push(&mut open, words, start, notes);
                continue;
            }
            Event::DocType(_) => {
                notes.odd(&(start..end), "a document type is not read", "");
                continue;
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
            Event::Eof => break,
        };
        let span = start + 1..start + 1 + tag.name().into_inner().len();
        let name = text.get(span.clone()).unwrap_or_default();
        if open.is_empty() && (root.is_some() || name != "Objects") {
            let what = if root.is_some() { "another root element" } else { "the root element" };
            notes.error(&span, format!("{what} {name}"), "objects stand in one element Objects");
            return None;
        }
        count += 1;
        if open.len() == MOST_DEPTH || count > MOST_ELEMENTS {
            let limit = format!("at most {MOST_DEPTH} deep and {MOST_ELEMENTS} in all");
            notes.error(&span, format!("too many elements: {limit}"), "");
            return None;
        }
        let class = match name {
            "Class" => {
                let found = attributes(&tag, text, &span, notes);
                let mut found = found.into_iter().filter(|(key, ..)| *key == "Name");
                found.next().map(|(_, _, value)| value.into_owned())
            }
            _ => None,
        };
        open.push(Element { name, span, class, children: Vec::new(), text: String::new() });
        if empty {
            close(&mut open, &mut root);
        }
    }
    if let Some(element) = open.pop() {
        notes.error(&element.span, format!("{} does not end", element.name), "the file is cut off");
        return None;
    }
    if root.is_none() {
        notes.error(&(0..0), "no element at all", "");
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

fn push(open: &mut [Element<'_>], words: &str, start: usize, notes: &mut Notes<'_>) {
    match open.last_mut() {
        Some(element) => element.text.push_str(words),
        None if words.trim().is_empty() => {}
        None => notes.note(&(start..start + words.len()), "stray text between elements", ""),
    }
}

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
