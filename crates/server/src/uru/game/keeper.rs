//! What an age has to write: the latest of everything, one batch at a time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use worldwire_uru::sdl::ObjectKey;
use worldwire_uru::types::{NetError, Uoid, Uuid};

use super::games::Place;
use super::records::{self, Change, END_WANTED, Key, Record, SETTINGS_CHANGED, Stored};
use crate::uru::vault::{Connection, Notice, Notices, Vault};

/// How long to wait before the vault is asked again.
const BACK_OFF: Duration = Duration::from_secs(2);
/// States of the age that are known to be its own.
const MAX_KNOWN: usize = 4;
/// How often the vault is asked when the age ends.
const LAST_TRIES: u32 = 4;

/// Writes what lasts: the latest of everything, one batch at a time.
pub(super) struct Keeper {
    vault: Vault,
    /// The age's name in files.
    name: String,
    record: Record,
    /// What hears of changes in the vault; none for an age without a record.
    watch: Option<(Connection, Notices)>,
    /// The SDL node.
    sdl: Option<u32>,
    /// What this age read or wrote there last, the latest first.
    known: VecDeque<Vec<u8>>,
    /// Somebody else may have changed it.
    is_stale: bool,
    /// Somebody has changed what is set for all instances.
    has_settings: bool,
    /// What tells the revisions of this age from those of others, and how many there were.
    serial: u64,
    revisions: u64,
    age: Option<Vec<u8>>,
    objects: BTreeMap<Key, (Uoid<'static>, Option<Vec<u8>>)>,
    nodes: HashMap<Key, u32>,
    saving: Option<Saving>,
    not_before: Instant,
}

/// What somebody else changed in the vault.
pub(super) enum News {
    /// The state of the age.
    Edited(Vec<u8>),
    /// What is set for all instances of the age.
    Settings(Vec<u8>),
    /// An operator wants the age to end, if nobody is in it.
    EndWanted,
}

/// What a notice of the vault says.
enum Told {
    /// Somebody else has changed the state of the age.
    Age,
    /// Somebody has changed what is set for all instances.
    Settings,
    /// The age is to end.
    EndWanted,
}

/// What a batch returns: what was to be written, and where it is.
type Saved = (Option<Vec<u8>>, Vec<Change>, Result<Vec<(Key, Option<u32>)>, NetError>);
type Saving = Pin<Box<dyn Future<Output = Saved> + Send>>;

impl Keeper {
    pub(super) async fn open(
        vault: Vault,
        place: &Place,
        serial: u64,
    ) -> Result<(Self, Stored), NetError> {
        let (name, record) = (place.name.clone(), place.record);
        let mut watch = None;
        let mut stored = Stored::default();
        if record.age != 0 {
            let (connection, notices) = vault.connect().await?;
            stored = records::load(&vault, connection.number(), &name, record).await?;
            watch = Some((connection, notices));
        }
        let sdl = stored.sdl.as_ref().map(|(node, _)| *node);
        let known = stored.sdl.as_ref().map(|(_, blob)| blob.clone()).into_iter().collect();
        let keeper = Self {
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
        Ok((keeper, stored))
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

    /// Writes, and listens to the vault; returns what somebody else changed. Cancel safe.
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
            // Read with the next call.
            told = changed(watch, sdl, serial) => match told {
                Told::Settings => self.has_settings = true,
                Told::Age => self.is_stale = true,
                Told::EndWanted => return Some(News::EndWanted),
            },
        }
        None
    }

    /// The state of the age in the vault, if it is not one that this age wrote.
    async fn read_again(&mut self) -> Option<Vec<u8>> {
        let blob = records::age_state(&self.vault, self.sdl?).await.ok()?;
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

    /// Begins to write everything that waits.
    fn save(&mut self) -> Saving {
        let (vault, record, sdl) = (self.vault.clone(), self.record, self.sdl);
        let age = self.age.take();
        if let Some(blob) = &age {
            self.knows(blob.clone());
        }
        self.revisions += 1;
        let revision = revision(self.serial, self.revisions);
        let objects = std::mem::take(&mut self.objects).into_iter();
        let changes: Vec<Change> = objects
            .map(|(key, (object, blob))| {
                let node = self.nodes.get(&key).copied();
                Change { key, object, blob, node }
            })
            .collect();
        Box::pin(async move {
            if let (Some(node), Some(blob)) = (sdl, &age)
                && let Err(error) = records::save_age(&vault, node, revision, blob.clone()).await
            {
                return (age, changes, Err(error));
            }
            let places = records::save_objects(&vault, record, &changes).await;
            (age, changes, places)
        })
    }

    /// A batch is written; what was not is written with the next one, unless there is something
    /// newer.
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
            // The age was removed from the vault.
            Err(NetError::VaultNodeNotFound) => {
                tracing::error!(age = self.record.age, "an age runs that the vault does not have");
                self.sdl = None;
            }
            Err(error) => {
                tracing::warn!(age = self.record.age, ?error, "a state was not written");
                self.not_before = Instant::now() + BACK_OFF;
                self.age = self.age.take().or(age);
                for Change { key, object, blob, .. } in changes {
                    self.objects.entry(key).or_insert((object, blob));
                }
            }
        }
    }

    /// Writes all that is left; returns how many states it could not write.
    pub(super) async fn finish(&mut self) -> usize {
        for _ in 0..LAST_TRIES {
            if let Some(saving) = self.saving.take() {
                let saved = saving.await;
                self.saved(saved);
            }
            if self.is_idle() {
                return 0;
            }
            sleep_until(self.not_before).await;
            self.saving = Some(self.save());
        }
        if let Some(saving) = self.saving.take() {
            let saved = saving.await;
            self.saved(saved);
        }
        self.objects.len() + usize::from(self.age.is_some())
    }
}

/// Waits until the vault has something to say. Cancel safe.
async fn changed(watch: &mut Option<(Connection, Notices)>, sdl: Option<u32>, serial: u64) -> Told {
    loop {
        let Some((_, notices)) = watch else { return pending().await };
        match notices.recv().await {
            Some(Notice::NodeChanged { revision_id, .. }) if revision_id == SETTINGS_CHANGED => {
                return Told::Settings;
            }
            Some(Notice::NodeChanged { revision_id, .. }) if revision_id == END_WANTED => {
                return Told::EndWanted;
            }
            Some(Notice::NodeChanged { node_id, revision_id }) if Some(node_id) == sdl => {
                if revision_id.0.first_chunk() != Some(&serial.to_le_bytes()) {
                    return Told::Age;
                }
            }
            Some(_) => {}
            // The vault has ended the connection.
            None => *watch = None,
        }
    }
}

/// A revision of this age's own.
fn revision(serial: u64, number: u64) -> Uuid {
    let mut bytes = [0; 16];
    let (head, tail) = bytes.split_at_mut(8);
    head.copy_from_slice(&serial.to_le_bytes());
    tail.copy_from_slice(&number.to_le_bytes());
    Uuid(bytes)
}
