//! The state that all connections of a server share: accounts, characters, reserved names, and the
//! sessions of clients.
//!
//! Everything is read from memory. Each change is committed to the [`Ledger`] before it is made in
//! memory, and therefore before any client can see it.

mod accounts;
mod characters;
mod password;
mod sessions;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use worldwire_mxo::login::{
    AuthAccount, AuthQuery, Character, CharacterStatus, LoginStatus, World, WorldLoad, WorldStatus,
    WorldType,
};
use worldwire_mxo::types::{Padded, Str};
use worldwire_net::Clock;

pub use accounts::{AccountError, AccountSummary, CharacterSummary, check_account_name};
pub(crate) use characters::Place;
pub(crate) use sessions::{Entrant, GameSession, HelloRefusal, MarginSession, Notice};

use super::config::MxoConfig;
use crate::failures::Failures;
pub use crate::store::accounts::RealmError;
use crate::store::accounts::{AccountEntry, Accounts, folded, stored};
use crate::store::committed::{Committed, Indexed as _, Writer};
use crate::store::seal::ServerKey;
use crate::store::{Ledger, StoreError};
use characters::CharacterEntry;
use password::{Hasher, PasswordHash};
use sessions::MarginEntry;

/// The number of a margin connection.
pub(crate) type Number = u64;

/// The state that all connections share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Realm(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Committed<State>,
    key: ServerKey,
    clock: Clock,
    config: MxoConfig,
    hasher: Hasher,
    /// The weather.
    sky: watch::Sender<String>,
}

/// The data in memory.
#[derive(Debug)]
struct State {
    accounts: Accounts<u32>,
    characters: BTreeMap<u32, CharacterEntry>,
    by_handle: HashMap<String, u32>,
    of_user: HashMap<u32, BTreeSet<u32>>,
    next_character: u32,
    // The fields below are not stored.
    failures: Failures,
    margins: HashMap<Number, MarginEntry>,
    next_connection: Number,
    /// Names that connections have reserved, with the IDs of the future characters.
    claims: HashMap<String, (Number, u32)>,
    /// Characters that clients have loaded.
    loaded: HashMap<u32, Arc<GameSession>>,
    /// Characters whose deletion is being committed.
    deleting: HashSet<u32>,
}

/// Counts of accounts, characters and sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Census {
    /// Accounts.
    pub accounts: usize,
    /// Characters.
    pub characters: usize,
    /// Connections to the margin server that have presented a certificate.
    pub sessions: usize,
    /// Characters that clients have loaded.
    pub loaded: usize,
}

/// The reply to a login.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) answer: Result<AuthAccount, LoginStatus>,
    /// How long to wait before sending the reply.
    pub(crate) pause: Duration,
}

impl Realm {
    /// Claims a database and reads its accounts and characters.
    pub async fn open(
        ledger: Arc<dyn Ledger>,
        key: ServerKey,
        config: MxoConfig,
        clock: Clock,
    ) -> Result<Self, RealmError> {
        let mut state = State {
            accounts: Accounts::new(),
            characters: BTreeMap::new(),
            by_handle: HashMap::new(),
            of_user: HashMap::new(),
            next_character: 1,
            failures: Failures::default(),
            margins: HashMap::new(),
            next_connection: 1,
            claims: HashMap::new(),
            loaded: HashMap::new(),
            deleting: HashSet::new(),
        };
        let writer = Writer::open(Arc::clone(&ledger)).await?;
        state.apply(&stored::<u32>(&*ledger, "mxo.").await?);
        if !state.accounts.fit(&key) {
            return Err(RealmError::WrongKey);
        }
        let state = Committed::new(state, writer);
        let sky = watch::Sender::new(config.world.sky.clone());
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        let lifetime = Duration::from_secs(config.login.remember_seconds.into());
        let hasher = Hasher::new(secret, lifetime);
        Ok(Self(Arc::new(Shared { state, key, clock, config, hasher, sky })))
    }

    /// Whether the last change could not be written to the database. Empty changes probe a failing
    /// database, so this becomes false once the database accepts changes again.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.0.state.is_failing()
    }

    /// Why changes are no longer possible, if another process took over the database: a
    /// [`StoreError::Overtaken`].
    #[must_use]
    pub fn overtaken(&self) -> Option<Arc<StoreError>> {
        self.0.state.overtaken()
    }

    /// Waits until another process takes over the database; waits forever if none does.
    pub(super) fn until_overtaken(&self) -> impl Future<Output = ()> + Send + use<> {
        self.0.state.until_overtaken()
    }

    /// Counts accounts, characters and sessions.
    #[must_use]
    pub fn census(&self) -> Census {
        let state = self.state();
        Census {
            accounts: state.accounts.len(),
            characters: state.characters.len(),
            sessions: state.margins.values().filter(|entry| entry.user.is_some()).count(),
            loaded: state.loaded.len(),
        }
    }

    /// Ends all connections to the database.
    pub async fn close(&self) {
        self.0.state.close().await;
    }

    /// A receiver for the current weather and its changes.
    pub(super) fn sky(&self) -> watch::Receiver<String> {
        self.0.sky.subscribe()
    }

    /// The configuration.
    pub(super) fn config(&self) -> &MxoConfig {
        &self.0.config
    }

    /// Checks a name and password. Unknown names take as long to check as known ones.
    pub(crate) async fn check(
        &self,
        address: IpAddr,
        query: &AuthQuery,
        client_version: Option<u32>,
    ) -> Verdict {
        let (now, name) = (self.0.clock.now(), folded(&query.name));
        let (found, pause) = {
            let state = self.state();
            let user = state.accounts.named(&name);
            let found = user.and_then(|user| {
                let entry = state.accounts.get(user)?;
                Some((user, entry.clone()))
            });
            let pause = match self.0.config.login.delay_after_failures {
                true => state.failures.pause(address, &name, now),
                false => Duration::ZERO,
            };
            (found, pause)
        };
        let credentials =
            found.as_ref().and_then(|(user, entry)| entry.credentials(*user, &self.0.key));
        let hash = credentials.as_ref().map_or(PasswordHash::NONE, |known| known.hash);
        let is_right = self.0.hasher.check(&query.password, hash).await;
        let (Some((user, entry)), Some(credentials), true) = (found, credentials, is_right) else {
            self.state().failures.add(address, &name, now);
            return Verdict { answer: Err(LoginStatus::WrongPassword), pause };
        };
        let refusal = self.refusal(user, &entry);
        let answer = match refusal {
            Some(status) => Err(status),
            None => Ok(AuthAccount {
                user_id: user,
                name: entry.name,
                key: credentials.key,
                created: entry.created,
                characters: self.characters_of(user),
                worlds: vec![self.world(client_version)],
            }),
        };
        Verdict { answer, pause }
    }

    /// Why an account whose password is correct cannot log in.
    fn refusal(&self, user: u32, entry: &AccountEntry) -> Option<LoginStatus> {
        let config = &self.0.config;
        if entry.is_banned() {
            return Some(LoginStatus::Banned);
        }
        if entry.is_inactive() || !config.open {
            return Some(LoginStatus::Inactive);
        }
        if self.overtaken().is_some() {
            return Some(LoginStatus::NoDatabase);
        }
        let state = self.state();
        let sessions = state.margins.values().filter(|entry| entry.user == Some(user)).count();
        (sessions >= config.limits.sessions_per_account).then_some(LoginStatus::AccountInUse)
    }

    fn characters_of(&self, user: u32) -> Vec<Character<'static>> {
        let state = self.state();
        let character = |(id, entry): (u32, &CharacterEntry)| {
            Some(Character {
                reserved: 0,
                id: id.into(),
                status: CharacterStatus::Ready,
                world_id: entry.record.world,
                handle: Str::new(&entry.handle).ok()?,
            })
        };
        state.entries(user).filter_map(character).collect()
    }

    /// The entry for the world, with the client's own version, because clients of any version may
    /// enter.
    fn world(&self, client_version: Option<u32>) -> World {
        let config = &self.0.config;
        let loaded = self.state().loaded.len();
        let load = match loaded.saturating_mul(3) / config.limits.players.max(1) {
            0 => WorldLoad::Low,
            1 => WorldLoad::Medium,
            _ => WorldLoad::High,
        };
        World {
            reserved: 0,
            id: config.world_id,
            name: Padded::new(&config.name).unwrap_or_default(),
            status: WorldStatus::Open,
            type_: WorldType::NoPvp,
            client_version: client_version.unwrap_or(CLIENT_VERSION),
            unknown1: 1,
            load,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.data()
    }
}

/// The version for clients that did not state one.
const CLIENT_VERSION: u32 = worldwire_mxo::login::AuthClientConfig::CLIENT_VERSION;
