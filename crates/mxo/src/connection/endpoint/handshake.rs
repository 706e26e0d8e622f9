//! Plain packets and their timers: how a connection is set up and kept alive.

use worldwire_core::Side;
use worldwire_core::connection::{Timer, Timers};

use super::{END, Endpoint, MAX_PLAIN_BYTES, Part, Phase};
use crate::connection::event::News;
use crate::frame::{Hello, Plain, RccFlags, SequenceWord};

/// The maximum number of empty sections that a server sends after each hello or packet from a
/// client, since they may go to a forged address.
const MAX_PROBES: u32 = 4;
/// The number of times that a client repeats its first acknowledgement until the server
/// acknowledges a packet. Servers are not known to acknowledge packets without sections.
const MAX_EXTRA_ACKS: u32 = 30;

impl Endpoint {
    /// Restarts the timers that run from the last traffic.
    pub(super) fn on_traffic(&self, timers: &mut Timers) {
        timers.start(Timer::Idle, self.common().idle_time);
        if let Part::Client(config) = &self.part {
            let is_known = self.is_acknowledged || self.extra_acks >= MAX_EXTRA_ACKS;
            let beat = if is_known { config.ping_every } else { config.repeat_every };
            timers.start(Timer::Beat, beat);
        }
    }

    /// Client: handles the acknowledgements of any packet.
    pub(super) fn hear_acknowledgements(&mut self, word: SequenceWord, timers: &mut Timers) {
        let Some(first) = self.first_ack.filter(|_| !self.is_acknowledged) else { return };
        if word.acked().any(|acked| acked == first || acked.is_newer_than(first)) {
            self.is_acknowledged = true;
            self.on_traffic(timers);
        }
    }

    /// Completes setup.
    pub(super) fn establish(&mut self, timers: &mut Timers) {
        self.phase = Phase::Established;
        timers.stop(Timer::Setup);
        self.news.push_back(News::Established);
        self.plan(timers.now());
    }

    /// Server: handles a hello or packet from a client that has not acknowledged a packet yet.
    pub(super) fn greet(&mut self, timers: &mut Timers) {
        let Part::Server(config) = &self.part else { return };
        if matches!(self.phase, Phase::Setup | Phase::Greeted) {
            // The client is still alive.
            timers.start(Timer::Setup, config.confirm_time);
            self.probes_left = MAX_PROBES;
            self.phase = Phase::Greeted;
        }
        let trusts_hellos = config.trusts_hellos;
        self.on_traffic(timers);
        match self.phase {
            Phase::Greeted if trusts_hellos => self.establish(timers),
            Phase::Greeted if self.outbox.packets() == 0 => self.probe(),
            _ => {}
        }
    }

    /// Server: plans an empty section for the client to acknowledge, unless too many have been
    /// sent.
    pub(super) fn probe(&mut self) {
        if let Some(left) = self.probes_left.checked_sub(1) {
            self.probes_left = left;
            self.last_probe = self.outbox.plan_objects(&END, None);
        }
    }

    /// Handles the acknowledgement of a packet.
    pub(super) fn confirm(&mut self, timers: &mut Timers) {
        if !core::mem::replace(&mut self.is_confirmed, true) && self.side() == Side::Server {
            // The client repeats its acknowledgement until it is acknowledged itself.
            self.ack_later(timers);
        }
        if self.phase == Phase::Greeted {
            self.establish(timers);
        }
    }

    /// Client: sends a hello or a ping.
    pub(super) fn beat(&mut self, timers: &mut Timers) {
        let Part::Client(config) = &self.part else { return timers.stop(Timer::Beat) };
        // Repeated until an answer arrives.
        timers.start(Timer::Beat, config.repeat_every);
        // Until a packet arrives, the server may be waiting for an acknowledgement.
        if self.phase == Phase::Setup || self.window.newest().is_none() {
            let mut block = [0; 16];
            let (id, rest) = block.split_at_mut(4);
            id.copy_from_slice(&self.session.id.to_le_bytes());
            rest.copy_from_slice(&config.block_rest);
            let hello = Hello {
                character_uid: config.character_uid,
                unknown: config.hello_unknown,
                encrypted_session: self.session.key.seal_block(&block),
            };
            return self.push_plain(&Plain::Hello(hello));
        }
        if !self.is_acknowledged && self.extra_acks < MAX_EXTRA_ACKS {
            // The server may still wait for an acknowledgement, because the earlier ones were lost.
            self.extra_acks += 1;
            if self.outbox.packets() == 0 {
                self.outbox.plan_bare(RccFlags::Always);
            }
        }
        self.push_plain(&Plain::Ping(self.ping));
        self.ping = self.ping.wrapping_add(1);
    }

    /// Queues a plain packet if there is room. If there is none, the peer repeats its request.
    pub(super) fn push_plain(&mut self, plain: &Plain<'_>) {
        let Ok(bytes) = plain.to_bytes() else { return };
        if self.plain_bytes + bytes.len() <= MAX_PLAIN_BYTES {
            self.plain_bytes += bytes.len();
            self.plain.push_back(bytes);
        }
    }
}
