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

mod show;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use worldwire_core::{Error, Reader, Result, Side};

use crate::message::{Context, Create, Fault, Operation, Rules, Section, Update, Viewed, Views};
use crate::schema::Objects;

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
}

/// Pending updates of one view.
#[derive(Clone, Debug, Default)]
struct Queue {
    list: Vec<Box<[u8]>>,
    /// What they count for.
    bytes: usize,
}

impl Views for Replica {
    fn viewed(&self, view: u16) -> Option<Viewed> {
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
        let (views, pending) = (BTreeMap::new(), BTreeMap::new());
        Self { objects, bounds, views, pending, pending_bytes: 0 }
    }

    /// What the views are read by.
    #[must_use]
    pub fn objects(&self) -> &Arc<Objects> {
        &self.objects
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
        self.check(section)?;
        let mut notices = Vec::new();
        for operation in &section.operations {
            match operation {
                Operation::Create(create) => self.create(create, from, &mut notices),
                Operation::Delete(delete) => {
                    for view in &delete.views {
                        self.drop_pending(*view);
                        if self.views.remove(view).is_none() {
                            notices.push(Notice::DeletedUnknown(*view));
                        }
                    }
                }
                Operation::PendingUpdate(pending) => {
                    if self.views.contains_key(&pending.target) {
                        self.apply_pending(pending.target, &pending.data, from, &mut notices);
                    } else {
                        let bytes = pending.data.len() + PENDING_PLACE;
                        let queue = self.pending.entry(pending.target).or_default();
                        queue.list.push((*pending.data).into());
                        queue.bytes += bytes;
                        self.pending_bytes += bytes;
                    }
                }
                Operation::Update(update) => self.update(update),
                Operation::UnknownCreate(create) => {
                    notices.push(Notice::UnknownCreate { goid: create.goid });
                }
                Operation::Undecoded(rest) => {
                    notices.push(Notice::Undecoded { view: rest.view, fault: rest.fault });
                }
            }
        }
        Ok(notices)
    }

    /// Forgets everything: what a client does when its connection is reset or it changes worlds.
    pub fn reset(&mut self) {
        self.views.clear();
        self.pending.clear();
        self.pending_bytes = 0;
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
    fn check(&self, section: &Section<'_>) -> Result<()> {
        // What the section has changed so far: whether a view is there, and bytes that wait for it.
        let mut there: BTreeMap<u16, bool> = BTreeMap::new();
        let mut waiting: BTreeMap<u16, usize> = BTreeMap::new();
        let (mut views, mut pending) = (self.views.len(), self.pending_bytes);
        let waits = |view: u16| self.pending.get(&view).map_or(0, |queue| queue.bytes);
        for (index, operation) in section.operations.iter().enumerate() {
            let is_there = |there: &BTreeMap<u16, bool>, view: u16| {
                there.get(&view).copied().unwrap_or_else(|| self.views.contains_key(&view))
            };
            let gone = match operation {
                Operation::Create(create) => {
                    if !is_there(&there, create.new_view) {
                        views += 1;
                        there.insert(create.new_view, true);
                    }
                    core::slice::from_ref(&create.new_view)
                }
                Operation::Delete(delete) => {
                    for view in &delete.views {
                        if is_there(&there, *view) {
                            views -= 1;
                            there.insert(*view, false);
                        }
                    }
                    delete.views.as_slice()
                }
                Operation::PendingUpdate(update) if !is_there(&there, update.target) => {
                    let bytes = update.data.len() + PENDING_PLACE;
                    *waiting.entry(update.target).or_insert_with(|| waits(update.target)) += bytes;
                    pending += bytes;
                    &[]
                }
                _ => &[],
            };
            // Nothing waits for a view that was created or deleted.
            for view in gone {
                let before = waiting.insert(*view, 0).unwrap_or_else(|| waits(*view));
                pending = pending.saturating_sub(before);
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

    fn create(&mut self, create: &Create<'_>, from: Side, notices: &mut Vec<Notice>) {
        let id = create.new_view;
        if let Some(view) = self.views.get(&id) {
            if view.is_of(create) {
                notices.push(Notice::CreatedAgain(id));
                return;
            }
            notices.push(Notice::Replaced(id));
        }
        self.views.insert(id, View::new(create, &self.objects));
        for data in self.drop_pending(id) {
            self.apply_pending(id, &data, from, notices);
        }
    }

    fn update(&mut self, update: &Update<'_>) {
        if let Some(view) = self.views.get_mut(&update.view) {
            view.update(update, &self.objects);
        }
    }

    fn apply_pending(&mut self, id: u16, data: &[u8], from: Side, notices: &mut Vec<Notice>) {
        let Some(view) = self.views.get_mut(&id) else { return };
        let mut reader = Reader::new(data);
        let objects = &self.objects;
        let outcome = Update::decode_body(&mut reader, id, view.viewed(), objects, from)
            .and_then(|update| reader.end().map(|()| update));
        match outcome {
            Ok(update) => view.update(&update, objects),
            Err(error) => notices.push(Notice::BadPending { view: id, error: error.closed() }),
        }
    }

    /// Takes what waits for a view.
    fn drop_pending(&mut self, view: u16) -> Vec<Box<[u8]>> {
        let queue = self.pending.remove(&view).unwrap_or_default();
        self.pending_bytes = self.pending_bytes.saturating_sub(queue.bytes);
        queue.list
    }
}
