//! Reading XML: the scanner for message definitions, tables, type lists and game objects.
//!
//! The scanner expands only the five standard entities and character references, so hostile text
//! cannot grow. Callers limit the depth.

mod diagnostics;
pub(crate) mod records;

use core::ops::Range;
use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesRef, BytesStart, Event};
use worldwire_core::{Diagnostic, Source};

pub(crate) use diagnostics::Diagnostics;

/// Reads XML text token by token.
pub(crate) struct Scanner<'t> {
    text: &'t str,
    reader: Reader<&'t [u8]>,
    /// The positions of the open elements' names.
    open: Vec<Range<usize>>,
}

/// A token of XML text.
pub(crate) enum Token<'t> {
    /// The start of an element. An element without content is also followed by a `Close`.
    Open(Tag<'t>),
    /// The end of the innermost open element.
    Close,
    /// Character data: part of the text of the innermost open element.
    Text {
        /// The text; a reference is resolved.
        text: Cow<'t, str>,
        /// The position of the text in the file.
        span: Range<usize>,
        /// Whether the text is a reference to an unknown entity, kept verbatim.
        is_unknown_entity: bool,
    },
    /// A document type, which is ignored.
    DocType(Range<usize>),
    /// The end of the file: every element is closed.
    End,
}

/// The reason why a text is not XML.
pub(crate) enum ScanError {
    /// The XML is not well-formed.
    Invalid {
        /// The position of the mistake in the file.
        at: usize,
        /// A description of the mistake.
        message: String,
    },
    /// The file ends inside the element whose name is at this position.
    Unclosed(Range<usize>),
}

/// The start tag of an element.
pub(crate) struct Tag<'t> {
    /// The name of the element.
    pub(crate) name: &'t str,
    /// The position of the name.
    pub(crate) span: Range<usize>,
    /// The number of elements around it.
    pub(crate) depth: usize,
    text: &'t str,
    tag: BytesStart<'t>,
}

/// An attribute and its position.
pub(crate) struct Attribute<'t> {
    /// The attribute's name.
    pub(crate) name: &'t str,
    /// The position of the name.
    pub(crate) span: Range<usize>,
    /// The attribute's value, unescaped.
    pub(crate) value: Cow<'t, str>,
}

impl<'t> Scanner<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.allow_dangling_amp = true;
        config.expand_empty_elements = true;
        Self { text, reader, open: Vec::new() }
    }

    /// The next token.
    pub(crate) fn read(&mut self) -> Result<Token<'t>, ScanError> {
        loop {
            let start = offset(self.reader.buffer_position());
            let event = self.reader.read_event().map_err(|error| ScanError::Invalid {
                at: offset(self.reader.error_position()),
                message: format!("invalid XML: {error}"),
            })?;
            let end = offset(self.reader.buffer_position());
            return Ok(match event {
                // Empty elements are expanded, so only `Start` events are seen.
                Event::Start(tag) | Event::Empty(tag) => {
                    let depth = self.open.len();
                    let span = start + 1..start + 1 + tag.name().into_inner().len();
                    let name = self.text.get(span.clone()).unwrap_or_default();
                    self.open.push(span.clone());
                    Token::Open(Tag { name, span, depth, text: self.text, tag })
                }
                Event::End(_) => {
                    self.open.pop();
                    Token::Close
                }
                Event::Text(text) => plain_text(text.into_inner(), start),
                Event::CData(text) => plain_text(text.into_inner(), start + "<![CDATA[".len()),
                Event::GeneralRef(reference) => {
                    let resolved = resolve(reference);
                    let is_unknown_entity = resolved.is_none();
                    let verbatim = self.text.get(start..end).unwrap_or_default();
                    let text = resolved.unwrap_or(Cow::Borrowed(verbatim));
                    Token::Text { text, span: start..end, is_unknown_entity }
                }
                Event::DocType(_) => Token::DocType(start..end),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
                Event::Eof => match self.open.pop() {
                    Some(span) => return Err(ScanError::Unclosed(span)),
                    None => Token::End,
                },
            });
        }
    }

    /// The next token, with everything unusual reported. Returns `None` if the text is not XML,
    /// which is then reported as well.
    pub(crate) fn read_reported(&mut self, diagnostics: &mut Diagnostics<'_>) -> Option<Token<'t>> {
        match self.read() {
            Ok(token) => {
                match &token {
                    Token::Text { text, span, is_unknown_entity: true } => {
                        let message = format!("{text} is not a known entity; kept as text");
                        diagnostics.strict_error(span, message, "");
                    }
                    Token::DocType(span) => {
                        diagnostics.strict_error(span, "document type ignored", "");
                    }
                    _ => {}
                }
                Some(token)
            }
            Err(ScanError::Invalid { at, message }) => {
                diagnostics.error(&(at..at + 1), message, "");
                None
            }
            Err(ScanError::Unclosed(span)) => {
                let name = self.text.get(span.clone()).unwrap_or_default();
                diagnostics.error(&span, format!("{name} is not closed"), "the file is truncated");
                None
            }
        }
    }

    /// The number of open elements.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The name of an open element, by the number of elements around it.
    pub(crate) fn open_name(&self, depth: usize) -> Option<&'t str> {
        self.text.get(self.open.get(depth)?.clone())
    }
}

fn plain_text(text: Cow<'_, str>, start: usize) -> Token<'_> {
    let span = start..start + text.len();
    Token::Text { text, span, is_unknown_entity: false }
}

/// The meaning of a reference; `None` for an unknown entity.
fn resolve(reference: BytesRef<'_>) -> Option<Cow<'static, str>> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Some(Cow::Owned(character.to_string()));
    }
    let text = match &*reference.into_inner() {
        "lt" => "<",
        "gt" => ">",
        "amp" => "&",
        "quot" => "\"",
        "apos" => "'",
        _ => return None,
    };
    Some(Cow::Borrowed(text))
}

impl<'t> Tag<'t> {
    /// The attributes: names and unescaped values. Malformed ones are skipped.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        let mut attributes = self.tag.attributes();
        // Checking for duplicates takes time quadratic in their number.
        attributes.with_checks(false);
        attributes.flatten().map(|attribute| {
            let name = attribute.key.into_inner();
            let value = match attribute.value {
                Cow::Borrowed(value) => unescaped(value),
                Cow::Owned(value) => Cow::Owned(unescaped(&value).into_owned()),
            };
            (name, value)
        })
    }

    /// The attributes with their positions. Duplicates and malformed ones are reported.
    pub(crate) fn located_attributes(
        &self,
        diagnostics: &mut Diagnostics<'_>,
    ) -> Vec<Attribute<'t>> {
        let mut located = Vec::with_capacity(2);
        for attribute in self.tag.attributes() {
            let attribute = match attribute {
                Ok(attribute) => attribute,
                Err(error) => {
                    diagnostics.strict_error(&self.span, format!("attribute ignored: {error}"), "");
                    continue;
                }
            };
            let Some(span) = span_in(self.text, attribute.key.into_inner()) else { continue };
            let in_file = span_in(self.text, &attribute.value);
            let value = match in_file.and_then(|span| self.text.get(span)) {
                Some(value) if !value.contains('&') => Cow::Borrowed(value),
                _ => Cow::Owned(unescaped(&attribute.value).into_owned()),
            };
            let name = self.text.get(span.clone()).unwrap_or_default();
            located.push(Attribute { name, span, value });
        }
        located
    }
}

/// The position in a text of a part borrowed from it. Returns `None` if the part is a copy.
#[inline]
fn span_in(text: &str, part: &str) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let end = start + part.len();
    (end <= text.len()).then_some(start..end)
}

/// A text with its entities resolved, or verbatim if it contains unknown ones.
pub(crate) fn unescaped(text: &str) -> Cow<'_, str> {
    unescape(text).unwrap_or(Cow::Borrowed(text))
}

/// The text of a file of any length, without its byte-order mark. Bytes that are not UTF-8 are
/// replaced; the flag tells whether there were any.
pub(crate) fn decode<'b>(
    name: &str,
    bytes: &'b [u8],
) -> Result<(Cow<'b, str>, bool), Box<Diagnostic>> {
    if bytes.starts_with(b"BINd") {
        let help = "it is not XML text; deserialize it first";
        return refuse(name, "a BINd container, not XML".to_owned(), help);
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return refuse(name, "UTF-16 text".to_owned(), "save it as UTF-8");
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    let is_replaced = matches!(text, Cow::Owned(_));
    Ok((text, is_replaced))
}

fn refuse<R>(name: &str, text: String, help: &str) -> Result<R, Box<Diagnostic>> {
    Err(Box::new(Source::new(name, "").error(0..0, text).help(help)))
}

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
