//! Plain packets and their timers: how a connection is set up, and kept alive.

use worldwire_core::connection::{Timer, Timers};

use super::{END, Endpoint, MAX_PLAIN_BYTES, Part, Phase};
use crate::connection::event::News;
use crate::frame::{Hello, Plain};

impl Endpoint {
    /// Restarts the timers of traffic.
    pub(super) fn on_traffic(&self, timers: &mut Timers) {
        timers.start(Timer::Idle, self.common().idle_time);
        if let Part::Client(config) = &self.part {
            let has_heard = self.window.newest().is_some();
            let beat = if has_heard { config.ping_every } else { config.repeat_every };
            timers.start(Timer::Beat, beat);
        }
    }

    /// Completes setup.
    pub(super) fn establish(&mut self, timers: &mut Timers) {
        self.phase = Phase::Established;
        timers.stop(Timer::Setup);
        self.news.push_back(News::Established);
        self.plan(timers.now());
    }

    /// Server: handles a hello from a client that has not sent packets yet.
    pub(super) fn greet(&mut self, timers: &mut Timers) {
        let Part::Server(config) = &self.part else { return };
        if self.phase == Phase::Setup {
            timers.start(Timer::Setup, config.confirm_time);
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

    /// Server: plans an empty section, for the client to acknowledge.
    pub(super) fn probe(&mut self) {
        self.last_probe = self.outbox.plan_objects(&END, None);
    }

    /// Handles the acknowledgement of a packet.
    pub(super) fn confirm(&mut self, timers: &mut Timers) {
        self.is_confirmed = true;
        if self.phase == Phase::Greeted {
            self.establish(timers);
        }
    }

    /// Client: sends a hello or a ping.
    pub(super) fn beat(&mut self, timers: &mut Timers) {
        let Part::Client(config) = &self.part else { return timers.stop(Timer::Beat) };
        // Repeats until an answer arrives.
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
        self.push_plain(&Plain::Ping(self.ping));
        self.ping = self.ping.wrapping_add(1);
    }

    /// Queues a plain packet if there is room. The peer repeats those that get no answer.
    pub(super) fn push_plain(&mut self, plain: &Plain<'_>) {
        let Ok(bytes) = plain.to_bytes() else { return };
        if self.plain_bytes + bytes.len() <= MAX_PLAIN_BYTES {
            self.plain_bytes += bytes.len();
            self.plain.push_back(bytes);
        }
    }
}
