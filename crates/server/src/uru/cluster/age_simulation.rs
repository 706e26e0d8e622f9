//! Ages on nodes, with an unreliable bus and with leaders that replace each other, in virtual time.
//!
//! Players enter ages, which nodes run and save. Each seed produces a different history, as in
//! [`simulation`](super::simulation). The vault's rules are the real ones. Requests from the leader
//! of the latest epoch take effect at once; those from earlier leaders have no effect.

mod leaders;
mod nodes;
mod players;
mod restoration;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use worldwire_core::Sampler;
use worldwire_uru::types::Uuid;

use super::frames::decode_frame;
use super::leader::machine::PATIENCE;
use super::leader::scheduler::ANSWER_WITHIN;
use super::link::machine::MEMBERSHIP;
use super::memory::{Delivery, Faults, MemoryBus};
use super::simulation::{BAD, GOOD, NODES, Outcome, TICK, faults, leader_changes, require, seeds};
use crate::uru::vault::testing::TestVault;
use leaders::{LEASE, Leader};
use nodes::Node;
use players::{BACK_OFF, Player};

const AGES: u8 = 4;
const PLAYERS: u64 = 6;
/// How soon after a kill players must be back in their ages.
const BACK_WITHIN: Duration = Duration::from_secs(5);

/// A bug in the program under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// Nodes count their time from when they received a frame instead of when they sent one.
    TimeFromReceiving,
    /// The vault accepts states from every owner.
    NoFence,
}

#[derive(Debug)]
struct World {
    bug: Bug,
    now: Duration,
    sampler: Sampler,
    bus: MemoryBus,
    nodes: Vec<Node>,
    leaders: Vec<Leader>,
    epoch: u64,
    hold: Duration,
    vault: TestVault,
    instances: Vec<Uuid>,
    /// The highest fence seen for each age number.
    fences: BTreeMap<u32, u64>,
    players: Vec<Player>,
    /// The age that each player wants to be in.
    wishes: Vec<usize>,
    /// The numbers of players admitted and removed, and of saves accepted and rejected.
    entered: u64,
    removed: u64,
    saved: u64,
    refused: u64,
    /// How many times nodes followed a leader of an earlier epoch.
    restored: u64,
}

impl World {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut sampler = Sampler::new(seed);
        let faults = faults(&mut sampler);
        Self::with(sampler, faults, bug)
    }

    fn with(mut sampler: Sampler, faults: Faults, bug: Bug) -> Self {
        let mut bus = MemoryBus::new(sampler.bits(), faults);
        let nodes = (0..NODES).map(|index| Node::new(index, sampler.bits(), &mut bus)).collect();
        let instances: Vec<_> = (1..=AGES).map(|number| Uuid([number; 16])).collect();
        let hold = Duration::from_secs(sampler.below(2) * 3);
        let idle = Player::Idle { at: Duration::from_secs(1), over: None };
        let count = usize::try_from(PLAYERS).unwrap();
        let mut world = Self {
            bug,
            now: Duration::ZERO,
            sampler,
            bus,
            nodes,
            leaders: Vec::new(),
            epoch: 0,
            hold,
            vault: TestVault::new(&instances, PLAYERS),
            instances,
            fences: BTreeMap::new(),
            players: vec![idle; count],
            wishes: (0..count).map(|player| player % usize::from(AGES)).collect(),
            entered: 0,
            removed: 0,
            saved: 0,
            refused: 0,
            restored: 0,
        };
        world.new_leader();
        world
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
            // Players move only while there is enough time left to arrive.
            if self.now < BAD + GOOD - BACK_WITHIN && self.sampler.below(50) == 0 {
                self.wander();
            }
            self.step()?;
        }
        self.check_end()
    }

    fn step(&mut self) -> Outcome {
        // This comes first, even on a node that has been suspended.
        for index in 0..NODES {
            if self.is_running(index) && self.now >= self.nodes[index].until {
                self.stop_ages(index);
            }
        }
        self.exchange()?;
        self.check_owners()?;
        for player in 0..self.players.len() {
            self.play(player)?;
        }
        Ok(())
    }

    /// Checks that no age has two owners that may send to clients.
    fn check_owners(&self) -> Outcome {
        let mut owners = BTreeSet::new();
        let alive = self.nodes.iter().filter(|node| !node.is_killed && self.now < node.until);
        for number in alive.flat_map(|node| node.ages.keys()) {
            require!(owners.insert(*number), "age {number} has two owners");
        }
        Ok(())
    }

    /// Checks that, after the faults, all players are in the ages that they want.
    fn check_end(&self) -> Outcome {
        for (player, state) in self.players.iter().enumerate() {
            require!(matches!(state, Player::Inside { .. }), "player {player} is {state:?}");
        }
        Ok(())
    }

    /// Delivers messages, and lets all processes react to them.
    fn exchange(&mut self) -> Outcome {
        while let Some(delivery) = self.bus.deliver(self.now) {
            self.deliver(&delivery);
        }
        for index in 0..NODES {
            if self.is_running(index) {
                self.nodes[index].machine.timeout(self.now);
                self.node_events(index);
                self.save(index);
                while let Some((to, message)) = self.nodes[index].machine.poll_transmit(self.now) {
                    self.bus.publish(self.now, index, &to, &message);
                }
            }
        }
        for index in 0..self.leaders.len() {
            let is_silent = self.now >= self.leaders[index].silent_at;
            if self.bus.is_paused(NODES + index, self.now) || is_silent {
                continue;
            }
            self.leaders[index].machine.timeout(self.now);
            self.leader_events(index)?;
            self.run_saves(index)?;
            self.leader_tasks(index);
            let leader = &mut self.leaders[index];
            while let Some((subject, message)) = leader.machine.poll_transmit(self.now) {
                self.bus.publish(self.now, NODES + index, &subject, &message);
            }
        }
        Ok(())
    }

    fn deliver(&mut self, delivery: &Delivery) {
        let Delivery { to, subject, message } = delivery;
        match self.nodes.get_mut(*to) {
            Some(node) if node.is_killed => {}
            Some(node) if subject.ends_with(".leader") => {
                node.machine.announced(self.now, message);
            }
            Some(node) => {
                node.machine.received(self.now, message);
                let is_member = node.machine.membership().is_some();
                let is_good = decode_frame(message).is_ok_and(|(head, _)| head.gone == 0);
                node.until = match self.bug {
                    Bug::TimeFromReceiving if is_member && is_good => self.now + MEMBERSHIP,
                    Bug::TimeFromReceiving => node.until,
                    _ => node.machine.tenure_end(),
                };
            }
            None => {
                let leader = &mut self.leaders[*to - NODES];
                if self.now < leader.silent_at {
                    leader.machine.received(self.now, subject, message);
                }
            }
        }
    }
}

#[test]
fn ages_have_one_owner_on_a_bad_bus() {
    let mut totals = [0; 4];
    for seed in 0..seeds() {
        let mut world = World::new(seed, Bug::None);
        if let Err(why) = world.run() {
            panic!("seed {seed}, {:?}: {why}", world.now);
        }
        assert_eq!(world.restored, 0, "seed {seed}: leaders only follow each other");
        let counts = [world.entered, world.removed, world.saved, world.refused];
        totals.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
    }
    let [entered, removed, saved, refused] = totals;
    println!("{entered} entered, {removed} removed; {saved} saves, {refused} refused");
    assert!(entered > 0 && removed > 0 && saved > 0 && refused > 0);
}

/// After a node is killed, its players get back into their ages on other nodes. If only the leader
/// is killed, players do not notice.
#[test]
fn players_are_back_in_their_ages_after_a_kill() {
    let both = LEASE + PATIENCE + ANSWER_WITHIN + BACK_OFF + Duration::from_millis(500);
    for (kills_node, kills_leader, within) in
        [(true, false, BACK_WITHIN), (false, true, BACK_WITHIN), (true, true, both)]
    {
        for seed in 0..10 {
            let sampler = Sampler::new(seed);
            let faults = Faults { delay: TICK, ..Faults::default() };
            let mut world = World::with(sampler, faults, Bug::None);
            world.hold = Duration::ZERO;
            let run_until = |world: &mut World, end: Duration| {
                while world.now < end {
                    world.now += TICK;
                    world.step().unwrap();
                }
            };
            run_until(&mut world, Duration::from_secs(3));
            world.check_end().unwrap();
            let killed_at = world.now;
            if kills_node {
                world.nodes[0].is_killed = true;
                world.stop_ages(0);
                assert!(world.removed > 0, "{world:?}");
            }
            if kills_leader {
                world.leaders[0].silent_at = world.now;
                run_until(&mut world, killed_at + LEASE);
                world.new_leader();
            }
            run_until(&mut world, killed_at + within);
            world.check_end().unwrap();
            assert_eq!(world.removed > 0, kills_node);
            let is_at_killed = |player: &Player| matches!(player, Player::Inside { node: 0, .. });
            assert!(!kills_node || !world.players.iter().any(is_at_killed));
        }
    }
}

/// The simulation detects what it is meant to detect.
#[test]
fn mistakes_about_time_and_fences_are_noticed() {
    for (bug, wanted) in [(Bug::TimeFromReceiving, "has two owners"), (Bug::NoFence, "saved age")] {
        let failures: Vec<_> =
            (0..60).filter_map(|seed| World::new(seed, bug).run().err()).collect();
        assert!(failures.iter().any(|why| why.contains(wanted)), "{bug:?}: {failures:?}");
    }
}
