//! Counter and checksum in messages that no list names.

use std::collections::BTreeMap;

use worldwire_core::Side;

use super::{Packet, Packets};
use crate::frame::Header;
use crate::integrity;
use crate::message::{HeaderForm, NoteKind};

/// Finds the client messages of a conversation that have an integrity header, where there is no
/// list of them, or one of another patch.
///
/// Such a message is 8 bytes longer than its definition says, and can be read as it should be with
/// those behind the opcode. The first 4 of them count: the messages of its opcode, or all that have
/// a counter. Look at all messages in their order.
///
/// Unverified: no list is known for patches after 98, and no capture of one; the header is taken to
/// be that of patch 93 to 98, and either way to count is accepted. A capture of a later client would
/// show it.
#[derive(Clone, Debug, Default)]
pub struct Seals {
    opcodes: BTreeMap<u16, Count>,
    /// The last counter of all, and how many in a row were one more than the one before.
    last: u32,
    row: u32,
}

/// How the messages of an opcode are counted.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// The counter of the last one, if it has one.
    last: u32,
    sealed: bool,
    /// What looked like a counter did not count.
    refuted: bool,
}

/// Counters that are passed over by messages whose definition is not known, at most.
const MOST_UNKNOWN: u32 = 64;

/// What [`Seals`] say of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// It is as the lists say.
    Listed,
    /// It has an integrity header, and no list names it; it is the first of its opcode.
    First,
    /// It has an integrity header, and no list names it.
    Further,
}

impl Seal {
    /// The header to read the message with, where it is not the one of the lists.
    #[must_use]
    pub const fn form(self) -> Option<HeaderForm> {
        match self {
            Self::Listed => None,
            Self::First | Self::Further => Some(HeaderForm::Integrity),
        }
    }
}

impl Seals {
    /// Looks at the next message.
    pub fn look(&mut self, packets: &Packets, from: Side, message: &[u8]) -> Seal {
        if from == Side::Server {
            return Seal::Listed;
        }
        let (Some((counter, _)), Ok(Some(Header { opcode, .. }))) =
            (integrity::header(message), Header::peek(message))
        else {
            return Seal::Listed;
        };
        let definition = match packets.get(opcode) {
            Some(Packet { form: HeaderForm::Plain, definition: Some(definition), .. }) => {
                definition
            }
            Some(Packet { form: HeaderForm::Integrity, .. }) => {
                self.count(counter);
                return Seal::Listed;
            }
            _ => return Seal::Listed,
        };
        let known = self.opcodes.get(&opcode).copied().unwrap_or_default();
        let ahead = counter.saturating_sub(self.last);
        let far = if self.row > 1 { MOST_UNKNOWN } else { 1 };
        let counts = Some(counter) == known.last.checked_add(1) || (1..=far).contains(&ahead);
        let fits = |form| {
            let odd = [NoteKind::TrailingBytes, NoteKind::OffsetMismatch];
            let notes = definition.plan().check(message, form);
            notes.is_ok_and(|notes| !odd.iter().any(|kind| notes.has(*kind)))
        };
        let sealed =
            counts && !known.refuted && !fits(HeaderForm::Plain) && fits(HeaderForm::Integrity);
        if sealed {
            self.count(counter);
            self.opcodes.insert(opcode, Count { last: counter, sealed, refuted: false });
        } else if known.sealed {
            self.opcodes.insert(opcode, Count { last: 0, sealed, refuted: true });
        }
        match (sealed, known.sealed) {
            (false, _) => Seal::Listed,
            (true, false) => Seal::First,
            (true, true) => Seal::Further,
        }
    }

    fn count(&mut self, counter: u32) {
        self.row = if Some(counter) == self.last.checked_add(1) { self.row + 1 } else { 0 };
        self.last = counter;
    }

    /// The opcodes of messages that have the header, and no list names them.
    pub fn opcodes(&self) -> impl Iterator<Item = u16> + '_ {
        self.opcodes.iter().filter(|(_, count)| count.sealed).map(|(opcode, _)| *opcode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::library::Known;
    use crate::file::{CodeMap, Library};
    use crate::integrity::Signer;
    use crate::message::{Head, Integrity, Value};
    use crate::schema::{ParseOptions, Set};

    fn packets() -> Packets {
        let files = [("C_A.1.def", "int32 a\nstring s\n"), ("C_B.1.def", "int32 b\n")];
        let mut library = Library {
            definitions: Set::load(files, ParseOptions::default()),
            ..Library::default()
        };
        library.add_map("protocol.7.map", CodeMap::from_pairs([("C_A", 5), ("C_B", 6)]));
        Packets::new(&library, Known { revision: Some(7), ..Known::default() })
    }

    fn message(packets: &Packets, opcode: u16, integrity: Option<Integrity>) -> Vec<u8> {
        let definition = packets.get(opcode).unwrap().definition.unwrap();
        let mut bytes = Vec::new();
        let head = Head { opcode, integrity };
        definition.plan().encode(head, &Value::Absent, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_counter_that_counts_is_found() {
        let (packets, mut seals) = (packets(), Seals::default());
        let mut signer = Signer::new(Some(99));
        for wanted in [Seal::First, Seal::Further, Seal::Further] {
            let mut bytes = message(&packets, 5, Some(Integrity::default()));
            assert!(signer.sign(&mut bytes));
            assert_eq!(seals.look(&packets, Side::Client, &bytes), wanted);
            assert_eq!(seals.look(&packets, Side::Server, &bytes), Seal::Listed);
            let plain = message(&packets, 6, None);
            assert_eq!(seals.look(&packets, Side::Client, &plain), Seal::Listed);
        }
        assert_eq!(seals.opcodes().collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn a_counter_of_all_messages_is_found() {
        let (packets, mut seals) = (packets(), Seals::default());
        let mut look = |opcode: u16, counter: u32| {
            let integrity = Some(Integrity { counter, checksum: 0xdead_beef });
            seals.look(&packets, Side::Client, &message(&packets, opcode, integrity))
        };
        assert_eq!((look(5, 1), look(6, 2), look(6, 3)), (Seal::First, Seal::First, Seal::Further));
        // Two of them were messages that nobody has a definition of.
        assert_eq!((look(5, 6), look(6, 7)), (Seal::Further, Seal::Further));
    }

    /// A layout that has grown by 8 bytes, whose first field happens to be 1 at first.
    #[test]
    fn a_counter_that_does_not_count_is_none() {
        let (packets, mut seals) = (packets(), Seals::default());
        let sealed = |counter| message(&packets, 6, Some(Integrity { counter, checksum: 0 }));
        assert_eq!(seals.look(&packets, Side::Client, &sealed(1)), Seal::First);
        for _ in 0..3 {
            assert_eq!(seals.look(&packets, Side::Client, &sealed(1)), Seal::Listed);
        }
        assert_eq!(seals.opcodes().count(), 0);
        assert_eq!(seals.look(&packets, Side::Client, &sealed(2)), Seal::Listed);
    }
}
