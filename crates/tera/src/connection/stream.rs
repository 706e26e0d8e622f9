//! What one side sends: decrypted, and cut into pieces.

use core::ops::Range;

use worldwire_core::{Error, Result, Side};

use super::event::Unit;
use crate::crypt::exchange::Key;
use crate::crypt::pike::{KEY_BYTES, Pike};
use crate::frame::{Header, are_messages};

/// The server's first bytes.
pub(super) const HELLO: [u8; 4] = [1, 0, 0, 0];
/// The most bytes behind the keys of one side that wait for those of the other.
const MOST_WAITING_BYTES: usize = 1 << 20;
/// How much keystream may be passed over for missing bytes before any came: a whole TCP window of
/// the systems that the game runs on, many times what setup and login say.
const PASSABLE_AT_FIRST: u64 = 1 << 20;
/// How much more for each byte that comes. A capture that lost fifteen bytes of sixteen can still be
/// read, while a forged segment far ahead costs about what its own bytes do.
const PASSABLE_A_BYTE: u64 = 16;

/// The bytes of one side that are not told yet.
#[derive(Debug)]
pub(super) struct Stream {
    buffer: Vec<u8>,
    /// What stands before is told.
    start: usize,
    /// What stands before is decrypted.
    plain: usize,
    /// How many bytes of the stream stood before the buffer, missing ones too.
    before: u64,
    phase: Phase,
    cipher: Option<Box<Pike>>,
    /// How much keystream may still be passed over for missing bytes.
    passable: u64,
    lost: Option<u64>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Hello,
    Key(u8),
    /// The other side's keys are not known yet.
    Waiting,
    Messages,
    Over,
}

/// A piece in the buffer.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) unit: Unit,
    pub(super) range: Range<usize>,
    pub(super) offset: u64,
}

impl Stream {
    pub(super) fn new(side: Side) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            plain: 0,
            before: 0,
            phase: match side {
                Side::Client => Phase::Key(1),
                Side::Server => Phase::Hello,
            },
            cipher: None,
            passable: PASSABLE_AT_FIRST,
            lost: None,
        }
    }

    /// Bytes that come next. For an observer a call is a segment: a lost stream is read again from
    /// a segment that is whole messages, and the range passed over is returned.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Option<Range<u64>> {
        if self.phase == Phase::Over {
            self.before = self.before.saturating_add(bytes.len() as u64);
            return None;
        }
        let earned = PASSABLE_A_BYTE.saturating_mul(bytes.len() as u64);
        self.passable = self.passable.saturating_add(earned);
        self.buffer.extend_from_slice(bytes);
        self.decrypt();
        let from = self.lost?;
        let segment = self.buffer.get(self.start..).unwrap_or_default();
        if !are_messages(segment) {
            self.drop_rest();
            return None;
        }
        self.lost = None;
        Some(from..self.position())
    }

    /// The keys are known: everything behind them can be read.
    pub(super) fn begin(&mut self, cipher: Pike) {
        self.cipher = Some(Box::new(cipher));
        self.phase = Phase::Messages;
        self.plain = self.start;
        self.decrypt();
    }

    fn decrypt(&mut self) {
        if let Some(cipher) = &mut self.cipher {
            cipher.apply(self.buffer.get_mut(self.plain..).unwrap_or_default());
            self.plain = self.buffer.len();
        }
    }

    /// The piece that comes next, if it is complete. It counts as told when this is called again.
    pub(super) fn next(&mut self) -> Result<Option<Piece>> {
        let bytes = self.buffer.get(self.start..).unwrap_or_default();
        let (unit, length) = match self.phase {
            Phase::Waiting if bytes.len() > MOST_WAITING_BYTES => {
                let (limit, asked) = (MOST_WAITING_BYTES as u64, bytes.len() as u64);
                let error = Error::limit("bytes before the key exchange", limit, asked);
                return Err(error.at(self.position()));
            }
            Phase::Over | Phase::Waiting => return Ok(None),
            _ if self.lost.is_some() => return Ok(None),
            Phase::Hello => {
                let same = bytes.iter().zip(HELLO).all(|(found, wanted)| *found == wanted);
                if !same {
                    let found = bytes.iter().take(4).map(|byte| format!("{byte:02x}"));
                    let found = found.collect::<Vec<_>>().join(" ");
                    let error = Error::malformed("hello, 01 00 00 00", found);
                    return Err(error.at(self.position()));
                }
                (Unit::Hello, HELLO.len())
            }
            Phase::Key(number) => (Unit::Key { number }, KEY_BYTES),
            Phase::Messages => match Header::peek(bytes) {
                Ok(Some(header)) => {
                    (Unit::Message { opcode: header.opcode }, usize::from(header.length))
                }
                Ok(None) => return Ok(None),
                Err(error) => return Err(error.based(self.position())),
            },
        };
        if bytes.len() < length {
            return Ok(None);
        }
        self.phase = match self.phase {
            Phase::Hello => Phase::Key(1),
            Phase::Key(1) => Phase::Key(2),
            Phase::Key(_) => Phase::Waiting,
            phase => phase,
        };
        let piece = Piece { unit, range: self.start..self.start + length, offset: self.position() };
        self.start += length;
        Ok(Some(piece))
    }

    /// The key in a piece.
    pub(super) fn key(&self, piece: &Piece) -> Option<Key> {
        self.bytes(piece.range.clone()).try_into().ok()
    }

    /// Forgets what was told.
    pub(super) fn forget(&mut self) {
        if self.start == self.buffer.len() || self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.before = self.before.saturating_add(self.start as u64);
            self.plain = self.plain.saturating_sub(self.start);
            self.start = 0;
        }
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or_default()
    }

    /// The bytes behind the keys, still encrypted.
    pub(super) fn sealed(&self) -> &[u8] {
        match self.phase {
            Phase::Waiting => self.buffer.get(self.start..).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Bytes are missing. `false` when nothing can be read behind them: the keys are torn.
    ///
    /// # Errors
    /// The limit on keystream that is passed over; the stream is over then.
    pub(super) fn skip(&mut self, length: u64) -> Result<bool> {
        if self.phase == Phase::Over {
            self.before = self.before.saturating_add(length);
            return Ok(true);
        }
        let from = self.lost.unwrap_or_else(|| self.position());
        self.drop_rest();
        self.before = self.before.saturating_add(length);
        self.lost = Some(from);
        let Some(cipher) = &mut self.cipher else { return Ok(false) };
        let Some(left) = self.passable.checked_sub(length) else {
            self.phase = Phase::Over;
            return Err(Error::limit("keystream for missing bytes", self.passable, length));
        };
        self.passable = left;
        cipher.skip(length);
        Ok(true)
    }

    fn drop_rest(&mut self) {
        self.before = self.before.saturating_add(self.unread() as u64);
        self.buffer.truncate(self.start);
        self.plain = self.plain.min(self.start);
    }

    /// Nothing of this stream is read any more.
    pub(super) fn give_up(&mut self) {
        self.drop_rest();
        self.phase = Phase::Over;
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Where what is not told yet begins.
    pub(super) fn position(&self) -> u64 {
        self.before.saturating_add(self.start as u64)
    }

    /// Bytes that are not told yet.
    pub(super) fn unread(&self) -> usize {
        self.buffer.len() - self.start
    }
}
