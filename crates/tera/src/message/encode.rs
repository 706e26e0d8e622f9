//! The encoder: the exact inverse of the decoder, in canonical form. Bodies are in field order,
//! without gaps.

use worldwire_core::{Error, Result};

use super::fault::Fault;
use super::{Head, Leniency, pairs};
use crate::schema::plan::{Fixed, LINKS, Op, Plan, Scope, Spot, TextPlace};

/// Maximum length of a message in bytes.
pub(crate) const MAX_BYTES: usize = 65_535;

/// A source of values for the fields of a scope, or of an object in it.
pub(super) trait Source<'s>: Copy {
    /// Whether it provides fixed-size fields one by one, and objects. Otherwise it provides whole
    /// segments as bytes.
    const FIXED: bool;
    /// The elements of a list.
    type List: Copy;

    /// Appends a segment after a prefix of arbitrary bytes; `sizes` are those of the prefix and the
    /// segment. The words of its texts, bytes and lists are arbitrary too; its booleans are 0 or 1.
    fn segment(
        self,
        plan: &Plan,
        scope: &Scope,
        number: usize,
        sizes: (usize, usize),
        out: &mut Vec<u8>,
    );
    /// Writes fixed-size fields to the start of their zeroed segment. An error comes with the field
    /// that caused it.
    fn fixed<'r>(
        self,
        plan: &Plan,
        run: &'r [Fixed],
        leniency: Leniency,
        out: &mut [u8],
    ) -> Result<(), (&'r Fixed, Error)>;
    /// Text that can be written.
    fn text(self, plan: &Plan, of: FieldRef, leniency: Leniency) -> Result<&'s [u8]>;
    /// A byte string.
    fn bytes(self, plan: &Plan, of: FieldRef) -> Result<&'s [u8]>;
    /// The elements of a list, and their number.
    fn list(self, plan: &Plan, of: FieldRef) -> Result<(Self::List, usize)>;
    /// All elements of a list, if they are contiguous, contain no offsets, and each has room for
    /// its links in front.
    #[inline]
    fn packed(_: Self::List, _: usize, _: &Scope) -> Option<&'s [u8]> {
        None
    }
    /// An element of a list.
    fn element(list: Self::List, index: usize, scope: &Scope) -> Result<Self>;
    /// The fields of an object or row.
    fn open(self, plan: &Plan, of: FieldRef, row: bool) -> Result<Self>;
}

/// Identifies a field: its index, its slot in the enclosing record, and its index among the bodies
/// of the scope.
#[derive(Clone, Copy)]
pub(super) struct FieldRef {
    pub(super) field: u32,
    pub(super) slot: u32,
    pub(super) body: u32,
}

/// Appends a message to `out`, which is left unchanged on an error.
pub(super) fn message<'s, S: Source<'s>>(
    plan: &Plan,
    head: Head,
    fields: S,
    leniency: Leniency,
    out: &mut Vec<u8>,
) -> Result<()> {
    let origin = out.len();
    let outcome = write(plan, head, fields, leniency, out);
    if outcome.is_err() {
        out.truncate(origin);
    }
    outcome
}

fn write<'s, S: Source<'s>>(
    plan: &Plan,
    head: Head,
    fields: S,
    leniency: Leniency,
    out: &mut Vec<u8>,
) -> Result<()> {
    let origin = out.len();
    let mut writer = Writer { plan, out, origin, leniency, segments: Vec::new() };
    writer.scope(plan.scope(plan.root), fields, head.form().bytes())?;
    writer.position()?;
    head.put(writer.out.get_mut(origin..).unwrap_or_default());
    Ok(())
}

struct Writer<'p, 'o> {
    plan: &'p Plan,
    out: &'o mut Vec<u8>,
    origin: usize,
    leniency: Leniency,
    /// Offsets in `out` of the later segments of all open scopes.
    segments: Vec<usize>,
}

/// The position of a scope in `out`.
#[derive(Clone, Copy)]
struct Base<'p> {
    scope: &'p Scope,
    start: usize,
    segments: usize,
}

/// A list being written as part of a group.
struct Lane<L> {
    scope: u32,
    of: FieldRef,
    list: L,
    count: usize,
    /// Where to write the offset of the next element.
    link: usize,
}

impl<'p> Writer<'p, '_> {
    /// Writes a scope after `front` bytes, which are filled in later.
    #[inline(always)]
    fn scope<'s, S: Source<'s>>(
        &mut self,
        scope: &'p Scope,
        record: S,
        front: usize,
    ) -> Result<()> {
        let start = self.out.len() + front;
        let base = Base { scope, start, segments: self.segments.len() };
        record.segment(self.plan, scope, 0, (front, scope.size as usize), self.out);
        if !S::FIXED && scope.loose_flat {
            return self.flat(self.plan.steps(&scope.loose), start, record);
        }
        let steps = if S::FIXED { &scope.wire } else { &scope.loose };
        self.walk(self.plan.steps(steps), 0, record, base, false)?;
        self.segments.truncate(base.segments);
        Ok(())
    }

    /// Writes the bodies of a scope whose words are all in its first segment, which is already
    /// written.
    #[inline(always)]
    fn flat<'s, S: Source<'s>>(&mut self, ops: &[Op], start: usize, record: S) -> Result<()> {
        let at = |spot: Spot| start + usize::from(spot.offset);
        for op in ops {
            let (of, outcome) = match *op {
                Op::Text { place: TextPlace::Offset(spot), field, slot, body } => {
                    let of = FieldRef { field, slot, body };
                    (of, self.text(Some(at(spot)), record, of))
                }
                Op::Bytes { offset, count, field, slot, body } => {
                    let of = FieldRef { field, slot, body };
                    (of, self.bytes((at(count), at(offset)), record, of))
                }
                Op::Array { count, offset, scope, field, slot, body, .. } => {
                    let of = FieldRef { field, slot, body };
                    (of, self.array((at(count), at(offset)), record, of, scope))
                }
                // A flat scope has no other steps.
                _ => continue,
            };
            if let Err(error) = outcome {
                return Err(named(self.plan, of, false, error));
            }
        }
        Ok(())
    }

    /// Runs the steps from `index` up to the end of the current object or row, or to the last;
    /// returns the index where it stopped.
    fn walk<'s, S: Source<'s>>(
        &mut self,
        ops: &'p [Op],
        mut index: usize,
        record: S,
        base: Base<'p>,
        row: bool,
    ) -> Result<usize> {
        let plan = self.plan;
        while let Some(op) = ops.get(index) {
            let (of, outcome) = match *op {
                Op::Fixed { segment, reach, from, to } => {
                    let start = self.at(Spot { segment, offset: 0 }, base);
                    let out = self.out.get_mut(start..start + reach as usize).unwrap_or_default();
                    let run = plan.run(from, to);
                    if let Err((fixed, error)) = record.fixed(plan, run, self.leniency, out) {
                        let Fixed { field, slot, .. } = *fixed;
                        return Err(named(plan, FieldRef { field, slot, body: 0 }, row, error));
                    }
                    index += 1;
                    continue;
                }
                Op::Text { place, field, slot, body } => {
                    let of = FieldRef { field, slot, body };
                    let place = match place {
                        TextPlace::Offset(spot) => Some(self.at(spot, base)),
                        TextPlace::Here(_) => None,
                    };
                    (of, self.text(place, record, of))
                }
                Op::Bytes { offset, count, field, slot, body } => {
                    let of = FieldRef { field, slot, body };
                    let places = (self.at(count, base), self.at(offset, base));
                    (of, self.bytes(places, record, of))
                }
                Op::Array { count, offset, scope, field, slot, body, .. } => {
                    let of = FieldRef { field, slot, body };
                    let places = (self.at(count, base), self.at(offset, base));
                    (of, self.array(places, record, of, scope))
                }
                Op::Close if S::FIXED => return Ok(index),
                Op::Open { field, slot, row } if S::FIXED => {
                    let of = FieldRef { field, slot, body: 0 };
                    let inner = record.open(plan, of, row);
                    let outcome =
                        inner.and_then(|inner| self.walk(ops, index + 1, inner, base, row));
                    (of, outcome.map(|close| index = close))
                }
                Op::Segment { size } => {
                    self.segments.push(self.out.len());
                    let number = self.segments.len() - base.segments;
                    record.segment(plan, base.scope, number, (0, size as usize), self.out);
                    index += 1;
                    continue;
                }
                Op::Group { arrays, pairs } => {
                    let lists = (index + 1, arrays as usize);
                    self.group(ops, lists, pairs, record, base)?;
                    index += 1 + arrays as usize;
                    continue;
                }
                // Words without a field.
                Op::Orphan { spot } => {
                    self.patch(self.at(spot, base), 0);
                    index += 1;
                    continue;
                }
                Op::Open { .. } | Op::Close => {
                    index += 1;
                    continue;
                }
            };
            if let Err(error) = outcome {
                return Err(named(plan, of, row, error));
            }
            index += 1;
        }
        Ok(index)
    }

    /// Writes a list; its count and the offset of its first element go to `places`.
    fn array<'s, S: Source<'s>>(
        &mut self,
        places: (usize, usize),
        record: S,
        of: FieldRef,
        scope: u32,
    ) -> Result<()> {
        let (list, count) = record.list(self.plan, of)?;
        let mut lane = self.lane(places, scope, of, list, count)?;
        if count == 0 || self.packed::<S>(&lane) {
            return Ok(());
        }
        for index in 0..count {
            self.element::<S>(&mut lane, index)?;
        }
        Ok(())
    }

    /// Writes all elements of a list at once, if the source has them contiguous and the message
    /// stays within its maximum length.
    #[inline]
    fn packed<'s, S: Source<'s>>(&mut self, lane: &Lane<S::List>) -> bool {
        let scope = self.plan.scope(lane.scope);
        let Some(elements) = S::packed(lane.list, lane.count, scope) else { return false };
        let start = self.out.len();
        if start - self.origin + elements.len() > MAX_BYTES {
            return false;
        }
        let Ok(here) = self.position() else { return false };
        self.patch(lane.link, here);
        self.out.extend_from_slice(elements);
        // The element's own offset, and the next element's.
        let mut links = u32::from(here) | (u32::from(here) + scope.stride) << 16;
        let mut rest = self.out.get_mut(start..).unwrap_or_default();
        for index in 1..=lane.count {
            if let Some(room) = rest.first_chunk_mut::<LINKS>() {
                let last = index == lane.count;
                *room = (if last { links & 0xffff } else { links }).to_le_bytes();
            }
            links = links.wrapping_add(scope.stride << 16 | scope.stride);
            rest = rest.get_mut(scope.stride as usize..).unwrap_or_default();
        }
        true
    }

    /// Writes lists whose elements alternate or are paired.
    #[inline(never)]
    fn group<'s, S: Source<'s>>(
        &mut self,
        ops: &[Op],
        (from, lists): (usize, usize),
        pairs: bool,
        record: S,
        base: Base<'p>,
    ) -> Result<()> {
        let plan = self.plan;
        let mut lanes = Vec::new();
        for op in ops.get(from..from + lists).unwrap_or_default() {
            if let Op::Array { count, offset, scope, field, slot, body, .. } = *op {
                let of = FieldRef { field, slot, body };
                let places = (self.at(count, base), self.at(offset, base));
                let lane = record
                    .list(plan, of)
                    .and_then(|(list, count)| self.lane(places, scope, of, list, count));
                lanes.push(lane.map_err(|error| named(plan, of, false, error))?);
            }
        }
        if pairs {
            return self.pairs::<S>(lanes);
        }
        let rounds = lanes.iter().map(|lane| lane.count).max().unwrap_or(0);
        for round in 0..rounds {
            for lane in lanes.iter_mut().filter(|lane| round < lane.count) {
                let of = lane.of;
                self.element::<S>(lane, round).map_err(|error| named(plan, of, false, error))?;
            }
        }
        Ok(())
    }

    /// Writes lists whose elements are paired.
    fn pairs<'s, S: Source<'s>>(&mut self, mut lanes: Vec<Lane<S::List>>) -> Result<()> {
        let plan = self.plan;
        let numbers = lanes.iter().map(|lane| {
            let numbers = (0..lane.count).map(|index| {
                let number = self.number::<S>(lane, index);
                number.map_err(|error| error.inside_item(index))
            });
            numbers
                .collect::<Result<Vec<u32>>>()
                .map_err(|error| named(plan, lane.of, false, error))
        });
        let numbers = numbers.collect::<Result<Vec<_>>>()?;
        let [firsts, seconds] = numbers.as_slice() else { return Ok(()) };
        for (list, index) in pairs::order(firsts, seconds) {
            let Some(lane) = lanes.get_mut(list) else { continue };
            let of = lane.of;
            self.element::<S>(lane, index).map_err(|error| named(plan, of, false, error))?;
        }
        Ok(())
    }

    /// The number that an element begins with, as encoded.
    fn number<'s, S: Source<'s>>(&mut self, lane: &Lane<S::List>, index: usize) -> Result<u32> {
        let (scope, start) = (self.plan.scope(lane.scope), self.out.len());
        self.scope(scope, S::element(lane.list, index, scope)?, 0)?;
        let number = self.out.get(start..).and_then(|fields| fields.first_chunk());
        let number = number.map_or(0, |number| u32::from_le_bytes(*number));
        self.out.truncate(start);
        Ok(number)
    }

    /// Begins a list: writes its count, and 0 as the offset of its first element.
    #[inline]
    fn lane<L>(
        &mut self,
        (count_at, link): (usize, usize),
        scope: u32,
        of: FieldRef,
        list: L,
        count: usize,
    ) -> Result<Lane<L>> {
        let word = u16::try_from(count).map_err(|_| too_long(count, "elements"))?;
        self.patch(count_at, word);
        self.patch(link, 0);
        Ok(Lane { scope, of, list, count, link })
    }

    #[inline(always)]
    fn element<'s, S: Source<'s>>(&mut self, lane: &mut Lane<S::List>, index: usize) -> Result<()> {
        let here = self.position()?;
        self.patch(lane.link, here);
        let start = self.out.len();
        lane.link = start + 2;
        let scope = self.plan.scope(lane.scope);
        let record = S::element(lane.list, index, scope);
        match record.and_then(|record| self.scope(scope, record, LINKS)) {
            Ok(()) => {}
            Err(error) => return Err(error.inside_item(index)),
        }
        // Its own offset; the next element's offset is not known yet.
        if let Some(room) = self.out.get_mut(start..).and_then(|rest| rest.first_chunk_mut()) {
            *room = u32::from(here).to_le_bytes();
        }
        Ok(())
    }

    #[inline(always)]
    fn text<'s, S: Source<'s>>(
        &mut self,
        place: Option<usize>,
        record: S,
        of: FieldRef,
    ) -> Result<()> {
        let position = self.position()?;
        if let Some(place) = place {
            self.patch(place, position);
        }
        let text = record.text(self.plan, of, self.leniency)?;
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(&[0, 0]);
        Ok(())
    }

    #[inline]
    fn bytes<'s, S: Source<'s>>(
        &mut self,
        (count, offset): (usize, usize),
        record: S,
        of: FieldRef,
    ) -> Result<()> {
        let position = self.position()?;
        self.patch(offset, position);
        let bytes = record.bytes(self.plan, of)?;
        let length = u16::try_from(bytes.len()).map_err(|_| too_long(bytes.len(), "bytes"))?;
        self.patch(count, length);
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// The offset of the next body from the start of the message.
    #[inline]
    fn position(&self) -> Result<u16> {
        let length = self.out.len() - self.origin;
        u16::try_from(length).map_err(|_| Fault::MessageTooLong.value(format!("at least {length}")))
    }

    #[inline]
    fn at(&self, spot: Spot, base: Base<'p>) -> usize {
        let start = match spot.segment.checked_sub(1) {
            None => base.start,
            Some(further) => {
                let found = self.segments.get(base.segments + usize::from(further));
                found.copied().unwrap_or(base.start)
            }
        };
        start + usize::from(spot.offset)
    }

    #[inline]
    fn patch(&mut self, at: usize, word: u16) {
        if let Some(room) = self.out.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) {
            *room = word.to_le_bytes();
        }
    }
}

/// Adds the field's name to an error, or its index in a row.
#[cold]
fn named(plan: &Plan, of: FieldRef, row: bool, error: Error) -> Error {
    if row {
        error.inside_item(of.slot as usize)
    } else {
        error.inside(plan.field(of.field).name())
    }
}

#[cold]
fn too_long(count: usize, what: &str) -> Error {
    Fault::MessageTooLong.value(format!("{count} {what}"))
}
