//! Handles each net message from a member.

use core::time::Duration;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use worldwire_core::{Error, Field, Reader, Side};

use super::answer;
use super::clones::{LoadedClone, claim};
use super::dropped::{DropKind, DropReason};
use super::event::{CloseReason, Event};
use super::forward::Sender;
use super::instance::Instance;
use super::locks::LockReply;
use super::packet::{Importance, MAX_BYTES, Packet, Position};
use super::states::{PageSet, check_blob, read_blob};
use crate::net_message::patch::HeaderLayout;
use crate::net_message::{
    GameStateRequest, LoadClone, NetFlags, NetMessage, PlayerPage, SdlState, TestAndSet,
    class_info, received,
};
use crate::safety::{Reason, Refusal, check};
use crate::sdl::{ObjectKey, UpdateOrigin};
use crate::types::{ClassIndex, Uoid};

/// The maximum length of an avatar's name in bytes, because one member list contains all of them.
const MAX_NAME: usize = 255;

impl Instance {
    /// Handles a net message from a member, given as the two fields of a `PropagateBuffer`.
    /// Unacceptable messages are dropped, counted and reported.
    pub fn receive(&mut self, now: Duration, player_id: u32, class: ClassIndex, buffer: &[u8]) {
        self.counts.received += 1;
        let Some(member) = self.members.get_mut(player_id).filter(|member| !member.is_closing)
        else {
            self.counts.drop_one(DropKind::NotAMember);
            return;
        };
        member.last_active = now;
        let player = &member.player;
        let sender = Sender { id: player.id, is_admin: player.is_admin, joined: member.joined };
        if let Err(why) = self.handle(now, sender, class, buffer) {
            self.dropped(now, sender, why);
        }
    }

    fn dropped(&mut self, now: Duration, sender: Sender, why: DropReason) {
        self.counts.drop_one(why.kind());
        let is_malformed = why.kind() == DropKind::Malformed;
        self.report(Event::Dropped { player_id: sender.id, why });
        if is_malformed {
            self.count_malformed(now, sender.id);
        }
    }

    /// Counts a malformed message from a member. [`receive`](Self::receive) counts the messages
    /// that it drops; servers count the ones that the game manager drops.
    pub fn count_malformed(&mut self, now: Duration, player_id: u32) {
        let max = self.config.bounds.malformed;
        let member = self.members.get_mut(player_id).filter(|member| !member.is_closing);
        let Some(member) = member else { return };
        let messages = member.malformed.add(now, max);
        if messages >= max {
            member.is_closing = true;
            let why = CloseReason::Malformed { messages };
            self.report(Event::Close { player_id, why });
        }
    }

    fn handle(
        &mut self,
        now: Duration,
        sender: Sender,
        class: ClassIndex,
        buffer: &[u8],
    ) -> Result<(), DropReason> {
        if buffer.len() > MAX_BYTES {
            let (max, found) = (MAX_BYTES as u64, buffer.len() as u64);
            return Err(DropReason::Malformed(Error::limit("bytes of a net message", max, found)));
        }
        let config = Arc::clone(&self.config);
        let message = received(class, buffer, &config.limits).map_err(DropReason::Malformed)?;
        let index = u16::try_from(class.0).unwrap_or(0);
        if class_info(index).is_some_and(|info| info.sender == Some(Side::Server)) {
            return Err(DropReason::ServerOnly(index));
        }
        let rules = config.rules(sender.is_admin);
        check(buffer, &rules, &mut self.inflater, &config.limits)?;
        match message {
            NetMessage::GameMessage(message) => self.game_message(now, sender, &message, buffer),
            NetMessage::GameMessageDirected(message) => {
                self.directed(now, sender, &message, buffer)
            }
            NetMessage::Voice(message) => self.voice(now, sender, &message, buffer),
            NetMessage::LoadClone(message) => self.load_clone(now, sender, &message, buffer),
            NetMessage::SdlState(message) => self.state(now, sender, &message, None),
            NetMessage::SdlStateBCast(message) => {
                self.state(now, sender, &message.state, Some(buffer))
            }
            NetMessage::TestAndSet(message) => self.test_and_set(now, sender, message),
            NetMessage::MembersListReq(_) => {
                self.send_members_list(now, sender.id);
                Ok(())
            }
            NetMessage::GameStateRequest(message) => self.state_request(now, sender, &message),
            NetMessage::RelevanceRegions(message) => {
                if let Some(member) = self.members.get_mut(sender.id) {
                    member.regions = Some(message);
                }
                Ok(())
            }
            NetMessage::PagingRoom(message) => {
                let limit = config.bounds.pages;
                let member = self.members.get_mut(sender.id);
                match member.is_none_or(|member| member.page(&message, limit)) {
                    true => Ok(()),
                    false => Err(DropReason::Limit { what: "pages", limit }),
                }
            }
            NetMessage::PlayerPage(message) => self.player_page(sender, message),
            _ => Err(DropReason::Unhandled(index)),
        }
    }

    fn send_members_list(&mut self, now: Duration, player_id: u32) {
        let list = answer::members_list(self.time(now), player_id, self.members.iter());
        self.send_own(player_id, list);
        if let Some(member) = self.members.get_mut(player_id) {
            member.has_members = true;
        }
    }

    /// Records a member's avatar, which must be a clone that the member created.
    fn player_page(&mut self, sender: Sender, message: PlayerPage<'_>) -> Result<(), DropReason> {
        if !is_created_by(&message.object, sender.id) {
            return Err(DropReason::NotOwner);
        }
        is_short(&message.object)?;
        let avatar = (!message.unload.is_true()).then(|| message.object.into_owned());
        self.set_avatar(sender.id, avatar);
        Ok(())
    }

    fn set_avatar(&mut self, player_id: u32, avatar: Option<Uoid<'static>>) {
        if let Some(member) = self.members.get_mut(player_id) {
            member.avatar = avatar;
        }
    }

    fn load_clone(
        &mut self,
        now: Duration,
        sender: Sender,
        message: &LoadClone<'_>,
        buffer: &[u8],
    ) -> Result<(), DropReason> {
        let object = &message.uoid;
        let claim = claim(message, &mut self.inflater, &self.config.limits)?;
        let key = ObjectKey::of(object);
        if claim.object.as_ref().is_none_or(|other| ObjectKey::of(other) != key) {
            return Err(DropReason::Contradiction("clone"));
        }
        if object.clone.is_none_or(|ids| ids.id == 0) {
            return Err(DropReason::NotAClone);
        }
        let is_loading = message.is_loading.is_true();
        if claim.is_loading != is_loading {
            return Err(DropReason::Contradiction("loading"));
        }
        let is_player = message.is_player.is_true();
        if claim.is_player.is_some_and(|claimed| claimed != is_player) {
            return Err(DropReason::Contradiction("isPlayer"));
        }
        if is_player {
            is_short(object)?;
        }
        let owner = self.clones.get(object).map(|clone| clone.owner);
        // The player who first loads a clone is its creator. Clones can be handed over later, except
        // avatars.
        let is_made_here = is_created_by(object, sender.id);
        let is_theirs = claim.originator == sender.id
            && owner.map_or(is_made_here && is_loading, |owner| owner == sender.id)
            && (is_made_here || !is_player);
        if !is_theirs {
            return Err(DropReason::NotOwner);
        }
        let is_initial = message.is_initial_state.is_true();
        let bytes = self.stamped(now, sender, &message.header, buffer, |bytes, _| {
            // The last field is `isInitialState`, which only the server may set.
            if let Some(last) = bytes.last_mut().filter(|_| is_initial) {
                *last = 0;
            }
            Ok(())
        })?;
        if is_loading {
            let bounds = &self.config.bounds;
            let object = object.clone().into_owned();
            let (bytes, owner) = (Arc::clone(&bytes), sender.id);
            let loaded = LoadedClone { object, bytes, owner, is_player };
            self.clones.insert(loaded, bounds)?;
            if is_player {
                self.set_avatar(sender.id, Some(object_of(message)));
            }
        } else {
            self.forget_clone(object);
        }
        self.send_others(now, sender, message.header.flags, &Packet::kept(bytes));
        Ok(())
    }

    /// Removes a clone with its states and the locks of its parts.
    pub(super) fn forget_clone(&mut self, object: &Uoid<'_>) {
        let Some(clone) = self.clones.remove(object) else { return };
        self.states.remove_clone(&clone.object);
        self.locks.release_clone(&clone.object);
        if clone.is_player {
            let key = ObjectKey::of(&clone.object);
            let avatar = self.members.get(clone.owner).and_then(|member| member.avatar.as_ref());
            if avatar.is_some_and(|avatar| ObjectKey::of(avatar) == key) {
                self.set_avatar(clone.owner, None);
            }
        }
    }

    /// Handles the state of an object. If given the message that carried it, forwards that as well.
    ///
    /// Only the player may set an avatar's state: no client sends states of other players' avatars,
    /// and the server drops an avatar's states when its player leaves. Therefore a state of another
    /// player's clone is accepted only while that clone is loaded and is not an avatar. All other
    /// objects belong to nobody; their states are sent by whichever client currently owns them.
    fn state(
        &mut self,
        now: Duration,
        sender: Sender,
        message: &SdlState<'_>,
        forwarded: Option<&[u8]>,
    ) -> Result<(), DropReason> {
        let config = Arc::clone(&self.config);
        let object = &message.object;
        is_on_a_page(object)?;
        if !self.clones.may_set_state(object, sender.id) {
            return Err(DropReason::NotOwner);
        }
        let payload = message.stream.payload(&mut self.inflater, &config.limits);
        let payload = payload.map_err(DropReason::Malformed)?;
        let descriptors = Arc::clone(&self.descriptors);
        let update = read_blob(payload, &descriptors, &config.limits)?;
        let rules = config.rules(sender.is_admin);
        check_blob(&update, &rules, &config.limits)?;
        let origin = UpdateOrigin {
            persist: message.persist_on_server.is_true(),
            avatar: message.is_avatar_state.is_true(),
            player_id: sender.id,
        };
        let time = self.clock.time(now);
        self.states.apply(object, &update, origin, &time, now + config.store_after)?;
        let Some(buffer) = forwarded else { return Ok(()) };
        let flags = message.header.flags;
        let is_position = flags.contains(NetFlags::UseRelevanceRegions);
        let descriptor = is_position.then(|| {
            let mut hasher = DefaultHasher::new();
            (update.descriptor.name(), update.descriptor.version()).hash(&mut hasher);
            hasher.finish()
        });
        drop(update);
        let is_initial = message.is_initial_state.is_true();
        let bytes = self.stamped(now, sender, &message.header, buffer, |bytes, _| {
            // The third field from the end is `isInitialState`, which only the server may set.
            let at = bytes.len().saturating_sub(3);
            if let Some(field) = bytes.get_mut(at).filter(|_| is_initial) {
                *field = 0;
            }
            Ok(())
        })?;
        let importance = match descriptor {
            Some(descriptor) => position(&bytes, descriptor),
            None => Importance::Kept,
        };
        self.send_others(now, sender, flags, &Packet::new(bytes, importance));
        Ok(())
    }

    /// Handles a lock request or release. Releases get no reply because clients treat any reply
    /// except a denial as a grant.
    fn test_and_set(
        &mut self,
        now: Duration,
        sender: Sender,
        message: TestAndSet<'_>,
    ) -> Result<(), DropReason> {
        let object = message.object;
        is_on_a_page(&object)?;
        if !message.lock_request.is_true() {
            self.locks.release(&object, sender.id);
            return Ok(());
        }
        let limit = self.config.bounds.locks;
        let answer = self.locks.request(&object, sender.id, limit);
        let reply = answer::lock_reply(self.time(now), object, answer == LockReply::Granted);
        self.send_own(sender.id, reply);
        match answer {
            LockReply::TooMany => Err(DropReason::Limit { what: "locks held by a member", limit }),
            LockReply::Granted | LockReply::Denied => Ok(()),
        }
    }

    /// Sends the state of the age: clones, the age's own state, object states, and their number.
    /// Clients ignore clones of players who are not in their member list, so the list is sent first
    /// if the member has not asked for it.
    fn state_request(
        &mut self,
        now: Duration,
        sender: Sender,
        message: &GameStateRequest<'_>,
    ) -> Result<(), DropReason> {
        let limit = self.config.bounds.state_requests;
        let time = self.time(now);
        let Some(member) = self.members.get_mut(sender.id) else { return Ok(()) };
        if !member.state_requests.try_add(now, limit) {
            return Err(DropReason::Limit { what: "state requests in a minute", limit });
        }
        member.has_state = true;
        let has_members = member.has_members;
        let rooms = &message.rooms;
        let pages =
            (!rooms.is_empty()).then(|| PageSet::of(rooms.iter().map(|room| &room.location)));
        let mut packets = Vec::new();
        for clone in self.clones.in_order() {
            let is_own_avatar = clone.is_player && clone.owner == sender.id;
            if !is_own_avatar {
                packets.extend(answer::initial_clone(time.clone(), clone));
            }
        }
        if !has_members && !packets.is_empty() {
            self.send_members_list(now, sender.id);
        }
        self.states.initial(&time, pages.as_ref(), |packet| packets.push(packet));
        let count = u32::try_from(packets.len()).unwrap_or(u32::MAX);
        for packet in packets {
            self.send(sender.id, packet);
        }
        self.send_own(sender.id, answer::state_sent(time, count));
        Ok(())
    }
}

fn object_of(message: &LoadClone<'_>) -> Uoid<'static> {
    message.uoid.clone().into_owned()
}

/// Whether an object is a clone created by this player.
fn is_created_by(object: &Uoid<'_>, player_id: u32) -> bool {
    object.clone.is_some_and(|ids| ids.player_id == player_id)
}

/// Checks the page of an object. Fixed objects are on page 0; the other special pages are not part of
/// any age.
fn is_on_a_page(object: &Uoid<'_>) -> Result<(), DropReason> {
    let page = object.location.sequence_number;
    if page.0 == 0 || !page.is_special() {
        return Ok(());
    }
    Err(Refusal::at(Reason::NoPage(page.0), None, 0).inside("object").into())
}

fn is_short(avatar: &Uoid<'_>) -> Result<(), DropReason> {
    match avatar.name.stored().len() {
        0..=MAX_NAME => Ok(()),
        _ => Err(DropReason::Limit { what: "bytes in an avatar's name", limit: MAX_NAME }),
    }
}

/// The importance of a forwarded state. Its uoid comes right after the header.
fn position(bytes: &[u8], descriptor: u64) -> Importance {
    let object = HeaderLayout::of(bytes).ok().and_then(|layout| {
        let mut reader = Reader::new(bytes.get(layout.end..)?);
        Uoid::decode(&mut reader, "object").ok()?;
        Some(layout.end..layout.end + reader.position())
    });
    let position = object.and_then(|object| Position::of(object, descriptor));
    position.map_or(Importance::Kept, Importance::Position)
}
