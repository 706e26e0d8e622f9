//! A client in an age.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};
use worldwire_client::uru::games::{PlayEvent, PlayerGames};
use worldwire_client::uru::{
    Age, ClientError, Game, Notification, Notifications, Player, Result, Scene, SceneEvent, Shard,
};
use worldwire_core::Field as _;
use worldwire_uru::net_message::{NetFlags, NetHeader};
use worldwire_uru::plasma_message::InputState;
use worldwire_uru::schema::Descriptors;
use worldwire_uru::types::{Location, LocationFlags, SequenceNumber, Uoid, Uuid};

use super::shown::{played, seen};
use super::step::Thing;
use crate::command::uru::sdl_update;

#[derive(Debug)]
pub(super) struct InAge {
    pub(super) game: Game,
    pub(super) player: Player,
    /// The age's file name.
    pub(super) filename: String,
    descriptors: Arc<Descriptors>,
    pub(super) receiver: Receiver,
    /// How long the server may take to answer.
    pub(super) patience: Duration,
    steps: u32,
}

/// What receives the age's messages.
#[derive(Debug)]
pub(super) enum Receiver {
    /// The steps, which print what the player sees.
    Steps(Box<Watcher>),
    /// A task that measures latency.
    Task(JoinHandle<()>, Arc<Mutex<Vec<u64>>>),
}

/// What the player sees in the age and in its games.
#[derive(Debug)]
pub(super) struct Watcher {
    scene: Scene,
    pub(super) games: PlayerGames,
    pub(super) notifications: Notifications,
}

impl Watcher {
    /// Processes a notification and sends the games' automatic replies. Returns the values to
    /// print, and the events of games.
    pub(super) async fn take(
        &mut self,
        game: &Game,
        notification: &Notification,
    ) -> Result<(Vec<Json>, Vec<PlayEvent>)> {
        let Notification::GameManager(buffer) = notification else {
            let events = self.scene.apply(notification)?;
            return Ok((events.iter().map(seen).collect(), Vec::new()));
        };
        let malformed =
            |error| ClientError::Malformed { request: "GameMgrMsg", error: Box::new(error) };
        let events = self.games.receive(buffer).map_err(malformed)?;
        game.send_games(&mut self.games).await?;
        Ok((events.iter().filter_map(played).collect(), events))
    }
}

/// The radius of an avatar's circle in feet, and the number of steps around it.
const RADIUS: f32 = 10.0;
const ROUND: u16 = 24;
const SECOND: Duration = Duration::from_secs(1);

impl InAge {
    /// Joins an age, shows the avatar, and receives the age's contents. Without `games`, measures
    /// latency.
    pub(super) async fn enter(
        shard: &Shard,
        (filename, age): (&str, &Age),
        account: Uuid,
        player: Player,
        descriptors: Arc<Descriptors>,
        games: Option<PlayerGames>,
    ) -> Result<(Self, Vec<Json>)> {
        let (game, mut notifications) = Game::join(shard, age, account, player.id).await?;
        let mut scene = Scene::new(player.id, Arc::clone(&descriptors));
        let events = game.arrive(&player.shape, &mut scene, &mut notifications).await?;
        let values = events.iter().map(seen).collect();
        let receiver = match games {
            Some(games) => Receiver::Steps(Box::new(Watcher { scene, games, notifications })),
            None => {
                let delays = Arc::default();
                let task = tokio::spawn(measure(notifications, Arc::clone(&delays)));
                Receiver::Task(task, delays)
            }
        };
        let (filename, patience) = (filename.to_owned(), shard.patience);
        let this = Self { game, player, filename, descriptors, receiver, patience, steps: 0 };
        Ok((this, values))
    }

    /// Sends chat to everyone in the age.
    pub(super) async fn say(&self, text: &str) -> Result<()> {
        self.game.say(&self.player.name, text).await
    }

    /// Walks in a circle, one step per second. Avatars step at different times within a second, as
    /// real players would.
    pub(super) async fn walk(&mut self, seconds: u64) -> Result<Vec<Json>> {
        let mut values = Vec::new();
        // The golden ratio spreads consecutive numbers evenly.
        let phase = f64::from(self.player.id) * 0.618_033_988_749_895;
        let phase = Duration::from_secs_f64(phase.fract());
        for _ in 0..seconds {
            let since = epoch().elapsed();
            let whole = Duration::from_secs(since.saturating_sub(phase).as_secs());
            let next = if since < phase { phase } else { whole + SECOND + phase };
            values.extend(self.watch_until(epoch() + next).await?);
            self.steps += 1;
            let part = self.steps % u32::from(ROUND);
            let angle = f32::from(u16::try_from(part).unwrap_or(0)) / f32::from(ROUND);
            let (sin, cos) = (angle * core::f32::consts::TAU).sin_cos();
            let position = [RADIUS * cos, RADIUS * sin, 0.0];
            let (game, shape) = (&self.game, &self.player.shape);
            match game.position(shape, &self.descriptors, position)? {
                Some(mut message) => {
                    self.stamp(&mut message.state.header);
                    self.game.send(message).await?;
                }
                None => {
                    let mut message = game.keys(InputState::Forward)?;
                    self.stamp(&mut message.header);
                    self.game.send(message).await?;
                }
            }
        }
        Ok(values)
    }

    /// Under load, carries the time at which a message was sent; servers forward it unchanged.
    fn stamp(&self, header: &mut NetHeader) {
        if let Receiver::Task(..) = self.receiver {
            header.flags = header.flags | NetFlags::HasTransactionID;
            header.transaction_id = Some(micros());
        }
    }

    /// Requests a lock and waits for the answer.
    pub(super) async fn lock(&mut self, thing: &Thing) -> Result<Vec<Json>> {
        let object = self.lockable(thing);
        self.game.lock(object.clone(), true).await?;
        let Receiver::Steps(watcher) = &mut self.receiver else {
            return Ok(Vec::new());
        };
        let mut values = Vec::new();
        while let Some(notification) = watcher.notifications.next().await {
            if let Notification::GameManager(_) = notification {
                values.extend(watcher.take(&self.game, &notification).await?.0);
            }
            for one in watcher.scene.apply(&notification)? {
                values.push(seen(&one));
                if matches!(&one, SceneEvent::Lock { object: of, .. } if of.name == object.name) {
                    return Ok(values);
                }
            }
        }
        Err(self.over().await)
    }

    pub(super) async fn release(&self, thing: &Thing) -> Result<()> {
        self.game.lock(self.lockable(thing), false).await
    }

    /// An object with a lock. Its class is the one named in the step; if the step names none, the
    /// class of the object in the age's messages; otherwise, that of logic modifiers. Scene objects
    /// have no locks.
    fn lockable(&self, thing: &Thing) -> Uoid<'static> {
        let class = match &self.receiver {
            Receiver::Steps(watcher) => {
                let seen = watcher.scene.classes_of(SequenceNumber(thing.sequence), &thing.name);
                let seen: Vec<u16> = seen.filter(|class| *class != SCENE_OBJECT).collect();
                if seen.contains(&LOGIC_MODIFIER) { None } else { seen.first().copied() }
            }
            Receiver::Task(..) => None,
        };
        object(thing, class.unwrap_or(LOGIC_MODIFIER))
    }

    /// Changes variables in an object's state.
    pub(super) async fn set_state(
        &self,
        thing: &Thing,
        descriptor: &str,
        variables: &[(String, worldwire_core::json::Json)],
    ) -> Result<()> {
        let not_sent = |error: worldwire_core::Error| ClientError::NotSent {
            request: "set-state",
            error: error.into(),
        };
        let newest = self.descriptors.newest(descriptor).ok_or_else(|| {
            let wanted = "one of the shard's descriptors";
            not_sent(worldwire_core::Error::value(wanted, descriptor.to_owned()))
        })?;
        let update = sdl_update(&self.descriptors, &newest, variables).map_err(not_sent)?;
        self.game.change(object(thing, SCENE_OBJECT), &update).await
    }

    /// Processes notifications until the given time.
    pub(super) async fn watch_until(&mut self, end: Instant) -> Result<Vec<Json>> {
        let Receiver::Steps(watcher) = &mut self.receiver else {
            sleep_until(end).await;
            return Ok(Vec::new());
        };
        let mut values = Vec::new();
        loop {
            match timeout_at(end, watcher.notifications.next()).await {
                Ok(Some(notification)) => {
                    values.extend(watcher.take(&self.game, &notification).await?.0);
                }
                Ok(None) => return Err(self.over().await),
                Err(_) => return Ok(values),
            }
        }
    }

    /// Why no more notifications will arrive.
    pub(super) async fn over(&self) -> ClientError {
        match self.game.link().ping().await {
            Err(error) => error,
            Ok(()) => ClientError::Overflow,
        }
    }

    pub(super) async fn leave(self) {
        if let Receiver::Task(task, _) = self.receiver {
            task.abort();
        }
        self.game.leave().await;
    }

    /// The latencies of messages received since the last call, in microseconds.
    pub(super) fn delays(&self) -> Vec<u64> {
        match &self.receiver {
            Receiver::Steps(_) => Vec::new(),
            Receiver::Task(_, delays) => {
                core::mem::take(&mut *delays.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}

/// Records the latency of messages, from the timestamps of senders on this machine.
async fn measure(mut notifications: Notifications, delays: Arc<Mutex<Vec<u64>>>) {
    while let Some(notification) = notifications.next().await {
        let now = micros();
        let Notification::NetMessage(buffer) = notification else { continue };
        let header = buffer.decode().ok().and_then(|message| message.header().cloned());
        if let Some(sent) = header.and_then(|header| header.transaction_id) {
            // The clocks of two processes differ by less than the time that a message takes.
            let delay = now.wrapping_sub(sent).cast_signed().max(0).unsigned_abs().into();
            delays.lock().unwrap_or_else(PoisonError::into_inner).push(delay);
        }
    }
}

/// The start of this process's clock.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// A clock shared by all processes on this machine. It wraps after an hour, longer than any message
/// takes.
fn micros() -> u32 {
    static BEGIN: OnceLock<Duration> = OnceLock::new();
    let begin = *BEGIN.get_or_init(|| {
        let since = epoch().elapsed();
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(since)
    });
    let now = begin.saturating_add(epoch().elapsed());
    u32::try_from(now.as_micros() & u128::from(u32::MAX)).unwrap_or(0)
}

/// The class of scene objects, whose states change.
pub(super) const SCENE_OBJECT: u16 = 0x01;
/// The class of logic modifiers, such as levers: the objects that clients lock.
const LOGIC_MODIFIER: u16 = 0x2d;

/// The object named in a step. If the step does not state the class, `class` is used.
fn object(thing: &Thing, class: u16) -> Uoid<'static> {
    let Thing { name, sequence, flags, class: given } = thing;
    let (sequence_number, flags) = (SequenceNumber(*sequence), LocationFlags(*flags));
    Uoid {
        location: Location { sequence_number, flags },
        load_mask: None,
        class_index: given.unwrap_or(class),
        object_id: 0,
        name: name.as_str().into(),
        clone: None,
    }
    .into_owned()
}
