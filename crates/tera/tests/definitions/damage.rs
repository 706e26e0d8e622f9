//! Messages with one offset damaged.

use std::mem::take;

use worldwire_core::json::Style;
use worldwire_core::testing::render;
use worldwire_core::{Reader, Tree};
use worldwire_tera::message::{HeaderForm, MOST_READINGS, Tape};

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

    /// A message as JSON, or its error; in both cases its tree is rendered, and not larger than its
    /// bytes allow.
    fn shown(&self, bytes: &[u8], kept: &mut Tree<'static>) -> Result<String, String> {
        let mut reader = Reader::traced("message", bytes, take(kept).recycle());
        let outcome = self.plan.decode(&mut reader, self.form);
        let (tree, outcome) = reader.conclude(outcome);
        let text = render(&tree, Style::default()).to_string();
        // A skill has six nodes in four bytes, and each byte may be read several times.
        let most = 64 + 2 * MOST_READINGS * bytes.len();
        let few =
            check(tree.len() <= most, format!("{} nodes of {} bytes", tree.len(), bytes.len()));
        *kept = tree.recycle();
        few?;
        outcome.map(|_| text).map_err(|error| error.to_string())
    }
}
