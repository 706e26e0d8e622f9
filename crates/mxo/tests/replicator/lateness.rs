//! The replicator over this crate's connections, on a wire where many packets arrive seconds late.
//! A connection considers these packets lost, because it has measured how fast the others are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Connection as _, Event, Input};
use worldwire_core::{Sampler, Side};
use worldwire_mxo::connection::{ClientConfig, Connection, News, ServerConfig, Session, Unit};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::message::{Fault, Movement, Rules};
use worldwire_mxo::replica::Replica;
use worldwire_mxo::replicator::{ClientId, Config, ObjectId, Replicator, Spawn};
use worldwire_mxo::schema::Objects;
use worldwire_mxo::types::Value;

use crate::desk::{DOOR, NPC};

const STEP: Duration = Duration::from_millis(10);
const STEPS_OF_A_TICK: u32 = 5;
const SEEDS: u64 = 12;

struct Late {
    sampler: Sampler,
    now: Duration,
    /// Client and server, and the packets in transit to each, by arrival time.
    machines: [Connection; 2],
    wires: [BTreeMap<(Duration, u64), Vec<u8>>; 2],
    count: u64,
    server: Replicator,
    client: ClientId,
    replica: Replica,
    /// The number of packets considered lost, and how many of them arrived after all.
    outcomes: [u64; 2],
}

impl Late {
    fn new(seed: u64) -> Self {
        let epoch = Duration::from_secs(1_248_965_312);
        let session = |seed| Session::new(0x1234, SessionKey::new(&[7; 16]), &seed);
        let client =
            Connection::client(ClientConfig::new(epoch, 2), session([2; 16]), Duration::ZERO);
        let machine =
            Connection::server(ServerConfig::new(epoch), session([1; 16]), Duration::ZERO);
        let objects = Arc::new(Objects::built_in());
        let mut server = Replicator::new(Arc::clone(&objects), Config::default()).unwrap();
        let id = server.join().unwrap();
        server.look_from(id, [0.0; 3]).unwrap();
        Self {
            sampler: Sampler::new(seed),
            now: Duration::ZERO,
            machines: [client, machine],
            wires: [BTreeMap::new(), BTreeMap::new()],
            count: 0,
            server,
            client: id,
            replica: Replica::new(objects),
            outcomes: [0; 2],
        }
    }

    /// Out of every hundred datagrams, 40 are late, a fifth of them by up to 3 seconds.
    fn arrival(&mut self) -> Duration {
        let late = match self.sampler.below(100) {
            0..8 => 500 + self.sampler.below(2_500),
            8..40 => self.sampler.below(200),
            _ => 0,
        };
        self.now + Duration::from_millis(20 + late)
    }

    fn step(&mut self) {
        self.now += STEP;
        for side in Side::BOTH {
            let at = side.index();
            while let Some(first) = self.wires[at].first_entry()
                && first.key().0 <= self.now
            {
                let datagram = first.remove();
                self.machines[at].input(self.now, side.other(), Input::Datagram(&datagram));
            }
            if self.machines[at].poll_timeout().is_some_and(|due| due <= self.now) {
                self.machines[at].timeout(self.now);
            }
            while let Some(event) = self.machines[at].poll_event() {
                hear(
                    side,
                    &event,
                    &mut self.server,
                    self.client,
                    &mut self.replica,
                    &mut self.outcomes,
                );
            }
            while let Some(datagram) = self.machines[at].poll_transmit(side.other()) {
                self.count += 1;
                let arrival = self.arrival();
                self.wires[side.other().index()].insert((arrival, self.count), datagram);
            }
        }
    }

    fn tick(&mut self) {
        for _ in 0..STEPS_OF_A_TICK {
            self.step();
        }
        self.server.tick(self.now);
        let machine = &mut self.machines[Side::Server.index()];
        if !machine.is_established() {
            return;
        }
        let mut section = Vec::new();
        while self.server.poll(self.client, &mut section).unwrap() {
            // Sections that cannot be sent now are polled again.
            let Ok(number) = machine.sender().send_objects(&section, None) else { break };
            self.server.sent(self.client, number.0).unwrap();
            section.clear();
        }
    }
}

fn hear(
    side: Side,
    event: &worldwire_core::connection::EventOf<'_, Connection>,
    server: &mut Replicator,
    client: ClientId,
    replica: &mut Replica,
    fates: &mut [u64; 2],
) {
    match (side, event) {
        (Side::Client, Event::Received(piece)) => {
            if let Unit::Section { id: 3, .. } = piece.unit
                && let Err(error) = replica.receive(piece.bytes, Side::Server, Rules::STRICT)
            {
                // The section arrived so late that the view it updates no longer exists.
                assert_eq!(Fault::of(&error), Some(Fault::UnknownView), "{error}");
            }
        }
        (Side::Server, Event::News(News::Delivered(number))) => {
            server.delivered(client, number.0).unwrap();
        }
        (Side::Server, Event::News(News::Late(number))) => {
            fates[1] += 1;
            server.delivered(client, number.0).unwrap();
        }
        (Side::Server, Event::News(News::Lost(number))) => {
            fates[0] += 1;
            server.lost(client, number.0).unwrap();
        }
        (_, Event::Fault { error, .. }) => panic!("{error}"),
        _ => {}
    }
}

/// The events: people walk; doors change, appear and disappear.
fn happen(late: &mut Late, doors: &mut Vec<ObjectId>, people: &[ObjectId], round: u32) {
    for _ in 0..late.sampler.below(3) {
        let picked = usize::try_from(late.sampler.below(30)).unwrap();
        match doors.get(picked) {
            None => doors.push(late.server.spawn(Spawn::new(DOOR)).unwrap()),
            Some(door) if late.sampler.below(6) == 0 => {
                late.server.despawn(*door).unwrap();
                doors.swap_remove(picked);
            }
            Some(door) => {
                let state = Value::Unsigned(round);
                late.server.set_value(*door, "CurrentState", &state).unwrap();
            }
        }
    }
    let person = people[usize::try_from(late.sampler.below(people.len() as u64)).unwrap()];
    let yaw = late.sampler.bits().to_le_bytes()[0];
    let movement = Movement { yaw: Some(yaw), action: Some(yaw & 3), ..Movement::default() };
    late.server.set_movement(person, &movement).unwrap();
}

#[test]
fn a_client_with_datagrams_seconds_late_receives_everything() {
    let mut all = [0; 2];
    for seed in 0..SEEDS {
        let mut late = Late::new(seed);
        let mut doors = Vec::new();
        let people: Vec<_> = (0..6).map(|_| late.server.spawn(Spawn::new(NPC)).unwrap()).collect();
        for round in 0..200 {
            happen(&mut late, &mut doors, &people, round);
            late.tick();
        }
        let mut rounds = 0;
        // Pure acknowledgements continue, but a settled client stays settled.
        while rounds < 10 || !late.server.is_settled(late.client).unwrap() {
            late.tick();
            rounds += 1;
            assert!(rounds < 4_000, "still not at rest");
        }
        for _ in 0..100 {
            late.tick();
            let is_settled = late.server.is_settled(late.client).unwrap();
            assert!(is_settled, "seed {seed}: something arrived after the client was settled");
        }
        assert_eq!(late.replica.len(), doors.len() + people.len(), "seed {seed}");
        let state = late.server.property(DOOR, "CurrentState").unwrap();
        for view in late.server.views(late.client) {
            let object = view.object.unwrap();
            let seen = late.replica.view(view.id).unwrap();
            assert_eq!(seen.spawn_seq(), view.spawn_seq);
            let movement = late.server.movement(object).unwrap();
            assert_eq!(seen.movement(), movement, "seed {seed}: view {}", view.id);
            if seen.goid() == DOOR {
                let held = late.server.value(object, state);
                let held = held.and_then(|held| Some(u32::from_le_bytes(held.try_into().ok()?)));
                let found = seen.value("CurrentState");
                assert_eq!(found, held.map(Value::Unsigned), "seed {seed}: view {}", view.id);
            }
        }
        (all[0], all[1]) = (all[0] + late.outcomes[0], all[1] + late.outcomes[1]);
    }
    // Nothing was actually lost.
    assert!(all[1] > 200 && all[0] - all[1] <= all[0] / 50, "{all:?}");
}
