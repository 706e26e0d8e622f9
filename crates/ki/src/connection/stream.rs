//! What one side sends: decrypted, and cut into frames.

use core::ops::Range;
use std::collections::VecDeque;

use worldwire_core::connection::Incoming;
use worldwire_core::{Error, Limits, Reader, Side};

use crate::crypt::stream::{Opener, StreamKey, chunk_bytes};
use crate::frame::{FrameHead, MAGIC, recognize};

/// The bytes of one side that are not reported yet.
#[derive(Debug)]
pub(super) struct Stream {
    side: Side,
    /// Plain bytes.
    incoming: Incoming,
    encryption: Encryption,
    /// Nothing can be read until a frame begins with a segment.
    lost: Option<u64>,
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
}

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
            lost: None,
            datagrams: VecDeque::new(),
            break_off: None,
            ended: false,
            is_finished: false,
            nonces: None,
        }
    }

    /// The stream was running already: it is read from the first segment that begins with a frame.
    pub(super) fn join(&mut self) {
        self.lost = Some(0);
    }

    /// Bytes that come next. For an observer a call is a segment: a lost stream is read again from
    /// a segment that begins with a frame, and the range passed over is returned.
    pub(super) fn push(&mut self, mut bytes: &[u8], most: u64) -> Option<Range<u64>> {
        if let Some(BreakOff { wire, .. }) = &mut self.break_off {
            if let Some(wire) = wire {
                wire.extend_from_slice(bytes);
            }
            return None;
        }
        if self.lost.is_some() && (self.is_over() || recognize(bytes, most) != Some(true)) {
            self.incoming.skip(bytes.len() as u64);
            return None;
        }
        let resumed = self.resume();
        let Encryption::On { opener, .. } = &mut self.encryption else {
            self.incoming.push(bytes);
            return resumed;
        };
        let nonces = &mut self.nonces;
        let opened = opener.open_part(&mut bytes, self.incoming.buffer_mut(), |nonce| {
            if let Some(nonces) = nonces {
                nonces.push(nonce);
            }
        });
        if let Err(error) = opened {
            let wire = [opener.rest(), bytes].concat();
            let error = error.at(self.end());
            self.break_off = Some(BreakOff { error, wire: Some(wire) });
        }
        resumed
    }

    /// A datagram: frames that end with it.
    pub(super) fn push_datagram(&mut self, bytes: &[u8]) -> Option<Range<u64>> {
        if self.is_over() || self.break_off.is_some() {
            return None;
        }
        let resumed = self.resume();
        self.incoming.push(bytes);
        self.datagrams.push_back(self.incoming.end());
        resumed
    }

    fn resume(&mut self) -> Option<Range<u64>> {
        let from = self.lost.take()?;
        Some(from..self.incoming.offset()).filter(|skipped| !skipped.is_empty())
    }

    /// What stands next; a frame counts as read.
    pub(super) fn next(&mut self, most: u64) -> Next {
        if self.lost.is_some() {
            return Next::Wait;
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

    /// Everything that is there counts as read.
    pub(super) fn take(&mut self) -> Range<usize> {
        self.incoming.advance(self.incoming.unread().len()).range
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

    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Where what was not cut into frames yet begins on the wire.
    pub(super) fn position(&self) -> u64 {
        self.wire(self.incoming.offset())
    }

    /// Where the bytes that come next begin on the wire.
    pub(super) fn end(&self) -> u64 {
        self.wire(self.incoming.end())
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

    /// The error for a stream that ended within a frame.
    pub(super) fn torn(&self) -> Option<Error> {
        let error = self.incoming.torn("a whole frame").filter(|_| !self.is_lost())?;
        // Tags and nonces count.
        Some(error.based(self.position().saturating_sub(self.incoming.offset())))
    }

    /// Bytes are missing: what is torn by that is dropped. `false` when the stream cannot be read
    /// any more, because the keystream goes on behind the gap.
    pub(super) fn skip(&mut self, length: u64) -> bool {
        if !self.is_over() {
            self.lost = Some(self.lost.unwrap_or_else(|| self.position()));
        }
        self.datagrams.clear();
        self.incoming.skip(length);
        self.is_over() || !self.is_encrypted()
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
}
