//! The one decoder: runs a plan over the bytes of a message and reports the results to a [`Sink`].

mod flat;
mod list;
mod packed;
mod path;
mod sink;

use core::ops::Range;

use worldwire_core::Result;

use super::HeaderForm;
use super::bounds::{self, Budget};
use super::fault::Fault;
use super::note::{NoteKind, Notes};
use crate::schema::plan::{FieldKind, Fixed, Op, Plan, Scope, Spot, TextPlace};
use list::{Extent, List};
pub(crate) use packed::in_order;
pub(crate) use sink::{Group, Leaf, Silent, Sink};

/// The results of reading a message, apart from its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    pub(crate) notes: Notes,
    /// The end of the last body.
    pub(crate) end: usize,
}

/// Reads the fields of a message whose header has been read.
#[inline]
pub(crate) fn fields<'d, 'n, S: Sink<'d, 'n>>(
    plan: &'n Plan,
    data: &'d [u8],
    form: HeaderForm,
    sink: &mut S,
) -> Result<Rest> {
    if S::SILENT && is_plain(plan, data, form) {
        return Ok(Rest { notes: Notes::default(), end: data.len() });
    }
    let mut run = Run::new(plan, data, floor(plan, form));
    run.furthest = form.bytes();
    run.scope(sink, plan.scope(plan.root), form.bytes())?;
    if run.furthest < data.len() {
        run.notes.add(NoteKind::TrailingBytes, run.furthest);
    }
    Ok(Rest { notes: run.notes, end: run.furthest })
}

/// Whether a message consists of fixed-size fields only, without deviations.
#[inline]
fn is_plain(plan: &Plan, data: &[u8], form: HeaderForm) -> bool {
    let root = plan.scope(plan.root);
    let fields = data.get(form.bytes()..).unwrap_or_default();
    // A stride also means that the fields contain no offsets and count as no more work than their
    // bytes.
    root.stride != 0 && fields.len() == root.size as usize && plan.bools_hold(root, fields)
}

/// The first byte that an offset may point to.
#[inline]
pub(crate) fn floor(plan: &Plan, form: HeaderForm) -> usize {
    form.bytes() + plan.words as usize
}

/// Where a later segment of a scope begins: after all bodies before it, which must be read first.
#[cold]
pub(crate) fn segment(
    plan: &Plan,
    data: &[u8],
    floor: usize,
    scope: u32,
    start: usize,
    segment: u16,
) -> Result<usize> {
    let mut run = Run::new(plan, data, floor);
    let scope = plan.scope(scope);
    let cursor = start + scope.size as usize;
    let base = Base { scope, start, segments: 0 };
    let outcome = run.steps(&mut Silent, &scope.loose, base, cursor);
    let found = run.segments.get(usize::from(segment).saturating_sub(1)).copied();
    match (found, outcome) {
        (Some(at), _) if at <= data.len() => Ok(at),
        (_, Err(error)) => Err(error),
        (_, Ok(_)) => Err(Fault::Truncated.malformed(data.len(), "its end")),
    }
}

/// Validates a list and everything it points to. `link` is where the offset of its first element is
/// stored.
#[cold]
pub(crate) fn check_list(
    plan: &Plan,
    data: &[u8],
    floor: usize,
    (count, first, link): (usize, usize, usize),
    scope: u32,
) -> Result<()> {
    let mut run = Run::new(plan, data, floor);
    run.quiet = true;
    let list = List { count, first, link, number: None };
    // Whether the list follows the previous body is not checked here.
    let cursor = if first < floor { data.len() } else { first };
    run.array(&mut Silent, Leaf { plan, field: 0, body: 0 }, scope, list, cursor).map(drop)
}

struct Run<'d, 'n> {
    plan: &'n Plan,
    data: &'d [u8],
    /// The first byte that an offset may point to.
    floor: usize,
    budget: Budget,
    furthest: usize,
    /// Where the later segments of all open scopes begin.
    segments: Vec<usize>,
    /// The elements of open groups.
    extents: Vec<Extent>,
    notes: Notes,
    /// Set while fields are read a second time, in field order: everything has already been noted.
    quiet: bool,
}

/// The position of a scope.
#[derive(Clone, Copy)]
struct Base<'n> {
    scope: &'n Scope,
    start: usize,
    /// Number of later segments that were open before it.
    segments: usize,
}

/// Progress through the steps of a scope.
#[derive(Clone, Copy)]
struct Walk {
    /// The current step.
    index: usize,
    /// The end of the last body.
    cursor: usize,
    /// The end of what was read last, for the enclosing objects.
    last: usize,
    /// For the current group: the number of lists left, their total number, where its extents
    /// begin, and whether they are paired.
    group: (u32, u32, usize, bool),
}

impl<'d, 'n> Run<'d, 'n> {
    #[inline]
    fn new(plan: &'n Plan, data: &'d [u8], floor: usize) -> Self {
        Self {
            plan,
            data,
            floor,
            budget: Budget::of(data.len()),
            furthest: 0,
            segments: Vec::new(),
            extents: Vec::new(),
            notes: Notes::default(),
            quiet: false,
        }
    }

    /// Checks that the first segment of a scope is complete, notes its deviations, and returns its
    /// end.
    #[inline(always)]
    fn enter(&mut self, scope: &'n Scope, start: usize) -> Result<usize> {
        let end = start + scope.size as usize;
        if end > self.data.len() {
            return Err(path::truncated(self.plan, self.data, scope, start));
        }
        self.budget.spend(scope.cost as usize, start)?;
        self.furthest = self.furthest.max(end);
        if !scope.bools.is_empty() {
            self.bools(scope, 0, start);
        }
        Ok(end)
    }

    /// Reads a scope; returns the end of its last body.
    #[inline]
    fn scope<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        scope: &'n Scope,
        start: usize,
    ) -> Result<usize> {
        if !S::FIXED && scope.loose.is_empty() {
            return self.enter(scope, start);
        }
        if let Some(steps) = self.flat_steps::<S>(scope) {
            return self.flat(sink, scope, steps, start);
        }
        let cursor = self.enter(scope, start)?;
        let base = Base { start, segments: self.segments.len(), scope };
        let end = match &scope.emit {
            // A second pass would find nothing new, and nested scopes would double the work at each
            // level.
            _ if !S::FIXED => self.steps(sink, &scope.loose, base, cursor),
            None => self.steps(sink, &scope.wire, base, cursor),
            Some(emit) => {
                // The second pass has the same budget as the first; otherwise, nothing would stop
                // it where the first pass was stopped.
                let budget = self.budget;
                let end = self.steps(&mut Silent, &scope.loose, base, cursor);
                let quiet = core::mem::replace(&mut self.quiet, true);
                self.budget = budget;
                // Fields before an error are still worth showing.
                let shown = self.steps(sink, emit, base, cursor);
                self.quiet = quiet;
                end.and_then(|end| shown.map(|_| end))
            }
        };
        self.segments.truncate(base.segments);
        end
    }

    /// Notes booleans that are neither 0 nor 1 in a complete segment.
    #[inline]
    fn bools(&mut self, scope: &Scope, segment: u16, start: usize) {
        for spot in self.plan.bools(scope) {
            let at = start + usize::from(spot.offset);
            if spot.segment == segment && self.data.get(at).is_some_and(|value| *value > 1) {
                self.note(NoteKind::BoolNot0Or1, at);
            }
        }
    }

    fn steps<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        steps: &Range<u32>,
        base: Base<'n>,
        cursor: usize,
    ) -> Result<usize> {
        let ops = self.plan.steps(steps);
        let walk = Walk { index: 0, cursor, last: cursor, group: (0, 0, 0, false) };
        let (walk, outcome) = self.walk(sink, ops, base, walk);
        match outcome {
            Ok(()) => Ok(walk.cursor),
            Err(error) => Err(path::inside(self.plan, error, ops, walk.index)),
        }
    }

    /// Runs the steps up to the end of the current object or row, or to the last.
    fn walk<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        ops: &'n [Op],
        base: Base<'n>,
        walk: Walk,
    ) -> (Walk, Result<()>) {
        let plan = self.plan;
        let Walk { mut index, mut cursor, mut last, mut group } = walk;
        let outcome = loop {
            let Some(op) = ops.get(index) else { break Ok(()) };
            let step = match *op {
                Op::Fixed { segment, reach, from, to } => {
                    let start = self.at(Spot { segment, offset: 0 }, base);
                    let run = plan.run(from, to);
                    match self.data.get(start..start + reach as usize) {
                        Some(bytes) => {
                            sink.fixed(plan, run, bytes, start);
                            let end = |fixed: &Fixed| {
                                start + usize::from(fixed.offset) + fixed.scalar.size()
                            };
                            last = run.last().map_or(last, end);
                            Ok(())
                        }
                        None => Err(Fault::Truncated.malformed(start, "its end")),
                    }
                }
                Op::Text { .. } | Op::Bytes { .. } | Op::Array { .. } => {
                    let (left, lists, from, pairs) = group;
                    let number = (left > 0).then(|| lists - left);
                    self.one_body(sink, op, base, number, cursor).map(|end| {
                        if number.is_none() {
                            cursor = end;
                        } else if left == 1 {
                            group = (0, 0, 0, false);
                            self.close_group(from, pairs, &mut cursor);
                        } else {
                            group.0 -= 1;
                        }
                        last = end;
                    })
                }
                // The sink does not care where objects and rows begin and end.
                Op::Open { .. } | Op::Close if !S::FIXED => Ok(()),
                Op::Open { field, row, .. } => {
                    let walk = Walk { index, cursor, last, group };
                    let (walk, outcome) = self.open(sink, ops, base, walk, (field, row));
                    Walk { index, cursor, last, group } = walk;
                    outcome
                }
                Op::Close => break Ok(()),
                Op::Segment { size } => self.segment(sink, size, base, &mut cursor),
                Op::Group { arrays, pairs } => {
                    group = (arrays, arrays, self.extents.len(), pairs);
                    Ok(())
                }
                Op::Orphan { spot } => self.orphan(self.at(spot, base)),
            };
            if let Err(error) = step {
                break Err(error);
            }
            index += 1;
        };
        (Walk { index, cursor, last, group }, outcome)
    }

    /// Runs the steps of an object or row; stops at the step that closes it.
    #[inline(never)]
    fn open<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        ops: &'n [Op],
        base: Base<'n>,
        mut walk: Walk,
        (field, row): (u32, bool),
    ) -> (Walk, Result<()>) {
        let field = self.plan.field(field);
        walk.index += 1;
        let start = match ops.get(walk.index) {
            // The field may lie in a segment that was not reached.
            Some(&Op::Fixed { segment, from, to, .. }) => {
                let first = self.plan.run(from, to).first().map_or(0, |fixed| fixed.offset);
                self.at(Spot { segment, offset: first }, base).min(self.data.len())
            }
            _ => walk.cursor,
        };
        walk.last = start;
        let fields = match field.kind() {
            FieldKind::Object(fields) => fields.len(),
            _ => 0,
        };
        let fill = |sink: &mut S| {
            let (walk, outcome) = self.walk(sink, ops, base, walk);
            ((walk, outcome), walk.last)
        };
        if row {
            sink.group(Group::Row(field), start, fill)
        } else {
            sink.group(Group::Record(field.name(), fields), start, fill)
        }
    }

    /// Begins a later segment.
    fn segment<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        size: u32,
        base: Base<'n>,
        cursor: &mut usize,
    ) -> Result<()> {
        let start = *cursor;
        self.segments.push(start);
        self.budget.spend(size as usize, *cursor)?;
        *cursor += size as usize;
        if *cursor > self.data.len() {
            return Err(Fault::Truncated.malformed(self.data.len(), "its end"));
        }
        self.furthest = self.furthest.max(*cursor);
        let number = self.segments.len() - base.segments;
        sink.segment(base.scope, number, start);
        self.bools(base.scope, u16::try_from(number).unwrap_or(u16::MAX), start);
        Ok(())
    }

    /// Checks a count or offset that belongs to no field.
    fn orphan(&mut self, at: usize) -> Result<()> {
        if !self.quiet && self.word(at)? != 0 {
            self.notes.add(NoteKind::OrphanMeta, at);
        }
        Ok(())
    }

    /// Reads a text, byte string or list whatever its offset is, noting deviations; returns its end.
    /// `number` is its index if it is part of a group.
    #[inline(always)]
    fn one_body<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        op: &Op,
        base: Base<'n>,
        number: Option<u32>,
        cursor: usize,
    ) -> Result<usize> {
        let plan = self.plan;
        match *op {
            Op::Text { place: text, field, body, .. } => {
                let at = match text {
                    TextPlace::Offset(spot) => self.place(spot, base)?,
                    TextPlace::Here(spot) => (self.at(spot, base), self.at(spot, base)),
                };
                self.text(sink, Leaf { plan, field, body }, at, cursor)
            }
            Op::Bytes { offset, count, field, body, .. } => {
                let (count, offset) = (self.place(count, base)?, self.place(offset, base)?);
                self.bytes(sink, Leaf { plan, field, body }, count, offset, cursor)
            }
            Op::Array { count, offset, scope, field, body, .. } => {
                let ((count, _), (first, link)) =
                    (self.place(count, base)?, self.place(offset, base)?);
                let list = List { count, first, link, number };
                self.array(sink, Leaf { plan, field, body }, scope, list, cursor)
            }
            _ => Ok(cursor),
        }
    }

    /// Reads a text at offset `at`, which is stored at `place`; returns its end.
    #[inline]
    fn text<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        leaf: Leaf<'n>,
        (at, place): (usize, usize),
        cursor: usize,
    ) -> Result<usize> {
        bounds::check_offset(self.data, self.floor, at, place)?;
        let text = bounds::text(self.data, at)?;
        let end = self.body(at, at + text.len() + 2, place, cursor)?;
        sink.text(leaf, text, at);
        Ok(end)
    }

    /// Reads a byte string, given its count and offset and where those are stored; returns its end.
    fn bytes<S: Sink<'d, 'n>>(
        &mut self,
        sink: &mut S,
        leaf: Leaf<'n>,
        count: (usize, usize),
        (at, place): (usize, usize),
        cursor: usize,
    ) -> Result<usize> {
        if count.0 == 0 {
            if at != cursor {
                self.note(NoteKind::OffsetMismatch, place);
            }
            sink.bytes(leaf, &[], cursor);
            return Ok(cursor);
        }
        let bytes = bounds::bytes(self.data, self.floor, count, (at, place))?;
        let end = self.body(at, at + bytes.len(), place, cursor)?;
        sink.bytes(leaf, bytes, at);
        Ok(end)
    }

    /// Accounts for a body: counts the work, compares its position with the cursor, and returns its
    /// end.
    #[inline]
    fn body(&mut self, at: usize, end: usize, place: usize, cursor: usize) -> Result<usize> {
        self.budget.spend(end - at, at)?;
        if at != cursor {
            self.note(NoteKind::OffsetMismatch, place);
        }
        self.furthest = self.furthest.max(end);
        Ok(end)
    }

    #[inline]
    fn note(&mut self, kind: NoteKind, at: usize) {
        if !self.quiet {
            self.notes.add(kind, at);
        }
    }

    /// The offset of a spot in the current scope.
    #[inline]
    fn at(&self, spot: Spot, base: Base<'n>) -> usize {
        let start = match spot.segment.checked_sub(1) {
            None => base.start,
            // A segment that was not reached counts as past the end.
            Some(further) => {
                let found = self.segments.get(base.segments + usize::from(further));
                found.copied().unwrap_or(self.data.len())
            }
        };
        start + usize::from(spot.offset)
    }

    /// The word at a spot in the current scope, and its offset.
    fn place(&self, spot: Spot, base: Base<'n>) -> Result<(usize, usize)> {
        let at = self.at(spot, base);
        Ok((self.word(at)?, at))
    }

    #[inline]
    fn word(&self, at: usize) -> Result<usize> {
        bounds::word(self.data, at)
    }
}

#[cfg(test)]
mod tests {
    use crate::message::{Head, HeaderForm, Value};
    use crate::schema::Definition;

    /// Objects in two parts are read twice, with their lists, but nesting must not multiply that.
    #[test]
    fn nested_split_objects_take_linear_work() {
        let (mut text, depth) = (String::new(), 30);
        for level in 0..depth {
            let dashes = "-".repeat(level);
            text.push_str(&format!("{dashes}object o\n{dashes}-byte a\n{dashes}object o\n"));
            text.push_str(&format!("{dashes}-byte b\n{dashes}array l\n"));
        }
        text.push_str(&format!("{}byte x\n", "-".repeat(depth)));
        let definition = Definition::of_text(&text);
        let plan = definition.plan();
        let mut value = Value::Record(vec![Value::Unsigned(9)]);
        for _ in 0..depth {
            let pieces = Value::Record(vec![Value::Unsigned(1), Value::Unsigned(2)]);
            value = Value::Record(vec![pieces, Value::List(vec![value])]);
        }
        let mut bytes = Vec::new();
        plan.encode(Head::plain(1), &value, &mut bytes).unwrap();
        assert_eq!(plan.read(&bytes, HeaderForm::Plain).unwrap().fields(), &value);
        assert!(plan.check(&bytes, HeaderForm::Plain).unwrap().is_empty());
    }

    /// The second pass, for split objects, must also continue after a group.
    #[test]
    fn a_field_can_follow_a_group_that_is_read_twice() {
        let text = "object o\narray l\n- array[interleaved] a\n- - byte x\n\
                    - array[interleaved] b\n- byte z\nobject o\n";
        let definition = Definition::of_text(text);
        let (plan, none) = (definition.plan(), || Value::Record(Vec::new()));
        let list = Value::List(vec![Value::Record(vec![Value::Unsigned(7)])]);
        let element = Value::Record(vec![list, Value::List(vec![none()]), Value::Unsigned(9)]);
        let value = Value::Record(vec![none(), Value::List(vec![element])]);
        let mut bytes = Vec::new();
        plan.encode(Head::plain(1), &value, &mut bytes).unwrap();
        assert_eq!(plan.read(&bytes, HeaderForm::Plain).unwrap().fields(), &value);
    }

    /// The offset of the second text comes after the first text.
    #[test]
    fn a_body_can_precede_the_words_of_another() {
        let text = "offset a\nstring a\noffset b\nstring b\n";
        let definition = Definition::of_text(text);
        let mut bytes = Vec::new();
        definition.plan().encode(Head::plain(1), &Value::Absent, &mut bytes).unwrap();
        assert_eq!(bytes, [12, 0, 1, 0, 6, 0, 0, 0, 10, 0, 0, 0]);
        assert!(definition.plan().check(&bytes, HeaderForm::Plain).unwrap().is_empty());
    }
}
