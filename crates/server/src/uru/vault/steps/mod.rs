//! The vault's data in memory, and the *steps*: the only code that can change it.
//!
//! All fields of [`VaultState`] are private to this module. Requests, in the modules above, read
//! through references and change data by calling steps, so the compiler enforces that every change
//!
//! 1. is in the undo log before it happens,
//! 2. is staged for the database, and
//! 3. updates the indexes that depend on it.
//!
//! A request is rolled back if it is refused, needs contents that are not in memory, or panics. A
//! batch that the database did not commit is rolled back as a whole. After a panic, the vault
//! continues to serve requests: the failed request gets [`NetError::InternalError`], and none of
//! its changes remain.
//!
//! This module does no I/O; the time and random numbers come from its caller.

mod load;
mod placements;
mod settings;
#[cfg(test)]
mod tests;
mod undo;
mod waiting;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::VaultNode;

use super::config::VaultConfig;
use super::content::{Content, Entry, decode, encode, overlay};
use super::contents::Contents;
use super::failures::Failures;
use super::follow::LiveSettings;
use super::graph::Graph;
use super::interest::Interests;
use super::players::NAME_RULE;
use super::session::{ConnectionId, Notice, Outcome, Session, Stop};
use super::tables::accounts::{Account, Accounts};
use super::tables::players::{Player, Players};
use super::tables::scores::Scores;

use crate::store::seal::ServerKey;
use crate::store::{Change, Changes, Key, NodeRow, RefRow, ScoreRow, SettingRow};

pub use load::Damage;
use placements::Placements;
pub(in crate::uru::vault) use settings::{RESTRICTED, WELCOME};
use undo::{Mark, Undo};

/// Fills a buffer with random bytes.
pub type Randomness = Box<dyn FnMut(&mut [u8]) + Send>;

/// The data of a shard. Some of the nodes' contents are only in the database; everything else is in
/// memory.
pub(crate) struct VaultState {
    config: VaultConfig,
    key: ServerKey,
    graph: Graph,
    interests: Interests,
    contents: Contents,
    accounts: Accounts,
    players: Players,
    scores: Scores,
    sessions: BTreeMap<ConnectionId, Arc<Session>>,
    /// The players who are online, and their connections.
    online: HashMap<u32, ConnectionId>,
    /// Whether sessions are stored for the next process.
    keeps_sessions: bool,
    /// The sessions of the previous process, by the digests of their tokens. They may have been
    /// resumed or ended in the meantime.
    waiting: HashMap<[u8; 32], ConnectionId>,
    /// The notices that clients of waiting sessions may have missed.
    missed: VecDeque<Notice>,
    placements: Placements,
    system: u32,
    /// The random number of this shard; 0 until it has one.
    identity: u64,
    /// A digest of the keys with which the shard was served last; 0 if that is not known.
    keys: u64,
    /// The settings that operators change, as they were loaded.
    live: LiveSettings,
    /// The instances that the shard created automatically. They belong to the operator under any
    /// name.
    own_ages: BTreeSet<Uuid>,
    /// For each player, the number of nodes in ages that the player has created since the shard
    /// started, including those whose creation was undone.
    built: HashMap<u32, usize>,
    failures: Failures,
    /// The time at which the last refused player name was logged.
    refusal_logged: u32,
    /// Unix seconds.
    now: u32,
    random: Randomness,
    next_node: u32,
    next_score: u32,
    /// Changes that the database does not have yet.
    staged: Changes,
    undo: Vec<Undo>,
    /// Notices to send once the batch is committed.
    outbox: Vec<(ConnectionId, Notice)>,
    /// In a test, the number of steps before a panic.
    #[cfg(test)]
    panic_after: Option<usize>,
}

impl fmt::Debug for VaultState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VaultState")
            .field("nodes", &self.graph.len())
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

/// The maximum size of a node that fits in a reply, in bytes.
const MAX_NODE_BYTES: usize = 1_048_576;

/// The setting with the number of the next node. Numbers are never reused, even after a deletion.
const NEXT_NODE: &str = "uru.next-node";
/// The setting with the number of the next score.
const NEXT_SCORE: &str = "uru.next-score";

impl VaultState {
    /// An empty vault.
    pub(crate) fn new(config: VaultConfig, key: ServerKey, random: Randomness) -> Self {
        Self {
            graph: Graph::default(),
            interests: Interests::default(),
            contents: Contents::new(config.cache_bytes),
            accounts: Accounts::default(),
            players: Players::default(),
            scores: Scores::default(),
            sessions: BTreeMap::new(),
            online: HashMap::new(),
            keeps_sessions: false,
            waiting: HashMap::new(),
            missed: VecDeque::new(),
            placements: Placements::default(),
            system: 0,
            identity: 0,
            keys: 0,
            live: LiveSettings::default(),
            own_ages: BTreeSet::new(),
            built: HashMap::new(),
            failures: Failures::default(),
            refusal_logged: 0,
            now: 0,
            random,
            next_node: config.first_node.max(1),
            next_score: 1,
            staged: Changes::new(),
            undo: Vec::new(),
            outbox: Vec::new(),
            #[cfg(test)]
            panic_after: None,
            config,
            key,
        }
    }

    /// Sets the clock, in Unix seconds.
    pub(crate) fn set_now(&mut self, now: u32) {
        self.now = now;
    }

    /// Runs a request and rolls it back if it does not succeed. A panic in the request is reported
    /// as [`NetError::InternalError`].
    pub(crate) fn run<T>(&mut self, request: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        let mark = self.mark();
        let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| request(self))) else {
            self.roll_back(mark);
            self.rebuild_indexes();
            return Err(NetError::InternalError.into());
        };
        if outcome.is_err() {
            self.roll_back(mark);
        }
        outcome
    }

    /// The changes that the database does not have yet.
    pub(crate) fn staged(&self) -> &Changes {
        &self.staged
    }

    /// Ends a batch that was committed or that changed nothing persistent. Returns its notices, in
    /// order.
    pub(crate) fn settle(&mut self) -> Vec<(ConnectionId, Notice)> {
        self.undo.clear();
        // This comes first, because loaded contents are older than committed ones.
        self.contents.end_batch();
        for change in std::mem::take(&mut self.staged).into_values() {
            match change {
                Change::PutNode(row) => self.contents.keep(row.id, row.data),
                Change::DeleteNode(id) => self.contents.forget(id),
                _ => {}
            }
        }
        self.keep_missed();
        std::mem::take(&mut self.outbox)
    }

    /// Ends a batch that was not committed, and rolls it back.
    pub(crate) fn undo(&mut self) {
        self.roll_back(Mark::default());
        self.contents.end_batch();
    }
}

/// Steps. Each one records its inverse before it changes anything.
impl VaultState {
    /// Creates a node with these fields. Assigns its number and times.
    pub(crate) fn make_node(&mut self, node: VaultNode<'_>) -> Outcome<u32> {
        let id = self.next_node;
        let next = id.checked_add(1).ok_or(NetError::InternalError)?;
        self.set_next_node(next);
        let mut node = node;
        node.node_id = Some(id);
        node.create_time = Some(self.now);
        node.modify_time = Some(self.now);
        self.put_node(id, &node)?;
        Ok(id)
    }

    /// Replaces a node.
    pub(crate) fn put_node(&mut self, id: u32, node: &VaultNode<'_>) -> Outcome<()> {
        let data = encode(node)?;
        if data.len() > MAX_NODE_BYTES {
            return Err(NetError::InvalidParameter.into());
        }
        let entry = Entry::of(node, &self.graph.keys);
        self.stage(Change::PutNode(NodeRow { id, kind: entry.kind.0, data }));
        self.set_entry(id, Some(entry));
        Ok(())
    }

    /// Changes fields of a node and its time of modification, and notifies all sessions that watch
    /// it.
    pub(crate) fn change_node(
        &mut self,
        id: u32,
        revision: Option<Uuid>,
        change: VaultNode<'_>,
    ) -> Outcome<()> {
        let content = self.content(id)?;
        let mut node = decode(&content)?;
        overlay(&mut node, change);
        node.modify_time = Some(self.now);
        self.put_node(id, &node)?;
        let revision_id = revision.unwrap_or_else(|| self.random_uuid());
        self.notify(id, Notice::NodeChanged { node_id: id, revision_id });
        Ok(())
    }

    /// Deletes a node that has no references in either direction.
    pub(crate) fn drop_node(&mut self, id: u32) {
        self.stage(Change::DeleteNode(id));
        self.set_entry(id, None);
    }

    /// Puts a node below another one, unless it is already there, and notifies all sessions that
    /// watch the parent.
    pub(crate) fn link(&mut self, parent: u32, child: u32, owner: u32) {
        if self.graph.owner(parent, child).is_some() {
            return;
        }
        self.stage(Change::PutRef(RefRow { parent, child, owner }));
        self.record(Undo::Ref(parent, child, None));
        self.graph.link(parent, child, owner);
        self.interests.linked(parent, child, &self.graph);
        let notice = Notice::NodeAdded { parent_id: parent, child_id: child, owner_id: owner };
        self.notify(parent, notice);
    }

    /// Removes a node from below another one and notifies all sessions that watch the parent.
    pub(crate) fn unlink(&mut self, parent: u32, child: u32) {
        let Some(owner) = self.graph.owner(parent, child) else { return };
        self.stage(Change::DeleteRef { parent, child });
        self.record(Undo::Ref(parent, child, Some(owner)));
        self.graph.unlink(parent, child);
        self.interests.unlinked(parent, child, &self.graph);
        self.notify(parent, Notice::NodeRemoved { parent_id: parent, child_id: child });
    }

    /// Adds a connection. This is not undone with the batch, because the connection exists in any
    /// case.
    pub(crate) fn connect(&mut self, connection: ConnectionId) {
        self.place_session(connection, Some(Arc::default()));
    }

    /// Replaces or ends a session.
    pub(crate) fn put_session(&mut self, connection: ConnectionId, session: Option<Session>) {
        self.stage_session(connection, session.as_ref());
        self.record(Undo::Session(connection, self.sessions.get(&connection).cloned()));
        self.place_session(connection, session.map(Arc::new));
    }

    /// Adds, replaces or deletes an account.
    pub(crate) fn put_account(&mut self, id: Uuid, account: Option<Account>) {
        self.stage(match &account {
            Some(account) => Change::PutAccount(account.row(id)),
            None => Change::DeleteAccount(id.0),
        });
        self.record(Undo::Account(id, self.accounts.get(id).cloned()));
        self.accounts.set(id, account);
    }

    /// Adds, replaces or deletes a player.
    pub(crate) fn put_player(&mut self, id: u32, player: Option<Player>) {
        self.stage(match &player {
            Some(player) => Change::PutCharacter(player.row(id)),
            None => Change::DeleteCharacter(id),
        });
        self.record(Undo::Player(id, self.players.get(id).cloned()));
        self.players.set(id, player);
    }

    /// Adds a score and assigns its number.
    pub(crate) fn make_score(&mut self, score: ScoreRow) -> Outcome<u32> {
        let id = self.next_score;
        let next = id.checked_add(1).ok_or(NetError::InternalError)?;
        self.set_next_score(next);
        self.put_score(id, Some(ScoreRow { id, ..score }));
        Ok(id)
    }

    /// Adds, replaces or deletes a score.
    pub(crate) fn put_score(&mut self, id: u32, score: Option<ScoreRow>) {
        self.stage(match &score {
            Some(score) => Change::PutScore(score.clone()),
            None => Change::DeleteScore(id),
        });
        self.record(Undo::Score(id, self.scores.get(id).cloned()));
        self.scores.set(id, score);
    }

    /// Sets the System node.
    pub(crate) fn put_system(&mut self, id: u32) {
        self.record(Undo::System(self.system));
        self.system = id;
        self.interests.set_system(id, &self.graph);
    }

    /// Sets the numbers of the next node and the next score.
    pub(crate) fn set_next_numbers(&mut self, node: u32, score: u32) {
        self.set_next_node(node);
        self.set_next_score(score);
    }

    /// Stores a setting.
    pub(crate) fn put_setting(&mut self, name: &str, value: Vec<u8>) {
        self.stage(Change::PutSetting(SettingRow { name: name.to_owned(), value }));
    }

    fn set_next_node(&mut self, next: u32) {
        self.record(Undo::NextNode(self.next_node));
        self.next_node = next;
        self.put_setting(NEXT_NODE, next.to_string().into_bytes());
    }

    fn set_next_score(&mut self, next: u32) {
        self.record(Undo::NextScore(self.next_score));
        self.next_score = next;
        self.put_setting(NEXT_SCORE, next.to_string().into_bytes());
    }

    fn set_entry(&mut self, id: u32, entry: Option<Entry>) {
        self.record(Undo::Node(id, self.graph.get(id).cloned()));
        self.place_entry(id, entry);
    }

    fn place_entry(&mut self, id: u32, entry: Option<Entry>) {
        let old = self.graph.set(id, entry);
        self.interests.node_set(id, old.as_ref(), &self.graph);
    }

    pub(in crate::uru::vault) fn stage(&mut self, change: Change) {
        let key = change.key();
        self.record(Undo::Staged(key.clone(), self.staged.get(&key).cloned()));
        self.staged.insert(key, change);
    }

    fn place_session(&mut self, connection: ConnectionId, session: Option<Arc<Session>>) {
        let old = self.sessions.remove(&connection);
        if let (Some(old), Some(new)) = (&old, &session)
            && (old.player, old.age) == (new.player, new.age)
        {
            self.sessions.insert(connection, Arc::clone(new));
            return;
        }
        if let Some(old) = &old {
            for root in old.roots() {
                self.interests.remove_root(connection, root, &self.graph);
            }
            self.online.remove(&old.player);
        }
        if let Some(new) = session {
            for root in new.roots() {
                self.interests.add_root(connection, root, &self.graph);
            }
            if new.player != 0 {
                self.online.insert(new.player, connection);
            }
            self.sessions.insert(connection, new);
        }
    }
}

/// Changes to data that is not stored.
impl VaultState {
    /// Notifies all sessions that watch a node, in the order of connections.
    pub(crate) fn notify(&mut self, node: u32, notice: Notice) {
        let watchers = self.interests.watchers(node);
        if self.interests.is_common(node) {
            let players = self.sessions.iter().filter(|(_, session)| session.player != 0);
            let all: BTreeSet<_> = players
                .map(|(connection, _)| *connection)
                .chain(watchers.iter().copied())
                .collect();
            self.outbox.extend(all.into_iter().map(|connection| (connection, notice)));
        } else {
            self.outbox.extend(watchers.iter().map(|connection| (*connection, notice)));
        }
    }

    /// Notifies one session.
    pub(crate) fn tell(&mut self, connection: ConnectionId, notice: Notice) {
        self.outbox.push((connection, notice));
    }

    /// Counts nodes that a player has created as part of ages. This is not undone.
    pub(crate) fn count_built(&mut self, player: u32, nodes: usize) {
        *self.built.entry(player).or_default() += nodes;
    }

    /// Logs that a player's name was refused, at most once a second. This is not undone.
    pub(crate) fn log_refusal(&mut self, name: &str, account: Uuid) {
        if self.refusal_logged != self.now {
            self.refusal_logged = self.now;
            let name: String = name.chars().take(64).collect();
            tracing::info!(?name, %account, "refused a player's name; a name {NAME_RULE}");
        }
    }

    /// The counts of failed logins. They are not undone.
    pub(in crate::uru::vault) fn failures_mut(&mut self) -> &mut Failures {
        &mut self.failures
    }

    /// A random UUID (version 4), never zero.
    pub(crate) fn random_uuid(&mut self) -> Uuid {
        let mut bytes: [u8; 16] = self.random_bytes();
        // The first three groups are little-endian: the version is in the last byte of the third.
        bytes[7] = bytes[7] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Uuid(bytes)
    }

    pub(crate) fn random_bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.random)(&mut bytes);
        bytes
    }

    /// The content of a node. Fails with [`NetError::VaultNodeNotFound`], or with [`Stop::Need`] if
    /// it must be loaded.
    pub(crate) fn content(&mut self, id: u32) -> Outcome<Content> {
        if !self.graph.contains(id) {
            return Err(NetError::VaultNodeNotFound.into());
        }
        match self.staged.get(&Key::Node(id)) {
            Some(Change::PutNode(row)) => Ok(Arc::clone(&row.data)),
            _ => self.contents.get(id).ok_or_else(|| Stop::Need(vec![id])),
        }
    }
}

macro_rules! readers {
    ($($field:ident: $type:ty,)*) => {$(
        pub(crate) fn $field(&self) -> &$type {
            &self.$field
        }
    )*};
}

/// Readers.
impl VaultState {
    readers! {
        config: VaultConfig,
        key: ServerKey,
        graph: Graph,
        interests: Interests,
        accounts: Accounts,
        players: Players,
        scores: Scores,
        sessions: BTreeMap<ConnectionId, Arc<Session>>,
        waiting: HashMap<[u8; 32], ConnectionId>,
    }

    /// Sets whether only administrators, developers and testers may log in. A failed batch does not
    /// undo this, because it is not stored.
    pub(crate) fn set_restricted(&mut self, restricted: bool) {
        self.config.restricted = restricted;
    }

    /// The session of a connection. Fails with [`NetError::Disconnected`].
    pub(crate) fn session(&self, connection: ConnectionId) -> Result<&Session, NetError> {
        self.sessions.get(&connection).map(Arc::as_ref).ok_or(NetError::Disconnected)
    }

    /// The session of a connection that has logged in. Fails with
    /// [`NetError::AuthenticationFailed`].
    pub(crate) fn logged_in(&self, connection: ConnectionId) -> Result<&Session, NetError> {
        let session = self.session(connection)?;
        if session.account.is_zero() { Err(NetError::AuthenticationFailed) } else { Ok(session) }
    }

    /// The session of a connection that has chosen a player. Fails with
    /// [`NetError::AuthenticationFailed`].
    pub(crate) fn playing(&self, connection: ConnectionId) -> Result<&Session, NetError> {
        let session = self.logged_in(connection)?;
        if session.player == 0 { Err(NetError::AuthenticationFailed) } else { Ok(session) }
    }

    pub(in crate::uru::vault) fn failures(&self) -> &Failures {
        &self.failures
    }

    /// The connection of a player who is online.
    pub(crate) fn connection_of(&self, player: u32) -> Option<ConnectionId> {
        self.online.get(&player).copied()
    }

    /// The System node.
    pub(crate) fn system(&self) -> u32 {
        self.system
    }

    /// Whether the shard created an instance automatically.
    pub(crate) fn is_own_age(&self, instance: Uuid) -> bool {
        self.own_ages.contains(&instance)
    }

    /// The number of nodes in ages that a player has created since the shard started.
    pub(crate) fn built(&self, player: u32) -> usize {
        self.built.get(&player).copied().unwrap_or_default()
    }

    /// The time, in Unix seconds.
    pub(crate) fn now(&self) -> u32 {
        self.now
    }

    /// The numbers of the next node and the next score.
    pub(crate) fn next_numbers(&self) -> (u32, u32) {
        (self.next_node, self.next_score)
    }

    /// The number of notices in this batch so far.
    pub(crate) fn notices(&self) -> usize {
        self.outbox.len()
    }

    /// Checks that these nodes' contents are in memory. Fails with [`Stop::Need`] for those that
    /// are not.
    pub(crate) fn need(&self, ids: &[u32]) -> Outcome<()> {
        let missing: Vec<_> = ids.iter().copied().filter(|id| self.lacks(*id)).collect();
        if missing.is_empty() { Ok(()) } else { Err(Stop::Need(missing)) }
    }

    /// Whether the content of a node must be loaded.
    pub(crate) fn lacks(&self, id: u32) -> bool {
        self.graph.contains(id)
            && !self.staged.contains_key(&Key::Node(id))
            && !self.contents.has(id)
    }
}
