//! Property tests that compare the state with a naive model, which finds everything by walking the
//! graph.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use worldwire_core::Field as _;
use worldwire_uru::message::{AccountFlags, NodeRef};
use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::config::VaultConfig;
use super::content::{decode, encode};
use super::session::{Session, Stop};
use super::steps::VaultState;
use super::{ConnectionId, Notice};
use crate::store::seal::ServerKey;
use crate::store::{Change, Changes, Key};

const CONNECTIONS: u64 = 3;

/// One step. Nodes are picked by a number, modulo the number of nodes.
#[derive(Clone, Debug)]
enum Step {
    /// The type and the name of the new node.
    Make(usize, u8),
    /// The node and its new name.
    Save(usize, u8),
    /// The parent and the child.
    Link(usize, usize),
    Unlink(usize, usize),
    /// The connection, and the player or age.
    Play(u64, usize),
    Visit(u64, usize),
    Leave(u64),
    /// The type and the name of the nodes to find.
    Find(usize, u8),
    /// A request that fails after these steps.
    Refused(Vec<Self>),
    Settle,
    Undo,
}

fn step() -> impl Strategy<Value = Step> {
    let connection = 1..=CONNECTIONS;
    let node = any::<usize>;
    let simple = prop_oneof![
        4 => (0..4_usize, 0..3_u8).prop_map(|(kind, word)| Step::Make(kind, word)),
        3 => (node(), 0..3_u8).prop_map(|(node, word)| Step::Save(node, word)),
        12 => (node(), node()).prop_map(|(parent, child)| Step::Link(parent, child)),
        6 => (node(), node()).prop_map(|(parent, child)| Step::Unlink(parent, child)),
        2 => (connection.clone(), node())
            .prop_map(|(connection, root)| Step::Play(connection, root)),
        2 => (connection.clone(), node())
            .prop_map(|(connection, root)| Step::Visit(connection, root)),
        1 => connection.prop_map(Step::Leave),
    ];
    let refused = proptest::collection::vec(simple.clone(), 1..6);
    prop_oneof![
        20 => simple,
        2 => (0..4_usize, 0..3_u8).prop_map(|(kind, word)| Step::Find(kind, word)),
        2 => refused.prop_map(Step::Refused),
        2 => Just(Step::Settle),
        1 => Just(Step::Undo),
    ]
}

const KINDS: [NodeType; 4] =
    [NodeType::Folder, NodeType::TextNote, NodeType::Player, NodeType::Age];
const WORDS: [&str; 3] = ["", "one", "TWO"];

/// The contents of the vault, without any index.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    nodes: BTreeMap<u32, VaultNode<'static>>,
    refs: BTreeMap<(u32, u32), u32>,
    roots: BTreeMap<ConnectionId, [u32; 2]>,
}

impl Model {
    fn below(&self, root: u32, not: u32) -> BTreeSet<u32> {
        let mut met = BTreeSet::new();
        let mut waiting = vec![root];
        while let Some(node) = waiting.pop() {
            if node != 0 && node != not && met.insert(node) {
                let refs = self.refs.keys().filter(|(parent, _)| *parent == node);
                waiting.extend(refs.map(|(_, child)| *child));
            }
        }
        met
    }

    fn interest(&self, connection: ConnectionId, system: u32) -> BTreeSet<u32> {
        let roots = self.roots[&connection];
        roots.iter().flat_map(|root| self.below(*root, system)).collect()
    }

    fn receivers(&self, node: u32, system: u32) -> Vec<ConnectionId> {
        let common = self.below(system, 0).contains(&node);
        let hears = |connection: &ConnectionId| {
            self.interest(*connection, system).contains(&node)
                || common && self.roots[connection][0] != 0
        };
        self.roots.keys().copied().filter(hears).collect()
    }

    fn breadth_first(&self, root: u32) -> Vec<NodeRef> {
        let mut refs = Vec::new();
        let (mut waiting, mut met) = (VecDeque::from([root]), BTreeSet::from([root]));
        while let Some(node) = waiting.pop_front() {
            for (&(parent_id, child_id), &owner_id) in &self.refs {
                if parent_id == node {
                    refs.push(NodeRef { parent_id, child_id, owner_id, seen: 0 });
                    if met.insert(child_id) {
                        waiting.push_back(child_id);
                    }
                }
            }
        }
        refs
    }
}

struct Both {
    state: VaultState,
    model: Model,
    /// The data that the database would contain.
    stored: Changes,
    settled: Model,
    notices: Vec<(ConnectionId, Notice)>,
}

impl Both {
    fn new() -> Self {
        let mut number = 0_u8;
        let random = Box::new(move |bytes: &mut [u8]| {
            number = number.wrapping_add(1);
            bytes.fill(number);
        });
        let config = VaultConfig { first_node: 1, cache_bytes: 1_000, ..VaultConfig::default() };
        let mut state = VaultState::new(config, ServerKey::from_bytes(&[1; 32]), random);
        state.run(|state| state.found()).unwrap();
        let mut model = Model::default();
        let mut stored = Changes::new();
        for (key, change) in state.staged().clone() {
            if let Change::PutNode(row) = &change {
                model.nodes.insert(row.id, decode(&row.data).unwrap().into_owned());
            }
            if let Change::PutRef(row) = &change {
                model.refs.insert((row.parent, row.child), row.owner);
            }
            stored.insert(key, change);
        }
        state.settle();
        for connection in 1..=CONNECTIONS {
            let session = Session {
                account: Uuid([1; 16]),
                flags: AccountFlags::Admin,
                ..Session::default()
            };
            state.put_session(ConnectionId(connection), Some(session));
            model.roots.insert(ConnectionId(connection), [0, 0]);
        }
        state.settle();
        let settled = model.clone();
        Self { state, model, stored, settled, notices: Vec::new() }
    }

    fn pick(&self, number: usize) -> u32 {
        *self.model.nodes.keys().nth(number % self.model.nodes.len()).unwrap()
    }

    fn tell(&mut self, node: u32, notice: Notice) {
        let receivers = self.model.receivers(node, self.state.system());
        self.notices.extend(receivers.into_iter().map(|connection| (connection, notice)));
    }

    /// Applies a simple step to both the state and the model.
    fn simple(&mut self, step: &Step) {
        let system = self.state.system();
        match *step {
            Step::Make(kind, word) => {
                let node = VaultNode {
                    node_type: Some(KINDS[kind]),
                    istring64_1: Some(TermStr::from(WORDS[usize::from(word)])),
                    ..VaultNode::default()
                };
                let id = self.state.run(|state| state.make_node(node.clone())).unwrap();
                let made = (Some(id), Some(self.state.now()), Some(self.state.now()));
                let (node_id, create_time, modify_time) = made;
                let node = VaultNode { node_id, create_time, modify_time, ..node };
                self.model.nodes.insert(id, node);
            }
            Step::Save(node, word) => {
                let id = self.pick(node);
                let change = || VaultNode {
                    string64_1: Some(TermStr::from(WORDS[usize::from(word)])),
                    ..VaultNode::default()
                };
                let revision_id = Uuid([word + 1; 16]);
                let save =
                    |state: &mut VaultState| state.change_node(id, Some(revision_id), change());
                let mut saved = self.state.run(save);
                if let Err(Stop::Need(ids)) = &saved {
                    for id in ids {
                        let Some(Change::PutNode(row)) = self.stored.get(&Key::Node(*id)) else {
                            panic!("node {id} is needed and was never stored");
                        };
                        self.state.load_content(*id, row.data.clone());
                    }
                    saved = self.state.run(save);
                }
                saved.unwrap();
                let now = self.state.now();
                let model = self.model.nodes.get_mut(&id).unwrap();
                (model.string64_1, model.modify_time) = (change().string64_1, Some(now));
                self.tell(id, Notice::NodeChanged { node_id: id, revision_id });
            }
            Step::Link(parent, child) => {
                let (parent, child) = (self.pick(parent), self.pick(child));
                let cycle = self.model.below(child, 0).contains(&parent);
                let linked = self.state.run(|state| state.link_below(parent, child, 7));
                if cycle {
                    assert_eq!(linked, Err(NetError::CircularReference.into()));
                } else {
                    linked.unwrap();
                    if self.model.refs.insert((parent, child), 7).is_none() {
                        let notice =
                            Notice::NodeAdded { parent_id: parent, child_id: child, owner_id: 7 };
                        self.tell(parent, notice);
                    } else {
                        let owner = self.state.graph().owner(parent, child).unwrap();
                        self.model.refs.insert((parent, child), owner);
                    }
                }
            }
            Step::Unlink(parent, child) => {
                // In most cases, picks an existing reference.
                let refs: Vec<_> = self.model.refs.keys().copied().collect();
                let (parent, child) = match refs.get(parent % (refs.len() + 1)) {
                    Some(reference) => *reference,
                    None => (self.pick(parent), self.pick(child)),
                };
                self.state
                    .run(|state| {
                        state.unlink(parent, child);
                        Ok(())
                    })
                    .unwrap();
                if self.model.refs.remove(&(parent, child)).is_some() {
                    self.tell(parent, Notice::NodeRemoved { parent_id: parent, child_id: child });
                }
            }
            Step::Play(connection, root) | Step::Visit(connection, root) => {
                let id = ConnectionId(connection);
                let node = self.pick(root);
                let node = if node == system { 0 } else { node };
                let mut session = Session::clone(&self.state.sessions()[&id]);
                let at = usize::from(matches!(step, Step::Visit(..)));
                self.model.roots.get_mut(&id).unwrap()[at] = node;
                if at == 0 {
                    session.player = node
                } else {
                    session.age = node
                }
                self.state.put_session(id, Some(session));
            }
            Step::Leave(connection) => {
                let id = ConnectionId(connection);
                let session =
                    Session { player: 0, age: 0, ..Session::clone(&self.state.sessions()[&id]) };
                self.state.put_session(id, Some(session));
                self.model.roots.insert(id, [0, 0]);
            }
            _ => unreachable!("not a simple step"),
        }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Find(kind, word) => {
                let template = VaultNode {
                    node_type: Some(KINDS[*kind]),
                    istring64_1: Some(TermStr::from(&*WORDS[usize::from(*word)].to_lowercase())),
                    ..VaultNode::default()
                };
                let fits = |node: &VaultNode<'_>| {
                    let name = node.istring64_1.as_ref().map(|name| name.to_text().to_lowercase());
                    node.node_type == template.node_type
                        && name == template.istring64_1.as_ref().map(TermStr::to_text)
                };
                let all = self.model.nodes.iter();
                let wanted: Vec<_> =
                    all.filter(|(_, node)| fits(node)).map(|(id, _)| *id).collect();
                assert_eq!(self.state.graph().find(&template, usize::MAX), wanted);
            }
            Step::Refused(steps) => {
                let (model, notices) = (self.model.clone(), self.notices.clone());
                // The steps run inside a request that is then refused.
                let mark = self.state.mark();
                for step in steps {
                    self.simple(step);
                }
                self.state.roll_back(mark);
                (self.model, self.notices) = (model, notices);
            }
            Step::Settle => {
                for (key, change) in self.state.staged().clone() {
                    self.stored.insert(key, change);
                }
                let notices = self.state.settle();
                assert_eq!(notices, std::mem::take(&mut self.notices));
                self.settled = self.model.clone();
                for (id, node) in &self.model.nodes {
                    if let Ok(content) = self.state.content(*id) {
                        assert_eq!(content, encode(node).unwrap(), "node {id}");
                    }
                }
            }
            Step::Undo => {
                self.state.undo();
                self.notices.clear();
                self.model = self.settled.clone();
                assert!(self.state.staged().is_empty());
            }
            simple => self.simple(simple),
        }
        self.compare();
    }

    fn compare(&self) {
        let (state, model) = (&self.state, &self.model);
        let system = state.system();
        assert_eq!(state.graph().ids(), model.nodes.keys().copied().collect::<Vec<_>>());
        let refs: BTreeMap<_, _> =
            state.graph().refs().map(|(parent, child, owner)| ((parent, child), owner)).collect();
        assert_eq!(refs, model.refs);
        for &(parent, child) in model.refs.keys() {
            assert!(state.graph().parents(child).any(|above| above == parent));
        }
        assert_eq!(state.interests().common(), model.below(system, 0));
        for connection in model.roots.keys() {
            assert_eq!(state.interests().of(*connection), model.interest(*connection, system));
        }
        for (id, node) in &model.nodes {
            let watchers = state.interests().watchers(*id).to_vec();
            let wanted: Vec<_> = model
                .roots
                .keys()
                .copied()
                .filter(|connection| model.interest(*connection, system).contains(id))
                .collect();
            assert_eq!(watchers, wanted);
            if let Some(Change::PutNode(row)) = state.staged().get(&Key::Node(*id)) {
                assert_eq!(row.data, encode(node).unwrap());
            }
        }
        let roots = model.nodes.iter().filter(|(_, node)| {
            let kind = node.node_type.unwrap_or_default();
            matches!(kind, NodeType::Player | NodeType::Age | NodeType::System)
        });
        let placed: BTreeSet<_> = roots.flat_map(|(id, _)| model.below(*id, 0)).collect();
        let mut placed_by: BTreeMap<u32, usize> = BTreeMap::new();
        for (id, node) in &model.nodes {
            assert_eq!(state.interests().is_placed(*id), placed.contains(id));
            let count = placed_by.entry(node.creator_id.unwrap_or_default()).or_default();
            *count += usize::from(placed.contains(id));
        }
        for (creator, count) in placed_by {
            assert_eq!(state.interests().placed_by(creator), count);
        }
        let root = *model.nodes.keys().next().unwrap();
        for root in [root, self.pick(7)] {
            assert_eq!(state.graph().reachable(root), model.breadth_first(root));
        }
        assert_eq!(state.graph().cycle(), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_state_is_what_a_walk_finds(steps in proptest::collection::vec(step(), 1..60)) {
        let mut both = Both::new();
        for step in &steps {
            both.run(step);
        }
    }
}

#[test]
fn a_panic_costs_its_request_only() {
    let mut both = Both::new();
    let before = both.state.graph().len();
    let outcome = both.state.run::<()>(|state| {
        state.make_node(VaultNode::default())?;
        panic!("a defect")
    });
    assert_eq!(outcome, Err(NetError::InternalError.into()));
    assert_eq!(both.state.graph().len(), before);
    assert!(both.state.staged().is_empty());
    both.compare();
}
