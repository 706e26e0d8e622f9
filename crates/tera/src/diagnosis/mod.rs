//! Explains why messages of a build could not be decoded: opcodes without names, names without
//! definitions, and definitions for other patches.

mod finding;

use core::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use worldwire_core::Side;

use crate::file::library::sender;
use crate::file::{Deprecated, NameList};
use crate::frame::Header;
use crate::integrity;
use crate::message::{HeaderForm, NoteKind, Notes};
use crate::packet::{Detection, IntegrityDetector, Packets};
use crate::rank::Ranking;
use crate::schema::diff::diff;
use crate::schema::{Definition, Plan};
pub use finding::{Better, Finding};

/// Maximum number of messages kept per opcode, to try other versions on.
const MAX_KEPT: usize = 32;

/// Examines the messages of a build.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    packets: Arc<Packets>,
    opcodes: BTreeMap<u16, OpcodeStats>,
    detectors: BTreeMap<u64, IntegrityDetector>,
}

/// The observations about an opcode.
#[derive(Clone, Debug)]
struct OpcodeStats {
    from: Side,
    count: u64,
    /// Messages from the side that should not send them, judging by the name.
    crossed: u64,
    failed: u64,
    /// Messages with trailing bytes, or with bodies in other positions.
    odd: u64,
    /// The number of these messages that have unused bytes.
    gaps: u64,
    /// Messages on the integrity list that fit their definition only without the counter and
    /// checksum.
    unsealed: u64,
    /// The first decoding error.
    error: Option<String>,
    /// Some of the messages, and whether each is suspect; suspect ones displace others.
    kept: Vec<(bool, Box<[u8]>)>,
    /// For each conversation, what the first message that may have a counter and checksum was
    /// counted as.
    held: BTreeMap<u64, Counted>,
    /// Some client messages without a name, in order, with their conversations.
    unnamed: Vec<(u64, Box<[u8]>)>,
}

/// Maximum number of unnamed opcodes that are tried. Maps name some 100 client messages per build.
const MAX_UNNAMED: usize = 512;

/// What a suspect message was counted as.
#[derive(Clone, Copy, Debug)]
struct Counted {
    is_failed: bool,
    has_gaps: bool,
}

impl Diagnosis {
    /// Starts to examine the messages of a build.
    #[must_use]
    pub fn new(packets: Arc<Packets>) -> Self {
        Self { packets, opcodes: BTreeMap::new(), detectors: BTreeMap::new() }
    }

    /// The build's packets.
    #[must_use]
    pub fn packets(&self) -> &Packets {
        &self.packets
    }

    /// Examines the next message of a conversation.
    pub fn push(&mut self, conversation: u64, from: Side, message: &[u8]) {
        let Ok(Some(Header { opcode, .. })) = Header::peek(message) else { return };
        let seen = self.opcodes.entry(opcode).or_insert_with(|| OpcodeStats {
            from,
            count: 0,
            crossed: 0,
            failed: 0,
            odd: 0,
            gaps: 0,
            unsealed: 0,
            error: None,
            kept: Vec::new(),
            held: BTreeMap::new(),
            unnamed: Vec::new(),
        });
        seen.count += 1;
        let Some(packet) = self.packets.get(opcode) else {
            if from == Side::Client && seen.unnamed.len() < MAX_KEPT {
                seen.unnamed.push((conversation, message.into()));
            }
            return;
        };
        if sender(packet.name).is_some_and(|side| side != from) {
            // This is not the message that its name indicates, so the name's definitions do not
            // apply.
            seen.crossed += 1;
            return;
        }
        let Some(definition) = packet.definition else { return };
        let detectors = self.detectors.entry(conversation).or_default();
        let detection = detectors.push(&self.packets, from, message);
        if detection == Detection::First
            && let Some(counted) = seen.held.remove(&conversation)
        {
            seen.take_back(counted, definition);
        }
        let form = detection.form().unwrap_or(packet.form);
        let mut counted = Counted { is_failed: false, has_gaps: false };
        let odd = match definition.plan().check(message, form) {
            Ok(notes) => {
                counted.has_gaps = has_gaps(definition.plan(), message, form, &notes);
                seen.gaps += u64::from(counted.has_gaps);
                seen.odd += u64::from(is_odd(&notes));
                is_odd(&notes)
            }
            Err(error) => {
                counted.is_failed = true;
                seen.failed += 1;
                seen.error.get_or_insert_with(|| {
                    let text = error.to_string();
                    // The finding already names the definition.
                    let rest = text.strip_prefix(definition.title());
                    let rest = rest.and_then(|rest| rest.strip_prefix(": ")).map(str::to_owned);
                    rest.unwrap_or(text)
                });
                true
            }
        };
        if odd && packet.form == HeaderForm::Integrity {
            seen.unsealed += u64::from(fits(definition, message, HeaderForm::Plain));
        }
        if detection == Detection::Possible {
            seen.held.insert(conversation, counted);
        }
        if seen.kept.len() < MAX_KEPT {
            seen.kept.push((odd, message.into()));
        } else if let (true, Some(place)) = (odd, seen.kept.iter_mut().find(|(odd, _)| !odd)) {
            *place = (true, message.into());
        }
    }

    /// The findings, opcode by opcode.
    #[must_use]
    pub fn findings(&self, rules: &Deprecated) -> Vec<Finding> {
        let mut findings = Vec::new();
        if !self.packets.has_map() {
            findings.push(Finding::NoMap { revision: self.packets.known().revision });
        }
        let is_open = |name: &str| {
            let opcode = self.packets.opcode(name);
            opcode.is_some_and(|opcode| self.packets.unused_list(opcode).is_some())
        };
        let names = self.names(IntegrityDetector::opcodes);
        let names: Vec<Box<str>> =
            names.iter().filter(|name| !is_open(name)).map(Box::from).collect();
        if !names.is_empty() {
            findings.push(Finding::UnlistedIntegrity { names });
        }
        findings.extend(self.unused_list());
        let names: Vec<Box<str>> = self.unsealed().map(Box::from).collect();
        if !names.is_empty() {
            findings.push(Finding::WrongList { names });
        }
        for (&opcode, seen) in &self.opcodes {
            let OpcodeStats { from, count, crossed, failed, odd, gaps, .. } = *seen;
            let Some(packet) = self.packets.get(opcode) else {
                // The missing map has already been reported.
                if self.packets.has_map() {
                    findings.push(Finding::Unmapped { opcode, from, count });
                }
                continue;
            };
            if crossed > 0 {
                let from = sender(packet.name).map_or(from, Side::other);
                let name = packet.name.into();
                findings.push(Finding::WrongSide { opcode, name, from, count, crossed });
                if crossed == count {
                    continue;
                }
            }
            let Some(definition) = packet.definition else {
                let name = packet.name.into();
                findings.push(match self.packets.versions(packet.name).last() {
                    None => Finding::Undefined { opcode, name, count },
                    Some(newest) => {
                        let version = newest.version();
                        Finding::Deprecated { opcode, name, count, version }
                    }
                });
                continue;
            };
            if seen.is_unsealed() {
                continue;
            }
            let title: Box<str> = definition.title().into();
            let better = match failed + odd {
                0 => None,
                _ => self.better(definition, packet.form, &seen.kept),
            };
            // Some servers write bodies in a different order; that alone is not worth reporting.
            if failed + gaps > 0 || better.is_some() {
                let (title, error, count) = (title.clone(), seen.error.clone(), count - crossed);
                let misfit =
                    Finding::Misfit { opcode, title, count, failed, odd, gaps, error, better };
                findings.push(misfit);
            }
            if let Some(patch) = self.packets.patch()
                && !rules.may_write(definition.name(), definition.version(), patch.major)
            {
                findings.push(Finding::Obsolete { title, patch });
            }
        }
        findings
    }

    /// The names of messages that are on the integrity list although they have no counter and
    /// checksum.
    fn unsealed(&self) -> impl Iterator<Item = &str> {
        let opcodes = self.opcodes.iter().filter(|(_, seen)| seen.is_unsealed());
        opcodes.filter_map(|(opcode, _)| self.packets.get(*opcode)).map(|packet| packet.name)
    }

    /// Reports observed client messages that are on an integrity list that is not in use.
    fn unused_list(&self) -> Option<Finding> {
        let of_client = self.opcodes.iter().filter(|(_, seen)| seen.count > seen.crossed);
        let listed = of_client.filter_map(|(opcode, _)| {
            Some((self.packets.unused_list(*opcode)?, self.packets.get(*opcode)?.name))
        });
        let listed: Vec<(u16, &str)> = listed.collect();
        let patch = listed.iter().map(|(patch, _)| *patch).min()?;
        let mut names: Vec<Box<str>> = listed.into_iter().map(|(_, name)| name.into()).collect();
        names.sort_unstable();
        Some(Finding::UnusedList { patch, names })
    }

    /// The names of all messages with a counter and checksum: those on the build's list unless their
    /// messages have none, and those detected.
    #[must_use]
    pub fn integrity(&self) -> NameList {
        let unsealed: NameList = self.unsealed().collect();
        let listed = self.packets.integrity_names().filter(|name| !unsealed.contains(name));
        listed.chain(self.names(IntegrityDetector::opcodes).iter()).collect()
    }

    /// The names of messages that may have a counter and checksum, although no counter was seen to
    /// rise.
    #[must_use]
    pub fn possible(&self) -> NameList {
        self.names(IntegrityDetector::possible)
    }

    /// The unnamed opcodes whose messages have a counter and checksum, with their number of
    /// messages. Their counter rises, and the definition that [fits](crate::rank) best does so with
    /// the longer header. Lists cannot name them yet. If there are very many, only those with the
    /// most messages are tried.
    #[must_use]
    pub fn unnamed(&self) -> Vec<(u16, u64)> {
        let counting = self.opcodes.iter().filter(|(_, seen)| counts(&seen.unnamed));
        let mut counting: Vec<(&u16, &OpcodeStats)> = counting.collect();
        counting.sort_by_key(|(opcode, seen)| (Reverse(seen.count), **opcode));
        counting.truncate(MAX_UNNAMED);
        counting.sort_by_key(|(opcode, _)| **opcode);
        let sealed = counting.into_iter().filter(|(_, seen)| {
            let mut ranking = Ranking::of(&self.packets);
            for (conversation, message) in &seen.unnamed {
                ranking.push(*conversation, Side::Client, message);
            }
            let best = ranking.finish().into_iter().next();
            best.is_some_and(|best| best.form == HeaderForm::Integrity && best.score > 0.0)
        });
        sealed.map(|(opcode, seen)| (*opcode, seen.count)).collect()
    }

    /// The names of opcodes detected in any conversation.
    fn names<'s, I: Iterator<Item = u16>>(
        &'s self,
        of: impl Fn(&'s IntegrityDetector) -> I,
    ) -> NameList {
        let opcodes = self.detectors.values().flat_map(of);
        opcodes.filter_map(|opcode| self.packets.get(opcode)).map(|packet| packet.name).collect()
    }

    /// The version that reads most of the messages, if it reads more than the one in use.
    fn better(
        &self,
        used: &Definition,
        form: HeaderForm,
        kept: &[(bool, Box<[u8]>)],
    ) -> Option<Better> {
        let fits = |definition: &Definition| {
            kept.iter().filter(|(_, message)| fits(definition, message, form)).count()
        };
        let others = self.packets.versions(used.name()).iter();
        let others = others.filter(|other| other.version() != used.version());
        let (best, max) = others.map(|other| (other, fits(other))).max_by_key(|one| one.1)?;
        (max > fits(used)).then(|| Better {
            title: best.title().into(),
            fits: max,
            of: kept.len(),
            changes: diff(used.lines(), best.lines()),
        })
    }
}

impl OpcodeStats {
    /// Corrects the counts for a suspect message that turned out to have a counter and checksum.
    fn take_back(&mut self, counted: Counted, definition: &Definition) {
        let Counted { is_failed, has_gaps } = counted;
        self.failed -= u64::from(is_failed);
        self.odd -= u64::from(!is_failed);
        self.gaps -= u64::from(has_gaps);
        if self.failed == 0 {
            self.error = None;
        }
        let fits = |message: &[u8]| fits(definition, message, HeaderForm::Integrity);
        self.kept.retain(|(odd, message)| !odd || !fits(message));
    }

    /// Whether all its messages are on the integrity list but have no counter and checksum.
    fn is_unsealed(&self) -> bool {
        self.unsealed > 0 && self.unsealed == self.count - self.crossed
    }
}

/// Whether the possible counters rise in every conversation, and at least once in some
/// conversation.
fn counts(messages: &[(u64, Box<[u8]>)]) -> bool {
    let mut last = BTreeMap::new();
    let mut rises = false;
    for (conversation, message) in messages {
        let Some((counter, _)) = integrity::header(message) else { return false };
        match last.insert(*conversation, counter) {
            Some(before) if before >= counter => return false,
            before => rises |= before.is_some(),
        }
    }
    rises
}

/// Whether a decoded message has unused bytes: after its last body, or elsewhere, so that its
/// fields encode to fewer bytes. Some servers write bodies in a different order from their fields,
/// which alone leaves no gaps.
fn has_gaps(plan: &Plan, message: &[u8], form: HeaderForm, notes: &Notes) -> bool {
    if notes.has(NoteKind::TrailingBytes) || !notes.has(NoteKind::OffsetMismatch) {
        return notes.has(NoteKind::TrailingBytes);
    }
    let Ok(read) = plan.read(message, form) else { return false };
    let mut alone = Vec::with_capacity(message.len());
    let encoded = plan.encode(read.head(), read.fields(), &mut alone);
    encoded.is_ok() && alone.len() < message.len()
}

/// Whether a definition reads a message with this header without gaps or misplaced bodies.
fn fits(definition: &Definition, message: &[u8], form: HeaderForm) -> bool {
    definition.plan().check(message, form).is_ok_and(|notes| !is_odd(&notes))
}

/// Whether a message looks as if it had a different layout.
fn is_odd(notes: &Notes) -> bool {
    notes.has(NoteKind::TrailingBytes) || notes.has(NoteKind::OffsetMismatch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::library::BuildFacts;
    use crate::file::{CodeMap, Library};
    use crate::schema::{ParseOptions, Patch, Set};

    #[test]
    fn everything_missing_is_reported() {
        let files = [
            ("S_A.1.def", "int32 a\n"),
            ("S_A.2.def", "int32 a\nint32 b\n"),
            ("S_B.1.def", "string s\n"),
            ("S_D.1.def", "string s\n"),
            ("S_D.2.def", "string s\nint32 a\n"),
        ];
        let rules = r#"{"S_B": {"1": {"max": 80, "readable": true}}, "S_D": {"1": {}, "2": {}}}"#;
        let mut library = Library {
            definitions: Set::load(files, ParseOptions::default()),
            deprecated: Deprecated::parse("d", rules).0,
            ..Library::default()
        };
        let map = CodeMap::from_pairs([("S_A", 5), ("S_B", 6), ("S_C", 7), ("S_D", 9)]);
        library.add_map("protocol.7.map", map);
        let patch = Some(Patch::major(90));
        let known = BuildFacts { revision: Some(7), patch, ..BuildFacts::default() };
        let mut diagnosis = Diagnosis::new(Arc::new(Packets::new(&library, known)));
        diagnosis.push(0, Side::Server, &[8, 0, 5, 0, 1, 0, 0, 0]);
        diagnosis.push(0, Side::Server, &[8, 0, 5, 0, 2, 0, 0, 0]);
        diagnosis.push(0, Side::Server, &[8, 0, 6, 0, 6, 0, 0, 0]);
        diagnosis.push(0, Side::Server, &[4, 0, 7, 0]);
        diagnosis.push(0, Side::Client, &[4, 0, 8, 0]);
        diagnosis.push(0, Side::Server, &[8, 0, 9, 0, 6, 0, 0, 0]);
        let findings = diagnosis.findings(&library.deprecated);
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "S_A.2 cannot read 2 of 2 messages: b at byte 4: wanted a field within the \
                 message, found 4 of 8 bytes; truncated; S_A.1 fits 2 of 2\n    - int32 b",
                "S_B.1 is outdated at patch 90",
                "S_C (7): 1 message without a definition",
                "8: 1 unnamed message from the client",
                "S_D (9): 1 message, but every version of its definition is deprecated",
            ]
        );
        let none =
            Packets::new(&library, BuildFacts { revision: Some(8), ..BuildFacts::default() });
        let findings = Diagnosis::new(Arc::new(none)).findings(&library.deprecated);
        assert_eq!(findings, [Finding::NoMap { revision: Some(8) }]);
    }

    /// The findings for messages, each with its sender.
    fn findings_of(
        files: &[(&str, &str)],
        map: &[(&str, u32)],
        list: Option<NameList>,
        messages: &[(Side, &[u8])],
    ) -> Vec<String> {
        let mut library = Library {
            definitions: Set::load(files.iter().copied(), ParseOptions::default()),
            ..Library::default()
        };
        library.add_map("protocol.7.map", CodeMap::from_pairs(map.iter().copied()));
        library.integrity.extend(list.map(|list| (98, list)));
        let known = BuildFacts { revision: Some(7), ..BuildFacts::default() };
        let mut diagnosis = Diagnosis::new(Arc::new(Packets::new(&library, known)));
        for (from, message) in messages {
            diagnosis.push(0, *from, message);
        }
        let findings = diagnosis.findings(&library.deprecated);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn gaps_are_reported_however_rare_they_are() {
        let files = [("S_A.1.def", "int32 a\n"), ("S_B.1.def", "string s\nstring t\n")];
        let map = [("S_A", 5), ("S_B", 6)];
        let whole: &[u8] = &[8, 0, 5, 0, 1, 0, 0, 0];
        let longer: &[u8] = &[10, 0, 5, 0, 1, 0, 0, 0, 9, 9];
        let mut messages = vec![(Side::Server, whole); 9];
        messages.push((Side::Server, longer));
        // Two unused bytes before the first text; then both texts in reverse order, which is not a
        // gap.
        let gap: &[u8] = &[14, 0, 6, 0, 10, 0, 12, 0, 9, 9, 0, 0, 0, 0];
        let swapped: &[u8] = &[12, 0, 6, 0, 10, 0, 8, 0, 0, 0, 0, 0];
        messages.extend([(Side::Server, gap), (Side::Server, swapped)]);
        let lines = findings_of(&files, &map, None, &messages);
        let wanted =
            ["S_A.1 leaves gaps in 1 of 10 messages", "S_B.1 leaves gaps in 1 of 2 messages"];
        assert_eq!(lines, wanted);
        assert_eq!(findings_of(&files, &map, None, &[(Side::Server, swapped)]), [""; 0]);
        // Once another message cannot be decoded, the gaps are reported too.
        messages.push((Side::Server, &[6, 0, 5, 0, 1, 0]));
        let lines = findings_of(&files, &map, None, &messages);
        let begin = "S_A.1 cannot read 1 of 11 messages, and leaves gaps in 1: a at byte 4";
        assert!(lines[0].starts_with(begin), "{lines:?}");
    }

    #[test]
    fn messages_from_the_wrong_side_are_counted() {
        let files = [("C_A.1.def", "int32 a\n"), ("S_B.1.def", "string s\n")];
        let map = [("C_A", 5), ("S_B", 6), ("I_C", 7)];
        let a: &[u8] = &[8, 0, 5, 0, 1, 0, 0, 0];
        let b: &[u8] = &[4, 0, 6, 0];
        let c: &[u8] = &[4, 0, 7, 0];
        let sent = |all: &[(Side, &[u8])]| findings_of(&files, &map, None, all);
        assert_eq!(sent(&[(Side::Client, a)]), [""; 0]);
        let lines =
            sent(&[(Side::Client, a), (Side::Server, a), (Side::Client, b), (Side::Client, b)]);
        let wanted = [
            "C_A (5): 1 of 2 messages sent by the server, which never sends messages of that name",
            "S_B (6): 2 messages sent by the client, which never sends messages of that name",
        ];
        assert_eq!(lines, wanted);
        // The name of this one does not reveal its sender.
        let wanted = ["I_C (7): 2 messages without a definition"];
        assert_eq!(sent(&[(Side::Client, c), (Side::Server, c)]), wanted);
    }

    #[test]
    fn an_unused_integrity_list_is_reported() {
        let files = [("C_A.1.def", "int32 a\n"), ("C_B.1.def", "int32 a\n")];
        let map = [("C_A", 5), ("C_B", 6)];
        let list = ["C_A", "C_D"].into_iter().collect::<NameList>();
        let sealed =
            |opcode: u8, counter: u8| [16, 0, opcode, 0, counter, 0, 0, 0, 9, 9, 9, 9, 1, 0, 0, 0];
        let all = [sealed(5, 1), sealed(6, 1), sealed(5, 2), sealed(6, 2)];
        let all: Vec<(Side, &[u8])> = all.iter().map(|one| (Side::Client, &one[..])).collect();
        let wanted = [
            "messages that have counters but are on no integrity list: C_B",
            "C_A is on the integrity list of patch 98, but that list is not used because the \
             client's patch is unknown",
        ];
        assert_eq!(findings_of(&files, &map, Some(list), &all), wanted);
        let wanted = ["messages that have counters but are on no integrity list: C_A, C_B"];
        assert_eq!(findings_of(&files, &map, None, &all), wanted);
    }

    /// The list names a message that has no counter and checksum in this build.
    #[test]
    fn a_wrong_integrity_list_is_suspected() {
        let files = [("C_A.1.def", "int32 a\nint32 b\nint32 c\n"), ("C_B.1.def", "string s\n")];
        let mut library = Library {
            definitions: Set::load(files, ParseOptions::default()),
            ..Library::default()
        };
        library.add_map("protocol.7.map", CodeMap::from_pairs([("C_A", 5), ("C_B", 6)]));
        library.integrity.insert(92, ["C_A", "C_B", "C_C"].into_iter().collect());
        let patch = Some(Patch::major(98));
        let known = BuildFacts { revision: Some(7), patch, ..BuildFacts::default() };
        let mut diagnosis = Diagnosis::new(Arc::new(Packets::new(&library, known)));
        let plain = [16, 0, 5, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
        let sealed = [18, 0, 6, 0, 1, 0, 0, 0, 9, 9, 9, 9, 14, 0, b'E', 0, 0, 0];
        for message in [&plain[..], &sealed, &plain] {
            diagnosis.push(0, Side::Client, message);
        }
        let findings = diagnosis.findings(&library.deprecated);
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        let wanted = "C_A is on the integrity list, but has no counter and checksum";
        assert_eq!(lines, [wanted]);
        assert_eq!(diagnosis.integrity(), ["C_B"].into_iter().collect());
    }

    /// They fit a definition with the longer header, and their counter rises.
    #[test]
    fn counters_in_unnamed_messages_are_found_by_opcode() {
        let library = Library {
            definitions: Set::load([("C_A.1.def", "string s\n")], ParseOptions::default()),
            ..Library::default()
        };
        let unnamed = |patch: u16, messages: &[(u64, u16, u8)]| {
            let known = BuildFacts { patch: Some(Patch::major(patch)), ..BuildFacts::default() };
            let mut diagnosis = Diagnosis::new(Arc::new(Packets::new(&library, known)));
            for (conversation, opcode, counter) in messages {
                let [low, high] = opcode.to_le_bytes();
                let message =
                    [18, 0, low, high, *counter, 0, 0, 0, 9, 9, 9, 9, 14, 0, b'E', 0, 0, 0];
                diagnosis.push(*conversation, Side::Client, &message);
            }
            diagnosis.unnamed()
        };
        let messages = [(0, 7, 1), (0, 8, 1), (1, 7, 1), (0, 7, 2), (0, 8, 1), (0, 9, 1)];
        assert_eq!(unnamed(98, &messages), [(7, 3)]);
        // Clients of this build do not use counters.
        assert_eq!(unnamed(91, &messages), []);
        // One message per conversation has no counter to compare.
        assert_eq!(unnamed(98, &[(0, 7, 1), (1, 7, 1)]), []);
    }
}
