//! Removing nodes that belong to no tree.
//!
//! A client that deletes something only removes the reference to it, because the node may be in
//! other trees. So nodes that players removed stay, and so do nodes that a client created and never
//! placed. Pruning removes all of them in one transaction, except:
//!
//! * nodes of players who are online, whose clients may be about to place them;
//! * nodes that changed within the last hour;
//! * nodes that own scores, a PlayerInfo of an existing player, and an AgeInfo of an existing age;
//! * other servers' list of all players;
//! * states of ages and objects, and marker games ([`markers`](super::markers)), which are outside
//!   all trees;
//! * everything below such a node.

use std::collections::{BTreeMap, HashSet};

use worldwire_uru::vault::NodeType;

use super::age_states::stands_alone;
use super::content::{Facts, folder};
use super::session::Outcome;
use super::steps::VaultState;

/// How long a node stays after its last change, in seconds.
const GRACE: u32 = 3_600;

/// The nodes that were removed, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The number of nodes of each type.
    pub nodes: BTreeMap<String, usize>,
    /// The number of references from these nodes.
    pub refs: usize,
    /// The number of nodes that belong to no tree but stay, for one of the reasons above.
    pub kept: usize,
}

impl VaultState {
    /// Removes nodes that belong to no tree; with `dry`, only counts them.
    pub(crate) fn prune(&mut self, dry: bool) -> Outcome<Pruned> {
        let loose: Vec<_> =
            self.graph().ids().into_iter().filter(|id| self.is_loose(*id)).collect();
        let scores = self.scores().ids();
        let owners: HashSet<_> =
            scores.iter().filter_map(|id| Some(self.scores().get(*id)?.owner)).collect();
        let mut kept = HashSet::new();
        let mut waiting: Vec<_> =
            loose.iter().copied().filter(|id| owners.contains(id) || self.is_kept(*id)).collect();
        while let Some(id) = waiting.pop() {
            if self.is_loose(id) && kept.insert(id) {
                waiting.extend(self.graph().children(id));
            }
        }
        let mut pruned = Pruned { kept: kept.len(), ..Pruned::default() };
        for id in loose.into_iter().filter(|id| !kept.contains(id)) {
            let kind = self.graph().kind(id).unwrap_or_default();
            let kind = kind.name().map_or_else(|| kind.0.to_string(), str::to_owned);
            *pruned.nodes.entry(kind).or_default() += 1;
            // All parents of the node are pruned, too, each with its references.
            let children: Vec<_> = self.graph().children(id).collect();
            pruned.refs += children.len();
            if !dry {
                children.into_iter().for_each(|child| self.unlink(id, child));
                let parents: Vec<_> = self.graph().parents(id).collect();
                parents.into_iter().for_each(|parent| self.unlink(parent, id));
                self.drop_node(id);
            }
        }
        Ok(pruned)
    }

    /// Whether a node belongs to no tree, although it should be.
    pub(super) fn is_loose(&self, id: u32) -> bool {
        let kind = self.graph().kind(id);
        kind.is_some_and(|kind| !stands_alone(kind)) && !self.interests().is_placed(id)
    }

    fn is_kept(&self, id: u32) -> bool {
        let Some(entry) = self.graph().get(id) else { return false };
        let stands_for = match &entry.facts {
            Facts::PlayerInfo { player, .. } => self.players().contains(*player),
            // Other servers keep it outside all trees, and need it after an export.
            Facts::List { kind: folder::ALL_PLAYERS } => entry.kind == NodeType::PlayerInfoList,
            Facts::AgeInfo(info) => self.graph().kind(info.age) == Some(NodeType::Age),
            _ => false,
        };
        stands_for
            || self.connection_of(entry.creator).is_some()
            || self.now().saturating_sub(entry.modified.max(entry.created)) < GRACE
    }
}
