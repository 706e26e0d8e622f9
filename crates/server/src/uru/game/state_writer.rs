//! Writes an age's states to the vault: the latest version of each, one batch at a time.
//!
//! A session with the vault tells the age about changes that others make. On a node, the session
//! also carries the age's requests, and it ends when another process becomes the leader of the
//! cluster. It is then opened again, and the stored states are read again, because the age may have
//! missed changes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::{Future, pending};
use std::mem;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};
use worldwire_uru::sdl::ObjectKey;
use worldwire_uru::types::{NetError, Uoid, Uuid};

use super::registry::AgeRef;
use crate::uru::vault::age_states::{
    self, AgeRecord, END_WANTED, Owner, SETTINGS_CHANGED, StateChange, StateKey, StoredStates,
};
use crate::uru::vault::{Connection, Notice, Notices, Vault};

/// The delay before a failed write is retried.
const BACK_OFF: Duration = Duration::from_secs(2);
/// The number of recent states to remember, to distinguish them from others' changes.
const MAX_KNOWN: usize = 4;
/// How many times to try the last write when the age ends.
const LAST_TRIES: u32 = 4;
/// The delay before the session is opened again.
const REOPEN_AFTER: Duration = Duration::from_millis(250);

/// Writes an age's states to the vault and reports changes that others make there.
pub(super) struct StateWriter {
    vault: Vault,
    /// The age's filename.
    name: String,
    record: AgeRecord,
    owner: Owner,
    /// The session that receives notices; `None` for an age that is not in the vault.
    watch: Session,
    /// The SDL node.
    sdl: Option<u32>,
    /// The states last read from or written to the SDL node, newest first.
    known: VecDeque<Vec<u8>>,
    /// Whether another session may have changed the SDL node.
    is_stale: bool,
    /// Whether the settings for all instances have changed.
    has_settings: bool,
    /// Whether the session must be opened again.
    is_lost: bool,
    reading: Option<Reading>,
    news: VecDeque<News>,
    /// A number in this age's revisions that marks them as its own.
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
    /// The session has ended.
    Lost,
}

/// The outcome of a batch: its contents, and the nodes to which they were written.
type Saved = (Option<Vec<u8>>, Vec<StateChange>, Result<Vec<(StateKey, Option<u32>)>, NetError>);
type Saving = Pin<Box<dyn Future<Output = Saved> + Send>>;

/// The data that was read again.
enum Read {
    /// The age's state, unless it cannot be read.
    Age(Option<Vec<u8>>),
    /// The settings for all instances, if there are any.
    Settings(Option<Vec<u8>>),
    /// All of the data, with a new session.
    All(Box<(Session, StoredStates)>),
}
type Reading = Pin<Box<dyn Future<Output = Read> + Send>>;

/// The session that receives notices; `None` for an age without one.
type Session = Option<(Connection, Notices)>;

impl StateWriter {
    pub(super) async fn open(
        vault: Vault,
        place: &AgeRef,
        serial: u64,
    ) -> Result<(Self, StoredStates), NetError> {
        let AgeRef { name, record, owner, .. } = place.clone();
        let vault = vault.of_age();
        let (watch, mut stored) = load(&vault, &name, record).await?;
        let sdl = stored.sdl.as_ref().map(|(node, _)| *node);
        let known = stored.sdl.as_ref().map(|(_, blob)| blob.clone()).into_iter().collect();
        let writer = Self {
            vault,
            name,
            record,
            owner,
            watch,
            sdl,
            known,
            is_stale: false,
            has_settings: false,
            is_lost: false,
            reading: None,
            news: VecDeque::new(),
            serial,
            revisions: 0,
            age: None,
            objects: BTreeMap::new(),
            nodes: mem::take(&mut stored.nodes),
            saving: None,
            not_before: Instant::now(),
        };
        Ok((writer, stored))
    }

    /// The vault, for the age's requests.
    pub(super) fn vault(&self) -> &Vault {
        &self.vault
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
        if let Some(news) = self.news.pop_front() {
            return Some(news);
        }
        if self.reading.is_none() {
            self.reading = self.read_again();
        }
        if let Some(reading) = &mut self.reading {
            let read = reading.await;
            self.reading = None;
            self.learned(read);
            return self.news.pop_front();
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
                // If the vault is in the same process, a session ends only when the vault does.
                VaultEvent::Lost => self.is_lost = self.vault.link().is_some(),
            },
        }
        None
    }

    /// Starts reading the data that others may have changed.
    fn read_again(&mut self) -> Option<Reading> {
        let vault = self.vault.clone();
        if mem::take(&mut self.is_lost) {
            let (name, record) = (self.name.clone(), self.record);
            // All of the data has been read.
            (self.is_stale, self.has_settings) = (false, false);
            return Some(Box::pin(async move {
                loop {
                    sleep(REOPEN_AFTER).await;
                    match load(&vault, &name, record).await {
                        Ok(all) => break Read::All(Box::new(all)),
                        Err(error) => tracing::debug!(name, ?error, "cannot reread an age's state"),
                    }
                }
            }));
        }
        if mem::take(&mut self.is_stale)
            && let Some(node) = self.sdl
        {
            let read = async move { Read::Age(age_states::age_state(&vault, node).await.ok()) };
            return Some(Box::pin(read));
        }
        if mem::take(&mut self.has_settings) {
            let name = self.name.clone();
            return Some(Box::pin(async move {
                Read::Settings(vault.age_settings(&name).await.ok().flatten())
            }));
        }
        None
    }

    /// Handles the data that was read.
    fn learned(&mut self, read: Read) {
        let (age, settings) = match read {
            Read::Age(age) => (age, None),
            Read::Settings(settings) => (None, settings),
            Read::All(all) => {
                let (session, stored) = *all;
                self.watch = session;
                self.nodes = stored.nodes;
                (stored.sdl.map(|(_, blob)| blob), stored.settings)
            }
        };
        // A state that this age itself wrote is no news.
        if let Some(blob) = age
            && !blob.is_empty()
            && !self.known.contains(&blob)
        {
            self.knows(blob.clone());
            self.news.push_back(News::Edited(blob));
        }
        self.news.extend(settings.map(News::Settings));
    }

    fn knows(&mut self, blob: Vec<u8>) {
        self.known.push_front(blob);
        self.known.truncate(MAX_KNOWN);
    }

    /// Starts writing all pending states.
    fn save(&mut self) -> Saving {
        let (vault, record, sdl, owner) = (self.vault.clone(), self.record, self.sdl, self.owner);
        let age = self.age.take();
        if let Some(blob) = &age {
            self.knows(blob.clone());
        }
        self.revisions += 1;
        let revision = revision(self.serial, self.revisions);
        let objects = mem::take(&mut self.objects).into_iter();
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

    /// Opens the session again if it has ended.
    async fn reopen_within(&mut self, patience: Duration) {
        let has_ended = self.watch.as_ref().is_some_and(|(_, notices)| notices.has_ended());
        self.is_lost |= has_ended && self.vault.link().is_some();
        if self.reading.is_none() && self.is_lost {
            self.reading = self.read_again();
        }
        if let Some(reading) = &mut self.reading
            && let Ok(read) = timeout(patience, reading).await
        {
            self.reading = None;
            self.learned(read);
        }
    }

    /// Writes all pending states. Returns the number of states that could not be written.
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
            self.reopen_within(BACK_OFF).await;
            self.saving = Some(self.save());
        }
        self.objects.len() + usize::from(self.age.is_some())
    }
}

/// Opens a session and reads all stored data about an age.
async fn load(
    vault: &Vault,
    name: &str,
    record: AgeRecord,
) -> Result<(Session, StoredStates), NetError> {
    if record.age == 0 && vault.link().is_none() {
        return Ok((None, StoredStates::default()));
    }
    let (connection, notices) = vault.connect().await?;
    vault.carry_by(&connection);
    let stored = match record.age {
        0 => StoredStates::default(),
        _ => age_states::load(vault, connection.number(), name, record).await?,
    };
    Ok((Some((connection, notices)), stored))
}

/// Waits for a relevant notice. Cancel safe.
async fn changed(watch: &mut Session, sdl: Option<u32>, serial: u64) -> VaultEvent {
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
            None => {
                *watch = None;
                return VaultEvent::Lost;
            }
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
