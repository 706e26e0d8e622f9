//! A shard's running ages, the players that are expected there, and the players that are there.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use worldwire_uru::age::{Config, DropKind, Packet, Player};
use worldwire_uru::types::{NetError, Uuid};

use super::files::AgeFiles;
use super::host::{Arrival, Command, Host};
use super::outbox::Outbox;
use super::pace::Effort;
use super::records::{self, Record, Traveller};
use crate::uru::vault::{AgeFound, Vault};

/// How long a player may take to join an age after requesting it.
const FRESH: Duration = Duration::from_secs(60);
/// How often to retry a join that meets an ending age.
const MAX_TRIES: usize = 3;
/// The maximum number of queued commands for an age. Beyond that, connections wait.
const MAX_COMMANDS: usize = 256;
/// How long ages may take to write their states when the shard stops.
const PATIENCE: Duration = Duration::from_secs(20);

/// A shard's ages. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::uru) struct Games(Arc<Inner>);

/// An auth session's presence in ages. Dropping it removes the session's player from all ages.
#[derive(Debug)]
pub(in crate::uru) struct Presence {
    games: Games,
    auth: u64,
}

impl Presence {
    /// Removes the player from all ages, because the session has another one now, or none.
    pub(in crate::uru) fn changed(&self) {
        self.games.auth_ended(self.auth);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.games.auth_ended(self.auth);
    }
}

#[derive(Debug)]
struct Inner {
    vault: Vault,
    files: Arc<AgeFiles>,
    config: Config,
    tables: Mutex<Tables>,
    next: AtomicU64,
    /// In the order of [`DropKind::ALL`].
    dropped: [AtomicU64; DropKind::ALL.len()],
}

/// Metrics of ages.
#[derive(Debug)]
pub(in crate::uru) struct AgeFigures {
    pub(in crate::uru) ages: usize,
    pub(in crate::uru) players: usize,
    /// Dropped messages, by reason.
    pub(in crate::uru) dropped: Vec<(&'static str, u64)>,
}

#[derive(Debug, Default)]
struct Tables {
    hosts: HashMap<u32, Running>,
    /// All numbers that the auth service has given to ages.
    numbers: HashSet<u32>,
    /// By player.
    expected: HashMap<u32, Expected>,
    /// By player.
    present: HashMap<u32, Present>,
    is_closed: bool,
}

/// The task of a running age.
#[derive(Debug)]
struct Running {
    serial: u64,
    commands: mpsc::Sender<Command>,
    task: JoinHandle<usize>,
}

/// A player who requested an age.
#[derive(Clone, Debug)]
struct Expected {
    since: Instant,
    /// The auth session.
    auth: u64,
    /// The address of its connection.
    address: IpAddr,
    traveller: Traveller,
    number: u32,
    place: Place,
}

/// The age that a number stands for.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The age's filename.
    pub(super) name: String,
    /// Its nodes; 0 for an age that is not in the vault.
    pub(super) record: Record,
}

#[derive(Clone, Copy, Debug)]
struct Present {
    number: u32,
    serial: u64,
    auth: u64,
    since: Instant,
}

/// A connection's membership in an age.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) player: u32,
    pub(super) serial: u64,
    pub(super) commands: mpsc::Sender<Command>,
    /// The work that the player causes.
    pub(super) effort: Arc<Effort>,
}

impl Games {
    pub(in crate::uru) fn new(vault: Vault, files: AgeFiles, config: Config) -> Self {
        let (tables, next, dropped) = Default::default();
        Self(Arc::new(Inner { vault, files: files.into(), config, tables, next, dropped }))
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn vault(&self) -> &Vault {
        &self.0.vault
    }

    pub(super) fn files(&self) -> &Arc<AgeFiles> {
        &self.0.files
    }

    pub(super) fn config(&self) -> &Config {
        &self.0.config
    }

    /// Counts a dropped message.
    pub(super) fn dropped(&self, why: DropKind) {
        if let Some(count) = self.0.dropped.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Metrics of all ages.
    pub(in crate::uru) fn figures(&self) -> AgeFigures {
        let (ages, players) = {
            let tables = self.tables();
            (tables.hosts.len(), tables.present.len())
        };
        let counts = self.0.dropped.iter().map(|count| count.load(Ordering::Relaxed));
        let dropped = DropKind::ALL.iter().map(|kind| kind.name()).zip(counts).collect();
        AgeFigures { ages, players, dropped }
    }

    /// Expects an auth session's player in an age that it requested.
    pub(in crate::uru) async fn announce(
        &self,
        (auth, address): (u64, IpAddr),
        number: u32,
        name: &str,
        found: AgeFound,
    ) -> Result<(), NetError> {
        let Some(traveller) = records::traveller(self.vault(), auth).await? else {
            // The age for choosing a player has no game server.
            return Ok(());
        };
        let record = Record { age: found.age, instance: found.instance };
        let place = Place { name: name.to_owned(), record };
        let player = traveller.player;
        let since = Instant::now();
        let expected = Expected { since, auth, address, traveller, number, place };
        let mut tables = self.tables();
        tables.numbers.insert(number);
        tables.expected.insert(player, expected);
        Ok(())
    }

    /// The presence of an auth session, which lets its player be in ages.
    pub(in crate::uru) fn presence(&self, auth: u64) -> Presence {
        Presence { games: self.clone(), auth }
    }

    /// Removes an auth session's player from all ages.
    fn auth_ended(&self, auth: u64) {
        // Without a runtime, all ages have ended.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut tables = self.tables();
        tables.expected.retain(|_, expected| expected.auth != auth);
        let Tables { hosts, present, .. } = &*tables;
        for (player, at) in present.iter().filter(|(_, at)| at.auth == auth) {
            if let Some(host) = hosts.get(&at.number) {
                let commands = host.commands.clone();
                let kick = Command::Kick { player: *player, serial: at.serial };
                // Sending fails if the age has ended.
                runtime.spawn(async move { commands.send(kick).await });
            }
        }
    }

    /// Lets a player into an age that it requested on its auth connection. The request must come from
    /// the same address and allows one join, so that nobody who knows the account can take the
    /// player's place. `place` is set before the age is asked, so that a connection that ends
    /// meanwhile can still leave. On an error, which is the reply's result, it is `None`.
    pub(super) async fn join(
        &self,
        number: u32,
        account: Uuid,
        player: u32,
        (address, outbox): (IpAddr, &Arc<Outbox>),
        place: &mut Option<Seat>,
    ) -> Result<(), NetError> {
        if player == 0 {
            return Err(NetError::InvalidParameter);
        }
        let expected = {
            let tables = self.tables();
            if !tables.numbers.contains(&number) {
                return Err(NetError::AgeNotFound);
            }
            let expected = tables.expected.get(&player).ok_or(NetError::PlayerNotFound)?;
            // A client may use IPv4 for one service and IPv6 for the other.
            let comes_from_there =
                expected.address == address || expected.address.is_ipv4() != address.is_ipv4();
            if expected.traveller.account != account || !comes_from_there {
                return Err(NetError::PlayerNotFound);
            }
            let there = tables.present.get(&player).filter(|at| at.number == number);
            if expected.number != number || there.is_none() && expected.since.elapsed() > FRESH {
                return Err(NetError::AgeNotFound);
            }
            if there.is_some_and(|there| expected.since <= there.since) {
                return Err(NetError::LoggedInElsewhere);
            }
            expected.clone()
        };
        let Traveller { name, is_admin, .. } = &expected.traveller;
        let member = Player { id: player, name: name.clone(), is_admin: *is_admin, account };
        for _ in 0..MAX_TRIES {
            let (serial, commands) = self.host(number, &expected.place)?;
            let seat = self.0.next.fetch_add(1, Ordering::Relaxed);
            let effort = Arc::<Effort>::default();
            let kept = Arc::clone(&effort);
            let commands_of = commands.clone();
            *place = Some(Seat { player, serial: seat, commands: commands_of, effort: kept });
            let (reply, replied) = oneshot::channel();
            let arrival = Arrival {
                player: member.clone(),
                serial: seat,
                auth: expected.auth,
                outbox: Arc::clone(outbox),
                effort,
                reply,
            };
            if commands.send(Command::Join(arrival)).await.is_ok()
                && let Ok(outcome) = replied.await
                && outcome != Err(NetError::AgeNotFound)
            {
                if let Err(error) = outcome {
                    *place = None;
                    return Err(error);
                }
                let elsewhere = self.came(
                    player,
                    Present { number, serial: seat, auth: expected.auth, since: Instant::now() },
                );
                if let Some((elsewhere, serial)) = elsewhere {
                    // Sending fails if the age has ended.
                    let _ = elsewhere.send(Command::Kick { player, serial }).await;
                }
                return Ok(());
            }
            // The age was just ending.
            *place = None;
            self.over(number, serial);
        }
        Err(NetError::AgeNotFound)
    }

    /// Records where a player is. If the player was in another age, returns that age and the serial
    /// number of the membership there.
    fn came(&self, player: u32, present: Present) -> Option<(mpsc::Sender<Command>, u64)> {
        let mut tables = self.tables();
        let before = tables.present.insert(player, present)?;
        let elsewhere = tables.hosts.get(&before.number);
        let elsewhere = elsewhere.filter(|_| before.number != present.number);
        elsewhere.map(|host| (host.commands.clone(), before.serial))
    }

    /// The running age with a number. It is started if necessary.
    fn host(&self, number: u32, place: &Place) -> Result<(u64, mpsc::Sender<Command>), NetError> {
        let mut tables = self.tables();
        if tables.is_closed {
            return Err(NetError::RemoteShutdown);
        }
        if let Some(running) = tables.hosts.get(&number) {
            return Ok((running.serial, running.commands.clone()));
        }
        let serial = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (commands, inbox) = mpsc::channel(MAX_COMMANDS);
        let host = Host::open(self.clone(), number, serial, place.clone(), inbox);
        let task = tokio::spawn(host);
        let running = Running { serial, commands: commands.clone(), task };
        tables.hosts.insert(number, running);
        Ok((serial, commands))
    }

    /// Removes an age that has ended.
    pub(super) fn over(&self, number: u32, serial: u64) {
        let mut tables = self.tables();
        if tables.hosts.get(&number).is_some_and(|host| host.serial == serial) {
            tables.hosts.remove(&number);
        }
    }

    /// Records in the vault that a player has left an age, unless the player is on the way back.
    pub(super) fn left(&self, player: u32, serial: u64, record: Record) {
        let mut tables = self.tables();
        let Some(present) = tables.present.get(&player).copied() else { return };
        if present.serial != serial {
            return;
        }
        tables.present.remove(&player);
        let is_coming_back = tables.expected.get(&player).is_some_and(|expected| {
            expected.number == present.number && expected.since > present.since
        });
        drop(tables);
        if record.age != 0 && !is_coming_back {
            let vault = self.vault().clone();
            tokio::spawn(async move { records::left(&vault, present.auth, record.age).await });
        }
    }

    /// Delivers a message to players in other ages. Busy ages miss it.
    pub(super) fn route(&self, packet: &Packet, players: &[u32]) {
        let tables = self.tables();
        let mut ages: HashMap<u32, Vec<u32>> = HashMap::new();
        for player in players {
            if let Some(present) = tables.present.get(player) {
                ages.entry(present.number).or_default().push(*player);
            }
        }
        for (number, players) in ages {
            if let Some(host) = tables.hosts.get(&number) {
                let packet = packet.clone();
                let _ = host.commands.try_send(Command::Deliver { packet, players });
            }
        }
    }

    /// Delivers a message to all players in all other ages.
    pub(super) fn route_to_all(&self, packet: &Packet, from: u32) {
        let tables = self.tables();
        for (_, host) in tables.hosts.iter().filter(|(number, _)| **number != from) {
            let _ = host.commands.try_send(Command::DeliverToAll { packet: packet.clone() });
        }
    }

    /// Ends all ages and waits until their states are written. Returns the number of ages that lost
    /// changes.
    pub(in crate::uru) async fn close(&self) -> usize {
        let hosts: Vec<Running> = {
            let mut tables = self.tables();
            tables.is_closed = true;
            tables.hosts.drain().map(|(_, host)| host).collect()
        };
        for Running { commands, .. } in &hosts {
            // Sending fails if the age has ended.
            let _ = commands.send(Command::Stop).await;
        }
        let mut lost = 0;
        for Running { task, .. } in hosts {
            match timeout(PATIENCE, task).await {
                Ok(Ok(0)) => {}
                Ok(_) => lost += 1,
                Err(_) => {
                    lost += 1;
                    tracing::error!("an age did not end in time: its last changes are lost");
                }
            }
        }
        lost
    }
}
