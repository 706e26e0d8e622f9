//! Scores in memory, by number, and by name and owner.

use std::collections::{BTreeMap, HashMap};

use crate::store::ScoreRow;

/// A score, as in replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreSummary {
    /// Its number.
    pub id: u32,
    /// The node that owns it.
    pub owner: u32,
    /// The time of its creation, in Unix seconds.
    pub created: u32,
    /// Its type.
    pub kind: u32,
    /// The points.
    pub value: i32,
    /// Its name.
    pub name: String,
}

/// A score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Score {
    pub(crate) owner: u32,
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) value: i32,
    pub(crate) created: u32,
}

impl Score {
    pub(crate) fn of(row: ScoreRow) -> (u32, Self) {
        let ScoreRow { id, owner, name, kind, value, created } = row;
        (id, Self { owner, name, kind, value, created })
    }

    pub(crate) fn row(&self, id: u32) -> ScoreRow {
        let Self { owner, name, kind, value, created } = self.clone();
        ScoreRow { id, owner, name, kind, value, created }
    }

    fn summary(&self, id: u32) -> ScoreSummary {
        let Self { owner, name, kind, value, created } = self.clone();
        ScoreSummary { id, owner, created, kind, value, name }
    }
}

/// All scores.
#[derive(Debug, Default)]
pub(crate) struct Scores {
    by_id: HashMap<u32, Score>,
    /// Name and owner.
    by_name: BTreeMap<(String, u32), u32>,
}

impl Scores {
    pub(crate) fn get(&self, id: u32) -> Option<&Score> {
        self.by_id.get(&id)
    }

    /// Adds, replaces or removes a score, and returns the old one.
    pub(crate) fn set(&mut self, id: u32, score: Option<Score>) -> Option<Score> {
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

    pub(in crate::uru::vault) fn of_owner(&self, name: &str, owner: u32) -> Option<ScoreSummary> {
        let id = *self.by_name.get(&(name.to_owned(), owner))?;
        Some(self.by_id.get(&id)?.summary(id))
    }

    pub(in crate::uru::vault) fn named(&self, name: &str) -> impl Iterator<Item = ScoreSummary> {
        let range = (name.to_owned(), 0)..=(name.to_owned(), u32::MAX);
        let ids = self.by_name.range(range).map(|(_, id)| *id);
        ids.filter_map(|id| Some(self.by_id.get(&id)?.summary(id)))
    }
}
