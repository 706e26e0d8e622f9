//! One direction of a connection.

use core::ops::Range;
use std::collections::VecDeque;

use worldwire_core::{Error, Reader, Result, Side};

use crate::connect::{ConnectPacket, SetupPacket};
use crate::crypt::exchange::SessionKey;
use crate::crypt::rc4::Rc4;
use crate::frame::{Message, Service};

/// The bytes of one direction that are not read yet.
#[derive(Debug)]
pub(super) struct Stream {
    side: Side,
    buffer: Vec<u8>,
    /// How much of the buffer is read; cleared away when more comes in.
    read: usize,
    /// Where the first byte of the buffer stands in the stream.
    base: u64,
    cipher: Option<Rc4>,
    /// How much keystream may still be passed over for missing bytes.
    passable: u64,
    /// How many unread bytes there must be before trying again is worth the work.
    needed: usize,
    phase: Phase,
    /// How many bytes of a message that nobody knows are still to come.
    discard: usize,
    /// How many messages were read so far.
    pub(super) messages: u64,
}

/// What is to come next in a direction.
#[derive(Debug)]
pub(super) enum Phase {
    /// The connect packet.
    Connect,
    /// A setup packet.
    Setup,
    /// Messages that cannot be read before the key is known: encrypted bytes pile up.
    Waiting,
    /// Messages.
    Messages(Service),
    /// Messages, but the next border between two has to be found first.
    Searching(Service, Search),
    /// Nothing that could be read.
    Lost,
}

/// Looking for the next message behind a gap.
#[derive(Debug)]
pub(super) struct Search {
    /// Where reading stopped.
    from: u64,
    /// Where segments begin that may begin with a message.
    candidates: VecDeque<u64>,
}

/// What was read: where it stands in the buffer.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) range: Range<usize>,
    pub(super) offset: u64,
}

/// The most places remembered while looking for a message.
const MOST_CANDIDATES: usize = 1024;
/// The most bytes an unknown message of a file connection is believed to have.
const MOST_PASSED_OVER: usize = 4 << 20;
/// How much keystream may be passed over for missing bytes before any came: a whole TCP window of
/// the systems that the game runs on, many times what setup and login say.
const PASSABLE_AT_FIRST: u64 = 1 << 20;
/// How much more for each byte that comes. A capture that lost fifteen bytes of sixteen can still be
/// read, while a forged segment far ahead costs about what its own bytes do.
const PASSABLE_A_BYTE: u64 = 16;

impl Stream {
    pub(super) fn new(side: Side, phase: Phase) -> Self {
        Self {
            side,
            buffer: Vec::new(),
            read: 0,
            base: 0,
            cipher: None,
            passable: PASSABLE_AT_FIRST,
            needed: 1,
            phase,
            discard: 0,
            messages: 0,
        }
    }

    pub(super) fn phase(&self) -> &Phase {
        &self.phase
    }

    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.needed = 1;
        if matches!(phase, Phase::Lost) {
            self.read = self.buffer.len();
            self.cipher = None;
        }
        self.phase = phase;
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.phase, Phase::Lost)
    }

    /// Bytes of a message (or packet) that has begun.
    pub(super) fn unread(&self) -> usize {
        self.buffer.len() - self.read
    }

    /// Where the next unread byte stands in the stream.
    pub(super) fn offset(&self) -> u64 {
        self.base.saturating_add(self.read as u64)
    }

    /// Where the next byte that comes in stands in the stream.
    fn end(&self) -> u64 {
        self.base.saturating_add(self.buffer.len() as u64)
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or(&[])
    }

    /// Takes in what came off the wire. `keep` says that units which were read are not told yet,
    /// so their bytes must stay where they are.
    pub(super) fn push(&mut self, bytes: &[u8], keep: bool) {
        // Read bytes make room before more comes; what stays is less than a message.
        if self.read > 0 && !keep {
            self.buffer.drain(..self.read);
            self.base = self.base.saturating_add(self.read as u64);
            self.read = 0;
        }
        if self.is_lost() {
            self.base = self.base.saturating_add(bytes.len() as u64);
            return;
        }
        let earned = PASSABLE_A_BYTE.saturating_mul(bytes.len() as u64);
        self.passable = self.passable.saturating_add(earned);
        let end = self.end();
        if let Phase::Searching(_, search) = &mut self.phase
            && search.candidates.len() < MOST_CANDIDATES
        {
            search.candidates.push_back(end);
        }
        let from = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        if let Some(cipher) = &mut self.cipher {
            cipher.apply(&mut self.buffer[from..]);
        }
        let discard = self.discard.min(self.unread());
        self.discard -= discard;
        self.read += discard;
    }

    /// From here on everything is encrypted with this key, also what came in already.
    pub(super) fn decrypt_with(&mut self, key: &SessionKey) {
        let mut cipher = Rc4::new(key);
        cipher.apply(&mut self.buffer[self.read..]);
        self.cipher = Some(cipher);
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.cipher.is_some()
    }

    /// Bytes are missing. Returns false when nothing behind them can be read.
    ///
    /// # Errors
    /// The limit on keystream that is passed over; the stream is lost then.
    pub(super) fn skip(&mut self, length: u64) -> Result<bool> {
        let from = match &self.phase {
            Phase::Messages(_) => self.offset(),
            Phase::Searching(_, search) => search.from,
            _ => {
                self.set_phase(Phase::Lost);
                self.base = self.base.saturating_add(length);
                return Ok(false);
            }
        };
        let (Phase::Messages(service) | Phase::Searching(service, _)) = self.phase else {
            return Ok(false);
        };
        self.base = self.base.saturating_add(length);
        self.read = self.buffer.len();
        self.discard = 0;
        self.needed = 1;
        if let Some(cipher) = &mut self.cipher {
            let Some(left) = self.passable.checked_sub(length) else {
                let limit = self.passable;
                self.set_phase(Phase::Lost);
                return Err(Error::limit("keystream for missing bytes", limit, length));
            };
            self.passable = left;
            cipher.skip(length);
        }
        self.phase = Phase::Searching(service, Search { from, candidates: VecDeque::new() });
        Ok(true)
    }

    /// Reads with `read` from the unread bytes; `None` while they are not all there.
    fn attempt<R>(&mut self, read: impl FnOnce(&[u8]) -> Result<(R, usize)>) -> Attempt<R> {
        let unread = &self.buffer[self.read..];
        if unread.len() < self.needed {
            return Ok(None);
        }
        match read(unread) {
            Ok((value, length)) => {
                let unit = Unread { range: self.read..self.read + length, offset: self.offset() };
                self.read += length;
                self.needed = 1;
                Ok(Some((value, unit)))
            }
            Err(error) => match error.needed() {
                Some(needed) => {
                    self.needed = unread.len() + needed;
                    Ok(None)
                }
                None => Err(error.based(self.offset())),
            },
        }
    }

    pub(super) fn connect_packet(&mut self) -> Attempt<ConnectPacket> {
        self.attempt(|bytes| {
            let mut reader = Reader::new(bytes);
            ConnectPacket::decode_fields(&mut reader)
                .map(|packet| (packet, reader.position()))
                .map_err(|error| error.about("connect packet"))
        })
    }

    pub(super) fn setup_packet(&mut self) -> Attempt<SetupPacket<'static>> {
        self.attempt(|bytes| {
            let mut reader = Reader::new(bytes);
            SetupPacket::decode_fields(&mut reader)
                .map(|packet| (packet.into_owned(), reader.position()))
                .map_err(|error| error.about("setup packet"))
        })
    }

    /// Reads a message and shows it to `look` while it is at hand.
    pub(super) fn message<R>(
        &mut self,
        service: Service,
        look: impl FnOnce(&Message<'_>) -> R,
    ) -> Attempt<R> {
        let side = self.side;
        let outcome = self.attempt(|bytes| {
            let mut reader = Reader::new(bytes);
            let message = Message::decode(service, side, &mut reader)?;
            Ok((look(&message), reader.position()))
        });
        if matches!(outcome, Ok(Some(_))) {
            self.messages += 1;
        }
        outcome
    }

    /// Passes over a message that cannot be read. Those of file connections say how long they are;
    /// otherwise the next segment may begin with one that can.
    pub(super) fn pass_over(&mut self) {
        let Phase::Messages(service) = self.phase else {
            return;
        };
        let length = self.buffer[self.read..].first_chunk().map(|head| u32::from_le_bytes(*head));
        match length.and_then(|length| usize::try_from(length).ok()) {
            Some(length @ 8..=MOST_PASSED_OVER) if service == Service::File => {
                let here = length.min(self.unread());
                self.read += here;
                self.discard = length - here;
                self.needed = 1;
            }
            _ => {
                let from = self.offset();
                self.read = self.buffer.len();
                let search = Search { from, candidates: VecDeque::new() };
                self.set_phase(Phase::Searching(service, search));
            }
        }
    }

    /// Tries to find the next message behind a gap. `Some` is what had to be passed over.
    pub(super) fn search(&mut self) -> Option<Range<u64>> {
        let side = self.side;
        loop {
            let Phase::Searching(service, search) = &mut self.phase else {
                return None;
            };
            let (service, from) = (*service, search.from);
            let candidate = *search.candidates.front()?;
            if self.base.saturating_add(self.read as u64) < candidate {
                // Give up what stands before the next candidate.
                let skip = usize::try_from(candidate - self.base).unwrap_or(usize::MAX);
                self.read = skip.min(self.buffer.len());
                self.needed = 1;
            }
            let unread = &self.buffer[self.read..];
            if unread.len() < self.needed {
                return None;
            }
            let Phase::Searching(_, search) = &self.phase else {
                return None;
            };
            let begins =
                |at: usize| search.candidates.contains(&candidate.saturating_add(at as u64));
            match judge(service, side, unread, begins) {
                Verdict::Begins => {
                    let found = self.offset();
                    self.set_phase(Phase::Messages(service));
                    return Some(from..found);
                }
                Verdict::NeedMore(needed) => {
                    self.needed = unread.len() + needed;
                    return None;
                }
                Verdict::Not => {
                    if let Phase::Searching(_, search) = &mut self.phase {
                        search.candidates.pop_front();
                        if search.candidates.is_empty() {
                            // Nothing here begins a message: wait for the next segment.
                            self.read = self.buffer.len();
                            self.needed = 1;
                        }
                    }
                }
            }
        }
    }
}

/// Whether messages begin at a place behind a gap.
enum Verdict {
    Begins,
    NeedMore(usize),
    Not,
}

/// Both sides send messages whole, so those of a segment that begins with one end where a segment
/// ends. Zeros would pass for pings; nobody sends such.
fn judge(service: Service, side: Side, unread: &[u8], begins: impl Fn(usize) -> bool) -> Verdict {
    let mut reader = Reader::new(unread);
    loop {
        let from = reader.position();
        match Message::decode(service, side, &mut reader) {
            Ok(_) => {
                let to = reader.position();
                let zeros = unread[from..to].iter().all(|byte| *byte == 0);
                if from == 0 && zeros {
                    return Verdict::Not;
                }
                if to == unread.len() || begins(to) {
                    return Verdict::Begins;
                }
            }
            Err(error) => {
                return match error.needed() {
                    Some(needed) if from == 0 => Verdict::NeedMore(needed),
                    _ => Verdict::Not,
                };
            }
        }
    }
}

/// The outcome of trying to read: nothing yet, a value and its bytes, or a fault.
pub(super) type Attempt<R> = Result<Option<(R, Unread)>, Error>;
