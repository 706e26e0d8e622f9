//! Messages on a tape, whose memory is reused for the next message.

mod change;
mod look;
mod record;

use worldwire_core::Result;

use super::note::Notes;
use super::{Head, HeaderForm, Leniency};
use super::{append_trailing, encode, run_fields};
use crate::schema::plan::Plan;
use record::{Block, TapeSink};

pub use look::{Datum, TapeList, TapeRecord};

/// A decoded message that can be inspected, changed and encoded again. A proxy keeps one tape for
/// all messages.
///
/// It holds the bytes of the message and the location of each text, list and element. Reading a
/// message and writing it again therefore costs little more than copying it: fixed-size fields are
/// extracted from the bytes on request and written as they are. [`Plan::read_into`] validates the
/// whole message, so accessors cannot fail.
///
/// An unchanged message is encoded to its original bytes, canonical or not. A changed one is
/// encoded in canonical form, followed by its trailing bytes. If only fixed-size fields of a
/// canonical message were changed, it is still copied as a whole.
///
/// A tape does not record which definition it was read with. Accessing it with another one yields
/// meaningless fields, but nothing worse.
///
/// ```
/// use worldwire_tera::message::{Datum, HeaderForm, Tape, Value};
/// # use worldwire_tera::schema::{Definition, FileName, ParseOptions};
/// # let file = FileName::parse("S_GREETING.1.def").unwrap();
/// # let text = "int32 level\nstring name\n";
/// # let definition = Definition::parse(&file, text, &ParseOptions::default()).unwrap();
/// # let plan = definition.plan();
/// let message = [14, 0, 1, 0, 10, 0, 65, 0, 0, 0, b'E', 0, 0, 0];
/// let mut tape = Tape::new();
/// plan.read_into(&message, HeaderForm::Plain, &mut tape)?;
/// let name = tape.fields(plan).get("name").and_then(Datum::text).expect("a text");
/// assert_eq!(name.to_string(), "E");
/// tape.set(plan, "level", &Value::Signed(70))?;
/// let mut out = Vec::new();
/// tape.encode(plan, &mut out)?;
/// assert_eq!(out, [14, 0, 1, 0, 10, 0, 70, 0, 0, 0, b'E', 0, 0, 0]);
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tape {
    head: Head,
    notes: Notes,
    /// The message, followed by texts, bytes and elements added later.
    bytes: Vec<u8>,
    /// The length of the message.
    length: usize,
    /// The end of its last body.
    end: usize,
    /// Records as *blocks* of cells: one for the first segment, one for each text, byte string and
    /// list, and one for each later segment. The blocks of a list are contiguous.
    cells: Vec<Cell>,
    /// Number of cells in use; later ones are left over from earlier messages.
    used: usize,
    changed: Changed,
}

/// Which parts of a message have been changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Changed {
    #[default]
    Nothing,
    /// The header or fixed-size fields: everything is still in its original position.
    Values,
    /// Texts, bytes or lists.
    Bodies,
}

/// A location: position and length of a string or byte string, first block and count of a list,
/// or position of a segment.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    at: u32,
    length: u32,
}

impl Plan {
    /// Reads a message onto a tape, which is empty after an error.
    pub fn read_into(&self, message: &[u8], form: HeaderForm, tape: &mut Tape) -> Result<()> {
        tape.clear();
        let head = Head::read(message, form).map_err(|error| self.named(error))?;
        let root = self.scope(self.root);
        let mut sink = TapeSink::new(&mut tape.cells, root, form.bytes(), message.len());
        let outcome = run_fields(self, message, form, &mut sink);
        let used = sink.used();
        match outcome {
            Ok(rest) => {
                tape.used = used;
                tape.head = head;
                (tape.notes, tape.end, tape.length) = (rest.notes, rest.end, message.len());
                tape.bytes.extend_from_slice(message);
                Ok(())
            }
            Err(error) => {
                tape.clear();
                Err(self.named(error))
            }
        }
    }
}

impl Tape {
    /// An empty tape.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opcode and integrity.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// The header, for changing.
    pub fn head_mut(&mut self) -> &mut Head {
        self.change(Changed::Values);
        &mut self.head
    }

    /// The deviations noted when the message was read.
    #[must_use]
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The bytes after the last body.
    #[must_use]
    pub fn trailing(&self) -> &[u8] {
        self.bytes.get(self.end..self.length).unwrap_or_default()
    }

    /// The fields of the message, according to the plan it was read with.
    #[inline]
    #[must_use]
    pub fn fields<'t, 'p>(&'t self, plan: &'p Plan) -> TapeRecord<'t, 'p> {
        TapeRecord::root(self, plan)
    }

    /// Appends the message to `out`, according to the plan it was read with.
    ///
    /// # Errors
    /// `Value` if the message has become too long; `out` is left unchanged.
    pub fn encode(&self, plan: &Plan, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        if self.stands() {
            out.extend_from_slice(self.bytes.get(..self.length).unwrap_or_default());
            if self.changed == Changed::Values {
                self.head.put(out.get_mut(start..).unwrap_or_default());
            }
            return Ok(());
        }
        let root = Block { tape: self, block: 0 };
        encode::message(plan, self.head, root, Leniency::Strict, out)?;
        match self.trailing() {
            [] => Ok(()),
            trailing => append_trailing(trailing, start, out).inspect_err(|_| out.truncate(start)),
        }
    }

    /// Whether the message is written with its original bytes, except for its header.
    #[inline]
    fn stands(&self) -> bool {
        match self.changed {
            Changed::Nothing => true,
            // The header may have changed its length.
            Changed::Values => {
                self.notes.is_empty() && self.cell(0).at as usize == self.head.form().bytes()
            }
            Changed::Bodies => false,
        }
    }

    fn change(&mut self, what: Changed) {
        self.changed = self.changed.max(what);
    }

    fn clear(&mut self) {
        self.notes = Notes::default();
        self.bytes.clear();
        self.used = 0;
        (self.length, self.end, self.changed) = (0, 0, Changed::Nothing);
    }

    #[inline]
    fn cell(&self, at: usize) -> Cell {
        // Cells after those in use are stale.
        if at < self.used {
            self.cells.get(at).copied().unwrap_or_default()
        } else {
            Cell::default()
        }
    }

    /// A cell, for writing.
    #[inline]
    fn cell_mut(&mut self, at: usize) -> Option<&mut Cell> {
        self.cells.get_mut(..self.used).and_then(|cells| cells.get_mut(at))
    }

    #[inline]
    fn piece(&self, cell: Cell) -> &[u8] {
        let at = cell.at as usize;
        self.bytes.get(at..at + cell.length as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Integrity, Value};
    use crate::schema::{Definition, ParseOptions, Set};
    use crate::types::Text;

    /// The encodings of a tape and of its values.
    fn both(plan: &Plan, tape: &Tape) -> (Vec<u8>, Vec<u8>) {
        let (mut copied, mut reencoded) = (vec![7], vec![7]);
        tape.encode(plan, &mut copied).unwrap();
        let value = Datum::Record(tape.fields(plan)).to_value();
        plan.encode(tape.head(), &value, &mut reencoded).unwrap();
        (copied, reencoded)
    }

    #[test]
    fn a_message_with_changed_numbers_is_encoded_like_its_values() {
        let text = "bool b\nint32 a\nstring s\narray l\n- byte x\n- string t\n";
        let definition = Definition::of_text(text);
        let plan = definition.plan();
        let text = |text| Value::Text(Text::from(text));
        let element = Value::Record(vec![Value::Unsigned(3), text("xyz")]);
        let list = Value::List(vec![element.clone(), element]);
        let value = Value::Record(vec![Value::Bool(true), Value::Signed(5), text("ab"), list]);
        let integrity = Some(Integrity { counter: 0x0102_0304, checksum: 0x0506_0708 });
        for head in [Head::plain(1), Head { opcode: 1, integrity }] {
            for truth in [1, 2] {
                let mut bytes = Vec::new();
                plan.encode(head, &value, &mut bytes).unwrap();
                // The boolean follows the words of the text and of the list.
                bytes[head.form().bytes() + 6] = truth;
                let mut tape = Tape::new();
                plan.read_into(&bytes, head.form(), &mut tape).unwrap();
                assert_eq!(tape.notes().is_empty(), truth == 1);
                tape.set(plan, "a", &Value::Signed(-6)).unwrap();
                tape.set(plan, "l[1].x", &Value::Unsigned(200)).unwrap();
                let (copied, reencoded) = both(plan, &tape);
                assert_eq!(copied, reencoded);
                for integrity in [integrity, None, Some(Integrity::default())] {
                    *tape.head_mut() = Head { opcode: 0xabcd, integrity };
                    let (copied, reencoded) = both(plan, &tape);
                    assert_eq!(copied, reencoded, "{integrity:?}");
                }
                tape.set(plan, "l[0].t", &text("longer")).unwrap();
                let (copied, reencoded) = both(plan, &tape);
                assert_eq!(copied, reencoded);
            }
        }
    }

    /// Numbers in the elements of both lists say which belong together.
    #[test]
    fn changing_the_numbers_of_paired_elements_moves_them() {
        let set = Set::load([("C_CHANGE_EQUIP_PRESET.1.js", "")], ParseOptions::default());
        let plan = set.get("C_CHANGE_EQUIP_PRESET", 1).unwrap().plan();
        let slot = |number| Value::Record(vec![Value::Unsigned(number)]);
        let items = Value::List(vec![slot(1), slot(2)]);
        let crystals = Value::List(vec![slot(1), slot(2)]);
        let value = Value::Record(vec![Value::Unsigned(9), items, crystals]);
        let mut bytes = Vec::new();
        plan.encode(Head::plain(1), &value, &mut bytes).unwrap();
        let mut tape = Tape::new();
        plan.read_into(&bytes, HeaderForm::Plain, &mut tape).unwrap();
        assert!(tape.notes().is_empty());
        tape.set(plan, "crystals[0].slot", &Value::Unsigned(2)).unwrap();
        let (copied, reencoded) = both(plan, &tape);
        assert_eq!(copied, reencoded);
        assert!(plan.check(&copied[1..], HeaderForm::Plain).unwrap().is_empty());
    }
}
