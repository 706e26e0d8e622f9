//! Removes the stored states of an age.
//!
//! A running age has its states in memory and writes them when they change, so it must end first.
//! If the age is empty, it writes pending changes and ends. Then, all states are removed in one
//! transaction, which is refused if a player has entered in the meantime.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use worldwire_uru::types::{NetError, Uuid};

use super::age_states::END_WANTED;
use super::content::{Facts, decode};
use super::session::Outcome;
use super::steps::VaultState;
use super::{Notice, Vault};

/// How long an age may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// The interval between requests to the age to end.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The states that were removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// The Age node.
    pub age: u32,
    /// The instance.
    pub instance: Uuid,
    /// The age's filename.
    pub filename: String,
    /// The name that players see.
    pub title: String,
    /// The number of objects whose states were removed.
    pub states: usize,
    /// Whether the state of the age itself was removed, too.
    pub own_state: bool,
}

/// Why no states were removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClearError {
    /// These players are in the age or on the way to it.
    #[error("is not empty: {} there", match &.0[..] {
        [one] => format!("{one} is"),
        players => format!("{} are", players.join(", ")),
    })]
    Occupied(Vec<String>),
    /// The age is running and did not end.
    #[error("is still running; try again when it is empty")]
    Running,
    /// An error of the vault; [`NetError::VaultNodeNotFound`] if there is no such age.
    #[error("{0:?}")]
    Vault(NetError),
}

impl Vault {
    /// Removes the states of all objects in an age, given its Age node, and with `own_state` the
    /// age's own state. A running age ends first. Settings for all instances are kept. On an error,
    /// nothing was removed.
    pub async fn clear_states(&self, age: u32, own_state: bool) -> Result<Cleared, ClearError> {
        let begun = Instant::now();
        loop {
            let clearing = self.operate(None, move |state| state.clear_states(age, own_state));
            match clearing.await.map_err(ClearError::Vault)? {
                Clearing::Done(cleared) => return Ok(cleared),
                Clearing::Occupied(players) => return Err(ClearError::Occupied(players)),
                Clearing::Running if begun.elapsed() > PATIENCE => return Err(ClearError::Running),
                Clearing::Running => sleep(ASK_EVERY).await,
            }
        }
    }
}

/// The outcome of one attempt.
enum Clearing {
    Done(Cleared),
    Occupied(Vec<String>),
    /// The age is running and was asked to end.
    Running,
}

impl VaultState {
    fn clear_states(&mut self, age: u32, own_state: bool) -> Outcome<Clearing> {
        let (instance, filename) = match self.graph().get(age).map(|entry| &entry.facts) {
            Some(Facts::Age { instance, filename }) => (*instance, filename.to_string()),
            _ => return Err(NetError::VaultNodeNotFound.into()),
        };
        let there = self.sessions().values().filter(|it| it.age == age && it.player != 0);
        let mut players: Vec<_> = there.map(|it| it.player).collect();
        if !players.is_empty() {
            players.sort_unstable();
            players.dedup();
            let name = |player: u32| match self.players().name(player) {
                Some(name) => name.to_owned(),
                None => player.to_string(),
            };
            return Ok(Clearing::Occupied(players.into_iter().map(name).collect()));
        }
        // A session that is in an age but has no player belongs to the running age.
        let running = self.sessions().iter().filter(|(_, it)| it.age == age);
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

    /// Empties an age's SDL node and returns whether there was a state in it.
    fn clear_own_state(&mut self, age: u32) -> Outcome<bool> {
        let Some(id) = self.age_states(age) else { return Ok(false) };
        let content = self.content(id)?;
        let mut node = decode(&content)?;
        if node.blob_1.take().is_none_or(|blob| blob.is_empty()) {
            return Ok(false);
        }
        node.modify_time = Some(self.now());
        self.put_node(id, &node)?;
        let revision_id = self.random_uuid();
        self.notify(id, Notice::NodeChanged { node_id: id, revision_id });
        Ok(true)
    }
}
