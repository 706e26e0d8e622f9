//! The state that all connections of a login server share: accounts, characters, CK2s, the queue,
//! and zone keys.
//!
//! Everything is read from memory. Each change is committed to the [`Ledger`] before it is made in
//! memory and before any client can see it.

mod accounts;
mod characters;
mod copy;
mod queue;
mod tickets;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Notify;
use worldwire_ki::crypt::login::Secret;
use worldwire_net::Clock;

pub use accounts::{
    AccountError, AccountSummary, CharacterSummary, Privileges, check_account_name,
};
pub use queue::{Number, Queue};

use super::config::KiConfig;
use super::login::{Account, Answer, Query, QueuePosition};
use super::refusal::Refusal;
use crate::boot_clock::BootInstant;
use crate::failures::Failures;
pub use crate::store::accounts::RealmError;
use crate::store::accounts::{Accounts, folded, stored};
use crate::store::committed::{self, Committed, Indexed as _, NotStored, Writer};
use crate::store::follow::Led;
use crate::store::seal::ServerKey;
use crate::store::{Change, Ledger, StoreError};
use characters::{CharacterEntry, ZoneKey};
pub(super) use copy::RealmCopy;
use tickets::{SavedTickets, Tickets};

/// Orders from other tasks to a connection. Repeated orders are merged.
#[derive(Debug, Default)]
pub(super) struct Wakeup {
    notify: Notify,
    orders: Mutex<Orders>,
}

/// Orders for a connection.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// Disconnect the client, with this message.
    pub(super) leave: Option<String>,
    /// Mark the session as stale.
    pub(super) refresh: bool,
    /// The position in the queue has changed.
    pub(super) moved: bool,
}

impl Wakeup {
    fn order(&self, order: impl FnOnce(&mut Orders)) {
        order(&mut self.orders.lock().unwrap_or_else(PoisonError::into_inner));
        self.notify.notify_one();
    }

    /// Waits for orders. Cancel safe.
    pub(super) async fn woken(&self) {
        self.notify.notified().await;
    }

    /// Takes the orders since the last call.
    pub(super) fn take(&self) -> Orders {
        core::mem::take(&mut *self.orders.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A change in progress; see [`Committed::change`].
pub(super) type Changing<T> = committed::Changing<T, Refusal>;

/// The answer to a connection's query.
#[derive(Debug)]
pub(super) enum Answering {
    /// The answer, taken from memory.
    Now(Answer),
    /// The answer is [`Answer::Done`], once the database has stored the change.
    Later(Changing<()>),
    /// Ask again once the database has confirmed that this process is active.
    Unconfirmed(Confirming, Query),
}

/// Waits for the database to confirm that this process is active. Returns false if the database
/// does not confirm this.
pub(super) struct Confirming(Pin<Box<dyn Future<Output = bool> + Send>>);

impl fmt::Debug for Confirming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Confirming")
    }
}

impl Future for Confirming {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        self.0.as_mut().poll(context)
    }
}

/// A connection's entry in the realm.
#[derive(Debug)]
struct ConnectionEntry {
    wakeup: Arc<Wakeup>,
    user: Option<u64>,
    /// The character in the zone, its account, and the CK2s with which its client can return.
    plays: Option<(u32, u64, SavedTickets)>,
}

/// The state that all connections share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Realm(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Committed<State>,
    key: ServerKey,
    clock: Clock,
    config: KiConfig,
}

/// The data in memory.
#[derive(Debug)]
struct State {
    accounts: Accounts<u64>,
    characters: BTreeMap<u32, CharacterEntry>,
    of_user: HashMap<u64, BTreeSet<u32>>,
    next_character: u32,
    tickets: Tickets,
    failures: Failures,
    queue: Queue,
    connections: HashMap<Number, ConnectionEntry>,
    next_connection: Number,
    /// Unused zone keys, by character.
    zone_keys: HashMap<u32, ZoneKey>,
    /// Characters in the zone, and their connections.
    playing: HashMap<u32, Number>,
}

/// Counts of accounts, characters and players.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Census {
    /// Accounts.
    pub accounts: usize,
    /// Characters.
    pub characters: usize,
    /// Admitted connections.
    #[serde(rename = "players")]
    pub admitted: usize,
    /// Connections in the queue.
    pub waiting: usize,
    /// Characters in the zone.
    pub playing: usize,
}

impl Realm {
    /// Claims a database and reads its accounts and characters.
    pub async fn open(
        ledger: Arc<dyn Ledger>,
        key: ServerKey,
        config: KiConfig,
        clock: Clock,
    ) -> Result<Self, RealmError> {
        let mut state = State::new(config.limits.players);
        let writer = Writer::open(Arc::clone(&ledger)).await?;
        state.apply(&stored::<u64>(&*ledger, SETTINGS).await?);
        if !state.accounts.fit(&key) {
            return Err(RealmError::WrongKey);
        }
        Ok(Self(Arc::new(Shared { state: Committed::new(state, writer), key, clock, config })))
    }

    /// Serves a database that this process has taken over.
    pub(super) fn lead(
        led: Led<RealmCopy>,
        config: KiConfig,
        clock: Clock,
    ) -> Result<Self, RealmError> {
        let Led { store, copy, position, lease, .. } = led;
        let (state, key) = copy.into_parts()?;
        let state = Committed::new(state, Writer::leased(store, position, lease));
        Ok(Self(Arc::new(Shared { state, key, clock, config })))
    }

    /// Whether the last change could not be written to the database, or the lease on a shared
    /// database could not be renewed. Empty changes probe a failing database, so this becomes false
    /// once the database accepts changes again.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.0.state.is_failing()
    }

    /// The time since which another process may have taken over the database; `None` while this is
    /// impossible.
    pub(in crate::ki) fn inactive_since(&self) -> Option<BootInstant> {
        self.0.state.inactive_since()
    }

    /// Why changes are no longer possible, if another process took over the database, or may have:
    /// a [`StoreError::Overtaken`] or [`StoreError::LeaseLost`].
    #[must_use]
    pub fn overtaken(&self) -> Option<Arc<StoreError>> {
        self.0.state.overtaken()
    }

    /// Waits until the database confirms that this process is active. If it does not, returns the
    /// reason.
    pub(super) async fn confirm_active(&self) -> Result<(), String> {
        match self.0.state.is_active_soon().await {
            true => Ok(()),
            false => Err(self.0.state.not_stored().0),
        }
    }

    /// Waits until another process takes over the database; waits forever if none does.
    pub(super) fn until_overtaken(&self) -> impl Future<Output = ()> + Send + use<> {
        self.0.state.until_overtaken()
    }

    /// Counts accounts, characters and players.
    #[must_use]
    pub fn census(&self) -> Census {
        let state = self.state();
        Census {
            accounts: state.accounts.len(),
            characters: state.characters.len(),
            admitted: state.queue.admitted(),
            waiting: state.queue.waiting(),
            playing: state.playing.len(),
        }
    }

    /// Ends all connections to the database, which a standby can then take over.
    pub async fn close(&self) {
        self.0.state.close().await;
    }

    /// Marks sessions as stale: all of them, or those of one account. Returns their number.
    pub fn refresh(&self, name: Option<&str>) -> Result<usize, AccountError> {
        self.order(name, |orders| orders.refresh = true)
    }

    /// Marks the sessions of a client that logged in elsewhere as stale. Returns their number,
    /// which is 0 if the account is unknown here. `account` takes precedence over `user`, because
    /// servers with separate databases number their accounts separately.
    pub fn drop_sessions(&self, user: u64, account: Option<&str>) -> usize {
        let state = self.state();
        let user = match account {
            Some(name) => state.accounts.named(name),
            None => Some(user),
        };
        let connections = state.connections.values();
        let of_user = connections.filter(|entry| user.is_some() && entry.user == user);
        of_user.map(|entry| entry.wakeup.order(|orders| orders.refresh = true)).count()
    }

    /// The name of an account.
    pub(super) fn account_name(&self, user: u64) -> Option<String> {
        self.state().accounts.get(user).map(|entry| entry.name.clone())
    }

    /// Disconnects an account's clients, with a message. Returns their number.
    pub fn kick(&self, name: &str, message: &str) -> Result<usize, AccountError> {
        self.order(Some(name), |orders| orders.leave = Some(message.to_owned()))
    }

    /// Gives an order to an account's connections, or to all connections. Returns their number.
    fn order(
        &self,
        name: Option<&str>,
        order: impl Fn(&mut Orders),
    ) -> Result<usize, AccountError> {
        let state = self.state();
        let user = match name {
            Some(name) => {
                let unknown = || AccountError::Unknown(name.to_owned());
                Some(state.accounts.named(name).ok_or_else(unknown)?)
            }
            None => None,
        };
        let of_user = |entry: &&ConnectionEntry| user.is_none() || entry.user == user;
        let connections = state.connections.values().filter(of_user);
        Ok(connections.map(|entry| entry.wakeup.order(&order)).count())
    }

    /// Registers a new connection.
    pub(super) fn arrive(&self) -> (Number, Arc<Wakeup>) {
        let mut state = self.state();
        let number = state.next_connection;
        state.next_connection += 1;
        let wakeup = Arc::<Wakeup>::default();
        let entry = ConnectionEntry { wakeup: Arc::clone(&wakeup), user: None, plays: None };
        state.connections.insert(number, entry);
        (number, wakeup)
    }

    /// Records the account of a connection.
    pub(super) fn logged_in(&self, who: Number, user: u64) {
        if let Some(entry) = self.state().connections.get_mut(&who) {
            entry.user = Some(user);
        }
    }

    /// Takes a connection out of the queue and forgets its account.
    pub(super) fn logged_out(&self, who: Number) {
        let mut state = self.state();
        state.leave_queue(who);
        if let Some(entry) = state.connections.get_mut(&who) {
            entry.user = None;
        }
    }

    /// Removes a connection.
    pub(super) fn depart(&self, who: Number) {
        let (now, life) = (self.0.clock.now(), self.0.config.ck2_life());
        let mut state = self.state();
        state.leave_queue(who);
        let entry = state.connections.remove(&who);
        if let Some((character, user, kept)) = entry.and_then(|entry| entry.plays) {
            state.playing.remove(&character);
            state.tickets.renew(user, kept, now, life);
        }
    }

    /// A connection's position in the queue.
    pub(super) fn place(&self, who: Number) -> Option<QueuePosition> {
        self.state().queue.place(who)
    }

    /// Stores a CK2 that was issued to an account. If no machine is given, it is valid on any
    /// machine.
    pub(super) fn issue(&self, user: u64, machine: Option<u64>, ck2: Secret) {
        let (now, life) = (self.0.clock.now(), self.0.config.ck2_life());
        self.state().tickets.add(user, machine, ck2, now, life);
    }

    /// Counts a failed login.
    pub(super) fn failed(&self, address: IpAddr, name: &str) {
        let now = self.0.clock.now();
        self.state().failures.add(address, &folded(name), now);
    }

    /// Answers a connection's query, or starts the change that the query asks for.
    pub(super) fn answer(&self, who: Number, address: IpAddr, query: Query) -> Answering {
        if !self.0.state.is_active() {
            let confirming = Confirming(Box::pin(self.0.state.is_active_soon()));
            return Answering::Unconfirmed(confirming, query);
        }
        Answering::Now(match query {
            Query::Account(name) => self.account_answer(address, &name),
            Query::Tickets { user, machine } => {
                let now = self.0.clock.now();
                let state = self.state();
                let found = state.account(user, &self.0);
                Answer::Tickets { found, tickets: state.tickets.of(user, machine, now) }
            }
            Query::Enter => Answer::QueuePosition(self.state().queue.enter(who)),
            Query::Characters(user) => {
                let state = self.state();
                let purchased = state.accounts.get(user).map_or(0, |entry| entry.purchased());
                Answer::Characters { blobs: state.blobs(user), purchased }
            }
            Query::Create { user, character } => {
                return Answering::Later(self.create_character(user, character));
            }
            Query::Delete { user, character } => {
                return Answering::Later(self.delete_character(user, character));
            }
            Query::Select { user, character } => Answer::Selected(self.select(user, character)),
            Query::Attach { key, user, character } => {
                Answer::Attached(self.attach(who, &key, user, character))
            }
        })
    }

    fn account_answer(&self, address: IpAddr, name: &str) -> Answer {
        let mut fresh = [0; 64];
        let fresh = getrandom::fill(&mut fresh).is_ok().then_some(fresh);
        let (now, shared) = (self.0.clock.now(), &*self.0);
        let state = self.state();
        let found = state.accounts.named(name).and_then(|user| state.account(user, shared));
        let pause = match shared.config.login.delay_after_failures {
            true => state.failures.pause(address, &folded(name), now),
            false => Duration::ZERO,
        };
        Answer::Account { found, pause, fresh }
    }

    /// Makes a change to accounts and characters; see [`Committed::change`].
    fn change<T: Send + 'static>(
        &self,
        plan: impl FnOnce(&State) -> Result<(Vec<Change>, T), Refusal> + Send + 'static,
    ) -> Changing<T> {
        self.0.state.change(plan)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.data()
    }
}

impl From<NotStored> for Refusal {
    fn from(_: NotStored) -> Self {
        Self::FailedUpload
    }
}

impl State {
    /// A state without accounts, for a server that admits this many connections.
    fn new(slots: usize) -> Self {
        Self {
            accounts: Accounts::new(),
            characters: BTreeMap::new(),
            of_user: HashMap::new(),
            next_character: 1,
            tickets: Tickets::default(),
            failures: Failures::default(),
            queue: Queue::new(slots),
            connections: HashMap::new(),
            next_connection: 1,
            zone_keys: HashMap::new(),
            playing: HashMap::new(),
        }
    }

    fn leave_queue(&mut self, who: Number) {
        for moved in self.queue.leave(who) {
            if let Some(entry) = self.connections.get(&moved) {
                entry.wakeup.order(|orders| orders.moved = true);
            }
        }
    }

    /// Revokes all CK2s of an account, including those of clients in zones.
    fn revoke(&mut self, user: u64) {
        self.tickets.revoke(user);
        for (_, of, kept) in self.connections.values_mut().filter_map(|entry| entry.plays.as_mut())
        {
            if *of == user {
                *kept = SavedTickets::default();
            }
        }
    }

    /// The parts of an account that a login needs.
    fn account(&self, user: u64, shared: &Shared) -> Option<Account> {
        let entry = self.accounts.get(user)?;
        let most = shared.config.limits.free_players;
        let capped = !entry.is_paying() && most > 0 && {
            // The other free accounts. Each counts once, even if it has several connections.
            let free = self.connections.values().filter_map(|entry| entry.user).filter(|other| {
                *other != user && self.accounts.get(*other).is_some_and(|entry| !entry.is_paying())
            });
            free.collect::<HashSet<_>>().len() >= most
        };
        Some(Account {
            user,
            password: entry.password(user, &shared.key),
            banned: entry.is_banned(),
            paying: entry.is_paying(),
            capped,
        })
    }
}

/// The prefix of this server's setting names.
const SETTINGS: &str = "ki.";
/// How long a zone key is valid.
const ZONE_KEY_LIFE: Duration = Duration::from_secs(120);
