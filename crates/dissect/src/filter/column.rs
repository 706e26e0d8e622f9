//! Table columns: single values of messages.

use core::fmt::Write as _;

use worldwire_core::Value;
use worldwire_core::json::{Style, write_node};
use worldwire_core::value::Content;

use super::error::Problem;
use super::expression::{Expression, Path, Pattern};
use super::path_value::PathValue;
use super::resolve::Resolver;
use super::run::look;
use super::tail::{Ambiguities, Ambiguity};
use super::{Filter, FilterError, Subject};
use crate::item::Time;

/// The value of a column in one message; see [`Column::cell`].
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnCell {
    /// The field exists, but the message says that it has no value.
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Unsigned(u64),
    /// A whole number with a sign.
    Signed(i64),
    /// A single- or double-precision number, or a number of seconds.
    Real(f64),
    /// Text, the name of a value, or what [`Column::write`] writes for anything that is not a single
    /// value.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A date and time.
    Moment(Time),
}

/// A column of a table. It is one of:
///
/// - a field of every message that has it: `transId`
/// - a field of one kind of message: `auth.AcctLoginRequest.accountName`
/// - metadata of every message: `time`
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    name: String,
    of: Option<Pattern>,
    path: Path,
    found: Ambiguities,
}

impl Column {
    /// Reads a column name: a field as in a filter, or a message name, a dot and a field.
    ///
    /// # Errors
    /// What is wrong with the field and where, as for a filter.
    pub fn parse(text: &str, resolver: &Resolver<'_>) -> Result<Self, FilterError> {
        let text = text.trim();
        let names = &resolver.known().names;
        let short = names.iter().filter_map(|name| name.split_once('.').map(|(_, short)| short));
        let all = names.iter().map(String::as_str).filter(|name| name.contains('.')).chain(short);
        let field = |name: &str| text.strip_prefix(name)?.strip_prefix('.');
        let of = all.filter(|name| field(name).is_some()).max_by_key(|name| name.len());
        let rest = of.and_then(field).unwrap_or(text);
        // Only a plain field parses as a test for existence.
        let Expression::Exists(path) = Filter::parse(&format!("exists({rest})"))?.expression else {
            let problem = Problem::new(0, "a field", format!("`{rest}`"));
            return Err(problem.in_filter(rest));
        };
        let of = of.map(|name| Pattern(name.into()));
        let path = resolver.known().path(path, of.as_slice());
        Ok(Self { name: text.to_owned(), of, path, found: Ambiguities::default() })
    }

    /// The name as the user wrote it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A filter for the messages that have the column, to check its names.
    #[must_use]
    pub fn filter(&self) -> Filter {
        let there = Expression::Exists(self.path.clone());
        match &self.of {
            Some(of) => {
                let parts = [Expression::Message(of.clone()), there];
                Filter::of(Expression::All(parts.into_iter().collect()))
            }
            None => Filter::of(there),
        }
    }

    /// The earliest message in which the field's path can mean several fields; see
    /// [`Filter::ambiguity`].
    #[must_use]
    pub fn ambiguity(&self) -> Option<Ambiguity> {
        self.found.earliest()
    }

    /// Whether the column is a field rather than metadata, which every message has.
    #[must_use]
    pub fn is_field(&self) -> bool {
        !self.path.is_metadata()
    }

    /// Appends the column's value in a message and returns whether it has one. Several values are
    /// separated by `;`. Records and whole lists are written as JSON.
    pub fn write(&self, subject: &Subject<'_>, out: &mut String) -> bool {
        if self.of.as_ref().is_some_and(|of| !of.fits(subject.family, subject.name)) {
            return false;
        }
        if self.path.is_name() {
            // Some trees have a short name at the top level. The full name says more.
            out.push_str(subject.name);
            return true;
        }
        let mut count = 0;
        look(&self.path, subject, &self.found, &mut |value| {
            if count > 0 {
                out.push(';');
            }
            count += 1;
            write_held(value, out);
            // Its elements follow.
            matches!(value, PathValue::Node(node) if matches!(node.value(), Value::List | Value::Record))
        });
        count > 0
    }

    /// The column's value in a message, if it has one.
    #[must_use]
    pub fn cell(&self, subject: &Subject<'_>) -> Option<ColumnCell> {
        let is_of = self.of.as_ref().is_none_or(|of| of.fits(subject.family, subject.name));
        if is_of && !self.path.is_name() {
            let (mut single, mut count) = (None, 0);
            look(&self.path, subject, &self.found, &mut |value| {
                single = cell(value);
                count += 1;
                count > 1 || single.is_none()
            })?;
            if count == 1 && single.is_some() {
                return single;
            }
        }
        let mut text = String::new();
        self.write(subject, &mut text).then_some(ColumnCell::Text(text))
    }
}

/// A single value; `None` for a record, list, or anything else that has a form only as text.
fn cell(value: PathValue<'_>) -> Option<ColumnCell> {
    Some(match value {
        PathValue::Text(text) => ColumnCell::Text(text.to_owned()),
        PathValue::Whole(value) => ColumnCell::Unsigned(value),
        PathValue::Real(value) => ColumnCell::Real(value),
        PathValue::Moment(time) => ColumnCell::Moment(time),
        PathValue::Error(_) | PathValue::Address(_) => return None,
        PathValue::Node(node) => match node.value() {
            Value::Null => ColumnCell::Null,
            Value::Bool(value) => ColumnCell::Bool(value),
            Value::Unsigned(value) | Value::Hex(value) => ColumnCell::Unsigned(value),
            Value::Signed(value) => ColumnCell::Signed(value),
            Value::F32(value) => ColumnCell::Real(value.into()),
            Value::F64(value) => ColumnCell::Real(value),
            Value::Enum(value, names) => match names.name(value) {
                Some(name) => ColumnCell::Text(name.to_owned()),
                None => ColumnCell::Signed(value),
            },
            Value::Span(_) => match node.content()? {
                Content::Text(text) => ColumnCell::Text(text.into_owned()),
                Content::Bytes(bytes) => ColumnCell::Bytes(bytes.into_owned()),
            },
            Value::Record | Value::List | Value::Flags(..) => return None,
        },
    })
}

fn write_held(value: PathValue<'_>, out: &mut String) {
    let _ = match value {
        PathValue::Node(node) => {
            let start = out.len();
            write_node(node, Style::default(), out);
            // Text is written verbatim, not as a JSON string.
            let plain = out.get(start..).and_then(|json| serde_json::from_str::<String>(json).ok());
            if let Some(text) = plain {
                out.truncate(start);
                out.push_str(&text);
            }
            Ok(())
        }
        PathValue::Text(text) => write!(out, "{text}"),
        PathValue::Whole(value) => write!(out, "{value}"),
        PathValue::Real(value) => write!(out, "{value}"),
        PathValue::Error(error) => write!(out, "{error}"),
        PathValue::Address(address) => write!(out, "{address}"),
        PathValue::Moment(time) => write!(out, "{time}"),
    };
}
