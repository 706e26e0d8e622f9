//! One direction of a connection.

use core::ops::Range;

use worldwire_core::connection::{Incoming, Located, SkipBudget};
use worldwire_core::{Error, Reader, Result, Side};

use super::event::Unit;
use crate::crypt::pike::{KEY_BYTES, Pike};
use crate::frame::{HEADER_BYTES, Header, are_messages};

/// The server's first bytes.
pub(super) const HELLO: [u8; 4] = [1, 0, 0, 0];
/// The most bytes behind the keys of one side that wait for those of the other.
const MOST_WAITING_BYTES: usize = 1 << 20;
/// One direction: its bytes, its cipher and what is to come next.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) incoming: Incoming,
    cipher: Option<Box<Pike>>,
    pub(super) phase: Phase,
    /// How much keystream may still be passed over for missing bytes.
    budget: SkipBudget,
    /// Nothing more comes.
    pub(super) is_ended: bool,
}

/// What is to come next in a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The server's first bytes.
    Hello,
    /// A key: the first or the second.
    Key(u8),
    /// Messages, but the other side's keys are not known yet: encrypted bytes pile up.
    Waiting,
    /// Messages.
    Messages,
    /// Messages, from a segment on that is whole messages. Reading stopped at this offset.
    Searching(u64),
    /// Nothing that could be read.
    Lost,
    /// Nothing that a relay could read: it goes on as it came.
    Passing,
}

impl Stream {
    pub(super) fn new(side: Side) -> Self {
        let phase = match side {
            Side::Client => Phase::Key(1),
            Side::Server => Phase::Hello,
        };
        let (incoming, budget) = (Incoming::default(), SkipBudget::default());
        Self { incoming, cipher: None, phase, budget, is_ended: false }
    }

    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.incoming.retry();
        if phase == Phase::Lost {
            self.incoming.drop_unread();
            self.cipher = None;
        }
        self.phase = phase;
    }

    /// Takes in what came off the wire. `Some` is what had to be passed over, when it ends a
    /// search.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Option<Range<u64>> {
        if self.phase == Phase::Lost {
            self.incoming.skip(bytes.len() as u64);
            return None;
        }
        self.budget.earn(bytes.len());
        let new = self.incoming.push(bytes);
        if let Some(cipher) = &mut self.cipher {
            cipher.apply(new);
        }
        let Phase::Searching(from) = self.phase else { return None };
        if !are_messages(self.incoming.unread()) {
            self.incoming.drop_unread();
            return None;
        }
        self.phase = Phase::Messages;
        Some(from..self.incoming.offset())
    }

    /// The keys are known: everything behind them can be read.
    pub(super) fn begin(&mut self, mut cipher: Pike) {
        cipher.apply(self.incoming.unread_mut());
        self.cipher = Some(Box::new(cipher));
        self.set_phase(Phase::Messages);
    }

    /// The piece that comes next, if it is complete.
    pub(super) fn next(&mut self) -> Result<Option<(Unit, Located)>> {
        let next = match self.phase {
            Phase::Waiting => {
                let (most, unread) = (MOST_WAITING_BYTES, self.incoming.unread().len());
                if unread <= most {
                    return Ok(None);
                }
                let error =
                    Error::limit("bytes before the key exchange", most as u64, unread as u64);
                return Err(error.at(self.incoming.offset()));
            }
            Phase::Searching(_) | Phase::Lost | Phase::Passing => return Ok(None),
            Phase::Hello => self.incoming.attempt(hello)?,
            Phase::Key(number) => {
                self.incoming.attempt(|bytes| fixed(Unit::Key { number }, KEY_BYTES, bytes))?
            }
            Phase::Messages => self.incoming.attempt(message)?,
        };
        if next.is_some() {
            self.phase = match self.phase {
                Phase::Hello => Phase::Key(1),
                Phase::Key(1) => Phase::Key(2),
                Phase::Key(_) => Phase::Waiting,
                phase => phase,
            };
        }
        Ok(next)
    }

    /// The first bytes behind the keys, still encrypted.
    pub(super) fn sealed(&self) -> Option<[u8; HEADER_BYTES]> {
        let unread = self.incoming.unread().first_chunk().copied();
        unread.filter(|_| self.phase == Phase::Waiting)
    }

    /// Bytes are missing.
    ///
    /// # Errors
    /// Malformed when keys are torn; the limit on keystream that is passed over. Nothing can be read
    /// behind either.
    pub(super) fn skip(&mut self, length: u64) -> Result<()> {
        let from = match self.phase {
            Phase::Searching(from) => from,
            _ => self.incoming.offset(),
        };
        self.incoming.skip(length);
        let Some(cipher) = &mut self.cipher else {
            let error =
                Error::malformed("the whole key exchange", format!("{length} bytes missing"));
            return if self.phase == Phase::Lost { Ok(()) } else { Err(error) };
        };
        self.budget.spend(length)?;
        cipher.skip(length);
        self.phase = Phase::Searching(from);
        Ok(())
    }

    /// Passes over the next unread bytes and returns them, at most so many.
    pub(super) fn take(&mut self, most: usize) -> Vec<u8> {
        let length = self.incoming.unread().len().min(most);
        let located = self.incoming.advance(length);
        self.incoming.bytes(located.range).to_vec()
    }

    /// The error for a stream that ends within what it says.
    pub(super) fn torn(&self) -> Option<Error> {
        self.incoming.torn(match self.phase {
            Phase::Lost | Phase::Passing => return None,
            Phase::Hello | Phase::Key(_) | Phase::Waiting => "the whole key exchange",
            Phase::Messages | Phase::Searching(_) => "a whole message",
        })
    }
}

fn hello(bytes: &[u8]) -> Result<(Unit, usize)> {
    if bytes.iter().zip(HELLO).any(|(found, wanted)| *found != wanted) {
        let found = bytes.iter().take(HELLO.len()).map(|byte| format!("{byte:02x}"));
        let found = found.collect::<Vec<_>>().join(" ");
        return Err(Error::malformed("hello, 01 00 00 00", found).at(0));
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
