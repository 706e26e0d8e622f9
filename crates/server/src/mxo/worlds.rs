//! The worlds of a server: one for each district.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use worldwire_core::Result;
use worldwire_mxo::frame::RpcMessage;
use worldwire_mxo::replicator::{ClientId, Config};
use worldwire_mxo::schema::Objects;

use super::config::MxoConfig;
use super::scene::Scene;
use super::world::World;

/// The worlds of a server, one for each district. Players in different worlds do not see each
/// other, but can whisper.
#[derive(Debug)]
pub struct Worlds {
    home: (u32, Mutex<World>),
    others: Vec<(u32, Mutex<World>)>,
}

impl Worlds {
    /// Creates the worlds that a configuration names, each with its own copy of a scene.
    ///
    /// # Errors
    /// Those of [`World::new`].
    pub fn new(config: &MxoConfig, objects: &Arc<Objects>, scene: &Scene) -> Result<Self> {
        let world = |district: u32| -> Result<(u32, Mutex<World>)> {
            let world = World::new(objects, scene, replication(config))?;
            Ok((district, Mutex::new(world)))
        };
        let districts = config.world.other_districts.iter().copied();
        let home = config.world.district;
        let others = districts.filter(|district| *district != home);
        Ok(Self { home: world(home)?, others: others.map(world).collect::<Result<_>>()? })
    }

    /// A single world.
    pub(super) fn of_one(world: World) -> Self {
        Self { home: (0, Mutex::new(world)), others: Vec::new() }
    }

    /// The world of a district, or the first world if none has that district.
    pub fn of(&self, district: u32) -> MutexGuard<'_, World> {
        let found = self.others.iter().find(|(one, _)| *one == district);
        lock(&found.unwrap_or(&self.home).1)
    }

    /// Whether a district has a world.
    #[must_use]
    pub fn has(&self, district: u32) -> bool {
        self.home.0 == district || self.others.iter().any(|(one, _)| *one == district)
    }

    /// All worlds, one after the other.
    pub fn all(&self) -> impl Iterator<Item = MutexGuard<'_, World>> {
        core::iter::once(&self.home).chain(&self.others).map(|(_, world)| lock(world))
    }

    /// The number of clients in all worlds together.
    #[must_use]
    pub fn players(&self) -> usize {
        self.all().map(|world| world.players()).sum()
    }

    /// Removes a character from all worlds except the one of this district.
    pub(super) fn remove_elsewhere(&self, uid: u64, district: u32) {
        for (_, world) in
            core::iter::once(&self.home).chain(&self.others).filter(|(one, _)| *one != district)
        {
            let mut world = lock(world);
            if let Some(client) = world.client_of(uid) {
                world.leave(client);
            }
        }
    }

    /// Whispers something to the player with this handle, in any world. Returns false if no player
    /// has it. Fails if the client has left.
    pub(super) fn whisper(
        &self,
        district: u32,
        client: ClientId,
        handle: &str,
        text: &str,
    ) -> Result<bool> {
        let message: RpcMessage<'static> = self.of(district).whispered(client, text)?;
        Ok(self.all().any(|mut world| world.deliver(handle, &message)))
    }
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The parameters with which objects are replicated.
fn replication(config: &MxoConfig) -> Config {
    let reach = f64::from(config.world.reach);
    Config {
        enter: reach,
        leave: reach * 1.2,
        tick_bytes: config.world.tick_bytes,
        clients: config.limits.players,
        ..Config::default()
    }
}
