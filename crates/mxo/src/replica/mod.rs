//! A client's views: the world as a server shows it to a client.
//!
//! A [`Replica`] applies sections one by one, as the client does. Decoding the next
//! section requires its views, so it implements [`Views`]. The state of each view can be read by
//! property name, or written as JSON and text.
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
//! // A door is created as view 3 and then closed.
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
//! Packets can overtake each other. With packet numbers ([`Replica::packet`]), a replica keeps the
//! newest value of each property, whatever the order of arrival. Older values, and values for a
//! deleted view or for an earlier object with the same ID, change nothing; a [`Notice::Stale`]
//! reports them. Updates that wait for a create are applied after it in packet order, whatever
//! their packet numbers. If a missing packet may have replaced a view, its updates are guesses.

mod show;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use worldwire_core::{Error, Reader, Result, Side};

use crate::frame::{MAX_ACK_AGE, MAX_NEWER, Missing, SequenceNumber, SequenceWord};
use crate::message::{
    Context, Create, Delete, Fault, Operation, PendingUpdate, Rules, Section, Update, Viewed, Views,
};
use crate::schema::Objects;

use view::PacketStamp;
pub use view::View;

/// How much a replica may store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The maximum number of views. Default 16,384.
    pub views: usize,
    /// The maximum total size of the pending updates that wait for their creates, including 16
    /// bytes of overhead for each. Default 256 KiB.
    pub pending_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { views: 16_384, pending_bytes: 256 << 10 }
    }
}

/// The overhead accounted for each pending update.
const PENDING_OVERHEAD: usize = 16;

/// Something odd about a section that was applied nonetheless.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// A repeated create of an existing view with the same object. Nothing changed.
    CreatedAgain(u16),
    /// A create of an existing view with a different object, which replaced the old one.
    Replaced(u16),
    /// A deletion of a view that does not exist.
    DeletedUnknown(u16),
    /// A late packet contains values for the view that are older than the known ones, or refers to
    /// an earlier object with the same ID. These values were ignored; newer values in the packet
    /// were applied.
    Stale(u16),
    /// A pending update was unreadable once its view existed. It was ignored.
    BadPending {
        /// The view.
        view: u16,
        /// What is wrong with it.
        error: Error,
    },
    /// A create of an object of unknown class. The rest of the section is unreadable.
    UnknownCreate {
        /// The game object type.
        goid: u16,
    },
    /// The rest of the section is unreadable for another reason.
    Undecoded {
        /// The view at its start.
        view: u16,
        /// Why it is unreadable.
        fault: Fault,
    },
}

/// A client's views.
#[derive(Clone, Debug)]
pub struct Replica {
    objects: Arc<Objects>,
    bounds: Bounds,
    views: BTreeMap<u16, View>,
    /// Pending updates of views that do not exist yet, in order of arrival.
    pending: BTreeMap<u16, PendingQueue>,
    pending_bytes: usize,
    /// The previous object with each ID, and when it lost the ID.
    previous: BTreeMap<u16, PreviousView>,
    /// The packets from each side that are missing, by [`Side::index`], and the current packet.
    missing: [Missing; 2],
    now: Option<PacketStamp>,
    /// The newest packet from the server that is missing here although the client has received it.
    unseen: u64,
}

/// The pending updates of a view.
#[derive(Clone, Debug, Default)]
struct PendingQueue {
    /// The data, each with its packet's count.
    list: Vec<(u64, Box<[u8]>)>,
    /// Their size, including overhead.
    bytes: usize,
}

/// A view that was deleted, or whose ID went to another object.
#[derive(Clone, Copy, Debug)]
struct PreviousView {
    viewed: Option<Viewed>,
    /// The count of the packet that ended it.
    until: u64,
    /// The count of the last packet that can refer to it. Later packets refer to an object whose
    /// create is missing.
    is_known_until: u64,
}

/// Everything to report about a section.
#[derive(Default)]
struct Report {
    notices: Vec<Notice>,
    stale: BTreeSet<u16>,
}

/// The views that existed when the current packet was sent: a late packet may refer to views that
/// have been deleted since.
impl Views for Replica {
    fn viewed(&self, view: u16) -> Option<Viewed> {
        let Some(PacketStamp { from: Side::Server, count }) = self.now else {
            return self.views.get(&view).map(View::viewed);
        };
        if let Some(previous) = self.previous.get(&view).filter(|previous| count < previous.until) {
            return previous.viewed.filter(|_| count < previous.is_known_until);
        }
        let view = self.views.get(&view)?;
        // A missing packet may have replaced the view.
        let missing = self.missing[Side::Server.index()].before(count);
        let unseen = missing.into_iter().chain([self.unseen].into_iter().filter(|it| *it < count));
        let is_doubtful = unseen.max().is_some_and(|unseen| view.is_older_than(unseen));
        let Viewed { class, guess } = view.viewed();
        Some(Viewed { class, guess: guess || is_doubtful })
    }
}

impl Replica {
    /// A replica without views.
    #[must_use]
    pub fn new(objects: Arc<Objects>) -> Self {
        Self::within(objects, Bounds::default())
    }

    /// A replica without views, with these bounds.
    #[must_use]
    pub fn within(objects: Arc<Objects>, bounds: Bounds) -> Self {
        Self {
            objects,
            bounds,
            views: BTreeMap::new(),
            pending: BTreeMap::new(),
            pending_bytes: 0,
            previous: BTreeMap::new(),
            missing: Default::default(),
            now: None,
            unseen: 0,
        }
    }

    /// The game object tables.
    #[must_use]
    pub fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    /// Sets the packet of the following sections. Because packet numbers wrap around, either call
    /// it for every packet, even one without sections, or never. `time` is the packet's own, by the
    /// sender's clock; after more than 2047 missing packets, the number alone does not distinguish
    /// a new packet from a late one. Without numbers, sections are assumed to be in order.
    pub fn packet(&mut self, from: Side, number: SequenceNumber, time: u32) {
        let count = self.missing[from.index()].note(number, time);
        self.now = Some(PacketStamp { from, count });
        // These views ended so long ago that anything that can still arrive is newer.
        if self.previous.len() > self.bounds.views / 2 {
            let newest = self.missing[Side::Server.index()].newest().unwrap_or(0);
            self.previous.retain(|_, previous| previous.until + u64::from(MAX_NEWER) >= newest);
        }
    }

    /// Takes the acknowledgements of a client's packet, which show whether a missing packet from
    /// the server has reached the client and may have replaced views. As long as this is unknown,
    /// and if the packet has arrived, updates of older views are guesses.
    pub fn acknowledged(&mut self, sequence: SequenceWord) {
        let [client, server] = &mut self.missing;
        if server.is_empty() {
            return;
        }
        for number in sequence.acked() {
            if let Some(count) = server.acknowledged(number)
                && server.remove(count)
            {
                self.unseen = self.unseen.max(count);
            }
        }
        // Packets that the client has not acknowledged by now did not arrive, so the server sends
        // their contents again, unless the acknowledgement is in a missing packet.
        let Some(newest) = server.acknowledged(sequence.remote) else { return };
        let old = newest.saturating_sub(MAX_ACK_AGE.into());
        if !client.is_empty() {
            self.unseen = self.unseen.max(server.before(old).unwrap_or(0));
        }
        server.forget_before(old);
        let newest = client.newest().unwrap_or(0);
        client.forget_before(newest.saturating_sub((4 * MAX_ACK_AGE).into()));
    }

    /// Reads a section and applies it. Also returns its length in bytes.
    ///
    /// To trace a section, decode it with [`Section::decode`], with this replica as the context's
    /// views, and [apply](Self::apply) it.
    ///
    /// # Errors
    /// The errors of [`Section::decode`] and [`Self::apply`]. In that case, nothing has changed.
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

    /// Applies a section that was decoded with these tables, this replica's views, and this side as
    /// the sender.
    ///
    /// # Errors
    /// If a limit on views or pending bytes is exceeded. In that case, nothing has changed.
    pub fn apply(&mut self, section: &Section<'_>, from: Side) -> Result<Vec<Notice>> {
        let stamp = self.stamp(from);
        self.check(section, stamp)?;
        let mut report = Report::default();
        for operation in &section.operations {
            match operation {
                Operation::Create(create) => self.create(create, stamp, &mut report),
                Operation::Delete(delete) => self.delete(delete, stamp, &mut report),
                Operation::PendingUpdate(pending) => self.pending(pending, stamp, &mut report),
                Operation::Update(update) => self.update(update, stamp, &mut report),
                Operation::UnknownCreate(create) => {
                    report.notices.push(Notice::UnknownCreate { goid: create.head.goid });
                }
                Operation::Undecoded(rest) => {
                    report.notices.push(Notice::Undecoded { view: rest.view, fault: rest.fault });
                }
            }
        }
        report.notices.extend(report.stale.into_iter().map(Notice::Stale));
        Ok(report.notices)
    }

    /// Forgets everything, as a client does when its connection is reset or it changes worlds.
    pub fn reset(&mut self) {
        *self = Self::within(Arc::clone(&self.objects), self.bounds);
    }

    /// A view.
    #[must_use]
    pub fn view(&self, view: u16) -> Option<&View> {
        self.views.get(&view)
    }

    /// All views, by ID.
    pub fn views(&self) -> impl Iterator<Item = (u16, &View)> {
        self.views.iter().map(|(id, view)| (*id, view))
    }

    /// The number of views.
    #[must_use]
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Whether there are no views.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// The size of the pending updates that wait for their creates.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Checks that the bounds hold throughout a section.
    fn check(&self, section: &Section<'_>, stamp: PacketStamp) -> Result<()> {
        // The section's changes so far: whether each view exists, and the bytes that wait for it.
        let mut there: BTreeMap<u16, bool> = BTreeMap::new();
        let mut waiting: BTreeMap<u16, usize> = BTreeMap::new();
        let (mut views, mut pending) = (self.views.len(), self.pending_bytes);
        let waits = |view: u16| self.pending.get(&view).map_or(0, |queue| queue.bytes);
        for (index, operation) in section.operations.iter().enumerate() {
            let is_there = |there: &BTreeMap<u16, bool>, view: u16| {
                there.get(&view).copied().unwrap_or_else(|| self.views.contains_key(&view))
            };
            // Drops the data that waits for a view, except for data from newer packets.
            let mut clear = |view: u16, until: u64, pending: &mut usize| {
                let kept = self.bytes_after(view, until);
                let before = waiting.insert(view, kept).unwrap_or_else(|| waits(view));
                *pending = pending.saturating_sub(before.saturating_sub(kept));
            };
            match operation {
                Operation::Create(create) if !self.is_stale(create.new_view, stamp) => {
                    if !is_there(&there, create.new_view) {
                        views += 1;
                        there.insert(create.new_view, true);
                    }
                    clear(create.new_view, u64::MAX, &mut pending);
                }
                Operation::Delete(delete) => {
                    for view in delete.views.iter().filter(|view| !self.is_stale(**view, stamp)) {
                        if is_there(&there, *view) {
                            views -= 1;
                            there.insert(*view, false);
                        }
                        clear(*view, stamp.count, &mut pending);
                    }
                }
                Operation::PendingUpdate(update)
                    if !is_there(&there, update.target)
                        && !self.is_previous(update.target, stamp) =>
                {
                    let bytes = update.data.len() + PENDING_OVERHEAD;
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

    /// The number of waiting bytes for a view from packets after this count.
    fn bytes_after(&self, view: u16, count: u64) -> usize {
        let list = self.pending.get(&view).into_iter().flat_map(|queue| &queue.list);
        list.filter(|it| it.0 > count).map(|(_, data)| data.len() + PENDING_OVERHEAD).sum()
    }

    /// The current packet; without numbers, the newest one.
    fn stamp(&self, from: Side) -> PacketStamp {
        let newest =
            || PacketStamp { from, count: self.missing[from.index()].newest().unwrap_or(0) };
        self.now.filter(|now| now.from == from).unwrap_or_else(newest)
    }

    /// Whether a packet refers to the previous object of a view ID.
    fn is_previous(&self, view: u16, stamp: PacketStamp) -> bool {
        stamp.from == Side::Server
            && self.previous.get(&view).is_some_and(|previous| stamp.count < previous.until)
    }

    /// Whether a create or deletion is older than the known state of the view.
    fn is_stale(&self, view: u16, stamp: PacketStamp) -> bool {
        let is_behind = self.views.get(&view).is_some_and(|view| view.is_behind(stamp.count));
        self.is_previous(view, stamp) || is_behind
    }

    /// Records the end of a view, even if the view was never seen.
    fn retire(&mut self, view: u16, viewed: Option<Viewed>, stamp: PacketStamp) {
        let before = self.previous.get(&view).copied();
        let has_room = self.previous.len() < self.bounds.views || before.is_some();
        if self.now.is_none() || !has_room {
            return;
        }
        let until = stamp.count;
        let previous = match (viewed, before) {
            (None, Some(before)) => PreviousView { until, ..before },
            _ => PreviousView { viewed, until, is_known_until: until },
        };
        self.previous.insert(view, previous);
    }

    fn create(&mut self, create: &Create<'_>, stamp: PacketStamp, report: &mut Report) {
        let id = create.new_view;
        if self.is_stale(id, stamp) {
            report.stale.insert(id);
            return;
        }
        if let Some(view) = self.views.get(&id) {
            if view.is_of(create) {
                report.notices.push(Notice::CreatedAgain(id));
                return;
            }
            report.notices.push(Notice::Replaced(id));
            let viewed = view.viewed();
            self.retire(id, Some(viewed), stamp);
        }
        self.views.insert(id, View::new(create, &self.objects, stamp));
        for (count, data) in self.take_pending(id, u64::MAX) {
            // The data was waiting for this create, so it is applied after the create, even if its
            // packet is older.
            self.apply_pending(
                id,
                &data,
                PacketStamp { count: count.max(stamp.count), ..stamp },
                report,
            );
        }
    }

    fn delete(&mut self, delete: &Delete, stamp: PacketStamp, report: &mut Report) {
        for view in &delete.views {
            if self.is_stale(*view, stamp) {
                report.stale.insert(*view);
                continue;
            }
            self.take_pending(*view, stamp.count);
            let gone = self.views.remove(view);
            if gone.is_none() {
                report.notices.push(Notice::DeletedUnknown(*view));
            }
            self.retire(*view, gone.map(|view| view.viewed()), stamp);
        }
    }

    fn pending(&mut self, pending: &PendingUpdate<'_>, stamp: PacketStamp, report: &mut Report) {
        if self.is_previous(pending.target, stamp) {
            report.stale.insert(pending.target);
        } else if self.views.contains_key(&pending.target) {
            self.apply_pending(pending.target, &pending.data, stamp, report);
        } else {
            let bytes = pending.data.len() + PENDING_OVERHEAD;
            let queue = self.pending.entry(pending.target).or_default();
            queue.list.push((stamp.count, (*pending.data).into()));
            queue.bytes += bytes;
            self.pending_bytes += bytes;
        }
    }

    fn update(&mut self, update: &Update<'_>, stamp: PacketStamp, report: &mut Report) {
        let is_stale = self.is_previous(update.view, stamp)
            || self
                .views
                .get_mut(&update.view)
                .is_some_and(|view| !view.update(update, &self.objects, stamp));
        if is_stale {
            report.stale.insert(update.view);
        }
    }

    fn apply_pending(&mut self, id: u16, data: &[u8], stamp: PacketStamp, report: &mut Report) {
        let Some(view) = self.views.get_mut(&id) else { return };
        let mut reader = Reader::new(data);
        let objects = &self.objects;
        let outcome = Update::decode_body(&mut reader, id, view.viewed(), objects, stamp.from)
            .and_then(|update| reader.end().map(|()| update));
        match outcome {
            Ok(update) if view.update(&update, objects, stamp) => {}
            Ok(_) => drop(report.stale.insert(id)),
            Err(error) => {
                report.notices.push(Notice::BadPending { view: id, error: error.closed() });
            }
        }
    }

    /// Takes the data waiting for a view from packets up to this count, oldest first.
    fn take_pending(&mut self, view: u16, until: u64) -> Vec<(u64, Box<[u8]>)> {
        let Some(queue) = self.pending.get_mut(&view) else { return Vec::new() };
        let (mut taken, left) =
            core::mem::take(&mut queue.list).into_iter().partition::<Vec<_>, _>(|it| it.0 <= until);
        taken.sort_by_key(|(count, _)| *count);
        let bytes = taken.iter().map(|(_, data)| data.len() + PENDING_OVERHEAD).sum();
        queue.bytes = queue.bytes.saturating_sub(bytes);
        queue.list = left;
        if queue.list.is_empty() {
            self.pending.remove(&view);
        }
        self.pending_bytes = self.pending_bytes.saturating_sub(bytes);
        taken
    }
}
