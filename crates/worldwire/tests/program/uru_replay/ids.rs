//! Maps the real server's numbers to our numbers for the same things.

use std::collections::{HashMap, HashSet};

use worldwire_uru::frame::Message;
use worldwire_uru::message::NodeRef;
use worldwire_uru::message::auth::client::ClientMessage as Ask;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::types::Nested;
use worldwire_uru::vault::{NodeType, VaultNode};

use worldwire_core::Field as _;

/// The real server's number of a node, player, age or score, and ours.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    nodes: HashMap<u32, u32>,
    scores: HashMap<u32, u32>,
}

/// The references below a node, and the known nodes.
pub(crate) struct Tree<'t> {
    pub(crate) refs: &'t [NodeRef],
    pub(crate) nodes: &'t HashMap<u32, VaultNode<'static>>,
}

impl Tree<'_> {
    fn below(&self, parent: u32) -> impl Iterator<Item = u32> {
        let refs = self.refs.iter().filter(move |one| one.parent_id == parent);
        refs.map(|one| one.child_id)
    }
}

impl Ids {
    /// Our number for a node. An unknown number is kept, because our shard has no such node either.
    pub(crate) fn node(&self, real: u32) -> u32 {
        self.nodes.get(&real).copied().unwrap_or(real)
    }

    /// Learns numbers from two replies to the same request.
    pub(crate) fn learn(&mut self, real: &Message<'_>, ours: &Message<'_>) {
        let (Message::AuthServer(real), Message::AuthServer(ours)) = (real, ours) else { return };
        let mut node = |real, ours| {
            if real != 0 && ours != 0 {
                self.nodes.insert(real, ours);
            }
        };
        match (real, ours) {
            (Reply::AcctPlayerInfo(real), Reply::AcctPlayerInfo(ours)) => {
                node(real.player_id, ours.player_id);
            }
            (Reply::PlayerCreateReply(real), Reply::PlayerCreateReply(ours)) => {
                node(real.player_id, ours.player_id);
            }
            (Reply::VaultNodeCreated(real), Reply::VaultNodeCreated(ours)) => {
                node(real.node_id, ours.node_id);
            }
            (Reply::VaultInitAgeReply(real), Reply::VaultInitAgeReply(ours)) => {
                node(real.age_node_id, ours.age_node_id);
                node(real.age_info_node_id, ours.age_info_node_id);
            }
            (Reply::VaultNodeFindReply(real), Reply::VaultNodeFindReply(ours)) => {
                assert_eq!(real.node_ids.len(), ours.node_ids.len(), "found nodes");
                for (real, ours) in real.node_ids.iter().zip(ours.node_ids.iter()) {
                    node(*real, *ours);
                }
            }
            (Reply::ScoreCreateReply(real), Reply::ScoreCreateReply(ours)) => {
                self.scores.insert(real.score_id, ours.score_id);
            }
            _ => {}
        }
    }

    /// Learns the nodes of a tree: those of the same kind below the same node, in order.
    pub(crate) fn learn_tree(&mut self, root: u32, real: &Tree<'_>, ours: &Tree<'_>) {
        let mut taken: HashSet<_> = self.nodes.values().copied().collect();
        let mut next = vec![root];
        let mut seen = HashSet::from([root]);
        while let Some(parent) = next.pop() {
            let our_parent = self.node(parent);
            for child in real.below(parent) {
                if seen.insert(child) {
                    next.push(child);
                }
                let Some(node) = real.nodes.get(&child) else { continue };
                if self.nodes.contains_key(&child) {
                    continue;
                }
                let is_twin = |id: &u32| {
                    !taken.contains(id)
                        && ours.nodes.get(id).is_some_and(|ours| kind(ours) == kind(node))
                };
                let twin = ours.below(our_parent).find(is_twin);
                let twin = twin.unwrap_or_else(|| panic!("no twin of {node:?} below {our_parent}"));
                taken.insert(twin);
                self.nodes.insert(child, twin);
            }
        }
    }

    /// A client's message, with our numbers.
    pub(crate) fn translate(&self, message: &Message<'static>) -> Message<'static> {
        let Message::AuthClient(asked) = message else { return message.clone() };
        let mut asked = asked.clone();
        let set = |id: &mut u32| *id = self.node(*id);
        match &mut asked {
            Ask::AcctSetPlayerRequest(asked) => set(&mut asked.player_id),
            Ask::PlayerDeleteRequest(asked) => set(&mut asked.player_id),
            Ask::VaultNodeFetch(asked) => set(&mut asked.node_id),
            Ask::VaultFetchNodeRefs(asked) => set(&mut asked.node_id),
            Ask::VaultNodeSave(asked) => set(&mut asked.node_id),
            Ask::VaultNodeAdd(asked) => {
                set(&mut asked.parent_id);
                set(&mut asked.child_id);
                set(&mut asked.owner_id);
            }
            Ask::VaultNodeRemove(asked) => {
                set(&mut asked.parent_id);
                set(&mut asked.child_id);
            }
            Ask::VaultSendNode(asked) => {
                set(&mut asked.node_id);
                set(&mut asked.receiver_id);
            }
            Ask::VaultNodeFind(asked) => {
                let mut node = asked.node.decode::<VaultNode<'_>>().unwrap().into_owned();
                if node.node_type == Some(NodeType::PlayerInfo) {
                    node.uint32_1 = node.uint32_1.map(|id| self.node(id));
                }
                asked.node = Nested::encode_from(&node).unwrap();
            }
            Ask::ScoreCreate(asked) => set(&mut asked.owner_id),
            Ask::ScoreGetScores(asked) => set(&mut asked.owner_id),
            Ask::SetAgePublic(asked) => set(&mut asked.age_info_id),
            Ask::ScoreAddPoints(asked) => {
                asked.score_id = self.scores.get(&asked.score_id).copied().unwrap_or(0);
            }
            _ => {}
        }
        asked.into()
    }
}

/// The property that distinguishes a node from its siblings.
fn kind(
    node: &VaultNode<'static>,
) -> (Option<NodeType>, Option<i32>, Option<String>, Option<Vec<u8>>) {
    let is_list = [NodeType::Folder, NodeType::PlayerInfoList, NodeType::AgeInfoList]
        .map(Some)
        .contains(&node.node_type);
    let spawn_points = node.blob_1.as_ref().filter(|_| node.node_type == Some(NodeType::AgeLink));
    (
        node.node_type,
        node.int32_1.filter(|_| is_list),
        node.string64_2
            .as_ref()
            .map(|name| name.to_text())
            .filter(|_| node.node_type == Some(NodeType::AgeInfo)),
        spawn_points.map(|blob| blob.to_vec()),
    )
}
