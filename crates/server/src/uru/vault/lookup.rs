//! Finds players and ages for operators, by number, instance or name.

use worldwire_uru::types::TermStr;
use worldwire_uru::vault::NodeType;

use super::content::{Facts, decode};
use super::dump::uuid_of;
use super::inspect::AT_ONCE;
use super::session::Outcome;
use super::steps::VaultState;
use super::tables::players::folded_player;

/// A node that an operator specified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The Player node of a player, or the Age node of an age.
    pub id: u32,
    /// A description: `player Ann`, `age Neighborhood, DRC(1) Hood`. Empty if the operator gave the
    /// number.
    pub text: String,
}

impl VaultState {
    /// The nodes that a word identifies: a number, an age's instance, or the name of a player or
    /// age. Only a name can match several.
    pub(crate) fn nodes_called(&mut self, word: &str) -> Outcome<Vec<Named>> {
        if let Some(id) = word.parse().ok().filter(|id| self.graph().contains(*id)) {
            return Ok(vec![Named { id, text: String::new() }]);
        }
        let name = folded_player(word);
        let players =
            self.players().iter().filter(|(_, player)| folded_player(&player.name) == name);
        let players = players.map(|(id, player)| (id, player.name.clone()));
        let mut found: Vec<Named> =
            players.map(|(id, name)| Named { id, text: format!("player {name}") }).collect();
        found.extend(self.ages_called(word)?);
        Ok(found)
    }

    /// The ages that a word identifies: the number of an Age or AgeInfo node, an instance, a
    /// filename, an instance's name, or the name that players see.
    pub(crate) fn ages_called(&mut self, word: &str) -> Outcome<Vec<Named>> {
        let number = word.parse().ok().and_then(|id| self.age_at(id));
        if let Some(age) = number.or_else(|| self.age_of_instance(uuid_of(word).ok()?)) {
            return Ok(vec![self.described(age)?]);
        }
        let is_info = |id: &u32| self.graph().kind(*id) == Some(NodeType::AgeInfo);
        let infos: Vec<_> = self.graph().ids().into_iter().filter(is_info).collect();
        for some in infos.chunks(AT_ONCE) {
            self.need(some)?;
        }
        let name = word.to_lowercase();
        let mut found = Vec::new();
        for info in infos {
            let Some(age) = self.age_at(info) else { continue };
            let content = self.content(info)?;
            let node = decode(&content)?;
            let field = |field: &Option<TermStr<'_>>| field.as_ref().map(TermStr::to_text);
            let (file, own) = (field(&node.string64_2), field(&node.string64_3));
            let shown = self.age_title(age, file.as_deref().unwrap_or_default())?;
            let names = [file, own, node.title(), Some(shown)];
            if names.into_iter().flatten().any(|one| one.to_lowercase() == name) {
                found.push(self.described(age)?);
            }
        }
        Ok(found)
    }

    /// The Age node, given an Age or AgeInfo.
    fn age_at(&self, id: u32) -> Option<u32> {
        let age = match &self.graph().get(id)?.facts {
            Facts::Age { .. } => id,
            Facts::AgeInfo(info) => info.age,
            _ => return None,
        };
        (self.graph().kind(age) == Some(NodeType::Age)).then_some(age)
    }

    fn described(&mut self, age: u32) -> Outcome<Named> {
        let filename = match self.graph().get(age).map(|entry| &entry.facts) {
            Some(Facts::Age { filename, .. }) => filename.to_string(),
            _ => String::new(),
        };
        let title = self.age_title(age, &filename)?;
        Ok(Named { id: age, text: format!("age {filename}, {title}") })
    }
}
