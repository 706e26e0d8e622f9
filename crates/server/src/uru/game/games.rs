//! A shard's running ages, the players in them, and those about to join.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};
use worldwire_uru::age::Player;
use worldwire_uru::games::GameType;
use worldwire_uru::types::{NetError, Uuid};

use super::announcement::announcement;
use super::command::{Arrival, Command};
use super::files::AgeFiles;
use super::host::Host;
use super::outbox::Outbox;
use super::pace::Effort;
use super::registry::{
    AgeRef, ClientInfo, ExpectedPlayer, PresentPlayer, Registry, Running, StartedGame, Tables,
};
use super::small_games::{GameRandom, templates};
use crate::uru::cluster::{ClientReport, Link, NodeAges, Tenure};
use crate::uru::config::Settings;
use crate::uru::vault::age_states::{self, AgeRecord, Owner, PlayerIdentity};
use crate::uru::vault::{AgeFound, Vault};

pub(in crate::uru) use super::registry::AgeFigures;

/// How long a player may take to join an age after requesting it.
pub(super) const FRESH: Duration = Duration::from_secs(60);
/// The maximum number of attempts to join an age that keeps ending.
const MAX_TRIES: usize = 3;
/// The maximum number of queued commands for an age. When the queue is full, connections wait.
const MAX_COMMANDS: usize = 256;
/// How often to look for marker games that nobody has any more.
const CLEAN_UP_EVERY: Duration = Duration::from_secs(3_600);
/// How long ages may take to write their states when the shard stops.
const PATIENCE: Duration = Duration::from_secs(20);

/// A shard's ages. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::uru) struct Games(Registry);

/// An auth session's presence in ages. Dropping it removes the session's player from all ages.
#[derive(Debug)]
pub(in crate::uru) struct Presence {
    ages: Ages,
    auth: u64,
    /// The node that the client is connected to; `None` for this process.
    front: Option<Arc<str>>,
}

/// The place where a session's ages run.
#[derive(Debug)]
enum Ages {
    Here(Games),
    /// The process that leads the cluster manages the ages.
    Elsewhere(Link),
}

impl Presence {
    /// The presence of a session whose ages are in another process.
    pub(in crate::uru) fn elsewhere(link: Link, auth: u64) -> Self {
        Self { ages: Ages::Elsewhere(link), auth, front: None }
    }

    /// The presence of a session whose client is connected to a node.
    pub(in crate::uru) fn through(mut self, front: Option<Arc<str>>) -> Self {
        self.front = front;
        self
    }

    /// Removes the player from all ages, because the session now has another player or none.
    pub(in crate::uru) fn changed(&self) {
        match &self.ages {
            Ages::Here(games) => {
                games.0.nodes().session_ended(self.auth);
                games.auth_ended(self.auth);
            }
            Ages::Elsewhere(link) => link.report(self.auth, ClientReport::PlayerChanged),
        }
    }

    /// Records that the session has logged in on a connection.
    pub(in crate::uru) fn logged_in(&self, address: SocketAddr) {
        match &self.ages {
            Ages::Here(games) => {
                games.0.tables().clients.insert(self.auth, self.client(address));
            }
            Ages::Elsewhere(link) => link.report(self.auth, ClientReport::logged_in(address)),
        }
    }

    /// Records that the session's connection was lost.
    pub(in crate::uru) fn lost(&self) {
        match &self.ages {
            Ages::Here(games) => {
                if let Some(client) = games.0.tables().clients.get_mut(&self.auth) {
                    client.is_connected = false;
                }
            }
            Ages::Elsewhere(link) => link.report(self.auth, ClientReport::Lost),
        }
    }

    /// Records that the session continues on another connection.
    pub(in crate::uru) fn resumed(&self, address: SocketAddr) {
        match &self.ages {
            Ages::Here(games) => {
                let mut tables = games.0.tables();
                // After a takeover, the session is new here.
                let known = tables.clients.entry(self.auth);
                let known = known.or_insert_with(|| self.client(address));
                (known.address, known.is_connected) = (address, true);
            }
            Ages::Elsewhere(link) => link.report(self.auth, ClientReport::resumed(address)),
        }
    }

    fn client(&self, address: SocketAddr) -> ClientInfo {
        let (front, since) = (self.front.clone(), Instant::now());
        ClientInfo { address, front, since, is_connected: true }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // If the ages are elsewhere, the end of the session does this.
        if let Ages::Here(games) = &self.ages {
            games.0.tables().clients.remove(&self.auth);
            games.0.nodes().session_ended(self.auth);
            games.auth_ended(self.auth);
        }
    }
}

/// A running age.
#[derive(Clone, Debug)]
pub(in crate::uru) struct RunningAge {
    /// The age's filename.
    pub(in crate::uru) filename: String,
    /// The instance.
    pub(in crate::uru) instance: Uuid,
    /// The node that runs the age; `None` for this process.
    pub(in crate::uru) node: Option<String>,
    /// When the age started.
    pub(in crate::uru) since: Instant,
    /// The players in the age, and when they arrived.
    pub(in crate::uru) players: Vec<(u32, Instant)>,
}

/// A game that players are in.
#[derive(Clone, Debug)]
pub(in crate::uru) struct RunningGame {
    /// Its ID.
    pub(in crate::uru) id: u32,
    /// Its type.
    pub(in crate::uru) game_type: GameType,
    /// The template of a marker game.
    pub(in crate::uru) template: Option<Uuid>,
    /// The age's filename.
    pub(in crate::uru) filename: String,
    /// The age's instance.
    pub(in crate::uru) instance: Uuid,
    /// When it began.
    pub(in crate::uru) since: Instant,
    /// The players in it, in the order of joining.
    pub(in crate::uru) players: Vec<u32>,
}

/// A connection's membership in an age.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) player: u32,
    pub(super) serial: u64,
    pub(super) commands: mpsc::Sender<Command>,
    /// The work that the player has caused in the age.
    pub(super) effort: Arc<Effort>,
    /// This process's right to run the age.
    tenure: Option<Arc<Tenure>>,
    /// When the age last sent something to the client, if the age has a tenure.
    said: Option<Instant>,
}

impl Membership {
    /// Whether the age must send nothing more to clients.
    pub(super) fn is_over(&self) -> bool {
        self.tenure.as_ref().is_some_and(|tenure| tenure.is_over())
    }

    /// The time for [`spoke`](Self::spoke), if the age has a tenure.
    pub(super) fn clock(&self) -> Option<Instant> {
        self.tenure.as_ref().map(|_| Instant::now())
    }

    /// Records that the age sent something to the client at this time.
    pub(super) fn spoke(&mut self, at: Option<Instant>) {
        self.said = at;
    }

    /// After a connection has ended, logs when the age last sent something to the client.
    pub(super) fn log_last_word(&self) {
        if let (Some(tenure), Some(said)) = (&self.tenure, self.said) {
            tenure.log_last_word(self.player, said);
        }
    }
}

impl Games {
    pub(in crate::uru) fn new(
        vault: Vault,
        files: impl Into<Arc<AgeFiles>>,
        settings: Settings,
        random: GameRandom,
    ) -> Self {
        Self(Registry::new(vault, files.into(), settings, random))
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.0
    }

    /// Metrics of all ages.
    pub(in crate::uru) fn figures(&self) -> AgeFigures {
        self.0.figures()
    }

    /// The number of bytes sent and received in messages between ages in different processes.
    pub(in crate::uru) fn routed_bytes(&self) -> [u64; 2] {
        self.0.routed_bytes()
    }

    /// The ages in other processes, which this process leads.
    pub(in crate::uru) fn nodes(&self) -> &NodeAges {
        self.0.nodes()
    }

    /// Whether an age runs here.
    pub(in crate::uru) fn is_here(&self, record: AgeRecord) -> bool {
        let tables = self.0.tables();
        match record.age {
            0 => tables.hosts.values().any(|host| host.place.record == record),
            number => tables.hosts.contains_key(&number),
        }
    }

    /// Removes a player who has moved to an age in another process.
    pub(in crate::uru) fn remove_player(&self, player: u32) {
        if let Some((age, serial)) = self.0.membership(player) {
            // Sending fails if the age has ended.
            tokio::spawn(async move { age.send(Command::Kick { player, serial }).await });
        }
    }

    /// The running ages, by filename, including those in other processes that this one leads.
    pub(in crate::uru) fn running(&self) -> Vec<RunningAge> {
        let tables = self.0.tables();
        let age = |(number, host): (&u32, &Running)| {
            let there = tables.present.iter().filter(|(_, present)| present.number == *number);
            let mut players: Vec<_> =
                there.map(|(player, present)| (player, present.since)).collect();
            players.sort_unstable();
            let AgeRef { name, record, .. } = &host.place;
            let (filename, instance) = (name.clone(), record.instance);
            RunningAge { filename, instance, node: None, since: host.since, players }
        };
        let mut running: Vec<_> = tables.hosts.iter().map(age).collect();
        drop(tables);
        running.extend(self.0.nodes().running());
        running.sort_by(|one, other| {
            (&one.filename, one.instance.0).cmp(&(&other.filename, other.instance.0))
        });
        running
    }

    /// The games that players are in, by age.
    pub(in crate::uru) fn running_games(&self) -> Vec<RunningGame> {
        let tables = self.0.tables();
        let game = |(id, game): (&u32, &StartedGame)| {
            let StartedGame { place, game_type, template, since, players, .. } = game.clone();
            let AgeRef { name: filename, record, .. } = place;
            let instance = record.instance;
            RunningGame { id: *id, game_type, template, filename, instance, since, players }
        };
        let mut running: Vec<_> = tables.games.iter().map(game).collect();
        running.sort_by(|one, other| {
            let key = |game: &RunningGame| (game.instance.0, game.game_type, game.id);
            one.filename.cmp(&other.filename).then_with(|| key(one).cmp(&key(other)))
        });
        running
    }

    /// Removes marker games that nobody has any more, now and every hour.
    pub(in crate::uru) async fn clean_up(self) {
        loop {
            let open = templates(self.0.tables().games.values());
            let removed = self.0.vault().clean_up_markers(open).await;
            if removed > 0 {
                tracing::info!(removed, "removed marker games that have had no owner for a day");
            }
            sleep(CLEAN_UP_EVERY).await;
        }
    }

    /// The connection of an auth session that has logged in.
    pub(in crate::uru) fn client(&self, auth: u64) -> Option<ClientInfo> {
        self.0.tables().clients.get(&auth).cloned()
    }

    /// Shows a message to all players in one instance, or in all ages. Returns the number of
    /// players. Fails if the message cannot be sent.
    pub(in crate::uru) fn announce_text(
        &self,
        sender: &str,
        text: &str,
        instance: Option<Uuid>,
    ) -> worldwire_core::Result<usize> {
        let packet = announcement(sender, text)?;
        let tables = self.0.tables();
        let is_meant = |host: &Running| instance.is_none_or(|it| it == host.place.record.instance);
        let hosts: Vec<_> = tables.hosts.iter().filter(|(_, host)| is_meant(host)).collect();
        let mut players = 0;
        for (number, host) in hosts {
            players += tables.present.iter().filter(|(_, at)| at.number == *number).count();
            let (commands, packet) = (host.commands.clone(), packet.clone());
            // This waits if the age is busy. It fails if the age has ended.
            tokio::spawn(async move { commands.send(Command::DeliverToAll { packet }).await });
        }
        drop(tables);
        Ok(players + self.0.nodes().announce(instance, sender, text))
    }

    /// Expects an auth session's player in an age that it requested.
    pub(in crate::uru) async fn announce(
        &self,
        (auth, address): (u64, IpAddr),
        number: u32,
        name: &str,
        found: AgeFound,
    ) -> Result<(), NetError> {
        let Some(identity) = age_states::player_of(self.0.vault(), auth).await? else {
            // The age in which players are chosen has no game server.
            return Ok(());
        };
        let record = AgeRecord { age: found.age, instance: found.instance };
        let owner = Owner { number, fence: 0 };
        let place = AgeRef { name: name.to_owned(), record, owner, tenure: None };
        let player = identity.player;
        let since = Instant::now();
        let expected = ExpectedPlayer { since, auth, address, identity, number, place };
        let mut tables = self.0.tables();
        tables.numbers.insert(number);
        tables.expected.insert(player, expected);
        Ok(())
    }

    /// The presence of an auth session, which lets its player be in ages.
    pub(in crate::uru) fn presence(&self, auth: u64) -> Presence {
        Presence { ages: Ages::Here(self.clone()), auth, front: None }
    }

    /// Removes an auth session's player from all ages.
    fn auth_ended(&self, auth: u64) {
        // If there is no runtime, all ages have ended.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut tables = self.0.tables();
        tables.expected.remove_session(auth);
        let Tables { hosts, present, .. } = &*tables;
        for (player, at) in present.of_session(auth) {
            if let Some(host) = hosts.get(&at.number) {
                let commands = host.commands.clone();
                let kick = Command::Kick { player, serial: at.serial };
                // Sending fails if the age has ended.
                runtime.spawn(async move { commands.send(kick).await });
            }
        }
    }

    /// Lets a player into an age that it requested on its auth connection. The request must have
    /// come from the same address, and it allows one join, so that nobody who knows the account can
    /// take the player's place. `place` is set before the age is asked, so that a connection that
    /// ends in the meantime can still leave. If this returns an error, which is the reply's result,
    /// `place` is `None`.
    pub(super) async fn join(
        &self,
        number: u32,
        account: Uuid,
        player: u32,
        (address, outbox): (IpAddr, &Arc<Outbox>),
        place: &mut Option<Membership>,
    ) -> Result<(), NetError> {
        if player == 0 {
            return Err(NetError::InvalidParameter);
        }
        let expected = {
            let tables = self.0.tables();
            if !tables.numbers.contains(&number) {
                return Err(NetError::AgeNotFound);
            }
            let expected = tables.expected.get(player).ok_or(NetError::PlayerNotFound)?;
            // A client may use IPv4 for one service and IPv6 for another.
            let comes_from_there =
                expected.address == address || expected.address.is_ipv4() != address.is_ipv4();
            if expected.identity.account != account || !comes_from_there {
                return Err(NetError::PlayerNotFound);
            }
            let there = tables.present.get(player).filter(|at| at.number == number);
            if expected.number != number || there.is_none() && expected.since.elapsed() > FRESH {
                return Err(NetError::AgeNotFound);
            }
            if there.is_some_and(|there| expected.since <= there.since) {
                return Err(NetError::LoggedInElsewhere);
            }
            expected.clone()
        };
        let PlayerIdentity { name, is_admin, .. } = &expected.identity;
        let member = Player { id: player, name: name.clone(), is_admin: *is_admin, account };
        for _ in 0..MAX_TRIES {
            let (host_serial, commands) = self.host(number, &expected.place)?;
            let (serial, effort, auth) = (self.0.next_serial(), Arc::default(), expected.auth);
            let (tenure, fence) = (expected.place.tenure.clone(), expected.place.owner.fence);
            let (there, said) = (Arc::clone(&effort), None);
            let membership = Membership { player, serial, commands, effort: there, tenure, said };
            let commands = place.insert(membership).commands.clone();
            let (reply, replied) = oneshot::channel();
            let (player, outbox) = (member.clone(), Arc::clone(outbox));
            let arrival = Arrival { player, serial, auth, outbox, effort, reply };
            if commands.send(Command::Join(arrival)).await.is_ok()
                && let Ok(outcome) = replied.await
                && outcome != Err(NetError::AgeNotFound)
            {
                if let Err(error) = outcome {
                    *place = None;
                    return Err(error);
                }
                let since = Instant::now();
                let present = PresentPlayer { number, fence, serial, auth, since };
                if let Some((elsewhere, serial)) = self.0.came(member.id, present) {
                    // Sending fails if the age has ended.
                    let _ = elsewhere.send(Command::Kick { player: member.id, serial }).await;
                }
                return Ok(());
            }
            // The age was just ending.
            *place = None;
            self.0.over(number, host_serial);
        }
        Err(NetError::AgeNotFound)
    }

    /// The running age with this number. Starts the age if necessary.
    fn host(&self, number: u32, place: &AgeRef) -> Result<(u64, mpsc::Sender<Command>), NetError> {
        let mut tables = self.0.tables();
        if tables.is_closed {
            return Err(NetError::RemoteShutdown);
        }
        if place.is_over() {
            return Err(NetError::AgeNotFound);
        }
        if let Some(running) = tables.hosts.get(&number) {
            return Ok((running.serial, running.commands.clone()));
        }
        let serial = self.0.next_serial();
        let (commands, inbox) = mpsc::channel(MAX_COMMANDS);
        let host = Host::open(self.0.clone(), number, serial, place.clone(), inbox);
        let task = tokio::spawn(host);
        let (since, place) = (Instant::now(), place.clone());
        let running = Running { since, place, serial, commands: commands.clone(), task };
        tables.hosts.insert(number, running);
        Ok((serial, commands))
    }

    /// Ends all ages and waits until their states are written. Returns the number of ages that lost
    /// changes.
    pub(in crate::uru) async fn close(&self) -> usize {
        let hosts: Vec<Running> = {
            let mut tables = self.0.tables();
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
                    tracing::error!("an age did not end in time, so its last changes are lost");
                }
            }
        }
        lost
    }
}
