//! Nodes and leaders on an unreliable bus, in virtual time.
//!
//! Each seed produces a different history: nodes open and end sessions and make requests, while
//! messages are lost, delayed and repeated, nodes and leaders are cut off or suspended, and leaders
//! replace each other. `WORLDWIRE_CLUSTER_SEEDS=N` runs N seeds; a plain `cargo test` runs 200.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::time::Duration;

use worldwire_core::Sampler;
use worldwire_uru::types::{NetError, Uuid};

use super::frames::{Head, decode_frame, encode_frame};
use super::leader::machine::{GiveUpReason, LeaderEvent, LeaderMachine, RemoteSession};
use super::link::machine::{LinkEvent, LinkMachine};
use super::memory::{Delivery, Faults, MemoryBus};
use super::subjects::{NodeKind, Subjects};
use crate::uru::vault::Notice;

const SEEDS: &str = "WORLDWIRE_CLUSTER_SEEDS";
pub(super) const NODES: usize = 3;
const MAX_LEADERS: u64 = 3;
pub(super) const TICK: Duration = Duration::from_millis(10);
/// The duration of the period with faults, and of the period without faults that follows.
pub(super) const BAD: Duration = Duration::from_secs(8);
pub(super) const GOOD: Duration = Duration::from_secs(10);

/// A bug in the program under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// Frames are accepted in order of arrival.
    NoSequence,
}

/// The cluster's data, which outlives its leaders.
#[derive(Debug, Default)]
struct Data {
    /// The epoch of the leader that may change the data.
    epoch: u64,
    /// The requests that have taken effect.
    done: HashSet<u64>,
}

/// A leader with a vault whose requests take some time.
#[derive(Debug)]
struct Leader {
    machine: LeaderMachine,
    epoch: u64,
    /// The number of notices sent to each session.
    sessions: BTreeMap<RemoteSession, u64>,
    running: Vec<(Duration, RemoteSession, u64, u64)>,
}

/// A node with clients.
#[derive(Debug)]
struct Node {
    machine: LinkMachine,
    sessions: BTreeMap<u64, Client>,
    /// The requests without an outcome, by number, with their sessions and global numbers.
    open: HashMap<u64, (u64, u64)>,
    ended: HashSet<u64>,
}

/// What the client of a session has received.
#[derive(Debug, Default)]
struct Client {
    notices: u64,
    /// The last notice.
    last: Option<u32>,
}

#[derive(Debug)]
struct World {
    bug: Bug,
    now: Duration,
    sampler: Sampler,
    bus: MemoryBus,
    nodes: Vec<Node>,
    leaders: Vec<Leader>,
    data: Data,
    /// The numbers of requests made, answered and refused.
    made: u64,
    answered: u64,
    refused: u64,
    joined: u64,
}

pub(super) type Outcome = Result<(), String>;

/// Returns an error unless the condition holds.
macro_rules! require {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err(format!($($why)+));
        }
    };
}
pub(super) use require;

impl World {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut sampler = Sampler::new(seed);
        let mut bus = MemoryBus::new(sampler.bits(), faults(&mut sampler));
        let subjects = Subjects::of("sim");
        let nodes = (0..NODES).map(|index| {
            let machine = LinkMachine::new(
                subjects.clone(),
                NodeKind::FrontAndAge,
                &format!("node-{index}"),
                sampler.bits(),
            );
            for subject in machine.subscriptions() {
                bus.subscribe(index, subject);
            }
            Node { machine, sessions: BTreeMap::new(), open: HashMap::new(), ended: HashSet::new() }
        });
        let nodes = nodes.collect();
        let mut world = Self {
            bug,
            now: Duration::ZERO,
            sampler,
            bus,
            nodes,
            leaders: Vec::new(),
            data: Data::default(),
            made: 0,
            answered: 0,
            refused: 0,
            joined: 0,
        };
        world.new_leader();
        world
    }

    /// Makes another process the leader. The old leader knows only that its lease has ended.
    fn new_leader(&mut self) {
        self.leaders.iter_mut().for_each(|old| old.machine.set_failing(true));
        self.data.epoch += 1;
        let epoch = self.data.epoch;
        let machine = LeaderMachine::new(Subjects::of("sim"), epoch, self.now);
        self.bus.subscribe(NODES + self.leaders.len(), machine.subscription());
        let (sessions, running) = (BTreeMap::new(), Vec::new());
        self.leaders.push(Leader { machine, epoch, sessions, running });
    }

    fn run(&mut self) -> Outcome {
        let changes = leader_changes(&mut self.sampler);
        while self.now < BAD + GOOD {
            self.now += TICK;
            if self.now == BAD {
                self.bus.heal();
            }
            let tick = self.now - TICK..self.now;
            for _ in changes.iter().filter(|when| tick.contains(*when)) {
                self.new_leader();
            }
            self.step()?;
        }
        // By now, all outcomes must be known, and everything must work.
        let before = (self.made, self.answered);
        for index in 0..NODES {
            let node = &mut self.nodes[index];
            require!(node.open.is_empty(), "node {index}: no outcome of {:?}", node.open);
            let member = node.machine.membership();
            let is_member = member.is_some_and(|(epoch, ..)| epoch == self.data.epoch);
            require!(is_member, "node {index} is not a member of the latest epoch: {member:?}");
            require!(
                self.act(index, 0) && self.act(index, 3),
                "node {index} cannot make a request"
            );
        }
        for _ in 0..100 {
            self.now += TICK;
            self.exchange()?;
        }
        let [made, answered] = [self.made - before.0, self.answered - before.1];
        require!(made == answered, "the last {made} requests got {answered} answers");
        require!(self.made == self.answered + self.refused, "{self:?}");
        Ok(())
    }

    fn step(&mut self) -> Outcome {
        for index in 0..NODES {
            // Leave enough time for the last requests to finish.
            let is_over = self.now > BAD + GOOD - Duration::from_secs(4);
            if !self.bus.is_paused(index, self.now) && !is_over && self.sampler.below(20) == 0 {
                let choice = self.sampler.below(10);
                self.act(index, choice);
            }
        }
        self.exchange()
    }

    /// Lets a node's clients act. Returns whether they were able to.
    fn act(&mut self, index: usize, choice: u64) -> bool {
        let node = &mut self.nodes[index];
        let count = node.sessions.len() as u64;
        let nth = self.sampler.below(count);
        let session = node.sessions.keys().nth(usize::try_from(nth).unwrap()).copied();
        match (choice, session) {
            (0, _) if count < 4 => match node.machine.open_session() {
                Some(session) => node.sessions.insert(session, Client::default()).is_none(),
                None => false,
            },
            (1, Some(session)) if self.sampler.below(8) == 0 => {
                node.sessions.remove(&session);
                node.ended.insert(session);
                node.machine.end_session(session);
                true
            }
            (_, Some(session)) => {
                let id = self.made + 1;
                // Some bodies are longer than a frame.
                let length = if self.sampler.below(100) == 0 { 600 << 10 } else { 8 };
                let mut body = vec![0; length];
                body[..8].copy_from_slice(&id.to_le_bytes());
                let Some(number) = node.machine.request(session, 1, body) else { return false };
                self.made = id;
                node.open.insert(number, (session, id));
                true
            }
            _ => false,
        }
    }

    /// Delivers messages, runs requests, and transmits, until there is nothing left to do for now.
    fn exchange(&mut self) -> Outcome {
        while let Some(delivery) = self.bus.deliver(self.now) {
            self.deliver(delivery);
        }
        for index in 0..NODES {
            if self.bus.is_paused(index, self.now) {
                continue;
            }
            self.nodes[index].machine.timeout(self.now);
            self.node_events(index)?;
            while let Some((subject, message)) = self.nodes[index].machine.poll_transmit(self.now) {
                self.bus.publish(self.now, index, &subject, &message);
            }
        }
        for index in 0..self.leaders.len() {
            if self.bus.is_paused(NODES + index, self.now) {
                continue;
            }
            self.leaders[index].machine.timeout(self.now);
            self.leader_events(index)?;
            self.run_requests(index)?;
            let leader = &mut self.leaders[index];
            while let Some((subject, message)) = leader.machine.poll_transmit(self.now) {
                self.bus.publish(self.now, NODES + index, &subject, &message);
            }
        }
        Ok(())
    }

    fn deliver(&mut self, delivery: Delivery) {
        let Delivery { to, subject, mut message } = delivery;
        if self.bug == Bug::NoSequence
            && let Ok((head, payload)) = decode_frame(&message)
            && head.sequence != 0
        {
            let expected = match self.nodes.get(to) {
                Some(node) => node.machine.membership().map(|(.., expected)| expected),
                None => self.leaders[to - NODES].machine.expected(head.incarnation),
            };
            let sequence = expected.unwrap_or(head.sequence);
            message = encode_frame(&Head { sequence, ..head }, &payload).unwrap();
        }
        match self.nodes.get_mut(to) {
            Some(node) if subject.ends_with(".leader") => {
                node.machine.announced(self.now, &message);
            }
            Some(node) => node.machine.received(self.now, &message),
            None => self.leaders[to - NODES].machine.received(self.now, &subject, &message),
        }
    }

    fn node_events(&mut self, index: usize) -> Outcome {
        let node = &mut self.nodes[index];
        while let Some(event) = node.machine.poll_event() {
            match event {
                LinkEvent::Settings(_) => {}
                LinkEvent::Joined => self.joined += 1,
                LinkEvent::NotAdmitted(refusal) => return Err(format!("{refusal:?}")),
                LinkEvent::Ordered(order) => return Err(format!("{order:?}")),
                LinkEvent::Failing(_) => {}
                LinkEvent::Draining(_) | LinkEvent::Restored { .. } => {
                    return Err(format!("unexpected event: {event:?}"));
                }
                LinkEvent::Left(_) => {
                    require!(node.sessions.is_empty() && node.open.is_empty(), "{node:?}");
                }
                LinkEvent::Ended { session } => {
                    let was_open = node.sessions.remove(&session).is_some();
                    require!(was_open && node.ended.insert(session), "{session} ended twice");
                }
                LinkEvent::Refused { number } => {
                    require!(node.open.remove(&number).is_some(), "{number} has two outcomes");
                    self.refused += 1;
                }
                LinkEvent::Notice { session, notice } => {
                    let Notice::NodeChanged { node_id, .. } = notice else {
                        return Err(format!("{notice:?}"));
                    };
                    let Some(client) = node.sessions.get_mut(&session) else {
                        return Err(format!("a notice to session {session}, which is not open"));
                    };
                    if let Some(last) = client.last {
                        require!(
                            node_id == last + 1,
                            "session {session}: notice {node_id} after {last}"
                        );
                    }
                    client.last = Some(node_id);
                    client.notices += 1;
                }
                LinkEvent::Answered { number, notices, outcome } => {
                    let Some((session, id)) = node.open.remove(&number) else {
                        return Err(format!("{number} has two outcomes"));
                    };
                    let Ok(body) = outcome else { return Err(format!("{outcome:?}")) };
                    let done = u64::from_le_bytes(body[..8].try_into().unwrap());
                    let place = u32::from_le_bytes(body[8..].try_into().unwrap());
                    require!(done == id && self.data.done.contains(&id), "{id}: reply to {done}");
                    let client = &node.sessions[&session];
                    require!(client.notices == notices, "{notices}, not {}", client.notices);
                    require!(client.last == Some(place), "{place} before {:?}", client.last);
                    self.answered += 1;
                }
            }
        }
        Ok(())
    }

    fn leader_events(&mut self, index: usize) -> Outcome {
        let leader = &mut self.leaders[index];
        while let Some(event) = leader.machine.poll_event() {
            match event {
                LeaderEvent::Opened(session) => {
                    let is_new = leader.sessions.insert(session, 0).is_none();
                    require!(is_new, "{session:?} opened twice");
                }
                LeaderEvent::Ended(session) | LeaderEvent::Abandoned(session) => {
                    let was_open = leader.sessions.remove(&session).is_some();
                    require!(was_open, "{session:?} ended twice");
                }
                LeaderEvent::Requested { from, number, kind, body } => {
                    require!(kind == 1 && leader.sessions.contains_key(&from), "{from:?}");
                    let id = u64::from_le_bytes(body[..8].try_into().unwrap());
                    let at = self.now + time(&mut self.sampler, Duration::from_millis(40));
                    leader.running.push((at, from, number, id));
                }
                LeaderEvent::Left { node, incarnation, reason: GiveUpReason::Silence, .. } => {
                    let other = self.nodes.iter().enumerate().find(|(other, node)| {
                        let member = node.machine.membership();
                        let is_same = member.is_some_and(|(epoch, number, _)| {
                            (epoch, number) == (leader.epoch, incarnation)
                        });
                        is_same && !self.bus.is_paused(*other, self.now)
                    });
                    require!(other.is_none(), "{node} was given up, but is still a member");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Runs the requests that are due. Those of a leader that was replaced are never answered.
    fn run_requests(&mut self, index: usize) -> Outcome {
        let leader = &mut self.leaders[index];
        let (due, later) = std::mem::take(&mut leader.running)
            .into_iter()
            .partition::<VecDeque<_>, _>(|(at, ..)| *at <= self.now);
        leader.running = later.into();
        for (_, from, number, id) in due {
            if leader.epoch != self.data.epoch {
                continue;
            }
            require!(self.data.done.insert(id), "request {id} took effect twice");
            let place = u32::try_from(self.data.done.len()).unwrap();
            for (session, notices) in &mut leader.sessions {
                let revision_id = Uuid::ZERO;
                leader
                    .machine
                    .notify(*session, Notice::NodeChanged { node_id: place, revision_id });
                *notices += 1;
            }
            let Some(notices) = leader.sessions.get(&from) else { continue };
            let body = [&id.to_le_bytes()[..], &place.to_le_bytes()].concat();
            let outcome: Result<_, NetError> = Ok(body);
            leader.machine.reply(from, number, *notices, outcome);
        }
        Ok(())
    }
}

/// Chooses faults of all kinds, each of which occurs in some of the histories.
pub(super) fn faults(sampler: &mut Sampler) -> Faults {
    let mut one_of = |values: [u64; 4]| values[usize::try_from(sampler.below(4)).unwrap()];
    let loss = one_of([0, 5, 50, 300]);
    let duplication = one_of([0, 10, 50, 200]);
    let delay = Duration::from_millis(one_of([0, 2, 20, 300]));
    let late = one_of([0, 0, 2, 20]);
    let mut some = |longest| -> Vec<(usize, Range<Duration>)> {
        let count = sampler.below(4);
        let fault = |_| {
            let hit = usize::try_from(sampler.below(NODES as u64 + MAX_LEADERS)).unwrap();
            let start = time(sampler, BAD);
            (hit, start..start + time(sampler, longest))
        };
        (0..count).map(fault).collect()
    };
    let [mut mute, mut deaf, paused] = [8, 8, 9].map(|seconds| some(Duration::from_secs(seconds)));
    // Periods in which an endpoint is cut off in both directions.
    let cut = some(Duration::from_secs(8));
    mute.extend(cut.clone());
    deaf.extend(cut);
    Faults { loss, duplication, delay, late, mute, deaf, paused }
}

/// The times at which another process becomes the leader.
pub(super) fn leader_changes(sampler: &mut Sampler) -> Vec<Duration> {
    let mut changes = Vec::new();
    for _ in 1..MAX_LEADERS {
        if sampler.below(2) == 0 {
            changes.push(time(sampler, BAD));
        }
    }
    changes
}

pub(super) fn time(sampler: &mut Sampler, most: Duration) -> Duration {
    Duration::from_micros(sampler.below(u64::try_from(most.as_micros()).unwrap()))
}

pub(super) fn seeds() -> u64 {
    std::env::var(SEEDS).ok().map_or(200, |seeds| seeds.parse().unwrap())
}

#[test]
fn requests_and_notices_survive_a_bad_bus() {
    let (mut totals, mut faults) = ([0; 4], [0; 2]);
    for seed in 0..seeds() {
        let mut world = World::new(seed, Bug::None);
        if let Err(why) = world.run() {
            panic!("seed {seed}, {:?}: {why}", world.now);
        }
        let counts = [world.made, world.answered, world.refused, world.joined];
        totals.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
        let counts = [world.bus.lost, world.bus.repeated];
        faults.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
    }
    let [made, answered, refused, joined] = totals;
    let [lost, repeated] = faults;
    println!(
        "{made} requests, {answered} answered, {refused} refused, {joined} memberships; {lost} messages lost, {repeated} repeated"
    );
    assert!(answered > made / 2 && refused > 0 && lost > 0 && repeated > 0);
}

/// The simulation detects the bug that it is meant to detect.
#[test]
fn a_missing_check_of_sequence_numbers_is_noticed() {
    let failures: Vec<_> =
        (0..20).filter_map(|seed| World::new(seed, Bug::NoSequence).run().err()).collect();
    assert!(failures.len() >= 10, "{failures:?}");
}
