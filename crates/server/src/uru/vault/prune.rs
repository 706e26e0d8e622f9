//! Removes nodes that belong to no tree.
//!
//! A client that deletes something only removes the reference to it, because the node may be in
//! other trees. So nodes that players have removed still exist, and so do nodes that a client
//! created but never placed. Pruning removes all of them in one transaction, except:
//!
//! * nodes of players who are online, whose clients may be about to place them;
//! * nodes that changed within the last hour;
//! * nodes that own scores, a PlayerInfo of an existing player, and an AgeInfo of an existing age;
//! * other servers' list of all players;
//! * states of ages and objects, and marker games ([`markers`](super::markers)), which are outside
//!   all trees;
//! * everything below such a node.

use std::collections::{BTreeMap, HashMap, HashSet};

use worldwire_uru::vault::NodeType;

use super::age_states::stands_alone;
use super::content::{Facts, folder};
use super::session::Outcome;
use super::steps::VaultState;

/// How long a node is kept after its last change, in seconds.
const GRACE: u32 = 3_600;

/// The nodes that were or would be removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The number of nodes of each type.
    pub nodes: BTreeMap<String, usize>,
    /// The number of references from these nodes.
    pub refs: usize,
    /// The number of nodes that belong to no tree but are kept, for one of the reasons above.
    pub kept: usize,
}

/// Why a node that belongs to no tree is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptBecause {
    /// The node owns scores, belongs to an existing player or age, or is needed by other servers.
    Needed,
    /// The node's creator is online.
    Online,
    /// The node changed within the last hour.
    Recent,
    /// The node is below a node that is kept.
    Below,
}

impl KeptBecause {
    /// The kind of finding, and its text about the node.
    pub(super) fn finding(self) -> (&'static str, &'static str) {
        match self {
            Self::Needed => (
                "unreachable-needed",
                "is not reachable from any root; this is harmless. `worldwire uru vault prune` keeps \
                 it, because it belongs to scores, a player or an age, or is needed by an export",
            ),
            Self::Online => (
                "unreachable-online",
                "is not reachable from any root; this is harmless. `worldwire uru vault prune` keeps \
                 it until the player who created it is offline",
            ),
            Self::Recent => (
                "unreachable-recent",
                "is not reachable from any root; this is harmless. `worldwire uru vault prune` keeps \
                 it until an hour after its last change",
            ),
            Self::Below => (
                "unreachable-below",
                "is reachable only from a node that `worldwire uru vault prune` keeps; this is harmless",
            ),
        }
    }
}

impl VaultState {
    /// Removes nodes that belong to no tree; if `dry` is set, only counts them.
    pub(crate) fn prune(&mut self, dry: bool) -> Outcome<Pruned> {
        let loose = self.loose();
        let kept = loose.values().flatten().count();
        let mut pruned = Pruned { kept, ..Pruned::default() };
        for id in loose.into_iter().filter(|(_, kept)| kept.is_none()).map(|(id, _)| id) {
            let kind = self.graph().kind(id).unwrap_or_default();
            let kind = kind.name().map_or_else(|| kind.0.to_string(), str::to_owned);
            *pruned.nodes.entry(kind).or_default() += 1;
            // All parents of the node are pruned, too, and their references are removed with them.
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

    /// The nodes that belong to no tree, and, for those that [`prune`](Self::prune) keeps, the
    /// reason.
    pub(super) fn loose(&self) -> BTreeMap<u32, Option<KeptBecause>> {
        let ids = self.graph().ids().into_iter().filter(|id| self.is_loose(*id));
        let mut loose: BTreeMap<_, _> = ids.map(|id| (id, None)).collect();
        let scores = self.scores().ids();
        let owners: HashSet<_> =
            scores.iter().filter_map(|id| Some(self.scores().get(*id)?.owner)).collect();
        let reason = |id: u32| match owners.contains(&id) {
            true => Some(KeptBecause::Needed),
            false => self.kept_because(id),
        };
        let roots: HashMap<_, _> =
            loose.keys().filter_map(|id| Some((*id, reason(*id)?))).collect();
        let mut waiting: Vec<_> = roots.keys().copied().collect();
        while let Some(id) = waiting.pop() {
            if let Some(kept @ None) = loose.get_mut(&id) {
                *kept = Some(roots.get(&id).copied().unwrap_or(KeptBecause::Below));
                waiting.extend(self.graph().children(id));
            }
        }
        loose
    }

    /// Whether a node belongs to no tree, although it should.
    fn is_loose(&self, id: u32) -> bool {
        let kind = self.graph().kind(id);
        kind.is_some_and(|kind| !stands_alone(kind)) && !self.interests().is_placed(id)
    }

    fn kept_because(&self, id: u32) -> Option<KeptBecause> {
        let entry = self.graph().get(id)?;
        let stands_for = match &entry.facts {
            Facts::PlayerInfo { player, .. } => self.players().contains(*player),
            // Other servers keep it outside all trees and need it after an export.
            Facts::List { kind: folder::ALL_PLAYERS } => entry.kind == NodeType::PlayerInfoList,
            Facts::AgeInfo(info) => self.graph().kind(info.age) == Some(NodeType::Age),
            _ => false,
        };
        let age = self.now().saturating_sub(entry.modified.max(entry.created));
        let reasons = [
            (stands_for, KeptBecause::Needed),
            (self.connection_of(entry.creator).is_some(), KeptBecause::Online),
            (age < GRACE, KeptBecause::Recent),
        ];
        reasons.into_iter().find(|(applies, _)| *applies).map(|(_, reason)| reason)
    }
}
