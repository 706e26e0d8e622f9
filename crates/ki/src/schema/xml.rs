//! The one shape that message and table XML have: elements with records with fields.
//!
//! Depth is fixed and nothing is expanded, so hostile text has no way to grow.

use core::ops::Range;
use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use worldwire_core::{Diagnostic, Source};

/// The most bytes of a file.
const MAX_BYTES: usize = 16 << 20;
/// The most bytes of a name.
const MAX_NAME: usize = 128;
/// How deep elements may stand in each other before reading ends.
const MAX_DEPTH: usize = 32;
/// The most things that are said about one file.
const MAX_SAID: usize = 200;

/// A file: what stands in its root element.
pub(crate) struct Document<'t> {
    pub(crate) elements: Vec<Element<'t>>,
}

/// A child of the root: a message, a table, or information about the file.
pub(crate) struct Element<'t> {
    pub(crate) name: &'t str,
    pub(crate) span: Range<usize>,
    pub(crate) records: Vec<Vec<Item<'t>>>,
}

/// A field of a record.
pub(crate) struct Item<'t> {
    pub(crate) name: &'t str,
    pub(crate) span: Range<usize>,
    pub(crate) attributes: Vec<(&'t str, Range<usize>, Cow<'t, str>)>,
    pub(crate) text: Cow<'t, str>,
}

impl Item<'_> {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, ..)| *key == name).map(|(_, _, value)| &**value)
    }
}

/// A text and what is said about it.
pub(crate) struct Notes<'t> {
    pub(crate) source: Source<'t>,
    said: Vec<Diagnostic>,
    strict: bool,
    failed: bool,
    unsaid: usize,
}

impl<'t> Notes<'t> {
    pub(crate) fn new(source: Source<'t>, strict: bool) -> Self {
        Self { source, said: Vec::new(), strict, failed: false, unsaid: 0 }
    }

    fn say(&mut self, error: bool, span: &Range<usize>, text: impl Into<String>, help: &str) {
        // The first error is always said. What is not said is not made: that looks at the whole
        // line, and a hostile file is one long line.
        if self.has_room() || (error && !self.failed) {
            let said = match error {
                true => self.source.error(span.clone(), text),
                false => self.source.warning(span.clone(), text),
            };
            self.said.push(if help.is_empty() { said } else { said.help(help) });
        } else {
            self.unsaid += 1;
        }
        self.failed |= error;
    }

    /// Worth knowing, even when everything is in order.
    pub(crate) fn note(&mut self, span: &Range<usize>, text: impl Into<String>, help: &str) {
        self.say(false, span, text, help);
    }

    /// Odd: an error when strict.
    pub(crate) fn odd(&mut self, span: &Range<usize>, text: impl Into<String>, help: &str) {
        if self.strict {
            self.error(span, text, help);
        } else {
            self.note(span, text, help);
        }
    }

    /// Cannot stand.
    pub(crate) fn error(&mut self, span: &Range<usize>, text: impl Into<String>, help: &str) {
        self.say(true, span, text, help);
    }

    /// Whether what is said is still kept: else it need not be worked out.
    pub(crate) fn has_room(&self) -> bool {
        self.said.len() < MAX_SAID
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    /// All that was said, in the order of the text.
    pub(crate) fn into_said(mut self) -> Vec<Diagnostic> {
        self.said.sort_by_key(|said| (said.line(), said.column()));
        if self.unsaid > 0 {
            let text = format!("{} more like these", self.unsaid);
            self.said.push(self.source.warning(0..0, text));
        }
        self.said
    }
}

/// The text of a file: without a byte order mark, and with what is no UTF-8 replaced.
///
/// # Errors
/// One diagnostic, for what is no text at all or too long.
pub(crate) fn text<'b>(
    name: &str,
    bytes: &'b [u8],
) -> Result<(Cow<'b, str>, bool), Box<Diagnostic>> {
    if bytes.len() > MAX_BYTES {
        let text = format!("{} bytes, at most {MAX_BYTES} are read", bytes.len());
        return refuse(name, text, "known definitions are far smaller");
    }
    text_of_any_length(name, bytes)
}

/// The same for files that may be large, as memory follows their length.
///
/// # Errors
/// One diagnostic, for what is no text at all.
pub(crate) fn text_of_any_length<'b>(
    name: &str,
    bytes: &'b [u8],
) -> Result<(Cow<'b, str>, bool), Box<Diagnostic>> {
    if bytes.starts_with(b"BINd") {
        let help = "it is not XML text; deserialize it first";
        return refuse(name, "a BINd container, not XML".to_owned(), help);
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return refuse(name, "UTF-16 text".to_owned(), "store it as UTF-8");
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    let replaced = matches!(text, Cow::Owned(_));
    Ok((text, replaced))
}

fn refuse<R>(name: &str, text: String, help: &str) -> Result<R, Box<Diagnostic>> {
    Err(Box::new(Source::new(name, "").error(0..0, text).help(help)))
}

/// Reads a file of the one shape. `None` when it is no XML: that is said then.
pub(crate) fn document<'t>(text: &'t str, notes: &mut Notes<'t>) -> Option<Document<'t>> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    let mut elements: Vec<Element<'t>> = Vec::new();
    let mut open: Vec<(&'t str, Range<usize>)> = Vec::new();
    let mut roots = 0;
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
                open.pop();
                continue;
            }
            Event::Text(words) => {
                let words = words.into_inner();
                stray(&words, start, text, open.len(), &mut elements, notes);
                continue;
            }
            Event::CData(words) => {
                let words = words.into_inner();
                stray(&words, start + "<![CDATA[".len(), text, open.len(), &mut elements, notes);
                continue;
            }
            Event::GeneralRef(name) => {
                let whole = text.get(start..end).unwrap_or_default();
                let known = match (name.resolve_char_ref(), &*name.into_inner()) {
                    (Ok(Some(character)), _) => Some(character),
                    (_, "lt") => Some('<'),
                    (_, "gt") => Some('>'),
                    (_, "amp") => Some('&'),
                    (_, "quot") => Some('"'),
                    (_, "apos") => Some('\''),
                    _ => None,
                };
                if known.is_none() {
                    notes.odd(&(start..end), format!("{whole} is kept as it is"), "");
                }
                let mut buffer = [0; 4];
                let words = known.map_or(whole, |known| known.encode_utf8(&mut buffer));
                stray(words, start, text, open.len(), &mut elements, notes);
                continue;
            }
            Event::DocType(_) => {
                notes.odd(&(start..end), "document type ignored", "");
                continue;
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
            Event::Eof => break,
        };
        let length = tag.name().into_inner().len();
        let span = start + 1..start + 1 + length;
        let name = text.get(span.clone()).unwrap_or_default();
        if length > MAX_NAME {
            notes.error(&span, format!("a name of {length} bytes, at most {MAX_NAME}"), "");
            return None;
        }
        match open.len() {
            0 if roots > 0 => {
                notes.error(&span, format!("another root element {name}"), "");
                return None;
            }
            0 => roots += 1,
            1 => elements.push(Element { name, span: span.clone(), records: Vec::new() }),
            2 if name == "RECORD" => {
                if let Some(element) = elements.last_mut() {
                    element.records.push(Vec::new());
                }
            }
            2 => notes.odd(&span, format!("{name} is not a RECORD; ignored"), ""),
            3 if open.get(2).is_some_and(|(name, _)| *name == "RECORD") => {
                let attributes = attributes(&tag, text, &span, notes);
                let record = elements.last_mut().and_then(|element| element.records.last_mut());
                if let Some(record) = record {
                    record.push(Item {
                        name,
                        span: span.clone(),
                        attributes,
                        text: Cow::default(),
                    });
                }
            }
            3 => {}
            depth if depth >= MAX_DEPTH => {
                notes.error(&span, format!("elements nested more than {MAX_DEPTH} deep"), "");
                return None;
            }
            _ => notes.odd(&span, format!("{name} inside a field is ignored"), ""),
        }
        if !empty {
            open.push((name, span));
        }
    }
    if let Some((name, span)) = open.pop() {
        notes.error(&span, format!("{name} is not closed"), "the file is cut off");
        return None;
    }
    if roots == 0 {
        notes.error(&(0..0), "no elements", "");
        return None;
    }
    Some(Document { elements })
}

/// Character data: the text of a field, white space, or astray.
fn stray<'t>(
    words: &str,
    start: usize,
    text: &'t str,
    depth: usize,
    elements: &mut [Element<'t>],
    notes: &mut Notes<'t>,
) {
    if depth == 4 {
        let record = elements.last_mut().and_then(|element| element.records.last_mut());
        if let Some(item) = record.and_then(|record| record.last_mut()) {
            let whole = text.get(start..start + words.len()).filter(|whole| *whole == words);
            match whole {
                Some(whole) if item.text.is_empty() => item.text = Cow::Borrowed(whole),
                _ => item.text.to_mut().push_str(words),
            }
        }
    } else if !words.trim().is_empty() {
        let skipped = words.len() - words.trim_start().len();
        let at = start + skipped;
        notes.odd(&(at..at + words.trim().len()), "stray text between elements", "");
    }
}

pub(crate) fn attributes<'t>(
    tag: &BytesStart<'_>,
    text: &'t str,
    span: &Range<usize>,
    notes: &mut Notes<'t>,
) -> Vec<(&'t str, Range<usize>, Cow<'t, str>)> {
    let mut found = Vec::with_capacity(2);
    let mut from = span.end;
    for attribute in tag.attributes() {
        let attribute = match attribute {
            Ok(attribute) => attribute,
            Err(error) => {
                notes.odd(span, format!("attribute ignored: {error}"), "");
                continue;
            }
        };
        // Attributes come in their order, so each name is the next of its kind.
        let key = attribute.key.into_inner();
        let rest = text.get(from..).unwrap_or_default();
        let at = from + rest.find(key).unwrap_or(0);
        let place = at..at + key.len();
        let value_at = text.get(place.end..).and_then(|rest| rest.find(['"', '\'']));
        let value_at = place.end + value_at.map_or(0, |quote| quote + 1);
        let value_place = value_at..value_at + attribute.value.len();
        from = value_place.end;
        let plain = !attribute.value.contains('&');
        let value = match text.get(value_place).filter(|value| plain && *value == attribute.value) {
            Some(value) => Cow::Borrowed(value),
            None => Cow::Owned(
                quick_xml::escape::unescape(&attribute.value)
                    .map_or_else(|_| attribute.value.to_string(), Cow::into_owned),
            ),
        };
        found.push((text.get(place.clone()).unwrap_or_default(), place, value));
    }
    found
}

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
