//! Interest management: which objects are within range of which client.
//!
//! Only objects and clients that have moved are examined, and a grid finds what is near, so distant
//! objects cost nothing.

use super::client::Client;
use super::config::Config;
use super::layout::Audience;
use super::point::{Point, distance};
use super::view::ViewState;
use super::world::World;

/// The number of lists in the grid. Cells share them; entries of other cells are skipped.
const BUCKETS: usize = 4_096;

/// A cell of the x-z plane.
type Cell = [i64; 2];

/// Items by position, in cells as wide as the radius.
#[derive(Debug)]
struct Grid {
    width: f64,
    buckets: Vec<Vec<u32>>,
    /// Each item's cell and its index in the bucket.
    at: Vec<Option<(Cell, u32)>>,
}

impl Grid {
    fn new(width: f64) -> Self {
        Self { width, buckets: vec![Vec::new(); BUCKETS], at: Vec::new() }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, as intended")]
    fn cell(&self, position: &Point) -> Cell {
        [position[0], position[2]].map(|part| (part / self.width).floor() as i64)
    }

    /// Moves an item here, or removes it if `None`.
    fn put(&mut self, item: u32, position: Option<&Point>) {
        let index = item as usize;
        if self.at.len() <= index {
            self.at.resize(index + 1, None);
        }
        let cell = position.map(|position| self.cell(position));
        if let Some((old, position)) = self.at[index] {
            if cell == Some(old) {
                return;
            }
            let bucket = &mut self.buckets[bucket_of(old)];
            bucket.swap_remove(position as usize);
            if let Some(moved) = bucket.get(position as usize)
                && let Some((_, at)) = &mut self.at[*moved as usize]
            {
                *at = position;
            }
        }
        self.at[index] = cell.map(|cell| {
            let bucket = &mut self.buckets[bucket_of(cell)];
            bucket.push(item);
            (cell, u32::try_from(bucket.len() - 1).unwrap_or(u32::MAX))
        });
    }

    /// Appends all items in the cells around a position: everything within a cell's width, and some
    /// items beyond it.
    fn near(&self, position: &Point, found: &mut Vec<u32>) {
        let [x, z] = self.cell(position);
        for cell_x in x.saturating_sub(1)..=x.saturating_add(1) {
            for cell_z in z.saturating_sub(1)..=z.saturating_add(1) {
                let cell = [cell_x, cell_z];
                for item in &self.buckets[bucket_of(cell)] {
                    if matches!(self.at[*item as usize], Some((at, _)) if at == cell) {
                        found.push(*item);
                    }
                }
            }
        }
    }
}

fn bucket_of([x, z]: Cell) -> usize {
    let mixed = x.wrapping_mul(0x9e37_79b1) ^ z.wrapping_mul(0x85eb_ca6b);
    // The middle bits of the products are mixed best.
    usize::try_from((mixed >> 8) & (BUCKETS as i64 - 1)).unwrap_or(0)
}

/// A set of numbers in insertion order.
#[derive(Debug, Default)]
struct Once {
    list: Vec<u32>,
    bits: Vec<u64>,
}

impl Once {
    fn add(&mut self, item: u32) {
        let (word, bit) = (item as usize / 64, 1 << (item % 64));
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        if self.bits[word] & bit == 0 {
            self.bits[word] |= bit;
            self.list.push(item);
        }
    }

    /// Moves all numbers to a list.
    fn take(&mut self, into: &mut Vec<u32>) {
        into.clear();
        into.append(&mut self.list);
        for item in into {
            self.bits[*item as usize / 64] &= !(1 << (*item % 64));
        }
    }
}

/// The positions of objects and clients, and which of them have moved since the last tick.
#[derive(Debug)]
pub(super) struct Interest {
    objects: Grid,
    viewpoints: Grid,
    moved: Once,
    moved_clients: Once,
    /// Reused memory.
    list: Vec<u32>,
    found: Vec<u32>,
}

impl Interest {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            objects: Grid::new(config.enter),
            viewpoints: Grid::new(config.enter),
            moved: Once::default(),
            moved_clients: Once::default(),
            list: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Records that an object is new or has moved.
    pub(super) fn object_moved(&mut self, object: u32) {
        self.moved.add(object);
    }

    pub(super) fn thing_gone(&mut self, object: u32) {
        self.objects.put(object, None);
    }

    /// Records that a client is new, or that its viewpoint has moved.
    pub(super) fn client_moved(&mut self, client: u32) {
        self.moved_clients.add(client);
    }

    pub(super) fn client_gone(&mut self, client: u32) {
        self.viewpoints.put(client, None);
    }

    /// Creates and drops views as positions require.
    pub(super) fn tick(&mut self, clients: &mut [Client], world: &mut World, config: &Config) {
        let mut list = core::mem::take(&mut self.list);
        let mut found = core::mem::take(&mut self.found);
        self.moved.take(&mut list);
        for object in list.iter().copied() {
            let here = &world.objects[object as usize];
            if here.alive {
                self.objects.put(object, Some(&world.positions[object as usize]));
                if let Some(owner) = here.owner {
                    self.moved_clients.add(owner);
                }
            }
        }
        // Move the clients first, so that objects meet their current positions.
        let mut moved = core::mem::take(&mut self.moved_clients.list);
        for client in moved.iter().copied() {
            let viewpoint = clients[client as usize].viewpoint(world);
            self.viewpoints.put(client, viewpoint.as_ref());
        }
        for object in list.iter().copied() {
            self.update_viewers(object, clients, world, config, &mut found);
        }
        for client in moved.iter().copied() {
            self.update_views(&mut clients[client as usize], world, config, &mut found);
        }
        self.moved_clients.list = core::mem::take(&mut moved);
        self.moved_clients.take(&mut list);
        self.list = list;
        self.found = found;
    }

    /// Finds the clients that see an object that has moved.
    fn update_viewers(
        &self,
        object: u32,
        clients: &mut [Client],
        world: &mut World,
        config: &Config,
        found: &mut Vec<u32>,
    ) {
        if !world.objects[object as usize].alive {
            return;
        }
        let mut at = 0;
        while let Some(viewer) = world.objects[object as usize].viewers.get(at).copied() {
            let client = &mut clients[viewer.client as usize];
            if client.reaches(object, world, config.leave) {
                at += 1;
            } else {
                client.drop_view(viewer.slot, false, world, config);
            }
        }
        found.clear();
        self.viewpoints.near(&world.positions[object as usize], found);
        for client in found.iter() {
            let client = &mut clients[*client as usize];
            if client.reaches(object, world, config.enter) {
                client.request_view(object, world, config);
            }
        }
    }

    /// Finds the objects that a client sees after it has moved.
    fn update_views(
        &self,
        client: &mut Client,
        world: &mut World,
        config: &Config,
        found: &mut Vec<u32>,
    ) {
        if !client.is_alive {
            return;
        }
        for slot in client.views.slots() {
            let view = client.views.at(slot);
            let is_kept = match view.state {
                None | Some(ViewState::Deleting) => true,
                // The object has become the client's character or has stopped being it.
                _ if (view.audience == Audience::Own) != (client.own == Some(view.object)) => false,
                _ => client.reaches(view.object, world, config.leave),
            };
            if !is_kept {
                client.drop_view(slot, false, world, config);
            }
        }
        client.left_out = 0;
        if let Some(own) = client.own {
            client.request_view(own, world, config);
        }
        let Some(viewpoint) = client.viewpoint(world) else { return };
        found.clear();
        self.objects.near(&viewpoint, found);
        found.retain(|object| {
            !client.has_view(*object) && client.reaches(*object, world, config.enter)
        });
        let room = config.views.saturating_sub(client.views.len());
        if found.len() > room {
            let key = |object: &u32| {
                (distance(&viewpoint, &world.positions[*object as usize]).to_bits(), *object)
            };
            found.sort_unstable_by_key(key);
        }
        for object in found.iter() {
            client.request_view(*object, world, config);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::Sampler;

    #[test]
    fn the_grid_finds_everything_near() {
        let mut sampler = Sampler::new(1);
        let mut grid = Grid::new(10.0);
        let mut positions = vec![None; 300];
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let mut part = |range: u64| sampler.below(range) as f64 / 7.0 - range as f64 / 14.0;
        for round in 0..3_000_u32 {
            let item = round * 7 % 300;
            let position = (part(100) > -6.0).then(|| [part(900), part(50), part(900)]);
            grid.put(item, position.as_ref());
            positions[item as usize] = position;
            let viewpoint = [part(900), 0.0, part(900)];
            let mut found = Vec::new();
            grid.near(&viewpoint, &mut found);
            found.sort_unstable();
            let before = found.len();
            found.dedup();
            assert_eq!(found.len(), before, "found twice");
            for (item, position) in (0..).zip(&positions) {
                let Some(position) = position else {
                    assert!(!found.contains(&item), "found after its removal");
                    continue;
                };
                if distance(&viewpoint, position) <= 100.0 {
                    assert!(found.contains(&item), "{position:?} from {viewpoint:?}");
                }
            }
            assert!(found.len() < 150, "found items that are far away");
        }
        grid.put(1, Some(&[f64::MAX, 0.0, f64::MIN]));
        let mut found = Vec::new();
        grid.near(&[f64::MAX, 0.0, f64::MIN], &mut found);
        assert_eq!(found, [1]);
    }
}
