//! A local copy of part of the vault.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use worldwire_uru::message::NodeRef;
use worldwire_uru::types::NetError;
use worldwire_uru::vault::VaultNode;

use super::vault::fetched;
use super::{Auth, ClientError, Notification, Result};

/// A client's copy of a node and everything below it.
///
/// The server notifies clients of every change to nodes they are interested in;
/// [`apply`](Self::apply) keeps the copy up to date.
#[derive(Clone, Debug, PartialEq)]
pub struct VaultMirror {
    root: u32,
    nodes: BTreeMap<u32, VaultNode<'static>>,
    /// References by parent, in the order received.
    refs: BTreeMap<u32, Vec<NodeRef>>,
    /// The parent and child of every reference.
    edges: HashSet<(u32, u32)>,
    /// The root, and every referenced node, including those that have vanished.
    known: HashSet<u32>,
}

/// The maximum number of unanswered requests at a time.
const AT_ONCE: usize = 32;

impl VaultMirror {
    /// Fetches a node and everything below it.
    ///
    /// # Errors
    /// Refusals include `VaultNodeNotFound` for the root. Other nodes that vanish in the meantime
    /// are left out.
    pub async fn fetch(auth: &Auth, root: u32) -> Result<Self> {
        let mut mirror = Self {
            root,
            nodes: BTreeMap::new(),
            refs: BTreeMap::new(),
            edges: HashSet::new(),
            known: [root].into(),
        };
        mirror.complete(auth, root).await?;
        Ok(mirror)
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> u32 {
        self.root
    }

    /// All nodes, by number.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (u32, &VaultNode<'static>)> {
        self.nodes.iter().map(|(id, node)| (*id, node))
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: u32) -> Option<&VaultNode<'static>> {
        self.nodes.get(&id)
    }

    /// All references, by parent.
    pub fn refs(&self) -> impl Iterator<Item = &NodeRef> {
        self.refs.values().flatten()
    }

    /// The references from a node to those directly below it.
    #[must_use]
    pub fn below(&self, parent: u32) -> &[NodeRef] {
        self.refs.get(&parent).map_or(&[], Vec::as_slice)
    }

    /// Updates the copy from a notification. Returns whether the copy has changed.
    pub async fn apply(&mut self, auth: &Auth, notification: &Notification) -> Result<bool> {
        match *notification {
            Notification::NodeChanged { node_id, .. } if self.known.contains(&node_id) => {
                self.fetch_nodes(auth, [node_id].into()).await?;
            }
            Notification::NodeAdded { parent_id, child_id, owner_id }
                if self.known.contains(&parent_id) =>
            {
                let is_known = self.known.contains(&child_id);
                let new = NodeRef { parent_id, child_id, owner_id, seen: 0 };
                if !self.insert(new) {
                    return Ok(false);
                }
                if !is_known {
                    self.complete(auth, child_id).await?;
                }
            }
            Notification::NodeRemoved { parent_id, child_id }
                if self.known.contains(&parent_id) =>
            {
                if !self.edges.remove(&(parent_id, child_id)) {
                    return Ok(false);
                }
                if let Some(refs) = self.refs.get_mut(&parent_id) {
                    refs.retain(|known| known.child_id != child_id);
                }
                self.forget_unreachable();
            }
            Notification::NodeDeleted { node_id } if self.known.contains(&node_id) => {
                for refs in self.refs.values_mut() {
                    refs.retain(|known| known.child_id != node_id);
                }
                self.edges.retain(|(_, child)| *child != node_id);
                self.nodes.remove(&node_id);
                self.forget_unreachable();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Fetches the nodes below a node that are still missing.
    async fn complete(&mut self, auth: &Auth, from: u32) -> Result<()> {
        let refs = match auth.fetch_refs(from).await {
            Err(error) if from != self.root && is_gone(&error) => Vec::new(),
            refs => refs?,
        };
        let mut wanted = BTreeSet::from([from]);
        for new in refs {
            wanted.extend([new.parent_id, new.child_id]);
            self.insert(new);
        }
        wanted.retain(|id| !self.nodes.contains_key(id));
        self.fetch_nodes(auth, wanted).await
    }

    async fn fetch_nodes(&mut self, auth: &Auth, wanted: BTreeSet<u32>) -> Result<()> {
        let mut begun = VecDeque::new();
        let mut wanted = wanted.into_iter();
        loop {
            while begun.len() < AT_ONCE {
                let Some(id) = wanted.next() else { break };
                begun.push_back((id, auth.begin_fetch(id).await?));
            }
            let Some((id, transaction)) = begun.pop_front() else { return Ok(()) };
            match fetched(transaction).await {
                Ok(node) => {
                    self.nodes.insert(id, node);
                }
                Err(error) if id != self.root && is_gone(&error) => {
                    self.nodes.remove(&id);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn forget_unreachable(&mut self) {
        let mut reached = HashSet::from([self.root]);
        let mut next = vec![self.root];
        while let Some(parent) = next.pop() {
            for known in self.below(parent) {
                if reached.insert(known.child_id) {
                    next.push(known.child_id);
                }
            }
        }
        self.nodes.retain(|id, _| reached.contains(id));
        self.refs.retain(|parent, refs| reached.contains(parent) && !refs.is_empty());
        self.edges.retain(|(parent, _)| reached.contains(parent));
        self.known = reached;
    }

    /// Adds a reference and returns whether it was new.
    fn insert(&mut self, new: NodeRef) -> bool {
        let is_new = self.edges.insert((new.parent_id, new.child_id));
        if is_new {
            self.known.insert(new.child_id);
            self.refs.entry(new.parent_id).or_default().push(new);
        }
        is_new
    }
}

fn is_gone(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { error: NetError::VaultNodeNotFound, .. })
}
