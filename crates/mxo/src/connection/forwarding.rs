//! A relay's queues: reads waiting input, carries out decisions, and sends datagrams that are
//! ready.

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Timer};

use super::Connection;
use super::relay::{PING_EVERY, Passage};
use crate::frame::Plain;

impl Connection {
    /// Carries out the decision about the last piece and fills both queues.
    #[inline]
    pub(super) fn settle(&mut self) {
        if self.sender.half.forwarding.is_some() {
            self.settle_piece();
            Side::BOTH.into_iter().for_each(|from| self.fill(from));
            self.watch_holds();
        }
    }

    /// Starts or stops the pings that are sent while a client's packets are held.
    fn watch_holds(&mut self) {
        let half = &mut self.sender.half;
        let forwarding = half.forwarding.as_ref();
        let is_holding = forwarding.is_some_and(|it| it.is_holding(Side::Client));
        match is_holding && !half.closing.is_closed() {
            true => half.timers.start_once(Timer::Beat, PING_EVERY),
            false => half.timers.stop(Timer::Beat),
        }
    }

    /// Sends the ping that is due.
    pub(super) fn ping_for_held(&mut self) {
        let half = &mut self.sender.half;
        if half.timers.passed() == Some(Timer::Beat) {
            half.timers.stop(Timer::Beat);
            half.lanes[Side::Server.index()].ping(&Plain::Ping(0));
            self.watch_holds();
        }
    }

    /// Repeats packets with additions and asks for packets that can carry the waiting ones.
    pub(super) fn move_additions(&mut self) {
        if self.is_closed() {
            return;
        }
        for to in Side::BOTH {
            let ways = &mut self.sender.half.lanes;
            ways[to.index()].repeat_carriers();
            if ways[to.index()].additions.asks() {
                ways[to.other().index()].repeat_last();
            }
        }
    }

    /// Carries out the decision about the last piece.
    pub(super) fn settle_piece(&mut self) {
        let Some(forwarding) = &mut self.sender.half.forwarding else { return };
        let settled = forwarding.settle(|_, passage| passage.take_wire());
        if let Some(from) = settled {
            self.fill(from);
        }
    }

    /// Queues the datagrams from a side that can leave now.
    fn fill(&mut self, from: Side) {
        if let Err(error) = self.sender.half.fill(from) {
            self.refuse(from, error.at(self.streams[from.index()].end));
        }
    }

    /// Reads the next input, unless its side is paused. Returns false if there is none.
    pub(super) fn read_on(&mut self) -> bool {
        let half = &self.sender.half;
        let Some(forwarding) = half.forwarding.as_ref().filter(|_| !half.closing.is_closed())
        else {
            return false;
        };
        if let Some((from, arrival)) = self.backlog.pop(|side| !half.is_paused(side)) {
            self.arrive(from, arrival.as_input());
            return true;
        }
        for side in Side::BOTH {
            if let Err(error) = forwarding.check_unread(self.backlog.bytes(side)) {
                self.refuse(side, error.at(self.streams[side.index()].end));
                return true;
            }
        }
        false
    }

    /// Forwards a datagram that is not reported as a piece.
    pub(super) fn pass(&mut self, side: Side, wire: &[u8], repeated: Option<Passage>) {
        if let Some(forwarding) = &mut self.sender.half.forwarding {
            forwarding.pass(side, repeated, wire.to_vec());
            self.fill(side);
        }
    }
}
