//! Operators' requests to view, change and check nodes.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::Value as Json;
use worldwire_uru::types::NetError;
use worldwire_uru::vault::{NodeType, VaultNode};

use super::content::{Entry, Facts, decode, folder, named_json};
use super::graph::Graph;
use super::markers::marker_problems;
use super::operations::without_fixed;
use super::players::{NAME_RULE, is_player_name};
use super::prune::KeptBecause;
use super::session::Outcome;
use super::steps::VaultState;
use super::tables::players::folded_player;

/// A node in a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TreeLine {
    /// The depth below the root.
    pub depth: u32,
    /// The node.
    pub id: u32,
    /// Its type, such as `AgeInfo`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name, if it has one.
    pub title: String,
    /// Whether the nodes below it have already been listed.
    pub repeated: bool,
}

/// A finding of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether it is a problem, or only information.
    pub problem: bool,
    /// The kind of finding, such as `unreachable`.
    pub kind: &'static str,
    /// The node, player or score.
    pub id: u32,
    /// The finding, as the end of a sentence about the node.
    pub text: String,
}

/// The maximum number of lines for a tree.
const MAX_LINES: usize = 100_000;
/// The number of contents to load at once.
pub(super) const AT_ONCE: usize = 4_096;

impl VaultState {
    /// The tree below a node, the System node by default.
    pub(crate) fn tree(&mut self, root: Option<u32>, depth: u32) -> Outcome<Vec<TreeLine>> {
        let root = root.unwrap_or_else(|| self.system());
        if !self.graph().contains(root) {
            return Err(NetError::VaultNodeNotFound.into());
        }
        let mut nodes = Vec::new();
        let mut shown = HashSet::new();
        let mut waiting = vec![(0, root)];
        while let Some((level, id)) = waiting.pop()
            && nodes.len() < MAX_LINES
        {
            let new = shown.insert(id);
            nodes.push((level, id, !new));
            if new && level < depth {
                let children: Vec<_> = self.graph().children(id).collect();
                waiting.extend(children.into_iter().rev().map(|child| (level + 1, child)));
            }
        }
        let ids: Vec<_> = shown.into_iter().collect();
        self.need(&ids)?;
        let line = |(depth, id, repeated)| {
            let content = self.content(id)?;
            let node = decode(&content)?;
            let kind = node.node_type.unwrap_or_default();
            let kind = kind.name().map_or_else(|| kind.0.to_string(), str::to_owned);
            let repeated = repeated && self.graph().children(id).next().is_some();
            Ok(TreeLine { depth, id, kind, title: node.title().unwrap_or_default(), repeated })
        };
        nodes.into_iter().map(line).collect()
    }

    /// The fields of a node, as JSON.
    pub(crate) fn show(&mut self, id: u32) -> Outcome<Json> {
        let content = self.content(id)?;
        serde_json::from_str(&named_json(&content)).map_err(|_| NetError::InternalError.into())
    }

    /// Finds the nodes with these fields.
    pub(crate) fn search(&self, template: &VaultNode<'_>) -> Outcome<Vec<u32>> {
        if template.mask() == 0 {
            return Err(NetError::InvalidParameter.into());
        }
        Ok(self.graph().find(template, usize::MAX))
    }

    /// Changes fields of a node, except those that identify it.
    pub(crate) fn set_fields(&mut self, id: u32, fields: &VaultNode<'static>) -> Outcome<()> {
        self.check_texts(fields)?;
        let kind = self.graph().kind(id).ok_or(NetError::VaultNodeNotFound)?;
        let is_fixed = match kind {
            // Players' names are also in the table of players.
            NodeType::Player | NodeType::PlayerInfo => {
                fields.istring64_1.is_some() || fields.uuid_1.is_some() || fields.uint32_1.is_some()
            }
            // Age and AgeInfo refer to each other.
            NodeType::Age | NodeType::AgeInfo => {
                fields.uuid_1.is_some() || fields.uint32_1.is_some()
            }
            _ => false,
        };
        let change = without_fixed(fields.clone());
        if is_fixed || change != *fields {
            return Err(NetError::VaultNodeAccessViolation.into());
        }
        self.change_node(id, None, change)
    }

    /// Checks the whole vault, including the contents in the database.
    pub(crate) fn check(&mut self) -> Outcome<Vec<Finding>> {
        let ids = self.graph().ids();
        for some in ids.chunks(AT_ONCE) {
            self.need(some)?;
        }
        let players = self
            .players()
            .iter()
            .map(|(id, player)| (id, &*player.name, self.accounts().get(player.account).is_some()));
        let mut findings = problems(self.graph(), players);
        for (id, player) in self.players().iter() {
            // A name with superfluous spaces is harmless.
            if !is_player_name(&player.name) {
                let text = format!(
                    "is a player called {:?}; a name {NAME_RULE}; `worldwire uru player rename {id} \
                     NAME` changes it",
                    player.name
                );
                findings.push(Finding { problem: true, kind: "player-name", id, text });
            }
        }
        let loose = self.loose();
        for id in ids {
            let content = self.content(id)?;
            let Some(entry) = self.graph().get(id) else { continue };
            let problem = match decode(&content) {
                Err(_) => "cannot be decoded",
                Ok(node) if node.node_id != Some(id) => "has a different NodeId",
                Ok(node) if Entry::of(&node, &self.graph().keys) != *entry => {
                    "differs from its index entry"
                }
                Ok(_) => "",
            };
            if !problem.is_empty() {
                let (kind, text) = ("content", problem.to_owned());
                findings.push(Finding { problem: true, kind, id, text });
            }
            if let Facts::MarkerTemplate { unused_since: 1.., .. } = entry.facts {
                let (kind, text) = ("unused-game", UNUSED.to_owned());
                findings.push(Finding { problem: false, kind, id, text });
            }
            if let Some(kept) = loose.get(&id) {
                // Either a player removed the node, or a player created it and left before placing
                // it.
                let (kind, text) = kept.map_or(LOOSE, KeptBecause::finding);
                findings.push(Finding { problem: false, kind, id, text: text.to_owned() });
            }
        }
        Ok(findings)
    }
}

/// The finding about a node that belongs to no tree, and that pruning removes.
const LOOSE: (&str, &str) = (
    "unreachable",
    "is not reachable from any root; this is harmless, and `worldwire uru vault prune` removes it",
);

/// The finding about a marker game that nobody has.
const UNUSED: &str =
    "is a marker game that no longer belongs to anybody; a running shard removes it after a day";

/// The required children of Age and AgeInfo nodes: their type and, for lists, their kind.
const PARTS: [(NodeType, NodeType, Option<i32>, &str); 5] = [
    (NodeType::Age, NodeType::AgeInfo, None, "is an Age without an AgeInfo"),
    (NodeType::AgeInfo, NodeType::SDL, None, "is an AgeInfo without an SDL node"),
    (
        NodeType::AgeInfo,
        NodeType::PlayerInfoList,
        Some(folder::OWNERS),
        "is an AgeInfo without an AgeOwners list",
    ),
    (
        NodeType::AgeInfo,
        NodeType::PlayerInfoList,
        Some(folder::CAN_VISIT),
        "is an AgeInfo without a CanVisit list",
    ),
    (
        NodeType::AgeInfo,
        NodeType::AgeInfoList,
        Some(folder::CHILD_AGES),
        "is an AgeInfo without a ChildAges list",
    ),
];

/// Finds problems in a graph and its players, who are given by number, name, and whether their
/// account exists.
pub(crate) fn problems<'p>(
    graph: &Graph,
    players: impl Iterator<Item = (u32, &'p str, bool)>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut say = |kind, id, text: &str| {
        findings.push(Finding { problem: true, kind, id, text: text.to_owned() });
    };
    if let Some(node) = graph.cycle() {
        say("cycle", node, "is its own descendant");
    }
    for (parent, child, _) in graph.refs() {
        for (end, other) in [(parent, child), (child, parent)] {
            if !graph.contains(end) {
                say(
                    "dangling",
                    end,
                    &format!("does not exist, but has a reference to or from {other}"),
                );
            }
        }
    }
    for (id, kind, text) in marker_problems(graph) {
        say(kind, id, text);
    }
    let (mut known, mut names) = (HashSet::new(), HashMap::new());
    for (id, name, has_account) in players {
        known.insert(id);
        // Clients can find only one of them.
        if let Some(other) = names.insert(folded_player(name), id) {
            say("same-name", id, &format!("is called {name:?}, as is player {other}"));
        }
        if graph.kind(id) != Some(NodeType::Player) {
            say("player-without-node", id, "is a player without a Player node");
        } else if graph.child(id, NodeType::PlayerInfo, None).is_none() {
            say("player-without-info", id, "is a player without a PlayerInfo");
        }
        if !has_account {
            say("player-without-account", id, "is a player without an account");
        }
    }
    for id in graph.ids() {
        let Some(entry) = graph.get(id) else { continue };
        let root = matches!(entry.kind, NodeType::Player | NodeType::Age);
        if root && graph.parents(id).next().is_some() {
            say("root-below", id, "is a root below another node");
        }
        if entry.kind == NodeType::Player && !known.contains(&id) {
            say("node-without-player", id, "is a Player node that belongs to no player");
        }
        if let Facts::AgeInfo(info) = &entry.facts
            && graph.kind(info.age) != Some(NodeType::Age)
        {
            say("info-without-age", id, "is an AgeInfo that belongs to no Age");
        }
        for (kind, part, list, text) in PARTS {
            if entry.kind == kind && graph.child(id, part, list).is_none() {
                say("incomplete-age", id, text);
            }
        }
    }
    findings
}
