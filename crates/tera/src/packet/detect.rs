//! Detects a counter and checksum in messages that no list names.

use std::collections::BTreeMap;

use worldwire_core::Side;

use super::{Packet, Packets};
use crate::frame::Header;
use crate::integrity::{self, FIRST_PATCH};
use crate::message::{HeaderForm, NoteKind};
use crate::schema::Definition;

/// Detects which client messages of a conversation have an integrity header, if there is no list of
/// them, or only one for another patch.
///
/// Such a message is 8 bytes longer than its definition says, and fits it if those bytes follow the
/// opcode. The first 4 of them are a counter, either per opcode or for all messages that have one.
/// All messages must be observed in order.
///
/// A single message proves nothing: a layout that grew by 8 bytes looks the same. A header is
/// therefore only detected when a counter rises between messages. Once a client is known to use
/// counters, the first message of another opcode is also read with the header, but this is revoked
/// if the next one does not continue the count. Before patch 92, nothing is detected.
///
/// Unverified: no list and no capture is known for patches after 98. The header is assumed to be
/// that of patches 93 to 98, and both ways of counting are accepted. A capture of a later client
/// would show which is right.
#[derive(Clone, Debug, Default)]
pub struct IntegrityDetector {
    opcodes: BTreeMap<u16, Counting>,
    /// The last counter of any message, and the number of consecutive counters before it.
    last: u32,
    row: u32,
    /// Whether this client is known to use counters.
    is_proven: bool,
}

/// The count of an opcode's messages.
#[derive(Clone, Copy, Debug)]
struct Counting {
    /// The counter of the last message.
    last: u32,
    state: Evidence,
}

/// What is known about an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// One message looked as if it had the header.
    Seen,
    /// It is read with the header because other opcodes have it.
    Presumed,
    /// It has the header.
    Found,
    /// The apparent counter did not continue.
    Refuted,
}

/// Maximum number of counters that messages without a definition may have used in between.
const MAX_UNKNOWN: u32 = 64;

/// The verdict of [`IntegrityDetector`] on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// Its header is the one that the lists specify.
    Listed,
    /// It may have an integrity header, but nothing else shows that the client uses counters: read
    /// it as the lists specify.
    Possible,
    /// It has an integrity header although no list names it, and is the first message of its opcode
    /// to be read that way.
    First,
    /// It has an integrity header although no list names it, like earlier messages of its opcode.
    Repeated,
    /// Its header is the one that the lists specify; earlier messages of its opcode were wrongly
    /// read with an integrity header.
    Refuted,
}

impl Detection {
    /// The header form for reading the message, if it differs from the lists.
    #[must_use]
    pub const fn form(self) -> Option<HeaderForm> {
        match self {
            Self::Listed | Self::Possible | Self::Refuted => None,
            Self::First | Self::Repeated => Some(HeaderForm::Integrity),
        }
    }
}

impl IntegrityDetector {
    /// Examines the next message.
    pub fn push(&mut self, packets: &Packets, from: Side, message: &[u8]) -> Detection {
        if from == Side::Server || packets.patch().is_some_and(|patch| patch.major < FIRST_PATCH) {
            return Detection::Listed;
        }
        let (Some((counter, _)), Ok(Some(Header { opcode, .. }))) =
            (integrity::header(message), Header::peek(message))
        else {
            return Detection::Listed;
        };
        let definition = match packets.get(opcode) {
            Some(Packet { form: HeaderForm::Plain, definition: Some(definition), .. }) => {
                definition
            }
            Some(Packet { form: HeaderForm::Integrity, .. }) => {
                self.is_proven = true;
                self.count(counter);
                return Detection::Listed;
            }
            _ => return Detection::Listed,
        };
        let known = self.opcodes.get(&opcode).copied();
        let state = known.map(|known| known.state);
        if state == Some(Evidence::Refuted) {
            return Detection::Listed;
        }
        let rises = known.is_some_and(|known| known.last.checked_add(1) == Some(counter))
            || (self.last > 0 && self.is_next(counter));
        let begins = known.is_none() && counter == 1;
        if (rises || begins) && has_integrity(definition, message) {
            self.count(counter);
            self.is_proven |= rises;
            let state = match (rises, self.is_proven) {
                (true, _) => Evidence::Found,
                (false, true) => Evidence::Presumed,
                (false, false) => Evidence::Seen,
            };
            let is_further = known.is_some_and(|known| known.state != Evidence::Seen);
            self.opcodes.insert(opcode, Counting { last: counter, state });
            return match state {
                Evidence::Seen => Detection::Possible,
                _ if is_further => Detection::Repeated,
                _ => Detection::First,
            };
        }
        let Some(known) = known else { return Detection::Listed };
        self.opcodes.insert(opcode, Counting { state: Evidence::Refuted, ..known });
        if !self.is_proven {
            // A false counter must not start a count across opcodes.
            self.last = 0;
        }
        if known.state == Evidence::Seen { Detection::Listed } else { Detection::Refuted }
    }

    /// Whether a counter continues the count across opcodes.
    fn is_next(&self, counter: u32) -> bool {
        let far = if self.row > 1 { MAX_UNKNOWN } else { 1 };
        (1..=far).contains(&counter.saturating_sub(self.last))
    }

    fn count(&mut self, counter: u32) {
        self.row = if Some(counter) == self.last.checked_add(1) { self.row + 1 } else { 0 };
        self.last = counter;
    }

    /// The opcodes of messages that have the header although no list names them: those whose
    /// counter has been seen to rise.
    pub fn opcodes(&self) -> impl Iterator<Item = u16> + '_ {
        self.of_state(|state| state == Evidence::Found)
    }

    /// The opcodes of messages that may have the header, as far as a single message can tell.
    pub fn possible(&self) -> impl Iterator<Item = u16> + '_ {
        self.of_state(|state| matches!(state, Evidence::Seen | Evidence::Presumed))
    }

    fn of_state(&self, is: impl Fn(Evidence) -> bool) -> impl Iterator<Item = u16> {
        self.opcodes.iter().filter(move |(_, count)| is(count.state)).map(|(opcode, _)| *opcode)
    }
}

/// Whether a message fits its definition with an integrity header, but not without.
pub(super) fn has_integrity(definition: &Definition, message: &[u8]) -> bool {
    let fits = |form| {
        let odd = [NoteKind::TrailingBytes, NoteKind::OffsetMismatch];
        let notes = definition.plan().check(message, form);
        notes.is_ok_and(|notes| !odd.iter().any(|kind| notes.has(*kind)))
    };
    !fits(HeaderForm::Plain) && fits(HeaderForm::Integrity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::library::BuildFacts;
    use crate::file::{CodeMap, Library};
    use crate::integrity::Signer;
    use crate::message::{Head, Integrity, Value};
    use crate::schema::{ParseOptions, Patch, Set};

    fn packets_at(patch: Option<Patch>) -> Packets {
        let files = [("C_A.1.def", "int32 a\nstring s\n"), ("C_B.1.def", "int32 b\n")];
        let mut library = Library {
            definitions: Set::load(files, ParseOptions::default()),
            ..Library::default()
        };
        library.add_map("protocol.7.map", CodeMap::from_pairs([("C_A", 5), ("C_B", 6)]));
        Packets::new(&library, BuildFacts { revision: Some(7), patch, ..BuildFacts::default() })
    }

    fn packets() -> Packets {
        packets_at(None)
    }

    fn message(packets: &Packets, opcode: u16, integrity: Option<Integrity>) -> Vec<u8> {
        let definition = packets.get(opcode).unwrap().definition.unwrap();
        let mut bytes = Vec::new();
        let head = Head { opcode, integrity };
        definition.plan().encode(head, &Value::Absent, &mut bytes).unwrap();
        bytes
    }

    /// The verdicts on messages with counters.
    fn verdicts<const N: usize>(
        packets: &Packets,
        detector: &mut IntegrityDetector,
        messages: [(u16, u32); N],
    ) -> [Detection; N] {
        messages.map(|(opcode, counter)| {
            let integrity = Some(Integrity { counter, checksum: 0xdead_beef });
            detector.push(packets, Side::Client, &message(packets, opcode, integrity))
        })
    }

    #[test]
    fn a_rising_counter_is_detected() {
        let (packets, mut detector) = (packets(), IntegrityDetector::default());
        let mut signer = Signer::new(Some(99));
        for wanted in [Detection::Possible, Detection::First, Detection::Repeated] {
            assert_eq!(detector.opcodes().count(), usize::from(wanted == Detection::Repeated));
            let mut bytes = message(&packets, 5, Some(Integrity::default()));
            assert!(signer.sign(&mut bytes));
            assert_eq!(detector.push(&packets, Side::Client, &bytes), wanted);
            assert_eq!(detector.push(&packets, Side::Server, &bytes), Detection::Listed);
            let plain = message(&packets, 6, None);
            assert_eq!(detector.push(&packets, Side::Client, &plain), Detection::Listed);
        }
        assert_eq!(detector.opcodes().collect::<Vec<_>>(), [5]);
        assert_eq!(detector.possible().count(), 0);
    }

    #[test]
    fn a_counter_across_opcodes_is_detected() {
        let (packets, mut detector) = (packets(), IntegrityDetector::default());
        let found = verdicts(&packets, &mut detector, [(5, 1), (6, 2), (6, 3)]);
        assert_eq!(found, [Detection::Possible, Detection::First, Detection::Repeated]);
        // Two messages without a definition were sent in between.
        let found = verdicts(&packets, &mut detector, [(5, 6), (6, 7)]);
        assert_eq!(found, [Detection::First, Detection::Repeated]);
    }

    /// A layout that grew by 8 bytes, whose first field happens to start at 1.
    #[test]
    fn a_counter_that_does_not_rise_is_ignored() {
        let (packets, mut detector) = (packets(), IntegrityDetector::default());
        assert_eq!(verdicts(&packets, &mut detector, [(6, 1)]), [Detection::Possible]);
        assert_eq!(detector.possible().collect::<Vec<_>>(), [6]);
        let found = verdicts(&packets, &mut detector, [(6, 1), (6, 1), (6, 2)]);
        assert_eq!(found, [Detection::Listed; 3]);
        assert_eq!((detector.opcodes().count(), detector.possible().count()), (0, 0));
    }

    #[test]
    fn a_presumed_header_is_revoked() {
        let (packets, mut detector) = (packets(), IntegrityDetector::default());
        let found =
            verdicts(&packets, &mut detector, [(5, 1), (5, 2), (6, 1), (6, 1), (6, 2), (5, 3)]);
        let wanted = [
            Detection::Possible,
            Detection::First,
            Detection::First,
            Detection::Refuted,
            Detection::Listed,
            Detection::Repeated,
        ];
        assert_eq!(found, wanted);
        assert_eq!(detector.opcodes().collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn old_clients_do_not_use_counters() {
        for (patch, wanted) in [
            (Patch::major(91), [Detection::Listed; 2]),
            (Patch::major(92), [Detection::Possible, Detection::First]),
        ] {
            let packets = packets_at(Some(patch));
            let found = verdicts(&packets, &mut IntegrityDetector::default(), [(6, 1), (6, 2)]);
            assert_eq!(found, wanted, "{patch}");
        }
    }
}
