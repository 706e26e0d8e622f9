//! Checks that checking a message agrees with reading it.

use super::Outcome;
use super::codec::Message;

impl Message<'_> {
    /// Checks that checking and reading a message yield the same error or notes.
    pub(crate) fn checked(&self, bytes: &[u8]) -> Outcome {
        let read = self.plan.read(bytes, self.form);
        let notes = read.as_ref().map(|message| message.notes().clone()).map_err(Clone::clone);
        let checked = self.plan.check(bytes, self.form);
        if checked == notes {
            Ok(())
        } else {
            Err(format!("wanted {notes:?}, checked {checked:?}"))
        }
    }
}
