//! The state that all connections of a process share, and how the process lets players into ages.

use std::future::pending;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use worldwire_uru::connection::{BuildPolicy, Encryption, ServerConfig};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::types::{NetError, Uuid};

use super::auth::{Reconnections, SecureFiles};
use super::cluster::{ENTER_AGE, EnterAge, EnteredAge, NotExpected};
use super::config::{Settings, ShardConfig};
use super::figures::Figures;
use super::file::Library;
use super::game::{Games, Presence};
use super::hosts::Hosts;
use super::own_process::OwnProcess;
use super::vault::age_states::AgeRecord;
use super::vault::placements::PlacedAge;
use super::vault::{AgeFound, Connection, Vault};

/// How many times to look for a node for an age if placements end in the meantime.
const MAX_PLACEMENTS: usize = 3;

/// The place where a player was let into an age.
enum Entered {
    Here(AgeFound),
    Elsewhere(EnteredAge),
}

/// The state that all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    settings: Settings,
    server: Mutex<Arc<ServerConfig>>,
    pub(super) keys: KeyRing,
    pub(super) library: Arc<Library>,
    pub(super) secure: Arc<SecureFiles>,
    pub(super) vault: Vault,
    pub(super) hosts: Hosts,
    pub(super) games: Games,
    pub(super) reconnections: Arc<Reconnections>,
    pub(super) figures: Arc<Figures>,
}

impl Shared {
    pub(super) fn new(
        (settings, server, library, secure): (Settings, ServerConfig, Library, SecureFiles),
        vault: Vault,
        games: Games,
    ) -> Arc<Self> {
        let config = settings.current();
        Arc::new(Self {
            games,
            hosts: Hosts::new(config.host()),
            reconnections: Reconnections::new(settings.clone()).into(),
            vault,
            secure: secure.into(),
            settings,
            keys: server.keys.clone(),
            server: Mutex::new(server.into()),
            library: library.into(),
            figures: Arc::default(),
        })
    }

    /// The settings in force, which operators may change.
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The current settings.
    pub(super) fn config(&self) -> Arc<ShardConfig> {
        self.settings.current()
    }

    /// The rules for connections that open now.
    pub(super) fn server(&self) -> Arc<ServerConfig> {
        let (encryption, builds) = server_rules(&self.config());
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if (server.encryption, server.builds) != (encryption, builds) {
            *server = ServerConfig { encryption, builds, ..(**server).clone() }.into();
        }
        Arc::clone(&server)
    }

    /// Whether an operator is draining this process of clients.
    pub(super) fn is_draining(&self) -> bool {
        self.vault.link().is_some_and(|link| *link.draining().borrow())
    }

    /// Waits until this process [is draining](Self::is_draining). In the process with the vault,
    /// waits forever.
    pub(super) async fn until_draining(&self) {
        let Some(link) = self.vault.link() else { return pending().await };
        // The sender is gone only when the process ends.
        if link.draining().wait_for(|is_draining| *is_draining).await.is_err() {
            pending().await
        }
    }

    /// This process, described for operators.
    pub(super) fn own_process(&self) -> OwnProcess {
        OwnProcess::new(&self.config(), Arc::clone(&self.figures), self.games.clone())
    }

    /// The presence of an auth session, which lets its player be in ages.
    pub(super) fn presence(&self, session: u64) -> Presence {
        match self.vault.link() {
            Some(link) => Presence::elsewhere(link.clone(), session),
            None => self.games.presence(session),
        }
    }

    /// Lets a session's player into an age and finds the age's server.
    pub(super) async fn enter_age(
        &self,
        session: &Connection,
        wanted: EnterAge,
    ) -> Result<EnteredAge, NetError> {
        if self.vault.link().is_some() {
            return session.ask_leader(ENTER_AGE, &wanted).await;
        }
        let EnterAge { filename, instance, address, needs_ipv4 } = wanted;
        let ipv4 = match needs_ipv4 {
            true => self.hosts.ipv4().await.ok_or(NetError::NameLookupFailed)?.octets(),
            false => [0; 4],
        };
        let auth = (session.number(), address.to_canonical());
        let found = match self.games.nodes().is_leading() {
            true => {
                match self.enter_placed_age(session, &filename, instance, auth, needs_ipv4).await? {
                    Entered::Elsewhere(entered) => return Ok(entered),
                    Entered::Here(found) => found,
                }
            }
            false => session.request_age(filename.clone(), instance).await?,
        };
        let number = self.hosts.number(found.age, instance);
        self.games.announce(auth, number, &filename, found).await?;
        let host = self.config().public_address.clone();
        Ok(EnteredAge { number, age: found.age, ipv4, host })
    }

    /// Lets a session's player into an age that may run on a node.
    async fn enter_placed_age(
        &self,
        session: &Connection,
        filename: &str,
        instance: Uuid,
        auth: (u64, IpAddr),
        needs_ipv4: bool,
    ) -> Result<Entered, NetError> {
        let nodes = self.games.nodes();
        let mut over = None;
        for _ in 0..MAX_PLACEMENTS {
            let reservation = nodes.reserve().await;
            let candidate = reservation.as_ref().map(|reserved| reserved.candidate.clone());
            let games = self.games.clone();
            let is_here = move |found: AgeFound, will: bool| {
                let record = AgeRecord { age: found.age, instance: found.instance };
                games.nodes().is_here(found, games.is_here(record), will)
            };
            let wanted =
                session.request_placed_age(filename.to_owned(), instance, over, candidate, is_here);
            let PlacedAge { found, identity, placed } = wanted.await?;
            let (Some(identity), Some((number, placement))) = (identity, placed) else {
                return Ok(Entered::Here(found));
            };
            match nodes.expect(number, &placement, found.age, &identity, auth).await {
                Ok(host) => {
                    let ipv4 = match needs_ipv4 {
                        true => nodes.ipv4(&host).await?.octets(),
                        false => [0; 4],
                    };
                    let age = found.age;
                    return Ok(Entered::Elsewhere(EnteredAge { number, age, ipv4, host }));
                }
                Err(NotExpected::Over) => over = Some((number, placement.fence)),
                Err(NotExpected::NoAnswer) => {
                    let node = placement.node;
                    tracing::warn!(
                        node,
                        filename,
                        "a node did not confirm that it expects a player"
                    );
                    return Err(NetError::InternalError);
                }
            }
        }
        Err(NetError::InternalError)
    }
}

/// The clients that a shard admits.
pub(super) fn server_rules(config: &ShardConfig) -> (Encryption, BuildPolicy) {
    let builds = match config.any_build {
        true => BuildPolicy::Any,
        false => BuildPolicy::Exact(config.build),
    };
    (config.encryption(), builds)
}
