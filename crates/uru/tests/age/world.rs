//! Two ages with scripted clients in virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use worldwire_uru::age::{Config, Event, Instance, JoinRefused, Packet, Player};
use worldwire_uru::file::age::AgeFile;
use worldwire_uru::net_message::NetMessage;
use worldwire_uru::net_message::patch::restamp;
use worldwire_uru::schema::Descriptors;
use worldwire_uru::types::UnifiedTime;

pub(crate) use crate::messages::*;

/// A message that a player receives.
pub(crate) type Got = Packet;

/// The time at which virtual time begins.
pub(crate) const UNIX: u32 = 1_700_000_000;

pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) ages: Vec<Instance>,
    pub(crate) descriptors: Arc<Descriptors>,
    /// The messages that each player has received but the test has not read yet.
    inboxes: BTreeMap<u32, Vec<Packet>>,
    /// The events of the ages, except for routed messages.
    pub(crate) events: Vec<Event>,
    pub(crate) admins: Vec<u32>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Config::default(), "Fern")
    }

    /// Two ages with this name; `Bare` has no state of its own.
    pub(crate) fn with(config: Config, name: &str) -> Self {
        let descriptors = Arc::new(Descriptors::load([("age.sdl", SDL)]));
        assert!(descriptors.problems().is_empty());
        let file = AgeFile { max_capacity: 4, sequence_prefix: PREFIX, ..AgeFile::default() };
        let unix = Duration::from_secs(UNIX.into());
        let age = || {
            let descriptors = Arc::clone(&descriptors);
            Instance::new(Duration::ZERO, unix, name, file.clone(), descriptors, config.clone())
        };
        Self {
            now: Duration::ZERO,
            ages: vec![age(), age()],
            descriptors,
            inboxes: BTreeMap::new(),
            events: Vec::new(),
            admins: Vec::new(),
        }
    }

    /// Whether a packet is the message that was sent, with the server's time and the actual sender.
    pub(crate) fn is_forwarded(&self, packet: &Got, sent: &[u8], sender: u32) -> bool {
        let mut wanted = sent.to_vec();
        restamp(&mut wanted, self.time(), sender).unwrap();
        packet.bytes() == wanted
    }

    /// Whether a time is the current one.
    pub(crate) fn is_now(&self, time: &UnifiedTime) -> bool {
        *time == self.time()
    }

    fn time(&self) -> UnifiedTime {
        let seconds = UNIX + u32::try_from(self.now.as_secs()).unwrap();
        UnifiedTime { seconds, microseconds: self.now.subsec_micros() }
    }

    /// Checks internal state, which is not possible over sockets.
    pub(crate) fn inside(&self, check: impl FnOnce(&Instance)) {
        check(self.age());
    }

    pub(crate) fn age(&self) -> &Instance {
        &self.ages[0]
    }

    pub(crate) fn age_mut(&mut self) -> &mut Instance {
        &mut self.ages[0]
    }

    pub(crate) fn try_join(&mut self, age: usize, player_id: u32) -> Result<(), JoinRefused> {
        let mut player = Player::new(player_id, &format!("player {player_id}"));
        player.is_admin = self.admins.contains(&player_id);
        let outcome = self.ages[age].join(self.now, player);
        self.pump();
        outcome
    }

    pub(crate) fn join(&mut self, player_id: u32) {
        self.try_join(0, player_id).unwrap();
    }

    /// Joins and loads the avatar; the resulting messages are discarded.
    pub(crate) fn enter(&mut self, player_id: u32) {
        self.join(player_id);
        self.send(player_id, load_avatar(player_id, true));
        self.forget();
    }

    pub(crate) fn leave(&mut self, player_id: u32) {
        let age = self.age_of(player_id);
        self.ages[age].leave(self.now, player_id);
        self.pump();
    }

    fn age_of(&self, player_id: u32) -> usize {
        let is_in = |age: &Instance| age.members().any(|member| member.player().id == player_id);
        self.ages.iter().position(is_in).unwrap()
    }

    pub(crate) fn send<'m>(&mut self, player_id: u32, message: impl Into<NetMessage<'m>>) {
        self.send_bytes(player_id, &bytes(&message.into()));
    }

    pub(crate) fn send_bytes(&mut self, player_id: u32, message: &[u8]) {
        let age = self.age_of(player_id);
        self.ages[age].receive(self.now, player_id, outer(message), message);
        self.pump();
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
        let now = self.now;
        for age in &mut self.ages {
            while age.poll_timeout().is_some_and(|at| at <= now) {
                age.timeout(now);
            }
        }
        self.pump();
    }

    fn pump(&mut self) {
        for index in 0..self.ages.len() {
            while let Some(event) = self.ages[index].poll_event() {
                for other in (0..self.ages.len()).filter(|other| *other != index) {
                    match &event {
                        Event::Route { packet, players } => {
                            self.ages[other].deliver(packet, players);
                        }
                        Event::RouteToAll { packet } => self.ages[other].deliver_to_all(packet),
                        _ => {}
                    }
                }
                self.events.push(event);
            }
        }
        for age in &mut self.ages {
            while let Some(delivery) = age.poll_delivery() {
                self.inboxes.entry(delivery.to).or_default().push(delivery.packet);
            }
        }
    }

    /// The messages that a player received since the last call.
    pub(crate) fn got(&mut self, player_id: u32) -> Vec<Packet> {
        self.inboxes.remove(&player_id).unwrap_or_default()
    }

    /// The classes of the messages that a player received.
    pub(crate) fn received(&mut self, player_id: u32) -> Vec<String> {
        self.got(player_id).iter().map(class_name).collect()
    }

    pub(crate) fn forget(&mut self) {
        self.inboxes.clear();
        self.events.clear();
    }

    /// A state with some integers set, as a blob.
    pub(crate) fn blob(&self, name: &str, version: u16, values: &[(&str, i32)]) -> Vec<u8> {
        blob(&self.descriptors, name, version, values)
    }

    /// The state of a lever.
    pub(crate) fn lever(&self, place: i32) -> Vec<u8> {
        self.blob("lever", 1, &[("place", place)])
    }
}
