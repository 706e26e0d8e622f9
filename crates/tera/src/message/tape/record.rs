//! Records of a tape, as a sink for the decoder and a source for the encoder.

use worldwire_core::{Error, Result};

use super::{Cell, Tape};
use crate::message::Leniency;
use crate::message::bounds::MAX_READINGS;
use crate::message::decode::{Group, Leaf, Sink};
use crate::message::encode::{FieldRef, Source};
use crate::schema::plan::{Fixed, LINKS, Plan, Scope};

/// Up to this many elements, cells are reserved without checking what the message can hold.
const FEW: usize = 16;

/// The number of cells in a record of a scope.
#[inline]
pub(super) const fn width(scope: &Scope) -> usize {
    // There is at least one segment, the first.
    scope.bodies as usize + scope.segments as usize
}

/// Collects the locations of everything in a message.
pub(super) struct TapeSink<'t> {
    /// At least as long as the part in use, so that cells need not be cleared for each message:
    /// reading a record writes all its cells.
    cells: &'t mut Vec<Cell>,
    used: usize,
    /// The block of the current record.
    block: usize,
    /// The first block of the current list, and the cells in each of its blocks.
    list: usize,
    width: usize,
    /// The number of bytes that may be read in total.
    max: usize,
}

impl<'t> TapeSink<'t> {
    /// For a message with this length, whose fields begin at `start`.
    #[inline]
    pub(super) fn new(cells: &'t mut Vec<Cell>, root: &Scope, start: usize, length: usize) -> Self {
        let max = length.saturating_mul(MAX_READINGS);
        let mut sink = Self { cells, used: 0, block: 0, list: 0, width: 0, max };
        sink.take(width(root));
        sink.put(0, start, 0);
        sink
    }

    /// The number of cells in use.
    #[inline]
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Reserves cells; returns the index of the first.
    #[inline]
    fn take(&mut self, count: usize) -> usize {
        let first = self.used;
        self.used += count;
        if self.used > self.cells.len() {
            self.cells.resize(self.used, Cell::default());
        }
        first
    }

    #[inline]
    fn put(&mut self, cell: usize, at: usize, length: usize) {
        if let Some(place) = self.cells.get_mut(cell) {
            // A message has at most 65,535 bytes.
            let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
            *place = Cell { at: number(at), length: number(length) };
        }
    }

    #[inline]
    fn body(&mut self, leaf: Leaf<'_>, at: usize, length: usize) {
        self.put(self.block + 1 + leaf.body as usize, at, length);
    }
}

impl<'d, 'n> Sink<'d, 'n> for TapeSink<'_> {
    const FIXED: bool = false;

    /// Fixed-size fields stay bytes until they are requested.
    #[inline(always)]
    fn fixed(&mut self, _: &'n Plan, _: &'n [Fixed], _: &'d [u8], _: usize) {}

    #[inline]
    fn text(&mut self, leaf: Leaf<'n>, text: &'d [u8], at: usize) {
        self.body(leaf, at, text.len());
    }

    #[inline]
    fn bytes(&mut self, leaf: Leaf<'n>, bytes: &'d [u8], at: usize) {
        self.body(leaf, at, bytes.len());
    }

    #[inline]
    fn group<R>(
        &mut self,
        group: Group<'n>,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        let Group::List(leaf, scope, count) = group else { return fill(self).0 };
        if count == 0 {
            self.body(leaf, 0, 0);
            return fill(self).0;
        }
        let scope = leaf.plan.scope(scope);
        // The count may be wrong, but the decoder rejects more elements than this.
        let room = match count {
            ..=FEW => count,
            _ => count.min(self.max / (scope.cost as usize).max(1) + 1),
        };
        let outer = (self.block, self.list, self.width);
        self.width = width(scope);
        self.list = self.take(room * self.width);
        self.body(leaf, self.list, count);
        let (outcome, _) = fill(self);
        (self.block, self.list, self.width) = outer;
        outcome
    }

    #[inline]
    fn packed(&mut self, leaf: Leaf<'n>, scope: u32, (count, first): (usize, usize), _: &'d [u8]) {
        let stride = leaf.plan.scope(scope).stride;
        // All elements exist, and each takes one cell.
        let list = self.take(count);
        self.body(leaf, list, count);
        let cells = self.cells.get_mut(list..self.used).unwrap_or_default();
        // A message has at most 65,535 bytes.
        let mut at = u32::try_from(first + LINKS).unwrap_or(u32::MAX);
        for cell in cells {
            *cell = Cell { at, length: 0 };
            at = at.saturating_add(stride);
        }
    }

    #[inline]
    fn element(&mut self, index: usize, start: usize) {
        self.block = self.list + index * self.width;
        self.put(self.block, start, 0);
    }

    #[inline]
    fn segment(&mut self, scope: &'n Scope, number: usize, start: usize) {
        self.put(self.block + scope.bodies as usize + number, start, 0);
    }
}

/// A record of a tape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'t> {
    pub(super) tape: &'t Tape,
    pub(super) block: usize,
}

impl<'t> Block<'t> {
    /// Where one of its segments begins.
    #[inline]
    pub(super) fn start(self, scope: &Scope, segment: usize) -> usize {
        let cell = if segment == 0 { 0 } else { scope.bodies as usize + segment };
        self.tape.cell(self.block + cell).at as usize
    }

    #[inline]
    pub(super) fn body(self, body: u32) -> Cell {
        self.tape.cell(self.block + 1 + body as usize)
    }
}

impl<'t> Source<'t> for Block<'t> {
    const FIXED: bool = false;
    /// The record of the first element.
    type List = Self;

    #[inline(always)]
    fn segment(
        self,
        plan: &Plan,
        scope: &Scope,
        number: usize,
        (front, size): (usize, usize),
        out: &mut Vec<u8>,
    ) {
        let (start, from) = (self.start(scope, number), out.len());
        let bytes = start.checked_sub(front).and_then(|at| self.tape.bytes.get(at..start + size));
        match bytes {
            Some(bytes) => out.extend_from_slice(bytes),
            // The header is longer than the original; with the right plan, all fields exist.
            None => {
                out.resize(from + front, 0);
                out.extend_from_slice(self.tape.bytes.get(start..start + size).unwrap_or_default());
                out.resize(from + front + size, 0);
            }
        }
        if !self.tape.notes.is_empty() {
            let segment = out.get_mut(from + front..).unwrap_or_default();
            straighten(plan, scope, number, segment);
        }
    }

    fn fixed<'r>(
        self,
        _: &Plan,
        _: &'r [Fixed],
        _: Leniency,
        _: &mut [u8],
    ) -> Result<(), (&'r Fixed, Error)> {
        Ok(())
    }

    #[inline]
    fn text(self, _: &Plan, of: FieldRef, _: Leniency) -> Result<&'t [u8]> {
        Ok(self.tape.piece(self.body(of.body)))
    }

    #[inline]
    fn bytes(self, _: &Plan, of: FieldRef) -> Result<&'t [u8]> {
        Ok(self.tape.piece(self.body(of.body)))
    }

    #[inline]
    fn list(self, _: &Plan, of: FieldRef) -> Result<(Self, usize)> {
        let Cell { at, length } = self.body(of.body);
        Ok((Self { tape: self.tape, block: at as usize }, length as usize))
    }

    #[inline]
    fn packed(list: Self, count: usize, scope: &Scope) -> Option<&'t [u8]> {
        let Self { tape, block } = list;
        if scope.stride == 0 || !tape.notes.is_empty() {
            return None;
        }
        let cells = tape.cells.get(..tape.used)?.get(block..block + count)?;
        let first = cells.first()?.at;
        let mut at = first;
        for cell in cells {
            if cell.at != at {
                return None;
            }
            at = at.checked_add(scope.stride)?;
        }
        let start = first as usize;
        tape.bytes.get(start.checked_sub(LINKS)?..at as usize - LINKS)
    }

    #[inline]
    fn element(list: Self, index: usize, scope: &Scope) -> Result<Self> {
        Ok(Self { block: list.block + index * width(scope), ..list })
    }

    fn open(self, _: &Plan, _: FieldRef, _: bool) -> Result<Self> {
        Ok(self)
    }
}

/// Normalises the booleans of a segment to 0 or 1.
#[cold]
fn straighten(plan: &Plan, scope: &Scope, number: usize, segment: &mut [u8]) {
    for spot in plan.bools(scope).iter().filter(|spot| usize::from(spot.segment) == number) {
        if let Some(value) = segment.get_mut(usize::from(spot.offset)) {
            *value = u8::from(*value != 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::message::{Head, HeaderForm, Tape, Value};
    use crate::schema::Definition;
    use crate::types::Text;

    /// Added elements are contiguous only by chance, and the bytes before them are not their links.
    #[test]
    fn lists_are_encoded_the_same_wherever_their_elements_are() {
        let text = "string s\narray l\n- int32 a\n- bool b\n";
        let definition = Definition::of_text(text);
        let plan = definition.plan();
        let element = |a| Value::Record(vec![Value::Signed(a), Value::Bool(a % 2 == 0)]);
        let message = |text: &str, count: i64| {
            let list = Value::List((0..count).map(element).collect());
            Value::Record(vec![Value::Text(Text::from(text)), list])
        };
        for (before, after) in [(0, 1), (0, 3), (3, 3), (3, 1), (2, 5)] {
            for text in ["", "ab", "abc"] {
                let mut bytes = Vec::new();
                plan.encode(Head::plain(1), &message("x", before), &mut bytes).unwrap();
                let mut tape = Tape::new();
                plan.read_into(&bytes, HeaderForm::Plain, &mut tape).unwrap();
                for count in usize::try_from(before).unwrap()..=usize::try_from(after).unwrap() {
                    tape.resize(plan, "l", count).unwrap();
                    tape.set(plan, "s", &Value::Text(Text::from(text))).unwrap();
                }
                tape.resize(plan, "l", usize::try_from(after).unwrap()).unwrap();
                tape.set(plan, "s", &Value::Text(Text::from(text))).unwrap();
                for index in 0..after {
                    tape.set(plan, &format!("l[{index}]"), &element(index)).unwrap();
                }
                let (mut found, mut wanted) = (Vec::new(), Vec::new());
                tape.encode(plan, &mut found).unwrap();
                plan.encode(Head::plain(1), &message(text, after), &mut wanted).unwrap();
                assert_eq!(found, wanted, "{before} elements, then {after}, with {text:?}");
            }
        }
    }
}
