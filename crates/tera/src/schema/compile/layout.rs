//! Assigns positions in a scope and produces its steps in byte order.

use core::ops::Range;

use super::{Body, Compiler, Draft, Wire, index, range};
use crate::schema::dialect::Dialect;
use crate::schema::parse::Meta;
use crate::schema::plan::{Fixed, Op, Placement, Spot, TextPlace};
use crate::schema::problem::ProblemKind;

/// Maximum size of the fixed part of a scope in bytes.
const MAX_BYTES: usize = 65_531;

impl Compiler<'_> {
    /// Assigns every part of a scope its position and adds the steps in byte order.
    pub(super) fn layout(&mut self, wire: &[Wire], record: usize, single: bool) -> Layout {
        let start = self.ops.len();
        // The language has no lines for the words of an element that is a plain value.
        let placement = match self.placement {
            Placement::Explicit if single => Placement::Front,
            placement => placement,
        };
        let mut spots = Spots::new(placement);
        if placement == Placement::Front {
            for part in wire {
                if let Wire::Field(id) = part {
                    self.front(*id, &mut spots);
                }
            }
        }
        let mut groups = 0;
        for (at, part) in wire.iter().enumerate() {
            match part {
                Wire::Open(id) => {
                    let Draft { slot, ref body, .. } = self.drafts[*id];
                    let row = matches!(body, Body::Row(_));
                    self.ops.push(Op::Open { field: index(*id), slot, row });
                }
                Wire::Close => self.ops.push(Op::Close),
                Wire::Meta { kind, line, record: near } => {
                    self.explicit(*kind, *line, [*near, record], &mut spots);
                }
                Wire::Field(id) => {
                    if self.is_interleaved(part) && !(at > 0 && self.is_interleaved(&wire[at - 1]))
                    {
                        groups += 1;
                        let run = wire[at..].iter().take_while(|part| self.is_interleaved(part));
                        let arrays = index(run.count());
                        if groups > 1 {
                            let message = "interleaved arrays must be adjacent".to_owned();
                            let line = self.drafts[*id].line;
                            let kind = ProblemKind::InterleavedNotAdjacent;
                            let help = "move it next to the other one";
                            self.say(kind, true, line, message, Some(help));
                        }
                        if arrays > 1 {
                            self.ops.push(Op::Group { arrays, pairs: self.pairs });
                        }
                    }
                    self.field(*id, &mut spots);
                }
            }
            if spots.overflow {
                let line = match part {
                    Wire::Field(id) | Wire::Open(id) => self.drafts[*id].line,
                    Wire::Meta { line, .. } => *line,
                    Wire::Close => 0,
                };
                self.too_large(line, format!("the fixed part is larger than {MAX_BYTES} bytes"));
                break;
            }
        }
        let mut sizes = spots.sizes.iter().copied();
        let size = sizes.next().unwrap_or(0);
        for op in self.ops.get_mut(start..).unwrap_or_default() {
            if let Op::Segment { size } = op {
                *size = sizes.next().unwrap_or(0);
            }
        }
        Layout {
            size,
            segments: spots.segment() + 1,
            words: spots.words,
            wire: range(start, self.ops.len()),
        }
    }

    fn is_interleaved(&self, part: &Wire) -> bool {
        let Wire::Field(id) = part else { return false };
        matches!(self.drafts[*id].body, Body::Array { interleaved: true, .. })
    }

    /// Assigns the counts and offsets of a field the next positions.
    fn front(&mut self, id: usize, spots: &mut Spots) {
        match &mut self.drafts[id].body {
            Body::Text(place) => *place = Some(TextPlace::Offset(spots.word())),
            Body::Bytes { offset, count } => {
                *offset = Some(spots.word());
                *count = Some(spots.word());
            }
            Body::Array { offset, count, .. } => {
                *count = Some(spots.word());
                *offset = Some(spots.word());
            }
            _ => {}
        }
    }

    /// Handles a line for a count or offset. Its name is looked up in the enclosing object, then in
    /// the scope.
    fn explicit(&mut self, kind: Meta, line: usize, records: [usize; 2], spots: &mut Spots) {
        let toolbox = self.dialect == Dialect::Toolbox;
        if toolbox && kind == Meta::Count {
            return;
        }
        if spots.bodies {
            self.segment(spots);
        }
        let found = records.into_iter().find_map(|record| self.find(record, line));
        let pair = toolbox || kind == Meta::Ref;
        let slot = |draft: &mut Draft, kind: Meta, spot: Spot| -> bool {
            if let (Body::Text(place @ None), Meta::Offset) = (&mut draft.body, kind) {
                *place = Some(TextPlace::Offset(spot));
                return true;
            }
            let place = match (&mut draft.body, kind) {
                (Body::Bytes { offset, .. } | Body::Array { offset, .. }, Meta::Offset) => offset,
                (Body::Bytes { count, .. } | Body::Array { count, .. }, Meta::Count) => count,
                _ => return false,
            };
            let free = place.is_none();
            if free {
                *place = Some(spot);
            }
            free
        };
        if let Some(id) = found
            && pair
        {
            let draft = &mut self.drafts[id];
            let words: &[Meta] = match draft.body {
                Body::Text(None) => &[Meta::Offset],
                Body::Bytes { offset: None, .. } => &[Meta::Offset, Meta::Count],
                Body::Array { offset: None, .. } => &[Meta::Count, Meta::Offset],
                _ => &[],
            };
            if !words.is_empty() {
                for word in words {
                    slot(draft, *word, spots.word());
                }
                return;
            }
        }
        let spot = spots.word();
        let placed = !pair && found.is_some_and(|id| slot(&mut self.drafts[id], kind, spot));
        if !placed {
            // Only a single word has a known size when no field matches.
            let error = pair;
            let message = "no field belongs to this line".to_owned();
            let help = "its two bytes are read and ignored, and written as zero";
            let help = (!error).then_some(help);
            self.say(ProblemKind::OrphanMeta, error, line, message, help);
            self.ops.push(Op::Orphan { spot });
        }
    }

    /// The field that a metadata line names, among those not placed yet.
    fn find(&self, record: usize, line: usize) -> Option<usize> {
        let path = &self.lines.get(line)?.name;
        let mut record = record;
        let mut steps = path.split('.').peekable();
        while let Some(step) = steps.next() {
            let id = *self.records[record].names.get(step)?;
            match (&self.drafts[id].body, steps.peek()) {
                (_, None) => return Some(id),
                (&Body::Object(inner), Some(_)) => record = inner,
                _ => return None,
            }
        }
        None
    }

    /// Adds the step of a field that is neither an object nor a row.
    fn field(&mut self, id: usize, spots: &mut Spots) {
        if let Body::Scalar(scalar, _) = self.drafts[id].body {
            if spots.bodies && spots.placement != Placement::InPlace {
                self.segment(spots);
            }
            let place = spots.take(scalar.size());
            self.drafts[id].body = Body::Scalar(scalar, place);
        } else {
            if spots.placement == Placement::InPlace {
                self.front(id, spots);
            }
            let lenient = self.lenient && self.dialect == Dialect::Legacy;
            if let Body::Text(None) = self.drafts[id].body
                && lenient
            {
                // The first parser read a string without an offset in place; other types never
                // worked.
                self.segment(spots);
                self.drafts[id].body = Body::Text(Some(TextPlace::Here(spots.take(0))));
            }
            self.require_meta(id);
            spots.bodies = true;
        }
        self.step(id);
    }

    /// Reports a variable-length field whose words have no position.
    fn require_meta(&mut self, id: usize) {
        let Draft { line, ref name, ref body, .. } = self.drafts[id];
        let missing = match body {
            Body::Text(None) => "offset",
            Body::Bytes { offset: None, .. } | Body::Array { offset: None, .. } => "offset",
            Body::Bytes { count: None, .. } | Body::Array { count: None, .. } => "count",
            _ => return,
        };
        let line_name = if self.dialect == Dialect::Toolbox { "ref" } else { missing };
        let message = format!("{name} has no {line_name} line before it");
        let help = "a file with such lines needs them for every string, bytes and array field";
        self.say(ProblemKind::MissingMeta, true, line, message, Some(help));
    }

    fn segment(&mut self, spots: &mut Spots) {
        spots.next_segment();
        self.ops.push(Op::Segment { size: 0 });
    }

    /// Adds the step of a field that is neither an object nor a row, if its words have positions.
    /// Its body index is set later.
    pub(super) fn step(&mut self, id: usize) {
        let Draft { slot, ref body, .. } = self.drafts[id];
        let field = index(id);
        let op = match *body {
            Body::Scalar(scalar, Spot { segment, offset }) => {
                let from = index(self.fixed.len());
                self.fixed.push(Fixed { scalar, offset, field, slot });
                let reach = u32::from(offset) + index(scalar.size());
                Some(Op::Fixed { segment, reach, from, to: from + 1 })
            }
            Body::Text(place) => place.map(|place| Op::Text { place, field, slot, body: 0 }),
            Body::Bytes { offset, count } => offset.zip(count).map(|(offset, count)| Op::Bytes {
                offset,
                count,
                field,
                slot,
                body: 0,
            }),
            Body::Array { offset, count, scope, .. } => offset.zip(count).map(|(offset, count)| {
                Op::Array { count, offset, scope, field, slot, body: 0, plain: 0 }
            }),
            Body::Object(_) | Body::Row(_) => None,
        };
        self.ops.extend(op);
    }
}

/// The layout of a scope.
pub(super) struct Layout {
    pub(super) size: u32,
    pub(super) segments: u16,
    pub(super) words: u32,
    pub(super) wire: Range<u32>,
}

/// The positions already assigned in a scope.
struct Spots {
    placement: Placement,
    /// The sizes of its segments.
    sizes: Vec<u32>,
    words: u32,
    /// Whether the current segment is followed by a body.
    bodies: bool,
    overflow: bool,
}

impl Spots {
    fn new(placement: Placement) -> Self {
        Self { placement, sizes: vec![0], words: 0, bodies: false, overflow: false }
    }

    fn segment(&self) -> u16 {
        u16::try_from(self.sizes.len() - 1).unwrap_or(u16::MAX)
    }

    fn next_segment(&mut self) {
        self.overflow |= self.sizes.len() > usize::from(u16::MAX);
        self.sizes.push(0);
        self.bodies = false;
    }

    fn take(&mut self, bytes: usize) -> Spot {
        let segment = self.segment();
        let size = self.sizes.last().copied().unwrap_or(0);
        let after = size.saturating_add(index(bytes));
        self.overflow |= after as usize > MAX_BYTES;
        if let Some(size) = self.sizes.last_mut() {
            *size = after;
        }
        Spot { segment, offset: u16::try_from(size).unwrap_or(u16::MAX) }
    }

    fn word(&mut self) -> Spot {
        self.words += 1;
        self.take(2)
    }
}

#[cfg(test)]
mod tests {
    use crate::message::{Head, HeaderForm, Item, Value, View};
    use crate::schema::{Definition, Dialect, FileName, ParseOptions, Problem};
    use crate::types::Text;

    fn parse(text: &str, dialect: Dialect, lenient: bool) -> Result<Definition, Vec<Problem>> {
        let options = ParseOptions { dialect: Some(dialect), lenient, ..ParseOptions::default() };
        Definition::parse(&FileName::parse("S_A.1.def").unwrap(), text, &options)
    }

    fn kinds(outcome: Result<Definition, Vec<Problem>>) -> Vec<&'static str> {
        let problems = outcome.map(drop).unwrap_err();
        let errors = problems.iter().filter(|problem| problem.is_error());
        errors.map(|problem| problem.kind.name()).collect()
    }

    /// The offset line is misspelt, which the first parser did not notice.
    #[test]
    fn a_string_without_an_offset_is_read_in_place_leniently() {
        let text = "offset nmae\nint32 id\nstring name\nbyte level\n";
        assert_eq!(kinds(parse(text, Dialect::Legacy, false)), ["missing_meta"]);
        let definition = parse(text, Dialect::Legacy, true).unwrap();
        let plan = definition.plan();
        let name = Text::from("ab");
        let value =
            Value::Record(vec![Value::Signed(7), Value::Text(name.clone()), Value::Unsigned(3)]);
        let mut bytes = Vec::new();
        plan.encode(Head::plain(1), &value, &mut bytes).unwrap();
        assert_eq!(bytes, [17, 0, 1, 0, 0, 0, 7, 0, 0, 0, b'a', 0, b'b', 0, 0, 0, 3]);
        let message = plan.read(&bytes, HeaderForm::Plain).unwrap();
        assert_eq!((message.fields(), message.notes().is_empty()), (&value, true));
        let view = View::new(plan, &bytes, HeaderForm::Plain).unwrap();
        let items = ["name", "level"].map(|field| view.fields().get(field).unwrap().unwrap());
        let [Item::Text(viewed), Item::Scalar(level)] = items else { panic!("{items:?}") };
        assert_eq!(level.unsigned(), Some(3));
        assert_eq!(viewed, name.view());
        for end in 0..bytes.len() {
            let mut piece = bytes[..end].to_vec();
            if let Some(length) = piece.first_mut() {
                *length = u8::try_from(end).unwrap();
            }
            assert!(plan.check(&piece, HeaderForm::Plain).is_err(), "{end} bytes");
        }
    }

    /// No parser could ever read these.
    #[test]
    fn other_fields_and_dialects_need_their_words_even_leniently() {
        let array = "offset name\nstring name\narray list\n- byte x\n";
        assert_eq!(kinds(parse(array, Dialect::Legacy, true)), ["missing_meta"]);
        let half = "count list\narray list\n- byte x\n";
        assert_eq!(kinds(parse(half, Dialect::Legacy, true)), ["missing_meta"]);
        let text = "ref other\nstring other\nstring name\n";
        assert_eq!(kinds(parse(text, Dialect::Toolbox, true)), ["missing_meta"]);
    }
}
