//! Single values of messages, for tables.

use core::fmt::Write as _;

use worldwire_core::Value;
use worldwire_core::json::{Style, write_node};

use super::error::Problem;
use super::expression::{Expression, Path, Pattern};
use super::run::{Held, each};
use super::{Filter, FilterError, Subject, known_names};
use crate::knowledge::Definitions;

/// A column of a table: a field of every message, such as `transId`, of one kind of message, such as
/// `auth.AcctLoginRequest.accountName`, or what is known about messages, such as `time`.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    name: String,
    of: Option<Pattern>,
    path: Path,
}

impl Column {
    /// Reads the name of a column: a field as a filter has it, behind the name of a message and a
    /// dot if it is a field of that message only.
    ///
    /// # Errors
    /// What is wrong with the field and where, as for a filter.
    pub fn parse(text: &str, definitions: &Definitions) -> Result<Self, FilterError> {
        let text = text.trim();
        let names = known_names(definitions);
        let short = names.iter().filter_map(|name| name.split_once('.').map(|(_, short)| short));
        let all = names.iter().map(String::as_str).filter(|name| name.contains('.')).chain(short);
        let field = |name: &str| text.strip_prefix(name)?.strip_prefix('.');
        let of = all.filter(|name| field(name).is_some()).max_by_key(|name| name.len());
        let rest = of.and_then(field).unwrap_or(text);
        // What is read as the test whether it is there is a field and nothing else.
        let Expression::Exists(path) = Filter::parse(&format!("exists({rest})"))?.0 else {
            let problem = Problem::new(0, "the name of a field", format!("`{rest}`"));
            return Err(problem.in_filter(rest));
        };
        let of = of.map(|name| Pattern(name.into()));
        Ok(Self { name: text.to_owned(), of, path })
    }

    /// As it was written.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The messages that have the column, to be checked for names that nothing has.
    #[must_use]
    pub fn filter(&self) -> Filter {
        let there = Expression::Exists(self.path.clone());
        match &self.of {
            Some(of) => Filter(Expression::All(
                [Expression::Message(of.clone()), there].into_iter().collect(),
            )),
            None => Filter(there),
        }
    }

    /// Whether it says something of the message itself, rather than what every message has.
    #[must_use]
    pub fn is_field(&self) -> bool {
        !self.path.is_known()
    }

    /// Appends the value of a message; false when it has none. Several values of lists stand behind
    /// each other with a `;` between them, records and whole lists as JSON.
    pub fn write(&self, subject: &Subject<'_>, out: &mut String) -> bool {
        if self.of.as_ref().is_some_and(|of| !of.fits(subject.family, subject.name)) {
            return false;
        }
        if self.path.is_name() {
            // The short one, at the top of some trees, says less.
            out.push_str(subject.name);
            return true;
        }
        let mut count = 0;
        each(&self.path, subject, &mut |held| {
            if count > 0 {
                out.push(';');
            }
            count += 1;
            write_held(held, out);
            // Its elements come next.
            matches!(held, Held::Node(node) if matches!(node.value(), Value::List | Value::Record))
        });
        count > 0
    }
}

fn write_held(held: Held<'_>, out: &mut String) {
    let _ = match held {
        Held::Node(node) => {
            let start = out.len();
            write_node(node, Style::default(), out);
            // A text is written as it is, not as JSON.
            let plain = out.get(start..).and_then(|json| serde_json::from_str::<String>(json).ok());
            if let Some(text) = plain {
                out.truncate(start);
                out.push_str(&text);
            }
            Ok(())
        }
        Held::Text(text) => write!(out, "{text}"),
        Held::Whole(value) => write!(out, "{value}"),
        Held::Real(value) => write!(out, "{value}"),
        Held::Address(address) => write!(out, "{address}"),
        Held::Moment(time) => write!(out, "{time}"),
    };
}
