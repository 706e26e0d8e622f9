//! Runs lists of operations on a server's world, with a client that receives it.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use worldwire_core::testing::Target;
use worldwire_core::{Sampler, Side};

use crate::message::{Movement, Rules};
use crate::replica::{Notice, Replica};
use crate::replicator::{ClientId, Config, ObjectId, Replicator, Spawn, ViewState};
use crate::schema::Objects;

/// Each operation takes two bytes: the action, and the object or packet.
pub(super) const TARGETS: &[Target] = &[Target { name: "mxo_replicator", run, seeds }];

static OBJECTS: LazyLock<Arc<Objects>> = LazyLock::new(|| Arc::new(Objects::built_in()));

/// A door, an NPC, a player, and an object whose updates are unknown.
const GOIDS: [u16; 4] = [415, 599, 12, 417];
const MAX_OBJECTS: usize = 24;
const LATE: Duration = Duration::from_millis(400);
/// The maximum number of ticks until everything is delivered.
const MAX_REST: u32 = 2_000;

/// A packet that has not reached the client yet.
struct Packet {
    number: u64,
    section: Vec<u8>,
    /// When it was reported as lost.
    lost_at: Option<Duration>,
}

struct World {
    server: Replicator,
    client: ClientId,
    replica: Replica,
    /// The first bit of the input: whether overtaken packets are dropped.
    in_order: bool,
    newest: u64,
    in_transit: VecDeque<Packet>,
    objects: Vec<(ObjectId, u16)>,
    now: Duration,
    number: u64,
}

fn run(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    let in_order = first & 1 != 0;
    let config = Config {
        enter: 100.0,
        leave: 120.0,
        packet_bytes: 1_000,
        tick_bytes: 1_000,
        patience: u32::from(first >> 4),
        late: (!in_order).then_some(LATE),
        give_up: Duration::from_secs(3_600),
        objects: MAX_OBJECTS,
        views: 16,
        ..Config::default()
    };
    let mut server = Replicator::new(Arc::clone(&OBJECTS), config).expect("a valid configuration");
    let client = server.join().expect("room for a client");
    server.look_from(client, [0.0; 3]).expect("a position");
    let mut world = World {
        server,
        client,
        replica: Replica::new(Arc::clone(&OBJECTS)),
        in_order,
        newest: 0,
        in_transit: VecDeque::new(),
        objects: Vec::new(),
        now: Duration::ZERO,
        number: 0,
    };
    for operation in data.as_chunks().0 {
        world.operate(*operation);
    }
    world.settle();
    world.compare();
}

impl World {
    fn operate(&mut self, [what, which]: [u8; 2]) {
        let picked = usize::from(which) % self.objects.len().max(1);
        let object = self.objects.get(picked).copied();
        let [x, z] = [f64::from(what >> 4) * 16.0, f64::from(which) - 128.0];
        match (what & 15, object) {
            (0, _) => {
                let goid = GOIDS[usize::from(which) % GOIDS.len()];
                let world_id = (what & 16 != 0).then(|| which.into());
                let spawned = self.server.spawn(Spawn {
                    world_id,
                    position: [x, 0.0, z],
                    ..Spawn::new(goid)
                });
                match spawned {
                    Ok(id) => self.objects.push((id, goid)),
                    Err(error) => assert_eq!(self.objects.len(), MAX_OBJECTS, "{error}"),
                }
            }
            (1, Some((id, _))) => {
                self.server.despawn(id).expect("the id is valid");
                self.objects.swap_remove(picked);
            }
            (2..=5, Some((id, goid))) => self.set(id, goid, what >> 4, which),
            (6, Some((id, _))) => self.server.move_to(id, [x, 0.0, z]).expect("a position"),
            (7, Some((id, goid))) => {
                let movement = Movement {
                    yaw: Some(which),
                    action: (what & 16 != 0).then_some(what >> 6),
                    ..Movement::default()
                };
                let moved = match what & 32 {
                    0 => self.server.set_movement(id, &movement),
                    _ => self.server.follow(self.client, &movement),
                };
                assert!(moved.is_ok() || goid != 12 || what & 32 != 0, "a player cannot move");
            }
            (8, _) => self.tick(),
            (9, _) => self.deliver(usize::from(which)),
            (10, _) => self.lose(usize::from(which)),
            (11, _) => self.server.look_from(self.client, [x, 0.0, z]).expect("a position"),
            (12, Some((id, 12))) => {
                self.server.possess(self.client, id).expect("an object without an owner")
            }
            (13, _) if which < 8 => {
                self.server.reset(self.client).expect("the id is valid");
                self.replica.reset();
                self.in_transit.clear();
            }
            (14, _) => self.poll(what & 16 != 0),
            _ => {}
        }
    }

    fn set(&mut self, id: ObjectId, goid: u16, index: u8, value: u8) {
        let Some((_, class)) = OBJECTS.class_of(goid) else { return };
        let order = class.updates().order(3).unwrap_or_else(|| class.create());
        let index = usize::from(index) * 3 % order.len().max(1);
        let Some(slot) = order.slot(index) else { return };
        let property = self.server.property(goid, slot.name()).expect("a property of the class");
        let bytes = vec![value; slot.kind().size().into()];
        self.server.set(id, property, &bytes).expect("a value of the right size");
    }

    fn tick(&mut self) {
        self.now += Duration::from_millis(50);
        let too_late = |packet: &Packet| packet.lost_at.is_some_and(|at| at + LATE <= self.now);
        self.in_transit.retain(|packet| !too_late(packet));
        self.server.tick(self.now);
        self.poll(true);
    }

    fn poll(&mut self, is_sent: bool) {
        let mut section = Vec::new();
        while self.server.poll(self.client, &mut section).expect("the id is valid") {
            assert!(section.len() <= 1_000, "{} bytes", section.len());
            if !is_sent {
                return;
            }
            self.number += 1;
            self.server.sent(self.client, self.number).expect("an increasing number");
            let section = core::mem::take(&mut section);
            self.in_transit.push_back(Packet { number: self.number, section, lost_at: None });
        }
    }

    /// Packets that arrive are acknowledged, unless they were reported as lost.
    fn deliver(&mut self, which: usize) {
        let index = which % self.in_transit.len().max(1);
        let Some(packet) = self.in_transit.remove(index) else { return };
        if self.in_order && packet.number < self.newest {
            self.server.lost(self.client, packet.number).expect("the id is valid");
            return;
        }
        self.newest = packet.number;
        let received = self.replica.receive(&packet.section, Side::Server, Rules::STRICT);
        let (used, notices) = received.expect("a client can read it");
        assert_eq!(used, packet.section.len());
        for notice in notices {
            let is_fine = matches!(notice, Notice::CreatedAgain(_) | Notice::DeletedUnknown(_));
            assert!(is_fine, "{notice:?}");
        }
        if packet.lost_at.is_none() {
            self.server.delivered(self.client, packet.number).expect("the id is valid");
        }
    }

    /// Reports a packet as lost; it may still arrive.
    fn lose(&mut self, which: usize) {
        let index = which % self.in_transit.len().max(1);
        let Some(packet) = self.in_transit.get_mut(index) else { return };
        self.server.lost(self.client, packet.number).expect("the id is valid");
        packet.lost_at.get_or_insert(self.now);
        if self.in_order {
            // The packet's section will never be applied, or was applied before.
            self.in_transit.remove(index);
        }
    }

    fn settle(&mut self) {
        for _ in 0..MAX_REST {
            self.tick();
            while !self.in_transit.is_empty() {
                self.deliver(0);
            }
            if self.server.is_settled(self.client).expect("the id is valid") {
                return;
            }
        }
        panic!("not settled: {:?}", self.server.views(self.client).collect::<Vec<_>>());
    }

    fn compare(&self) {
        let views: Vec<_> = self.server.views(self.client).collect();
        assert_eq!((self.replica.len(), self.replica.pending_bytes()), (views.len(), 0));
        for view in views {
            assert_eq!((view.state, view.is_dirty), (ViewState::Live, false));
            let seen = self.replica.view(view.id).expect("the client has it");
            let (id, goid) = *self
                .objects
                .iter()
                .find(|(id, _)| Some(*id) == view.object)
                .expect("an object in the world");
            assert_eq!((seen.goid(), seen.spawn_seq()), (goid, view.spawn_seq));
            let (_, class) = OBJECTS.class_of(goid).expect("a goobj with a class");
            let order = class.updates().order(view.id).into_iter().flat_map(|order| order.slots());
            for slot in order {
                let property =
                    self.server.property(goid, slot.name()).expect("a property of the class");
                let held = self.server.value(id, property).map(|bytes| slot.kind().read(bytes));
                let (held, found) = (held.flatten(), seen.value(slot.name()));
                // NaN is not equal to itself.
                assert_eq!(format!("{found:?}"), format!("{held:?}"), "{}", slot.name());
            }
            if view.id != 2 {
                let held = self.server.movement(id).expect("the id is valid");
                assert_eq!(seen.movement(), held);
            }
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![
        // A door is created, changed, lost, changed and sent again.
        vec![0, 0, 0, 8, 0, 9, 0, 2, 7, 8, 0, 10, 0, 2, 8, 8, 0, 9, 0, 9, 0],
        // The same, with packets in order; the door also leaves and returns.
        vec![1, 0, 0, 8, 0, 9, 0, 6, 0, 8, 0, 9, 0, 6, 128, 8, 0, 9, 0, 1, 0, 8, 0],
        // A character changes its owner and moves.
        vec![16, 0, 2, 0, 2, 12, 0, 8, 0, 7, 5, 12, 1, 8, 0, 39, 9, 13, 1, 8, 0, 9, 3],
    ];
    for seed in 0..24 {
        let mut sampler = Sampler::new(seed);
        let length = 40 + 20 * usize::try_from(seed).unwrap_or(0);
        seeds.push(sampler.bytes(length));
    }
    seeds
}
