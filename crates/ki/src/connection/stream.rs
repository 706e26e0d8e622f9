//! What one side sends: decrypted, and cut into frames.

use core::ops::Range;
use std::collections::VecDeque;

use worldwire_core::{Error, Limits, Reader, Result, Side};

use super::event::FrameSpan;
use crate::crypt::stream::{Opener, StreamKey, chunk_bytes};
use crate::frame::{FrameHead, MAGIC, recognize};

/// The bytes of one side that are not told yet.
#[derive(Debug)]
pub(super) struct Stream {
    side: Side,
    /// Plain bytes; those before `start` were told.
    buffer: Vec<u8>,
    start: usize,
    /// How many plain bytes, and missing ones, stood before the buffer.
    before: u64,
    encryption: Encryption,
    /// Nothing can be read until a frame begins with a segment.
    lost: Option<u64>,
    /// Where datagrams end, in plain bytes from the start of the stream.
    datagrams: VecDeque<u64>,
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

/// What stands next in a stream.
pub(super) enum Next {
    /// A whole frame.
    Frame(FrameSpan),
    /// More bytes are needed.
    Wait,
    /// The stream turns out to be encrypted; see [`Stream::open`].
    Encrypted,
    /// A datagram ended within a frame; it was dropped.
    Torn(Error),
    /// The stream cannot be read.
    Fault(Error),
}

impl Stream {
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            buffer: Vec::new(),
            start: 0,
            before: 0,
            encryption: Encryption::Plain,
            lost: None,
            datagrams: VecDeque::new(),
        }
    }

    /// The stream was running already: it is read from the first segment that begins with a frame.
    pub(super) fn join(&mut self) {
        self.lost = Some(0);
    }

    /// Bytes that come next. For an observer a call is a segment: a lost stream is read again
    /// from a segment that begins with a frame, and the range passed over is returned.
    pub(super) fn push(&mut self, bytes: &[u8], most: u64) -> Result<Option<Range<u64>>> {
        let mut resumed = None;
        if let Some(from) = self.lost {
            if self.is_over() || recognize(bytes, most) != Some(true) {
                self.before += bytes.len() as u64;
                return Ok(None);
            }
            self.lost = None;
            resumed = Some(from..self.before).filter(|skipped| !skipped.is_empty());
        }
        match &mut self.encryption {
            Encryption::On { opener, .. } => opener.open(bytes, &mut self.buffer)?,
            _ => self.buffer.extend_from_slice(bytes),
        }
        Ok(resumed)
    }

    /// A datagram: frames that end with it.
    pub(super) fn push_datagram(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        self.datagrams.push_back(self.before + self.buffer.len() as u64);
    }

    /// What stands next; a frame counts as told when this is called again.
    pub(super) fn next(&mut self, most: u64) -> Next {
        if self.lost.is_some() {
            return Next::Wait;
        }
        let end = match self.datagrams.front() {
            Some(end) => usize::try_from(end - self.before).unwrap_or(usize::MAX),
            None => self.buffer.len(),
        };
        let bytes = self.buffer.get(self.start..end).unwrap_or_default();
        if bytes.is_empty() {
            if self.datagrams.pop_front().is_some() {
                return self.next(most);
            }
            return Next::Wait;
        }
        let magic = MAGIC.to_le_bytes();
        if matches!(self.encryption, Encryption::Possible) {
            match bytes {
                [_] => return Next::Wait,
                [first, second, ..] if [*first, *second] != magic => return Next::Encrypted,
                _ => {}
            }
        }
        let limits = Limits { message_bytes: most, ..Limits::DEFAULT };
        let mut reader = Reader::within(bytes, &limits);
        let head = FrameHead::decode(&mut reader);
        let found = match &head {
            Ok(head) => reader.remaining() >= head.length as usize,
            Err(error) if error.needed().is_some() => false,
            Err(error) => {
                let error = error.clone().based(self.position());
                return self.broken(error);
            }
        };
        match head {
            Ok(head) if found => {
                let (start, end) = (self.start, self.start + head.frame_bytes());
                self.start = end;
                Next::Frame(FrameSpan { head, start, end })
            }
            _ if self.datagrams.is_empty() => Next::Wait,
            _ => {
                let found = format!("{} bytes of one", bytes.len());
                let error = Error::malformed("a datagram of whole frames", found);
                self.broken(error.at(self.position()))
            }
        }
    }

    /// What cannot be read ends the stream, or the datagram.
    fn broken(&mut self, error: Error) -> Next {
        match self.datagrams.pop_front() {
            Some(end) => {
                self.start = usize::try_from(end - self.before).unwrap_or(usize::MAX);
                Next::Torn(error)
            }
            None => Next::Fault(error),
        }
    }

    /// Forgets what was told.
    pub(super) fn forget(&mut self) {
        if self.start == self.buffer.len() {
            self.before += self.buffer.len() as u64;
            self.buffer.clear();
            self.start = 0;
        } else if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.before += self.start as u64;
            self.start = 0;
        }
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or_default()
    }

    /// A handshake was seen.
    pub(super) fn expect_encryption(&mut self) {
        if matches!(self.encryption, Encryption::Plain) {
            self.encryption = Encryption::Possible;
        }
    }

    /// Tries keys on a stream that turned out to be encrypted; the right one yields a frame.
    pub(super) fn open<'k>(&mut self, keys: impl IntoIterator<Item = &'k StreamKey>) -> bool {
        let sealed = self.buffer.get(self.start..).unwrap_or_default();
        let from = self.before + self.start as u64;
        let magic = MAGIC.to_le_bytes();
        for key in keys {
            let mut opener = Opener::new(key, self.side);
            let mut plain = Vec::new();
            if opener.open(sealed, &mut plain).is_ok() && plain.starts_with(&magic) {
                self.buffer.truncate(self.start);
                self.buffer.extend_from_slice(&plain);
                self.encryption = Encryption::On { opener: Box::new(opener), from };
                return true;
            }
        }
        false
    }

    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.encryption, Encryption::On { .. })
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Where what was not cut into frames yet begins on the wire.
    pub(super) fn position(&self) -> u64 {
        self.wire(self.start)
    }

    /// Bytes that were not cut into frames yet.
    pub(super) fn unread(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Bytes are missing: what is torn by that is dropped. `false` when the stream cannot be read
    /// any more, because the keystream goes on behind the gap.
    pub(super) fn skip(&mut self, length: u64) -> bool {
        if self.is_over() {
            self.before += length;
            return true;
        }
        let from = self.lost.unwrap_or_else(|| self.position());
        // What was cut into frames already is still told.
        let torn = self.unread() as u64;
        self.buffer.truncate(self.start);
        self.before += torn + length;
        self.lost = Some(from);
        !self.is_encrypted()
    }

    /// Nothing of this stream is read any more.
    pub(super) fn give_up(&mut self) {
        self.skip(0);
        self.lost = Some(u64::MAX);
    }

    /// Whether it was given up.
    pub(super) fn is_over(&self) -> bool {
        self.lost == Some(u64::MAX)
    }

    /// Where a byte of the buffer stands on the wire.
    pub(super) fn wire(&self, at: usize) -> u64 {
        let plain = self.before + at as u64;
        match &self.encryption {
            Encryption::On { from, .. } if plain > *from => {
                let chunks = (plain - from) / chunk_bytes(self.side) as u64;
                plain + 32 * chunks
            }
            _ => plain,
        }
    }
}
