//! Composes the next section for a client.
//!
//! Deletions come first, then creates (nearest first), then updates. Waiting time and distance
//! decide which are included.

use core::mem::take;
use std::time::Duration;

use worldwire_core::{Result, Writer};

use super::client::{Client, Plan, needs_create, needs_delete};
use super::config::Config;
use super::layout::{Audience, Mask, bits};
use super::point::{Point, distance};
use super::send_log::Content;
use super::view::{Listed, View, ViewList, ViewState};
use super::world::World;
use crate::message::{ADMIN_VIEW, Delete, END, MPM_ID, SectionWriter};

/// The size of a deletion without its view IDs.
const DELETE_FRAME: usize = 5;
/// The size of a pending update without the update inside it.
const PENDING_FRAME: usize = 7;
/// The size of an update without its mask and blocks.
const PLAIN_FRAME: usize = 2;
/// The flags of a pending update.
const PENDING: u8 = 2;
/// The bit in the keys of views that are not overdue.
const BY_DISTANCE: u64 = 1 << 32;

/// Reused memory for composing sections.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    updates: Vec<u8>,
    /// The selected creates: distance and slot.
    creates: Vec<(u64, u32)>,
}

/// Composes sections.
pub(super) struct Composer<'a> {
    pub(super) world: &'a mut World,
    pub(super) config: &'a Config,
    pub(super) scratch: &'a mut Scratch,
    pub(super) now: Duration,
}

impl Composer<'_> {
    /// Appends a client's next section. Returns `false` if it needs none or the tick's budget is
    /// used up.
    pub(super) fn compose(&mut self, client: &mut Client, out: &mut Vec<u8>) -> Result<bool> {
        if client.plan.tick != self.world.tick {
            self.plan(client);
        }
        let plan = &client.plan;
        let is_done = plan.deletes >= client.deletes.len()
            && plan.creates >= client.creates.len()
            && plan.updates >= client.updates.len();
        let room = self.config.packet_bytes.min(plan.left);
        if is_done || room <= SectionWriter::FRAME || client.log.is_full() {
            return Ok(false);
        }
        let start = out.len();
        client.log.begin(self.world.stamp, self.now);
        client.made = super::Traffic { sections: 1, ..Default::default() };
        out.push(MPM_ID);
        let outcome = self.fill(client, room - SectionWriter::FRAME, out);
        let is_empty = out.len() == start + 1;
        if outcome.is_err() || is_empty {
            out.truncate(start);
            client.take_back(self.world, self.config);
            return outcome.map(|()| false);
        }
        out.extend_from_slice(&END.to_le_bytes());
        client.plan.left = client.plan.left.saturating_sub(out.len() - start);
        self.world.stamp += 1;
        Ok(true)
    }

    /// Orders the lists for a tick.
    fn plan(&self, client: &mut Client) {
        client.plan = Plan {
            tick: self.world.tick,
            left: self.config.tick_bytes,
            is_updates_turn: client.plan.is_updates_turn,
            ..Plan::default()
        };
        let viewpoint = client.viewpoint(self.world);
        let key = |view: &View| {
            let waited = self.world.tick.saturating_sub(view.since);
            if waited >= u64::from(self.config.patience) {
                return BY_DISTANCE - 1 - waited.min(BY_DISTANCE - 1);
            }
            // Floats that are not negative have the same order as their bits.
            BY_DISTANCE | u64::from(single(self.far(view, viewpoint)).to_bits())
        };
        let views = &mut client.views;
        reorder(&mut client.creates, views, needs_create, key);
        reorder(&mut client.updates, views, |view| view.dirty != 0, key);
        reorder(&mut client.deletes, views, |view| needs_delete(view, self.config), key);
    }

    /// The square of the distance to a view's object; the client's own character is nearest.
    fn far(&self, view: &View, viewpoint: Option<Point>) -> f64 {
        match (viewpoint, self.world.positions.get(view.object as usize)) {
            _ if view.audience == Audience::Own => 0.0,
            // Always above 0, so that the client's own character is nearer.
            (Some(viewpoint), Some(position)) => {
                distance(&viewpoint, position) + f64::from(f32::MIN_POSITIVE)
            }
            _ => f64::from(f32::MAX),
        }
    }

    fn fill(&mut self, client: &mut Client, mut room: usize, out: &mut Vec<u8>) -> Result<()> {
        self.deletes(client, &mut room, out)?;
        let waiting = client.updates.get(client.plan.updates);
        let is_late = waiting.is_some_and(|listed| listed.key < BY_DISTANCE);
        let updates_first = is_late && client.plan.is_updates_turn;
        client.plan.is_updates_turn = is_late && !updates_first;
        let mut updates = take(&mut self.scratch.updates);
        updates.clear();
        let mut outcome = Ok(());
        if updates_first {
            outcome = self.updates(client, &mut room, &mut updates);
        }
        outcome = outcome.and_then(|()| self.creates(client, &mut room, out));
        if !updates_first {
            outcome = outcome.and_then(|()| self.updates(client, &mut room, &mut updates));
        }
        out.extend_from_slice(&updates);
        self.scratch.updates = updates;
        outcome
    }

    fn deletes(&self, client: &mut Client, room: &mut usize, out: &mut Vec<u8>) -> Result<()> {
        let most = room.saturating_sub(DELETE_FRAME) / 2;
        let mut ids = Vec::new();
        while ids.len() < most
            && let Some(listed) = client.deletes.get(client.plan.deletes).copied()
        {
            client.plan.deletes += 1;
            let Some(view) = client.views.same(listed.slot, listed.generation) else { continue };
            if !needs_delete(view, self.config) {
                continue;
            }
            ids.push(view.id);
            view.unacked_deletes += 1;
            view.open_deletes += 1;
            let content = Content::Delete { is_clean: view.open == 0 };
            view.last = client.log.push(listed.slot, view, content);
            let is_again = core::mem::replace(&mut view.was_deleted, true);
            *if is_again { &mut client.made.again } else { &mut client.made.first } += 2;
        }
        if ids.is_empty() {
            return Ok(());
        }
        let delete = Delete::of(ids);
        *room -= delete.encoded_len();
        client.made.first += DELETE_FRAME as u64;
        let mut writer = Writer::append_to(take(out));
        let outcome = delete.encode(&mut writer);
        *out = writer.into_bytes();
        outcome
    }

    fn creates(&mut self, client: &mut Client, room: &mut usize, out: &mut Vec<u8>) -> Result<()> {
        let viewpoint = client.viewpoint(self.world);
        self.scratch.creates.clear();
        let mut at = client.plan.creates;
        while let Some(listed) = client.creates.get(at).copied() {
            let Some(view) = client.views.same(listed.slot, listed.generation) else {
                at += 1;
                continue;
            };
            if needs_create(view) {
                let length = self.world.create(view.object)?.len();
                if length > *room {
                    break;
                }
                let far = self.far(view, viewpoint).to_bits();
                if view.id != 0 || client.name(listed.slot) {
                    *room -= length;
                    self.scratch.creates.push((far, listed.slot));
                }
            }
            at += 1;
        }
        client.plan.creates = at;
        self.scratch.creates.sort_unstable();
        for (_, slot) in &self.scratch.creates {
            let view = client.views.at_mut(*slot);
            let range = self.world.create(view.object)?;
            let bytes = self.world.encoded(range);
            let start = out.len();
            out.extend_from_slice(bytes);
            // After the view ID, flags and goobj, and the world object's number if there is one.
            let is_of_world = self.world.objects[view.object as usize].world_id.is_some();
            let seq_at = start + if is_of_world { 9 } else { 5 };
            let id_at = out.len() - 3;
            out[seq_at] = view.seq;
            out[id_at..id_at + 2].copy_from_slice(&view.id.to_le_bytes());
            let length = (out.len() - start) as u64;
            if view.state == Some(ViewState::Wanted) {
                view.state = Some(ViewState::Creating);
                client.made.first += length;
                let mask = self.world.beyond_create(view.object, view.audience);
                view.dirty = mask;
                if mask != 0 {
                    view.is_listed = true;
                    view.since = self.world.tick;
                    let (slot, generation) = (*slot, view.generation);
                    client.updates.push(Listed { key: BY_DISTANCE, slot, generation });
                }
            } else {
                client.made.again += length;
            }
            view.unacked_creates += 1;
            view.open += 1;
            view.last = client.log.push(*slot, view, Content::Create);
        }
        Ok(())
    }

    fn updates(&mut self, client: &mut Client, room: &mut usize, out: &mut Vec<u8>) -> Result<()> {
        while let Some(listed) = client.updates.get(client.plan.updates).copied() {
            let Some(view) = client.views.same(listed.slot, listed.generation) else {
                client.plan.updates += 1;
                continue;
            };
            let is_live = match view.state {
                Some(ViewState::Live) => true,
                Some(ViewState::Creating) => false,
                _ => {
                    client.plan.updates += 1;
                    continue;
                }
            };
            if view.audience == Audience::Own {
                view.dirty &= !self.world.objects[view.object as usize].muted;
            }
            if view.dirty == 0 {
                view.is_listed = false;
                client.plan.updates += 1;
                continue;
            }
            let frame = if is_live { PLAIN_FRAME } else { PENDING_FRAME };
            let mut mask = view.dirty;
            let mut range = self.world.update(view.object, view.audience, mask)?;
            while frame + range.len() > self.config.packet_bytes - SectionWriter::FRAME {
                mask = lower_half(mask);
                range = self.world.update(view.object, view.audience, mask)?;
            }
            let length = frame + range.len();
            if length > *room {
                break;
            }
            *room -= length;
            if !is_live {
                out.extend_from_slice(&ADMIN_VIEW.to_le_bytes());
                out.push(PENDING);
                let counted = u16::try_from(range.len() + 4).unwrap_or(u16::MAX);
                out.extend_from_slice(&counted.to_le_bytes());
            }
            out.extend_from_slice(&view.id.to_le_bytes());
            out.extend_from_slice(self.world.encoded(range));
            let again = view.again & mask;
            let repeated = if again == mask {
                length
            } else {
                self.world.bytes_of(view.object, view.audience, again)
            };
            client.made.again += repeated as u64;
            client.made.first += length.saturating_sub(repeated) as u64;
            view.dirty &= !mask;
            view.again &= !mask;
            view.open += 1;
            let content = if is_live {
                view.open_plain += 1;
                Content::Plain(mask)
            } else {
                Content::Pending(mask)
            };
            view.last = client.log.push(listed.slot, view, content);
            if view.dirty == 0 {
                view.is_listed = false;
                client.plan.updates += 1;
            }
        }
        Ok(())
    }
}

/// Removes views that no longer need to be on a list and sorts the list.
fn reorder(
    list: &mut Vec<Listed>,
    views: &mut ViewList,
    needs: impl Fn(&View) -> bool,
    key: impl Fn(&View) -> u64,
) {
    list.retain_mut(|listed| {
        let Some(view) = views.same(listed.slot, listed.generation) else { return false };
        listed.key = key(view);
        needs(view)
    });
    list.sort_unstable_by_key(|listed| (listed.key, listed.slot));
    list.dedup();
}

/// The lower half of a mask's bits; at least one bit remains.
fn lower_half(mask: Mask) -> Mask {
    let half = (mask.count_ones() / 2).max(1) as usize;
    bits(mask).take(half).fold(0, |half, bit| half | 1 << bit)
}

#[expect(clippy::cast_possible_truncation, reason = "a distance needs no more digits")]
const fn single(far: f64) -> f32 {
    far as f32
}
