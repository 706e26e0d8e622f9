//! An age that runs.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use worldwire_core::{Error, Field, Result};

use super::answer;
use super::clones::Clones;
use super::config::{Capacity, Config};
use super::dropped::{AgeCounts, DropReason};
use super::event::{Event, JoinRefused};
use super::locks::Locks;
use super::member::{Member, Members, Player};
use super::packet::{Delivery, Packet};
use super::states::{StateStore, check_blob, read_blob};
use crate::file::age::AgeFile;
use crate::inflate::Inflater;
use crate::schema::Descriptors;
use crate::sdl::{Blob, ObjectState, StateDb};
use crate::types::{UnifiedTime, Uoid};

/// An age that runs: who is in it, what is loaded, the states of its objects. See the
/// [module](super) for how a server drives it.
#[derive(Debug)]
pub struct Instance {
    name: String,
    file: AgeFile,
    pub(super) descriptors: Arc<Descriptors>,
    pub(super) config: Arc<Config>,
    pub(super) clock: Clock,
    pub(super) members: Members,
    owner: Option<u32>,
    pub(super) clones: Clones,
    pub(super) states: StateStore,
    pub(super) locks: Locks,
    pub(super) counts: AgeCounts,
    pub(super) inflater: Inflater,
    pub(super) scratch: Vec<u8>,
    pub(super) deliveries: VecDeque<Delivery>,
    events: VecDeque<Event>,
    /// When the instance is over, while nobody is in it.
    over_at: Option<Duration>,
    is_over: bool,
}

/// What the time of the instance is in that of the world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    at: Duration,
    unix: Duration,
}

impl Clock {
    pub(super) fn time(self, now: Duration) -> UnifiedTime {
        let since = self.unix.saturating_add(now).saturating_sub(self.at);
        UnifiedTime {
            seconds: u32::try_from(since.as_secs()).unwrap_or(u32::MAX),
            microseconds: since.subsec_micros(),
        }
    }
}

impl Instance {
    /// Starts an age: its name as SDL and the age file spell it, the age file, and all descriptors
    /// that clients have. `now` counts from any moment, like that of connections; `unix` is the same
    /// moment in time since 1970, UTC, which clients take as the time of the server.
    ///
    /// Nobody is in it yet: it is over when nobody joins while it lingers.
    #[must_use]
    pub fn new(
        now: Duration,
        unix: Duration,
        name: &str,
        file: AgeFile,
        descriptors: Arc<Descriptors>,
        config: Config,
    ) -> Self {
        let states = StateStore::new(name, file.sequence_prefix, &descriptors, &config.bounds);
        let over_at = file.linger().map(|linger| now + linger);
        Self {
            name: name.to_owned(),
            file,
            descriptors,
            config: Arc::new(config),
            clock: Clock { at: now, unix },
            members: Members::default(),
            owner: None,
            clones: Clones::default(),
            states,
            locks: Locks::default(),
            counts: AgeCounts::default(),
            inflater: Inflater::new(),
            scratch: Vec::new(),
            deliveries: VecDeque::new(),
            events: VecDeque::new(),
            over_at,
            is_over: false,
        }
    }

    /// A player joins. The server has checked that the player may, and sends the `JoinAgeReply`: 0,
    /// or the [`result`](JoinRefused::result) of the refusal.
    ///
    /// # Errors
    /// When the player cannot join; nothing has changed then.
    pub fn join(&mut self, now: Duration, player: Player) -> Result<(), JoinRefused> {
        if self.is_over {
            return Err(JoinRefused::Over);
        }
        if player.id == 0 {
            return Err(JoinRefused::NoPlayer);
        }
        if self.members.get(player.id).is_some() {
            return Err(JoinRefused::AlreadyJoined);
        }
        if let Some(capacity) = self.file.capacity().filter(|most| self.members.len() >= *most) {
            if self.config.capacity == Capacity::Refuse {
                return Err(JoinRefused::Full { capacity });
            }
            let members = self.members.len() + 1;
            self.report(Event::OverCapacity { members, capacity });
        }
        self.over_at = None;
        let player_id = player.id;
        let is_owner = self.owner.is_none();
        if is_owner {
            self.owner = Some(player_id);
        }
        self.send_made(player_id, answer::group_owner(self.time(now), is_owner));
        self.states.joined(player_id, player.account);
        let member = Member::new(player, now);
        if let Ok(update) = answer::member_update(self.time(now), &member, true) {
            self.send_to_all(&update);
        }
        self.members.push(member);
        Ok(())
    }

    /// A member left, or its connection is gone: clients leave without a word. Does nothing if the
    /// player is not here.
    pub fn leave(&mut self, now: Duration, player_id: u32) {
        let Some(member) = self.members.remove(player_id) else { return };
        let time = self.time(now);
        let owner = match self.owner == Some(player_id) {
            true => self.members.longest(now, self.config.silence),
            false => self.owner,
        };
        for (object, is_player) in self.clones.owned_by(player_id) {
            if is_player {
                self.forget_clone(&object);
                if let Ok(unload) = answer::unload(time.clone(), &object, player_id) {
                    self.send_to_all(&unload);
                }
            } else if let Some(owner) = owner {
                let limits = &self.config.limits;
                let handed = self.clones.hand_over(&object, owner, &mut self.inflater, limits);
                if handed.is_err() {
                    self.forget_clone(&object);
                }
            }
        }
        self.states.remove_avatar(player_id);
        self.locks.release_of(player_id);
        if let Ok(update) = answer::member_update(time.clone(), &member, false) {
            self.send_to_all(&update);
        }
        if let Some(owner) = owner.filter(|_| self.owner != owner) {
            self.send_made(owner, answer::group_owner(time, true));
        }
        self.owner = owner;
        if self.members.is_empty() {
            self.rest(now);
        }
        self.flush();
    }

    /// Nobody is here: what only members keep alive goes, and so does memory that is only needed
    /// for their messages.
    fn rest(&mut self, now: Duration) {
        let clones: Vec<_> = self.clones.in_order().map(|clone| clone.object.clone()).collect();
        clones.iter().for_each(|clone| self.forget_clone(clone));
        self.locks = Locks::default();
        self.inflater = Inflater::new();
        self.scratch = Vec::new();
        self.deliveries.shrink_to_fit();
        self.over_at = self.file.linger().map(|linger| now + linger);
    }

    /// A member gave a sign of life that is no net message: a ping.
    pub fn mark_active(&mut self, now: Duration, player_id: u32) {
        if let Some(member) = self.members.get_mut(player_id) {
            member.last_active = now;
        }
    }

    /// A member sent a message for the game manager, which today's servers do not have: it is
    /// skipped.
    pub fn skip_game_manager(&mut self, now: Duration, player_id: u32) {
        self.mark_active(now, player_id);
        self.counts.game_manager += 1;
    }

    /// A message of a player in another age, which that age reported as
    /// [`Event::Route`], for those of `players` who are here.
    pub fn deliver(&mut self, packet: &Packet, players: &[u32]) {
        let here = self.members.iter().map(|member| member.player.id);
        let to: Vec<u32> = here.filter(|player_id| players.contains(player_id)).collect();
        to.into_iter().for_each(|player_id| self.send(player_id, packet.clone()));
    }

    /// A message of an administrator in another age, which that age reported as
    /// [`Event::RouteToAll`].
    pub fn deliver_to_all(&mut self, packet: &Packet) {
        self.send_to_all(packet);
    }

    /// Time has passed.
    pub fn timeout(&mut self, now: Duration) {
        if self.states.due().is_some_and(|due| due <= now) {
            self.flush();
        }
        if self.over_at.is_some_and(|over| over <= now) {
            self.over_at = None;
            self.is_over = true;
            self.flush();
            self.report(Event::Over);
        }
    }

    /// Sets the clock: `unix` is the time since 1970 at `now`. The server does it now and then, since
    /// the two run apart over weeks.
    pub fn set_clock(&mut self, now: Duration, unix: Duration) {
        self.clock = Clock { at: now, unix };
    }

    /// Puts a state back that was stored after [`Event::StoreState`].
    ///
    /// # Errors
    /// When the blob cannot be read, follows a descriptor that is not known, or holds what must not be
    /// sent; when there is no room for it.
    pub fn restore(&mut self, object: Uoid<'_>, blob: &[u8]) -> Result<()> {
        let descriptors = Arc::clone(&self.descriptors);
        let blob = self.stored_blob(&descriptors, blob)?;
        self.states.restore(object.into_owned(), &blob)
    }

    /// Puts the state of the age back that was stored after [`Event::StoreAge`]: the SDL node of the
    /// vault.
    ///
    /// # Errors
    /// As [`Self::restore`]; when it is no state of this age.
    pub fn restore_age(&mut self, blob: &[u8]) -> Result<()> {
        let descriptors = Arc::clone(&self.descriptors);
        let blob = self.stored_blob(&descriptors, blob)?;
        self.states.restore_age(&blob, false)
    }

    /// Sets what holds for all instances of the age on this shard. A variable of it counts if it was
    /// changed later than that of the instance. Members are told if that changes what they see.
    ///
    /// # Errors
    /// As [`Self::restore_age`].
    pub fn set_shard_state(&mut self, now: Duration, blob: &[u8]) -> Result<()> {
        let descriptors = Arc::clone(&self.descriptors);
        let blob = self.stored_blob(&descriptors, blob)?;
        let before = self.states.shown_age();
        self.states.restore_age(&blob, true)?;
        if self.states.shown_age() != before {
            self.tell_age(now);
        }
        Ok(())
    }

    /// A client changed the SDL node of the age in the vault: the age takes what differs, and members
    /// are told.
    ///
    /// # Errors
    /// As [`Self::restore_age`]; when it follows an older descriptor. The state of the age is then
    /// stored again, in the place of what cannot be used.
    pub fn edit_age(&mut self, now: Duration, blob: &[u8]) -> Result<()> {
        let edited = self.try_edit_age(now, blob);
        if edited.is_err() {
            self.states.store_age_again(now + self.config.store_after);
        }
        edited
    }

    fn try_edit_age(&mut self, now: Duration, blob: &[u8]) -> Result<()> {
        let descriptors = Arc::clone(&self.descriptors);
        let blob = self.stored_blob(&descriptors, blob)?;
        let time = self.time(now);
        if self.states.edit_age(&blob, &time, now + self.config.store_after)? {
            self.tell_age(now);
        }
        Ok(())
    }

    /// The next message for a member. Poll until there is none, after every call that takes `now`.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    /// The next event, likewise.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Self::timeout`] is to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.states.due().into_iter().chain(self.over_at).min()
    }

    /// The name of the age.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its age file.
    #[must_use]
    pub fn file(&self) -> &AgeFile {
        &self.file
    }

    /// The members, in the order in which they joined.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter()
    }

    /// The member whose client answers for the objects of the age.
    #[must_use]
    pub fn owner(&self) -> Option<u32> {
        self.owner
    }

    /// Who holds the lock of an object.
    #[must_use]
    pub fn lock_holder(&self, object: &Uoid<'_>) -> Option<u32> {
        self.locks.holder(object)
    }

    /// How many objects are locked.
    #[must_use]
    pub fn locks(&self) -> usize {
        self.locks.len()
    }

    /// Who holds locks: a player once for each lock.
    pub fn lock_holders(&self) -> impl Iterator<Item = u32> {
        self.locks.holders()
    }

    /// The clones that are loaded, with their owners, in the order in which members who join get
    /// them.
    pub fn clones(&self) -> impl Iterator<Item = (&Uoid<'static>, u32)> {
        self.clones.in_order().map(|clone| (&clone.object, clone.owner))
    }

    /// The states of objects, without that of the age.
    #[must_use]
    pub fn states(&self) -> &StateDb {
        self.states.db()
    }

    /// What the states take, roughly, in bytes.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        self.states.bytes()
    }

    /// The state of the age as clients see it: that of the instance over the settings of the shard.
    #[must_use]
    pub fn age_state(&self) -> Option<ObjectState> {
        self.states.shown_age()
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> &AgeCounts {
        &self.counts
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn time(&self, now: Duration) -> UnifiedTime {
        self.clock.time(now)
    }

    pub(super) fn report(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(super) fn send(&mut self, to: u32, packet: Packet) {
        self.counts.delivered += 1;
        self.deliveries.push_back(Delivery { to, packet });
    }

    /// Sends what the server made; everything that it makes has a form.
    pub(super) fn send_made(&mut self, to: u32, packet: Result<Packet>) {
        debug_assert!(packet.is_ok(), "{packet:?}");
        if let Ok(packet) = packet {
            self.send(to, packet);
        }
    }

    fn send_to_all(&mut self, packet: &Packet) {
        for player_id in self.members.iter().map(|member| member.player.id) {
            self.deliveries.push_back(Delivery { to: player_id, packet: packet.clone() });
        }
        self.counts.delivered += self.members.len() as u64;
    }

    fn tell_age(&mut self, now: Duration) {
        if let Some(packet) = self.states.age_packet(self.time(now), false) {
            self.send_to_all(&packet);
        }
    }

    fn flush(&mut self) {
        let events = &mut self.events;
        self.states.flush(|event| events.push_back(event));
    }

    /// Reads a state that does not come from a client; what clients must not get is not taken from
    /// databases either.
    fn stored_blob<'b>(&self, descriptors: &Descriptors, bytes: &'b [u8]) -> Result<Blob<'b>> {
        let blob = read_blob(bytes, descriptors, LIMITS).map_err(error)?;
        check_blob(&blob, &self.config.rules(false), LIMITS)
            .map_err(|refusal| refusal.error().clone())?;
        Ok(blob)
    }
}

/// The limits for what the server itself stored.
const LIMITS: &worldwire_core::Limits = &worldwire_core::Limits::DEFAULT;

fn error(dropped: DropReason) -> Error {
    match dropped {
        DropReason::Malformed(error) | DropReason::Descriptor(error) => error,
        other => Error::malformed("a state", other.to_string()),
    }
}
