//! The registry of running ages, of the players in them, and of those about to join. Running ages
//! share it so that they can reach each other.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use worldwire_uru::age::{Config, DropKind, Packet};
use worldwire_uru::games::{GameIds, GameManager, GameType, RefusedClass};
use worldwire_uru::types::Uuid;

use super::by_session::{BySession, OfSession};
use super::command::Command;
use super::files::AgeFiles;
use super::small_games::GameRandom;
use crate::uru::cluster::{AgeReport, NodeAges, Routes, Tenure};
use crate::uru::config::Settings;
use crate::uru::vault::Vault;
use crate::uru::vault::age_states::{self, AgeRecord, Owner, PlayerIdentity};

/// The registry of a shard's ages. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Registry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    vault: Vault,
    /// The ages in other processes, which this process leads.
    nodes: NodeAges,
    files: Arc<AgeFiles>,
    settings: Settings,
    game_ids: Arc<GameIds>,
    game_random: GameRandom,
    tables: Mutex<Tables>,
    /// The connection to ages in other processes.
    routes: OnceLock<Routes>,
    next: AtomicU64,
    messages: AtomicU64,
    deliveries: AtomicU64,
    /// Dropped messages by reason, in the order of [`DropKind::ALL`].
    dropped: [AtomicU64; DropKind::ALL.len()],
    /// Messages that game managers refused, in the order of [`RefusedClass::ALL`].
    refused: [AtomicU64; RefusedClass::ALL.len()],
}

/// Metrics of ages.
#[derive(Debug)]
pub(in crate::uru) struct AgeFigures {
    pub(in crate::uru) ages: usize,
    pub(in crate::uru) players: usize,
    pub(in crate::uru) work: Work,
    /// Dropped messages, by reason.
    pub(in crate::uru) dropped: Vec<(&'static str, u64)>,
    /// Running games, by type.
    pub(in crate::uru) games: Vec<(&'static str, u64)>,
    /// Messages that game managers refused, by reason.
    pub(in crate::uru) refused: Vec<(&'static str, u64)>,
}

/// The amount of work that ages have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::uru) struct Work {
    /// Messages received from clients.
    pub(in crate::uru) messages: u64,
    /// Messages sent to clients.
    pub(in crate::uru) deliveries: u64,
}

impl Work {
    /// The work done since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            messages: self.messages.saturating_sub(before.messages),
            deliveries: self.deliveries.saturating_sub(before.deliveries),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) hosts: HashMap<u32, Running>,
    /// All numbers that the auth service has assigned to ages.
    pub(super) numbers: HashSet<u32>,
    /// The players who requested an age, by number.
    pub(super) expected: BySession<ExpectedPlayer>,
    /// The players in ages, by number.
    pub(super) present: BySession<PresentPlayer>,
    /// The connections of logged-in clients, by auth session.
    pub(super) clients: HashMap<u64, ClientInfo>,
    /// The games that players are in, by ID.
    pub(super) games: BTreeMap<u32, StartedGame>,
    /// The tenures, by the age's number. Empty in the process with the vault.
    pub(super) tenures: HashMap<u32, HeldTenure>,
    pub(super) is_closed: bool,
}

/// The connection of a logged-in client.
#[derive(Clone, Debug)]
pub(in crate::uru) struct ClientInfo {
    /// The client's address.
    pub(in crate::uru) address: SocketAddr,
    /// The node to which it is connected; `None` for this process.
    pub(in crate::uru) front: Option<Arc<str>>,
    /// When it logged in.
    pub(in crate::uru) since: Instant,
    /// Whether it is connected. Otherwise, its session waits for it to reconnect.
    pub(in crate::uru) is_connected: bool,
}

/// The task of a running age.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) since: Instant,
    pub(super) place: AgeRef,
    pub(super) serial: u64,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) task: JoinHandle<usize>,
}

/// A game that players are in.
#[derive(Clone, Debug)]
pub(super) struct StartedGame {
    /// The serial number of the age's task.
    pub(super) host: u64,
    pub(super) place: AgeRef,
    pub(super) game_type: GameType,
    /// The template of a marker game.
    pub(super) template: Option<Uuid>,
    pub(super) since: Instant,
    /// The players, in the order of joining.
    pub(super) players: Vec<u32>,
}

/// A player who requested an age.
#[derive(Clone, Debug)]
pub(super) struct ExpectedPlayer {
    pub(super) since: Instant,
    /// The auth session.
    pub(super) auth: u64,
    /// The address of the session's connection.
    pub(super) address: IpAddr,
    pub(super) identity: PlayerIdentity,
    pub(super) number: u32,
    pub(super) place: AgeRef,
}

/// The age that a number identifies.
#[derive(Clone, Debug)]
pub(super) struct AgeRef {
    /// The age's filename.
    pub(super) name: String,
    /// The age's nodes; 0 for an age that is not in the vault.
    pub(super) record: AgeRecord,
    /// The placement on whose behalf the age writes.
    pub(super) owner: Owner,
    /// This process's right to run the age; `None` in the process with the vault.
    pub(super) tenure: Option<Arc<Tenure>>,
}

impl AgeRef {
    /// Whether the age must send nothing more to clients.
    pub(super) fn is_over(&self) -> bool {
        self.tenure.as_ref().is_some_and(|tenure| tenure.is_over())
    }
}

/// The latest tenure of an age in this process.
#[derive(Debug)]
pub(super) struct HeldTenure {
    pub(super) tenure: Arc<Tenure>,
    /// When the age was given back or taken away.
    pub(super) ended: Option<Instant>,
}

/// A player in an age.
#[derive(Clone, Copy, Debug)]
pub(super) struct PresentPlayer {
    pub(super) number: u32,
    /// The fence of the age's placement.
    pub(super) fence: u64,
    pub(super) serial: u64,
    pub(super) auth: u64,
    pub(super) since: Instant,
}

impl OfSession for ExpectedPlayer {
    fn session(&self) -> u64 {
        self.auth
    }
}

impl OfSession for PresentPlayer {
    fn session(&self) -> u64 {
        self.auth
    }
}

impl Registry {
    pub(super) fn new(
        vault: Vault,
        files: Arc<AgeFiles>,
        settings: Settings,
        game_random: GameRandom,
    ) -> Self {
        let mut first_id = [0; 4];
        game_random.fill(&mut first_id);
        Self(Arc::new(Inner {
            vault,
            nodes: NodeAges::default(),
            files,
            settings,
            game_ids: GameIds::new(u32::from_le_bytes(first_id)).into(),
            game_random,
            tables: Mutex::default(),
            routes: OnceLock::new(),
            next: AtomicU64::default(),
            messages: AtomicU64::default(),
            deliveries: AtomicU64::default(),
            dropped: Default::default(),
            refused: Default::default(),
        }))
    }

    /// A number that no age or membership has had before.
    pub(super) fn next_serial(&self) -> u64 {
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, sends messages to ages in other processes, too.
    pub(super) fn route_over(&self, routes: Routes) {
        // This method is called only once.
        let _ = self.0.routes.set(routes);
    }

    pub(super) fn vault(&self) -> &Vault {
        &self.0.vault
    }

    pub(super) fn nodes(&self) -> &NodeAges {
        &self.0.nodes
    }

    pub(super) fn files(&self) -> &Arc<AgeFiles> {
        &self.0.files
    }

    /// The rules of an age that starts now.
    pub(super) fn config(&self) -> Config {
        self.0.settings.current().age()
    }

    /// A manager for the games of one age. All managers share the counter for IDs.
    pub(super) fn game_manager(&self) -> GameManager {
        let games = self.0.settings.current().games();
        GameManager::new(games, Arc::clone(&self.0.game_ids))
    }

    pub(super) fn game_random(&self) -> GameRandom {
        self.0.game_random.clone()
    }

    /// Adds a player to a game. Returns whether it is the first one.
    pub(super) fn game_joined(&self, game_id: u32, player: u32, started: StartedGame) -> bool {
        let mut tables = self.tables();
        let game = tables.games.entry(game_id).or_insert(started);
        game.players.push(player);
        game.players.len() == 1
    }

    /// Removes a player from a game.
    pub(super) fn game_left(&self, game_id: u32, player: u32) {
        if let Some(game) = self.tables().games.get_mut(&game_id) {
            game.players.retain(|other| *other != player);
        }
    }

    /// Removes a game.
    pub(super) fn game_ended(&self, game_id: u32) -> Option<StartedGame> {
        self.tables().games.remove(&game_id)
    }

    /// Counts a message that a game manager refused.
    pub(super) fn refused(&self, why: RefusedClass) {
        if let Some(count) = self.0.refused.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a dropped message.
    pub(super) fn dropped(&self, why: DropKind) {
        if let Some(count) = self.0.dropped.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Metrics of all ages.
    pub(in crate::uru) fn figures(&self) -> AgeFigures {
        let (ages, players, games) = {
            let tables = self.tables();
            let counted = |game: GameType| {
                let of_type = tables.games.values().filter(|it| it.game_type == game);
                (game.name(), of_type.map(|_| 1).sum())
            };
            (tables.hosts.len(), tables.present.len(), GameType::ALL.map(counted).to_vec())
        };
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = self.0.dropped.iter().map(load);
        let dropped = DropKind::ALL.iter().map(|kind| kind.name()).zip(counts).collect();
        let counts = self.0.refused.iter().map(load);
        let refused = RefusedClass::ALL.iter().map(|class| class.name()).zip(counts).collect();
        let (messages, deliveries) = (load(&self.0.messages), load(&self.0.deliveries));
        let work = Work { messages, deliveries };
        AgeFigures { ages, players, work, dropped, games, refused }
    }

    /// Counts what an age has done.
    pub(super) fn worked(&self, work: Work) {
        self.0.messages.fetch_add(work.messages, Ordering::Relaxed);
        self.0.deliveries.fetch_add(work.deliveries, Ordering::Relaxed);
    }

    /// The number of bytes in messages to and from ages in other processes.
    pub(super) fn routed_bytes(&self) -> [u64; 2] {
        self.0.routes.get().map(Routes::bytes).unwrap_or_default()
    }

    /// Records the age that a player is in. If the player was in another age, returns that age and
    /// the serial number of the membership there.
    pub(super) fn came(
        &self,
        player: u32,
        present: PresentPlayer,
    ) -> Option<(mpsc::Sender<Command>, u64)> {
        let mut tables = self.tables();
        if let Some(routes) = self.0.routes.get() {
            routes.here(player);
        }
        let PresentPlayer { number, fence, auth, .. } = present;
        self.report(AgeReport::Arrived { number, fence, player, auth });
        let before = tables.present.insert(player, present)?;
        let elsewhere = tables.hosts.get(&before.number);
        let elsewhere = elsewhere.filter(|_| before.number != present.number);
        elsewhere.map(|host| (host.commands.clone(), before.serial))
    }

    /// The age that a player is in, and the serial number of the membership there.
    pub(super) fn membership(&self, player: u32) -> Option<(mpsc::Sender<Command>, u64)> {
        let tables = self.tables();
        let present = tables.present.get(player)?;
        let host = tables.hosts.get(&present.number)?;
        Some((host.commands.clone(), present.serial))
    }

    /// Removes an age that has ended, and its games.
    pub(super) fn over(&self, number: u32, serial: u64) {
        let mut tables = self.tables();
        tables.games.retain(|_, game| game.host != serial);
        if tables.hosts.get(&number).is_some_and(|host| host.serial == serial) {
            tables.hosts.remove(&number);
        }
    }

    /// Records in the vault that a player has left an age, unless the player is on the way back.
    pub(super) fn left(&self, player: u32, serial: u64, record: AgeRecord) {
        let mut tables = self.tables();
        let Some(present) = tables.present.get(player).copied() else { return };
        if present.serial != serial {
            return;
        }
        tables.present.remove(player);
        if let Some(routes) = self.0.routes.get() {
            routes.gone(player);
        }
        let is_coming_back = tables.expected.get(player).is_some_and(|expected| {
            expected.number == present.number && expected.since > present.since
        });
        if self.vault().link().is_some() {
            // The leader records this.
            if !is_coming_back {
                let PresentPlayer { number, fence, .. } = present;
                self.report(AgeReport::Departed { number, fence, player });
            }
            return;
        }
        drop(tables);
        if record.age != 0 && !is_coming_back {
            let vault = self.vault().clone();
            tokio::spawn(async move { age_states::left(&vault, present.auth, record.age).await });
        }
    }

    /// Reports something about this node's ages. Does nothing in the process with the vault.
    fn report(&self, report: AgeReport) {
        if let Some(link) = self.vault().link() {
            link.report_ages(report);
        }
    }

    /// Delivers a message to players in other ages, in this process and in others. Busy ages miss
    /// it.
    pub(super) fn route(&self, packet: &Packet, players: &[u32]) {
        self.deliver(packet, players);
        let Some(routes) = self.0.routes.get() else { return };
        let tables = self.tables();
        for player in players.iter().filter(|player| tables.present.get(**player).is_none()) {
            routes.send(Some(*player), packet);
        }
    }

    /// Delivers a message to players in ages in this process. Busy ages miss it.
    pub(super) fn deliver(&self, packet: &Packet, players: &[u32]) {
        let tables = self.tables();
        let mut ages: HashMap<u32, Vec<u32>> = HashMap::new();
        for player in players {
            if let Some(present) = tables.present.get(*player) {
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

    /// Delivers a message to all players in all other ages, in this process and in others.
    pub(super) fn route_to_all(&self, packet: &Packet, from: u32) {
        self.deliver_to_all(packet, Some(from));
        if let Some(routes) = self.0.routes.get() {
            routes.send(None, packet);
        }
    }

    /// Delivers a message to all players in all ages in this process except one. Busy ages miss it.
    pub(super) fn deliver_to_all(&self, packet: &Packet, from: Option<u32>) {
        let tables = self.tables();
        for (_, host) in tables.hosts.iter().filter(|(number, _)| Some(**number) != from) {
            let _ = host.commands.try_send(Command::DeliverToAll { packet: packet.clone() });
        }
    }
}
