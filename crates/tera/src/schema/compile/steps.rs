//! The steps of a scope as decoder and encoder run them, with fixed-size fields merged into runs.

use core::ops::Range;

use super::{index, range};
use crate::schema::plan::{Field, Fixed, LINKS, Op, Scope, Spot, TextPlace};
use crate::types::Scalar;

/// Numbers the texts, byte strings and arrays of a scope consecutively; returns their total number.
pub(super) fn number(wire: &[Op], fields: &mut [Field]) -> u32 {
    let mut bodies = 0;
    for op in wire {
        if let Op::Text { field, .. } | Op::Bytes { field, .. } | Op::Array { field, .. } = op
            && let Some(field) = fields.get_mut(*field as usize)
        {
            field.body = bodies;
            bodies += 1;
        }
    }
    bodies
}

/// Marks arrays with plain elements, and scopes whose only bodies are such arrays and texts.
pub(super) fn mark_plain(ops: &mut [Op], scopes: &mut [Scope]) {
    for op in &mut *ops {
        if let Op::Array { count, offset, scope, plain, .. } = op
            && let Some(scope) = scopes.get(*scope as usize)
            && scope.one_run
            && scope.bools.is_empty()
            && offset.segment == count.segment
            && offset.offset.checked_sub(count.offset) == Some(2)
        {
            *plain = u16::try_from(scope.stride).unwrap_or(0);
        }
    }
    for scope in scopes {
        let bodies = ops.get(scope.loose.start as usize..scope.loose.end as usize);
        let is_plain = |op: &Op| {
            matches!(
                op,
                Op::Array { plain: 1.., .. } | Op::Text { place: TextPlace::Offset(_), .. }
            )
        };
        scope.nested = scope.loose_flat
            && scope.cost == scope.size + index(LINKS)
            && bodies.is_some_and(|bodies| !bodies.is_empty() && bodies.iter().all(is_plain));
    }
}

/// The steps of a plan under construction.
pub(super) struct Steps<'f> {
    pub(super) fixed: &'f [Fixed],
    pub(super) ops: Vec<Op>,
    pub(super) bools: Vec<Spot>,
}

impl Steps<'_> {
    /// The steps in a range.
    pub(super) fn of(&self, range: &Range<u32>) -> &[Op] {
        self.ops.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// Adds steps, merging adjacent fixed-size fields into one step.
    pub(super) fn merge(&mut self, steps: &[Op], fields: &[Field]) -> Range<u32> {
        let start = self.ops.len();
        let fixed = self.fixed;
        let follows = |at: u32| {
            let pair =
                (at as usize).checked_sub(1).and_then(|before| fixed.get(before..=at as usize));
            matches!(pair, Some([one, next]) if one.field + 1 == next.field)
        };
        for op in steps {
            let op = numbered(*op, fields);
            let last = self.ops.get_mut(start..).and_then(<[Op]>::last_mut);
            match (last, op) {
                (
                    Some(Op::Fixed { segment, reach, to, .. }),
                    Op::Fixed { segment: next, reach: further, from, to: end },
                ) if *segment == next && *to == from && follows(from) => {
                    *reach = (*reach).max(further);
                    *to = end;
                }
                _ => self.ops.push(op),
            }
        }
        range(start, self.ops.len())
    }

    /// Adds the steps except those of fixed-size fields, and of objects that contain nothing else.
    pub(super) fn loose(&mut self, steps: &[Op], fields: &[Field]) -> Range<u32> {
        let start = self.ops.len();
        for op in steps {
            let last = self.ops.get(start..).and_then(<[Op]>::last);
            match (last, op) {
                (_, Op::Fixed { .. }) => {}
                (Some(Op::Open { .. }), Op::Close) => {
                    self.ops.pop();
                }
                _ => self.ops.push(numbered(*op, fields)),
            }
        }
        range(start, self.ops.len())
    }

    /// Adds the positions of the booleans among some steps.
    pub(super) fn bools(&mut self, steps: &[Op]) -> Range<u32> {
        let start = self.bools.len();
        for op in steps {
            if let Op::Fixed { segment, from, to, .. } = *op {
                let run = self.fixed.get(from as usize..to as usize).unwrap_or_default();
                let bools = run.iter().filter(|fixed| fixed.scalar == Scalar::Bool);
                self.bools.extend(bools.map(|fixed| Spot { segment, offset: fixed.offset }));
            }
        }
        range(start, self.bools.len())
    }
}

/// A step with its index among the bodies of its scope.
fn numbered(mut op: Op, fields: &[Field]) -> Op {
    if let Op::Text { field, body, .. }
    | Op::Bytes { field, body, .. }
    | Op::Array { field, body, .. } = &mut op
        && let Some(field) = fields.get(*field as usize)
    {
        *body = field.body;
    }
    op
}
