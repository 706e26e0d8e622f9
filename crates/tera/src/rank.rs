//! Finds the definition of an unknown opcode.
//!
//! Opcodes change with every build of the client. A [`Ranking`] tries every definition on every
//! message of an unknown opcode and scores how well it fits.
//!
//! If a message is just a few numbers, a fit proves little. If it has texts and lists, a fit proves
//! a lot, because each of their offsets must point to the right byte. The evidence is weighted:
//!
//! | evidence | weight |
//! | --- | --- |
//! | a message that cannot be read | -30 |
//! | a message whose last body ends with it | +8 |
//! | bytes after the last body | -10, and -1 for each of them, at most -30 |
//! | a body that does not begin where the one before it ends, or another deviation | -5 |
//! | a text: its offset; each printable character, at most 16; each unprintable one | +6; +1; -4 |
//! | a byte string: its offset | +6 |
//! | an empty list; each element of a list, at most 8 | +4; +10 |
//! | a boolean that is 0; 1; anything else | +0.5; +2; -8 |
//! | a float that is 0; of a size that games use; of another size | 0; +3; -6 |
//! | a signed 32-bit number that is small; one that is not | +1; -1 |
//! | read with a counter and checksum: a counter that is one more than the last; a first counter of 1; a counter of 0, or one that does not rise | +6; +2; -8 |
//!
//! Client messages are read with both header forms: 4 bytes, and 12 bytes with a
//! [counter and checksum](crate::integrity). Each definition keeps the form that scores higher.
//! Eight extra bytes alone prove nothing, since a longer layout looks the same, but the counter
//! does from the second message on.
//!
//! The weights were chosen by hand. They order candidates; they are not probabilities.
//!
//! ```
//! use worldwire_core::Side;
//! use worldwire_tera::rank::Ranking;
//! use worldwire_tera::schema::{ParseOptions, Set};
//!
//! let files = [("S_HP.1.def", "int32 hp\n"), ("S_NAME.1.def", "string name\n")];
//! let set = Set::load(files, ParseOptions::default());
//! let mut ranking = Ranking::new(set.definitions());
//! ranking.push(0, Side::Server, &[12, 0, 0x39, 0x30, 6, 0, b'E', 0, b'l', 0, 0, 0]);
//! let best = &ranking.finish()[0];
//! assert_eq!((best.definition.title(), best.fits, best.clean), ("S_NAME.1", 1, 1));
//! ```

use std::collections::BTreeMap;

use worldwire_core::Side;

use crate::file::library::sender;
use crate::integrity;
use crate::message::{Group, Head, HeaderForm, Leaf, NoteKind, Notes, Sink, run_fields};
use crate::packet::Packets;
use crate::schema::Definition;
use crate::schema::plan::{Fixed, Plan};
use crate::types::Scalar;

/// Tries definitions on the messages of one opcode.
#[derive(Clone, Debug)]
pub struct Ranking<'p> {
    attempts: Vec<Attempt<'p>>,
    messages: u64,
    shortest: usize,
    longest: usize,
    /// The possible counter of the last message, for each conversation.
    counters: BTreeMap<u64, u32>,
}

/// A definition with a header form, and its results so far.
#[derive(Clone, Debug)]
struct Attempt<'p> {
    definition: &'p Definition,
    form: HeaderForm,
    fits: u64,
    clean: u64,
    weight: f64,
    notes: Vec<(NoteKind, u64)>,
    error: Option<String>,
}

/// How well a definition fits.
#[derive(Clone, Debug)]
pub struct Candidate<'p> {
    /// The definition.
    pub definition: &'p Definition,
    /// The header form that the messages have if this definition is right.
    pub form: HeaderForm,
    /// The number of messages that it can read.
    pub fits: u64,
    /// The number of those that are canonical.
    pub clean: u64,
    /// The average evidence per message.
    pub score: f64,
    /// The kinds of deviations, and the number of messages in which each occurs.
    pub notes: Vec<(NoteKind, u64)>,
    /// The error of the first message that it cannot read.
    pub error: Option<String>,
}

/// Scores that differ by less are ties.
pub const TIE: f64 = 0.05;

impl Candidate<'_> {
    /// The score with one decimal digit, as output shows it; never negative zero.
    #[must_use]
    pub fn shown_score(&self) -> f64 {
        (self.score * 10.0).round() / 10.0 + 0.0
    }

    /// Whether nothing in the messages distinguishes two candidates.
    #[must_use]
    pub fn ties_with(&self, other: &Candidate<'_>) -> bool {
        (self.score - other.score).abs() < TIE
    }
}

impl<'p> Ranking<'p> {
    /// Starts with the definitions to try.
    pub fn new(definitions: impl IntoIterator<Item = &'p Definition>) -> Self {
        let attempt = |definition, form| Attempt {
            definition,
            form,
            fits: 0,
            clean: 0,
            weight: 0.0,
            notes: Vec::new(),
            error: None,
        };
        let attempts = definitions.into_iter().flat_map(|definition| {
            // Only client messages can have a counter and checksum.
            let sealed = sender(definition.name()) != Some(Side::Server);
            let sealed = sealed.then(|| attempt(definition, HeaderForm::Integrity));
            [Some(attempt(definition, HeaderForm::Plain)), sealed].into_iter().flatten()
        });
        Self {
            attempts: attempts.collect(),
            messages: 0,
            shortest: usize::MAX,
            longest: 0,
            counters: BTreeMap::new(),
        }
    }

    /// Starts with the definitions of a build. Counters are not tried if the build's patch is known
    /// to have none.
    #[must_use]
    pub fn of(packets: &'p Packets) -> Self {
        let mut ranking = Self::new(packets.definitions());
        if packets.patch().is_some_and(|patch| patch.major < integrity::FIRST_PATCH) {
            ranking.attempts.retain(|attempt| attempt.form == HeaderForm::Plain);
        }
        ranking
    }

    /// The number of messages tried.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// The lengths of the shortest and the longest message; `None` without messages.
    #[must_use]
    pub fn lengths(&self) -> Option<(usize, usize)> {
        (self.messages > 0).then_some((self.shortest, self.longest))
    }

    /// Tries all definitions on the next message of a conversation. Definitions of messages from
    /// the other side never fit.
    pub fn push(&mut self, conversation: u64, from: Side, message: &[u8]) {
        let counted = self.count(conversation, message);
        self.messages += 1;
        self.shortest = self.shortest.min(message.len());
        self.longest = self.longest.max(message.len());
        for attempt in &mut self.attempts {
            if sender(attempt.definition.name()).is_some_and(|side| side != from) {
                attempt.weight += UNREADABLE;
                attempt.error.get_or_insert_with(|| "the other side sends this message".to_owned());
            } else if attempt.form == HeaderForm::Integrity && from == Side::Server {
                attempt.weight += UNREADABLE;
            } else {
                let counted = if attempt.form == HeaderForm::Integrity { counted } else { 0.0 };
                attempt.push(message, counted);
            }
        }
    }

    /// The evidence from a possible counter: whether it continues the count.
    fn count(&mut self, conversation: u64, message: &[u8]) -> f64 {
        let Some((counter, _)) = integrity::header(message) else { return 0.0 };
        let last = self.counters.insert(conversation, counter);
        match (last, counter) {
            (None, 1) => 2.0,
            // The capture may have started in the middle.
            (None, 2..SMALL) => 0.0,
            (Some(last), _) if last.checked_add(1) == Some(counter) => 6.0,
            // Messages may be missing, or the count may include other opcodes.
            (Some(last), _) if last < counter && counter - last <= MAX_SKIPPED => 0.0,
            _ => -8.0,
        }
    }

    /// The definitions that fit at least one message, each with its better header form, best first.
    #[must_use]
    pub fn finish(self) -> Vec<Candidate<'p>> {
        let messages = self.messages.max(1);
        let mut candidates: Vec<Candidate<'p>> = Vec::new();
        for attempt in self.attempts {
            let Attempt { definition, form, fits, clean, weight, notes, error } = attempt;
            #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 messages")]
            let score = weight / messages as f64;
            let candidate = Candidate { definition, form, fits, clean, score, notes, error };
            match candidates.last_mut() {
                Some(last) if core::ptr::eq(last.definition, definition) => {
                    if candidate.score > last.score {
                        *last = candidate;
                    }
                }
                _ => candidates.push(candidate),
            }
        }
        candidates.retain(|candidate| candidate.fits > 0);
        candidates.sort_by(|a, b| {
            let newer = b.definition.version().cmp(&a.definition.version());
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.definition.name().cmp(b.definition.name()))
                .then(newer)
        });
        candidates
    }
}

impl Attempt<'_> {
    fn push(&mut self, message: &[u8], counted: f64) {
        let mut judge = Judge { weight: 0.0 };
        let outcome = Head::read(message, self.form)
            .and_then(|_| run_fields(self.definition.plan(), message, self.form, &mut judge));
        match outcome {
            Err(error) => {
                self.weight += UNREADABLE;
                self.error.get_or_insert_with(|| error.to_string());
            }
            Ok(rest) => {
                self.fits += 1;
                self.clean += u64::from(rest.notes.is_empty());
                self.weight += judge.weight + ending(message.len() - rest.end.min(message.len()));
                self.weight += remarks(&rest.notes) + counted;
                for note in rest.notes.list() {
                    if !self.notes.iter().any(|(kind, _)| *kind == note.kind) {
                        self.notes.push((note.kind, 0));
                    }
                }
                for (kind, count) in &mut self.notes {
                    *count += u64::from(rest.notes.has(*kind));
                }
            }
        }
    }
}

const UNREADABLE: f64 = -30.0;
/// Maximum number of counters that may be missing between two messages.
const MAX_SKIPPED: u32 = 1024;
/// Counters and signed numbers below this are small.
const SMALL: u32 = 1 << 24;

/// The evidence from bytes after the last body.
fn ending(left: usize) -> f64 {
    match u32::try_from(left) {
        Ok(0) => 8.0,
        Ok(left) => (-10.0 - f64::from(left)).max(-30.0),
        Err(_) => -30.0,
    }
}

fn remarks(notes: &Notes) -> f64 {
    let odd = |kind| kind != NoteKind::TrailingBytes && kind != NoteKind::BoolNot0Or1;
    let count = notes.list().iter().filter(|note| odd(note.kind)).count();
    -5.0 * f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Weighs decoded fields.
struct Judge {
    weight: f64,
}

impl Judge {
    fn float(&mut self, bits: u32) {
        let value = f32::from_bits(bits);
        self.weight += match value.abs() {
            0.0 => 0.0,
            size if (1e-5..1e8).contains(&size) => 3.0,
            _ => -6.0,
        };
    }

    /// Weighs a fixed-size value; `None` if there are too few bytes.
    fn scalar(&mut self, scalar: Scalar, data: &[u8]) -> Option<()> {
        match scalar {
            Scalar::Bool => {
                self.weight += match data.first()? {
                    0 => 0.5,
                    1 => 2.0,
                    _ => -8.0,
                };
            }
            Scalar::Float => self.float(u32::from_le_bytes(*data.first_chunk()?)),
            Scalar::Vec3 => {
                for word in data.first_chunk::<12>()?.as_chunks().0 {
                    self.float(u32::from_le_bytes(*word));
                }
            }
            Scalar::Int32 => {
                let value = i32::from_le_bytes(*data.first_chunk()?);
                self.weight += if value.unsigned_abs() < SMALL { 1.0 } else { -1.0 };
            }
            _ => {}
        }
        Some(())
    }
}

impl<'d, 'n> Sink<'d, 'n> for Judge {
    fn fixed(&mut self, _: &'n Plan, run: &'n [Fixed], data: &'d [u8], _: usize) {
        for fixed in run {
            let data = data.get(usize::from(fixed.offset)..).unwrap_or_default();
            self.scalar(fixed.scalar, data);
        }
    }

    fn text(&mut self, _: Leaf<'n>, text: &'d [u8], _: usize) {
        const MAX_CHARACTERS: usize = 16;
        self.weight += 6.0;
        let units = text.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
        for unit in units.take(MAX_CHARACTERS) {
            let printable = char::from_u32(unit.into()).is_some_and(|c| !c.is_control())
                && !(0xe000..0xf900).contains(&unit)
                && unit < 0xfff0;
            self.weight += if printable { 1.0 } else { -4.0 };
        }
    }

    fn bytes(&mut self, _: Leaf<'n>, _: &'d [u8], _: usize) {
        self.weight += 6.0;
    }

    fn group<R>(
        &mut self,
        group: Group<'n>,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        const MAX_ELEMENTS: usize = 8;
        self.weight += match group {
            Group::List(_, _, 0) | Group::Row(_) => 4.0,
            Group::List(_, _, count) => {
                10.0 * f64::from(u32::try_from(count.min(MAX_ELEMENTS)).unwrap_or(0))
            }
            Group::Record(..) => 0.0,
        };
        fill(self).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Library;
    use crate::file::library::BuildFacts;
    use crate::message::Head;
    use crate::schema::{ParseOptions, Patch, Set};
    use worldwire_core::Sampler;

    const FILES: [(&str, &str); 7] = [
        ("C_CHAT.1.def", "int32 channel\nstring message\n"),
        ("C_EMPTY.1.def", ""),
        ("S_CHAT.2.def", "string author\nstring message\nint32 channel\nuint64 id\nbool gm\n"),
        ("S_CHAT.1.def", "string author\nstring message\nint32 channel\nuint64 id\n"),
        ("S_MOVE.1.def", "uint64 id\nvec3 from\nvec3 to\nangle w\nbool run\n"),
        ("S_PAIRS.1.def", "uint64 a\nuint64 b\nuint64 c\nuint64 d\nuint16 e\nbyte f\n"),
        ("S_LIST.1.def", "array members\n- uint32 id\n- string name\n"),
    ];

    /// The definition that encoded the messages is found among all others.
    #[test]
    fn the_right_definition_comes_first() {
        let set = Set::load(FILES, ParseOptions::default());
        let mut sampler = Sampler::new(7);
        for definition in set.definitions() {
            let from = sender(definition.name()).unwrap();
            let mut ranking = Ranking::new(set.definitions());
            for _ in 0..20 {
                let fields = definition.plan().sample(&mut sampler);
                let mut message = Vec::new();
                definition.plan().encode(Head::plain(4711), &fields, &mut message).unwrap();
                ranking.push(0, from, &message);
            }
            let candidates = ranking.finish();
            let place = candidates
                .iter()
                .position(|candidate| core::ptr::eq(candidate.definition, definition));
            // Random numbers have no plausible sizes, so a different layout of the same length may
            // score higher.
            let max_place = if definition.name() == "S_MOVE" { 1 } else { 0 };
            assert!(
                place.is_some_and(|place| place <= max_place),
                "{}: {:?} of {candidates:#?}",
                definition.title(),
                place
            );
            let found = &candidates[place.unwrap()];
            assert_eq!((found.fits, found.clean), (20, 20));
        }
    }

    #[test]
    fn counter_and_checksum_are_found() {
        let set = Set::load(FILES, ParseOptions::default());
        let mut ranking = Ranking::new(set.definitions());
        let text = [b'H', 0, b'i', 0, 0, 0];
        let mut message = vec![24, 0, 1, 2, 1, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd, 18, 0, 3, 0, 0, 0];
        message.extend_from_slice(&text);
        ranking.push(0, Side::Client, &message);
        assert_eq!(ranking.lengths(), Some((24, 24)));
        let best = &ranking.finish()[0];
        assert_eq!((best.definition.title(), best.form), ("C_CHAT.1", HeaderForm::Integrity));
    }

    const TURNS: [(&str, &str); 2] =
        [("C_TURN.1.def", "uint32 time\n"), ("C_WALK.1.def", "uint32 a\nuint32 b\nuint32 c\n")];

    /// The best candidate for 16-byte messages: three numbers, or a counter, a checksum and a
    /// number.
    fn first(packets: &Packets, words: &[(u64, u32)]) -> (String, HeaderForm) {
        let mut ranking = Ranking::of(packets);
        for (conversation, word) in words {
            let mut message = vec![16, 0, 1, 2];
            message.extend_from_slice(&word.to_le_bytes());
            message.extend_from_slice(&[0xaa, 0xbb, 0xcc, 0xdd, 9, 0, 0, 0]);
            ranking.push(*conversation, Side::Client, &message);
        }
        let best = &ranking.finish()[0];
        assert_eq!(best.fits, words.len() as u64);
        (best.definition.title().to_owned(), best.form)
    }

    fn build(patch: u16) -> Packets {
        let definitions = Set::load(TURNS, ParseOptions::default());
        let library = Library { definitions, ..Library::default() };
        let patch = Some(Patch::major(patch));
        Packets::new(&library, BuildFacts { patch, ..BuildFacts::default() })
    }

    /// Both definitions read all bytes, each with its own header.
    #[test]
    fn the_counter_distinguishes_the_headers() {
        let sealed = ("C_TURN.1".to_owned(), HeaderForm::Integrity);
        let plain = ("C_WALK.1".to_owned(), HeaderForm::Plain);
        let packets = build(98);
        for counted in [
            &[(0, 1), (0, 2), (0, 3)][..],
            // Two interleaved conversations, one of them already running; then a count across
            // opcodes.
            &[(0, 1), (1, 700), (0, 2), (1, 701), (1, 702), (0, 3)],
            &[(0, 4), (0, 9), (0, 10), (0, 11)],
        ] {
            assert_eq!(first(&packets, counted), sealed, "{counted:?}");
        }
        for not_counted in [
            &[(0, 0), (0, 0)][..],
            &[(0, 1), (0, 1), (0, 1)],
            &[(0, 5), (0, 4), (0, 3)],
            &[(0, 0x4540_0000), (0, 0x4540_8000)],
            &[(0, u32::MAX), (0, 0)],
        ] {
            assert_eq!(first(&packets, not_counted), plain, "{not_counted:?}");
        }
        // Clients of this build do not use counters.
        assert_eq!(first(&build(91), &[(0, 1), (0, 2), (0, 3)]), plain);
    }

    #[test]
    fn scores_are_shown_with_one_digit() {
        let set = Set::load(FILES, ParseOptions::default());
        let candidate = |score| Candidate {
            definition: set.definitions().next().unwrap(),
            form: HeaderForm::Plain,
            fits: 1,
            clean: 1,
            score,
            notes: Vec::new(),
            error: None,
        };
        let cases =
            [(0.25, "0.3"), (-0.25, "-0.3"), (55.45, "55.5"), (-0.04, "0.0"), (12.0, "12.0")];
        for (score, wanted) in cases {
            assert_eq!(format!("{:.1}", candidate(score).shown_score()), wanted);
        }
        assert!(candidate(5.0).ties_with(&candidate(5.04)));
        assert!(!candidate(5.0).ties_with(&candidate(5.06)));
    }

    #[test]
    fn definitions_from_the_other_side_do_not_fit() {
        let set = Set::load(FILES, ParseOptions::default());
        let mut ranking = Ranking::new(set.definitions());
        ranking.push(0, Side::Server, &[4, 0, 1, 2]);
        assert!(ranking.finish().iter().all(|one| one.definition.name() != "C_EMPTY"));
    }
}
