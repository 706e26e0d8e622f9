//! One direction of a connection.

use core::ops::Range;

use worldwire_core::connection::{Incoming, Located, ReadStream, Search, SkipBudget};
use worldwire_core::{Error, Reader, Result, Side};

use super::event::Unit;
use super::habits::Habits;
use crate::crypt::pike::{KEY_BYTES, Pike};
use crate::frame::{HEADER_BYTES, Header};

/// The server's first bytes.
pub(super) const HELLO: [u8; 4] = [1, 0, 0, 0];
/// The maximum number of bytes from one side that wait for the other side's keys.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// One direction: its bytes, its cipher, and what comes next.
#[derive(Clone, Debug)]
pub struct Stream {
    pub(super) incoming: Incoming,
    cipher: Option<Box<Pike>>,
    pub(super) phase: Phase,
    /// The amount of keystream that may still be skipped for missing bytes.
    budget: SkipBudget,
    /// The length of this side's part of the exchange, in bytes.
    exchange_bytes: u64,
    /// Observers: the messages that this side has sent so far.
    habits: Option<Habits>,
}

/// What a direction expects next.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// The server's first bytes.
    Hello,
    /// A key: 1 or 2.
    Key(u8),
    /// Observers: the rest of an exchange with missing bytes, from this offset on.
    Torn(u64),
    /// Encrypted messages, which wait until the other side's keys are known.
    Waiting,
    /// Messages.
    Messages,
    /// Messages, once the beginning of the next one is found.
    Searching(Search),
    /// Nothing that can be read.
    Lost,
    /// A relay forwards the stream unread.
    Passing,
}

impl Stream {
    pub(super) fn new(side: Side) -> Self {
        let (phase, hello) = match side {
            Side::Client => (Phase::Key(1), 0),
            Side::Server => (Phase::Hello, HELLO.len()),
        };
        let exchange_bytes = (hello + 2 * KEY_BYTES) as u64;
        let (incoming, budget) = (Incoming::default(), SkipBudget::default());
        let habits = None;
        Self { incoming, cipher: None, phase, budget, exchange_bytes, habits }
    }

    /// Turns this into an observer's direction, which learns from messages how to find the next one
    /// after a gap.
    pub(super) fn watched(self) -> Self {
        Self { habits: Some(Habits::default()), ..self }
    }

    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.incoming.retry();
        if matches!(phase, Phase::Lost) {
            self.incoming.drop_unread();
            self.cipher = None;
        }
        self.phase = phase;
    }

    /// Adds bytes from the wire.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if matches!(self.phase, Phase::Lost) {
            return self.incoming.skip(bytes.len() as u64);
        }
        self.budget.earn(bytes.len());
        if let Phase::Searching(search) = &mut self.phase {
            search.segment(self.incoming.end(), bytes.len());
        }
        let new = self.incoming.push(bytes);
        if let Some(cipher) = &mut self.cipher {
            cipher.apply(new);
        }
    }

    /// Decrypts everything after the keys, now that they are known.
    pub(super) fn begin(&mut self, mut cipher: Pike) {
        let missing = self.incoming.offset().saturating_sub(self.exchange_bytes);
        let is_late = matches!(self.phase, Phase::Waiting) && missing > 0;
        if is_late {
            cipher.skip(missing);
        }
        cipher.apply(self.incoming.unread_mut());
        self.cipher = Some(Box::new(cipher));
        self.set_phase(Phase::Messages);
        if is_late {
            let at = self.incoming.offset();
            let mut search = Search::new(self.exchange_bytes, at).sized();
            search.segment(at, self.incoming.unread().len());
            self.set_phase(Phase::Searching(search));
        }
    }

    /// Skips missing bytes of the exchange. Its keys are known from elsewhere.
    pub(super) fn tear(&mut self, length: u64) -> Result<()> {
        let from = match self.phase {
            Phase::Torn(from) => from,
            _ => self.incoming.offset(),
        };
        self.incoming.skip(length);
        let encrypted = self.incoming.offset().saturating_sub(self.exchange_bytes);
        self.budget.spend(encrypted)?;
        self.set_phase(Phase::Torn(from));
        Ok(())
    }

    /// Skips the rest of an exchange with missing bytes. Returns the range of the skipped exchange
    /// once its end is reached.
    pub(super) fn pass_torn(&mut self) -> Option<Range<u64>> {
        let Phase::Torn(from) = self.phase else { return None };
        let left = self.exchange_bytes.saturating_sub(self.incoming.offset());
        let unread = self.incoming.unread().len();
        let passed = usize::try_from(left).unwrap_or(unread).min(unread);
        self.incoming.advance(passed);
        if passed as u64 != left {
            return None;
        }
        self.set_phase(Phase::Waiting);
        Some(from..self.incoming.offset())
    }

    /// Whether the exchange is still in progress.
    pub(super) fn is_exchanging(&self) -> bool {
        matches!(self.phase, Phase::Hello | Phase::Key(_) | Phase::Torn(_))
    }

    /// Reads the next piece if it is complete.
    pub(super) fn next(&mut self) -> Result<Option<(Unit, Located)>> {
        let next = match self.phase {
            Phase::Waiting => {
                let (most, unread) = (MAX_WAITING_BYTES, self.incoming.unread().len());
                if unread <= most {
                    return Ok(None);
                }
                let error =
                    Error::limit("bytes before the key exchange", most as u64, unread as u64);
                return Err(error.at(self.incoming.offset()));
            }
            Phase::Torn(_) | Phase::Searching(_) | Phase::Lost | Phase::Passing => return Ok(None),
            Phase::Hello => self.incoming.attempt(hello)?,
            Phase::Key(number) => {
                self.incoming.attempt(|bytes| fixed(Unit::Key { number }, KEY_BYTES, bytes))?
            }
            Phase::Messages => self.incoming.attempt(message)?,
        };
        if let Some((unit, located)) = &next {
            match (unit, &mut self.habits) {
                (Unit::Hello, _) => self.phase = Phase::Key(1),
                (Unit::Key { number: 1 }, _) => self.phase = Phase::Key(2),
                (Unit::Key { .. }, _) => self.phase = Phase::Waiting,
                (Unit::Message { opcode }, Some(habits)) => {
                    habits.learn(*opcode, located.range.len());
                }
                (Unit::Message { .. }, None) => {}
            }
        }
        Ok(next)
    }

    /// Looks for the next message after missing bytes. Returns the range that it skipped.
    pub(super) fn search(&mut self) -> Option<Range<u64>> {
        let (Phase::Searching(search), Some(habits)) = (&mut self.phase, &self.habits) else {
            return None;
        };
        if self.incoming.unread().len() < self.incoming.needed() {
            return None;
        }
        let passed = search.step(&mut self.incoming, |bytes| habits.probe(bytes))?;
        self.set_phase(Phase::Messages);
        Some(passed)
    }

    /// Starts to look for the next message after bytes that are not one. Returns false, and does
    /// nothing, if the keys are not known or this is not an observer.
    pub(super) fn look_on(&mut self) -> bool {
        let is_readable = matches!(self.phase, Phase::Messages) && self.habits.is_some();
        if is_readable {
            let from = self.incoming.offset();
            let mut search = Search::new(from, from.saturating_add(1)).sized();
            search.segment(from, self.incoming.unread().len());
            self.set_phase(Phase::Searching(search));
        }
        is_readable
    }

    /// Continues with the server's key, because its hello is missing.
    pub(super) fn pass_hello(&mut self) {
        self.set_phase(Phase::Key(1));
    }

    /// The first bytes after the keys, still encrypted.
    pub(super) fn sealed(&self) -> Option<[u8; HEADER_BYTES]> {
        let unread = self.incoming.unread().first_chunk().copied();
        let is_first = self.incoming.offset() == self.exchange_bytes;
        unread.filter(|_| matches!(self.phase, Phase::Waiting) && is_first)
    }

    /// Whether the missing bytes are exactly the hello, whose contents are constant.
    pub(super) fn lacks_hello(&self, length: u64) -> bool {
        let torn = self.incoming.unread().len() as u64;
        matches!((&self.phase, &self.habits), (Phase::Hello, Some(_)))
            && torn.saturating_add(length) == HELLO.len() as u64
    }

    /// Skips missing bytes.
    ///
    /// # Errors
    /// `Malformed` if parts of the keys are missing, or the limit on skipped keystream. Nothing can
    /// be read after either.
    pub(super) fn skip(&mut self, length: u64) -> Result<()> {
        let from = self.incoming.offset();
        let is_hello = self.lacks_hello(length);
        self.incoming.skip(length);
        let next = self.incoming.end();
        if matches!(self.phase, Phase::Lost) {
            return Ok(());
        }
        if is_hello {
            self.pass_hello();
            return Ok(());
        }
        let Some(cipher) = &mut self.cipher else {
            let found = format!("a gap of {length} bytes");
            return Err(Error::malformed("the whole key exchange", found));
        };
        self.budget.spend(length)?;
        cipher.skip(length);
        match &mut self.phase {
            Phase::Searching(search) => search.missing(next),
            _ => self.phase = Phase::Searching(Search::new(from, next).sized()),
        }
        Ok(())
    }

    /// The error for a stream that ends in the middle of a unit.
    pub(super) fn torn(&self) -> Option<Error> {
        if let Phase::Searching(search) = &self.phase {
            let found = format!("none in the {} bytes that follow", search.seen());
            let error = Error::malformed("a message after the unreadable bytes", found);
            return (search.seen() > 0).then(|| error.at(search.from()));
        }
        self.incoming.torn(match self.phase {
            Phase::Lost | Phase::Passing => return None,
            Phase::Hello | Phase::Key(_) | Phase::Torn(_) | Phase::Waiting => {
                "the whole key exchange"
            }
            Phase::Messages | Phase::Searching(_) => "a whole message",
        })
    }
}

impl ReadStream for Stream {
    fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    fn incoming_mut(&mut self) -> &mut Incoming {
        &mut self.incoming
    }
}

fn hello(bytes: &[u8]) -> Result<(Unit, usize)> {
    if bytes.iter().zip(HELLO).any(|(found, wanted)| *found != wanted) {
        let found = bytes.iter().take(HELLO.len()).map(|byte| format!("{byte:02x}"));
        let found = found.collect::<Vec<_>>().join(" ");
        return Err(Error::malformed("the hello, 01 00 00 00", found).at(0));
    }
    fixed(Unit::Hello, HELLO.len(), bytes)
}

fn fixed(unit: Unit, length: usize, bytes: &[u8]) -> Result<(Unit, usize)> {
    Reader::new(bytes).take(length).map(|_| (unit, length))
}

fn message(bytes: &[u8]) -> Result<(Unit, usize)> {
    let mut reader = Reader::new(bytes);
    let Header { length, opcode } = Header::decode(&mut reader)?;
    reader.take(usize::from(length).saturating_sub(HEADER_BYTES))?;
    Ok((Unit::Message { opcode }, length.into()))
}
