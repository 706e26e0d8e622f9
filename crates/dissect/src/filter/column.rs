//! Table columns: single values of messages.

use core::fmt::Write as _;

use worldwire_core::Value;
use worldwire_core::json::{Style, write_node};

use super::error::Problem;
use super::expression::{Expression, Path, Pattern};
use super::resolve::Resolver;
use super::run::{PathValue, look};
use super::tail::{Ambiguities, Ambiguity};
use super::{Filter, FilterError, Subject};

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
        // Only a plain field reads as a test for existence.
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

    /// Appends the value of a message, and returns whether it has one. Several values are separated
    /// by `;`. Records and whole lists are written as JSON.
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
