//! Finds the next message after lost bytes.

use core::ops::Range;
use std::collections::VecDeque;

use super::Incoming;
use crate::{Form, Tree, Value};

/// The result of reading a message at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A message.
    Message {
        /// Its length in bytes.
        length: usize,
        /// The evidence that it is a message, in bits; see [`evidence`]. `None` if it can be
        /// decoded but no peer is known to send such a message.
        evidence: Option<u32>,
    },
    /// Too few bytes to decide; this many more are needed.
    Incomplete(usize),
    /// Not a message.
    Not,
}

/// Searches every position after lost bytes for the next message.
///
/// Nothing marks the start of a message, and a few bytes inside another message often look like
/// one. A start is accepted if either holds:
///
/// * A segment begins there, and messages follow each other up to the end of a segment. Peers send
///   whole messages.
/// * Messages follow each other until there is enough evidence for them. A chain that began at a
///   wrong position may have run into a right one, so reading resumes after the chain, not at its
///   start.
#[derive(Clone, Debug)]
pub struct Search {
    /// The offset where reading stopped.
    from: u64,
    /// The offsets where segments begin, in order.
    starts: VecDeque<u64>,
    /// Every offset before this one has been tried.
    next: u64,
    /// Offsets that need more bytes, in order, each with the offset where those bytes end.
    undecided: VecDeque<(u64, u64)>,
    /// The number of bytes that may still be examined.
    work: u64,
    /// The number of bytes received.
    seen: u64,
    /// Whether every message states its length.
    is_sized: bool,
}

/// The evidence that makes a chain certain, in bits.
const ENOUGH: u32 = 40;
/// The evidence needed from messages that fill segments, in bits.
const SOME: u32 = 10;
/// The maximum number of messages in a chain. A chain of this many different ones is accepted,
/// however weak the evidence.
const MAX_LINKS: usize = 64;
/// The maximum number of bytes kept for an incomplete message.
const MAX_KEPT: usize = 64 << 10;
/// The maximum number of remembered segments, and of undecided offsets.
const MAX_OFFSETS: usize = 1024;
/// The number of bytes that may be examined for each one received.
const WORK_PER_BYTE: u64 = 64;

/// The result of following a chain of messages.
enum Chain {
    /// Messages can be read from this offset.
    Begins(u64),
    /// The bytes up to this offset are needed to decide.
    Undecided(u64),
    /// No message begins there.
    Not,
}

impl Search {
    /// Starts a search in a stream that was readable up to `from` and continues at `next`.
    #[must_use]
    pub fn new(from: u64, next: u64) -> Self {
        let (starts, undecided) = (VecDeque::new(), VecDeque::new());
        Self { from, starts, next, undecided, work: 0, seen: 0, is_sized: false }
    }

    /// Declares that every message of the stream states its length. Messages that end exactly where
    /// a segment ends are then accepted without other evidence.
    #[must_use]
    pub fn sized(self) -> Self {
        Self { is_sized: true, ..self }
    }

    /// Where reading stopped.
    #[must_use]
    pub fn from(&self) -> u64 {
        self.from
    }

    /// The number of bytes received since reading stopped, none of them readable.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Adds a segment of this many bytes at this offset of the stream.
    pub fn segment(&mut self, at: u64, length: usize) {
        if self.starts.len() == MAX_OFFSETS {
            self.starts.pop_front();
        }
        self.starts.push_back(at);
        self.seen = self.seen.saturating_add(length as u64);
        self.work = self.work.saturating_add(WORK_PER_BYTE.saturating_mul(length as u64));
    }

    /// More bytes are missing, and the stream continues at `next`. Offsets that waited for those
    /// bytes are dropped.
    pub fn missing(&mut self, next: u64) {
        self.starts.clear();
        self.undecided.clear();
        self.next = next;
    }

    /// Tries every new offset, and those that waited for more bytes. `Some` is the range skipped,
    /// and the next unread byte begins a message. Otherwise only bytes that cannot begin a message
    /// are skipped.
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
        // The offsets that have waited longest are the least likely to begin messages.
        let excess = self.undecided.len().saturating_sub(MAX_OFFSETS);
        self.undecided.drain(..excess);
        let waiting = self.undecided.front().map(|(at, _)| *at);
        let keep = found.or(waiting).unwrap_or(end);
        incoming.advance(usize::try_from(keep - base).unwrap_or(usize::MAX));
        // The remaining bytes have been tried; wait for more.
        incoming.need(incoming.unread().len() + 1);
        if found.is_some() {
            incoming.retry();
        }
        found.map(|at| self.from..at)
    }

    fn chain(&mut self, at: u64, unread: &[u8], probe: &mut impl FnMut(&[u8]) -> Probe) -> Chain {
        let is_start = self.starts.binary_search(&at).is_ok();
        let (mut place, mut sum) = (0, 0);
        // The distinct messages of the chain so far.
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
                    // Zeros can be decoded as messages, but no peer sends those.
                    let sent = rest.get(..length).unwrap_or_default();
                    if place == 0 && sent.iter().all(|byte| *byte == 0) {
                        return Chain::Not;
                    }
                    // Repetitive data can look like repeated messages.
                    let is_new = !seen.contains(&sent);
                    match evidence {
                        Some(bits) if is_new => sum += bits,
                        None if !is_start => return Chain::Not,
                        _ => {}
                    }
                    if is_new {
                        seen.push(sent);
                    }
                    // At the start of a segment, repeated messages are not counted: they must fill
                    // the segment.
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
        // This many different messages in a row cannot be a coincidence, however weak the evidence
        // for each.
        match seen.len() {
            MAX_LINKS.. => Chain::Begins(at + place as u64),
            _ => Chain::Not,
        }
    }
}

/// The evidence that decoded bytes are really a message, in bits: numbers that have names, and
/// legible text. Small numbers and zeros are common everywhere and prove little. `None` if a number
/// has no name or a text is not legible. A message counts for at most 10 bits, because the fields
/// inside a real message, with their length prefixes, can look like a message by chance.
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
