//! Writes an age's states to the vault: the latest of each, one batch at a time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use worldwire_uru::sdl::ObjectKey;
use worldwire_uru::types::{NetError, Uoid, Uuid};

use super::registry::AgeRef;
use crate::uru::vault::age_states::{
    self, AgeRecord, END_WANTED, SETTINGS_CHANGED, StateChange, StateKey, StoredStates,
};
use crate::uru::vault::{Connection, Notice, Notices, Vault};

/// The delay before a failed write is retried.
const BACK_OFF: Duration = Duration::from_secs(2);
/// The number of recent states to remember, for telling them from others' changes.
const MAX_KNOWN: usize = 4;
/// How many times the last write is tried when the age ends.
const LAST_TRIES: u32 = 4;

/// Writes an age's states to the vault, and reports changes that others make there.
pub(super) struct StateWriter {
    vault: Vault,
    /// The age's filename.
    name: String,
    record: AgeRecord,
    /// The session that receives notices; `None` for an age that is not in the vault.
    watch: Option<(Connection, Notices)>,
    /// The SDL node.
    sdl: Option<u32>,
    /// The states last read from or written to the SDL node, the latest first.
    known: VecDeque<Vec<u8>>,
    /// Whether another session may have changed the SDL node.
    is_stale: bool,
    /// Whether the settings for all instances have changed.
    has_settings: bool,
    /// A number that marks this age's revisions as its own.
    serial: u64,
    /// The number of revisions so far.
    revisions: u64,
    age: Option<Vec<u8>>,
    objects: BTreeMap<StateKey, (Uoid<'static>, Option<Vec<u8>>)>,
    nodes: HashMap<StateKey, u32>,
    saving: Option<Saving>,
    not_before: Instant,
}

/// A change by another session in the vault.
pub(super) enum News {
    /// The age's state has changed.
    Edited(Vec<u8>),
    /// The settings for all instances of the age have changed.
    Settings(Vec<u8>),
    /// An operator wants the age to end if it is empty.
    EndWanted,
}

/// The meaning of a notice.
enum VaultEvent {
    /// Another session has changed the age's state.
    Age,
    /// The settings for all instances have changed.
    Settings,
    /// The age must end if it is empty.
    EndWanted,
}

/// The outcome of a batch: its contents, and the nodes they were written to.
type Saved = (Option<Vec<u8>>, Vec<StateChange>, Result<Vec<(StateKey, Option<u32>)>, NetError>);
type Saving = Pin<Box<dyn Future<Output = Saved> + Send>>;

impl StateWriter {
    pub(super) async fn open(
        vault: Vault,
        place: &AgeRef,
        serial: u64,
    ) -> Result<(Self, StoredStates), NetError> {
        let (name, record) = (place.name.clone(), place.record);
        let mut watch = None;
        let mut stored = StoredStates::default();
        if record.age != 0 {
            let (connection, notices) = vault.connect().await?;
            stored = age_states::load(&vault, connection.number(), &name, record).await?;
            watch = Some((connection, notices));
        }
        let sdl = stored.sdl.as_ref().map(|(node, _)| *node);
        let known = stored.sdl.as_ref().map(|(_, blob)| blob.clone()).into_iter().collect();
        let writer = Self {
            vault,
            name,
            record,
            watch,
            sdl,
            known,
            is_stale: false,
            has_settings: false,
            serial,
            revisions: 0,
            age: None,
            objects: BTreeMap::new(),
            nodes: std::mem::take(&mut stored.nodes),
            saving: None,
            not_before: Instant::now(),
        };
        Ok((writer, stored))
    }

    pub(super) fn keep_age(&mut self, blob: Vec<u8>) {
        if self.sdl.is_some() {
            self.age = Some(blob);
        }
    }

    pub(super) fn keep(
        &mut self,
        object: Uoid<'static>,
        descriptor: String,
        blob: Option<Vec<u8>>,
    ) {
        if self.record.age != 0 {
            let key = (ObjectKey::of(&object), descriptor);
            self.objects.insert(key, (object, blob));
        }
    }

    fn is_idle(&self) -> bool {
        self.age.is_none() && self.objects.is_empty()
    }

    /// Writes states and waits for notices. Returns changes made by others. Cancel safe.
    pub(super) async fn work(&mut self) -> Option<News> {
        if self.is_stale {
            let blob = self.read_again().await;
            self.is_stale = false;
            return blob.map(News::Edited);
        }
        if self.has_settings {
            let settings = self.vault.age_settings(&self.name).await;
            self.has_settings = false;
            return settings.ok().flatten().map(News::Settings);
        }
        if self.saving.is_none() && !self.is_idle() {
            sleep_until(self.not_before).await;
            self.saving = Some(self.save());
        }
        let (sdl, serial) = (self.sdl, self.serial);
        let Self { saving, watch, .. } = self;
        let saved = async {
            match saving {
                Some(saving) => saving.await,
                None => pending().await,
            }
        };
        tokio::select! {
            saved = saved => {
                self.saving = None;
                self.saved(saved);
            }
            // The next call reads the changes.
            event = changed(watch, sdl, serial) => match event {
                VaultEvent::Settings => self.has_settings = true,
                VaultEvent::Age => self.is_stale = true,
                VaultEvent::EndWanted => return Some(News::EndWanted),
            },
        }
        None
    }

    /// The age's state in the vault, unless this age wrote it.
    async fn read_again(&mut self) -> Option<Vec<u8>> {
        let blob = age_states::age_state(&self.vault, self.sdl?).await.ok()?;
        if blob.is_empty() || self.known.contains(&blob) {
            return None;
        }
        self.knows(blob.clone());
        Some(blob)
    }

    fn knows(&mut self, blob: Vec<u8>) {
        self.known.push_front(blob);
        self.known.truncate(MAX_KNOWN);
    }

    /// Starts to write all pending states.
    fn save(&mut self) -> Saving {
        let (vault, record, sdl, owner) = (self.vault.clone(), self.record, self.sdl, self.serial);
        let age = self.age.take();
        if let Some(blob) = &age {
            self.knows(blob.clone());
        }
        self.revisions += 1;
        let revision = revision(self.serial, self.revisions);
        let objects = std::mem::take(&mut self.objects).into_iter();
        let changes: Vec<StateChange> = objects
            .map(|(key, (object, blob))| {
                let node = self.nodes.get(&key).copied();
                StateChange { key, object, blob, node }
            })
            .collect();
        Box::pin(async move {
            if let (Some(node), Some(blob)) = (sdl, &age)
                && let Err(error) =
                    age_states::save_age(&vault, owner, node, revision, blob.clone()).await
            {
                return (age, changes, Err(error));
            }
            let places = age_states::save_objects(&vault, owner, record, &changes).await;
            (age, changes, places)
        })
    }

    /// Handles the outcome of a batch. Failed states go into the next one, unless there are newer
    /// ones.
    fn saved(&mut self, (age, changes, places): Saved) {
        match places {
            Ok(places) => {
                for (key, node) in places {
                    match node {
                        Some(node) => drop(self.nodes.insert(key, node)),
                        None => drop(self.nodes.remove(&key)),
                    }
                }
            }
            // The age was deleted from the vault.
            Err(NetError::VaultNodeNotFound) => {
                tracing::error!(age = self.record.age, "a running age was deleted from the vault");
                self.sdl = None;
            }
            Err(error) => {
                tracing::warn!(
                    age = self.record.age,
                    ?error,
                    "cannot write states of an age; will retry"
                );
                self.not_before = Instant::now() + BACK_OFF;
                self.age = self.age.take().or(age);
                for StateChange { key, object, blob, .. } in changes {
                    self.objects.entry(key).or_insert((object, blob));
                }
            }
        }
    }

    /// Writes all pending states, and returns how many could not be written.
    pub(super) async fn finish(&mut self) -> usize {
        for attempt in 0..=LAST_TRIES {
            if let Some(saving) = self.saving.take() {
                let saved = saving.await;
                self.saved(saved);
            }
            if self.is_idle() || attempt == LAST_TRIES {
                break;
            }
            sleep_until(self.not_before).await;
            self.saving = Some(self.save());
        }
        self.objects.len() + usize::from(self.age.is_some())
    }
}

/// Waits for a relevant notice. Cancel safe.
async fn changed(
    watch: &mut Option<(Connection, Notices)>,
    sdl: Option<u32>,
    serial: u64,
) -> VaultEvent {
    loop {
        let Some((_, notices)) = watch else { return pending().await };
        match notices.recv().await {
            Some(Notice::NodeChanged { revision_id, .. }) if revision_id == SETTINGS_CHANGED => {
                return VaultEvent::Settings;
            }
            Some(Notice::NodeChanged { revision_id, .. }) if revision_id == END_WANTED => {
                return VaultEvent::EndWanted;
            }
            Some(Notice::NodeChanged { node_id, revision_id }) if Some(node_id) == sdl => {
                if revision_id.0.first_chunk() != Some(&serial.to_le_bytes()) {
                    return VaultEvent::Age;
                }
            }
            Some(_) => {}
            // The vault has ended the session.
            None => *watch = None,
        }
    }
}

/// A revision that marks a change as this age's own.
fn revision(serial: u64, number: u64) -> Uuid {
    let mut bytes = [0; 16];
    let (head, tail) = bytes.split_at_mut(8);
    head.copy_from_slice(&serial.to_le_bytes());
    tail.copy_from_slice(&number.to_le_bytes());
    Uuid(bytes)
}
