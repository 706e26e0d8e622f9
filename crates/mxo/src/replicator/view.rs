//! A client's views: their states, IDs and spawn sequences.

use std::time::Duration;

use super::layout::{Audience, Mask};
use crate::message::{FIRST_VIEW, OWN_VIEW};

/// The state of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewState {
    /// Its create has not been sent; it has no ID yet.
    Wanted,
    /// Its create is unacknowledged: updates are sent as pending updates.
    Creating,
    /// The client has it.
    Live,
    /// It must be deleted, or its deletion is unacknowledged.
    Deleting,
}

/// No log entry.
pub(super) const NO_ENTRY: u64 = u64::MAX;

/// A view. Section counts refer to this client's log.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Increases when the slot is reused for another view.
    pub(super) generation: u32,
    /// `None` for a free slot.
    pub(super) state: Option<ViewState>,
    /// The object. If the object is removed while the view is being deleted, an index beyond all
    /// others.
    pub(super) object: u32,
    /// 0 until the create is sent.
    pub(super) id: u16,
    pub(super) seq: u8,
    pub(super) audience: Audience,
    /// The values still to be sent.
    pub(super) dirty: Mask,
    /// The values among these that are being resent.
    pub(super) again: Mask,
    /// The tick at which the view began to wait.
    pub(super) since: u64,
    /// Whether the view is in the client's list of views to update.
    pub(super) is_listed: bool,
    /// The last log entry about this view.
    pub(super) last: u64,
    /// The number of unacknowledged creates.
    pub(super) unacked_creates: u16,
    /// The number of unacknowledged deletions.
    pub(super) unacked_deletes: u16,
    /// The number of sections that may still arrive, other than deletions.
    pub(super) open: u16,
    /// The number of these sections that contain plain updates.
    pub(super) open_plain: u16,
    /// The number of deletions that may still arrive.
    pub(super) open_deletes: u16,
    /// Whether a deletion was sent.
    pub(super) was_deleted: bool,
    /// Whether a deletion has arrived, although something that was sent before it may still arrive.
    pub(super) delete_arrived: bool,
    /// Whether the client certainly does not have the view, whatever may still arrive.
    pub(super) is_gone: bool,
    /// Deletions before this entry may have been overtaken by something late.
    pub(super) clean_from: u64,
    /// When a section about the view was last given up.
    pub(super) given_up: Option<Duration>,
}

impl View {
    /// Records that a late arrival may have brought back a view that a deletion had removed.
    pub(super) fn mark_unclean(&mut self, next_entry: u64) {
        self.is_gone = false;
        self.clean_from = next_entry;
    }
}

/// An entry of a list; the view may no longer belong there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// The sort key.
    pub(super) key: u64,
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// A client's views in a flat list with free slots.
#[derive(Debug, Default)]
pub(super) struct ViewList {
    list: Vec<View>,
    free: Vec<u32>,
}

impl ViewList {
    /// The number of used slots.
    pub(super) fn len(&self) -> usize {
        self.list.len() - self.free.len()
    }

    pub(super) fn add(&mut self, object: u32, audience: Audience, tick: u64) -> u32 {
        let state = Some(ViewState::Wanted);
        let (since, last) = (tick, NO_ENTRY);
        let view = View { state, object, audience, since, last, ..View::default() };
        if let Some(slot) = self.free.pop() {
            let old = &mut self.list[slot as usize];
            *old = View { generation: old.generation, ..view };
            return slot;
        }
        self.list.push(view);
        u32::try_from(self.list.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let view = &mut self.list[slot as usize];
        view.state = None;
        view.generation = view.generation.wrapping_add(1);
        self.free.push(slot);
    }

    #[inline]
    pub(super) fn at(&self, slot: u32) -> &View {
        &self.list[slot as usize]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, slot: u32) -> &mut View {
        &mut self.list[slot as usize]
    }

    /// The view of an entry, if the slot still holds the same one.
    #[inline]
    pub(super) fn same(&mut self, slot: u32, generation: u32) -> Option<&mut View> {
        let view = self.list.get_mut(slot as usize)?;
        (view.generation == generation && view.state.is_some()).then_some(view)
    }

    /// Like [`same`](Self::same), for reading.
    pub(super) fn get(&self, slot: u32, generation: u32) -> Option<&View> {
        let view = self.list.get(slot as usize)?;
        (view.generation == generation && view.state.is_some()).then_some(view)
    }

    /// All views with their slots, in slot order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &View)> {
        (0..).zip(&self.list).filter(|(_, view)| view.state.is_some())
    }

    pub(super) fn slots(&self) -> core::ops::Range<u32> {
        0..u32::try_from(self.list.len()).unwrap_or(u32::MAX)
    }
}

/// The view IDs in use and the last spawn sequence of each.
#[derive(Debug)]
pub(super) struct Ids {
    taken: Vec<u64>,
    /// No ID below this is free.
    least: usize,
    last_seq: Vec<u8>,
    seq: u8,
}

impl Default for Ids {
    fn default() -> Self {
        // 0, 1 and the client's own view are never assigned.
        Self { taken: vec![0b111], least: FIRST_VIEW.into(), last_seq: Vec::new(), seq: 0 }
    }
}

impl Ids {
    /// Assigns the lowest free ID.
    pub(super) fn take(&mut self) -> Option<u16> {
        let mut word = self.least / 64;
        while self.taken.get(word).is_some_and(|bits| *bits == u64::MAX) {
            word += 1;
        }
        if word == self.taken.len() {
            self.taken.push(0);
        }
        let id = word * 64 + self.taken[word].trailing_ones() as usize;
        let found = u16::try_from(id).ok()?;
        self.taken[word] |= 1 << (id % 64);
        self.least = id + 1;
        Some(found)
    }

    /// Assigns a given ID, which may already be in use.
    pub(super) fn claim(&mut self, id: u16) {
        let id = usize::from(id);
        if let Some(word) = self.taken.get_mut(id / 64) {
            *word |= 1 << (id % 64);
        }
    }

    pub(super) fn release(&mut self, id: u16) {
        if id == OWN_VIEW {
            return;
        }
        let id = usize::from(id);
        if let Some(word) = self.taken.get_mut(id / 64) {
            *word &= !(1 << (id % 64));
            self.least = self.least.min(id);
        }
    }

    /// The spawn sequence of the next object with an ID: never 0, and never the same as the
    /// previous one.
    pub(super) fn next_seq(&mut self, id: u16) -> u8 {
        let id = usize::from(id);
        if self.last_seq.len() <= id {
            self.last_seq.resize(id + 1, 0);
        }
        loop {
            self.seq = self.seq.wrapping_add(1);
            if self.seq != 0 && self.seq != self.last_seq[id] {
                self.last_seq[id] = self.seq;
                return self.seq;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_id_is_assigned() {
        let mut ids = Ids::default();
        assert_eq!(
            (0..200).map(|_| ids.take().unwrap()).collect::<Vec<_>>(),
            Vec::from_iter(3..203)
        );
        for id in [150, 7, 64, OWN_VIEW] {
            ids.release(id);
        }
        assert_eq!([(); 4].map(|()| ids.take().unwrap()), [7, 64, 150, 203]);
        let rest = core::iter::from_fn(|| ids.take()).count();
        assert_eq!(rest, 65_536 - 204);
        ids.release(65_535);
        assert_eq!((ids.take(), ids.take()), (Some(65_535), None));
    }

    #[test]
    fn spawn_sequences_differ_from_the_previous_one() {
        let mut ids = Ids::default();
        assert_eq!([3, 4, 3].map(|id| ids.next_seq(id)), [1, 2, 3]);
        for _ in 0..252 {
            ids.next_seq(9);
        }
        // The counter reaches the last sequence of view 3 and skips it.
        assert_eq!([10, 11, 3].map(|id| ids.next_seq(id)), [1, 2, 4]);
    }
}
