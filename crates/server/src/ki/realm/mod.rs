//! What all connections of a login server share: accounts, characters, CK2s, the queue, keys of
//! zones.
//!
//! Everything is read from memory. A change is committed to the [`Ledger`]
//! before it is made here, and before anybody hears of it.

mod accounts;
mod characters;
mod passes;
mod queue;
mod slow;
mod write;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use worldwire_ki::crypt::login::Secret;
use worldwire_net::Clock;

pub use accounts::{AccountSummary, CharacterSummary, Privileges, check_account_name};
pub use queue::{Number, Place, Queue};

use super::config::KiConfig;
use super::login::{Account, Answer, Query};
use crate::store::seal::ServerKey;
use crate::store::{Ledger, StoreError};
use accounts::AccountEntry;
use characters::{CharacterEntry, ZoneKey};
use passes::{Kept, Passes};
use slow::Failures;
use write::Writer;

/// Why the accounts of a server cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RealmError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Passwords were sealed under another key.
    #[error("the passwords in the database were sealed under another key than that in server.key")]
    WrongKey,
    /// Something in the database is not of this kind of server.
    #[error("the database is another server's: {0}")]
    Foreign(String),
}

/// What a connection is told by others. Whatever happens twice before it is heard is told once.
#[derive(Debug, Default)]
pub(super) struct Bell {
    notify: Notify,
    orders: Mutex<Orders>,
}

/// What others want of a connection.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// End, with these words.
    pub(super) leave: Option<String>,
    /// Make the session stale.
    pub(super) refresh: bool,
    /// Look at the place in the queue.
    pub(super) moved: bool,
}

impl Bell {
    fn ring(&self, order: impl FnOnce(&mut Orders)) {
        order(&mut self.orders.lock().unwrap_or_else(PoisonError::into_inner));
        self.notify.notify_one();
    }

    /// Waits for orders. Nothing is lost when the future is dropped.
    pub(super) async fn rung(&self) {
        self.notify.notified().await;
    }

    /// The orders since the last time.
    pub(super) fn take(&self) -> Orders {
        core::mem::take(&mut *self.orders.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A connection, as the realm knows it.
#[derive(Debug)]
struct Guest {
    bell: Arc<Bell>,
    user: Option<u64>,
    /// The character that it plays in the zone, whose that is, and the CK2s for the way back.
    plays: Option<(u32, u64, Kept)>,
}

/// What all connections share. Clones are the same realm.
#[derive(Clone, Debug)]
pub struct Realm(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    writer: tokio::sync::Mutex<Writer>,
    key: ServerKey,
    clock: Clock,
    config: KiConfig,
    is_failing: AtomicBool,
    overtaken: watch::Sender<Option<Arc<StoreError>>>,
}

/// What is in memory.
#[derive(Debug)]
struct State {
    accounts: BTreeMap<u64, AccountEntry>,
    by_name: HashMap<String, u64>,
    characters: BTreeMap<u32, CharacterEntry>,
    of_user: HashMap<u64, BTreeSet<u32>>,
    next_user: u64,
    next_character: u32,
    passes: Passes,
    failures: Failures,
    /// How many answers wait, by the address that they go to.
    pausing: HashMap<IpAddr, usize>,
    queue: Queue,
    guests: HashMap<Number, Guest>,
    next_guest: Number,
    /// Keys of zones that were not used yet, by character.
    zone_keys: HashMap<u32, ZoneKey>,
    /// Characters that are in the zone, and who plays them.
    playing: HashMap<u32, Number>,
}

/// How many answers to one address may wait because of failed logins. There is no bound for all
/// together: it would let anybody lock others out.
const MAX_PAUSING: usize = 16;

/// Figures of a realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Census {
    /// Accounts.
    pub accounts: usize,
    /// Characters.
    pub characters: usize,
    /// Connections that are let in.
    pub seated: usize,
    /// Connections that wait.
    pub waiting: usize,
    /// Characters in the zone.
    pub playing: usize,
}

impl Realm {
    /// Reads accounts and characters of a database.
    ///
    /// # Errors
    /// As [`RealmError`] says.
    pub async fn open(
        ledger: Arc<dyn Ledger>,
        key: ServerKey,
        config: KiConfig,
        clock: Clock,
    ) -> Result<Self, RealmError> {
        let seats = config.limits.players;
        let mut state = State {
            accounts: BTreeMap::new(),
            by_name: HashMap::new(),
            characters: BTreeMap::new(),
            of_user: HashMap::new(),
            next_user: 1,
            next_character: 1,
            passes: Passes::default(),
            failures: Failures::default(),
            pausing: HashMap::new(),
            queue: Queue::new(seats),
            guests: HashMap::new(),
            next_guest: 1,
            zone_keys: HashMap::new(),
            playing: HashMap::new(),
        };
        let writer = Writer::open(Arc::clone(&ledger)).await?;
        state.load(&*ledger).await?;
        if !state.fits(&key) {
            return Err(RealmError::WrongKey);
        }
        Ok(Self(Arc::new(Shared {
            state: Mutex::new(state),
            writer: tokio::sync::Mutex::new(writer),
            key,
            clock,
            config,
            is_failing: AtomicBool::new(false),
            overtaken: watch::Sender::new(None),
        })))
    }

    /// Whether the database took no change the last time.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.0.is_failing.load(Ordering::Relaxed)
    }

    /// Why no change is possible any more, if another process took over the database: a
    /// [`StoreError::Overtaken`].
    #[must_use]
    pub fn overtaken(&self) -> Option<Arc<StoreError>> {
        self.0.overtaken.borrow().clone()
    }

    /// Waits until another process takes over the database; forever, if none does.
    pub(super) fn until_overtaken(&self) -> impl Future<Output = ()> + Send + use<> {
        crate::ending::until_overtaken(self.0.overtaken.subscribe())
    }

    /// Figures.
    #[must_use]
    pub fn census(&self) -> Census {
        let state = self.state();
        Census {
            accounts: state.accounts.len(),
            characters: state.characters.len(),
            seated: state.queue.seated(),
            waiting: state.queue.waiting(),
            playing: state.playing.len(),
        }
    }

    /// Ends all connections to the database.
    pub async fn close(&self) {
        let writer = self.0.writer.lock().await;
        if let Err(error) = writer.close().await {
            tracing::warn!(%error, "the database was not closed");
        }
    }

    /// Makes sessions stale: all of them, or those of an account. Returns how many.
    ///
    /// # Errors
    /// When there is no such account.
    pub fn refresh(&self, name: Option<&str>) -> Result<usize, String> {
        self.ring(name, |orders| orders.refresh = true)
    }

    /// Throws out an account's connections. Returns how many there were.
    ///
    /// # Errors
    /// When there is no such account.
    pub fn kick(&self, name: &str, words: &str) -> Result<usize, String> {
        self.ring(Some(name), |orders| orders.leave = Some(words.to_owned()))
    }

    fn ring(&self, name: Option<&str>, order: impl Fn(&mut Orders)) -> Result<usize, String> {
        let state = self.state();
        let user = match name {
            Some(name) => Some(state.user_named(name).ok_or_else(|| no_account(name))?),
            None => None,
        };
        let of_user = |guest: &&Guest| user.is_none() || guest.user == user;
        let guests = state.guests.values().filter(of_user);
        Ok(guests.map(|guest| guest.bell.ring(&order)).count())
    }

    /// A connection begins.
    pub(super) fn arrive(&self) -> (Number, Arc<Bell>) {
        let mut state = self.state();
        let number = state.next_guest;
        state.next_guest += 1;
        let bell = Arc::<Bell>::default();
        let guest = Guest { bell: Arc::clone(&bell), user: None, plays: None };
        state.guests.insert(number, guest);
        (number, bell)
    }

    /// A connection has logged in.
    pub(super) fn logged_in(&self, who: Number, user: u64) {
        if let Some(guest) = self.state().guests.get_mut(&who) {
            guest.user = Some(user);
        }
    }

    /// A connection's account gives up its place.
    pub(super) fn logged_out(&self, who: Number) {
        let mut state = self.state();
        state.leave_queue(who);
        if let Some(guest) = state.guests.get_mut(&who) {
            guest.user = None;
        }
    }

    /// A connection is over.
    pub(super) fn depart(&self, who: Number) {
        let (now, life) = (self.0.clock.now(), self.0.config.ck2_life());
        let mut state = self.state();
        state.leave_queue(who);
        let guest = state.guests.remove(&who);
        if let Some((character, user, kept)) = guest.and_then(|guest| guest.plays) {
            state.playing.remove(&character);
            state.passes.renew(user, kept, now, life);
        }
    }

    /// Where a connection stands in the queue.
    pub(super) fn place(&self, who: Number) -> Option<Place> {
        self.state().queue.place(who)
    }

    /// A CK2 was given to an account; without a machine it is good on any.
    pub(super) fn issue(&self, user: u64, machine: Option<u64>, ck2: Secret) {
        let (now, life) = (self.0.clock.now(), self.0.config.ck2_life());
        self.state().passes.add(user, machine, ck2, now, life);
    }

    /// A login from this address failed.
    pub(super) fn failed(&self, address: IpAddr, name: &str) {
        let now = self.0.clock.now();
        self.state().failures.add(address, &folded(name), now);
    }

    /// The wait of an answer begins; its end is when the token is dropped.
    pub(super) fn pausing(&self, address: IpAddr) -> Pausing {
        *self.state().pausing.entry(address).or_default() += 1;
        Pausing { realm: self.clone(), address }
    }

    /// Answers a query of a connection.
    pub(super) async fn answer(&self, who: Number, address: IpAddr, query: Query) -> Answer {
        match query {
            Query::Account(name) => self.account_answer(address, &name),
            Query::Passes { user, machine } => {
                let now = self.0.clock.now();
                let state = self.state();
                let found = state.account(user, &self.0);
                Answer::Passes { found, passes: state.passes.of(user, machine, now) }
            }
            Query::Enter => Answer::Place(self.state().queue.enter(who)),
            Query::Characters(user) => {
                let state = self.state();
                let purchased = state.accounts.get(&user).map_or(0, AccountEntry::purchased);
                Answer::Characters { blobs: state.blobs(user), purchased }
            }
            Query::Create { user, character } => {
                Answer::Done(self.create_character(user, character).await)
            }
            Query::Delete { user, character } => {
                Answer::Done(self.delete_character(user, character).await)
            }
            Query::Select { user, character } => Answer::Selected(self.select(user, character)),
            Query::Attach { key, user, character } => {
                Answer::Attached(self.attach(who, &key, user, character))
            }
        }
    }

    fn account_answer(&self, address: IpAddr, name: &str) -> Answer {
        let mut fresh = [0; 64];
        // Without random numbers nobody logs in.
        let is_random = getrandom::fill(&mut fresh).is_ok();
        let (now, shared) = (self.0.clock.now(), &*self.0);
        let state = self.state();
        let found = state.user_named(name).and_then(|user| state.account(user, shared));
        let pause = state.failures.pause(address, &folded(name), now);
        let too_many = state.pausing.get(&address).is_some_and(|count| *count >= MAX_PAUSING);
        let pause = Some(pause).filter(|pause| is_random && (pause.is_zero() || !too_many));
        Answer::Account { found, pause, fresh }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that waits.
#[derive(Debug)]
pub(super) struct Pausing {
    realm: Realm,
    address: IpAddr,
}

impl Drop for Pausing {
    fn drop(&mut self) {
        let mut state = self.realm.state();
        if let Some(count) = state.pausing.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                state.pausing.remove(&self.address);
            }
        }
    }
}

impl State {
    fn leave_queue(&mut self, who: Number) {
        for moved in self.queue.leave(who) {
            if let Some(guest) = self.guests.get(&moved) {
                guest.bell.ring(|orders| orders.moved = true);
            }
        }
    }

    /// Whoever had a CK2 of an account has none, also those in zones.
    fn revoke(&mut self, user: u64) {
        self.passes.revoke(user);
        for (_, of, kept) in self.guests.values_mut().filter_map(|guest| guest.plays.as_mut()) {
            if *of == user {
                *kept = Kept::default();
            }
        }
    }

    fn user_named(&self, name: &str) -> Option<u64> {
        self.by_name.get(&folded(name)).copied()
    }

    /// An account, as a login needs it.
    fn account(&self, user: u64, shared: &Shared) -> Option<Account> {
        let entry = self.accounts.get(&user)?;
        let most = shared.config.limits.free_players;
        let capped = !entry.is_paying() && most > 0 && {
            // Other players, each once: a player may have several connections.
            let free = self.guests.values().filter_map(|guest| guest.user).filter(|other| {
                *other != user && self.accounts.get(other).is_some_and(|entry| !entry.is_paying())
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

/// The form of a name under which it is found.
fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn no_account(name: &str) -> String {
    format!("account {name:?}: does not exist")
}

/// How long a key for a zone is good.
const ZONE_KEY_LIFE: Duration = Duration::from_secs(120);
