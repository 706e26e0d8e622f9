//! Checks that visiting or checking a message agrees with reading it.

use std::borrow::Cow;

use worldwire_tera::message::{Part, ScalarValue, Value, Visit};
use worldwire_tera::types::TextView;

use super::codec::Message;
use super::{Outcome, check};

/// A visitor that rebuilds the values of a message.
#[derive(Default)]
struct Rebuilder<'d> {
    /// The values so far of each open list and record, the message first.
    open: Vec<(Option<Part>, Vec<Value<'d>>)>,
}

impl<'d> Rebuilder<'d> {
    fn put(&mut self, value: Value<'d>) {
        if self.open.is_empty() {
            self.open.push((None, Vec::new()));
        }
        self.open.last_mut().expect("the message").1.push(value);
    }
}

impl<'d, 'p> Visit<'d, 'p> for Rebuilder<'d> {
    fn scalar(&mut self, _: &'p str, value: ScalarValue) {
        self.put(value.to_value());
    }

    fn text(&mut self, _: &'p str, text: TextView<'d>) {
        self.put(Value::Text(text.to_text()));
    }

    fn bytes(&mut self, _: &'p str, bytes: &'d [u8]) {
        self.put(Value::Bytes(Cow::Borrowed(bytes)));
    }

    fn enter(&mut self, _: &'p str, part: Part) {
        if self.open.is_empty() {
            self.open.push((None, Vec::new()));
        }
        self.open.push((Some(part), Vec::new()));
    }

    fn leave(&mut self) {
        let (part, values) = self.open.pop().expect("an open part");
        self.put(match part.expect("a list or record") {
            Part::List => Value::List(values),
            Part::Record => Value::Record(values),
        });
    }
}

impl Message<'_> {
    /// Checks that checking, visiting and reading a message yield the same error or notes, and that
    /// the visitor gets the same values.
    pub(crate) fn visit(&self, bytes: &[u8]) -> Outcome {
        let (plan, mut rebuilder) = (self.plan, Rebuilder::default());
        let visited = plan.visit(bytes, self.form, &mut rebuilder);
        let read = plan.read(bytes, self.form);
        let notes = read.as_ref().map(|message| message.notes().clone()).map_err(Clone::clone);
        let checked = plan.check(bytes, self.form);
        if checked != notes || visited != notes {
            return Err(format!("wanted {notes:?}, checked {checked:?}, visited {visited:?}"));
        }
        check(rebuilder.open.len() <= 1, "a list or record was not left")?;
        let Ok(message) = read else { return Ok(()) };
        let found = Value::Record(rebuilder.open.pop().map_or_else(Vec::new, |(_, values)| values));
        let wanted = message.fields();
        // NaN is not equal to itself, but is formatted alike.
        let same = found == *wanted || format!("{found:?}") == format!("{wanted:?}");
        if same { Ok(()) } else { Err(format!("wanted {wanted:?}, visited {found:?}")) }
    }
}
