//! Finds the definition of an unknown opcode.
//!
//! Opcodes change with every build of the client. A [`Ranking`] tries every definition on every
//! message of an unknown opcode, and scores how well it fits.
//!
//! For a message of a few numbers a fit proves little. For a message with texts and lists it proves
//! a lot, because each of their offsets must point to the right byte. The evidence is weighted:
//!
//! | evidence | weight |
//! | --- | --- |
//! | a message that cannot be read | -30 |
//! | a message whose last body ends with it | +8 |
//! | bytes after the last body | -10, and -1 for each of them, at most -30 |
//! | a body that does not begin where the one before it ends, and other notes | -5 |
//! | a text: its offset; each of its characters that can be printed, at most 16; each that cannot | +6; +1; -4 |
//! | bytes: their offset | +6 |
//! | a list without elements; each element, at most 8 | +4; +10 |
//! | a truth value that is 0; 1; anything else | +0.5; +2; -8 |
//! | a float that is 0; one of a size that games use; another | 0; +3; -6 |
//! | a signed number of 32 bits that is small; one that is not | +1; -1 |
//! | read with counter and checksum: a counter that is one more than the one before it; a first one of 1; one that is 0, or no counter at all | +6; +2; -8 |
//!
//! Messages of the client are read with both headers, that of 4 bytes and that of 12, which has
//! [counter and checksum](crate::integrity). Each definition keeps the header that it does better
//! with. Eight bytes more alone would not tell: a longer layout looks the same. The counter does,
//! as soon as there are two messages.
//!
//! The weights are chosen by hand. They order candidates; they are not probabilities.
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
use crate::message::{HeaderForm, Leaf, NoteKind, Oddities, Sink, read_front, run_fields};
use crate::packet::Packets;
use crate::schema::Definition;
use crate::schema::plan::{Field, Fixed, Plan};
use crate::types::Scalar;

/// Tries definitions on the messages of one opcode.
#[derive(Clone, Debug)]
pub struct Ranking<'p> {
    attempts: Vec<Attempt<'p>>,
    messages: u64,
    shortest: usize,
    longest: usize,
    /// What may be the counter of the last message, by conversation.
    counters: BTreeMap<u64, u32>,
}

/// A definition with a form of the header, and what came of it so far.
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
    /// The header that the messages have if it is this one.
    pub form: HeaderForm,
    /// How many messages it reads.
    pub fits: u64,
    /// In how many of them nothing is odd.
    pub clean: u64,
    /// The evidence of an average message.
    pub score: f64,
    /// What is odd, and in how many messages.
    pub notes: Vec<(NoteKind, u64)>,
    /// Why the first message that it does not read cannot be read.
    pub error: Option<String>,
}

impl<'p> Ranking<'p> {
    /// Begins with the definitions that are to be tried.
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
            // Only what clients send can have counter and checksum.
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

    /// Begins with the definitions of a build. Where its patch is known to have no counters, none
    /// are looked for.
    #[must_use]
    pub fn of(packets: &'p Packets) -> Self {
        let mut ranking = Self::new(packets.definitions());
        if packets.patch().is_some_and(|patch| patch.major < integrity::FIRST_PATCH) {
            ranking.attempts.retain(|attempt| attempt.form == HeaderForm::Plain);
        }
        ranking
    }

    /// How many messages were tried.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// The lengths of the shortest and the longest message; `None` before the first.
    #[must_use]
    pub fn lengths(&self) -> Option<(usize, usize)> {
        (self.messages > 0).then_some((self.shortest, self.longest))
    }

    /// Tries all definitions on the next message of a conversation, which has some number. Those
    /// that the other side sends do not fit it.
    pub fn push(&mut self, conversation: u64, from: Side, message: &[u8]) {
        let counted = self.count(conversation, message);
        self.messages += 1;
        self.shortest = self.shortest.min(message.len());
        self.longest = self.longest.max(message.len());
        for attempt in &mut self.attempts {
            if sender(attempt.definition.name()).is_some_and(|side| side != from) {
                attempt.weight += UNREADABLE;
                attempt.error.get_or_insert_with(|| "the other side sends it".to_owned());
            } else if attempt.form == HeaderForm::Integrity && from == Side::Server {
                attempt.weight += UNREADABLE;
            } else {
                let counted = if attempt.form == HeaderForm::Integrity { counted } else { 0.0 };
                attempt.push(message, counted);
            }
        }
    }

    /// What it weighs if a message has a counter: whether that one counts.
    fn count(&mut self, conversation: u64, message: &[u8]) -> f64 {
        let Some((counter, _)) = integrity::header(message) else { return 0.0 };
        let last = self.counters.insert(conversation, counter);
        match (last, counter) {
            (None, 1) => 2.0,
            // The capture may have begun later.
            (None, 2..SMALL) => 0.0,
            (Some(last), _) if last.checked_add(1) == Some(counter) => 6.0,
            // All that have a counter may be counted together, or some messages be missing.
            (Some(last), _) if last < counter && counter - last <= MAX_SKIPPED => 0.0,
            _ => -8.0,
        }
    }

    /// The definitions that fit at least one message, each with the header that suits it best: the
    /// best first.
    #[must_use]
    pub fn finish(self) -> Vec<Candidate<'p>> {
        let messages = self.messages.max(1);
        let mut candidates: Vec<Candidate<'p>> = Vec::new();
        for attempt in self.attempts {
            let Attempt { definition, form, fits, clean, weight, notes, error } = attempt;
            #[expect(clippy::cast_precision_loss, reason = "nobody has 2^53 messages")]
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
        let outcome = read_front(message, self.form)
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
/// Counters that are passed over from one message to the next, at most.
const MAX_SKIPPED: u32 = 1024;
/// A counter, or a signed number, that is not small.
const SMALL: u32 = 1 << 24;

/// What the bytes behind the last body weigh.
fn ending(left: usize) -> f64 {
    match u32::try_from(left) {
        Ok(0) => 8.0,
        Ok(left) => (-10.0 - f64::from(left)).max(-30.0),
        Err(_) => -30.0,
    }
}

fn remarks(notes: &Oddities) -> f64 {
    let odd = |kind| kind != NoteKind::TrailingBytes && kind != NoteKind::BoolNot0Or1;
    let count = notes.list().iter().filter(|note| odd(note.kind)).count();
    -5.0 * f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Weighs what the decoder finds.
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
}

impl Judge {
    /// Weighs a value of fixed size; `None` when the bytes are too few.
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

    fn list<R>(
        &mut self,
        _: Leaf<'n>,
        _: u32,
        count: usize,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        const MAX_ELEMENTS: usize = 8;
        let count = u32::try_from(count.min(MAX_ELEMENTS)).unwrap_or(0);
        self.weight += if count == 0 { 4.0 } else { 10.0 * f64::from(count) };
        fill(self).0
    }

    fn record<R>(
        &mut self,
        _: &'n str,
        _: usize,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        fill(self).0
    }

    fn row<R>(&mut self, _: &'n Field, _: usize, fill: impl FnOnce(&mut Self) -> (R, usize)) -> R {
        self.weight += 4.0;
        fill(self).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Library;
    use crate::file::library::Known;
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

    /// What was made by a definition is found again, among all the others.
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
            // Numbers that are made up have no sensible sizes, so another layout of the same
            // length may look better.
            let most = if definition.name() == "S_MOVE" { 1 } else { 0 };
            assert!(
                place.is_some_and(|place| place <= most),
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

    /// What comes first for messages of 16 bytes: three numbers, or a counter in front of one.
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
        Packets::new(&library, Known { patch, ..Known::default() })
    }

    /// Both definitions read all bytes, each with its own header.
    #[test]
    fn a_counter_tells_the_headers_apart() {
        let sealed = ("C_TURN.1".to_owned(), HeaderForm::Integrity);
        let plain = ("C_WALK.1".to_owned(), HeaderForm::Plain);
        let packets = build(98);
        for counted in [
            &[(0, 1), (0, 2), (0, 3)][..],
            // Two conversations at the same time, of which one was going on; one counter for all.
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
        // The clients of this build do not count.
        assert_eq!(first(&build(91), &[(0, 1), (0, 2), (0, 3)]), plain);
    }

    #[test]
    fn what_the_other_side_sends_does_not_fit() {
        let set = Set::load(FILES, ParseOptions::default());
        let mut ranking = Ranking::new(set.definitions());
        ranking.push(0, Side::Server, &[4, 0, 1, 2]);
        assert!(ranking.finish().iter().all(|one| one.definition.name() != "C_EMPTY"));
    }
}
