//! The duration of a server's tick: changes, interest management, sections for all clients, and the
//! outcome of their packets.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot continue has failed")]

use std::sync::Arc;
use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use worldwire_core::Sampler;
use worldwire_mxo::message::Movement;
use worldwire_mxo::replicator::{ClientId, Config, ObjectId, PropertyId, Replicator, Spawn};
use worldwire_mxo::schema::Objects;

const CLIENTS: usize = 200;
const VISIBLE: usize = 500;
/// The percentage of objects that change in a tick.
const CHANGING: usize = 10;
const DOOR: u16 = 415;
const NPC: u16 = 599;

fn main() {
    divan::main();
}

/// A world in which all clients see the same doors and walking NPCs. Other objects are out of
/// range.
struct Town {
    server: Replicator,
    clients: Vec<ClientId>,
    doors: Vec<ObjectId>,
    walkers: Vec<(ObjectId, [f32; 3])>,
    state: PropertyId,
    sampler: Sampler,
    now: Duration,
    number: u64,
    section: Vec<u8>,
    sections: usize,
}

impl Town {
    fn new(clients: usize, visible: usize, far: usize, walking: bool) -> Self {
        let config = Config { views: 8_192, ..Config::default() };
        let objects = Arc::new(Objects::built_in());
        let mut server = Replicator::new(objects, config).unwrap();
        let mut sampler = Sampler::new(1);
        let mut part = |from: i32, range: u32| {
            let part = sampler.below(range.into());
            f64::from(from) + f64::from(u32::try_from(part).unwrap())
        };
        let (mut doors, mut walkers) = (Vec::new(), Vec::new());
        for index in 0..visible + far {
            // The town is 4,000 wide; far objects start at 40,000.
            let from = if index < visible { 0 } else { 40_000 };
            let range = if index < visible { 4_000 } else { 100_000 };
            let position = [part(from, range), 0.0, part(from, range)];
            if walking && index % 2 == 0 {
                let id = server.spawn(Spawn { position, ..Spawn::new(NPC) }).unwrap();
                #[expect(clippy::cast_possible_truncation, reason = "they are integers")]
                walkers.push((id, position.map(|part| part as f32)));
            } else {
                doors.push(server.spawn(Spawn { position, ..Spawn::new(DOOR) }).unwrap());
            }
        }
        let join = |_| {
            let client = server.join().unwrap();
            server.look_from(client, [part(0, 4_000), 0.0, part(0, 4_000)]).unwrap();
            client
        };
        let clients = (0..clients).map(join).collect();
        let state = server.property(DOOR, "CurrentState").unwrap();
        let mut town = Self {
            server,
            clients,
            doors,
            walkers,
            state,
            sampler: Sampler::new(2),
            now: Duration::ZERO,
            number: 0,
            section: Vec::new(),
            sections: 0,
        };
        // Run until every client sees everything.
        town.tick();
        while town.clients.iter().any(|client| !town.server.is_settled(*client).unwrap()) {
            town.tick();
        }
        for client in &town.clients {
            assert_eq!(town.server.views(*client).count(), visible);
        }
        town
    }

    /// Changes a tenth of the objects.
    fn change(&mut self) {
        for _ in 0..self.doors.len() * CHANGING / 100 {
            let bits = self.sampler.bits().to_le_bytes();
            let picked = usize::try_from(self.sampler.below(self.doors.len() as u64)).unwrap();
            let value = [bits[0], bits[1], bits[2], bits[3]];
            self.server.set(self.doors[picked], self.state, &value).unwrap();
        }
        for _ in 0..self.walkers.len() * CHANGING / 100 {
            let picked = usize::try_from(self.sampler.below(self.walkers.len() as u64)).unwrap();
            let (id, position) = &mut self.walkers[picked];
            // One step back and forth, so that nobody leaves the town.
            position[0] =
                if position[0].to_bits() & 1 == 0 { position[0] + 1.5 } else { position[0] - 1.5 };
            let movement = Movement { position: Some(*position), ..Movement::default() };
            self.server.set_movement(*id, &movement).unwrap();
        }
    }

    /// A tick; every packet arrives before the next one.
    fn tick(&mut self) {
        self.now += Duration::from_millis(50);
        self.server.tick(self.now);
        for client in &self.clients {
            let first = self.number + 1;
            self.section.clear();
            while self.server.poll(*client, &mut self.section).unwrap() {
                self.number += 1;
                self.server.sent(*client, self.number).unwrap();
                self.sections += 1;
            }
            for number in first..=self.number {
                self.server.delivered(*client, number).unwrap();
            }
        }
    }

    fn measure(mut self, bencher: Bencher<'_, '_>) {
        let views = self.clients.len() * VISIBLE * CHANGING / 100;
        bencher.counter(ItemsCount::new(views)).bench_local(|| {
            self.change();
            self.tick();
        });
        assert!(self.sections > 0);
    }
}

/// 200 clients that all see 500 objects, a tenth of which change per tick. Items are changed views.
#[divan::bench(name = "mxo/replicator_tick", args = ["doors", "doors_and_walkers"])]
fn tick(bencher: Bencher<'_, '_>, what: &str) {
    Town::new(CLIENTS, VISIBLE, 0, what != "doors").measure(bencher);
}

/// The same, with every client walking.
#[divan::bench(name = "mxo/replicator_walk")]
fn walk(bencher: Bencher<'_, '_>) {
    let mut town = Town::new(CLIENTS, VISIBLE, 0, true);
    let mut step = 0.0;
    let views = CLIENTS * VISIBLE * CHANGING / 100;
    bencher.counter(ItemsCount::new(views)).bench_local(|| {
        step = f64::abs(step - 7.0);
        for client in &town.clients {
            town.server.look_from(*client, [2_000.0 + step, 0.0, 2_000.0]).unwrap();
        }
        town.change();
        town.tick();
    });
}

/// The same, plus changing objects that nobody sees: the same number as visible objects, or ten
/// times that number.
#[divan::bench(name = "mxo/replicator_far", args = [500, 5_000])]
fn far(bencher: Bencher<'_, '_>, far: usize) {
    Town::new(CLIENTS, VISIBLE, far, true).measure(bencher);
}
