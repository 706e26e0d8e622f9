//! Where messages begin again behind lost bytes.

use core::ops::Range;
use std::collections::VecDeque;

use super::Incoming;
use crate::{Form, Tree, Value};

/// What stands at a place, taken for the beginning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A message.
    Message {
        /// How many bytes it has.
        length: usize,
        /// What speaks for it, in bits; see [`evidence`]. `None` when it could be one, but no peer
        /// is known to send such.
        evidence: Option<u32>,
    },
    /// Too few bytes to tell: so many more are needed.
    Incomplete(usize),
    /// No message.
    Not,
}

/// Looks for the next message behind lost bytes, at every place.
///
/// Nothing marks where a message begins, and a few bytes of another one often pass for one. Two
/// things tell a beginning:
///
/// * A segment begins there, and messages follow each other up to where a segment ends: peers send
///   messages whole.
/// * Messages follow each other until enough speaks for them. Since a chain that began in the wrong
///   place may have come upon the right one, reading goes on behind it, not at its beginning.
#[derive(Debug)]
pub struct Search {
    /// Where reading stopped.
    from: u64,
    /// Where segments begin, in order.
    starts: VecDeque<u64>,
    /// Places before this one were tried.
    next: u64,
    /// Places where more bytes may show a beginning, in order, with where those bytes end.
    undecided: VecDeque<(u64, u64)>,
    /// How many bytes may still be looked at.
    work: u64,
    /// How many bytes came.
    seen: u64,
    /// Whether every message says how long it is.
    is_sized: bool,
}

/// The evidence after which a chain counts, in bits.
const ENOUGH: u32 = 40;
/// The evidence after which messages that fill segments count.
const SOME: u32 = 10;
/// The most messages of a chain: as many different ones count, however little they say.
const MAX_LINKS: usize = 64;
/// The most bytes that wait for a message to become whole.
const MAX_KEPT: usize = 64 << 10;
/// The most segments remembered, and the most places that wait.
const MAX_PLACES: usize = 1024;
/// How many bytes may be looked at for each that comes.
const WORK: u64 = 64;

/// What a chain of messages says of its beginning.
enum Chain {
    /// Messages can be read from here.
    Begins(u64),
    /// The bytes up to there may tell.
    Undecided(u64),
    /// Nothing begins there.
    Not,
}

impl Search {
    /// Begins to look, in a stream that could be read up to `from` and goes on at `next`.
    #[must_use]
    pub fn new(from: u64, next: u64) -> Self {
        let (starts, undecided) = (VecDeque::new(), VecDeque::new());
        Self { from, starts, next, undecided, work: 0, seen: 0, is_sized: false }
    }

    /// Every message says how long it is: those that end with a segment did not come upon its end
    /// by chance.
    #[must_use]
    pub fn sized(self) -> Self {
        Self { is_sized: true, ..self }
    }

    /// Where reading stopped.
    #[must_use]
    pub fn from(&self) -> u64 {
        self.from
    }

    /// How many bytes came since, none of which could be read.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// A segment of so many bytes begins at this place of the stream.
    pub fn segment(&mut self, at: u64, length: usize) {
        if self.starts.len() == MAX_PLACES {
            self.starts.pop_front();
        }
        self.starts.push_back(at);
        self.seen = self.seen.saturating_add(length as u64);
        self.work = self.work.saturating_add(WORK.saturating_mul(length as u64));
    }

    /// Bytes are missing once more, and the stream goes on at `next`: nothing that waited for them
    /// begins a message.
    pub fn missing(&mut self, next: u64) {
        self.starts.clear();
        self.undecided.clear();
        self.next = next;
    }

    /// Tries every place that was not tried, and those that more bytes may tell about. `Some` is
    /// what is passed over, and the next unread byte begins a message; otherwise what cannot begin
    /// one is passed over.
    pub fn step(
        &mut self,
        incoming: &mut Incoming,
        mut probe: impl FnMut(&[u8]) -> Probe,
    ) -> Option<Range<u64>> {
        let (base, end) = (incoming.offset(), incoming.end());
        self.next = self.next.max(base);
        let mut found = None;
        let waiting = core::mem::take(&mut self.undecided);
        let untried = (self.next..end).map(|at| (at, at));
        for (at, until) in waiting.into_iter().chain(untried) {
            if until > end {
                self.undecided.push_back((at, until));
                continue;
            }
            let place = usize::try_from(at - base).unwrap_or(usize::MAX);
            let unread = incoming.unread().get(place..).unwrap_or_default();
            match self.chain(at, unread, &mut probe) {
                Chain::Begins(at) => {
                    found = Some(at);
                    break;
                }
                Chain::Undecided(until) => self.undecided.push_back((at, until)),
                Chain::Not => {}
            }
        }
        self.next = end;
        // Those that have waited for longest were most likely none.
        let excess = self.undecided.len().saturating_sub(MAX_PLACES);
        self.undecided.drain(..excess);
        let waiting = self.undecided.front().map(|(at, _)| *at);
        let keep = found.or(waiting).unwrap_or(end);
        incoming.advance(usize::try_from(keep - base).unwrap_or(usize::MAX));
        // What is left was tried. More bytes are worth another attempt.
        incoming.need(incoming.unread().len() + 1);
        if found.is_some() {
            incoming.retry();
        }
        found.map(|at| self.from..at)
    }

    fn chain(&mut self, at: u64, unread: &[u8], probe: &mut impl FnMut(&[u8]) -> Probe) -> Chain {
        let is_start = self.starts.binary_search(&at).is_ok();
        let (mut place, mut sum) = (0, 0);
        // Different messages of the chain.
        let mut seen: Vec<&[u8]> = Vec::new();
        let mut links = 0;
        while links < MAX_LINKS {
            let rest = unread.get(place..).unwrap_or_default();
            if rest.is_empty() {
                return Chain::Undecided(at + place as u64 + 1);
            }
            let found = probe(rest);
            let looked = match found {
                Probe::Message { length, .. } => length,
                _ => 16,
            };
            match self.work.checked_sub(looked as u64) {
                Some(left) => self.work = left,
                None => return Chain::Not,
            }
            match found {
                Probe::Not => return Chain::Not,
                Probe::Incomplete(needed) if unread.len().saturating_add(needed) > MAX_KEPT => {
                    return Chain::Not;
                }
                Probe::Incomplete(needed) => {
                    return Chain::Undecided(at + (unread.len() + needed) as u64);
                }
                Probe::Message { length: 0, .. } => return Chain::Not,
                Probe::Message { length, evidence } => {
                    // Zeros pass for messages, which nobody sends.
                    let sent = rest.get(..length).unwrap_or_default();
                    if place == 0 && sent.iter().all(|byte| *byte == 0) {
                        return Chain::Not;
                    }
                    // Data that repeats itself looks like messages that do.
                    let is_new = !seen.contains(&sent);
                    match evidence {
                        Some(bits) if is_new => sum += bits,
                        None if !is_start => return Chain::Not,
                        _ => {}
                    }
                    if is_new {
                        seen.push(sent);
                    }
                    // What repeats itself from the beginning of a segment to its end fills it.
                    links += usize::from(is_new || !is_start);
                    place += length;
                    let here = at + place as u64;
                    let is_border =
                        place == unread.len() || self.starts.binary_search(&here).is_ok();
                    let fills = seen.len() == 1 || self.is_sized || sum >= SOME;
                    if is_start && is_border && fills {
                        return Chain::Begins(at);
                    }
                    if evidence.is_some_and(|bits| bits >= ENOUGH) {
                        return Chain::Begins(here - length as u64);
                    }
                    if sum >= ENOUGH {
                        return Chain::Begins(here);
                    }
                }
            }
        }
        // So many different ones in a row are no chance, however little speaks for each.
        match seen.len() {
            MAX_LINKS.. => Chain::Begins(at + place as u64),
            _ => Chain::Not,
        }
    }
}

/// What speaks for a message being one, in bits: numbers that have names, and legible text. Small
/// numbers and zeros stand everywhere and say little. `None` when a number has no name, or a text
/// cannot be read. All of a message count 10 at most, since the fields of a true one, with the lengths
/// in front of them, may stand in the right places of a false one.
#[must_use]
pub fn evidence(tree: &Tree<'_>) -> Option<u32> {
    const NAMED: u32 = 5;
    const LETTER: u32 = 2;
    const MAX_LETTERS: usize = 5;
    const MAX: u32 = 10;
    let mut sum = 0;
    for node in tree.nodes() {
        match node.value() {
            Value::Enum(number, names) => {
                names.name(number)?;
                sum += if number == 0 { 0 } else { NAMED };
            }
            Value::Span(span) if span.form != Form::Bytes => {
                let text = node.text()?;
                if text.chars().any(|letter| letter.is_control() && !letter.is_whitespace()) {
                    return None;
                }
                let letters = text.chars().filter(char::is_ascii_graphic);
                sum += letters.take(MAX_LETTERS).map(|_| LETTER).sum::<u32>();
            }
            _ => {}
        }
    }
    Some(sum.min(MAX))
}
