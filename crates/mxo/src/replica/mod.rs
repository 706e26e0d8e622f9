//! The views of one client: a picture of the world as a server shows it.
//!
//! A [`Replica`] applies sections one after the other, as the client does. Its views are then what
//! the next section is read with, so it is a [`Views`] itself; and the state of every view can be
//! read by the names of its properties, or written as JSON and text.
//!
//! ```
//! use std::sync::Arc;
//! use worldwire_core::Side;
//! use worldwire_mxo::message::Rules;
//! use worldwire_mxo::replica::Replica;
//! use worldwire_mxo::schema::Objects;
//! use worldwire_mxo::types::Value;
//!
//! let mut replica = Replica::new(Arc::new(Objects::built_in()));
//! // A door is created as view 3, and then closed.
//! replica.receive(
//!     &[
//!         3, 1, 0, 0x0c, 0x9f, 1, 1, 0xcd, 0xab, 1, 0x80, 0x40, 0x34, 8, 0, 0, 3, 0, 0, //
//!         3, 0, 1, 0x80, 2, 0x38, 8, 0, 0, 0, 0,
//!     ],
//!     Side::Server,
//!     Rules::STRICT,
//! )?;
//! let door = replica.view(3).unwrap();
//! assert_eq!(door.value("CurrentState"), Some(Value::Unsigned(0x838)));
//! # Ok::<(), worldwire_core::Error>(())
//! ```
//!
//! Packets overtake each other. A replica that is told the number of each packet
//! ([`Replica::packet`]) keeps what is newest, property by property, whatever the order in which
//! packets come: what an older one says of a view that is gone, or of an object that had its id
//! before, changes nothing. A [`Notice::Stale`] names it. Updates that wait for a create are
//! behind it, whatever their numbers, in the order of their packets.

mod show;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use worldwire_core::{Error, Reader, Result, Side};

use crate::frame::{MAX_NEWER, PacketCount, SequenceNumber};
use crate::message::{
    Context, Create, Delete, Fault, Operation, PendingUpdate, Rules, Section, Update, Viewed, Views,
};
use crate::schema::Objects;

use view::Told;
pub use view::View;

/// What a replica is willing to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Views at the same time. Default 16,384.
    pub views: usize,
    /// Bytes of pending updates that wait for their creates, each with 16 more for its place.
    /// Default 256 KiB.
    pub pending_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { views: 16_384, pending_bytes: 256 << 10 }
    }
}

/// What a pending update that waits takes besides its data.
const PENDING_PLACE: usize = 16;

/// Something odd about a section that was applied all the same.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// A create of a view that is there, of the same object: a repetition. Nothing was changed.
    CreatedAgain(u16),
    /// A create of a view that is there, of another object, which it took the place of.
    Replaced(u16),
    /// A deletion of a view that is not there.
    DeletedUnknown(u16),
    /// A packet that came late says something of the view that is older than what is known of it,
    /// or is about an object that had its id before. It was left out; what in the packet is not
    /// older was taken in.
    Stale(u16),
    /// A pending update could not be read when its view was there. It was left out.
    BadPending {
        /// The view.
        view: u16,
        /// What is wrong with it.
        error: Error,
    },
    /// A create of an object whose class is not known. The rest of the section could not be read.
    UnknownCreate {
        /// The game object type.
        goid: u16,
    },
    /// The rest of the section could not be read for another reason.
    Undecoded {
        /// The view that the rest begins with.
        view: u16,
        /// What is not known.
        fault: Fault,
    },
}

/// The views of one client.
#[derive(Clone, Debug)]
pub struct Replica {
    objects: Arc<Objects>,
    bounds: Bounds,
    views: BTreeMap<u16, View>,
    /// Pending updates of views that are not there yet, in the order in which they came.
    pending: BTreeMap<u16, Queue>,
    pending_bytes: usize,
    /// What had an id before, and until when.
    past: BTreeMap<u16, Past>,
    /// The packets of each side, by [`Side::index`], and the one that is read now.
    counts: [PacketCount; 2],
    now: Option<Told>,
}

/// Pending updates of one view.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// Each with the count of its packet.
    list: Vec<(u64, Box<[u8]>)>,
    /// What they count for.
    bytes: usize,
}

/// What a view was that was deleted, or whose id went to another object.
#[derive(Clone, Copy, Debug)]
struct Past {
    viewed: Option<Viewed>,
    /// The count of the packet that ended it.
    until: u64,
}

/// What there is to say of a section.
#[derive(Default)]
struct Said {
    notices: Vec<Notice>,
    stale: BTreeSet<u16>,
}

/// The views as the packet that is read now knows them: one that comes late may be about those
/// that were deleted since.
impl Views for Replica {
    fn viewed(&self, view: u16) -> Option<Viewed> {
        if let Some(Told { from: Side::Server, count }) = self.now
            && let Some(past) = self.past.get(&view).filter(|past| count < past.until)
        {
            return past.viewed;
        }
        self.views.get(&view).map(View::viewed)
    }
}

impl Replica {
    /// No views yet.
    #[must_use]
    pub fn new(objects: Arc<Objects>) -> Self {
        Self::within(objects, Bounds::default())
    }

    /// No views yet, and no more than so many.
    #[must_use]
    pub fn within(objects: Arc<Objects>, bounds: Bounds) -> Self {
        Self {
            objects,
            bounds,
            views: BTreeMap::new(),
            pending: BTreeMap::new(),
            pending_bytes: 0,
            past: BTreeMap::new(),
            counts: Default::default(),
            now: None,
        }
    }

    /// What the views are read by.
    #[must_use]
    pub fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    /// Says which packet the sections that follow are in, whether it holds any or not. Numbers come
    /// around, so a replica that is told some of them has to be told of every packet that comes.
    /// `time` is the packet's own, by the sender's clock: behind a hole of more than 2047 packets,
    /// the number does not say whether a packet is newer or late. Without numbers, sections count
    /// as being in order.
    pub fn packet(&mut self, from: Side, number: SequenceNumber, time: u32) {
        let count = self.counts[from.index()].take(number, time);
        self.now = Some(Told { from, count });
        // What ended so long ago is older than anything that can still come.
        if self.past.len() > self.bounds.views / 2 {
            let newest = self.counts[Side::Server.index()].newest().unwrap_or(0);
            self.past.retain(|_, past| past.until + u64::from(MAX_NEWER) >= newest);
        }
    }

    /// Reads a section and applies it. Also returns how many bytes it took.
    ///
    /// To have a trace, decode it with [`Section::decode`], this replica as the views of the
    /// context, and [apply](Self::apply) it.
    ///
    /// # Errors
    /// Those of [`Section::decode`] and [`Self::apply`]; nothing is changed then.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        from: Side,
        rules: Rules,
    ) -> Result<(usize, Vec<Notice>)> {
        let objects = Arc::clone(&self.objects);
        let mut reader = Reader::new(bytes);
        let context = Context { objects: &objects, views: self, from, rules };
        let section = Section::decode(&mut reader, &context)?;
        let notices = self.apply(&section, from)?;
        Ok((reader.position(), notices))
    }

    /// Applies a section that was read with these objects, this replica's views, and from that
    /// side.
    ///
    /// # Errors
    /// The limits on views and on pending bytes; nothing is changed then.
    pub fn apply(&mut self, section: &Section<'_>, from: Side) -> Result<Vec<Notice>> {
        let told = self.told(from);
        self.check(section, told)?;
        let mut said = Said::default();
        for operation in &section.operations {
            match operation {
                Operation::Create(create) => self.create(create, told, &mut said),
                Operation::Delete(delete) => self.delete(delete, told, &mut said),
                Operation::PendingUpdate(pending) => self.pending(pending, told, &mut said),
                Operation::Update(update) => self.update(update, told, &mut said),
                Operation::UnknownCreate(create) => {
                    said.notices.push(Notice::UnknownCreate { goid: create.goid });
                }
                Operation::Undecoded(rest) => {
                    said.notices.push(Notice::Undecoded { view: rest.view, fault: rest.fault });
                }
            }
        }
        said.notices.extend(said.stale.into_iter().map(Notice::Stale));
        Ok(said.notices)
    }

    /// Forgets everything: what a client does when its connection is reset or it changes worlds.
    pub fn reset(&mut self) {
        *self = Self::within(Arc::clone(&self.objects), self.bounds);
    }

    /// A view.
    #[must_use]
    pub fn view(&self, view: u16) -> Option<&View> {
        self.views.get(&view)
    }

    /// All views, by their ids.
    pub fn views(&self) -> impl Iterator<Item = (u16, &View)> {
        self.views.iter().map(|(id, view)| (*id, view))
    }

    /// How many views there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// How many bytes of pending updates wait for their creates.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Whether the bounds hold all along a section.
    fn check(&self, section: &Section<'_>, told: Told) -> Result<()> {
        // What the section has changed so far: whether a view is there, and bytes that wait for it.
        let mut there: BTreeMap<u16, bool> = BTreeMap::new();
        let mut waiting: BTreeMap<u16, usize> = BTreeMap::new();
        let (mut views, mut pending) = (self.views.len(), self.pending_bytes);
        let waits = |view: u16| self.pending.get(&view).map_or(0, |queue| queue.bytes);
        for (index, operation) in section.operations.iter().enumerate() {
            let is_there = |there: &BTreeMap<u16, bool>, view: u16| {
                there.get(&view).copied().unwrap_or_else(|| self.views.contains_key(&view))
            };
            // Views for which only that waits any more which came in newer packets.
            let mut clear = |view: u16, until: u64, pending: &mut usize| {
                let kept = self.waits_behind(view, until);
                let before = waiting.insert(view, kept).unwrap_or_else(|| waits(view));
                *pending = pending.saturating_sub(before.saturating_sub(kept));
            };
            match operation {
                Operation::Create(create) if !self.is_stale(create.new_view, told) => {
                    if !is_there(&there, create.new_view) {
                        views += 1;
                        there.insert(create.new_view, true);
                    }
                    clear(create.new_view, u64::MAX, &mut pending);
                }
                Operation::Delete(delete) => {
                    for view in delete.views.iter().filter(|view| !self.is_stale(**view, told)) {
                        if is_there(&there, *view) {
                            views -= 1;
                            there.insert(*view, false);
                        }
                        clear(*view, told.count, &mut pending);
                    }
                }
                Operation::PendingUpdate(update)
                    if !is_there(&there, update.target) && !self.is_past(update.target, told) =>
                {
                    let bytes = update.data.len() + PENDING_PLACE;
                    *waiting.entry(update.target).or_insert_with(|| waits(update.target)) += bytes;
                    pending += bytes;
                }
                _ => {}
            }
            let bounds = [
                ("views of a client", self.bounds.views, views),
                ("bytes of pending updates", self.bounds.pending_bytes, pending),
            ];
            for (name, most, asked) in bounds {
                if asked > most {
                    let error = Error::limit(name, most as u64, asked as u64);
                    return Err(error.inside_item(index).inside("operations"));
                }
            }
        }
        Ok(())
    }

    /// How many bytes wait for a view from packets behind a count.
    fn waits_behind(&self, view: u16, count: u64) -> usize {
        let list = self.pending.get(&view).into_iter().flat_map(|queue| &queue.list);
        list.filter(|it| it.0 > count).map(|(_, data)| data.len() + PENDING_PLACE).sum()
    }

    /// The packet that is read now; without numbers, the newest one.
    fn told(&self, from: Side) -> Told {
        let newest = || Told { from, count: self.counts[from.index()].newest().unwrap_or(0) };
        self.now.filter(|now| now.from == from).unwrap_or_else(newest)
    }

    /// Whether what a packet says of a view is about what had the id before.
    fn is_past(&self, view: u16, told: Told) -> bool {
        told.from == Side::Server
            && self.past.get(&view).is_some_and(|past| told.count < past.until)
    }

    /// Whether a create or a deletion is older than what is known of the view.
    fn is_stale(&self, view: u16, told: Told) -> bool {
        let is_behind = self.views.get(&view).is_some_and(|view| view.is_behind(told.count));
        self.is_past(view, told) || is_behind
    }

    /// What has the id is over.
    fn bury(&mut self, view: u16, viewed: Option<Viewed>, told: Told) {
        let has_room = self.past.len() < self.bounds.views || self.past.contains_key(&view);
        if self.now.is_some() && has_room {
            self.past.insert(view, Past { viewed, until: told.count });
        }
    }

    fn create(&mut self, create: &Create<'_>, told: Told, said: &mut Said) {
        let id = create.new_view;
        if self.is_stale(id, told) {
            said.stale.insert(id);
            return;
        }
        if let Some(view) = self.views.get(&id) {
            if view.is_of(create) {
                said.notices.push(Notice::CreatedAgain(id));
                return;
            }
            said.notices.push(Notice::Replaced(id));
            let viewed = view.viewed();
            self.bury(id, Some(viewed), told);
        }
        self.views.insert(id, View::new(create, &self.objects, told));
        for (count, data) in self.take_pending(id, u64::MAX) {
            // It waited for this create, so it is behind it, also where its packet was in front.
            self.apply_pending(id, &data, Told { count: count.max(told.count), ..told }, said);
        }
    }

    fn delete(&mut self, delete: &Delete, told: Told, said: &mut Said) {
        for view in &delete.views {
            if self.is_stale(*view, told) {
                said.stale.insert(*view);
                continue;
            }
            self.take_pending(*view, told.count);
            let gone = self.views.remove(view);
            if gone.is_none() {
                said.notices.push(Notice::DeletedUnknown(*view));
            }
            let viewed = gone.map(|view| view.viewed());
            let viewed = viewed.or_else(|| self.past.get(view).and_then(|past| past.viewed));
            self.bury(*view, viewed, told);
        }
    }

    fn pending(&mut self, pending: &PendingUpdate<'_>, told: Told, said: &mut Said) {
        if self.is_past(pending.target, told) {
            said.stale.insert(pending.target);
        } else if self.views.contains_key(&pending.target) {
            self.apply_pending(pending.target, &pending.data, told, said);
        } else {
            let bytes = pending.data.len() + PENDING_PLACE;
            let queue = self.pending.entry(pending.target).or_default();
            queue.list.push((told.count, (*pending.data).into()));
            queue.bytes += bytes;
            self.pending_bytes += bytes;
        }
    }

    fn update(&mut self, update: &Update<'_>, told: Told, said: &mut Said) {
        let is_stale = self.is_past(update.view, told)
            || self
                .views
                .get_mut(&update.view)
                .is_some_and(|view| !view.update(update, &self.objects, told));
        if is_stale {
            said.stale.insert(update.view);
        }
    }

    fn apply_pending(&mut self, id: u16, data: &[u8], told: Told, said: &mut Said) {
        let Some(view) = self.views.get_mut(&id) else { return };
        let mut reader = Reader::new(data);
        let objects = &self.objects;
        let outcome = Update::decode_body(&mut reader, id, view.viewed(), objects, told.from)
            .and_then(|update| reader.end().map(|()| update));
        match outcome {
            Ok(update) if view.update(&update, objects, told) => {}
            Ok(_) => drop(said.stale.insert(id)),
            Err(error) => {
                said.notices.push(Notice::BadPending { view: id, error: error.closed() });
            }
        }
    }

    /// Takes what waits for a view from packets up to a count, the oldest first.
    fn take_pending(&mut self, view: u16, until: u64) -> Vec<(u64, Box<[u8]>)> {
        let Some(queue) = self.pending.get_mut(&view) else { return Vec::new() };
        let (mut taken, left) =
            core::mem::take(&mut queue.list).into_iter().partition::<Vec<_>, _>(|it| it.0 <= until);
        taken.sort_by_key(|(count, _)| *count);
        let bytes = taken.iter().map(|(_, data)| data.len() + PENDING_PLACE).sum();
        queue.bytes = queue.bytes.saturating_sub(bytes);
        queue.list = left;
        if queue.list.is_empty() {
            self.pending.remove(&view);
        }
        self.pending_bytes = self.pending_bytes.saturating_sub(bytes);
        taken
    }
}
