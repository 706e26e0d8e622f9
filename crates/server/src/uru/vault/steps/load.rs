//! Loads the state from the rows of a database, before any request.

use worldwire_uru::types::Uuid;
use worldwire_uru::vault::{NodeType, VaultNode};

use super::placements::NEXT_FENCE;
use super::settings::{IDENTITY, KEYS, OWN_AGES, RESTRICTED, WELCOME};
use super::{NEXT_NODE, NEXT_SCORE, VaultState};
use crate::store::{
    AccountRow, Change, Changes, CharacterRow, NodeRow, RefRow, ScoreRow, SettingRow,
};
use crate::uru::vault::content::{Content, Entry, decode};
use crate::uru::vault::follow::LiveSettings;
use crate::uru::vault::graph::Graph;
use crate::uru::vault::interest::Interests;
use crate::uru::vault::tables::accounts::{Account, Accounts};
use crate::uru::vault::tables::players::{Player, Players};
use crate::uru::vault::tables::scores::Scores;

/// A row that this server would not have written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A player's data is invalid.
    #[error("player {id}: {error}")]
    Player {
        /// The player.
        id: u32,
        /// What is wrong with the data.
        error: serde_json::Error,
    },
    /// The content of a node is not a node.
    #[error("node {0}: its content cannot be decoded")]
    Node(u32),
    /// The content of a node belongs to another node.
    #[error("node {0}: its number or type differs from its row")]
    WrongNode(u32),
    /// The references have a cycle.
    #[error("node {0} is its own descendant")]
    Cycle(u32),
}

impl VaultState {
    pub(crate) fn load_settings(&mut self, settings: &[SettingRow]) {
        for row in settings {
            let text = std::str::from_utf8(&row.value).unwrap_or_default();
            match (row.name.as_str(), text.parse().ok()) {
                (NEXT_FENCE, _) => {
                    self.placements.set_next_fence(text.parse().unwrap_or_default());
                }
                (IDENTITY, _) => {
                    self.identity = u64::from_str_radix(text, 16).unwrap_or_default();
                }
                (RESTRICTED, _) => self.live.restricted = Some(text == "true"),
                (WELCOME, _) => self.live.welcome = Some(text.to_owned()),
                (KEYS, _) => self.keys = u64::from_str_radix(text, 16).unwrap_or_default(),
                (NEXT_NODE, Some(next)) => self.next_node = self.next_node.max(next),
                (NEXT_SCORE, Some(next)) => self.next_score = self.next_score.max(next),
                (OWN_AGES, _) => {
                    self.own_ages = row.value.as_chunks().0.iter().copied().map(Uuid).collect();
                }
                _ => {}
            }
        }
    }

    pub(crate) fn load_account(&mut self, row: AccountRow) {
        let (id, account) = Account::of(row);
        self.accounts.set(id, Some(account));
    }

    pub(crate) fn load_player(&mut self, row: CharacterRow) -> Result<(), Damage> {
        let id = row.id;
        let (id, player) = Player::of(row).map_err(|error| Damage::Player { id, error })?;
        self.players.set(id, Some(player));
        Ok(())
    }

    pub(crate) fn load_score(&mut self, row: ScoreRow) {
        self.next_score = self.next_score.max(row.id.saturating_add(1));
        self.scores.set(row.id, Some(row));
    }

    pub(crate) fn load_node(&mut self, row: &NodeRow) -> Result<(), Damage> {
        let node = decode(&row.data).map_err(|_| Damage::Node(row.id))?;
        if node.node_id != Some(row.id) || node.node_type.map(|kind| kind.0) != Some(row.kind) {
            return Err(Damage::WrongNode(row.id));
        }
        self.next_node = self.next_node.max(row.id.saturating_add(1));
        self.graph.set(row.id, Some(Entry::of(&node, &self.graph.keys)));
        Ok(())
    }

    pub(crate) fn load_ref(&mut self, row: RefRow) {
        self.graph.link(row.parent, row.child, row.owner);
    }

    /// Applies changes that another process committed.
    pub(crate) fn follow(&mut self, changes: &Changes) -> Result<(), Damage> {
        // Remove the changed rows first, because they may have exchanged their unique names.
        for change in changes.values() {
            match change {
                Change::PutAccount(AccountRow { id, .. }) | Change::DeleteAccount(id) => {
                    self.accounts.set(Uuid(*id), None);
                }
                Change::PutScore(ScoreRow { id, .. }) | Change::DeleteScore(id) => {
                    self.scores.set(*id, None);
                }
                Change::PutRef(RefRow { parent, child, .. })
                | Change::DeleteRef { parent, child } => {
                    self.graph.unlink(*parent, *child);
                }
                Change::DeleteCharacter(id) => drop(self.players.set(*id, None)),
                Change::DeleteNode(id) => drop(self.graph.set(*id, None)),
                Change::PutSetting(_) | Change::PutCharacter(_) | Change::PutNode(_) => {}
                // Sessions are read when this process takes over.
                Change::PutSession(_) | Change::DeleteSession(_) => {}
                Change::PutPlacement(_) | Change::DeletePlacement(_) => {}
            }
        }
        for change in changes.values() {
            match change {
                Change::PutSetting(row) => self.load_settings(std::slice::from_ref(row)),
                Change::PutAccount(row) => self.load_account(row.clone()),
                Change::PutCharacter(row) => self.load_player(row.clone())?,
                Change::PutNode(row) => self.load_node(row)?,
                Change::PutRef(row) => self.load_ref(*row),
                Change::PutScore(row) => self.load_score(row.clone()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes everything that was loaded.
    pub(crate) fn forget(&mut self) {
        self.graph = Graph::default();
        self.accounts = Accounts::default();
        self.players = Players::default();
        self.scores = Scores::default();
        self.own_ages.clear();
        (self.identity, self.keys) = (0, 0);
        self.live = LiveSettings::default();
        self.staged.clear();
        self.undo.clear();
    }

    /// Completes the state after the last row.
    pub(crate) fn finish_loading(&mut self) -> Result<(), Damage> {
        if let Some(node) = self.graph.cycle() {
            return Err(Damage::Cycle(node));
        }
        let system = VaultNode { node_type: Some(NodeType::System), ..VaultNode::default() };
        self.system = self.graph.find(&system, 1).first().copied().unwrap_or_default();
        self.interests = Interests::of_graph(self.system, &self.graph);
        Ok(())
    }

    /// Keeps the content of a node in memory until the batch ends.
    pub(crate) fn load_content(&mut self, id: u32, content: Content) {
        self.contents.loaded(id, content);
    }
}
