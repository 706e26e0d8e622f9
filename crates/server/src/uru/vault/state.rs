//! All that a shard knows, in memory, and how a batch changes it: without IO, clock or randomness
//! of its own.
//!
//! A request changes the state at once, and the changes are staged for the database. Every step is
//! written down with its inverse, so a request that is refused in the middle, or a batch that the
//! database did not take, is undone. Contents that a request needs and that are not in memory stop
//! it ([`Stop::Need`]): it is undone, they are loaded, and it is run again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::VaultNode;

use super::config::VaultConfig;
use super::content::{Content, Entry, decode, encode, overlay};
use super::contents::Contents;
use super::graph::Graph;
use super::interest::Interests;
use super::{ConnectionId, Notice, Randomness};
use crate::store::seal::ServerKey;
use crate::store::{Change, Changes, Key, NodeRow, RefRow, SettingRow};
use crate::uru::accounts::{Account, Accounts};
use crate::uru::players::{Player, Players};
use crate::uru::scores::{Score, Scores};

/// Why a request has no result yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It was refused.
    Refused(NetError),
    /// The contents of these nodes have to be loaded.
    Need(Vec<u32>),
}

impl From<NetError> for Stop {
    fn from(error: NetError) -> Self {
        Self::Refused(error)
    }
}

/// The outcome of a request.
pub(crate) type Outcome<T> = Result<T, Stop>;

/// Who is at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Session {
    /// The account; zero before the login.
    pub(crate) account: Uuid,
    pub(crate) flags: AccountFlags,
    /// The player, or 0.
    pub(crate) player: u32,
    /// The Age node of the age it is in, or 0.
    pub(crate) age: u32,
    /// The AgeInfo nodes of ages that it made last, and may become an owner of.
    pub(crate) made: Vec<u32>,
}

impl Session {
    pub(crate) fn is_admin(&self) -> bool {
        self.flags.0 & AccountFlags::Admin.0 != 0
    }

    fn roots(&self) -> impl Iterator<Item = u32> {
        [self.player, self.age].into_iter().filter(|root| *root != 0)
    }
}

/// All that a shard knows.
pub(crate) struct State {
    pub(crate) config: VaultConfig,
    pub(crate) key: ServerKey,
    pub(crate) graph: Graph,
    pub(crate) interests: Interests,
    pub(crate) contents: Contents,
    pub(crate) accounts: Accounts,
    pub(crate) players: Players,
    pub(crate) scores: Scores,
    pub(crate) sessions: BTreeMap<ConnectionId, Session>,
    /// Players that are active, and where.
    pub(crate) online: HashMap<u32, ConnectionId>,
    pub(crate) system: u32,
    /// The instances that the shard made by itself. They stay the operator's under any name.
    pub(crate) own_ages: BTreeSet<Uuid>,
    /// How many nodes of ages each player has had made since the shard started. What is undone
    /// counts, too.
    pub(crate) built: HashMap<u32, usize>,
    /// Unix seconds.
    pub(crate) now: u32,
    random: Randomness,
    next_node: u32,
    next_score: u32,
    staged: Changes,
    undo: Vec<Undo>,
    outbox: Vec<(ConnectionId, Notice)>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("nodes", &self.graph.len())
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

/// The inverse of a step.
enum Undo {
    Node(u32, Option<Entry>),
    Link(u32, u32),
    Unlink(u32, u32, u32),
    Staged(Key, Option<Change>),
    Session(ConnectionId, Option<Session>),
    Account(Uuid, Option<Account>),
    Player(u32, Option<Player>),
    Score(u32, Option<Score>),
    NextNode(u32),
    NextScore(u32),
    System(u32),
    OwnAge(Uuid),
}

/// A place to go back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    undo: usize,
    outbox: usize,
}

/// The bytes of a node that a reply can hold.
const MAX_NODE_BYTES: usize = 1_048_576;

/// The setting that holds the number of the next node. Numbers are never used twice, not even
/// that of a node which is gone.
const NEXT_NODE: &str = "uru.next-node";
/// The setting that holds the number of the next score.
const NEXT_SCORE: &str = "uru.next-score";
/// The setting that holds the instances which the shard made by itself, one behind the other.
const OWN_AGES: &str = "uru.own-ages";

impl State {
    /// A shard that knows nothing yet.
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
            system: 0,
            own_ages: BTreeSet::new(),
            built: HashMap::new(),
            now: 0,
            random,
            next_node: config.first_node.max(1),
            next_score: 1,
            staged: Changes::new(),
            undo: Vec::new(),
            outbox: Vec::new(),
            config,
            key,
        }
    }

    /// Sets the clock, Unix seconds.
    pub(crate) fn set_now(&mut self, now: u32) {
        self.now = now;
    }

    /// Runs a request. One that is refused, or stopped, leaves nothing behind.
    ///
    /// # Errors
    /// Those of the request, and [`NetError::InternalError`] after a panic in it.
    pub(crate) fn run<T>(&mut self, request: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        let mark = self.mark();
        // A defect costs the request it happens in, not the shard.
        let outcome = catch_unwind(AssertUnwindSafe(|| request(self)));
        let outcome = outcome.unwrap_or_else(|_| Err(NetError::InternalError.into()));
        if outcome.is_err() {
            self.back_to(mark);
        }
        outcome
    }

    /// What the database has to be told, if anything.
    pub(crate) fn staged(&self) -> &Changes {
        &self.staged
    }

    /// The batch was committed, or changed nothing that lasts: what it did stays. Returns what
    /// there is to say to whom, in order.
    pub(crate) fn settle(&mut self) -> Vec<(ConnectionId, Notice)> {
        self.undo.clear();
        // What was loaded is older than what was committed.
        self.contents.end_batch();
        for change in std::mem::take(&mut self.staged).into_values() {
            match change {
                Change::PutNode(row) => self.contents.keep(row.id, row.data),
                Change::DeleteNode(id) => self.contents.forget(id),
                _ => {}
            }
        }
        std::mem::take(&mut self.outbox)
    }

    /// The batch was not committed: all is as before it.
    pub(crate) fn undo(&mut self) {
        self.back_to(Mark { undo: 0, outbox: 0 });
        self.contents.end_batch();
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { undo: self.undo.len(), outbox: self.outbox.len() }
    }

    /// Undoes everything since a mark.
    pub(crate) fn back_to(&mut self, mark: Mark) {
        while self.undo.len() > mark.undo
            && let Some(step) = self.undo.pop()
        {
            match step {
                Undo::Node(id, entry) => drop(self.graph.set(id, entry)),
                Undo::Link(parent, child) => {
                    self.graph.unlink(parent, child);
                    self.interests.unlinked(parent, child, &self.graph);
                }
                Undo::Unlink(parent, child, owner) => {
                    self.graph.link(parent, child, owner);
                    self.interests.linked(parent, child, &self.graph);
                }
                Undo::Staged(key, Some(change)) => drop(self.staged.insert(key, change)),
                Undo::Staged(key, None) => drop(self.staged.remove(&key)),
                Undo::Session(connection, session) => {
                    self.place_session(connection, session);
                }
                Undo::Account(id, account) => drop(self.accounts.set(id, account)),
                Undo::Player(id, player) => drop(self.players.set(id, player)),
                Undo::Score(id, score) => drop(self.scores.set(id, score)),
                Undo::NextNode(next) => self.next_node = next,
                Undo::NextScore(next) => self.next_score = next,
                Undo::System(system) => {
                    self.system = system;
                    self.interests.set_system(system, &self.graph);
                }
                Undo::OwnAge(instance) => drop(self.own_ages.remove(&instance)),
            }
        }
        self.outbox.truncate(mark.outbox);
    }

    // What follows are the steps: everything that changes the state goes through them.

    fn stage(&mut self, change: Change) {
        let key = change.key();
        let old = self.staged.insert(key.clone(), change);
        self.undo.push(Undo::Staged(key, old));
    }

    /// Makes a node with these fields, apart from number and times, which it gets here.
    pub(crate) fn make_node(&mut self, node: VaultNode<'_>) -> Outcome<u32> {
        let id = self.next_node;
        let next = id.checked_add(1).ok_or(NetError::InternalError)?;
        self.undo.push(Undo::NextNode(id));
        self.next_node = next;
        self.stage_setting(NEXT_NODE, next);
        let mut node = node;
        node.node_id = Some(id);
        node.create_time = Some(self.now);
        node.modify_time = Some(self.now);
        self.put_node(id, &node)?;
        Ok(id)
    }

    /// Replaces the content of a node.
    pub(crate) fn put_node(&mut self, id: u32, node: &VaultNode<'_>) -> Outcome<()> {
        let data = encode(node)?;
        if data.len() > MAX_NODE_BYTES {
            return Err(NetError::InvalidParameter.into());
        }
        let entry = Entry::of(node, &self.graph.keys);
        self.stage(Change::PutNode(NodeRow { id, kind: entry.kind.0, data }));
        let old = self.graph.set(id, Some(entry));
        self.undo.push(Undo::Node(id, old));
        Ok(())
    }

    /// Changes fields of a node and its time, and says so to everyone interested.
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

    /// Removes a node that nothing refers to and that refers to nothing.
    pub(crate) fn drop_node(&mut self, id: u32) {
        self.stage(Change::DeleteNode(id));
        let old = self.graph.set(id, None);
        self.undo.push(Undo::Node(id, old));
    }

    /// Puts a node below another one, once, and says so to everyone interested in that.
    pub(crate) fn link(&mut self, parent: u32, child: u32, owner: u32) {
        if !self.graph.link(parent, child, owner) {
            return;
        }
        self.undo.push(Undo::Link(parent, child));
        self.stage(Change::PutRef(RefRow { parent, child, owner }));
        self.interests.linked(parent, child, &self.graph);
        let notice = Notice::NodeAdded { parent_id: parent, child_id: child, owner_id: owner };
        self.notify(parent, notice);
    }

    /// Takes a node away from below another one, and says so to everyone interested in that.
    pub(crate) fn unlink(&mut self, parent: u32, child: u32) {
        let Some(owner) = self.graph.unlink(parent, child) else { return };
        self.undo.push(Undo::Unlink(parent, child, owner));
        self.stage(Change::DeleteRef { parent, child });
        self.interests.unlinked(parent, child, &self.graph);
        self.notify(parent, Notice::NodeRemoved { parent_id: parent, child_id: child });
    }

    /// A connection is there, whatever becomes of the batch.
    pub(crate) fn connect(&mut self, connection: ConnectionId) {
        self.place_session(connection, Some(Session::default()));
    }

    pub(crate) fn put_session(&mut self, connection: ConnectionId, session: Option<Session>) {
        let old = self.place_session(connection, session);
        self.undo.push(Undo::Session(connection, old));
    }

    fn place_session(
        &mut self,
        connection: ConnectionId,
        session: Option<Session>,
    ) -> Option<Session> {
        let old = self.sessions.remove(&connection);
        if let (Some(old), Some(new)) = (&old, &session)
            && (old.player, old.age) == (new.player, new.age)
        {
            self.sessions.insert(connection, new.clone());
            return Some(old.clone());
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
        old
    }

    pub(crate) fn put_account(&mut self, id: Uuid, account: Option<Account>) {
        self.stage(match &account {
            Some(account) => Change::PutAccount(account.row(id)),
            None => Change::DeleteAccount(id.0),
        });
        let old = self.accounts.set(id, account);
        self.undo.push(Undo::Account(id, old));
    }

    pub(crate) fn put_player(&mut self, id: u32, player: Option<Player>) {
        self.stage(match &player {
            Some(player) => Change::PutCharacter(player.row(id)),
            None => Change::DeleteCharacter(id),
        });
        let old = self.players.set(id, player);
        self.undo.push(Undo::Player(id, old));
    }

    pub(crate) fn make_score(&mut self, score: Score) -> Outcome<u32> {
        let id = self.next_score;
        let next = id.checked_add(1).ok_or(NetError::InternalError)?;
        self.undo.push(Undo::NextScore(id));
        self.next_score = next;
        self.stage_setting(NEXT_SCORE, next);
        self.put_score(id, Some(score));
        Ok(id)
    }

    pub(crate) fn put_score(&mut self, id: u32, score: Option<Score>) {
        self.stage(match &score {
            Some(score) => Change::PutScore(score.row(id)),
            None => Change::DeleteScore(id),
        });
        let old = self.scores.set(id, score);
        self.undo.push(Undo::Score(id, old));
    }

    /// Sets the System node.
    pub(crate) fn put_system(&mut self, id: u32) {
        self.undo.push(Undo::System(self.system));
        self.system = id;
        self.interests.set_system(id, &self.graph);
    }

    /// An instance is one that the shard has made.
    pub(crate) fn put_own_age(&mut self, instance: Uuid) {
        if self.own_ages.insert(instance) {
            self.undo.push(Undo::OwnAge(instance));
            self.put_setting(OWN_AGES, self.own_ages.iter().flat_map(|age| age.0).collect());
        }
    }

    /// Sets the numbers that the next node and the next score get.
    pub(crate) fn set_next_numbers(&mut self, node: u32, score: u32) {
        self.undo.push(Undo::NextNode(self.next_node));
        self.undo.push(Undo::NextScore(self.next_score));
        (self.next_node, self.next_score) = (node, score);
        self.stage_setting(NEXT_NODE, node);
        self.stage_setting(NEXT_SCORE, score);
    }

    fn stage_setting(&mut self, name: &str, value: u32) {
        self.put_setting(name, value.to_string().into_bytes());
    }

    pub(crate) fn put_setting(&mut self, name: &str, value: Vec<u8>) {
        self.stage(Change::PutSetting(SettingRow { name: name.to_owned(), value }));
    }

    /// Ends a connection; contents that this needs have to be loaded first.
    pub(crate) fn run_ending(&mut self, connection: ConnectionId) -> Result<(), Vec<u32>> {
        match self.run(|state| state.disconnect(connection)) {
            Err(Stop::Need(ids)) => Err(ids),
            Err(Stop::Refused(_)) | Ok(()) => Ok(()),
        }
    }

    // What follows changes nothing that lasts.

    /// All connections.
    pub(crate) fn connections(&self) -> Vec<ConnectionId> {
        self.sessions.keys().copied().collect()
    }

    /// How many notices wait for the batch.
    pub(crate) fn notices(&self) -> usize {
        self.outbox.len()
    }

    /// The numbers that the next node and the next score get.
    pub(crate) fn next_numbers(&self) -> (u32, u32) {
        (self.next_node, self.next_score)
    }

    /// The content of a node, if it is in memory; or else it has to be loaded.
    ///
    /// # Errors
    /// [`NetError::VaultNodeNotFound`], or [`Stop::Need`].
    pub(crate) fn content(&mut self, id: u32) -> Outcome<Content> {
        if !self.graph.contains(id) {
            return Err(NetError::VaultNodeNotFound.into());
        }
        match self.staged.get(&Key::Node(id)) {
            Some(Change::PutNode(row)) => Ok(Arc::clone(&row.data)),
            _ => self.contents.get(id).ok_or_else(|| Stop::Need(vec![id])),
        }
    }

    /// Makes sure that the contents of nodes are in memory.
    ///
    /// # Errors
    /// [`Stop::Need`] with all that are not.
    pub(crate) fn need(&self, ids: &[u32]) -> Outcome<()> {
        let missing: Vec<_> = ids.iter().copied().filter(|id| self.lacks(*id)).collect();
        if missing.is_empty() { Ok(()) } else { Err(Stop::Need(missing)) }
    }

    /// Whether the content of a node has to be loaded.
    pub(crate) fn lacks(&self, id: u32) -> bool {
        self.graph.contains(id)
            && !self.staged.contains_key(&Key::Node(id))
            && !self.contents.has(id)
    }

    /// Says something to everyone interested in a node, in the order of connections.
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

    /// Says something to one connection.
    pub(crate) fn tell(&mut self, connection: ConnectionId, notice: Notice) {
        self.outbox.push((connection, notice));
    }

    /// The session of a connection.
    ///
    /// # Errors
    /// [`NetError::Disconnected`].
    pub(crate) fn session(&self, connection: ConnectionId) -> Result<&Session, NetError> {
        self.sessions.get(&connection).ok_or(NetError::Disconnected)
    }

    /// The session of a connection that has logged in.
    ///
    /// # Errors
    /// [`NetError::AuthenticationFailed`].
    pub(crate) fn logged_in(&self, connection: ConnectionId) -> Result<&Session, NetError> {
        let session = self.session(connection)?;
        if session.account.is_zero() { Err(NetError::AuthenticationFailed) } else { Ok(session) }
    }

    /// The session of a connection that has a player.
    ///
    /// # Errors
    /// [`NetError::AuthenticationFailed`].
    pub(crate) fn playing(&self, connection: ConnectionId) -> Result<&Session, NetError> {
        let session = self.logged_in(connection)?;
        if session.player == 0 { Err(NetError::AuthenticationFailed) } else { Ok(session) }
    }

    /// A UUID of random bits (version 4), never zero.
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

    /// Takes in what the database holds, before anything else.
    pub(crate) fn take_settings(&mut self, settings: &[SettingRow]) {
        for row in settings {
            let number = std::str::from_utf8(&row.value).ok().and_then(|text| text.parse().ok());
            match (row.name.as_str(), number) {
                (NEXT_NODE, Some(next)) => self.next_node = self.next_node.max(next),
                (NEXT_SCORE, Some(next)) => self.next_score = self.next_score.max(next),
                (OWN_AGES, _) => {
                    self.own_ages = row.value.as_chunks().0.iter().copied().map(Uuid).collect();
                }
                _ => {}
            }
        }
    }

    /// Takes in a score that the database holds.
    pub(crate) fn take_score(&mut self, id: u32, score: Score) {
        self.next_score = self.next_score.max(id.saturating_add(1));
        self.scores.set(id, Some(score));
    }

    /// Takes in a node that the database holds.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn take_node(&mut self, row: &NodeRow) -> Result<(), String> {
        let damaged = |what: &str| Err(format!("node {}: {what}", row.id));
        let Ok(node) = decode(&row.data) else { return damaged("wanted a vault node, found else") };
        if node.node_id != Some(row.id) || node.node_type.map(|kind| kind.0) != Some(row.kind) {
            return damaged("its number or type is not that of its row");
        }
        self.next_node = self.next_node.max(row.id.saturating_add(1));
        self.graph.set(row.id, Some(Entry::of(&node, &self.graph.keys)));
        Ok(())
    }
}
