//! What operators ask of the vault.

use std::collections::HashSet;

use worldwire_core::json::{Json, parse};
use worldwire_uru::types::NetError;
use worldwire_uru::vault::{NodeType, VaultNode};

use super::content::{Entry, Facts, decode};
use super::exchange::node_json;
use super::operations::without_fixed;
use super::state::{Outcome, State};

/// A node in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeLine {
    /// How far below the root it is.
    pub depth: u32,
    /// The node.
    pub id: u32,
    /// Its type: `AgeInfo`.
    pub kind: String,
    /// What it is called, as far as it has a name.
    pub title: String,
    /// Whether what is below it was shown before.
    pub repeated: bool,
}

/// Something that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether something is wrong; or else it is only worth knowing.
    pub problem: bool,
    /// The node, player or score.
    pub id: u32,
    /// What there is to say.
    pub text: String,
}

/// Lines of one tree.
const MOST_LINES: usize = 100_000;
/// Parts of the vault of which contents are needed at the same time.
const AT_ONCE: usize = 4_096;

impl State {
    /// The tree below a node, the System node by default.
    pub(crate) fn tree(&mut self, root: Option<u32>, depth: u32) -> Outcome<Vec<TreeLine>> {
        let root = root.unwrap_or(self.system);
        if !self.graph.contains(root) {
            return Err(NetError::VaultNodeNotFound.into());
        }
        let mut nodes = Vec::new();
        let mut shown = HashSet::new();
        let mut waiting = vec![(0, root)];
        while let Some((level, id)) = waiting.pop()
            && nodes.len() < MOST_LINES
        {
            let new = shown.insert(id);
            nodes.push((level, id, !new));
            if new && level < depth {
                let children: Vec<_> = self.graph.children(id).collect();
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
            let repeated = repeated && self.graph.children(id).next().is_some();
            Ok(TreeLine { depth, id, kind, title: node.title().unwrap_or_default(), repeated })
        };
        nodes.into_iter().map(line).collect()
    }

    /// The fields of a node, as JSON.
    pub(crate) fn show(&mut self, id: u32) -> Outcome<Json> {
        let content = self.content(id)?;
        parse(&node_json(&content)).map_err(|_| NetError::InternalError.into())
    }

    /// The nodes that have these fields.
    pub(crate) fn search(&self, template: &VaultNode<'_>) -> Outcome<Vec<u32>> {
        if template.mask() == 0 {
            return Err(NetError::InvalidParameter.into());
        }
        Ok(self.graph.find(template, usize::MAX))
    }

    /// Changes fields of a node.
    pub(crate) fn set_fields(&mut self, id: u32, fields: &VaultNode<'static>) -> Outcome<()> {
        self.check_lengths(fields)?;
        self.change_node(id, None, without_fixed(fields.clone()))
    }

    /// Looks through the whole vault, and through the part of the database that it stands for.
    pub(crate) fn check(&mut self) -> Outcome<Vec<Finding>> {
        let ids = self.graph.ids();
        for some in ids.chunks(AT_ONCE) {
            self.need(some)?;
        }
        let mut findings = Vec::new();
        let mut say = |problem, id, text: &str| {
            findings.push(Finding { problem, id, text: text.to_owned() });
        };
        if let Some(node) = self.graph.cycle() {
            say(true, node, "is below itself");
        }
        for (parent, child, _) in self.graph.refs() {
            for end in [parent, child] {
                if !self.graph.contains(end) {
                    say(true, end, "is referred to and missing");
                }
            }
        }
        for id in ids {
            let content = self.content(id)?;
            let Some(entry) = self.graph.get(id) else { continue };
            match decode(&content) {
                Err(_) => say(true, id, "is no vault node"),
                Ok(node) if node.node_id != Some(id) => say(true, id, "has another NodeId"),
                Ok(node) if Entry::of(&node, &self.graph.keys) != *entry => {
                    say(true, id, "is not what the index has of it");
                }
                Ok(_) => {}
            }
            let root = matches!(entry.kind, NodeType::Player | NodeType::Age | NodeType::System);
            if root && entry.kind != NodeType::System && self.graph.parents(id).next().is_some() {
                say(true, id, "is a root below another node");
            }
            if !root && self.graph.parents(id).next().is_none() {
                // A client that makes a node and goes before it has put it anywhere.
                say(false, id, "is in no tree");
            }
            match &entry.facts {
                Facts::AgeInfo(info) if self.graph.kind(info.age) != Some(NodeType::Age) => {
                    say(true, id, "is the AgeInfo of no Age");
                }
                _ if entry.kind == NodeType::Player && !self.players.contains(id) => {
                    say(true, id, "is the Player node of no player");
                }
                _ => {}
            }
        }
        for (id, player) in self.players.iter() {
            if self.graph.kind(id) != Some(NodeType::Player) {
                say(true, id, "is a player without a Player node");
            } else if self.graph.child(id, NodeType::PlayerInfo, None).is_none() {
                say(true, id, "is a player without a PlayerInfo");
            }
            if self.accounts.get(player.account).is_none() {
                say(true, id, "is a player of no account");
            }
        }
        Ok(findings)
    }
}
