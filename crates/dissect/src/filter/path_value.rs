//! The value that a path leads to, compared with values in the filter.

use core::cmp::Ordering;
use std::borrow::Cow;
use std::net::IpAddr;

use worldwire_core::value::Content;
use worldwire_core::{Error, Form, Names, NodeRef, Value};

use super::class::ObjectClass;
use super::literal::{Literal, Member, Needle, Set, Text};
use super::moment::{date, seconds};
use super::number::{Count, Number};
use crate::item::Time;

/// The value that a path leads to.
#[derive(Clone, Copy, Debug)]
pub(super) enum PathValue<'s> {
    Node(NodeRef<'s, 's>),
    Text(&'s str),
    Whole(u64),
    Real(f64),
    Address(IpAddr),
    Moment(Time),
    Error(&'s Error),
}

impl<'s> PathValue<'s> {
    /// Its number, or the number that its text parses to.
    fn count(self) -> Option<Count> {
        let node = match self {
            Self::Node(node) => node,
            Self::Text(text) => return whole(text),
            Self::Whole(value) => return Some(Count::Whole(value.into())),
            Self::Real(value) => return Some(Count::Double(value)),
            Self::Moment(time) => return Some(Count::Double(seconds(time))),
            Self::Address(_) | Self::Error(_) => return None,
        };
        Some(match node.value() {
            Value::Bool(value) => Count::Whole(value.into()),
            Value::Unsigned(value) | Value::Hex(value) | Value::Flags(value, _) => {
                Count::Whole(value.into())
            }
            Value::Signed(value) | Value::Enum(value, _) => Count::Whole(value.into()),
            Value::F32(value) => Count::Single(value),
            Value::F64(value) => Count::Double(value),
            Value::Span(_) => return self.text().and_then(|text| whole(&text)),
            Value::Record | Value::List | Value::Null => return None,
        })
    }

    /// Its text, or its bytes if it is not text. This is what text in a filter is compared with.
    fn logical(self) -> Option<Cow<'s, [u8]>> {
        match self {
            Self::Node(node) => match node.value() {
                Value::Enum(number, names) => names.name(number).map(|name| name.as_bytes().into()),
                Value::Span(_) => node.content().map(|content| match content {
                    Content::Text(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
                    Content::Text(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
                    Content::Bytes(bytes) => bytes,
                }),
                _ => None,
            },
            Self::Text(text) => Some(Cow::Borrowed(text.as_bytes())),
            Self::Address(address) => Some(address.to_string().into_bytes().into()),
            Self::Error(error) => Some(error.to_string().into_bytes().into()),
            Self::Whole(_) | Self::Real(_) | Self::Moment(_) => None,
        }
    }

    /// Its bytes as stored in their layer. This is what bytes in a filter are compared with.
    fn stored(self) -> Option<Cow<'s, [u8]>> {
        match self {
            Self::Node(node) => Some(Cow::Borrowed(match node.value() {
                Value::Span(span) => node.span(span),
                _ => node.raw(),
            })),
            Self::Text(text) => Some(Cow::Borrowed(text.as_bytes())),
            Self::Whole(_)
            | Self::Real(_)
            | Self::Address(_)
            | Self::Moment(_)
            | Self::Error(_) => None,
        }
    }

    /// Its bytes, unless it is text.
    fn bytes(self) -> Option<&'s [u8]> {
        let Self::Node(node) = self else { return None };
        match node.value() {
            Value::Span(span) if span.form == Form::Bytes => Some(node.span(span)),
            _ => None,
        }
    }

    /// Its text, if any.
    pub(super) fn text(self) -> Option<Cow<'s, str>> {
        match self {
            Self::Node(node) => match node.value() {
                Value::Enum(number, names) => names.name(number).map(Cow::Borrowed),
                _ => node.text(),
            },
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::Address(address) => Some(address.to_string().into()),
            Self::Error(error) => Some(error.to_string().into()),
            Self::Whole(_) | Self::Real(_) | Self::Moment(_) => None,
        }
    }

    /// The number of an enumeration or of flags, with the names.
    fn named(self) -> Option<(i64, &'s Names)> {
        match self {
            Self::Node(node) => match node.value() {
                Value::Enum(number, names) => Some((number, names)),
                Value::Flags(bits, names) => Some((bits.cast_signed(), names)),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn equals(self, literal: &Literal) -> bool {
        match literal {
            Literal::Null => {
                matches!(self, Self::Node(node) if matches!(node.value(), Value::Null))
            }
            Literal::Bool(wanted) => match self {
                Self::Node(node) => match node.value() {
                    Value::Bool(value) => value == *wanted,
                    Value::Unsigned(value) | Value::Hex(value) => value == u64::from(*wanted),
                    Value::Signed(value) => value == i64::from(*wanted),
                    _ => false,
                },
                _ => false,
            },
            Literal::Number(_) => self.order(literal) == Some(Ordering::Equal),
            Literal::Bytes(wanted) => self.stored().is_some_and(|bytes| *bytes == **wanted),
            Literal::Text(wanted) => self.equals_text(wanted),
        }
    }

    fn equals_text(self, wanted: &Text) -> bool {
        let text = wanted.as_str();
        if let Some((number, names)) = self.named() {
            return names.iter().any(|(other, name)| other == number && name == text);
        }
        match self {
            Self::Node(node) => match node.value() {
                Value::Span(span) => span_equals(span.form, node.span(span), wanted),
                Value::F32(value) => is_odd_float(value.into(), text),
                Value::F64(value) => is_odd_float(value, text),
                _ => false,
            },
            Self::Text(value) => value == text,
            Self::Whole(_) => false,
            Self::Real(value) => is_odd_float(value, text),
            Self::Address(address) => text.parse() == Ok(address),
            Self::Moment(time) => date(text) == Some(time),
            Self::Error(error) => error.to_string() == text,
        }
    }

    pub(super) fn contains(self, needle: &Needle) -> bool {
        let hay = if needle.is_text() { self.logical() } else { self.stored() };
        hay.is_some_and(|hay| needle.is_in(&hay))
            || self.bytes().is_some_and(|bytes| needle.is_shown_in(bytes))
    }

    /// Its order relative to a value in the filter; `None` if the two cannot be compared.
    pub(super) fn order(self, literal: &Literal) -> Option<Ordering> {
        match literal {
            Literal::Null | Literal::Bool(_) => None,
            Literal::Number(number) => self.count()?.compare(number),
            Literal::Bytes(bytes) => Some((*self.stored()?).cmp(bytes)),
            Literal::Text(text) if let Self::Moment(time) = self => {
                date(text.as_str()).map(|date| time.cmp(&date))
            }
            Literal::Text(text) => match self.named() {
                Some((number, names)) => Some(number.cmp(&names.number(text.as_str())?)),
                None => Some((*self.logical()?).cmp(text.as_str().as_bytes())),
            },
        }
    }

    /// Whether all bits of a mask are set.
    pub(super) fn has(self, mask: &Literal) -> bool {
        let bits = match self {
            Self::Node(node) => match node.value() {
                Value::Unsigned(value) | Value::Hex(value) | Value::Flags(value, _) => value,
                Value::Signed(value) | Value::Enum(value, _) => value.cast_unsigned(),
                Value::Bool(value) => value.into(),
                _ => return false,
            },
            Self::Whole(value) => value,
            Self::Text(_) | Self::Real(_) | Self::Address(_) | Self::Moment(_) | Self::Error(_) => {
                return false;
            }
        };
        let mask = match mask {
            Literal::Number(Number::Whole(mask)) => u64::try_from(*mask).ok(),
            Literal::Text(name) => self
                .named()
                .and_then(|(_, names)| names.number(name.as_str()))
                .map(i64::cast_unsigned),
            _ => None,
        };
        mask.is_some_and(|mask| mask != 0 && bits & mask == mask)
    }

    /// Whether it starts or ends with a value in the filter.
    pub(super) fn part(self, literal: &Literal, is_part: fn(&[u8], &[u8]) -> bool) -> bool {
        match literal {
            Literal::Text(text) => {
                self.logical().is_some_and(|whole| is_part(&whole, text.as_str().as_bytes()))
                    || self
                        .bytes()
                        .zip(text.hex())
                        .is_some_and(|(whole, part)| is_part(whole, part))
            }
            Literal::Bytes(bytes) => self.stored().is_some_and(|whole| is_part(&whole, bytes)),
            Literal::Null | Literal::Bool(_) | Literal::Number(_) => false,
        }
    }

    /// Whether this is an object, or the tag of one, whose class is `class` or derived from it.
    pub(super) fn is_of(self, class: &ObjectClass) -> bool {
        let Self::Node(node) = self else { return false };
        let tag = match node.value() {
            Value::Record => node.child("$class").map(|tag| tag.value()),
            value => Some(value),
        };
        matches!(tag, Some(Value::Enum(tag, names)) if class.has(tag, names))
    }

    pub(super) fn is_in(self, set: &Set) -> bool {
        set.has_any_whole() && self.count().is_some_and(|count| set.has_whole(count))
            || !set.texts.is_empty() && self.is_in_texts(set)
            || !set.bytes.is_empty() && self.stored().is_some_and(|bytes| set.bytes.has(&bytes))
            || set.others().any(|member| match member {
                Member::One(literal) => self.equals(literal),
                Member::Range(low, high) => self.count().is_some_and(|count| {
                    count.compare(low).is_some_and(Ordering::is_ge)
                        && count.compare(high).is_some_and(Ordering::is_le)
                }),
            })
    }

    fn is_in_texts(self, set: &Set) -> bool {
        if matches!(self, Self::Address(_) | Self::Moment(_)) {
            let mut members = set.members().iter();
            return members.any(|it| matches!(it, Member::One(literal) if self.equals(literal)));
        }
        if let Some((number, names)) = self.named() {
            return names
                .iter()
                .any(|(other, name)| other == number && set.texts.has(name.as_bytes()));
        }
        if let Self::Node(node) = self
            && let Value::Span(span) = node.value()
            && span.form == Form::Guid
            && set.guids.has(node.span(span))
        {
            return true;
        }
        self.logical().is_some_and(|text| set.texts.has(&text))
            || self.bytes().is_some_and(|bytes| set.hexes.has(bytes))
    }
}

/// The whole number that a text parses to.
fn whole(text: &str) -> Option<Count> {
    let unsigned = text.parse::<u64>().map(i128::from);
    unsigned.or_else(|_| text.parse::<i64>().map(i128::from)).ok().map(Count::Whole)
}

/// Whether a float that has a name instead of digits has this one.
fn is_odd_float(value: f64, text: &str) -> bool {
    match text {
        "NaN" => value.is_nan(),
        "Infinity" => value == f64::INFINITY,
        "-Infinity" => value == f64::NEG_INFINITY,
        _ => false,
    }
}

/// Whether stored bytes equal a text, without decoding them. Invalid text is compared as bytes.
fn span_equals(form: Form, stored: &[u8], wanted: &Text) -> bool {
    let text = wanted.as_str();
    match form {
        Form::Bytes => stored == text.as_bytes() || wanted.hex().is_some_and(|hex| hex == stored),
        Form::Utf8 => stored == text.as_bytes(),
        Form::InvertedUtf8 => stored.iter().map(|byte| !byte).eq(text.bytes()),
        Form::Latin1 => stored.iter().copied().map(char::from).eq(text.chars()),
        Form::Utf16 => units(stored, 0, text) || no_text(form, stored, text),
        Form::InvertedUtf16 => units(stored, u16::MAX, text) || no_text(form, stored, text),
        Form::Guid if stored.len() == 16 => wanted.guid().is_some_and(|id| id == stored),
        Form::Ipv4 if stored.len() == 4 => wanted.ipv4().is_some_and(|id| id == stored),
        _ => match form.read(stored) {
            Content::Text(value) => value == text,
            Content::Bytes(bytes) => *bytes == *text.as_bytes(),
        },
    }
}

/// Whether little-endian UTF-16 units, with the bits in `turned` inverted, equal a text.
fn units(stored: &[u8], turned: u16, text: &str) -> bool {
    let (units, rest) = stored.as_chunks::<2>();
    rest.is_empty()
        && units.iter().map(|unit| u16::from_le_bytes(*unit) ^ turned).eq(text.encode_utf16())
}

/// Whether bytes are invalid text and equal the bytes of `text`.
fn no_text(form: Form, stored: &[u8], text: &str) -> bool {
    stored.len() == text.len()
        && matches!(form.read(stored), Content::Bytes(bytes) if *bytes == *text.as_bytes())
}
