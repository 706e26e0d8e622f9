//! The structure shared by message definitions and tables: elements with records of fields.

use core::ops::Range;
use std::borrow::Cow;

use worldwire_core::Diagnostic;

use super::{Attribute, Diagnostics, Scanner, Token, decode, refuse};

/// Larger files are refused.
const MAX_BYTES: usize = 16 << 20;
/// Longer names are refused.
const MAX_NAME: usize = 128;
/// Deeper nesting is refused.
const MAX_DEPTH: usize = 32;

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
    pub(crate) attributes: Vec<Attribute<'t>>,
    pub(crate) text: Cow<'t, str>,
}

impl Item<'_> {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|it| it.name == name).map(|it| &*it.value)
    }
}

/// The text of a file of this shape, as [`decode`] returns it.
pub(crate) fn text<'b>(
    name: &str,
    bytes: &'b [u8],
) -> Result<(Cow<'b, str>, bool), Box<Diagnostic>> {
    if bytes.len() > MAX_BYTES {
        let text = format!("the file has {} bytes; the maximum is {MAX_BYTES}", bytes.len());
        return refuse(name, text, "known definitions are far smaller");
    }
    decode(name, bytes)
}

/// Reads the children of the root element. Returns `None` if the text is not XML of this shape,
/// which is then reported.
pub(crate) fn read<'t>(
    text: &'t str,
    diagnostics: &mut Diagnostics<'t>,
) -> Option<Vec<Element<'t>>> {
    let mut scanner = Scanner::new(text);
    let mut elements: Vec<Element<'t>> = Vec::new();
    let mut has_root = false;
    loop {
        let tag = match scanner.read_reported(diagnostics)? {
            Token::Open(tag) => tag,
            Token::Text { text: content, span, .. } => {
                let depth = scanner.depth();
                push_text(&content, span, text, depth, &mut elements, diagnostics);
                continue;
            }
            Token::Close | Token::DocType(_) => continue,
            Token::End => break,
        };
        let (name, span) = (tag.name, &tag.span);
        if span.len() > MAX_NAME {
            let text = format!("a name of {} bytes; the maximum is {MAX_NAME}", span.len());
            diagnostics.error(span, text, "");
            return None;
        }
        match tag.depth {
            0 if has_root => {
                diagnostics.error(span, format!("a second root element, {name}"), "");
                return None;
            }
            0 => has_root = true,
            1 => elements.push(Element { name, span: span.clone(), records: Vec::new() }),
            2 if name == "RECORD" => {
                if let Some(element) = elements.last_mut() {
                    element.records.push(Vec::new());
                }
            }
            2 => diagnostics.strict_error(span, format!("{name} is not a RECORD; ignored"), ""),
            3 if scanner.open_name(2) == Some("RECORD") => {
                let attributes = tag.located_attributes(diagnostics);
                let record = elements.last_mut().and_then(|element| element.records.last_mut());
                if let Some(record) = record {
                    let span = span.clone();
                    record.push(Item { name, span, attributes, text: Cow::default() });
                }
            }
            3 => {}
            depth if depth >= MAX_DEPTH => {
                let text = format!("elements nested more than {MAX_DEPTH} deep");
                diagnostics.error(span, text, "");
                return None;
            }
            _ => diagnostics.strict_error(span, format!("{name} inside a field is ignored"), ""),
        }
    }
    if !has_root {
        diagnostics.error(&(0..0), "the file has no elements", "");
        return None;
    }
    Some(elements)
}

/// Handles character data: the text of a field, white space, or stray text.
fn push_text<'t>(
    content: &str,
    span: Range<usize>,
    text: &'t str,
    depth: usize,
    elements: &mut [Element<'t>],
    diagnostics: &mut Diagnostics<'t>,
) {
    if depth == 4 {
        let record = elements.last_mut().and_then(|element| element.records.last_mut());
        if let Some(item) = record.and_then(|record| record.last_mut()) {
            let in_file = text.get(span).filter(|in_file| *in_file == content);
            match in_file {
                Some(in_file) if item.text.is_empty() => item.text = Cow::Borrowed(in_file),
                _ => item.text.to_mut().push_str(content),
            }
        }
    } else if !content.trim().is_empty() {
        let skipped = content.len() - content.trim_start().len();
        let at = span.start + skipped;
        diagnostics.strict_error(
            &(at..at + content.trim().len()),
            "stray text between elements",
            "",
        );
    }
}
