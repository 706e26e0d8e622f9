//! The stream of one side, decrypted and split into frames.

use core::ops::Range;
use std::collections::VecDeque;

use worldwire_core::connection::{Incoming, Probe, ReadStream, Search};
use worldwire_core::{Error, Limits, Reader, Result, Side};

use crate::crypt::stream::{Opener, StreamKey, chunk_bytes};
use crate::frame::{FrameHead, MAGIC, control_in_frame, is_control, recognize, spans};

/// The received bytes of one side.
#[derive(Clone, Debug)]
pub struct Stream {
    side: Side,
    /// The decrypted bytes.
    pub(super) incoming: Incoming,
    encryption: Encryption,
    state: ReadState,
    /// The offsets where datagrams end, in decrypted bytes from the start of the stream.
    datagrams: VecDeque<u64>,
    /// The fault to report once everything received has been read.
    pub(super) break_off: Option<BreakOff>,
    /// The bytes of the piece reported last, if they were copied out of the buffer.
    pub(super) reported_copy: Vec<u8>,
    /// Whether the end of the stream has been handled.
    pub(super) is_finished: bool,
    /// For a relay: the received nonces that it has not taken yet.
    pub(super) nonces: Option<Vec<[u8; 16]>>,
    /// Errors in bytes that an observer could nevertheless read.
    oddities: VecDeque<Error>,
}

/// How the next bytes are read.
#[derive(Clone, Debug)]
enum ReadState {
    /// A frame begins here.
    Frame,
    /// The next frame must be found first. Offsets count decrypted bytes.
    Searching(Search),
    /// The rest of the stream is not read.
    Over,
}

/// The highest offset after a gap at which reading resumes.
const MAX_OFFSET: u64 = 1 << 62;

/// Why nothing after the received bytes can be read.
#[derive(Clone, Debug)]
pub(super) struct BreakOff {
    pub(super) error: Error,
    /// The bytes after that point, as on the wire; `None` if bytes are missing.
    pub(super) wire: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum Encryption {
    /// No handshake has been seen.
    Plain,
    /// A handshake has been seen: the next frame may be encrypted.
    Possible,
    /// Encrypted from this offset on. Up to it, offsets in wire bytes and decrypted bytes are
    /// equal.
    On { opener: Box<Opener>, from: u64 },
}

/// A frame in the buffer.
#[derive(Clone, Debug)]
pub(super) struct FrameSpan {
    pub(super) head: FrameHead,
    pub(super) range: Range<usize>,
}

/// The next part of a stream.
#[derive(Debug)]
pub(super) enum Next {
    /// A whole frame.
    Frame(FrameSpan),
    /// A datagram was read to its end.
    Datagram,
    /// More bytes are needed.
    Wait,
    /// A frame was found after these bytes, which are skipped.
    Resumed(Range<u64>),
    /// An error in bytes that can still be read.
    Odd(Error),
    /// The stream turned out to be encrypted; see [`Stream::open`].
    Encrypted,
    /// These bytes cannot be read; see [`Stream::give_up`] and [`Stream::drop_datagram`].
    Fault(Error),
}

impl Stream {
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            incoming: Incoming::default(),
            encryption: Encryption::Plain,
            state: ReadState::Frame,
            datagrams: VecDeque::new(),
            break_off: None,
            reported_copy: Vec::new(),
            is_finished: false,
            nonces: None,
            oddities: VecDeque::new(),
        }
    }

    /// Creates a stream that is already running. It is read from the first frame found.
    pub(super) fn join(&mut self) {
        self.state = ReadState::Searching(Search::new(0, 0));
    }

    /// Adds the next bytes. An observer passes one segment per call, because frames usually
    /// begin with one. Stops before bytes that cannot be decrypted and returns the rest, which the
    /// caller passes again after reading everything before it.
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
        if let ReadState::Searching(search) = &mut self.state {
            search.segment(from, usize::try_from(length).unwrap_or(usize::MAX));
        }
        bytes
    }

    /// Skips received bytes that cannot be decrypted.
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

    /// Adds a datagram; its end also ends its last frame. `Some` is the range skipped before it.
    pub(super) fn push_datagram(&mut self, bytes: &[u8]) -> Option<Range<u64>> {
        if self.is_over() || self.break_off.is_some() {
            return None;
        }
        let passed = match &self.state {
            ReadState::Searching(search) => {
                self.incoming.drop_unread();
                Some(self.wire(search.from())..self.position())
            }
            _ => None,
        };
        self.state = ReadState::Frame;
        self.incoming.push(bytes);
        self.datagrams.push_back(self.incoming.end());
        passed.filter(|passed| !passed.is_empty())
    }

    /// Returns the next part. A returned frame counts as read. Its body may have at most `max`
    /// bytes, and at most `max_early` before a session is accepted.
    pub(super) fn next(&mut self, max: u64, max_early: Option<u32>) -> Next {
        if let Some(error) = self.oddities.pop_front() {
            return Next::Odd(error);
        }
        match &mut self.state {
            ReadState::Frame => {}
            ReadState::Over => return Next::Wait,
            ReadState::Searching(_) if self.incoming.unread().len() < self.incoming.needed() => {
                return Next::Wait;
            }
            ReadState::Searching(search) => {
                let side = self.side;
                let found = search.step(&mut self.incoming, |bytes| probe(bytes, side, max));
                let Some(passed) = found else { return Next::Wait };
                self.state = ReadState::Frame;
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
        let limits = Limits { message_bytes: max, ..Limits::DEFAULT };
        let mut reader = Reader::within(bytes, &limits);
        match FrameHead::decode(&mut reader) {
            Ok(head) if let Some(max) = max_early.filter(|max| head.length > *max) => {
                let name = "frame bytes before the session is accepted";
                let error = Error::limit(name, max.into(), head.length.into()).inside("length");
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

    /// The number of unread bytes of the current datagram.
    fn datagram(&self) -> Option<usize> {
        let left = self.datagrams.front()?.saturating_sub(self.incoming.offset());
        usize::try_from(left).ok()
    }

    /// Whether the bytes being read arrived in a datagram.
    pub(super) fn is_datagram(&self) -> bool {
        !self.datagrams.is_empty()
    }

    /// Skips the rest of a datagram and returns its position in the buffer; `None` outside
    /// datagrams.
    pub(super) fn drop_datagram(&mut self) -> Option<Range<usize>> {
        let length = self.datagram()?;
        Some(self.incoming.advance(length).range)
    }

    /// Marks up to this many bytes as read and returns their position in the buffer.
    pub(super) fn take(&mut self, max: usize) -> Range<usize> {
        self.incoming.advance(self.incoming.unread().len().min(max)).range
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.incoming.bytes(range)
    }

    /// Records a handshake, after which frames may be encrypted.
    pub(super) fn expect_encryption(&mut self) {
        if matches!(self.encryption, Encryption::Plain) {
            self.encryption = Encryption::Possible;
        }
    }

    /// Tries keys on a stream that turned out to be encrypted. The right one yields a frame.
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

    /// Stops decrypting.
    pub(super) fn close_cipher(&mut self) {
        self.encryption = Encryption::Plain;
    }

    /// The received part of an incomplete tag and nonce.
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
        matches!(self.state, ReadState::Searching(_))
    }

    /// The wire offset of the next byte to arrive.
    pub(super) fn end(&self) -> u64 {
        let owed = match &self.encryption {
            Encryption::On { opener, .. } => opener.owed() as u64,
            _ => 0,
        };
        self.wire(self.incoming.end()).saturating_sub(owed)
    }

    /// The wire offset of a byte in the buffer.
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

    /// The error for a stream that ended within a frame, or in which no frame could be found.
    pub(super) fn torn(&self) -> Option<Error> {
        let error = match &self.state {
            ReadState::Over => return None,
            ReadState::Searching(search) if search.seen() == 0 => return None,
            ReadState::Searching(search) => {
                let found = format!("no frame in the {} bytes that follow", search.seen());
                let error = Error::malformed("a frame after the unreadable bytes", found);
                return Some(error.at(self.wire(search.from())));
            }
            ReadState::Frame => self.incoming.torn("a whole frame")?,
        };
        // Offsets include tags and nonces.
        Some(error.based(self.position().saturating_sub(self.incoming.offset())))
    }

    /// Skips missing bytes: drops the torn frame and searches for the next one.
    ///
    /// # Errors
    /// Fails if the limit on the bytes of a stream is exceeded. Nothing after the gap can then be
    /// read.
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

    /// Searches for the next frame, because the next bytes do not begin with one.
    pub(super) fn search_on(&mut self) {
        let from = self.incoming.offset();
        let length = self.incoming.unread().len();
        self.search(from, from.saturating_add(1), |search| search.segment(from, length));
        self.incoming.retry();
    }

    /// Continues or starts the search for the next frame.
    fn search(&mut self, from: u64, next: u64, update: impl FnOnce(&mut Search)) {
        let mut search = match core::mem::replace(&mut self.state, ReadState::Frame) {
            ReadState::Searching(search) => search,
            ReadState::Frame | ReadState::Over => Search::new(from, next),
        };
        update(&mut search);
        self.state = ReadState::Searching(search);
    }

    /// Stops reading this stream.
    pub(super) fn give_up(&mut self) {
        self.datagrams.clear();
        self.incoming.drop_unread();
        self.state = ReadState::Over;
    }

    /// Whether the rest of the stream is not read.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, ReadState::Over)
    }
}

impl ReadStream for Stream {
    fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    fn incoming_mut(&mut self) -> &mut Incoming {
        &mut self.incoming
    }

    fn waiting_bytes(&self) -> usize {
        let sealed = self.break_off.as_ref().and_then(|it| it.wire.as_ref()).map_or(0, Vec::len);
        self.incoming.unread().len().saturating_add(sealed)
    }

    /// The offset on the wire, including tags and nonces.
    fn position(&self) -> u64 {
        self.wire(self.incoming.offset())
    }
}

/// Whether these bytes begin with a frame: its magic, consistent lengths and fields that are always
/// 0 count as evidence. A single frame is not enough, because it may be embedded in the payload of
/// another, even at its end.
fn probe(bytes: &[u8], side: Side, max: u64) -> Probe {
    const FRAME: u32 = 24;
    // Most positions do not match, and building an error for each would be slow.
    if bytes.iter().zip(MAGIC.to_le_bytes()).any(|(byte, magic)| *byte != magic) {
        return Probe::Not;
    }
    let limits = Limits { message_bytes: max, ..Limits::DEFAULT };
    let head = match FrameHead::decode(&mut Reader::within(bytes, &limits)) {
        Ok(head) if recognize(bytes, max) != Some(false) => head,
        Err(error) if let Some(needed) = error.needed() => return Probe::Incomplete(needed),
        _ => return Probe::Not,
    };
    let length = head.frame_bytes();
    let Some((frame, behind)) = bytes.split_at_checked(length) else {
        return Probe::Incomplete(length - bytes.len());
    };
    // The next frame follows.
    if behind.iter().zip(MAGIC.to_le_bytes()).any(|(byte, magic)| *byte != magic) {
        return Probe::Not;
    }
    let fits = match is_control(frame, head) {
        true => control_in_frame(frame, Some(side)).is_ok(),
        false => spans(frame, head).is_ok_and(|spans| !spans.is_empty()),
    };
    if fits { Probe::Message { length, evidence: Some(FRAME) } } else { Probe::Not }
}
