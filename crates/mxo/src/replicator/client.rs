//! One client: its views, the updates they need, and the outcome of what was sent.

use std::collections::BTreeSet;
use std::time::Duration;

use super::config::Config;
use super::layout::{Audience, Mask};
use super::point::{Point, distance};
use super::send_log::{Content, Entry, GivenUp, Outcome, SendLog};
use super::view::{Ids, Listed, NO_ENTRY, View, ViewList, ViewState};
use super::world::{Viewer, World};
use crate::message::OWN_VIEW;

/// The number of bytes sent to a client in sections, without their IDs and end markers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes sent for the first time.
    pub first: u64,
    /// Bytes sent again because they were lost or considered lost, or because an older value may
    /// have arrived after them.
    pub again: u64,
    /// The number of sections.
    pub sections: u64,
}

/// No view uses the ID.
const NO_SLOT: u32 = u32::MAX;
/// The object of a view that was removed from the world.
const NO_OBJECT: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) generation: u32,
    pub(super) is_alive: bool,
    /// The client's index among all clients.
    pub(super) index: u32,
    /// The client's own character.
    pub(super) own: Option<u32>,
    /// The client's viewpoint while it has no character.
    pub(super) viewpoint: Option<Point>,
    pub(super) views: ViewList,
    pub(super) ids: Ids,
    /// IDs that cannot be reused yet, with the time from which they can.
    parked: BTreeSet<(Duration, u16)>,
    /// The time of the last tick.
    now: Duration,
    by_id: Vec<u32>,
    /// A bit for every object of which the client has a view.
    viewed: Vec<u64>,
    pub(super) log: SendLog,
    /// Views to create, update and delete. Some entries may be obsolete.
    pub(super) creates: Vec<Listed>,
    pub(super) updates: Vec<Listed>,
    pub(super) deletes: Vec<Listed>,
    /// The number of objects in range that exceeded the limit on views.
    pub(super) left_out: usize,
    pub(super) plan: Plan,
    pub(super) traffic: Traffic,
    /// The bytes that the pending section adds to `traffic` once it is sent.
    pub(super) made: Traffic,
}

/// The progress of a tick through the lists.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan {
    pub(super) tick: u64,
    /// The number of bytes that may still be sent to the client in this tick.
    pub(super) left: usize,
    pub(super) creates: usize,
    pub(super) updates: usize,
    pub(super) deletes: usize,
    /// Whether overdue updates go first in the next section.
    pub(super) is_updates_turn: bool,
}

impl Client {
    pub(super) fn new(index: u32, generation: u32) -> Self {
        Self { index, generation, is_alive: true, ..Self::default() }
    }

    /// The client's viewpoint.
    pub(super) fn viewpoint(&self, world: &World) -> Option<Point> {
        match self.own {
            Some(own) => world.positions.get(own as usize).copied(),
            None => self.viewpoint,
        }
    }

    pub(super) fn has_view(&self, object: u32) -> bool {
        let word = self.viewed.get(object as usize / 64);
        word.is_some_and(|bits| bits & (1 << (object % 64)) != 0)
    }

    fn set_viewed(&mut self, object: u32, sees: bool) {
        let word = object as usize / 64;
        if self.viewed.len() <= word {
            self.viewed.resize(word + 1, 0);
        }
        let bit = 1 << (object % 64);
        if sees {
            self.viewed[word] |= bit;
        } else {
            self.viewed[word] &= !bit;
        }
    }

    /// The slot of a view ID.
    pub(super) fn slot_of(&self, id: u16) -> Option<u32> {
        self.by_id.get(usize::from(id)).copied().filter(|slot| *slot != NO_SLOT)
    }

    /// Assigns an ID and a spawn sequence to a view, if an ID is free.
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

    /// Handles an object that came into range.
    pub(super) fn request_view(&mut self, object: u32, world: &mut World, config: &Config) {
        if self.has_view(object) {
            return;
        }
        let is_own = self.own == Some(object);
        // There is always room for the client's own character.
        if self.views.len() >= config.views && !is_own {
            self.left_out += 1;
            return;
        }
        let slot = self.views.add(object, Audience::of(is_own), world.tick);
        self.set_viewed(object, true);
        world.objects[object as usize].viewers.push(Viewer { client: self.index, slot });
        let generation = self.views.at(slot).generation;
        self.creates.push(Listed { key: 0, slot, generation });
    }

    /// Handles an object that left the range or the world.
    pub(super) fn drop_view(
        &mut self,
        slot: u32,
        is_gone: bool,
        world: &mut World,
        config: &Config,
    ) {
        let view = self.views.at_mut(slot);
        let (object, state) = (view.object, view.state);
        let viewers = &mut world.objects[object as usize].viewers;
        let mine = |viewer: &Viewer| viewer.client == self.index && viewer.slot == slot;
        if let Some(at) = viewers.iter().rposition(mine) {
            viewers.swap_remove(at);
        }
        if state == Some(ViewState::Wanted) {
            self.set_viewed(object, false);
            self.views.remove(slot);
            return;
        }
        view.state = Some(ViewState::Deleting);
        (view.dirty, view.again) = (0, 0);
        if is_gone {
            // Another object may reuse the index immediately.
            view.object = NO_OBJECT;
            self.set_viewed(object, false);
        }
        self.advance(slot, world, config);
    }

    /// Advances a deletion, if possible.
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

    /// Frees the slot of a view that the client is known to have deleted.
    fn free(&mut self, slot: u32, world: &mut World, config: &Config) {
        let view = self.views.at(slot);
        let (id, object, given_up) = (view.id, view.object, view.given_up);
        match given_up.map(|at| at.saturating_add(config.later)) {
            Some(until) if until > self.now => drop(self.parked.insert((until, id))),
            _ => self.ids.release(id),
        }
        if let Some(room) = self.by_id.get_mut(usize::from(id)) {
            *room = NO_SLOT;
        }
        self.views.remove(slot);
        if object != NO_OBJECT {
            self.set_viewed(object, false);
        }
        if self.reaches(object, world, config.enter) {
            self.request_view(object, world, config);
        }
        // A character that is waiting for the client's own view can have it now.
        if let Some(own) = self.own {
            self.request_view(own, world, config);
        }
    }

    /// Whether an object exists and either is this close or is the client's own character.
    pub(super) fn reaches(&self, object: u32, world: &World, radius: f64) -> bool {
        if !world.objects.get(object as usize).is_some_and(|object| object.alive) {
            return false;
        }
        let near = |viewpoint: Point| {
            distance(&viewpoint, &world.positions[object as usize]) <= radius * radius
        };
        self.own == Some(object) || self.viewpoint(world).is_some_and(near)
    }

    /// Marks values of a view as changed.
    #[inline]
    pub(super) fn mark(&mut self, slot: u32, fresh: &[Mask; 2], tick: u64) {
        let view = self.views.at_mut(slot);
        let mask = fresh[view.audience.index()];
        // A create will contain them.
        if mask != 0 && view.state != Some(ViewState::Wanted) {
            list(view, slot, mask, false, tick, &mut self.updates);
        }
    }

    /// Handles the arrival of a section.
    pub(super) fn deliver(&mut self, section: u64, world: &mut World, config: &Config) {
        let was_open = match self.log.outcome(section) {
            Some(Outcome::Open) => true,
            Some(Outcome::Lost) => false,
            _ => return,
        };
        self.log.decide(section, Outcome::Delivered);
        for number in self.log.entries_of(section) {
            let Some(entry) = self.log.entry(number) else { continue };
            let Some(view) = self.views.same(entry.slot, entry.generation) else { continue };
            match entry.content {
                Content::Create => {
                    view.unacked_creates -= u16::from(was_open);
                    view.open -= 1;
                    if view.state == Some(ViewState::Creating) {
                        view.state = Some(ViewState::Live);
                    }
                }
                Content::Pending(mask) | Content::Plain(mask) => {
                    Self::close_update(view, entry.content);
                    if config.late.is_some() {
                        let stamp = self.log.stamp(section);
                        let stale = stale(&self.log, view, world, number, mask, stamp);
                        list(view, entry.slot, stale, true, world.tick, &mut self.updates);
                    }
                }
                Content::Delete { is_clean } => {
                    view.unacked_deletes -= u16::from(was_open);
                    view.open_deletes -= 1;
                    let is_clean = is_clean && number >= view.clean_from;
                    if is_clean || config.late.is_none() {
                        view.is_gone = true;
                    }
                    view.delete_arrived = true;
                }
            }
            self.advance(entry.slot, world, config);
        }
        self.log.trim();
    }

    /// Handles a section that is considered lost.
    pub(super) fn lose(&mut self, section: u64, world: &mut World, config: &Config) {
        if self.log.outcome(section) != Some(Outcome::Open) {
            return;
        }
        self.log.decide(section, Outcome::Lost);
        for number in self.log.entries_of(section) {
            let Some(entry) = self.log.entry(number) else { continue };
            let Some(view) = self.views.same(entry.slot, entry.generation) else { continue };
            let (slot, generation) = (entry.slot, entry.generation);
            match entry.content {
                Content::Create => {
                    view.unacked_creates -= 1;
                    if needs_create(view) {
                        self.creates.push(Listed { key: 0, slot, generation });
                    }
                }
                Content::Pending(mask) | Content::Plain(mask) => {
                    let newer = self.log.chain(view.last, Some(number));
                    let mask = newer
                        .filter(|(.., outcome, _)| {
                            matches!(outcome, Outcome::Open | Outcome::Delivered)
                        })
                        .fold(mask, |mask, (_, newer, ..)| mask & !newer.content.mask());
                    list(view, slot, mask, true, world.tick, &mut self.updates);
                }
                Content::Delete { .. } => {
                    view.unacked_deletes -= 1;
                    self.advance(slot, world, config);
                }
            }
        }
        if config.late.is_none() {
            self.expire(section, world, config);
        }
    }

    /// Handles a lost section that can no longer arrive.
    fn expire(&mut self, section: u64, world: &mut World, config: &Config) {
        if self.log.outcome(section) != Some(Outcome::Lost) {
            return;
        }
        self.log.decide(section, Outcome::Expired);
        if config.late.is_some() {
            self.log.remember(section, self.now);
        }
        for number in self.log.entries_of(section) {
            let Some(entry) = self.log.entry(number) else { continue };
            let Some(view) = self.views.same(entry.slot, entry.generation) else { continue };
            if config.late.is_some() {
                view.given_up = Some(self.now);
            }
            match entry.content {
                Content::Create => view.open -= 1,
                Content::Pending(mask) | Content::Plain(mask) => {
                    Self::close_update(view, entry.content);
                    if config.late.is_some() {
                        let stamp = self.log.stamp(section);
                        let stale = stale(&self.log, view, world, number, mask, stamp);
                        list(view, entry.slot, stale, true, world.tick, &mut self.updates);
                    }
                }
                Content::Delete { .. } => view.open_deletes -= 1,
            }
            self.advance(entry.slot, world, config);
        }
        self.log.trim();
    }

    /// Handles the arrival of a packet.
    pub(super) fn arrive(&mut self, number: u64, world: &mut World, config: &Config) {
        match self.log.find(number) {
            Some(section) if self.log.outcome(section) != Some(Outcome::Expired) => {
                self.deliver(section, world, config);
            }
            _ => {
                if let Some(past) = self.log.recall(number) {
                    self.resend(&past, world, config);
                }
            }
        }
    }

    /// An expired section has arrived after all. Resends the changes that it may have undone.
    ///
    /// Its arrival proves nothing else: a later deletion may have made it unreadable, so none of
    /// its contents count as delivered.
    fn resend(&mut self, past: &GivenUp, world: &mut World, config: &Config) {
        let next = self.log.next_entry();
        for entry in &past.entries {
            let Some(view) = self.views.same(entry.slot, entry.generation) else {
                self.resend_to_gone(entry, world, config);
                continue;
            };
            match entry.content {
                Content::Create | Content::Pending(_)
                    if view.state == Some(ViewState::Deleting) =>
                {
                    view.mark_unclean(next);
                    self.advance(entry.slot, world, config);
                }
                Content::Pending(mask) | Content::Plain(mask) => {
                    let stale = stale(&self.log, view, world, NO_ENTRY, mask, past.stamp);
                    list(view, entry.slot, stale, true, world.tick, &mut self.updates);
                }
                Content::Create | Content::Delete { .. } => {}
            }
        }
    }

    /// Handles the late arrival of something about a view that no longer exists.
    fn resend_to_gone(&mut self, entry: &Entry, world: &mut World, config: &Config) {
        let may_be_there = matches!(entry.content, Content::Create | Content::Pending(_));
        match self.slot_of(entry.id) {
            None if may_be_there => {
                self.parked.retain(|(_, id)| *id != entry.id);
                self.ids.claim(entry.id);
                let audience = Audience::of(entry.id == OWN_VIEW);
                let slot = self.views.add(NO_OBJECT, audience, world.tick);
                self.by_id[usize::from(entry.id)] = slot;
                let view = self.views.at_mut(slot);
                (view.state, view.id) = (Some(ViewState::Deleting), entry.id);
                (view.was_deleted, view.given_up) = (true, Some(self.now));
                self.advance(slot, world, config);
            }
            Some(slot) if self.views.at(slot).state != Some(ViewState::Deleting) => {
                // The ID's next object was changed, replaced or deleted, so create it again.
                self.drop_view(slot, false, world, config);
            }
            Some(slot) if may_be_there => {
                let next = self.log.next_entry();
                self.views.at_mut(slot).mark_unclean(next);
                self.advance(slot, world, config);
            }
            _ => {}
        }
    }

    /// Whether an expired section could still change the client's state.
    pub(super) fn may_change(&self, world: &World, config: &Config) -> bool {
        let is_near = |past: &&GivenUp| past.at.saturating_add(config.later) > self.now;
        let mut past = self.log.past().filter(is_near);
        past.any(|past| past.entries.iter().any(|entry| self.could_change(entry, past, world)))
    }

    fn could_change(&self, entry: &Entry, past: &GivenUp, world: &World) -> bool {
        let view = self.views.get(entry.slot, entry.generation);
        match (entry.content, view) {
            (Content::Create | Content::Pending(_), Some(view))
                if view.state == Some(ViewState::Deleting) =>
            {
                true
            }
            (Content::Pending(mask) | Content::Plain(mask), Some(view)) => {
                let Some(object) = world.objects.get(view.object as usize) else { return false };
                let muted = if view.audience == Audience::Own { object.muted } else { 0 };
                world.changed_since(view.object, view.audience, mask & !muted, past.stamp) != 0
            }
            (Content::Create | Content::Delete { .. }, Some(_)) => false,
            (Content::Create | Content::Pending(_), None) => true,
            (Content::Plain(_) | Content::Delete { .. }, None) => self.slot_of(entry.id).is_some(),
        }
    }

    fn close_update(view: &mut View, content: Content) {
        view.open -= 1;
        view.open_plain -= u16::from(matches!(content, Content::Plain(_)));
    }

    /// Handles expired sections.
    pub(super) fn handle_timeouts(&mut self, now: Duration, world: &mut World, config: &Config) {
        self.now = now;
        while let Some((until, id)) = self.parked.first().copied()
            && until <= now
        {
            self.parked.pop_first();
            self.ids.release(id);
        }
        while let Some(section) = self.log.overdue(now, config.give_up) {
            self.lose(section, world, config);
        }
        self.log.wait_until(now.saturating_add(config.late.unwrap_or_default()));
        while let Some(section) = self.log.next_expired(now) {
            self.expire(section, world, config);
        }
    }

    /// Takes back the pending section, which was never sent.
    pub(super) fn take_back(&mut self, world: &mut World, config: &Config) {
        while let Some(entry) = self.log.take_back() {
            let Some(view) = self.views.same(entry.slot, entry.generation) else { continue };
            let (slot, generation) = (entry.slot, entry.generation);
            view.last = entry.before;
            match entry.content {
                Content::Create => {
                    view.unacked_creates -= 1;
                    view.open -= 1;
                    self.creates.push(Listed { key: 0, slot, generation });
                }
                Content::Pending(mask) | Content::Plain(mask) => {
                    Self::close_update(view, entry.content);
                    list(view, slot, mask, true, world.tick, &mut self.updates);
                }
                Content::Delete { .. } => {
                    view.unacked_deletes -= 1;
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
            let viewers = &mut world.objects[view.object as usize].viewers;
            let mine = |viewer: &Viewer| viewer.client == self.index && viewer.slot == slot;
            if let Some(at) = viewers.iter().rposition(mine) {
                viewers.swap_remove(at);
            }
        }
        self.views = ViewList::default();
        self.ids = Ids::default();
        self.parked.clear();
        self.by_id.clear();
        self.viewed.clear();
        self.log.clear();
        self.creates.clear();
        self.updates.clear();
        self.deletes.clear();
        self.left_out = 0;
        self.plan = Plan { tick: self.plan.tick, left: self.plan.left, ..Plan::default() };
    }
}

/// Whether a create must be sent.
pub(super) fn needs_create(view: &View) -> bool {
    match view.state {
        Some(ViewState::Wanted) => true,
        Some(ViewState::Creating) => view.unacked_creates == 0,
        _ => false,
    }
}

/// Whether a deletion must and can be sent.
///
/// A plain update that arrives after the deletion is unreadable, as is everything after it, so the
/// deletion waits until no plain update can still arrive. A deletion that a create may overtake is
/// sent again once nothing can overtake it.
pub(super) fn needs_delete(view: &View, config: &Config) -> bool {
    view.state == Some(ViewState::Deleting)
        && !view.is_gone
        && view.unacked_deletes == 0
        && (config.late.is_none()
            || (view.open_plain == 0 && (!view.delete_arrived || view.open == 0)))
}

/// Queues values to be sent.
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

/// The parts of an expired update that have changed since. A newer value was sent while the update
/// might still arrive, so the client may now have the older one. Values that another old update may
/// still overwrite are handled when that one expires.
#[cold]
fn stale_of(log: &SendLog, view: &View, world: &World, number: u64, mut stale: Mask) -> Mask {
    for (other, entry, outcome, stamp) in log.chain(view.last, None) {
        let common = stale & entry.content.mask();
        if other != number && common != 0 && matches!(outcome, Outcome::Open | Outcome::Lost) {
            stale &= !world.changed_since(view.object, view.audience, common, stamp);
        }
    }
    stale
}

#[inline]
fn stale(log: &SendLog, view: &View, world: &World, number: u64, mask: Mask, stamp: u64) -> Mask {
    let mask = mask & !view.dirty;
    if mask == 0 || view.state == Some(ViewState::Deleting) {
        return 0;
    }
    match world.changed_since(view.object, view.audience, mask, stamp) {
        0 => 0,
        stale => stale_of(log, view, world, number, stale),
    }
}
