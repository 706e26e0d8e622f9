//! Choosing a node for an age that is not running yet.

use super::{Node, Scheduler};
use crate::uru::vault::placements::Candidate;

/// The load of an age, expressed in players.
const PLAYERS_PER_AGE: u64 = 20;

/// Where to run an age that is not running yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::uru::cluster) enum Choice {
    /// On this process of a node.
    Node(Candidate),
    /// In the leader's own process, because no node runs ages.
    Here,
    /// Undecided: nodes that an earlier leader knew have not joined yet.
    Wait,
}

/// The load of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) ages: u64,
    pub(super) players: u64,
}

impl Scheduler {
    /// Chooses where to run an age that is not running yet.
    pub(in crate::uru::cluster) fn choose(&self) -> Choice {
        let weight = |process: &u64| {
            let load = self.loads.get(process).copied().unwrap_or_default();
            let reserved = self.reserved.get(process).copied().unwrap_or_default();
            load.weight() + PLAYERS_PER_AGE * reserved
        };
        // A node with room for 0 players is being drained.
        let candidates = self.nodes.iter();
        let is_candidate =
            |node: &Node| node.info.runs_ages && node.info.max_players > 0 && node.files_agree;
        let candidates = candidates.filter(|(_, node)| is_candidate(node));
        let best = candidates.min_by(|(one, node), (other, than)| {
            // Compares fractions without dividing.
            let (load, than_load) = (weight(one), weight(other));
            let [max, than_max] = [node, than].map(|node| u64::from(node.info.max_players.max(1)));
            let fuller = (load * than_max).cmp(&(than_load * max));
            let by_name = || node.name.cmp(&than.name);
            node.is_suspect.cmp(&than.is_suspect).then(fuller).then_with(by_name)
        });
        match best {
            Some((process, node)) => {
                let (node, process, folder) = (node.name.clone(), *process, node.folder);
                Choice::Node(Candidate { node, process, folder })
            }
            None if self.absent.is_empty() && !self.lacks_info() => Choice::Here,
            None => Choice::Wait,
        }
    }

    /// Counts an age towards a process's load while it is being placed, until
    /// [`release`](Self::release).
    pub(in crate::uru::cluster) fn reserve(&mut self, process: u64) {
        *self.reserved.entry(process).or_default() += 1;
    }

    /// Stops counting such an age: it has been placed, or will not be.
    pub(in crate::uru::cluster) fn release(&mut self, process: u64) {
        if let Some(count) = self.reserved.get_mut(&process) {
            *count -= 1;
            if *count == 0 {
                self.reserved.remove(&process);
            }
        }
    }

    /// Whether a node with ages has not described itself yet.
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
