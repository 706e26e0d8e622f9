//! Players in memory, by number, name and account.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use worldwire_uru::types::Uuid;

use crate::store::CharacterRow;

/// A player, as in `AcctPlayerInfo` and `PlayerCreateReply`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerSummary {
    /// The player's number (KI number), which is also that of its Player node.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// `male` or `female`.
    pub shape: String,
    /// 1 for explorers.
    pub explorer: u32,
}

/// The form of a player's name that is used in lookups, which ignore case.
pub(crate) fn folded_player(name: &str) -> String {
    name.to_lowercase()
}

/// A player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Player {
    pub(crate) account: Uuid,
    pub(crate) name: String,
    pub(crate) shape: String,
    pub(crate) explorer: u32,
    pub(crate) created: u32,
}

impl Player {
    /// Decodes a row of the database.
    pub(crate) fn of(row: CharacterRow) -> serde_json::Result<(u32, Self)> {
        let CharacterRow { id, account, name, created, data } = row;
        let data: serde_json::Value = serde_json::from_slice(&data)?;
        let shape = data["shape"].as_str().unwrap_or("male").to_owned();
        let explorer = data["explorer"].as_u64().and_then(|value| u32::try_from(value).ok());
        let explorer = explorer.unwrap_or(1);
        Ok((id, Self { account: Uuid(account), name, shape, explorer, created }))
    }

    pub(crate) fn row(&self, id: u32) -> CharacterRow {
        let data = json!({ "shape": self.shape, "explorer": self.explorer });
        CharacterRow {
            id,
            account: self.account.0,
            name: self.name.clone(),
            created: self.created,
            data: data.to_string().into_bytes(),
        }
    }

    pub(in crate::uru::vault) fn summary(&self, id: u32) -> PlayerSummary {
        let Self { name, shape, explorer, .. } = self.clone();
        PlayerSummary { id, name, shape, explorer }
    }
}

/// All players.
#[derive(Debug, Default)]
pub(crate) struct Players {
    by_id: BTreeMap<u32, Player>,
    /// Imported players can have the same name.
    by_name: BTreeSet<(String, u32)>,
    by_account: BTreeSet<(Uuid, u32)>,
}

impl Players {
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.by_id.contains_key(&id)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Player> {
        self.by_id.get(&id)
    }

    pub(crate) fn account(&self, id: u32) -> Option<Uuid> {
        self.by_id.get(&id).map(|player| player.account)
    }

    pub(crate) fn name(&self, id: u32) -> Option<&str> {
        self.by_id.get(&id).map(|player| &*player.name)
    }

    pub(crate) fn named(&self, name: &str) -> Option<u32> {
        let name = folded_player(name);
        let first = self.by_name.range((name.clone(), 0)..=(name, u32::MAX)).next();
        first.map(|(_, id)| *id)
    }

    /// The players of an account, by number.
    pub(crate) fn of(&self, account: Uuid) -> Vec<PlayerSummary> {
        let all = self.by_account.range((account, 0)..=(account, u32::MAX));
        all.filter_map(|(_, id)| Some(self.by_id.get(id)?.summary(*id))).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Player)> {
        self.by_id.iter().map(|(id, player)| (*id, player))
    }

    /// Adds, replaces or removes a player. Returns the old one.
    pub(crate) fn set(&mut self, id: u32, player: Option<Player>) -> Option<Player> {
        let new = player.as_ref().map(|player| (folded_player(&player.name), player.account));
        let old = match player {
            Some(player) => self.by_id.insert(id, player),
            None => self.by_id.remove(&id),
        };
        if let Some(old) = &old {
            self.by_name.remove(&(folded_player(&old.name), id));
            self.by_account.remove(&(old.account, id));
        }
        if let Some((name, account)) = new {
            self.by_name.insert((name, id));
            self.by_account.insert((account, id));
        }
        old
    }
}
