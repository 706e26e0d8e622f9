//! Why messages of a build could not be decoded: opcodes without a name, names without a
//! definition, definitions of another patch.

use core::cmp::Reverse;
use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use worldwire_core::Side;

use crate::file::{Deprecated, NameList};
use crate::frame::Header;
use crate::integrity;
use crate::message::{HeaderForm, NoteKind, Oddities};
use crate::packet::{Packets, Seal, Seals};
use crate::rank::Ranking;
use crate::schema::diff::{Change, diff};
use crate::schema::{Definition, Patch};

/// Messages of an opcode that are kept to try other versions on.
const MOST_KEPT: usize = 32;

/// Looks at the messages of a build.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    packets: Arc<Packets>,
    opcodes: BTreeMap<u16, Seen>,
    seals: BTreeMap<u64, Seals>,
}

/// What was seen of an opcode.
#[derive(Clone, Debug)]
struct Seen {
    from: Side,
    count: u64,
    failed: u64,
    /// Messages with bytes behind the last body, or bodies in other places.
    odd: u64,
    /// Those of them with bytes behind the last body.
    trailing: u64,
    /// Why the first message that could not be read could not.
    error: Option<String>,
    /// Some of the messages; those that fail push out those that do not.
    kept: Vec<(bool, Box<[u8]>)>,
    /// How the first message of a conversation was counted that may have counter and checksum.
    held: BTreeMap<u64, Counted>,
    /// Some of a client's messages without a name, with their conversations, in their order.
    unnamed: Vec<(u64, Box<[u8]>)>,
}

/// How many opcodes without a name are tried. Maps of builds name some 100 of clients.
const MOST_UNNAMED: usize = 512;

/// How a message was counted that does not fit.
#[derive(Clone, Copy, Debug)]
struct Counted {
    is_failed: bool,
    is_trailing: bool,
}

/// Something that is missing or does not fit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// There is no map of opcodes for the build, so its messages have no names.
    NoMap {
        /// The build, if it was named.
        revision: Option<u32>,
    },
    /// The map has no name for an opcode.
    Unmapped {
        /// The opcode.
        opcode: u16,
        /// Who sends it.
        from: Side,
        /// How many messages.
        count: u64,
    },
    /// A message has no definition.
    Undefined {
        /// The opcode.
        opcode: u16,
        /// The message's name.
        name: Box<str>,
        /// How many messages.
        count: u64,
    },
    /// A message has definitions, but all of them are deprecated at the patch of the build, and
    /// none is good for reading.
    Deprecated {
        /// The opcode.
        opcode: u16,
        /// The message's name.
        name: Box<str>,
        /// How many messages.
        count: u64,
        /// The newest version.
        version: u32,
    },
    /// Client messages have counter and checksum, and no list names them.
    Sealed {
        /// Their names.
        names: Vec<Box<str>>,
    },
    /// The definition cannot read all messages, or they look as if they had another layout.
    Misfit {
        /// The opcode.
        opcode: u16,
        /// Name and version of the definition.
        title: Box<str>,
        /// How many messages.
        count: u64,
        /// How many of them it cannot read.
        failed: u64,
        /// How many have bytes behind the last body, or bodies that do not stand where the one
        /// before them ends.
        odd: u64,
        /// Why the first one cannot be read.
        error: Option<String>,
        /// The version that does better, if there is one.
        better: Option<Better>,
    },
    /// The definition is good for reading, but outdated at the patch of the build.
    Obsolete {
        /// Name and version of the definition.
        title: Box<str>,
        /// The patch.
        patch: Patch,
    },
}

/// Another version of a definition that fits better.
#[derive(Clone, Debug, PartialEq)]
pub struct Better {
    /// Its name and version.
    pub title: Box<str>,
    /// How many of the messages that were kept it reads, each body where it should be.
    pub fits: usize,
    /// How many were kept.
    pub of: usize,
    /// How its layout differs from that of the definition in use.
    pub changes: Vec<Change>,
}

impl Diagnosis {
    /// Begins to look at the messages of a build.
    #[must_use]
    pub fn new(packets: Arc<Packets>) -> Self {
        Self { packets, opcodes: BTreeMap::new(), seals: BTreeMap::new() }
    }

    /// Looks at the next message of a conversation, which has some number.
    pub fn look(&mut self, conversation: u64, from: Side, message: &[u8]) {
        let Ok(Some(Header { opcode, .. })) = Header::peek(message) else { return };
        let seen = self.opcodes.entry(opcode).or_insert_with(|| Seen {
            from,
            count: 0,
            failed: 0,
            odd: 0,
            trailing: 0,
            error: None,
            kept: Vec::new(),
            held: BTreeMap::new(),
            unnamed: Vec::new(),
        });
        seen.count += 1;
        let Some(packet) = self.packets.get(opcode) else {
            if from == Side::Client && seen.unnamed.len() < MOST_KEPT {
                seen.unnamed.push((conversation, message.into()));
            }
            return;
        };
        let Some(definition) = packet.definition else { return };
        let seals = self.seals.entry(conversation).or_default();
        let seal = seals.look(&self.packets, from, message);
        if seal == Seal::First
            && let Some(counted) = seen.held.remove(&conversation)
        {
            seen.take_back(counted, definition);
        }
        let form = seal.form().unwrap_or(packet.form);
        let mut counted = Counted { is_failed: false, is_trailing: false };
        let odd = match definition.plan().check(message, form) {
            Ok(notes) => {
                counted.is_trailing = notes.has(NoteKind::TrailingBytes);
                seen.trailing += u64::from(counted.is_trailing);
                seen.odd += u64::from(is_odd(&notes));
                is_odd(&notes)
            }
            Err(error) => {
                counted.is_failed = true;
                seen.failed += 1;
                seen.error.get_or_insert_with(|| error.to_string());
                true
            }
        };
        if seal == Seal::Perhaps {
            seen.held.insert(conversation, counted);
        }
        if seen.kept.len() < MOST_KEPT {
            seen.kept.push((odd, message.into()));
        } else if let (true, Some(place)) = (odd, seen.kept.iter_mut().find(|(odd, _)| !odd)) {
            *place = (true, message.into());
        }
    }

    /// What there is to say, opcode by opcode.
    #[must_use]
    pub fn findings(&self, rules: &Deprecated) -> Vec<Finding> {
        let mut findings = Vec::new();
        if !self.packets.has_map() {
            findings.push(Finding::NoMap { revision: self.packets.known().revision });
        }
        let names = self.names(Seals::opcodes);
        if names.iter().len() > 0 {
            findings.push(Finding::Sealed { names: names.iter().map(Box::from).collect() });
        }
        for (&opcode, seen) in &self.opcodes {
            let Seen { from, count, failed, odd, trailing, .. } = *seen;
            let Some(packet) = self.packets.get(opcode) else {
                // Without a map that is said once, for all of them.
                if self.packets.has_map() {
                    findings.push(Finding::Unmapped { opcode, from, count });
                }
                continue;
            };
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
            let title: Box<str> = definition.title().into();
            let better = match failed + odd {
                0 => None,
                _ => self.better(definition, packet.form, &seen.kept),
            };
            // Bodies in other places alone are a way of some servers.
            if failed + trailing > 0 || better.is_some() {
                let (title, error) = (title.clone(), seen.error.clone());
                findings.push(Finding::Misfit { opcode, title, count, failed, odd, error, better });
            }
            if let Some(patch) = self.packets.patch()
                && !rules.may_write(definition.name(), definition.version(), patch.major)
            {
                findings.push(Finding::Obsolete { title, patch });
            }
        }
        findings
    }

    /// The names of all messages that have counter and checksum: those of the build's list, and
    /// those that were found to.
    #[must_use]
    pub fn integrity(&self) -> NameList {
        let listed = self.packets.sealed();
        listed.chain(self.names(Seals::opcodes).iter()).collect()
    }

    /// The names of messages that may have counter and checksum, though no counter was seen to
    /// rise.
    #[must_use]
    pub fn perhaps(&self) -> NameList {
        self.names(Seals::perhaps)
    }

    /// The opcodes without a name whose messages have counter and checksum, and how many messages
    /// there are: their counter rises, and what [fits](crate::rank) them best does so behind the
    /// longer header. No list can hold them before they have names. Of very many opcodes those with the
    /// most messages are tried.
    #[must_use]
    pub fn unnamed(&self) -> Vec<(u16, u64)> {
        let counting = self.opcodes.iter().filter(|(_, seen)| counts(&seen.unnamed));
        let mut counting: Vec<(&u16, &Seen)> = counting.collect();
        counting.sort_by_key(|(opcode, seen)| (Reverse(seen.count), **opcode));
        counting.truncate(MOST_UNNAMED);
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

    /// The names of opcodes that were found in any conversation.
    fn names<'s, I: Iterator<Item = u16>>(&'s self, of: impl Fn(&'s Seals) -> I) -> NameList {
        let opcodes = self.seals.values().flat_map(of);
        opcodes.filter_map(|opcode| self.packets.get(opcode)).map(|packet| packet.name).collect()
    }

    /// The version that reads most of the messages, if that is more than the one in use does.
    fn better(
        &self,
        used: &Definition,
        form: HeaderForm,
        kept: &[(bool, Box<[u8]>)],
    ) -> Option<Better> {
        let fits = |definition: &Definition| {
            let whole = |message: &[u8]| {
                let checked = definition.plan().check(message, form);
                checked.is_ok_and(|notes| !is_odd(&notes))
            };
            kept.iter().filter(|(_, message)| whole(message)).count()
        };
        let others = self.packets.versions(used.name()).iter();
        let others = others.filter(|other| other.version() != used.version());
        let (best, most) = others.map(|other| (other, fits(other))).max_by_key(|one| one.1)?;
        (most > fits(used)).then(|| Better {
            title: best.title().into(),
            fits: most,
            of: kept.len(),
            changes: diff(used.lines(), best.lines()),
        })
    }
}

impl Seen {
    /// A message that did not fit has counter and checksum, and fits with those.
    fn take_back(&mut self, counted: Counted, definition: &Definition) {
        let Counted { is_failed, is_trailing } = counted;
        self.failed -= u64::from(is_failed);
        self.odd -= u64::from(!is_failed);
        self.trailing -= u64::from(is_trailing);
        if self.failed == 0 {
            self.error = None;
        }
        let fits = |message: &[u8]| {
            let checked = definition.plan().check(message, HeaderForm::Integrity);
            checked.is_ok_and(|notes| !is_odd(&notes))
        };
        self.kept.retain(|(odd, message)| !odd || !fits(message));
    }
}

/// Whether what may be the counters of messages rises in every conversation, and in one of them at
/// least once.
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

/// Whether a message looks as if it had another layout.
fn is_odd(notes: &Oddities) -> bool {
    notes.has(NoteKind::TrailingBytes) || notes.has(NoteKind::OffsetMismatch)
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        match self {
            Self::NoMap { revision: Some(revision) } => {
                write!(f, "no map of opcodes for revision {revision} (protocol.{revision}.map)")
            }
            Self::NoMap { revision: None } => f.write_str("no map of opcodes"),
            Self::Unmapped { opcode, from, count } => {
                write!(
                    f,
                    "{opcode}: {count} message{} of the {from} without a name",
                    plural(*count)
                )
            }
            Self::Undefined { opcode, name, count } => {
                let plural = plural(*count);
                write!(f, "{name} ({opcode}): {count} message{plural} without a definition")
            }
            Self::Deprecated { opcode, name, count, .. } => {
                let plural = plural(*count);
                write!(
                    f,
                    "{name} ({opcode}): {count} message{plural}, and every version of its \
                     definition is deprecated"
                )
            }
            Self::Sealed { names } => {
                let names = names.join(", ");
                write!(f, "the client counts messages that no integrity list names: {names}")
            }
            Self::Misfit { title, count, failed, odd, error, better, .. } => {
                if let (1.., Some(error)) = (*failed, error) {
                    let plural = plural(*count);
                    write!(f, "{title} cannot read {failed} of {count} message{plural}: {error}")?;
                } else {
                    let plural = plural(*count);
                    write!(f, "{title} leaves gaps in {odd} of {count} message{plural}")?;
                }
                let Some(Better { title, fits, of, changes }) = better else { return Ok(()) };
                write!(f, "; {title} fits {fits} of {of}")?;
                for change in changes {
                    write!(f, "\n    {change}")?;
                }
                Ok(())
            }
            Self::Obsolete { title, patch } => write!(f, "{title} is outdated at patch {patch}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::library::Known;
    use crate::file::{CodeMap, Library};
    use crate::schema::{ParseOptions, Set};

    #[test]
    fn everything_that_is_missing_is_named() {
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
        let known = Known { revision: Some(7), patch, ..Known::default() };
        let mut diagnosis = Diagnosis::new(Arc::new(Packets::new(&library, known)));
        diagnosis.look(0, Side::Server, &[8, 0, 5, 0, 1, 0, 0, 0]);
        diagnosis.look(0, Side::Server, &[8, 0, 5, 0, 2, 0, 0, 0]);
        diagnosis.look(0, Side::Server, &[8, 0, 6, 0, 6, 0, 0, 0]);
        diagnosis.look(0, Side::Server, &[4, 0, 7, 0]);
        diagnosis.look(0, Side::Client, &[4, 0, 8, 0]);
        diagnosis.look(0, Side::Server, &[8, 0, 9, 0, 6, 0, 0, 0]);
        let findings = diagnosis.findings(&library.deprecated);
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "S_A.2 cannot read 2 of 2 messages: b at byte 4: wanted a field within the \
                 message, found 4 of 8 bytes; truncated; S_A.1 fits 2 of 2\n    - int32 b",
                "S_B.1 is outdated at patch 90",
                "S_C (7): 1 message without a definition",
                "8: 1 message of the client without a name",
                "S_D (9): 1 message, and every version of its definition is deprecated",
            ]
        );
        let none = Packets::new(&library, Known { revision: Some(8), ..Known::default() });
        let findings = Diagnosis::new(Arc::new(none)).findings(&library.deprecated);
        assert_eq!(findings, [Finding::NoMap { revision: Some(8) }]);
    }

    /// With the longer header they fit a definition, and they are counted.
    #[test]
    fn what_counts_without_a_name_is_found_by_its_opcode() {
        let library = Library {
            definitions: Set::load([("C_A.1.def", "string s\n")], ParseOptions::default()),
            ..Library::default()
        };
        let unnamed = |patch: u16, messages: &[(u64, u16, u8)]| {
            let known = Known { patch: Some(Patch::major(patch)), ..Known::default() };
            let mut diagnosis = Diagnosis::new(Arc::new(Packets::new(&library, known)));
            for (conversation, opcode, counter) in messages {
                let [low, high] = opcode.to_le_bytes();
                let message =
                    [18, 0, low, high, *counter, 0, 0, 0, 9, 9, 9, 9, 14, 0, b'E', 0, 0, 0];
                diagnosis.look(*conversation, Side::Client, &message);
            }
            diagnosis.unnamed()
        };
        let messages = [(0, 7, 1), (0, 8, 1), (1, 7, 1), (0, 7, 2), (0, 8, 1), (0, 9, 1)];
        assert_eq!(unnamed(98, &messages), [(7, 3)]);
        // The clients of this build do not count.
        assert_eq!(unnamed(91, &messages), []);
        // Once in each conversation, nothing counts.
        assert_eq!(unnamed(98, &[(0, 7, 1), (1, 7, 1)]), []);
    }
}
