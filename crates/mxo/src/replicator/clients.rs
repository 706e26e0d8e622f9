//! Clients: joining, what they see, and what they send.

use worldwire_core::{Error, Reader, Result};

use super::client::Client;
use super::point::check_position;
use super::view::{View, ViewState};
use super::{ClientId, ObjectId, Point, Replicator, Traffic, limit};
use crate::message::{ADMIN_VIEW, Context, Fault, Movement, OWN_VIEW, Section, Viewed, Views};

/// A view that a client has or will receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewInfo {
    /// The view ID; 0 before its create is sent.
    pub id: u16,
    /// Distinguishes successive objects with the same view ID.
    pub spawn_seq: u8,
    /// The state of the view.
    pub state: ViewState,
    /// The object; `None` while the view is being deleted.
    pub object: Option<ObjectId>,
    /// Whether there are values still to be sent.
    pub is_dirty: bool,
}

impl Replicator {
    /// Adds a client. It sees nothing until it has a character or a viewpoint.
    pub fn join(&mut self) -> Result<ClientId> {
        limit("clients", self.config.clients, self.clients.len() - self.free_clients.len() + 1)?;
        let index = match self.free_clients.pop() {
            Some(index) => index,
            None => {
                self.clients.push(Client::default());
                u32::try_from(self.clients.len() - 1).unwrap_or(u32::MAX)
            }
        };
        let client = &mut self.clients[index as usize];
        let generation = client.generation;
        *client = Client::new(index, generation);
        Ok(ClientId { index, generation })
    }

    /// Removes a client. Its character stays.
    pub fn leave(&mut self, client: ClientId) -> Result<()> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        client.reset(&mut self.world);
        if let Some(own) = client.own.take() {
            self.world.objects[own as usize].owner = None;
            self.world.objects[own as usize].muted = 0;
        }
        client.viewpoint = None;
        client.is_alive = false;
        client.generation = client.generation.wrapping_add(1);
        self.interest.client_gone(index);
        self.free_clients.push(index);
        Ok(())
    }

    /// Makes an object the client's own character: view 2, and the client's viewpoint.
    ///
    /// # Errors
    /// A value error if the client has left, the object is gone, or it is another client's
    /// character.
    pub fn possess(&mut self, client: ClientId, object: ObjectId) -> Result<()> {
        let client = self.client_index(client)?;
        let object = self.object_index(object)?;
        match self.world.objects[object as usize].owner {
            Some(owner) if owner == client => return Ok(()),
            Some(_) => {
                return Err(Error::value(
                    "an object that no other client plays",
                    "another client's character",
                ));
            }
            None => {}
        }
        if let Some(old) = self.clients[client as usize].own.replace(object) {
            self.world.objects[old as usize].owner = None;
            self.world.objects[old as usize].muted = 0;
        }
        self.world.objects[object as usize].owner = Some(client);
        self.interest.client_moved(client);
        Ok(())
    }

    /// Sets the viewpoint of a client without a character.
    ///
    /// # Errors
    /// A value error if the client has left, or the position is not finite.
    pub fn look_from(&mut self, client: ClientId, position: Point) -> Result<()> {
        let index = self.client_index(client)?;
        check_position(&position)?;
        self.clients[index as usize].viewpoint = Some(position);
        self.interest.client_moved(index);
        Ok(())
    }

    /// Forgets all views of a client, because its connection was reset or it changed worlds. View
    /// IDs and spawn sequences start again; packet numbers continue.
    pub fn reset(&mut self, client: ClientId) -> Result<()> {
        let index = self.client_index(client)?;
        self.clients[index as usize].reset(&mut self.world);
        self.interest.client_moved(index);
        Ok(())
    }

    /// Decodes a section from a client, starting with its ID, and returns its length. Does not
    /// apply it: pass its movements to [`follow`](Self::follow).
    ///
    /// # Errors
    /// A value error if the client has left, and the errors of [`Section::decode`]. Views other
    /// than the client's own are [`Fault::BadViewId`]; before it has a view of its character, all
    /// views are [`Fault::UnknownView`].
    pub fn read<'d>(&self, client: ClientId, bytes: &'d [u8]) -> Result<(Section<'d>, usize)> {
        let index = self.client_index(client)?;
        let client = &self.clients[index as usize];
        let own = client.own.map(|own| self.world.layout(&self.world.objects[own as usize]).class);
        let own = OwnView(own.map(Viewed::from));
        let mut reader = Reader::new(bytes);
        let context = Context::client(&self.world.schema, &own);
        let section = Section::decode(&mut reader, &context)?;
        Ok((section, reader.position()))
    }

    /// Applies a movement that a client reports for its character, like
    /// [`set_movement`](Self::set_movement) but without sending it back to that client. Ignores a
    /// script counter.
    ///
    /// # Errors
    /// A value error if the client has left or has no character, and the errors of
    /// [`set_movement`](Self::set_movement).
    pub fn follow(&mut self, client: ClientId, movement: &Movement) -> Result<()> {
        let index = self.client_index(client)?;
        let Some(own) = self.clients[index as usize].own else {
            return Err(Error::value("a client with a character", "one without"));
        };
        let movement = Movement { script_counter: None, script: None, ..*movement };
        self.check_movement(own, &movement)?;
        self.move_by(own, &movement, true);
        Ok(())
    }

    /// The object to which a client refers by view ID and spawn sequence, as in its requests.
    ///
    /// # Errors
    /// A value error if the client has left; [`Fault::BadViewId`] for 0 and 1;
    /// [`Fault::UnknownView`] for a view that it does not have; a value error for a different spawn
    /// sequence, which refers to an earlier object with the same view ID.
    pub fn target(&self, client: ClientId, view: u16, spawn_seq: u8) -> Result<ObjectId> {
        let index = self.client_index(client)?;
        let client = &self.clients[index as usize];
        if view <= ADMIN_VIEW {
            return Err(Fault::BadViewId.value(view.to_string()).inside("view"));
        }
        let found = client.slot_of(view).map(|slot| client.views.at(slot));
        let has = |state| matches!(state, Some(ViewState::Creating | ViewState::Live));
        let Some(found) = found.filter(|found| has(found.state)) else {
            return Err(Fault::UnknownView.value(view.to_string()).inside("view"));
        };
        if found.seq != spawn_seq {
            let wanted = format!("the spawn sequence {} of view {view}", found.seq);
            return Err(Error::value(wanted, spawn_seq.to_string()).inside("spawn_seq"));
        }
        Ok(self.object_id(found.object))
    }

    /// A client's views, in a deterministic but arbitrary order. Empty if the client has left.
    pub fn views(&self, client: ClientId) -> impl Iterator<Item = ViewInfo> {
        let index = self.client_index(client).ok();
        let client = index.map(|index| &self.clients[index as usize]);
        client.into_iter().flat_map(move |client| {
            client.views.iter().filter_map(|(_, view)| self.view_info(view))
        })
    }

    /// The views of an object that are not being deleted, with the clients that have them.
    pub fn viewers(&self, object: ObjectId) -> Result<impl Iterator<Item = (ClientId, ViewInfo)>> {
        let index = self.object_index(object)?;
        let viewers = &self.world.objects[index as usize].viewers;
        Ok(viewers.iter().filter_map(|viewer| {
            let client = &self.clients[viewer.client as usize];
            let id = ClientId { index: viewer.client, generation: client.generation };
            Some((id, self.view_info(client.views.at(viewer.slot))?))
        }))
    }

    /// `None` for a free slot.
    fn view_info(&self, view: &View) -> Option<ViewInfo> {
        let state = view.state?;
        let is_there = state != ViewState::Deleting;
        Some(ViewInfo {
            id: view.id,
            spawn_seq: view.seq,
            state,
            object: is_there.then(|| self.object_id(view.object)),
            is_dirty: view.dirty != 0,
        })
    }

    /// The traffic sent to a client so far.
    pub fn traffic(&self, client: ClientId) -> Result<Traffic> {
        Ok(self.clients[self.client_index(client)? as usize].traffic)
    }

    /// The number of a client's sections that are neither acknowledged nor lost.
    pub fn unacknowledged(&self, client: ClientId) -> Result<usize> {
        Ok(self.clients[self.client_index(client)? as usize].log.open())
    }

    /// Whether a client has certainly received everything as of the last tick: it has every view in
    /// range, nothing is waiting to be sent, and nothing that was sent can still arrive and change
    /// the client's state, within the time of [`Config::later`](super::Config::later).
    pub fn is_settled(&self, client: ClientId) -> Result<bool> {
        let client = &self.clients[self.client_index(client)? as usize];
        let is_quiet = |view: &View| view.state == Some(ViewState::Live) && view.dirty == 0;
        Ok(client.log.is_empty()
            && client.views.iter().all(|(_, view)| is_quiet(view))
            && !client.may_change(&self.world, &self.config))
    }
}

/// A client's own view: the only one that it may write to.
struct OwnView(Option<Viewed>);

impl Views for OwnView {
    fn viewed(&self, view: u16) -> Option<Viewed> {
        self.0.filter(|_| view == OWN_VIEW)
    }
}
