//! A running age.

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

/// A running age: its members, loaded clones and object states. The [module](super) describes how a
/// server drives it.
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
    /// When the instance ends if it stays empty.
    over_at: Option<Duration>,
    is_over: bool,
}

/// Maps the instance's clock to wall-clock time.
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
    /// Starts an age, given its name as spelled in SDL and in the age file, the age file, and all
    /// descriptors that clients have. `now` counts from an arbitrary moment, as for connections;
    /// `unix` is the same moment as time since 1970 UTC, which clients take as the server's time.
    ///
    /// The instance starts empty and ends if nobody joins within the linger time.
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

    /// Adds a player. The server checks permissions before the call and afterwards sends the
    /// `JoinAgeReply`, with 0 or the [`result`](JoinRefused::result) of the refusal.
    ///
    /// # Errors
    /// Nothing changes if the player cannot join.
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
        if let Some(capacity) = self.file.capacity().filter(|max| self.members.len() >= *max) {
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
        self.send_own(player_id, answer::group_owner(self.time(now), is_owner));
        self.states.joined(player_id, player.account);
        let member = Member::new(player, now);
        if let Ok(update) = answer::member_update(self.time(now), &member, true) {
            self.send_to_all(&update);
        }
        self.members.push(member);
        Ok(())
    }

    /// Removes a member that left or whose connection closed; clients do not announce leaving. Does
    /// nothing if the player is not a member.
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
            self.send_own(owner, answer::group_owner(time, true));
        }
        self.owner = owner;
        if self.members.is_empty() {
            self.clean_up(now);
        }
        self.flush();
    }

    /// Cleans up after the last member left: drops data that exists only for members and frees
    /// memory that only their messages needed.
    fn clean_up(&mut self, now: Duration) {
        let clones: Vec<_> = self.clones.in_order().map(|clone| clone.object.clone()).collect();
        clones.iter().for_each(|clone| self.forget_clone(clone));
        self.locks = Locks::default();
        self.inflater = Inflater::new();
        self.scratch = Vec::new();
        self.deliveries.shrink_to_fit();
        self.over_at = self.file.linger().map(|linger| now + linger);
    }

    /// Records activity other than a net message, such as a ping.
    pub fn mark_active(&mut self, now: Duration, player_id: u32) {
        if let Some(member) = self.members.get_mut(player_id) {
            member.last_active = now;
        }
    }

    /// Counts a message for the game manager, which is not part of the age; see
    /// [`GameManager`](crate::games::GameManager). Returns whether the sender is a member whose
    /// messages have an effect.
    pub fn count_game_message(&mut self, now: Duration, player_id: u32) -> bool {
        self.counts.game_manager += 1;
        let member = self.members.get_mut(player_id).filter(|member| !member.is_closing);
        member.map(|member| member.last_active = now).is_some()
    }

    /// Delivers a message from a player in another age, reported there as [`Event::Route`], to
    /// those of `players` who are here.
    pub fn deliver(&mut self, packet: &Packet, players: &[u32]) {
        let here = self.members.iter().map(|member| member.player.id);
        let to: Vec<u32> = here.filter(|player_id| players.contains(player_id)).collect();
        to.into_iter().for_each(|player_id| self.send(player_id, packet.clone()));
    }

    /// Delivers an administrator's message from another age, reported there as
    /// [`Event::RouteToAll`].
    pub fn deliver_to_all(&mut self, packet: &Packet) {
        self.send_to_all(packet);
    }

    /// Handles the passing of time.
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

    /// Sets the clock: `unix` is the time since 1970 at `now`. Servers call it occasionally because
    /// the two clocks drift apart over weeks.
    pub fn set_clock(&mut self, now: Duration, unix: Duration) {
        self.clock = Clock { at: now, unix };
    }

    /// Restores a state that was stored after [`Event::StoreState`].
    ///
    /// # Errors
    /// Fails if the blob cannot be decoded, follows an unknown descriptor or contains something
    /// that must not be sent, or if there is no room for it.
    pub fn restore(&mut self, object: Uoid<'_>, blob: &[u8]) -> Result<()> {
        let descriptors = Arc::clone(&self.descriptors);
        let blob = self.stored_blob(&descriptors, blob)?;
        self.states.restore(object.into_owned(), &blob)
    }

    /// Restores the state of the age that was stored after [`Event::StoreAge`], from the SDL node
    /// in the vault.
    ///
    /// # Errors
    /// Fails as [`Self::restore`] does, and if the blob is not a state of this age.
    pub fn restore_age(&mut self, blob: &[u8]) -> Result<()> {
        let descriptors = Arc::clone(&self.descriptors);
        let blob = self.stored_blob(&descriptors, blob)?;
        self.states.restore_age(&blob, false)
    }

    /// Sets the shard's settings for all instances of the age. A setting applies if it was changed
    /// later than the instance's own variable. Members are notified if the change affects what they
    /// see.
    pub fn set_shard_state(&mut self, now: Duration, blob: &[u8]) -> Result<()> {
        let descriptors = Arc::clone(&self.descriptors);
        let blob = self.stored_blob(&descriptors, blob)?;
        let before = self.states.shown_age();
        self.states.restore_age(&blob, true)?;
        if self.states.shown_age() != before {
            self.send_age_state(now);
        }
        Ok(())
    }

    /// Handles a client's change to the age's SDL node in the vault: the age adopts the
    /// differences, and members are notified.
    ///
    /// # Errors
    /// Fails as [`Self::restore_age`] does, and if the blob follows an older descriptor. The state
    /// of the age is then stored again, replacing the unusable one.
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
            self.send_age_state(now);
        }
        Ok(())
    }

    /// The next message for a member. Poll until `None` after every call that takes `now`.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    /// The next event. Poll until `None` after every call that takes `now`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Self::timeout`] must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.states.due().into_iter().chain(self.over_at).min()
    }

    /// The name of the age.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The age file.
    #[must_use]
    pub fn file(&self) -> &AgeFile {
        &self.file
    }

    /// The members, in the order of joining.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter()
    }

    /// The member whose client owns the age's objects.
    #[must_use]
    pub fn owner(&self) -> Option<u32> {
        self.owner
    }

    /// The loaded clones with their owners, in the order in which joining members receive them.
    pub fn clones(&self) -> impl Iterator<Item = (&Uoid<'static>, u32)> {
        self.clones.in_order().map(|clone| (&clone.object, clone.owner))
    }

    /// The states of objects, without the state of the age.
    #[must_use]
    pub fn states(&self) -> &StateDb {
        self.states.db()
    }

    /// The state of the age as clients see it: the instance's state over the shard's settings.
    #[must_use]
    pub fn age_state(&self) -> Option<ObjectState> {
        self.states.shown_age()
    }

    /// The counters.
    #[must_use]
    pub fn counts(&self) -> &AgeCounts {
        &self.counts
    }

    /// Whether the instance has ended.
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

    /// Sends a message created by the server; such messages can always be encoded.
    pub(super) fn send_own(&mut self, to: u32, packet: Result<Packet>) {
        debug_assert!(packet.is_ok(), "{packet:?}");
        if let Ok(packet) = packet {
            self.send(to, packet);
        }
    }

    fn send_to_all(&mut self, packet: &Packet) {
        let players = self.members.iter().map(|member| member.player.id);
        self.deliveries.extend(players.map(|to| Delivery { to, packet: packet.clone() }));
        self.counts.delivered += self.members.len() as u64;
    }

    fn send_age_state(&mut self, now: Duration) {
        if let Some(packet) = self.states.age_packet(self.time(now), false) {
            self.send_to_all(&packet);
        }
    }

    fn flush(&mut self) {
        let events = &mut self.events;
        self.states.flush(|event| events.push_back(event));
    }

    /// Decodes a stored state. States that clients must not receive are refused even if they come
    /// from a database.
    fn stored_blob<'b>(&self, descriptors: &Descriptors, bytes: &'b [u8]) -> Result<Blob<'b>> {
        let blob = read_blob(bytes, descriptors, LIMITS).map_err(error)?;
        check_blob(&blob, &self.config.rules(false), LIMITS)
            .map_err(|refusal| refusal.error().clone())?;
        Ok(blob)
    }
}

/// Internal state that tests and fuzz targets compare with their own.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
impl Instance {
    #[must_use]
    pub fn lock_holder(&self, object: &Uoid<'_>) -> Option<u32> {
        self.locks.holder(object)
    }

    /// The holder of each lock; a player who holds several locks is repeated.
    pub fn lock_holders(&self) -> impl Iterator<Item = u32> {
        self.locks.holders()
    }

    /// The approximate size of all states in bytes.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        self.states.bytes()
    }
}

/// The limits for states that the server itself stored.
const LIMITS: &worldwire_core::Limits = &worldwire_core::Limits::DEFAULT;

fn error(dropped: DropReason) -> Error {
    match dropped {
        DropReason::Malformed(error) | DropReason::Descriptor(error) => error,
        other => Error::malformed("a state", other.to_string()),
    }
}
