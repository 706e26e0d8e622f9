//! The server side of replication: one world, and the views that many clients have of it.
//!
//! A [`Replicator`] holds the objects of a world with their newest values and, for each client, its
//! state and the sections sent to it. It uses neither sockets nor a clock:
//!
//! 1. Change the world: [`spawn`](Replicator::spawn), [`set`](Replicator::set),
//!    [`set_movement`](Replicator::set_movement), [`move_to`](Replicator::move_to),
//!    [`despawn`](Replicator::despawn).
//! 2. Call [`tick`](Replicator::tick), which works out which clients need which updates.
//! 3. For each client, [`poll`](Replicator::poll) sections until there are none left. Send each
//!    with [`send_objects`](crate::connection::Sender::send_objects), and pass its packet number to
//!    [`sent`](Replicator::sent).
//! 4. Pass on what the connection reports: [`delivered`](Replicator::delivered),
//!    [`lost`](Replicator::lost), [`reset`](Replicator::reset).
//!
//! Guarantees:
//!
//! * Only updates of a view whose create is unacknowledged are sent as pending updates. A create is
//!   never split, and never repeated for a view that the client has.
//! * Nothing is lost. The contents of a lost packet are sent again with the newest values, unless a
//!   newer packet contained them. Values that an older packet may have overwritten by arriving
//!   after a newer one are sent again, too.
//! * A view ID is reused only when no create, update or deletion of its last object can still
//!   arrive. The next object with the ID has a different spawn sequence.
//! * The client's own character is view 2, with its own update order.
//! * Values are stored once, whatever the number of clients, and encoded once per tick for all
//!   clients that need the same values.
//! * A client that needs more than [`Config::tick_bytes`] gets deletions first. Creates and updates
//!   follow: those waiting for more than [`Config::patience`] ticks by age, the others by distance.
//!   Overdue updates and creates take turns going first. So a change waits for at most `patience`
//!   ticks, plus the time needed to send twice the number of packets that all waiting data fills,
//!   deletions included.
//!
//! A property that its class has only in creates can also be set, but reaches only clients whose
//! views are created later. Likewise, if an object that moves has the property `Position`, its
//! creates contain the current position.
//!
//! The same calls produce the same bytes: nothing depends on addresses or hashes.
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
//! server.move_to(door, [20.0, 0.0, 0.0])?;
//! server.look_from(client, [500.0, 0.0, 0.0])?;
//!
//! // Two ticks of the server. The client is called directly, so no packet is lost.
//! let mut neo = Replica::new(objects);
//! for (tick, state) in [(1, 0x834), (2, 0x838)] {
//!     server.set_value(door, "CurrentState", &Value::Unsigned(state))?;
//!     server.tick(Duration::from_millis(50) * tick);
//!     let mut section = Vec::new();
//!     while server.poll(client, &mut section)? {
//!         // A connection would send it and return the packet's number.
//!         let packet = u64::from(tick);
//!         server.sent(client, packet)?;
//!         neo.receive(&section, Side::Server, Rules::STRICT)?;
//!         // The client acknowledges the packet.
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
mod interest;
mod layout;
mod objects;
mod point;
mod section;
mod send_log;
mod view;
mod world;

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Error, Result};

pub use client::Traffic;
pub use clients::ViewInfo;
pub use config::Config;
pub use objects::{PropertyId, Spawn};
pub use point::Point;
pub use view::ViewState;

use crate::schema::Objects;
use client::Client;
use interest::Interest;
use section::{Composer, Scratch};
use world::World;

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

/// A world, and the views that many clients have of it; see the [module](self).
///
/// Fallible methods return a value error for a client that has left or an object that has been
/// removed.
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
    /// Creates an empty world.
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

    /// The game object tables.
    #[must_use]
    pub fn objects(&self) -> &Arc<Objects> {
        &self.world.schema
    }

    /// Advances the world to `now` and works out which clients need which updates. Also renews each
    /// client's budget. If `now` is earlier than the last call's, the last call's time is used.
    pub fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
        self.world.tick += 1;
        self.world.clear_forms();
        for (index, client) in (0..).zip(&mut self.clients) {
            if client.is_alive {
                client.handle_timeouts(self.now, &mut self.world, &self.config);
                if client.left_out > 0 && client.views.len() < self.config.views {
                    self.interest.client_moved(index);
                }
            }
        }
        self.interest.tick(&mut self.clients, &mut self.world, &self.config);
        // Changes reach all clients with a view of the object.
        let mut changed = core::mem::take(&mut self.world.changed);
        for index in changed.drain(..) {
            let object = &mut self.world.objects[index as usize];
            let fresh = core::mem::take(&mut object.fresh);
            for viewer in &object.viewers {
                let client = &mut self.clients[viewer.client as usize];
                client.mark(viewer.slot, &fresh, self.world.tick);
            }
        }
        self.world.changed = changed;
    }

    /// Appends a client's next section to `out`, from its ID 3 to its end marker. Returns `false`
    /// without appending anything if nothing is waiting, the tick's budget is used up, or 1,024
    /// sections may still arrive. Call [`sent`](Self::sent) afterwards; otherwise the section is
    /// treated as never sent.
    pub fn poll(&mut self, client: ClientId, out: &mut Vec<u8>) -> Result<bool> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        if client.log.is_unsent() {
            client.take_back(&mut self.world, &self.config);
        }
        let (world, config, now) = (&mut self.world, &self.config, self.now);
        Composer { world, config, scratch: &mut self.scratch, now }.compose(client, out)
    }

    /// Reports that the last polled section was sent in this packet. Packet numbers do not wrap,
    /// and increase with every packet. There may be gaps, because other packets also have numbers.
    ///
    /// # Errors
    /// A value error if the client has left, no section was polled, or the number does not
    /// increase.
    pub fn sent(&mut self, client: ClientId, number: u64) -> Result<()> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        if !client.log.is_unsent() {
            return Err(Error::value("a section that was polled but not sent", "none"));
        }
        if let Some(newest) = client.log.newest()
            && number <= newest
        {
            return Err(Error::value(format!("a number above {newest}"), number.to_string())
                .inside("number"));
        }
        client.log.number(number);
        let made = core::mem::take(&mut client.made);
        client.traffic.first += made.first;
        client.traffic.again += made.again;
        client.traffic.sections += made.sections;
        Ok(())
    }

    /// Reports that a packet has arrived, perhaps late, after it was reported [`lost`](Self::lost).
    /// Ignores repetitions and the numbers of other packets.
    pub fn delivered(&mut self, client: ClientId, number: u64) -> Result<()> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        client.arrive(number, &mut self.world, &self.config);
        Ok(())
    }

    /// Reports that a packet has probably not arrived: later packets were acknowledged, or no
    /// packet was acknowledged for too long. Ignores other numbers, like
    /// [`delivered`](Self::delivered), which may still follow at any time.
    pub fn lost(&mut self, client: ClientId, number: u64) -> Result<()> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        if let Some(section) = client.log.find(number) {
            client.lose(section, &mut self.world, &self.config);
        }
        Ok(())
    }

    fn object_id(&self, index: u32) -> ObjectId {
        ObjectId { index, generation: self.world.objects[index as usize].generation }
    }

    fn object_index(&self, object: ObjectId) -> Result<u32> {
        let found = self.world.objects.get(object.index as usize);
        if found.is_some_and(|found| found.alive && found.generation == object.generation) {
            return Ok(object.index);
        }
        Err(Error::value("an existing object", format!("{object:?}, which is gone")))
    }

    fn client_index(&self, client: ClientId) -> Result<u32> {
        let found = self.clients.get(client.index as usize);
        if found.is_some_and(|found| found.is_alive && found.generation == client.generation) {
            return Ok(client.index);
        }
        Err(Error::value("an existing client", format!("{client:?}, which is gone")))
    }
}

fn limit(name: &'static str, most: usize, asked: usize) -> Result<()> {
    if asked <= most {
        return Ok(());
    }
    Err(Error::limit(name, most as u64, asked as u64))
}
