//! What one side sends: decrypted, and cut into frames.

use core::ops::Range;
use std::collections::VecDeque;

use worldwire_core::connection::{Incoming, Probe, Search};
use worldwire_core::{Error, Limits, Reader, Result, Side};

use crate::crypt::stream::{Opener, StreamKey, chunk_bytes};
use crate::frame::{FrameHead, MAGIC, control_in_frame, is_control, recognize, spans};

/// The bytes of one side that are not reported yet.
#[derive(Debug)]
pub(super) struct Stream {
    side: Side,
    /// Plain bytes.
    incoming: Incoming,
    encryption: Encryption,
    place: Place,
    /// Where datagrams end, in plain bytes from the start of the stream.
    datagrams: VecDeque<u64>,
    /// What comes once all that is there was read.
    pub(super) break_off: Option<BreakOff>,
    /// The side sends nothing more.
    pub(super) ended: bool,
    /// And all of it was read.
    pub(super) is_finished: bool,
    /// For a relay: the nonces that came and were not taken yet.
    pub(super) nonces: Option<Vec<[u8; 16]>>,
    /// What is wrong with what an observer reads all the same.
    oddities: VecDeque<Error>,
}

/// What is known of the place where reading stands.
#[derive(Debug)]
enum Place {
    /// A frame begins here.
    Frame,
    /// The next frame has to be found first; counted in plain bytes.
    Searching(Search),
    /// Nothing of this stream is read any more.
    Over,
}

/// The furthest offset behind a gap from which reading goes on.
const MAX_OFFSET: u64 = 1 << 62;

/// Why nothing can be read behind what is there.
#[derive(Debug)]
pub(super) struct BreakOff {
    pub(super) error: Error,
    /// What came from there on, as it was on the wire; `None` when bytes are missing.
    pub(super) wire: Option<Vec<u8>>,
}

#[derive(Debug)]
enum Encryption {
    /// No handshake so far.
    Plain,
    /// A handshake was seen: the next frame may be encrypted.
    Possible,
    /// Encrypted from a plain position on, which is the wire's too.
    On { opener: Box<Opener>, from: u64 },
}

/// A frame in the buffer.
#[derive(Clone, Debug)]
pub(super) struct FrameSpan {
    pub(super) head: FrameHead,
    pub(super) range: Range<usize>,
}

/// What stands next in a stream.
#[derive(Debug)]
pub(super) enum Next {
    /// A whole frame.
    Frame(FrameSpan),
    /// A datagram was read to its end.
    Datagram,
    /// More bytes are needed.
    Wait,
    /// A frame was found behind these bytes, which are passed over.
    Resumed(Range<u64>),
    /// Something is wrong, and can be read all the same.
    Odd(Error),
    /// The stream turns out to be encrypted; see [`Stream::open`].
    Encrypted,
    /// This cannot be read; see [`Stream::give_up`] and [`Stream::drop_datagram`].
    Fault(Error),
}

impl Stream {
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            incoming: Incoming::default(),
            encryption: Encryption::Plain,
            place: Place::Frame,
            datagrams: VecDeque::new(),
            break_off: None,
            ended: false,
            is_finished: false,
            nonces: None,
            oddities: VecDeque::new(),
        }
    }

    /// The stream was running already: it is read from the first frame that is found.
    pub(super) fn join(&mut self) {
        self.place = Place::Searching(Search::new(0, 0));
    }

    /// Bytes that come next. For an observer a call is a segment, since frames tend to begin with
    /// one. Stops in front of bytes that cannot be decrypted and returns the rest, which comes again
    /// once what is in front was read.
    pub(super) fn push<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        let whole = bytes.len();
        if let Some(BreakOff { wire, .. }) = &mut self.break_off {
            if let Some(wire) = wire {
                wire.extend_from_slice(bytes);
            }
            return &[];
        }
        if self.is_over() {
            self.incoming.skip(bytes.len() as u64);
            return &[];
        }
        let is_watched = self.nonces.is_none();
        let from = self.incoming.end();
        while let Encryption::On { opener, .. } = &mut self.encryption
            && !bytes.is_empty()
        {
            if opener.is_sealed() && bytes.len() < whole {
                break;
            }
            let nonces = &mut self.nonces;
            let opened = opener.open_part(&mut bytes, self.incoming.buffer_mut(), |nonce| {
                if let Some(nonces) = nonces {
                    nonces.push(nonce);
                }
            });
            match opened {
                Ok(0) => {}
                Ok(sealed) => self.pass_sealed(sealed),
                Err(error) if is_watched => {
                    opener.go_on();
                    let error = error.at(self.end());
                    self.oddities.push_back(error);
                }
                Err(error) => {
                    let wire = [opener.rest(), bytes].concat();
                    let error = error.at(self.end());
                    self.break_off = Some(BreakOff { error, wire: Some(wire) });
                    return &[];
                }
            }
        }
        if !self.is_encrypted() {
            self.incoming.push(core::mem::take(&mut bytes));
        }
        let length = self.incoming.end().saturating_sub(from);
        if let Place::Searching(search) = &mut self.place {
            search.segment(from, usize::try_from(length).unwrap_or(usize::MAX));
        }
        bytes
    }

    /// Bytes came that cannot be decrypted: nothing of them is known.
    fn pass_sealed(&mut self, length: usize) {
        let from = self.incoming.offset();
        let at = self.incoming.end();
        self.incoming.skip(length as u64);
        let next = self.incoming.end();
        self.search(from, next, |search| {
            search.segment(at, length);
            search.missing(next);
        });
    }

    /// A datagram: frames that end with it. `Some` is what was passed over before.
    pub(super) fn push_datagram(&mut self, bytes: &[u8]) -> Option<Range<u64>> {
        if self.is_over() || self.break_off.is_some() {
            return None;
        }
        let passed = match &self.place {
            Place::Searching(search) => {
                self.incoming.drop_unread();
                Some(self.wire(search.from())..self.position())
            }
            _ => None,
        };
        self.place = Place::Frame;
        self.incoming.push(bytes);
        self.datagrams.push_back(self.incoming.end());
        passed.filter(|passed| !passed.is_empty())
    }

    /// What stands next; a frame counts as read. Its body has at most `most` bytes, and at most
    /// `max_early` before a session is accepted.
    pub(super) fn next(&mut self, most: u64, max_early: Option<u32>) -> Next {
        if let Some(error) = self.oddities.pop_front() {
            return Next::Odd(error);
        }
        match &mut self.place {
            Place::Frame => {}
            Place::Over => return Next::Wait,
            Place::Searching(_) if self.incoming.unread().len() < self.incoming.needed() => {
                return Next::Wait;
            }
            Place::Searching(search) => {
                let side = self.side;
                let found = search.step(&mut self.incoming, |bytes| probe(bytes, side, most));
                let Some(passed) = found else { return Next::Wait };
                self.place = Place::Frame;
                return Next::Resumed(self.wire(passed.start)..self.wire(passed.end));
            }
        }
        let bytes = self.incoming.unread();
        let bytes = self.datagram().and_then(|length| bytes.get(..length)).unwrap_or(bytes);
        if bytes.is_empty() {
            return match self.datagrams.pop_front() {
                Some(_) => Next::Datagram,
                None => Next::Wait,
            };
        }
        if matches!(self.encryption, Encryption::Possible) && !self.is_datagram() {
            match bytes {
                [_] => return Next::Wait,
                [first, second, ..] if [*first, *second] != MAGIC.to_le_bytes() => {
                    return Next::Encrypted;
                }
                _ => {}
            }
        }
        let limits = Limits { message_bytes: most, ..Limits::DEFAULT };
        let mut reader = Reader::within(bytes, &limits);
        match FrameHead::decode(&mut reader) {
            Ok(head) if let Some(most) = max_early.filter(|most| head.length > *most) => {
                let name = "frame bytes before the session is accepted";
                let error = Error::limit(name, most.into(), head.length.into()).inside("length");
                Next::Fault(error.at(reader.position() as u64).based(self.position()))
            }
            Ok(head) if reader.remaining() >= head.length as usize => {
                let range = self.incoming.advance(head.frame_bytes()).range;
                Next::Frame(FrameSpan { head, range })
            }
            Err(error) if error.needed().is_none() => Next::Fault(error.based(self.position())),
            _ if !self.is_datagram() => Next::Wait,
            _ => {
                let found = format!("{} bytes of one", bytes.len());
                let error = Error::malformed("a datagram of whole frames", found);
                Next::Fault(error.at(self.position()))
            }
        }
    }

    /// How many bytes of the datagram that is being read are left.
    fn datagram(&self) -> Option<usize> {
        let left = self.datagrams.front()?.saturating_sub(self.incoming.offset());
        usize::try_from(left).ok()
    }

    /// Whether what is being read came in a datagram.
    pub(super) fn is_datagram(&self) -> bool {
        !self.datagrams.is_empty()
    }

    /// Passes over the rest of a datagram, and returns where it is in the buffer; `None` when what
    /// is being read did not come in one.
    pub(super) fn drop_datagram(&mut self) -> Option<Range<usize>> {
        let length = self.datagram()?;
        Some(self.incoming.advance(length).range)
    }

    /// Counts the next unread bytes as read, at most so many, and returns where they are.
    pub(super) fn take(&mut self, most: usize) -> Range<usize> {
        self.incoming.advance(self.incoming.unread().len().min(most)).range
    }

    /// How many bytes have come that were not read.
    pub(super) fn waiting_bytes(&self) -> usize {
        let sealed = self.break_off.as_ref().and_then(|it| it.wire.as_ref()).map_or(0, Vec::len);
        self.incoming.unread().len().saturating_add(sealed)
    }

    /// Forgets what was read.
    pub(super) fn forget(&mut self) {
        self.incoming.forget();
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.incoming.bytes(range)
    }

    /// A handshake was seen.
    pub(super) fn expect_encryption(&mut self) {
        if matches!(self.encryption, Encryption::Plain) {
            self.encryption = Encryption::Possible;
        }
    }

    /// Tries keys on a stream that turned out to be encrypted; the right one yields a frame.
    pub(super) fn open<'k>(
        &mut self,
        keys: impl IntoIterator<Item = &'k StreamKey>,
    ) -> Option<&'k StreamKey> {
        let from = self.incoming.offset();
        for key in keys {
            let mut opener = Opener::new(key, self.side);
            let (mut plain, mut nonces) = (Vec::new(), Vec::new());
            let mut sealed = self.incoming.unread();
            let opened = opener.open_part(&mut sealed, &mut plain, |nonce| nonces.push(nonce));
            if opened.is_ok() && plain.starts_with(&MAGIC.to_le_bytes()) {
                self.incoming.replace_unread(&plain);
                self.nonces = self.nonces.take().map(|_| nonces);
                self.encryption = Encryption::On { opener: Box::new(opener), from };
                return Some(key);
            }
        }
        None
    }

    /// The rest is not decrypted any more.
    pub(super) fn close_cipher(&mut self) {
        self.encryption = Encryption::Plain;
    }

    /// The part of a tag and nonce that has come.
    pub(super) fn torn_tag(&self) -> &[u8] {
        match &self.encryption {
            Encryption::On { opener, .. } => opener.rest(),
            _ => &[],
        }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.encryption, Encryption::On { .. })
    }

    pub(super) fn is_searching(&self) -> bool {
        matches!(self.place, Place::Searching(_))
    }

    /// Where what was not cut into frames yet begins on the wire.
    pub(super) fn position(&self) -> u64 {
        self.wire(self.incoming.offset())
    }

    /// Where the bytes that come next begin on the wire.
    pub(super) fn end(&self) -> u64 {
        let owed = match &self.encryption {
            Encryption::On { opener, .. } => opener.owed() as u64,
            _ => 0,
        };
        self.wire(self.incoming.end()).saturating_sub(owed)
    }

    /// Where a byte of the buffer stands on the wire.
    pub(super) fn wire_of(&self, at: usize) -> u64 {
        self.wire(self.incoming.offset_of(at))
    }

    fn wire(&self, plain: u64) -> u64 {
        match &self.encryption {
            Encryption::On { from, .. } if plain > *from => {
                let chunks = (plain - from) / chunk_bytes(self.side) as u64;
                plain.saturating_add(chunks.saturating_mul(32))
            }
            _ => plain,
        }
    }

    /// The error for a stream that ended within a frame, or without one that could be found.
    pub(super) fn torn(&self) -> Option<Error> {
        let error = match &self.place {
            Place::Over => return None,
            Place::Searching(search) if search.seen() == 0 => return None,
            Place::Searching(search) => {
                let found = format!("none in the {} bytes that follow", search.seen());
                let error = Error::malformed("a frame behind what could not be read", found);
                return Some(error.at(self.wire(search.from())));
            }
            Place::Frame => self.incoming.torn("a whole frame")?,
        };
        // Tags and nonces count.
        Some(error.based(self.position().saturating_sub(self.incoming.offset())))
    }

    /// Bytes are missing: what is torn by that is dropped, and the next frame is looked for.
    ///
    /// # Errors
    /// The limit on the bytes of a stream; nothing behind can be read.
    pub(super) fn skip(&mut self, length: u64) -> Result<()> {
        self.datagrams.clear();
        if self.is_over() {
            self.incoming.skip(length);
            return Ok(());
        }
        let (from, end) = (self.incoming.offset(), self.incoming.end());
        if end.saturating_add(length) > MAX_OFFSET {
            return Err(Error::limit("bytes of a stream", MAX_OFFSET, end.saturating_add(length)));
        }
        let plain = match &mut self.encryption {
            Encryption::On { opener, .. } => opener.skip(length),
            _ => length,
        };
        self.incoming.skip(plain);
        let next = self.incoming.end();
        self.search(from, next, |search| search.missing(next));
        Ok(())
    }

    /// What stands next is no frame: the next one is looked for behind it.
    pub(super) fn look_on(&mut self) {
        let from = self.incoming.offset();
        let length = self.incoming.unread().len();
        self.search(from, from.saturating_add(1), |search| search.segment(from, length));
        self.incoming.retry();
    }

    /// Tells the search for the next frame, which goes on or begins.
    fn search(&mut self, from: u64, next: u64, tell: impl FnOnce(&mut Search)) {
        let mut search = match core::mem::replace(&mut self.place, Place::Frame) {
            Place::Searching(search) => search,
            Place::Frame | Place::Over => Search::new(from, next),
        };
        tell(&mut search);
        self.place = Place::Searching(search);
    }

    /// Nothing of this stream is read any more.
    pub(super) fn give_up(&mut self) {
        self.datagrams.clear();
        self.incoming.drop_unread();
        self.place = Place::Over;
    }

    /// Whether it was given up.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.place, Place::Over)
    }
}

/// Whether a frame begins these bytes. Its magic, lengths that agree with each other and what is
/// always 0 speak for it. One alone may stand in the payload of another, even at its end.
fn probe(bytes: &[u8], side: Side, most: u64) -> Probe {
    const FRAME: u32 = 24;
    // Most places are none, which must not cost an error with its text.
    if bytes.iter().zip(MAGIC.to_le_bytes()).any(|(byte, magic)| *byte != magic) {
        return Probe::Not;
    }
    let limits = Limits { message_bytes: most, ..Limits::DEFAULT };
    let head = match FrameHead::decode(&mut Reader::within(bytes, &limits)) {
        Ok(head) if recognize(bytes, most) != Some(false) => head,
        Err(error) if let Some(needed) = error.needed() => return Probe::Incomplete(needed),
        _ => return Probe::Not,
    };
    let length = head.frame_bytes();
    let Some((frame, behind)) = bytes.split_at_checked(length) else {
        return Probe::Incomplete(length - bytes.len());
    };
    // The next one follows.
    if behind.iter().zip(MAGIC.to_le_bytes()).any(|(byte, magic)| *byte != magic) {
        return Probe::Not;
    }
    let fits = match is_control(frame, head) {
        true => control_in_frame(frame, Some(side)).is_ok(),
        false => spans(frame, head).is_ok_and(|spans| !spans.is_empty()),
    };
    if fits { Probe::Message { length, evidence: Some(FRAME) } } else { Probe::Not }
}
