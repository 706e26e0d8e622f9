//! The path of the field that caused an error.

use worldwire_core::Error;

use crate::message::fault::Fault;
use crate::schema::plan::{Op, Plan, Scope};

/// The error for a scope whose first segment is cut off, naming the first field that is incomplete.
#[cold]
pub(super) fn truncated(plan: &Plan, data: &[u8], scope: &Scope, start: usize) -> Error {
    let left = data.len().saturating_sub(start);
    let found = format!("{left} of {} bytes", scope.size);
    let error = Fault::Truncated.malformed(start.min(data.len()), found);
    let ops = plan.steps(&scope.wire);
    for (index, op) in ops.iter().enumerate() {
        let Op::Fixed { segment: 0, from, to, .. } = *op else { continue };
        let beyond = |end: usize| end > left;
        let run = plan.run(from, to).iter();
        let mut run = run.filter(|fixed| beyond(usize::from(fixed.offset) + fixed.scalar.size()));
        if let Some(fixed) = run.next() {
            return named(plan, error, ops, index, Some((fixed.field, fixed.slot)));
        }
    }
    error
}

/// Adds the names of the field and its enclosing objects to an error.
#[cold]
pub(super) fn inside(plan: &Plan, error: Error, ops: &[Op], index: usize) -> Error {
    let leaf = match ops.get(index) {
        Some(
            Op::Text { field, slot, .. }
            | Op::Bytes { field, slot, .. }
            | Op::Array { field, slot, .. },
        ) => Some((*field, *slot)),
        _ => None,
    };
    named(plan, error, ops, index, leaf)
}

fn named(plan: &Plan, error: Error, ops: &[Op], index: usize, leaf: Option<(u32, u32)>) -> Error {
    let mut open: Vec<(u32, bool)> = Vec::new();
    for op in ops.iter().take(index) {
        match op {
            Op::Open { field, row, .. } => open.push((*field, *row)),
            Op::Close => {
                open.pop();
            }
            _ => {}
        }
    }
    let step = |error: Error, field: u32, slot: u32, in_row: bool| {
        if in_row {
            error.inside_item(slot as usize)
        } else {
            error.inside(plan.field(field).name())
        }
    };
    let in_row = open.last().is_some_and(|(_, row)| *row);
    let mut error = match leaf {
        Some((field, slot)) => step(error, field, slot, in_row),
        None => error,
    };
    while let Some((field, _)) = open.pop() {
        let in_row = open.last().is_some_and(|(_, row)| *row);
        error = step(error, field, plan.field(field).slot, in_row);
    }
    error
}
