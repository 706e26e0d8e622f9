//! Detects counter and checksum in messages that no list names.

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
/// if the next one does not continue the count. Before patch 92, no detection takes place.
///
/// Unverified: no list and no capture is known for patches after 98. The header is assumed to be
/// that of patches 93 to 98, and both ways of counting are accepted. A capture of a later client
/// would show which is right.
#[derive(Clone, Debug, Default)]
pub struct Seals {
    opcodes: BTreeMap<u16, Count>,
    /// The last counter of any message, and how many consecutive counters preceded it.
    last: u32,
    row: u32,
    /// Whether this client is known to use counters.
    is_proven: bool,
}

/// The count of an opcode's messages.
#[derive(Clone, Copy, Debug)]
struct Count {
    /// The counter of the last message.
    last: u32,
    state: State,
}

/// What is known about an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// One message looked as if it had the header.
    Seen,
    /// It is read with the header because other opcodes have it.
    Presumed,
    /// It has the header.
    Found,
    /// What looked like a counter did not continue.
    Refuted,
}

/// Maximum number of counters that messages without a definition may have used in between.
const MAX_UNKNOWN: u32 = 64;

/// The verdict of [`Seals`] on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// Its header is the one that the lists say.
    Listed,
    /// It may have an integrity header, but nothing else shows that the client uses counters: read
    /// it as the lists say.
    Perhaps,
    /// It has an integrity header although no list names it, and is the first message of its opcode
    /// to be read that way.
    First,
    /// It has an integrity header although no list names it, like earlier messages of its opcode.
    Further,
    /// Its header is the one that the lists say; earlier messages of its opcode were wrongly read
    /// with an integrity header.
    Refuted,
}

impl Seal {
    /// The header form for reading the message, if it differs from the lists.
    #[must_use]
    pub const fn form(self) -> Option<HeaderForm> {
        match self {
            Self::Listed | Self::Perhaps | Self::Refuted => None,
            Self::First | Self::Further => Some(HeaderForm::Integrity),
        }
    }
}

impl Seals {
    /// Examines the next message.
    pub fn look(&mut self, packets: &Packets, from: Side, message: &[u8]) -> Seal {
        if from == Side::Server || packets.patch().is_some_and(|patch| patch.major < FIRST_PATCH) {
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
                self.is_proven = true;
                self.count(counter);
                return Seal::Listed;
            }
            _ => return Seal::Listed,
        };
        let known = self.opcodes.get(&opcode).copied();
        let state = known.map(|known| known.state);
        if state == Some(State::Refuted) {
            return Seal::Listed;
        }
        let rises = known.is_some_and(|known| known.last.checked_add(1) == Some(counter))
            || (self.last > 0 && self.is_next(counter));
        let begins = known.is_none() && counter == 1;
        if (rises || begins) && looks_sealed(definition, message) {
            self.count(counter);
            self.is_proven |= rises;
            let state = match (rises, self.is_proven) {
                (true, _) => State::Found,
                (false, true) => State::Presumed,
                (false, false) => State::Seen,
            };
            let is_further = known.is_some_and(|known| known.state != State::Seen);
            self.opcodes.insert(opcode, Count { last: counter, state });
            return match state {
                State::Seen => Seal::Perhaps,
                _ if is_further => Seal::Further,
                _ => Seal::First,
            };
        }
        let Some(known) = known else { return Seal::Listed };
        self.opcodes.insert(opcode, Count { state: State::Refuted, ..known });
        if !self.is_proven {
            // A false counter must not be the start of a count across opcodes.
            self.last = 0;
        }
        if known.state == State::Seen { Seal::Listed } else { Seal::Refuted }
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
    /// counter was seen to rise.
    pub fn opcodes(&self) -> impl Iterator<Item = u16> + '_ {
        self.of_state(|state| state == State::Found)
    }

    /// The opcodes of messages that may have the header, as far as a single message can tell.
    pub fn perhaps(&self) -> impl Iterator<Item = u16> + '_ {
        self.of_state(|state| matches!(state, State::Seen | State::Presumed))
    }

    fn of_state(&self, is: impl Fn(State) -> bool) -> impl Iterator<Item = u16> {
        self.opcodes.iter().filter(move |(_, count)| is(count.state)).map(|(opcode, _)| *opcode)
    }
}

/// Whether a message fits its definition with an integrity header, but not without.
pub(super) fn looks_sealed(definition: &Definition, message: &[u8]) -> bool {
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
    use crate::file::library::Known;
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
        Packets::new(&library, Known { revision: Some(7), patch, ..Known::default() })
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
    fn looks<const N: usize>(
        packets: &Packets,
        seals: &mut Seals,
        messages: [(u16, u32); N],
    ) -> [Seal; N] {
        messages.map(|(opcode, counter)| {
            let integrity = Some(Integrity { counter, checksum: 0xdead_beef });
            seals.look(packets, Side::Client, &message(packets, opcode, integrity))
        })
    }

    #[test]
    fn a_rising_counter_is_detected() {
        let (packets, mut seals) = (packets(), Seals::default());
        let mut signer = Signer::new(Some(99));
        for wanted in [Seal::Perhaps, Seal::First, Seal::Further] {
            assert_eq!(seals.opcodes().count(), usize::from(wanted == Seal::Further));
            let mut bytes = message(&packets, 5, Some(Integrity::default()));
            assert!(signer.sign(&mut bytes));
            assert_eq!(seals.look(&packets, Side::Client, &bytes), wanted);
            assert_eq!(seals.look(&packets, Side::Server, &bytes), Seal::Listed);
            let plain = message(&packets, 6, None);
            assert_eq!(seals.look(&packets, Side::Client, &plain), Seal::Listed);
        }
        assert_eq!(seals.opcodes().collect::<Vec<_>>(), [5]);
        assert_eq!(seals.perhaps().count(), 0);
    }

    #[test]
    fn a_counter_across_opcodes_is_detected() {
        let (packets, mut seals) = (packets(), Seals::default());
        let found = looks(&packets, &mut seals, [(5, 1), (6, 2), (6, 3)]);
        assert_eq!(found, [Seal::Perhaps, Seal::First, Seal::Further]);
        // Two messages without a definition were sent in between.
        let found = looks(&packets, &mut seals, [(5, 6), (6, 7)]);
        assert_eq!(found, [Seal::First, Seal::Further]);
    }

    /// A layout that grew by 8 bytes, whose first field happens to be 1 at first.
    #[test]
    fn a_counter_that_does_not_rise_is_ignored() {
        let (packets, mut seals) = (packets(), Seals::default());
        assert_eq!(looks(&packets, &mut seals, [(6, 1)]), [Seal::Perhaps]);
        assert_eq!(seals.perhaps().collect::<Vec<_>>(), [6]);
        let found = looks(&packets, &mut seals, [(6, 1), (6, 1), (6, 2)]);
        assert_eq!(found, [Seal::Listed; 3]);
        assert_eq!((seals.opcodes().count(), seals.perhaps().count()), (0, 0));
    }

    #[test]
    fn a_presumed_header_is_revoked() {
        let (packets, mut seals) = (packets(), Seals::default());
        let found = looks(&packets, &mut seals, [(5, 1), (5, 2), (6, 1), (6, 1), (6, 2), (5, 3)]);
        let wanted =
            [Seal::Perhaps, Seal::First, Seal::First, Seal::Refuted, Seal::Listed, Seal::Further];
        assert_eq!(found, wanted);
        assert_eq!(seals.opcodes().collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn old_clients_do_not_use_counters() {
        for (patch, wanted) in [
            (Patch::major(91), [Seal::Listed; 2]),
            (Patch::major(92), [Seal::Perhaps, Seal::First]),
        ] {
            let packets = packets_at(Some(patch));
            let found = looks(&packets, &mut Seals::default(), [(6, 1), (6, 2)]);
            assert_eq!(found, wanted, "{patch}");
        }
    }
}
