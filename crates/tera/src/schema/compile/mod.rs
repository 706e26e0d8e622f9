//! Lines to plans.

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

/// Steps of a scope that count as a byte that is read, where it has more of them than bytes. A real
/// definition has at most one step a byte and two an object, so that they never count.
const STEPS_A_BYTE: u32 = 4;

/// Fields of one definition, rows and elements written out.
const MAX_FIELDS: usize = 65_536;
/// The first patch whose `skillid` has 64 bits.
const WIDE_SKILLS: Patch = Patch::major(74);

/// Something to be said about a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    pub(crate) kind: ProblemKind,
    pub(crate) error: bool,
    /// Index of the line.
    pub(crate) line: usize,
    pub(crate) message: String,
    pub(crate) help: Option<&'static str>,
}

/// What lines were compiled to.
pub(crate) struct Compiled {
    /// There is none when there are errors.
    pub(crate) plan: Option<Plan>,
    pub(crate) issues: Vec<Issue>,
    /// How many fields there are, as far as they were made.
    pub(crate) fields: usize,
}

/// Compiles lines whose depths are in order, as they stand at a patch. Of the arrays of a message with
/// `pairs` the elements stand in these.
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

/// Whether a plan may be another one at another patch.
pub(crate) fn depends_on_patch(lines: &[Line], dialect: Dialect, plan: &Plan) -> bool {
    let is_skill = |field: &Field| {
        matches!(field.kind, FieldKind::Scalar { scalar: Scalar::SkillId | Scalar::SkillId32, .. })
    };
    lines.iter().any(|line| line.range.is_some())
        // They are narrow before `WIDE_SKILLS`.
        || dialect == Dialect::Proto && plan.fields.iter().any(is_skill)
}

/// A line with those that belong to it.
struct Node<'l> {
    line: &'l Line,
    index: usize,
    children: Vec<Self>,
}

/// The lines of a depth from `place` on; those that do not exist at the patch are left out, with
/// all that belongs to them.
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

/// A field while its place is not known.
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
    /// The field of each name; of copies the last.
    names: HashMap<Box<str>, usize>,
    /// Earlier copies, and their common name.
    copies: Vec<(usize, Box<str>)>,
}

/// The parts of a scope in the order of the bytes.
enum Wire {
    Field(usize),
    Open(usize),
    Close,
    /// A metadata line, by its index, in the record whose fields it may name.
    Meta {
        kind: Meta,
        line: usize,
        record: usize,
    },
}

/// What a scope is made of.
enum Content<'a, 'l> {
    Fields(&'a [Node<'l>]),
    /// One value, and the fields of the object in it.
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
    /// Set when there are too many fields: said once, then nothing is added any more.
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

    /// Compiles a scope; gives its index.
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
        // Its links or the header, and its fixed part. Steps that take no bytes count only when
        // there are many of them, so that a made-up definition cannot have a tree grow from nothing.
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
            // These are known when all fields have their places.
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
            alike: None,
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
                        let message = format!("there is another field {name}");
                        let help = "only objects can be given in pieces; rename one of the two";
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
            self.too_large(field.line, format!("more than {MAX_FIELDS} fields"));
            return None;
        }
        if depth > MAX_DEPTH {
            self.too_large(field.line, format!("fields nested more than {MAX_DEPTH} deep"));
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
            // Metadata is no value; where it could stand the parser refused it.
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

    /// Writes the steps of a record in the order of its fields.
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

    /// Brings the fields into the order of the plan: those of a record next to each other.
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
                alike: run.as_ref().and_then(|run| steps.alike(run, scope.size)),
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
        // Words may stand behind a body, where a definition says so; the first body may then begin
        // before as many words as there are.
        let words = top.size.min(2 * top.words);
        Plan { fields, scopes, ops, fixed, bools, around, root, words, placement, pairs }
    }

    fn final_field(&self, id: usize, starts: &[Range<u32>], places: &[u32]) -> Field {
        let draft = &self.drafts[id];
        let nowhere = Spot { segment: 0, offset: 0 };
        let kind = match draft.body {
            Body::Scalar(scalar, spot) => FieldKind::Scalar { scalar, spot },
            Body::Text(place) => {
                FieldKind::Text { place: place.unwrap_or(TextPlace::Offset(nowhere)) }
            }
            // Both have their places, or there were errors and there is no plan.
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

/// The scope that each field stands in.
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

/// A field that is to be added.
struct Described<'a, 'l> {
    name: &'a str,
    kind: &'a Type,
    children: &'a [Node<'l>],
    line: usize,
    interleaved: bool,
}

/// Counts of fields and steps; a definition is bounded long before they grow so far.
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
