//! Scores in memory, by number, and by name and owner.

use std::collections::{BTreeMap, HashMap};

use crate::store::ScoreRow;

/// All scores.
#[derive(Debug, Default)]
pub(crate) struct Scores {
    by_id: HashMap<u32, ScoreRow>,
    /// Name and owner.
    by_name: BTreeMap<(String, u32), u32>,
}

impl Scores {
    pub(crate) fn get(&self, id: u32) -> Option<&ScoreRow> {
        self.by_id.get(&id)
    }

    /// Adds, replaces or removes a score. Returns the old one.
    pub(crate) fn set(&mut self, id: u32, score: Option<ScoreRow>) -> Option<ScoreRow> {
        let key = score.as_ref().map(|score| (score.name.clone(), score.owner));
        let old = match score {
            Some(score) => self.by_id.insert(id, score),
            None => self.by_id.remove(&id),
        };
        if let Some(old) = &old {
            self.by_name.remove(&(old.name.clone(), old.owner));
        }
        if let Some(key) = key {
            self.by_name.insert(key, id);
        }
        old
    }

    pub(crate) fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<_> = self.by_id.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    pub(in crate::uru::vault) fn of_owner(&self, name: &str, owner: u32) -> Option<&ScoreRow> {
        self.by_id.get(self.by_name.get(&(name.to_owned(), owner))?)
    }

    pub(in crate::uru::vault) fn named(&self, name: &str) -> impl Iterator<Item = &ScoreRow> {
        let range = (name.to_owned(), 0)..=(name.to_owned(), u32::MAX);
        self.by_name.range(range).filter_map(|(_, id)| self.by_id.get(id))
    }
}
