//! Messages with one offset damaged.

use std::mem::take;

use worldwire_core::json::Style;
use worldwire_core::testing::render;
use worldwire_core::{Error, Reader, Tree};
use worldwire_tera::message::{Fault, HeaderForm, Item, MAX_READINGS, RecordView, Tape, View};

use super::codec::Message;
use super::{Outcome, check};

impl Message<'_> {
    /// Damages every word that could be a count, offset or link, one at a time, in every way that is
    /// worth it; reads and renders what comes of it. The messages before and behind it are read in
    /// the same memory, and stay what they are.
    pub(crate) fn damaged(&self, bytes: &[u8]) -> Outcome {
        let (mut tree, mut tape) = (Tree::new(), Tape::new());
        let whole = self.shown(bytes, &mut tree)?;
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
                let shown = self.shown(&damaged, &mut tree);
                let read = self.plan.read_into(&damaged, self.form, &mut tape);
                let same = self.plan.check(&damaged, self.form).is_ok();
                check(read.is_ok() == same && shown.is_ok() == same, "not all agree")?;
                self.told(&damaged)?;
                self.walked(&damaged)?;
                let again = self.shown(bytes, &mut tree)?;
                check(again == whole, format!("{wrong} at {at} changes the next message"))?;
                self.plan.read_into(bytes, self.form, &mut tape).map_err(|it| it.to_string())?;
                let mut copy = Vec::new();
                tape.head_mut();
                tape.encode(self.plan, &mut copy).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// Who walks a view finds an error in the same place as who reads the message, if it is the same.
    fn walked(&self, bytes: &[u8]) -> Outcome {
        let Err(wanted) = self.plan.read(bytes, self.form) else { return Ok(()) };
        let walked = View::new(self.plan, bytes, self.form).and_then(|view| walk(view.fields()));
        let Err(found) = walked else { return Ok(()) };
        let fault = |error: &Error| (Fault::of(error), error.offset());
        // Fields of fixed size are read together, and looked at one by one.
        if fault(&found) != fault(&wanted) || Fault::of(&found) == Some(Fault::Truncated) {
            return Ok(());
        }
        let same = found.to_string() == wanted.to_string();
        check(same, format!("wanted {wanted}, the view has {found}"))
    }

    /// A message as JSON, or its error; in both cases its tree is rendered, and not larger than its
    /// bytes allow.
    fn shown(&self, bytes: &[u8], kept: &mut Tree<'static>) -> Result<String, String> {
        let mut reader = Reader::traced("message", bytes, take(kept).recycle());
        let outcome = self.plan.decode(&mut reader, self.form);
        let (tree, outcome) = reader.conclude(outcome);
        let text = render(&tree, Style::default()).to_string();
        // A skill has six nodes in four bytes, and each byte may be read several times.
        let most = 64 + 2 * MAX_READINGS * bytes.len();
        let few =
            check(tree.len() <= most, format!("{} nodes of {} bytes", tree.len(), bytes.len()));
        *kept = tree.recycle();
        few?;
        outcome.map(|_| text).map_err(|error| error.to_string())
    }
}

/// Looks at all fields up to the first error, and puts the names around to it.
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
