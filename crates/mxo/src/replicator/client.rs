//! One client: its views, what they are to be told, and what became of what was sent.

use std::collections::BTreeSet;
use std::time::Duration;

use super::config::Config;
use super::flight::{Entry, Fate, Flight, Past, What};
use super::layout::{Audience, Mask};
use super::thing::{Place, Viewer, World, distance};
use super::view::{Ids, Listed, NO_ENTRY, View, ViewList, ViewState};
use crate::message::OWN_VIEW;

/// How many bytes a client was sent in sections, without their ids and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// What was sent for the first time.
    pub first: u64,
    /// What was sent again: it was lost, or counted as lost, or an older value may have arrived
    /// behind it.
    pub again: u64,
    /// Sections.
    pub sections: u64,
}

/// No view of that id.
const NO_SLOT: u32 = u32::MAX;
/// The object of a view that was taken out of the world.
const NO_THING: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) generation: u32,
    pub(super) is_alive: bool,
    /// Its place among the clients.
    pub(super) index: u32,
    /// Its character.
    pub(super) own: Option<u32>,
    /// From where it looks when it has no character.
    pub(super) eye: Option<Place>,
    pub(super) views: ViewList,
    pub(super) ids: Ids,
    /// Ids that are not used again yet, and when they are.
    parked: BTreeSet<(Duration, u16)>,
    /// The time of the last tick.
    now: Duration,
    by_id: Vec<u32>,
    /// A bit for every object that it has a view of.
    seen: Vec<u64>,
    pub(super) flight: Flight,
    /// Views to create, to update and to delete; some may not need it any more.
    pub(super) creates: Vec<Listed>,
    pub(super) updates: Vec<Listed>,
    pub(super) deletes: Vec<Listed>,
    /// Objects in reach for which there was no room.
    pub(super) unseen: usize,
    pub(super) plan: Plan,
    pub(super) traffic: Traffic,
    /// What the section that was made last adds to it once it is sent.
    pub(super) made: Traffic,
}

/// How far the lists were worked off in a tick.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan {
    pub(super) tick: u64,
    /// Bytes that are left.
    pub(super) left: usize,
    pub(super) creates: usize,
    pub(super) updates: usize,
    pub(super) deletes: usize,
    /// Whether updates that waited for too long go first in the next section.
    pub(super) is_updates_turn: bool,
}

impl Client {
    pub(super) fn new(index: u32, generation: u32) -> Self {
        Self { index, generation, is_alive: true, ..Self::default() }
    }

    /// From where it looks.
    pub(super) fn eye(&self, world: &World) -> Option<Place> {
        match self.own {
            Some(own) => world.places.get(own as usize).copied(),
            None => self.eye,
        }
    }

    pub(super) fn has_seen(&self, thing: u32) -> bool {
        let word = self.seen.get(thing as usize / 64);
        word.is_some_and(|bits| bits & (1 << (thing % 64)) != 0)
    }

    fn see(&mut self, thing: u32, sees: bool) {
        let word = thing as usize / 64;
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        let bit = 1 << (thing % 64);
        if sees {
            self.seen[word] |= bit;
        } else {
            self.seen[word] &= !bit;
        }
    }

    /// The slot of a view id.
    pub(super) fn slot_of(&self, id: u16) -> Option<u32> {
        self.by_id.get(usize::from(id)).copied().filter(|slot| *slot != NO_SLOT)
    }

    /// Gives a view its id and spawn sequence, unless there is none.
    pub(super) fn name(&mut self, slot: u32) -> bool {
        let is_parked = || self.parked.iter().any(|(_, id)| *id == OWN_VIEW);
        let id = match self.views.at(slot).audience {
            Audience::Own if self.slot_of(OWN_VIEW).is_some() || is_parked() => return false,
            Audience::Own => OWN_VIEW,
            Audience::Other => match self.ids.take() {
                Some(id) => id,
                None => return false,
            },
        };
        let view = self.views.at_mut(slot);
        view.id = id;
        view.seq = self.ids.next_seq(id);
        if self.by_id.len() <= usize::from(id) {
            self.by_id.resize(usize::from(id) + 1, NO_SLOT);
        }
        self.by_id[usize::from(id)] = slot;
        true
    }

    /// An object came into reach.
    pub(super) fn want(&mut self, thing: u32, world: &mut World, config: &Config) {
        if self.has_seen(thing) {
            return;
        }
        let is_own = self.own == Some(thing);
        // The own character always has room.
        if self.views.len() >= config.views && !is_own {
            self.unseen += 1;
            return;
        }
        let slot = self.views.add(thing, Audience::of(is_own), world.tick);
        self.see(thing, true);
        world.things[thing as usize].viewers.push(Viewer { client: self.index, slot });
        let generation = self.views.at(slot).generation;
        self.creates.push(Listed { key: 0, slot, generation });
    }

    /// An object is out of reach, or gone.
    pub(super) fn drop_view(
        &mut self,
        slot: u32,
        is_gone: bool,
        world: &mut World,
        config: &Config,
    ) {
        let view = self.views.at_mut(slot);
        let (thing, state) = (view.thing, view.state);
        let viewers = &mut world.things[thing as usize].viewers;
        let mine = |viewer: &Viewer| viewer.client == self.index && viewer.slot == slot;
        if let Some(at) = viewers.iter().rposition(mine) {
            viewers.swap_remove(at);
        }
        if state == Some(ViewState::Wanted) {
            self.see(thing, false);
            self.views.remove(slot);
            return;
        }
        view.state = Some(ViewState::Deleting);
        (view.dirty, view.again) = (0, 0);
        if is_gone {
            // Another object may have its place at once.
            view.thing = NO_THING;
            self.see(thing, false);
        }
        self.advance(slot, world, config);
    }

    /// Takes a deletion one step further, if it can be.
    fn advance(&mut self, slot: u32, world: &mut World, config: &Config) {
        let view = self.views.at(slot);
        if view.state != Some(ViewState::Deleting) {
            return;
        }
        let is_quiet = view.open == 0 && view.open_deletes == 0;
        if view.is_gone && (config.late.is_none() || is_quiet) {
            self.free(slot, world, config);
        } else if needs_delete(view, config) {
            let generation = view.generation;
            self.deletes.push(Listed { key: 0, slot, generation });
        }
    }

    /// The client does not have the view any more, for certain.
    fn free(&mut self, slot: u32, world: &mut World, config: &Config) {
        let view = self.views.at(slot);
        let (id, thing, given_up) = (view.id, view.thing, view.given_up);
        match given_up.map(|at| at.saturating_add(config.later)) {
            Some(until) if until > self.now => drop(self.parked.insert((until, id))),
            _ => self.ids.release(id),
        }
        if let Some(room) = self.by_id.get_mut(usize::from(id)) {
            *room = NO_SLOT;
        }
        self.views.remove(slot);
        if thing != NO_THING {
            self.see(thing, false);
        }
        if self.reaches(thing, world, config.enter) {
            self.want(thing, world, config);
        }
        // A character that waits for the own view may have it now.
        if let Some(own) = self.own {
            self.want(own, world, config);
        }
    }

    /// Whether an object is there and this close, or its own character.
    pub(super) fn reaches(&self, thing: u32, world: &World, radius: f64) -> bool {
        if !world.things.get(thing as usize).is_some_and(|thing| thing.alive) {
            return false;
        }
        let near = |eye: Place| distance(&eye, &world.places[thing as usize]) <= radius * radius;
        self.own == Some(thing) || self.eye(world).is_some_and(near)
    }

    /// Values of a view changed.
    #[inline]
    pub(super) fn mark(&mut self, slot: u32, fresh: &[Mask; 2], tick: u64) {
        let view = self.views.at_mut(slot);
        let mask = fresh[view.audience.index()];
        // A create will carry them.
        if mask != 0 && view.state != Some(ViewState::Wanted) {
            list(view, slot, mask, false, tick, &mut self.updates);
        }
    }

    /// A section has arrived.
    pub(super) fn deliver(&mut self, section: u64, world: &mut World, config: &Config) {
        let was_open = match self.flight.fate(section) {
            Some(Fate::Open) => true,
            Some(Fate::Lost) => false,
            _ => return,
        };
        self.flight.decide(section, Fate::Delivered);
        for number in self.flight.entries_of(section) {
            let Some(entry) = self.flight.entry(number) else { continue };
            let Some(view) = self.views.same(entry.slot, entry.generation) else { continue };
            match entry.what {
                What::Create => {
                    view.flying_creates -= u16::from(was_open);
                    view.open -= 1;
                    if view.state == Some(ViewState::Creating) {
                        view.state = Some(ViewState::Live);
                    }
                }
                What::Pending(mask) | What::Plain(mask) => {
                    Self::close_update(view, entry.what);
                    if config.late.is_some() {
                        let stamp = self.flight.stamp(section);
                        let stale = stale(&self.flight, view, world, number, mask, stamp);
                        list(view, entry.slot, stale, true, world.tick, &mut self.updates);
                    }
                }
                What::Delete { is_clean } => {
                    view.flying_deletes -= u16::from(was_open);
                    view.open_deletes -= 1;
                    let is_clean = is_clean && number >= view.clean_from;
                    if is_clean || config.late.is_none() {
                        view.is_gone = true;
                    }
                    view.was_heard = true;
                }
            }
            self.advance(entry.slot, world, config);
        }
        self.flight.trim();
    }

    /// A section counts as lost.
    pub(super) fn lose(&mut self, section: u64, world: &mut World, config: &Config) {
        if self.flight.fate(section) != Some(Fate::Open) {
            return;
        }
        self.flight.decide(section, Fate::Lost);
        for number in self.flight.entries_of(section) {
            let Some(entry) = self.flight.entry(number) else { continue };
            let Some(view) = self.views.same(entry.slot, entry.generation) else { continue };
            let (slot, generation) = (entry.slot, entry.generation);
            match entry.what {
                What::Create => {
                    view.flying_creates -= 1;
                    if needs_create(view) {
                        self.creates.push(Listed { key: 0, slot, generation });
                    }
                }
                What::Pending(mask) | What::Plain(mask) => {
                    let newer = self.flight.chain(view.last, Some(number));
                    let mask = newer
                        .filter(|(.., fate, _)| matches!(fate, Fate::Open | Fate::Delivered))
                        .fold(mask, |mask, (_, newer, ..)| mask & !newer.what.mask());
                    list(view, slot, mask, true, world.tick, &mut self.updates);
                }
                What::Delete { .. } => {
                    view.flying_deletes -= 1;
                    self.advance(slot, world, config);
                }
            }
        }
        if config.late.is_none() {
            self.expire(section, world, config);
        }
    }

    /// A lost section can arrive no more.
    fn expire(&mut self, section: u64, world: &mut World, config: &Config) {
        if self.flight.fate(section) != Some(Fate::Lost) {
            return;
        }
        self.flight.decide(section, Fate::Expired);
        if config.late.is_some() {
            self.flight.remember(section, self.now);
        }
        for number in self.flight.entries_of(section) {
            let Some(entry) = self.flight.entry(number) else { continue };
            let Some(view) = self.views.same(entry.slot, entry.generation) else { continue };
            if config.late.is_some() {
                view.given_up = Some(self.now);
            }
            match entry.what {
                What::Create => view.open -= 1,
                What::Pending(mask) | What::Plain(mask) => {
                    Self::close_update(view, entry.what);
                    if config.late.is_some() {
                        let stamp = self.flight.stamp(section);
                        let stale = stale(&self.flight, view, world, number, mask, stamp);
                        list(view, entry.slot, stale, true, world.tick, &mut self.updates);
                    }
                }
                What::Delete { .. } => view.open_deletes -= 1,
            }
            self.advance(entry.slot, world, config);
        }
        self.flight.trim();
    }

    /// The packet of a number has arrived.
    pub(super) fn arrive(&mut self, number: u64, world: &mut World, config: &Config) {
        match self.flight.find(number) {
            Some(section) if self.flight.fate(section) != Some(Fate::Expired) => {
                self.deliver(section, world, config);
            }
            _ => {
                if let Some(past) = self.flight.recall(number) {
                    self.make_up(&past, world, config);
                }
            }
        }
    }

    /// A section arrived that was not expected any more. What it may have undone is told again.
    ///
    /// That is all that follows from it: a deletion since may have made it unreadable, so nothing
    /// in it counts as delivered.
    fn make_up(&mut self, past: &Past, world: &mut World, config: &Config) {
        let next = self.flight.next_entry();
        for entry in &past.entries {
            let Some(view) = self.views.same(entry.slot, entry.generation) else {
                self.make_up_for_gone(entry, world, config);
                continue;
            };
            match entry.what {
                What::Create | What::Pending(_) if view.state == Some(ViewState::Deleting) => {
                    view.soil(next);
                    self.advance(entry.slot, world, config);
                }
                What::Pending(mask) | What::Plain(mask) => {
                    let stale = stale(&self.flight, view, world, NO_ENTRY, mask, past.stamp);
                    list(view, entry.slot, stale, true, world.tick, &mut self.updates);
                }
                What::Create | What::Delete { .. } => {}
            }
        }
    }

    /// Something arrived about a view that is not there any more.
    fn make_up_for_gone(&mut self, entry: &Entry, world: &mut World, config: &Config) {
        let may_be_there = matches!(entry.what, What::Create | What::Pending(_));
        match self.slot_of(entry.id) {
            None if may_be_there => {
                self.parked.retain(|(_, id)| *id != entry.id);
                self.ids.claim(entry.id);
                let audience = Audience::of(entry.id == OWN_VIEW);
                let slot = self.views.add(NO_THING, audience, world.tick);
                self.by_id[usize::from(entry.id)] = slot;
                let view = self.views.at_mut(slot);
                (view.state, view.id) = (Some(ViewState::Deleting), entry.id);
                (view.was_deleted, view.given_up) = (true, Some(self.now));
                self.advance(slot, world, config);
            }
            Some(slot) if self.views.at(slot).state != Some(ViewState::Deleting) => {
                // The next object of the id was changed, replaced or deleted: it comes anew.
                self.drop_view(slot, false, world, config);
            }
            Some(slot) if may_be_there => {
                let next = self.flight.next_entry();
                self.views.at_mut(slot).soil(next);
                self.advance(slot, world, config);
            }
            _ => {}
        }
    }

    /// Whether something that is hardly expected any more could still change what the client has.
    pub(super) fn may_change(&self, world: &World, config: &Config) -> bool {
        let is_near = |past: &&Past| past.at.saturating_add(config.later) > self.now;
        let mut past = self.flight.past().filter(is_near);
        past.any(|past| past.entries.iter().any(|entry| self.could_change(entry, past, world)))
    }

    fn could_change(&self, entry: &Entry, past: &Past, world: &World) -> bool {
        let view = self.views.get(entry.slot, entry.generation);
        match (entry.what, view) {
            (What::Create | What::Pending(_), Some(view))
                if view.state == Some(ViewState::Deleting) =>
            {
                true
            }
            (What::Pending(mask) | What::Plain(mask), Some(view)) => {
                let Some(thing) = world.things.get(view.thing as usize) else { return false };
                let muted = if view.audience == Audience::Own { thing.muted } else { 0 };
                world.changed_since(view.thing, view.audience, mask & !muted, past.stamp) != 0
            }
            (What::Create | What::Delete { .. }, Some(_)) => false,
            (What::Create | What::Pending(_), None) => true,
            (What::Plain(_) | What::Delete { .. }, None) => self.slot_of(entry.id).is_some(),
        }
    }

    fn close_update(view: &mut View, what: What) {
        view.open -= 1;
        view.open_plain -= u16::from(matches!(what, What::Plain(_)));
    }

    /// Sections whose time has come.
    pub(super) fn pass(&mut self, now: Duration, world: &mut World, config: &Config) {
        self.now = now;
        while let Some((until, id)) = self.parked.first().copied()
            && until <= now
        {
            self.parked.pop_first();
            self.ids.release(id);
        }
        while let Some(section) = self.flight.overdue(now, config.give_up) {
            self.lose(section, world, config);
        }
        self.flight.wait_until(now.saturating_add(config.late.unwrap_or_default()));
        while let Some(section) = self.flight.next_expired(now) {
            self.expire(section, world, config);
        }
    }

    /// The section that was made last was never sent.
    pub(super) fn take_back(&mut self, world: &mut World, config: &Config) {
        while let Some(entry) = self.flight.take_back() {
            let Some(view) = self.views.same(entry.slot, entry.generation) else { continue };
            let (slot, generation) = (entry.slot, entry.generation);
            view.last = entry.before;
            match entry.what {
                What::Create => {
                    view.flying_creates -= 1;
                    view.open -= 1;
                    self.creates.push(Listed { key: 0, slot, generation });
                }
                What::Pending(mask) | What::Plain(mask) => {
                    Self::close_update(view, entry.what);
                    list(view, slot, mask, true, world.tick, &mut self.updates);
                }
                What::Delete { .. } => {
                    view.flying_deletes -= 1;
                    view.open_deletes -= 1;
                }
            }
            self.advance(slot, world, config);
        }
    }

    /// Forgets all views, as the client does.
    pub(super) fn reset(&mut self, world: &mut World) {
        for (slot, view) in self.views.iter() {
            if view.state == Some(ViewState::Deleting) {
                continue;
            }
            let viewers = &mut world.things[view.thing as usize].viewers;
            let mine = |viewer: &Viewer| viewer.client == self.index && viewer.slot == slot;
            if let Some(at) = viewers.iter().rposition(mine) {
                viewers.swap_remove(at);
            }
        }
        self.views = ViewList::default();
        self.ids = Ids::default();
        self.parked.clear();
        self.by_id.clear();
        self.seen.clear();
        self.flight.clear();
        self.creates.clear();
        self.updates.clear();
        self.deletes.clear();
        self.unseen = 0;
        self.plan = Plan { tick: self.plan.tick, left: self.plan.left, ..Plan::default() };
    }
}

/// Whether a create has to be sent.
pub(super) fn needs_create(view: &View) -> bool {
    match view.state {
        Some(ViewState::Wanted) => true,
        Some(ViewState::Creating) => view.flying_creates == 0,
        _ => false,
    }
}

/// Whether a deletion has to be sent, and can be.
///
/// A plain update that arrives behind the deletion could not be read, nor what is behind it. So
/// the deletion waits for those. One that may be overtaken by a create is sent again when nothing
/// can overtake it.
pub(super) fn needs_delete(view: &View, config: &Config) -> bool {
    view.state == Some(ViewState::Deleting)
        && !view.is_gone
        && view.flying_deletes == 0
        && (config.late.is_none() || (view.open_plain == 0 && (!view.was_heard || view.open == 0)))
}

/// Puts values in line to be told.
#[inline]
fn list(view: &mut View, slot: u32, mask: Mask, again: bool, tick: u64, updates: &mut Vec<Listed>) {
    if mask == 0 || !matches!(view.state, Some(ViewState::Creating | ViewState::Live)) {
        return;
    }
    if again {
        view.again |= mask & !view.dirty;
    } else {
        view.again &= !mask;
    }
    view.dirty |= mask;
    if !view.is_listed {
        view.is_listed = true;
        view.since = tick;
        updates.push(Listed { key: 0, slot, generation: view.generation });
    }
}

/// What of an update that can arrive no more has changed since. A newer value was sent while it
/// might still arrive, so the client may have the older one. What another old update may yet do
/// the same to is left for that one.
#[cold]
fn stale_of(flight: &Flight, view: &View, world: &World, number: u64, mut stale: Mask) -> Mask {
    for (other, entry, fate, stamp) in flight.chain(view.last, None) {
        let common = stale & entry.what.mask();
        if other != number && common != 0 && matches!(fate, Fate::Open | Fate::Lost) {
            stale &= !world.changed_since(view.thing, view.audience, common, stamp);
        }
    }
    stale
}

#[inline]
fn stale(flight: &Flight, view: &View, world: &World, number: u64, mask: Mask, stamp: u64) -> Mask {
    let mask = mask & !view.dirty;
    if mask == 0 || view.state == Some(ViewState::Deleting) {
        return 0;
    }
    match world.changed_since(view.thing, view.audience, mask, stamp) {
        0 => 0,
        stale => stale_of(flight, view, world, number, stale),
    }
}
