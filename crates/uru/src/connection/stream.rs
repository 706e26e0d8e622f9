//! One direction of a connection.

use core::ops::Range;

use worldwire_core::connection::{
    Incoming, Located, Probe, ReadStream, Search, SkipBudget, evidence,
};
use worldwire_core::{Error, Limits, Reader, Result, Side, Tree};

use crate::connect::{ConnectPacket, SetupPacket};
use crate::crypt::exchange::SessionKey;
use crate::crypt::rc4::Rc4;
use crate::frame::{Message, Service, cannot_begin};

/// One direction: its bytes, its cipher and its phase.
#[derive(Clone, Debug)]
pub struct Stream {
    side: Side,
    pub(super) incoming: Incoming,
    cipher: Option<Rc4>,
    /// The limit on keystream skipped for missing bytes.
    budget: SkipBudget,
    phase: Phase,
    /// The number of bytes of an unknown message still to arrive.
    discard: usize,
    /// The number of messages read so far.
    pub(super) messages: u64,
}

/// What a direction expects next.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// The connect packet.
    Connect,
    /// The bytes after a missing or incomplete connect packet (observers only).
    Late,
    /// A setup packet.
    Setup,
    /// Messages that cannot be read until the key is known. Encrypted bytes accumulate.
    Waiting,
    /// Messages.
    Messages(Service),
    /// Messages, but the start of the next one must be found first.
    Searching(Service, Search),
    /// Nothing: the rest cannot be read.
    Lost,
    /// Bytes that a relay cannot read and forwards unchanged.
    Passing,
}

/// The maximum size in bytes of an unknown message on a file connection.
const MAX_PASSED_OVER: usize = 4 << 20;

/// The highest offset after a gap at which reading resumes.
const MAX_OFFSET: u64 = 1 << 62;

impl Stream {
    pub(super) fn new(side: Side, phase: Phase) -> Self {
        Self {
            side,
            incoming: Incoming::default(),
            cipher: None,
            budget: SkipBudget::default(),
            phase,
            discard: 0,
            messages: 0,
        }
    }

    pub(super) fn phase(&self) -> &Phase {
        &self.phase
    }

    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.incoming.retry();
        if matches!(phase, Phase::Lost) {
            self.incoming.drop_unread();
            self.cipher = None;
        }
        self.phase = phase;
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.phase, Phase::Lost)
    }

    /// Adds bytes from the wire.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.is_lost() {
            return self.incoming.skip(bytes.len() as u64);
        }
        self.budget.earn(bytes.len());
        let end = self.incoming.end();
        if let Phase::Searching(_, search) = &mut self.phase {
            search.segment(end, bytes.len());
        }
        let new = self.incoming.push(bytes);
        if let Some(cipher) = &mut self.cipher {
            cipher.apply(new);
        }
        let discard = self.discard.min(bytes.len());
        if discard > 0 {
            self.discard -= discard;
            self.incoming.advance(discard);
        }
    }

    /// Decrypts everything from here on with this key, including unread bytes already received.
    pub(super) fn decrypt_with(&mut self, key: &SessionKey) {
        let mut cipher = Rc4::new(key);
        cipher.apply(self.incoming.unread_mut());
        self.cipher = Some(cipher);
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.cipher.is_some()
    }

    /// Skips missing bytes. Returns false if nothing after them can be read.
    ///
    /// # Errors
    /// Fails if the limit on skipped keystream is exceeded; the stream is then lost.
    pub(super) fn skip(&mut self, length: u64) -> Result<bool> {
        let is_far = self.incoming.end().saturating_add(length) > MAX_OFFSET;
        let from = self.incoming.offset();
        if !matches!(self.phase, Phase::Messages(_) | Phase::Searching(..)) {
            self.set_phase(Phase::Lost);
            self.incoming.skip(length);
            return Ok(false);
        }
        self.incoming.skip(length);
        self.discard = 0;
        if is_far {
            self.set_phase(Phase::Lost);
            return Ok(false);
        }
        if let Some(cipher) = &mut self.cipher {
            if let Err(error) = self.budget.spend(length) {
                self.set_phase(Phase::Lost);
                return Err(error);
            }
            cipher.skip(length);
        }
        let next = self.incoming.end();
        match &mut self.phase {
            Phase::Searching(_, search) => search.missing(next),
            Phase::Messages(service) => {
                self.phase = Phase::Searching(*service, Search::new(from, next));
            }
            _ => {}
        }
        Ok(true)
    }

    /// Records that the connect packet, or a part of it, is missing.
    pub(super) fn begin_late(&mut self, length: u64) {
        self.incoming.skip(length);
        self.set_phase(Phase::Late);
    }

    /// Searches for a message of a service from the next unread byte onwards. The first one begins
    /// at `begin`, if known.
    pub(super) fn search_for(&mut self, service: Service, begin: Option<u64>) {
        let at = self.incoming.offset();
        let mut search = Search::new(0, at);
        if service == Service::File {
            search = search.sized();
        }
        search.segment(at, self.incoming.unread().len());
        // Peers send whole messages, including the first.
        if let Some(begin) = begin.filter(|begin| (at + 1..self.incoming.end()).contains(begin)) {
            search.segment(begin, 0);
        }
        self.set_phase(Phase::Searching(service, search));
    }

    /// The error for a stream that ends within a packet or message.
    pub(super) fn torn(&self) -> Option<Error> {
        if let Phase::Searching(_, search) = &self.phase
            && search.seen() > 0
        {
            let found = format!("no message in the {} bytes that follow", search.seen());
            let error = Error::malformed("a message after the missing bytes", found);
            return Some(error.at(search.from()));
        }
        self.incoming.torn(match self.phase {
            Phase::Lost | Phase::Passing => return None,
            Phase::Connect | Phase::Late => "a whole connect packet",
            Phase::Setup => "a whole setup packet",
            Phase::Waiting => "the server's seed",
            Phase::Messages(_) | Phase::Searching(..) => "a whole message",
        })
    }

    pub(super) fn connect_packet(&mut self) -> Attempt<ConnectPacket> {
        self.incoming.attempt(|bytes| {
            let mut reader = Reader::new(bytes);
            ConnectPacket::decode_fields(&mut reader)
                .map(|packet| (packet, reader.position()))
                .map_err(|error| error.about("connect packet"))
        })
    }

    pub(super) fn setup_packet(&mut self) -> Attempt<SetupPacket<'static>> {
        self.incoming.attempt(|bytes| {
            let mut reader = Reader::new(bytes);
            SetupPacket::decode_fields(&mut reader)
                .map(|packet| (packet.into_owned(), reader.position()))
                .map_err(|error| error.about("setup packet"))
        })
    }

    /// Reads a message and passes it to `look` while it is borrowed.
    pub(super) fn message<R>(
        &mut self,
        service: Service,
        look: impl FnOnce(&Message<'_>) -> R,
    ) -> Attempt<R> {
        let side = self.side;
        let outcome = self.incoming.attempt(|bytes| {
            let mut reader = Reader::new(bytes);
            let message = Message::decode(service, side, &mut reader)?;
            Ok((look(&message), reader.position()))
        });
        if matches!(outcome, Ok(Some(_))) {
            self.messages += 1;
        }
        outcome
    }

    /// Skips a message that cannot be read. On file connections its length is known. On others, the
    /// next segment may begin with a readable message.
    pub(super) fn pass_over(&mut self) {
        let Phase::Messages(service) = self.phase else {
            return;
        };
        let unread = self.incoming.unread();
        let length = unread.first_chunk().map(|head| u32::from_le_bytes(*head));
        match length.and_then(|length| usize::try_from(length).ok()) {
            Some(length @ 8..=MAX_PASSED_OVER) if service == Service::File => {
                let here = length.min(unread.len());
                self.incoming.advance(here);
                self.discard = length - here;
            }
            _ => {
                let from = self.incoming.offset();
                self.incoming.drop_unread();
                let search = Search::new(from, self.incoming.end());
                self.set_phase(Phase::Searching(service, search));
            }
        }
    }

    /// Tries to find the next message after a gap. `Some` is the range skipped.
    pub(super) fn search(&mut self) -> Option<Range<u64>> {
        let Phase::Searching(service, search) = &mut self.phase else {
            return None;
        };
        if self.incoming.unread().len() < self.incoming.needed() {
            return None;
        }
        let (side, service) = (self.side, *service);
        let skipped = search.step(&mut self.incoming, |bytes| probe(service, side, bytes))?;
        self.set_phase(Phase::Messages(service));
        Some(skipped)
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

/// Whether these bytes begin with a message, and the evidence for it.
fn probe(service: Service, side: Side, bytes: &[u8]) -> Probe {
    /// The evidence from a net message's class, which appears twice.
    const CLASS: u32 = 20;
    /// The evidence from the length of a message on a file connection, which must be exact. A small
    /// length may be a coincidence.
    const LENGTH: u32 = 40;
    const SMALL: usize = 64;
    if cannot_begin(service, side, bytes) {
        return Probe::Not;
    }
    let limits = Limits::DEFAULT;
    let mut reader = Reader::traced_within("stream", bytes, Tree::new(), &limits);
    let outcome = Message::decode(service, side, &mut reader).map(drop);
    let length = reader.position();
    let (tree, outcome) = reader.conclude(outcome);
    if let Err(error) = outcome {
        return error.needed().map_or(Probe::Not, Probe::Incomplete);
    }
    let more = match service {
        Service::File => Some(if length > SMALL { LENGTH } else { 0 }),
        Service::Game => match tree.find("fields.buffer") {
            Some(buffer) => {
                let class = tree.find("fields.type").and_then(|class| class.unsigned());
                let inside =
                    buffer.raw().get(4..6).map(|it| u64::from(it[0]) | u64::from(it[1]) << 8);
                (class == inside).then_some(CLASS)
            }
            None => Some(0),
        },
        Service::Gatekeeper | Service::Auth => Some(0),
    };
    let evidence = evidence(&tree).and_then(|bits| Some(bits + more?));
    Probe::Message { length, evidence }
}

/// The result of trying to read: nothing yet, a value and its position, or a fault.
pub(super) type Attempt<R> = Result<Option<(R, Located)>>;

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::{Duration, Instant};

    use super::*;

    /// After lost bytes, a message is searched for at every offset. Most offsets have none, and
    /// building an error for each would be slow.
    #[test]
    fn a_search_rejects_most_offsets_by_their_header() {
        const OFFSETS: usize = 2000;
        let fastest = |act: &dyn Fn(&[u8])| -> Duration {
            let rounds = (0..10).map(|_| {
                let start = Instant::now();
                (0..OFFSETS).for_each(|_| act(black_box(&[b'x'; 64])));
                start.elapsed()
            });
            rounds.min().unwrap()
        };
        for service in Service::ALL {
            let decoding = fastest(&|bytes| {
                let outcome = Message::decode(service, Side::Client, &mut Reader::new(bytes));
                assert!(black_box(outcome).is_err());
            });
            let probing = fastest(&|bytes| {
                assert_eq!(black_box(probe(service, Side::Client, bytes)), Probe::Not);
            });
            assert!(2 * probing < decoding, "{service:?}: {probing:?}, {decoding:?}");
        }
    }
}
