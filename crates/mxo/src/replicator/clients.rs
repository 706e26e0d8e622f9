//! Clients: who they are, what they see, and what they say.

use worldwire_core::{Error, Reader, Result};

use super::client::Client;
use super::thing::check_place;
use super::view::{View, ViewState};
use super::{ClientId, ObjectId, Place, Replicator, Traffic, limit};
use crate::message::{ADMIN_VIEW, Context, Fault, Movement, OWN_VIEW, Section, Viewed, Views};

/// A view that a client has, or is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewInfo {
    /// The view id; 0 before its create is sent.
    pub id: u16,
    /// What tells objects of one view id apart.
    pub spawn_seq: u8,
    /// What becomes of it.
    pub state: ViewState,
    /// The object; `None` of a view that is being deleted.
    pub object: Option<ObjectId>,
    /// Whether there are values that it has not been sent.
    pub is_dirty: bool,
}

impl Replicator {
    /// Adds a client. It sees nothing before it has a character or a place to look from.
    ///
    /// # Errors
    /// The limit on clients.
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

    /// Takes a client out. Its character stays.
    ///
    /// # Errors
    /// Value, when it is gone already.
    pub fn leave(&mut self, client: ClientId) -> Result<()> {
        let index = self.client_index(client)?;
        let client = &mut self.clients[index as usize];
        client.reset(&mut self.world);
        if let Some(own) = client.own.take() {
            self.world.things[own as usize].owner = None;
            self.world.things[own as usize].muted = 0;
        }
        client.eye = None;
        client.is_alive = false;
        client.generation = client.generation.wrapping_add(1);
        self.interest.client_gone(index);
        self.free_clients.push(index);
        Ok(())
    }

    /// Makes an object the client's own character: view 2, from which it looks.
    ///
    /// # Errors
    /// Value, when the client or the object is gone, or it is another client's.
    pub fn possess(&mut self, client: ClientId, object: ObjectId) -> Result<()> {
        let client = self.client_index(client)?;
        let thing = self.thing(object)?;
        match self.world.things[thing as usize].owner {
            Some(owner) if owner == client => return Ok(()),
            Some(_) => {
                return Err(Error::value("an object without a client", "the character of another"));
            }
            None => {}
        }
        if let Some(old) = self.clients[client as usize].own.replace(thing) {
            self.world.things[old as usize].owner = None;
            self.world.things[old as usize].muted = 0;
        }
        self.world.things[thing as usize].owner = Some(client);
        self.interest.client_moved(client);
        Ok(())
    }

    /// Says from where a client looks that has no character.
    ///
    /// # Errors
    /// Value, when it is gone, and for a place that is not finite.
    pub fn look_from(&mut self, client: ClientId, place: Place) -> Result<()> {
        let index = self.client_index(client)?;
        check_place(&place)?;
        self.clients[index as usize].eye = Some(place);
        self.interest.client_moved(index);
        Ok(())
    }

    /// The client forgot all its views: its connection was reset, or it changed worlds. View ids
    /// and spawn sequences begin again. Numbers of packets go on.
    ///
    /// # Errors
    /// Value, when it is gone.
    pub fn reset(&mut self, client: ClientId) -> Result<()> {
        let index = self.client_index(client)?;
        self.clients[index as usize].reset(&mut self.world);
        self.interest.client_moved(index);
        Ok(())
    }

    /// Reads a section from a client, from its id on, and says how many bytes it took. It is not
    /// applied: [`follow`](Self::follow) takes its movements.
    ///
    /// # Errors
    /// Value, when the client is gone. Those of [`Section::decode`]; a view that is not the
    /// client's own is [`Fault::BadViewId`], and so are all before it has one of a character
    /// ([`Fault::UnknownView`]).
    pub fn read<'d>(&self, client: ClientId, bytes: &'d [u8]) -> Result<(Section<'d>, usize)> {
        let index = self.client_index(client)?;
        let client = &self.clients[index as usize];
        let own = client.own.map(|own| self.world.layout(&self.world.things[own as usize]).class);
        let own = OwnView(own.map(Viewed::from));
        let mut reader = Reader::new(bytes);
        let context = Context::client(&self.world.objects, &own);
        let section = Section::decode(&mut reader, &context)?;
        Ok((section, reader.position()))
    }

    /// A client says how its own character moves: as [`set_movement`](Self::set_movement), but the
    /// client is not told. A script counter is left out.
    ///
    /// # Errors
    /// Value, when the client is gone or has no character, and as
    /// [`set_movement`](Self::set_movement).
    pub fn follow(&mut self, client: ClientId, movement: &Movement) -> Result<()> {
        let index = self.client_index(client)?;
        let Some(own) = self.clients[index as usize].own else {
            return Err(Error::value("a client with a character", "one without"));
        };
        let movement = Movement { script_counter: None, ..*movement };
        self.check_movement(own, &movement)?;
        self.move_by(own, &movement, true);
        Ok(())
    }

    /// The object that a client names by view id and spawn sequence, as its requests do.
    ///
    /// # Errors
    /// Value, when the client is gone; [`Fault::BadViewId`] for 0 and 1, [`Fault::UnknownView`]
    /// for a view that it does not have; value for another spawn sequence: it means an object that
    /// had the view id before.
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
        Ok(self.object_id(found.thing))
    }

    /// The views of a client, in no particular order but always the same one. None when it is
    /// gone.
    pub fn views(&self, client: ClientId) -> impl Iterator<Item = ViewInfo> {
        let index = self.client_index(client).ok();
        let client = index.map(|index| &self.clients[index as usize]);
        client.into_iter().flat_map(move |client| {
            client.views.iter().filter_map(|(_, view)| {
                let state = view.state?;
                let is_there = state != ViewState::Deleting;
                Some(ViewInfo {
                    id: view.id,
                    spawn_seq: view.seq,
                    state,
                    object: is_there.then(|| self.object_id(view.thing)),
                    is_dirty: view.dirty != 0,
                })
            })
        })
    }

    /// What a client was sent so far.
    ///
    /// # Errors
    /// Value, when it is gone.
    pub fn traffic(&self, client: ClientId) -> Result<Traffic> {
        Ok(self.clients[self.client_index(client)? as usize].traffic)
    }

    /// How many sections of a client have no fate yet.
    ///
    /// # Errors
    /// Value, when it is gone.
    pub fn unacknowledged(&self, client: ClientId) -> Result<usize> {
        Ok(self.clients[self.client_index(client)? as usize].flight.open())
    }

    /// Whether a client has for certain all that it should have as of the last tick: every view in
    /// reach is there, nothing waits to be told, and nothing that was sent may yet arrive and change
    /// it, as far as [`Config::later`](super::Config::later) goes.
    ///
    /// # Errors
    /// Value, when it is gone.
    pub fn is_settled(&self, client: ClientId) -> Result<bool> {
        let client = &self.clients[self.client_index(client)? as usize];
        let is_quiet = |view: &View| view.state == Some(ViewState::Live) && view.dirty == 0;
        Ok(client.flight.is_empty()
            && client.views.iter().all(|(_, view)| is_quiet(view))
            && !client.may_change(&self.world, &self.config))
    }

    /// Whether a client has room for views of all objects in reach.
    ///
    /// # Errors
    /// Value, when it is gone. The limit on views, when objects had to be left out: those that came
    /// into reach last, and of them the ones furthest away. They are looked for again when there is
    /// room.
    pub fn check_views(&self, client: ClientId) -> Result<()> {
        let client = &self.clients[self.client_index(client)? as usize];
        if client.unseen == 0 {
            return Ok(());
        }
        limit("views of a client", self.config.views, client.views.len() + client.unseen)
    }
}

/// The own view alone: all that a client may write to.
struct OwnView(Option<Viewed>);

impl Views for OwnView {
    fn viewed(&self, view: u16) -> Option<Viewed> {
        self.0.filter(|_| view == OWN_VIEW)
    }
}
