//! Who sees what: objects within a radius of each client.
//!
//! Only what moved is looked at. A grid finds what is near, so that objects far away cost nothing.

use super::client::Client;
use super::config::Config;
use super::layout::Audience;
use super::thing::{Place, World, distance};
use super::view::ViewState;

/// Lists of the grid. Cells share them; what is of another cell is passed over.
const BUCKETS: usize = 4_096;

/// A cell of the plane of x and z.
type Cell = [i64; 2];

/// Things by where they are, in cells that are as wide as the radius.
#[derive(Debug)]
struct Grid {
    width: f64,
    buckets: Vec<Vec<u32>>,
    /// The cell of each, and its place in the bucket.
    at: Vec<Option<(Cell, u32)>>,
}

impl Grid {
    fn new(width: f64) -> Self {
        Self { width, buckets: vec![Vec::new(); BUCKETS], at: Vec::new() }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, as is wanted")]
    fn cell(&self, place: &Place) -> Cell {
        [place[0], place[2]].map(|part| (part / self.width).floor() as i64)
    }

    /// Puts it where it is now; `None` takes it out.
    fn put(&mut self, item: u32, place: Option<&Place>) {
        let index = item as usize;
        if self.at.len() <= index {
            self.at.resize(index + 1, None);
        }
        let cell = place.map(|place| self.cell(place));
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

    /// Appends everything in the cells around a place: all within a cell's width, and more.
    fn near(&self, place: &Place, found: &mut Vec<u32>) {
        let [x, z] = self.cell(place);
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
    // The low bits of the products are mixed best in the middle.
    usize::try_from((mixed >> 8) & (BUCKETS as i64 - 1)).unwrap_or(0)
}

/// A set of numbers that keeps the order in which they came.
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

    /// Moves all of them to a list.
    fn take(&mut self, into: &mut Vec<u32>) {
        into.clear();
        into.append(&mut self.list);
        for item in into {
            self.bits[*item as usize / 64] &= !(1 << (*item % 64));
        }
    }
}

/// Where objects and clients are, and which of them moved since the last tick.
#[derive(Debug)]
pub(super) struct Interest {
    things: Grid,
    eyes: Grid,
    moved: Once,
    moved_clients: Once,
    /// Scratch.
    list: Vec<u32>,
    found: Vec<u32>,
}

impl Interest {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            things: Grid::new(config.enter),
            eyes: Grid::new(config.enter),
            moved: Once::default(),
            moved_clients: Once::default(),
            list: Vec::new(),
            found: Vec::new(),
        }
    }

    /// An object is new or elsewhere.
    pub(super) fn thing_moved(&mut self, thing: u32) {
        self.moved.add(thing);
    }

    pub(super) fn thing_gone(&mut self, thing: u32) {
        self.things.put(thing, None);
    }

    /// A client is new, or looks from elsewhere.
    pub(super) fn client_moved(&mut self, client: u32) {
        self.moved_clients.add(client);
    }

    pub(super) fn client_gone(&mut self, client: u32) {
        self.eyes.put(client, None);
    }

    /// Gives clients the views that they should have.
    pub(super) fn tick(&mut self, clients: &mut [Client], world: &mut World, config: &Config) {
        let mut list = core::mem::take(&mut self.list);
        let mut found = core::mem::take(&mut self.found);
        self.moved.take(&mut list);
        for thing in list.iter().copied() {
            let here = &world.things[thing as usize];
            if here.alive {
                self.things.put(thing, Some(&world.places[thing as usize]));
                if let Some(owner) = here.owner {
                    self.moved_clients.add(owner);
                }
            }
        }
        // Clients move first: what an object meets is where they are now.
        let mut eyes = core::mem::take(&mut self.moved_clients.list);
        for client in eyes.iter().copied() {
            let eye = clients[client as usize].eye(world);
            self.eyes.put(client, eye.as_ref());
        }
        for thing in list.iter().copied() {
            self.meet(thing, clients, world, config, &mut found);
        }
        for client in eyes.iter().copied() {
            self.look(&mut clients[client as usize], world, config, &mut found);
        }
        self.moved_clients.list = core::mem::take(&mut eyes);
        self.moved_clients.take(&mut list);
        self.list = list;
        self.found = found;
    }

    /// An object moved: who sees it?
    fn meet(
        &self,
        thing: u32,
        clients: &mut [Client],
        world: &mut World,
        config: &Config,
        found: &mut Vec<u32>,
    ) {
        if !world.things[thing as usize].alive {
            return;
        }
        let mut at = 0;
        while let Some(viewer) = world.things[thing as usize].viewers.get(at).copied() {
            let client = &mut clients[viewer.client as usize];
            if client.reaches(thing, world, config.leave) {
                at += 1;
            } else {
                client.drop_view(viewer.slot, false, world, config);
            }
        }
        found.clear();
        self.eyes.near(&world.places[thing as usize], found);
        for client in found.iter() {
            let client = &mut clients[*client as usize];
            if client.reaches(thing, world, config.enter) {
                client.want(thing, world, config);
            }
        }
    }

    /// A client moved: what does it see?
    fn look(&self, client: &mut Client, world: &mut World, config: &Config, found: &mut Vec<u32>) {
        if !client.is_alive {
            return;
        }
        for slot in client.views.slots() {
            let view = client.views.at(slot);
            let is_kept = match view.state {
                None | Some(ViewState::Deleting) => true,
                // A character that is the client's no more, or has become it.
                _ if (view.audience == Audience::Own) != (client.own == Some(view.thing)) => false,
                _ => client.reaches(view.thing, world, config.leave),
            };
            if !is_kept {
                client.drop_view(slot, false, world, config);
            }
        }
        client.unseen = 0;
        if let Some(own) = client.own {
            client.want(own, world, config);
        }
        let Some(eye) = client.eye(world) else { return };
        found.clear();
        self.things.near(&eye, found);
        found.retain(|thing| {
            !client.has_seen(*thing) && client.reaches(*thing, world, config.enter)
        });
        let room = config.views.saturating_sub(client.views.len());
        if found.len() > room {
            let key =
                |thing: &u32| (distance(&eye, &world.places[*thing as usize]).to_bits(), *thing);
            found.sort_unstable_by_key(key);
        }
        for thing in found.iter() {
            client.want(*thing, world, config);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::Sampler;

    #[test]
    fn the_grid_finds_all_that_is_near() {
        let mut sampler = Sampler::new(1);
        let mut grid = Grid::new(10.0);
        let mut places = vec![None; 300];
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let mut part = |range: u64| sampler.below(range) as f64 / 7.0 - range as f64 / 14.0;
        for round in 0..3_000_u32 {
            let item = round * 7 % 300;
            let place = (part(100) > -6.0).then(|| [part(900), part(50), part(900)]);
            grid.put(item, place.as_ref());
            places[item as usize] = place;
            let eye = [part(900), 0.0, part(900)];
            let mut found = Vec::new();
            grid.near(&eye, &mut found);
            found.sort_unstable();
            let before = found.len();
            found.dedup();
            assert_eq!(found.len(), before, "nothing twice");
            for (item, place) in (0..).zip(&places) {
                let Some(place) = place else {
                    assert!(!found.contains(&item), "it was taken out");
                    continue;
                };
                if distance(&eye, place) <= 100.0 {
                    assert!(found.contains(&item), "{place:?} from {eye:?}");
                }
            }
            assert!(found.len() < 150, "far away is left out");
        }
        grid.put(1, Some(&[f64::MAX, 0.0, f64::MIN]));
        let mut found = Vec::new();
        grid.near(&[f64::MAX, 0.0, f64::MIN], &mut found);
        assert_eq!(found, [1]);
    }
}
