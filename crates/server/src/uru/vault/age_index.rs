//! Public ages in the order in which lists show them, and the number of players in each instance.
//!
//! The index follows from the nodes, so it is loaded and rolled back with them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use worldwire_uru::types::Uuid;

use super::content::{Entry, Facts};

/// The data that lists of public ages need.
#[derive(Debug, Default)]
pub(crate) struct AgeIndex {
    /// The AgeInfo nodes of public ages: filename, time of the last change, node.
    public: BTreeSet<(Box<str>, Reverse<u32>, u32)>,
    /// The number of online players, by instance.
    populations: HashMap<Uuid, u32>,
}

impl AgeIndex {
    /// Replaces a node.
    pub(super) fn set(&mut self, id: u32, old: Option<&Entry>, new: Option<&Entry>) {
        if let Some(instance) = old.and_then(place)
            && let Some(count) = self.populations.get_mut(&instance)
        {
            *count -= 1;
            if *count == 0 {
                self.populations.remove(&instance);
            }
        }
        if let Some(instance) = new.and_then(place) {
            *self.populations.entry(instance).or_default() += 1;
        }
        if let Some(key) = old.and_then(|old| public(id, old)) {
            self.public.remove(&key);
        }
        self.public.extend(new.and_then(|new| public(id, new)));
    }

    /// The AgeInfo nodes of an age's public instances, most recently changed first.
    pub(crate) fn public(&self, filename: &str) -> impl Iterator<Item = u32> {
        let filename: Box<str> = filename.into();
        let first = (filename.clone(), Reverse(u32::MAX), 0);
        let listed = self.public.range(first..).take_while(move |(name, ..)| *name == filename);
        listed.map(|(.., id)| *id)
    }

    /// The number of online players in an instance.
    pub(crate) fn population(&self, instance: Uuid) -> u32 {
        self.populations.get(&instance).copied().unwrap_or_default()
    }
}

/// The instance that a player is in, according to its node.
fn place(entry: &Entry) -> Option<Uuid> {
    match entry.facts {
        Facts::PlayerInfo { online: true, instance, .. } => Some(instance),
        _ => None,
    }
}

/// A node's position among public ages.
fn public(id: u32, entry: &Entry) -> Option<(Box<str>, Reverse<u32>, u32)> {
    match &entry.facts {
        Facts::AgeInfo(info) if info.public => {
            Some((info.filename.clone(), Reverse(entry.modified), id))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use worldwire_uru::types::TermStr;
    use worldwire_uru::vault::{NodeType, VaultNode};

    use super::*;
    use crate::uru::vault::graph::Graph;

    const NAMES: [&str; 3] = ["", "city", "city2"];

    fn info(name: &str, public: bool, modified: u32) -> VaultNode<'static> {
        VaultNode {
            node_type: Some(NodeType::AgeInfo),
            modify_time: Some(modified),
            int32_2: Some(i32::from(public)),
            string64_2: Some(TermStr::from(name)),
            ..VaultNode::default()
        }
    }

    fn player(online: bool, instance: u8) -> VaultNode<'static> {
        VaultNode {
            node_type: Some(NodeType::PlayerInfo),
            int32_1: Some(i32::from(online)),
            uuid_1: Some(Uuid([instance; 16])),
            ..VaultNode::default()
        }
    }

    fn node() -> impl Strategy<Value = Option<VaultNode<'static>>> {
        prop_oneof![
            Just(None),
            (0..NAMES.len(), any::<bool>(), 0..4_u32)
                .prop_map(|(name, public, modified)| Some(info(NAMES[name], public, modified))),
            (any::<bool>(), 0..3_u8).prop_map(|(online, at)| Some(player(online, at))),
        ]
    }

    proptest! {
        /// The index yields the same results as a search of all nodes.
        #[test]
        fn the_index_agrees_with_a_search(
            changes in proptest::collection::vec((0..12_u32, node()), 0..60),
        ) {
            let mut graph = Graph::default();
            for (id, node) in changes {
                let entry = node.map(|node| Entry::of(&node, &graph.keys));
                graph.set(id, entry);
            }
            for name in NAMES {
                let template = VaultNode { modify_time: None, ..info(name, true, 0) };
                let mut found = graph.find(&template, usize::MAX);
                let modified = |id: &u32| graph.get(*id).map(|entry| entry.modified);
                found.sort_by_key(|id| (Reverse(modified(id)), *id));
                prop_assert_eq!(graph.ages().public(name).collect::<Vec<_>>(), found);
            }
            for at in 0..3 {
                let found = graph.find(&player(true, at), usize::MAX).len();
                prop_assert_eq!(graph.ages().population(Uuid([at; 16])) as usize, found);
            }
        }
    }

    /// The list is as long as requested, no matter how many ages and players there are.
    #[test]
    fn only_listed_ages_are_examined() {
        for count in [100, 10_000] {
            let mut graph = Graph::default();
            for id in 0..count {
                let age = Entry::of(&info("city", true, id), &graph.keys);
                graph.set(2 * id, Some(age));
                let player = Entry::of(&player(true, 1), &graph.keys);
                graph.set(2 * id + 1, Some(player));
            }
            let mut examined = 0;
            let listed = graph.ages().public("city").inspect(|_| examined += 1).take(50).count();
            assert_eq!((listed, examined), (50, 50));
            assert_eq!(graph.ages().population(Uuid([1; 16])), count);
        }
    }
}
