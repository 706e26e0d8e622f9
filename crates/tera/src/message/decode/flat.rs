//! Scopes whose fields all stand in their first segment, as those of nearly all definitions do.
//! Their steps need nothing of what objects, groups and further segments take.

use worldwire_core::Result;

use super::list::List;
use super::{Leaf, Run, Sink, path};
use crate::schema::plan::{Op, Scope, Spot, TextPlace};

impl<'d, 'n> Run<'d, 'n> {
    /// Does the steps of a scope whose first segment is all there, up to `cursor`; gives the end of
    /// its last body.
    pub(super) fn flat<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        ops: &'n [Op],
        start: usize,
        mut cursor: usize,
    ) -> Result<usize> {
        let (plan, data) = (self.plan, self.data);
        let head = data.get(start..cursor).unwrap_or_default();
        for (index, op) in ops.iter().enumerate() {
            let end = match *op {
                Op::Fixed { reach, from, to, .. } => {
                    if let Some(bytes) = head.get(..reach as usize) {
                        sink.fixed(plan, plan.run(from, to), bytes, start);
                    }
                    continue;
                }
                Op::Text { place: TextPlace::Offset(spot), field, body, .. } => {
                    let place = (word(head, spot), start + usize::from(spot.offset));
                    self.text(sink, Leaf { plan, field, body }, place, cursor)
                }
                Op::Bytes { offset, count, field, body, .. } => {
                    let count = (word(head, count), start + usize::from(count.offset));
                    let place = (word(head, offset), start + usize::from(offset.offset));
                    self.bytes(sink, Leaf { plan, field, body }, count, place, cursor)
                }
                Op::Array { count, offset, scope, field, body, .. } => {
                    let (count, first) = (word(head, count), word(head, offset));
                    let link = start + usize::from(offset.offset);
                    let list = List { count, first, link, number: None };
                    self.array(sink, Leaf { plan, field, body }, scope, list, cursor)
                }
                // A flat scope has no others.
                _ => continue,
            };
            match end {
                Ok(end) => cursor = end,
                Err(error) => return Err(path::inside(plan, error, ops, index)),
            }
        }
        Ok(cursor)
    }

    /// The steps of a scope for a sink, if they are all that there is to do.
    #[inline]
    pub(super) fn flat_steps<S: Sink<'d, 'n>>(&self, scope: &'n Scope) -> Option<&'n [Op]> {
        if S::FIXED {
            scope.flat.then(|| self.plan.steps(&scope.wire))
        } else {
            scope.loose_flat.then(|| self.plan.steps(&scope.loose))
        }
    }
}

/// A word of the first segment of a scope, which is all there.
#[inline]
fn word(head: &[u8], spot: Spot) -> usize {
    let at = usize::from(spot.offset);
    match head.get(at..at + 2) {
        Some(&[low, high]) => usize::from(u16::from_le_bytes([low, high])),
        _ => 0,
    }
}
