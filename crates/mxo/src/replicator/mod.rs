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
//! 4. Pass on what the connection reports of packets and of itself:
//!    [`delivered`](Replicator::delivered), [`lost`](Replicator::lost),
//!    [`reset`](Replicator::reset).
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
//! let client = server.join()?;
//! server.look_from(client, [500.0, 0.0, 0.0])?;
//!
//! // Two ticks of the server. The client is at hand, so no packet is lost.
//! let mut neo = Replica::new(objects);
//! for (tick, state) in [(1, 0x834), (2, 0x838)] {
//!     server.set_value(door, "CurrentState", &Value::Unsigned(state))?;
//!     server.tick(Duration::from_millis(50) * tick);
//!     let mut section = Vec::new();
//!     while server.poll(client, &mut section)? {
//!         // A connection sends it, and says which packet it is.
//!         let packet = u64::from(tick);
//!         server.sent(client, packet)?;
//!         neo.receive(&section, Side::Server, Rules::STRICT)?;
//!         // The client acknowledges it.
//!         server.delivered(client, packet)?;
//!         section.clear();
//!     }
//!     let seen = neo.view(3).and_then(|door| door.value("CurrentState"));
//!     assert_eq!(seen, Some(Value::Unsigned(state)));
//! }
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod client;
mod clients;
mod config;
mod flight;
mod interest;
mod layout;
mod objects;
mod section;
mod thing;
mod view;

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Error, Result};

pub use client::Traffic;
pub use clients::ViewInfo;
pub use config::Config;
pub use objects::{PropertyId, Spawn};
pub use thing::Place;
pub use view::ViewState;

use crate::schema::Objects;
use client::Client;
use interest::Interest;
use section::{Composer, Scratch};
use thing::World;

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

    /// The packet of a number has arrived, perhaps late and though it was [`lost`](Self::lost).
    /// Numbers of other packets are passed over, and those that arrived before.
    ///
    /// # Errors
    /// Value, when the client is gone.
    pub fn delivered(&mut self, client: ClientId, number: u64) -> Result<()> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        client.arrive(number, &mut self.world, &self.config);
        Ok(())
    }

    /// The packet of a number has not arrived, as far as can be known: later ones were
    /// acknowledged, or nothing was for too long. Others are passed over as by
    /// [`delivered`](Self::delivered), which may still follow at any time.
    ///
    /// # Errors
    /// Value, when the client is gone.
    pub fn lost(&mut self, client: ClientId, number: u64) -> Result<()> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        if let Some(section) = client.flight.find(number) {
            client.lose(section, &mut self.world, &self.config);
        }
        Ok(())
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
}

fn limit(name: &'static str, most: usize, asked: usize) -> Result<()> {
    if asked <= most {
        return Ok(());
    }
    Err(Error::limit(name, most as u64, asked as u64))
}
