//! Removing what is stored of an age.
//!
//! An age that runs has its states in memory and writes them when they change, so it has to end
//! first. It does when nobody is in it, and writes what it has left; then everything is removed in
//! one transaction, which is refused if somebody is there again.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use worldwire_uru::types::{NetError, Uuid};

use super::records::END_WANTED;
use crate::uru::vault::{Facts, Notice, Outcome, State, Vault, decode};

/// How long an age may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is asked to.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// What was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// The Age node.
    pub age: u32,
    /// The instance.
    pub instance: Uuid,
    /// The age's name in files.
    pub filename: String,
    /// What players see it called.
    pub title: String,
    /// How many states of objects there were.
    pub states: usize,
    /// Whether there was a state of the age itself, and it was to be removed.
    pub own_state: bool,
}

/// Why nothing was removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClearError {
    /// Players are in the age, or on the way into it: their names.
    #[error("{} there", match &.0[..] {
        [one] => format!("{one} is"),
        players => format!("{} are", players.join(", ")),
    })]
    Occupied(Vec<String>),
    /// The age runs and does not end.
    #[error("the age still runs; try again when nobody is in it")]
    Running,
    /// The vault; [`NetError::VaultNodeNotFound`] if there is no such age.
    #[error("{0:?}")]
    Vault(NetError),
}

impl Vault {
    /// Removes the states of the objects of an age, by its Age node, and if so its own state. An age
    /// that runs ends first. What is set for all instances stays.
    ///
    /// # Errors
    /// As [`ClearError`] says; nothing is removed then.
    pub async fn clear_states(&self, age: u32, own_state: bool) -> Result<Cleared, ClearError> {
        let begun = Instant::now();
        loop {
            let clear = move |state: &mut State| state.clear_states(age, own_state);
            let (clearing, _) = self.call(None, None, clear).await.map_err(ClearError::Vault)?;
            match clearing {
                Clearing::Done(cleared) => return Ok(cleared),
                Clearing::Occupied(players) => return Err(ClearError::Occupied(players)),
                Clearing::Running if begun.elapsed() > PATIENCE => return Err(ClearError::Running),
                Clearing::Running => sleep(ASK_EVERY).await,
            }
        }
    }
}

/// How far it has come.
enum Clearing {
    Done(Cleared),
    Occupied(Vec<String>),
    /// The age was asked to end.
    Running,
}

impl State {
    fn clear_states(&mut self, age: u32, own_state: bool) -> Outcome<Clearing> {
        let (instance, filename) = match self.graph.get(age).map(|entry| &entry.facts) {
            Some(Facts::Age { instance, filename }) => (*instance, filename.to_string()),
            _ => return Err(NetError::VaultNodeNotFound.into()),
        };
        let there = self.sessions.values().filter(|it| it.age == age && it.player != 0);
        let mut players: Vec<_> = there.map(|it| it.player).collect();
        if !players.is_empty() {
            players.sort_unstable();
            players.dedup();
            let name = |player: u32| match self.players.name(player) {
                Some(name) => name.to_owned(),
                None => player.to_string(),
            };
            return Ok(Clearing::Occupied(players.into_iter().map(name).collect()));
        }
        // What is in an age without a player is the age.
        let running = self.sessions.iter().filter(|(_, it)| it.age == age);
        let running: Vec<_> = running.map(|(connection, _)| *connection).collect();
        if !running.is_empty() {
            let notice = Notice::NodeChanged { node_id: age, revision_id: END_WANTED };
            running.into_iter().for_each(|connection| self.tell(connection, notice));
            return Ok(Clearing::Running);
        }
        let title = self.age_title(age, &filename)?;
        let own_state = own_state && self.clear_own_state(age)?;
        let nodes = self.object_states(instance);
        let states = nodes.len();
        nodes.into_iter().for_each(|node| self.drop_node(node));
        Ok(Clearing::Done(Cleared { age, instance, filename, title, states, own_state }))
    }

    /// Makes the SDL node of an age as it was at first; whether there was a state in it.
    fn clear_own_state(&mut self, age: u32) -> Outcome<bool> {
        let Some(id) = self.age_states(age) else { return Ok(false) };
        let content = self.content(id)?;
        let mut node = decode(&content)?;
        if node.blob_1.take().is_none_or(|blob| blob.is_empty()) {
            return Ok(false);
        }
        node.modify_time = Some(self.now);
        self.put_node(id, &node)?;
        let revision_id = self.random_uuid();
        self.notify(id, Notice::NodeChanged { node_id: id, revision_id });
        Ok(true)
    }
}
