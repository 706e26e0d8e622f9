//! The ages of a shard: which of them run, who is on the way into them, and who is there.

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
use crate::uru::ages::AgeFound;
use crate::uru::vault::Vault;

/// How long a player may take to an age after it was asked for.
const FRESH: Duration = Duration::from_secs(60);
/// How often a join meets an age that is just ending.
const MAX_TRIES: usize = 3;
/// How many commands may wait for an age; connections wait before they read more.
const MAX_COMMANDS: usize = 256;
/// How long ages may take to write what they have when the shard stops.
const PATIENCE: Duration = Duration::from_secs(20);

/// The ages of a shard. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::uru) struct Games(Arc<Inner>);

/// An auth connection, as the ages see it, or the session of one that was lost and may come back.
/// Dropped, it takes its player out of all ages.
#[derive(Debug)]
pub(in crate::uru) struct Presence {
    games: Games,
    auth: u64,
}

impl Presence {
    /// The player of the auth connection is another one now, or none.
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

/// What ages are doing, for operators.
#[derive(Debug)]
pub(in crate::uru) struct AgeFigures {
    pub(in crate::uru) ages: usize,
    pub(in crate::uru) players: usize,
    /// How many messages were dropped, by reason.
    pub(in crate::uru) dropped: Vec<(&'static str, u64)>,
}

#[derive(Debug, Default)]
struct Tables {
    hosts: HashMap<u32, Running>,
    /// Those that auth has given to ages.
    numbers: HashSet<u32>,
    /// By player.
    expected: HashMap<u32, Expected>,
    /// By player.
    present: HashMap<u32, Present>,
    is_closed: bool,
}

/// An age that runs.
#[derive(Debug)]
struct Running {
    serial: u64,
    commands: mpsc::Sender<Command>,
    task: JoinHandle<usize>,
}

/// A player who asked for an age.
#[derive(Clone, Debug)]
struct Expected {
    since: Instant,
    /// The auth connection.
    auth: u64,
    /// Where it comes from.
    address: IpAddr,
    traveller: Traveller,
    number: u32,
    place: Place,
}

/// Which age a number stands for.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The age's name in files.
    pub(super) name: String,
    /// The Age node; 0 for an age without a vault.
    pub(super) record: Record,
}

#[derive(Clone, Copy, Debug)]
struct Present {
    number: u32,
    serial: u64,
    auth: u64,
    since: Instant,
}

/// A player's place in an age, as its connection has it.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) player: u32,
    pub(super) serial: u64,
    pub(super) commands: mpsc::Sender<Command>,
    /// What the age has to do for the player.
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

    /// A message was dropped.
    pub(super) fn dropped(&self, why: DropKind) {
        if let Some(count) = self.0.dropped.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What the ages are doing.
    pub(in crate::uru) fn figures(&self) -> AgeFigures {
        let (ages, players) = {
            let tables = self.tables();
            (tables.hosts.len(), tables.present.len())
        };
        let counts = self.0.dropped.iter().map(|count| count.load(Ordering::Relaxed));
        let dropped = DropKind::ALL.iter().map(|kind| kind.name()).zip(counts).collect();
        AgeFigures { ages, players, dropped }
    }

    /// The player of an auth connection asked for an age, and is on the way into it.
    ///
    /// # Errors
    /// Those of the vault.
    pub(in crate::uru) async fn announce(
        &self,
        (auth, address): (u64, IpAddr),
        number: u32,
        name: &str,
        found: AgeFound,
    ) -> Result<(), NetError> {
        let Some(traveller) = records::traveller(self.vault(), auth).await? else {
            // The age in which players are chosen has no game server.
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

    /// Stands for an auth connection, by its number, for as long as its player may be in ages.
    pub(in crate::uru) fn presence(&self, auth: u64) -> Presence {
        Presence { games: self.clone(), auth }
    }

    /// An auth connection is over, or has another player: the one it had is nowhere any more.
    fn auth_ended(&self, auth: u64) {
        // Without a runtime, all ages are over.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut tables = self.tables();
        tables.expected.retain(|_, expected| expected.auth != auth);
        let Tables { hosts, present, .. } = &*tables;
        for (player, at) in present.iter().filter(|(_, at)| at.auth == auth) {
            if let Some(host) = hosts.get(&at.number) {
                let commands = host.commands.clone();
                let kick = Command::Kick { player: *player, serial: at.serial };
                // An error means that the age is over.
                runtime.spawn(async move { commands.send(kick).await });
            }
        }
    }

    /// Lets a player into an age, if auth expects it there: from the same address, and once for each
    /// request on the auth connection, lest somebody who has learned the account puts the player out.
    /// The seat is there before the age is asked, so that whoever is cut meanwhile can still leave.
    ///
    /// # Errors
    /// The result of the reply; there is no seat then.
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
            // A client that reaches one service by IPv4 and the other by IPv6 has two addresses.
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
                    // An error means that the age is over.
                    let _ = elsewhere.send(Command::Kick { player, serial }).await;
                }
                return Ok(());
            }
            // It was just ending.
            *place = None;
            self.over(number, serial);
        }
        Err(NetError::AgeNotFound)
    }

    /// Notes where a player is; returns the age where the player was, if that is another one, and
    /// with which connection.
    fn came(&self, player: u32, present: Present) -> Option<(mpsc::Sender<Command>, u64)> {
        let mut tables = self.tables();
        let before = tables.present.insert(player, present)?;
        let elsewhere = tables.hosts.get(&before.number);
        let elsewhere = elsewhere.filter(|_| before.number != present.number);
        elsewhere.map(|host| (host.commands.clone(), before.serial))
    }

    /// The age of a number, which is started if it does not run.
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

    /// An age does not run any more.
    pub(super) fn over(&self, number: u32, serial: u64) {
        let mut tables = self.tables();
        if tables.hosts.get(&number).is_some_and(|host| host.serial == serial) {
            tables.hosts.remove(&number);
        }
    }

    /// A player has left an age: the vault is told, unless the player is on the way back.
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

    /// Takes a message to players in other ages. One whose age has too much to do is lost.
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

    /// Takes a message to all players in all other ages.
    pub(super) fn route_to_all(&self, packet: &Packet, from: u32) {
        let tables = self.tables();
        for (_, host) in tables.hosts.iter().filter(|(number, _)| **number != from) {
            let _ = host.commands.try_send(Command::DeliverToAll { packet: packet.clone() });
        }
    }

    /// Ends all ages; returns when everything is written that is to be stored, or how many ages have
    /// lost something.
    pub(in crate::uru) async fn close(&self) -> usize {
        let hosts: Vec<Running> = {
            let mut tables = self.tables();
            tables.is_closed = true;
            tables.hosts.drain().map(|(_, host)| host).collect()
        };
        for Running { commands, .. } in &hosts {
            // An error means that it is over.
            let _ = commands.send(Command::Stop).await;
        }
        let mut lost = 0;
        for Running { task, .. } in hosts {
            match timeout(PATIENCE, task).await {
                Ok(Ok(0)) => {}
                Ok(_) => lost += 1,
                Err(_) => {
                    lost += 1;
                    tracing::error!("an age did not end in time; its last changes are lost");
                }
            }
        }
        lost
    }
}
