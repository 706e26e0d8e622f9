//! A server and one client; the test controls every packet.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Reader, Side};
use worldwire_mxo::message::{Context, Operation, Section};
use worldwire_mxo::replica::Replica;
use worldwire_mxo::replicator::{ClientId, Config, ObjectId, Point, Replicator, Spawn};
use worldwire_mxo::schema::Objects;
use worldwire_mxo::types::Value;

pub(crate) const DOOR: u16 = 415;
pub(crate) const NPC: u16 = 599;
pub(crate) const PLAYER: u16 = 12;

pub(crate) struct Desk {
    pub(crate) server: Replicator,
    pub(crate) client: ClientId,
    /// The client's views, as of the packets it has received.
    pub(crate) replica: Replica,
    pub(crate) now: Duration,
    pub(crate) number: u64,
}

impl Desk {
    pub(crate) fn new(config: Config) -> Self {
        let objects = Arc::new(Objects::built_in());
        let mut server = Replicator::new(Arc::clone(&objects), config).unwrap();
        let client = server.join().unwrap();
        server.look_from(client, [0.0; 3]).unwrap();
        let replica = Replica::new(objects);
        Self { server, client, replica, now: Duration::ZERO, number: 0 }
    }

    pub(crate) fn door_at(&mut self, position: Point) -> ObjectId {
        let door = self.server.spawn(Spawn { position, ..Spawn::new(DOOR) }).unwrap();
        self.set(door, 0);
        door
    }

    pub(crate) fn set(&mut self, door: ObjectId, state: u32) {
        self.server.set_value(door, "CurrentState", &Value::Unsigned(state)).unwrap();
    }

    pub(crate) fn tick(&mut self) {
        self.wait(50);
    }

    /// Advances time by this many milliseconds and ticks.
    pub(crate) fn wait(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
        self.server.tick(self.now);
    }

    /// The next section in this tick, and its packet number; empty if there is none.
    pub(crate) fn poll(&mut self) -> (u64, Vec<u8>) {
        let mut section = Vec::new();
        if self.server.poll(self.client, &mut section).unwrap() {
            self.number += 1;
            self.server.sent(self.client, self.number).unwrap();
        }
        (self.number, section)
    }

    /// Ticks and returns the first section.
    pub(crate) fn flush(&mut self) -> (u64, Vec<u8>) {
        self.tick();
        self.poll()
    }

    /// Delivers a section to the client and returns its contents.
    pub(crate) fn receive(&mut self, section: &[u8]) -> String {
        let objects = Arc::clone(self.replica.objects());
        let context = Context::server(&objects, &self.replica);
        let read = Section::decode(&mut Reader::new(section), &context).unwrap();
        let shown = shown(&read);
        self.replica.apply(&read, Side::Server).unwrap();
        shown
    }

    /// Ticks; the first section arrives and is acknowledged.
    pub(crate) fn exchange(&mut self) -> String {
        let (number, section) = self.flush();
        if section.is_empty() {
            return String::new();
        }
        let shown = self.receive(&section);
        self.delivered(number);
        shown
    }

    pub(crate) fn delivered(&mut self, number: u64) {
        self.server.delivered(self.client, number).unwrap();
    }

    pub(crate) fn lost(&mut self, number: u64) {
        self.server.lost(self.client, number).unwrap();
    }

    pub(crate) fn state(&self, view: u16) -> Option<Value<'_>> {
        self.replica.view(view).unwrap().value("CurrentState")
    }
}

/// Operations and views, abbreviated.
fn shown(section: &Section<'_>) -> String {
    let mut text = String::new();
    for operation in &section.operations {
        let gap = if text.is_empty() { "" } else { ", " };
        let _ = match operation {
            Operation::Create(one) => {
                write!(text, "{gap}create {}:{}", one.new_view, one.spawn_seq)
            }
            Operation::Delete(one) => write!(text, "{gap}delete {:?}", one.views),
            Operation::PendingUpdate(one) => write!(text, "{gap}pending {}", one.target),
            Operation::Update(one) => write!(text, "{gap}update {}", one.view),
            other => panic!("{other:?}"),
        };
    }
    text
}
