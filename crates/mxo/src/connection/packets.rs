//! Encrypted packets: those for this client or server, and those that an observer or a relay sees.

use worldwire_core::connection::{Event, Timer};
use worldwire_core::{Error, Reader, Side};

use super::endpoint::Verdict;
use super::event::Unread;
use super::inbox::Inbox;
use super::keyring::Refused;
use super::relay::Passage;
use super::sender::Role;
use super::{Connection, MissingKey, News, Unit, units};
use crate::frame::{MAX_ACK_AGE, Packet, PacketHead, RccFlags, Sealed};

impl Connection {
    /// Handles a packet addressed to this client or server.
    pub(super) fn on_own_packet(&mut self, side: Side, sealed: &Sealed<'_>, wire: &[u8]) {
        let Role::Endpoint(endpoint) = &mut self.sender.half.role else { return };
        let timers = &mut self.sender.half.timers;
        let opened = endpoint.session.key.open(&sealed.iv, &sealed.cipher).map_err(Error::from);
        let judged = opened.and_then(|plain| {
            let head = PacketHead::decode(&mut Reader::new(&plain)).map_err(Error::closed)?;
            Ok((endpoint.judge(&head, &sealed.iv, timers), head, plain))
        });
        let (head, plain) = match judged {
            Ok((Verdict::Ignore, ..)) => return,
            Ok((Verdict::Read, head, plain)) => (head, plain),
            Err(error) => {
                let at = self.take(side, wire.len());
                return self.fault(side, error, at, wire);
            }
        };
        let measure = &mut endpoint.measure;
        let read = Packet::decode_measured(&mut Reader::new(&plain), Some(side), &mut |bytes| {
            measure.objects(side, bytes)
        });
        let checked = read.map_err(Error::closed).and_then(|packet| {
            // A reset from the server restarts the client's inbox.
            let restarts = side == Side::Server && head.flags.contains(RccFlags::Reset);
            let (own, new) = (&endpoint.inbox, Inbox::default());
            let inbox = if restarts { &new } else { own };
            inbox.check(&packet, endpoint.common())?;
            Ok(packet)
        });
        let packet = match checked {
            Ok(packet) => packet,
            Err(error) => {
                let at = self.take(side, wire.len());
                // The fault of an exceeded limit has no position in the packet.
                let has_offset = error.offset().is_some();
                let error = if has_offset { error.in_layer("decrypted") } else { error };
                return self.fault(side, error, at, wire);
            }
        };
        let asks = !packet.sections.is_empty();
        if !endpoint.accept(&head, &sealed.iv, asks, timers) {
            return;
        }
        let stream = &mut self.streams[side.index()];
        let start = stream.end;
        stream.end = start.saturating_add(wire.len() as u64);
        let pieces = units::deliver(&mut endpoint.inbox, side, &packet, &plain, start..stream.end);
        self.flush_news();
        for piece in pieces {
            self.receive(piece);
        }
    }

    /// Handles a packet seen by an observer or relay.
    pub(super) fn on_watched_packet(&mut self, side: Side, sealed: &Sealed<'_>, wire: &[u8]) {
        let Some(keys) = self.sender.half.role.keys_mut() else { return };
        let opened = keys.open(&sealed.iv, &sealed.cipher);
        let contradiction = keys.contradiction();
        if !matches!(opened, Err(Refused::Damaged(_))) {
            self.hear(side);
        }
        let plain = match opened {
            Ok(plain) => plain,
            Err(Refused::NoKey(missing)) => return self.on_missing_key(side, missing, wire),
            Err(Refused::Damaged(error)) => {
                let at = self.take(side, wire.len());
                return self.fault(side, error, at, wire);
            }
        };
        if let Some((id, named)) = contradiction {
            self.event(Event::News(News::OtherSession { id, named }));
        }
        let head = match PacketHead::decode(&mut Reader::new(&plain)).map_err(Error::closed) {
            Ok(head) => head,
            Err(error) => {
                let at = self.take(side, wire.len());
                return self.fault(side, error.in_layer("decrypted"), at, wire);
            }
        };
        Side::BOTH.into_iter().for_each(|side| self.resync(side));
        self.has_reported_keys = false;
        self.is_read = true;
        let number = head.sequence.local;
        if self.streams[side.index()].is_reset_by(&head, &sealed.iv) {
            self.report_missing(side, true);
        }
        if !self.streams[side.index()].note(&head, &sealed.iv) {
            self.event(Event::News(News::Repeated { side, number }));
            return self.pass(side, wire, Some(Passage::Repeated(number, plain)));
        }
        self.note_acknowledgements(side, &head);
        self.report_missing(side, false);
        let start = self.take(side, wire.len());
        let range = start..self.streams[side.index()].end;
        let unit = Unit::Packet { number, flags: head.flags };
        let wire = self.wire(wire);
        self.receive(Unread { side, unit, bytes: plain, range, wire });
    }

    /// Relays: notes that a side has sent an encrypted packet.
    fn hear(&mut self, side: Side) {
        let half = &mut self.sender.half;
        let Role::Relay(relay) = &mut half.role else { return };
        relay.heard[side.index()] = true;
        if relay.heard == [true; 2] {
            half.timers.stop(Timer::Setup);
        }
    }

    /// Relays: applies a packet's acknowledgements to the packets with additions that the relay has
    /// sent to this side.
    fn note_acknowledgements(&mut self, from: Side, head: &PacketHead) {
        let newest = self.streams[from.index()].window.newest();
        let age = newest.map_or(0, |newest| newest.ahead_of(head.sequence.local));
        // Acknowledgements in older packets may refer to the previous round of numbers.
        if age <= MAX_ACK_AGE {
            self.sender.half.lanes[from.index()].additions.acknowledge(head.sequence);
        }
    }

    /// Reports packets that are no longer expected.
    pub(super) fn report_missing(&mut self, side: Side, is_over: bool) {
        while let Some((first, last)) = self.streams[side.index()].missing.lost(is_over) {
            self.event(Event::News(News::Missing { side, first, last }));
        }
    }

    /// Handles a packet that no key opens.
    fn on_missing_key(&mut self, side: Side, missing: MissingKey, wire: &[u8]) {
        let start = self.take(side, wire.len());
        self.pass(side, wire, None);
        self.streams[side.index()].unread.get_or_insert(start);
        if !core::mem::replace(&mut self.has_reported_keys, true) {
            self.event(Event::News(News::KeysNeeded { side, missing }));
        }
    }

    /// Reports the end of a part that could not be read without a key.
    pub(super) fn resync(&mut self, side: Side) {
        let stream = &mut self.streams[side.index()];
        if let Some(start) = stream.unread.take() {
            let skipped = start..stream.end;
            self.event(Event::Resync { side, skipped });
        }
    }
}
