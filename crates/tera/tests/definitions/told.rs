//! What is said of a message in other ways than a tree.

use std::borrow::Cow;

use worldwire_tera::message::{Part, ScalarValue, Value, Visit};
use worldwire_tera::types::TextView;

use super::codec::Message;
use super::{Outcome, check};

/// A visitor who puts together what it is told.
#[derive(Default)]
struct Told<'d> {
    /// What was told of each list and record that is open, the message first.
    open: Vec<(Option<Part>, Vec<Value<'d>>)>,
}

impl<'d> Told<'d> {
    fn put(&mut self, value: Value<'d>) {
        if self.open.is_empty() {
            self.open.push((None, Vec::new()));
        }
        self.open.last_mut().expect("the message").1.push(value);
    }
}

impl<'d, 'p> Visit<'d, 'p> for Told<'d> {
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
        let (part, values) = self.open.pop().expect("it was entered");
        self.put(match part.expect("the message is not left") {
            Part::List => Value::List(values),
            Part::Record => Value::Record(values),
        });
    }
}

impl Message<'_> {
    /// Whoever only checks a message, or is told what it holds, learns what its values say: the same
    /// error, or the same oddities.
    pub(crate) fn told(&self, bytes: &[u8]) -> Outcome {
        let (plan, mut told) = (self.plan, Told::default());
        let visited = plan.visit(bytes, self.form, &mut told);
        let read = plan.read(bytes, self.form);
        let notes = read.as_ref().map(|message| message.notes().clone()).map_err(Clone::clone);
        let checked = plan.check(bytes, self.form);
        if checked != notes || visited != notes {
            return Err(format!("wanted {notes:?}, checked {checked:?}, visited {visited:?}"));
        }
        check(told.open.len() <= 1, "something is not left")?;
        let Ok(message) = read else { return Ok(()) };
        let found = Value::Record(told.open.pop().map_or_else(Vec::new, |(_, values)| values));
        let wanted = message.fields();
        // What is no number is not equal to itself, but looks like it.
        let same = found == *wanted || format!("{found:?}") == format!("{wanted:?}");
        if same { Ok(()) } else { Err(format!("wanted {wanted:?}, told {found:?}")) }
    }
}
