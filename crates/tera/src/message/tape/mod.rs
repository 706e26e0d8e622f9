//! Messages on a tape: one piece of memory that is used again for the next message.

mod change;
mod look;
mod record;

use worldwire_core::Result;

use super::oddity::Oddities;
use super::{Head, HeaderForm, Leniency};
use super::{append_trailing, encode, read_front, rewrite_head, run_fields};
use crate::schema::plan::Plan;
use record::{Block, TapeSink};

pub use look::{Datum, TapeList, TapeRecord};

/// A message that was read, to be looked at, changed and written again; a proxy keeps one for all
/// messages.
///
/// It holds the bytes of the message, and for each text, list and element where it is. So reading a
/// message and writing it again cost little more than copying it: fields of fixed size are taken out
/// of the bytes when somebody asks, and written as they stand. All that is asked is checked when the
/// message is read; looking at it can fail no more.
///
/// As long as nothing is changed it is written with the bytes it had, canonical or not; afterwards
/// in canonical form, with the bytes behind its last body still there. As long as no text, bytes or
/// list is changed, what was canonical is so still, and is copied as a whole.
///
/// A tape does not know by which definition it was read. With another one nobody knows what its
/// fields hold, but nothing worse happens.
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
/// let Some(Datum::Text(name)) = tape.fields(plan).get("name") else { panic!("no name") };
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
    notes: Oddities,
    /// The message, and behind it what was put in later.
    bytes: Vec<u8>,
    /// How long the message is.
    length: usize,
    /// The end of its furthest body.
    end: usize,
    /// Records in *blocks*: where the first segment is, what the texts, bytes and lists are, and
    /// where the further segments are. The blocks of a list stand next to each other.
    cells: Vec<Cell>,
    /// How many cells are in use; those behind them are of earlier messages.
    used: usize,
    changed: Changed,
}

/// What of a message was changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Changed {
    #[default]
    Nothing,
    /// The header, or fields of fixed size: everything stands where it stood.
    Values,
    /// Texts, bytes or lists.
    Bodies,
}

/// Where something is: of texts and bytes the place and the length, of lists the first block and
/// the count, of segments the place.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    at: u32,
    length: u32,
}

impl Plan {
    /// Reads a message onto a tape. After an error nothing is on it.
    ///
    /// # Errors
    /// As [`Plan::decode`].
    pub fn read_into(&self, message: &[u8], form: HeaderForm, tape: &mut Tape) -> Result<()> {
        tape.clear();
        let front = read_front(message, form)?;
        let root = self.scope(self.root);
        let mut sink = TapeSink::new(&mut tape.cells, root, form.bytes(), message.len());
        let outcome = run_fields(self, message, form, &mut sink);
        let used = sink.used();
        match outcome {
            Ok(rest) => {
                tape.used = used;
                tape.head = Head { opcode: front.opcode, integrity: front.integrity };
                (tape.notes, tape.end, tape.length) = (rest.notes, rest.end, message.len());
                tape.bytes.extend_from_slice(message);
                Ok(())
            }
            Err(error) => {
                tape.clear();
                Err(error)
            }
        }
    }
}

impl Tape {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opcode and integrity.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// The header, to be changed.
    pub fn head_mut(&mut self) -> &mut Head {
        self.change(Changed::Values);
        &mut self.head
    }

    /// What was odd.
    #[must_use]
    pub fn notes(&self) -> &Oddities {
        &self.notes
    }

    /// The bytes behind the last body.
    #[must_use]
    pub fn trailing(&self) -> &[u8] {
        self.bytes.get(self.end..self.length).unwrap_or_default()
    }

    /// The fields of the message, by the plan it was read with.
    #[inline]
    #[must_use]
    pub fn fields<'t, 'p>(&'t self, plan: &'p Plan) -> TapeRecord<'t, 'p> {
        TapeRecord::root(self, plan)
    }

    /// Appends the message to `out`, by the plan it was read with.
    ///
    /// # Errors
    /// Value, when it has become too long; `out` is as it was then.
    pub fn encode(&self, plan: &Plan, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        if self.stands() {
            out.extend_from_slice(self.bytes.get(..self.length).unwrap_or_default());
            if self.changed == Changed::Values {
                rewrite_head(self.head, out.get_mut(start..).unwrap_or_default());
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

    /// Whether the message is written with the bytes it had, but for its header.
    #[inline]
    fn stands(&self) -> bool {
        match self.changed {
            Changed::Nothing => true,
            // The header may have become longer or shorter.
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
        self.notes = Oddities::default();
        self.bytes.clear();
        self.used = 0;
        (self.length, self.end, self.changed) = (0, 0, Changed::Nothing);
    }

    #[inline]
    fn cell(&self, at: usize) -> Cell {
        // What is behind those in use belongs to nothing.
        if at < self.used {
            self.cells.get(at).copied().unwrap_or_default()
        } else {
            Cell::default()
        }
    }

    /// A cell, to be written.
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
    use crate::schema::{Definition, FileName, ParseOptions, Set};
    use crate::types::Text;

    /// What a tape writes, and what its values do.
    fn both(plan: &Plan, tape: &Tape) -> (Vec<u8>, Vec<u8>) {
        let (mut copied, mut anew) = (vec![7], vec![7]);
        tape.encode(plan, &mut copied).unwrap();
        let value = Datum::Record(tape.fields(plan)).to_value();
        plan.encode(tape.head(), &value, &mut anew).unwrap();
        (copied, anew)
    }

    #[test]
    fn a_message_whose_numbers_changed_is_written_as_its_values_are() {
        let file = FileName::parse("S_A.1.def").unwrap();
        let text = "bool b\nint32 a\nstring s\narray l\n- byte x\n- string t\n";
        let definition = Definition::parse(&file, text, &ParseOptions::default()).unwrap();
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
                // Behind the words of the text and of the list.
                bytes[head.form().bytes() + 6] = truth;
                let mut tape = Tape::new();
                plan.read_into(&bytes, head.form(), &mut tape).unwrap();
                assert_eq!(tape.notes().is_empty(), truth == 1);
                tape.set(plan, "a", &Value::Signed(-6)).unwrap();
                tape.set(plan, "l[1].x", &Value::Unsigned(200)).unwrap();
                let (copied, anew) = both(plan, &tape);
                assert_eq!(copied, anew);
                for integrity in [integrity, None, Some(Integrity::default())] {
                    *tape.head_mut() = Head { opcode: 0xabcd, integrity };
                    let (copied, anew) = both(plan, &tape);
                    assert_eq!(copied, anew, "{integrity:?}");
                }
                tape.set(plan, "l[0].t", &text("longer")).unwrap();
                let (copied, anew) = both(plan, &tape);
                assert_eq!(copied, anew);
            }
        }
    }

    /// Behind which element another one stands, numbers in both say.
    #[test]
    fn numbers_that_say_where_elements_stand_move_them() {
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
        let (copied, anew) = both(plan, &tape);
        assert_eq!(copied, anew);
        assert!(plan.check(&copied[1..], HeaderForm::Plain).unwrap().is_empty());
    }
}
