//! Decides which node runs which age, and tracks which players are there, without I/O.
//!
//! The vault decides on placements and stores them; see
//! [`placements`](crate::uru::vault::placements). The scheduler keeps track of them, chooses nodes
//! for new ones, and ends them:
//!
//! * when the age has ended because it was empty,
//! * when its node has been silent for 3.5 s or has stopped, and so has ended all its ages,
//! * 3.5 s after its node was last heard from, if the node was given up for another reason and the
//!   same process does not rejoin, as when the node was restarted,
//! * when, for 70 s, its node has reported neither that the age is running nor that a player has
//!   arrived,
//! * when its process, known from an earlier leader, has not joined in time. The limit is 3.5 s if
//!   another process of the node joins from the same folder.

mod absent;
mod choice;
mod operators;
mod task;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use worldwire_uru::types::Uuid;

use super::super::ages::{AgeOrder, AgeReport, NodeInfo, Visit};
use super::machine::PATIENCE;
use crate::uru::config::check_public_address;
use crate::uru::game::{BySession, OfSession};
use crate::uru::vault::placements::{FIRST_PLACED, Placement};
use absent::Absent;
use choice::Load;

pub(in super::super) use choice::Choice;
pub(in crate::uru) use operators::NodeAge;
pub(in crate::uru) use task::NotExpected;
pub(in super::super) use task::Task;

/// How long a node may take to confirm that it expects a player.
pub(in super::super) const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How long an age may go without a sign of life.
const AGE_PATIENCE: Duration = Duration::from_secs(70);
/// How long a player may take to join an age.
const JOIN_WITHIN: Duration = Duration::from_secs(60);
/// How long a newly joined node may take to report which players are in its ages.
const CONFIRM_WITHIN: Duration = Duration::from_secs(5);
/// How often to check for expired time limits.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The maximum number of players per node. Arrivals beyond it are ignored.
const MAX_PLAYERS: u64 = 1 << 16;

/// The scheduler.
#[derive(Debug)]
pub(in super::super) struct Scheduler {
    /// The nodes that have joined, by process.
    nodes: BTreeMap<u64, Node>,
    /// Processes that may still run ages.
    absent: BTreeMap<u64, Absent>,
    /// When to report the absent processes that an earlier leader knew.
    report_at: Option<Duration>,
    /// The placements, by number.
    ages: HashMap<u32, Age>,
    /// Ended placements that the vault has not ended yet.
    ending: BTreeSet<(u32, u64)>,
    loads: HashMap<u64, Load>,
    /// How many ages are being placed on each process.
    reserved: HashMap<u64, u64>,
    /// Expected players, by player.
    expected: BySession<Place>,
    /// Players who have arrived, by player.
    present: BySession<Place>,
    /// Unanswered requests, by number.
    waiting: BTreeMap<u64, Waiting>,
    next_request: u64,
    look_at: Duration,
    tasks: VecDeque<Task>,
}

#[derive(Debug)]
struct Node {
    name: String,
    folder: u64,
    incarnation: u64,
    info: NodeInfo,
    /// When to assume that players known from an earlier membership have left, unless the node
    /// confirms that they are still there.
    confirm_by: Option<Duration>,
    /// Whether it has failed to answer in time, as happens when a node is stopping.
    is_suspect: bool,
    /// Whether its age files match the leader's.
    files_agree: bool,
}

#[derive(Debug)]
struct Age {
    fence: u64,
    node: String,
    process: u64,
    filename: String,
    instance: Uuid,
    since: Duration,
    /// The last sign of life.
    heard: Duration,
}

/// A player's place: in an age, or on the way to one.
#[derive(Clone, Copy, Debug)]
struct Place {
    auth: u64,
    number: u32,
    fence: u64,
    process: u64,
    since: Duration,
    is_confirmed: bool,
}

impl OfSession for Place {
    fn session(&self) -> u64 {
        self.auth
    }
}

#[derive(Debug)]
struct Waiting {
    process: u64,
    visit: Visit,
    is_sent: bool,
    until: Duration,
}

impl Scheduler {
    /// Starts with the placements that earlier leaders stored. Each of their processes may run its
    /// ages for `hold` longer than the time allowed for silence, because an earlier leader that is
    /// cut off from the database may still acknowledge its frames.
    pub(in super::super) fn new(
        now: Duration,
        stored: Vec<(u32, Placement)>,
        hold: Duration,
    ) -> Self {
        let mut this = Self {
            nodes: BTreeMap::new(),
            absent: BTreeMap::new(),
            report_at: (!stored.is_empty()).then_some(now + PATIENCE),
            ages: HashMap::new(),
            ending: BTreeSet::new(),
            loads: HashMap::new(),
            reserved: HashMap::new(),
            expected: BySession::default(),
            present: BySession::default(),
            waiting: BTreeMap::new(),
            next_request: 0,
            look_at: now + LOOK_EVERY,
            tasks: VecDeque::new(),
        };
        for (number, placement) in stored {
            let (node, folder) = (placement.node.clone(), placement.folder);
            let until = now + PATIENCE + hold;
            this.absent.insert(placement.process, Absent { node, folder, until });
            this.learn(now, number, &placement);
        }
        this
    }

    /// Called when a process of a node has joined, using this folder.
    pub(in super::super) fn joined(
        &mut self,
        now: Duration,
        name: String,
        incarnation: u64,
        (process, folder): (u64, u64),
    ) {
        self.absent.remove(&process);
        self.replaces(now, &name, folder);
        let confirm_by = Some(now + CONFIRM_WITHIN);
        let info = NodeInfo::default();
        let (is_suspect, files_agree) = (false, true);
        let node = Node { name, folder, incarnation, info, confirm_by, is_suspect, files_agree };
        self.nodes.insert(process, node);
        self.present.change(|place| place.is_confirmed &= place.process != process);
        let waiting: Vec<_> = self.waiting.keys().copied().collect();
        waiting.into_iter().for_each(|request| self.send(request));
    }

    /// Records whether a node's age files match the leader's. If not, the node gets no new ages.
    pub(in super::super) fn compared(&mut self, incarnation: u64, files_agree: bool) {
        let process = self.process_of(incarnation);
        if let Some(node) = process.and_then(|process| self.nodes.get_mut(&process)) {
            node.files_agree = files_agree;
        }
    }

    /// Called when a node was given up. It was last heard from at `heard`. If it was silent or has
    /// stopped, all its ages have ended.
    pub(in super::super) fn left(&mut self, heard: Duration, incarnation: u64, has_ended: bool) {
        let Some(process) = self.process_of(incarnation) else { return };
        let Some(node) = self.nodes.remove(&process) else { return };
        for waiting in self.waiting.values_mut().filter(|waiting| waiting.process == process) {
            waiting.is_sent = false;
        }
        match has_ended {
            true => self.process_ended(process),
            false => {
                let (node, folder, until) = (node.name, node.folder, heard + PATIENCE);
                let absent = Absent { node, folder, until };
                self.absent.insert(process, absent);
            }
        }
    }

    /// Handles a report from a node.
    pub(in super::super) fn reported(
        &mut self,
        now: Duration,
        incarnation: u64,
        report: AgeReport,
    ) {
        let Some(process) = self.process_of(incarnation) else { return };
        match report {
            AgeReport::Info { mut info } => {
                info.runs_ages &= check_public_address(&info.host).is_ok();
                if let Some(node) = self.nodes.get_mut(&process) {
                    node.info = info;
                }
            }
            AgeReport::Expecting { request } => {
                if let Some(node) = self.nodes.get_mut(&process) {
                    node.is_suspect = false;
                }
                if self.waiting.get(&request).is_some_and(|waiting| waiting.process == process) {
                    self.answer(request, Ok(()));
                }
            }
            AgeReport::Arrived { number, fence, player, auth } => {
                if !self.has_heard(now, process, number, fence) {
                    self.end_outdated(process, number, fence);
                    return self.revoke(incarnation, number, fence);
                }
                if !self.may_arrive(player, number, process) {
                    let (since, is_confirmed) = (now, true);
                    let place = Place { auth, number, fence, process, since, is_confirmed };
                    return self.remove(player, place);
                }
                let load = self.loads.get(&process).map_or(0, |load| load.players);
                if load < MAX_PLAYERS || self.present.get(player).is_some() {
                    let (since, is_confirmed) = (now, true);
                    let place = Place { auth, number, fence, process, since, is_confirmed };
                    self.arrived(player, place);
                }
            }
            AgeReport::Departed { number, fence, player } => {
                let there = self.present.get(player);
                let named = (number, fence, process);
                if there.is_some_and(|at| (at.number, at.fence, at.process) == named) {
                    self.departed(player);
                }
            }
            AgeReport::Ended { number, fence } => {
                match self.has_heard(now, process, number, fence) {
                    true => self.end(vec![number]),
                    false => self.end_outdated(process, number, fence),
                }
            }
            AgeReport::Running { number, fence } => {
                if !self.has_heard(now, process, number, fence) {
                    self.end_outdated(process, number, fence);
                    self.revoke(incarnation, number, fence);
                }
            }
        }
    }

    /// Whether a node runs ages.
    pub(in super::super) fn runs_ages(&self, incarnation: u64) -> bool {
        let mut nodes = self.nodes.values();
        nodes.any(|node| node.incarnation == incarnation && node.info.runs_ages)
    }

    /// The host that clients of a joined process are told to connect to.
    pub(in super::super) fn host(&self, process: u64) -> Option<&str> {
        let host = self.nodes.get(&process).map(|node| node.info.host.as_str());
        host.filter(|host| !host.is_empty())
    }

    /// Tells the node of a placement to expect a player. Returns the number of the request, which
    /// is answered later.
    pub(in super::super) fn expect(
        &mut self,
        now: Duration,
        placement: &Placement,
        visit: Visit,
    ) -> u64 {
        self.next_request += 1;
        let request = self.next_request;
        let (number, process) = (visit.number, placement.process);
        let key = (number, placement.fence);
        let is_known = self.nodes.contains_key(&process) || self.absent.contains_key(&process);
        let is_newer = self.ages.get(&number).is_none_or(|age| age.fence <= placement.fence);
        if !is_known || !is_newer || self.ending.contains(&key) {
            self.ending.insert(key);
            self.tasks.push_back(Task::End(vec![key]));
            let outcome = Err(NotExpected::Over);
            self.tasks.push_back(Task::Answer { request, outcome });
            return request;
        }
        self.learn(now, number, placement);
        self.has_heard(now, process, number, placement.fence);
        let (auth, player, fence) = (visit.auth, visit.player, placement.fence);
        let place = Place { auth, number, fence, process, since: now, is_confirmed: true };
        self.expected.insert(player, place);
        let until = now + ANSWER_WITHIN;
        self.waiting.insert(request, Waiting { process, visit, is_sent: false, until });
        self.send(request);
        request
    }

    /// Called when a session has ended or switched players. Its player is removed from all ages.
    pub(in super::super) fn session_ended(&mut self, auth: u64) {
        let places = self.present.of_session(auth).chain(self.expected.of_session(auth));
        let places: Vec<_> = places.map(|(player, place)| (player, *place)).collect();
        self.expected.remove_session(auth);
        for (player, place) in places {
            self.remove(player, place);
        }
    }

    /// Removes players who are not online.
    pub(in super::super) fn offline(&mut self, players: &[u32]) {
        for player in players {
            if let Some(place) = self.present.get(*player).copied() {
                self.remove(*player, place);
            }
        }
    }

    /// All players in ages on nodes.
    pub(in super::super) fn players(&self) -> Vec<u32> {
        self.present.iter().map(|(player, _)| player).collect()
    }

    /// Called when the vault has ended placements.
    pub(in super::super) fn have_ended(&mut self, ended: &[(u32, u64)]) {
        for key in ended {
            self.ending.remove(key);
        }
    }

    /// The next task.
    pub(in super::super) fn poll_task(&mut self) -> Option<Task> {
        self.tasks.pop_front()
    }

    /// When to call [`timeout`](Self::timeout) again.
    pub(in super::super) fn poll_timeout(&self) -> Duration {
        let waiting = self.waiting.values().map(|waiting| waiting.until);
        let absent = self.absent.values().map(|absent| absent.until);
        waiting.chain(absent).fold(self.look_at, Duration::min)
    }

    /// Handles the passage of time.
    pub(in super::super) fn timeout(&mut self, now: Duration) {
        let late = self.waiting.iter().filter(|(_, waiting)| now >= waiting.until);
        let late: Vec<_> = late.map(|(request, _)| *request).collect();
        for request in late {
            let process = self.waiting.get(&request).map(|waiting| waiting.process);
            if let Some(node) = process.and_then(|process| self.nodes.get_mut(&process)) {
                node.is_suspect = true;
            }
            self.answer(request, Err(NotExpected::NoAnswer));
        }
        let over = self.absent.iter().filter(|(_, absent)| now >= absent.until);
        let over: Vec<_> = over.map(|(process, _)| *process).collect();
        over.into_iter().for_each(|process| self.process_ended(process));
        if now >= self.look_at {
            self.look_at = now + LOOK_EVERY;
            self.look(now);
            if self.report_at.is_some_and(|at| now >= at) {
                self.report_at = None;
                self.report_missing(now);
            }
        }
    }

    /// Checks for expired time limits.
    fn look(&mut self, now: Duration) {
        let late = |since: Duration, patience| now.saturating_sub(since) >= patience;
        let silent = self.ages.iter().filter(|(_, age)| {
            // Ages of absent processes end with their process.
            self.nodes.contains_key(&age.process) && late(age.heard, AGE_PATIENCE)
        });
        let silent: Vec<_> =
            silent.map(|(number, age)| (*number, age.fence, age.process)).collect();
        for (number, fence, process) in silent {
            if let Some(node) = self.nodes.get(&process) {
                self.revoke(node.incarnation, number, fence);
            }
            self.end(vec![number]);
        }
        let gone = self.expected.iter().filter(|(_, place)| late(place.since, JOIN_WITHIN));
        let gone: Vec<_> = gone.map(|(player, _)| player).collect();
        for player in gone {
            self.expected.remove(player);
        }
        let mut unconfirmed = Vec::new();
        for (process, node) in &mut self.nodes {
            if node.confirm_by.is_some_and(|by| now >= by) {
                node.confirm_by = None;
                let of_node = self.present.iter().filter(|(_, place)| place.process == *process);
                let missing = of_node.filter(|(_, place)| !place.is_confirmed);
                unconfirmed.extend(missing.map(|(player, _)| player));
            }
        }
        unconfirmed.into_iter().for_each(|player| self.departed(player));
    }

    fn process_of(&self, incarnation: u64) -> Option<u64> {
        let node = self.nodes.iter().find(|(_, node)| node.incarnation == incarnation);
        node.map(|(process, _)| *process)
    }

    /// Records a placement.
    fn learn(&mut self, now: Duration, number: u32, placement: &Placement) {
        let &Placement { fence, process, instance, .. } = placement;
        if self.ages.get(&number).is_some_and(|age| age.fence == fence) {
            return;
        }
        self.forget(number);
        let (node, filename) = (placement.node.clone(), placement.filename.clone());
        let age = Age { fence, node, process, filename, instance, since: now, heard: now };
        self.ages.insert(number, age);
        self.loads.entry(process).or_default().ages += 1;
    }

    /// Removes a placement.
    fn forget(&mut self, number: u32) -> Option<Age> {
        let age = self.ages.remove(&number)?;
        if let Some(load) = self.loads.get_mut(&age.process) {
            load.ages -= 1;
        }
        self.tidy(age.process);
        Some(age)
    }

    fn tidy(&mut self, process: u64) {
        if self.loads.get(&process).is_some_and(|load| load.weight() == 0) {
            self.loads.remove(&process);
        }
    }

    /// Records a sign that a process runs an age. Returns whether the age is placed there.
    fn has_heard(&mut self, now: Duration, process: u64, number: u32, fence: u64) -> bool {
        match self.ages.get_mut(&number) {
            Some(age) if (age.fence, age.process) == (fence, process) => {
                age.heard = now;
                true
            }
            _ => false,
        }
    }

    /// Called when a process names an unknown placement of an age. If its fence is later than that of
    /// the process's known placement, the database was restored from a backup, and the known
    /// placement has ended.
    fn end_outdated(&mut self, process: u64, number: u32, fence: u64) {
        let known = self.ages.get(&number);
        if known.is_some_and(|age| age.process == process && age.fence < fence) {
            self.end(vec![number]);
        }
    }

    /// Whether a player can have arrived on a node. A node may repeat who is there, and the player
    /// may have been admitted by another leader, but nobody moves from another node's age without
    /// being expected.
    fn may_arrive(&self, player: u32, number: u32, process: u64) -> bool {
        let expected = self.expected.get(player);
        expected.is_some_and(|place| (place.number, place.process) == (number, process))
            || self.present.get(player).is_none_or(|place| place.process == process)
    }

    fn revoke(&mut self, incarnation: u64, number: u32, fence: u64) {
        let order = AgeOrder::Revoke { number, fence };
        self.tasks.push_back(Task::Order { incarnation, order });
    }

    /// Called when a process no longer runs ages.
    fn process_ended(&mut self, process: u64) {
        self.absent.remove(&process);
        let ages = self.ages.iter().filter(|(_, age)| age.process == process);
        let mut numbers: Vec<_> = ages.map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        self.end(numbers);
    }

    /// Ends placements.
    fn end(&mut self, numbers: Vec<u32>) {
        let mut over = BTreeSet::new();
        for number in numbers {
            over.extend(self.forget(number).map(|age| (number, age.fence)));
        }
        if over.is_empty() {
            return;
        }
        let is_there = |(_, place): &(u32, &Place)| over.contains(&(place.number, place.fence));
        let coming: Vec<_> = self.expected.iter().filter(is_there).map(|(id, _)| id).collect();
        let there: Vec<_> = self.present.iter().filter(is_there).map(|(id, _)| id).collect();
        for player in coming {
            self.expected.remove(player);
        }
        there.into_iter().for_each(|player| self.departed(player));
        let waiting = self
            .waiting
            .iter()
            .filter(|(_, waiting)| over.contains(&(waiting.visit.number, waiting.visit.fence)));
        let waiting: Vec<_> = waiting.map(|(request, _)| *request).collect();
        waiting.into_iter().for_each(|request| self.answer(request, Err(NotExpected::Over)));
        self.ending.extend(over.iter().copied());
        self.tasks.push_back(Task::End(over.into_iter().collect()));
    }

    fn arrived(&mut self, player: u32, place: Place) {
        if self.expected.get(player).is_some_and(|expected| expected.number == place.number) {
            self.expected.remove(player);
        }
        self.loads.entry(place.process).or_default().players += 1;
        if let Some(before) = self.present.insert(player, place) {
            if let Some(load) = self.loads.get_mut(&before.process) {
                load.players -= 1;
            }
            self.tidy(before.process);
            if before.number != place.number {
                self.remove(player, before);
            }
        }
        self.tasks.push_back(Task::Came { player });
    }

    /// Removes a player and records the departure, unless the player is on the way back.
    fn departed(&mut self, player: u32) {
        let Some(place) = self.present.remove(player) else { return };
        if let Some(load) = self.loads.get_mut(&place.process) {
            load.players -= 1;
        }
        self.tidy(place.process);
        let coming = self.expected.get(player);
        let is_coming_back = coming.is_some_and(|expected| expected.number == place.number);
        if !is_coming_back && place.number < FIRST_PLACED {
            self.tasks.push_back(Task::Left { auth: place.auth, age: place.number });
        }
    }

    /// Tells a node to remove a player.
    fn remove(&mut self, player: u32, place: Place) {
        if let Some(node) = self.nodes.get(&place.process) {
            let Place { number, auth, .. } = place;
            let incarnation = node.incarnation;
            let order = AgeOrder::Out { number, player, auth };
            self.tasks.push_back(Task::Order { incarnation, order });
        }
    }

    /// Sends the order to expect a player, if the node has joined.
    fn send(&mut self, request: u64) {
        let Some(waiting) = self.waiting.get_mut(&request).filter(|it| !it.is_sent) else { return };
        let Some(node) = self.nodes.get(&waiting.process) else { return };
        waiting.is_sent = true;
        let (incarnation, visit) = (node.incarnation, waiting.visit.clone());
        let order = AgeOrder::Expect { request, visit };
        self.tasks.push_back(Task::Order { incarnation, order });
    }

    fn answer(&mut self, request: u64, outcome: Result<(), NotExpected>) {
        if self.waiting.remove(&request).is_some() {
            self.tasks.push_back(Task::Answer { request, outcome });
        }
    }
}

#[cfg(test)]
mod tests;
