//! The choice of a node for an age that does not run yet.

use super::{Node, Scheduler};
use crate::uru::vault::placements::Candidate;

/// How many players an age costs.
const PLAYERS_PER_AGE: u64 = 20;

/// Where to run an age that does not run yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::uru::cluster) enum Choice {
    /// At this process of a node.
    Node(Candidate),
    /// In the process of the leader, because no node runs ages.
    Here,
    /// Nowhere yet: nodes that an earlier leader knew have not joined.
    Wait,
}

/// What a process has to do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) ages: u64,
    pub(super) players: u64,
}

impl Scheduler {
    /// Where to run an age that does not run yet.
    pub(in crate::uru::cluster) fn choose(&self) -> Choice {
        let weight = |process: &u64| {
            let load = self.loads.get(process).copied().unwrap_or_default();
            let reserved = self.reserved.get(process).copied().unwrap_or_default();
            load.weight() + PLAYERS_PER_AGE * reserved
        };
        // A node for no players is being drained.
        let candidates = self.nodes.iter();
        let is_candidate =
            |node: &Node| node.info.runs_ages && node.info.max_players > 0 && node.files_agree;
        let candidates = candidates.filter(|(_, node)| is_candidate(node));
        let best = candidates.min_by(|(one, node), (other, than)| {
            // Fractions are compared without division.
            let (load, than_load) = (weight(one), weight(other));
            let [max, than_max] = [node, than].map(|node| u64::from(node.info.max_players.max(1)));
            let fuller = (load * than_max).cmp(&(than_load * max));
            let by_name = || node.name.cmp(&than.name);
            node.is_suspect.cmp(&than.is_suspect).then(fuller).then_with(by_name)
        });
        match best {
            Some((process, node)) => {
                Choice::Node(Candidate { node: node.name.clone(), process: *process })
            }
            None if self.absent.is_empty() && !self.lacks_info() => Choice::Here,
            None => Choice::Wait,
        }
    }

    /// Counts an age that is being placed at a process, until [`release`](Self::release).
    pub(in crate::uru::cluster) fn reserve(&mut self, process: u64) {
        *self.reserved.entry(process).or_default() += 1;
    }

    /// An age that was counted is placed, or will not be.
    pub(in crate::uru::cluster) fn release(&mut self, process: u64) {
        if let Some(count) = self.reserved.get_mut(&process) {
            *count -= 1;
            if *count == 0 {
                self.reserved.remove(&process);
            }
        }
    }

    /// Whether a node that has ages has not said yet what it is.
    fn lacks_info(&self) -> bool {
        let mut unknown = self.nodes.iter().filter(|(_, node)| node.info.host.is_empty());
        unknown.any(|(process, _)| self.loads.contains_key(process))
    }
}

impl Load {
    pub(super) fn weight(self) -> u64 {
        self.players + PLAYERS_PER_AGE * self.ages
    }
}
