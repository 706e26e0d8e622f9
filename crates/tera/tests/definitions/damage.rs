//! Checks messages with one damaged offset.

use std::mem::take;

use worldwire_core::json::Style;
use worldwire_core::testing::render;
use worldwire_core::{Error, Reader, Tree};
use worldwire_tera::message::{Fault, HeaderForm, Item, MAX_READINGS, RecordView, Tape, View};

use super::codec::Message;
use super::{Outcome, check};

impl Message<'_> {
    /// Damages every word that could be a count, offset or link, one at a time, in every plausible
    /// way, and reads and renders the result. The undamaged message is read in between in the same
    /// memory and must not be affected.
    pub(crate) fn damaged(&self, bytes: &[u8]) -> Outcome {
        let (mut tree, mut tape) = (Tree::new(), Tape::new());
        let whole = self.render(bytes, &mut tree)?;
        let end = u16::try_from(bytes.len()).map_err(|error| error.to_string())?;
        for at in self.form.bytes()..bytes.len().saturating_sub(1) {
            let word = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
            if word > end {
                continue;
            }
            let here = u16::try_from(at).map_err(|error| error.to_string())?;
            for wrong in [0, 1, 6, here, here.saturating_sub(2), word + 1, end, 0xffff] {
                let mut damaged = bytes.to_vec();
                damaged[at..at + 2].copy_from_slice(&wrong.to_le_bytes());
                let shown = self.render(&damaged, &mut tree);
                let read = self.plan.read_into(&damaged, self.form, &mut tape);
                let same = self.plan.check(&damaged, self.form).is_ok();
                check(read.is_ok() == same && shown.is_ok() == same, "not all agree")?;
                self.checked(&damaged)?;
                self.walk_view(&damaged)?;
                let again = self.render(bytes, &mut tree)?;
                check(again == whole, format!("{wrong} at {at} affects the next message"))?;
                self.plan.read_into(bytes, self.form, &mut tape).map_err(|it| it.to_string())?;
                let mut copy = Vec::new();
                tape.head_mut();
                tape.encode(self.plan, &mut copy).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// Checks that walking a view fails at the same place as reading the message, if the fault is
    /// the same.
    fn walk_view(&self, bytes: &[u8]) -> Outcome {
        let Err(wanted) = self.plan.read(bytes, self.form) else { return Ok(()) };
        let walked = View::new(self.plan, bytes, self.form).and_then(|view| walk(view.fields()));
        let Err(found) = walked else { return Ok(()) };
        let fault = |error: &Error| (Fault::of(error), error.offset());
        // Fixed-size fields are read together, but viewed one by one.
        if fault(&found) != fault(&wanted) || Fault::of(&found) == Some(Fault::Truncated) {
            return Ok(());
        }
        let title = wanted.subject().unwrap_or_default().to_owned();
        let same = found.clone().about(title).to_string() == wanted.to_string();
        check(same, format!("wanted {wanted}, found {found} in the view"))
    }

    /// A message as JSON, or its error. In both cases its tree is rendered, and its size is
    /// checked.
    fn render(&self, bytes: &[u8], kept: &mut Tree<'static>) -> Result<String, String> {
        let mut reader = Reader::traced("message", bytes, take(kept).recycle());
        let outcome = self.plan.decode(&mut reader, self.form);
        let (tree, outcome) = reader.conclude(outcome);
        let text = render(&tree, Style::default()).to_string();
        // A skill has six nodes in four bytes, and each byte may be read several times.
        let max = 64 + 2 * MAX_READINGS * bytes.len();
        let few =
            check(tree.len() <= max, format!("{} nodes from {} bytes", tree.len(), bytes.len()));
        *kept = tree.recycle();
        few?;
        outcome.map(|_| text).map_err(|error| error.to_string())
    }
}

/// Views all fields up to the first error and adds the enclosing names to it.
fn walk(fields: RecordView<'_, '_, '_>) -> Result<(), Error> {
    fields.iter().try_for_each(|(name, item)| look(name, item?))
}

fn look(name: &str, item: Item<'_, '_, '_>) -> Result<(), Error> {
    let around = |error: Error| if name.is_empty() { error } else { error.inside(name) };
    match item {
        Item::Record(fields) => walk(fields).map_err(around),
        Item::List(list) => list.iter().enumerate().try_for_each(|(index, item)| {
            look("", item?).map_err(|error| around(error.inside_item(index)))
        }),
        _ => Ok(()),
    }
}
