//! The task of a running age.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};
use worldwire_net::LogLimiter;
use worldwire_uru::age::{Event, Instance, JoinRefused};
use worldwire_uru::games::{GamePlayer, Refused};
use worldwire_uru::types::NetError;

use super::LAPSED;
use super::command::{Arrival, Command};
use super::drops::Drops;
use super::outbox::{Outbox, hand_out};
use super::pace::Effort;
use super::registry::{AgeRef, Registry, Work};
use super::small_games::SmallGames;
use super::state_writer::{News, StateWriter};

/// The minimum interval between log lines that clients can provoke at will.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// The maximum number of commands handled before checking the clock and the vault.
const MAX_AT_ONCE: usize = 64;

/// A running age.
pub(super) struct Host {
    registry: Registry,
    number: u32,
    serial: u64,
    place: AgeRef,
    instance: Instance,
    games: SmallGames,
    started: Instant,
    members: HashMap<u32, Member>,
    writer: StateWriter,
    dropped: Drops,
    crowded: LogLimiter,
    /// The number of game messages that were sent.
    game_deliveries: u64,
    /// The amount of work that the metrics already include.
    counted: Work,
    is_over: bool,
}

/// The connection of a player in the age.
struct Member {
    serial: u64,
    is_admin: bool,
    outbox: Arc<Outbox>,
    effort: Arc<Effort>,
}

impl Host {
    /// Runs an age until it ends. Returns the number of states that could not be written.
    pub(super) async fn open(
        registry: Registry,
        number: u32,
        serial: u64,
        place: AgeRef,
        mut inbox: mpsc::Receiver<Command>,
    ) -> usize {
        let ended = place.clone();
        let left = match Self::start(&registry, number, serial, place).await {
            Ok(host) => host.run(&mut inbox).await,
            Err(error) => {
                tracing::error!(number, ?error, "cannot start an age");
                0
            }
        };
        registry.over(number, serial);
        registry.ended(&ended);
        // Players who tried to join in the meantime try again with a new host.
        inbox.close();
        while let Some(command) = inbox.recv().await {
            if let Command::Join(arrival) = command {
                let _ = arrival.reply.send(Err(NetError::AgeNotFound));
            }
        }
        left
    }

    async fn start(
        registry: &Registry,
        number: u32,
        serial: u64,
        place: AgeRef,
    ) -> Result<Self, NetError> {
        let (writer, stored) = StateWriter::open(registry.vault().clone(), &place, serial).await?;
        let (files, name) = (Arc::clone(registry.files()), place.name.clone());
        let read = spawn_blocking(move || (files.age(&name), files.descriptors()));
        let (file, descriptors) = read.await.map_err(|_| NetError::InternalError)?;
        let config = registry.config();
        let mut instance =
            Instance::new(Duration::ZERO, unix(), &place.name, file, descriptors, config);
        let name = &place.name;
        if let Some((node, blob)) = stored.sdl.filter(|(_, blob)| !blob.is_empty())
            && let Err(error) = instance.restore_age(&blob)
        {
            tracing::error!(name, node, %error, "cannot use the stored state of an age");
        }
        if let Some(blob) = stored.settings
            && let Err(error) = instance.set_shard_state(Duration::ZERO, &blob)
        {
            tracing::error!(name, %error, "cannot use the settings of an age");
        }
        for (object, blob) in stored.objects {
            if let Err(error) = instance.restore(object, &blob) {
                tracing::error!(name, %error, "cannot use the stored state of an object");
            }
        }
        tracing::info!(name, number, states = instance.states().len(), "age started");
        if let Some(tenure) = &place.tenure {
            tenure.log_start();
        }
        Ok(Self {
            games: SmallGames::new(registry, writer.vault().clone(), serial, &place),
            registry: registry.clone(),
            number,
            serial,
            place,
            instance,
            started: Instant::now(),
            members: HashMap::new(),
            writer,
            dropped: Drops::default(),
            crowded: LogLimiter::new(LOG_EVERY),
            game_deliveries: 0,
            counted: Work::default(),
            is_over: false,
        })
    }

    async fn run(mut self, inbox: &mut mpsc::Receiver<Command>) -> usize {
        while !self.is_over && !self.must_be_silent() {
            let due = [self.instance.poll_timeout(), self.games.poll_timeout()];
            let due = due.into_iter().flatten().min().map(|due| self.started + due);
            let end = self.place.tenure.as_ref().map(|tenure| tenure.end());
            let due = due.into_iter().chain(end).min();
            tokio::select! {
                command = inbox.recv() => {
                    self.handle(command.unwrap_or(Command::Stop));
                    for _ in 1..MAX_AT_ONCE {
                        self.settle();
                        match inbox.try_recv() {
                            Ok(command) => self.handle(command),
                            Err(_) => break,
                        }
                    }
                }
                () = until(due) => {
                    if !self.must_be_silent() {
                        self.instance.timeout(self.now());
                        self.games.timeout(self.now());
                    }
                }
                () = self.games.work() => {}
                news = self.writer.work() => {
                    if let Some(news) = news {
                        self.changed(news);
                    }
                }
            }
            self.settle();
            self.count();
        }
        if self.must_be_silent() {
            return self.give_up();
        }
        // Later joins wait for a new host.
        self.disconnect_all("the age has ended");
        self.settle();
        self.count();
        self.dropped.report(&self.place.name);
        self.games.finish().await;
        let left = self.writer.finish().await;
        let (name, number) = (&self.place.name, self.number);
        if left > 0 {
            tracing::error!(name, number, left, "could not write all states of an age");
        }
        tracing::info!(name, number, "age ended");
        left
    }

    /// Whether the age must send nothing more, because another process may run it now.
    fn must_be_silent(&self) -> bool {
        self.place.is_over()
    }

    /// Ends the age without saving: the vault would refuse its states.
    fn give_up(mut self) -> usize {
        self.disconnect_all(LAPSED);
        self.dropped.report(&self.place.name);
        let (name, number) = (&self.place.name, self.number);
        // The reason why this process's tenures are over is logged once for all ages.
        tracing::warn!(
            name,
            number,
            "age ended without saving: another process may be running it by now"
        );
        0
    }

    fn disconnect_all(&mut self, why: &'static str) {
        for player in self.members.keys().copied().collect::<Vec<_>>() {
            self.disconnect(player, why);
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn handle(&mut self, command: Command) {
        if self.must_be_silent() {
            return;
        }
        let now = self.now();
        match command {
            Command::Join(arrival) => self.join(arrival),
            Command::Message { player, serial, class, bytes, turn } => {
                let member = self.members.get(&player).filter(|member| member.serial == serial);
                if let Some(member) = member {
                    let begun = Instant::now();
                    self.instance.receive(now, player, class, &bytes);
                    member.effort.add(begun.elapsed());
                }
                drop(turn);
            }
            Command::GameManager { player, serial, bytes, turn } => {
                let member = self.members.get(&player).filter(|member| member.serial == serial);
                if let Some(member) = member
                    && self.instance.count_game_message(now, player)
                {
                    let begun = Instant::now();
                    let from = GamePlayer { id: player, is_admin: member.is_admin };
                    self.games.receive(now, from, &bytes);
                    member.effort.add(begun.elapsed());
                }
                drop(turn);
            }
            Command::Heard { player } => self.instance.mark_active(now, player),
            Command::Leave { player, serial } => {
                if self.members.get(&player).is_some_and(|member| member.serial == serial) {
                    self.leave(player);
                }
            }
            Command::Kick { player, serial } => {
                if self.members.get(&player).is_some_and(|member| member.serial == serial) {
                    self.disconnect(player, "the player has left the shard");
                }
            }
            Command::Deliver { packet, players } => self.instance.deliver(&packet, &players),
            Command::DeliverToAll { packet } => self.instance.deliver_to_all(&packet),
            Command::Stop => self.is_over = true,
        }
    }

    fn join(&mut self, arrival: Arrival) {
        let Arrival { player, serial, auth, outbox, effort, reply } = arrival;
        let (id, is_admin) = (player.id, player.is_admin);
        let now = self.now();
        // A player who joins again has lost the earlier connection.
        if let Some(before) = self.members.remove(&id) {
            before.outbox.close("the player has joined again");
            self.instance.leave(now, id);
            self.games.leave(now, id);
            self.settle();
        }
        self.instance.set_clock(now, unix());
        let joined = self.instance.join(now, player);
        if joined.is_ok() {
            self.members.insert(id, Member { serial, is_admin, outbox, effort });
        }
        let name = &self.place.name;
        tracing::debug!(name, player = id, auth, ?joined, "join");
        let refused = |refused: JoinRefused| refused.result();
        if reply.send(joined.map_err(refused)).is_err() {
            // The connection has already ended.
            self.leave(id);
        }
    }

    /// Closes a member's connection.
    fn disconnect(&mut self, player: u32, why: &'static str) {
        if let Some(member) = self.members.get(&player) {
            member.outbox.close(why);
            self.leave(player);
        }
    }

    fn leave(&mut self, player: u32) {
        if let Some(member) = self.members.remove(&player) {
            self.instance.leave(self.now(), player);
            self.games.leave(self.now(), player);
            self.registry.left(player, member.serial, self.place.record);
        }
    }

    /// Handles a change in the vault.
    fn changed(&mut self, news: News) {
        let now = self.now();
        let taken = match news {
            News::Edited(blob) => self.instance.edit_age(now, &blob),
            News::Settings(blob) => self.instance.set_shard_state(now, &blob),
            News::EndWanted => {
                self.is_over |= self.members.is_empty();
                return;
            }
        };
        if let Err(error) = taken {
            let name = &self.place.name;
            tracing::warn!(name, %error, "cannot apply a change to an age's state");
        }
    }

    /// Sends all of the age's messages and handles all of its events.
    fn settle(&mut self) {
        loop {
            let outbox_of = |player| self.members.get(&player).map(|member| &*member.outbox);
            let mut slow = hand_out(&mut self.instance, outbox_of);
            while let Some((player, packet)) = self.games.poll_delivery() {
                self.game_deliveries += 1;
                if outbox_of(player).is_some_and(|outbox| !outbox.push(packet)) {
                    slow.push(player);
                }
            }
            let mut gone: Vec<_> =
                slow.into_iter().map(|player| (player, "the client reads too slowly")).collect();
            while let Some((player, why)) = self.games.poll_refused() {
                self.refused(player, &why);
            }
            while let Some(event) = self.instance.poll_event() {
                gone.extend(self.happened(event));
            }
            if gone.is_empty() {
                return;
            }
            gone.into_iter().for_each(|(player, why)| self.disconnect(player, why));
        }
    }

    /// Adds the work done since the last call to the metrics.
    fn count(&mut self) {
        let counts = self.instance.counts();
        let messages = counts.received + counts.game_manager;
        let done = Work { messages, deliveries: counts.delivered + self.game_deliveries };
        if done != self.counted {
            self.registry.worked(done.since(self.counted));
            self.counted = done;
        }
    }

    /// Handles a message that the game manager refused.
    fn refused(&mut self, player: u32, why: &Refused) {
        if why.class.is_counted() {
            self.instance.count_malformed(self.now(), player);
        }
        let name = &self.place.name;
        self.registry.refused(why.class);
        if self.dropped.is_first(name, player, why.class.name()) {
            tracing::info!(name, player, %why, "game message dropped");
        }
    }

    /// Handles an event of the age. Returns a player to disconnect, and the reason.
    fn happened(&mut self, event: Event) -> Option<(u32, &'static str)> {
        let name = &self.place.name;
        match event {
            Event::Close { player_id, .. } => {
                return Some((player_id, "too many undecodable messages"));
            }
            Event::StoreAge { blob } => self.writer.keep_age(blob),
            Event::StoreState { object, descriptor, blob } => {
                self.writer.keep(object, descriptor, blob);
            }
            Event::Route { packet, players } => self.registry.route(&packet, &players),
            Event::RouteToAll { packet } => self.registry.route_to_all(&packet, self.number),
            Event::OverCapacity { members, capacity } => {
                if let Some(count) = self.crowded.count() {
                    tracing::warn!(
                        name,
                        members,
                        capacity,
                        count,
                        "an age has more players than its age file allows"
                    );
                }
            }
            Event::Dropped { player_id, why } => {
                self.registry.dropped(why.kind());
                if self.dropped.is_first(name, player_id, why.kind().name()) {
                    tracing::info!(name, player = player_id, %why, "message dropped");
                }
            }
            Event::Over => self.is_over = true,
            _ => {}
        }
        None
    }
}

impl Drop for Host {
    /// Closes all connections, even after a panic.
    fn drop(&mut self) {
        self.members.values().for_each(|member| member.outbox.close("the age has ended"));
        self.registry.over(self.number, self.serial);
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

/// The time since 1970.
fn unix() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
