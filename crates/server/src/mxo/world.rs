//! The world: its objects, their behaviour, and the clients in it, without I/O.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Error, Float, Result, Side};
use worldwire_mxo::connection::{News, Sender};
use worldwire_mxo::frame::{RpcMessage, SequenceNumber};
use worldwire_mxo::message::{Create, Movement, Operation, Properties, Section, Update};
use worldwire_mxo::replica::Replica;
use worldwire_mxo::replicator::{
    ClientId, Config, ObjectId, Point, Replicator, Spawn, Traffic, ViewState,
};
use worldwire_mxo::schema::Objects;

use super::newcomer::Newcomer;
use super::scene::{Scene, SceneObject, set_position};

/// The goobj of players' characters.
pub(super) const CHARACTER: u16 = 12;
/// A hold ends automatically after this time.
pub const LONGEST_HOLD: Duration = Duration::from_secs(60);

/// A small open world for many clients.
///
/// Times count from the server's start and never decrease.
#[derive(Debug)]
pub struct World {
    pub(super) replicator: Replicator,
    start: Point,
    /// The distance within which clients see objects and hear chat.
    pub(super) reach: f64,
    actors: Vec<Actor>,
    /// The objects that were spawned, for [`truth`](Self::truth).
    known: HashMap<ObjectId, Known>,
    pub(super) players: HashMap<ClientId, Player>,
    pub(super) now: Duration,
    /// The total time for which objects have been on hold.
    held: Duration,
    hold_until: Option<Duration>,
    section: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    goid: u16,
    world_id: Option<u32>,
}

/// An object with a behaviour.
#[derive(Debug)]
struct Actor {
    object: ObjectId,
    thing: SceneObject,
    /// A delay, so that objects do not all act at once.
    lag: Duration,
    turn: usize,
}

#[derive(Debug)]
pub(super) struct Player {
    pub(super) character: ObjectId,
    pub(super) uid: u64,
    /// Its name in the game.
    pub(super) handle: String,
    /// The packet of the latest movement. Earlier packets are ignored.
    heard: Option<SequenceNumber>,
    /// The number of the character's last script.
    pub(super) script_counter: u8,
    /// Chat from others that the client's connection has yet to send.
    pub(super) messages: VecDeque<RpcMessage<'static>>,
    /// Sections in addition to the replicator's.
    pub(super) sections: VecDeque<Vec<u8>>,
}

impl World {
    /// Creates a scene's world.
    ///
    /// # Errors
    /// Those of [`Replicator::new`] and [`Replicator::spawn`].
    pub fn new(objects: &Arc<Objects>, scene: &Scene, config: Config) -> Result<Self> {
        let reach = config.enter;
        let mut world = Self {
            reach,
            replicator: Replicator::new(Arc::clone(objects), config)?,
            start: scene.start,
            actors: Vec::new(),
            known: HashMap::new(),
            players: HashMap::new(),
            now: Duration::ZERO,
            held: Duration::ZERO,
            hold_until: None,
            section: Vec::new(),
        };
        for (index, thing) in scene.things.iter().enumerate() {
            let movement = match &thing.walk {
                Some(walk) => walk.at(Duration::ZERO).movement(thing.place),
                None => Movement::default(),
            };
            let object = world.spawn(Spawn {
                goid: thing.goid,
                world_id: thing.world_id,
                position: thing.place,
                properties: thing.properties.clone(),
                movement,
            })?;
            if thing.walk.is_some() || thing.cycle.is_some() {
                let lag = Duration::from_millis(index as u64 * 7_919 % 60_000);
                world.actors.push(Actor { object, thing: thing.clone(), lag, turn: index });
            }
        }
        Ok(world)
    }

    /// Adds a client, and its character at the scene's start. An existing client with the same
    /// character leaves, because it may be the same client after a lost connection.
    ///
    /// # Errors
    /// A limit on clients or objects, or tables without a class for characters.
    pub fn enter(&mut self, uid: u64) -> Result<ClientId> {
        self.enter_as(uid, &Newcomer::visitor(uid))
    }

    /// Adds a client like [`enter`](Self::enter), with this character.
    pub(super) fn enter_as(&mut self, uid: u64, newcomer: &Newcomer) -> Result<ClientId> {
        let objects = Arc::clone(self.replicator.objects());
        let Some((_, class)) = objects.class_of(CHARACTER) else {
            return Err(Error::value("tables with goobj 12, the type of characters", "none"));
        };
        let before = self.client_of(uid);
        let stood = before.and_then(|before| self.stand(before).ok());
        if let Some(before) = before {
            self.leave(before);
        }
        let client = self.replicator.join()?;
        let place = stood.filter(|_| newcomer.stays).or(newcomer.place);
        let (place, yaw) = place.unwrap_or_else(|| (self.start_of(uid), 0));
        let mut properties = newcomer.properties(class);
        set_position(&mut properties, class, place);
        #[expect(clippy::cast_possible_truncation, reason = "the wire has no more")]
        let position = Some(place.map(|part| part as f32));
        let movement = Movement { position, yaw: Some(yaw), ..Movement::default() };
        let spawn = Spawn { position: place, properties, movement, ..Spawn::new(CHARACTER) };
        let character = self
            .spawn(spawn)
            .and_then(|character| self.replicator.possess(client, character).map(|()| character));
        match character {
            Ok(character) => {
                let player = Player {
                    character,
                    uid,
                    handle: newcomer.handle.clone(),
                    heard: None,
                    script_counter: 0,
                    messages: VecDeque::new(),
                    sections: VecDeque::new(),
                };
                self.players.insert(client, player);
                Ok(client)
            }
            Err(error) => {
                self.replicator.leave(client)?;
                Err(error)
            }
        }
    }

    /// Removes a client and its character.
    pub fn leave(&mut self, client: ClientId) {
        if let Some(player) = self.players.remove(&client) {
            self.known.remove(&player.character);
            let _ = self.replicator.despawn(player.character);
        }
        let _ = self.replicator.leave(client);
    }

    /// Handles an object section, starting at its ID, that a client sent in packet `number`.
    /// Returns whether the client's character has moved to another position.
    ///
    /// # Errors
    /// Those of [`Replicator::read`] and [`Replicator::follow`]. The section then has no effect.
    pub fn receive(
        &mut self,
        client: ClientId,
        number: SequenceNumber,
        section: &[u8],
    ) -> Result<bool> {
        // Another connection may have taken over the character.
        let Some(player) = self.players.get_mut(&client) else { return Ok(false) };
        let (section, used) = self.replicator.read(client, section)?;
        debug_assert!(used > 0, "it has an id");
        let is_late = |heard: SequenceNumber| !number.is_newer_than(heard);
        if player.heard.is_some_and(is_late) {
            return Ok(false);
        }
        let movements = section.operations.iter().filter_map(|operation| match operation {
            Operation::Update(update) => update.movement,
            _ => None,
        });
        let before = self.replicator.movement(player.character).and_then(|it| it.position);
        for movement in movements {
            self.replicator.follow(client, &movement)?;
        }
        player.heard = Some(number);
        let after = self.replicator.movement(player.character).and_then(|it| it.position);
        Ok(before != after)
    }

    /// Handles acknowledgements and losses of packets.
    pub fn news(&mut self, client: ClientId, news: &News) {
        // Fails only for a client that has left.
        let _ = match news {
            News::Delivered(number) | News::Late(number) => {
                self.replicator.delivered(client, number.0)
            }
            News::Lost(number) => self.replicator.lost(client, number.0),
            News::Reset => self.replicator.reset(client),
            _ => Ok(()),
        };
    }

    /// Advances the world to `now`, and works out which clients need which updates.
    pub fn tick(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.now);
        self.now = self.now.max(now);
        if self.hold_until.is_some_and(|until| until <= self.now) {
            self.hold_until = None;
        }
        if self.hold_until.is_some() {
            self.held += passed;
        } else {
            let time = self.now.saturating_sub(self.held);
            for actor in &self.actors {
                actor.act(time, &mut self.replicator);
            }
        }
        self.replicator.tick(self.now);
    }

    /// Sends a client's updates within its budget, and others' chat and scripts. The first section
    /// is sent with `sim_time`. Returns the size of the sections in bytes. Fails if the client has
    /// left.
    pub fn send_updates(
        &mut self,
        client: ClientId,
        mut sim_time: Option<Float>,
        sender: &mut Sender,
    ) -> Result<usize> {
        let mut bytes = 0;
        loop {
            self.section.clear();
            if !self.replicator.poll(client, &mut self.section)? {
                break;
            }
            // A section that cannot be sent now is polled again in the next tick.
            let Ok(number) = sender.send_objects(&self.section, sim_time.take()) else { break };
            self.replicator.sent(client, number.0)?;
            bytes += self.section.len();
        }
        if let Some(player) = self.players.get_mut(&client) {
            for section in player.sections.drain(..) {
                // A section that cannot be sent now is dropped, because its moment has passed.
                let _ = sender.send_objects(&section, None);
            }
            while let Some(message) = player.messages.front() {
                // Sending the message is retried in the next tick.
                if worldwire_core::connection::Sender::send(sender, message).is_err() {
                    break;
                }
                player.messages.pop_front();
            }
        }
        Ok(bytes)
    }

    /// Stops the behaviour of objects until a given time, at most [`LONGEST_HOLD`] from now, so
    /// that clients' views can be compared with the world. Clients can still walk.
    pub fn hold(&mut self, until: Duration) {
        self.hold_until = Some(until.min(self.now.saturating_add(LONGEST_HOLD)));
    }

    /// Ends a hold.
    pub fn resume(&mut self) {
        self.hold_until = None;
    }

    /// The views that a client should have, with the current values of their objects. Fails if the
    /// client has left.
    pub fn truth(&self, client: ClientId) -> Result<Replica> {
        // Fails if the client has left.
        self.replicator.traffic(client)?;
        let objects = Arc::clone(self.replicator.objects());
        let mut operations = Vec::new();
        for view in self.replicator.views(client) {
            let is_visible = matches!(view.state, ViewState::Creating | ViewState::Live);
            let known = view.object.filter(|_| is_visible);
            let Some((object, known)) = known.and_then(|it| Some((it, self.known.get(&it)?)))
            else {
                continue;
            };
            let Some((class, layout)) = objects.class_of(known.goid) else { continue };
            let mut properties = Properties::new();
            for (index, slot) in (0..).zip(layout.create().slots()) {
                let property = self.replicator.property(known.goid, slot.name());
                if let Some(bytes) = property.and_then(|it| self.replicator.value(object, it)) {
                    properties.set(index, bytes.to_vec());
                }
            }
            let create = match known.world_id {
                Some(world) => Create::of_world(known.goid, world, class, view.spawn_seq, view.id),
                None => Create::dynamic(known.goid, class, view.spawn_seq, view.id),
            };
            operations.push(Operation::Create(create.with(properties)));
            let movement =
                self.replicator.movement(object).filter(|it| **it != Movement::default());
            if let Some(movement) = movement {
                let movement = Some(Movement { time: None, ..*movement });
                let (view, guess, properties) = (view.id, false, None);
                operations.push(Operation::Update(Update {
                    view,
                    class,
                    guess,
                    block1: None,
                    movement,
                    properties,
                }));
            }
        }
        let mut truth = Replica::new(Arc::clone(&objects));
        truth.apply(&Section { operations, unterminated: false }, Side::Server)?;
        Ok(truth)
    }

    /// Whether a client has received all updates: see [`Replicator::is_settled`].
    #[must_use]
    pub fn is_settled(&self, client: ClientId) -> bool {
        self.replicator.is_settled(client).unwrap_or(true)
    }

    /// The client that plays a character.
    #[must_use]
    pub fn client_of(&self, uid: u64) -> Option<ClientId> {
        self.players.iter().find(|(_, player)| player.uid == uid).map(|(client, _)| *client)
    }

    /// All clients, with the numbers of their characters.
    pub fn clients(&self) -> impl Iterator<Item = (ClientId, u64)> {
        self.players.iter().map(|(client, player)| (*client, player.uid))
    }

    /// The amount of data sent to a client so far. Fails if the client has left.
    pub fn traffic(&self, client: ClientId) -> Result<Traffic> {
        self.replicator.traffic(client)
    }

    /// The number of a client's views, including those being deleted.
    #[must_use]
    pub fn views(&self, client: ClientId) -> usize {
        self.replicator.views(client).count()
    }

    /// The number of objects, including characters.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.known.len()
    }

    /// The number of clients.
    #[must_use]
    pub fn players(&self) -> usize {
        self.players.len()
    }

    fn spawn(&mut self, spawn: Spawn<'_>) -> Result<ObjectId> {
        let known = Known { goid: spawn.goid, world_id: spawn.world_id };
        let object = self.replicator.spawn(spawn)?;
        self.known.insert(object, known);
        Ok(object)
    }

    /// The position at which a character starts. These positions are spread out.
    fn start_of(&self, uid: u64) -> Point {
        let [x, y, z] = self.start;
        let step = |part: u64| f64::from(u32::try_from(part % 10).unwrap_or(0)) * 40.0 - 200.0;
        [x + step(uid), y, z + step(uid / 10)]
    }
}

impl Actor {
    fn act(&self, time: Duration, replicator: &mut Replicator) {
        let time = time + self.lag;
        if let Some(walk) = &self.thing.walk {
            let movement = walk.at(time).movement(self.thing.place);
            if replicator.movement(self.object) != Some(&movement) {
                let done = replicator.set_movement(self.object, &movement);
                debug_assert!(done.is_ok(), "{done:?}");
            }
        }
        if let Some(cycle) = &self.thing.cycle
            && let Some(property) = replicator.property(self.thing.goid, &cycle.property)
        {
            let value = cycle.at(time, self.turn);
            if replicator.value(self.object, property) != Some(value) {
                let done = replicator.set(self.object, property, value);
                debug_assert!(done.is_ok(), "{done:?}");
            }
        }
    }
}
