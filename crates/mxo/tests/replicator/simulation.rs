//! A server and its clients over a network that loses, repeats and reorders packets, in virtual
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Sampler, Side};
use worldwire_mxo::frame::SequenceNumber;
use worldwire_mxo::message::{Animation, Fault, Movement, Rules};
use worldwire_mxo::replica::{Notice, Replica};
use worldwire_mxo::replicator::{
    ClientId, Config, ObjectId, Replicator, Spawn, Traffic, ViewState,
};
use worldwire_mxo::schema::Objects;

/// The number of random operations over all seeds.
const OPERATIONS: u64 = 100_000;
const SEEDS: u64 = 50;
const CLIENTS: usize = 4;
const TICK: Duration = Duration::from_millis(50);
/// The maximum number of ticks needed to deliver everything once nothing changes.
const MAX_REST: u32 = 4_000;
/// The maximum number of bytes resent per byte sent for the first time.
const MAX_AGAIN: f64 = 1.6;

/// A door, an NPC and a player.
const GOIDS: [u16; 3] = [415, 599, 12];

#[derive(Clone, Copy)]
struct Network {
    /// The percentage of lost packets in both directions.
    lost: u64,
    repeated: u64,
    /// The maximum delay in milliseconds; the minimum is 20.
    slowest: u64,
    /// The percentage of packets in both directions that take up to 3 seconds, much longer than
    /// expected.
    late: u64,
    /// Whether clients drop overtaken packets.
    in_order: bool,
    /// Whether clients use packet numbers to keep the newest values.
    numbered: bool,
}

/// A client and its transport.
struct Peer {
    id: ClientId,
    replica: Replica,
    own: Option<ObjectId>,
    /// The server's next number and the full numbers of packets without an outcome.
    next: u64,
    open: BTreeMap<u64, Duration>,
    /// Packets reported as lost, as far back as their numbers are unambiguous.
    lost: BTreeSet<u64>,
    /// Packets in flight, by arrival: 12-bit numbers with bytes, or acknowledgements.
    to_client: BTreeMap<(Duration, u64), (u16, Vec<u8>)>,
    to_server: BTreeMap<(Duration, u64), (u16, u8)>,
    /// The packets that arrived and the newest of them.
    received: BTreeSet<u64>,
    newest: u64,
    counter: u64,
}

struct Sim {
    sampler: Sampler,
    network: Network,
    server: Replicator,
    peers: Vec<Peer>,
    objects: Vec<(ObjectId, u16, [f64; 3])>,
    now: Duration,
    /// The number of values that clients ignored because they had newer ones.
    stale: u64,
}

/// The full number for a 12-bit one: the number nearest to the given one.
fn expand(number: u16, near: u64) -> u64 {
    let base = near - near % 4096 + u64::from(number);
    [base.saturating_sub(4096), base, base + 4096]
        .into_iter()
        .min_by_key(|full| full.abs_diff(near))
        .unwrap()
}

fn wire(number: u64) -> u16 {
    u16::try_from(number % 4096).unwrap()
}

impl Sim {
    fn new(seed: u64, network: Network) -> Self {
        let late = Duration::from_millis(2 * network.slowest) + 4 * TICK;
        let late = (!network.in_order).then_some(late);
        let config = Config {
            enter: 100.0,
            leave: 120.0,
            packet_bytes: 600,
            tick_bytes: 1_200,
            late,
            // A late packet and its late acknowledgement.
            later: Duration::from_secs(6),
            ..Config::default()
        };
        let objects = Arc::new(Objects::built_in());
        let mut server = Replicator::new(Arc::clone(&objects), config).unwrap();
        let peer = |_| Peer {
            id: server.join().unwrap(),
            replica: Replica::new(Arc::clone(&objects)),
            own: None,
            // The numbers wrap soon.
            next: 4_000,
            open: BTreeMap::new(),
            lost: BTreeSet::new(),
            to_client: BTreeMap::new(),
            to_server: BTreeMap::new(),
            received: BTreeSet::new(),
            newest: 0,
            counter: 0,
        };
        let peers = (0..CLIENTS).map(peer).collect();
        let sampler = Sampler::new(seed);
        let mut sim = Self {
            sampler,
            network,
            server,
            peers,
            objects: Vec::new(),
            now: Duration::ZERO,
            stale: 0,
        };
        for index in 0..CLIENTS {
            let position = sim.position();
            sim.server.look_from(sim.peers[index].id, position).unwrap();
        }
        sim
    }

    fn position(&mut self) -> [f64; 3] {
        let mut part = || f64::from(u32::try_from(self.sampler.below(400)).unwrap());
        [part(), part() / 10.0, part()]
    }

    fn movement(&mut self) -> Movement {
        let bits = self.sampler.bits().to_le_bytes();
        let position = self.position().map(|part| {
            #[expect(clippy::cast_possible_truncation, reason = "small integers")]
            let part = part as f32;
            part
        });
        Movement {
            script_counter: None,
            script: None,
            animation: (bits[0] & 1 == 0)
                .then_some(Animation { animation: bits[1] & 3, mood: bits[2] & 1 }),
            action: (bits[0] & 2 == 0).then_some(bits[3] & 3),
            yaw: (bits[0] & 4 == 0).then_some(bits[4]),
            position: (bits[0] & 8 == 0).then_some(position),
            time: (bits[0] & 8 == 0).then_some(7),
        }
    }

    /// Runs a random operation.
    fn operate(&mut self) {
        let choice = self.sampler.below(100);
        let picked = usize::try_from(self.sampler.below(self.objects.len().max(1) as u64)).unwrap();
        let object = self.objects.get(picked).copied();
        match (choice, object) {
            (0..12, _) | (_, None) => {
                if self.objects.len() < 60 {
                    self.spawn();
                }
            }
            (12..18, Some((id, ..))) => {
                self.server.despawn(id).unwrap();
                self.objects.swap_remove(picked);
                for peer in &mut self.peers {
                    peer.own = peer.own.filter(|own| *own != id);
                }
            }
            (18..60, Some((id, goid, _))) => self.set(id, goid),
            (60..85, Some((id, goid, _))) => {
                let position = self.position();
                if goid == 415 {
                    self.server.move_to(id, position).unwrap();
                    self.objects[picked].2 = position;
                    return;
                }
                let movement = self.movement();
                self.server.set_movement(id, &movement).unwrap();
                if let Some(position) = movement.position {
                    self.objects[picked].2 = position.map(f64::from);
                }
            }
            (85..94, _) => {
                let position = self.position();
                let peer = self.peer();
                self.server.look_from(self.peers[peer].id, position).unwrap();
            }
            (94..97, Some((id, goid, _))) => {
                let peer = self.peer();
                let is_taken = self.peers.iter().any(|peer| peer.own == Some(id));
                if goid == 12 && !is_taken {
                    self.server.possess(self.peers[peer].id, id).unwrap();
                    self.peers[peer].own = Some(id);
                }
            }
            _ => {
                if self.sampler.below(20) == 0 {
                    let peer = self.peer();
                    self.reset(peer);
                }
            }
        }
    }

    fn peer(&mut self) -> usize {
        usize::try_from(self.sampler.below(CLIENTS as u64)).unwrap()
    }

    fn spawn(&mut self) {
        let goid = GOIDS[usize::try_from(self.sampler.below(3)).unwrap()];
        let position = self.position();
        let world_id = (goid == 415).then(|| u32::try_from(self.objects.len()).unwrap());
        let id = self.server.spawn(Spawn { world_id, position, ..Spawn::new(goid) }).unwrap();
        self.objects.push((id, goid, position));
        for _ in 0..self.sampler.below(6) {
            self.set(id, goid);
        }
    }

    /// Sets a property that updates can contain, too.
    fn set(&mut self, id: ObjectId, goid: u16) {
        let objects = Arc::clone(self.server.objects());
        let order = objects.class_of(goid).unwrap().1.updates().order(3).unwrap();
        let index = usize::try_from(self.sampler.below(order.len() as u64)).unwrap();
        let slot = order.slot(index).unwrap();
        let value = self.sampler.bytes(slot.kind().size().into());
        let property = self.server.property(goid, slot.name()).unwrap();
        self.server.set(id, property, &value).unwrap();
    }

    /// Resets a connection: earlier packets no longer arrive.
    fn reset(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        self.server.reset(peer.id).unwrap();
        peer.replica.reset();
        peer.to_client.clear();
        peer.to_server.clear();
        peer.open.clear();
        peer.lost.clear();
    }

    fn fares_well(&mut self, of_100: u64) -> bool {
        self.sampler.below(100) >= of_100
    }

    fn arrival(&mut self) -> Duration {
        let is_late = self.sampler.below(100) < self.network.late;
        let slowest = if is_late { 3_000 } else { self.network.slowest };
        self.now + Duration::from_millis(20 + self.sampler.below(slowest - 20))
    }

    fn tick(&mut self) {
        self.now += TICK;
        self.server.tick(self.now);
        for index in 0..self.peers.len() {
            loop {
                let mut section = Vec::new();
                if !self.server.poll(self.peers[index].id, &mut section).unwrap() {
                    break;
                }
                assert!(section.len() <= 600, "a section of {} bytes", section.len());
                // Other packets use numbers, too.
                self.peers[index].next += 1 + self.sampler.below(2);
                self.send(index, &section);
            }
        }
        for index in 0..self.peers.len() {
            self.clients_turn(index);
            self.servers_turn(index);
        }
    }

    fn send(&mut self, index: usize, section: &[u8]) {
        let number = self.peers[index].next;
        self.server.sent(self.peers[index].id, number).unwrap();
        self.peers[index].open.insert(number, self.now);
        let copies = 1 + u64::from(!self.fares_well(self.network.repeated));
        for _ in 0..copies {
            if self.fares_well(self.network.lost) {
                let at = self.arrival();
                let peer = &mut self.peers[index];
                peer.counter += 1;
                peer.to_client.insert((at, peer.counter), (wire(number), section.to_vec()));
            }
        }
    }

    /// Handles everything that has arrived at a client by now.
    fn clients_turn(&mut self, index: usize) {
        while let Some(first) = self.peers[index].to_client.first_entry()
            && first.key().0 <= self.now
        {
            let (number, section) = first.remove();
            let in_order = self.network.in_order;
            let peer = &mut self.peers[index];
            let full = expand(number, peer.newest.max(4_000));
            if in_order && full < peer.newest && !peer.received.contains(&full) {
                continue;
            }
            peer.newest = peer.newest.max(full);
            if peer.received.insert(full) {
                if self.network.numbered {
                    peer.replica.packet(Side::Server, SequenceNumber::new(number), 0);
                }
                let read = peer.replica.receive(&section, Side::Server, Rules::STRICT);
                let (used, notices) = match read {
                    Ok(read) => read,
                    // The section arrived so late that the view it updates no longer exists.
                    Err(error) if self.network.late > 0 => {
                        assert_eq!(Fault::of(&error), Some(Fault::UnknownView), "{error}");
                        (section.len(), Vec::new())
                    }
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(used, section.len());
                for notice in notices {
                    let is_fine =
                        matches!(notice, Notice::CreatedAgain(_) | Notice::DeletedUnknown(_));
                    let is_late = matches!(notice, Notice::Stale(_)) && self.network.numbered;
                    self.stale += u64::from(is_late);
                    assert!(is_fine || is_late, "{notice:?}");
                }
            }
            let has = |back: u64| u8::from(peer.received.contains(&(full.wrapping_sub(back))));
            let acks = (0..7).fold(0, |acks, back| acks | has(back) << back);
            if self.fares_well(self.network.lost) {
                let at = self.arrival();
                let peer = &mut self.peers[index];
                peer.counter += 1;
                peer.to_server.insert((at, peer.counter), (number, acks));
            }
        }
    }

    /// Handles timeouts and everything that has arrived at the server by now.
    fn servers_turn(&mut self, index: usize) {
        let now = self.now;
        // A round trip, rounded up to ticks.
        let patience = Duration::from_millis(2 * self.network.slowest) + 2 * TICK;
        let peer = &mut self.peers[index];
        while let Some(first) = peer.to_server.first_entry()
            && first.key().0 <= now
        {
            let (number, acks) = first.remove();
            let full = expand(number, peer.next);
            for back in 0..7 {
                let number = full - back;
                if acks >> back & 1 != 0
                    && (peer.open.remove(&number).is_some() || peer.lost.remove(&number))
                {
                    self.server.delivered(peer.id, number).unwrap();
                }
            }
            // A later packet can no longer acknowledge a packet seven numbers before it, either.
            let behind: Vec<u64> =
                peer.open.range(..full.saturating_sub(7)).map(|p| *p.0).collect();
            for number in behind {
                peer.open.remove(&number);
                peer.lost.insert(number);
                self.server.lost(peer.id, number).unwrap();
            }
        }
        let slow: Vec<u64> =
            peer.open.iter().filter(|(_, at)| **at + patience <= now).map(|p| *p.0).collect();
        for number in slow {
            peer.open.remove(&number);
            peer.lost.insert(number);
            self.server.lost(peer.id, number).unwrap();
        }
    }

    /// Lets everything arrive without further changes.
    fn rest(&mut self) -> u32 {
        for round in 0..MAX_REST {
            let settled = |peer: &Peer| {
                let on_way = peer.to_client.is_empty() && peer.to_server.is_empty();
                on_way && self.server.is_settled(peer.id).unwrap()
            };
            if round > 0 && self.peers.iter().all(settled) {
                return round;
            }
            self.tick();
        }
        let views: Vec<_> = self.server.views(self.peers[0].id).collect();
        panic!("still not at rest: {views:?}");
    }

    /// Checks that every client has the correct values.
    fn compare(&self) {
        for peer in &self.peers {
            let views: Vec<_> = self.server.views(peer.id).collect();
            assert!(views.iter().all(|view| view.state == ViewState::Live && !view.is_dirty));
            assert_eq!(views.len(), peer.replica.len(), "the number of views differs");
            assert_eq!(peer.replica.pending_bytes(), 0, "updates wait for a create");
            for view in &views {
                let id = view.object.unwrap();
                let (_, goid, _) = self.objects.iter().find(|one| one.0 == id).unwrap();
                let seen = peer.replica.view(view.id).unwrap();
                assert_eq!((seen.goid(), seen.spawn_seq()), (*goid, view.spawn_seq));
                let is_own = peer.own == Some(id);
                assert_eq!(view.id == 2, is_own, "view 2 is not the client's own character");
                self.compare_values(id, *goid, seen, is_own);
            }
            let eye = peer.own.and_then(|own| self.objects.iter().find(|one| one.0 == own));
            let Some((_, _, eye)) = eye else { continue };
            for (id, _, position) in &self.objects {
                let far = (0..3).map(|k| (position[k] - eye[k]).powi(2)).sum::<f64>().sqrt();
                let seen = views.iter().any(|view| view.object == Some(*id));
                assert!(seen || far > 100.0, "{id:?} is not seen from {far}");
                assert!(!seen || far <= 120.0, "{id:?} is seen from {far}");
            }
        }
    }

    fn compare_values(
        &self,
        id: ObjectId,
        goid: u16,
        seen: &worldwire_mxo::replica::View,
        is_own: bool,
    ) {
        let class = self.server.objects().class_of(goid).unwrap().1;
        let order = class.updates().order(if is_own { 2 } else { 3 }).unwrap();
        for slot in order.slots() {
            let property = self.server.property(goid, slot.name()).unwrap();
            let held = self.server.value(id, property);
            let wanted = held.map(|bytes| slot.kind().read(bytes).unwrap());
            let found = seen.value(slot.name());
            let same = match (&found, &wanted) {
                (Some(found), Some(wanted)) => {
                    // NaN is not equal to itself.
                    found == wanted || format!("{found:?}") == format!("{wanted:?}")
                }
                (None, None) => true,
                _ => false,
            };
            assert!(same, "{}: {found:?} for {wanted:?}", slot.name());
        }
        let wanted = self.server.movement(id).unwrap();
        let mut found = *seen.movement();
        // Other clients are not sent the time.
        found.time = found.time.or(wanted.time);
        assert_eq!(found, *wanted, "own: {is_own}");
    }
}

fn run(seed: u64, network: Network, operations: u64) -> Traffic {
    let mut sim = Sim::new(seed, network);
    let mut left = operations;
    let mut sum = Traffic::default();
    while left > 0 {
        let now = left.min(sim.sampler.below(8));
        for _ in 0..now {
            sim.operate();
        }
        left -= now;
        sim.tick();
    }
    sim.rest();
    sim.compare();
    assert!(sim.stale > 0 || !network.numbered, "no packet was late");
    for peer in &sim.peers {
        let traffic = sim.server.traffic(peer.id).unwrap();
        sum.first += traffic.first;
        sum.again += traffic.again;
        sum.sections += traffic.sections;
    }
    sum
}

#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn ratio(traffic: Traffic) -> f64 {
    traffic.again as f64 / traffic.first as f64
}

fn all_seeds(network: Network, share: u64) -> Traffic {
    let mut sum = Traffic::default();
    for seed in 0..SEEDS {
        let traffic = run(seed, network, OPERATIONS / SEEDS / share);
        sum.first += traffic.first;
        sum.again += traffic.again;
        sum.sections += traffic.sections;
    }
    sum
}

const BAD: Network =
    Network { lost: 30, repeated: 10, slowest: 300, late: 0, in_order: false, numbered: false };

#[test]
fn clients_that_apply_packets_on_arrival_receive_everything() {
    let traffic = all_seeds(BAD, 1);
    let ratio = ratio(traffic);
    println!("sent again: {ratio:.3} of what was sent first; {traffic:?}");
    assert!(ratio <= MAX_AGAIN, "sent again: {ratio:.3} of what was sent first; {traffic:?}");
}

#[test]
fn clients_that_keep_the_newest_values_receive_everything() {
    let traffic = all_seeds(Network { numbered: true, ..BAD }, 2);
    let ratio = ratio(traffic);
    println!("sent again: {ratio:.3} of what was sent first; {traffic:?}");
    assert!(ratio <= MAX_AGAIN, "sent again: {ratio:.3} of what was sent first; {traffic:?}");
}

#[test]
fn clients_that_drop_overtaken_packets_receive_everything() {
    let traffic = all_seeds(Network { in_order: true, slowest: 100, ..BAD }, 4);
    let ratio = ratio(traffic);
    println!("sent again: {ratio:.3} of what was sent first; {traffic:?}");
    assert!(ratio <= MAX_AGAIN, "sent again: {ratio:.3} of what was sent first; {traffic:?}");
}

/// No packet is lost, but many arrive after they were considered lost, and some a second after they
/// were given up.
#[test]
fn clients_on_a_network_seconds_late_receive_everything() {
    let network = Network { lost: 0, repeated: 0, slowest: 100, late: 40, ..BAD };
    let traffic = all_seeds(network, 2);
    let ratio = ratio(traffic);
    println!("sent again: {ratio:.3} of what was sent first; {traffic:?}");
    assert!(ratio <= 2.0, "sent again: {ratio:.3} of what was sent first; {traffic:?}");
}

#[test]
fn a_good_network_causes_few_repetitions() {
    let network = Network { lost: 0, repeated: 0, slowest: 21, ..BAD };
    let traffic = all_seeds(network, 10);
    let ratio = ratio(traffic);
    println!("sent again: {ratio:.3} of what was sent first; {traffic:?}");
    assert!(ratio < 0.03, "sent again: {ratio:.3} of what was sent first; {traffic:?}");
}
