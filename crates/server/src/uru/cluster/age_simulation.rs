//! Ages on nodes, with an unreliable bus and leaders that replace each other, in virtual time.
//!
//! Players enter ages, which nodes run and save. Each seed is a different history, as in
//! [`simulation`](super::simulation). The rules of the vault are the real ones. Requests of the
//! leader of the latest epoch take effect at once, and those of earlier leaders do not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use worldwire_core::Sampler;
use worldwire_uru::types::{NetError, Uuid};

use super::ages::{AgeOrder, AgeReport, NodeInfo, Visit};
use super::bus::Subjects;
use super::frames::decode_frame;
use super::leader::machine::{LeaderEvent, LeaderMachine, PATIENCE, RemoteSession};
use super::leader::scheduler::{ANSWER_WITHIN, Choice, NotExpected, Scheduler, Task};
use super::link::machine::{LinkEvent, LinkMachine, MEMBERSHIP};
use super::memory::{Delivery, Faults, MemoryBus};
use super::simulation::{BAD, GOOD, MAX_LEADERS, NODES, TICK, faults, seeds, time};
use crate::uru::vault::age_states::Owner;
use crate::uru::vault::placements::Placement;
use crate::uru::vault::testing::TestVault;

const AGES: u8 = 4;
const PLAYERS: u64 = 6;
/// How long a player waits after a failure.
const BACK_OFF: Duration = Duration::from_millis(500);
/// The shortest time between two saves of a node's ages.
const SAVE_EVERY: Duration = Duration::from_millis(100);
/// How long a leader goes without renewing its lease before another one takes over.
const LEASE: Duration = Duration::from_millis(1_500);
/// How long after a kill players must be in their ages again.
const BACK_WITHIN: Duration = Duration::from_secs(5);

/// What is wrong with the program under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// Nodes count their time from when they received a frame.
    TimeFromReceiving,
    /// The vault accepts the states of every owner.
    NoFence,
}

/// A leader that has the vault while its epoch is the latest.
#[derive(Debug)]
struct Leader {
    machine: LeaderMachine,
    scheduler: Scheduler,
    epoch: u64,
    /// When it stops serving nodes, because it could not renew its lease.
    silent_at: Duration,
    /// Saves that the vault has not done yet.
    saves: Vec<Save>,
}

/// A request to save an age.
#[derive(Clone, Copy, Debug)]
struct Save {
    at: Duration,
    from: RemoteSession,
    request: u64,
    number: u32,
    fence: u64,
}

/// A node that runs ages.
#[derive(Debug)]
struct Node {
    machine: LinkMachine,
    process: u64,
    is_killed: bool,
    /// When its time is over.
    until: Duration,
    /// The session for ages' requests.
    session: Option<u64>,
    /// The fences of the ages that it runs, by number.
    ages: BTreeMap<u32, u64>,
    /// The highest fence of ages that have ended here, by number.
    ended: HashMap<u32, u64>,
    /// Who is expected, with number and fence, by player.
    expected: BTreeMap<u64, (u32, u64)>,
    save_at: Duration,
}

/// A player. It enters one age after another.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Player {
    /// Asks for an age at this time. The placement is over.
    Idle { at: Duration, over: Option<(u32, u64)> },
    /// Waits for the answer of a leader to a request.
    Asking { leader: usize, request: u64, place: (usize, u32, u64) },
    /// Is in an age of a node: its number and fence.
    Inside { node: usize, number: u32, fence: u64 },
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
    /// The highest fence of each number.
    fences: BTreeMap<u32, u64>,
    players: Vec<Player>,
    /// The age that each player wants.
    wishes: Vec<usize>,
    /// Players let in and removed, and saves accepted and refused.
    entered: u64,
    removed: u64,
    saved: u64,
    refused: u64,
    /// How many times nodes followed a leader of an earlier epoch.
    restored: u64,
}

type Outcome = Result<(), String>;

/// Fails unless a condition holds.
macro_rules! require {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err(format!($($why)+));
        }
    };
}

// After the macro, which it uses.
mod restoration;

impl World {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut sampler = Sampler::new(seed);
        let faults = faults(&mut sampler);
        Self::with(sampler, faults, bug)
    }

    fn with(mut sampler: Sampler, faults: Faults, bug: Bug) -> Self {
        let mut bus = MemoryBus::new(sampler.bits(), faults);
        let node = |index| {
            let process = sampler.bits();
            let name = format!("node-{index}");
            let machine = LinkMachine::new(Subjects::of("sim"), &name, process);
            machine.subscriptions().into_iter().for_each(|it| bus.subscribe(index, it));
            Node {
                machine,
                process,
                is_killed: false,
                until: Duration::ZERO,
                session: None,
                ages: BTreeMap::new(),
                ended: HashMap::new(),
                expected: BTreeMap::new(),
                save_at: Duration::ZERO,
            }
        };
        let nodes = (0..NODES).map(node).collect();
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

    /// Another process leads. The old one serves nodes for as long as it may.
    fn new_leader(&mut self) {
        self.epoch += 1;
        let silent_at = (self.now + self.hold.max(Duration::from_secs(1))).saturating_sub(LEASE);
        for old in &mut self.leaders {
            old.silent_at = old.silent_at.min(silent_at);
            // Its lease is over.
            old.machine.set_failing(true);
        }
        let machine = LeaderMachine::new(Subjects::of("sim"), self.epoch, self.now);
        self.bus.subscribe(NODES + self.leaders.len(), machine.subscription());
        let scheduler = Scheduler::new(self.now, self.vault.placements(), self.hold);
        let (epoch, silent_at) = (self.epoch, Duration::MAX);
        let saves = Vec::new();
        self.leaders.push(Leader { machine, scheduler, epoch, silent_at, saves });
        // Sessions have ended.
        let at = self.now + BACK_OFF;
        for player in &mut self.players {
            if matches!(player, Player::Asking { .. }) {
                *player = Player::Idle { at, over: None };
            }
        }
    }

    fn run(&mut self) -> Outcome {
        let mut changes = Vec::new();
        for _ in 1..MAX_LEADERS {
            if self.sampler.below(2) == 0 {
                changes.push(time(&mut self.sampler, BAD));
            }
        }
        while self.now < BAD + GOOD {
            self.now += TICK;
            if self.now == BAD {
                self.bus.heal();
            }
            let tick = self.now - TICK..self.now;
            for _ in changes.iter().filter(|when| tick.contains(*when)) {
                self.new_leader();
            }
            // Players move, while there is time to arrive.
            if self.now < BAD + GOOD - BACK_WITHIN && self.sampler.below(50) == 0 {
                self.wander();
            }
            self.step()?;
        }
        self.check_end()
    }

    /// A player leaves for another age.
    fn wander(&mut self) {
        let player = usize::try_from(self.sampler.below(PLAYERS)).unwrap();
        self.wishes[player] = usize::try_from(self.sampler.below(AGES.into())).unwrap();
        if let Player::Inside { node, .. } = self.players[player]
            && self.is_running(node)
        {
            self.leave(player);
        }
    }

    /// Without faults, all players get into the ages that they want.
    fn check_end(&self) -> Outcome {
        for (player, state) in self.players.iter().enumerate() {
            require!(matches!(state, Player::Inside { .. }), "player {player} is {state:?}");
        }
        Ok(())
    }

    fn step(&mut self) -> Outcome {
        // First of all, also in a node that was paused.
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

    fn is_running(&self, node: usize) -> bool {
        !self.nodes[node].is_killed && !self.bus.is_paused(node, self.now)
    }

    /// No age has two owners that may speak.
    fn check_owners(&self) -> Outcome {
        let mut owners = BTreeSet::new();
        let alive = self.nodes.iter().filter(|node| !node.is_killed && self.now < node.until);
        for number in alive.flat_map(|node| node.ages.keys()) {
            require!(owners.insert(*number), "age {number} has two owners");
        }
        Ok(())
    }

    /// A node ends all its ages at once.
    fn stop_ages(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.expected.clear();
        for (number, fence) in std::mem::take(&mut node.ages) {
            node.ended.insert(number, fence);
        }
        self.throw_out(index, |_| true);
    }

    /// The players in some ages of a node lose their connections.
    fn throw_out(&mut self, index: usize, from: impl Fn(u32) -> bool) {
        let at = self.now + BACK_OFF;
        for player in &mut self.players {
            if let Player::Inside { node, number, .. } = *player
                && node == index
                && from(number)
            {
                *player = Player::Idle { at, over: None };
                self.removed += 1;
            }
        }
    }

    /// A player leaves its age.
    fn leave(&mut self, player: usize) {
        let Player::Inside { node: index, number, fence } = self.players[player] else { return };
        self.players[player] = Player::Idle { at: self.now, over: None };
        let others = self.players.iter();
        let is_there = |other: &Player| matches!(other, Player::Inside { node, number: it, .. } if (*node, *it) == (index, number));
        let is_empty = !others.clone().any(is_there);
        let node = &mut self.nodes[index];
        let id = u32::try_from(player).unwrap();
        node.machine.report_ages(&AgeReport::Departed { number, fence, player: id });
        let is_expecting = node.expected.values().any(|place| *place == (number, fence));
        if is_empty && !is_expecting {
            node.ages.remove(&number);
            node.ended.insert(number, fence);
            node.machine.report_ages(&AgeReport::Ended { number, fence });
        }
    }

    /// A player takes its next step.
    fn play(&mut self, player: usize) -> Outcome {
        match self.players[player] {
            Player::Idle { at, over } if self.now >= at => self.ask(player, over),
            _ => Ok(()),
        }
    }

    /// A player asks the current leader for the age that it wants.
    fn ask(&mut self, player: usize, over: Option<(u32, u64)>) -> Outcome {
        let later = |at| Player::Idle { at, over };
        let index = self.leaders.len() - 1;
        let is_paused = self.bus.is_paused(NODES + index, self.now);
        let choice = self.leaders[index].scheduler.choose();
        let Choice::Node(candidate) = choice else {
            // In this world, the leader runs no ages.
            self.players[player] = later(self.now + TICK * 5);
            return Ok(());
        };
        if is_paused {
            self.players[player] = later(self.now + TICK);
            return Ok(());
        }
        let session = player as u64 + 1;
        let instance = self.instances[self.wishes[player]];
        let placed = self.vault.place(session, instance, over, Some(&candidate));
        let (identity, (number, placement)) = (placed.identity.unwrap(), placed.placed.unwrap());
        let fence = placement.fence;
        let last = self.fences.entry(number).or_default();
        require!(fence >= *last, "age {number} got fence {fence} after {last}");
        *last = fence;
        let visit = Visit {
            number,
            fence,
            filename: placement.filename.clone(),
            age: placed.found.age,
            instance,
            player: u32::try_from(player).unwrap(),
            account: identity.account,
            player_name: identity.name,
            is_admin: false,
            auth: session,
            address: std::net::Ipv4Addr::LOCALHOST.into(),
        };
        let request = self.leaders[index].scheduler.expect(self.now, &placement, visit);
        // The process of a placement is one of these nodes.
        let node = self.node_of(&placement);
        let place = (node, number, fence);
        self.players[player] = Player::Asking { leader: index, request, place };
        Ok(())
    }

    fn node_of(&self, placement: &Placement) -> usize {
        self.nodes.iter().position(|node| node.process == placement.process).unwrap()
    }

    /// A player has an answer.
    fn answered(&mut self, leader: usize, request: u64, outcome: Result<(), NotExpected>) {
        let is_meant = |player: &Player| {
            matches!(player, Player::Asking { leader: of, request: it, .. }
                if (*of, *it) == (leader, request))
        };
        let Some(player) = self.players.iter().position(is_meant) else { return };
        let Player::Asking { place: (index, number, fence), .. } = self.players[player] else {
            return;
        };
        let at = self.now + BACK_OFF;
        self.players[player] = match outcome {
            Ok(()) if self.join(index, player as u64, number, fence) => {
                self.entered += 1;
                Player::Inside { node: index, number, fence }
            }
            Err(NotExpected::Over) => Player::Idle { at: self.now, over: Some((number, fence)) },
            _ => Player::Idle { at, over: None },
        };
    }

    /// A player joins an age of a node. Returns whether it could.
    fn join(&mut self, index: usize, player: u64, number: u32, fence: u64) -> bool {
        let is_running = self.is_running(index) && self.now < self.nodes[index].until;
        let node = &mut self.nodes[index];
        if !is_running || node.expected.remove(&player) != Some((number, fence)) {
            return false;
        }
        node.ages.insert(number, fence);
        let (id, auth) = (u32::try_from(player).unwrap(), player + 1);
        node.machine.report_ages(&AgeReport::Arrived { number, fence, player: id, auth });
        true
    }

    /// Delivers messages, and lets everyone do what follows from them.
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
                    leader.machine.received(self.now, message);
                }
            }
        }
    }

    fn node_events(&mut self, index: usize) {
        while let Some(event) = self.nodes[index].machine.poll_event() {
            let node = &mut self.nodes[index];
            match event {
                LinkEvent::Joined => {
                    node.session = node.machine.open_session();
                    let info = NodeInfo {
                        runs_ages: true,
                        host: format!("192.0.2.{index}"),
                        max_players: 10,
                    };
                    node.machine.report_ages(&AgeReport::Info { info });
                    for (number, fence) in node.ended.clone() {
                        node.machine.report_ages(&AgeReport::Ended { number, fence });
                    }
                    for (number, fence) in node.ages.clone() {
                        node.machine.report_ages(&AgeReport::Running { number, fence });
                    }
                    for (player, state) in self.players.iter().enumerate() {
                        if let Player::Inside { node: at, number, fence } = *state
                            && at == index
                        {
                            let (player, auth) =
                                (u32::try_from(player).unwrap(), player as u64 + 1);
                            let report = AgeReport::Arrived { number, fence, player, auth };
                            node.machine.report_ages(&report);
                        }
                    }
                }
                LinkEvent::Left(_) => node.session = None,
                LinkEvent::Restored { .. } => {
                    node.ages.clear();
                    node.ended.clear();
                    node.expected.clear();
                    self.restored += 1;
                }
                LinkEvent::Ordered(order) => self.order(index, order),
                _ => {}
            }
        }
    }

    fn order(&mut self, index: usize, order: AgeOrder) {
        let node = &mut self.nodes[index];
        match order {
            AgeOrder::Expect { request, visit } => {
                let Visit { number, fence, player, .. } = visit;
                if node.ended.get(&number).is_none_or(|ended| *ended < fence) {
                    node.expected.insert(player.into(), (number, fence));
                    node.machine.report_ages(&AgeReport::Expecting { request });
                }
            }
            AgeOrder::Out { number, player, .. } => {
                let state = self.players[player as usize];
                if matches!(state, Player::Inside { node, number: at, .. } if (node, at) == (index, number))
                {
                    self.leave(player as usize);
                }
            }
            AgeOrder::Revoke { number, fence } if node.ages.get(&number) == Some(&fence) => {
                node.ages.remove(&number);
                node.ended.insert(number, fence);
                self.throw_out(index, |it| it == number);
            }
            _ => {}
        }
    }

    /// The ages of a node save their states.
    fn save(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        let Some(session) = node.session.filter(|_| self.now >= node.save_at) else { return };
        node.save_at = self.now + SAVE_EVERY;
        for (number, fence) in node.ages.clone() {
            let body = [&number.to_le_bytes()[..], &fence.to_le_bytes()].concat();
            node.machine.request(session, 1, body);
        }
    }

    /// Saves what ages asked for.
    fn run_saves(&mut self, index: usize) -> Outcome {
        let leader = &mut self.leaders[index];
        let leads = leader.epoch == self.epoch;
        let saves = std::mem::take(&mut leader.saves).into_iter();
        let (due, later): (Vec<_>, Vec<_>) = saves.partition(|save| save.at <= self.now);
        leader.saves = later;
        for Save { from, request, number, fence, .. } in due {
            let last = self.fences[&number];
            // With the bug, as if it had the latest one.
            let given = if self.bug == Bug::NoFence { last } else { fence };
            let is_saved = leads && self.vault.save(Owner { number, fence: given });
            require!(!is_saved || fence == last, "{fence} saved age {number} after {last}");
            self.saved += u64::from(is_saved);
            self.refused += u64::from(!is_saved);
            let outcome = if is_saved { Ok(Vec::new()) } else { Err(NetError::AgeNotFound) };
            leader.machine.reply(from, request, 0, outcome);
        }
        Ok(())
    }

    fn leader_events(&mut self, index: usize) -> Outcome {
        while let Some(event) = self.leaders[index].machine.poll_event() {
            let leader = &mut self.leaders[index];
            let (scheduler, now) = (&mut leader.scheduler, self.now);
            match event {
                LeaderEvent::Joined { node, incarnation, process } => {
                    scheduler.joined(now, node, incarnation, process);
                }
                LeaderEvent::Left { incarnation, heard, reason, .. } => {
                    scheduler.left(heard, incarnation, reason.has_no_ages());
                }
                LeaderEvent::AgesReported { incarnation, report } => {
                    scheduler.reported(now, incarnation, report);
                }
                LeaderEvent::Requested { from, number, body, .. } => {
                    // Some wait for a long time.
                    let is_late = self.sampler.below(20) == 0;
                    let most = Duration::from_millis(if is_late { 6_000 } else { 40 });
                    leader.saves.push(Save {
                        at: now + time(&mut self.sampler, most),
                        from,
                        request: number,
                        number: u32::from_le_bytes(body[..4].try_into().unwrap()),
                        fence: u64::from_le_bytes(body[4..].try_into().unwrap()),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn leader_tasks(&mut self, index: usize) {
        let leads = self.leaders[index].epoch == self.epoch;
        self.leaders[index].scheduler.timeout(self.now);
        while let Some(task) = self.leaders[index].scheduler.poll_task() {
            let leader = &mut self.leaders[index];
            match task {
                Task::Order { incarnation, order } => {
                    leader.machine.order(incarnation, &order);
                }
                Task::Answer { request, outcome } => self.answered(index, request, outcome),
                // Otherwise the database refuses it.
                Task::End(over) if leads => {
                    self.vault.end(&over);
                    leader.scheduler.have_ended(&over);
                }
                _ => {}
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

/// Players of a killed node get back into their ages on other nodes. If only the leader is
/// killed, they do not notice.
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
