//! Compiles lines to plans.

mod layout;
mod steps;

use core::ops::Range;
use std::collections::HashMap;

use super::dialect::Dialect;
use super::parse::{Line, MAX_DEPTH, Meta, Type};
use super::plan::{Field, FieldKind, Fixed, LINKS, Op, Placement, Plan, Scope, Spot, TextPlace};
use super::problem::ProblemKind;
use super::version::Patch;
use crate::types::Scalar;
use steps::{Steps, mark_plain, number};

/// The number of steps that count as one byte of work in a scope with more steps than bytes. Real
/// definitions have at most one step per byte and two per object, so this never affects them.
const STEPS_A_BYTE: u32 = 4;

/// Maximum number of fields in one definition, with rows expanded.
const MAX_FIELDS: usize = 65_536;
/// The first patch with 64-bit `skillid`s.
const WIDE_SKILLS: Patch = Patch::major(74);

/// A problem with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    pub(crate) kind: ProblemKind,
    pub(crate) error: bool,
    /// Index of the line.
    pub(crate) line: usize,
    pub(crate) message: String,
    pub(crate) help: Option<&'static str>,
}

/// The result of compiling lines.
pub(crate) struct Compiled {
    /// `None` if there are errors.
    pub(crate) plan: Option<Plan>,
    pub(crate) issues: Vec<Issue>,
    /// Number of fields created.
    pub(crate) fields: usize,
}

/// Compiles lines with valid depths, as of a patch. With `pairs`, the elements of the message's
/// arrays are written in pairs.
pub(crate) fn compile(
    lines: &[Line],
    dialect: Dialect,
    patch: Patch,
    (lenient, pairs): (bool, bool),
) -> Compiled {
    let explicit = lines.iter().any(|line| match line.kind {
        Type::Meta(Meta::Count) => dialect == Dialect::Legacy,
        Type::Meta(_) => true,
        _ => false,
    });
    let placement = match dialect {
        Dialect::Proto => Placement::InPlace,
        _ if explicit => Placement::Explicit,
        _ => Placement::Front,
    };
    let mut compiler = Compiler {
        lines,
        dialect,
        placement,
        narrow_skills: dialect == Dialect::Proto && patch < WIDE_SKILLS,
        lenient,
        pairs,
        drafts: Vec::new(),
        records: Vec::new(),
        scopes: Vec::new(),
        ops: Vec::new(),
        fixed: Vec::new(),
        issues: Vec::new(),
        full: false,
    };
    let mut place = 0;
    let nodes = nodes(lines, &mut place, 0, patch);
    let root = compiler.scope(Content::Fields(&nodes), 0);
    let issues = core::mem::take(&mut compiler.issues);
    let fields = compiler.drafts.len();
    let plan = issues.iter().all(|issue| !issue.error).then(|| compiler.finish(root));
    Compiled { plan, issues, fields }
}

/// Whether the plan may differ at another patch.
pub(crate) fn depends_on_patch(lines: &[Line], dialect: Dialect, plan: &Plan) -> bool {
    let is_skill = |field: &Field| {
        matches!(field.kind, FieldKind::Scalar { scalar: Scalar::SkillId | Scalar::SkillId32, .. })
    };
    lines.iter().any(|line| line.range.is_some())
        // Skill IDs are narrow before `WIDE_SKILLS`.
        || dialect == Dialect::Proto && plan.fields.iter().any(is_skill)
}

/// A line with the lines nested below it.
struct Node<'l> {
    line: &'l Line,
    index: usize,
    children: Vec<Self>,
}

/// The lines at a depth, starting at index `place`. Lines that do not exist at the patch are left
/// out with everything nested below them.
fn nodes<'l>(lines: &'l [Line], place: &mut usize, depth: usize, patch: Patch) -> Vec<Node<'l>> {
    let mut nodes = Vec::new();
    while let Some(line) = lines.get(*place).filter(|line| line.depth >= depth) {
        let index = *place;
        *place += 1;
        let children = nodes_below(lines, place, depth, patch);
        if line.range.is_none_or(|range| range.contains(patch)) {
            nodes.push(Node { line, index, children });
        }
    }
    nodes
}

fn nodes_below<'l>(
    lines: &'l [Line],
    place: &mut usize,
    depth: usize,
    patch: Patch,
) -> Vec<Node<'l>> {
    match lines.get(*place) {
        Some(line) if line.depth > depth => nodes(lines, place, depth + 1, patch),
        _ => Vec::new(),
    }
}

/// A field whose position is not yet known.
struct Draft {
    name: Box<str>,
    slot: u32,
    twin: Option<usize>,
    line: usize,
    body: Body,
}

enum Body {
    Scalar(Scalar, Spot),
    Text(Option<TextPlace>),
    Bytes { offset: Option<Spot>, count: Option<Spot> },
    Array { offset: Option<Spot>, count: Option<Spot>, scope: u32, interleaved: bool },
    Object(usize),
    Row(usize),
}

/// The fields of an object, row or scope.
#[derive(Default)]
struct Record {
    fields: Vec<usize>,
    /// The field with each name; for repeated fields, the last copy.
    names: HashMap<Box<str>, usize>,
    /// Earlier copies, and the name they share.
    copies: Vec<(usize, Box<str>)>,
}

/// The parts of a scope in byte order.
enum Wire {
    Field(usize),
    Open(usize),
    Close,
    /// The index of a metadata line, and the record in which to look up its field.
    Meta {
        kind: Meta,
        line: usize,
        record: usize,
    },
}

/// The contents of a scope.
enum Content<'a, 'l> {
    Fields(&'a [Node<'l>]),
    /// A single value, and its fields if it is an object.
    Value(&'a Type, &'a [Node<'l>], usize),
}

struct Compiler<'l> {
    lines: &'l [Line],
    dialect: Dialect,
    placement: Placement,
    narrow_skills: bool,
    lenient: bool,
    pairs: bool,
    drafts: Vec<Draft>,
    records: Vec<Record>,
    scopes: Vec<(Scope, usize)>,
    ops: Vec<Op>,
    fixed: Vec<Fixed>,
    issues: Vec<Issue>,
    /// Set when there are too many fields: reported once, then nothing more is added.
    full: bool,
}

impl Compiler<'_> {
    fn say(
        &mut self,
        kind: ProblemKind,
        error: bool,
        line: usize,
        message: String,
        help: Option<&'static str>,
    ) {
        self.issues.push(Issue { kind, error, line, message, help });
    }

    fn too_large(&mut self, line: usize, message: String) {
        if !self.full {
            self.full = true;
            self.say(ProblemKind::TooLarge, true, line, message, None);
        }
    }

    /// Compiles a scope and returns its index.
    fn scope(&mut self, content: Content<'_, '_>, depth: usize) -> u32 {
        let record = self.records.len();
        self.records.push(Record::default());
        let mut wire = Vec::new();
        let mut merged = false;
        let single = match content {
            Content::Fields(nodes) => {
                self.record(nodes, record, &mut wire, &mut merged, depth);
                false
            }
            Content::Value(kind, children, line) => {
                let field = Described { name: "", kind, children, line, interleaved: false };
                self.value(&field, record, &mut wire, &mut merged, depth);
                true
            }
        };
        let layout = self.layout(&wire, record, single);
        let emit = merged.then(|| {
            let start = self.ops.len();
            self.emit(record);
            range(start, self.ops.len())
        });
        // The links or header, and the fixed part. Steps that take no bytes are counted only if
        // there are many of them, so that a crafted definition cannot produce a large tree from few
        // bytes.
        let cost = (layout.size + index(LINKS)).max(range_len(&layout.wire) / STEPS_A_BYTE);
        let steps = self.ops.get(layout.wire.start as usize..layout.wire.end as usize);
        let has_bodies = steps.unwrap_or_default().iter().any(|op| {
            matches!(op, Op::Text { .. } | Op::Bytes { .. } | Op::Array { .. } | Op::Segment { .. })
        });
        let scope = Scope {
            size: layout.size,
            segments: layout.segments,
            words: layout.words,
            fields: 0..0,
            single,
            wire: layout.wire,
            emit,
            // Filled in once all fields have their positions.
            loose: 0..0,
            bools: 0..0,
            bodies: 0,
            cost,
            flat: false,
            loose_flat: false,
            nested: false,
            stride: 0,
            run: 0..0,
            one_run: false,
            has_bodies,
        };
        self.scopes.push((scope, record));
        index(self.scopes.len() - 1)
    }

    /// Adds the fields of some lines to a record.
    fn record(
        &mut self,
        nodes: &[Node<'_>],
        record: usize,
        wire: &mut Vec<Wire>,
        merged: &mut bool,
        depth: usize,
    ) {
        for node in nodes {
            let Line { kind, name, interleaved, .. } = node.line;
            if let Type::Meta(kind) = *kind {
                wire.push(Wire::Meta { kind, line: node.index, record });
                continue;
            }
            let known = self.records[record].names.get(name).copied();
            if let Some(known) = known {
                match (&self.drafts[known].body, kind) {
                    (&Body::Object(inner), Type::Object) => {
                        *merged = true;
                        wire.push(Wire::Open(known));
                        self.record(&node.children, inner, wire, merged, depth + 1);
                        wire.push(Wire::Close);
                        continue;
                    }
                    (Body::Scalar(..), Type::Scalar(_)) => {
                        let message = format!("{name} occurs more than once");
                        let help = "each copy takes up bytes; all are written from one value";
                        let kind = ProblemKind::DuplicateField;
                        self.say(kind, false, node.index, message, Some(help));
                        self.records[record].copies.push((known, name.clone()));
                    }
                    _ => {
                        let message = format!("another field is named {name}");
                        let help =
                            "only objects can be split into several parts; rename one of the two";
                        let kind = ProblemKind::NameClash;
                        self.say(kind, true, node.index, message, Some(help));
                        continue;
                    }
                }
            }
            let field = Described {
                name,
                kind,
                children: &node.children,
                line: node.index,
                interleaved: *interleaved,
            };
            if let Some(id) = self.value(&field, record, wire, merged, depth) {
                self.records[record].names.insert(name.clone(), id);
            }
        }
    }

    /// Adds one field to a record.
    fn value(
        &mut self,
        field: &Described<'_, '_>,
        record: usize,
        wire: &mut Vec<Wire>,
        merged: &mut bool,
        depth: usize,
    ) -> Option<usize> {
        if self.drafts.len() >= MAX_FIELDS {
            self.too_large(field.line, format!("more than {MAX_FIELDS} fields in all"));
            return None;
        }
        if depth > MAX_DEPTH {
            self.too_large(field.line, format!("fields are nested more than {MAX_DEPTH} deep"));
            return None;
        }
        let id = self.drafts.len();
        let slot = index(self.records[record].fields.len());
        let body = match field.kind {
            Type::Scalar(Scalar::SkillId) if self.narrow_skills => {
                Body::Scalar(Scalar::SkillId32, Spot { segment: 0, offset: 0 })
            }
            Type::Scalar(scalar) => Body::Scalar(*scalar, Spot { segment: 0, offset: 0 }),
            Type::Text => Body::Text(None),
            Type::Bytes => Body::Bytes { offset: None, count: None },
            Type::Array(_) => {
                let interleaved = field.interleaved || (self.pairs && depth == 0);
                Body::Array { offset: None, count: None, scope: 0, interleaved }
            }
            Type::Object => Body::Object(self.new_record()),
            Type::Row(..) => Body::Row(self.new_record()),
            // Metadata is not a value; the parser rejects it wherever it could appear as one.
            Type::Meta(_) => return None,
        };
        self.drafts.push(Draft {
            name: field.name.into(),
            slot,
            twin: None,
            line: field.line,
            body,
        });
        self.records[record].fields.push(id);
        match (field.kind, &self.drafts[id].body) {
            (Type::Array(element), _) => {
                let content = match &**element {
                    Type::Object => Content::Fields(field.children),
                    element => Content::Value(element, field.children, field.line),
                };
                let inner = self.scope(content, depth + 1);
                if let Body::Array { scope, .. } = &mut self.drafts[id].body {
                    *scope = inner;
                }
                wire.push(Wire::Field(id));
            }
            (Type::Object, &Body::Object(inner)) => {
                wire.push(Wire::Open(id));
                self.record(field.children, inner, wire, merged, depth + 1);
                wire.push(Wire::Close);
            }
            (Type::Row(element, count), &Body::Row(inner)) => {
                wire.push(Wire::Open(id));
                let item = Described { name: "", kind: element, interleaved: false, ..*field };
                for _ in 0..*count {
                    self.value(&item, inner, wire, merged, depth + 1)?;
                }
                wire.push(Wire::Close);
            }
            _ => wire.push(Wire::Field(id)),
        }
        Some(id)
    }

    fn new_record(&mut self) -> usize {
        self.records.push(Record::default());
        self.records.len() - 1
    }

    /// Adds the steps of a record in field order.
    fn emit(&mut self, record: usize) {
        for at in 0..self.records[record].fields.len() {
            let id = self.records[record].fields[at];
            match self.drafts[id].body {
                Body::Object(inner) | Body::Row(inner) => {
                    let slot = self.drafts[id].slot;
                    let row = matches!(self.drafts[id].body, Body::Row(_));
                    self.ops.push(Op::Open { field: index(id), slot, row });
                    self.emit(inner);
                    self.ops.push(Op::Close);
                }
                _ => self.step(id),
            }
        }
    }

    /// Sorts the fields into plan order, so that the fields of a record are contiguous.
    fn finish(mut self, root: u32) -> Plan {
        for record in 0..self.records.len() {
            let copies = core::mem::take(&mut self.records[record].copies);
            let mut counts: HashMap<&str, usize> = HashMap::new();
            for (id, name) in &copies {
                let count = counts.entry(name).or_default();
                *count += 1;
                self.drafts[*id].name = format!("{name}#{count}").into();
                self.drafts[*id].twin = self.records[record].names.get(name).copied();
            }
        }
        let mut starts = Vec::with_capacity(self.records.len());
        let mut places = vec![0; self.drafts.len()];
        let mut order = Vec::with_capacity(self.drafts.len());
        for record in &self.records {
            let start = order.len();
            for id in &record.fields {
                places[*id] = index(order.len());
                order.push(*id);
            }
            starts.push(range(start, order.len()));
        }
        let mut fields: Vec<Field> =
            order.iter().map(|id| self.final_field(*id, &starts, &places)).collect();
        for fixed in &mut self.fixed {
            fixed.field = places[fixed.field as usize];
        }
        for op in &mut self.ops {
            match op {
                Op::Text { field, .. }
                | Op::Bytes { field, .. }
                | Op::Array { field, .. }
                | Op::Open { field, .. } => *field = places[*field as usize],
                Op::Fixed { .. }
                | Op::Close
                | Op::Segment { .. }
                | Op::Group { .. }
                | Op::Orphan { .. } => {}
            }
        }
        let mut steps = Steps { fixed: &self.fixed, ops: Vec::new(), bools: Vec::new() };
        let mut scopes = Vec::with_capacity(self.scopes.len());
        for (scope, record) in &self.scopes {
            let steps_of = |range: &Range<u32>| {
                let range = range.start as usize..range.end as usize;
                self.ops.get(range).unwrap_or_default()
            };
            let wire = steps_of(&scope.wire);
            let bodies = number(wire, &mut fields);
            let flat = |op: &Op| op.is_flat();
            let merged = steps.merge(wire, &fields);
            let loose = steps.loose(wire, &fields);
            let run = match (&scope.emit, steps.of(&merged)) {
                (None, []) => Some(0..0),
                (None, [Op::Fixed { from, to, .. }]) => Some(*from..*to),
                _ => None,
            };
            scopes.push(Scope {
                flat: scope.emit.is_none() && steps.of(&merged).iter().all(flat),
                loose_flat: steps.of(&loose).iter().all(flat),
                stride: match scope.size + index(LINKS) {
                    stride if loose.is_empty() && scope.cost == stride => stride,
                    _ => 0,
                },
                one_run: run.is_some(),
                run: run.unwrap_or(0..0),
                fields: starts[*record].clone(),
                bodies,
                bools: steps.bools(wire),
                wire: merged,
                emit: scope.emit.as_ref().map(|emit| steps.merge(steps_of(emit), &fields)),
                loose,
                ..*scope
            });
        }
        let Steps { mut ops, bools, .. } = steps;
        mark_plain(&mut ops, &mut scopes);
        let Self { fixed, placement, pairs, .. } = self;
        let around = scopes_around(&scopes, &fields);
        let top = &scopes[root as usize];
        // A definition may place words after a body, so the first body may begin before
        // `2 * top.words`.
        let words = top.size.min(2 * top.words);
        // The definition adds its title.
        let title = Box::default();
        Plan { title, fields, scopes, ops, fixed, bools, around, root, words, placement, pairs }
    }

    fn final_field(&self, id: usize, starts: &[Range<u32>], places: &[u32]) -> Field {
        let draft = &self.drafts[id];
        let nowhere = Spot { segment: 0, offset: 0 };
        let kind = match draft.body {
            Body::Scalar(scalar, spot) => FieldKind::Scalar { scalar, spot },
            Body::Text(place) => {
                FieldKind::Text { place: place.unwrap_or(TextPlace::Offset(nowhere)) }
            }
            // Both have positions; otherwise there were errors and no plan is made.
            Body::Bytes { offset, count } => FieldKind::Bytes {
                offset: offset.unwrap_or(nowhere),
                count: count.unwrap_or(nowhere),
            },
            Body::Array { offset, count, scope, interleaved } => FieldKind::Array {
                count: count.unwrap_or(nowhere),
                offset: offset.unwrap_or(nowhere),
                scope,
                interleaved,
            },
            Body::Object(record) => FieldKind::Object(starts[record].clone()),
            Body::Row(record) => FieldKind::Row(starts[record].clone()),
        };
        let (name, index) = (draft.name.clone(), places[id]);
        let last = draft.twin.map_or(index, |twin| places[twin]);
        Field { name, kind, index, last, slot: draft.slot, body: 0 }
    }
}

/// The scope of each field.
fn scopes_around(scopes: &[Scope], fields: &[Field]) -> Vec<u32> {
    let mut around = vec![0; fields.len()];
    for (scope, number) in scopes.iter().zip(0..) {
        let mut open = vec![scope.fields.clone()];
        while let Some(range) = open.pop() {
            let range = range.start as usize..range.end as usize;
            around[range.clone()].fill(number);
            open.extend(fields[range].iter().filter_map(|field| match field.kind() {
                FieldKind::Object(inner) | FieldKind::Row(inner) => Some(inner.clone()),
                _ => None,
            }));
        }
    }
    around
}

/// A field to be added.
struct Described<'a, 'l> {
    name: &'a str,
    kind: &'a Type,
    children: &'a [Node<'l>],
    line: usize,
    interleaved: bool,
}

/// Converts a number of fields or steps; limits apply long before one overflows.
#[expect(clippy::cast_possible_truncation, reason = "bounded by the number of fields")]
const fn index(count: usize) -> u32 {
    count as u32
}

const fn range(start: usize, end: usize) -> Range<u32> {
    index(start)..index(end)
}

const fn range_len(range: &Range<u32>) -> u32 {
    range.end - range.start
}
