//! The steps of a scope as a tree, and their positions in the generated code.

use core::ops::Range;

use crate::schema::Plan;
use crate::schema::plan::{Op, Spot, TextPlace};
use crate::types::Scalar;

/// A step of reading or writing a scope. `field` is the index in the plan.
#[derive(Debug)]
pub(super) enum Step {
    Scalar {
        scalar: Scalar,
        spot: Spot,
        field: u32,
    },
    Text {
        place: TextPlace,
        field: u32,
    },
    Bytes {
        offset: Spot,
        count: Spot,
        field: u32,
    },
    Array {
        count: Spot,
        offset: Spot,
        scope: u32,
        field: u32,
    },
    Object {
        field: u32,
        steps: Vec<Self>,
    },
    /// The steps of the first value; the steps of the others follow at a distance of `apart` bytes.
    Row {
        field: u32,
        steps: Vec<Self>,
        count: usize,
        apart: u16,
    },
    Segment {
        size: u32,
    },
    /// Arrays whose elements alternate.
    Group {
        lists: Vec<Self>,
        pairs: bool,
    },
}

/// The steps of a scope, in byte order.
pub(super) fn steps(plan: &Plan, wire: &Range<u32>) -> Vec<Step> {
    tree(plan, &mut plan.steps(wire).iter())
}

fn tree(plan: &Plan, ops: &mut core::slice::Iter<'_, Op>) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Some(op) = ops.next() {
        let step = match *op {
            Op::Fixed { segment, from, to, .. } => {
                steps.extend(plan.run(from, to).iter().map(|fixed| Step::Scalar {
                    scalar: fixed.scalar,
                    spot: Spot { segment, offset: fixed.offset },
                    field: fixed.field,
                }));
                continue;
            }
            Op::Text { place, field, .. } => Step::Text { place, field },
            Op::Bytes { offset, count, field, .. } => Step::Bytes { offset, count, field },
            Op::Array { count, offset, scope, field, .. } => {
                Step::Array { count, offset, scope, field }
            }
            Op::Open { field, row: false, .. } => Step::Object { field, steps: tree(plan, ops) },
            Op::Open { field, row: true, .. } => row(plan, field, tree(plan, ops)),
            Op::Close => return steps,
            Op::Segment { size } => Step::Segment { size },
            Op::Group { arrays, pairs } => {
                let lists = ops.by_ref().take(arrays as usize).filter_map(|op| match *op {
                    Op::Array { count, offset, scope, field, .. } => {
                        Some(Step::Array { count, offset, scope, field })
                    }
                    _ => None,
                });
                Step::Group { lists: lists.collect(), pairs }
            }
            // The bytes of this step belong to no field.
            Op::Orphan { .. } => continue,
        };
        steps.push(step);
    }
    steps
}

/// Builds a row from the steps of all its values.
fn row(plan: &Plan, field: u32, mut steps: Vec<Step>) -> Step {
    let count = match plan.field(field).kind() {
        crate::schema::plan::FieldKind::Row(range) => range.len(),
        _ => 1,
    };
    let each = steps.len() / count.max(1);
    let first = steps.iter().find_map(first_spot);
    let second = steps.get(each..).unwrap_or_default().iter().find_map(first_spot);
    let apart = match (first, second) {
        (Some(first), Some(second)) if count > 1 => second.offset.saturating_sub(first.offset),
        _ => 0,
    };
    steps.truncate(each);
    Step::Row { field, steps, count, apart }
}

/// A spot in a step; it corresponds to the same spot in every step with the same structure.
fn first_spot(step: &Step) -> Option<Spot> {
    match step {
        Step::Scalar { spot, .. } => Some(*spot),
        Step::Text { place: TextPlace::Offset(spot) | TextPlace::Here(spot), .. } => Some(*spot),
        Step::Bytes { offset, .. } | Step::Array { offset, .. } => Some(*offset),
        Step::Object { steps, .. } | Step::Row { steps, .. } | Step::Group { lists: steps, .. } => {
            steps.iter().find_map(first_spot)
        }
        Step::Segment { .. } => None,
    }
}

/// The objects and rows that enclose a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Nesting {
    /// The calls that add the enclosing path to an error, outermost first.
    path: Vec<String>,
    /// The distance between values, for each enclosing row.
    rows: Vec<u16>,
}

impl Nesting {
    pub(super) fn inside_object(&self, plan: &Plan, field: u32) -> Self {
        let mut nesting = self.clone();
        nesting.path.extend(named(plan, field));
        nesting
    }

    pub(super) fn inside_row(&self, plan: &Plan, field: u32, apart: u16) -> Self {
        let mut nesting = self.inside_object(plan, field);
        nesting.path.push(format!(".inside_item({})", self.index()));
        nesting.rows.push(apart);
        nesting
    }

    /// The index variable for a row that begins here.
    pub(super) fn index(&self) -> String {
        format!("i{}", self.rows.len())
    }

    /// The variable for a value of a row that begins here.
    pub(super) fn item(&self) -> String {
        format!("item{}", self.rows.len())
    }

    /// An offset in a segment, as an expression.
    pub(super) fn offset(&self, spot: Spot) -> String {
        let terms: Vec<String> = self.terms(spot).collect();
        if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") }
    }

    /// A spot's offset relative to a variable, as an expression.
    pub(super) fn relative_to(&self, variable: &str, spot: Spot) -> String {
        let terms: String = self.terms(spot).map(|term| format!(" + {term}")).collect();
        format!("{variable}{terms}")
    }

    fn terms(&self, spot: Spot) -> impl Iterator<Item = String> {
        let own = (spot.offset > 0).then(|| spot.offset.to_string());
        let rows = self.rows.iter().enumerate().filter_map(|(depth, apart)| match apart {
            0 => None,
            1 => Some(format!("i{depth}")),
            apart => Some(format!("i{depth} * {apart}")),
        });
        own.into_iter().chain(rows)
    }

    /// The call that adds the path of a field to an error.
    pub(super) fn to_error(&self, plan: &Plan, field: u32) -> String {
        let own = named(plan, field);
        let steps: String = own.iter().chain(self.path.iter().rev()).map(String::as_str).collect();
        match steps.as_str() {
            "" => String::new(),
            steps => format!(".map_err(|error| error{steps})"),
        }
    }
}

/// The path element for a field; none for values of rows and elements.
fn named(plan: &Plan, field: u32) -> Option<String> {
    let name = plan.field(field).name();
    (!name.is_empty()).then(|| format!(".inside({})", worldwire_core::codegen::quoted(name)))
}
