//! Scopes whose fields are all in their first segment, as in nearly all definitions. They need none
//! of the bookkeeping for objects, groups and later segments.

use worldwire_core::Result;

use super::packed::{linked, packed, place, word, words};
use super::{Base, Group, Leaf, Run, Sink, path};
use crate::schema::plan::{Op, Plan, Scope, TextPlace};
use crate::types::text::text_length;

impl<'d, 'n> Run<'d, 'n> {
    /// Reads a scope as encoders write it: each body begins where the one before it ends, and
    /// elements without bodies are contiguous. Anything else goes to
    /// [`one_body`](Self::one_body). Returns the end of its last body.
    #[inline(always)]
    pub(super) fn flat<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        scope: &'n Scope,
        ops: &'n [Op],
        start: usize,
    ) -> Result<usize> {
        let (plan, data) = (self.plan, self.data);
        let Some(head) = data.get(start..start + scope.size as usize) else {
            return Err(path::truncated(plan, data, scope, start));
        };
        self.budget.spend(scope.cost as usize, start)?;
        if !scope.bools.is_empty() && !plan.bools_hold(scope, head) {
            self.bools(scope, 0, start);
        }
        let base = Base { scope, start, segments: self.segments.len() };
        let mut cursor = start + head.len();
        let (mut from, mut readable) = (cursor, self.readable(cursor));
        let mut steps = ops;
        while let [op, tail @ ..] = steps {
            let lists = steps;
            steps = tail;
            match *op {
                Op::Fixed { reach, from, to, .. } => {
                    if let Some(bytes) = head.get(..reach as usize) {
                        sink.fixed(plan, plan.run(from, to), bytes, start);
                    }
                    continue;
                }
                Op::Text { place: TextPlace::Offset(spot), field, body, .. } => {
                    if word(head, spot) == cursor
                        && let Some(rest) = readable.get(cursor..)
                        && let Some(length) = text_length(rest)
                    {
                        let text = rest.get(..length).unwrap_or_default();
                        sink.text(Leaf { plan, field, body }, text, cursor);
                        cursor += length + 2;
                        continue;
                    }
                }
                Op::Bytes { offset, count, field, body, .. } => {
                    let length = word(head, count);
                    if word(head, offset) == cursor
                        && let Some(bytes) = readable.get(cursor..cursor + length)
                    {
                        sink.bytes(Leaf { plan, field, body }, bytes, cursor);
                        cursor += length;
                        continue;
                    }
                }
                Op::Array { plain: 1.., .. } => {
                    let (rest, end) = plain_lists(sink, plan, lists, head, (readable, cursor));
                    if rest.len() < lists.len() {
                        (steps, cursor) = (rest, end);
                        continue;
                    }
                }
                Op::Array { count, offset, scope, field, body, .. } => {
                    let leaf = Leaf { plan, field, body };
                    let (count, first) = (word(head, count), word(head, offset));
                    if count == 0 && first == 0 {
                        sink.group(Group::List(leaf, scope, 0), cursor, |_| ((), cursor));
                        continue;
                    }
                    let inner = plan.scope(scope);
                    if first == cursor
                        && let Some(elements) = packed::<S>(plan, readable, inner, (count, first))
                    {
                        sink.packed(leaf, scope, (count, first), elements);
                        cursor += elements.len();
                        continue;
                    }
                }
                _ => {}
            }
            self.advance(from, cursor);
            match self.unusual_body(sink, op, base, cursor) {
                Ok(end) => cursor = end,
                Err(error) => {
                    let index = ops.len() - steps.len() - 1;
                    return Err(path::inside(plan, error, ops, index));
                }
            }
            (from, readable) = (cursor, self.readable(cursor));
        }
        self.advance(from, cursor);
        Ok(cursor)
    }

    /// Reads a body that is known not to have the usual form.
    #[inline(never)]
    fn unusual_body<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        op: &Op,
        base: Base<'n>,
        cursor: usize,
    ) -> Result<usize> {
        self.one_body(sink, op, base, None, cursor)
    }

    /// The data as far as the budget allows reading from the cursor without gaps, so that bodies
    /// need not be counted one by one.
    #[inline]
    pub(super) fn readable(&self, cursor: usize) -> &'d [u8] {
        let end = self.data.len().min(cursor + self.budget.left());
        self.data.get(..end).unwrap_or_default()
    }

    /// Counts all bytes from `from` to the cursor as read.
    #[inline]
    pub(super) fn advance(&mut self, from: usize, cursor: usize) {
        self.budget.take(cursor - from);
        self.furthest = self.furthest.max(cursor);
    }

    /// The steps of a scope for a sink, if the scope is flat for it.
    #[inline]
    pub(super) fn flat_steps<S: Sink<'d, 'n>>(&self, scope: &'n Scope) -> Option<&'n [Op]> {
        if S::FIXED {
            scope.flat.then(|| self.plan.steps(&scope.wire))
        } else {
            scope.loose_flat.then(|| self.plan.steps(&scope.loose))
        }
    }
}

/// Reports lists of plain elements, as long as each begins where the one before it ends. Returns
/// the remaining steps, and the end of the last list.
// A separate function, to keep few values live: such lists are small and frequent.
#[inline(never)]
fn plain_lists<'d, 'n, S: Sink<'d, 'n>>(
    sink: &mut S,
    plan: &'n Plan,
    mut steps: &'n [Op],
    head: &[u8],
    (readable, cursor): (&'d [u8], usize),
) -> (&'n [Op], usize) {
    let mut cursor = place(cursor);
    while let [Op::Array { count, scope, field, body, plain: plain @ 1.., .. }, tail @ ..] = steps {
        let (leaf, words) = (Leaf { plan, field: *field, body: *body }, words(head, *count));
        let start = cursor as usize;
        if words == 0 {
            sink.group(Group::List(leaf, *scope, 0), start, |_| ((), start));
        } else if let Some(end) = linked(readable, words, cursor, *plain) {
            let elements = readable.get(start..end as usize).unwrap_or_default();
            sink.packed(leaf, *scope, (words as usize & 0xffff, start), elements);
            cursor = end;
        } else {
            break;
        }
        steps = tail;
    }
    (steps, cursor as usize)
}
