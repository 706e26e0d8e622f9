//! The server's side of replication: one world, and the views that many clients have of it.
//!
//! A [`Replicator`] holds the objects of a world with their newest values, and for each client
//! what it has and what it was sent. It knows no sockets and no clock:
//!
//! 1. Change the world: [`spawn`](Replicator::spawn), [`set`](Replicator::set),
//!    [`set_movement`](Replicator::set_movement), [`place`](Replicator::place),
//!    [`despawn`](Replicator::despawn).
//! 2. [`tick`](Replicator::tick): who sees what, and what is there to tell.
//! 3. For each client, [`poll`](Replicator::poll) sections until there are no more, send each as
//!    a packet, and give its number back with [`sent`](Replicator::sent).
//! 4. Pass on what the connection says of packets: [`delivered`](Replicator::delivered),
//!    [`lost`](Replicator::lost), [`reset`](Replicator::reset).
//!
//! What it sees to:
//!
//! * Updates of a view whose create is not acknowledged go as pending updates, no others do. A
//!   create is never split, and never sent again for a view that the client has.
//! * Nothing is lost. What a lost packet carried is sent again with the newest values, unless a
//!   newer packet carried it. What an older packet may have overwritten, by arriving behind a newer
//!   one, is sent again too.
//! * A view id is used again when neither creates, updates nor deletions of its last object can
//!   arrive any more; its next object has another spawn sequence.
//! * The client's own character is view 2 and is updated in its own order.
//! * Values are kept once, whatever the number of clients, and encoded once in a tick for all
//!   clients that need the same ones.
//! * A client that needs more than [`Config::tick_bytes`] gets deletions first; then creates and
//!   updates, those that wait for more than [`Config::patience`] ticks by age, the others by
//!   distance. When updates have waited for too long, they and creates take turns to go first.
//!   So a change waits for at most `patience` ticks, and twice as many packets as all that waits
//!   and all deletions fill.
//!
//! A property that updates of its class do not have can be set too. It reaches the clients whose
//! views are created later.
//!
//! The same calls make the same bytes: nothing depends on addresses or hashes.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use worldwire_core::Side;
//! use worldwire_mxo::message::{Properties, Rules};
//! use worldwire_mxo::replica::Replica;
//! use worldwire_mxo::replicator::{Config, Replicator, Spawn};
//! use worldwire_mxo::schema::Objects;
//! use worldwire_mxo::types::Value;
//!
//! let objects = Arc::new(Objects::built_in());
//! let mut server = Replicator::new(Arc::clone(&objects), Config::default())?;
//! let door = server.spawn(Spawn { world_id: Some(0x34f0_027a), ..Spawn::new(415) })?;
//! server.set_value(door, "CurrentState", &Value::Unsigned(0x834))?;
//! let client = server.join()?;
//! server.look_from(client, [500.0, 0.0, 0.0])?;
//!
//! // A tick of the server. The client is at hand, so no packet is lost.
//! let mut neo = Replica::new(objects);
//! let mut number = 0;
//! let mut tick = |server: &mut Replicator| {
//!     number += 1;
//!     server.tick(Duration::from_millis(50) * number);
//!     let mut section = Vec::new();
//!     if server.poll(client, &mut section)? {
//!         server.sent(client, number.into())?;
//!         neo.receive(&section, Side::Server, Rules::STRICT)?;
//!         server.delivered(client, number.into())?;
//!     }
//!     let state = neo.view(3).and_then(|door| door.value("CurrentState"));
//!     Ok::<_, worldwire_core::Error>(state.map(|state| format!("{state:?}")))
//! };
//! assert_eq!(tick(&mut server)?.as_deref(), Some("Unsigned(2100)"));
//! server.set_value(door, "CurrentState", &Value::Unsigned(0x838))?;
//! assert_eq!(tick(&mut server)?.as_deref(), Some("Unsigned(2104)"));
//! server.despawn(door)?;
//! assert_eq!(tick(&mut server)?, None);
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod client;
mod config;
mod flight;
mod interest;
mod layout;
mod section;
mod thing;
mod view;

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Error, Reader, Result};

pub use client::Traffic;
pub use config::Config;
pub use thing::Place;
pub use view::ViewState;

use crate::message::{
    ADMIN_VIEW, Context, Fault, Movement, OWN_VIEW, Properties, Section, Viewed, Views,
};
use crate::schema::Objects;
use crate::types::Value;
use client::Client;
use interest::Interest;
use section::{Composer, Scratch};
use thing::{World, check_place};

/// An object of a [`Replicator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    index: u32,
    generation: u32,
}

/// A client of a [`Replicator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId {
    index: u32,
    generation: u32,
}

/// A property of a class, looked up once with [`Replicator::property`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PropertyId {
    class: u16,
    field: u16,
}

/// A new object.
#[derive(Clone, Debug, PartialEq)]
pub struct Spawn<'d> {
    /// The game object type.
    pub goid: u16,
    /// The object of the client's world that it is; `None` for one that the world does not have.
    pub world_id: Option<u32>,
    /// Where it is, for who sees it. Its properties say it to the client.
    pub place: Place,
    /// Its properties, in the create order of its class.
    pub properties: Properties<'d>,
    /// Its movement; the fields that are known.
    pub movement: Movement,
}

impl Spawn<'_> {
    /// A new object of a type, at the origin and without properties.
    #[must_use]
    pub fn new(goid: u16) -> Self {
        Self {
            goid,
            world_id: None,
            place: [0.0; 3],
            properties: Properties::new(),
            movement: Movement::default(),
        }
    }
}

/// A view that a client has, or is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewInfo {
    /// The view id; 0 before its create is sent.
    pub id: u16,
    /// What tells objects of one view id apart.
    pub spawn_seq: u8,
    /// What becomes of it.
    pub state: ViewState,
    /// The object; `None` of a view that is being deleted.
    pub object: Option<ObjectId>,
    /// Whether there are values that it has not been sent.
    pub is_dirty: bool,
}

/// The views of many clients of one world; see the [module](self).
#[derive(Debug)]
pub struct Replicator {
    config: Config,
    world: World,
    clients: Vec<Client>,
    free_clients: Vec<u32>,
    interest: Interest,
    scratch: Scratch,
    now: Duration,
}

impl Replicator {
    /// An empty world.
    ///
    /// # Errors
    /// Value, when the configuration makes no sense.
    pub fn new(objects: Arc<Objects>, config: Config) -> Result<Self> {
        config.check()?;
        Ok(Self {
            interest: Interest::new(&config),
            world: World::new(objects),
            clients: Vec::new(),
            free_clients: Vec::new(),
            scratch: Scratch::default(),
            now: Duration::ZERO,
            config,
        })
    }

    /// The classes and goobjs.
    #[must_use]
    pub fn objects(&self) -> &Arc<Objects> {
        &self.world.objects
    }

    /// Adds an object. Clients in reach get a view of it from the next tick on.
    ///
    /// # Errors
    /// [`Fault::UnknownGoid`]. Value, for properties that the class does not have or that do not
    /// fit, movement that its updates cannot carry, and a place that is not finite. The limits on
    /// objects, and on classes: 255 properties, 124 of them in an update, and a create that fits
    /// into a packet.
    pub fn spawn(&mut self, spawn: Spawn<'_>) -> Result<ObjectId> {
        check_place(&spawn.place).map_err(|error| error.inside("place"))?;
        let Some((class, _)) = self.world.objects.class_of(spawn.goid) else {
            return Err(Fault::UnknownGoid.value(spawn.goid.to_string()).inside("goid"));
        };
        let layout = &self.world.layouts[usize::from(class.number())];
        layout.check(self.config.packet_bytes)?;
        for property in spawn.properties.list() {
            let index = property.index();
            if index >= layout.created {
                let found = format!("index {index} of {}", layout.created);
                return Err(Fault::IndexOutOfRange.value(found).inside("properties"));
            }
            layout
                .check_value(index, property.bytes())
                .map_err(|error| error.inside("properties"))?;
        }
        layout.check_movement(&spawn.movement).map_err(|error| error.inside("movement"))?;
        limit("objects", self.config.objects, self.world.len() + 1)?;
        let index = self.world.add(class, spawn.goid, spawn.world_id, spawn.place);
        for property in spawn.properties.list() {
            self.world.set(index, property.index(), property.bytes());
        }
        self.world.set_movement(index, &spawn.movement, false);
        if let Some(position) = spawn.movement.position {
            self.world.places[index as usize] = position.map(f64::from);
        }
        self.interest.thing_moved(index);
        Ok(ObjectId { index, generation: self.world.things[index as usize].generation })
    }

    /// Takes an object out of the world. Its views are deleted.
    ///
    /// # Errors
    /// Value, when it is gone already.
    pub fn despawn(&mut self, object: ObjectId) -> Result<()> {
        let index = self.thing(object)?;
        if let Some(owner) = self.world.things[index as usize].owner {
            let client = &mut self.clients[owner as usize];
            client.eye = client.eye(&self.world);
            client.own = None;
            self.interest.client_moved(owner);
        }
        while let Some(viewer) = self.world.things[index as usize].viewers.last().copied() {
            let client = &mut self.clients[viewer.client as usize];
            client.drop_view(viewer.slot, true, &mut self.world, &self.config);
        }
        self.interest.thing_gone(index);
        self.world.remove(index);
        Ok(())
    }

    /// A property of a goobj's class, by its name.
    #[must_use]
    pub fn property(&self, goid: u16, name: &str) -> Option<PropertyId> {
        let (class, _) = self.world.objects.class_of(goid)?;
        let class = class.number();
        let fields = &self.world.layouts.get(usize::from(class))?.fields;
        let field = fields.iter().position(|field| &*field.name == name)?;
        Some(PropertyId { class, field: u16::try_from(field).ok()? })
    }

    /// Gives an object a value: as many bytes as the type of the property has.
    ///
    /// # Errors
    /// Value, for an object that is gone, a property of another class, and bytes that do not fit.
    pub fn set(&mut self, object: ObjectId, property: PropertyId, bytes: &[u8]) -> Result<()> {
        let index = self.thing(object)?;
        let thing = &self.world.things[index as usize];
        let layout = self.world.layout(thing);
        let field = usize::from(property.field);
        if thing.class != property.class {
            let wanted = "a property of the object's class";
            return Err(Error::value(wanted, "one of another class").inside("property"));
        }
        layout.check_value(field, bytes)?;
        self.world.set(index, field, bytes);
        Ok(())
    }

    /// The same by the property's name, with a value of its type.
    ///
    /// # Errors
    /// Value, for an object that is gone, an unknown name, and a value that does not fit.
    pub fn set_value(&mut self, object: ObjectId, name: &str, value: &Value<'_>) -> Result<()> {
        let index = self.thing(object)?;
        let thing = &self.world.things[index as usize];
        let Some(property) = self.property(thing.goid, name) else {
            return Err(Error::value("a property of the class", format!("\"{name}\"")));
        };
        let kind = self.world.layout(thing).fields[usize::from(property.field)].kind;
        let bytes = kind.write(value).map_err(|error| error.inside(name))?;
        self.set(object, property, &bytes)
    }

    /// The value of a property; `None` when it has none.
    #[must_use]
    pub fn value(&self, object: ObjectId, property: PropertyId) -> Option<&[u8]> {
        let index = self.thing(object).ok()?;
        if self.world.things[index as usize].class != property.class {
            return None;
        }
        self.world.value(index, property.field.into())
    }

    /// Gives a character those fields of a movement that are there. A position is also where it
    /// is from now on. All clients are told, its own too.
    ///
    /// # Errors
    /// Value, for an object that is gone, one whose updates have no movement, a script counter,
    /// which a server cannot send, and a position that is not finite.
    pub fn set_movement(&mut self, object: ObjectId, movement: &Movement) -> Result<()> {
        let index = self.thing(object)?;
        self.check_movement(index, movement)?;
        self.move_by(index, movement, false);
        Ok(())
    }

    /// What is known of a character's movement.
    #[must_use]
    pub fn movement(&self, object: ObjectId) -> Option<&Movement> {
        let index = self.thing(object).ok()?;
        Some(&self.world.things[index as usize].movement)
    }

    /// Says where an object is, for who sees it. Clients learn of it by its properties or its
    /// movement only.
    ///
    /// # Errors
    /// Value, for an object that is gone and a place that is not finite.
    pub fn place(&mut self, object: ObjectId, place: Place) -> Result<()> {
        let index = self.thing(object)?;
        check_place(&place)?;
        self.put(index, place);
        Ok(())
    }

    /// Adds a client. It sees nothing before it has a character or a place to look from.
    ///
    /// # Errors
    /// The limit on clients.
    pub fn join(&mut self) -> Result<ClientId> {
        limit("clients", self.config.clients, self.clients.len() - self.free_clients.len() + 1)?;
        let index = match self.free_clients.pop() {
            Some(index) => index,
            None => {
                self.clients.push(Client::default());
                u32::try_from(self.clients.len() - 1).unwrap_or(u32::MAX)
            }
        };
        let client = &mut self.clients[index as usize];
        let generation = client.generation;
        *client = Client::new(index, generation);
        Ok(ClientId { index, generation })
    }

    /// Takes a client out. Its character stays.
    ///
    /// # Errors
    /// Value, when it is gone already.
    pub fn leave(&mut self, client: ClientId) -> Result<()> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        client.reset(&mut self.world);
        if let Some(own) = client.own.take() {
            self.world.things[own as usize].owner = None;
            self.world.things[own as usize].muted = 0;
        }
        client.eye = None;
        client.is_alive = false;
        client.generation = client.generation.wrapping_add(1);
        self.interest.client_gone(index);
        self.free_clients.push(index);
        Ok(())
    }

    /// Makes an object the client's own character: view 2, from which it looks.
    ///
    /// # Errors
    /// Value, when the client or the object is gone, or it is another client's.
    pub fn possess(&mut self, client: ClientId, object: ObjectId) -> Result<()> {
        let client = self.client_index(client)?;
        let thing = self.thing(object)?;
        match self.world.things[thing as usize].owner {
            Some(owner) if owner == client => return Ok(()),
            Some(_) => {
                return Err(Error::value("an object without a client", "the character of another"));
            }
            None => {}
        }
        if let Some(old) = self.clients[client as usize].own.replace(thing) {
            self.world.things[old as usize].owner = None;
            self.world.things[old as usize].muted = 0;
        }
        self.world.things[thing as usize].owner = Some(client);
        self.interest.client_moved(client);
        Ok(())
    }

    /// Says from where a client looks that has no character.
    ///
    /// # Errors
    /// Value, when it is gone, and for a place that is not finite.
    pub fn look_from(&mut self, client: ClientId, place: Place) -> Result<()> {
        let index = self.client_index(client)?;
        check_place(&place)?;
        self.clients[index as usize].eye = Some(place);
        self.interest.client_moved(index);
        Ok(())
    }

    /// The client forgot all its views: its connection was reset, or it changed worlds. View ids
    /// and spawn sequences begin again. Numbers of packets go on.
    ///
    /// # Errors
    /// Value, when it is gone.
    pub fn reset(&mut self, client: ClientId) -> Result<()> {
        let index = self.client_index(client)?;
        self.clients[index as usize].reset(&mut self.world);
        self.interest.client_moved(index);
        Ok(())
    }

    /// A tick of the server: finds out who sees what and what there is to tell, and gives each
    /// client its budget. Time does not go back; an earlier `now` counts as the last one.
    pub fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
        self.world.tick += 1;
        self.world.clear_forms();
        for (index, client) in (0..).zip(&mut self.clients) {
            if client.is_alive {
                client.pass(self.now, &mut self.world, &self.config);
                if client.unseen > 0 && client.views.len() < self.config.views {
                    self.interest.client_moved(index);
                }
            }
        }
        self.interest.tick(&mut self.clients, &mut self.world, &self.config);
        // What is new reaches all who have a view.
        let mut changed = core::mem::take(&mut self.world.changed);
        for index in changed.drain(..) {
            let thing = &mut self.world.things[index as usize];
            let fresh = core::mem::take(&mut thing.fresh);
            for viewer in &thing.viewers {
                let client = &mut self.clients[viewer.client as usize];
                client.mark(viewer.slot, &fresh, self.world.tick);
            }
        }
        self.world.changed = changed;
    }

    /// Appends the next section for a client to `out`, from its id 3 to its end. `false`, and
    /// nothing is appended, when there is nothing to tell, the budget of the tick is used up, or
    /// 1,024 sections may still arrive. [`sent`](Self::sent) must follow; a section without it
    /// counts as never sent.
    ///
    /// # Errors
    /// Value, when the client is gone.
    pub fn poll(&mut self, client: ClientId, out: &mut Vec<u8>) -> Result<bool> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        if client.flight.is_unsent() {
            client.take_back(&mut self.world, &self.config);
        }
        let (world, config, now) = (&mut self.world, &self.config, self.now);
        Composer { world, config, scratch: &mut self.scratch, now }.compose(client, out)
    }

    /// The section that was polled last was sent as the packet of this number. Numbers do not wrap,
    /// and grow with every packet; those between them may have been used for something else.
    ///
    /// # Errors
    /// Value, when the client is gone, no section was polled, or the number does not grow.
    pub fn sent(&mut self, client: ClientId, number: u64) -> Result<()> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        if !client.flight.is_unsent() {
            return Err(Error::value("a section that was polled and not sent", "none"));
        }
        if let Some(newest) = client.flight.newest()
            && number <= newest
        {
            return Err(Error::value(format!("a number above {newest}"), number.to_string())
                .inside("number"));
        }
        client.flight.number(number);
        let made = core::mem::take(&mut client.made);
        client.traffic.first += made.first;
        client.traffic.again += made.again;
        client.traffic.sections += made.sections;
        Ok(())
    }

    /// The packet of a number has arrived. Numbers of other packets are passed over, and those
    /// whose fate is known.
    ///
    /// # Errors
    /// Value, when the client is gone.
    pub fn delivered(&mut self, client: ClientId, number: u64) -> Result<()> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        if let Some(section) = client.flight.find(number) {
            client.deliver(section, &mut self.world, &self.config);
        }
        Ok(())
    }

    /// The packet of a number has not arrived, as far as can be known: later ones were
    /// acknowledged, or nothing was for too long. Others are passed over as by
    /// [`delivered`](Self::delivered), which may still follow.
    ///
    /// # Errors
    /// Value, when the client is gone.
    pub fn lost(&mut self, client: ClientId, number: u64) -> Result<()> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        if let Some(section) = client.flight.find(number) {
            client.lose(section, self.now, &mut self.world, &self.config);
        }
        Ok(())
    }

    /// Reads a section from a client, from its id on, and says how many bytes it took. It is not
    /// applied: [`follow`](Self::follow) takes its movements.
    ///
    /// # Errors
    /// Value, when the client is gone. Those of [`Section::decode`]; a view that is not the
    /// client's own is [`Fault::BadViewId`], and so are all before it has one of a character
    /// ([`Fault::UnknownView`]).
    pub fn read<'d>(&self, client: ClientId, bytes: &'d [u8]) -> Result<(Section<'d>, usize)> {
        let index = self.client_index(client)?;
        let client = &self.clients[index as usize];
        let own = client.own.map(|own| self.world.layout(&self.world.things[own as usize]).class);
        let own = OwnView(own.map(Viewed::from));
        let mut reader = Reader::new(bytes);
        let context = Context::client(&self.world.objects, &own);
        let section = Section::decode(&mut reader, &context)?;
        Ok((section, reader.position()))
    }

    /// A client says how its own character moves: as [`set_movement`](Self::set_movement), but the
    /// client is not told. A script counter is left out.
    ///
    /// # Errors
    /// Value, when the client is gone or has no character, and as
    /// [`set_movement`](Self::set_movement).
    pub fn follow(&mut self, client: ClientId, movement: &Movement) -> Result<()> {
        let index = self.client_index(client)?;
        let Some(own) = self.clients[index as usize].own else {
            return Err(Error::value("a client with a character", "one without"));
        };
        let movement = Movement { script_counter: None, ..*movement };
        self.check_movement(own, &movement)?;
        self.move_by(own, &movement, true);
        Ok(())
    }

    /// The object that a client names by view id and spawn sequence, as its requests do.
    ///
    /// # Errors
    /// Value, when the client is gone; [`Fault::BadViewId`] for 0 and 1, [`Fault::UnknownView`]
    /// for a view that it does not have; value for another spawn sequence: it means an object that
    /// had the view id before.
    pub fn target(&self, client: ClientId, view: u16, spawn_seq: u8) -> Result<ObjectId> {
        let index = self.client_index(client)?;
        let client = &self.clients[index as usize];
        if view <= ADMIN_VIEW {
            return Err(Fault::BadViewId.value(view.to_string()).inside("view"));
        }
        let found = client.slot_of(view).map(|slot| client.views.at(slot));
        let has = |state| matches!(state, Some(ViewState::Creating | ViewState::Live));
        let Some(found) = found.filter(|found| has(found.state)) else {
            return Err(Fault::UnknownView.value(view.to_string()).inside("view"));
        };
        if found.seq != spawn_seq {
            let wanted = format!("the spawn sequence {} of view {view}", found.seq);
            return Err(Error::value(wanted, spawn_seq.to_string()).inside("spawn_seq"));
        }
        Ok(self.object_id(found.thing))
    }

    /// The views of a client, in no particular order but always the same one. None when it is
    /// gone.
    pub fn views(&self, client: ClientId) -> impl Iterator<Item = ViewInfo> {
        let index = self.client_index(client).ok();
        let client = index.map(|index| &self.clients[index as usize]);
        client.into_iter().flat_map(move |client| {
            client.views.iter().filter_map(|(_, view)| {
                let state = view.state?;
                let is_there = state != ViewState::Deleting;
                Some(ViewInfo {
                    id: view.id,
                    spawn_seq: view.seq,
                    state,
                    object: is_there.then(|| self.object_id(view.thing)),
                    is_dirty: view.dirty != 0,
                })
            })
        })
    }

    /// What a client was sent so far.
    ///
    /// # Errors
    /// Value, when it is gone.
    pub fn traffic(&self, client: ClientId) -> Result<Traffic> {
        Ok(self.clients[self.client_index(client)? as usize].traffic)
    }

    /// How many sections of a client have no fate yet.
    ///
    /// # Errors
    /// Value, when it is gone.
    pub fn unacknowledged(&self, client: ClientId) -> Result<usize> {
        Ok(self.clients[self.client_index(client)? as usize].flight.open())
    }

    /// Whether a client has for certain all that it should have as of the last tick: every view in
    /// reach is there, nothing waits to be told, and nothing that was sent may yet arrive.
    ///
    /// # Errors
    /// Value, when it is gone.
    pub fn is_settled(&self, client: ClientId) -> Result<bool> {
        let client = &self.clients[self.client_index(client)? as usize];
        let is_quiet = |view: &view::View| view.state == Some(ViewState::Live) && view.dirty == 0;
        Ok(client.flight.is_empty() && client.views.iter().all(|(_, view)| is_quiet(view)))
    }

    /// Whether a client has room for views of all objects in reach.
    ///
    /// # Errors
    /// Value, when it is gone. The limit on views, when objects had to be left out: those that came
    /// into reach last, and of them the ones furthest away. They are looked for again when there is
    /// room.
    pub fn check_views(&self, client: ClientId) -> Result<()> {
        let client = &self.clients[self.client_index(client)? as usize];
        if client.unseen == 0 {
            return Ok(());
        }
        limit("views of a client", self.config.views, client.views.len() + client.unseen)
    }

    fn object_id(&self, index: u32) -> ObjectId {
        ObjectId { index, generation: self.world.things[index as usize].generation }
    }

    fn thing(&self, object: ObjectId) -> Result<u32> {
        let thing = self.world.things.get(object.index as usize);
        if thing.is_some_and(|thing| thing.alive && thing.generation == object.generation) {
            return Ok(object.index);
        }
        Err(Error::value("an object that is there", format!("{object:?}, which is gone")))
    }

    fn client_index(&self, client: ClientId) -> Result<u32> {
        let found = self.clients.get(client.index as usize);
        if found.is_some_and(|found| found.is_alive && found.generation == client.generation) {
            return Ok(client.index);
        }
        Err(Error::value("a client that is there", format!("{client:?}, which is gone")))
    }

    fn check_movement(&self, index: u32, movement: &Movement) -> Result<()> {
        self.world.layout(&self.world.things[index as usize]).check_movement(movement)
    }

    fn move_by(&mut self, index: u32, movement: &Movement, said: bool) {
        self.world.set_movement(index, movement, said);
        if let Some(position) = movement.position {
            self.put(index, position.map(f64::from));
        }
    }

    fn put(&mut self, index: u32, place: Place) {
        self.world.places[index as usize] = place;
        self.interest.thing_moved(index);
    }
}

/// The own view alone: all that a client may write to.
struct OwnView(Option<Viewed>);

impl Views for OwnView {
    fn viewed(&self, view: u16) -> Option<Viewed> {
        self.0.filter(|_| view == OWN_VIEW)
    }
}

fn limit(name: &'static str, most: usize, asked: usize) -> Result<()> {
    if asked <= most {
        return Ok(());
    }
    Err(Error::limit(name, most as u64, asked as u64))
}
