//! The part of a relay that forwards entries that need no decision or cannot be read.

use core::ops::Range;

use worldwire_core::connection::{ReadStream as _, SendHalf, StreamMachine};
use worldwire_core::{Error, Side};

use super::Connection;
use super::relay::Passage;
use super::sender::Role;
use super::stream::FrameSpan;

impl Connection {
    /// Queues an entry that needs no decision.
    pub(super) fn pass(&mut self, side: Side, passage: Passage, bytes: Vec<u8>) {
        self.parts_mut().pass(side, Some(passage), bytes);
    }

    /// Relays: records input from a side.
    pub(super) fn on_relayed_input(&mut self, side: Side, is_datagram: bool) {
        let SendHalf { role: Role::Relay(relay), lanes, .. } = &mut self.sender.half else {
            return;
        };
        relay.is_datagrams |= is_datagram;
        lanes[side.other().index()].on_nonces(&mut self.streams[side.index()]);
    }

    /// Relays: opens a stream that turns out to be encrypted, or closes the connection if no key
    /// fits.
    pub(super) fn open_relayed(&mut self, side: Side) {
        let session_id = self.sender.session_id();
        let stream = &mut self.streams[side.index()];
        let SendHalf { role: Role::Relay(relay), lanes, .. } = &mut self.sender.half else {
            return;
        };
        let Some(key) = stream.open(relay.config.keys.for_session(session_id)) else {
            let session = session_id.map_or(String::new(), |id| format!(" of session {id}"));
            let wanted = format!("the AES key and first nonce{session}");
            let error = Error::malformed(wanted, "none that fits the encrypted stream");
            let error = error.at(stream.position());
            return self.parts_mut().refuse(side, error);
        };
        let way = &mut lanes[side.other().index()];
        way.encrypt(side, key);
        way.on_nonces(stream);
    }

    /// Forwards, unchanged, a frame that cannot be read.
    pub(super) fn pass_frame(&mut self, side: Side, span: &FrameSpan) {
        let stream = &self.streams[side.index()];
        let passage = Passage::Unread { is_datagram: stream.is_datagram() };
        let bytes = stream.bytes(span.range.clone()).to_vec();
        self.pass(side, passage, bytes);
    }

    /// Forwards everything after a fault unread: the rest of the datagram, or the rest of the
    /// stream.
    pub(super) fn pass_unread(&mut self, side: Side, datagram: Option<Range<usize>>) {
        let Some(forwarding) = &mut self.sender.half.forwarding else { return };
        let Some(range) = datagram else { return forwarding.set_raw(side) };
        let bytes = self.streams[side.index()].bytes(range).to_vec();
        self.pass(side, Passage::Unread { is_datagram: true }, bytes);
    }

    /// Forwards bytes that cannot be decrypted as they were on the wire. `false` if the connection
    /// cannot continue, because bytes are missing or earlier ones were changed.
    pub(super) fn pass_wire(&mut self, side: Side, wire: Option<Vec<u8>>) -> bool {
        let stream = &mut self.streams[side.index()];
        if self.sender.half.forwarding.is_none() {
            return true;
        }
        // The remaining decrypted bytes go first.
        let range = stream.take(usize::MAX);
        let rest = stream.bytes(range).to_vec();
        stream.close_cipher();
        self.pass(side, Passage::Unread { is_datagram: false }, rest);
        let Some(wire) = wire else { return false };
        self.pass(side, Passage::Sealed, wire);
        !self.sender.half.lanes[side.other().index()].is_broken
    }

    /// Forwards the incomplete tag and nonce at the end of a stream.
    pub(super) fn pass_end(&mut self, side: Side) {
        let rest = self.streams[side.index()].torn_tag().to_vec();
        if !rest.is_empty() {
            self.pass(side, Passage::Torn, rest);
        }
    }
}
