//! Objects from text, written by `decode` or by hand.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use worldwire_core::Limits;
use worldwire_core::json::Style;
use worldwire_ki::object::{Header, MAGIC, Object, ObjectCodec, ObjectOptions, xml};
use worldwire_ki::schema::classes::Classes;

use super::stream::{Choices, Stream};
use crate::command::ki::{complain_first, warning};
use crate::report;

/// The error for JSON that names a class but is not in our format.
const NO_OBJECT: &str = "not an object in the format of `ki op decode`";
/// The error for an object without type lists.
pub(in crate::command::ki) const NO_TYPES: &str = "an object; supply the type list with --types";
/// The maximum number of remarks of one kind per text that are listed individually.
const MAX_TOLD: usize = 10;

/// Encodes text as objects.
pub(in crate::command::ki) struct Encoder<'e> {
    classes: Option<&'e Classes>,
    choices: &'e Choices<'e>,
    /// Whether to fill in missing properties.
    complete: bool,
    /// Whether to encode unchanged objects, too.
    all: bool,
}

/// The kind of a file in a directory.
#[derive(Debug)]
pub(in crate::command::ki) enum Found {
    /// Not an object in the format of `decode`.
    Other,
    /// An object that has not been changed since it was extracted, with a hash of its original
    /// bytes.
    Unchanged(String),
    Object(Vec<u8>),
}

/// The JSON that `decode` writes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped<'j> {
    #[serde(default, rename = "file")]
    _file: Option<IgnoredAny>,
    #[serde(borrow)]
    object: &'j RawValue,
    stream: Stream,
}

enum Text<'t> {
    Json {
        object: &'t str,
        stream: Option<Stream>,
    },
    /// The text after the comment with the stream format, if there is one.
    Xml {
        text: &'t str,
        stream: Option<Stream>,
    },
    /// Something else, with the reason if it resembles `decode` output.
    Other(Option<String>),
}

impl<'e> Encoder<'e> {
    /// Encodes with these classes, if any, and with the command line's options.
    pub(in crate::command::ki) fn new(
        classes: Option<&'e Classes>,
        choices: &'e Choices<'e>,
        complete: bool,
        all: bool,
    ) -> Self {
        // A different form or different flags count as a change.
        let all = all || complete || choices.say_something();
        Self { classes, choices, complete, all }
    }

    /// The bytes of text that the user declared to be an object.
    ///
    /// # Errors
    /// The problem, or `None` if it has been reported.
    pub(in crate::command::ki) fn named(
        &self,
        subject: &str,
        text: &[u8],
    ) -> Result<Vec<u8>, String> {
        let Ok(utf8) = str::from_utf8(text) else {
            // XML errors include their position.
            return match text.trim_ascii_start().starts_with(b"<") {
                true => self.xml(subject, text, None),
                false => Err("not UTF-8 text".to_owned()),
            };
        };
        match understood(utf8)? {
            Text::Json { object, stream } => self.json(subject, object, stream),
            Text::Xml { stream, .. } => self.xml(subject, text, stream),
            Text::Other(None) => self.json(subject, utf8, None),
            Text::Other(Some(error)) => Err(error),
        }
    }

    /// Determines what a file in a directory is. It may be anything, so only objects in the format
    /// of `decode` are encoded. Other XML is encoded only if the command line states how. `name` is
    /// the object's name.
    ///
    /// # Errors
    /// The errors of [`Self::named`].
    pub(in crate::command::ki) fn found(
        &self,
        subject: &str,
        name: &str,
        text: &[u8],
    ) -> Result<Found, String> {
        let Ok(utf8) = str::from_utf8(text) else { return Ok(Found::Other) };
        let encoded = match understood(utf8)? {
            Text::Json { object, stream } => {
                if let Some(stream) = &stream
                    && let Some(source) = self.unchanged(stream, object, name, |classes| {
                        let object = Object::parse_json(classes, object).ok()?;
                        // Formatting, safe numbers and the order of properties do not matter: the
                        // object is the same.
                        let sorted = object.in_class_order(classes).ok();
                        let safe = [false, true].into_iter();
                        let texts =
                            [Some(object), sorted].into_iter().flatten().flat_map(|object| {
                                safe.clone()
                                    .map(move |safe| object.to_json_in(classes, Style { safe }))
                            });
                        Some(texts.flatten().collect())
                    })?
                {
                    return Ok(Found::Unchanged(source));
                }
                self.json(subject, object, stream)
            }
            Text::Xml { text: object, stream } => {
                if stream.is_none() && !self.choices.say_something() {
                    return Ok(Found::Other);
                }
                if let Some(stream) = &stream
                    && let Some(source) = self.unchanged(stream, object, name, |classes| {
                        let loaded = xml::load(classes, subject, text);
                        let object = loaded.objects.filter(|_| loaded.diagnostics.is_empty())?;
                        Some(vec![xml::to_xml(classes, &object).ok()?])
                    })?
                {
                    return Ok(Found::Unchanged(source));
                }
                self.xml(subject, text, stream)
            }
            // Only objects in this program's format name their classes this way.
            Text::Other(error) if utf8.contains("\"$class\"") => {
                return Err(error.unwrap_or_else(|| NO_OBJECT.to_owned()));
            }
            Text::Other(_) => return Ok(Found::Other),
        };
        encoded.map(Found::Object)
    }

    /// The source hash of an extracted object that has not been changed, even if it was
    /// reformatted: `again` restores the original formatting.
    fn unchanged(
        &self,
        stream: &Stream,
        text: &str,
        name: &str,
        again: impl FnOnce(&'e Classes) -> Option<Vec<String>>,
    ) -> Result<Option<String>, String> {
        // Rounded numbers would hide other changes.
        stream.is_exact()?;
        let Some(source) = stream.source().filter(|_| !self.all) else { return Ok(None) };
        // `extract` adds `.xml` to objects with different extensions.
        let names = [Some(name), name.strip_suffix(".xml")];
        let is_same = |text: &str| {
            names.into_iter().flatten().any(|name| stream.is_of(text.as_bytes(), name))
        };
        let is_unchanged = is_same(text)
            || self.classes.and_then(again).is_some_and(|texts| texts.iter().any(|it| is_same(it)));
        Ok(is_unchanged.then(|| source.to_owned()))
    }

    /// Whether two files hold the same object, however they are compressed and whatever the order
    /// of its properties.
    pub(in crate::command::ki) fn is_same(&self, one: &[u8], other: &[u8]) -> bool {
        let Some(classes) = self.classes else { return false };
        if !one.starts_with(MAGIC) || !other.starts_with(MAGIC) {
            return false;
        }
        // An object that strict reading refuses never counts as equal.
        let codec = ObjectCodec::new(classes, ObjectOptions::file());
        let read = |bytes: &[u8]| {
            let mut object = Object::new();
            let header = codec.decode_all(bytes, &mut object).ok()?.header;
            Some((header, object.in_class_order(classes).ok()?))
        };
        read(one).is_some_and(|one| read(other) == Some(one))
    }

    fn classes(&self) -> Result<&'e Classes, String> {
        self.classes.ok_or_else(|| NO_TYPES.to_owned())
    }

    fn json(&self, subject: &str, text: &str, stream: Option<Stream>) -> Result<Vec<u8>, String> {
        let is_exact = match &stream {
            Some(stream) => stream.is_exact()?.is_some(),
            None => false,
        };
        let mut rounded = Vec::new();
        let mut tell = |property: &str, number: i128| rounded.push((property.to_owned(), number));
        let classes = self.classes()?;
        let object = Object::parse_json_reporting(classes, text, &Limits::DEFAULT, &mut tell);
        let object = object.map_err(|error| error.to_string())?;
        if !is_exact {
            let what = "looks like an integer that was rounded to a double";
            let help = "programs that store numbers as doubles do that; decode with --json-safe";
            let told = rounded.into_iter();
            let told = told.map(|(property, number): (String, i128)| {
                warning(format!("{property}: {number} {what}; {help}"))
            });
            complain_first(subject, MAX_TOLD, told);
        }
        self.write(subject, classes, object, stream).map(|(bytes, _)| bytes)
    }

    fn xml(&self, subject: &str, text: &[u8], stream: Option<Stream>) -> Result<Vec<u8>, String> {
        let object = self.xml_object(subject, text)?;
        self.write(subject, self.classes()?, object, stream).map(|(bytes, _)| bytes)
    }

    /// The bytes of an object in XML and their format.
    ///
    /// # Errors
    /// The errors of [`Self::named`].
    pub(super) fn of_xml(
        &self,
        subject: &str,
        text: &[u8],
    ) -> Result<(Vec<u8>, ObjectOptions), String> {
        let mark = str::from_utf8(text).ok().and_then(Stream::of_mark);
        let stream = mark.map(|(stream, _)| stream).transpose()?;
        let object = self.xml_object(subject, text)?;
        self.write(subject, self.classes()?, object, stream)
    }

    fn xml_object(&self, subject: &str, text: &[u8]) -> Result<Object, String> {
        let classes = self.classes()?;
        let loaded = xml::load(classes, subject, text);
        report::diagnostics(&loaded.diagnostics);
        let mut objects = loaded.objects.ok_or_else(String::new)?;
        if !loaded.diagnostics.is_empty() {
            return Err("refused: ignored data would be lost".to_owned());
        }
        let count = objects.len();
        let object = objects.pop().filter(|_| count == 1);
        object.ok_or_else(|| format!("contains {count} objects, not one"))
    }

    /// Encodes an object and also returns the format. A bare object is written as the command line
    /// specifies; by default, as a file.
    fn write(
        &self,
        subject: &str,
        classes: &Classes,
        object: Object,
        stream: Option<Stream>,
    ) -> Result<(Vec<u8>, ObjectOptions), String> {
        let unrelated = object.unrelated(classes).into_iter().map(warning);
        complain_first(subject, MAX_TOLD, unrelated);
        let (options, header) = match stream {
            Some(stream) => {
                let (options, header) = stream.changed_by(self.choices).open(self.choices);
                (options, Some(header))
            }
            None => (self.choices.of_text(), None),
        };
        let codec = ObjectCodec::new(classes, options);
        let header: Header = header.unwrap_or_else(|| codec.header());
        let whole = if self.complete { codec.complete(&object) } else { Ok(object) };
        let bytes = whole.and_then(|object| codec.encode(&object, header));
        let bytes = bytes.map_err(|error| error.to_string())?;
        Ok((bytes, codec.options().clone()))
    }
}

/// Determines the kind of the text by its beginning and its keys.
fn understood(text: &str) -> Result<Text<'_>, String> {
    let trimmed = text.strip_prefix('\u{feff}').unwrap_or(text).trim_ascii_start();
    if trimmed.starts_with('<') {
        return match Stream::of_mark(text) {
            Some((stream, text)) => Ok(Text::Xml { text, stream: Some(stream?) }),
            None => Ok(Text::Xml { text, stream: None }),
        };
    }
    match serde_json::from_str::<Wrapped<'_>>(trimmed) {
        Ok(Wrapped { object, stream, .. }) => {
            Ok(Text::Json { object: object.get(), stream: Some(stream) })
        }
        Err(error) => {
            if let Err(error) = serde_json::from_str::<IgnoredAny>(trimmed) {
                return Ok(Text::Other(Some(error.to_string())));
            }
            let keys: HashMap<String, IgnoredAny> =
                serde_json::from_str(trimmed).unwrap_or_default();
            match ["$class", "object", "stream"].map(|key| keys.contains_key(key)) {
                // A bare object names its class.
                [true, ..] => Ok(Text::Json { object: trimmed, stream: None }),
                [_, true, true] => Err(error.to_string()),
                [_, true, false] => {
                    let advice = "has an \"object\" without the \"stream\" that `ki op decode` \
                                  writes; add it, or pass only the object";
                    Ok(Text::Other(Some(advice.to_owned())))
                }
                [_, false, false] => Ok(Text::Other(None)),
                _ => Ok(Text::Other(Some(error.to_string()))),
            }
        }
    }
}
