//! The graph of nodes and references, in memory.
//!
//! References are sorted in both directions, so that their order is the same after a restart.
//! Player and Age nodes are roots, and the graph has no cycles.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::RangeInclusive;

use worldwire_uru::message::NodeRef;
use worldwire_uru::vault::{NodeType, VaultNode};

use super::age_index::AgeIndex;
use super::content::{AgeInfo, Entry, Facts, Keys};
use super::marker_index::MarkerIndex;

/// Nodes and references, with the indexes for finding them.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: HashMap<u32, Entry>,
    /// Owners, by parent and child.
    down: BTreeMap<(u32, u32), u32>,
    /// Child and parent.
    up: BTreeSet<(u32, u32)>,
    /// Hash keys of fields, and the nodes with these fields.
    found: BTreeSet<(u64, u32)>,
    /// The number of nodes by creator, which is a player or, for the nodes of an age, an Age node.
    made: HashMap<u32, usize>,
    markers: MarkerIndex,
    ages: AgeIndex,
    pub(crate) keys: Keys,
}

const fn all(node: u32) -> RangeInclusive<(u32, u32)> {
    (node, 0)..=(node, u32::MAX)
}

impl Graph {
    pub(crate) fn get(&self, id: u32) -> Option<&Entry> {
        self.nodes.get(&id)
    }

    pub(crate) fn contains(&self, id: u32) -> bool {
        self.nodes.contains_key(&id)
    }

    pub(crate) fn kind(&self, id: u32) -> Option<NodeType> {
        self.get(id).map(|entry| entry.kind)
    }

    pub(crate) fn age_info(&self, id: u32) -> Option<&AgeInfo> {
        match &self.get(id)?.facts {
            Facts::AgeInfo(info) => Some(info),
            _ => None,
        }
    }

    /// The number of nodes that a player created.
    pub(crate) fn made_by(&self, player: u32) -> usize {
        self.made.get(&player).copied().unwrap_or_default()
    }

    /// The nodes that belong to marker games.
    pub(super) fn markers(&self) -> &MarkerIndex {
        &self.markers
    }

    /// Public ages, and the players in ages.
    pub(super) fn ages(&self) -> &AgeIndex {
        &self.ages
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<_> = self.nodes.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) fn refs(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        self.down.iter().map(|(&(parent, child), &owner)| (parent, child, owner))
    }

    pub(crate) fn children(&self, parent: u32) -> impl Iterator<Item = u32> {
        self.down.range(all(parent)).map(|(&(_, child), _)| child)
    }

    pub(crate) fn parents(&self, child: u32) -> impl Iterator<Item = u32> {
        self.up.range(all(child)).map(|&(_, parent)| parent)
    }

    pub(crate) fn owner(&self, parent: u32, child: u32) -> Option<u32> {
        self.down.get(&(parent, child)).copied()
    }

    /// The first child of this type, and of this kind if it is a list.
    pub(crate) fn child(&self, parent: u32, kind: NodeType, list: Option<i32>) -> Option<u32> {
        self.children(parent).find(|child| {
            let entry = self.get(*child);
            entry.is_some_and(|entry| entry.kind == kind && entry.list() == list)
        })
    }

    /// Adds, replaces or removes a node. Returns the old one.
    pub(crate) fn set(&mut self, id: u32, entry: Option<Entry>) -> Option<Entry> {
        let keys = entry.as_ref().map(|entry| entry.keys.clone()).unwrap_or_default();
        let old = match entry {
            Some(entry) => self.nodes.insert(id, entry),
            None => self.nodes.remove(&id),
        };
        let old_keys = old.as_ref().map(|old| &*old.keys).unwrap_or_default();
        if let Some(old) = &old
            && let Some(count) = self.made.get_mut(&old.creator)
        {
            *count -= 1;
            if *count == 0 {
                self.made.remove(&old.creator);
            }
        }
        let new = self.nodes.get(&id);
        self.markers.set(id, old.as_ref().map(|it| &it.facts), new.map(|it| &it.facts));
        self.ages.set(id, old.as_ref(), new);
        if let Some(new) = new {
            *self.made.entry(new.creator).or_default() += 1;
        }
        for key in old_keys.iter().filter(|key| keys.binary_search(key).is_err()) {
            self.found.remove(&(*key, id));
        }
        for key in keys.iter().filter(|key| old_keys.binary_search(key).is_err()) {
            self.found.insert((*key, id));
        }
        old
    }

    /// Adds a reference. Returns false if it already exists.
    pub(crate) fn link(&mut self, parent: u32, child: u32, owner: u32) -> bool {
        if self.down.contains_key(&(parent, child)) {
            return false;
        }
        self.down.insert((parent, child), owner);
        self.up.insert((child, parent));
        true
    }

    /// Removes a reference and returns its owner.
    pub(crate) fn unlink(&mut self, parent: u32, child: u32) -> Option<u32> {
        let owner = self.down.remove(&(parent, child))?;
        self.up.remove(&(child, parent));
        Some(owner)
    }

    /// Whether `parent` can be reached from `child`, so that a reference would close a cycle.
    ///
    /// The search alternates between both ends, so it takes only about as long as a search in the
    /// faster direction: a new node has nothing below it, and a root has nothing above it.
    pub(crate) fn closes_cycle(&self, parent: u32, child: u32) -> bool {
        if parent == child {
            return true;
        }
        let (mut below, mut above) = (Walk::from(child), Walk::from(parent));
        loop {
            let Some(node) = below.next() else { return false };
            if node == parent {
                return true;
            }
            self.children(node).for_each(|next| below.meet(next));
            let Some(node) = above.next() else { return false };
            if node == child {
                return true;
            }
            self.parents(node).for_each(|next| above.meet(next));
        }
    }

    /// Finds a node that is below itself, if there is one.
    pub(crate) fn cycle(&self) -> Option<u32> {
        // Repeatedly removes nodes without parents. The nodes that remain are in or below a cycle.
        let mut above: HashMap<u32, usize> = HashMap::new();
        for (_, child, _) in self.refs() {
            *above.entry(child).or_default() += 1;
        }
        let top = self.nodes.keys().filter(|id| !above.contains_key(id));
        let mut waiting: Vec<_> = top.copied().collect();
        while let Some(node) = waiting.pop() {
            for child in self.children(node) {
                if let Some(count) = above.get_mut(&child) {
                    *count -= 1;
                    if *count == 0 {
                        above.remove(&child);
                        waiting.push(child);
                    }
                }
            }
        }
        above.into_keys().min()
    }

    /// All references that can be reached from a node, breadth first and without duplicates.
    pub(crate) fn reachable(&self, root: u32) -> Vec<NodeRef> {
        let mut refs = Vec::new();
        let mut walk = Walk::from(root);
        while let Some(parent_id) = walk.next() {
            for (&(_, child_id), &owner_id) in self.down.range(all(parent_id)) {
                refs.push(NodeRef { parent_id, child_id, owner_id, seen: 0 });
                walk.meet(child_id);
            }
        }
        refs
    }

    /// At most `most` nodes with all fields of a template, by number.
    pub(crate) fn find(&self, template: &VaultNode<'_>, most: usize) -> Vec<u32> {
        let keys = self.keys.of(template);
        let fits = |id: &u32| {
            self.get(*id).is_some_and(|entry| {
                keys.iter().all(|key| entry.keys.binary_search(key).is_ok())
                    && template.node_id.is_none_or(|wanted| wanted == *id)
                    && template.create_time.is_none_or(|wanted| wanted == entry.created)
                    && template.modify_time.is_none_or(|wanted| wanted == entry.modified)
            })
        };
        if let Some(id) = template.node_id {
            return Some(id).filter(fits).into_iter().collect();
        }
        match self.rarest(&keys) {
            Some(key) => self.having(key).filter(fits).take(most).collect(),
            None => {
                let mut ids = self.ids();
                ids.retain(fits);
                ids.truncate(most);
                ids
            }
        }
    }

    fn having(&self, key: u64) -> impl Iterator<Item = u32> {
        self.found.range((key, 0)..=(key, u32::MAX)).map(|&(_, id)| id)
    }

    /// A key of the template that few nodes have. Counting stops early, so the result is
    /// approximate.
    fn rarest(&self, keys: &[u64]) -> Option<u64> {
        let first = *keys.first()?;
        if keys.len() == 1 {
            return Some(first);
        }
        let mut most = 16;
        while most < self.nodes.len() {
            if let Some(key) = keys.iter().find(|key| self.having(**key).take(most).count() < most)
            {
                return Some(*key);
            }
            most *= 4;
        }
        Some(first)
    }
}

/// A breadth-first walk that visits each node once.
struct Walk {
    met: HashSet<u32>,
    waiting: VecDeque<u32>,
}

impl Walk {
    fn from(node: u32) -> Self {
        Self { met: HashSet::from([node]), waiting: VecDeque::from([node]) }
    }

    fn next(&mut self) -> Option<u32> {
        self.waiting.pop_front()
    }

    fn meet(&mut self, node: u32) {
        if self.met.insert(node) {
            self.waiting.push_back(node);
        }
    }
}
