//! Nodes that run ages: they follow orders, report events in their ages, and save the ages.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::World;
use super::players::Player;
use crate::uru::cluster::ages::{AgeOrder, AgeReport, NodeInfo, Visit};
use crate::uru::cluster::link::machine::{LinkEvent, LinkMachine};
use crate::uru::cluster::memory::MemoryBus;
use crate::uru::cluster::subjects::{NodeKind, Subjects};

/// The shortest interval between two saves of a node's ages.
const SAVE_EVERY: Duration = Duration::from_millis(100);

/// A node that runs ages.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) machine: LinkMachine,
    pub(super) process: u64,
    pub(super) is_killed: bool,
    /// When its time runs out.
    pub(super) until: Duration,
    /// The session for ages' requests.
    session: Option<u64>,
    /// The fences of the ages that it runs, by number.
    pub(super) ages: BTreeMap<u32, u64>,
    /// The highest fence of the ages that have ended on this node, by number.
    pub(super) ended: HashMap<u32, u64>,
    /// The expected players, each with the number and fence of the age.
    pub(super) expected: BTreeMap<u64, (u32, u64)>,
    save_at: Duration,
}

impl Node {
    /// A node that uses endpoint `index` on the bus.
    pub(super) fn new(index: usize, process: u64, bus: &mut MemoryBus) -> Self {
        let name = format!("node-{index}");
        let machine = LinkMachine::new(Subjects::of("sim"), NodeKind::FrontAndAge, &name, process);
        machine.subscriptions().into_iter().for_each(|it| bus.subscribe(index, it));
        Self {
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
    }
}

impl World {
    pub(super) fn is_running(&self, node: usize) -> bool {
        !self.nodes[node].is_killed && !self.bus.is_paused(node, self.now)
    }

    /// Makes a node end all its ages at once.
    pub(super) fn stop_ages(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.expected.clear();
        for (number, fence) in std::mem::take(&mut node.ages) {
            node.ended.insert(number, fence);
        }
        self.throw_out(index, |_| true);
    }

    pub(super) fn node_events(&mut self, index: usize) {
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

    /// Saves the states of a node's ages.
    pub(super) fn save(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        let Some(session) = node.session.filter(|_| self.now >= node.save_at) else { return };
        node.save_at = self.now + SAVE_EVERY;
        for (number, fence) in node.ages.clone() {
            let body = [&number.to_le_bytes()[..], &fence.to_le_bytes()].concat();
            node.machine.request(session, 1, body);
        }
    }
}
