//! The nodes that each session watches, updated as the graph changes.
//!
//! A session watches its roots (its player and its age) and all nodes below them. Since the graph
//! has no cycles, reference counts are enough: a node is counted once for each watched parent, and
//! once more for each time that it is a root. A change to the graph is propagated further only
//! where a count becomes zero or stops being zero. The receivers of a notice can then simply be
//! looked up.
//!
//! All players watch the System node and the nodes below it. They are counted once for all
//! sessions, whose own trees end there.
//!
//! In the same way, nodes that can be reached from any root are counted. Players can never reach
//! any other node again, unless somebody who knows its number places it in a tree.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Entered;

use super::ConnectionId;
use super::content::Entry;
use super::graph::Graph;

#[derive(Debug, Default)]
pub(crate) struct Interests {
    /// The System node.
    system: u32,
    common: HashMap<u32, u32>,
    counts: HashMap<ConnectionId, HashMap<u32, u32>>,
    watchers: HashMap<u32, Vec<ConnectionId>>,
    /// The count of each node that can be reached from a root: the number of references to it from
    /// such nodes, plus one if it is a root.
    placed: HashMap<u32, u32>,
    /// The number of existing nodes among them, by creator.
    placed_by: HashMap<u32, usize>,
}

impl Interests {
    /// Computes all counts, without any sessions.
    pub(crate) fn of_graph(system: u32, graph: &Graph) -> Self {
        let mut interests = Self::default();
        interests.set_system(system, graph);
        for id in graph.ids() {
            if graph.get(id).is_some_and(Entry::is_root) {
                interests.place(id, graph);
            }
        }
        interests
    }

    /// Updates the counts for a new, replaced or removed node, which was `old` before.
    pub(crate) fn node_set(&mut self, id: u32, old: Option<&Entry>, graph: &Graph) {
        let new = graph.get(id);
        let [was, is] = [old, new].map(|entry| entry.is_some_and(Entry::is_root));
        if old.map(|entry| entry.creator) != new.map(|entry| entry.creator) && self.is_placed(id) {
            if let Some(old) = old {
                subtract(&mut self.placed_by, old.creator);
            }
            if let Some(new) = new {
                *self.placed_by.entry(new.creator).or_default() += 1;
            }
        }
        if is && !was {
            self.place(id, graph);
        } else if was && !is {
            let placed_by = &mut self.placed_by;
            leave(&mut self.placed, id, graph, 0, |node| displaced(placed_by, node, graph));
        }
    }

    fn place(&mut self, id: u32, graph: &Graph) {
        let placed_by = &mut self.placed_by;
        enter(&mut self.placed, id, graph, 0, |node| {
            if let Some(entry) = graph.get(node) {
                *placed_by.entry(entry.creator).or_default() += 1;
            }
        });
    }

    /// Whether a node can be reached from a root.
    pub(crate) fn is_placed(&self, node: u32) -> bool {
        self.placed.contains_key(&node)
    }

    /// The number of nodes by a creator that can be reached from a root.
    pub(crate) fn placed_by(&self, creator: u32) -> usize {
        self.placed_by.get(&creator).copied().unwrap_or_default()
    }

    /// Sets the System node.
    pub(crate) fn set_system(&mut self, node: u32, graph: &Graph) {
        self.system = node;
        self.common.clear();
        enter(&mut self.common, node, graph, 0, |_| {});
    }

    /// Whether a node is in a session's own trees.
    pub(crate) fn has(&self, connection: ConnectionId, node: u32) -> bool {
        self.counts.get(&connection).is_some_and(|counts| counts.contains_key(&node))
    }

    /// Whether all players watch a node.
    pub(crate) fn is_common(&self, node: u32) -> bool {
        self.common.contains_key(&node)
    }

    /// The sessions that have a node in their own trees.
    pub(crate) fn watchers(&self, node: u32) -> &[ConnectionId] {
        self.watchers.get(&node).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn add_root(&mut self, connection: ConnectionId, node: u32, graph: &Graph) {
        let counts = self.counts.entry(connection).or_default();
        let watchers = &mut self.watchers;
        enter(counts, node, graph, self.system, |node| watch(watchers, node, connection));
    }

    pub(crate) fn remove_root(&mut self, connection: ConnectionId, node: u32, graph: &Graph) {
        let Some(counts) = self.counts.get_mut(&connection) else { return };
        let watchers = &mut self.watchers;
        leave(counts, node, graph, self.system, |node| unwatch(watchers, node, connection));
        if counts.is_empty() {
            self.counts.remove(&connection);
        }
    }

    /// Updates the counts for a new reference.
    pub(crate) fn linked(&mut self, parent: u32, child: u32, graph: &Graph) {
        if self.is_common(parent) {
            enter(&mut self.common, child, graph, 0, |_| {});
        }
        if self.is_placed(parent) {
            self.place(child, graph);
        }
        for connection in self.watchers(parent).to_vec() {
            self.add_root(connection, child, graph);
        }
    }

    /// Updates the counts for the removal of a reference.
    pub(crate) fn unlinked(&mut self, parent: u32, child: u32, graph: &Graph) {
        if self.is_common(parent) {
            leave(&mut self.common, child, graph, 0, |_| {});
        }
        if self.is_placed(parent) {
            let placed_by = &mut self.placed_by;
            leave(&mut self.placed, child, graph, 0, |node| displaced(placed_by, node, graph));
        }
        for connection in self.watchers(parent).to_vec() {
            self.remove_root(connection, child, graph);
        }
    }

    /// The nodes in a session's own trees.
    #[cfg(test)]
    pub(crate) fn of(&self, connection: ConnectionId) -> std::collections::BTreeSet<u32> {
        self.counts.get(&connection).into_iter().flat_map(HashMap::keys).copied().collect()
    }

    /// The nodes that all players watch.
    #[cfg(test)]
    pub(crate) fn common(&self) -> std::collections::BTreeSet<u32> {
        self.common.keys().copied().collect()
    }
}

/// Updates the counts for a node that can no longer be reached from a root.
fn displaced(placed_by: &mut HashMap<u32, usize>, node: u32, graph: &Graph) {
    if let Some(entry) = graph.get(node) {
        subtract(placed_by, entry.creator);
    }
}

fn subtract(counts: &mut HashMap<u32, usize>, creator: u32) {
    if let Entered::Occupied(mut count) = counts.entry(creator) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

/// Adds one to the count of a node, and of the nodes below it if they become watched.
fn enter(
    counts: &mut HashMap<u32, u32>,
    node: u32,
    graph: &Graph,
    not: u32,
    mut entered: impl FnMut(u32),
) {
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        if node == not {
            continue;
        }
        let count = counts.entry(node).or_default();
        *count += 1;
        if *count == 1 {
            entered(node);
            waiting.extend(graph.children(node));
        }
    }
}

/// Subtracts one from the count of a node, and of the nodes below it if it is no longer watched.
fn leave(
    counts: &mut HashMap<u32, u32>,
    node: u32,
    graph: &Graph,
    not: u32,
    mut left: impl FnMut(u32),
) {
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        if node == not {
            continue;
        }
        let Some(count) = counts.get_mut(&node) else { continue };
        *count -= 1;
        if *count == 0 {
            counts.remove(&node);
            left(node);
            waiting.extend(graph.children(node));
        }
    }
}

fn watch(watchers: &mut HashMap<u32, Vec<ConnectionId>>, node: u32, connection: ConnectionId) {
    let watchers = watchers.entry(node).or_default();
    if let Err(at) = watchers.binary_search(&connection) {
        watchers.insert(at, connection);
    }
}

fn unwatch(watchers: &mut HashMap<u32, Vec<ConnectionId>>, node: u32, connection: ConnectionId) {
    let Some(list) = watchers.get_mut(&node) else { return };
    if let Ok(at) = list.binary_search(&connection) {
        list.remove(at);
    }
    if list.is_empty() {
        watchers.remove(&node);
    }
}
